package conformance

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/programs/token"
	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/chain/keys"
	"kivuko/chain/solana"
	solananode "kivuko/dev/nodes/solana"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// payment puts an approved payment of USDT from a sealed wallet with funds into a book. Another sealed wallet pays
// the fee.
func (h *solanaHarness) payment(t testing.TB, amount money.Amount) (*book, *keys.PaymentSigner, chain.Transfer) {
	t.Helper()
	vault, err := keys.Open(keys.Config{MasterKey: "file://" + filepath.Join(t.TempDir(), "master"), CreateLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	b := &book{payment: exchange.ChainPayment{
		ID: uuid.New(), Purpose: exchange.ForOrder, ObjectID: uuid.New(), Network: exchange.Solana, Amount: amount,
		WalletID: uuid.New(), FeeWalletID: uuid.New(), ToAddress: h.NewAccount(t).Address, Status: exchange.ChainApproved, ApprovedBy: "policy",
	}}
	p := &b.payment
	for _, side := range []struct {
		wallet  uuid.UUID
		address *string
		holds   money.Amount
	}{
		{p.WalletID, &p.FromAddress, money.FromUnits(amount.Asset(), amount.Units().Lsh(amount.Units(), 3))}, // enough to pay it eight times
		{p.FeeWalletID, &p.FeePayer, money.Must(money.SOL, "1")},
	} {
		sealed, err := vault.Create(t.Context(), keys.Ref{WalletID: side.wallet, Network: exchange.Solana})
		if err != nil {
			t.Fatal(err)
		}
		if *side.address, err = h.client.Address(sealed.PublicKey); err != nil {
			t.Fatal(err)
		}
		b.sealed = append(b.sealed, sealed)
		h.Fund(t, *side.address, side.holds)
	}
	p.IntentHash = p.Intent()
	signer, err := keys.NewPaymentSigner(keys.PaymentSignerConfig{
		Store: b, Vault: vault, Clients: map[exchange.Network]chain.Client{exchange.Solana: h.client},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, signer, chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: amount}
}

func TestSolanaPaymentIsMadeOnce(t *testing.T) {
	t.Parallel()
	const timeout = 300
	set := solanaPrograms(t)
	paidOnce(t, timeout, func() mischievous { return startSolana(t, set) })
}

func (h *solanaHarness) calm() { h.node.ResetFaults() }

// trouble makes one thing go wrong, or lets time pass.
func (h *solanaHarness) trouble(t *testing.T, random *rand.Rand) {
	t.Helper()
	const behind, held, passing = 20, 90, 100
	switch random.IntN(12) {
	case 0, 1:
		h.DropNext(t)
	case 2:
		h.LoseNextAnswer(t)
	case 3:
		h.BusyNext(t)
	case 4, 5:
		h.faults(t, solananode.Faults{HoldSlots: 1 + random.Int64N(held)})
	case 6:
		h.AdvanceTime(t, solananode.DefaultSlotInterval*time.Duration(1+random.IntN(passing)))
	case 7, 8:
		if h.node.Head().Height > h.node.Final().Height+3 {
			if err := h.node.Reorganise(1+random.IntN(3), random.IntN(2) == 0); err != nil {
				t.Fatal(err)
			}
		}
	case 9:
		h.faults(t, solananode.Faults{BehindBlocks: 1 + random.IntN(behind)})
	case 10:
		h.node.ResetFaults()
		h.Finalise(t)
	case 11:
		h.Mine(t, 1+random.IntN(3))
	}
}

// sign prepares and signs a payment whose fee another account pays.
func (h *solanaHarness) sign(t testing.TB, from, payer chaintest.Account, to string, amount money.Amount) chain.Signed {
	t.Helper()
	u, err := h.client.Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{From: from.Address, To: to, Amount: amount}, FeePayer: payer.Address})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := h.client.Sign(u, from.Key, payer.Key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func (h *solanaHarness) verdict(t testing.TB, signed chain.Signed) chain.Verdict {
	t.Helper()
	f, err := chain.Inquire(t.Context(), h.client, exchange.ChainAttempt{TxID: signed.TxID, LastValidHeight: signed.LastValidHeight}, signed.Transfer)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Judge(f)
}

// A transaction whose blockhash belongs to an undone block can never be included. The driver must not conclude that
// before the final chain passes its lifetime, and slots without blocks don't shorten that lifetime.
func TestSolanaReferenceIsUndone(t *testing.T) {
	t.Parallel()
	h := startSolana(t, solanaPrograms(t))
	amount := money.Must(money.USDT, "3")
	from, to, payer := h.NewAccount(t), h.NewAccount(t), h.Sponsor(t)
	h.Fund(t, from.Address, amount)
	h.Mine(t, 1)
	signed := h.sign(t, from, payer, to.Address, amount)
	h.Mine(t, 1)
	if err := h.node.Reorganise(2, false); err != nil {
		t.Fatal(err)
	}
	if b, err := h.client.Broadcast(t.Context(), signed.Raw); err != nil || b.State != chain.BroadcastRejected {
		t.Errorf("broadcast: %+v, %v", b, err)
	}
	for h.node.Final().Height <= signed.LastValidHeight {
		if v := h.verdict(t, signed); v != chain.VerdictBroadcast {
			t.Fatalf("the verdict is %s at %+v, it is valid until height %d", v, h.node.Final(), signed.LastValidHeight)
		}
		if err := h.node.SkipSlots(10); err != nil {
			t.Fatal(err)
		}
		h.Mine(t, 5)
	}
	if v := h.verdict(t, signed); v != chain.VerdictRebuild {
		t.Errorf("the verdict is %s after its lifetime", v)
	}
}

func TestSolanaSkippedSlots(t *testing.T) {
	t.Parallel()
	h := startSolana(t, nil)
	if err := h.node.SkipSlots(2); err != nil {
		t.Fatal(err)
	}
	h.Mine(t, 1)
	slot := h.node.Head().Slot - 1
	_, err := h.client.Transfers(t.Context(), slot)
	if chain.ReasonOf(err) != chain.ReasonUnavailable {
		t.Errorf("a slot that may still have a block: %v", err)
	}
	h.Finalise(t)
	for _, s := range []uint64{slot, slot - 1} {
		if got, err := h.client.Transfers(t.Context(), s); err != nil || !got.Skipped || got.Block.Number != s || len(got.Movements) > 0 {
			t.Errorf("slot %d: %+v, %v", s, got, err)
		}
	}
	for _, s := range []uint64{slot - 2, slot + 1} {
		if got, err := h.client.Transfers(t.Context(), s); err != nil || got.Skipped || got.Block.ID == "" {
			t.Errorf("slot %d: %+v, %v", s, got, err)
		}
	}
}

// The token program executes several transfers in one instruction, without inner instructions and without logs, and
// other programs may call it. The balances show the transfers all the same.
func TestSolanaBatchIsSeen(t *testing.T) {
	t.Parallel()
	h := startSolana(t, solanaPrograms(t))
	amount := money.Must(money.USDT, "5")
	from, payer := h.NewAccount(t), h.Sponsor(t)
	first, second := h.NewAccount(t), h.NewAccount(t)
	for _, a := range []chaintest.Account{from, first, second} {
		h.Fund(t, a.Address, amount)
	}
	mint, owner := solanaKey(t, solananode.USDTAddress), solanaKey(t, from.Address)
	source := solanaATA(t, owner, mint)
	var accounts sdk.AccountMetaSlice
	data := []byte{255} // batch
	for units, to := range []chaintest.Account{first, second} {
		in := token.NewTransferCheckedInstruction(uint64(1+units), 6, source, mint, solanaATA(t, solanaKey(t, to.Address), mint), owner, nil).Build()
		one, err := in.Data()
		if err != nil {
			t.Fatal(err)
		}
		data = append(append(data, byte(len(in.Accounts())), byte(len(one))), one...)
		accounts = append(accounts, in.Accounts()...)
	}
	spend := []sdk.PrivateKey{sdk.PrivateKey(payer.Key.(ed25519Key).PrivateKey), sdk.PrivateKey(from.Key.(ed25519Key).PrivateKey)}
	id := h.send(t, spend, sdk.NewInstruction(sdk.TokenProgramID, accounts, data),
		system.NewTransferInstruction(7_000_000, solanaKey(t, payer.Address), solanaKey(t, second.Address)).Build())
	l, err := h.client.Locate(t.Context(), id.String())
	if err != nil || !l.OK {
		t.Fatalf("%+v, %v", l, err)
	}
	for _, want := range []chain.Transfer{
		{From: from.Address, To: first.Address, Amount: money.Must(money.USDT, "0.000001")},
		{From: from.Address, To: second.Address, Amount: money.Must(money.USDT, "0.000002")},
		{From: payer.Address, To: second.Address, Amount: money.Must(money.SOL, "0.007")},
	} {
		if !slices.ContainsFunc(l.Transfers, func(m chain.Movement) bool {
			return m.From == want.From && m.To == want.To && m.Amount.Equal(want.Amount)
		}) {
			t.Errorf("%+v is missing in %+v", want, l.Transfers)
		}
	}
	block, err := h.client.Transfers(t.Context(), l.Block.Number)
	if err != nil || len(block.Movements) != len(l.Transfers) || len(block.Unreadable) > 0 {
		t.Errorf("the block's transfers are %+v, %v", block, err)
	}
}

// A recipient may be a token account with a key of its own, which is paid directly; the rent of an
// associated account is part of what a payment costs.
func TestSolanaDestinations(t *testing.T) {
	t.Parallel()
	h := startSolana(t, solanaPrograms(t))
	amount := money.Must(money.USDT, "5")
	from, payer, holder, side := h.NewAccount(t), h.Sponsor(t), h.NewAccount(t), h.NewAccount(t)
	h.Fund(t, from.Address, money.Must(money.USDT, "20"))
	mint, genesis := solanaKey(t, solananode.USDTAddress), solananode.GenesisKey()
	const rent, size = 2_039_280, 165
	h.send(t, []sdk.PrivateKey{genesis, sdk.PrivateKey(side.Key.(ed25519Key).PrivateKey)},
		system.NewCreateAccountInstruction(rent, size, sdk.TokenProgramID, genesis.PublicKey(), solanaKey(t, side.Address)).Build(),
		token.NewInitializeAccount3Instruction(solanaKey(t, holder.Address), solanaKey(t, side.Address), mint).Build())
	h.Finalise(t)
	for _, to := range []struct {
		address string
		rent    money.Amount
	}{{side.Address, money.Zero(money.SOL)}, {holder.Address, money.Must(money.SOL, "0.00203928")}, {holder.Address, money.Zero(money.SOL)}} {
		signed := h.sign(t, from, payer, to.address, amount)
		if b, err := h.client.Broadcast(t.Context(), signed.Raw); err != nil || b.State != chain.BroadcastAccepted {
			t.Fatalf("%+v, %v", b, err)
		}
		h.Mine(t, 1)
		h.Finalise(t)
		if v := h.verdict(t, signed); v != chain.VerdictSucceeded {
			t.Fatalf("to %s: %s", to.address, v)
		}
		l, err := h.client.Locate(t.Context(), signed.TxID)
		if err != nil {
			t.Fatal(err)
		}
		network := l.Fee.Sub(to.rent)
		if network.Cmp(money.Must(money.SOL, "0.00001")) < 0 || network.Cmp(money.Must(money.SOL, "0.00002")) > 0 || l.Fee.Cmp(signed.FeeLimit) > 0 {
			t.Errorf("to %s: fee %s, limit %s", to.address, l.Fee, signed.FeeLimit)
		}
	}
}

// A mint of Token-2022 may keep a part of each transfer. It is refused under every name.
func TestSolanaRefusesToken2022(t *testing.T) {
	t.Parallel()
	h := startSolana(t, solanaPrograms(t))
	c, err := solana.New(solana.Config{
		Nodes: []solana.Endpoint{{URL: "http://" + h.node.RPCAddr()}}, Genesis: solananode.GenesisHash().String(),
		Tokens: map[money.Asset]string{money.USDT: solananode.FeeMintAddress},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	from, to := h.NewAccount(t), h.NewAccount(t)
	_, err = c.Balance(t.Context(), from.Address, money.USDT)
	if chain.ReasonOf(err) != chain.ReasonUnsupported {
		t.Errorf("a balance: %v", err)
	}
	_, err = c.Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{From: from.Address, To: to.Address, Amount: money.Must(money.USDT, "1")}})
	if chain.ReasonOf(err) != chain.ReasonUnsupported {
		t.Errorf("a payment: %v", err)
	}
	other, err := solana.New(solana.Config{Nodes: []solana.Endpoint{{URL: "http://" + h.node.RPCAddr()}}, Genesis: solana.GenesisMainnet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	if _, err := other.Head(t.Context()); chain.ReasonOf(err) != chain.ReasonUnavailable {
		t.Errorf("another cluster's node is trusted: %v", err)
	}
}
