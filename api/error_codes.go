package api

import (
	"fmt"
	"html"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"kivuko/exchange"
)

// meaning is how a code looks to clients, and what its page says.
type meaning struct {
	status int
	title  string
	means  string
	do     string
}

// meanings is the only list of codes with their statuses. The pages at errorsPath, docs/words.md and the enum of the contract are made from it.
var meanings = map[exchange.Code]meaning{
	exchange.CodeInternal: {
		http.StatusInternalServerError, "Internal error", "A fault of the service. The answer says no more than the request id.",
		"Send the same request with the same Idempotency-Key once more. If it fails again, tell support the request_id.",
	},
	exchange.CodeUnavailable: {
		http.StatusServiceUnavailable, "Temporarily unavailable", "A dependency is away, or its answer did not come in time.",
		"Wait as long as Retry-After says, and send the same request with the same Idempotency-Key.",
	},
	exchange.CodeMalformed: {
		http.StatusBadRequest, "Unreadable request", "The request is not HTTP, not JSON, not UTF-8, has a key twice, or is nested deeper than 8 levels.",
		"Correct how the client writes requests.",
	},
	exchange.CodeInvalid: {
		http.StatusUnprocessableEntity, "Invalid request", "Fields or parameters break rules.", "Look at errors: each entry names a field and the rule that it breaks.",
	},
	exchange.CodeUnauthenticated: {
		http.StatusUnauthorized, "Not authenticated", "There is no access token, or it is expired, revoked or not of this service; or a refresh token does not count.",
		"Get a new access token with the refresh token, or log in again.",
	},
	exchange.CodeInvalidCredentials: {
		http.StatusUnauthorized, "Wrong credentials", "The account is unknown, the secret is wrong, or the account is deactivated. The answer is the same for all of them.",
		"Ask the user for the credentials again.",
	},
	exchange.CodePINLocked: {
		http.StatusTooManyRequests, "PIN login locked", "There were too many wrong PINs.", "Wait as long as Retry-After says, or log in with the password.",
	},
	exchange.CodeForbidden: {http.StatusForbidden, "Not allowed", "The role of the account may not do this at all.", "Use an account with another role."},
	exchange.CodeNotFound:  {http.StatusNotFound, "Not found", "There is no such object, or it is not the caller's to see.", "Check the id and whose it is."},
	exchange.CodeConflict:  {http.StatusConflict, "Already exists", "Something that has to be unique exists already.", "Use what exists, or choose another value."},
	exchange.CodeStateConflict: {
		http.StatusConflict, "Not possible in this state", "The state of the object does not allow it.", "Read the object and decide anew.",
	},
	exchange.CodePrecondition: {
		http.StatusPreconditionFailed, "Changed meanwhile", "The object is not any more as the version in If-Match.", "Read the object again, and repeat the change with its new ETag.",
	},
	exchange.CodeInsufficientFunds: {http.StatusConflict, "Insufficient funds", "The available balance of an account is too small.", "Choose a smaller amount, or add money."},
	exchange.CodeInsufficientOffer: {http.StatusConflict, "Offer too small", "The offer has less left than is asked for.", "Choose a smaller amount or another offer."},
	exchange.CodeLimitReached: {
		http.StatusConflict, "Limit reached",
		"The caller has as many of them at a time as it may have (pending orders, sales of a day for which nothing came, prompts to one phone, wallets, subvendors), or would send more than it may in a transaction, a day or a month.",
		"Finish or cancel what is open, or wait for the next day or month; GET /api/v1/auth/user/me/limits says what is left.",
	},
	exchange.CodeRateChanged: {http.StatusConflict, "Rate changed", "The rate is not the one that the request expects.", "Show the user the rate of now, and ask again."},
	exchange.CodeEscrowDry: {
		http.StatusServiceUnavailable, "No escrow address free", "Every escrow address of the network is in use, and no more may be made. Nothing was opened.",
		"Wait as long as Retry-After says, and send the same request with the same Idempotency-Key.",
	},
	exchange.CodeSuspended: {
		http.StatusServiceUnavailable, "Payouts suspended", "The mobile money operator refuses the credential of the service; nothing is paid out to phones until that is mended.",
		"Try again later with the same Idempotency-Key.",
	},
	exchange.CodeExpired:     {http.StatusGone, "Expired", "The time of the object is over.", "Begin anew, for example with another quote."},
	exchange.CodeUnsupported: {http.StatusNotImplemented, "Not offered", "The feature is named in the contract and not offered here.", "Do without it."},
	exchange.CodeIdempotencyReused: {
		http.StatusUnprocessableEntity, "Idempotency key reused", "The key was used for another request.", "Use a new key for each request, and the same one only to repeat it.",
	},
	exchange.CodeIdempotencyBusy: {http.StatusConflict, "Request in flight", "The first request with the key is still running.", "Wait a moment, and send it again with the same key."},
	exchange.CodeIdempotencyRequired: {
		http.StatusPreconditionRequired, "Idempotency key required", "The request moves money and has no Idempotency-Key.", "Send a key of your own, and the same one when you repeat the request.",
	},
	exchange.CodeRateLimited: {http.StatusTooManyRequests, "Too many requests", "There were too many requests.", "Wait as long as Retry-After says."},
	exchange.CodeTooLarge: {
		http.StatusRequestEntityTooLarge, "Too large", "The body exceeds the operation's limit; with status 431, the headers exceed 8 KiB.", "Send less.",
	},
	exchange.CodeMediaType: {
		http.StatusUnsupportedMediaType, "Unsupported media type", "The body is not application/json, or is compressed.", "Send plain JSON with its Content-Type.",
	},
	exchange.CodeMethodNotAllowed: {
		http.StatusMethodNotAllowed, "Method not allowed", "The address does not take the method.", "Use one of the methods that Allow lists.",
	},
}

// errorsPath is where the page of each code is; it is the type of a problem.
const errorsPath = "/docs/errors/"

// errorPage explains a code to people.
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
