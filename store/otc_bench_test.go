//nolint:forbidigo // speeds are no money
package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// BenchmarkOTCQueue measures pages of the queue with a hundred thousand deposits that wait: the first page, a page far in, and that of
// one officer.
func BenchmarkOTCQueue(b *testing.B) {
	const waiting = 100_000
	s := storetest.New(b)
	merchant, officer := storetest.User(b, s, exchange.RoleVendor), storetest.User(b, s, exchange.RoleOTCOfficer)
	bank := storetest.BankAccount(b, s)
	r := exchange.OTCRequest{ID: storetest.NewID(b), Method: exchange.OTCByBank, Fiat: kes("100"), Asset: "KES"}
	_, err := storetest.OpenOTC(b.Context(), s, exchange.IntendOTCOpen, r, storetest.PrincipalOf(merchant))
	if err != nil {
		b.Fatal(err)
	}
	storetest.Exec(b, s, `ALTER TABLE otc_deposits DISABLE TRIGGER ALL`)
	storetest.Exec(b, s, `ALTER TABLE otc_deposits DROP CONSTRAINT otc_deposits_payment_reference_check`)
	storetest.Exec(b, s, `INSERT INTO otc_deposits (id, merchant_id, created_by, method, fiat_amount, status, status_detail, payment_reference, bank_account_id, expires_at, sender_account_name, sender_last4,
			sender_bank_name, sender_bank_branch, receipt_number, asset, phone, received_amount, value_date, received_at, bank_reference, assigned_to, submitted_at, intent_id, created_at, updated_at)
		SELECT gen_random_uuid(), $1, $1, 'bank', 100, CASE n % 4 WHEN 0 THEN 'assigned' ELSE 'pending' END, 'review', 'B' || n, $2, now() + interval '2 days', '', '', '', '', '', 'KES', '',
			CASE WHEN n % 2 = 0 THEN 100 END, CASE WHEN n % 2 = 0 THEN date '2026-03-02' END, CASE WHEN n % 2 = 0 THEN now() - n * interval '1 second' END, CASE WHEN n % 2 = 0 THEN 'R' || n ELSE '' END,
			CASE n % 4 WHEN 0 THEN $3::uuid END, now() - n * interval '1 second', gen_random_uuid(), now(), now()
		FROM generate_series(1, $4::int) n`, merchant.ID, bank.ID, officer.ID, waiting)
	storetest.Exec(b, s, `ANALYZE otc_deposits`)
	for b.Loop() {
		for name, of := range map[string]struct {
			filter store.OTCQueueFilter
			page   store.Page
		}{
			"first page":         {store.OTCQueueFilter{}, store.Page{Number: 1, Size: 50}},
			"page 100":           {store.OTCQueueFilter{}, store.Page{Number: 100, Size: 50}},
			"one officer's page": {store.OTCQueueFilter{AssignedTo: officer.ID}, store.Page{Number: 1, Size: 50}},
		} {
			var took []float64
			for range 100 {
				began := time.Now()
				if all, total, err := s.OTCQueue(b.Context(), of.filter, of.page); err != nil || len(all) != 50 || total != store.MaxQueueCount {
					b.Fatalf("%d of %d, %v", len(all), total, err)
				}
				took = append(took, float64(time.Since(began).Microseconds())/1000)
			}
			slices.Sort(took)
			p95 := took[len(took)*95/100]
			fmt.Printf("otc queue: the %s of %d deposits takes %.2f ms (p95)\n", name, waiting, p95)
			b.ReportMetric(p95, "ms_p95")
		}
	}
	b.ReportMetric(0, "ns/op")
}
