// Package api is the HTTP interface of Kivuko. A handler decodes, authorises, makes one call, and
// encodes; rules of the business live in exchange, transactions in store, and waiting in workflows.
//
// How a request travels:
//
//  1. server.go: the request gets an id, a deadline, security headers, a log line and a recover.
//  2. routes.go: the one table of routes names for each its action of the policy, its rate limit, its
//     body limit and its idempotency rule. The router refuses to start with a route that has no
//     action and is not marked public.
//  3. session.go: the bearer token is opened and its session is checked against the store, through a
//     cache that lives for at most five seconds and forgets a user at once when this process changes
//     the user.
//  4. idempotency.go: a POST that creates or moves something claims its key. The claim carries the id
//     of the object to be created, so a retry after a crash makes the same object.
//  5. decode.go and params.go: strict reading. Unknown fields, duplicate keys, NUL, numbers in place
//     of amounts and anything over a limit are refused with the field and the rule.
//  6. The handler. Whose objects a caller may see is part of the SQL of each read (store.View), so a
//     foreign object is simply not found.
//  7. errors.go: one map from error codes to statuses, one problem body (RFC 9457).
//
// openapi.yaml is the contract. Tests hold the route table against its paths in both directions, and
// every response of every test against its schemas.
//
// The process of the API holds no key of a wallet and no secret of the mobile money operator.
package api
