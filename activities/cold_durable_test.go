package activities

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// durableHarness is a cold wallet's payment on a network with nonce accounts.
type durableHarness struct {
	*coldHarness
	chain.Durable
	value     string // of the account; empty until the account exists
	authority string
	parts     []string
	withdrawn uuid.UUID
	opened    uuid.UUID
}

func newDurableHarness() *durableHarness {
	d := &durableHarness{coldHarness: newColdHarness(), value: "v1", authority: "payer"}
	p := &d.payment
	p.Network, p.FeeWalletID, p.FeePayer = exchange.Solana, uuid.New(), "payer"
	p.IntentHash = p.Intent()
	return d
}

func (d *durableHarness) cold() *Cold {
	return &Cold{Store: d, Client: d, Now: d.coldHarness.cold().Now}
}

func (d *durableHarness) Network() exchange.Network { return exchange.Solana }
func (d *durableHarness) Traits() chain.Traits      { return chain.Traits{Sponsored: true} }

func (d *durableHarness) Locate(ctx context.Context, id string) (chain.Location, error) {
	return d.coldHarness.Locate(ctx, id)
}
func (d *durableHarness) ParseAddress(s string) (string, error)    { return s, nil }
func (d *durableHarness) Address([]byte) (string, error)           { return "", nil }
func (d *durableHarness) Supports(money.Asset) error               { return nil }
func (d *durableHarness) Head(context.Context) (chain.Head, error) { return chain.Head{}, nil }

func (d *durableHarness) Balance(context.Context, string, money.Asset) (chain.Balance, error) {
	return chain.Balance{}, nil
}

func (d *durableHarness) Sign(chain.Unsigned, ...chain.Key) (chain.Signed, error) {
	return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "nothing is signed here")
}

func (d *durableHarness) Broadcast(context.Context, []byte) (chain.Broadcast, error) {
	return chain.Broadcast{}, nil
}

func (d *durableHarness) Transfers(context.Context, uint64) (chain.BlockTransfers, error) {
	return chain.BlockTransfers{}, nil
}

func (d *durableHarness) Prepare(_ context.Context, t chain.Draft) (chain.Unsigned, error) {
	d.prepared++
	body := []byte{byte(d.prepared)}
	return chain.Unsigned{Transfer: t.Transfer, FeePayer: t.FeePayer, Body: body, Payload: body, RefBlock: d.value, NonceAccount: t.NonceAccount, NonceBlock: 7, FeeLimit: money.Must(money.SOL, "0.003")}, nil
}

func (d *durableHarness) NonceAccount(authority, seed string) (string, error) {
	return authority + "/" + seed, nil
}

func (d *durableHarness) DurableNonce(context.Context, string, uint64) (chain.DurableNonce, error) {
	if d.value == "" {
		return chain.DurableNonce{}, nil
	}
	return chain.DurableNonce{Value: d.value, Authority: d.authority}, nil
}

func (d *durableHarness) NonceRent(context.Context) (money.Amount, error) {
	return money.Must(money.SOL, "0.00144768"), nil
}

func (d *durableHarness) TakePart(u chain.Unsigned, raw []byte) ([]byte, error) {
	if string(raw) != string(u.Body)+"part" {
		return nil, chain.Errorf(chain.ReasonForeign, "another transaction")
	}
	return raw[len(u.Body):], nil
}

func (d *durableHarness) SaveColdPart(_ context.Context, id uuid.UUID, part []byte, _ exchange.Principal) error {
	d.parts = append(d.parts, string(part))
	for i := range d.drafts {
		if d.drafts[i].ID == id {
			d.drafts[i].Part = part
		}
	}
	return nil
}

func (d *durableHarness) WithdrawColdDraft(_ context.Context, id uuid.UUID, _ exchange.Principal) (exchange.ChainPayment, error) {
	d.withdrawn = id
	for i := range d.drafts {
		if d.drafts[i].ID == id {
			d.drafts[i].Status = exchange.ColdClosing
		}
	}
	return exchange.ChainPayment{ID: uuid.NewSHA1(id, nil)}, nil
}

func (d *durableHarness) ApproveNonceAccount(_ context.Context, _ uuid.UUID, account string, rent money.Amount) (exchange.ChainPayment, error) {
	if account != "payer/"+exchange.NonceSeed(d.payment.WalletID) || !rent.Positive() {
		return exchange.ChainPayment{}, exchange.Errorf(exchange.CodeInternal, "opens %s for %s", account, rent)
	}
	d.opened = uuid.New()
	return exchange.ChainPayment{ID: d.opened}, nil
}

func (d *durableHarness) ask(t *testing.T, want exchange.Code) ColdDraft {
	t.Helper()
	out, err := d.cold().DraftColdPayment(t.Context(), ColdInput{PaymentID: d.payment.ID})
	if code := exchange.CodeOf(AsExchangeError(err)); code != want {
		t.Fatalf("handed out with %q (%v), want %q", code, err, want)
	}
	return out
}

func (d *durableHarness) take(t *testing.T, raw string, want exchange.Code) SignedPayment {
	t.Helper()
	d.raw = []byte(raw)
	out, err := d.cold().ImportColdPayment(t.Context(), ColdInput{PaymentID: d.payment.ID})
	if code := exchange.CodeOf(AsExchangeError(err)); code != want {
		t.Fatalf("brought with %q (%v), want %q", code, err, want)
	}
	return out
}

func TestADurablePaymentIsHandedOut(t *testing.T) {
	t.Parallel()
	d := newDurableHarness()
	d.value = ""
	if out := d.ask(t, ""); out.NoncePaymentID != d.opened || out.DraftID != uuid.Nil || d.prepared != 0 {
		t.Errorf("%+v", out)
	}
	d.value, d.authority = "v1", "thief"
	d.ask(t, exchange.CodeStateConflict)
	d.authority = "payer"
	first := d.ask(t, "")
	if got := d.drafts[0]; got.ID != first.DraftID || got.NonceAccount != "payer/"+exchange.NonceSeed(d.payment.WalletID) || got.NonceBlock != 7 || got.RefBlock != "v1" || got.TxID != "" {
		t.Errorf("%+v", got)
	}
	if again := d.ask(t, ""); again != first || d.prepared != 1 {
		t.Errorf("%+v, then %+v", first, again)
	}
	d.take(t, "else", exchange.CodeInvalid)
	for range 2 {
		if got := d.take(t, "\x01part", ""); !got.Incomplete || got.TxID != "" {
			t.Errorf("%+v", got)
		}
	}
	d.live = &exchange.ChainAttempt{ID: uuid.New(), TxID: "done"}
	d.drafts[0].Status, d.drafts[0].AttemptID = exchange.ColdSigned, d.live.ID
	if got := d.take(t, "\x01part", ""); got.Incomplete || got.TxID != "done" {
		t.Errorf("%+v", got)
	}
	d.live.ID = uuid.New()
	d.take(t, "\x01part", exchange.CodeStateConflict)
}

// An issued payload of any age is withdrawn before the payment is cancelled, and so is one whose nonce account has advanced.
func TestADurablePaymentIsWithdrawn(t *testing.T) {
	t.Parallel()
	d := newDurableHarness()
	closes := func() ColdClosed {
		t.Helper()
		out, err := d.cold().CloseColdPayment(t.Context(), ColdInput{PaymentID: d.payment.ID})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := closes(); out.NoncePaymentID != uuid.Nil {
		t.Errorf("nothing was handed out: %+v", out)
	}
	first := d.ask(t, "")
	d.now = d.now.Add(1000 * exchange.ColdLife)
	if again := d.ask(t, ""); again != first {
		t.Errorf("%+v", again)
	}
	if out := closes(); out.NoncePaymentID != uuid.NewSHA1(first.DraftID, nil) || d.withdrawn != first.DraftID {
		t.Errorf("%+v", out)
	}
	if out := closes(); out.NoncePaymentID != uuid.NewSHA1(first.DraftID, nil) { // not yet advanced
		t.Errorf("%+v", out)
	}
	d.take(t, "\x01part", exchange.CodeInvalid)
	if out := d.ask(t, ""); out.NoncePaymentID != uuid.NewSHA1(first.DraftID, nil) || out.DraftID != uuid.Nil {
		t.Errorf("handed out in addition to one that is withdrawn: %+v", out)
	}
	d.drafts[0].Status, d.value, d.withdrawn = exchange.ColdLapsed, "v2", uuid.Nil
	second := d.ask(t, "")
	if second.DraftID == first.DraftID || d.withdrawn != uuid.Nil {
		t.Errorf("%+v", second)
	}
	d.value = "v3" // something else advanced the nonce
	if out := d.ask(t, ""); out.DraftID != uuid.Nil || d.withdrawn != second.DraftID {
		t.Errorf("a dead transaction was handed out again: %+v", out)
	}
}
