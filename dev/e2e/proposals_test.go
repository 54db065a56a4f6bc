package e2e

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

const proposalsPath = "/api/v1/auth/multisig/proposals"

func ofProposal(id uuid.UUID, verb string) string {
	return proposalsPath + "/" + id.String() + "/" + verb
}

// proposed is a proposal as the API shows it.
type proposed struct {
	ID         uuid.UUID `json:"id"`
	Status     string    `json:"status"`
	Detail     string    `json:"status_detail"`
	Ending     string    `json:"ending"`
	TxHash     string    `json:"tx_hash"`
	PaymentID  uuid.UUID `json:"payment_id"`
	ExecutedBy uuid.UUID `json:"executed_by"`
}

// payable is what owners sign, as the API shows it.
type payable struct {
	ID           uuid.UUID `json:"id"`
	Status       string    `json:"status"`
	Digest       string    `json:"digest"`
	Signers      []string  `json:"signers"`
	Confirmation string    `json:"confirmation_digest"`
}

// committee is a wallet of several owners with money in it: of two people outside and, where accounts are opened, of an officer whose key is
// in our key store.
type committee struct {
	*outsiders
	people  []outsider
	id      uuid.UUID
	address string
	to      string // the address to which every payment goes: a stranger's, unless a test sets another
}

// committeeOn opens or adopts a wallet on a network, and brings it what it needs.
func (w *harness) committeeOn(t *testing.T, n demo.Node) *committee {
	t.Helper()
	brings := []money.Amount{money.Must(money.USDT, "20")}
	if n.Network == exchange.Tron { // it pays its own fees
		brings = append(brings, money.Must(money.TRX, "200"))
	}
	return w.committeeWith(t, n, reserve(1), brings...)
}

// committeeWith is such a wallet for a treasury, with this money.
func (w *harness) committeeWith(t *testing.T, n demo.Node, treasury map[string]any, brings ...money.Amount) *committee {
	t.Helper()
	c := &committee{outsiders: w.outsidersOn(t, n)}
	var err error
	if c.to, err = stranger(n.Network); err != nil {
		t.Fatal(err)
	}
	var waits testbed.Waits
	if n.Network == exchange.Tron {
		c.people = c.outsiders.people(t, 3)
		address := c.opens(t, newSeed(), quorumOf(c.people, 2))
		waits = w.asksForTreasury(t, n.Network, treasury, exchange.MultisigSelf, address, 2, owner(c.people[0]), owner(c.people[1]), owner(c.people[2]))
	} else {
		c.people = c.outsiders.people(t, 2)
		waits = w.asksForTreasury(t, n.Network, treasury, exchange.MultisigSelf, "", 2, owner(c.people[0]), owner(c.people[1]), w.officerOwner(t, demo.TreasuryEmail))
	}
	c.id = w.agreesToShared(t, waits)
	c.address = w.sharedIs(t, c.id, exchange.MultisigActive).Address
	wallet, err := w.store.Wallet(t.Context(), store.Everything(), c.id)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range brings {
		if err := n.Fund(t.Context(), c.address, m); err != nil {
			t.Fatal(err)
		}
		if err := demo.Booked(t.Context(), w.store, wallet, m); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

const proposedAmount = "3"

// asked is a proposal's request.
func (c *committee) asked() map[string]any {
	return map[string]any{"wallet_id": c.id, "asset": "USDT", "amount": proposedAmount, "destination": c.to, "reference": "invoice"}
}

// proposes has an officer propose a payment.
func (w *harness) proposes(t *testing.T, c *committee) uuid.UUID {
	t.Helper()
	var p proposed
	if err := insist(t.Context(), w.as(t, secondOfficer), proposalsPath, testbed.Key(), c.asked(), &p); err != nil {
		t.Fatal(err)
	}
	return p.ID
}

func (w *harness) readProposal(t *testing.T, id uuid.UUID) (p proposed, err error) {
	t.Helper()
	err = w.operator(t).Get(t.Context(), proposalsPath+"/"+id.String(), &p)
	return p, err
}

// proposalIs waits until a proposal has a status.
func (w *harness) proposalIs(t *testing.T, id uuid.UUID, status exchange.ProposalStatus) proposed {
	t.Helper()
	var p proposed
	err := await(t.Context(), recovery, func() (err error) {
		if p, err = w.readProposal(t, id); err == nil && p.Status != string(status) {
			err = fmt.Errorf("it is %s (%s)", p.Status, p.Detail)
		}
		return err
	})
	if err != nil {
		t.Fatalf("proposal %s should be %s: %v", id, status, err)
	}
	return p
}

// approvedProposal has the demo's officer approve.
func (w *harness) approvedProposal(t *testing.T, id uuid.UUID) {
	t.Helper()
	w.decidedProposalBy(t, id, "approve", w.operator(t))
}

func (w *harness) decidedProposalBy(t *testing.T, id uuid.UUID, verb string, officer *client.Client) {
	t.Helper()
	w.proposalIs(t, id, exchange.ProposalApproving)
	path := ofProposal(id, verb)
	if err := insist(t.Context(), officer, path, testbed.Key(), seenWith(seen(t, officer, path), "looked at it"), nil); err != nil {
		t.Fatal(err)
	}
}

// seenWith adds a note to a decision.
func seenWith(decision map[string]any, note string) map[string]any {
	decision["note"] = note
	return decision
}

// payloadFor waits for something that these owners sign, and returns it with the joint transaction that another tool would show.
func (w *harness) payloadFor(t *testing.T, id uuid.UUID, owners ...string) (payable, chain.Joint) {
	t.Helper()
	var found payable
	eventually(t, "there is something to sign for proposal "+id.String(), func() error {
		var all struct{ Payloads []payable }
		if err := w.operator(t).Get(t.Context(), ofProposal(id, "payload"), &all); err != nil {
			return err
		}
		for _, y := range all.Payloads {
			named := !slices.ContainsFunc(owners, func(o string) bool { return !slices.Contains(y.Signers, o) })
			if y.Status == string(exchange.PayloadOpen) && (len(y.Signers) == 0 || named) {
				found = y
				return nil
			}
		}
		return fmt.Errorf("%d are there", len(all.Payloads))
	})
	y, err := w.store.Payload(t.Context(), found.ID)
	if err != nil {
		t.Fatal(err)
	}
	j, err := chain.DecodeJoint(y.Joint)
	if err != nil {
		t.Fatal(err)
	}
	return found, j
}

// signatureOf is the signature of an owner outside, by a tool of its own.
func (c *committee) signatureOf(t *testing.T, y payable, p outsider) string {
	t.Helper()
	digest, err := hex.DecodeString(y.Digest)
	if err != nil {
		t.Fatal(err)
	}
	made, err := p.key.Sign(digest)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(made)
}

// signsProposal brings the signature of an owner outside.
func (w *harness) signsProposal(t *testing.T, c *committee, id uuid.UUID, y payable, p outsider) error {
	t.Helper()
	return insist(t.Context(), w.as(t, secondOfficer), ofProposal(id, "confirm"), testbed.Key(), map[string]any{"payload_id": y.ID, "signature": c.signatureOf(t, y, p)}, nil)
}

// second is the owner who signs besides the first outsider: an officer, whose key is ours, or the second outsider.
func (w *harness) signedBySecond(t *testing.T, c *committee, id uuid.UUID, y payable) {
	t.Helper()
	var err error
	if c.Network() == exchange.Tron {
		err = w.signsProposal(t, c, id, y, c.people[1])
	} else {
		err = insist(t.Context(), w.operator(t), ofProposal(id, "confirm"), testbed.Key(), map[string]any{"payload_id": y.ID, "digest": y.Confirmation}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// signers are those two owners.
func (w *harness) signersOf(t *testing.T, c *committee) []string {
	t.Helper()
	second := c.people[1].address
	if c.Network() != exchange.Tron {
		s, err := w.readShared(t, c.id)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range s.Owners {
			if o.Held {
				second = o.Address
			}
		}
	}
	return []string{c.people[0].address, second}
}

// signedProposal is a proposal that officers approved and two owners signed.
func (w *harness) signedProposal(t *testing.T, c *committee) (uuid.UUID, chain.Joint) {
	t.Helper()
	id := w.proposes(t, c)
	w.approvedProposal(t, id)
	y, j := w.payloadFor(t, id, w.signersOf(t, c)...)
	if err := w.signsProposal(t, c, id, y, c.people[0]); err != nil {
		t.Fatal(err)
	}
	w.signedBySecond(t, c, id, y)
	w.proposalIs(t, id, exchange.ProposalReady)
	return id, j
}

// executesProposal has an officer have it executed.
func (w *harness) executesProposal(t *testing.T, id uuid.UUID) {
	t.Helper()
	if err := insist(t.Context(), w.operator(t), ofProposal(id, "execute"), testbed.Key(), map[string]any{}, nil); err != nil {
		t.Fatal(err)
	}
}

// paidByOwners checks that a proposal was executed once, and that the stranger got the money by that transaction.
func (w *harness) paidByOwners(t *testing.T, c *committee, id uuid.UUID) proposed {
	t.Helper()
	p := w.proposalIs(t, id, exchange.ProposalExecuted)
	if tx := w.sentFor(t, "proposal", id); tx != p.TxHash {
		t.Errorf("proposal %s names %s and was paid by %s", id, p.TxHash, tx)
	}
	cameOnce(t, c.node, c.to, p.TxHash, money.Must(money.USDT, proposedAmount))
	return p
}

// freed checks that nothing is held for a proposal that moved nothing.
func (w *harness) freed(t *testing.T, id uuid.UUID) {
	t.Helper()
	var held int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM holds WHERE object_id = $1 AND status = 'held'`, id).Scan(&held)
	if err != nil || held != 0 {
		t.Errorf("proposal %s has %d holds: %v", id, held, err)
	}
}

// TestProposals pays from wallets of several owners on each network: by our transaction, by another tool's, and not at all.
func TestProposals(t *testing.T) {
	w := openBeside(t)
	t.Run("all", func(t *testing.T) {
		for _, n := range w.seed().Nodes() {
			t.Run(string(n.Network), func(t *testing.T) {
				t.Parallel()
				t.Run("it is executed", func(t *testing.T) { w.paysByOwners(t, n) })
				t.Run("a merchant pays a wallet of ours", func(t *testing.T) { w.paysOurs(t, n) })
				if n.Network != exchange.Solana { // there the house's gas wallet signs too, so that no other tool can send it
					t.Run("another tool executes it", func(t *testing.T) { w.executedElsewhere(t, n) })
					t.Run("another tool pays a wallet of ours", func(t *testing.T) { w.paysOursElsewhere(t, n) })
				}
				t.Run("an officer rejects it", func(t *testing.T) { w.rejectsProposal(t, n) })
				switch n.Network {
				case exchange.Solana: // where what was signed can be made impossible at once
					t.Run("it is cancelled after owners signed", func(t *testing.T) { w.cancelsSigned(t, n) })
				case exchange.Tron:
					t.Run("its wallet has no coins for the fee", func(t *testing.T) { w.paysWithoutCoins(t, n) })
				case exchange.Ethereum:
					t.Run("another tool takes its number", func(t *testing.T) { w.overtaken(t, n) })
					t.Run("signatures are misused", func(t *testing.T) { w.misused(t, n) })
				}
			})
		}
	})
	w.invariants(t)
	w.booksAgree(t)
}

func (w *harness) paysByOwners(t *testing.T, n demo.Node) {
	c := w.committeeOn(t, n)
	id := w.proposes(t, c)
	path := ofProposal(id, "approve")
	w.proposalIs(t, id, exchange.ProposalApproving)
	if err := w.as(t, secondOfficer).Post(t.Context(), path, testbed.Key(), seen(t, w.operator(t), path), nil); !is(err, http.StatusForbidden) {
		t.Errorf("the proposer's own approval: %v", err)
	}
	w.approvedProposal(t, id)
	y, _ := w.payloadFor(t, id, w.signersOf(t, c)...)
	if err := w.signsProposal(t, c, id, y, c.person(t, "")); !is(err, http.StatusUnprocessableEntity) {
		t.Errorf("the signature of a stranger: %v", err)
	}
	if err := w.signsProposal(t, c, id, y, c.people[0]); err != nil {
		t.Fatal(err)
	}
	if err := w.operator(t).Post(t.Context(), ofProposal(id, "execute"), testbed.Key(), map[string]any{}, nil); !is(err, http.StatusConflict) {
		t.Errorf("executed with one signature: %v", err)
	}
	w.signedBySecond(t, c, id, y)
	w.proposalIs(t, id, exchange.ProposalReady)
	w.executesProposal(t, id)
	w.paidByOwners(t, c, id)
}

// executedElsewhere has the owners send their signatures with another tool. The flow notices, at the latest when an officer has it executed.
func (w *harness) executedElsewhere(t *testing.T, n demo.Node) uuid.UUID {
	c := w.committeeOn(t, n)
	id, j := w.signedProposal(t, c)
	w.sentElsewhere(t, c, id, j)
	return id
}

// sentElsewhere sends the signatures of owners with another tool. Then an officer, who does not know, has the proposal executed.
func (w *harness) sentElsewhere(t *testing.T, c *committee, id uuid.UUID, j chain.Joint) {
	t.Helper()
	tx := w.sends(t, c, id, j)
	w.executesProposal(t, id)
	if p := w.paidByOwners(t, c, id); p.TxHash != tx || p.Detail != exchange.DetailOther {
		t.Errorf("it was executed by %s (%s), not by %s", p.TxHash, p.Detail, tx)
	}
}

// sends sends the signatures of owners with another tool, and returns the transaction when it is final.
func (w *harness) sends(t *testing.T, c *committee, id uuid.UUID, j chain.Joint) string {
	t.Helper()
	var signatures []chain.OwnerSignature
	all, err := w.store.Payloads(t.Context(), id)
	if err != nil || len(all) == 0 {
		t.Fatal(err)
	}
	stored, err := w.store.Signatures(t.Context(), all[len(all)-1].ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range stored {
		signatures = append(signatures, chain.OwnerSignature{Owner: g.Owner, Signature: g.Signature})
	}
	draft, keys := chain.ExecutionDraft{}, []chain.Key{}
	if c.Network() == exchange.Ethereum {
		payer := c.person(t, "1")
		draft.Payer, keys = payer.address, append(keys, payer.key)
	}
	x, err := c.PrepareExecution(t.Context(), j, signatures, draft)
	var signed chain.Signed
	if err == nil {
		signed, err = c.SignExecution(x, keys...)
	}
	c.outsiders.sends(t, signed, err)
	return signed.TxID
}

// usesNumber has the owners outside sign and send nothing at all with the number of what others signed.
func (c *committee) usesNumber(t *testing.T, j chain.Joint) {
	t.Helper()
	d := j.JointDraft
	d.Transfer = nil
	c.signs(t, d, c.person(t, "1"), c.people...)
}

func (w *harness) rejectsProposal(t *testing.T, n demo.Node) uuid.UUID {
	c := w.committeeOn(t, n)
	id := w.proposes(t, c)
	w.proposalIs(t, id, exchange.ProposalApproving)
	path := ofProposal(id, "reject")
	admin := w.admin(t)
	if err := insist(t.Context(), admin, path, testbed.Key(), seenWith(seen(t, admin, path), "not now"), nil); err != nil {
		t.Fatal(err)
	}
	if p := w.proposalIs(t, id, exchange.ProposalRejected); p.Detail != exchange.DetailRejected {
		t.Errorf("it is rejected: %s", p.Detail)
	}
	w.freed(t, id)
	return id
}

// cancelsSigned cancels what enough owners have signed: the nonce account is advanced, and the proposal ends when that is final.
func (w *harness) cancelsSigned(t *testing.T, n demo.Node) uuid.UUID {
	c := w.committeeOn(t, n)
	id, j := w.signedProposal(t, c)
	if err := insist(t.Context(), w.as(t, secondOfficer), ofProposal(id, "cancel"), testbed.Key(), map[string]any{}, nil); err != nil {
		t.Fatal(err)
	}
	w.proposalIs(t, id, exchange.ProposalCancelled)
	w.freed(t, id)
	if o, err := c.Outcome(t.Context(), j); err != nil || o.State == chain.JointOpen || o.State == chain.JointExecuted {
		t.Errorf("what owners signed for a cancelled proposal is %s: %v", o.State, err)
	}
	time.Sleep(time.Second) // time enough for a transaction that should not be there
	if moved, err := c.node.Changes(t.Context(), c.to); err != nil || len(moved) != 0 {
		t.Errorf("a cancelled proposal paid %+v: %v", moved, err)
	}
	return id
}
