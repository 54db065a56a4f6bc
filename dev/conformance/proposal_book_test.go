package conformance

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

var (
	_ keys.PaymentStore            = &proposalBook{}
	_ keys.JointStore              = &proposalBook{}
	_ activities.PayloadStore      = &proposalBook{}
	_ activities.SigningStore      = &proposalBook{}
	_ activities.ChainStore        = &proposalBook{}
	_ activities.OwnerSigningStore = &proposalBook{}
)

// proposalBook is the database of proposals, in memory, with the rules that a test of the signer and of the drivers needs: one live
// transaction for a payment, unique ids and numbers, one open payload for a number. It believes what it is given.
type proposalBook struct {
	mu         sync.Mutex
	account    exchange.MultisigAccount
	proposals  map[uuid.UUID]exchange.Proposal
	payments   map[uuid.UUID]exchange.ChainPayment
	attempts   []exchange.ChainAttempt
	payloads   []exchange.MultisigPayload
	signatures []exchange.MultisigSignature
	intents    map[uuid.UUID]exchange.Intent
	confirmed  map[string]uuid.UUID // the approval of the officer of an owner, by payload and owner
	held, gas  exchange.SealedKey
	hold       exchange.SigningHold
	failSaves  int // that store nothing, as when the process dies before them
}

var errGone = errors.New("the process died")

func (b *proposalBook) locked() func() { b.mu.Lock(); return b.mu.Unlock }

func missing(what string) error { return exchange.Errorf(exchange.CodeNotFound, "no %s", what) }

func (b *proposalBook) ChainPayment(_ context.Context, id uuid.UUID) (exchange.ChainPayment, error) {
	defer b.locked()()
	p, found := b.payments[id]
	if !found {
		return p, missing("payment")
	}
	return p, nil
}

// PaymentForSigning has no key for a payment that owners sign. All others here are of the gas wallet.
func (b *proposalBook) PaymentForSigning(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, []keys.Sealed, error) {
	p, err := b.ChainPayment(ctx, id)
	if err != nil || p.Purpose == exchange.ForProposal {
		return p, nil, err
	}
	return p, []keys.Sealed{{Ciphertext: b.gas.Ciphertext, MasterKey: b.gas.MasterKey, PublicKey: b.gas.PublicKey, Algorithm: keys.Algorithm(b.gas.Algorithm)}}, nil
}

func (b *proposalBook) NonceSequence(_ context.Context, wallet uuid.UUID) (exchange.NonceSequence, bool, error) {
	defer b.locked()()
	s, open := exchange.NonceSequence{WalletID: wallet}, false
	for _, a := range b.attempts {
		if a.NonceWallet == wallet {
			s.Next, open = max(s.Next, a.Nonce+1), true
		}
	}
	return s, open, nil
}

func (b *proposalBook) NonceReserve(_ context.Context, _ uuid.UUID, n exchange.Network, _ uint64) (money.Amount, error) {
	return money.Zero(n.NativeCoin()), nil
}

func (b *proposalBook) HouseGas(context.Context, exchange.ChainPayment) (money.Amount, bool, error) {
	return money.Amount{}, false, nil
}

func (b *proposalBook) FeesLeft(context.Context, exchange.ChainPayment) (money.Amount, bool, error) {
	return money.Amount{}, false, nil
}

func (b *proposalBook) LiveAttempts(_ context.Context, payment uuid.UUID) (live []exchange.ChainAttempt, err error) {
	defer b.locked()()
	for _, a := range b.attempts {
		if a.PaymentID == payment && a.Alive() {
			live = append(live, a)
		}
	}
	return live, nil
}

func (b *proposalBook) LiveAttempt(ctx context.Context, payment uuid.UUID) (exchange.ChainAttempt, bool, error) {
	live, err := b.LiveAttempts(ctx, payment)
	for _, a := range live {
		if a.Leads() {
			return a, true, err
		}
	}
	return exchange.ChainAttempt{}, false, err
}

func (b *proposalBook) SaveSignedAttempt(ctx context.Context, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	if old, alive, err := b.LiveAttempt(ctx, a.PaymentID); err != nil || alive {
		return old, err
	}
	defer b.locked()()
	if b.failSaves > 0 {
		b.failSaves--
		return exchange.ChainAttempt{}, errGone
	}
	return b.save(a, false)
}

func (b *proposalBook) save(a exchange.ChainAttempt, replaces bool) (exchange.ChainAttempt, error) {
	a.N = 1
	for _, old := range b.attempts {
		if old.TxID == a.TxID || a.NonceWallet != uuid.Nil && old.NonceWallet == a.NonceWallet && old.Nonce == a.Nonce && !replaces {
			return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeConflict, "the id or the number is taken")
		}
		if old.PaymentID == a.PaymentID {
			a.N++
		}
	}
	b.attempts = append(b.attempts, a)
	b.move(a.PaymentID, exchange.ChainSigned)
	return a, nil
}

func (b *proposalBook) SaveReplacement(_ context.Context, bumps uuid.UUID, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	defer b.locked()()
	i := slices.IndexFunc(b.attempts, func(o exchange.ChainAttempt) bool { return o.ID == bumps })
	stored, err := b.save(a, true)
	if err == nil {
		b.attempts[i].Status = exchange.TxReplaced
	}
	return stored, err
}

func (b *proposalBook) move(payment uuid.UUID, to exchange.ChainPaymentStatus) exchange.ChainPayment {
	p := b.payments[payment]
	p.Status = to
	b.payments[payment] = p
	return p
}

// record sets the state of one transaction, those of the others that are alive, and that of their payment.
func (b *proposalBook) record(attempt uuid.UUID, to, others exchange.ChainAttemptStatus, payment exchange.ChainPaymentStatus, block string) (exchange.ChainPayment, error) {
	defer b.locked()()
	i := slices.IndexFunc(b.attempts, func(o exchange.ChainAttempt) bool { return o.ID == attempt })
	if i < 0 {
		return exchange.ChainPayment{}, missing("transaction")
	}
	of := b.attempts[i].PaymentID
	for k, a := range b.attempts {
		if a.PaymentID == of && a.Alive() && others != "" {
			b.attempts[k].Status = others
		}
	}
	b.attempts[i].Status, b.attempts[i].BlockID = to, block
	return b.move(of, payment), nil
}

func (b *proposalBook) Frozen(context.Context) (bool, error) {
	return b.hold == exchange.HoldFrozen, nil
}

func (b *proposalBook) Sighting(context.Context, exchange.Network, []string) (exchange.TxSighting, error) {
	return exchange.TxSighting{}, nil
}

func (b *proposalBook) AttemptAt(_ context.Context, wallet uuid.UUID, nonce uint64) (exchange.ChainAttempt, bool, error) {
	defer b.locked()()
	for _, a := range b.attempts {
		if a.NonceWallet == wallet && a.Nonce == nonce && a.Leads() {
			return a, true, nil
		}
	}
	return exchange.ChainAttempt{}, false, nil
}

func (b *proposalBook) ApproveTopUp(context.Context, uuid.UUID, money.Amount, int) (exchange.ChainPayment, error) {
	return exchange.ChainPayment{}, missing("top-up")
}

func (b *proposalBook) RecordGasArrival(context.Context, uuid.UUID, string) error {
	return missing("top-up")
}

func (b *proposalBook) RecordBroadcast(_ context.Context, id uuid.UUID, _ string, accepted bool) (exchange.ChainPayment, error) {
	defer b.locked()()
	for i, a := range b.attempts {
		if a.ID == id && a.Status == exchange.TxSigned && accepted {
			b.attempts[i].Status = exchange.TxBroadcast
			b.move(a.PaymentID, exchange.ChainBroadcast)
		}
	}
	return exchange.ChainPayment{}, nil
}

func (b *proposalBook) RecordIncluded(_ context.Context, id uuid.UUID, _ uint64, block string) (exchange.ChainPayment, error) {
	return b.record(id, exchange.TxIncluded, exchange.TxReplaced, exchange.ChainIncluded, block)
}

func (b *proposalBook) RecordVanished(_ context.Context, id uuid.UUID) (exchange.ChainPayment, error) {
	return b.record(id, exchange.TxBroadcast, "", exchange.ChainBroadcast, "")
}

func (b *proposalBook) RecordExpired(_ context.Context, id uuid.UUID, _ string) (exchange.ChainPayment, error) {
	return b.record(id, exchange.TxExpired, exchange.TxExpired, exchange.ChainApproved, "")
}

func (b *proposalBook) RecordFinal(_ context.Context, id uuid.UUID, ok bool, _ uint64, block string, _ money.Amount, _ string) (exchange.ChainPayment, error) {
	if !ok {
		return b.record(id, exchange.TxFailed, exchange.TxExpired, exchange.ChainParked, block)
	}
	p, err := b.record(id, exchange.TxSucceeded, exchange.TxExpired, exchange.ChainCompleted, block)
	if p.Purpose == exchange.ForProposal {
		b.end(p.ObjectID, exchange.ProposalExecuted, exchange.PayloadExecuted)
	}
	return p, err
}

func (b *proposalBook) RecordOutOfGas(_ context.Context, id uuid.UUID, _ uint64, block string, _ money.Amount, _ string, _ int) (exchange.ChainPayment, error) {
	return b.record(id, exchange.TxFailed, exchange.TxExpired, exchange.ChainApproved, block)
}

func (b *proposalBook) ParkChainPayment(context.Context, uuid.UUID, string) (exchange.ChainPayment, error) {
	return exchange.ChainPayment{}, errors.New("a payment that owners sign is not parked")
}

func (b *proposalBook) SetOrderDetail(context.Context, uuid.UUID, string) error { return nil }

func (b *proposalBook) SigningHold(context.Context, uuid.UUID) (exchange.SigningHold, error) {
	return b.hold, nil
}

func (b *proposalBook) AwaitSignature(context.Context, uuid.UUID, exchange.SigningHold) error {
	return nil
}

func (b *proposalBook) MultisigAccountByID(_ context.Context, id uuid.UUID) (exchange.MultisigAccount, error) {
	if b.account.ID != id {
		return exchange.MultisigAccount{}, missing("account")
	}
	return b.account, nil
}

func (b *proposalBook) ProposalByID(_ context.Context, id uuid.UUID) (exchange.Proposal, error) {
	defer b.locked()()
	p, found := b.proposals[id]
	if !found {
		return p, missing("proposal")
	}
	return p, nil
}

// end ends a proposal and its open payloads.
func (b *proposalBook) end(id uuid.UUID, to exchange.ProposalStatus, payloads exchange.PayloadStatus) {
	defer b.locked()()
	p, found := b.proposals[id]
	if !found {
		return
	}
	p.Status = to
	b.proposals[id] = p
	for i, l := range b.payloads {
		if l.ProposalID == id && l.Open() {
			b.payloads[i].Status = payloads
		}
	}
}

// AdoptExecution makes a transaction that was found the payment's live one, as the database does.
func (b *proposalBook) AdoptExecution(ctx context.Context, payload uuid.UUID, txID string, number uint64, block, _ string) (exchange.ChainPayment, error) {
	return b.adopt(ctx, payload, txID, number, block)
}

// AdoptFailure changes no payment that has the transaction.
func (b *proposalBook) AdoptFailure(ctx context.Context, payload uuid.UUID, txID string, number uint64, block, _ string) (exchange.ChainPayment, error) {
	l, err := b.Payload(ctx, payload)
	if err != nil {
		return exchange.ChainPayment{}, err
	}
	b.mu.Lock()
	known := slices.ContainsFunc(b.attempts, func(a exchange.ChainAttempt) bool { return a.PaymentID == l.PaymentID && a.TxID == txID })
	b.mu.Unlock()
	if known {
		return b.ChainPayment(ctx, l.PaymentID)
	}
	return b.adopt(ctx, payload, txID, number, block)
}

func (b *proposalBook) adopt(ctx context.Context, payload uuid.UUID, txID string, number uint64, block string) (exchange.ChainPayment, error) {
	l, err := b.Payload(ctx, payload)
	if err != nil {
		return exchange.ChainPayment{}, err
	}
	if _, alive, err := b.LiveAttempt(ctx, l.PaymentID); err != nil || alive || !l.Open() {
		return exchange.ChainPayment{}, errors.Join(err, exchange.Errorf(exchange.CodeStateConflict, "the payment has a live transaction"))
	}
	defer b.locked()()
	b.attempts = append(b.attempts, exchange.ChainAttempt{
		ID: uuid.New(), PaymentID: l.PaymentID, Network: l.Network, TxID: txID, Raw: []byte("found"), Adopted: true, Status: exchange.TxIncluded, Block: number, BlockID: block,
	})
	return b.move(l.PaymentID, exchange.ChainIncluded), nil
}

func (b *proposalBook) SupersedeProposal(ctx context.Context, id uuid.UUID, _, _ string) (exchange.Proposal, error) {
	return b.judge(ctx, id, exchange.ProposalSuperseded)
}

func (b *proposalBook) FailProposal(ctx context.Context, id uuid.UUID, _, _ string) (exchange.Proposal, error) {
	return b.judge(ctx, id, exchange.ProposalFailed)
}

// judge ends the payloads of a proposal, which its flow then ends.
func (b *proposalBook) judge(ctx context.Context, id uuid.UUID, to exchange.ProposalStatus) (exchange.Proposal, error) {
	p, err := b.ProposalByID(ctx, id)
	if err != nil {
		return p, err
	}
	if _, alive, err := b.LiveAttempt(ctx, p.PaymentID); err != nil || alive {
		return p, errors.Join(err, exchange.Errorf(exchange.CodeStateConflict, "the payment has a live transaction"))
	}
	b.end(id, p.Status, exchange.PayloadVoid)
	p.Ending = to
	b.proposals[id] = p
	return p, nil
}

func (b *proposalBook) VoidPayload(ctx context.Context, id uuid.UUID, _ string) (exchange.Proposal, error) {
	b.mu.Lock()
	i := slices.IndexFunc(b.payloads, func(l exchange.MultisigPayload) bool { return l.ID == id })
	b.payloads[i].Status = exchange.PayloadVoid
	b.mu.Unlock()
	return b.ProposalByID(ctx, b.payloads[i].ProposalID)
}

func (b *proposalBook) Payloads(_ context.Context, proposal uuid.UUID) (all []exchange.MultisigPayload, err error) {
	defer b.locked()()
	for _, l := range b.payloads {
		if l.ProposalID == proposal {
			all = append(all, l)
		}
	}
	return all, nil
}

func (b *proposalBook) Payload(_ context.Context, id uuid.UUID) (exchange.MultisigPayload, error) {
	defer b.locked()()
	for _, l := range b.payloads {
		if l.ID == id {
			return l, nil
		}
	}
	return exchange.MultisigPayload{}, missing("payload")
}

func (b *proposalBook) OpenPayloads(_ context.Context, wallet uuid.UUID) (all []exchange.MultisigPayload, err error) {
	defer b.locked()()
	for _, l := range b.payloads {
		if l.WalletID == wallet && l.Open() {
			all = append(all, l)
		}
	}
	return all, nil
}

func (b *proposalBook) StorePayload(_ context.Context, p exchange.MultisigPayload) (exchange.MultisigPayload, error) {
	defer b.locked()()
	p.N = 1
	for _, l := range b.payloads {
		if l.Open() && l.Network == exchange.Ethereum && l.Sequence == p.Sequence {
			return p, exchange.Errorf(exchange.CodeConflict, "the number is taken")
		}
		if l.ProposalID == p.ProposalID {
			p.N++
		}
	}
	p.CreatedAt = time.Now()
	b.payloads = append(b.payloads, p)
	return p, nil
}

// nonce is the payment for the nonce account of a proposal.
func (b *proposalBook) nonce(purpose exchange.ChainPurpose, object, proposal uuid.UUID, account string, amount money.Amount) (exchange.ChainPayment, error) {
	defer b.locked()()
	for _, p := range b.payments {
		if p.Purpose == purpose && p.ObjectID == object {
			return p, nil
		}
	}
	of := b.payments[b.proposals[proposal].PaymentID]
	p := exchange.ChainPayment{
		ID: uuid.New(), Purpose: purpose, ObjectID: object, N: 1, Network: of.Network, Amount: amount, WalletID: of.FeeWalletID, FromAddress: of.FeePayer,
		ToAddress: account, Status: exchange.ChainApproved, ApprovedBy: "policy",
	}
	p.IntentHash = p.Intent()
	b.payments[p.ID] = p
	return p, nil
}

func (b *proposalBook) ApproveProposalNonce(_ context.Context, proposal uuid.UUID, account string, rent money.Amount) (exchange.ChainPayment, error) {
	return b.nonce(exchange.ForNonceAccount, proposal, proposal, account, rent)
}

func (b *proposalBook) ClosePayload(ctx context.Context, payload uuid.UUID) (exchange.ChainPayment, error) {
	l, err := b.Payload(ctx, payload)
	if err != nil {
		return exchange.ChainPayment{}, err
	}
	return b.nonce(exchange.ForNonceAdvance, payload, l.ProposalID, l.NonceAccount, money.Must(money.SOL, "0.000000001"))
}

func (b *proposalBook) CheckIntent(_ context.Context, a exchange.Asked, kind exchange.IntentKind) error {
	if i, found := b.intents[a.IntentID]; !found || i.Kind != kind {
		return missing("intent")
	}
	return nil
}

func (b *proposalBook) Intent(_ context.Context, id uuid.UUID) (exchange.Intent, error) {
	return b.intents[id], nil
}

func (b *proposalBook) StoreSignature(ctx context.Context, s exchange.MultisigSignature, a exchange.Asked) (exchange.MultisigSignature, error) {
	if err := b.CheckIntent(ctx, a, exchange.IntendProposalSign); err != nil && !s.Held {
		return s, err
	}
	defer b.locked()()
	if b.failSaves > 0 {
		b.failSaves--
		return s, errGone
	}
	for _, old := range b.signatures {
		if old.PayloadID == s.PayloadID && old.Owner == s.Owner {
			return old, nil
		}
	}
	b.signatures = append(b.signatures, s)
	return s, nil
}

func (b *proposalBook) OwnerKeyForSigning(ctx context.Context, payload uuid.UUID, owner string) (exchange.OwnerSigning, error) {
	l, err := b.Payload(ctx, payload)
	if err != nil {
		return exchange.OwnerSigning{}, err
	}
	out := exchange.OwnerSigning{Payload: l, Key: b.held, Approval: b.confirmed[payload.String()+owner]}
	if out.Payment, err = b.ChainPayment(ctx, l.PaymentID); err != nil {
		return out, err
	}
	for _, o := range b.account.Owners {
		if o.Address == owner {
			out.Owner, out.UserID = o, o.UserID
		}
	}
	return out, nil
}

// ExecutionForSigning takes the first payload that as many owners signed as are needed.
func (b *proposalBook) ExecutionForSigning(ctx context.Context, payment uuid.UUID) (exchange.ExecutionSigning, error) {
	p, err := b.ChainPayment(ctx, payment)
	if err != nil {
		return exchange.ExecutionSigning{}, err
	}
	defer b.locked()()
	out := exchange.ExecutionSigning{Payment: p, Gas: b.gas}
	for _, l := range b.payloads {
		if l.ProposalID != p.ObjectID || !l.Open() || len(out.Signatures) >= b.account.Threshold {
			continue
		}
		out.Payload, out.Signatures = l, nil
		for _, s := range b.signatures {
			if s.PayloadID == l.ID {
				out.Signatures = append(out.Signatures, s)
			}
		}
	}
	slices.SortFunc(out.Signatures, func(x, y exchange.MultisigSignature) int { return bytes.Compare([]byte(x.Owner), []byte(y.Owner)) })
	if out.Payload.ID == uuid.Nil {
		return out, exchange.Errorf(exchange.CodeStateConflict, "there is no payload")
	}
	return out, nil
}
