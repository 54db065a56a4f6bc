package api

import (
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/workflows"
)

// saleApprovalRoutes are the routes for decisions about sales whose crypto leaves a wallet in our custody.
func (s *server) saleApprovalRoutes() []route {
	decide := func(action exchange.ApprovalAction) route {
		return route{
			method: post, path: "/api/v1/auth/orders/{id}/" + string(action), action: exchange.ActApprove, limit: limitGeneral,
			key: keyRequired, timeout: flowTimeout, handle: s.decideSale(action),
		}
	}
	return []route{decide(exchange.Approve), decide(exchange.Reject)}
}

// decideSale takes an officer's decision about a sale. The flow's handler also takes those from the Web UI.
func (s *server) decideSale(action exchange.ApprovalAction) func(*call) error {
	return func(c *call) error {
		id, f, err := c.idAndBody()
		if err != nil {
			return err
		}
		note, digest := f.line("note", action == exchange.Reject, maxNoteLength), f.line("digest", true, digestLength)
		if err := f.done(); err != nil {
			return err
		}
		o, err := s.Store.Order(c.ctx, c.view(), id)
		if err != nil {
			return hideAbsence(err)
		}
		k, token := s.ownTicket(c, exchange.ApproveSale, o.ID, action, note)
		k.Amount, k.Digest = o.Price.Crypto, digest
		if err = s.Store.IssueSaleTicket(c.ctx, k, c.who); err != nil {
			return err
		}
		refusal := s.unlessCounted(c, s.Flows.DecideRefund(c.ctx, o.ID, uuid.Nil, c.objectID, action, token))
		if exchange.CodeOf(refusal) == exchange.CodeNotFound {
			refusal = exchange.Errorf(exchange.CodeStateConflict, "The order is %s and its flow has ended; it can't be approved or rejected any more.", o.Status)
		}
		if refusal != nil {
			return refusal
		}
		return s.answerOrder(c, o.ID)
	}
}

// wirePendingSale is a sale from a wallet in our custody that waits for the caller.
type wirePendingSale struct {
	ObjectType        string    `json:"object_type"`
	ObjectID          uuid.UUID `json:"object_id"`
	WorkflowID        string    `json:"workflow_id"`
	RequestedBy       uuid.UUID `json:"requested_by"`
	Network           string    `json:"network"`
	Asset             string    `json:"asset"`
	Amount            string    `json:"amount"`
	WalletID          uuid.UUID `json:"wallet_id"`
	ToAddress         string    `json:"to_address"`
	FiatAmount        string    `json:"fiat_amount"`
	FiatCurrency      string    `json:"fiat_currency"`
	PaymentMethod     string    `json:"payment_method"`
	Payee             string    `json:"payee"`
	Digest            string    `json:"digest"`
	ApprovalsRequired int       `json:"approvals_required"`
	ApprovalsGiven    int       `json:"approvals_given"`
	CreatedAt         timestamp `json:"created_at"`
	ExpiresAt         timestamp `json:"expires_at"`
}

func pendingSaleWire(p store.PendingSale) wirePendingSale {
	o := p.Order
	payee := o.Payee()
	if o.PaymentMethod == exchange.PaymentMethodMomo {
		payee = o.PaymentPhone.String()
	}
	return wirePendingSale{
		ObjectType: string(exchange.ApproveSale), ObjectID: o.ID, WorkflowID: workflows.OffRampID(o.ID), RequestedBy: o.CustomerID, Network: string(o.Network),
		Asset: string(o.Asset), Amount: o.Price.Crypto.String(), WalletID: o.FundWalletID, ToAddress: o.EscrowAddress, FiatAmount: o.Price.Fiat.String(),
		FiatCurrency: string(o.Price.Fiat.Asset()), PaymentMethod: o.PaymentMethod, Payee: payee, Digest: p.Digest, ApprovalsRequired: p.Needed,
		ApprovalsGiven: p.Approvals, CreatedAt: stamp(o.CreatedAt), ExpiresAt: stamp(o.ExpiresAt),
	}
}
