package activities

import (
	"context"
	"crypto/subtle"
	"slices"
	"time"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// PayloadStore stores what the owners of an account sign.
type PayloadStore interface {
	ProposalStore
	ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error)
	LiveAttempts(ctx context.Context, paymentID uuid.UUID) ([]exchange.ChainAttempt, error)
	SigningHold(ctx context.Context, paymentID uuid.UUID) (exchange.SigningHold, error)
	MultisigAccountByID(ctx context.Context, id uuid.UUID) (exchange.MultisigAccount, error)
	// OpenPayloads are a wallet's open payloads.
	OpenPayloads(ctx context.Context, walletID uuid.UUID) ([]exchange.MultisigPayload, error)
	// StorePayload stores a payload, and returns the open one of the same choice of owners if there is one. It fails with CodeConflict when
	// another one of the wallet has its number.
	StorePayload(ctx context.Context, p exchange.MultisigPayload) (exchange.MultisigPayload, error)
	// ApproveProposalNonce returns the payment that opens the nonce account of a proposal: the one that is not completed yet, or a new one.
	ApproveProposalNonce(ctx context.Context, proposalID uuid.UUID, account string, rent money.Amount) (exchange.ChainPayment, error)
	// ClosePayload returns the payment that advances the nonce account of a payload whose proposal is to end, so that it can never be
	// executed.
	ClosePayload(ctx context.Context, payloadID uuid.UUID) (exchange.ChainPayment, error)
	CheckIntent(ctx context.Context, a exchange.Asked, kind exchange.IntentKind) error
	Intent(ctx context.Context, id uuid.UUID) (exchange.Intent, error)
	Payload(ctx context.Context, id uuid.UUID) (exchange.MultisigPayload, error)
	// StoreSignature stores the signature of an owner outside, and uses the intent. Of several for one owner and payload, the first stays.
	StoreSignature(ctx context.Context, s exchange.MultisigSignature, a exchange.Asked) (exchange.MultisigSignature, error)
}

// MultisigPayloads prepares what the owners of an account sign, checks what owners outside have signed, and looks what became of it, on
// one network. It holds no keys.
type MultisigPayloads struct {
	Store  PayloadStore
	Client chain.Client
	Poll   time.Duration // between two looks: the network's block time
}

// laneTries bounds how often a payload is prepared again because another proposal of the wallet took its number.
const laneTries = 5

// PayloadInput asks for the payload of a proposal.
type PayloadInput struct {
	ProposalID uuid.UUID `json:"proposal_id"`
	// Signers are the owners who are to sign, on a network whose messages name them; empty: the first of the account's. Each other choice
	// is another payload, of which the network executes one.
	Signers []string `json:"signers,omitempty"`
}

// PreparedPayload is the payload of a proposal, or why there is none yet.
type PreparedPayload struct {
	PayloadID uuid.UUID `json:"payload_id,omitzero"`
	// NoncePaymentID is a payment that must be completed first.
	NoncePaymentID uuid.UUID `json:"nonce_payment_id,omitzero"`
	Waits          string    `json:"waits,omitempty"`   // what it waits for; the wait ends by itself
	Refused        string    `json:"refused,omitempty"` // the chain reason why the payment can't be made now
	Detail         string    `json:"detail,omitempty"`  // of the refusal, for staff
	Gas            *NeedGas  `json:"gas,omitempty"`     // the account pays the fee itself, and lacks native coin for it
}

// PreparePayload builds what the owners sign for an approved payment, and stores it. Called again it returns the same payload, while that
// can be executed. From the moment it is stored, signatures of it are authority: the database refuses it unless the payment could be
// signed now.
func (m *MultisigPayloads) PreparePayload(ctx context.Context, in PayloadInput) (PreparedPayload, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	out, err := m.prepare(ctx, in)
	reason, final := buildRefusal(err)
	if final && reason == chain.ReasonGas && m.accountPays() {
		return PreparedPayload{Gas: missingGas(m.Client.Network(), err)}, nil
	}
	if final {
		return PreparedPayload{Refused: string(reason), Detail: chain.DetailOf(err)}, nil
	}
	return out, Failure(ctx, err)
}

// accountPays reports whether an account itself pays for what leaves it, because no other wallet can: on TRON.
func (m *MultisigPayloads) accountPays() bool {
	client, ok := m.Client.(chain.Multisig)
	return ok && !client.Traits().Sponsored && !client.Traits().Sequenced
}

func (m *MultisigPayloads) prepare(ctx context.Context, in PayloadInput) (PreparedPayload, error) {
	var none PreparedPayload
	client, ok := m.Client.(chain.Multisig)
	if !ok {
		return none, exchange.Errorf(exchange.CodeUnsupported, "There are no accounts of several owners on %s.", m.Client.Network())
	}
	proposal, p, err := m.approved(ctx, in.ProposalID)
	if err != nil {
		return none, err
	}
	account, err := m.Store.MultisigAccountByID(ctx, p.WalletID)
	if err != nil {
		return none, err
	}
	if account.Status != exchange.MultisigActive || account.Address != p.FromAddress || account.Network != p.Network {
		return none, exchange.Errorf(exchange.CodeStateConflict, "The account %s is %s, so nothing leaves it.", account.Address, account.Status)
	}
	signers := chosen(account, in.Signers)
	open, found, err := m.stored(ctx, proposal.ID, signers)
	if err != nil || found {
		return PreparedPayload{PayloadID: open.ID}, err
	}
	hold, err := m.Store.SigningHold(ctx, p.ID)
	switch {
	case err != nil:
		return none, err
	case hold.Passes():
		return PreparedPayload{Waits: string(hold)}, nil
	case hold != exchange.HoldNone:
		return none, exchange.Errorf(exchange.CodeStateConflict, "Nothing may be signed for the payment (%s).", hold)
	}
	d, err := m.draft(ctx, proposal, p)
	if err != nil {
		return none, err
	}
	d.Signers = signers
	if client.Traits().Sponsored {
		nonce, opening, err := m.nonceOf(ctx, p)
		if err != nil || opening != uuid.Nil {
			return PreparedPayload{NoncePaymentID: opening}, err
		}
		d.FeePayer, d.NonceAccount = p.FeePayer, nonce
	}
	made, err := m.make(ctx, client, proposal, p, account, d)
	return PreparedPayload{PayloadID: made.ID}, err
}

// draft is what the owners sign for a proposal.
func (m *MultisigPayloads) draft(ctx context.Context, proposal exchange.Proposal, p exchange.ChainPayment) (chain.JointDraft, error) {
	d := chain.JointDraft{Account: p.FromAddress}
	switch proposal.Kind {
	case exchange.ProposeOwners:
		change, err := exchange.OwnersChangeOf(proposal.After)
		if err == nil && !change.Resolved() {
			err = exchange.Errorf(exchange.CodeStateConflict, "The keys of the new owners are not made yet.")
		}
		if err != nil {
			return d, err
		}
		d.Owners = chain.ChangeOf(change)
	case exchange.ProposeCancel:
		all, err := m.Store.Payloads(ctx, proposal.Supersedes)
		if err != nil {
			return d, err
		}
		at := slices.IndexFunc(all, exchange.MultisigPayload.Open)
		if at < 0 {
			return d, exchange.Errorf(exchange.CodeStateConflict, "What the proposal was to make impossible has ended.")
		}
		d.Sequence = all[at].Sequence
	case exchange.ProposePayment, "":
		d.Transfer = &chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: p.Amount}
	}
	return d, nil
}

// approved reads a proposal whose payment is approved and has no transaction.
func (m *MultisigPayloads) approved(ctx context.Context, id uuid.UUID) (exchange.Proposal, exchange.ChainPayment, error) {
	proposal, err := m.Store.ProposalByID(ctx, id)
	if err != nil {
		return proposal, exchange.ChainPayment{}, err
	}
	if proposal.Over() || proposal.Ending != "" || proposal.PaymentID == uuid.Nil {
		return proposal, exchange.ChainPayment{}, exchange.Errorf(exchange.CodeStateConflict, "The proposal is %s, so its owners don't sign it now.", proposal.Status)
	}
	p, err := m.Store.ChainPayment(ctx, proposal.PaymentID)
	switch {
	case err != nil:
	case p.Purpose != exchange.ForProposal || p.ObjectID != id || p.ApprovedBy == "" || subtle.ConstantTimeCompare([]byte(p.IntentHash), []byte(p.Intent())) != 1:
		err = exchange.Errorf(exchange.CodeStateConflict, "Payment %s differs from what was approved.", p.ID)
	case p.Status != exchange.ChainApproved || p.Network != m.Client.Network():
		err = exchange.Errorf(exchange.CodeStateConflict, "The payment on %s is %s, so its owners don't sign it now.", p.Network, p.Status)
	}
	return proposal, p, err
}

// chosen are the owners whom the message names, where one names them: those who were asked for, or the first who suffice. They are in
// the order of their addresses.
func chosen(a exchange.MultisigAccount, asked []string) []string {
	if a.Kind != exchange.MultisigSPL {
		return nil
	}
	signers := slices.Clone(asked)
	for _, o := range a.Owners {
		if len(asked) == 0 && len(signers) < a.Threshold {
			signers = append(signers, o.Address)
		}
	}
	slices.Sort(signers)
	return signers
}

// stored is the open payload of a proposal, of a choice of owners where messages name them.
func (m *MultisigPayloads) stored(ctx context.Context, proposalID uuid.UUID, signers []string) (exchange.MultisigPayload, bool, error) {
	all, err := m.Store.Payloads(ctx, proposalID)
	for _, p := range all {
		if p.Open() && (len(signers) == 0 || slices.Equal(p.Signers, signers)) {
			return p, true, err
		}
	}
	return exchange.MultisigPayload{}, false, err
}

// nonceOf is the nonce account of a proposal, or the payment that opens it. The account follows from the proposal, so that no two
// payloads of it can both be executed, and an advance ends this proposal alone.
func (m *MultisigPayloads) nonceOf(ctx context.Context, p exchange.ChainPayment) (account string, opening uuid.UUID, err error) {
	client, ok := m.Client.(chain.Durable)
	if !ok {
		return "", uuid.Nil, exchange.Errorf(exchange.CodeUnsupported, "There are no nonce accounts on %s.", p.Network)
	}
	if account, err = client.NonceAccount(p.FeePayer, exchange.NonceSeed(p.ObjectID)); err != nil {
		return "", uuid.Nil, err
	}
	n, err := client.DurableNonce(ctx, account, 0)
	switch {
	case err != nil:
		return "", uuid.Nil, err
	case n.Value == "":
		rent, err := client.NonceRent(ctx)
		if err != nil {
			return "", uuid.Nil, err
		}
		payment, err := m.Store.ApproveProposalNonce(ctx, p.ObjectID, account, rent)
		return "", payment.ID, err
	case n.Authority != p.FeePayer:
		return "", uuid.Nil, chain.Errorf(chain.ReasonForeign, "another key is the authority of the nonce account %s", account)
	}
	return account, uuid.Nil, nil
}

// make prepares a payload and stores it, at the account's next number that no open payload has.
func (m *MultisigPayloads) make(
	ctx context.Context, client chain.Multisig, proposal exchange.Proposal, p exchange.ChainPayment, account exchange.MultisigAccount, d chain.JointDraft,
) (exchange.MultisigPayload, error) {
	var err error
	if d.Quorum, err = client.Quorum(ctx, account.Address); err != nil {
		return exchange.MultisigPayload{}, err
	}
	if d.Quorum.Moving {
		return exchange.MultisigPayload{}, NotYet("The owners of the account are changing.", m.Poll)
	}
	if difference := account.Difference(d.Quorum.Read(account)); difference != "" {
		return exchange.MultisigPayload{}, exchange.Errorf(exchange.CodeStateConflict, "The owners of %s are not those that were agreed: %s.", account.Address, difference)
	}
	for range laneTries {
		if proposal.Kind != exchange.ProposeCancel { // whose number is that of what it makes impossible
			if d.Sequence, err = m.next(ctx, client, p.WalletID, d.Quorum.Sequence); err != nil {
				return exchange.MultisigPayload{}, err
			}
		}
		j, err := client.PrepareJoint(ctx, d)
		if err != nil {
			return exchange.MultisigPayload{}, err
		}
		row, err := payloadOf(client, proposal, p, j)
		if err != nil {
			return row, err
		}
		stored, err := m.Store.StorePayload(ctx, row)
		if exchange.CodeOf(err) != exchange.CodeConflict {
			return stored, err
		}
	}
	return exchange.MultisigPayload{}, exchange.Errorf(exchange.CodeUnavailable, "Other proposals of the wallet took every number that was tried. Try again.")
}

// next is the lowest number from the chain's on that no open payload of the wallet has.
func (m *MultisigPayloads) next(ctx context.Context, client chain.Multisig, walletID uuid.UUID, number uint64) (uint64, error) {
	if !client.Traits().Sequenced {
		return 0, nil
	}
	open, err := m.Store.OpenPayloads(ctx, walletID)
	for slices.ContainsFunc(open, func(p exchange.MultisigPayload) bool { return p.Sequence == number }) {
		number++
	}
	return number, err
}

// payloadOf is the row of a joint transaction, which must be just what was proposed.
func payloadOf(client chain.Multisig, proposal exchange.Proposal, p exchange.ChainPayment, j chain.Joint) (exchange.MultisigPayload, error) {
	if err := client.CheckJoint(j); err != nil {
		return exchange.MultisigPayload{}, err
	}
	if what := j.Carries(proposal, p); what != "" {
		return exchange.MultisigPayload{}, exchange.Errorf(exchange.CodeInternal, "the driver prepared something else for payment %s: %s", p.ID, what)
	}
	text, err := j.Encode()
	return exchange.MultisigPayload{
		ID: uuid.Must(uuid.NewV7()), ProposalID: p.ObjectID, WalletID: p.WalletID, PaymentID: p.ID, Network: p.Network, Joint: text, Digest: j.Digest,
		JointID: j.ID, Sequence: j.Sequence, NonceAccount: j.NonceAccount, RefBlock: j.RefBlock, Signers: j.Signers, ExpiresAt: j.ExpiresAt,
		Block: j.Block.Number, BlockID: j.Block.ID, Status: exchange.PayloadOpen,
	}, err
}

// OutsideSignatureInput names the intent that states the signature of an owner outside.
type OutsideSignatureInput struct {
	ProposalID uuid.UUID `json:"proposal_id"`
	Behalf     Behalf    `json:"behalf"`
}

// OwnerSigned is whose signature of which payload is stored.
type OwnerSigned struct {
	PayloadID uuid.UUID `json:"payload_id,omitzero"`
	Owner     string    `json:"owner,omitempty"`
	Waits     string    `json:"waits,omitempty"` // what a signature of our key store waits for; the wait ends by itself
}

// StoreOutsideSignature verifies the signature of an owner whose key is not ours, and stores it. CodeInvalid names the check that it
// fails. The same signature may be brought again.
func (m *MultisigPayloads) StoreOutsideSignature(ctx context.Context, in OutsideSignatureInput) (OwnerSigned, error) {
	out, err := m.outside(ctx, in)
	return out, Failure(ctx, err)
}

func (m *MultisigPayloads) outside(ctx context.Context, in OutsideSignatureInput) (OwnerSigned, error) {
	var none OwnerSigned
	client, ok := m.Client.(chain.Multisig)
	if !ok {
		return none, exchange.Errorf(exchange.CodeUnsupported, "There are no accounts of several owners on %s.", m.Client.Network())
	}
	asked := in.Behalf.asked(ctx)
	if err := m.Store.CheckIntent(ctx, asked, exchange.IntendProposalSign); err != nil {
		return none, err
	}
	intent, err := m.Store.Intent(ctx, asked.IntentID)
	if err != nil {
		return none, err
	}
	given, err := exchange.OutsideSignatureOf(intent)
	if err != nil {
		return none, err
	}
	payload, err := m.Store.Payload(ctx, given.PayloadID)
	if err != nil {
		return none, err
	}
	switch {
	case intent.ObjectID != in.ProposalID || payload.ProposalID != in.ProposalID || payload.Network != client.Network():
		return none, exchange.Errorf(exchange.CodeNotFound, "The proposal has no such payload.")
	case !payload.Open():
		return none, exchange.Errorf(exchange.CodeStateConflict, "The payload is %s, so signatures of it are worth nothing.", payload.Status)
	}
	own, err := m.verified(ctx, client, payload, given.Signature)
	if err != nil {
		return none, err
	}
	stored, err := m.Store.StoreSignature(ctx, exchange.MultisigSignature{
		PayloadID: payload.ID, Owner: own.Owner, Signature: own.Signature, UserID: intent.By.UserID, IntentID: intent.ID,
	}, asked)
	return OwnerSigned{PayloadID: stored.PayloadID, Owner: stored.Owner}, err
}

// verified says whose signature it is, and gives its canonical form.
func (m *MultisigPayloads) verified(ctx context.Context, client chain.Multisig, payload exchange.MultisigPayload, signature []byte) (chain.OwnerSignature, error) {
	j, err := chain.DecodeJoint(payload.Joint)
	if err != nil {
		return chain.OwnerSignature{}, err
	}
	own, err := client.Signature(j, signature)
	if chainReason(err) == chain.ReasonForeign {
		return own, invalidSignature(chain.DetailOf(err))
	}
	if err != nil {
		return own, err
	}
	account, err := m.Store.MultisigAccountByID(ctx, payload.WalletID)
	if err != nil {
		return own, err
	}
	for _, o := range account.Owners {
		if o.Address != own.Owner {
			continue
		}
		if o.Held {
			return own, invalidSignature("the signature is of an owner whose key is held here, who confirms with a token")
		}
		return own, nil
	}
	return own, invalidSignature("the signature is of " + own.Owner + ", who is no owner")
}

func invalidSignature(why string) error {
	return exchange.Invalid(exchange.FieldError{Pointer: "/signature", Code: "signature", Message: "is refused: " + why})
}

// ProposalLook is what became of what the owners signed.
type ProposalLook struct {
	// State is that of the chain; LookSent while the payment has a transaction that is alive, which its delivery judges; empty when no
	// payload is open, and while the chain doesn't answer about one that is to end.
	State string `json:"state,omitempty"`
	TxID  string `json:"tx_id,omitempty"`
	// NoncePaymentID is a payment that must be completed so that a proposal that is to end can never be executed.
	NoncePaymentID uuid.UUID `json:"nonce_payment_id,omitzero"`
	// Ended reports that the chain has proven the end of all that was signed, and that this is recorded.
	Ended bool `json:"ended,omitempty"`
}

// LookSent is the state of a proposal whose payment has a transaction that is alive: ours, or one that was found to be it.
const LookSent = "sent"

// LookExecuted is the state of a proposal that the final chain has carried out.
const LookExecuted = string(chain.JointExecuted)

// LookAtPayload asks the chain what became of the open payloads of a proposal, and records what is final: owners may execute what they
// signed with a tool of their own. Of a proposal that is to end, it has the nonce account advanced where there is one; elsewhere a payload
// ends when it expires or another transaction takes its number. The advance is asked for also while the chain doesn't say what became of
// the payload: strangers can name the nonce account in more transactions than are read, and our own advance is proof without them.
func (m *MultisigPayloads) LookAtPayload(ctx context.Context, in PayloadInput) (ProposalLook, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	out, err := m.lookAt(ctx, in.ProposalID)
	return out, Failure(ctx, err)
}

func (m *MultisigPayloads) lookAt(ctx context.Context, id uuid.UUID) (ProposalLook, error) {
	client, ok := m.Client.(chain.Multisig)
	if !ok {
		return ProposalLook{}, exchange.Errorf(exchange.CodeUnsupported, "There are no accounts of several owners on %s.", m.Client.Network())
	}
	proposal, err := m.Store.ProposalByID(ctx, id)
	if err != nil || proposal.PaymentID == uuid.Nil || proposal.Over() {
		return ProposalLook{}, err
	}
	live, err := m.Store.LiveAttempts(ctx, proposal.PaymentID)
	if err != nil {
		return ProposalLook{}, err
	}
	if len(live) > 0 {
		return ProposalLook{State: LookSent, TxID: live[0].TxID}, nil
	}
	judge := proposals{m.Store, client}
	o, err := judge.look(ctx, id, nil)
	if nonce := o.nonce(); proposal.Ending != "" && nonce != uuid.Nil && (err != nil || o.State == chain.JointOpen) {
		return m.closing(ctx, o, nonce, err)
	}
	if err != nil {
		return ProposalLook{}, err
	}
	p, err := m.Store.ChainPayment(ctx, proposal.PaymentID)
	if err == nil {
		p, err = judge.conclude(ctx, p, o)
	}
	out := ProposalLook{State: string(o.State), TxID: o.TxID}
	switch o.State {
	case chain.JointFailed, chain.JointSuperseded, chain.JointExpired:
		if out.Ended = true; p.Status == exchange.ChainIncluded {
			out.State, out.Ended = LookSent, false // it is the payment's by now
		}
	case chain.JointOpen, chain.JointIncluded, chain.JointExecuted:
	}
	return out, err
}

// closing has the nonce account of a payload advanced whose proposal is to end. What the chain did not say stays a failure only when the
// advance is final and does not prove the end.
func (m *MultisigPayloads) closing(ctx context.Context, o judged, payload uuid.UUID, undecided error) (ProposalLook, error) {
	advance, err := m.Store.ClosePayload(ctx, payload)
	if err == nil && undecided != nil && advance.Status == exchange.ChainCompleted {
		var y exchange.MultisigPayload
		if y, err = m.Store.Payload(ctx, payload); err == nil && y.Open() {
			err = undecided
		}
		return ProposalLook{}, err
	}
	out := ProposalLook{NoncePaymentID: advance.ID}
	if undecided == nil {
		out.State = string(o.State)
	}
	return out, err
}
