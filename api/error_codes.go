package api

import (
	"fmt"
	"html"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"kivuko/exchange"
)

// meaning is the status, title and explanation of a code.
type meaning struct {
	status int
	title  string
	means  string
	do     string
}

// meanings is the only list of codes with their statuses. The pages at errorsPath, docs/words.md and the enum of the
// contract are generated from it.
var meanings = map[exchange.Code]meaning{
	exchange.CodeInternal: {
		http.StatusInternalServerError, "Internal error", "A fault of the service. The response has no details beyond the request id.",
		"Send the same request again with the same Idempotency-Key. If it fails again, give the request_id to support.",
	},
	exchange.CodeUnavailable: {
		http.StatusServiceUnavailable, "Temporarily unavailable", "A dependency is down or did not answer in time.",
		"Wait for the time in Retry-After. Then send the same request with the same Idempotency-Key.",
	},
	exchange.CodeMalformed: {
		http.StatusBadRequest, "Unreadable request", "The request is not HTTP, not JSON, not UTF-8, has a key twice, or is nested deeper than 8 levels.",
		"Correct how the client encodes requests.",
	},
	exchange.CodeInvalid: {
		http.StatusUnprocessableEntity, "Invalid request", "Fields or parameters break rules.", "Read errors: each entry names a field and the rule that it breaks.",
	},
	exchange.CodeUnauthenticated: {
		http.StatusUnauthorized, "Not authenticated", "The access token is missing, expired, revoked or of another service, or the refresh token is not valid.",
		"Get a new access token with the refresh token, or log in again.",
	},
	exchange.CodeInvalidCredentials: {
		http.StatusUnauthorized, "Wrong credentials", "The account is unknown or deactivated, or the secret is wrong. The response is the same for all three.",
		"Ask the user for the credentials again.",
	},
	exchange.CodeStepUpRequired: {
		http.StatusForbidden, "Proof required", "The operation moves money or rights, and the caller has not proven itself in the last five minutes, or only by something too weak.",
		"Ask the user for the passkey, PIN or password that detail names, send it to POST /api/v1/auth/step-up, and repeat the request with the same Idempotency-Key.",
	},
	exchange.CodePINLocked: {
		http.StatusTooManyRequests, "PIN delayed", "There were too many wrong PINs, from a device that the account does not know or from this one.",
		"Wait for the time in Retry-After, log in with the password, or use a device that the user has logged in on.",
	},
	exchange.CodeForbidden: {http.StatusForbidden, "Not allowed", "The role of the account does not allow this operation.", "Use an account with another role."},
	exchange.CodeNotFound:  {http.StatusNotFound, "Not found", "The object does not exist, or the caller may not see it.", "Check the id and the account that owns the object."},
	exchange.CodeConflict:  {http.StatusConflict, "Already exists", "A value that must be unique is in use already.", "Use the existing object, or choose another value."},
	exchange.CodeStateConflict: {
		http.StatusConflict, "Not possible in this state", "The state of the object does not allow it.", "Read the object again and decide again.",
	},
	exchange.CodePrecondition: {
		http.StatusPreconditionFailed, "Changed meanwhile", "The object has changed since the version in If-Match.", "Read the object again, and repeat the change with its new ETag.",
	},
	exchange.CodeInsufficientFunds: {http.StatusConflict, "Insufficient funds", "The available balance of an account is too small.", "Choose a smaller amount, or add money."},
	exchange.CodeInsufficientOffer: {http.StatusConflict, "Offer too small", "The offer has less left than the requested amount.", "Choose a smaller amount or another offer."},
	exchange.CodeLimitReached: {
		http.StatusConflict, "Limit reached",
		"The caller has reached a limit: of open objects (pending orders, sales of a day without a deposit, prompts to one phone, wallets, subvendors), or of the amount per transaction, day or month.",
		"Finish or cancel open objects, or wait for the next day or month. GET /api/v1/auth/user/me/limits shows what is left.",
	},
	exchange.CodeRateChanged: {http.StatusConflict, "Rate changed", "The rate is not the one that the request expects.", "Show the user the current rate, and ask again."},
	exchange.CodeEscrowExhausted: {
		http.StatusServiceUnavailable, "No escrow address free", "All escrow addresses of the network are in use, and the pool has its maximum size. Nothing was opened.",
		"Wait for the time in Retry-After. Then send the same request with the same Idempotency-Key.",
	},
	exchange.CodeSuspended: {
		http.StatusServiceUnavailable, "Payouts suspended", "The mobile money operator refuses the credential of the service. Payouts to phones stop until it is corrected.",
		"Try again later with the same Idempotency-Key.",
	},
	exchange.CodeExpired:     {http.StatusGone, "Expired", "The object has expired.", "Start again, for example with another quote."},
	exchange.CodeUnsupported: {http.StatusNotImplemented, "Not offered", "The contract has the feature, but this deployment does not offer it.", "Don't use the feature here."},
	exchange.CodeIdempotencyReused: {
		http.StatusUnprocessableEntity, "Idempotency key reused", "The key was used for another request.", "Use a new key for each request. Use the same key only to repeat a request.",
	},
	exchange.CodeIdempotencyBusy: {http.StatusConflict, "Request in flight", "The first request with the key is still running.", "Wait a moment. Then send it again with the same key."},
	exchange.CodeIdempotencyRequired: {
		http.StatusPreconditionRequired, "Idempotency key required", "The request moves money and has no Idempotency-Key.", "Create a key and send it. Send the same key when you repeat the request.",
	},
	exchange.CodeRateLimited: {http.StatusTooManyRequests, "Too many requests", "There were too many requests.", "Wait for the time in Retry-After."},
	exchange.CodeTooLarge: {
		http.StatusRequestEntityTooLarge, "Too large", "The body, or the file that errors names, exceeds the operation's limit; with status 431, the headers exceed 8 KiB.", "Send a smaller request.",
	},
	exchange.CodeMediaType: {
		http.StatusUnsupportedMediaType, "Unsupported media type", "The body is not application/json, or for a file not multipart/form-data, or is compressed.",
		"Send plain JSON, or a plain form with the file, with its Content-Type.",
	},
	exchange.CodeRange: {http.StatusRequestedRangeNotSatisfiable, "No such range", "The range of the file that Range asks for is beyond its end.", "Ask for a range within the size in Content-Range."},
	exchange.CodeMethodNotAllowed: {
		http.StatusMethodNotAllowed, "Method not allowed", "The path does not support the method.", "Use one of the methods that Allow lists.",
	},
}

// errorsPath is the parent of the codes' pages; the URL of a page is the type of a problem.
const errorsPath = "/docs/errors/"

// errorPage is the page that explains a code.
func (s *server) errorPage(c *call) error {
	code := exchange.Code(c.fc.Params("code"))
	m, known := meanings[code]
	if !known {
		return notFound()
	}
	c.fc.Set(fiber.HeaderContentType, "text/html; charset=utf-8")
	c.fc.Set(fiber.HeaderCacheControl, "public, max-age=86400")
	return c.fc.SendString(fmt.Sprintf(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>%[1]s</title></head>
<body>
<h1>%[2]s</h1>
<p><code>%[1]s</code>, status %[3]d</p>
<h2>What it means</h2>
<p>%[4]s</p>
<h2>What to do</h2>
<p>%[5]s</p>
</body>
</html>
`, code, html.EscapeString(m.title), m.status, html.EscapeString(m.means), html.EscapeString(m.do)))
}
