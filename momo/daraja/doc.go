// Package daraja is a client of Daraja, the HTTP interface of the mobile money operator in Kenya.
//
// It translates and classifies; it decides nothing. A Client sends each request once and returns its outcome. It repeats a
// request only when the gateway refused the access token before reading the request. All other retries are the caller's.
//
// # Outcomes
//
// A request for a collection or a payout has three outcomes: accepted (queued, nothing has moved), refused (nothing was
// queued) and unknown. Everything that is not in the catalogue of outcome.go is unknown: a broken connection, a response
// that is not JSON, an undocumented code. Resolve an unknown outcome by querying its status, never by requesting the money
// again under another id.
//
// A collection is not idempotent: two submissions are two prompts. A payout is idempotent by its
// OriginatorConversationID, which is the id of the attempt.
//
// # Sources
//
// Results arrive as callbacks, which are unsigned and delivered once. Notices.ParseCallback therefore returns them as observations,
// as do Resolve (a status query) and Pull (the operator's statement). Two sources must agree before money counts; the ledger
// decides that, not this package.
//
// # Addresses
//
// Every callback address is CallbackBase/{token}/{kind}. The token is the attempt's 64 hexadecimal digits, or the standing
// token for callbacks that belong to no attempt; the kind is an exchange.CallbackKind. The operator refuses addresses that
// contain certain words, so New checks the base and every submission checks the rest.
//
// # Secrets and personal data
//
// The operator's responses repeat access tokens and telephone numbers. No text that leaves this package contains them, and
// neither Config nor Client prints its secrets.
package daraja
