package e2e

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// byMerchant is a wallet that is shared with a merchant, of which two officers approve each payment. It pays a new wallet of a customer of ours.
func (w *harness) byMerchant(t *testing.T, n demo.Node) (*committee, exchange.Wallet) {
	t.Helper()
	brings := []money.Amount{money.Must(money.USDT, "20")}
	if n.Network == exchange.Tron {
		brings = append(brings, money.Must(money.TRX, "200"))
	}
	shared := reserve(2)
	shared["merchant_id"] = w.vendor
	c, to := w.committeeWith(t, n, shared, brings...), w.ownWallet(t, n.Network)
	c.to = to.Address
	return c, to
}

// merchantPays has the merchant propose, two officers approve, and two owners sign.
func (w *harness) merchantPays(t *testing.T, c *committee) uuid.UUID {
	t.Helper()
	merchant := w.as(t, demo.VendorEmail)
	var p proposed
	if err := insist(t.Context(), merchant, proposalsPath, testbed.Key(), c.asked(), &p); err != nil {
		t.Fatal(err)
	}
	path := ofProposal(p.ID, "approve")
	if err := merchant.Post(t.Context(), path, testbed.Key(), seen(t, merchant, path), nil); !is(err, http.StatusForbidden) {
		t.Errorf("the merchant's own approval: %v", err)
	}
	w.approvedProposal(t, p.ID)
	if p = w.proposalIs(t, p.ID, exchange.ProposalApproving); p.PaymentID != uuid.Nil {
		t.Errorf("one officer released it: %+v", p)
	}
	w.decidedProposalBy(t, p.ID, "approve", w.as(t, secondOfficer))
	y, _ := w.payloadFor(t, p.ID, w.signersOf(t, c)...)
	in := map[string]any{"payload_id": y.ID, "signature": c.signatureOf(t, y, c.people[0])}
	if err := insist(t.Context(), merchant, ofProposal(p.ID, "confirm"), testbed.Key(), in, nil); err != nil {
		t.Fatal(err)
	}
	w.signedBySecond(t, c, p.ID, y)
	w.proposalIs(t, p.ID, exchange.ProposalReady)
	if err := merchant.Post(t.Context(), ofProposal(p.ID, "execute"), testbed.Key(), map[string]any{}, nil); !is(err, http.StatusForbidden) {
		t.Errorf("the merchant has it executed: %v", err)
	}
	return p.ID
}

// paysOurs pays a wallet of a customer of ours.
func (w *harness) paysOurs(t *testing.T, n demo.Node) {
	c, to := w.byMerchant(t, n)
	id := w.merchantPays(t, c)
	w.executesProposal(t, id)
	w.cameInside(t, to, w.paidByOwners(t, c, id).TxHash)
}

// paysOursElsewhere pays it by another tool, whose transaction the watch reads before it is known to be the payment's.
func (w *harness) paysOursElsewhere(t *testing.T, n demo.Node) {
	c, to := w.byMerchant(t, n)
	id := w.merchantPays(t, c)
	y, err := w.store.Payloads(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	_, j := w.payloadFor(t, id)
	if len(y) != 1 {
		t.Errorf("there are %d payloads", len(y))
	}
	w.sentElsewhere(t, c, id, j)
	w.cameInside(t, to, w.paidByOwners(t, c, id).TxHash)
}

// cameInside checks that money of our custody is booked once for the wallet that it came to, and is nothing that officers have to explain.
func (w *harness) cameInside(t *testing.T, to exchange.Wallet, tx string) {
	t.Helper()
	var kind string
	eventually(t, "the watch has read "+tx, func() error {
		return w.db.QueryRowContext(t.Context(), `SELECT kind FROM chain_deposits WHERE to_address = $1 AND tx_id = $2 AND asset = 'USDT' AND status = 'final'`, to.Address, tx).Scan(&kind)
	})
	if held, err := demo.Held(t.Context(), w.store, to, money.USDT); err != nil || !held.Equal(money.Must(money.USDT, proposedAmount)) {
		t.Errorf("the wallet %s holds %s after a payment of %s: %v", to.Address, held, proposedAmount, err)
	}
	var booked, open int
	err := w.db.QueryRowContext(t.Context(), `SELECT
		(SELECT count(*) FROM ledger_lines l JOIN ledger_accounts a ON a.id = l.account_id WHERE a.code = 'custody:' || $1 || ':USDT'),
		(SELECT count(*) FROM payment_exceptions x JOIN chain_deposits d ON d.exception_id = x.id WHERE d.tx_id = $2 AND x.status = 'open')`, to.ID, tx).Scan(&booked, &open)
	if err != nil || booked != 1 || open != 0 {
		t.Errorf("%d lines of %s are booked (%s), and %d exceptions are open: %v", booked, to.Address, kind, open, err)
	}
}

// paysWithoutCoins pays from a wallet on TRON that has no TRX for the fee: the house brings it, before owners sign.
func (w *harness) paysWithoutCoins(t *testing.T, n demo.Node) {
	c := w.committeeWith(t, n, reserve(1), money.Must(money.USDT, "20"))
	id, _ := w.signedProposal(t, c)
	w.executesProposal(t, id)
	p := w.paidByOwners(t, c, id)
	eventually(t, "the proposal got gas once", func() error { return w.gotGas(t.Context(), p.PaymentID, 1) })
}

// overtaken has the owners use a proposal's number of their Safe for something else.
func (w *harness) overtaken(t *testing.T, n demo.Node) uuid.UUID {
	c := w.committeeOn(t, n)
	id, j := w.signedProposal(t, c)
	c.usesNumber(t, j)
	w.executesProposal(t, id)
	w.proposalIs(t, id, exchange.ProposalSuperseded)
	w.freed(t, id)
	w.paidNothing(t, c)
	return id
}

func (w *harness) paidNothing(t *testing.T, c *committee) {
	t.Helper()
	if moved, err := c.node.Changes(t.Context(), c.to); err != nil || len(moved) != 0 {
		t.Errorf("%s got %+v: %v", c.to, moved, err)
	}
}

// misused brings signatures that must not count, to two proposals of one Safe, and takes steps that the caller may not take.
func (w *harness) misused(t *testing.T, n demo.Node) {
	c := w.committeeOn(t, n)
	id, other := w.proposes(t, c), w.proposes(t, c)
	w.proposalIs(t, other, exchange.ProposalApproving)
	approve := ofProposal(id, "approve")
	if err := w.operator(t).Post(t.Context(), approve, testbed.Key(), seen(t, w.operator(t), ofProposal(other, "approve")), nil); err == nil {
		t.Error("the digest of another proposal approved it")
	}
	w.approvedProposal(t, id)
	w.approvedProposal(t, other)
	y, _ := w.payloadFor(t, id)
	foreign, _ := w.payloadFor(t, other)
	brings := func(what, signature string) {
		t.Helper()
		in := map[string]any{"payload_id": y.ID, "signature": signature}
		if err := w.as(t, secondOfficer).Post(t.Context(), ofProposal(id, "confirm"), testbed.Key(), in, nil); !is(err, http.StatusUnprocessableEntity) {
			t.Errorf("%s: %v", what, err)
		}
	}
	brings("the signature of another proposal", c.signatureOf(t, foreign, c.people[0]))
	brings("the signature of a stranger", c.signatureOf(t, y, c.person(t, "")))
	confirms := func(what, email string, in map[string]any, status int) {
		t.Helper()
		if err := w.as(t, email).Post(t.Context(), ofProposal(id, "confirm"), testbed.Key(), in, nil); !is(err, status) {
			t.Errorf("%s: %v", what, err)
		}
	}
	confirms("the digest of another payload", demo.TreasuryEmail, map[string]any{"payload_id": y.ID, "digest": foreign.Confirmation}, http.StatusUnprocessableEntity)
	confirms("the payload of another proposal", demo.TreasuryEmail, map[string]any{"payload_id": foreign.ID, "digest": foreign.Confirmation}, http.StatusUnprocessableEntity)
	confirms("an officer who is no owner", secondOfficer, map[string]any{"payload_id": y.ID, "digest": y.Confirmation}, http.StatusForbidden)
	once := c.signatureOf(t, y, c.people[0])
	for _, again := range []string{once, once, mirrored(t, once)} { // one owner, however often, and in both forms that one key makes
		in := map[string]any{"payload_id": y.ID, "signature": again}
		if err := w.as(t, secondOfficer).Post(t.Context(), ofProposal(id, "confirm"), testbed.Key(), in, nil); err != nil && !is(err, http.StatusUnprocessableEntity) {
			t.Error(err)
		}
	}
	if stored, err := w.store.Signatures(t.Context(), y.ID); err != nil || len(stored) != 1 {
		t.Errorf("one owner has %d signatures: %v", len(stored), err)
	}
	if p := w.proposalIs(t, id, exchange.ProposalSigning); p.ExecutedBy != uuid.Nil {
		t.Errorf("it is executed: %+v", p)
	}
	if err := w.operator(t).Post(t.Context(), ofProposal(id, "execute"), testbed.Key(), map[string]any{}, nil); !is(err, http.StatusConflict) {
		t.Errorf("executed with one owner: %v", err)
	}
	w.rowsHold(t, id, y.ID, foreign.ID)
	w.signedBySecond(t, c, id, y)
	w.executesProposal(t, id)
	w.paidByOwners(t, c, id)
}

// mirrored is the other signature of the same key over the same digest, which ECDSA has for each.
func mirrored(t *testing.T, signature string) string {
	t.Helper()
	raw, err := hex.DecodeString(signature)
	if err != nil {
		t.Fatal(err)
	}
	s := new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(raw[32:64]))
	out := bytes.Clone(raw)
	s.FillBytes(out[32:64])
	out[64] ^= 1
	return hex.EncodeToString(out)
}

// rowsHold checks that not even the owner of the database changes what was approved, or what owners signed.
func (w *harness) rowsHold(t *testing.T, id, payload, other uuid.UUID) {
	t.Helper()
	for what, change := range map[string]string{
		"the amount":                     `UPDATE multisig_proposals SET amount = 19 WHERE id = $1 AND $2::uuid <> $3::uuid`,
		"the destination":                `UPDATE multisig_proposals SET destination = 'somewhere-else-entirely-000' WHERE id = $1 AND $2::uuid <> $3::uuid`,
		"the payment's amount":           `UPDATE chain_payments SET amount = 19 WHERE object_id = $1 AND purpose = 'proposal' AND $2::uuid <> $3::uuid`,
		"the payment's recipient":        `UPDATE chain_payments SET to_address = 'somewhere-else-entirely-000' WHERE object_id = $1 AND purpose = 'proposal' AND $2::uuid <> $3::uuid`,
		"what owners sign":               `UPDATE multisig_payloads y SET joint = o.joint, digest = o.digest FROM multisig_payloads o WHERE y.proposal_id = $1 AND y.id = $2 AND o.id = $3`,
		"the proposal of what is signed": `UPDATE multisig_payloads SET proposal_id = (SELECT proposal_id FROM multisig_payloads WHERE id = $3) WHERE proposal_id = $1 AND id = $2`,
		"a signature":                    `UPDATE multisig_signatures SET payload_id = $3 WHERE payload_id = $2 AND $1::uuid IS NOT NULL`,
		"an end without proof":           `UPDATE multisig_proposals SET status = 'cancelled' WHERE id = $1 AND $2::uuid <> $3::uuid`,
	} {
		if done, err := w.db.ExecContext(t.Context(), change, id, payload, other); err == nil {
			n, err := done.RowsAffected()
			t.Errorf("%s was changed in %d rows: %v", what, n, err)
		}
	}
}

// TestProposalsSurvive pays while the networks forget blocks, refuse what is executed, and while processes die. It is played alone, because it
// stops networks.
func TestProposalsSurvive(t *testing.T) {
	w := open(t)
	t.Run("all", func(t *testing.T) {
		w.eachNetwork(t, func(t *testing.T, n demo.Node) {
			t.Parallel()
			t.Run("an execution is undone", func(t *testing.T) { w.undone(t, n) })
			if n.Network != exchange.Ethereum { // where a Safe's transaction that fails can be sent again
				t.Run("an execution fails", func(t *testing.T) { w.failsOnChain(t, n) })
			}
		})
	})
	t.Run("processes die", func(t *testing.T) {
		w.eachNetwork(t, func(t *testing.T, n demo.Node) { w.diesMeanwhile(t, n) })
	})
	w.invariants(t)
	w.booksAgree(t)
}

// undone makes one block for an execution, and takes it away. The same bytes come again by themselves, once.
func (w *harness) undone(t *testing.T, n demo.Node) {
	heal(t, n)
	c := w.committeeOn(t, n)
	id, _ := w.signedProposal(t, c)
	post(t, n, "/pause", nil)
	w.executesProposal(t, id)
	is := func(status exchange.ChainPaymentStatus) {
		t.Helper()
		eventually(t, "the execution is "+string(status), func() error {
			var now string
			err := w.db.QueryRowContext(t.Context(), `SELECT status FROM chain_payments WHERE purpose = 'proposal' AND object_id = $1`, id).Scan(&now)
			if err == nil && now != string(status) {
				err = fmt.Errorf("it is %s", now)
			}
			return err
		})
	}
	is(exchange.ChainBroadcast)
	blocks := 1
	if n.Network == exchange.Solana { // a block is seen when it is confirmed, by the next ones
		blocks = 3
	}
	makes := "/produce"
	if n.Network == exchange.Ethereum {
		makes = "/mine"
	}
	post(t, n, makes, map[string]any{"blocks": blocks})
	is(exchange.ChainIncluded)
	post(t, n, "/reorganise", map[string]any{"blocks": blocks, "drop": true})
	is(exchange.ChainBroadcast)
	w.paidNothing(t, c)
	post(t, n, "/resume", nil)
	w.paidByOwners(t, c, id)
}

// failsOnChain has the network refuse an execution in its block. What was signed can never be executed then. On TRON the money stays held until the
// watch has read all blocks that could have the transaction, as for every transaction of which a node says that it failed: nearly a day.
func (w *harness) failsOnChain(t *testing.T, n demo.Node) uuid.UUID {
	heal(t, n)
	c := w.committeeOn(t, n)
	id, _ := w.signedProposal(t, c)
	fails := map[string]any{"fail_next": 1}
	if n.Network == exchange.Tron {
		fails["fail_with"] = "REVERT"
	}
	post(t, n, "/faults", fails)
	w.executesProposal(t, id)
	if n.Network != exchange.Tron {
		w.proposalIs(t, id, exchange.ProposalFailed)
		w.freed(t, id)
	} else {
		eventually(t, "the proposal is to end", func() error {
			p, err := w.readProposal(t, id)
			if err == nil && p.Ending != string(exchange.ProposalFailed) {
				err = fmt.Errorf("it is %s, and is to end %q", p.Status, p.Ending)
			}
			return err
		})
		if err := w.operator(t).Post(t.Context(), ofProposal(id, "execute"), testbed.Key(), map[string]any{}, nil); !is(err, http.StatusConflict) {
			t.Errorf("executed after it failed: %v", err)
		}
	}
	w.paidNothing(t, c)
	return id
}

// diesMeanwhile kills the worker of the flows, that of the chain and the signer wherever a proposal is. The money leaves once.
func (w *harness) diesMeanwhile(t *testing.T, n demo.Node) {
	c := w.committeeOn(t, n)
	dies := func(queues ...string) {
		t.Helper()
		for _, q := range queues {
			w.kill(t, stack.ProcessWorker(q), 0)
		}
		w.hasten(t, workflows.DepositWatchID(n.Network))
	}
	flows, watch, signer := "flows", workflows.QueueChain(n.Network), workflows.QueueSigner(n.Network)
	id := w.proposes(t, c)
	dies(flows)
	w.approvedProposal(t, id)
	dies(watch, signer)
	w.hasten(t, workflows.MultisigProposalID(id))
	y, _ := w.payloadFor(t, id, w.signersOf(t, c)...)
	if err := w.signsProposal(t, c, id, y, c.people[0]); err != nil {
		t.Fatal(err)
	}
	second, ctx := make(chan error, 1), context.WithoutCancel(t.Context())
	in := map[string]any{"payload_id": y.ID, "digest": y.Confirmation}
	who := w.operator(t)
	if n.Network == exchange.Tron {
		who, in = w.as(t, secondOfficer), map[string]any{"payload_id": y.ID, "signature": c.signatureOf(t, y, c.people[1])}
	}
	go func() { second <- insist(ctx, who, ofProposal(id, "confirm"), testbed.Key(), in, nil) }()
	dies(signer, flows)
	w.hasten(t, workflows.MultisigProposalID(id))
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	w.proposalIs(t, id, exchange.ProposalReady)
	w.executesProposal(t, id)
	dies(signer, watch, flows)
	w.hasten(t, workflows.MultisigProposalID(id))
	eventually(t, "the execution is on its way", func() error {
		p, err := w.readProposal(t, id)
		if err == nil && p.TxHash == "" {
			err = errors.New("it is " + p.Status)
		}
		return err
	})
	dies(watch)
	w.hastenAll(t, workflows.TypeCryptoPayout)
	w.paidByOwners(t, c, id)
}
