package store_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// forge runs statements in one transaction with the login of the flows.
func forge(t *testing.T, s *store.Store, statements ...string) error {
	t.Helper()
	c := storetest.As(t, s, store.RoleFlows)
	tx, err := c.BeginTx(context.WithoutCancel(t.Context()), &sql.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // it is over, or it is not wanted
	for _, q := range statements {
		if _, err := tx.ExecContext(t.Context(), q); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// The login of the flows books no money at a bank that neither a line nor two officers show.
func TestMoneyNeedsAWitness(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o, other := d.open(t, "100"), d.confirmed(t, "100")
	id, account := "'"+o.ID.String()+"'", func(code string) string { return `(SELECT id FROM ledger_accounts WHERE code = '` + code + `')` }
	err := forge(t, d.s,
		`UPDATE otc_deposits SET received_amount = 100, received_at = now(), value_date = now(), bank_reference = 'X', version = version + 1 WHERE id = `+id,
		`INSERT INTO ledger_entries (key, kind, object_type, object_id, digest, at) VALUES ('otc_deposit:`+o.ID.String()+`:received', 'otc_deposit.received', 'otc_deposit', `+id+`, decode(repeat('00', 16), 'hex'), now())`,
		`INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT e.id, a.id, a.amount FROM ledger_entries e,
			(VALUES (`+account("bank:"+other.BankID.String()+":KES")+`, 100), (`+account("orders_in_flight:house:KES")+`, -100)) AS a (id, amount) WHERE e.key = 'otc_deposit:`+o.ID.String()+`:received'`)
	if err == nil {
		t.Error("money that nothing shows was booked")
	}
	wantBalance(t, d.s, d.bank.Ledger(), "100", "0")
}

// The login of the flows neither makes a quote hold that has ended or is for much less, nor takes shillings in the merchant's place.
func TestTheDatabaseHoldsQuotesToTheirTerms(t *testing.T) {
	t.Parallel()
	v := newTillAt(t, time.Date(2027, 3, 5, 9, 0, 0, 0, time.UTC)) // a Friday at noon in Kenya
	friday := v.today()
	late, much := v.bought(t, "13000"), v.bought(t, "13000")
	v.wait(6 * 24 * time.Hour)
	late, much = v.proven(t, late, "13000", friday.AddDate(0, 0, 4)), v.proven(t, much, "26000", friday)
	if late.Status != exchange.OTCInfo || much.Status != exchange.OTCInfo {
		t.Fatalf("proven %+v and %+v", late, much)
	}
	for name, set := range map[string]struct {
		o      exchange.OTCDeposit
		change string
	}{
		"a quote that ended": {late, ""},
		"twice the amount":   {much, `, crypto_amount = deposit_crypto(received_amount - fee_amount, rate, asset)`},
		"shillings that nobody took": {late, `, asset = 'KES', network = NULL, to_wallet_id = NULL, fx_quote_id = NULL, rate = NULL, quoted_fiat = NULL, quote_ends_at = NULL,
			requested_crypto = NULL, crypto_amount = NULL, fee_profile_id = NULL`},
	} {
		if err := forge(t, v.s, `UPDATE otc_deposits SET status = 'confirmed', version = version + 1`+set.change+` WHERE id = '`+set.o.ID.String()+`'`); err == nil {
			t.Errorf("%s is confirmed", name)
		}
	}
	// Nor does it take another quote for the merchant, or make one.
	v.enterRate(t)
	q, err := v.s.OpenQuote(t.Context(), store.QuoteForOTC(storetest.NewID(t), late), v.by)
	if err != nil {
		t.Fatal(err)
	}
	err = forge(t, v.s, `UPDATE fx_quotes SET status = 'consumed', consumed_at = created_at, object_type = 'otc_deposit', object_id = '`+late.ID.String()+`', version = version + 1 WHERE id = '`+q.ID.String()+`'`,
		`UPDATE otc_deposits d SET status = 'confirmed', version = d.version + 1, fx_quote_id = q.id, rate = q.rate, quoted_fiat = q.fiat_amount, quote_ends_at = q.expires_at,
			requested_crypto = q.amount, crypto_amount = q.amount, fee_profile_id = q.profile_id FROM fx_quotes q WHERE d.id = '`+late.ID.String()+`' AND q.id = '`+q.ID.String()+`'`)
	if err == nil || !strings.Contains(err.Error(), "did not take") {
		t.Errorf("a quote that the merchant did not take: %v", err)
	}
	if err := forge(t, v.s, `INSERT INTO fx_quotes (id) VALUES (gen_random_uuid())`); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("a quote of the flows: %v", err)
	}
}

// A question stops the clock: the time for money does not run out while the merchant thinks, and the officer's lease is not its end.
func TestQuestionsStopTheClock(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "100")
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	d.do(t, exchange.IntendOTCAsk, o.ID, exchange.OTCStep{Text: "When did you pay?"}, d.one)
	d.wait(100 * time.Hour)
	d.do(t, exchange.IntendOTCAnswer, o.ID, exchange.OTCStep{Text: "Today."}, d.by)
	d.do(t, exchange.IntendOTCRelease, o.ID, exchange.OTCStep{}, d.one)
	if o, err := d.s.LapseOTC(t.Context(), o.ID); err != nil || o.Status != exchange.OTCPending {
		t.Errorf("it is %s (%s), %v", o.Status, o.Detail, err)
	}
}

// A proof is evidence of money: with one a deposit waits for an officer, however long its bank takes.
func TestAProofKeepsADeposit(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "100")
	d.do(t, exchange.IntendOTCProof, o.ID, exchange.OTCStep{FileID: storetest.Proof(t, d.s, d.by, "a receipt").ID}, d.by)
	d.wait(2 * exchange.OTCMoneyLife)
	if o, err := d.s.LapseOTC(t.Context(), o.ID); err != nil || o.Status != exchange.OTCPending {
		t.Errorf("it is %s (%s), %v", o.Status, o.Detail, err)
	}
	d.do(t, exchange.IntendOTCReject, o.ID, exchange.OTCStep{Text: "no money came"}, d.one)
}

// Money that is booked by its reference takes no line from an officer, also when it is confirmed anew.
func TestBookedMoneyTakesNoOtherLine(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.agreed(t, "100", "FT1")
	d.off(t, d.one)
	third := storetest.PrincipalOf(storetest.User(t, d.s, exchange.RoleOTCOfficer))
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, third)
	d.shown(t, d.paid("FT2", "no reference", "100"))
	d.refuse(t, exchange.CodeInvalid, exchange.IntendOTCConfirm, o.ID, words(d.line(t, "FT2")), third)
	d.do(t, exchange.IntendOTCConfirm, o.ID, d.typed("100", "FT1"), third)
	if o = d.do(t, exchange.IntendOTCConfirm, o.ID, d.typed("100", "FT1"), d.two); o.Status != exchange.OTCConfirmed || o.ConfirmedBy != third.UserID {
		t.Errorf("confirmed anew %+v", o)
	}
	wantBalance(t, d.s, d.bank.Ledger(), "200", "0")
	wantBooks(t, d.s)
}

// A line that names the deposit of another merchant is nobody else's money.
func TestALineThatNamesAnotherMerchant(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	theirs := d.open(t, "100")
	d.do(t, exchange.IntendOTCCancel, theirs.ID, exchange.OTCStep{Text: "changed my mind"}, d.by)
	d.shown(t, d.paid("FT1", theirs.Reference, "100"))
	thief := storetest.PrincipalOf(storetest.User(t, d.s, exchange.RoleVendor))
	o, err := storetest.OpenOTC(t.Context(), d.s, exchange.IntendOTCOpen, d.shillings(t, "100"), thief)
	if err != nil {
		t.Fatal(err)
	}
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	d.refuse(t, exchange.CodeInvalid, exchange.IntendOTCConfirm, o.ID, words(d.line(t, "FT1")), d.one)
}

// A second payment under a reference is told to the merchant, also while the first one waits for its officer.
func TestASecondPaymentIsLate(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "100")
	d.shown(t, d.paid("FT1", o.Reference, "100"))
	d.shown(t, d.paid("FT2", o.Reference, "100"))
	l := d.line(t, "FT2")
	list, _, err := d.s.ListExceptions(t.Context(), store.ExceptionFilter{LineID: l.ID}, store.Page{Number: 1, Size: 10})
	if err != nil || len(list) != 1 || list[0].DepositID != o.ID || list[0].Kind != exchange.ExcLate {
		t.Errorf("the exceptions are %+v, %v", list, err)
	}
}

// The fees of shillings are the closest ones in force, and as much as they make.
func TestTheDatabaseComputesFeesOfDeposits(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	ids := map[string]string{"general": "'" + storetest.NewID(t).String() + "'", "own": "'" + storetest.NewID(t).String() + "'"}
	storetest.Exec(t, d.s, `BEGIN; ALTER TABLE fee_profiles DISABLE TRIGGER USER; INSERT INTO fee_profiles (id, scope, merchant_id, version, fixed, basis_points, minimum, spread_basis_points, note, valid_from, created_by, created_at)
		SELECT x.id, 'otc_deposit', x.merchant, 1, x.fixed, 0, 0, 0, '', now() - interval '1 hour', '`+d.boss.UserID.String()+`', now() - interval '1 hour'
		FROM (VALUES (`+ids["general"]+`::uuid, NULL::uuid, 10), (`+ids["own"]+`, '`+d.merchant.ID.String()+`', 50)) AS x (id, merchant, fixed); ALTER TABLE fee_profiles ENABLE TRIGGER USER; COMMIT`)
	for name, c := range map[string]struct{ fees, fault string }{
		"of everybody":        {ids["general"] + `, fee_amount = 10`, "closest fees"},
		"none":                {`NULL, fee_amount = 0`, "closest fees"},
		"less than they make": {ids["own"] + `, fee_amount = 0`, "another fee"},
		"as they are":         {ids["own"] + `, fee_amount = 50`, ""},
	} {
		o, err := storetest.OpenOTC(t.Context(), d.s, exchange.IntendOTCDraft, d.shillings(t, "1000"), d.by)
		if err != nil {
			t.Fatal(err)
		}
		a, err := storetest.Ask(t.Context(), d.s, exchange.IntendOTCSubmit, storetest.NewID(t), o.ID, exchange.OTCStep{}.Terms(), d.by)
		if err != nil {
			t.Fatal(err)
		}
		err = forge(t, d.s, `UPDATE intents SET used_at = now(), used_by = 'otc-deposit:' || object_id WHERE id = '`+a.IntentID.String()+`'`,
			`UPDATE otc_deposits SET version = version + 1, updated_at = now(), status = 'pending', status_detail = 'money', submitted_at = now(), bank_account_id = '`+d.bank.ID.String()+
				`', fee_profile_id = `+c.fees+` WHERE id = '`+o.ID.String()+`'`)
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("submitted with fees %s: %v", name, err)
		}
	}
}
