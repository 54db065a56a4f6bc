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

// ColdStore stores transactions that are signed offline.
type ColdStore interface {
	ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error)
	LiveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error)
	NonceSequence(ctx context.Context, walletID uuid.UUID) (exchange.NonceSequence, bool, error)
	ColdDrafts(ctx context.Context, paymentID uuid.UUID) ([]exchange.ColdDraft, error)
	SaveColdDraft(ctx context.Context, d exchange.ColdDraft, by exchange.Principal) (exchange.ColdDraft, error)
	SaveColdAttempt(ctx context.Context, draftID uuid.UUID, a exchange.ChainAttempt, by exchange.Principal) (exchange.ChainAttempt, error)
	SaveColdPart(ctx context.Context, draftID uuid.UUID, part []byte, by exchange.Principal) error
	DraftSpent(ctx context.Context, d exchange.ColdDraft) (string, error)
	LapseColdDraft(ctx context.Context, draftID uuid.UUID, evidence string, by exchange.Principal) error
	WithdrawColdDraft(ctx context.Context, draftID uuid.UUID, by exchange.Principal) (exchange.ChainPayment, error)
	ApproveNonceAccount(ctx context.Context, paymentID uuid.UUID, account string, rent money.Amount) (exchange.ChainPayment, error)
	// UseIntent marks an intent of a kind as used by the flow, and returns it.
	UseIntent(ctx context.Context, a exchange.Asked, kind exchange.IntentKind) (exchange.Intent, error)
	actingStore
}

// Cold issues unsigned transactions of cold wallets on one network and imports the signed ones. It holds no keys.
type Cold struct {
	Store  ColdStore
	Client chain.Client
	Now    func() time.Time
}

// ColdInput asks for a transaction for offline signing, or for the end of one that was issued.
type ColdInput struct {
	PaymentID uuid.UUID `json:"payment_id"`
	Behalf    Behalf    `json:"behalf,omitzero"`
}

// ColdDraft names the issued draft.
type ColdDraft struct {
	DraftID uuid.UUID `json:"draft_id"`
	// NoncePaymentID is a payment that must be completed first; then no draft was issued.
	NoncePaymentID uuid.UUID `json:"nonce_payment_id,omitzero"`
}

// DraftColdPayment builds an unsigned transaction of an approved payment and stores it. While an earlier draft may still be
// imported, it returns that one. CodeUnsupported where the network's transactions expire too soon for offline signing.
func (c *Cold) DraftColdPayment(ctx context.Context, in ColdInput) (ColdDraft, error) {
	p, way, err := c.payment(ctx, in.PaymentID)
	if err != nil {
		return ColdDraft{}, coldFailure(ctx, err)
	}
	asked, err := c.intended(ctx, p, in.Behalf, exchange.IntendColdPayload)
	if err != nil {
		return ColdDraft{}, coldFailure(ctx, err)
	}
	if way.durable != nil {
		d, err := c.draftDurable(ctx, p, way, asked.By)
		return d, coldFailure(ctx, err)
	}
	d, err := c.draft(ctx, p, way, asked.By)
	return ColdDraft{DraftID: d.ID}, coldFailure(ctx, err)
}

// intended uses the officer's intent about the transfer that a payment carries out.
func (c *Cold) intended(ctx context.Context, p exchange.ChainPayment, b Behalf, kind exchange.IntentKind) (exchange.Intent, error) {
	asked, err := c.Store.UseIntent(ctx, b.asked(ctx), kind)
	if err == nil && (p.Purpose != exchange.ForTransfer || p.ObjectID != asked.ObjectID) {
		err = exchange.Errorf(exchange.CodeNotFound, "There is no such intent for this payment.")
	}
	return asked, err
}

func (c *Cold) draft(ctx context.Context, p exchange.ChainPayment, way coldWay, by exchange.Principal) (exchange.ColdDraft, error) {
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
	if open && (before[0].NonceWallet == uuid.Nil || before[0].Nonce != d.Nonce) { // of two with the same nonce only one can be included
		if err := c.over(ctx, p, way, before[0], by); err != nil {
			return none, err
		}
	}
	return c.handOut(ctx, p, way, d, by)
}

// approved reads the drafts of a payment that may be signed.
func (c *Cold) approved(ctx context.Context, p exchange.ChainPayment) ([]exchange.ColdDraft, error) {
	if p.Status != exchange.ChainApproved {
		return nil, exchange.Errorf(exchange.CodeStateConflict, "The payment is %s and can't be signed now.", p.Status)
	}
	return c.Store.ColdDrafts(ctx, p.ID)
}

// handOut prepares a draft and stores it.
func (c *Cold) handOut(ctx context.Context, p exchange.ChainPayment, way coldWay, d chain.Draft, by exchange.Principal) (exchange.ColdDraft, error) {
	u, err := way.Prepare(ctx, d)
	if err != nil {
		return exchange.ColdDraft{}, err
	}
	if u.Transfer.From != d.From || u.Transfer.To != d.To || !u.Transfer.Amount.Equal(d.Amount) || u.FeePayer != d.FeePayer || u.Nonce != d.Nonce ||
		u.NonceAccount != d.NonceAccount {
		return exchange.ColdDraft{}, exchange.Errorf(exchange.CodeInternal, "the driver prepared another transfer for payment %s", p.ID)
	}
	return c.Store.SaveColdDraft(ctx, c.row(p, way, u, by), by)
}

// alive refuses an expired draft that may still be in a block.
func (c *Cold) alive(d exchange.ColdDraft) error {
	if d.ExpiresAt.IsZero() || c.Now().Before(d.ExpiresAt) {
		return nil
	}
	return exchange.Errorf(exchange.CodeStateConflict, "The issued payload has expired. Request a new one after %s.", d.ClosesAt.Format(time.RFC3339))
}

// coldWay is how a payment is signed offline: by its owner alone, before the transaction expires, or by its owner first and
// by the fee payer after that.
type coldWay struct {
	chain.Client
	offline chain.Offline
	durable chain.Durable
}

// payment reads an approved payment whose transaction can be signed offline.
func (c *Cold) payment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, coldWay, error) {
	way := coldWay{Client: c.Client}
	p, err := c.Store.ChainPayment(ctx, id)
	if err != nil {
		return p, way, err
	}
	if p.ApprovedBy == "" || subtle.ConstantTimeCompare([]byte(p.IntentHash), []byte(p.Intent())) != 1 {
		return p, way, exchange.Errorf(exchange.CodeStateConflict, "Payment %s differs from what was approved.", id)
	}
	var fits bool
	if p.FeePayer == "" {
		way.offline, fits = c.Client.(chain.Offline)
	} else {
		way.durable, fits = c.Client.(chain.Durable)
	}
	if !fits || p.Network != c.Client.Network() {
		return p, way, exchange.Errorf(exchange.CodeUnsupported,
			"Cold wallets can't send on %s: its transactions expire after about a minute, and no gas wallet with a nonce account is configured.", p.Network)
	}
	return p, way, nil
}

// number returns the nonce that the transaction must have, on a sequenced network. A wallet never has two pending
// transactions, and a payment with an issued draft gets no later nonce before a transaction of ours has used the earlier
// one.
func (c *Cold) number(ctx context.Context, p exchange.ChainPayment, way coldWay, before []exchange.ColdDraft) (uint64, error) {
	if !way.Traits().Sequenced {
		return 0, nil
	}
	counter, ok := c.Client.(chain.Sequenced)
	if !ok {
		return 0, exchange.Errorf(exchange.CodeInternal, "the client for %s does not support nonces", p.Network)
	}
	// The count comes before the sequence: every transaction of ours that it counts is then in the sequence.
	counted, err := counter.Nonces(ctx, p.FromAddress)
	if err != nil {
		return 0, err
	}
	sequence, open, err := c.Store.NonceSequence(ctx, p.WalletID)
	if err != nil {
		return 0, err
	}
	switch {
	case sequence.Foreign || (open && counted.Latest > sequence.Next):
		return 0, chain.Errorf(chain.ReasonForeign, "the wallet sent a transaction that was not imported")
	case open && counted.Latest < sequence.Next:
		return 0, exchange.Errorf(exchange.CodeStateConflict, "An earlier transaction of the wallet is not in a block yet. Try again when it is.")
	}
	for _, d := range before {
		if d.NonceWallet != uuid.Nil && counted.Latest > d.Nonce && (!open || sequence.Next <= d.Nonce) {
			return 0, chain.Errorf(chain.ReasonForeign, "the wallet used the nonce of an issued payload in a transaction that was not imported")
		}
	}
	return counted.Latest, nil
}

// unsent refuses to build another transaction when an issued one is on the network: it was sent, and may still be imported.
func (c *Cold) unsent(ctx context.Context, way coldWay, before []exchange.ColdDraft) error {
	for _, d := range before {
		if d.TxID == "" || d.Status == exchange.ColdSigned {
			continue // an imported transaction has its own delivery
		}
		at, err := way.Locate(ctx, d.TxID)
		if err != nil {
			return err
		}
		if at.Stage != chain.StageAbsent {
			return exchange.Errorf(exchange.CodeStateConflict, "The transaction %s was issued before and is on the network. Import its signed bytes.", d.TxID)
		}
	}
	return nil
}

func (c *Cold) row(p exchange.ChainPayment, way coldWay, u chain.Unsigned, by exchange.Principal) exchange.ColdDraft {
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
		d.NonceWallet = p.WalletID
	}
	return d
}

// coldImport is a signed transaction, and who imports it.
type coldImport struct {
	raw []byte // in the network's encoding
	by  exchange.Principal
}

// ImportColdPayment stores the signed transaction of an intent, which is that of an issued draft, as the payment's pending
// one. The same bytes may be imported again. CodeInvalid for bytes that are not an issued draft, signed by the wallet.
func (c *Cold) ImportColdPayment(ctx context.Context, input ColdInput) (SignedPayment, error) {
	p, way, err := c.payment(ctx, input.PaymentID)
	if err != nil {
		return SignedPayment{}, coldFailure(ctx, err)
	}
	asked, err := c.intended(ctx, p, input.Behalf, exchange.IntendColdImport)
	if err != nil {
		return SignedPayment{}, coldFailure(ctx, err)
	}
	signed, err := exchange.SignedOfflineOf(asked)
	if err != nil {
		return SignedPayment{}, coldFailure(ctx, err)
	}
	in := coldImport{raw: signed.Raw, by: asked.By}
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

func (c *Cold) take(ctx context.Context, p exchange.ChainPayment, client chain.Offline, drafts []exchange.ColdDraft, in coldImport) (exchange.ChainAttempt, error) {
	var none exchange.ChainAttempt
	d, signed, err := match(p, drafts, in.raw, client.TakeSigned)
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
		return none, exchange.Errorf(exchange.CodeStateConflict, "The payment already has a signed transaction.")
	}
	if err := c.intime(ctx, client, d, signed.TxID); err != nil {
		return none, err
	}
	saved, err := c.Store.SaveColdAttempt(ctx, d.ID, exchange.ChainAttempt{
		ID: uuid.Must(uuid.NewV7()), PaymentID: p.ID, Network: p.Network, NonceWallet: d.NonceWallet, TxID: signed.TxID, Raw: signed.Raw, ExpiresAt: signed.ExpiresAt,
		Nonce: signed.Nonce, RefBlock: signed.RefBlock, Bid: signed.Bid, FeeLimit: signed.FeeLimit, Status: exchange.TxSigned,
	}, in.by)
	switch {
	case exchange.CodeOf(err) == exchange.CodeConflict:
		return none, invalidImport("taken", "has a nonce that another payment of the wallet used; request a new payload")
	case err == nil && saved.TxID != signed.TxID: // another import was faster
		return none, exchange.Errorf(exchange.CodeStateConflict, "The payment already has a signed transaction.")
	}
	return saved, err
}

// match finds the draft of an imported transaction.
func match[T any](p exchange.ChainPayment, drafts []exchange.ColdDraft, raw []byte, take func(chain.Unsigned, []byte) (T, error)) (exchange.ColdDraft, T, error) {
	var none T
	var refused error = chain.Errorf(chain.ReasonForeign, "no payload of the payment was issued")
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
		return exchange.ColdDraft{}, none, invalidImport("transaction", "must be the issued transaction, signed by the wallet: "+e.Detail)
	}
	return exchange.ColdDraft{}, none, refused
}

// unsigned returns the issued transaction of a draft.
func unsigned(p exchange.ChainPayment, d exchange.ColdDraft) chain.Unsigned {
	return chain.Unsigned{
		Transfer: chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: p.Amount}, FeePayer: p.FeePayer, Payload: d.Payload, Body: d.Body,
		ExpiresAt: d.ExpiresAt, Nonce: d.Nonce, RefBlock: d.RefBlock, NonceAccount: d.NonceAccount, NonceBlock: d.NonceBlock, Bid: d.Bid, FeeLimit: d.FeeLimit,
	}
}

// intime refuses an expired transaction, unless the network has it: then it was sent, and its outcome must be followed.
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
		return invalidImport("expired", "was issued too long ago; request a new payload")
	}
	return nil
}

func invalidImport(code, message string) error {
	return &exchange.Error{
		Code: exchange.CodeInvalid, Message: "The request breaks one or more rules.",
		Fields: []exchange.FieldError{{Pointer: "/signed_transaction", Code: code, Message: message}},
	}
}

// coldFailure words the network's refusal for the officer who waits for the answer. Temporary failures are retried.
func coldFailure(ctx context.Context, err error) error {
	if reason, final := buildRefusal(err); final {
		return Failure(ctx, exchange.Wrap(exchange.CodeStateConflict, err, "The transaction can't be built now (%s).", reason))
	}
	return Failure(ctx, err)
}
