package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

const destinationsPath = "/api/v1/auth/otc/destinations"

func (s *server) destinationRoutes() []route {
	const one = destinationsPath + "/{id}"
	return []route{
		{method: get, path: destinationsPath, action: exchange.ActReadDestinations, limit: limitGeneral, handle: s.listDestinations},
		{method: post, path: destinationsPath, action: exchange.ActAddDestinations, limit: limitGeneral, key: keyRequired, handle: s.addDestination},
		{method: get, path: one, action: exchange.ActReadDestinations, limit: limitGeneral, handle: s.getDestination},
		{method: post, path: one + "/confirm", action: exchange.ActConfirmDestinations, limit: limitGeneral, key: keyRequired, handle: s.confirmDestination},
		{method: del, path: one, action: exchange.ActRemoveDestinations, limit: limitGeneral, handle: s.removeDestination},
	}
}

var (
	destinationKinds    = names(exchange.DestinationKinds())
	destinationStatuses = names(exchange.DestinationMachine.States())
)

// wireDestination is a place where a merchant lets its money be sent.
type wireDestination struct {
	ID            uuid.UUID  `json:"id"`
	MerchantID    uuid.UUID  `json:"merchant_id"`
	Kind          string     `json:"kind"`
	Label         *string    `json:"label"`
	PhoneNumber   *string    `json:"phone_number"`
	BankName      *string    `json:"bank_name"`
	BankCode      *string    `json:"bank_code"`
	Branch        *string    `json:"branch"`
	SwiftCode     *string    `json:"swift_code"`
	AccountName   *string    `json:"account_name"`
	AccountNumber *string    `json:"account_number"`
	Network       *string    `json:"network"`
	Address       *string    `json:"address"`
	Status        string     `json:"status"`
	StatusDetail  string     `json:"status_detail"`
	RestsUntil    *timestamp `json:"rests_until"`
	CreatedBy     uuid.UUID  `json:"created_by"`
	ConfirmedAt   *timestamp `json:"confirmed_at"`
	RemovedBy     *uuid.UUID `json:"removed_by"`
	RemovedAt     *timestamp `json:"removed_at"`
	CreatedAt     timestamp  `json:"created_at"`
	UpdatedAt     timestamp  `json:"updated_at"`
}

func (s *server) destinationWire(d exchange.Destination) wireDestination {
	return wireDestination{
		ID: d.ID, MerchantID: d.MerchantID, Kind: string(d.Kind), Label: optText(d.Label), PhoneNumber: optText(d.Phone.Digits()), BankName: optText(d.BankName),
		BankCode: optText(d.BankCode), Branch: optText(d.Branch), SwiftCode: optText(d.SwiftCode), AccountName: optText(d.AccountName),
		AccountNumber: optText(d.AccountNumber), Network: optText(string(d.Network)), Address: optText(d.Address), Status: string(d.Status),
		StatusDetail: d.WaitsFor(s.now()), RestsUntil: optTime(d.RestsUntil), CreatedBy: d.CreatedBy, ConfirmedAt: optTime(d.ConfirmedAt),
		RemovedBy: optID(d.RemovedBy), RemovedAt: optTime(d.RemovedAt), CreatedAt: stamp(d.CreatedAt), UpdatedAt: stamp(d.UpdatedAt),
	}
}

func (s *server) listDestinations(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.DestinationFilter{
		MerchantID: q.id("merchant_id"), Kind: exchange.DestinationKind(q.oneOf("kind", destinationKinds...)),
		Status: exchange.DestinationStatus(q.oneOf("status", destinationStatuses...)),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "destinations", page, s.destinationWire)(s.Store.Destinations(c.ctx, c.view(), filter, page))
}

func (s *server) getDestination(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, s.destinationWire)(s.Store.Destination(c.ctx, c.view(), id))
}

// addDestination saves a destination of the caller's merchant, which the master merchant has to confirm.
func (s *server) addDestination(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	d := exchange.Destination{
		ID: c.objectID, MerchantID: c.who.VendorID, Kind: exchange.DestinationKind(f.oneOf("kind", true, destinationKinds...)),
		Label: f.line("label", false, exchange.MaxDestinationLabel),
	}
	s.readDestination(f, &d)
	if err := f.done(); err != nil {
		return err
	}
	if d.Kind == exchange.DestinationAddress && d.Address == "" {
		return exchange.Errorf(exchange.CodeUnsupported, "Destinations on the network %s are not offered yet.", d.Network)
	}
	merchant, err := s.Store.User(c.ctx, d.MerchantID)
	if err != nil {
		return err
	}
	added, err := s.Store.AddDestination(c.ctx, d, c.who, s.letters(merchant, savedNotice(d), d.ID.String())...)
	if err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderLocation, destinationsPath+"/"+added.ID.String())
	return c.json(http.StatusCreated, s.destinationWire(added))
}

// destinationFields are the fields of each kind of destination.
var destinationFields = map[exchange.DestinationKind][]string{
	exchange.DestinationPhone:   {"phone_number"},
	exchange.DestinationBank:    {"bank_name", "bank_code", "branch", "swift_code", "account_name", "account_number"},
	exchange.DestinationAddress: {"network", "address"},
}

// readDestination reads the fields of a destination's kind. Those of the other kinds must be left out.
func (s *server) readDestination(f *form, d *exchange.Destination) {
	for _, kind := range exchange.DestinationKinds() {
		for _, name := range destinationFields[kind] {
			if kind != d.Kind && d.Kind != "" && f.has(name) {
				f.fail(name, "forbidden", "must be left out unless kind is "+string(kind))
			}
		}
	}
	is := func(kind exchange.DestinationKind) bool { return d.Kind == kind }
	if text := f.line("phone_number", is(exchange.DestinationPhone), maxPhoneText); text != "" && is(exchange.DestinationPhone) {
		var err error
		d.Phone, err = exchange.ParsePhone(text)
		f.check("phone_number", err)
	}
	a := f.bankAccount(is(exchange.DestinationBank))
	d.BankName, d.BankCode, d.Branch, d.SwiftCode, d.AccountName, d.AccountNumber = a.BankName, a.BankCode, a.Branch, a.SwiftCode, a.AccountName, a.AccountNumber
	d.Network = exchange.Network(f.oneOf("network", is(exchange.DestinationAddress), networkNames...))
	address := f.line("address", is(exchange.DestinationAddress), maxAddressText)
	if check := s.Addresses[d.Network]; check != nil && strings.TrimSpace(address) != "" && is(exchange.DestinationAddress) {
		var err error
		if d.Address, err = check(address); err != nil {
			f.fail("address", "address", exchange.MessageOf(addressError(d.Network, err)))
		}
	}
}

// bankAccount reads an account at a bank to which money goes.
func (f *form) bankAccount(required bool) exchange.BankPayee {
	a := exchange.BankPayee{
		BankName: f.line("bank_name", required, exchange.MaxBankName), BankCode: f.bankCode(), Branch: f.line("branch", false, exchange.MaxBankName), SwiftCode: f.swiftCode(),
		AccountName: f.line("account_name", required, exchange.MaxBankName),
	}
	number := f.line("account_number", required, exchange.MaxAccountNumber)
	if a.AccountNumber = exchange.BankReference(number); number != "" && a.AccountNumber == "" {
		f.fail("account_number", "format", "must have letters or digits")
	}
	return a
}

// confirmDestination lets money go to a destination once it has rested. The policy lets only master merchants here, and the store
// only the destination's own.
func (s *server) confirmDestination(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	d, err := s.Store.Destination(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	rest, err := s.Store.DestinationRest(c.ctx)
	if err != nil {
		return err
	}
	letters := s.letters(c.user, confirmedNotice(d, s.now().Add(rest.For)), d.ID.String())
	return answer(c, http.StatusOK, s.destinationWire)(s.Store.ConfirmDestination(c.ctx, c.view(), id, c.who, letters...))
}

func (s *server) removeDestination(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	if _, err := s.Store.RemoveDestination(c.ctx, c.view(), id, c.who); err != nil {
		return hideAbsence(err)
	}
	return c.empty()
}

func savedNotice(d exchange.Destination) letter {
	return letter{"destination.saved", "New destination", "In your Kivuko account " + d.Hint() + " was saved as a destination of withdrawals. Nothing goes there before you " +
		"confirm it. If you don't know it, remove it and change your password.", noticeLife}
}

func confirmedNotice(d exchange.Destination, rested time.Time) letter {
	return letter{"destination.confirmed", "Destination confirmed", "In your Kivuko account " + d.Hint() + " was confirmed as a destination of withdrawals. Money can go there from " +
		minute(rested) + ". If that was not you, remove it at once and tell us.", noticeLife}
}
