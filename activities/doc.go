// Package activities is what flows do to the outside world: the database, the mobile money operator,
// the signers and the chains.
//
// Each struct stands for one outside world and declares the small interfaces that it needs. Method
// names are unique over all structs, because Temporal knows an activity by its bare name.
//
// Rules. An activity may run twice, die half-way, or finish without anybody hearing of it, so each
// one asks first what is known and only then acts. What leaves the house is written down before and
// after. An outcome that nobody knows is a result, never an error. Errors are for failures to find
// out, and errors.go alone gives them their Temporal form. Payloads carry ids; rows with personal
// data are read where they are needed.
package activities
