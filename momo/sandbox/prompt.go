package sandbox

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// handlePrompt accepts a request for a prompt on a payer's phone.
func (s *Server) handlePrompt(w http.ResponseWriter, f form) {
	amount, whole := f.amount()
	b := s.pick(OpPrompt, f["PhoneNumber"], amount)
	if b.refuse != nil {
		refuse(w, *b.refuse)
		return
	}
	if field := s.checkPrompt(f, whole); field != "" {
		invalidField(w, field)
		return
	}
	switch {
	case f["BusinessShortCode"] != s.cfg.Shortcode:
		refuse(w, gatewayFault{status: http.StatusInternalServerError, code: "500.001.1001", message: "Merchant does not exist"})
		return
	case !s.passwordFits(f):
		refuse(w, gatewayFault{status: http.StatusInternalServerError, code: "500.001.1001", message: "[MerchantValidate] - Wrong credentials"})
		return
	}
	p, ok := s.acceptPrompt(f, b, amount)
	if !ok {
		refuse(w, gatewayFault{status: http.StatusInternalServerError, code: "500.001.1001", message: locked})
		return
	}
	done := make(chan struct{})
	s.start(func() {
		defer close(done)
		s.runPrompt(p.CheckoutRequestID)
	})
	if b.early {
		<-done
	}
	acknowledge(w, b.ack, OpPrompt, map[string]string{
		"MerchantRequestID": p.MerchantRequestID, "CheckoutRequestID": p.CheckoutRequestID, "ResponseCode": "0",
		"ResponseDescription": "Success. Request accepted for processing", "CustomerMessage": "Success. Request accepted for processing",
	})
}

// checkPrompt returns the first field that breaks a rule (portal, Express).
func (s *Server) checkPrompt(f form, wholeAmount bool) string {
	_, stampErr := time.ParseInLocation(layoutStamp, f["Timestamp"], eat)
	switch {
	case f["BusinessShortCode"] == "":
		return "BusinessShortCode"
	case stampErr != nil:
		return "Timestamp"
	case f["TransactionType"] != "CustomerPayBillOnline" && f["TransactionType"] != "CustomerBuyGoodsOnline":
		return "TransactionType"
	case !wholeAmount:
		return "Amount"
	case !validPhone(f["PartyA"]):
		return "PartyA"
	case !validPhone(f["PhoneNumber"]):
		return "PhoneNumber"
	case f["PartyB"] == "":
		return "PartyB"
	case !s.validAddress(f["CallBackURL"]):
		return "CallBackURL"
	case f["AccountReference"] == "" || len(f["AccountReference"]) > 12:
		return "AccountReference"
	case len(f["TransactionDesc"]) > 13:
		return "TransactionDesc"
	}
	return ""
}

// acceptPrompt records a prompt. It returns false while another prompt of the same phone is open.
func (s *Server) acceptPrompt(f form, b Behaviour, amount int64) (*Prompt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Clock().UTC()
	phone := f["PhoneNumber"]
	if _, busy := s.ledger.open[phone]; busy {
		return nil, false
	}
	at := now
	id := newCheckoutRequestID(at, phone)
	for s.ledger.prompts[id] != nil {
		at = at.Add(time.Millisecond)
		id = newCheckoutRequestID(at, phone)
	}
	p := &Prompt{
		CheckoutRequestID: id, MerchantRequestID: newRequestID(), Phone: phone, Amount: amount,
		Reference: f["AccountReference"], CallbackURL: f["CallBackURL"], Behaviour: b.Name, CreatedAt: now,
	}
	if !s.writeLocked(record{Prompt: p}) {
		panic(http.ErrAbortHandler) // what is not in the books must not be acknowledged
	}
	return p, true
}

// prompt copies a prompt and its behaviour.
func (s *Server) prompt(id string) (Prompt, Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := *s.ledger.prompts[id]
	b, err := lookup(p.Behaviour)
	if err != nil {
		b = promptResults[0] // the books are older than the table
	}
	return p, b
}

// runPrompt takes a prompt from its current state to its end. It may run again after a restart: results are written once,
// and callbacks are sent at most once.
func (s *Server) runPrompt(id string) {
	p, b := s.prompt(id)
	if b.hang {
		return
	}
	if len(p.Results) == 0 {
		if !s.wait(false) || !s.endPrompt(id, b, b.code, b.desc) {
			return
		}
	}
	s.postPromptResult(id, b, 0)
	if !b.lateSuccess {
		return
	}
	if p, _ = s.prompt(id); len(p.Results) == 1 {
		if !s.wait(true) || !s.endPrompt(id, b, "", "") {
			return
		}
	}
	s.postPromptResult(id, b, 1)
}

const processed = "The service request is processed successfully."

// endPrompt decides how a prompt ends, and moves the money in the same line of the books.
func (s *Server) endPrompt(id string, b Behaviour, code, desc string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.ledger.prompts[id]
	now := s.cfg.Clock().UTC()
	amount := max(1, p.Amount+b.delta)
	if code == "" {
		code, desc = s.judgePayment(p.Phone, amount, now)
	}
	rec := record{Of: id, Result: &Result{Code: code, Text: desc, At: now}}
	if code == "0" {
		rec.Effect = s.newEffect(Collection, p.Reference, p.Phone, amount, id, now)
		rec.Result.Receipt = rec.Effect.Receipt
	}
	return s.writeLocked(rec)
}

// judgePayment applies the operator's own limits to a payer.
func (s *Server) judgePayment(phone string, amount int64, now time.Time) (code, desc string) {
	switch {
	case amount > maxTransaction:
		return "3", "Declined due to limit rule: greater than the maximum transaction amount."
	case s.ledger.wallet(phone) < amount:
		return "1", "The balance is insufficient for the transaction."
	case s.overDaily(phone, amount, now):
		return "4", "Declined due to limit rule: would exceed daily transfer limit."
	case s.repeats(phone, amount, now):
		return "17", "Rule limited."
	}
	return "0", processed
}

func (s *Server) overDaily(phone string, amount int64, now time.Time) bool {
	return s.cfg.DailyLimit > 0 && s.ledger.moved(phone, now.Add(-24*time.Hour))+amount > s.cfg.DailyLimit
}

// repeats reports whether the payer paid the same amount within the rule's time.
func (s *Server) repeats(phone string, amount int64, now time.Time) bool {
	if s.cfg.RuleLimit <= 0 {
		return false
	}
	for _, e := range s.ledger.effects {
		if e.Direction == Collection && e.Phone == phone && e.Amount == amount && now.Sub(e.Time) < s.cfg.RuleLimit {
			return true
		}
	}
	return false
}

// newEffect numbers an effect and gives it a unique receipt.
func (s *Server) newEffect(direction, reference, phone string, amount int64, requestID string, now time.Time) *Effect {
	receipt := newReceipt(now)
	for _, taken := s.ledger.byReceipt[receipt]; taken; _, taken = s.ledger.byReceipt[receipt] {
		receipt = newReceipt(now)
	}
	return &Effect{
		Seq: len(s.ledger.effects) + 1, Direction: direction, Reference: reference, Receipt: receipt,
		Amount: amount, Phone: phone, Time: now, RequestID: requestID,
	}
}

// postPromptResult reports a result of a prompt, and a payment to the registered addresses.
func (s *Server) postPromptResult(id string, b Behaviour, n int) {
	p, _ := s.prompt(id)
	result := p.Results[n]
	key := id + "/" + strconv.Itoa(n)
	if b.late && !s.delivered(key) && !s.wait(true) {
		return
	}
	if !b.lost {
		s.deliver(key, p.CallbackURL, b, s.promptCallback(p, result, b))
		if b.twice {
			s.deliver(key+"/again", p.CallbackURL, b, s.promptCallback(p, result, b))
		}
	}
	if result.Receipt != "" && !b.unconfirmed {
		s.confirm(result.Receipt, b)
	}
}

type named struct {
	Name  string `json:"Name"`
	Value any    `json:"Value,omitempty"`
}

// promptCallback is the body of the callback, in the portal's shape.
func (s *Server) promptCallback(p Prompt, result Result, b Behaviour) any {
	checkout := p.CheckoutRequestID
	if b.foreign {
		checkout = newCheckoutRequestID(p.CreatedAt.Add(-time.Hour), p.Phone)
	}
	callback := map[string]any{
		"MerchantRequestID": p.MerchantRequestID, "CheckoutRequestID": checkout,
		"ResultCode": numeric(result.Code), "ResultDesc": result.Text,
	}
	if result.Code == "0" && !b.noMetadata {
		items := []named{{"Amount", json.Number(strconv.FormatInt(max(1, p.Amount+b.delta), 10) + ".00")}}
		if !b.noReceipt {
			items = append(items, named{"MpesaReceiptNumber", result.Receipt})
		}
		if b.noBalance {
			items = append(items, named{Name: "Balance"})
		}
		items = append(items,
			named{"TransactionDate", json.Number(result.At.In(eat).Format(layoutStamp))},
			named{"PhoneNumber", json.Number(p.Phone)})
		callback["CallbackMetadata"] = map[string]any{"Item": items}
	}
	return map[string]any{"Body": map[string]any{"stkCallback": callback}}
}

// numeric writes a code as the operator does: as a number if possible.
func numeric(code string) any {
	if _, err := strconv.Atoi(code); err == nil {
		return json.Number(code)
	}
	return code
}

// handleQuery answers with the outcome of a prompt.
func (s *Server) handleQuery(w http.ResponseWriter, f form) {
	s.mu.Lock()
	p, known := s.ledger.prompts[f["CheckoutRequestID"]]
	s.mu.Unlock()
	phone, mode := "", queryTruth
	if known {
		copied, b := s.prompt(p.CheckoutRequestID)
		phone, mode = copied.Phone, b.query
	}
	b := s.pick(OpQuery, phone, 0)
	switch {
	case b.refuse != nil:
		refuse(w, *b.refuse)
		return
	case b.query != queryTruth:
		mode = b.query
	case !known:
		mode = queryNone
	}
	if !s.passwordFits(f) {
		refuse(w, gatewayFault{status: http.StatusInternalServerError, code: "500.001.1001", message: "[MerchantValidate] - Wrong credentials"})
		return
	}
	s.answerQuery(w, f["CheckoutRequestID"], mode)
}

func (s *Server) answerQuery(w http.ResponseWriter, id string, mode queryMode) {
	busy := gatewayFault{status: http.StatusInternalServerError, code: "500.001.1001", message: "The transaction is being processed"}
	switch mode {
	case queryNone:
		busy.message = "The transaction does not Exist"
		refuse(w, busy)
		return
	case queryBusy:
		refuse(w, busy)
		return
	case queryBlank:
		refuse(w, gatewayFault{status: http.StatusOK, code: "500.001.1001"})
		return
	default:
	}
	p, _ := s.prompt(id)
	code, desc := "4999", "The transaction is still under processing"
	if n := len(p.Results); n > 0 && mode != queryPending {
		code, desc = p.Results[n-1].Code, p.Results[n-1].Text
		if mode == queryContrary {
			code, desc = "1032", "Request cancelled by user"
		}
		if code == "1037" {
			desc = "DS timeout user cannot be reached." // the query has different texts
		}
	}
	reply(w, http.StatusOK, map[string]string{
		"ResponseCode": "0", "ResponseDescription": "The service request has been accepted successfully",
		"MerchantRequestID": p.MerchantRequestID, "CheckoutRequestID": id, "ResultCode": code, "ResultDesc": desc,
	})
}
