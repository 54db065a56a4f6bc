package daraja

import "kivuko/exchange"

// outcome is what a code says about its payment.
type outcome struct {
	state     exchange.ObservationState
	class     exchange.OutcomeClass
	soft      bool // late successes are known for this code, or the code alone does not prove failure
	config    bool // our credentials, entitlement or funds
	transient bool // a new attempt may succeed later
}

var (
	succeeded = outcome{state: exchange.SeenSucceeded}
	pending   = outcome{state: exchange.SeenPending}
	open      = outcome{state: exchange.SeenUnknown}
)

// failed is a definite failure of a class.
func failed(c exchange.OutcomeClass) outcome { return outcome{state: exchange.SeenFailed, class: c} }

// failedOur is a definite failure for which our own set-up or funds are to blame.
func failedOur(c exchange.OutcomeClass) outcome {
	return outcome{state: exchange.SeenFailed, class: c, config: true}
}

// later is a failure after which a new attempt may succeed.
func later(c exchange.OutcomeClass) outcome {
	return outcome{state: exchange.SeenFailed, class: c, transient: true}
}

// softly is a failure that may still turn into a success.
func softly(c exchange.OutcomeClass) outcome {
	return outcome{state: exchange.SeenFailed, class: c, soft: true, transient: true}
}

// shortOf is a failure for lack of our own money.
func shortOf(c exchange.OutcomeClass) outcome {
	return outcome{state: exchange.SeenFailed, class: c, config: true, transient: true}
}

// result is what a code of the operator means. This is the only place that says so; docs/result-codes.md is generated from
// it.
type result struct {
	outcome
	meaning string
	source  string
}

// The sources of what a code means.
const (
	portal       = "portal"
	generic      = "portal, generic codes"
	inSandbox    = "seen in the operator's sandbox"
	inProduction = "seen in production"
	integrators  = "integrators"
	likePayouts  = "portal, as for payouts"
)

// promptResults are the result codes of a prompt, the same in the callback and in the query. Only the code counts: the two
// channels have different texts for the same code.
var promptResults = map[string]result{
	"0":          {succeeded, "Paid", portal},
	"1":          {failed(exchange.ClassPayer), "The payer's balance is insufficient", portal},
	"2":          {failed(exchange.ClassPayer), "Below the minimum", portal},
	"3":          {failed(exchange.ClassPayer), "Above the maximum", portal},
	"4":          {failed(exchange.ClassPayer), "Would exceed the payer's daily limit", portal},
	"8":          {failedOur(exchange.ClassConfig), "Would exceed our shortcode's balance, which needs a sweep", portal},
	"17":         {later(exchange.ClassBusy), "Same amount and payer within two minutes", portal},
	"26":         {later(exchange.ClassBusy), "Busy", generic},
	"1001":       {later(exchange.ClassBusy), "The subscriber is locked by another transaction", integrators},
	"1019":       {softly(exchange.ClassUnanswered), "Expired", portal + "; " + inSandbox},
	"1025":       {failed(exchange.ClassUnanswered), "The prompt could not be sent, or its text is too long", portal},
	"9999":       {failed(exchange.ClassUnanswered), "The prompt could not be sent", integrators},
	"1032":       {softly(exchange.ClassDeclined), "Cancelled by the payer", portal + "; " + inSandbox + " and in production"},
	"1037":       {softly(exchange.ClassUnanswered), "No response", portal + "; " + inSandbox + " and in production"},
	"2001":       {failed(exchange.ClassPayer), "Wrong PIN of the payer", portal},
	"2028":       {failedOur(exchange.ClassConfig), "Product, transaction type or receiver do not fit", portal},
	"SFC_IC0003": {failedOur(exchange.ClassConfig), "Operator unknown", portal},
	"8006":       {failed(exchange.ClassPayer), "The payer's PIN is locked", portal},
	"4999":       {pending, "Still under processing", inSandbox},
}

// payoutResults are the result codes of a payout.
var payoutResults = map[string]result{
	"0":          {succeeded, "Paid", portal},
	"1":          {shortOf(exchange.ClassFloat), "Our utility account is short", portal},
	"2":          {failed(exchange.ClassPayee), "Below the minimum", portal},
	"3":          {failed(exchange.ClassPayee), "Above the maximum", portal},
	"4":          {later(exchange.ClassPayeeLimit), "Would exceed the payee's daily limit", portal},
	"8":          {later(exchange.ClassPayeeLimit), "Would exceed the payee's largest balance", portal},
	"11":         {failedOur(exchange.ClassAccount), "Our account is not active", portal},
	"2006":       {failedOur(exchange.ClassAccount), "Our account is not active", portal},
	"21":         {failedOur(exchange.ClassAccount), "The initiator has no permission", portal},
	"17":         {softly(exchange.ClassBusy), "Internal failure; a status query must agree", portal},
	"26":         {softly(exchange.ClassBusy), "Busy; a status query must agree", portal},
	"18":         {failedOur(exchange.ClassCredential), "Credential check failed", generic},
	"20":         {failedOur(exchange.ClassCredential), "Unresolved initiator", generic},
	"22":         {failedOur(exchange.ClassCredential), "The initiator is not active", generic},
	"2001":       {failedOur(exchange.ClassCredential), "The API credential is wrong; not a PIN here", portal},
	"8006":       {failedOur(exchange.ClassCredential), "The API credential is locked", portal},
	"2028":       {failedOur(exchange.ClassAccount), "The shortcode is not permitted", portal},
	"2040":       {failed(exchange.ClassPayee), "The payee is not registered", portal},
	"15":         {open, "Duplicate id, which says nothing about the first payout", portal},
	"TP40153":    {failedOur(exchange.ClassCredential), "The API user is locked", inProduction},
	"SFC_IC0003": {failed(exchange.ClassPayee), "The number is invalid or not the operator's", portal},
}

// reversalResults are the result codes of a reversal.
var reversalResults = map[string]result{
	"0":       {succeeded, "Reversed", portal},
	"R000001": {succeeded, "Already reversed, so the money was returned", portal},
	"R000002": {failed(exchange.ClassDenied), "No such collection", portal},
	"1":       {shortOf(exchange.ClassFloat), "Our account is short", portal},
	"11":      {failedOur(exchange.ClassAccount), "Our account is not active", likePayouts},
	"21":      {failedOur(exchange.ClassAccount), "The initiator has no permission", likePayouts},
	"2001":    {failedOur(exchange.ClassCredential), "The API credential is wrong", likePayouts},
	"2006":    {failedOur(exchange.ClassAccount), "Our account is not active", likePayouts},
	"2028":    {failedOur(exchange.ClassAccount), "The shortcode is not permitted", likePayouts},
	"8006":    {failedOur(exchange.ClassCredential), "The API credential is locked", likePayouts},
}

// transactionStatuses are the values of TransactionStatus in the answer to a status query. An answer names no code of the
// payment.
var transactionStatuses = map[string]result{
	"completed":  {succeeded, "Paid", portal + "; " + inProduction},
	"cancelled":  {failed(exchange.ClassDenied), "Not paid", portal},
	"declined":   {failed(exchange.ClassDenied), "Not paid", portal},
	"expired":    {failed(exchange.ClassDenied), "Not paid", portal},
	"failed":     {failed(exchange.ClassDenied), "Not paid", portal},
	"reversed":   {failed(exchange.ClassDenied), "Returned", portal},
	"rejected":   {failed(exchange.ClassDenied), "Not paid", portal},
	"initiated":  {pending, "Under way", portal},
	"authorized": {pending, "Under way", portal},
	"pending":    {pending, "Under way", portal},
}

// resultOf finds a code in a table; a code that is not in it is an unknown outcome.
func resultOf(table map[string]result, code string) outcome {
	if r, ok := table[code]; ok {
		return r.outcome
	}
	return open
}

// ourFault reports whether a status or balance query with this code failed because of our configuration: its codes are those
// of payouts (portal, generic codes).
func ourFault(code string) bool { return resultOf(payoutResults, code).class.StopsPayouts() }

// Classify returns the class of a code in the result of a prompt or a payout.
func Classify(of exchange.PaymentDirection, code string) exchange.OutcomeClass {
	if of == exchange.Collection {
		return resultOf(promptResults, code).class
	}
	return resultOf(payoutResults, code).class
}

// apply copies an outcome into an observation.
func (o outcome) apply(to *exchange.Observation) {
	to.State, to.Class, to.Soft, to.Config, to.Transient = o.state, o.class, o.soft, o.config, o.transient
}
