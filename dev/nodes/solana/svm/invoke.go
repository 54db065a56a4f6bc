package svm

import (
	"slices"

	"github.com/gagliardetto/solana-go"
)

// Limits of invocations.
const (
	maxStack = 5  // programs that call each other
	maxTrace = 64 // instructions of a transaction, inner ones included
)

// builtinUnits is what an instruction of System or ComputeBudget costs.
const builtinUnits = 150

// passed is an account that an instruction was given.
type passed struct {
	place            int // in the transaction
	signer, writable bool
}

// invocation is one instruction that runs or has run.
type invocation struct {
	program  int // place in the transaction
	accounts []passed
	data     []byte
	height   int       // 1 for an instruction of the message
	lamports [2]uint64 // what its accounts had together when it started
}

// account is an account of the instruction that runs now.
func (x *execution) account(i int) reference {
	v := x.current()
	p := v.accounts[i]
	return reference{
		account: x.accounts[p.place], place: p.place, signer: p.signer, writable: p.writable,
		program: x.accounts[v.program].key, run: x,
	}
}

func (x *execution) current() *invocation { return x.stack[len(x.stack)-1] }

// need fails when the running instruction has fewer accounts.
func (x *execution) need(accounts int) error {
	if len(x.current().accounts) < accounts {
		return fail("MissingAccount")
	}
	return nil
}

// signed reports whether a key signed the running instruction.
func (x *execution) signed(key solana.PublicKey) bool {
	return slices.ContainsFunc(x.current().accounts, func(p passed) bool {
		return p.signer && x.accounts[p.place].key == key
	})
}

// sum is what all accounts of an instruction have together, as a number of 128
// bits. It must be the same before and after.
func (x *execution) sum(v *invocation) [2]uint64 {
	var total [2]uint64
	for i, p := range v.accounts {
		if slices.ContainsFunc(v.accounts[:i], func(q passed) bool { return q.place == p.place }) {
			continue
		}
		low := total[1] + x.accounts[p.place].Lamports
		if low < total[1] {
			total[0]++
		}
		total[1] = low
	}
	return total
}

// invoke runs one instruction. What it returns is an *InstructionError or nil.
func (x *execution) invoke(v *invocation) error {
	id := x.accounts[v.program].key
	if err := x.enter(v, id); err != nil {
		return err
	}
	defer func() { x.stack = x.stack[:len(x.stack)-1] }()
	x.returned = ReturnData{Program: id}
	x.log.add("Program %s invoke [%d]", id, v.height)
	if err := x.run(id, v); err != nil {
		x.log.add("Program %s failed: %s", id, err)
		return instructionError(err)
	}
	x.log.add("Program %s success", id)
	if x.sum(v) != v.lamports { // the program did not fail, and its instruction did
		return fail("UnbalancedInstruction")
	}
	return nil
}

// enter puts an instruction on the stack.
func (x *execution) enter(v *invocation, id solana.PublicKey) error {
	if len(x.stack) > 0 {
		caller := x.current()
		if x.sum(caller) != caller.lamports {
			return fail("UnbalancedInstruction")
		}
	}
	if len(x.trace) >= maxTrace {
		return fail("MaxInstructionTraceLengthExceeded")
	}
	if len(x.stack) >= maxStack {
		return fail("CallDepth")
	}
	for i, other := range x.stack { // a program may call itself, and no other way around
		if i != len(x.stack)-1 && x.accounts[other.program].key == id {
			return fail("ReentrancyNotAllowed")
		}
	}
	x.stack = append(x.stack, v)
	x.trace = append(x.trace, v)
	v.height = len(x.stack)
	v.lamports = x.sum(v)
	return nil
}

func (x *execution) run(id solana.PublicKey, v *invocation) error {
	switch id {
	case solana.SystemProgramID:
		if err := x.consume(builtinUnits); err != nil {
			return err
		}
		return x.system(v.data)
	case computeBudgetProgram: // read before the transaction started
		return x.consume(builtinUnits)
	}
	program, ok := x.machine.programs[id]
	if !ok {
		return fail("UnsupportedProgramId")
	}
	return x.interpret(id, program, v)
}

// consume uses up compute units, or fails and leaves none.
func (x *execution) consume(units uint64) error {
	if x.units < units {
		x.units = 0
		return fail("ComputationalBudgetExceeded")
	}
	x.units -= units
	return nil
}

// meta is an account that a program passes to another, by its address.
type meta struct {
	key              solana.PublicKey
	signer, writable bool
}

// prepare makes an invocation of what a program wants to call. It may pass on what
// it was given, the callee included, with no more rights than it has, except that it
// may sign for the addresses that it derived itself.
func (x *execution) prepare(program solana.PublicKey, metas []meta, data []byte, derived []solana.PublicKey) (*invocation, error) {
	caller := x.current()
	granted := map[int]passed{} // what the callee gets, by place
	for _, m := range metas {
		place, ok := x.places[m.key]
		if !ok || !slices.ContainsFunc(caller.accounts, func(p passed) bool { return p.place == place }) {
			x.log.add("Instruction references an unknown account %s", m.key)
			return nil, fail("MissingAccount")
		}
		g := granted[place]
		granted[place] = passed{place: place, signer: g.signer || m.signer, writable: g.writable || m.writable}
	}
	v := &invocation{data: data}
	for _, m := range metas {
		g := granted[x.places[m.key]]
		if g.writable && !caller.has(g.place, func(p passed) bool { return p.writable }) {
			x.log.add("%s's writable privilege escalated", m.key)
			return nil, fail("PrivilegeEscalation")
		}
		if g.signer && !slices.Contains(derived, m.key) && !caller.has(g.place, func(p passed) bool { return p.signer }) {
			x.log.add("%s's signer privilege escalated", m.key)
			return nil, fail("PrivilegeEscalation")
		}
		v.accounts = append(v.accounts, g)
	}
	place, ok := x.places[program]
	if !ok || !caller.has(place, func(passed) bool { return true }) {
		x.log.add("Unknown program %s", program)
		return nil, fail("MissingAccount")
	}
	if !x.accounts[place].Executable {
		x.log.add("Account %s is not executable", program)
		return nil, fail("AccountNotExecutable")
	}
	v.program = place
	return v, nil
}

// has reports whether the instruction got an account with a right.
func (v *invocation) has(place int, right func(passed) bool) bool {
	return slices.ContainsFunc(v.accounts, func(p passed) bool { return p.place == place && right(p) })
}

// record notes a cross-program invocation for the transaction's metadata.
func (x *execution) record(v *invocation) {
	inner := InnerInstruction{Program: v.program, Data: v.data, StackHeight: len(x.stack) + 1}
	for _, p := range v.accounts {
		inner.Accounts = append(inner.Accounts, p.place)
	}
	last := len(x.inner) - 1
	x.inner[last] = append(x.inner[last], inner)
}
