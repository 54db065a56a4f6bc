package exchange

// OutcomeClass is what the outcome of a movement of mobile money means, in words of our own. A driver derives it from its
// operator's code, and everything else works on the class: the code is only shown. Empty: not known, or money moved as two
// sources of the operator prove.
type OutcomeClass string

// The classes of a payout that was definitely not made.
const (
	ClassPayee      OutcomeClass = "payee"       // this payee can't be paid, now or later
	ClassPayeeLimit OutcomeClass = "payee_limit" // the payee's account has reached a limit of its own
	ClassFloat      OutcomeClass = "float"       // our utility account is short
	ClassBusy       OutcomeClass = "busy"        // the operator was busy or could not be reached
	ClassConfig     OutcomeClass = "config"      // our configuration
	ClassCredential OutcomeClass = "credential"  // our credential
	ClassAccount    OutcomeClass = "account"     // our account, or our right to pay out from it
	ClassDenied     OutcomeClass = "denied"      // definitely not paid, for an unknown reason
)

// StopsPayouts reports whether every later payout would be refused too. Two such refusals in a row open the breaker. The
// database counts them (count_credential).
func (c OutcomeClass) StopsPayouts() bool { return c == ClassCredential || c == ClassAccount }

// The classes of what officers found out. The database accepts them only with the officers' rows.
const (
	// ClassDeclared is an attempt that two officers declared not made. This is no proof, so an order stays doubted for ever.
	ClassDeclared OutcomeClass = "declared"
	// ClassAttested is an attempt that an officer proved by its receipt.
	ClassAttested OutcomeClass = "attested"
)

// The classes of a prompt that was not paid, besides ClassBusy, ClassConfig and ClassDenied.
const (
	ClassDeclined   OutcomeClass = "declined"   // the payer declined
	ClassPayer      OutcomeClass = "payer"      // the payer could not pay: balance, limit or PIN
	ClassUnanswered OutcomeClass = "unanswered" // the payer did not answer, or the prompt could not be shown
)

// The classes of a payout that was not sent.
const (
	ClassDatabase OutcomeClass = "database"  // the database is another one than before
	ClassOverdue  OutcomeClass = "overdue"   // the step was carried out later than its flow expected
	ClassTrial    OutcomeClass = "trial"     // another payout is on trial, after our credential was refused
	ClassPayeeDay OutcomeClass = "payee_day" // the payee has reached the operator's daily limit
	ClassFrozen   OutcomeClass = "frozen"    // an officer has frozen all outgoing payments
	ClassOfficers OutcomeClass = "officers"  // more officers have to decide, by what left meanwhile
)

// OutcomeClasses lists the classes that are stored with an attempt. The first is that of an attempt without a class.
func OutcomeClasses() []OutcomeClass {
	return []OutcomeClass{
		"", ClassPayee, ClassPayeeLimit, ClassFloat, ClassBusy, ClassConfig, ClassCredential, ClassAccount, ClassDenied, ClassDeclared, ClassAttested,
		ClassDeclined, ClassPayer, ClassUnanswered,
	}
}
