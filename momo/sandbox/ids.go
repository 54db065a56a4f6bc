package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math/big"
	"time"
)

var eat = time.FixedZone("EAT", 3*60*60)

const (
	layoutStamp  = "20060102150405"
	alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)

func randomFrom(alphabet string, n int) string {
	out := make([]byte, n)
	for i := range out {
		k, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
		if err != nil {
			panic(err) // the system's source of randomness never fails
		}
		out[i] = alphabet[k.Int64()]
	}
	return string(out)
}

func randomHex(n int) string {
	b := make([]byte, (n+1)/2)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)[:n]
}

// newReceipt makes a receipt like the operator's: letters for year (S is 2024) and month, a character for the day, and seven
// more that are not all zero.
func newReceipt(at time.Time) string {
	t := at.In(eat)
	return string([]byte{alphanumeric[(t.Year()-2006)%26], alphanumeric[t.Month()-1], "0123456789ABCDEFGHIJKLMNOPQRSTUV"[t.Day()]}) +
		randomFrom(alphanumeric[:26], 1) + randomFrom(alphanumeric, 6)
}

// newCheckoutRequestID contains the time with milliseconds and the last nine digits of the payer's number.
func newCheckoutRequestID(at time.Time, phone string) string {
	t := at.In(eat)
	return fmt.Sprintf("ws_CO_%s%03d%s", t.Format("02012006150405"), t.Nanosecond()/int(time.Millisecond), phone[max(0, len(phone)-9):])
}

func newRequestID() string {
	return randomHex(4) + "-" + randomHex(4) + "-" + randomHex(4) + "-" + randomHex(12) + randomFrom("0123456789", 4)
}

func newConversationID(at time.Time) string {
	return "AG_" + at.In(eat).Format("20060102") + "_" + randomHex(20)
}
