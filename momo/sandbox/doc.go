// Package sandbox is a mobile money operator that runs on one machine: Daraja's endpoints, callbacks, behaviours and faults,
// with its own books.
//
// It is for development and tests. Kivuko's books are compared with its books: an effect in them is money that really moved,
// whatever callbacks were lost. Its books are an append-only file of JSON lines that is replayed at start; a last line that
// a crash cut short is removed. A restarted sandbox resumes what the previous process left open.
//
// # Faithfulness
//
//   - Issuing an access token invalidates the previous one.
//   - A callback is sent once. It is not repeated after an error response or a failed connection.
//   - Prompts have no idempotency; a phone with an open prompt can't be prompted again.
//   - Payouts are idempotent by OriginatorConversationID.
//   - A paid prompt is reported twice: as its result and as a payment to our number, with one receipt.
//   - Status queries, balances and reversals are answered by callback.
//   - Config.Tariff sets the charge of a payout. It comes from the utility account, and status queries report it.
//   - A movement of float from the working to the utility account has no idempotency. /control/faults applies to it those
//     behaviours of payouts that list the operation "float".
//   - The query for a number's owner (Hakikisha) is answered at once; 52 and 53 have no owner.
//   - Money can't be moved from a wallet, or our account, that does not have it. Wallets and transactions have the
//     operator's limits.
//
// Callbacks go to loopback addresses only, unless Config.CallbackHosts names others.
//
// # Magic numbers and amounts
//
// The number 2547000000NN selects the behaviour NN. Where Config.MagicAmounts is set, so does the amount of 66,000 and NN
// shillings from or to another number. Every other number works. NN of a prompt:
//
//	00 success                        23 paid, connection breaks, no callback
//	01 insufficient (1)               24 paid, empty 500.001.1001
//	02 below minimum (2)              25 no result, ever
//	03 above maximum (3)              26 paid, no receipt in the callback
//	04 payer's daily limit (4)        27 paid, callback from another address
//	08 our balance limit (8)          28 declined, answered with 500
//	10 wrong PIN (2001)               29 declined, callback lost
//	11 expired (1019)                 30 paid, callback lost
//	12 declined (1032)                31 paid, callback twice
//	13 no response (1037)             32 paid, callback late
//	14 rule limited (17)              33 1037, later paid
//	15 busy (26)                      34 1032, later paid
//	16 locked, as a result (1001)     35 1019, later paid
//	17 push too long (1025)           36 pays a shilling less
//	18 push failed (9999)             37 pays a shilling more
//	19 wrong product (2028)           38 callback before the acknowledgement
//	20 wrong operator (SFC_IC0003)    39 paid, no metadata
//	21 PIN locked (8006)              40 paid, Balance without value
//	22 uncatalogued code (7461)       41 paid, foreign CheckoutRequestID
//	42 paid, query says 1032          43 paid, query says 4999
//	44 paid, query says 500.001.1001  45 the same, blank and with status 200
//	46 paid, query finds nothing      47 paid, answered with 500
//	48 paid, connection breaks        49 paid, answered with a page and 502
//	80 refused: subscriber locked     81 refused: wrong credentials
//	82 refused: no merchant           83 refused: throttled
//	84 refused: bad number            85 refused: maintenance
//	86 refused: empty 500.001.1001
//	90 confirmation masked            91 confirmation hashed
//	92 confirmation plain             93 confirmation lost
//	94 callback and confirmation lost
//
// NN of a payout:
//
//	50 and all others: success        64 paid, "System internal error.", no result
//	51 utility short (1)              65 credential wrong (2001)
//	52 payee not registered (2040)    66 credential locked (TP40153)
//	53 invalid number (SFC_IC0003)    67 result before the acknowledgement
//	54 payee's daily limit (4)        68 paid, status says Failed
//	55 paid, result lost              69 paid, no status response
//	56 paid, result twice             70 refused: throttled
//	57 paid, result late              71 queue timeout, then failed (2040)
//	58 payee's balance limit (8)      72 paid, status says Pending
//	59 queue timeout, then paid       73 paid, status has another amount
//	60 paid, answered with 500        74 queue timeout, then paid, result lost
//	61 paid, connection breaks        75 no result, ever
//	62 refused: not entitled (403)    76 our account inactive (11)
//	63 "System internal error."       77 busy (26)
//	85 refused: maintenance           78 failed (2040), result lost
//	79 failed (2040), later paid, with a second result
//
// NN of a payment that the payer starts: 90 to 93 as above; 95 is rejected.
//
// # Control
//
// GET / is a page with all behaviours, or JSON for requests that accept application/json.
//
//	GET  /control/books         the operator's records: effects, wallets, prompts, payouts, deliveries
//	GET  /control/certificate   the certificate that encrypts initiator passwords
//	GET  /control/faults        the faults that are set
//	POST /control/faults        {"behaviour","op","phone","times"}: for the next requests, before magic numbers
//	POST /control/reset         clears all faults
//	POST /control/release       continues what is held back as late
//	POST /control/settle        responds when nothing is running
//	POST /control/revoke        invalidates the current access token
//	POST /control/pay           {"phone","reference","amount"}: a payer pays of their own accord
//	POST /control/fund          {"account","amount"}: money from outside into "working" or "utility"
package sandbox
