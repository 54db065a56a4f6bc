package activities

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
)

// ColdStore is where transactions are kept that are signed away from the service.
type ColdStore interface {
	ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error)
	LiveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error)
	NonceLane(ctx context.Context, walletID uuid.UUID) (exchange.NonceLane, bool, error)
	ColdDrafts(ctx context.Context, paymentID uuid.UUID) ([]exchange.ColdDraft, error)
	SaveColdDraft(ctx context.Context, d exchange.ColdDraft, by exchange.Principal) (exchange.ColdDraft, error)
	SaveColdAttempt(ctx context.Context, draftID uuid.UUID, a exchange.ChainAttempt, by exchange.Principal) (exchange.ChainAttempt, error)
}

// Cold hands out unsigned transactions of cold wallets on one network and takes the signed ones back. It
// holds no key and opens none.
type Cold struct {
	Store  ColdStore
	Client chain.Client
	Now    func() time.Time
}

// ColdInput asks for a transaction to be signed elsewhere.
type ColdInput struct {
	PaymentID uuid.UUID `json:"payment_id"`
	Actor     Actor     `json:"actor"`
}

// ColdDraft names what was handed out.
type ColdDraft struct {
	DraftID uuid.UUID `json:"draft_id"`
}

// DraftColdPayment builds an unsigned transaction of an approved payment and stores it. While one that was
// handed out may still come back that one is given again. CodeUnsupported where the network's transactions
// can't wait for a person.
func (c *Cold) DraftColdPayment(ctx context.Context, in ColdInput) (ColdDraft, error) {
	d, err := c.draft(ctx, in)
	return ColdDraft{DraftID: d.ID}, coldFailure(ctx, err)
}

func (c *Cold) draft(ctx context.Context, in ColdInput) (exchange.ColdDraft, error) {
	var none exchange.ColdDraft
	p, client, err := c.payment(ctx, in.PaymentID)
	if err != nil {
		return none, err
	}
	if p.Status != exchange.ChainApproved {
		return none, exchange.Errorf(exchange.CodeStateConflict, "The payment is %s; nothing of it is to be signed now.", p.Status)
	}
	before, err := c.Store.ColdDrafts(ctx, p.ID)
	if err != nil {
		return none, err
	}
	d := chain.Draft{Transfer: chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: p.Amount}, Life: exchange.ColdLife}
	if d.Nonce, err = c.number(ctx, p, client, before); err != nil {
		return none, err
	}
	if len(before) > 0 {
		if open := before[0]; open.Status == exchange.ColdOpen && open.Nonce == d.Nonce && c.Now().Before(open.ClosesAt) {
			return open, c.alive(open)
		}
	}
	if err := c.unsent(ctx, client, before); err != nil {
		return none, err
	}
	u, err := client.Prepare(ctx, d)
	if err != nil {
		return none, err
	}
	if u.Transfer.From != d.From || u.Transfer.To != d.To || !u.Transfer.Amount.Equal(d.Amount) || u.FeePayer != "" || u.Nonce != d.Nonce {
		return none, exchange.Errorf(exchange.CodeInternal, "the driver prepared another transfer for payment %s", p.ID)
	}
	return c.Store.SaveColdDraft(ctx, c.row(p, client, u, in.Actor), in.Actor.Principal())
}

// alive refuses a transaction that nobody can sign in time any more, and that may be in a block all the same.
func (c *Cold) alive(d exchange.ColdDraft) error {
	if d.ExpiresAt.IsZero() || c.Now().Before(d.ExpiresAt) {
		return nil
	}
	return exchange.Errorf(exchange.CodeStateConflict, "What was handed out has expired; ask for a new payload after %s.", d.ClosesAt.Format(time.RFC3339))
}

// payment reads an approved payment whose transaction can wait for a person.
func (c *Cold) payment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, chain.Offline, error) {
	p, err := c.Store.ChainPayment(ctx, id)
	if err != nil {
		return p, nil, err
	}
	if p.ApprovedBy == "" || subtle.ConstantTimeCompare([]byte(p.IntentHash), []byte(p.Intent())) != 1 {
		return p, nil, exchange.Errorf(exchange.CodeStateConflict, "Payment %s is not what was approved.", id)
	}
	client, ok := c.Client.(chain.Offline)
	if !ok || p.Network != c.Client.Network() || p.FeePayer != "" {
		return p, nil, exchange.Errorf(exchange.CodeUnsupported,
			"Cold wallets can't send on %s: its transactions live for about a minute, too short to be signed away from the service.", p.Network)
	}
	return p, client, nil
}

// number gives the number that the transaction must have, on a network that numbers them. Two of one wallet
// are never on their way at once, and a payment of which one was handed out gets no later number before the
// earlier one was used by us.
func (c *Cold) number(ctx context.Context, p exchange.ChainPayment, client chain.Offline, before []exchange.ColdDraft) (uint64, error) {
	if !client.Traits().Sequenced {
		return 0, nil
	}
	counter, ok := c.Client.(chain.Sequenced)
	if !ok {
		return 0, exchange.Errorf(exchange.CodeInternal, "the client for %s counts no transactions", p.Network)
	}
	// The count comes before the lane: every transaction of ours that it counts is then in the lane.
	counted, err := counter.Nonces(ctx, p.FromAddress)
	if err != nil {
		return 0, err
	}
	lane, open, err := c.Store.NonceLane(ctx, p.WalletID)
	if err != nil {
		return 0, err
	}
	switch {
	case lane.Foreign || (open && counted.Latest > lane.Next):
		return 0, chain.Errorf(chain.ReasonForeign, "the wallet sent a transaction that was not imported here")
	case open && counted.Latest < lane.Next:
		return 0, exchange.Errorf(exchange.CodeStateConflict, "An earlier transaction of the wallet is not in a block yet; ask again when it is.")
	}
	for _, d := range before {
		if d.Lane != uuid.Nil && counted.Latest > d.Nonce && (!open || lane.Next <= d.Nonce) {
			return 0, chain.Errorf(chain.ReasonForeign, "the wallet used the number of a transaction that was handed out, and it was not imported here")
		}
	}
	return counted.Latest, nil
}

// unsent refuses to build another transaction when one that was handed out is on the network: it was sent
// by somebody, and may be imported still.
func (c *Cold) unsent(ctx context.Context, client chain.Offline, before []exchange.ColdDraft) error {
	for _, d := range before {
		if d.TxID == "" || d.Status == exchange.ColdSigned {
			continue // what was imported is watched by its own means
		}
		at, err := client.Locate(ctx, d.TxID)
		if err != nil {
			return err
		}
		if at.Stage != chain.StageAbsent {
			return exchange.Errorf(exchange.CodeStateConflict, "The transaction %s was handed out before and is on the network; import its signed bytes.", d.TxID)
		}
	}
	return nil
}

func (c *Cold) row(p exchange.ChainPayment, client chain.Offline, u chain.Unsigned, by Actor) exchange.ColdDraft {
	d := exchange.ColdDraft{
		ID: uuid.Must(uuid.NewV7()), PaymentID: p.ID, Network: p.Network, Body: u.Body, Payload: u.Payload, TxID: client.KnownID(u), ExpiresAt: u.ExpiresAt,
		Nonce: u.Nonce, RefBlock: u.RefBlock, Bid: u.Bid, FeeLimit: u.FeeLimit, AskedBy: by.UserID,
		ClosesAt: c.Now().UTC().Add(exchange.ColdLife + exchange.ColdMargin),
	}
	if end := u.ExpiresAt.Add(exchange.ColdMargin); end.After(d.ClosesAt) {
		d.ClosesAt = end
	}
	if client.Traits().Sequenced {
		d.Lane = p.WalletID
	}
	return d
}

// ColdImport brings a signed transaction back.
type ColdImport struct {
	PaymentID uuid.UUID `json:"payment_id"`
	Raw       []byte    `json:"raw"` // in the network's encoding
	Actor     Actor     `json:"actor"`
}

// ImportColdPayment takes a signed transaction that was handed out, and stores it as the payment's live one.
// The same bytes may come again. CodeInvalid for bytes that are not what was handed out, signed by the wallet.
func (c *Cold) ImportColdPayment(ctx context.Context, in ColdImport) (SignedPayment, error) {
	a, err := c.take(ctx, in)
	return SignedPayment{AttemptID: a.ID, TxID: a.TxID}, coldFailure(ctx, err)
}

func (c *Cold) take(ctx context.Context, in ColdImport) (exchange.ChainAttempt, error) {
	var none exchange.ChainAttempt
	p, client, err := c.payment(ctx, in.PaymentID)
	if err != nil {
		return none, err
	}
	drafts, err := c.Store.ColdDrafts(ctx, p.ID)
	if err != nil {
		return none, err
	}
	d, signed, err := match(p, client, drafts, in.Raw)
	if err != nil {
		return none, err
	}
	live, alive, err := c.Store.LiveAttempt(ctx, p.ID)
	switch {
	case err != nil:
		return none, err
	case alive && live.TxID == signed.TxID:
		return live, nil
	case alive || d.Status == exchange.ColdSigned:
		return none, exchange.Errorf(exchange.CodeStateConflict, "The payment has a signed transaction already.")
	}
	if err := c.intime(ctx, client, d, signed.TxID); err != nil {
		return none, err
	}
	saved, err := c.Store.SaveColdAttempt(ctx, d.ID, exchange.ChainAttempt{
		ID: uuid.Must(uuid.NewV7()), PaymentID: p.ID, Network: p.Network, Lane: d.Lane, TxID: signed.TxID, Raw: signed.Raw, ExpiresAt: signed.ExpiresAt,
		Nonce: signed.Nonce, RefBlock: signed.RefBlock, Bid: signed.Bid, FeeLimit: signed.FeeLimit, Status: exchange.TxSigned,
	}, in.Actor.Principal())
	switch {
	case exchange.CodeOf(err) == exchange.CodeConflict:
		return none, invalidImport("taken", "has a number that another payment of the wallet took; ask for a new payload")
	case err == nil && saved.TxID != signed.TxID: // another import was faster
		return none, exchange.Errorf(exchange.CodeStateConflict, "The payment has a signed transaction already.")
	}
	return saved, err
}

// match finds what was handed out in what came back.
func match(p exchange.ChainPayment, client chain.Offline, drafts []exchange.ColdDraft, raw []byte) (exchange.ColdDraft, chain.Signed, error) {
	var refused error = chain.Errorf(chain.ReasonForeign, "no transaction of the payment was handed out")
	for i, d := range drafts {
		signed, err := client.TakeSigned(chain.Unsigned{
			Transfer: chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: p.Amount}, Payload: d.Payload, Body: d.Body, ExpiresAt: d.ExpiresAt,
			Nonce: d.Nonce, RefBlock: d.RefBlock, Bid: d.Bid, FeeLimit: d.FeeLimit,
		}, raw)
		if err == nil {
			return d, signed, nil
		}
		if i == 0 || chain.ReasonOf(err) != chain.ReasonForeign {
			refused = err
		}
	}
	if e, ok := errors.AsType[*chain.Error](refused); ok {
		return exchange.ColdDraft{}, chain.Signed{}, invalidImport("transaction", "is not what was handed out, signed by the wallet: "+e.Detail)
	}
	return exchange.ColdDraft{}, chain.Signed{}, refused
}

// intime refuses a transaction whose time is over, unless the network has it: somebody sent it, and its fate
// has to be followed.
func (c *Cold) intime(ctx context.Context, client chain.Offline, d exchange.ColdDraft, txID string) error {
	expired := !d.ExpiresAt.IsZero() && !c.Now().Before(d.ExpiresAt)
	if !expired && d.Status == exchange.ColdOpen {
		return nil
	}
	at, err := client.Locate(ctx, txID)
	if err != nil {
		return err
	}
	if at.Stage == chain.StageAbsent {
		return invalidImport("expired", "was handed out too long ago; ask for a new payload")
	}
	return nil
}

func invalidImport(code, message string) error {
	return &exchange.Error{
		Code: exchange.CodeInvalid, Message: "The request breaks one or more rules.",
		Fields: []exchange.FieldError{{Pointer: "/signed_transaction", Code: code, Message: message}},
	}
}

// coldFailure words what the network says for the person who waits for the answer. What passes is tried again.
func coldFailure(ctx context.Context, err error) error {
	if reason, final := buildRefusal(err); final {
		return Failure(ctx, exchange.Wrap(exchange.CodeStateConflict, err, "No transaction can be built now (%s).", reason))
	}
	return Failure(ctx, err)
}
