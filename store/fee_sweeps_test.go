package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// earning is a store with a treasury wallet on TRON, two treasury officers, and wallets with earned fees.
type earning struct {
	s        *store.Store
	one, two exchange.Principal
	treasury exchange.Wallet
	wallets  []exchange.Wallet
}

// earned is an earning with wallets that have 100 USDT and so much earned in each of them.
func earned(t *testing.T, fees ...string) earning {
	t.Helper()
	s := storetest.New(t)
	who := func() exchange.Principal { return storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury)) }
	e := earning{s: s, one: who(), two: who(), treasury: storetest.TreasuryWallet(t, s, exchange.Tron)}
	for _, m := range fees {
		w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
		storetest.Deposit(t, s, w.ID, usdt("100"))
		storetest.Earned(t, s, w.ID, usdt(m))
		storetest.Gas(t, s, w.ID, trx("100"))
		e.wallets = append(e.wallets, w)
	}
	return e
}

func walletFees(w exchange.Wallet) exchange.AccountRef {
	return exchange.Owned(exchange.AccWalletFees, w.ID, money.USDT)
}

func sameSweep(a, b exchange.FeeSweep) bool {
	return a.ID == b.ID && a.Status == b.Status && a.Version == b.Version
}

func (e earning) proposes(t *testing.T, least string) exchange.ControlChange {
	t.Helper()
	c, err := e.s.ProposeFeeSweep(t.Context(), store.FeeSweepRequest{ID: storetest.NewID(t), Network: exchange.Tron, Asset: money.USDT, Least: usdt(least)}, e.one)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (e earning) confirms(t *testing.T, c exchange.ControlChange) []exchange.FeeSweep {
	t.Helper()
	if _, err := e.s.ConfirmChange(t.Context(), c.ID, "", e.two); err != nil {
		t.Fatal(err)
	}
	all, total, err := e.s.FeeSweeps(t.Context(), store.FeeSweepFilter{ChangeID: c.ID}, onePage)
	if err != nil || total != len(all) {
		t.Fatal(err)
	}
	return all
}

// agrees has two officers agree to a rule.
func (e earning) agrees(t *testing.T, r exchange.FeeSweepRule) {
	t.Helper()
	c, err := e.s.ProposeFeeSweepRule(t.Context(), r, e.one)
	if err == nil {
		_, err = e.s.ConfirmChange(t.Context(), c.ID, "", e.one)
		wantFault(t, err, exchange.CodeForbidden)
		_, err = e.s.ConfirmChange(t.Context(), c.ID, "", e.two)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Two treasury officers bring the fees of all wallets to the treasury, and what the owners have stays.
func TestFeesGoToTheTreasury(t *testing.T) {
	t.Parallel()
	e := earned(t, "3", "0.5", "2")
	all := e.confirms(t, e.proposes(t, "1"))
	if len(all) != 2 {
		t.Fatalf("%d are swept", len(all))
	}
	for _, f := range all {
		approved := twice(t, func(a, b exchange.ApprovedFeeSweep) bool {
			return sameSweep(a.FeeSweep, b.FeeSweep) && a.PaymentID == b.PaymentID
		}, func() (exchange.ApprovedFeeSweep, error) { return e.s.ApproveFeeSweep(t.Context(), f.ID) })
		p, err := e.s.ChainPayment(t.Context(), approved.PaymentID)
		if err != nil || p.ToAddress != e.treasury.Address || p.WalletID != f.WalletID || !p.Amount.Equal(f.Amount) {
			t.Fatalf("the payment is %+v, %v", p, err)
		}
		tx := sign(t, e.s, p)
		if now, err := e.s.FeeSweep(t.Context(), f.ID); err != nil || now.Status != exchange.FeeSweepProcessing {
			t.Errorf("it is %+v, %v", now, err)
		}
		if _, err := e.s.RecordFinal(t.Context(), tx.ID, true, 9, "bb", trx("2"), ""); err != nil {
			t.Fatal(err)
		}
		if now, err := e.s.FeeSweep(t.Context(), f.ID); err != nil || now.Status != exchange.FeeSweepCompleted || now.TxHash != tx.TxID || now.CompletedAt.IsZero() {
			t.Errorf("it is %+v, %v", now, err)
		}
	}
	for i, left := range []string{"0", "0.5", "0"} {
		wantBalance(t, e.s, walletFees(e.wallets[i]), left, "0")
		wantBalance(t, e.s, owed(e.wallets[i], money.USDT), "100", "0")
	}
	wantBalance(t, e.s, owed(e.treasury, money.USDT), "5", "0")
	wantBalance(t, e.s, custody(e.treasury), "5", "0")
	wantBooks(t, e.s)
}

// A sweep is agreed by another treasury officer, and by nobody else.
func TestFeeSweepsNeedTwoTreasuryOfficers(t *testing.T) {
	t.Parallel()
	e := earned(t, "3")
	ctx, admin := t.Context(), storetest.PrincipalOf(storetest.User(t, e.s, exchange.RoleAdmin))
	_, err := e.s.ProposeFeeSweep(ctx, store.FeeSweepRequest{ID: storetest.NewID(t), Network: exchange.Tron, Asset: money.USDT, Least: usdt("1")}, admin)
	wantFault(t, err, exchange.CodeForbidden)
	c := e.proposes(t, "1")
	for _, by := range []exchange.Principal{e.one, admin} {
		_, err := e.s.ConfirmChange(ctx, c.ID, "", by)
		wantFault(t, err, exchange.CodeForbidden)
	}
	if waits, err := e.s.ChangesFor(ctx, admin.UserID); err != nil || len(waits) != 0 {
		t.Errorf("an admin is asked about %d, %v", len(waits), err)
	}
	_, err = e.s.ProposeFeeSweep(ctx, store.FeeSweepRequest{ID: storetest.NewID(t), Network: exchange.Tron, Asset: money.USDT, Least: usdt("3.000001")}, e.one)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = e.s.ProposeFeeSweep(ctx, store.FeeSweepRequest{ID: storetest.NewID(t), Network: exchange.Ethereum, Asset: money.USDT, Least: usdt("1")}, e.one)
	wantFault(t, err, exchange.CodeUnsupported)
	f := e.confirms(t, c)[0]
	on := false
	if _, err := e.s.UpdateUser(ctx, e.two.UserID, store.UserPatch{IsActive: &on}, storetest.By); err != nil {
		t.Fatal(err)
	}
	if a, err := e.s.ApproveFeeSweep(ctx, f.ID); err != nil || a.PaymentID != uuid.Nil || a.StatusDetail != exchange.WaitOfficers {
		t.Errorf("an officer who may not decide any more counts: %+v, %v", a, err)
	}
}

// Two sweeps of the same fees bring them once, whoever agreed to which when.
func TestFeesAreSweptOnce(t *testing.T) {
	t.Parallel()
	e := earned(t, "3")
	first, second := e.proposes(t, "1"), e.proposes(t, "2")
	f := e.confirms(t, first)[0]
	_, err := e.s.ConfirmChange(t.Context(), second.ID, "", e.two)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = e.s.ProposeFeeSweep(t.Context(), store.FeeSweepRequest{ID: storetest.NewID(t), Network: exchange.Tron, Asset: money.USDT, Least: usdt("1")}, e.one)
	wantFault(t, err, exchange.CodeStateConflict)
	wantBalance(t, e.s, walletFees(e.wallets[0]), "3", "3")
	codes := atOnce(8, func(int) error { _, err := e.s.ApproveFeeSweep(t.Context(), f.ID); return err })
	if codes[""] != 8 {
		t.Errorf("outcomes %v", codes)
	}
	if n := decides[int](t, e.s, `SELECT count(*) FROM chain_payments WHERE purpose = 'fee_sweep'`); n != 1 {
		t.Errorf("%d payments", n)
	}
}

// A sweep that was given up leaves the fees where they are, and they may be swept again. One whose transaction may still move
// them is not given up.
func TestFeeSweepsAreGivenUp(t *testing.T) {
	t.Parallel()
	e := earned(t, "3")
	f := e.confirms(t, e.proposes(t, "1"))[0]
	approved, err := e.s.ApproveFeeSweep(t.Context(), f.ID)
	if err != nil {
		t.Fatal(err)
	}
	gone := twice(t, sameSweep, func() (exchange.FeeSweep, error) { return e.s.GiveUpFeeSweep(t.Context(), f.ID, e.one) })
	if gone.Status != exchange.FeeSweepCancelled {
		t.Errorf("it is %+v", gone)
	}
	if p, err := e.s.ChainPayment(t.Context(), approved.PaymentID); err != nil || p.Status != exchange.ChainCancelled {
		t.Errorf("its payment is %s, %v", p.Status, err)
	}
	wantBalance(t, e.s, walletFees(e.wallets[0]), "3", "0")
	again := e.confirms(t, e.proposes(t, "1"))[0]
	if approved, err = e.s.ApproveFeeSweep(t.Context(), again.ID); err != nil {
		t.Fatal(err)
	}
	p, err := e.s.ChainPayment(t.Context(), approved.PaymentID)
	if err != nil {
		t.Fatal(err)
	}
	tx := sign(t, e.s, p)
	_, err = e.s.GiveUpFeeSweep(t.Context(), again.ID, e.one)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := e.s.RecordFinal(t.Context(), tx.ID, true, 9, "bb", trx("2"), ""); err != nil {
		t.Fatal(err)
	}
	_, err = e.s.GiveUpFeeSweep(t.Context(), again.ID, e.one)
	wantFault(t, err, exchange.CodeStateConflict)
	wantBooks(t, e.s)
}

// Shillings that the house earned become its capital by two officers, and never more than it earned.
func TestEarnedShillingsAreBooked(t *testing.T) {
	t.Parallel()
	e := earned(t)
	storetest.EarnedShillings(t, e.s, kes("100"))
	propose := func(amount string) (exchange.ControlChange, error) {
		return e.s.ProposeFeeSweep(t.Context(), store.FeeSweepRequest{ID: storetest.NewID(t), Asset: money.KES, Amount: kes(amount)}, e.one)
	}
	_, err := propose("100.01")
	wantFault(t, err, exchange.CodeInsufficientFunds)
	first, err := propose("60")
	if err != nil {
		t.Fatal(err)
	}
	second, err := propose("60")
	if err != nil {
		t.Fatal(err)
	}
	all := e.confirms(t, first)
	if len(all) != 1 || all[0].Status != exchange.FeeSweepCompleted || all[0].WalletID != uuid.Nil || !all[0].Value.Equal(kes("60")) {
		t.Errorf("swept %+v", all)
	}
	_, err = e.s.ConfirmChange(t.Context(), second.ID, "", e.two)
	wantFault(t, err, exchange.CodeInsufficientFunds)
	wantBalance(t, e.s, fees(money.KES), "40", "0")
	wantBalance(t, e.s, exchange.House(exchange.AccCapital, money.KES), "60", "0")
	wantBooks(t, e.s)
}

// By a rule that two treasury officers agreed to, a schedule sweeps what reaches the threshold, and nothing twice.
func TestFeesAreSweptByARule(t *testing.T) {
	t.Parallel()
	e := earned(t, "3", "0.5", "2")
	rule := exchange.FeeSweepRule{ID: storetest.NewID(t), Network: exchange.Tron, Asset: money.USDT, Threshold: usdt("5"), Least: usdt("1")}
	opens := func(want int) []uuid.UUID {
		t.Helper()
		ids, err := e.s.OpenScheduledFeeSweeps(t.Context(), exchange.Tron, money.USDT)
		if err != nil || len(ids) != want {
			t.Fatalf("opened %v, %v; want %d", ids, err, want)
		}
		return ids
	}
	opens(0) // there is no rule
	higher := rule
	higher.Threshold = usdt("5.000001")
	e.agrees(t, higher)
	opens(0)
	e.agrees(t, rule)
	ids := opens(2)
	if again := opens(2); !slices.Equal(again, ids) {
		t.Errorf("the second call names %v, the first one named %v", again, ids)
	}
	f, err := e.s.FeeSweep(t.Context(), ids[0])
	if err != nil || !f.Scheduled || f.RequestedBy != uuid.Nil || f.Status != exchange.FeeSweepPending {
		t.Errorf("it is %+v, %v", f, err)
	}
	on := false
	if _, err := e.s.UpdateUser(t.Context(), e.one.UserID, store.UserPatch{IsActive: &on}, storetest.By); err != nil {
		t.Fatal(err)
	}
	if a, err := e.s.ApproveFeeSweep(t.Context(), ids[0]); err != nil || a.PaymentID == uuid.Nil {
		t.Errorf("one of the two is enough for a rule: %+v, %v", a, err)
	}
	for _, id := range ids {
		if _, err := e.s.GiveUpFeeSweep(t.Context(), id, e.two); err != nil {
			t.Fatal(err)
		}
	}
	rules, err := e.s.FeeSweepRules(t.Context())
	if err != nil || len(rules) != 1 || rules[0].Orphaned || !rules[0].Threshold.Equal(rule.Threshold) || rules[0].Version != 2 {
		t.Errorf("the rules are %+v, %v", rules, err)
	}
	if off, err := e.s.SwitchOffFeeSweepRule(t.Context(), rules[0].ID, e.two); err != nil || off.IsActive {
		t.Errorf("switched off %+v, %v", off, err)
	}
	opens(0)
}

// What nobody agreed on is not swept, and nothing goes elsewhere or takes what is the owner's, whoever writes it.
func TestFeeSweepsAreGuardedByTheDatabase(t *testing.T) {
	t.Parallel()
	e := earned(t, "3")
	w := e.wallets[0]
	f := e.confirms(t, e.proposes(t, "1"))[0]
	db := storetest.Owner(t, e.s)
	refused := func(what, code, query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query, args...); sqlState(err) != code {
			t.Errorf("%s: %v, want %s", what, err, code)
		}
	}
	copied := `INSERT INTO fee_sweeps (id, change_id, scheduled, requested_by, network, asset, amount, wallet_id, value, hold_id, status, status_detail, created_at, updated_at)
		SELECT gen_random_uuid(), change_id, `
	refused("a sweep of a change of before", "KV006", copied+`false, requested_by, network, asset, amount, wallet_id, value, gen_random_uuid(), 'pending', '', now(), now() FROM fee_sweeps`)
	refused("a sweep by no rule", "KV006", copied+`true, NULL, network, asset, amount, wallet_id, value, gen_random_uuid(), 'pending', '', now(), now() FROM fee_sweeps`)
	refused("another amount", "KV002", `UPDATE fee_sweeps SET amount = amount + 1`)
	refused("another wallet", "KV002", `UPDATE fee_sweeps SET wallet_id = $1`, e.treasury.ID)
	refused("completed without a payment", "KV002", `UPDATE fee_sweeps SET status = 'completed', completed_at = now()`)
	refused("fees that are freed while they are to go", "KV002", `UPDATE holds SET status = 'released' WHERE id = $1`, f.HoldID)
	refused("fees that are freed in part", "KV002", `UPDATE holds SET amount = amount - 1 WHERE id = $1`, f.HoldID)
	refused("fees that are used without a payment", "KV002", `UPDATE holds SET status = 'captured' WHERE id = $1`, f.HoldID)
	refused("a rule that nobody agreed on", "KV006", `INSERT INTO fee_sweep_rules (id, network, asset, threshold, least, is_active, change_id, updated_at)
		SELECT gen_random_uuid(), 'tron', 'USDC', 1, 1, true, change_id, now() FROM fee_sweeps`)
	refused("shillings without a sweep", "KV006", `WITH e AS (INSERT INTO ledger_entries (key, digest, kind, object_type, object_id, at)
		VALUES ('fee_sweep:x', decode(repeat('00', 16), 'hex'), 'fee_sweep.booked', 'fee_sweep', gen_random_uuid(), now()) RETURNING id)
		INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT e.id, a.id, CASE a.kind WHEN 'custody' THEN -1 ELSE 1 END FROM e, ledger_accounts a
		WHERE a.code IN ($1, $2)`, custody(w).Code(), owed(w, money.USDT).Code())
	pay := `INSERT INTO chain_payments (id, purpose, object_id, network, asset, amount, wallet_id, from_address, to_address, hold_id, intent_hash, status, approved_by, created_at, updated_at)
		SELECT gen_random_uuid(), 'fee_sweep', id, network, asset, `
	rest := `, wallet_id, '` + w.Address + `', $1, hold_id, repeat('0', 64), 'approved', 'policy', now(), now() FROM fee_sweeps`
	refused("to the owner", "KV001", pay+`amount`+rest, e.wallets[0].Address)
	refused("to somebody", "KV001", pay+`amount`+rest, outside)
	refused("more than was agreed", "KV001", pay+`amount + 1`+rest, e.treasury.Address)
	// Coins that left unseen are not there for the house.
	storetest.Deposit(t, e.s, e.treasury.ID, usdt("1"))
	storetest.Exec(t, e.s, `WITH e AS (INSERT INTO ledger_entries (key, digest, kind, object_type, at) VALUES ('lost', decode(repeat('00', 16), 'hex'), 'test', '', now()) RETURNING id)
		INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT e.id, a.id, CASE a.owner_id WHEN '`+w.ID.String()+`' THEN -1 ELSE 1 END FROM e, ledger_accounts a
		WHERE a.kind = 'custody' AND a.asset = 'USDT'`)
	_, err := e.s.ApproveFeeSweep(t.Context(), f.ID)
	wantFault(t, err, exchange.CodeStateConflict)
}

// Shillings that two officers agreed to are booked once, even in the transaction in which the second agrees.
func TestAgreedShillingsAreBookedOnce(t *testing.T) {
	t.Parallel()
	e := earned(t)
	storetest.EarnedShillings(t, e.s, kes("100"))
	c, err := e.s.ProposeFeeSweep(t.Context(), store.FeeSweepRequest{ID: storetest.NewID(t), Asset: money.KES, Amount: kes("40")}, e.one)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := storetest.Owner(t, e.s).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), `UPDATE control_changes SET status = 'confirmed', decided_by = $2, decided_at = now() WHERE id = $1`, c.ID, e.two.UserID); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", "23505"} {
		_, err := tx.ExecContext(t.Context(), `INSERT INTO fee_sweeps (id, change_id, scheduled, requested_by, asset, amount, value, status, status_detail, created_at, updated_at)
			VALUES (gen_random_uuid(), $1, false, $2, 'KES', 40, 40, 'pending', '', now(), now())`, c.ID, e.one.UserID)
		if sqlState(err) != want {
			t.Errorf("a sweep: %v, want %q", err, want)
		}
	}
}

// What the owner of a wallet has becomes no fee of the house, whichever login books it and by whatever name. What a transfer paid is
// earned once.
func TestOnlyFeesAreEarned(t *testing.T) {
	t.Parallel()
	e := earned(t, "3")
	w := e.wallets[0]
	const entry = `INSERT INTO ledger_entries (key, digest, kind, object_type, object_id, at) VALUES ($1, decode(repeat('00', 16), 'hex'), $2, 'test', $3, now())`
	const lines = `WITH e AS (` + entry + ` RETURNING id) INSERT INTO ledger_lines (entry_id, account_id, amount)
		SELECT e.id, a.id, CASE a.kind WHEN 'wallet_fees' THEN -50 ELSE 50 END FROM e, ledger_accounts a WHERE a.code IN ($4, $5)`
	p := newPurseIn(t, e.s, "10")
	open := p.open(t, "1", exchange.Recipient{Address: outside})
	for _, role := range []store.Role{store.RoleFlows, store.RoleChain, store.RoleMomo, store.RoleSigner, store.RoleAPI} {
		db := storetest.As(t, e.s, role)
		for what, c := range map[string]struct {
			kind, key string
			object    uuid.UUID
			want      string
		}{
			"under any name":            {"transfer.completed", "transfer:" + open.ID.String(), open.ID, "KV002"},
			"as the fee of no transfer": {"transfer.fee", "transfer:" + w.ID.String() + ":fee", w.ID, "KV006"},
			"as another transfer's fee": {"transfer.fee", "transfer:" + open.ID.String() + ":fee", open.ID, "KV006"},
			"as money that was kept":    {"exception.accepted", "exception:" + w.ID.String() + ":accepted", w.ID, "KV006"},
			"as a loss":                 {"exception.written_off", "exception:" + w.ID.String() + ":written_off", w.ID, "KV006"},
		} {
			if _, err := db.ExecContext(t.Context(), lines, c.key, c.kind, c.object, walletFees(w).Code(), owed(w, money.USDT).Code()); sqlState(err) != c.want {
				t.Errorf("%s books it %s: %v, want %s", role, what, err, c.want)
			}
			if c.want == "KV002" {
				continue // no line of it ever enters
			}
			if _, err := db.ExecContext(t.Context(), entry, c.key, c.kind, c.object); sqlState(err) != c.want {
				t.Errorf("%s leaves room for lines %s: %v, want %s", role, what, err, c.want)
			}
		}
	}
	wantBalance(t, e.s, walletFees(w), "3", "0")
	wantBalance(t, e.s, owed(w, money.USDT), "100", "0")
	wantBooks(t, e.s)
}

// A rule that was switched off, or that two officers replaced, sweeps nothing any more: also not what it asked for before.
func TestSweepsEndWithTheirRule(t *testing.T) {
	t.Parallel()
	e := earned(t, "3", "2")
	rule := exchange.FeeSweepRule{ID: storetest.NewID(t), Network: exchange.Tron, Asset: money.USDT, Threshold: usdt("5"), Least: usdt("1")}
	e.agrees(t, rule)
	opens := func() []uuid.UUID {
		t.Helper()
		ids, err := e.s.OpenScheduledFeeSweeps(t.Context(), exchange.Tron, money.USDT)
		if err != nil || len(ids) != 2 {
			t.Fatalf("opened %v, %v", ids, err)
		}
		return ids
	}
	waits := func(ids ...uuid.UUID) {
		t.Helper()
		for _, id := range ids {
			if a, err := e.s.ApproveFeeSweep(t.Context(), id); err != nil || a.PaymentID != uuid.Nil || a.StatusDetail != exchange.WaitOfficers {
				t.Errorf("a sweep whose rule is over: %+v, %v", a, err)
			}
			if _, err := storetest.As(t, e.s, store.RoleFlows).ExecContext(t.Context(), `UPDATE releases SET passed_at = now() WHERE object_id = $1`, id); sqlState(err) != "KV006" {
				t.Errorf("its release: %v", err)
			}
		}
	}
	givenUp := func(ids ...uuid.UUID) {
		t.Helper()
		for _, id := range ids {
			if f, err := e.s.GiveUpFeeSweep(t.Context(), id, e.one); err != nil || f.Status != exchange.FeeSweepCancelled {
				t.Errorf("it is %+v, %v", f, err)
			}
		}
	}
	ids := opens()
	approved, err := e.s.ApproveFeeSweep(t.Context(), ids[0])
	if err != nil || approved.PaymentID == uuid.Nil {
		t.Fatalf("%+v, %v", approved, err)
	}
	rules, err := e.s.FeeSweepRules(t.Context())
	if err != nil || len(rules) != 1 {
		t.Fatal(rules, err)
	}
	if _, err := e.s.SwitchOffFeeSweepRule(t.Context(), rules[0].ID, e.two); err != nil {
		t.Fatal(err)
	}
	waits(ids[1])
	id := storetest.NewID(t)
	_, err = e.s.SaveSignedAttempt(t.Context(), exchange.ChainAttempt{
		ID: id, PaymentID: approved.PaymentID, Network: exchange.Tron, TxID: txID(id), Raw: []byte("signed"), ExpiresAt: time.Now().Add(time.Hour), FeeLimit: trx("50"),
	})
	wantFault(t, err, exchange.CodeStateConflict)
	givenUp(ids...)

	rule.Least = usdt("2")
	e.agrees(t, rule)
	ids = opens()
	rule.Least = usdt("1")
	e.agrees(t, rule)
	waits(ids...)
	givenUp(ids...)
	ids = opens()
	if a, err := e.s.ApproveFeeSweep(t.Context(), ids[0]); err != nil || a.PaymentID == uuid.Nil {
		t.Errorf("by the rule in force: %+v, %v", a, err)
	}
	wantBooks(t, e.s)
}

// A rule sweeps when the wallets together have its threshold, and no wallet that has less than its least, whatever the flows' login writes.
func TestARuleIsFollowedToTheLetter(t *testing.T) {
	t.Parallel()
	e := earned(t, "3", "0.5", "2")
	rule := exchange.FeeSweepRule{ID: storetest.NewID(t), Network: exchange.Tron, Asset: money.USDT, Threshold: usdt("5.2"), Least: usdt("1")}
	flows := storetest.As(t, e.s, store.RoleFlows)
	opens := func(w exchange.Wallet, amount, want string) {
		t.Helper()
		tx, err := flows.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		_, err = tx.ExecContext(t.Context(), `INSERT INTO fee_sweeps (id, change_id, scheduled, network, asset, amount, wallet_id, value, hold_id, status, status_detail, created_at, updated_at)
			SELECT gen_random_uuid(), f.change_id, true, f.network, f.asset, $2, $1, 1, gen_random_uuid(), 'pending', 'signature', now(), now() FROM fee_sweep_rules f`, w.ID, amount)
		if sqlState(err) != want {
			t.Errorf("%s USDT of a threshold of %s: %v, want %q", amount, rule.Threshold, err, want)
		}
	}
	e.agrees(t, rule)
	opens(e.wallets[0], "3", "KV006") // together they have 5 that count
	rule.Threshold = usdt("5")
	e.agrees(t, rule)
	opens(e.wallets[0], "3", "")
	opens(e.wallets[1], "0.5", "KV006")
	opens(e.wallets[0], "0.9", "KV006")
	f := e.confirms(t, e.proposes(t, "3"))[0] // what is on its way counts no more
	opens(e.wallets[2], "2", "KV006")
	if _, err := e.s.GiveUpFeeSweep(t.Context(), f.ID, e.one); err != nil {
		t.Fatal(err)
	}
	if ids, err := e.s.OpenScheduledFeeSweeps(t.Context(), exchange.Tron, money.USDT); err != nil || len(ids) != 2 {
		t.Errorf("opened %v, %v", ids, err)
	}
}
