// Package momo speaks Daraja, the HTTP interface of the mobile money operator in Kenya.
//
// It translates and classifies; it decides nothing. A Client asks once and says what became of the
// question: it never asks the same thing again by itself, except that it renews an access token that
// the gateway turned down before looking at the request. Whoever calls it owns retries.
//
// # Outcomes
//
// Asking for a collection or a payout has three outcomes: accepted (queued, nothing has moved),
// refused (nothing was queued) and unknown. Whatever the catalogue in outcome.go doesn't hold is
// unknown: a broken connection, an answer that is not JSON, a code that nobody documented. An
// unknown outcome is resolved by asking what happened, never by asking for the money again under
// another id.
//
// A collection is not idempotent: two submissions are two prompts. A payout is idempotent by its
// OriginatorConversationID, which is the id of the attempt.
//
// # Witnesses
//
// Results arrive as callbacks, which are unsigned and delivered once. ParseCallback therefore reads
// them as observations, as do Resolve (our own question) and Pull (the operator's statement). Two
// witnesses must agree before money counts; the ledger judges that, not this package.
//
// # Addresses
//
// Every callback address is CallbackBase/{token}/{kind}, where the token is the attempt's 64
// hexadecimal digits, or the standing token for what belongs to no attempt, and the kind is an
// exchange.CallbackKind. The operator refuses addresses that contain certain words, so New checks
// the base and every submission checks the rest.
//
// # Secrets and persons
//
// The operator's answers repeat access tokens and telephone numbers. No text that leaves this package
// contains them, and neither Config nor Client prints its secrets.
package momo
