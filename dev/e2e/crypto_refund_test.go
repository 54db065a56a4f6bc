package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/workflows"
)

// TestCryptoWithoutAnAddress refunds crypto of orders without a refund address. The refund waits until it gets one:
// the sender's address is never used instead.
func TestCryptoWithoutAnAddress(t *testing.T) {
	w := openBeside(t)
	t.Run("all", func(t *testing.T) {
		for _, story := range []struct {
			name string
			on   exchange.Network
			play func(*testing.T, *harness, demo.Node) order
		}{
			{"the customer says it", exchange.Ethereum, addressedByCustomer},
			{"an officer says it, and another one agrees", exchange.Tron, addressedByOfficer},
		} {
			n, runs := w.nodeOf(story.on)
			if !runs {
				t.Logf("%s: left out, because the stack runs no %s node", story.name, story.on)
				continue
			}
			t.Run(story.name, func(t *testing.T) {
				t.Parallel()
				story.play(t, w, n)
			})
		}
	})
	w.invariants(t)
	w.booksAgree(t)
}

// homeless opens a sale without a refund address and brings its crypto. The mobile money operator applies the given
// fault to the payout.
func (w *harness) homeless(t *testing.T, n demo.Node, fault string) order {
	t.Helper()
	s := sale{phone: newPhone()}
	w.fault(t, fault, "payout", s.phone)
	in := w.saleForm(t, n, &s)
	delete(in, "refund_address")
	o, err := place(t.Context(), w.amina(t), in, s.key)
	if err != nil {
		t.Fatal(err)
	}
	w.payIn(t, n, o, soldCrypto)
	return o
}

// stranded is a sale whose payee can't be paid and whose crypto can't go back.
func (w *harness) stranded(t *testing.T, n demo.Node) order {
	t.Helper()
	o := w.homeless(t, n, "unregistered")
	w.parkedWith(t, workflows.OffRampID(o.ID), workflows.ReasonRefundAddress)
	w.notSentBack(t, o)
	return o
}

// notSentBack checks that no refund transaction was signed for an order's crypto.
func (w *harness) notSentBack(t *testing.T, o order) {
	t.Helper()
	var signed int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM chain_attempts a JOIN chain_payments p ON p.id = a.payment_id
		WHERE p.purpose = 'refund' AND p.object_id IN (SELECT id FROM refunds WHERE order_id = $1)`, o.ID).Scan(&signed)
	if err != nil || signed != 0 {
		t.Errorf("%d refund transactions for the crypto of %s: %v", signed, o.ID, err)
	}
}

func addressedByCustomer(t *testing.T, w *harness, n demo.Node) order {
	o := w.stranded(t, n)
	back, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	name := func(address string) error {
		in := map[string]any{"refund_address": address}
		return w.amina(t).Do(t.Context(), http.MethodPatch, "/api/v1/auth/orders/"+o.ID.String()+"/refund-address", "", in, nil)
	}
	if err := name("not an address"); !is(err, http.StatusUnprocessableEntity) {
		t.Errorf("the response to an invalid address: %v", err)
	}
	if err := name(back); err != nil {
		t.Fatal(err)
	}
	w.cryptoRefund(t, n, o, exchange.DetailRefundOpen, back, soldCrypto)
	another, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	if err := name(another); !is(err, http.StatusConflict) {
		t.Errorf("the response to another address: %v", err)
	}
	return o
}

func addressedByOfficer(t *testing.T, w *harness, n demo.Node) order {
	o := w.stranded(t, n)
	back, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	w.sendCommand(t, w.operator(t), o.ID, "refund", map[string]any{"note": "the customer wrote to us", "address": back})
	w.parkedWith(t, workflows.OffRampID(o.ID), workflows.ReasonRefundSecond)
	w.agreed(t, o)
	w.cryptoRefund(t, n, o, exchange.DetailRefundOpen, back, soldCrypto)
	return o
}

// agreed has a second officer approve a sale's refund, after the officer who requested it was refused.
func (w *harness) agreed(t *testing.T, o order) {
	t.Helper()
	w.parkedWith(t, workflows.OffRampID(o.ID), workflows.ReasonRefundSecond)
	w.notSentBack(t, o)
	path := "/api/v1/auth/refunds/" + w.refundOf(t, o).String() + "/approve"
	if err := insist(t.Context(), w.operator(t), path, uuid.NewString(), seen(t, w.operator(t), path), nil); !is(err, http.StatusConflict) && !is(err, http.StatusForbidden) {
		t.Errorf("the response to the requester's own approval: %v", err)
	}
	w.notSentBack(t, o)
	if err := insist(t.Context(), w.as(t, secondOfficer), path, uuid.NewString(), seen(t, w.as(t, secondOfficer), path), nil); err != nil {
		t.Fatal(err)
	}
}

// refundOf returns the refund of a sale's crypto.
func (w *harness) refundOf(t *testing.T, o order) (id uuid.UUID) {
	t.Helper()
	if err := w.db.QueryRowContext(t.Context(), `SELECT id FROM refunds WHERE order_id = $1 AND rail = 'chain'`, o.ID).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// parkedWith waits until a flow is parked with a reason, and finds it the way operators do.
func (w *harness) parkedWith(t *testing.T, flow string, why workflows.Reason) {
	t.Helper()
	query := fmt.Sprintf("KivukoNeedsAttention = true AND %s = '%s' AND WorkflowId = '%s' AND ExecutionStatus = 'Running'", workflows.AttrReason.GetName(), why, flow)
	eventually(t, flow+" is parked with "+string(why), func() error {
		list, err := w.temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		if err == nil && len(list.GetExecutions()) != 1 {
			err = errors.New("visibility does not show it")
		}
		return err
	})
}

// ended waits until a flow has ended.
func (w *harness) ended(t *testing.T, flow string) {
	t.Helper()
	eventually(t, flow+" is over", func() error {
		d, err := w.temporal.DescribeWorkflowExecution(t.Context(), flow, "")
		if err == nil && d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			err = errors.New("it is " + d.GetWorkflowExecutionInfo().GetStatus().String())
		}
		return err
	})
}
