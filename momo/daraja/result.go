package daraja

import "kivuko/exchange"

// outcome is what a result code says about its payment.
type outcome struct {
	state     exchange.ObservationState
	soft      bool // late successes are known for this code, or the code alone does not prove failure
	config    bool // our credentials, entitlement or funds
	transient bool // a new attempt may succeed later
}

var (
	succeeded = outcome{state: exchange.SeenSucceeded}
	failed    = outcome{state: exchange.SeenFailed}
	failedOur = outcome{state: exchange.SeenFailed, config: true}
	later     = outcome{state: exchange.SeenFailed, transient: true}
	softly    = outcome{state: exchange.SeenFailed, soft: true, transient: true}
	pending   = outcome{state: exchange.SeenPending}
	open      = outcome{state: exchange.SeenUnknown}
)

// promptResults are the result codes of a prompt, the same in the callback and in the query. Only the code counts: the two
// channels have different texts for the same code.
var promptResults = map[string]outcome{
	"0":          succeeded, // portal
	"1":          failed,    // portal: the payer's balance is insufficient
	"2":          failed,    // portal: below the minimum
	"3":          failed,    // portal: above the maximum
	"4":          failed,    // portal: would exceed the payer's daily limit
	"8":          failedOur, // portal: would exceed our shortcode's balance; needs a sweep
	"17":         later,     // portal: same amount and payer within two minutes
	"26":         later,     // portal, generic codes: busy
	"1001":       later,     // integrators: the subscriber is locked by another transaction
	"1019":       softly,    // portal, seen in the sandbox: expired
	"1025":       failed,    // portal: the prompt could not be sent, or its text is too long
	"9999":       failed,    // integrators: the prompt could not be sent
	"1032":       softly,    // portal, seen in the sandbox and in production: cancelled by the payer
	"1037":       softly,    // portal, seen in the sandbox and in production: no response
	"2001":       failed,    // portal: wrong PIN of the payer
	"2028":       failedOur, // portal: product, transaction type or receiver do not fit
	"SFC_IC0003": failedOur, // portal: operator unknown
	"8006":       failed,    // portal: the payer's PIN is locked
	"4999":       pending,   // seen in the sandbox: still under processing
}

// payoutResults are the result codes of a payout.
var payoutResults = map[string]outcome{
	"0":    succeeded,                                                   // portal
	"1":    {state: exchange.SeenFailed, config: true, transient: true}, // portal: the utility account is short
	"2":    failed,                                                      // portal: below the minimum
	"3":    failed,                                                      // portal: above the maximum
	"4":    later,                                                       // portal: would exceed the payee's daily limit
	"8":    later,                                                       // portal: would exceed the payee's largest balance
	"11":   failedOur,                                                   // portal: our account is not active
	"2006": failedOur,                                                   // portal: our account is not active
	"21":   failedOur,                                                   // portal: the initiator has no permission
	"17":   softly,                                                      // portal: internal failure; a status query must agree
	"26":   softly,                                                      // portal: busy; a status query must agree
	"18":   failedOur,                                                   // portal, generic codes: credential check failed
	"20":   failedOur,                                                   // portal, generic codes: unresolved initiator
	"22":   failedOur,                                                   // portal, generic codes: initiator not active
	"2001": failedOur,                                                   // portal: the API credential is wrong (not a PIN here)
	"8006": failedOur,                                                   // portal: the API credential is locked
	"2028": failedOur,                                                   // portal: the shortcode is not permitted
	"2040": failed,                                                      // portal: the payee is not registered
	"15":   open,                                                        // portal: duplicate id; says nothing about the first payout
	// Production: the API user is locked.
	"TP40153": failedOur,
	// Portal: the number is invalid or not the operator's.
	"SFC_IC0003": failed,
}

// reversalResults are the result codes of a reversal.
var reversalResults = map[string]outcome{
	"0":       succeeded,                                                   // portal
	"R000001": succeeded,                                                   // portal: already reversed, so the money was returned
	"R000002": failed,                                                      // portal: no such collection
	"1":       {state: exchange.SeenFailed, config: true, transient: true}, // portal: our account is short
	"11":      failedOur,                                                   // portal, as for payouts
	"21":      failedOur,
	"2001":    failedOur,
	"2006":    failedOur,
	"2028":    failedOur,
	"8006":    failedOur,
}

// transactionStatuses are the values of TransactionStatus in the answer to a status query: the portal's list and those seen
// in production.
var transactionStatuses = map[string]outcome{
	"completed":  succeeded,
	"cancelled":  failed,
	"declined":   failed,
	"expired":    failed,
	"failed":     failed,
	"reversed":   failed,
	"rejected":   failed,
	"initiated":  pending,
	"authorized": pending,
	"pending":    pending,
}

// credentialResults are the codes with which a status or balance query itself fails because of our configuration (portal,
// generic codes).
var credentialResults = map[string]bool{
	"18": true, "20": true, "21": true, "22": true, "2001": true, "2006": true, "2028": true,
	"8006": true, "11": true, "TP40153": true,
}

// resultOf finds a code in a table; a code that is not in it is an unknown outcome.
func resultOf(table map[string]outcome, code string) outcome {
	if o, ok := table[code]; ok {
		return o
	}
	return open
}

// apply copies an outcome into an observation.
func (o outcome) apply(to *exchange.Observation) {
	to.State, to.Soft, to.Config, to.Transient = o.state, o.soft, o.config, o.transient
}
