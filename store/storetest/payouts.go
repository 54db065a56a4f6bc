package storetest

import (
	"strconv"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// RemittanceToBank opens a remittance of 10 USDT against the BUY offer of a market, whose shillings go to a bank account. The
// first one gives the house 300,000 KES at its bank.
func (m Market) RemittanceToBank(t testing.TB, s *store.Store) exchange.Order {
	t.Helper()
	if len(bankAccounts(t, s)) == 0 {
		Bank(t, s, money.Must(money.KES, "300000"))
	}
	if err := s.SeedCatalogs(t.Context()); err != nil {
		t.Fatal(err)
	}
	Exec(t, s, `UPDATE countries SET is_active = true WHERE alpha2_code = 'GB'`)
	r := exchange.OrderRequest{
		ID: NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: money.Must(money.USDT, "10"), Type: exchange.OffRampSell,
		Subtype: exchange.RemittanceOffRamp, PayoutMethod: exchange.PaymentMethodBank,
		Sender:      exchange.Sender{Name: "Jane Roe", Country: "GB", Phone: "447700900123"},
		Beneficiary: exchange.Beneficiary{AccountName: "Amina Otieno", BankName: "Bank of Examples", BankCode: "01", AccountNumber: "0011223344"},
	}
	o, err := OpenOffRamp(t.Context(), s, r, PrincipalOf(m.Customer))
	if err != nil {
		t.Fatalf("seed a remittance: %v", err)
	}
	return o
}

// TakeCrypto delivers the crypto of a sale on TRON in the next final block, takes it, and clears its sender.
func TakeCrypto(t testing.TB, s *store.Store, o exchange.Order) exchange.Order {
	t.Helper()
	ctx := t.Context()
	now := time.Now().UTC().Truncate(time.Second)
	block := func(n uint64) exchange.ChainBlock {
		return exchange.ChainBlock{Number: n, ID: "b" + strconv.FormatUint(n, 10), Parent: "b" + strconv.FormatUint(n-1, 10), Time: now}
	}
	cursor, err := s.StartDeposits(ctx, o.Network, block(100))
	if err != nil {
		t.Fatal(err)
	}
	tx := "tx-" + o.ID.String()
	_, err = s.RecordFinalBlock(ctx, exchange.BlockScan{
		Network: o.Network, Block: block(cursor.Final.Number + 1),
		Movements: []exchange.ChainMovement{{TxID: tx, From: "Tstranger0000000000000000000000000", To: o.EscrowAddress, Amount: o.Price.Crypto}},
		Minimum:   map[money.Asset]money.Amount{money.USDT: money.Must(money.USDT, "0.01")},
	})
	if err != nil {
		t.Fatalf("seed a final block: %v", err)
	}
	all, _, err := s.ListChainDeposits(ctx, store.ChainDepositFilter{TxID: tx}, store.Page{Number: 1, Size: 1})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d deposits, %v", len(all), err)
	}
	taken, err := s.TakeDeposit(ctx, o.ID, all[0].ID)
	if err != nil || taken.Verdict != exchange.TakenExact {
		t.Fatalf("seed a deposit: taken as %q, %v", taken.Verdict, err)
	}
	err = s.RecordDepositScreening(ctx, all[0].ID, []exchange.Screening{{Screener: "deny_list", Verdict: exchange.VerdictClear}})
	if err != nil {
		t.Fatal(err)
	}
	return taken.Order
}
