package activities

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// ColdStore is where transactions are kept that are signed away from the service.
type ColdStore interface {
	ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error)
	LiveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error)
	NonceLane(ctx context.Context, walletID uuid.UUID) (exchange.NonceLane, bool, error)
	ColdDrafts(ctx context.Context, paymentID uuid.UUID) ([]exchange.ColdDraft, error)
	SaveColdDraft(ctx context.Context, d exchange.ColdDraft, by exchange.Principal) (exchange.ColdDraft, error)
	SaveColdAttempt(ctx context.Context, draftID uuid.UUID, a exchange.ChainAttempt, by exchange.Principal) (exchange.ChainAttempt, error)
	SaveColdPart(ctx context.Context, draftID uuid.UUID, part []byte, by exchange.Principal) error
	DraftSpent(ctx context.Context, d exchange.ColdDraft) (string, error)
	LapseColdDraft(ctx context.Context, draftID uuid.UUID, evidence string, by exchange.Principal) error
	WithdrawColdDraft(ctx context.Context, draftID uuid.UUID, by exchange.Principal) (exchange.ChainPayment, error)
	ApproveNonceAccount(ctx context.Context, paymentID uuid.UUID, account string, rent money.Amount) (exchange.ChainPayment, error)
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
	// NoncePaymentID is a payment that has to be completed first; nothing was handed out then.
	NoncePaymentID uuid.UUID `json:"nonce_payment_id,omitzero"`
}

// DraftColdPayment builds an unsigned transaction of an approved payment and stores it. While one that was
// handed out may still come back that one is given again. CodeUnsupported where the network's transactions
// can't wait for a person.
func (c *Cold) DraftColdPayment(ctx context.Context, in ColdInput) (ColdDraft, error) {
	p, way, err := c.payment(ctx, in.PaymentID)
	if err != nil {
		return ColdDraft{}, coldFailure(ctx, err)
	}
	if way.durable != nil {
		d, err := c.draftDurable(ctx, p, way, in.Actor)
		return d, coldFailure(ctx, err)
	}
	d, err := c.draft(ctx, p, way, in.Actor)
	return ColdDraft{DraftID: d.ID}, coldFailure(ctx, err)
}

func (c *Cold) draft(ctx context.Context, p exchange.ChainPayment, way coldWay, by Actor) (exchange.ColdDraft, error) {
	var none exchange.ColdDraft
	before, err := c.approved(ctx, p)
	if err != nil {
		return none, err
	}
	d := chain.Draft{Transfer: chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: p.Amount}, Life: exchange.ColdLife}
	if d.Nonce, err = c.number(ctx, p, way, before); err != nil {
		return none, err
	}
	open := len(before) > 0 && before[0].Status == exchange.ColdOpen
	if open && before[0].Nonce == d.Nonce && c.Now().Before(before[0].ClosesAt) {
		return before[0], c.alive(before[0])
	}
	if err := c.unsent(ctx, way, before); err != nil {
		return none, err
	}
	if open && (before[0].Lane == uuid.Nil || before[0].Nonce != d.Nonce) { // with the same number one of the two can be included
		if err := c.over(ctx, p, way, before[0], by); err != nil {
			return none, err
		}
	}
	return c.handOut(ctx, p, way, d, by)
}

// approved reads what was handed out for a payment that may be signed.
func (c *Cold) approved(ctx context.Context, p exchange.ChainPayment) ([]exchange.ColdDraft, error) {
	if p.Status != exchange.ChainApproved {
		return nil, exchange.Errorf(exchange.CodeStateConflict, "The payment is %s; nothing of it is to be signed now.", p.Status)
	}
	return c.Store.ColdDrafts(ctx, p.ID)
}

// handOut prepares a transaction and stores it.
func (c *Cold) handOut(ctx context.Context, p exchange.ChainPayment, way coldWay, d chain.Draft, by Actor) (exchange.ColdDraft, error) {
	u, err := way.Prepare(ctx, d)
	if err != nil {
		return exchange.ColdDraft{}, err
	}
	if u.Transfer.From != d.From || u.Transfer.To != d.To || !u.Transfer.Amount.Equal(d.Amount) || u.FeePayer != d.FeePayer || u.Nonce != d.Nonce ||
		u.NonceAccount != d.NonceAccount {
		return exchange.ColdDraft{}, exchange.Errorf(exchange.CodeInternal, "the driver prepared another transfer for payment %s", p.ID)
	}
	return c.Store.SaveColdDraft(ctx, c.row(p, way, u, by), by.Principal())
}

// alive refuses a transaction that nobody can sign in time any more, and that may be in a block all the same.
func (c *Cold) alive(d exchange.ColdDraft) error {
	if d.ExpiresAt.IsZero() || c.Now().Before(d.ExpiresAt) {
		return nil
	}
	return exchange.Errorf(exchange.CodeStateConflict, "What was handed out has expired; ask for a new payload after %s.", d.ClosesAt.Format(time.RFC3339))
}

// coldWay is how a payment is signed away from the service: by its owner alone, within the life of its
// transaction, or by its owner first and by who pays the fee after it.
type coldWay struct {
	chain.Client
	offline chain.Offline
	durable chain.Durable
}

// payment reads an approved payment whose transaction can wait for a person.
func (c *Cold) payment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, coldWay, error) {
	way := coldWay{Client: c.Client}
	p, err := c.Store.ChainPayment(ctx, id)
	if err != nil {
		return p, way, err
	}
	if p.ApprovedBy == "" || subtle.ConstantTimeCompare([]byte(p.IntentHash), []byte(p.Intent())) != 1 {
		return p, way, exchange.Errorf(exchange.CodeStateConflict, "Payment %s is not what was approved.", id)
	}
	var fits bool
	if p.FeePayer == "" {
		way.offline, fits = c.Client.(chain.Offline)
	} else {
		way.durable, fits = c.Client.(chain.Durable)
	}
	if !fits || p.Network != c.Client.Network() {
		return p, way, exchange.Errorf(exchange.CodeUnsupported,
			"Cold wallets can't send on %s: its transactions live for about a minute unless a gas wallet of the house keeps an account for them, and there is none.", p.Network)
	}
	return p, way, nil
}

// number gives the number that the transaction must have, on a network that numbers them. Two of one wallet
// are never on their way at once, and a payment of which one was handed out gets no later number before the
// earlier one was used by us.
func (c *Cold) number(ctx context.Context, p exchange.ChainPayment, way coldWay, before []exchange.ColdDraft) (uint64, error) {
	if !way.Traits().Sequenced {
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
func (c *Cold) unsent(ctx context.Context, way coldWay, before []exchange.ColdDraft) error {
	for _, d := range before {
		if d.TxID == "" || d.Status == exchange.ColdSigned {
			continue // what was imported is watched by its own means
		}
		at, err := way.Locate(ctx, d.TxID)
		if err != nil {
			return err
		}
		if at.Stage != chain.StageAbsent {
			return exchange.Errorf(exchange.CodeStateConflict, "The transaction %s was handed out before and is on the network; import its signed bytes.", d.TxID)
		}
	}
	return nil
}

func (c *Cold) row(p exchange.ChainPayment, way coldWay, u chain.Unsigned, by Actor) exchange.ColdDraft {
	d := exchange.ColdDraft{
		ID: uuid.Must(uuid.NewV7()), PaymentID: p.ID, Network: p.Network, Body: u.Body, Payload: u.Payload, ExpiresAt: u.ExpiresAt,
		Nonce: u.Nonce, RefBlock: u.RefBlock, NonceAccount: u.NonceAccount, NonceBlock: u.NonceBlock, Bid: u.Bid, FeeLimit: u.FeeLimit, AskedBy: by.UserID,
		ClosesAt: c.Now().UTC().Add(exchange.ColdLife + exchange.ColdMargin),
	}
	if way.offline != nil {
		d.TxID = way.offline.KnownID(u)
	}
	if end := u.ExpiresAt.Add(exchange.ColdMargin); end.After(d.ClosesAt) {
		d.ClosesAt = end
	}
	if way.Traits().Sequenced {
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
	p, way, err := c.payment(ctx, in.PaymentID)
	if err != nil {
		return SignedPayment{}, coldFailure(ctx, err)
	}
	drafts, err := c.Store.ColdDrafts(ctx, p.ID)
	if err != nil {
		return SignedPayment{}, coldFailure(ctx, err)
	}
	if way.durable != nil {
		out, err := c.takePart(ctx, p, way.durable, drafts, in)
		return out, coldFailure(ctx, err)
	}
	a, err := c.take(ctx, p, way.offline, drafts, in)
	return SignedPayment{AttemptID: a.ID, TxID: a.TxID}, coldFailure(ctx, err)
}

func (c *Cold) take(ctx context.Context, p exchange.ChainPayment, client chain.Offline, drafts []exchange.ColdDraft, in ColdImport) (exchange.ChainAttempt, error) {
	var none exchange.ChainAttempt
	d, signed, err := match(p, drafts, in.Raw, client.TakeSigned)
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
func match[T any](p exchange.ChainPayment, drafts []exchange.ColdDraft, raw []byte, take func(chain.Unsigned, []byte) (T, error)) (exchange.ColdDraft, T, error) {
	var none T
	var refused error = chain.Errorf(chain.ReasonForeign, "no transaction of the payment was handed out")
	for i, d := range drafts {
		got, err := take(unsigned(p, d), raw)
		if err == nil {
			return d, got, nil
		}
		if i == 0 || chain.ReasonOf(err) != chain.ReasonForeign {
			refused = err
		}
	}
	if e, ok := errors.AsType[*chain.Error](refused); ok {
		return exchange.ColdDraft{}, none, invalidImport("transaction", "is not what was handed out, signed by the wallet: "+e.Detail)
	}
	return exchange.ColdDraft{}, none, refused
}

// unsigned is the transaction that was handed out.
func unsigned(p exchange.ChainPayment, d exchange.ColdDraft) chain.Unsigned {
	return chain.Unsigned{
		Transfer: chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: p.Amount}, FeePayer: p.FeePayer, Payload: d.Payload, Body: d.Body,
		ExpiresAt: d.ExpiresAt, Nonce: d.Nonce, RefBlock: d.RefBlock, NonceAccount: d.NonceAccount, NonceBlock: d.NonceBlock, Bid: d.Bid, FeeLimit: d.FeeLimit,
	}
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
