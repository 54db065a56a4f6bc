package svm

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"
)

// number reads a number from the environment of a longer run.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

// TestConformanceRandom gives the same random transactions to litesvm and to the
// machine and compares errors, accounts, logs, compute units, inner instructions
// and returned data. KIVUKO_SVM_COUNT and KIVUKO_SVM_SEED make it longer or another.
func TestConformanceRandom(t *testing.T) {
	p := newPair(t)
	seed := number(t, "KIVUKO_SVM_SEED", 1)
	d := newDraw(p, seed)
	for i := range number(t, "KIVUKO_SVM_COUNT", 2000) {
		p.advance()
		if i%10 == 0 {
			d.forget()
		}
		name, wire := d.transaction()
		if wire != nil {
			p.both(name, wire)
		}
	}
	t.Logf("seed %d: %d transactions (%d succeeded, %d failed, %d rejected), %d differences, %d distinct errors, "+
		"%d failures that litesvm had to be told of", seed, p.transactions, p.succeeded, p.failed, p.rejected, p.differences,
		len(p.errors), p.aligned)
	if testing.Verbose() {
		for text, n := range p.errors {
			t.Logf("%6d %s", n, text)
		}
	}
	require.Positive(t, p.succeeded)
}

// forget drops most addresses at which nothing came to be, and gives people back
// what they need to pay.
func (d *draw) forget() {
	for _, k := range d.people {
		if a := d.accounts[k]; a.Lamports < lamportsOfPlenty/2 || a.Owner != solana.SystemProgramID || len(a.Data) != 0 {
			d.accounts[k] = Account{Lamports: lamportsOfPlenty}
			d.peer.set(k, d.accounts[k])
		}
	}
	for _, list := range []*[]solana.PublicKey{&d.mints, &d.holders, &d.multisigs, &d.nonces} {
		var kept []solana.PublicKey
		for _, k := range *list {
			if _, there := d.accounts[k]; there || d.one(12) {
				kept = append(kept, k)
			}
		}
		*list = kept
	}
}

// transaction draws a transaction of one to five steps, or nothing when it would
// not fit into a packet.
func (d *draw) transaction() (string, []byte) {
	payer := d.person()
	hash := d.block.LastBlockhash
	var names []string
	var list []solana.Instruction
	if len(d.nonces) > 0 && d.one(8) {
		key := pick(d, d.nonces...)
		if a := d.accounts[key]; isNonce(a) {
			hash = nonceValue(a.Data)
			if d.one(10) {
				hash[0]++
			}
			list = append(list, nonceAdvance(key, nonceAuthority(a.Data)))
			names = append(names, "durable")
		}
	}
	steps := 1
	if d.one(3) {
		steps += d.rnd.IntN(3)
	}
	for range steps {
		name, more := d.step(payer)
		names = append(names, name)
		list = append(list, more...)
	}
	wire := d.sign(payer, hash, d.one(4), list...)
	if len(wire) > PacketSize {
		return "", nil
	}
	return strings.Join(names, ", "), wire
}

// expect executes on both sides and checks the outcome too.
func (p *pair) expect(name, wantErr string, payer solana.PublicKey, list ...solana.Instruction) Result {
	p.t.Helper()
	p.advance()
	r := p.both(name, p.sign(payer, p.block.LastBlockhash, false, list...))
	got, err := json.Marshal(r.Err)
	require.NoError(p.t, err)
	require.Equal(p.t, wantErr, string(got), "%s\n%s", name, strings.Join(r.Logs, "\n"))
	return r
}
