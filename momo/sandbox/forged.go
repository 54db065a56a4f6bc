package sandbox

import (
	"encoding/json"
	"strconv"
	"time"
)

// What somebody posts to us who is not the operator and knows the addresses of callbacks, so that a test can play it. The data of
// one prompt agree with each other, and its receipt is in no books.

// forgedTime is when the forged payment was made.
func forgedTime(p Prompt) string {
	return p.CreatedAt.Add(time.Second).In(eat).Format("20060102150405")
}

// ForgedReceipt is the receipt of both.
func ForgedReceipt(p Prompt) string { return "UKLF" + p.Phone[len(p.Phone)-6:] }

// ForgedResult says to a prompt's CallbackURL that the payer paid an amount.
func ForgedResult(p Prompt, amount int64) any {
	return map[string]any{"Body": map[string]any{"stkCallback": map[string]any{
		"MerchantRequestID": p.MerchantRequestID, "CheckoutRequestID": p.CheckoutRequestID, "ResultCode": 0, "ResultDesc": "paid",
		"CallbackMetadata": map[string]any{"Item": []map[string]any{
			{"Name": "Amount", "Value": amount},
			{"Name": "MpesaReceiptNumber", "Value": ForgedReceipt(p)},
			{"Name": "TransactionDate", "Value": json.Number(forgedTime(p))},
			{"Name": "PhoneNumber", "Value": p.Phone},
		}},
	}}}
}

// ForgedRefusal says to a prompt's CallbackURL that the payer declined.
func ForgedRefusal(p Prompt) any {
	return map[string]any{"Body": map[string]any{"stkCallback": map[string]any{
		"MerchantRequestID": p.MerchantRequestID, "CheckoutRequestID": p.CheckoutRequestID, "ResultCode": 1032, "ResultDesc": "declined",
	}}}
}

// ForgedNotice says to the address of confirmations that our number was paid an amount, by the receipt of ForgedResult.
func ForgedNotice(p Prompt, amount int64) any {
	return map[string]any{
		"TransID": ForgedReceipt(p), "TransTime": forgedTime(p), "TransAmount": strconv.FormatInt(amount, 10) + ".00", "BillRefNumber": p.Reference, "MSISDN": p.Phone,
	}
}
