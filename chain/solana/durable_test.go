package solana

import (
	"bytes"
	"encoding/binary"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

const nonceSeed = "0f8fad5bd9cb469fa16570867728950e"

// nonceAccountOf is a nonce account of an authority with a value.
func nonceAccountOf(version uint32, authority sdk.PublicKey, value string) map[string]any {
	data := binary.LittleEndian.AppendUint32(nil, version)
	data = binary.LittleEndian.AppendUint32(data, nonceInitialized)
	data = append(data, authority[:]...)
	hash := sdk.MustHashFromBase58(value)
	data = append(data, hash[:]...)
	return accountJSON(1_447_680, sdk.SystemProgramID, binary.LittleEndian.AppendUint64(data, 5000))
}

// vault is a stub network with a nonce account of the fee payer, and a draft that uses it.
func vault(t testing.TB) (*stub, *Client, chain.Draft) {
	t.Helper()
	s, d := harness(t)
	c := stubbed(t, s)
	var err error
	if d.NonceAccount, err = c.NonceAccount(d.FeePayer, nonceSeed); err != nil {
		t.Fatal(err)
	}
	s.accounts[d.NonceAccount] = nonceAccountOf(1, named("payer").key(), hashAt(5))
	return s, c, d
}

// The owner's part is signed elsewhere, and both sign the prepared message.
func TestSignedInParts(t *testing.T) {
	t.Parallel()
	_, c, d := vault(t)
	u, err := c.Prepare(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if u.RefBlock != hashAt(5) || u.LastValidHeight != 0 || u.NonceAccount != d.NonceAccount || u.NonceBlock == 0 {
		t.Errorf("prepared %+v", u)
	}
	m, err := readMessage(u.Body)
	if err != nil || !advances(m) {
		t.Fatalf("the nonce is not advanced first: %v", err)
	}
	part, err := c.SignPart(u, named("alice"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeSigned(part); err == nil {
		t.Error("a part is a transaction")
	}
	signature, err := c.TakePart(u, part)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := c.Complete(u, signature, named("payer"))
	if err != nil {
		t.Fatal(err)
	}
	tx, err := sdk.TransactionFromBytes(signed.Raw)
	if err != nil || tx.VerifySignatures() != nil || tx.Signatures[0].String() != signed.TxID || !bytes.HasSuffix(signed.Raw, u.Body) {
		t.Errorf("%v, %+v", err, signed)
	}
	if _, durable, err := referenceOf(signed.Raw); err != nil || !durable {
		t.Errorf("it is not known for a durable one: %v", err)
	}
	if _, err := c.SignPart(u, named("payer")); err == nil {
		t.Error("the fee payer signed the owner's part")
	}
	if _, err := c.Complete(u, signature, named("alice")); err == nil {
		t.Error("completed without the fee payer")
	}
	if _, err := c.Complete(u, flipped(signature, 3), named("payer")); err == nil {
		t.Error("completed with another signature")
	}
}

func TestTakePartRefuses(t *testing.T) {
	t.Parallel()
	_, c, d := vault(t)
	u, err := c.Prepare(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.Prepare(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	part, err := c.SignPart(u, named("alice"))
	if err != nil {
		t.Fatal(err)
	}
	another, err := c.SignPart(other, named("alice"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.TakePart(u, another)
	wantReason(t, "another transaction", err, chain.ReasonForeign)
	mallory, err := named("mallory").Sign(u.Body)
	if err != nil {
		t.Fatal(err)
	}
	forged := bytes.Clone(part)
	copy(forged[1+sdk.SignatureLength:], mallory)
	for name, raw := range map[string][]byte{
		"nothing": nil, "the message": u.Body, "one signature": append([]byte{1}, part[1+sdk.SignatureLength:]...), "short": part[:100],
		"a fee payer's signature": flipped(part, 5), "somebody else's signature": forged, "a flipped signature": flipped(part, 70),
		"more bytes": append(bytes.Clone(part), 0),
	} {
		if _, err := c.TakePart(u, raw); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	for name, edit := range map[string]func(*chain.Unsigned){
		"no nonce account":      func(u *chain.Unsigned) { u.NonceAccount = "" },
		"another nonce account": func(u *chain.Unsigned) { u.NonceAccount = named("mallory").address() },
		"another value":         func(u *chain.Unsigned) { u.RefBlock = hashAt(6) },
		"an end of life":        func(u *chain.Unsigned) { u.LastValidHeight = 7 },
		"no block":              func(u *chain.Unsigned) { u.NonceBlock = 0 },
		"no fee payer":          func(u *chain.Unsigned) { u.FeePayer = "" },
		"another recipient":     func(u *chain.Unsigned) { u.Transfer.To = named("mallory").address() },
		"another amount":        func(u *chain.Unsigned) { u.Transfer.Amount = money.Must(money.USDT, "11") },
	} {
		bad := u
		edit(&bad)
		if _, err := c.SignPart(bad, named("alice")); err == nil {
			t.Errorf("%s: signed", name)
		}
		if _, err := c.TakePart(bad, part); err == nil {
			t.Errorf("%s: taken", name)
		}
		if _, err := c.Complete(bad, part[65:129], named("payer")); err == nil {
			t.Errorf("%s: completed", name)
		}
	}
}

// Only a message with a nonce account and two signers is signed in parts.
func TestOnlyDurableTransactionsComeInParts(t *testing.T) {
	t.Parallel()
	s, d := harness(t)
	c := stubbed(t, s)
	u, err := c.Prepare(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.SignPart(u, named("alice")); err == nil {
		t.Error("a transaction that lives for a minute was signed in parts")
	}
}

func TestPrepareDurableRefuses(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]struct {
		edit func(*stub, *chain.Draft)
		want chain.Reason
	}{
		"no account": {func(s *stub, d *chain.Draft) { delete(s.accounts, d.NonceAccount) }, chain.ReasonReverts},
		"another authority": {func(s *stub, d *chain.Draft) {
			s.accounts[d.NonceAccount] = nonceAccountOf(1, named("alice").key(), hashAt(5))
		}, chain.ReasonReverts},
		"an old account": {func(s *stub, d *chain.Draft) {
			s.accounts[d.NonceAccount] = nonceAccountOf(0, named("payer").key(), hashAt(5))
		}, chain.ReasonForeign},
		"a program's": {func(s *stub, d *chain.Draft) {
			s.accounts[d.NonceAccount] = accountJSON(1, sdk.StakeProgramID, make([]byte, 80))
		}, chain.ReasonForeign},
		"no fee payer":       {func(_ *stub, d *chain.Draft) { d.FeePayer = "" }, chain.ReasonUnsupported},
		"paid by the sender": {func(_ *stub, d *chain.Draft) { d.FeePayer = d.From }, chain.ReasonUnsupported},
		"no address":         {func(_ *stub, d *chain.Draft) { d.NonceAccount = "nonsense" }, chain.ReasonAddress},
	} {
		s, c, d := vault(t)
		q.edit(s, &d)
		_, err := c.Prepare(t.Context(), d)
		wantReason(t, name, err, q.want)
	}
}

// The house's gas wallet opens a nonce account and advances it. Each step is a payment into the account, so that it is
// signed, stored, watched and booked like any other.
func TestNonceSteps(t *testing.T) {
	t.Parallel()
	s, c, durable := vault(t)
	authority := durable.FeePayer
	open := chain.Draft{Transfer: chain.Transfer{From: authority, To: durable.NonceAccount, Amount: money.Must(money.SOL, "0.00144768")}, Step: chain.NonceOpen, Seed: nonceSeed}
	next := chain.Draft{Transfer: chain.Transfer{From: authority, To: durable.NonceAccount, Amount: lamports(1)}, Step: chain.NonceAdvance}
	_, err := c.Prepare(t.Context(), open)
	wantReason(t, "opened twice", err, chain.ReasonReverts)
	for name, edit := range map[string]func(*chain.Draft){
		"under another seed": func(d *chain.Draft) { d.Seed = "1" }, "under no seed": func(d *chain.Draft) { d.Seed = "" },
		"at another address": func(d *chain.Draft) { d.To = named("bob").address() },
	} {
		bad := open
		edit(&bad)
		_, err := c.Prepare(t.Context(), bad)
		wantReason(t, "opened "+name, err, chain.ReasonAddress)
	}
	u, err := c.Prepare(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Sign(u, named("payer")); err != nil {
		t.Error(err)
	}
	s.set(func() { s.accounts[durable.NonceAccount] = walletAccount(5) }) // someone paid into it
	_, err = c.Prepare(t.Context(), next)
	wantReason(t, "advanced before it is there", err, chain.ReasonReverts)
	if u, err = c.Prepare(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	m, err := readMessage(u.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Instructions[len(m.Instructions)-1].Data[0]; uint32(got) != system.Instruction_InitializeNonceAccount {
		t.Errorf("the last instruction is %d", got)
	}
	if _, err := c.Sign(u, named("payer")); err != nil {
		t.Error(err)
	}
	for name, edit := range map[string]func(*chain.Unsigned){
		"as a payment":    func(u *chain.Unsigned) { u.Step, u.Seed = "", "" },
		"as an advance":   func(u *chain.Unsigned) { u.Step, u.Seed = chain.NonceAdvance, "" },
		"another seed":    func(u *chain.Unsigned) { u.Seed = "1" },
		"another account": func(u *chain.Unsigned) { u.Transfer.To = named("bob").address() },
		"another amount":  func(u *chain.Unsigned) { u.Transfer.Amount = lamports(2) },
		"a fee payer":     func(u *chain.Unsigned) { u.FeePayer = named("bob").address() },
	} {
		bad := u
		edit(&bad)
		if _, err := c.Sign(bad, named("payer")); err == nil {
			t.Errorf("signed %s", name)
		}
	}
}

// A changed final nonce proves that a transaction signed with the old one can't be included any more. A nonce from a state
// older than the transaction's proves nothing.
func TestADurableTransactionDiesWithItsNonce(t *testing.T) {
	t.Parallel()
	s, c, d := vault(t)
	u, err := c.Prepare(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	part, err := c.SignPart(u, named("alice"))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := c.Complete(u, part[65:129], named("payer"))
	if err != nil {
		t.Fatal(err)
	}
	a := exchange.ChainAttempt{TxID: signed.TxID, RefBlock: u.RefBlock, NonceAccount: u.NonceAccount, NonceBlock: u.NonceBlock}
	verdict := func() (chain.Verdict, error) {
		f, err := chain.Inquire(t.Context(), c, a, d.Transfer)
		return chain.Judge(f), err
	}
	if got, err := verdict(); got != chain.VerdictBroadcast || err != nil {
		t.Errorf("judged %s, %v", got, err)
	}
	s.set(func() { s.final, s.latest = 5000, 5000 })
	if got, err := verdict(); got != chain.VerdictBroadcast || err != nil {
		t.Errorf("judged %s after hours, %v", got, err)
	}
	s.set(func() { s.latest = 5100 })
	s.set(func() { s.accounts[d.NonceAccount] = nonceAccountOf(1, named("payer").key(), hashAt(6)) })
	if got, err := verdict(); got != chain.VerdictBroadcast || err != nil {
		t.Errorf("judged %s although the final head is older than the nonce, %v", got, err)
	}
	s.set(func() { s.final = 5100 })
	if got, err := verdict(); got != chain.VerdictRebuild || err != nil {
		t.Errorf("judged %s, %v", got, err)
	}
	a.NonceBlock = 6000
	_, err = verdict()
	wantReason(t, "a state from before it was made", err, chain.ReasonUnavailable)
	s.set(func() { delete(s.accounts, d.NonceAccount) })
	a.NonceBlock = u.NonceBlock
	_, err = verdict()
	wantReason(t, "an account that is gone", err, chain.ReasonForeign)
}
