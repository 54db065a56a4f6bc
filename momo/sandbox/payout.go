package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// handlePayout accepts a payment to a person (B2C v3).
func (s *Server) handlePayout(w http.ResponseWriter, f form) {
	amount, whole := f.amount()
	b := s.pick(OpPayout, f["PartyB"], amount)
	if b.refuse != nil {
		refuse(w, *b.refuse)
		return
	}
	if field := s.checkPayout(f, whole); field != "" {
		invalidField(w, field)
		return
	}
	if !s.initiatorFits(f["InitiatorName"], f["SecurityCredential"]) {
		b, _ = lookup("credential_wrong")
	}
	p, ok := s.acceptTransfer(f, b, amount, "")
	if !ok {
		refuse(w, gatewayFault{status: http.StatusInternalServerError, code: "500.002.1001", message: "Duplicate OriginatorConversationID."})
		return
	}
	done := make(chan struct{})
	s.start(func() {
		defer close(done)
		s.runPayout(p.OriginatorConversationID)
	})
	if b.early {
		<-done
	}
	acknowledge(w, b.ack, OpPayout, conversationAck(p.ConversationID, p.OriginatorConversationID))
}

func conversationAck(conversation, originator string) map[string]string {
	return map[string]string{
		"ConversationID": conversation, "OriginatorConversationID": originator, "ResponseCode": "0",
		"ResponseDescription": "Accept the service request successfully.",
	}
}

// checkPayout returns the first field that breaks a rule (portal, B2C).
func (s *Server) checkPayout(f form, wholeAmount bool) string {
	switch {
	case f["OriginatorConversationID"] == "":
		return "OriginatorConversationID"
	case f["InitiatorName"] == "":
		return "InitiatorName"
	case f["SecurityCredential"] == "":
		return "SecurityCredential"
	case f["CommandID"] != "BusinessPayment" && f["CommandID"] != "SalaryPayment" && f["CommandID"] != "PromotionPayment":
		return "CommandID"
	case !wholeAmount:
		return "Amount"
	case f["PartyA"] != s.cfg.PayoutShortcode:
		return "PartyA"
	case !validPhone(f["PartyB"]):
		return "PartyB"
	case len(f["Remarks"]) < 2 || len(f["Remarks"]) > 100:
		return "Remarks"
	case !s.validAddress(f["QueueTimeOutURL"]):
		return "QueueTimeOutURL"
	case !s.validAddress(f["ResultURL"]):
		return "ResultURL"
	}
	return ""
}

// acceptTransfer records a payout or a movement of float. It returns false when its originator's id was seen before.
func (s *Server) acceptTransfer(f form, b Behaviour, amount int64, direction string) (*Transfer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := f["OriginatorConversationID"]
	if s.ledger.payouts[id] != nil {
		return nil, false
	}
	now := s.cfg.Clock().UTC()
	p := &Transfer{
		Direction: direction, OriginatorConversationID: id, ConversationID: newConversationID(now), Phone: f["PartyB"], Amount: amount,
		ResultURL: f["ResultURL"], TimeoutURL: f["QueueTimeOutURL"], Behaviour: b.Name, CreatedAt: now,
	}
	if !s.writeLocked(record{Payout: p}) {
		panic(http.ErrAbortHandler) // what is not in the books must not be acknowledged
	}
	return p, true
}

func (s *Server) payout(id string) (Transfer, Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := *s.ledger.payouts[id]
	b, err := lookup(p.Behaviour)
	if err != nil {
		b = promptResults[0] // the books are older than the table
	}
	return p, b
}

// runPayout takes a payout from its current state to its end, like runPrompt.
func (s *Server) runPayout(id string) {
	p, b := s.payout(id)
	if b.hang {
		return
	}
	if b.timeout && !s.delivered(id+"/timeout") {
		if !s.wait(false) {
			return
		}
		s.deliver(id+"/timeout", p.TimeoutURL, b, resultBody(result{
			code: "1", desc: "The request timed out in the queue.", conversation: p.ConversationID, originator: id, transaction: filler(s.cfg.Clock()),
		}))
	}
	if len(p.Results) == 0 {
		if !s.wait(b.timeout) || !s.endPayout(id, b) {
			return
		}
	}
	if b.lost {
		return
	}
	if b.late && !s.delivered(id+"/0") && !s.wait(true) {
		return
	}
	p, _ = s.payout(id)
	body := s.payoutResult(p, p.Results[0])
	s.deliver(id+"/0", p.ResultURL, b, body)
	if b.twice {
		s.deliver(id+"/0/again", p.ResultURL, b, body)
	}
	if b.lateSuccess {
		s.succeedLate(id, b)
	}
}

// succeedLate moves the money of a payout after its failure was reported, and reports that too.
func (s *Server) succeedLate(id string, b Behaviour) {
	if p, _ := s.payout(id); len(p.Results) == 1 {
		if b.code = ""; !s.wait(true) || !s.endPayout(id, b) {
			return
		}
	}
	p, _ := s.payout(id)
	s.deliver(id+"/1", p.ResultURL, b, s.payoutResult(p, p.Results[1]))
}

// endPayout decides how a payout ends, and moves the money in the same line of the books.
func (s *Server) endPayout(id string, b Behaviour) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.ledger.payouts[id]
	now := s.cfg.Clock().UTC()
	code, desc := b.code, b.desc
	if code == "" {
		code, desc = s.judgePayout(p, now)
	}
	rec := record{Of: id, Result: &Result{Code: code, Text: desc, At: now}}
	if code == "0" {
		rec.Effect = s.newEffect(Payout, id, p.Phone, p.Amount, p.ConversationID, now)
		if rec.Effect.Charge = s.cfg.charge(p.Amount); p.Direction == Float {
			rec.Effect.Direction, rec.Effect.Charge = Float, 0
		}
		rec.Result.Receipt = rec.Effect.Receipt
	}
	return s.writeLocked(rec)
}

// judgePayout applies the operator's own limits.
func (s *Server) judgePayout(p *Transfer, now time.Time) (code, desc string) {
	switch {
	case p.Direction == Float && s.ledger.working >= p.Amount:
		return "0", processed
	case p.Direction == Float:
		return "1", "The balance is insufficient for the transaction."
	case p.Amount < minPayout:
		return "2", "Declined due to limit rule: less than the minimum transaction amount."
	case p.Amount > maxTransaction:
		return "3", "Declined due to limit rule: greater than the maximum transaction amount."
	case s.ledger.utility < p.Amount+s.cfg.charge(p.Amount):
		return "1", "The balance is insufficient for the transaction."
	case s.overDaily(p.Phone, p.Amount, now):
		return "4", "Declined due to limit rule: would exceed daily transfer limit."
	case s.ledger.wallet(p.Phone)+p.Amount > maxWallet:
		return "8", "Declined due to limit rule: would exceed the maximum balance."
	}
	return "0", processed
}

type keyed struct {
	Key   string `json:"Key"`
	Value any    `json:"Value,omitempty"`
}

// result is the content of the envelope of everything that is answered later.
type result struct {
	code, desc, conversation, originator, transaction string
	parameters                                        []keyed
}

// resultBody is that envelope. As with the operator, a single parameter is not in a list, and codes are numbers if possible.
func resultBody(r result) any {
	envelope := map[string]any{
		"ResultType": 0, "ResultCode": numeric(r.code), "ResultDesc": r.desc, "OriginatorConversationID": r.originator,
		"ConversationID": r.conversation, "TransactionID": r.transaction,
		"ReferenceData": map[string]any{"ReferenceItem": keyed{"QueueTimeoutURL", "https://internal.example/results/v1/submit"}},
	}
	switch len(r.parameters) {
	case 0:
	case 1:
		envelope["ResultParameters"] = map[string]any{"ResultParameter": r.parameters[0]}
	default:
		envelope["ResultParameters"] = map[string]any{"ResultParameter": r.parameters}
	}
	return map[string]any{"Result": envelope}
}

// filler replaces a missing transaction id.
func filler(at time.Time) string { return newReceipt(at)[:3] + "0000000" }

func (s *Server) payoutResult(p Transfer, last Result) any {
	r := result{code: last.Code, desc: last.Text, conversation: p.ConversationID, originator: p.OriginatorConversationID, transaction: last.Receipt}
	if last.Receipt == "" {
		r.transaction = filler(last.At)
		return resultBody(r)
	}
	s.mu.Lock()
	utility, working := s.ledger.utility, s.ledger.working
	s.mu.Unlock()
	if p.Direction == Float {
		r.parameters = floatParameters(p, last, working)
		return resultBody(r)
	}
	r.parameters = []keyed{
		{"TransactionAmount", p.Amount},
		{"TransactionReceipt", last.Receipt},
		{"ReceiverPartyPublicName", p.Phone + " - TEST PAYEE"},
		{"TransactionCompletedDateTime", last.At.In(eat).Format("02.01.2006 15:04:05")},
		{"B2CUtilityAccountAvailableFunds", json.Number(fmt.Sprintf("%d.00", utility))},
		{"B2CWorkingAccountAvailableFunds", json.Number(fmt.Sprintf("%d.00", working))},
		{"B2CRecipientIsRegisteredCustomer", "Y"},
		{"B2CChargesPaidAccountAvailableFunds", json.Number("0.00")},
	}
	return resultBody(r)
}

// handleStatus accepts a status query; the answer is posted later. It accepts the id of a payout under both names.
func (s *Server) handleStatus(w http.ResponseWriter, f form) {
	originator := f["OriginalConversationID"]
	if originator == "" {
		originator = f["OriginatorConversationID"]
	}
	e, p, b := s.find(f["TransactionID"], originator)
	picked := s.pick(OpStatus, p.Phone, 0)
	if picked.refuse != nil {
		refuse(w, *picked.refuse)
		return
	}
	mode := b.query
	if picked.query != queryTruth {
		mode = picked.query
	}
	switch {
	case f["TransactionID"] == "" && originator == "":
		invalidField(w, "TransactionID")
		return
	case f["CommandID"] != "TransactionStatusQuery":
		invalidField(w, "CommandID")
		return
	case f["IdentifierType"] != "4":
		invalidField(w, "IdentifierType")
		return
	case !s.validAddress(f["ResultURL"]):
		invalidField(w, "ResultURL")
		return
	}
	ticket, own := newConversationID(s.cfg.Clock()), newRequestID()
	r := statusResult(e, p, mode)
	r.conversation, r.originator, r.transaction = ticket, own, filler(s.cfg.Clock())
	if originator != "" {
		r.originator = originator // shared by all queries about one payout
	}
	if !s.initiatorFits(f["Initiator"], f["SecurityCredential"]) {
		r.code, r.desc, r.parameters = "2001", "The initiator information is invalid.", nil
	}
	if mode != querySilent {
		s.start(func() { s.deliver(ticket, f["ResultURL"], b, resultBody(r)) })
	}
	reply(w, http.StatusOK, conversationAck(ticket, own))
}

// find finds a transaction by receipt or by the originator's id. Its effect is nil when no money moved.
func (s *Server) find(receipt, originator string) (*Effect, Transfer, Behaviour) {
	s.mu.Lock()
	if i, ok := s.ledger.byReceipt[receipt]; ok && receipt != "" {
		e := s.ledger.effects[i]
		s.mu.Unlock()
		b := promptResults[0]
		p := Transfer{Phone: e.Phone, OriginatorConversationID: e.Reference, ConversationID: e.RequestID}
		if e.Direction == Payout || e.Direction == Float {
			p, b = s.payout(e.Reference)
		}
		return &e, p, b
	}
	known := s.ledger.payouts[originator] != nil
	s.mu.Unlock()
	if !known {
		return nil, Transfer{}, promptResults[0]
	}
	p, b := s.payout(originator)
	if n := len(p.Results); n > 0 && p.Results[n-1].Receipt != "" {
		e, _, _ := s.find(p.Results[n-1].Receipt, "")
		return e, p, b
	}
	return nil, p, b
}

// statusResult is the outcome of a transaction. The operator's answer about an unknown id is not known; the sandbox answers
// with an internal failure, which proves nothing.
func statusResult(e *Effect, p Transfer, mode queryMode) result {
	if e == nil && p.OriginatorConversationID == "" {
		return result{code: "17", desc: "Internal failure: the transaction was not found."}
	}
	status, amount, receipt, at, charge := "Pending", p.Amount, "", p.CreatedAt, int64(0)
	if n := len(p.Results); n > 0 {
		status, at = "Failed", p.Results[n-1].At
	}
	if e != nil {
		status, amount, receipt, at, charge = "Completed", e.Amount, e.Receipt, e.Time, e.Charge
	}
	switch mode {
	case queryContrary:
		status, receipt = "Failed", ""
	case queryPending:
		status, receipt = "Pending", ""
	case queryAmount:
		amount++
	default:
	}
	stamp := at.In(eat).Format(layoutStamp)
	return result{code: "0", desc: processed, parameters: []keyed{
		{"DebitPartyName", "Shortcode"},
		{"CreditPartyName", p.Phone + " - TEST PERSON"},
		{"OriginatorConversationID", p.OriginatorConversationID},
		{"ConversationID", p.ConversationID},
		{"InitiatedTime", stamp},
		{"DebitAccountType", "Utility Account"},
		{"DebitPartyCharges", fmt.Sprintf("Fee For B2C Payment|KES|%d.00", charge)},
		{Key: "TransactionReason"},
		{"ReasonType", "Business Payment to Customer via API"},
		{"TransactionStatus", status},
		{"FinalisedTime", stamp},
		{"Amount", strconv.FormatInt(amount, 10)},
		{"ReceiptNo", receipt},
	}}
}

// disguise writes a number in one of the forms that confirmations have had.
func disguise(form, phone string) string {
	switch form {
	case "plain":
		return phone
	case "masked":
		return phone[:4] + " ***** " + phone[len(phone)-3:]
	}
	sum := sha256.Sum256([]byte(phone))
	return hex.EncodeToString(sum[:])
}
