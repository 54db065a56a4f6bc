package api

import (
	"fmt"
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// openOrder opens an on-ramp order: it reads and checks the request, starts the flow with the claim's
// id, and answers with the row that the flow stored.
func (s *server) openOrder(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	offerID := f.id("offer_id", true)
	f.decimalText("crypto_amount", false)
	f.decimalText("fiat_amount", false)
	address := f.line("wallet_address", false, maxAddressText)
	phone := f.line("payment_phone_number", false, maxPhoneText)
	expected := f.rate("expected_rate", false)
	kind := f.oneOf("order_type", false, string(exchange.OnRampBuy), string(exchange.OnRampSell), string(exchange.OffRampBuy), string(exchange.OffRampSell))
	switch {
	case f.has("crypto_amount") && f.has("fiat_amount"):
		f.fail("fiat_amount", "conflict", "must be left out when crypto_amount is given")
	case !f.has("crypto_amount") && !f.has("fiat_amount"):
		f.fail("crypto_amount", "required", "is required, or fiat_amount instead")
	}
	request := exchange.OrderRequest{
		ID: c.objectID, CustomerID: c.who.UserID, OfferID: offerID, ExpectedRate: expected,
		ExpiresAt: s.now().UTC().Add(exchange.OrderLife),
	}
	if phone != "" {
		parsed, err := exchange.ParsePhone(phone)
		f.check("payment_phone_number", err)
		request.Phone = parsed.Digits()
	}
	if offerID != uuid.Nil {
		if err := s.fitOffer(c, f, &request, address); err != nil {
			return err
		}
	}
	if err := f.done(); err != nil {
		return err
	}
	if kind != "" && kind != string(exchange.OnRampBuy) {
		return exchange.Errorf(exchange.CodeUnsupported, "Orders of type %s are not offered yet; use ON_RAMP_BUY.", kind)
	}
	if err := s.Flows.OpenOrder(c.ctx, request, c.who); err != nil {
		return err
	}
	order, err := s.Store.Order(c.ctx, c.view(), request.ID)
	if err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderLocation, "/api/v1/auth/orders/"+order.ID.String())
	return c.json(http.StatusCreated, orderWire(order, c.who))
}

const maxAddressText = 128

// fitOffer reads what depends on the offer: amounts have its asset's places, the address its network.
func (s *server) fitOffer(c *call, f *form, r *exchange.OrderRequest, address string) error {
	offer, err := s.Store.Offer(c.ctx, store.ViewOf(c.who, exchange.ActListOffers), r.OfferID)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		f.fail("offer_id", "not_found", "is not the id of an open offer")
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.offered(offer.Network, offer.Asset); err != nil {
		return err
	}
	r.Seen = exchange.SeenOffer{Network: offer.Network, Asset: offer.Asset, MerchantID: offer.VendorID}
	r.Crypto = f.optionalAmount("crypto_amount", offer.Asset)
	r.Fiat = f.optionalAmount("fiat_amount", money.KES)
	if f.has("fiat_amount") && !r.Fiat.Equal(r.Fiat.FloorWhole()) {
		f.fail("fiat_amount", "precision", "must be whole shillings, because mobile money moves no cents")
	}
	if address == "" {
		return nil
	}
	check := s.Addresses[offer.Network]
	if check == nil {
		return exchange.Errorf(exchange.CodeUnsupported, "Orders on the network %s are not offered yet.", offer.Network)
	}
	if r.WalletAddress, err = check(address); err != nil {
		f.fail("wallet_address", "address", exchange.MessageOf(addressError(offer.Network, err)))
	}
	return nil
}

// addressError words a refused address for people, unless the network's own check did.
func addressError(n exchange.Network, err error) error {
	if exchange.CodeOf(err) == exchange.CodeInternal {
		return exchange.Wrap(exchange.CodeInvalid, err, "is not a valid address on the network %s", n)
	}
	return err
}

// optionalAmount reads an amount whose form decimalText has checked.
func (f *form) optionalAmount(name string, asset money.Asset) money.Amount {
	if _, ok := f.values[name].(string); !ok {
		return money.Amount{}
	}
	return f.amount(name, asset, false)
}

func (s *server) getOrder(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	o, err := s.Store.Order(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.json(http.StatusOK, orderWire(o, c.who))
}

func (c *call) orders(in []exchange.Order) []wireOrder {
	return each(in, func(o exchange.Order) wireOrder { return orderWire(o, c.who) })
}

// orderStatuses and the like are the words that filters take.
var (
	orderStatuses = []string{"pending", "processing", "confirming", "completed", "cancelled", "failed"}
	orderTypes    = []string{"ON_RAMP_BUY", "ON_RAMP_SELL", "OFF_RAMP_BUY", "OFF_RAMP_SELL"}
	orderSubtypes = []string{
		"standard_onramp", "standard_offramp", "remittance_offramp", "custodial_remittance_offramp", "treasury_offramp",
	}
)

func (s *server) listOrders(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.OrderFilter{
		Status: exchange.OrderStatus(q.oneOf("status", orderStatuses...)), Type: exchange.OrderType(q.oneOf("order_type", orderTypes...)),
		Subtype: exchange.OrderSubtype(q.oneOf("order_subtype", orderSubtypes...)), OfferID: q.id("offer_id"),
		CreatedFrom: q.time("created_from"), CreatedTo: q.time("created_to"),
	}
	if err := q.done(); err != nil {
		return err
	}
	orders, total, err := s.Store.ListOrders(c.ctx, c.view(), filter, page)
	if err != nil {
		return err
	}
	return c.list("orders", c.orders(orders), page, total)
}

func (s *server) searchOrders(c *call) error {
	q := c.query()
	text := q.text("query", true)
	page := q.page(searchPage)
	if err := q.done(); err != nil {
		return err
	}
	orders, total, err := s.Store.SearchOrders(c.ctx, c.view(), text, page)
	if err != nil {
		return err
	}
	return c.bare(c.orders(orders), total)
}

func (s *server) orderTimeline(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	events, err := s.Store.OrderTimeline(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.json(http.StatusOK, map[string]any{"order_id": id, "events": each(events, eventWire)})
}

// visible reads the order that a verb acts on.
func (s *server) visible(c *call) (exchange.Order, error) {
	id, err := c.pathID("id")
	if err != nil {
		return exchange.Order{}, err
	}
	o, err := s.Store.Order(c.ctx, c.view(), id)
	return o, hideAbsence(err)
}

// told answers a verb with the order as it is now.
func (s *server) told(c *call, id uuid.UUID) error {
	o, err := s.Store.Order(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.json(http.StatusOK, orderWire(o, c.who))
}

// ended words the answer of a flow that is over: what the order became.
func (s *server) ended(c *call, o exchange.Order, err error) error {
	if exchange.CodeOf(err) != exchange.CodeNotFound {
		return err
	}
	now, readErr := s.Store.Order(c.ctx, c.view(), o.ID)
	if readErr != nil {
		return readErr
	}
	return exchange.Errorf(exchange.CodeStateConflict, "The order is %s (%s) and its flow has ended; nothing can be done with it any more.",
		now.Status, now.StatusDetail)
}

func (s *server) cancelOrder(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	o, err := s.visible(c)
	if err != nil {
		return err
	}
	if err := s.Flows.CancelOrder(c.ctx, o.ID, c.objectID, c.who); err != nil {
		return s.ended(c, o, err)
	}
	return s.told(c, o.ID)
}

func (s *server) retryPayment(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	o, err := s.visible(c)
	if err != nil {
		return err
	}
	if err := s.Flows.RetryPayment(c.ctx, o.ID, c.objectID, c.who); err != nil {
		return s.ended(c, o, err)
	}
	return s.told(c, o.ID)
}

// The verbs of operators on parked flows.
const (
	verbRetry   = "retry"
	verbRefund  = "refund"
	verbResolve = "resolve"
)

// operate records an operator's decision and hands its id to the flow, which acts on the row alone.
func (s *server) operate(verb string) func(*call) error {
	return func(c *call) error {
		f, err := c.body()
		if err != nil {
			return err
		}
		// A retry changes nothing about the money; the other verbs must say why.
		note := f.line("note", verb != verbRetry, maxNoteLength)
		if err := f.done(); err != nil {
			return err
		}
		o, err := s.visible(c)
		if err != nil {
			return err
		}
		command := exchange.OperatorCommand{
			ID: c.objectID, ObjectType: "order", ObjectID: o.ID, Verb: verb, Note: note, ActorID: c.who.UserID, CreatedAt: s.now().UTC(),
		}
		// The id is the claim's, so a retried request finds its own row.
		if err := s.Store.SaveCommand(c.ctx, command, c.who); err != nil && exchange.CodeOf(err) != exchange.CodeConflict {
			return err
		}
		if err := s.command(c, o.ID, command.ID); err != nil {
			return s.ended(c, o, err)
		}
		return s.told(c, o.ID)
	}
}

// command hands an operator's decision to the order's flow. Where that is over, or waits for no decision, it
// goes to the flows that watch over late money of the order's prompts: to the first that takes it. A
// decision that was taken up before counts only once, so it is not handed on.
func (s *server) command(c *call, order, command uuid.UUID) error {
	err := s.Flows.Command(c.ctx, order, command)
	code := exchange.CodeOf(err)
	if code != exchange.CodeNotFound && code != exchange.CodeStateConflict {
		return err
	}
	used, readErr := s.Store.CommandUsed(c.ctx, command)
	switch {
	case readErr != nil:
		return readErr
	case used && code == exchange.CodeNotFound:
		return exchange.Errorf(exchange.CodeStateConflict, "This command was taken up before; the order's timeline shows what came of it.")
	case used:
		return err
	}
	return s.commandLate(c, order, command, err)
}

// commandLate asks the watches over late money, and over late words about payouts, and returns the refusal that says most when none obeys.
func (s *server) commandLate(c *call, order, command uuid.UUID, refusal error) error {
	prompts, err := s.Store.Collections(c.ctx, order)
	if err != nil {
		return err
	}
	payouts, err := s.Store.Payouts(c.ctx, order)
	if err != nil {
		return err
	}
	for _, a := range append(prompts, payouts...) {
		err := s.Flows.CommandLate(c.ctx, a.ID, command)
		switch exchange.CodeOf(err) {
		case exchange.CodeNotFound: // nobody watches over this one
		case exchange.CodeStateConflict:
			refusal = err
		default:
			return err
		}
	}
	return refusal
}

// noBody takes an empty body or an empty object.
func (c *call) noBody() error {
	f, err := c.body()
	if err != nil {
		return err
	}
	return f.done()
}

// wireOrder is an order with every field of interface.md, and network, rate and status_detail beside them.
type wireOrder struct {
	ID                uuid.UUID      `json:"id"`
	CustomerID        uuid.UUID      `json:"customer_id"`
	VendorID          uuid.UUID      `json:"vendor_id"`
	OfferID           *uuid.UUID     `json:"offer_id,omitempty"`
	Asset             *string        `json:"asset"`
	Network           string         `json:"network"`
	CryptoAmount      string         `json:"crypto_amount"`
	USDTAmount        *string        `json:"usdt_amount"`
	FiatAmount        string         `json:"fiat_amount"`
	FiatCurrency      string         `json:"fiat_currency"`
	Rate              string         `json:"rate"`
	WalletAddress     string         `json:"wallet_address"`
	Status            string         `json:"status"`
	StatusDetail      string         `json:"status_detail"`
	PaymentMethod     string         `json:"payment_method"`
	PaymentTxnID      NullableString `json:"payment_txn_id"`
	BlockchainTxnHash NullableString `json:"blockchain_txn_hash"`
	ExpiresAt         timestamp      `json:"expires_at"`
	CompletedAt       NullableTime   `json:"completed_at"`
	CreatedAt         timestamp      `json:"created_at"`
	UpdatedAt         timestamp      `json:"updated_at"`
	DeletedAt         NullableTime   `json:"deleted_at"`
	MerchantRequestID NullableString `json:"merchant_request_id"`
	CheckoutRequestID NullableString `json:"checkout_request_id"`
	MomoReceiptNumber NullableString `json:"momo_receipt_number"`
	PaymentPhone      NullableString `json:"payment_phone_number"`
	OrderType         string         `json:"order_type"`
	OrderSubtype      string         `json:"order_subtype"`
	SenderName        NullableString `json:"sender_name"`
	SenderCountry     NullableString `json:"sender_country"`
	SenderPhone       NullableString `json:"sender_phone"`
	BankName          NullableString `json:"beneficiary_bank_name"`
	BankCode          NullableString `json:"beneficiary_bank_code"`
	BankBranch        NullableString `json:"beneficiary_bank_branch"`
	BankAddress       NullableString `json:"beneficiary_bank_address"`
	AccountName       NullableString `json:"beneficiary_account_name"`
	AccountNumber     NullableString `json:"beneficiary_account_number"`
	SwiftCode         NullableString `json:"beneficiary_swift_code"`
	EscrowAddress     NullableString `json:"escrow_wallet_address"`
	EscrowNetwork     NullableString `json:"escrow_network"`
	EscrowReference   NullableString `json:"escrow_reference"`
	DepositTxHash     NullableString `json:"deposit_tx_hash"`
	DepositConfirms   int            `json:"deposit_confirmations"`
	DepositDetectedAt NullableTime   `json:"deposit_detected_at"`
}

// orderWire converts an order for a reader. Customers and staff see the payer's number in full; the
// vendor, who needs it for nothing, sees it masked, and not the operator's checkout id, which holds it.
func orderWire(o exchange.Order, reader exchange.Principal) wireOrder {
	amount := o.Price.Crypto.String()
	w := wireOrder{
		ID: o.ID, CustomerID: o.CustomerID, VendorID: o.VendorID, OfferID: optID(o.OfferID), Asset: optText(string(o.Asset)),
		Network: string(o.Network), CryptoAmount: amount, USDTAmount: &amount, FiatAmount: o.Price.Fiat.String(),
		FiatCurrency: string(o.Price.Fiat.Asset()), Rate: o.Rate.String(), WalletAddress: o.WalletAddress,
		Status: string(o.Status), StatusDetail: o.StatusDetail, PaymentMethod: o.PaymentMethod,
		PaymentTxnID: nullString(o.PaymentTxnID), BlockchainTxnHash: nullString(o.TxHash),
		ExpiresAt: stamp(o.ExpiresAt), CompletedAt: nullTime(o.CompletedAt), CreatedAt: stamp(o.CreatedAt),
		UpdatedAt: stamp(o.UpdatedAt), DeletedAt: nullTime(o.DeletedAt),
		MerchantRequestID: nullString(o.MerchantRequest), CheckoutRequestID: nullString(o.CheckoutRequest),
		MomoReceiptNumber: nullString(o.MomoReceipt), PaymentPhone: nullString(o.PaymentPhone.Digits()),
		OrderType: string(o.Type), OrderSubtype: string(o.Subtype),
		SenderName: nullString(o.SenderName), SenderCountry: nullString(o.SenderCountry), SenderPhone: nullString(o.SenderPhone),
		BankName: nullString(o.Beneficiary.BankName), BankCode: nullString(o.Beneficiary.BankCode),
		BankBranch: nullString(o.Beneficiary.BankBranch), BankAddress: nullString(o.Beneficiary.BankAddress),
		AccountName: nullString(o.Beneficiary.AccountName), AccountNumber: nullString(o.Beneficiary.AccountNumber),
		SwiftCode: nullString(o.Beneficiary.SwiftCode), EscrowAddress: nullString(o.EscrowAddress),
		EscrowNetwork: nullString(o.EscrowNetwork), EscrowReference: nullString(o.EscrowReference),
		DepositTxHash: nullString(o.DepositTxHash), DepositConfirms: o.DepositConfirms, DepositDetectedAt: nullTime(o.DepositAt),
	}
	if reader.Role.Merchant() && o.CustomerID != reader.UserID {
		w.PaymentPhone, w.CheckoutRequestID = nullString(o.PaymentPhone.String()), NullableString{}
		w.SenderPhone = nullString(fmt.Sprint(exchange.Phone(o.SenderPhone)))
	}
	return w
}
