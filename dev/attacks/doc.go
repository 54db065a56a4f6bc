// Package attacks plays against the whole local stack what a review found that an attacker could do: one test for each finding,
// named after it. docs/attacks.md lists them, with what each attack got before and gets now, and what is proven elsewhere.
//
// An attacker has here what the finding gave it: a stranger's account, one officer's login, Temporal's port, the database login
// of one process, the addresses of callbacks. Only where time must have passed, or a rule of the house is another one, does a
// test write to the database as its owner. What left is counted by the chain's own record and by the operator's books.
package attacks
