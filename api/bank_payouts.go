package api

import (
	"encoding/json"
	"net/http"
	"regexp"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

var bankStatuses = names(exchange.OrderPayoutMachine.States())

func (s *server) bankRoutes() []route {
	const auth = "/api/v1/auth"
	return []route{
		{method: get, path: auth + "/bank-payouts", action: exchange.ActReadBank, limit: limitGeneral, handle: s.listBankPayouts},
		{method: get, path: auth + "/bank-payouts/{id}", action: exchange.ActReadBank, limit: limitGeneral, handle: s.getBankPayout},
		{
			method: post, path: auth + "/orders/{id}/confirm-bank-payout", action: exchange.ActConfirmBank, limit: limitGeneral, key: keyRequired,
			handle: s.confirmBankPayout,
		},
		{
			method: post, path: auth + "/orders/{id}/refuse-bank-payout", action: exchange.ActConfirmBank, limit: limitGeneral, key: keyRequired,
			handle: s.refuseBankPayout,
		},
	}
}

// wireConfirmation is an officer's attestation that the bank has paid.
type wireConfirmation struct {
	ID        uuid.UUID `json:"id"`
	OfficerID uuid.UUID `json:"officer_id"`
	Reference string    `json:"reference"`
	PaidOn    string    `json:"paid_on"`
	Amount    string    `json:"amount"`
	Note      *string   `json:"note"`
	CreatedAt timestamp `json:"created_at"`
}

// wireBankPayout is what an officer needs to pay an order at a bank. Only officers see it, because it shows the
// customer's account number.
type wireBankPayout struct {
	OrderID       uuid.UUID          `json:"order_id"`
	Status        string             `json:"status"`
	StatusDetail  string             `json:"status_detail"`
	Amount        string             `json:"amount"`
	Currency      string             `json:"currency"`
	BankID        *uuid.UUID         `json:"bank_account_id"`
	Reference     string             `json:"payment_reference"` // to put on the payment
	AccountName   string             `json:"beneficiary_account_name"`
	AccountNumber string             `json:"beneficiary_account_number"`
	BankName      string             `json:"beneficiary_bank_name"`
	BankCode      *string            `json:"beneficiary_bank_code"`
	BankBranch    *string            `json:"beneficiary_bank_branch"`
	BankAddress   *string            `json:"beneficiary_bank_address"`
	SwiftCode     *string            `json:"beneficiary_swift_code"`
	SenderName    *string            `json:"sender_name"`
	SenderCountry *string            `json:"sender_country"`
	Second        bool               `json:"second_person_required"`
	Confirmations []wireConfirmation `json:"confirmations"`
	BankReference *string            `json:"bank_reference"` // of the payment that completed the order
	CreatedAt     timestamp          `json:"created_at"`
	CompletedAt   *timestamp         `json:"completed_at"`
}

func bankPayoutWire(b exchange.BankPayout) wireBankPayout {
	payee := b.Order.Beneficiary
	w := wireBankPayout{
		OrderID: b.OrderID, Status: string(b.Status), StatusDetail: b.WaitsFor(), Amount: b.Amount.String(), Currency: string(b.Amount.Asset()),
		BankID: optID(b.BankID), Reference: b.Order.PaymentReference,
		AccountName: payee.AccountName, AccountNumber: payee.AccountNumber, BankName: payee.BankName, BankCode: optText(payee.BankCode),
		BankBranch: optText(payee.BankBranch), BankAddress: optText(payee.BankAddress), SwiftCode: optText(payee.SwiftCode),
		SenderName: optText(b.Order.SenderName), SenderCountry: optText(b.Order.SenderCountry), Second: b.SecondNeeded,
		Confirmations: []wireConfirmation{}, BankReference: optText(b.Receipt), CreatedAt: stamp(b.CreatedAt), CompletedAt: optTime(b.CompletedAt),
	}
	for _, c := range b.Confirmations {
		w.Confirmations = append(w.Confirmations, confirmationWire(c))
	}
	return w
}

func confirmationWire(c exchange.BankConfirmation) wireConfirmation {
	return wireConfirmation{
		ID: c.ID, OfficerID: c.OfficerID, Reference: c.Reference, PaidOn: c.PaidOn.Format(time.DateOnly), Amount: c.Amount.String(), Note: optText(c.Note),
		CreatedAt: stamp(c.CreatedAt),
	}
}

func (s *server) listBankPayouts(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	status := exchange.PayoutStatus(q.oneOf("status", bankStatuses...))
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "bank_payouts", page, bankPayoutWire)(s.Store.BankPayouts(c.ctx, status, page))
}

func (s *server) getBankPayout(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, bankPayoutWire)(s.Store.BankPayout(c.ctx, id))
}

// bankReference is what a bank's reference may look like: printable ASCII, of which letters and digits count.
var bankReference = regexp.MustCompile(`^[ -~]*[0-9A-Za-z][ -~]*$`)

// confirmBankPayout stores an officer's attestation that the bank has paid. The last attestation that the amount requires
// completes the order in the same transaction; an earlier one answers 202. The order's flow reads the rows, so a late signal does no harm.
func (s *server) confirmBankPayout(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	said := exchange.BankConfirmation{
		ID: c.objectID, OrderID: id, OfficerID: c.who.UserID, Reference: f.line("reference", true, exchange.MaxBankReference), PaidOn: f.date("paid_on"),
		Amount: f.amount("amount", money.KES, true), Note: f.line("note", false, exchange.MaxBankNote),
	}
	if said.Reference != "" && !bankReference.MatchString(said.Reference) {
		f.fail("reference", "format", "must be printable ASCII characters, with at least one letter or digit")
	}
	if err := f.done(); err != nil {
		return err
	}
	if _, err := s.Store.SaveBankConfirmation(c.ctx, said, c.who); err != nil {
		return hideAbsence(err)
	}
	s.notifyBankFlow(c, id, c.objectID)
	b, err := s.Store.BankPayout(c.ctx, id)
	if err != nil {
		return hideAbsence(err)
	}
	if b.WaitsFor() == exchange.WaitBankSecond {
		c.fc.Set(fiber.HeaderLocation, "/api/v1/auth/bank-payouts/"+id.String())
		return c.json(http.StatusAccepted, wirePendingChange{[]wireChange{}, []string{c.fc.Path()}})
	}
	return c.json(http.StatusOK, bankPayoutWire(b))
}

// refuseBankPayout proposes that the bank did not pay an order. When another officer confirms it, the order's flow waits for an operator's decision.
func (s *server) refuseBankPayout(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	note := f.line("note", true, exchange.MaxBankNote)
	if err := f.done(); err != nil {
		return err
	}
	waits, err := s.Store.ProposeBankPayoutRefusal(c.ctx, id, note, c.who)
	if err != nil {
		return hideAbsence(err)
	}
	return answerPending(c, waits)
}

// passBankRefusalOn has the flow of an order that two officers say was not paid by bank read its row. It finds by itself what it was not told.
func (s *server) passBankRefusalOn(c *call, change exchange.ControlChange) {
	if change.Kind != exchange.ControlBankPayoutRefusal || change.Status != exchange.ControlConfirmed {
		return
	}
	var about struct {
		OrderID uuid.UUID `json:"order_id"`
	}
	if err := json.Unmarshal(change.Change, &about); err != nil {
		s.log.Warn("the flow of an order was not notified that it was not paid by bank", "change", change.ID, "error", err)
		return
	}
	s.notifyBankFlow(c, about.OrderID, change.ID)
}

// notifyBankFlow wakes the order's flow, which also polls. The id is that of what officers said.
func (s *server) notifyBankFlow(c *call, order, said uuid.UUID) {
	if err := s.Flows.ConfirmBank(c.ctx, order, said); err != nil {
		s.log.Warn("an order's flow was not notified of its payment by bank", "order", order, "error", err)
	}
}
