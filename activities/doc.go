// Package activities holds the actions of flows on other systems: the database, the mobile money operator, the signers
// and the chains.
//
// Each struct stands for one outside system and declares the small interfaces that it needs. Method names are unique over
// all structs, because Temporal knows an activity by its bare name.
//
// Rules. An activity may run twice, crash half-way, or finish while its response is lost, so each one first checks what is
// known and only then acts. Every outgoing action is recorded before and after. An unknown outcome is a result, never an
// error. Errors mean that the outcome could not be read, and only errors.go converts them to Temporal errors. Payloads carry
// ids; rows with personal data are read where they are needed.
package activities
