package daraja

import (
	"cmp"
	"strings"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// promptCallback is the outcome of a prompt (portal, Express). Only success has metadata.
type promptCallback struct {
	Body struct {
		Callback *struct {
			MerchantRequestID flexString `json:"MerchantRequestID"`
			CheckoutRequestID flexString `json:"CheckoutRequestID"`
			ResultCode        flexString `json:"ResultCode"`
			ResultDesc        flexString `json:"ResultDesc"`
			Metadata          struct {
				Item oneOrMany[item] `json:"Item"`
			} `json:"CallbackMetadata"`
		} `json:"stkCallback"`
	} `json:"Body"`
}

// item is a named value. Items are found by name, never by position; some have no value.
type item struct {
	Name  string     `json:"Name"`
	Key   string     `json:"Key"`
	Value flexString `json:"Value"`
}

// resultEnvelope is the outcome of everything that is answered later (portal, B2C and others). The type of nearly every
// field varies.
type resultEnvelope struct {
	Result *struct {
		ResultCode               flexString `json:"ResultCode"`
		ResultDesc               flexString `json:"ResultDesc"`
		OriginatorConversationID flexString `json:"OriginatorConversationID"`
		ConversationID           flexString `json:"ConversationID"`
		TransactionID            flexString `json:"TransactionID"`
		Parameters               struct {
			Parameter oneOrMany[item] `json:"ResultParameter"`
		} `json:"ResultParameters"`
	} `json:"Result"`
}

// values are the parameters by name. The first of two equal names counts.
type values map[string]string

func valuesOf(items []item) values {
	v := make(values, len(items))
	for _, i := range items {
		name := i.Name
		if name == "" {
			name = i.Key
		}
		if _, twice := v[name]; !twice {
			v[name] = i.Value.text()
		}
	}
	return v
}

// confirmation is a payment to our number (portal, C2B). Names of persons are not read.
type confirmation struct {
	TransID       flexString `json:"TransID"`
	TransTime     flexString `json:"TransTime"`
	TransAmount   flexString `json:"TransAmount"`
	BillRefNumber flexString `json:"BillRefNumber"`
	MSISDN        flexString `json:"MSISDN"`
}

// ParseCallback reads what the operator posted to an address of that kind. A callback is a claim, not a proof: it is not
// signed. The error is a CodeMalformed exchange.Error that quotes nothing of the body. For balances use ParseBalance.
func (Notices) ParseCallback(kind exchange.CallbackKind, body []byte) ([]exchange.Observation, error) {
	if len(body) > maxCallback {
		return nil, exchange.Errorf(exchange.CodeTooLarge, "A callback may have at most %d bytes.", maxCallback)
	}
	var o exchange.Observation
	var err error
	switch kind {
	case exchange.CallbackResult:
		o, err = parseResult(body)
	case exchange.CallbackTimeout:
		o = parseTimeout(body)
	case exchange.CallbackStatus:
		o, err = parseStatus(body)
	case exchange.CallbackReversal:
		o, err = parseReversal(body)
	case exchange.CallbackConfirmation, exchange.CallbackValidation:
		o, err = parseConfirmation(kind, body)
	case exchange.CallbackBalance:
		return nil, exchange.Errorf(exchange.CodeMalformed, "A balance is not an observation of a payment.")
	default:
		return nil, exchange.Errorf(exchange.CodeMalformed, "The kind of callback is unknown.")
	}
	if err != nil {
		return nil, err
	}
	return []exchange.Observation{tidy(o)}, nil
}

func malformed(what string) error {
	return exchange.Errorf(exchange.CodeMalformed, "The callback is not %s.", what)
}

// parseResult reads the outcome of a prompt or of a payout, which share a kind of address.
func parseResult(body []byte) (exchange.Observation, error) {
	var prompt promptCallback
	if decode(body, &prompt) == nil && prompt.Body.Callback != nil {
		return parsePromptResult(prompt)
	}
	var result resultEnvelope
	if decode(body, &result) != nil || result.Result == nil || result.Result.ResultCode == "" {
		return exchange.Observation{}, malformed("the outcome of a prompt or a payout")
	}
	o := observe(result)
	resultOf(payoutResults, o.Code).apply(&o)
	if o.State != exchange.SeenSucceeded {
		return o, nil
	}
	v := valuesOf(result.Result.Parameters.Parameter)
	o.Phone = partyPhone(v["ReceiverPartyPublicName"])
	o.Amount, o.At = parseAmount(v["TransactionAmount"]), parseTime(v["TransactionCompletedDateTime"])
	if _, payout := v["TransactionAmount"]; !payout { // a movement of float has other names
		o.Amount, o.At = parseAmount(v["Amount"]), parseTime(v["TransCompletedTime"])
	}
	o.Charge = parseCharge(v["DebitPartyCharges"])
	if o.Receipt = v["TransactionReceipt"]; o.Receipt == "" {
		o.Receipt = realReceipt(result.Result.TransactionID.text())
	}
	return o, nil
}

func parsePromptResult(p promptCallback) (exchange.Observation, error) {
	callback := p.Body.Callback
	if callback.ResultCode == "" {
		return exchange.Observation{}, malformed("the outcome of a prompt: it has no result code")
	}
	o := exchange.Observation{
		Source: exchange.SourceCallback,
		Code:   callback.ResultCode.text(),
		Text:   redact(callback.ResultDesc.text()),
		Refs: exchange.Refs{
			MerchantRequestID: callback.MerchantRequestID.text(),
			CheckoutRequestID: callback.CheckoutRequestID.text(),
		},
	}
	resultOf(promptResults, o.Code).apply(&o)
	if o.State != exchange.SeenSucceeded {
		return o, nil
	}
	v := valuesOf(callback.Metadata.Item)
	o.Amount = parseAmount(v["Amount"])
	o.Receipt = v["MpesaReceiptNumber"]
	o.Phone = parsePhone(v["PhoneNumber"])
	o.At = parseTime(v["TransactionDate"])
	return o, nil
}

// observe copies what all late results have in common.
func observe(r resultEnvelope) exchange.Observation {
	return exchange.Observation{
		Source: exchange.SourceCallback,
		Code:   r.Result.ResultCode.text(),
		Text:   redact(r.Result.ResultDesc.text()),
		Refs: exchange.Refs{
			ConversationID:           r.Result.ConversationID.text(),
			OriginatorConversationID: r.Result.OriginatorConversationID.text(),
		},
	}
}

// realReceipt drops the filler that replaces a missing receipt ("OAK0000000").
func realReceipt(s string) string {
	if strings.HasSuffix(s, "0000000") {
		return ""
	}
	return s
}

// parseTimeout reads the notice that the request expired in the operator's queue. It does not mean that the payment failed,
// and its body is not documented, so any body is an unknown outcome.
func parseTimeout(body []byte) exchange.Observation {
	o := exchange.Observation{State: exchange.SeenUnknown, Source: exchange.SourceCallback, Text: "queue timeout"}
	var result resultEnvelope
	if decode(body, &result) == nil && result.Result != nil {
		o.Code, o.Refs = result.Result.ResultCode.text(), observe(result).Refs
	}
	return o
}

// parseStatus reads the answer to a status query. Its own result code is that of the query; the payment's state is
// TransactionStatus. The envelope's ConversationID is the query's, the one among the parameters is the payment's.
func parseStatus(body []byte) (exchange.Observation, error) {
	var result resultEnvelope
	if decode(body, &result) != nil || result.Result == nil || result.Result.ResultCode == "" {
		return exchange.Observation{}, malformed("the answer to a status query")
	}
	v := valuesOf(result.Result.Parameters.Parameter)
	o := exchange.Observation{
		State:  exchange.SeenNoAnswer,
		Source: exchange.SourceQuery,
		Code:   result.Result.ResultCode.text(),
		Text:   redact(result.Result.ResultDesc.text()),
		Ticket: result.Result.ConversationID.text(),
		Refs: exchange.Refs{
			ConversationID:           v["ConversationID"],
			OriginatorConversationID: v["OriginatorConversationID"],
		},
	}
	if o.Code != ackCode {
		o.Config = ourFault(o.Code)
		return o, nil
	}
	status := v["TransactionStatus"]
	resultOf(transactionStatuses, strings.ToLower(status)).apply(&o)
	o.Text = redact(status)
	o.Amount = parseAmount(v["Amount"])
	if o.At = parseTime(v["FinalisedTime"]); o.At.IsZero() {
		o.At = parseTime(v["InitiatedTime"])
	}
	if o.State == exchange.SeenSucceeded {
		o.Receipt, o.Charge = realReceipt(v["ReceiptNo"]), parseCharge(v["DebitPartyCharges"])
	}
	o.Phone = statusPhone(result.Result.Parameters.Parameter)
	return o, nil
}

// statusPhone finds the person among the parties: one is a shortcode, the other a telephone number. The portal's own sample
// calls both of them DebitPartyName.
func statusPhone(items []item) exchange.Phone {
	for _, i := range items {
		if i.Key == "CreditPartyName" || i.Key == "DebitPartyName" {
			if p := partyPhone(i.Value.text()); p != "" {
				return p
			}
		}
	}
	return ""
}

// parseReversal reads the outcome of a reversal. Reference is the receipt of the collection, Receipt that of its reversal.
func parseReversal(body []byte) (exchange.Observation, error) {
	var result resultEnvelope
	if decode(body, &result) != nil || result.Result == nil || result.Result.ResultCode == "" {
		return exchange.Observation{}, malformed("the outcome of a reversal")
	}
	o := observe(result)
	resultOf(reversalResults, o.Code).apply(&o)
	if o.Code != ackCode {
		return o, nil
	}
	v := valuesOf(result.Result.Parameters.Parameter)
	o.Amount = parseAmount(v["Amount"])
	o.Phone = partyPhone(v["CreditPartyPublicName"])
	o.At = parseTime(v["TransCompletedTime"])
	o.Reference = v["OriginalTransactionID"]
	o.Receipt = realReceipt(result.Result.TransactionID.text())
	return o, nil
}

// parseConfirmation reads a payment to our number, or the request to validate one, which has the same fields but has not
// moved money.
func parseConfirmation(kind exchange.CallbackKind, body []byte) (exchange.Observation, error) {
	var n confirmation
	if decode(body, &n) != nil || n.TransAmount == "" {
		return exchange.Observation{}, malformed("the notice of a payment to our number")
	}
	o := exchange.Observation{
		State:     exchange.SeenPending,
		Source:    exchange.SourceConfirmation,
		Amount:    parseAmount(n.TransAmount.text()),
		Phone:     parsePhone(n.MSISDN.text()),
		PhoneHash: parsePhoneHash(n.MSISDN.text()),
		Reference: n.BillRefNumber.text(),
		At:        parseTime(n.TransTime.text()),
	}
	if kind == exchange.CallbackValidation {
		return o, nil
	}
	if o.Receipt = n.TransID.text(); !validReceipt(o.Receipt) {
		return exchange.Observation{}, malformed("the notice of a payment to our number: it has no receipt")
	}
	o.State = exchange.SeenSucceeded
	return o, nil
}

// ParseBalance reads the answer to Balance. Accounts is empty when the request failed.
func (Notices) ParseBalance(body []byte) (exchange.FloatReport, error) {
	if len(body) > maxCallback {
		return exchange.FloatReport{}, exchange.Errorf(exchange.CodeTooLarge, "A callback may have at most %d bytes.", maxCallback)
	}
	var result resultEnvelope
	if decode(body, &result) != nil || result.Result == nil || result.Result.ResultCode == "" {
		return exchange.FloatReport{}, malformed("the answer to a balance query")
	}
	v := valuesOf(result.Result.Parameters.Parameter)
	report := exchange.FloatReport{
		Ticket: cut(result.Result.ConversationID.text(), maxProviderRef),
		Code:   cut(result.Result.ResultCode.text(), maxCode),
		Text:   redact(result.Result.ResultDesc.text()),
		At:     parseTime(v["BOCompletedTime"]),
	}
	if report.Code != ackCode {
		return report, nil
	}
	for line := range strings.SplitSeq(v["AccountBalance"], "&") {
		account, err := parseAccount(line)
		if err != nil {
			return exchange.FloatReport{}, malformed("the answer to a balance query: an account can't be read")
		}
		report.Accounts = append(report.Accounts, account)
	}
	return report, nil
}

// accountNames are our names of the accounts that we use (portal, Account Balance).
var accountNames = map[string]string{"Utility Account": exchange.FloatUtility, "Working Account": exchange.FloatWorking}

// parseAccount reads "Name|KES|current|available|reserved|uncleared".
func parseAccount(line string) (exchange.FloatAccount, error) {
	parts := strings.Split(line, "|")
	if len(parts) != 6 || parts[0] == "" || parts[1] != string(money.KES) {
		return exchange.FloatAccount{}, malformed("an account")
	}
	account := exchange.FloatAccount{Name: cmp.Or(accountNames[parts[0]], parts[0])}
	for i, field := range []*money.Amount{&account.Current, &account.Available, &account.Reserved, &account.Uncleared} {
		var err error
		if *field, err = parseBalance(parts[2+i]); err != nil {
			return exchange.FloatAccount{}, err
		}
	}
	return account, nil
}
