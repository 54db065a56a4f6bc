package api

import (
	"net/http"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

const otcPath = "/api/v1/auth/otc/deposits"

func (s *server) otcRoutes() []route {
	read := func(path string, action exchange.Action, handle func(*call) error) route {
		return route{method: get, path: path, action: action, limit: limitGeneral, handle: handle}
	}
	open := func(path string, kind exchange.IntentKind, limit limitClass) route {
		return route{method: post, path: path, action: exchange.ActWriteDeposits, limit: limit, key: keyRequired, timeout: flowTimeout, handle: s.openOTC(kind)}
	}
	verb := func(name string, action exchange.Action, key keyRule, handle func(*call) error) route {
		return route{method: post, path: otcPath + "/{id}/" + name, action: action, limit: limitGeneral, key: key, timeout: flowTimeout, handle: handle}
	}
	write, says, assign, claim := exchange.ActWriteDeposits, exchange.ActAnswerDeposits, exchange.ActAssignDeposits, exchange.ActClaimDeposits
	return []route{
		read(otcPath, exchange.ActReadDeposits, s.listOTC), open(otcPath, exchange.IntendOTCOpen, limitOrderCreate),
		open(otcPath+"/draft", exchange.IntendOTCDraft, limitGeneral), read(otcPath+"/queue/pending-bank", exchange.ActQueueDeposits, s.otcQueue),
		read(otcPath+"/{id}", exchange.ActReadDeposits, s.getOTC), read(otcPath+"/{id}/audit-trail", exchange.ActQueueDeposits, s.otcTrail),
		{method: patch, path: otcPath + "/{id}/draft", action: write, limit: limitGeneral, timeout: flowTimeout, handle: s.editOTC},
		{method: post, path: otcPath + "/{id}/proof", action: says, limit: limitUpload, form: true, timeout: uploadTimeout, handle: s.proveOTC},
		read("/otc-deposits-proof/{deposit_id}/{file}.pdf", exchange.ActReadDeposits, s.otcProof),
		verb("quote", write, keyOptional, s.quoteOTC),
		verb("submit", write, keyRequired, s.stepOTC(exchange.IntendOTCSubmit, noFields)),
		verb("provide-info", says, keyOptional, s.stepOTC(exchange.IntendOTCAnswer, answerFields)),
		verb("cancel", says, keyOptional, s.stepOTC(exchange.IntendOTCCancel, reasonFields)),
		verb("assign", assign, keyOptional, s.stepOTC(exchange.IntendOTCAssign, assignFields)),
		verb("hold", assign, keyOptional, s.stepOTC(exchange.IntendOTCHold, reasonFields)),
		verb("unhold", assign, keyOptional, s.stepOTC(exchange.IntendOTCUnhold, noteField)),
		verb("claim", claim, keyOptional, s.stepOTC(exchange.IntendOTCClaim, noFields)),
		verb("release", claim, keyOptional, s.stepOTC(exchange.IntendOTCRelease, noteField)),
		verb("request-info", claim, keyOptional, s.stepOTC(exchange.IntendOTCAsk, questionFields)),
		verb("confirm", exchange.ActConfirmDeposits, keyRequired, s.stepOTC(exchange.IntendOTCConfirm, confirmFields)),
		verb("reject", exchange.ActRejectDeposits, keyRequired, s.stepOTC(exchange.IntendOTCReject, rejectFields)),
		verb("settle", exchange.ActSettleDeposits, keyRequired, s.settleOTC),
		verb("audit", exchange.ActAuditDeposits, keyOptional, s.stepOTC(exchange.IntendOTCAudit, noteField)),
	}
}

var (
	otcMethods  = names(exchange.OTCMethods())
	otcStatuses = names(exchange.OTCMachine.States())
	otcFlags    = names(exchange.OTCFlags())
)

// otcChanges reads what the form says of a deposit, and returns what it changes. A field that is null is emptied.
func (f *form) otcChanges(draft bool) func(*exchange.OTCRequest) {
	var changes []func(*exchange.OTCRequest)
	change := func(name string, do func(*exchange.OTCRequest)) {
		if f.given(name) {
			changes = append(changes, do)
		}
	}
	text := func(name string, limit int, field func(*exchange.OTCRequest) *string) {
		v := f.line(name, false, limit)
		change(name, func(r *exchange.OTCRequest) { *field(r) = v })
	}
	method, asset := exchange.OTCMethod(f.oneOf("method", !draft, otcMethods...)), money.Asset(f.oneOf("requested_asset", !draft, feeAssets...))
	change("method", func(r *exchange.OTCRequest) { r.Method = method })
	change("requested_asset", func(r *exchange.OTCRequest) { r.Asset = asset })
	network := exchange.Network(f.oneOf("requested_network", false, networkNames...))
	change("requested_network", func(r *exchange.OTCRequest) { r.Network = network })
	fiat := f.amount("fiat_amount", money.KES, !draft)
	change("fiat_amount", func(r *exchange.OTCRequest) { r.Fiat = fiat })
	f.oneOf("fiat_currency", false, string(money.KES))
	bank, at := f.id("bank_account_id", false), f.time("transfer_date", false)
	change("bank_account_id", func(r *exchange.OTCRequest) { r.BankID = bank })
	change("transfer_date", func(r *exchange.OTCRequest) { r.TransferDate = at })
	phone := f.phone("momo_phone_number")
	change("momo_phone_number", func(r *exchange.OTCRequest) { r.Phone = phone })
	text("sender_account_name", exchange.MaxBeneficiaryText, func(r *exchange.OTCRequest) *string { return &r.SenderName })
	text("sender_account_number_last4", maxPhoneText, func(r *exchange.OTCRequest) *string { return &r.SenderLast4 })
	text("sender_bank_name", exchange.MaxBeneficiaryText, func(r *exchange.OTCRequest) *string { return &r.SenderBank })
	text("sender_bank_branch", exchange.MaxBeneficiaryText, func(r *exchange.OTCRequest) *string { return &r.SenderBranch })
	text("receipt_number", exchange.MaxOTCReceipt, func(r *exchange.OTCRequest) *string { return &r.ReceiptNumber })
	return func(r *exchange.OTCRequest) {
		for _, do := range changes {
			do(r)
		}
	}
}

// phone reads a number of a phone as digits; none when it is absent or wrong.
func (f *form) phone(name string) string {
	text := f.line(name, false, maxPhoneText)
	if text == "" {
		return ""
	}
	p, err := exchange.ParsePhone(text)
	f.check(name, err)
	return p.Digits()
}

// checked completes the faults of the form by those of the request as a whole.
func (f *form) checked(rest error) error {
	if err := f.done(); err != nil {
		return err
	}
	return rest
}

// openOTC creates a draft, or a deposit that is priced and submitted at once.
func (s *server) openOTC(kind exchange.IntentKind) func(*call) error {
	draft := kind == exchange.IntendOTCDraft
	return func(c *call) error {
		f, err := c.body()
		if err != nil {
			return err
		}
		r := exchange.OTCRequest{ID: c.objectID}
		f.otcChanges(draft)(&r)
		if !draft {
			r.QuoteID = f.id("fx_rate_quote_id", false)
		}
		if err := f.checked(r.Check(draft)); err != nil {
			return err
		}
		if !draft && r.QuoteID == uuid.Nil && r.Asset.Stablecoin() {
			if r.QuoteID, err = s.openOTCQuote(c, exchange.OTCDeposit{Fiat: r.Fiat, Asset: r.Asset, Network: r.Network, Method: r.Method}); err != nil {
				return err
			}
		}
		err = s.ask(c, kind, r.ID, r.Terms(), func(intent uuid.UUID) error { return s.Flows.OpenOTC(c.ctx, r, intent) })
		if err != nil {
			return err
		}
		d, err := s.Store.OTCDeposit(c.ctx, c.view(), r.ID)
		if err != nil {
			return err
		}
		w, err := s.otcWire(c, d)
		if err != nil {
			return err
		}
		c.fc.Set(fiber.HeaderLocation, otcPath+"/"+d.ID.String())
		return c.json(http.StatusCreated, w)
	}
}

// maxEdits is how often a change without If-Match begins anew because another one came between.
const maxEdits = 3

// editOTC changes the fields of a draft that the request names.
func (s *server) editOTC(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	change := f.otcChanges(true)
	if err := f.done(); err != nil {
		return err
	}
	for range maxEdits {
		d, err := s.Store.OTCDeposit(c.ctx, c.view(), id)
		if err != nil {
			return hideAbsence(err)
		}
		if len(c.ifVersions) > 0 && !slices.Contains(c.ifVersions, d.Version) {
			return exchange.ChangedMeanwhile()
		}
		r := d.Edited(change)
		if err := r.Check(true); err != nil {
			return err
		}
		if err = s.sendOTC(c, exchange.IntendOTCEdit, id, r.Terms()); err == nil {
			return s.answerOTC(c, id)
		}
		if exchange.CodeOf(err) != exchange.CodePrecondition || len(c.ifVersions) > 0 {
			return err
		}
	}
	return exchange.Errorf(exchange.CodeStateConflict, "The draft is being changed by other requests. Try again.")
}

// stepOTC carries out a verb with what its body says.
func (s *server) stepOTC(kind exchange.IntentKind, read func(*form) exchange.OTCStep) func(*call) error {
	return func(c *call) error {
		id, f, err := c.idAndBody()
		if err != nil {
			return err
		}
		step := read(f)
		if err := f.checked(step.Check(kind)); err != nil {
			return err
		}
		if _, err := s.Store.OTCDeposit(c.ctx, c.view(), id); err != nil {
			return hideAbsence(err)
		}
		if err := s.sendOTC(c, kind, id, step.Terms()); err != nil {
			return err
		}
		return s.answerOTC(c, id)
	}
}

// quoteOTC prices a deposit by the quote that the merchant names, or by a new one for what it pays.
func (s *server) quoteOTC(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	step := quoteFields(f)
	if err := f.checked(step.Check(exchange.IntendOTCQuote)); err != nil {
		return err
	}
	d, err := s.Store.OTCDeposit(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	if step.QuoteID == uuid.Nil && !step.TakeKES && d.Sells() && d.Admit(exchange.IntendOTCQuote, c.who) == nil && d.Request().Check(false) == nil {
		if step.QuoteID, err = s.openOTCQuote(c, d); err != nil {
			return err
		}
	}
	if err := s.sendOTC(c, exchange.IntendOTCQuote, id, step.Terms()); err != nil {
		return err
	}
	return s.answerOTC(c, id)
}

// openOTCQuote opens a quote of the caller's for what a deposit pays. Its id follows from the request's, so that a repeated request has
// the same price.
func (s *server) openOTCQuote(c *call, d exchange.OTCDeposit) (uuid.UUID, error) {
	q, err := s.Store.OpenQuote(c.ctx, store.QuoteForOTC(uuid.NewSHA1(c.objectID, []byte("otc quote")), d), c.who)
	return q.ID, err
}

// sendOTC has the deposit's flow carry out a verb. Where the flow has ended, the state of the deposit says why it does not.
func (s *server) sendOTC(c *call, kind exchange.IntentKind, id uuid.UUID, terms exchange.Terms) error {
	return s.ask(c, kind, id, terms, func(intent uuid.UUID) error {
		err := s.Flows.StepOTC(c.ctx, id, intent, kind)
		if exchange.CodeOf(err) != exchange.CodeNotFound {
			return err
		}
		now, readErr := s.Store.OTCDeposit(c.ctx, c.view(), id)
		switch {
		case readErr != nil:
			return hideAbsence(readErr)
		case now.Over():
			return exchange.Errorf(exchange.CodeStateConflict, "The OTC deposit is %s, which does not allow this.", now.Status)
		}
		return exchange.Errorf(exchange.CodeUnavailable, "The flow of the OTC deposit is being started again. Try again in some minutes.")
	})
}

// settleOTC credits shillings, or asks for the transfer of the crypto out of the treasury's wallet.
func (s *server) settleOTC(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	step := noteField(f)
	if err := f.checked(step.Check(exchange.IntendOTCSettle)); err != nil {
		return err
	}
	d, err := s.Store.OTCDeposit(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	if d.Sells() && d.Status == exchange.OTCConfirmed {
		if step.TransferIntent, err = s.intendOTCTransfer(c, d); err != nil {
			return err
		}
	}
	if err := s.forget(c, step.TransferIntent, s.sendOTC(c, exchange.IntendOTCSettle, id, step.Terms())); err != nil {
		return err
	}
	return s.answerOTC(c, id)
}

// intendOTCTransfer writes down the transfer of a deposit's crypto, which is the settling officer's. The deposit's flow opens it. Its ids
// follow from the request's, so that a repeated request asks for no other one.
func (s *server) intendOTCTransfer(c *call, d exchange.OTCDeposit) (uuid.UUID, error) {
	from, err := s.Store.HouseWallet(c.ctx, d.Network)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return uuid.Nil, exchange.Errorf(exchange.CodeStateConflict, "The treasury has no wallet on the network %s.", d.Network)
	}
	if err != nil {
		return uuid.Nil, err
	}
	r := exchange.TransferRequest{
		ID: uuid.NewSHA1(c.objectID, []byte("otc transfer")), RequestedBy: c.who.UserID, WalletID: from.ID, Network: d.Network, Amount: d.Crypto,
		Recipient: exchange.Recipient{WalletID: d.ToWalletID},
	}
	i, err := s.Store.SaveIntent(c.ctx, exchange.Intent{
		ID: uuid.NewSHA1(c.objectID, []byte("otc transfer intent")), Kind: exchange.IntendTransfer, ObjectID: r.ID, By: c.who, Terms: r.Terms(),
	})
	return i.ID, err
}

// listOTC lists deposits, newest first. Only staff see flags.
func (s *server) listOTC(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.OTCFilter{
		Status: exchange.OTCStatus(q.oneOf("status", otcStatuses...)), Method: exchange.OTCMethod(q.oneOf("method", otcMethods...)),
		Asset: money.Asset(q.oneOf("requested_asset", feeAssets...)), Network: exchange.Network(q.oneOf("requested_network", networkNames...)),
		MerchantID: q.id("merchant_id"), Reference: q.text("payment_reference", false), Flag: exchange.OTCFlag(q.oneOf("flag", otcFlags...)),
		CreatedFrom: q.time("created_from"), CreatedTo: q.time("created_to"),
	}
	if filter.Flag != "" && !c.who.Role.Staff() {
		q.fail("flag", "forbidden", "must be left out: only staff see flags")
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "deposits", page, c.otcFields)(s.Store.OTCDeposits(c.ctx, c.view(), filter, page))
}

// otcQueue lists the deposits that wait for an officer: those whose money is known first, the oldest money before newer.
func (s *server) otcQueue(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.OTCQueueFilter{AssignedTo: q.id("assigned_to"), Method: exchange.OTCMethod(q.oneOf("method", otcMethods...))}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "deposits", page, func(d exchange.OTCDeposit) wireQueuedOTC { return c.queuedOTC(d, s.now()) })(s.Store.OTCQueue(c.ctx, filter, page))
}

func (s *server) getOTC(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	return s.answerOTC(c, id)
}

// answerOTC answers with a deposit as it is now.
func (s *server) answerOTC(c *call, id uuid.UUID) error {
	d, err := s.Store.OTCDeposit(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	w, err := s.otcWire(c, d)
	if err != nil {
		return err
	}
	return c.tagged(d.Version, w)
}

// otcTrail is the story of a deposit, from the audit log.
func (s *server) otcTrail(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	q := c.query()
	after, size := q.position(), q.size()
	if err := q.done(); err != nil {
		return err
	}
	records, err := s.Store.OTCTrail(c.ctx, c.view(), id, after, size+1)
	if err != nil {
		return hideAbsence(err)
	}
	page := logPage("audit", records, size, auditID, auditWire)
	page["deposit_id"] = id
	return c.json(http.StatusOK, page)
}
