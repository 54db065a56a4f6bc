package svm

import (
	"fmt"

	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/solana/sbpf"
)

// errBadSeeds says that seeds give no address, as a fault of the program.
func errBadSeeds(cause string) error {
	return fmt.Errorf("Could not create program address with signer seeds: %s", cause) //nolint:staticcheck // the text is Agave's and goes into logs
}

const (
	seedTooLong  = "Length of the seed is too long for address generation"
	seedsInvalid = "Provided seeds do not result in a valid address"
)

// seedsAt reads a list of seeds from a program's memory. tooMany is what to return
// when there are more than an address can have.
func seedsAt(vm *sbpf.VM, address, count uint64, tooMany error) ([][]byte, error) {
	if count > maxSeeds {
		return nil, tooMany
	}
	table, err := vm.Memory(address, count*16, false)
	if err != nil {
		return nil, err
	}
	seeds := make([][]byte, 0, count+1)
	for ; len(table) > 0; table = table[16:] {
		size := le.Uint64(table[8:])
		if size > maxSeed {
			return nil, errBadSeeds(seedTooLong)
		}
		seed, err := vm.Memory(le.Uint64(table), size, false)
		if err != nil {
			return nil, err
		}
		seeds = append(seeds, append([]byte{}, seed...))
	}
	return seeds, nil
}

func sysCreateAddress(_ *program, vm *sbpf.VM, r [5]uint64) (uint64, error) { // seeds, their number, program, to
	if err := vm.Consume(derivationUnits); err != nil {
		return 0, err
	}
	seeds, err := seedsAt(vm, r[0], r[1], errBadSeeds(seedTooLong))
	if err != nil {
		return 0, err
	}
	id, err := keyAt(vm, r[2])
	if err != nil {
		return 0, err
	}
	address, ok := programAddress(seeds, id)
	if !ok {
		return 1, nil
	}
	return 0, write(vm, r[3], address[:])
}

// programAddress derives an address of a program, if the seeds give one: it must
// not be a point of the curve, so that it has no private key.
func programAddress(seeds [][]byte, program solana.PublicKey) (solana.PublicKey, bool) {
	address, err := solana.CreateProgramAddress(seeds, program)
	return address, err == nil
}

func sysFindAddress(_ *program, vm *sbpf.VM, r [5]uint64) (uint64, error) { // seeds, their number, program, to, bump to
	if err := vm.Consume(derivationUnits); err != nil {
		return 0, err
	}
	seeds, err := seedsAt(vm, r[0], r[1], errBadSeeds(seedTooLong))
	if err != nil {
		return 0, err
	}
	id, err := keyAt(vm, r[2])
	if err != nil {
		return 0, err
	}
	for bump := byte(255); bump > 0; bump-- {
		if address, ok := programAddress(append(seeds, []byte{bump}), id); ok {
			if err := write(vm, r[4], []byte{bump}); err != nil {
				return 0, err
			}
			return 0, write(vm, r[3], address[:])
		}
		if err := vm.Consume(derivationUnits); err != nil {
			return 0, err
		}
	}
	return 1, nil
}
