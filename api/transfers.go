package api

import (
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// The values that transfers accept.
var (
	transferStatuses = []string{
		"created", "screening", "pending_approval", "queued", "signing", "broadcasting", "confirming", "completed", "cancelled", "rejected",
		"blocked", "failed",
	}
	transferKinds = []string{"internal", "external"}
)

// openTransfer reads and checks the request, starts the flow with the claim's id, and answers with the row that
// the flow stored.
func (s *server) openTransfer(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	r := exchange.TransferRequest{
		ID: c.objectID, RequestedBy: c.who.UserID, WalletID: f.id("from_wallet_id", false),
		Network: exchange.Network(f.oneOf("network", true, networkNames...)), Note: f.line("note", false, exchange.MaxTransferNote),
	}
	r.Amount = f.amount("amount", money.Asset(f.oneOf("asset", true, stablecoins...)), true)
	if f.has("max_fee") {
		most := f.charge("max_fee", r.Amount.Asset())
		r.MaxFee = &most
	}
	r.QuoteID = f.quoteID()
	s.recipient(f.object("recipient", true), &r)
	if err := f.done(); err != nil {
		return err
	}
	if s.Addresses[r.Network] == nil {
		return exchange.Errorf(exchange.CodeUnsupported, "Transfers on the network %s are not offered yet.", r.Network)
	}
	if err := s.offered(r.Network, r.Amount.Asset()); err != nil {
		return err
	}
	err = s.ask(c, exchange.IntendTransfer, r.ID, r.Terms(), func(intent uuid.UUID) error { return s.Flows.OpenTransfer(c.ctx, r, intent) })
	if err != nil {
		return err
	}
	t, err := s.Store.Transfer(c.ctx, c.view(), r.ID)
	if err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderLocation, "/api/v1/auth/transfers/"+t.ID.String())
	return c.json(http.StatusCreated, transferWire(t, c.who))
}

// recipient reads the recipient, which exactly one field must name.
func (s *server) recipient(f *form, r *exchange.TransferRequest) {
	if f == nil {
		return
	}
	names, given := []string{"user_id", "email", "phone_number", "wallet_id", "address"}, 0
	for _, name := range names {
		if f.has(name) {
			given++
		}
	}
	to := &r.Recipient
	to.UserID, to.WalletID = f.id("user_id", false), f.id("wallet_id", false)
	if text := f.line("email", false, exchange.MaxEmailLength); text != "" {
		var err error
		to.Email, err = exchange.ParseEmail(text)
		f.check("email", err)
	}
	if text := f.line("phone_number", false, maxPhoneText); text != "" {
		phone, err := exchange.ParsePhone(text)
		f.check("phone_number", err)
		to.Phone = phone.Digits()
	}
	address := f.line("address", false, maxAddressText)
	switch given {
	case 0:
		*f.bad = append(*f.bad, exchange.FieldError{Pointer: f.at, Code: "required", Message: "must have " + orList(names)})
	case 1:
	default:
		*f.bad = append(*f.bad, exchange.FieldError{Pointer: f.at, Code: "conflict", Message: "must have only one of " + orList(names)})
	}
	if address == "" {
		if text, _ := f.values["address"].(string); f.has("address") && strings.TrimSpace(text) == "" && given == 1 {
			f.fail("address", "required", "must not be empty")
		}
		return
	}
	check := s.Addresses[r.Network]
	if check == nil {
		return // the unknown network is refused elsewhere
	}
	var err error
	if to.Address, err = check(address); err != nil {
		f.fail("address", "address", exchange.MessageOf(addressError(r.Network, err)))
	}
}

func (s *server) getTransfer(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	return s.answerTransfer(c, id)
}

// answerTransfer answers with a transfer as it is now. It notifies no flow.
func (s *server) answerTransfer(c *call, id uuid.UUID) error {
	t, err := s.Store.Transfer(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.json(http.StatusOK, transferWire(t, c.who))
}

func (s *server) listTransfers(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.TransferFilter{
		Status: exchange.TransferStatus(q.oneOf("status", transferStatuses...)), Kind: exchange.TransferKind(q.oneOf("kind", transferKinds...)),
		Network: exchange.Network(q.oneOf("network", networkNames...)), WalletID: q.id("wallet_id"),
		Asset: money.Asset(q.oneOf("asset", stablecoins...)), Counterpart: q.id("counterparty_id"),
		CreatedFrom: q.time("created_from"), CreatedTo: q.time("created_to"),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "transfers", page, func(t exchange.Transfer) wireTransfer { return transferWire(t, c.who) })(s.Store.ListTransfers(c.ctx, c.view(), filter, page))
}

func (s *server) transferTimeline(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	events, err := s.Store.TransferTimeline(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.json(http.StatusOK, map[string]any{"transfer_id": id, "events": each(events, c.eventWire)})
}

// sent reads the transfer that a verb acts on. A user who only receives it may not act on it.
func (s *server) sent(c *call) (exchange.Transfer, error) {
	id, err := c.pathID("id")
	if err != nil {
		return exchange.Transfer{}, err
	}
	t, err := s.Store.SentTransfer(c.ctx, c.view(), id)
	return t, hideAbsence(err)
}

// endedTransfer replaces the error of a flow that has ended with one that names the transfer's state.
func (s *server) endedTransfer(c *call, id uuid.UUID, err error) error {
	if exchange.CodeOf(err) != exchange.CodeNotFound {
		return err
	}
	now, readErr := s.Store.Transfer(c.ctx, c.view(), id)
	if readErr != nil {
		return hideAbsence(readErr)
	}
	return exchange.Errorf(exchange.CodeStateConflict, "The transfer is %s (%s) and its flow has ended; it can't be changed any more.",
		now.Status, now.StatusDetail)
}

func (s *server) cancelTransfer(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	t, err := s.sent(c)
	if err != nil {
		return err
	}
	err = s.ask(c, exchange.IntendTransferCancel, t.ID, nil, func(intent uuid.UUID) error { return s.Flows.CancelTransfer(c.ctx, t.ID, intent) })
	if err != nil {
		return s.endedTransfer(c, t.ID, err)
	}
	return s.answerTransfer(c, t.ID)
}

// operateTransfer records an operator's decision and sends its id to the flow, which acts only on the row.
func (s *server) operateTransfer(verb string) func(*call) error {
	return func(c *call) error {
		f, err := c.body()
		if err != nil {
			return err
		}
		note := f.line("note", verb != verbRetry, maxNoteLength)
		if err := f.done(); err != nil {
			return err
		}
		t, err := s.sent(c)
		if err != nil {
			return err
		}
		if err := s.saveCommand(c, "transfer", t.ID, verb, note); err != nil {
			return err
		}
		if err := s.Flows.CommandTransfer(c.ctx, t.ID, c.objectID); err != nil {
			return s.endedTransfer(c, t.ID, err)
		}
		if verb != verbRetry {
			return s.answerTransfer(c, t.ID)
		}
		if t, err = s.Store.Transfer(c.ctx, c.view(), t.ID); err != nil {
			return hideAbsence(err)
		}
		w := transferWire(t, c.who)
		w.Retry = retryRequested
		return c.json(http.StatusAccepted, w)
	}
}

// equivalentWire is the value of an amount, at the house's valuation when the transfer was created.
type equivalentWire struct {
	Currency string `json:"currency"`
	Amount   string `json:"amount"`
	Rate     string `json:"rate"`
}

type wireTransfer struct {
	ID                uuid.UUID      `json:"id"`
	Kind              string         `json:"kind"`
	Status            string         `json:"status"`
	StatusDetail      string         `json:"status_detail"`
	Network           string         `json:"network"`
	Asset             string         `json:"asset"`
	Amount            string         `json:"amount"`
	RequestedBy       *uuid.UUID     `json:"requested_by"`
	SenderID          *uuid.UUID     `json:"sender_id"`
	FromWalletID      *uuid.UUID     `json:"from_wallet_id"`
	FromAddress       string         `json:"from_address"`
	RecipientID       *uuid.UUID     `json:"recipient_id"`
	ToWalletID        *uuid.UUID     `json:"to_wallet_id"`
	ToAddress         string         `json:"to_address"`
	Note              *string        `json:"note"`
	FiatEquivalent    equivalentWire `json:"fiat_equivalent"`
	Fee               *string        `json:"fee"`
	PricingProfileID  *uuid.UUID     `json:"pricing_profile_id"`
	FeeProfileID      *uuid.UUID     `json:"fee_profile_id"`
	FXRateQuoteID     *uuid.UUID     `json:"fx_rate_quote_id"`
	FiatCurrency      *string        `json:"fiat_currency"`
	FiatAmount        *string        `json:"fiat_amount"`
	FiatRate          *string        `json:"fiat_rate"`
	ApprovalsRequired int            `json:"approvals_required"`
	ApprovalsGiven    int            `json:"approvals_given"`
	ApprovalDigest    *string        `json:"approval_digest"`
	TxHash            *string        `json:"tx_hash"`
	CreatedAt         timestamp      `json:"created_at"`
	UpdatedAt         timestamp      `json:"updated_at"`
	Retry             string         `json:"retry,omitempty"`
	CompletedAt       *timestamp     `json:"completed_at"`
}

func equivalent(t exchange.Transfer) equivalentWire {
	return equivalentWire{string(t.Value.Asset()), t.Value.String(), t.Rate.String()}
}

// transferWire converts a transfer for a reader. Only officers who may approve it see the digest. The recipient sees
// what is public on the chain, the note, the quoted shillings, and only the id of the sender's account.
func transferWire(t exchange.Transfer, reader exchange.Principal) wireTransfer {
	w := wireTransfer{
		ID: t.ID, Kind: string(t.Kind), Status: string(t.Status), StatusDetail: t.StatusDetail, Network: string(t.Network),
		Asset: string(t.Amount.Asset()), Amount: t.Amount.String(), RequestedBy: optID(t.RequestedBy), SenderID: optID(t.SenderID),
		FromWalletID: optID(t.WalletID), FromAddress: t.FromAddress, RecipientID: optID(t.RecipientID), ToWalletID: optID(t.ToWalletID),
		ToAddress: t.ToAddress, Note: optText(t.Note), FiatEquivalent: equivalent(t), ApprovalsRequired: t.ApprovalsRequired,
		ApprovalsGiven: t.Approvals, TxHash: optText(t.TxHash), CreatedAt: stamp(t.CreatedAt), UpdatedAt: stamp(t.UpdatedAt),
		CompletedAt: optTime(t.CompletedAt), Fee: optAmount(t.Fee), PricingProfileID: optID(t.FeeProfileID), FeeProfileID: optID(t.FeeProfileID), FXRateQuoteID: optID(t.QuoteID),
	}
	if t.QuoteID != uuid.Nil {
		w.FiatCurrency, w.FiatAmount, w.FiatRate = optText(string(t.QuotedFiat.Asset())), optAmount(t.QuotedFiat), optText(t.QuotedRate.String())
	}
	if reader.Role.Staff() {
		w.ApprovalDigest = optText(t.Digest)
		return w
	}
	mine := t.SenderID == reader.UserID || (t.VendorID != uuid.Nil && t.VendorID == reader.VendorID)
	if !mine {
		w.RequestedBy, w.FromWalletID, w.Fee, w.PricingProfileID, w.FeeProfileID, w.FXRateQuoteID = nil, nil, nil, nil, nil, nil
	}
	return w
}
