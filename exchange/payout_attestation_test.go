package exchange_test

import (
	"testing"

	"kivuko/exchange"
)

func TestNotesThatAreReceipts(t *testing.T) {
	for note, want := range map[string]string{
		"UKL1234567": "UKL1234567", " UKL1234567 ": "UKL1234567", "not paid": "", "NOT PAID AT ALL": "", "ukl1234567": "", "UKL": "",
		"UKL12345678901234567890": "", "": "",
	} {
		if got := exchange.ReceiptIn(note); got != want {
			t.Errorf("%q reads as %q, want %q", note, got, want)
		}
	}
}
