package conformance

import (
	"bytes"
	"encoding/hex"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// signatories is a wallet of three owners, of whom two sign. Two hold their keys themselves; the third is an officer, whose key our
// key store has. The gas wallet pays for executions where the account does not.
type signatories struct {
	chaintest.MultisigHarness
	client  chain.Multisig
	book    *proposalBook
	vault   *keys.Vault
	signer  *keys.PaymentSigner
	outside []chaintest.Account
	officer string // the address of the officer's key
	gasID   uuid.UUID
	gas     string // the address of the gas wallet; empty where the account pays
	clock   func() time.Time
}

func newSignatories(t *testing.T, h chaintest.MultisigHarness) *signatories {
	t.Helper()
	s := &signatories{
		MultisigHarness: h, client: h.Client().(chain.Multisig), gasID: uuid.New(), outside: []chaintest.Account{h.NewAccount(t), h.NewAccount(t)}, clock: time.Now,
		book: &proposalBook{
			proposals: map[uuid.UUID]exchange.Proposal{}, payments: map[uuid.UUID]exchange.ChainPayment{}, intents: map[uuid.UUID]exchange.Intent{},
			confirmed: map[string]uuid.UUID{},
		},
	}
	var err error
	if s.vault, err = keys.Open(keys.Config{MasterKey: "file://" + filepath.Join(t.TempDir(), "master"), CreateLocal: true}); err != nil {
		t.Fatal(err)
	}
	account := uuid.New()
	s.officer, s.book.held = s.key(t, keys.Ref{WalletID: account, Network: s.client.Network(), Purpose: exchange.OwnerKeyPurpose(3)})
	if s.client.Traits().Sequenced || s.client.Traits().Sponsored {
		s.gas, s.book.gas = s.key(t, keys.Ref{WalletID: s.gasID, Network: s.client.Network()})
		h.Fund(t, s.gas, money.Must(h.Gas().Asset(), "3"))
	}
	s.signer, err = keys.NewPaymentSigner(keys.PaymentSignerConfig{
		Store: s.book, Joint: s.book, Vault: s.vault, Clients: map[exchange.Network]chain.Client{s.client.Network(): s.client},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.book.account = exchange.MultisigAccount{
		MultisigRequest: exchange.MultisigRequest{ID: account, Network: s.client.Network(), Threshold: 2, Owners: []exchange.MultisigOwner{
			{N: 1, Address: s.outside[0].Address, Weight: 1},
			{N: 2, Address: s.outside[1].Address, Weight: 1},
			{N: 3, Address: s.officer, Weight: 1, UserID: uuid.New(), Held: true},
		}},
		Kind: exchange.MultisigKindOn(s.client.Network()), Status: exchange.MultisigActive,
	}
	s.book.account.Address = h.NewMultisig(t, append(slices.Clone(s.outside), chaintest.Account{Address: s.officer}), 2)
	return s
}

// key seals a key, and gives its address.
func (s *signatories) key(t *testing.T, ref keys.Ref) (string, exchange.SealedKey) {
	t.Helper()
	k, err := s.vault.Create(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	address, err := s.client.Address(k.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return address, exchange.SealedKey{WalletID: ref.WalletID, Ciphertext: k.Ciphertext, MasterKey: k.MasterKey, PublicKey: k.PublicKey, Algorithm: string(k.Algorithm)}
}

// proposes puts an approved payment of a proposal into the book, and its amount into the wallet.
func (s *signatories) proposes(t *testing.T, amount string) exchange.Proposal {
	t.Helper()
	a := s.book.account
	paid := money.Must(money.USDT, amount)
	s.Fund(t, a.Address, paid)
	proposal := exchange.Proposal{
		ID: uuid.New(), WalletID: a.ID, Network: a.Network, Address: a.Address, Amount: paid, Destination: s.NewAccount(t).Address, PaymentID: uuid.New(),
		Status: exchange.ProposalApproving,
	}
	p := exchange.ChainPayment{
		ID: proposal.PaymentID, Purpose: exchange.ForProposal, ObjectID: proposal.ID, N: 1, Network: a.Network, Amount: paid, WalletID: a.ID,
		FromAddress: a.Address, ToAddress: proposal.Destination, Status: exchange.ChainApproved, ApprovedBy: "policy",
	}
	if s.gas != "" {
		p.FeeWalletID, p.FeePayer = s.gasID, s.gas
	}
	p.IntentHash = p.Intent()
	s.book.proposals[proposal.ID], s.book.payments[p.ID] = proposal, p
	return proposal
}

// does runs a step as a worker does.
func does[Out, In any](t *testing.T, registered any, step any, in In) (Out, error) {
	t.Helper()
	suite := testsuite.WorkflowTestSuite{}
	suite.SetLogger(quiet{})
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(registered)
	var out Out
	value, err := env.ExecuteActivity(step, in)
	if err != nil {
		return out, err
	}
	return out, value.Get(&out)
}

func (s *signatories) payloads() *activities.MultisigPayloads {
	return &activities.MultisigPayloads{Store: s.book, Client: s.client, Poll: time.Second}
}

func (s *signatories) signing() *activities.Signing {
	return &activities.Signing{Signer: s.signer, Store: s.book}
}

// prepares asks for the payload until there is one, and completes the payment that opens its nonce account.
func (s *signatories) prepares(t *testing.T, proposal exchange.Proposal, signers ...string) exchange.MultisigPayload {
	t.Helper()
	slices.Sort(signers)
	a, in := s.payloads(), activities.PayloadInput{ProposalID: proposal.ID, Signers: signers}
	for range 2 {
		out, err := does[activities.PreparedPayload](t, a, a.PreparePayload, in)
		if err != nil || out.Waits != "" || out.Refused != "" {
			t.Fatalf("%+v, %v", out, err)
		}
		if out.NoncePaymentID != uuid.Nil {
			s.completes(t, out.NoncePaymentID)
			continue
		}
		again, err := does[activities.PreparedPayload](t, a, a.PreparePayload, in)
		if err != nil || again.PayloadID != out.PayloadID {
			t.Fatalf("asked again: %+v, %v, want %s", again, err, out.PayloadID)
		}
		l, err := s.book.Payload(t.Context(), out.PayloadID)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	t.Fatal("there is no payload")
	return exchange.MultisigPayload{}
}

// completes carries an ordinary payment of the gas wallet out.
func (s *signatories) completes(t *testing.T, payment uuid.UUID) {
	t.Helper()
	for range 2 {
		if _, err := s.signer.SignPayment(t.Context(), payment); err != nil {
			t.Fatal(err)
		}
	}
	d := s.delivers(t, payment)
	if d.End != activities.DeliveryCompleted {
		t.Fatalf("payment %s ended %+v", payment, d)
	}
}

// step looks at a payment's transaction once.
func (s *signatories) step(t *testing.T, payment uuid.UUID) (activities.Delivery, error) {
	t.Helper()
	c := &activities.Chain{Store: s.book, Proposals: s.book, Client: s.client, Poll: time.Second, StuckTimeout: time.Minute, Now: s.clock}
	return does[activities.Delivery](t, c, c.DeliverPayment, activities.DeliverInput{PaymentID: payment, BumpAfter: time.Now().Add(-time.Hour)})
}

// delivers looks at a payment's transaction until its delivery has ended, and makes blocks meanwhile.
func (s *signatories) delivers(t *testing.T, payment uuid.UUID) activities.Delivery {
	t.Helper()
	for range 6 {
		d, err := s.step(t, payment)
		if err == nil {
			return d
		}
		if !pending(err) {
			t.Fatal(err)
		}
		s.Mine(t, 1)
		s.Finalise(t)
	}
	t.Fatalf("payment %s never ended", payment)
	return activities.Delivery{}
}

// pending reports whether a step has no result yet.
func pending(err error) bool {
	var e *temporal.ApplicationError
	return errors.As(err, &e) && e.Type() == activities.TypePending
}

// brings has an owner outside sign a payload with a tool of its own, and brings the signature.
func (s *signatories) brings(t *testing.T, l exchange.MultisigPayload, signature []byte) (activities.OwnerSigned, error) {
	t.Helper()
	i := exchange.Intent{
		ID: uuid.New(), Kind: exchange.IntendProposalSign, ObjectID: l.ProposalID, By: exchange.Principal{UserID: uuid.New()},
		Terms: exchange.OutsideSignature{PayloadID: l.ID, Signature: signature}.Terms(),
	}
	s.book.intents[i.ID] = i
	a := s.payloads()
	return does[activities.OwnerSigned](t, a, a.StoreOutsideSignature, activities.OutsideSignatureInput{ProposalID: l.ProposalID, Behalf: activities.Behalf{IntentID: i.ID}})
}

func signedBy(t *testing.T, owner chaintest.Account, digest []byte) []byte {
	t.Helper()
	raw, err := owner.Key.Sign(digest)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (s *signatories) signsOutside(t *testing.T, l exchange.MultisigPayload, owner chaintest.Account) {
	t.Helper()
	for range 2 { // it may be brought again
		if out, err := s.brings(t, l, signedBy(t, owner, l.Digest)); err != nil || out.Owner != owner.Address {
			t.Fatalf("%+v, %v", out, err)
		}
	}
}

// confirms is the officer's decision to sign a payload.
func (s *signatories) confirms(l exchange.MultisigPayload) {
	s.book.confirmed[l.ID.String()+s.officer] = uuid.New()
}

func (s *signatories) signsHeld(t *testing.T, l exchange.MultisigPayload) {
	t.Helper()
	s.confirms(l)
	a := &activities.MultisigSigning{Signer: s.signer, Store: s.book}
	for range 2 {
		out, err := does[activities.OwnerSigned](t, a, a.SignPayload, activities.SignPayloadInput{PayloadID: l.ID, Owner: s.officer})
		if err != nil || out.Owner != s.officer {
			t.Fatalf("%+v, %v", out, err)
		}
	}
}

// ready has two owners sign the payload of a proposal.
func (s *signatories) ready(t *testing.T, proposal exchange.Proposal) exchange.MultisigPayload {
	t.Helper()
	l := s.prepares(t, proposal, s.outside[0].Address, s.officer)
	s.signsOutside(t, l, s.outside[0])
	s.signsHeld(t, l)
	return l
}

// executes has the transaction with the owners' signatures made and stored.
func (s *signatories) executes(t *testing.T, proposal exchange.Proposal) (activities.SignedPayment, error) {
	t.Helper()
	a := s.signing()
	return does[activities.SignedPayment](t, a, a.SignPayment, activities.SignInput{PaymentID: proposal.PaymentID, ReportGas: true})
}

func (s *signatories) executed(t *testing.T, proposal exchange.Proposal) string {
	t.Helper()
	out, err := s.executes(t, proposal)
	if err != nil || out.TxID == "" {
		t.Fatalf("%+v, %v", out, err)
	}
	if again, err := s.executes(t, proposal); err != nil || again.TxID != out.TxID {
		t.Fatalf("signed again as %+v, %v", again, err)
	}
	return out.TxID
}

// paid checks that the recipient of a proposal has an amount, and what became of the proposal.
func (s *signatories) paid(t *testing.T, proposal exchange.Proposal, want money.Amount, status exchange.ProposalStatus) {
	t.Helper()
	s.Mine(t, 1)
	s.Finalise(t)
	b, err := s.client.Balance(t.Context(), proposal.Destination, want.Asset())
	if err != nil || !b.Amount.Equal(want) {
		t.Errorf("the recipient has %s, %v, want %s", b.Amount, err, want)
	}
	if p := s.book.proposals[proposal.ID]; p.Status != status && p.Ending != status {
		t.Errorf("the proposal is %s and is to be %q, want %s", p.Status, p.Ending, status)
	}
}

func none() money.Amount { return money.Zero(money.USDT) }

// look asks the chain what became of the payloads of a proposal, which must be a state of the chain or LookSent.
func (s *signatories) look(t *testing.T, proposal exchange.Proposal, want chain.JointState) activities.ProposalLook {
	t.Helper()
	a := s.payloads()
	out, err := does[activities.ProposalLook](t, a, a.LookAtPayload, activities.PayloadInput{ProposalID: proposal.ID})
	if err != nil || out.State != string(want) {
		t.Fatalf("%+v, %v, want %s", out, err, want)
	}
	return out
}

func (s *signatories) joint(t *testing.T, l exchange.MultisigPayload) chain.Joint {
	t.Helper()
	j, err := chain.DecodeJoint(l.Joint)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// ownersSigned are the stored signatures of a payload.
func (s *signatories) ownersSigned(l exchange.MultisigPayload) (all []chain.OwnerSignature) {
	for _, one := range s.book.signatures {
		if one.PayloadID == l.ID {
			all = append(all, chain.OwnerSignature{Owner: one.Owner, Signature: one.Signature})
		}
	}
	return all
}

// elsewhere carries out what the two owners outside sign, with another payer than ours, and waits until it is final.
func (s *signatories) elsewhere(t *testing.T, j chain.Joint) string {
	t.Helper()
	payer := s.Payer(t)
	var all []chain.OwnerSignature
	for _, o := range s.outside {
		one, err := s.client.Signature(j, signedBy(t, o, j.Digest))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	d, with := chain.ExecutionDraft{Payer: payer.Address}, []chain.Key{}
	if payer.Key != nil {
		with = append(with, payer.Key)
	}
	x, err := s.client.PrepareExecution(t.Context(), j, all, d)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.client.SignExecution(x, with...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Broadcast(t.Context(), signed.Raw); err != nil {
		t.Fatal(err)
	}
	s.Mine(t, 1)
	s.Finalise(t)
	return signed.TxID
}

// eachNetwork runs a scenario with the driver and the development node of each network.
func eachNetwork(t *testing.T, run func(*testing.T, *signatories), only ...exchange.Network) {
	t.Parallel()
	for n, start := range map[exchange.Network]func(*testing.T) chaintest.MultisigHarness{
		exchange.Ethereum: func(t *testing.T) chaintest.MultisigHarness { return startSafes(t) },
		exchange.Tron:     func(t *testing.T) chaintest.MultisigHarness { return startTronCommittee(t) },
		exchange.Solana: func(t *testing.T) chaintest.MultisigHarness {
			return &sharedHarness{solanaHarness: startSolana(t, solanaPrograms(t))}
		},
	} {
		if len(only) == 0 || slices.Contains(only, n) {
			t.Run(string(n), func(t *testing.T) {
				t.Parallel()
				run(t, newSignatories(t, start(t)))
			})
		}
	}
}

// A proposal goes its whole way: what owners sign is prepared, one signs outside and one with the key that we hold, and their signatures
// are sent as one transaction. The process dies wherever it hurts, and every step is repeated.
func TestAProposalIsExecuted(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		proposal := s.proposes(t, "3.25")
		l := s.prepares(t, proposal, s.outside[0].Address, s.officer)
		s.signsOutside(t, l, s.outside[0])
		if out, err := s.executes(t, proposal); err == nil && out.Parked == "" {
			t.Errorf("one owner signed, and it was executed: %+v", out)
		}
		s.confirms(l)
		s.book.failSaves = 1 // signed, and not stored
		if _, err := s.signer.SignPayload(t.Context(), l.ID, s.officer); !errors.Is(err, errGone) {
			t.Fatal(err)
		}
		s.signsHeld(t, l)
		s.book.failSaves = 1
		if _, err := s.executes(t, proposal); err == nil {
			t.Fatal("the process did not die")
		}
		tx := s.executed(t, proposal)
		if lossy, ok := s.MultisigHarness.(chaintest.Faulty); ok {
			lossy.LoseNextAnswer(t) // it arrives
		}
		if _, err := s.step(t, proposal.PaymentID); !pending(err) {
			t.Fatalf("delivered before it is in a block: %v", err)
		}
		s.Mine(t, 1)
		if _, err := s.step(t, proposal.PaymentID); !pending(err) || s.book.payments[proposal.PaymentID].Status != exchange.ChainIncluded {
			t.Fatalf("in a block that may be undone it is %s: %v", s.book.payments[proposal.PaymentID].Status, err)
		}
		if d := s.delivers(t, proposal.PaymentID); d.End != activities.DeliveryCompleted || d.TxID != tx {
			t.Errorf("it ended %+v, want %s", d, tx)
		}
		s.paid(t, proposal, proposal.Amount, exchange.ProposalExecuted)
		if d, err := s.step(t, proposal.PaymentID); err != nil || d.End != activities.DeliveryCompleted {
			t.Errorf("looked at again it ended %+v, %v", d, err)
		}
	})
}

// A block with the execution is undone, and the same bytes are sent again.
func TestAnExecutionIsUndone(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		chainOf, ok := s.MultisigHarness.(chaintest.Reorganising)
		if !ok {
			t.Fatalf("%T can't undo blocks", s.MultisigHarness)
		}
		proposal := s.proposes(t, "2")
		s.ready(t, proposal)
		tx := s.executed(t, proposal)
		for range 2 {
			if _, err := s.step(t, proposal.PaymentID); !pending(err) {
				t.Fatal(err)
			}
			s.Mine(t, 1)
		}
		chainOf.Reorganise(t, 2, true)
		if _, err := s.step(t, proposal.PaymentID); !pending(err) || s.book.payments[proposal.PaymentID].Status != exchange.ChainBroadcast {
			t.Fatalf("undone, it is %s: %v", s.book.payments[proposal.PaymentID].Status, err)
		}
		if d := s.delivers(t, proposal.PaymentID); d.End != activities.DeliveryCompleted || d.TxID != tx {
			t.Errorf("it ended %+v, want %s", d, tx)
		}
		s.paid(t, proposal, proposal.Amount, exchange.ProposalExecuted)
	})
}

// signsNot checks that the signer does not sign a payload, whatever the rows say.
func (s *signatories) signsNot(t *testing.T, what string, payload uuid.UUID, edit func()) {
	t.Helper()
	account, held, signed := s.book.account, s.book.held, len(s.book.signatures)
	account.Owners = slices.Clone(account.Owners)
	payments, confirmed, payloads := maps.Clone(s.book.payments), maps.Clone(s.book.confirmed), slices.Clone(s.book.payloads)
	edit()
	if one, err := s.signer.SignPayload(t.Context(), payload, s.officer); err == nil {
		t.Errorf("%s: signed %x", what, one.Signature)
	} else {
		t.Logf("%s: %v", what, err)
	}
	if len(s.book.signatures) != signed {
		t.Errorf("%s: a signature was stored", what)
	}
	s.book.account, s.book.held, s.book.payments, s.book.confirmed, s.book.payloads = account, held, payments, confirmed, payloads
}

// Whoever can write rows, or answers for the chain worker, gets no signature for anything but the approved payment.
func TestOwnersSignOnlyWhatWasApproved(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		proposal, other := s.proposes(t, "2"), s.proposes(t, "5")
		l, foreign := s.prepares(t, proposal, s.outside[0].Address, s.officer), s.prepares(t, other, s.outside[0].Address, s.officer)
		s.confirms(l)
		s.confirms(foreign)
		payload := func(edit func(*exchange.MultisigPayload)) func() {
			return func() {
				for i := range s.book.payloads {
					if s.book.payloads[i].ID == l.ID {
						edit(&s.book.payloads[i])
					}
				}
			}
		}
		joint := func(edit func(*chain.Joint)) func() {
			return payload(func(row *exchange.MultisigPayload) {
				j := s.joint(t, l)
				edit(&j)
				text, err := j.Encode()
				if err != nil {
					t.Fatal(err)
				}
				row.Joint, row.Digest, row.JointID = text, j.Digest, j.ID
			})
		}
		payment := func(edit func(*exchange.ChainPayment)) func() {
			return func() {
				p := s.book.payments[proposal.PaymentID]
				edit(&p)
				s.book.payments[p.ID] = p
			}
		}
		account := func(edit func(*exchange.MultisigAccount)) func() {
			return func() {
				s.book.account.Owners = slices.Clone(s.book.account.Owners)
				edit(&s.book.account)
			}
		}
		approved := func(p *exchange.ChainPayment) { p.IntentHash = p.Intent() }
		five := money.Must(money.USDT, "5")
		for what, edit := range map[string]func(){
			"the payment has another amount":           payment(func(p *exchange.ChainPayment) { p.Amount = five }),
			"the payment has another recipient":        payment(func(p *exchange.ChainPayment) { p.ToAddress = other.Destination }),
			"an approved payment of another amount":    payment(func(p *exchange.ChainPayment) { p.Amount = five; approved(p) }),
			"an approved payment to another recipient": payment(func(p *exchange.ChainPayment) { p.ToAddress = other.Destination; approved(p) }),
			"an approved payment of another wallet":    payment(func(p *exchange.ChainPayment) { p.FromAddress = s.outside[0].Address; approved(p) }),
			"an approved payment for something else":   payment(func(p *exchange.ChainPayment) { p.Purpose = exchange.ForTransfer; approved(p) }),
			"the payment is not approved":              payment(func(p *exchange.ChainPayment) { p.ApprovedBy = "" }),
			"the payment is parked":                    payment(func(p *exchange.ChainPayment) { p.Status = exchange.ChainParked }),
			"the payment is completed":                 payment(func(p *exchange.ChainPayment) { p.Status = exchange.ChainCompleted }),
			"the payload of another proposal": payload(func(p *exchange.MultisigPayload) {
				p.Joint, p.Digest, p.JointID = foreign.Joint, foreign.Digest, foreign.JointID
			}),
			"the joint transaction of another proposal":       payload(func(p *exchange.MultisigPayload) { p.Joint = foreign.Joint }),
			"the digest of another proposal":                  payload(func(p *exchange.MultisigPayload) { p.Digest = foreign.Digest }),
			"the id of another proposal":                      payload(func(p *exchange.MultisigPayload) { p.JointID = foreign.JointID }),
			"another proposal":                                payload(func(p *exchange.MultisigPayload) { p.ProposalID = other.ID }),
			"another payment":                                 payload(func(p *exchange.MultisigPayload) { p.PaymentID = other.PaymentID }),
			"the payload is void":                             payload(func(p *exchange.MultisigPayload) { p.Status = exchange.PayloadVoid }),
			"a part that is not known":                        payload(func(p *exchange.MultisigPayload) { p.Joint = bytes.Replace(p.Joint, []byte("{"), []byte(`{"x":1,`), 1) }),
			"other bytes":                                     joint(func(j *chain.Joint) { j.Body = bytes.Clone(j.Body); j.Body[len(j.Body)/2] ^= 1 }),
			"words that the bytes don't say":                  joint(func(j *chain.Joint) { j.Transfer.Amount = five }),
			"another digest than that of the bytes":           joint(func(j *chain.Joint) { j.Digest = bytes.Clone(j.Digest); j.Digest[0] ^= 1 }),
			"a threshold that was not agreed":                 joint(func(j *chain.Joint) { j.Quorum.Threshold = 1 }),
			"the account's owners are others":                 account(func(a *exchange.MultisigAccount) { a.Owners[0].Address = s.NewAccount(t).Address }),
			"the account's threshold is another":              account(func(a *exchange.MultisigAccount) { a.Threshold = 1 }),
			"the account differs":                             account(func(a *exchange.MultisigAccount) { a.Status = exchange.MultisigDiffers }),
			"the account is at another address":               account(func(a *exchange.MultisigAccount) { a.Address = s.outside[0].Address }),
			"the officer did not confirm it":                  func() { delete(s.book.confirmed, l.ID.String()+s.officer) },
			"the key is another wallet's":                     func() { _, s.book.held = s.key(t, keys.Ref{WalletID: uuid.New(), Network: s.client.Network()}) },
			"the key is sealed for the number of another":     account(func(a *exchange.MultisigAccount) { a.Owners[1].N, a.Owners[2].N = 3, 2 }),
			"the owner is not one whose key we hold":          account(func(a *exchange.MultisigAccount) { a.Owners[2].Held = false }),
			"the officer is another one than the key's":       account(func(a *exchange.MultisigAccount) { a.Owners[2].UserID = uuid.Nil }),
			"another payload of the proposal can be executed": func() { s.rival(t, l) },
		} {
			s.signsNot(t, what, l.ID, edit)
		}
		s.signsHeld(t, l)
	})
}

// rival puts another payload of the same proposal into the rows, which calls itself void and could be executed all the same.
func (s *signatories) rival(t *testing.T, l exchange.MultisigPayload) {
	t.Helper()
	j := s.joint(t, l)
	d := j.JointDraft
	if s.client.Network() == exchange.Solana { // the signer would refuse a payload with another nonce account: it follows from the proposal
		d.NonceAccount = s.joint(t, s.book.payloads[1]).NonceAccount
	}
	if s.Rules().Numbered {
		d.Sequence += 7
	}
	second, err := s.client.PrepareJoint(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	text, err := second.Encode()
	if err != nil {
		t.Fatal(err)
	}
	row := l
	row.ID, row.Joint, row.Digest, row.JointID, row.Sequence, row.Status = uuid.New(), text, second.Digest, second.ID, second.Sequence, exchange.PayloadVoid
	s.book.payloads = append(s.book.payloads, row)
}

// A signature that is not the owner's over just this payload is refused before it is stored, with the check that it fails.
func TestOutsideSignaturesAreVerified(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *signatories) {
		proposal, other := s.proposes(t, "2"), s.proposes(t, "5")
		names := []string{s.outside[0].Address, s.officer}
		l, foreign := s.prepares(t, proposal, slices.Clone(names)...), s.prepares(t, other, slices.Clone(names)...)
		good := signedBy(t, s.outside[0], l.Digest)
		flipped := bytes.Clone(good)
		flipped[10] ^= 1
		s.confirms(l)
		held, err := s.signer.SignPayload(t.Context(), l.ID, s.officer)
		if err != nil {
			t.Fatal(err)
		}
		s.book.signatures = nil
		for what, signature := range map[string][]byte{
			"of another proposal": signedBy(t, s.outside[0], foreign.Digest), "of one who is no owner": signedBy(t, s.NewAccount(t), l.Digest),
			"with a changed bit": flipped, "too short": good[:len(good)-1], "too long": append(bytes.Clone(good), 0), "of zeros": make([]byte, len(good)),
			"of the owner whose key we hold": held.Signature,
		} {
			out, err := s.brings(t, l, signature)
			var e *temporal.ApplicationError
			if !errors.As(err, &e) || e.Type() != string(exchange.CodeInvalid) || !e.NonRetryable() {
				t.Errorf("%s: %+v, %v", what, out, err)
				continue
			}
			var fields []exchange.FieldError
			if err := e.Details(&fields); err != nil || len(fields) != 1 || fields[0].Pointer != "/signature" {
				t.Errorf("%s: %v, %v", what, fields, err)
			}
			t.Logf("%s (%s): %s", what, hex.EncodeToString(signature[:4]), fields[0].Message)
		}
		wrong := l
		wrong.ProposalID = other.ID
		if out, err := s.brings(t, wrong, good); err == nil {
			t.Errorf("brought for another proposal: %+v", out)
		}
		if len(s.book.signatures) != 0 {
			t.Errorf("stored: %+v", s.book.signatures)
		}
		s.signsOutside(t, l, s.outside[0])
	})
}
