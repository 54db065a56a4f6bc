package conformance

import (
	"encoding/binary"
	"testing"
	"time"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/chain/solana"
	solananode "kivuko/dev/nodes/solana"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

const nonceSeed = "6ba7b8109dad11d180b400c04fd430c8"

// safe is an account whose payments are signed elsewhere, and the one that pays for them and is their nonce's
// authority.
type safe struct {
	*solanaHarness
	owner, payer, to chaintest.Account
	account          string
}

func newSafe(t *testing.T) *safe {
	t.Helper()
	h := startSolana(t, solanaPrograms(t))
	s := &safe{solanaHarness: h, owner: h.NewAccount(t), payer: h.Sponsor(t), to: h.NewAccount(t)}
	h.Fund(t, s.owner.Address, money.Must(money.USDT, "30"))
	var err error
	if s.account, err = h.client.NonceAccount(s.payer.Address, nonceSeed); err != nil {
		t.Fatal(err)
	}
	return s
}

// step signs what the payer does with the nonce account.
func (s *safe) step(t *testing.T, kind chain.NonceStep, amount money.Amount, seed string) chain.Signed {
	t.Helper()
	u, err := s.client.Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{From: s.payer.Address, To: s.account, Amount: amount}, Step: kind, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.client.Sign(u, s.payer.Key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func (s *safe) open(t *testing.T) {
	t.Helper()
	rent, err := s.client.NonceRent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.settle(t, s.step(t, chain.NonceOpen, rent, nonceSeed), chain.VerdictSucceeded)
}

// part prepares a payment that the owner signed and the payer did not.
func (s *safe) part(t *testing.T, amount string) (chain.Unsigned, []byte) {
	t.Helper()
	u, err := s.client.Prepare(t.Context(), chain.Draft{
		Transfer: chain.Transfer{From: s.owner.Address, To: s.to.Address, Amount: money.Must(money.USDT, amount)}, FeePayer: s.payer.Address, NonceAccount: s.account,
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s.client.SignPart(u, s.owner.Key)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := s.client.TakePart(u, raw)
	if err != nil {
		t.Fatal(err)
	}
	return u, signature
}

func (s *safe) complete(t *testing.T, u chain.Unsigned, part []byte) chain.Signed {
	t.Helper()
	signed, err := s.client.Complete(u, part, s.payer.Key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func (s *safe) offer(t *testing.T, signed chain.Signed) {
	t.Helper()
	if b, err := s.client.Broadcast(t.Context(), signed.Raw); err != nil || b.State == chain.BroadcastRejected {
		t.Fatalf("broadcast: %+v, %v", b, err)
	}
	s.Mine(t, 1)
}

func (s *safe) judge(t *testing.T, signed chain.Signed) chain.Verdict {
	t.Helper()
	f, err := chain.Inquire(t.Context(), s.client, exchange.ChainAttempt{
		TxID: signed.TxID, LastValidHeight: signed.LastValidHeight, RefBlock: signed.RefBlock, NonceAccount: signed.NonceAccount, NonceBlock: signed.NonceBlock,
	}, signed.Transfer)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Judge(f)
}

func (s *safe) settle(t *testing.T, signed chain.Signed, want chain.Verdict) {
	t.Helper()
	s.offer(t, signed)
	s.Finalise(t)
	if got := s.judge(t, signed); got != want {
		t.Fatalf("the verdict is %s, want %s", got, want)
	}
}

func (s *safe) nonce(t *testing.T) string {
	t.Helper()
	n, err := s.client.DurableNonce(t.Context(), s.account, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n.Value
}

func (s *safe) has(t *testing.T, address, want string) {
	t.Helper()
	if b, err := s.client.Balance(t.Context(), address, money.USDT); err != nil || !b.Amount.Equal(money.Must(money.USDT, want)) {
		t.Errorf("%s has %s, want %s (%v)", address, b.Amount, want, err)
	}
}

// A payment that its owner signed waits for hours, through dropped broadcasts, a restart and undone blocks, and pays
// once.
func TestSolanaDurablePaymentWaits(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	if s.nonce(t) != "" {
		t.Error("there is a nonce before its account")
	}
	s.give(t, s.account, money.Must(money.SOL, "0.001")) // another account funds the address first
	s.Mine(t, 1)
	s.Finalise(t)
	s.open(t)
	u, part := s.part(t, "10")
	for range 4 {
		s.Mine(t, 100)
	}
	s.Finalise(t)
	signed := s.complete(t, u, part)
	s.DropNext(t)
	s.offer(t, signed)
	s.Stop(t)
	s.Restart(t)
	s.Finalise(t)
	if got := s.judge(t, signed); got != chain.VerdictBroadcast {
		t.Fatalf("the verdict is %s", got)
	}
	before := s.nonce(t)
	s.offer(t, signed)
	s.Mine(t, 2)
	if err := s.node.Reorganise(3, true); err != nil {
		t.Fatal(err)
	}
	if got := s.judge(t, signed); got != chain.VerdictBroadcast {
		t.Fatalf("the verdict is %s after its block was undone", got)
	}
	s.settle(t, signed, chain.VerdictSucceeded)
	if s.nonce(t) == before {
		t.Error("the nonce did not change")
	}
	s.offer(t, signed)
	s.Finalise(t)
	s.has(t, s.to.Address, "10")
	s.has(t, s.owner.Address, "20")
}

// An advance of the nonce invalidates what was signed with it. Nothing else does, and not before the advance is
// final.
func TestSolanaAdvanceKills(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	s.open(t)
	u, part := s.part(t, "10")
	signed := s.complete(t, u, part)
	kill := s.step(t, chain.NonceAdvance, money.Must(money.SOL, "0.000000001"), "")
	s.offer(t, kill)
	if got := s.judge(t, signed); got != chain.VerdictBroadcast {
		t.Errorf("the verdict is %s by an advance that is not final", got)
	}
	s.Finalise(t)
	if got := s.judge(t, kill); got != chain.VerdictSucceeded {
		t.Fatalf("the advance: %s", got)
	}
	if got := s.judge(t, signed); got != chain.VerdictRebuild {
		t.Errorf("the verdict is %s after the nonce changed", got)
	}
	if _, err := s.client.Broadcast(t.Context(), signed.Raw); err != nil {
		t.Fatal(err)
	}
	s.Mine(t, 3)
	s.Finalise(t)
	s.has(t, s.to.Address, "0")
	u, part = s.part(t, "7") // the next one is valid by the new value
	s.settle(t, s.complete(t, u, part), chain.VerdictSucceeded)
	s.has(t, s.to.Address, "7")
}

// A payment that fails in its block has used the nonce, so it can't be included again.
func TestSolanaFailureUsesTheNonce(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	s.open(t)
	u, part := s.part(t, "10")
	rival := s.NewAccount(t)
	s.Fund(t, rival.Address, money.Must(money.USDT, "1"))
	s.TransferFrom(t, s.owner, rival.Address, money.Must(money.USDT, "25")) // the rest is too little
	s.Finalise(t)
	before := s.nonce(t)
	signed := s.complete(t, u, part)
	s.settle(t, signed, chain.VerdictFailed)
	if s.nonce(t) == before {
		t.Error("the nonce did not change")
	}
	l, err := s.client.Locate(t.Context(), signed.TxID)
	if err != nil || l.OK || !l.Fee.Positive() || len(l.Transfers) > 0 {
		t.Errorf("%+v, %v", l, err)
	}
	s.Fund(t, s.owner.Address, money.Must(money.USDT, "100"))
	s.offer(t, signed)
	s.Finalise(t)
	s.has(t, s.to.Address, "0")
}

// Only its authority advances a nonce, and the authority changes nothing but the nonce.
func TestSolanaNonceIsRuledByTheFeePayer(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	s.open(t)
	other := s.Sponsor(t)
	_, err := s.client.Prepare(t.Context(), chain.Draft{
		Transfer: chain.Transfer{From: other.Address, To: s.account, Amount: money.Must(money.SOL, "0.000000001")}, Step: chain.NonceAdvance,
	})
	if chain.ReasonOf(err) != chain.ReasonReverts {
		t.Errorf("advanced by another account: %v", err)
	}
	u, part := s.part(t, "10")
	body := append([]byte{2}, make([]byte, 2*sdk.SignatureLength)...) // the payer's signature alone
	made, err := s.payer.Key.Sign(u.Payload)
	if err != nil {
		t.Fatal(err)
	}
	copy(body[1:], made)
	if _, err := s.client.Broadcast(t.Context(), append(body, u.Body...)); chain.ReasonOf(err) != chain.ReasonProtocol {
		t.Errorf("broadcast without the owner's signature: %v", err)
	}
	if _, err := s.client.Complete(u, part, other.Key); err == nil {
		t.Error("completed by another account")
	}
	s.has(t, s.owner.Address, "30")
}

// TestSolanaDurableOnLitesvm has an independent virtual machine open a nonce account at an address that another
// account has already funded, execute a payment that is valid by it, refuse it a second time, and refuse what was
// signed before an advance.
func TestSolanaDurableOnLitesvm(t *testing.T) {
	t.Parallel()
	peer, url := startLitesvm(t)
	client, err := solana.New(solana.Config{
		Nodes: []solana.Endpoint{{URL: url}}, Genesis: solananode.GenesisHash().String(), Tokens: solanaMints, MaxHeadAge: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	h := &solanaHarness{client: client}
	s := &safe{solanaHarness: h, owner: h.NewAccount(t), payer: h.NewAccount(t), to: h.NewAccount(t)}
	if s.account, err = client.NonceAccount(s.payer.Address, nonceSeed); err != nil {
		t.Fatal(err)
	}
	const sol, rent, mintRent = 1_000_000_000, 2_039_280, 1_461_600
	mint, owner := solanaKey(t, solananode.USDTAddress), solanaKey(t, s.owner.Address)
	mintData, held := make([]byte, 82), make([]byte, 165)
	mintData[44], mintData[45] = 6, 1
	copy(held, mint[:])
	copy(held[32:], owner[:])
	binary.LittleEndian.PutUint64(held[64:], 100_000_000)
	held[108] = 1
	peer.set(t, mint, mintRent, sdk.TokenProgramID, mintData)
	peer.set(t, solanaKey(t, s.payer.Address), sol, sdk.SystemProgramID, nil)
	peer.set(t, solanaATA(t, owner, mint), rent, sdk.TokenProgramID, held)
	peer.set(t, solanaKey(t, s.account), rent, sdk.SystemProgramID, nil)
	offer := func(what string, signed chain.Signed, want chain.BroadcastState, verdict chain.Verdict) {
		t.Helper()
		if b, err := client.Broadcast(t.Context(), signed.Raw); err != nil || b.State != want {
			t.Errorf("%s: %+v, %v", what, b, err)
		}
		if got := s.judge(t, signed); got != verdict {
			t.Errorf("%s: the verdict is %s, want %s", what, got, verdict)
		}
	}
	opening, err := client.NonceRent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	offer("opening", s.step(t, chain.NonceOpen, opening, nonceSeed), chain.BroadcastKnown, chain.VerdictSucceeded)
	peer.next(t)
	u, part := s.part(t, "10")
	for range 3 {
		peer.next(t)
	}
	signed := s.complete(t, u, part)
	offer("a payment", signed, chain.BroadcastKnown, chain.VerdictSucceeded)
	peer.next(t)
	u, part = s.part(t, "20")
	peer.next(t)
	offer("an advance", s.step(t, chain.NonceAdvance, money.Must(money.SOL, "0.000000001"), ""), chain.BroadcastKnown, chain.VerdictSucceeded)
	peer.next(t)
	offer("a payment of the old value", s.complete(t, u, part), chain.BroadcastRejected, chain.VerdictRebuild)
	for holder, want := range map[string]string{s.owner.Address: "90", s.to.Address: "10"} {
		s.has(t, holder, want)
	}
}
