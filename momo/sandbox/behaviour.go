package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// The operations that a behaviour can be set for.
const (
	OpToken    = "token"
	OpPrompt   = "prompt"
	OpQuery    = "query"
	OpPayout   = "payout"
	OpStatus   = "status"
	OpBalance  = "balance"
	OpReversal = "reversal"
	OpRegister = "register"
	OpPull     = "pull"
	OpFloat    = "float" // from the working account to the utility account
	OpPayee    = "payee" // the owner of a number
	OpC2B      = "c2b"   // a payment that the payer starts
)

// anyGateway are the operations for which the gateway itself can fail.
var anyGateway = []string{OpToken, OpPrompt, OpQuery, OpPayout, OpStatus, OpBalance, OpReversal, OpRegister, OpPull, OpFloat, OpPayee}

// ackMode is the response to an accepted request.
type ackMode int

const (
	ackNormal ackMode = iota
	ackError          // status 500 and an error envelope
	ackEmpty          // status 500 and an envelope with an empty message
	ackHTML           // status 502 and a page
	ackDrop           // the connection breaks
)

// queryMode is how a query about a prompt or payout is answered.
type queryMode int

const (
	queryTruth    queryMode = iota
	queryPending            // as if it were still running
	queryBusy               // 500.001.1001 with status 500
	queryBlank              // 500.001.1001 with an empty message and status 200
	queryNone               // as if it were unknown
	queryContrary           // failed where it succeeded
	queryAmount             // succeeded with another amount
	querySilent             // no answer
)

// gatewayFault is a response instead of reading the request or of accepting it.
type gatewayFault struct {
	status  int
	code    string
	message string
	html    bool
	drop    bool
	flood   bool // an endless response
}

// Behaviour is one way in which the operator can behave.
type Behaviour struct {
	Name  string   `json:"name"`
	Magic string   `json:"magic,omitempty"` // the last two digits of a magic number and of a magic amount
	Ops   []string `json:"ops"`
	Text  string   `json:"text"`

	refuse      *gatewayFault // nothing is accepted
	ack         ackMode
	code        string // the result; "" is success
	desc        string
	hang        bool  // no result, ever
	lateSuccess bool  // after the failure in code, the money moves all the same
	delta       int64 // added to the amount that the payer pays
	timeout     bool  // the queue's timeout notice comes first

	lost, twice, late, early bool // callbacks: never, twice, after the late delay, before the acknowledgement
	offRange                 bool // callbacks come from another address
	unconfirmed              bool // no C2B confirmation
	noMetadata, noBalance    bool
	noReceipt                bool
	foreign                  bool // the callback names another CheckoutRequestID
	query                    queryMode
	msisdn                   string
	stringExpiry             bool
}

func (b Behaviour) has(op string) bool { return slices.Contains(b.Ops, op) }

var (
	onPrompt  = []string{OpPrompt}
	onPayout  = []string{OpPayout}
	onMoney   = []string{OpPayout, OpFloat}
	onC2B     = []string{OpC2B}
	locked    = "Unable to lock subscriber, a transaction is already in process for the current subscriber"
	behaviour = slices.Concat(promptResults, promptFaults, payoutBehaviours, promptRefusals, c2bBehaviours, gatewayBehaviours)
)

// Behaviours lists all behaviours that a magic number or /control/faults can select.
func Behaviours() []Behaviour { return slices.Clone(behaviour) }

var promptResults = []Behaviour{
	{Name: "success", Magic: "00", Ops: []string{OpPrompt, OpPayout, OpC2B}, Text: "Everything works."},
	{Name: "insufficient", Magic: "01", Ops: onPrompt, code: "1", desc: "The balance is insufficient for the transaction.", Text: "The payer's balance is insufficient (1)."},
	{Name: "below_minimum", Magic: "02", Ops: onPrompt, code: "2", desc: "Declined due to limit rule: less than the minimum transaction amount.", Text: "Below the minimum (2)."},
	{Name: "above_maximum", Magic: "03", Ops: onPrompt, code: "3", desc: "Declined due to limit rule: greater than the maximum transaction amount.", Text: "Above the maximum (3)."},
	{Name: "payer_daily_limit", Magic: "04", Ops: onPrompt, code: "4", desc: "Declined due to limit rule: would exceed daily transfer limit.", Text: "The payer's daily limit (4)."},
	{Name: "our_balance_limit", Magic: "08", Ops: onPrompt, code: "8", desc: "Declined due to limit rule: would exceed the maximum balance.", Text: "Our shortcode's largest balance (8)."},
	{Name: "wrong_pin", Magic: "10", Ops: onPrompt, code: "2001", desc: "The initiator information is invalid.", Text: "The payer typed a wrong PIN (2001)."},
	{Name: "expired", Magic: "11", Ops: onPrompt, code: "1019", desc: "Transaction has expired", Text: "The prompt expired (1019)."},
	{Name: "declined", Magic: "12", Ops: onPrompt, code: "1032", desc: "Request cancelled by user", Text: "The payer declined (1032)."},
	{Name: "no_response", Magic: "13", Ops: onPrompt, code: "1037", desc: "No response from user.", Text: "No response (1037)."},
	{Name: "rule_limited", Magic: "14", Ops: onPrompt, code: "17", desc: "Rule limited.", Text: "Same amount and payer within two minutes (17)."},
	{Name: "busy", Magic: "15", Ops: onPrompt, code: "26", desc: "System busy. Traffic blocking condition in place.", Text: "Busy (26)."},
	{Name: "locked_result", Magic: "16", Ops: onPrompt, code: "1001", desc: locked, Text: "Subscriber locked, as a result (1001)."},
	{Name: "push_too_long", Magic: "17", Ops: onPrompt, code: "1025", desc: "An error occurred while sending a push request.", Text: "The prompt could not be sent (1025)."},
	{Name: "push_failed", Magic: "18", Ops: onPrompt, code: "9999", desc: "An error occurred while sending a push request.", Text: "The prompt could not be sent (9999)."},
	{Name: "wrong_product", Magic: "19", Ops: onPrompt, code: "2028", desc: "The request is not permitted according to product assignment.", Text: "Product not permitted (2028)."},
	{Name: "wrong_operator", Magic: "20", Ops: onPrompt, code: "SFC_IC0003", desc: "The operator does not exist.", Text: "Operator unknown (SFC_IC0003)."},
	{Name: "pin_locked", Magic: "21", Ops: onPrompt, code: "8006", desc: "The security credential is locked.", Text: "The payer's PIN is locked (8006)."},
	{Name: "uncatalogued", Magic: "22", Ops: []string{OpPrompt, OpPayout}, code: "7461", desc: "Unexpected.", Text: "A code that is in no catalogue (7461)."},
}

var promptFaults = []Behaviour{
	{Name: "callback_lost", Magic: "30", Ops: onPrompt, lost: true, Text: "Paid; no callback."},
	{Name: "callback_twice", Magic: "31", Ops: onPrompt, twice: true, Text: "Paid; the callback comes twice."},
	{Name: "callback_late", Magic: "32", Ops: onPrompt, late: true, Text: "Paid at once; the callback comes late."},
	{Name: "late_success_1037", Magic: "33", Ops: onPrompt, code: "1037", desc: "No response from user.", lateSuccess: true, Text: "No response (1037), later paid all the same."},
	{Name: "late_success_1032", Magic: "34", Ops: onPrompt, code: "1032", desc: "Request cancelled by user", lateSuccess: true, Text: "Declined (1032), later paid all the same."},
	{Name: "late_success_1019", Magic: "35", Ops: onPrompt, code: "1019", desc: "Transaction has expired", lateSuccess: true, Text: "Expired (1019), later paid all the same."},
	{Name: "pays_less", Magic: "36", Ops: onPrompt, delta: -1, Text: "Paid one shilling less (the same, where one was asked)."},
	{Name: "pays_more", Magic: "37", Ops: onPrompt, delta: 1, Text: "Paid one shilling more."},
	{Name: "callback_first", Magic: "38", Ops: onPrompt, early: true, Text: "Paid; the callback arrives before the acknowledgement."},
	{Name: "no_metadata", Magic: "39", Ops: onPrompt, noMetadata: true, Text: "Paid; the callback has no metadata."},
	{Name: "balance_without_value", Magic: "40", Ops: onPrompt, noBalance: true, Text: "Paid; the callback has a Balance without value."},
	{Name: "foreign_id", Magic: "41", Ops: onPrompt, foreign: true, Text: "Paid; the callback names another CheckoutRequestID."},
	{Name: "query_contrary", Magic: "42", Ops: []string{OpPrompt, OpQuery}, query: queryContrary, Text: "Paid; the query says 1032."},
	{Name: "query_pending", Magic: "43", Ops: []string{OpPrompt, OpQuery}, query: queryPending, Text: "Paid; the query says 4999 for ever."},
	{Name: "query_busy", Magic: "44", Ops: []string{OpPrompt, OpQuery}, query: queryBusy, Text: "Paid; the query says 500.001.1001, being processed."},
	{Name: "query_blank", Magic: "45", Ops: []string{OpPrompt, OpQuery}, query: queryBlank, Text: "Paid; the query says 500.001.1001 with an empty message and status 200."},
	{Name: "query_unknown", Magic: "46", Ops: []string{OpPrompt, OpQuery}, query: queryNone, Text: "Paid; the query does not find it."},
	{Name: "accepted_5xx", Magic: "47", Ops: onPrompt, ack: ackError, Text: "Accepted and paid, but answered with status 500."},
	{Name: "accepted_drop", Magic: "48", Ops: onPrompt, ack: ackDrop, Text: "Accepted and paid, but the connection breaks."},
	{Name: "accepted_html", Magic: "49", Ops: onPrompt, ack: ackHTML, Text: "Accepted and paid, but answered with a page and status 502."},
	{Name: "accepted_drop_lost", Magic: "23", Ops: onPrompt, ack: ackDrop, lost: true, Text: "Accepted and paid; the connection breaks and no callback comes."},
	{Name: "accepted_blank", Magic: "24", Ops: onPrompt, ack: ackEmpty, Text: "Accepted and paid, but answered with an empty 500.001.1001."},
	{Name: "never", Magic: "25", Ops: onPrompt, hang: true, Text: "Accepted; no result, ever."},
	{Name: "no_receipt", Magic: "26", Ops: onPrompt, noReceipt: true, Text: "Paid; the callback has no receipt."},
	{Name: "off_range", Magic: "27", Ops: []string{OpPrompt, OpPayout}, offRange: true, Text: "Paid; the callback comes from an address that is not the operator's."},
	{Name: "accepted_5xx_declined", Magic: "28", Ops: onPrompt, ack: ackError, code: "1032", desc: "Request cancelled by user", Text: "Accepted and declined (1032), but answered with status 500."},
	{Name: "callback_lost_declined", Magic: "29", Ops: onPrompt, code: "1032", desc: "Request cancelled by user", lost: true, Text: "Declined (1032); no callback."},
}

var payoutBehaviours = []Behaviour{
	{Name: "utility_short", Magic: "51", Ops: onMoney, code: "1", desc: "The balance is insufficient for the transaction.", Text: "Our utility account is short (1)."},
	{Name: "unregistered", Magic: "52", Ops: onPayout, code: "2040", desc: "Credit Party customer type (Unregistered or Registered Customer) can't be supported by the service.", Text: "The payee is not registered (2040)."},
	{Name: "invalid_number", Magic: "53", Ops: onPayout, code: "SFC_IC0003", desc: "The operator does not exist.", Text: "Not the operator's number (SFC_IC0003)."},
	{Name: "payee_daily_limit", Magic: "54", Ops: onPayout, code: "4", desc: "Declined due to limit rule: would exceed daily transfer limit.", Text: "The payee's daily limit (4)."},
	{Name: "result_lost", Magic: "55", Ops: onMoney, lost: true, Text: "Paid; no result."},
	{Name: "result_twice", Magic: "56", Ops: onMoney, twice: true, Text: "Paid; the result comes twice."},
	{Name: "result_late", Magic: "57", Ops: onMoney, late: true, Text: "Paid at once; the result comes late."},
	{Name: "payee_balance_limit", Magic: "58", Ops: onPayout, code: "8", desc: "Declined due to limit rule: would exceed the maximum balance.", Text: "The payee's largest balance (8)."},
	{Name: "timeout_then_paid", Magic: "59", Ops: onMoney, timeout: true, Text: "The queue's timeout notice, later paid with a result."},
	{Name: "payout_accepted_5xx", Magic: "60", Ops: onMoney, ack: ackError, Text: "Accepted and paid, but answered with status 500."},
	{Name: "payout_accepted_drop", Magic: "61", Ops: onMoney, ack: ackDrop, Text: "Accepted and paid, but the connection breaks."},
	{Name: "payout_forbidden", Magic: "62", Ops: onMoney, refuse: &gatewayFault{status: 403, code: "403.002.1001", message: "You are not authorized to initiate this transaction"}, Text: "Refused: not entitled (403.002.1001)."},
	{Name: "system_error", Magic: "63", Ops: onPayout, refuse: &gatewayFault{status: 500, code: "500.002.1001", message: "System internal error."}, Text: "System internal error, not accepted."},
	{Name: "system_error_accepted", Magic: "64", Ops: onPayout, ack: ackError, lost: true, Text: "System internal error, yet accepted and paid; no result comes."},
	{Name: "credential_wrong", Magic: "65", Ops: onMoney, code: "2001", desc: "The initiator information is invalid.", Text: "The API credential is wrong (2001)."},
	{Name: "credential_locked", Magic: "66", Ops: onPayout, code: "TP40153", desc: "The initiator is locked.", Text: "The API user is locked (TP40153)."},
	{Name: "result_first", Magic: "67", Ops: onMoney, early: true, Text: "Paid; the result arrives before the acknowledgement."},
	{Name: "status_contrary", Magic: "68", Ops: []string{OpPayout, OpFloat, OpStatus}, query: queryContrary, Text: "Paid; the status query says Failed."},
	{Name: "status_silent", Magic: "69", Ops: []string{OpPayout, OpStatus}, query: querySilent, Text: "Paid; the status query is never answered."},
	{Name: "payout_spike", Magic: "70", Ops: onPayout, refuse: &gatewayFault{status: 500, code: "500.003.02", message: "System is busy. Please try again in few minutes."}, Text: "Throttled, not accepted (500.003.02)."},
	{Name: "timeout_then_failed", Magic: "71", Ops: onPayout, timeout: true, code: "2040", desc: "Credit Party customer type can't be supported by the service.", Text: "The queue's timeout notice, later a failure (2040)."},
	{Name: "status_pending", Magic: "72", Ops: []string{OpPayout, OpStatus}, query: queryPending, Text: "Paid; the status query says Pending."},
	{Name: "status_amount", Magic: "73", Ops: []string{OpPayout, OpStatus}, query: queryAmount, Text: "Paid; the status query reports another amount."},
	{Name: "timeout_then_paid_lost", Magic: "74", Ops: onPayout, timeout: true, lost: true, Text: "The queue's timeout notice, later paid; no result comes."},
	{Name: "payout_never", Magic: "75", Ops: onMoney, hang: true, Text: "Accepted; no result, ever."},
	{Name: "account_inactive", Magic: "76", Ops: onPayout, code: "11", desc: "The DebitParty is in an invalid state.", Text: "Our account is not active (11)."},
	{Name: "payout_busy", Magic: "77", Ops: onPayout, code: "26", desc: "System busy. Traffic blocking condition in place.", Text: "Busy (26)."},
	{Name: "result_lost_failed", Magic: "78", Ops: onMoney, code: "2040", desc: "Credit Party customer type can't be supported by the service.", lost: true, Text: "Failed (2040); no result."},
	{Name: "late_paid", Magic: "79", Ops: onPayout, code: "2040", desc: "Credit Party customer type can't be supported by the service.", lateSuccess: true, Text: "Failed (2040), later paid all the same, with a second result."},
}

var promptRefusals = []Behaviour{
	{Name: "locked", Magic: "80", Ops: onPrompt, refuse: &gatewayFault{status: 500, code: "500.001.1001", message: locked}, Text: "Refused: another transaction of this subscriber is open."},
	{Name: "wrong_credentials", Magic: "81", Ops: onPrompt, refuse: &gatewayFault{status: 500, code: "500.001.1001", message: "[MerchantValidate] - Wrong credentials"}, Text: "Refused: wrong passkey."},
	{Name: "no_merchant", Magic: "82", Ops: onPrompt, refuse: &gatewayFault{status: 500, code: "500.001.1001", message: "Merchant does not exist"}, Text: "Refused: unknown shortcode."},
	{Name: "prompt_spike", Magic: "83", Ops: onPrompt, refuse: &gatewayFault{status: 500, code: "500.003.02", message: "Spike Arrest Violation"}, Text: "Refused: throttled."},
	{Name: "bad_number", Magic: "84", Ops: onPrompt, refuse: &gatewayFault{status: 400, code: "400.002.02", message: "Bad Request - Invalid PhoneNumber"}, Text: "Refused: the number."},
	{Name: "maintenance", Magic: "85", Ops: anyGateway, refuse: &gatewayFault{status: 503, code: "00.002.1001", message: "Service is currently under maintenance"}, Text: "Refused: maintenance."},
	{Name: "blank_refusal", Magic: "86", Ops: onPrompt, refuse: &gatewayFault{status: 500, code: "500.001.1001"}, Text: "Not accepted, and answered with an empty 500.001.1001."},
}

var c2bBehaviours = []Behaviour{
	{Name: "confirmation_masked", Magic: "90", Ops: []string{OpPrompt, OpC2B}, msisdn: "masked", Text: "The confirmation masks the number."},
	{Name: "confirmation_hashed", Magic: "91", Ops: []string{OpPrompt, OpC2B}, msisdn: "hashed", Text: "The confirmation has the number's SHA-256."},
	{Name: "confirmation_plain", Magic: "92", Ops: []string{OpPrompt, OpC2B}, msisdn: "plain", Text: "The confirmation has the plain number."},
	{Name: "confirmation_lost", Magic: "93", Ops: []string{OpPrompt, OpC2B}, unconfirmed: true, Text: "Paid; the confirmation never comes."},
	{Name: "all_lost", Magic: "94", Ops: onPrompt, lost: true, unconfirmed: true, Text: "Paid; neither callback nor confirmation come. The statement has it."},
	{Name: "c2b_rejected", Magic: "95", Ops: onC2B, code: "C2B00016", Text: "The operator itself rejects the payment."},
}

var gatewayBehaviours = []Behaviour{
	{Name: "html_502", Ops: anyGateway, refuse: &gatewayFault{status: 502, html: true}, Text: "A page with status 502, nothing accepted."},
	{Name: "empty_500", Ops: anyGateway, refuse: &gatewayFault{status: 500}, Text: "An empty answer with status 500, nothing accepted."},
	{Name: "empty_200", Ops: anyGateway, refuse: &gatewayFault{status: 200}, Text: "An empty answer with status 200, nothing accepted."},
	{Name: "envelope_200", Ops: anyGateway, refuse: &gatewayFault{status: 200, code: "500.001.1001"}, Text: "An empty 500.001.1001 with status 200, nothing accepted."},
	{Name: "drop", Ops: anyGateway, refuse: &gatewayFault{drop: true}, Text: "The connection breaks, nothing accepted."},
	{Name: "flood", Ops: anyGateway, refuse: &gatewayFault{status: 200, flood: true}, Text: "An answer that is too long, nothing accepted."},
	{Name: "spike_arrest", Ops: anyGateway, refuse: &gatewayFault{status: 500, code: "500.003.02", message: "Spike Arrest Violation"}, Text: "Throttled."},
	{Name: "quota", Ops: anyGateway, refuse: &gatewayFault{status: 500, code: "500.003.03", message: "Quota Violation"}, Text: "Quota used up."},
	{Name: "internal_error", Ops: anyGateway, refuse: &gatewayFault{status: 500, code: "500.003.1001", message: "Internal Server Error"}, Text: "Internal server error, nothing accepted."},
	{Name: "no_product", Ops: anyGateway, refuse: &gatewayFault{status: 401, code: "401", message: "Invalid API call as no apiproduct match found"}, Text: "The product is not enabled."},
	{Name: "token_404", Ops: anyGateway[1:], refuse: &gatewayFault{status: 404, code: "404.001.03", message: "Invalid Access Token"}, Text: "The token is refused with status 404."},
	{Name: "empty_401", Ops: anyGateway, refuse: &gatewayFault{status: 401}, Text: "Status 401 without a body."},
	{Name: "string_expiry", Ops: []string{OpToken}, stringExpiry: true, Text: "expires_in is a string."},
}

// lookup finds a behaviour by name; "result:<code>" ends a prompt or payout with that code.
func lookup(name string) (Behaviour, error) {
	if code, ok := strings.CutPrefix(name, "result:"); ok && code != "" {
		return Behaviour{Name: name, Ops: []string{OpPrompt, OpPayout}, code: code, desc: "Result " + code + "."}, nil
	}
	for _, b := range behaviour {
		if b.Name == name {
			return b, nil
		}
	}
	return Behaviour{}, fmt.Errorf("behaviour: %q is unknown; GET / lists them", name)
}

// magicPrefix is the prefix of the magic numbers: 2547000000NN.
const magicPrefix = "2547000000"

// magicAmount is the base of the magic amounts: 66,000 plus NN shillings.
const magicAmount = 66000

// magic returns the behaviour that the number or the amount selects.
func magic(op, phone string, amount int64, amounts bool) Behaviour {
	digits, ok := strings.CutPrefix(phone, magicPrefix)
	if (!ok || digits == "00") && amounts && amount >= magicAmount && amount < magicAmount+100 {
		digits, ok = fmt.Sprintf("%02d", amount-magicAmount), true
	}
	if ok {
		for _, b := range behaviour {
			if b.Magic == digits && b.has(op) {
				return b
			}
		}
	}
	return promptResults[0]
}

// Fault selects a behaviour for the next requests; magic numbers count only without one.
type Fault struct {
	Behaviour string `json:"behaviour"`
	Op        string `json:"op,omitempty"`    // "": every operation of the behaviour
	Phone     string `json:"phone,omitempty"` // "": every number
	Times     int    `json:"times,omitempty"` // 0: once; negative: until the next reset
}
