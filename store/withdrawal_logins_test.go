package store_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// together runs statements in one transaction with a login of a process.
func (c *outlet) together(t *testing.T, role store.Role, statements ...string) error {
	t.Helper()
	tx, err := storetest.As(t, c.s, role).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, s := range statements {
		if _, err := tx.ExecContext(t.Context(), s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func quotedID(id uuid.UUID) string { return "'" + id.String() + "'" }

// Officers approved a withdrawal, so the transfer that carries it out asks no others. Another transfer of the same officer does.
func TestAWithdrawalCarriesNoOtherTransfer(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	w := c.approved(t, c.buys(t, "1300"))
	_, other := c.carries(t, usdt("900"), c.one)
	_, own := c.carries(t, w.Payout, c.one)
	elsewhere := exchange.TransferRequest{
		ID: storetest.NewID(t), RequestedBy: c.one.UserID, WalletID: c.coffer.ID, Network: exchange.Tron, Amount: w.Payout, Recipient: exchange.Recipient{Address: elsewhere(t).Address},
	}
	strange, err := storetest.Ask(t.Context(), c.s, exchange.IntendTransfer, elsewhere.ID, elsewhere.ID, elsewhere.Terms(), c.one)
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]exchange.Asked{"a transfer of more": other, "a transfer to another address": strange} {
		asked, err := storetest.Ask(t.Context(), c.s, exchange.IntendWithdrawalExecute, storetest.NewID(t), w.ID, exchange.WithdrawalStep{TransferIntent: own.IntentID}.Terms(), c.one)
		if err != nil {
			t.Fatal(err)
		}
		err = c.together(t, store.RoleFlows,
			`UPDATE intents SET used_at = now(), used_by = 'otc-withdrawal:' || object_id WHERE id = `+quotedID(asked.IntentID),
			`UPDATE releases SET passed_at = now() WHERE purpose = 'withdrawal' AND object_id = `+quotedID(w.ID),
			`UPDATE otc_withdrawals SET version = version + 1, status = 'executing', executed_by = `+quotedID(c.one.UserID)+`, executed_at = now(), transfer_intent_id = `+
				quotedID(a.IntentID)+` WHERE id = `+quotedID(w.ID))
		if err == nil || !strings.Contains(err.Error(), "did not ask for") {
			t.Errorf("%s carries it: %v", name, err)
		}
	}
}

// The money of a withdrawal that may be paid stays held, whoever has a login.
func TestMoneyOfWithdrawalsIsNotFreed(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	paying, bank, sale := c.executed(t, c.asks(t, "1000", c.phone)), c.reserved(t, "1000"), c.executed(t, c.sells(t, "10", c.phone))
	c.begun(t, paying)
	c.selling(t, sale)
	sale = c.now(t, sale)
	for _, role := range []store.Role{store.RoleAPI, store.RoleFlows, store.RoleMomo, store.RoleChain, store.RoleSigner} {
		for _, hold := range []uuid.UUID{paying.HoldID, bank.HoldID, bank.BankHoldID, sale.HoldID, sale.HouseHoldID} {
			for _, change := range []string{`status = 'released'`, `status = 'captured'`, `amount = 1`} {
				if err := c.together(t, role, `UPDATE holds SET `+change+` WHERE id = `+quotedID(hold)); sqlState(err) != "KV002" {
					t.Errorf("%s sets %s: %v", role, change, err)
				}
			}
		}
	}
	c.wantShillings(t, "100000", "2000")
}

// Crypto that the treasury sells to a merchant asks as many officers wherever it goes, and counts.
func TestBoughtCryptoAsksOfficersWhereverItGoes(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	storetest.Patch(t, c.s, store.LimitPatch{Rules: rule("100", "1000")})
	r := c.buys(t, "13000")
	r.DestinationID = storetest.Destination(t, c.s, c.address(t, c.wallet.Address), c.master).ID
	w := c.open(t, r)
	if out := c.advance(t, w); out.Needed != 2 || !out.RestsUntil.IsZero() {
		t.Errorf("to a wallet of the merchant it needs %d, and rests until %s", out.Needed, out.RestsUntil)
	}
	if out := c.advance(t, c.open(t, c.asks(t, "10", c.phone))); out.Needed != 2 {
		t.Errorf("after it the next one needs %d", out.Needed)
	}
}

// A destination in our custody rests like any other: its owner may be whoever has the merchant's session.
func TestDestinationsInOurCustodyRest(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	other := storetest.WalletOn(t, c.s, storetest.User(t, c.s, exchange.RoleCustomer), exchange.Tron)
	r := c.buys(t, "1300")
	r.DestinationID = c.confirm(t, c.add(t, c.address(t, other.Address), c.agent)).ID
	w := c.open(t, r)
	c.advance(t, w)
	if out := c.approve(t, w, c.boss); out.Withdrawal.Detail != exchange.WaitRest || out.RestsUntil.IsZero() {
		t.Fatalf("approved by one it is %+v", out)
	}
	if err := c.together(t, store.RoleFlows, `UPDATE releases SET passed_at = now() WHERE purpose = 'withdrawal' AND object_id = `+quotedID(w.ID)); sqlState(err) != "KV006" {
		t.Errorf("before it has rested: %v", err)
	}
	c.approve(t, w, c.chief)
	c.is(t, w, exchange.WithdrawalApproved, exchange.WaitExecution)
}

// A quote prices the withdrawal that used it up, and no other.
func TestWithdrawalsUseTheirQuotesUp(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	w := c.open(t, c.sells(t, "10", c.phone))
	q := c.quote(t, exchange.QuoteSell, usdt("10"), exchange.FeeByMomo)
	r := exchange.WithdrawalRequest{ID: storetest.NewID(t), DestinationID: c.phone.ID, Source: money.USDT, Payout: money.KES, WalletID: c.wallet.ID, QuoteID: q.ID}
	a, err := storetest.Ask(t.Context(), c.s, exchange.IntendWithdrawal, r.ID, r.ID, r.Terms(), c.agent)
	if err != nil {
		t.Fatal(err)
	}
	err = c.together(t, store.RoleFlows, `UPDATE intents SET used_at = now(), used_by = 'otc-withdrawal:' || object_id WHERE id = `+quotedID(a.IntentID),
		`INSERT INTO otc_withdrawals (id, merchant_id, requested_by, intent_id, status, status_detail, method, source_asset, source_amount, source_wallet_id, payout_asset,
			payout_amount, fee_amount, fee_profile_id, fx_quote_id, rate, value, destination_id, digest, hold_id, created_at, updated_at)
		SELECT `+quotedID(r.ID)+`, merchant_id, requested_by, `+quotedID(a.IntentID)+`, status, status_detail, method, source_asset, source_amount, source_wallet_id, payout_asset,
			payout_amount, fee_amount, fee_profile_id, `+quotedID(q.ID)+`, rate, value, destination_id, digest, hold_id, now(), now() FROM otc_withdrawals WHERE id = `+quotedID(w.ID))
	if sqlState(err) != "KV002" || !strings.Contains(err.Error(), "not what was asked for") {
		t.Errorf("a withdrawal at a quote that is not used up: %v", err)
	}
}

// The fee of shillings that stay shillings is what the closest profile takes.
func TestFeesOfWithdrawalsAreComputedAnew(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	c.fees(t)
	w := c.open(t, c.asks(t, "1000", c.account))
	for name, changed := range map[string]string{
		"no fee": `payout_amount, 0, NULL, payout_amount`, "a higher fee": `payout_amount + 60, 60, fee_profile_id, payout_amount`, "a fee without a profile": `source_amount, fee_amount, NULL, payout_amount`,
	} {
		r := c.asks(t, "1000", c.account)
		a, err := storetest.Ask(t.Context(), c.s, exchange.IntendWithdrawal, r.ID, r.ID, r.Terms(), c.agent)
		if err != nil {
			t.Fatal(err)
		}
		err = c.together(t, store.RoleFlows, `UPDATE intents SET used_at = now(), used_by = 'otc-withdrawal:' || object_id WHERE id = `+quotedID(a.IntentID),
			`INSERT INTO otc_withdrawals (id, merchant_id, requested_by, intent_id, status, status_detail, method, source_asset, payout_asset, source_amount, fee_amount, fee_profile_id,
				payout_amount, value, destination_id, digest, hold_id, created_at, updated_at)
			SELECT `+quotedID(r.ID)+`, merchant_id, requested_by, `+quotedID(a.IntentID)+`, status, status_detail, method, source_asset, payout_asset, `+changed+`, value, destination_id, digest,
				hold_id, now(), now() FROM otc_withdrawals WHERE id = `+quotedID(w.ID))
		if sqlState(err) != "KV002" || !strings.Contains(err.Error(), "not what was asked for") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What an officer says of a payment by bank is stored in the officer's words, by the login of the flows alone, and with a line of the statement
// if the officer named that line.
func TestWordsAboutWithdrawalsByBank(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	if _, err := s.StartDeposits(t.Context(), exchange.Tron, blockOf("a", 100)); err != nil {
		t.Fatal(err)
	}
	c := outletOf(t, newMerchantsIn(t, s))
	c.takesTwoAtTheBank(t)
	w, l := c.reserved(t, "5000"), c.statement(t, "FT7", kes("5000"))
	ask := func(line uuid.UUID) exchange.Asked {
		t.Helper()
		step := said(w, "ft-7")
		step.LineID = line
		a, err := storetest.Ask(t.Context(), s, exchange.IntendWithdrawalPaid, storetest.NewID(t), w.ID, step.Terms(), c.one)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	alone := ask(uuid.Nil)
	say := func(reference string) string {
		return `INSERT INTO bank_confirmations (id, withdrawal_id, officer_id, reference, paid_on, amount, note, created_at) SELECT ` + quotedID(alone.IntentID) + `, ` + quotedID(w.ID) + `, ` +
			quotedID(c.one.UserID) + `, '` + reference + `', (now() AT TIME ZONE 'Africa/Nairobi')::date, 5000, '', now()`
	}
	use := `UPDATE intents SET used_at = now(), used_by = 'otc-withdrawal:' || object_id WHERE id = ` + quotedID(alone.IntentID)
	if err := c.together(t, store.RoleFlows, use, say("FT8")); sqlState(err) != "KV002" {
		t.Errorf("other words than the officer's: %v", err)
	}
	if err := c.together(t, store.RoleFlows, use, say("FT7"), `UPDATE otc_withdrawals SET version = version + 1, status = 'completed', completed_at = now(), receipt = 'FT7', statement_line_id = `+
		quotedID(l.ID)+` WHERE id = `+quotedID(w.ID)); err == nil || !strings.Contains(err.Error(), "names a line that does not show it") {
		t.Errorf("a line that the officer did not name: %v", err)
	}
	flows := storetest.OpenAs(t, url, store.RoleFlows, store.Options{})
	w, err := flows.StepWithdrawal(t.Context(), w.ID, ask(l.ID))
	if err != nil || w.Status != exchange.WithdrawalCompleted || w.LineID != l.ID {
		t.Errorf("with the line it is %s, %v", w.Status, err)
	}
	wantBooks(t, s)
}

// A request of an officer is carried out once: what holds a withdrawal or a deposit, or lets it go on, asks for another one.
func TestHoldsAreAskedForAnew(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	w := c.open(t, c.asks(t, "1000", c.phone))
	c.advance(t, w)
	c.do(t, exchange.IntendWithdrawalHold, w, exchange.WithdrawalStep{Text: "suspect"}, c.one)
	c.do(t, exchange.IntendWithdrawalUnhold, w, exchange.WithdrawalStep{}, c.one)
	set := `UPDATE otc_withdrawals SET version = version + 1, status = 'on_hold', held_from = 'pending_approval' WHERE id = ` + quotedID(w.ID)
	if err := c.together(t, store.RoleFlows, set); sqlState(err) != "KV001" {
		t.Errorf("a withdrawal is held by a request that was carried out: %v", err)
	}
	c.do(t, exchange.IntendWithdrawalHold, w, exchange.WithdrawalStep{Text: "suspect"}, c.one)
	set = `UPDATE otc_withdrawals SET version = version + 1, status = 'pending_approval', held_from = '' WHERE id = ` + quotedID(w.ID)
	if err := c.together(t, store.RoleFlows, set); sqlState(err) != "KV001" {
		t.Errorf("a withdrawal goes on by a request that was carried out: %v", err)
	}

	d := newOTC(t)
	o := d.open(t, "100")
	run := func(change string) error {
		_, err := storetest.As(t, d.s, store.RoleFlows).ExecContext(t.Context(), `UPDATE otc_deposits SET version = version + 1, `+change+` WHERE id = `+quotedID(o.ID))
		return err
	}
	d.do(t, exchange.IntendOTCHold, o.ID, exchange.OTCStep{Text: "suspect"}, d.one)
	d.do(t, exchange.IntendOTCUnhold, o.ID, exchange.OTCStep{}, d.one)
	if err := run(`status = 'on_hold', held_from = 'pending'`); sqlState(err) != "KV001" {
		t.Errorf("a deposit is held by a request that was carried out: %v", err)
	}
	d.do(t, exchange.IntendOTCHold, o.ID, exchange.OTCStep{Text: "suspect"}, d.one)
	if err := run(`status = 'pending', held_from = ''`); sqlState(err) != "KV001" {
		t.Errorf("a deposit goes on by a request that was carried out: %v", err)
	}
	d.do(t, exchange.IntendOTCUnhold, o.ID, exchange.OTCStep{}, d.one)
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	d.do(t, exchange.IntendOTCRelease, o.ID, exchange.OTCStep{}, d.one)
	if err := run(`status = 'claimed', claimed_by = ` + quotedID(d.one.UserID) + `, claim_expires_at = now() + interval '30 minutes'`); sqlState(err) != "KV001" {
		t.Errorf("a deposit is claimed by a request that was carried out: %v", err)
	}
}
