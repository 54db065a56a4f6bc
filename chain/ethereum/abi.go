package ethereum

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

// The calldata of contracts (Solidity, "Contract ABI Specification"). Each argument has 32 bytes in the call's head: its value,
// or where its tail begins.

// argument is one encoded argument: what its head has, or its tail.
type argument struct{ word, tail []byte }

func static(word []byte) argument { return argument{word: word} }

// bytesArgument is an argument of type bytes.
func bytesArgument(b []byte) argument {
	tail := append(numberWord(big.NewInt(int64(len(b)))), b...)
	if rest := len(b) % wordLength; rest > 0 {
		tail = append(tail, make([]byte, wordLength-rest)...)
	}
	return argument{tail: tail}
}

// addressesArgument is an argument of type address[].
func addressesArgument(all []common.Address) argument {
	tail := numberWord(big.NewInt(int64(len(all))))
	for _, a := range all {
		tail = append(tail, addressWord(a)...)
	}
	return argument{tail: tail}
}

func numberWord(n *big.Int) []byte { return common.BigToHash(n).Bytes() }

func addressWord(a common.Address) []byte { return common.LeftPadBytes(a.Bytes(), wordLength) }

// encodeCall is the calldata of a call.
func encodeCall(signature string, arguments ...argument) []byte {
	head, tail := selector(signature), []byte(nil)
	for _, a := range arguments {
		if a.tail == nil {
			head = append(head, a.word...)
			continue
		}
		head = append(head, numberWord(big.NewInt(int64(len(arguments)*wordLength+len(tail))))...)
		tail = append(tail, a.tail...)
	}
	return append(head, tail...)
}

// bytesAt reads an argument of type bytes whose tail begins at an offset of the input.
func bytesAt(input []byte, offset *big.Int) (content []byte, ok bool) {
	tail, ok := after(input, offset)
	if !ok || len(tail) < wordLength {
		return nil, false
	}
	length := new(big.Int).SetBytes(tail[:wordLength])
	rest, ok := after(tail[wordLength:], length)
	if !ok {
		return nil, false
	}
	return tail[wordLength : len(tail)-len(rest)], true
}

// addressesAt reads an argument of type address[].
func addressesAt(input []byte, offset *big.Int) (all []common.Address, ok bool) {
	tail, ok := after(input, offset)
	if !ok || len(tail) < wordLength {
		return nil, false
	}
	count := new(big.Int).SetBytes(tail[:wordLength])
	tail = tail[wordLength:]
	if !count.IsInt64() || count.Int64() != int64(len(tail)/wordLength) {
		return nil, false
	}
	for ; len(tail) >= wordLength; tail = tail[wordLength:] {
		all = append(all, common.BytesToAddress(tail[:wordLength]))
	}
	return all, true
}

// after is what follows the first bytes of an input.
func after(input []byte, skipped *big.Int) (rest []byte, ok bool) {
	if !skipped.IsInt64() || skipped.Int64() > int64(len(input)) {
		return nil, false
	}
	return input[skipped.Int64():], true
}
