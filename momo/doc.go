// Package momo is what Kivuko needs of a mobile money operator, and the judge of what operators report.
//
// # Operators
//
// An Operator is one provider's interface. Its driver is a folder of this one and a line in the root's table of operators.
// Only the driver knows the operator's codes, fields and addresses: it derives the class of each outcome
// (exchange.OutcomeClass), and everything else works on the class.
//
// # The judge
//
// Judge turns the evidence about one attempt into a verdict. It is a pure function: it calls nothing, stores nothing and has
// no clock. Operators sign nothing, so no single source is enough: a callback could be forged, a query may name no amount,
// and a row of the statement names only what the payer typed. Evidence that two sources do not confirm makes
// an attempt pending, claimed or disputed, never failed.
package momo
