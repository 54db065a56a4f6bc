package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// handleBalance accepts a balance query; the answer is posted later.
func (s *Server) handleBalance(w http.ResponseWriter, f form) {
	switch {
	case f["CommandID"] != "AccountBalance":
		invalidField(w, "CommandID")
		return
	case f["PartyA"] != s.cfg.PayoutShortcode && f["PartyA"] != s.cfg.Shortcode:
		invalidField(w, "PartyA")
		return
	case !s.validAddress(f["ResultURL"]):
		invalidField(w, "ResultURL")
		return
	}
	now := s.cfg.Clock()
	ticket, own := newConversationID(now), newRequestID()
	r := result{code: "2001", desc: "The initiator information is invalid.", conversation: ticket, originator: own, transaction: filler(now)}
	if s.initiatorFits(f["Initiator"], f["SecurityCredential"]) {
		b := s.Books()
		r.code, r.desc = "0", processed
		r.parameters = []keyed{
			{"AccountBalance", fmt.Sprintf("Working Account|KES|%[1]d.00|%[1]d.00|0.00|0.00&Float Account|KES|0.00|0.00|0.00|0.00&"+
				"Utility Account|KES|%[2]d.00|%[2]d.00|0.00|0.00&Charges Paid Account|KES|0.00|0.00|0.00|0.00&"+
				"Organization Settlement Account|KES|0.00|0.00|0.00|0.00", b.Working, b.Utility)},
			{"BOCompletedTime", now.In(eat).Format(layoutStamp)},
		}
	}
	s.start(func() { s.deliver(ticket, f["ResultURL"], Behaviour{}, resultBody(r)) })
	reply(w, http.StatusOK, conversationAck(ticket, own))
}

// handleReversal accepts a request to reverse a collection; the outcome is posted later.
func (s *Server) handleReversal(w http.ResponseWriter, f form) {
	amount, whole := f.amount()
	switch {
	case f["CommandID"] != "TransactionReversal":
		invalidField(w, "CommandID")
		return
	case f["TransactionID"] == "":
		invalidField(w, "TransactionID")
		return
	case !whole:
		invalidField(w, "Amount")
		return
	case f["ReceiverParty"] != s.cfg.Shortcode || f["RecieverIdentifierType"] != "11":
		invalidField(w, "ReceiverParty")
		return
	case !s.validAddress(f["ResultURL"]):
		invalidField(w, "ResultURL")
		return
	}
	now := s.cfg.Clock().UTC()
	ticket, own := newConversationID(now), newRequestID()
	authorised := s.initiatorFits(f["Initiator"], f["SecurityCredential"])
	s.start(func() {
		if !s.wait(false) {
			return
		}
		r := s.reverse(f["TransactionID"], amount, ticket, authorised)
		r.conversation, r.originator = ticket, own
		s.deliver(ticket, f["ResultURL"], Behaviour{}, resultBody(r))
	})
	reply(w, http.StatusOK, conversationAck(ticket, own))
}

// reverse returns a collection once, and in full.
func (s *Server) reverse(receipt string, amount int64, ticket string, authorised bool) result {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Clock().UTC()
	r := result{transaction: filler(now)}
	i, known := s.ledger.byReceipt[receipt]
	switch {
	case !authorised:
		r.code, r.desc = "2001", "The initiator information is invalid."
	case !known || s.ledger.effects[i].Direction != Collection || s.ledger.effects[i].Amount != amount:
		r.code, r.desc = "R000002", "The OriginalTransactionID is invalid."
	case s.ledger.reversed[receipt]:
		r.code, r.desc = "R000001", "The transaction has already been reversed."
	case s.ledger.working < amount:
		r.code, r.desc = "1", "The balance is insufficient for the transaction."
	}
	if r.code != "" {
		return r
	}
	original := s.ledger.effects[i]
	e := s.newEffect(Reversal, receipt, original.Phone, amount, ticket, now)
	if !s.writeLocked(record{Effect: e}) {
		r.code, r.desc = "17", "Internal failure."
		return r
	}
	r.code, r.desc, r.transaction = "0", processed, e.Receipt
	r.parameters = []keyed{
		{"DebitAccountBalance", fmt.Sprintf("Working Account|KES|%[1]d.00|%[1]d.00|0.00|0.00", s.ledger.working)},
		{"Amount", json.Number(fmt.Sprintf("%d.00", amount))},
		{"TransCompletedTime", json.Number(now.In(eat).Format(layoutStamp))},
		{"OriginalTransactionID", receipt},
		{"Charge", json.Number("0.00")},
		{"CreditPartyPublicName", original.Phone + " - TEST PAYER"},
		{"DebitPartyPublicName", s.cfg.Shortcode + " - Sandbox"},
	}
	return r
}

// handleRegister accepts the addresses for payments to our number: once, as in production.
func (s *Server) handleRegister(w http.ResponseWriter, f form) {
	switch {
	case f["ShortCode"] != s.cfg.Shortcode:
		invalidField(w, "ShortCode")
		return
	case f["ResponseType"] != "Completed" && f["ResponseType"] != "Cancelled":
		invalidField(w, "ResponseType")
		return
	case !s.validAddress(f["ConfirmationURL"]) || !s.validAddress(f["ValidationURL"]):
		invalidField(w, "URL")
		return
	}
	wanted := registration{f["ConfirmationURL"], f["ValidationURL"], f["ResponseType"]}
	s.mu.Lock()
	again := s.ledger.registered != nil
	written := again || s.writeLocked(record{Registration: &wanted})
	s.mu.Unlock()
	switch {
	case again:
		refuse(w, gatewayFault{status: http.StatusInternalServerError, code: "500.003.1001", message: "Urls are already registered"})
	case !written:
		panic(http.ErrAbortHandler)
	default:
		reply(w, http.StatusOK, map[string]string{"OriginatorCoversationID": newRequestID(), "ResponseCode": "0", "ResponseDescription": "Success"})
	}
}

// handleSimulate lets a payer pay our number, as the operator's own sandbox does.
func (s *Server) handleSimulate(w http.ResponseWriter, f form) {
	amount, whole := f.amount()
	switch {
	case f["ShortCode"] != s.cfg.Shortcode:
		invalidField(w, "ShortCode")
		return
	case !whole:
		invalidField(w, "Amount")
		return
	case !validPhone(f["Msisdn"]):
		invalidField(w, "Msisdn")
		return
	}
	s.start(func() { _, _ = s.Pay(f["Msisdn"], f["BillRefNumber"], amount) })
	reply(w, http.StatusOK, map[string]string{"OriginatorCoversationID": newRequestID(), "ResponseCode": "0", "ResponseDescription": "Accept the service request successfully."})
}

// ErrRejected means that the validation address, or the operator, rejected a payment.
var ErrRejected = errors.New("the payment was rejected")

// Pay makes a payer pay our number without a prompt, and returns the receipt. The validation address is asked first; without
// a response in time, the ResponseType of the registration decides.
func (s *Server) Pay(phone, reference string, amount int64) (receipt string, err error) {
	if !validPhone(phone) || amount <= 0 {
		return "", errors.New("phone and amount: must be 254 and nine digits, and whole shillings")
	}
	b := s.pick(OpC2B, phone, amount)
	s.mu.Lock()
	registered := s.ledger.registered
	now := s.cfg.Clock().UTC()
	code, desc := s.judgePayment(phone, amount, now)
	e := s.newEffect(Collection, reference, phone, amount, "", now)
	balance := s.ledger.working
	s.mu.Unlock()
	if code != "0" {
		return "", fmt.Errorf("%w: %s", ErrRejected, desc)
	}
	if b.code != "" || (registered != nil && !s.validated(registered, *e, balance, b)) {
		return "", ErrRejected
	}
	s.mu.Lock()
	e = s.newEffect(Collection, reference, phone, amount, "", now)
	written := s.writeLocked(record{Effect: e})
	s.mu.Unlock()
	if !written {
		return "", errors.New("the books can't be written")
	}
	if !b.unconfirmed {
		s.confirm(e.Receipt, b)
	}
	return e.Receipt, nil
}

// validated asks the validation address whether to accept a payment.
func (s *Server) validated(r *registration, e Effect, balance int64, b Behaviour) bool {
	client := *s.callbacks[0]
	client.Timeout = s.cfg.ValidationTimeout
	status, body, err := s.post(&client, r.ValidationURL, s.notice(e, balance, b))
	answer, parseErr := parseForm(body)
	if err != nil || status != http.StatusOK || parseErr != nil {
		return r.ResponseType == "Completed"
	}
	return answer["ResultCode"] == "0"
}

// handlePullRegister enables the statement.
func (s *Server) handlePullRegister(w http.ResponseWriter, f form) {
	if f["ShortCode"] != s.cfg.Shortcode || f["RequestType"] != "Pull" || !s.validAddress(f["CallBackURL"]) {
		invalidField(w, "ShortCode")
		return
	}
	reply(w, http.StatusOK, map[string]string{
		"ResponseRefID": newRequestID(), "Response Status": "1000", "ShortCode": s.cfg.Shortcode, "Response Description": "Shortcode Registered Successfully",
	})
}

// pullPage is how many rows a page of the statement has.
const pullPage = 100

// handlePull returns a page of the statement: collections of the last 48 hours, nested twice.
func (s *Server) handlePull(w http.ResponseWriter, f form) {
	const layout = "2006-01-02 15:04:05"
	from, fromErr := time.ParseInLocation(layout, f["StartDate"], eat)
	to, toErr := time.ParseInLocation(layout, f["EndDate"], eat)
	offset, offsetErr := strconv.Atoi(f["OffSetValue"])
	switch {
	case f["ShortCode"] != s.cfg.Shortcode:
		invalidField(w, "ShortCode")
		return
	case fromErr != nil:
		invalidField(w, "StartDate")
		return
	case toErr != nil:
		invalidField(w, "EndDate")
		return
	case offsetErr != nil || offset < 0:
		invalidField(w, "OffSetValue")
		return
	}
	rows := s.statement(from, to)
	rows = rows[min(offset, len(rows)):]
	rows = rows[:min(pullPage, len(rows))]
	code, message := "1000", "Success"
	if len(rows) == 0 {
		code, message = "1001", "No transactions"
	}
	reply(w, http.StatusOK, map[string]any{
		"ResponseRefID": newRequestID(), "ResponseCode": code, "ResponseMessage": message, "Response": [][]map[string]any{rows},
	})
}

// statement lists the rows from one time to another, both inclusive to the second.
func (s *Server) statement(from, to time.Time) []map[string]any {
	s.mu.Lock()
	effects := slices.Clone(s.ledger.effects)
	s.mu.Unlock()
	if oldest := s.cfg.Clock().Add(-pullWindow); from.Before(oldest) {
		from = oldest
	}
	rows := []map[string]any{}
	for _, e := range effects {
		at := e.Time.Truncate(time.Second)
		if e.Direction != Collection || at.Before(from.Truncate(time.Second)) || at.After(to) {
			continue
		}
		rows = append(rows, map[string]any{
			"transactionId": e.Receipt, "trxDate": at.In(eat).Format("2006-01-02 15:04:05"), "msisdn": e.Phone, "sender": "MPESA",
			"transactiontype": "c2b-pay-bill-debit", "billreference": e.Reference, "amount": strconv.FormatInt(e.Amount, 10) + ".0",
			"organizationname": "Sandbox",
		})
	}
	return rows
}

// Fund moves money from outside into our "working" or "utility" account; a negative amount takes it out.
func (s *Server) Fund(account string, amount int64) error {
	if account != "working" && account != "utility" {
		return errors.New("account: must be working or utility")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	balance := s.ledger.working
	if account == "utility" {
		balance = s.ledger.utility
	}
	if balance+amount < 0 {
		return errors.New("amount: the account holds less")
	}
	e := s.newEffect(Funding, account, "", amount, "", s.cfg.Clock().UTC())
	e.Account = account
	if !s.writeLocked(record{Effect: e}) {
		return s.failure
	}
	return nil
}
