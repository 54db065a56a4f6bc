package workflows_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// askOfficers has the crypto come from the customer's wallet in our custody, from where officers have to let it go.
func (w *saleHarness) askOfficers() {
	w.fromWallet()
	storetest.Exec(w.t, w.store.Store, `UPDATE approval_rules SET one_above = 100, two_above = 10000 WHERE object_type = 'transfer'`)
}

// decide has an officer decide about the sale, as the API does.
func (w *saleHarness) decide(name string, action exchange.ApprovalAction) func() {
	return func() {
		update := workflows.UpdateReject
		if action == exchange.Approve {
			update = workflows.UpdateApprove
		}
		w.env.UpdateWorkflow(update, name, w.answer(name), workflows.ApprovalRef{Token: w.saleTicket(action)})
	}
}

// saleTicket gives a new officer the right to one decision about the sale.
func (w *saleHarness) saleTicket(action exchange.ApprovalAction) string {
	token, who, now, o := uuid.NewString(), storetest.User(w.t, w.store.Store, exchange.RoleTreasury), w.env.Now(), w.order()
	if o.StatusDetail != exchange.WaitApproval {
		w.t.Errorf("the order waits for %s", o.StatusDetail)
	}
	err := w.store.IssueSaleTicket(w.t.Context(), exchange.ApprovalTicket{
		ID: uuid.New(), OfficerID: who.ID, ObjectType: exchange.ApproveSale, ObjectID: o.ID, Action: action, Amount: o.Price.Crypto, Digest: o.FundingIntent(),
		Channel: exchange.ChannelAPI, TokenHash: sha256.Sum256([]byte(token)), CreatedAt: now, ExpiresAt: now.Add(exchange.ApprovalTokenTTL),
	}, storetest.PrincipalOf(who))
	if err != nil {
		w.t.Errorf("a token for the sale: %v", err)
	}
	return token
}

// A sale from a wallet in our custody waits for officers with its crypto held, and no longer than the order lives.
func TestSaleWaitsForOfficers(t *testing.T) {
	t.Parallel()
	const min = time.Minute
	for _, s := range []sell{
		{
			name: "approved", status: sold, detail: none, check: every(responded("approve", ""), tried(1)),
			set: func(w *saleHarness) {
				w.askOfficers()
				w.at(20*min, w.decide("approve", exchange.Approve))
			},
		},
		{
			name: "approved by a signal", status: sold, detail: none, check: tried(1),
			set: func(w *saleHarness) {
				w.askOfficers()
				w.at(20*min, func() {
					w.env.SignalWorkflow(workflows.SignalApprove, workflows.OperatorSignal{Token: w.saleTicket(exchange.Approve)})
				})
			},
		},
		{
			name: "rejected", status: exchange.OrderCancelled, detail: exchange.DetailRejected, check: every(responded("reject", ""), kept),
			set: func(w *saleHarness) {
				w.askOfficers()
				w.at(20*min, w.decide("reject", exchange.Reject))
			},
		},
		{
			name: "approved with a wrong token, then by nobody", status: exchange.OrderCancelled, detail: exchange.DetailExpired,
			check: every(responded("forged", exchange.CodeNotFound), kept),
			set: func(w *saleHarness) {
				w.askOfficers()
				w.at(5*min, func() {
					w.env.UpdateWorkflow(workflows.UpdateApprove, "forged", w.answer("forged"), workflows.ApprovalRef{Token: uuid.NewString()})
				})
			},
		},
		{
			name: "decided by nobody", status: exchange.OrderCancelled, detail: exchange.DetailExpired, check: kept,
			set: func(w *saleHarness) { w.askOfficers() },
		},
		{
			name: "cancelled by the customer", status: exchange.OrderCancelled, detail: exchange.DetailCancelled, check: every(responded("cancel", ""), kept),
			set: func(w *saleHarness) {
				w.askOfficers()
				w.at(5*min, w.cancel)
			},
		},
	} {
		t.Run(s.name, s.play)
	}
}
