package api

import (
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// wireException is money that arrived and fits no order.
type wireException struct {
	ID           uuid.UUID  `json:"id"`
	Kind         string     `json:"kind"`
	Status       string     `json:"status"`
	StatusDetail string     `json:"status_detail"`
	Rail         string     `json:"rail"`
	OrderID      *uuid.UUID `json:"order_id"`
	AttemptID    *uuid.UUID `json:"attempt_id"`
	LineID       *uuid.UUID `json:"statement_line_id"`
	OTCDepositID *uuid.UUID `json:"otc_deposit_id"`
	Receipt      *string    `json:"receipt"`
	Asset        string     `json:"asset"`
	Amount       string     `json:"amount"`
	Network      *string    `json:"network"`
	TxHash       *string    `json:"tx_hash"`
	FromAddress  *string    `json:"from_address"`
	Address      *string    `json:"address"`
	WalletID     *uuid.UUID `json:"wallet_id"`
	DepositID    *uuid.UUID `json:"chain_deposit_id"`
	MeantFor     *wireMeant `json:"meant_for"`
	Note         *string    `json:"note"`
	CreatedAt    timestamp  `json:"created_at"`
	UpdatedAt    timestamp  `json:"updated_at"`
}

// wireMeant is the wallet whose address was paid on another network.
type wireMeant struct {
	WalletID uuid.UUID `json:"wallet_id"`
	Network  string    `json:"network"`
	Address  string    `json:"address"`
}

func exceptionWire(e exchange.PaymentException) wireException {
	waits := exchange.WaitNothing
	switch e.Status {
	case exchange.ExcOpen:
		waits = exchange.WaitOperator
	case exchange.ExcRefunding:
		waits = exchange.WaitRefund
	case exchange.ExcAccepted, exchange.ExcRefunded, exchange.ExcCredited, exchange.ExcWrittenOff, exchange.ExcMatched:
	}
	p := e.Place
	w := wireException{
		ID: e.ID, Kind: string(e.Kind), Status: string(e.Status), StatusDetail: waits, Rail: string(e.Rail()), OrderID: optID(e.OrderID), LineID: optID(e.LineID), OTCDepositID: optID(e.DepositID),
		AttemptID: optID(e.AttemptID), Receipt: optText(e.Receipt), Asset: string(e.Amount.Asset()), Amount: e.Amount.String(),
		Network: optText(string(p.Network)), TxHash: optText(p.TxID), FromAddress: optText(p.From), Address: optText(p.Address), WalletID: optID(p.WalletID),
		DepositID: optID(p.DepositID), Note: optText(e.Note), CreatedAt: stamp(e.CreatedAt), UpdatedAt: stamp(e.UpdatedAt),
	}
	if p.MeantWalletID != uuid.Nil {
		w.MeantFor = &wireMeant{WalletID: p.MeantWalletID, Network: string(p.MeantNetwork), Address: p.MeantAddress}
	}
	return w
}

var (
	exceptionStatuses = names(exchange.ExceptionMachine.States())
	rails             = names(exchange.Rails())
	exceptionKinds    = names(exchange.ExceptionKinds())
	refundStatuses    = []string{"pending", "processing", "completed", "failed", "needs_review"}
)

func (s *server) listExceptions(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.ExceptionFilter{
		Status: exchange.ExceptionStatus(q.oneOf("status", exceptionStatuses...)), Kind: exchange.ExceptionKind(q.oneOf("kind", exceptionKinds...)),
		Asset: money.Asset(q.oneOf("asset", assetNames()...)), OrderID: q.id("order_id"), AttemptID: q.id("attempt_id"), LineID: q.id("statement_line_id"), DepositID: q.id("otc_deposit_id"), Rail: exchange.Rail(q.oneOf("rail", rails...)),
		CreatedFrom: q.time("created_from"), CreatedTo: q.time("created_to"),
	}
	if err := q.done(); err != nil {
		return err
	}
	view := c.view()
	filter.View = &view
	return listed(c, "payment_exceptions", page, c.exceptionWire)(s.Store.ListExceptions(c.ctx, filter, page))
}

// wireRefund is money on its way back to the payer. The phone number is masked, as everywhere: officers who need it
// look up the receipt at the mobile money operator.
type wireRefund struct {
	ID            uuid.UUID           `json:"id"`
	Rail          string              `json:"rail"`
	OrderID       *uuid.UUID          `json:"order_id"`
	AttemptID     *uuid.UUID          `json:"attempt_id"`
	ExceptionID   *uuid.UUID          `json:"payment_exception_id"`
	Status        string              `json:"status"`
	StatusDetail  string              `json:"status_detail"`
	Asset         string              `json:"asset"`
	Amount        string              `json:"amount"`
	Phone         *string             `json:"phone_number"`
	Network       *string             `json:"network"`
	Address       *string             `json:"address"`
	Payee         *wirePayee          `json:"payee"`
	BankID        *uuid.UUID          `json:"bank_account_id"`
	LineID        *uuid.UUID          `json:"statement_line_id"`
	BegunAt       *timestamp          `json:"begun_at"`
	Confirmations *[]wireConfirmation `json:"confirmations"`
	TxHash        *string             `json:"tx_hash"`
	Digest        *string             `json:"approval_digest"`
	RequestedBy   *uuid.UUID          `json:"requested_by"`
	AddressedBy   *uuid.UUID          `json:"addressed_by"`
	Reason        *string             `json:"reason"`
	Receipt       *string             `json:"receipt"`
	CreatedAt     timestamp           `json:"created_at"`
	UpdatedAt     timestamp           `json:"updated_at"`
	CompletedAt   *timestamp          `json:"completed_at"`
}

func refundWire(r exchange.Refund) wireRefund {
	w := wireRefund{
		ID: r.ID, Rail: string(r.Rail), OrderID: optID(r.OrderID), AttemptID: optID(r.AttemptID), ExceptionID: optID(r.ExceptionID),
		Status: string(r.Status), StatusDetail: r.WaitsFor(), Asset: string(r.Amount.Asset()), Amount: r.Amount.String(), Phone: optText(r.Phone.String()),
		Network: optText(string(r.Network)), Address: optText(r.Address), Digest: optText(r.Digest), RequestedBy: optID(r.RequestedBy),
		AddressedBy: optID(r.AddressedBy), Reason: optText(r.Reason), Receipt: optText(r.Receipt), CreatedAt: stamp(r.CreatedAt), UpdatedAt: stamp(r.UpdatedAt),
		CompletedAt: optTime(r.CompletedAt),
	}
	if r.Rail == exchange.RefundByBank {
		w.Payee, w.BankID, w.LineID, w.BegunAt = payeeWire(r.Payee), optID(r.BankID), optID(r.LineID), optTime(r.BegunAt)
	}
	if r.Rail == exchange.RefundOnChain && !r.SettledByPayout() {
		w.TxHash = w.Receipt
	}
	return w
}

func (s *server) listRefunds(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.RefundFilter{
		Status: exchange.RefundStatus(q.oneOf("status", refundStatuses...)), Asset: money.Asset(q.oneOf("asset", assetNames()...)),
		OrderID: q.id("order_id"), ExceptionID: q.id("payment_exception_id"), Rail: exchange.RefundRail(q.oneOf("rail", refundRails...)), CreatedFrom: q.time("created_from"), CreatedTo: q.time("created_to"),
	}
	if err := q.done(); err != nil {
		return err
	}
	view := c.view()
	filter.View = &view
	all, total, err := s.Store.ListRefunds(c.ctx, filter, page)
	if err != nil {
		return err
	}
	shown, err := s.refundWires(c, all...)
	if err != nil {
		return err
	}
	return c.list("refunds", shown, page, total)
}

// exceptionWire is an exception as the caller may see it. Parties don't see notes of staff and lines of the house's bank statements. Of
// the money of a customer, a merchant does not see where it came from, unless officers credited it to a merchant.
func (c *call) exceptionWire(e exchange.PaymentException) wireException {
	w := exceptionWire(e)
	if c.who.Role.Staff() {
		return w
	}
	if w.Note, w.MeantFor = nil, nil; e.LineID != uuid.Nil {
		w.LineID, w.Receipt = nil, nil
	}
	if c.who.Role.Merchant() && e.OrderID != uuid.Nil && (e.Status != exchange.ExcCredited || e.Amount.Asset() != money.KES) {
		w.FromAddress, w.Receipt, w.TxHash = nil, nil, nil
	}
	return w
}

// refundWire is a refund as the caller may see it. Parties don't see what officers need, and not the reason, which may be an
// officer's note or a refusal by screening. Of what goes back to a customer, a merchant does not see the recipient, and so not the
// transaction either.
func (c *call) refundWire(r exchange.Refund) wireRefund {
	w := refundWire(r)
	if c.who.Role.Staff() {
		return w
	}
	w.Digest, w.RequestedBy, w.AddressedBy, w.Reason, w.Payee, w.BankID, w.LineID, w.BegunAt = nil, nil, nil, nil, nil, nil, nil, nil
	if c.who.Role.Merchant() && r.OrderID != uuid.Nil {
		w.Phone, w.Address, w.Receipt, w.TxHash = nil, nil, nil, nil
	}
	return w
}

// showException answers with one exception that the caller may see.
func (s *server) showException(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	view := c.view()
	found, _, err := s.Store.ListExceptions(c.ctx, store.ExceptionFilter{ID: id, View: &view}, store.Page{Number: 1, Size: 1})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return notFound()
	}
	return c.json(http.StatusOK, c.exceptionWire(found[0]))
}

// showRefund answers with one refund that the caller may see.
func (s *server) showRefund(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	view := c.view()
	found, _, err := s.Store.ListRefunds(c.ctx, store.RefundFilter{ID: id, View: &view}, store.Page{Number: 1, Size: 1})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return notFound()
	}
	return s.answerRefund(c, found[0])
}

// refundWires are refunds as the caller may see them. Staff also see what officers say of the payment of those by bank.
func (s *server) refundWires(c *call, all ...exchange.Refund) ([]wireRefund, error) {
	shown := each(all, c.refundWire)
	if !c.who.Role.Staff() {
		return shown, nil
	}
	said, err := s.Store.RefundConfirmations(c.ctx, all)
	if err != nil {
		return nil, err
	}
	for i, r := range all {
		if r.Rail == exchange.RefundByBank {
			words := each(said[r.ID], confirmationWire)
			shown[i].Confirmations = &words
		}
	}
	return shown, nil
}

// answerRefund answers with a refund as the caller may see it.
func (s *server) answerRefund(c *call, r exchange.Refund) error {
	shown, err := s.refundWires(c, r)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, shown[0])
}
