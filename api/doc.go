// Package api is the HTTP interface of Kivuko. A handler decodes, authorises, makes one call, and
// encodes. Business rules are in exchange, transactions in store, and everything that waits in workflows.
//
// The steps of a request:
//
//  1. server.go: the request gets an id, a deadline, security headers, a log line and a recover.
//  2. routes.go: the table of routes gives each route its action of the policy, its rate limit, its body
//     limit and its idempotency rule. The API does not start with a route that has no action and is not
//     marked public.
//  3. session.go: the bearer token is verified and its session is checked in the store, through a cache
//     of five seconds. When this process changes a user, it removes the user from the cache at once.
//  4. idempotency.go: a POST that creates or moves something claims its key. The claim has the id of
//     the object to be created, so a retry after a crash creates the same object.
//  5. decode.go and params.go: strict decoding. Unknown fields, duplicate keys, NUL, amounts as JSON
//     numbers and anything over a limit are refused with the field and the rule.
//  6. The handler. The SQL of each read limits the caller to the objects that it may see (store.View),
//     so an object of another account is not found.
//  7. errors.go: one map from error codes to statuses, one problem body (RFC 9457).
//
// openapi.yaml is the contract. Tests check that the route table and its paths are the same, and check
// every response of every test against its schemas.
//
// The API process has no wallet keys and no secrets of the mobile money operator.
package api
