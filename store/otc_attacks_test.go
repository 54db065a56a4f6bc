package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// role gives an account another role, past the guards.
func (d otcDesk) role(t *testing.T, p exchange.Principal, r exchange.Role) exchange.Principal {
	t.Helper()
	storetest.Exec(t, d.s, `BEGIN; ALTER TABLE users DISABLE TRIGGER USER; UPDATE users SET role = '`+string(r)+`', vendor_id = NULL WHERE id = '`+p.UserID.String()+`';
		ALTER TABLE users ENABLE TRIGGER USER; COMMIT`)
	p.Role = r
	return p
}

func (d otcDesk) off(t *testing.T, p exchange.Principal) {
	t.Helper()
	storetest.Exec(t, d.s, `UPDATE users SET is_active = false WHERE id = $1`, p.UserID)
}

// One account under two roles does one of the four steps, whatever it was when it did the other.
func TestOneAccountDoesOneStep(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.confirmed(t, "100")
	turned := d.role(t, d.one, exchange.RoleTreasury)
	d.refuse(t, exchange.CodeForbidden, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, turned)
	// Its confirmation counts no more, because it is no OTC officer now.
	d.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, d.treasury)
	d.role(t, turned, exchange.RoleOTCOfficer)
	d.do(t, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, d.treasury)
	d.refuse(t, exchange.CodeForbidden, exchange.IntendOTCAudit, o.ID, exchange.OTCStep{}, d.role(t, d.one, exchange.RoleAdmin))

	o = d.open(t, "100")
	merchant := d.role(t, d.by, exchange.RoleOTCOfficer)
	d.refuse(t, exchange.CodeForbidden, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, merchant)
	merchant = d.role(t, merchant, exchange.RoleAdmin)
	d.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCAudit, o.ID, exchange.OTCStep{}, merchant)
}

// A session that began under another role, and an account that is switched off, ask for nothing any more.
func TestOldRightsCountNoMore(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.confirmed(t, "100")
	d.off(t, d.treasury)
	d.refuse(t, exchange.CodeForbidden, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, d.treasury)
	d.role(t, d.other, exchange.RoleAdmin)
	d.refuse(t, exchange.CodeForbidden, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, d.other)
}

// The confirmation of an officer who is switched off before the settlement counts no more: others confirm anew.
func TestAConfirmationEndsWithItsOfficer(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.confirmed(t, "100")
	d.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.two)
	d.off(t, d.one)
	d.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, d.treasury)
	o = d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.two)
	if o.Status != exchange.OTCClaimed || o.ConfirmedBy != uuid.Nil {
		t.Fatalf("claimed anew %+v", o)
	}
	o = d.do(t, exchange.IntendOTCConfirm, o.ID, exchange.OTCStep{Received: o.Received, ValueDate: o.ValueDate, LineID: o.LineID}, d.two)
	if o.ConfirmedBy != d.two.UserID {
		t.Fatalf("confirmed anew %+v", o)
	}
	d.do(t, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, d.treasury)
	wantBalance(t, d.s, balanceOf(d), "100", "0")
	wantBooks(t, d.s)
}

// Who brings a statement in makes nobody rich by it.
func TestImportersOfAStatementStandAside(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "100")
	d.shown(t, d.paid("FT1", o.Reference, "100"))
	l := d.line(t, "FT1")
	b, err := d.s.BankStatement(t.Context(), l.StatementID)
	if err != nil {
		t.Fatal(err)
	}
	importer := exchange.Principal{UserID: b.ImportedBy, Role: exchange.RoleTreasury}
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	d.do(t, exchange.IntendOTCConfirm, o.ID, words(l), d.one)
	d.refuse(t, exchange.CodeForbidden, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, importer)
	d.do(t, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, d.treasury)
	d.refuse(t, exchange.CodeForbidden, exchange.IntendOTCAudit, o.ID, exchange.OTCStep{}, importer)
}

// Each role is refused each verb that is not its own, and each merchant another's deposit.
func TestVerbsOfDepositsByRole(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "100")
	who := map[exchange.Role]exchange.Principal{
		exchange.RoleVendor: d.by, exchange.RoleSubvendor: storetest.PrincipalOf(storetest.Subvendor(t, d.s, d.merchant)), exchange.RoleOTCOfficer: d.one,
		exchange.RoleTreasury: d.treasury, exchange.RoleAdmin: d.boss, exchange.RoleCustomer: storetest.PrincipalOf(storetest.User(t, d.s, exchange.RoleCustomer)),
		exchange.RoleUser: storetest.PrincipalOf(storetest.User(t, d.s, exchange.RoleUser)),
	}
	merchants := []exchange.Role{exchange.RoleVendor, exchange.RoleSubvendor}
	for verb, roles := range map[exchange.IntentKind][]exchange.Role{
		exchange.IntendOTCQuote: merchants, exchange.IntendOTCSubmit: merchants, exchange.IntendOTCProof: merchants, exchange.IntendOTCAnswer: merchants, exchange.IntendOTCCancel: merchants,
		exchange.IntendOTCAssign: {exchange.RoleAdmin, exchange.RoleOTCOfficer}, exchange.IntendOTCHold: {exchange.RoleAdmin, exchange.RoleOTCOfficer},
		exchange.IntendOTCUnhold: {exchange.RoleAdmin, exchange.RoleOTCOfficer}, exchange.IntendOTCClaim: {exchange.RoleOTCOfficer}, exchange.IntendOTCRelease: {exchange.RoleOTCOfficer},
		exchange.IntendOTCAsk: {exchange.RoleOTCOfficer}, exchange.IntendOTCConfirm: {exchange.RoleOTCOfficer}, exchange.IntendOTCSettle: {exchange.RoleTreasury},
		exchange.IntendOTCAudit: {exchange.RoleAdmin, exchange.RoleTreasury}, exchange.IntendOTCReject: {exchange.RoleAdmin, exchange.RoleOTCOfficer, exchange.RoleTreasury},
	} {
		for role, by := range who {
			if role == exchange.RoleTreasury && verb == exchange.IntendOTCReject {
				continue // of what is confirmed alone
			}
			if err := o.Admit(verb, by); slices.Contains(roles, role) == (exchange.CodeOf(err) == exchange.CodeForbidden) {
				t.Errorf("%s by %s: %v", verb, role, err)
			}
		}
	}
	stranger := storetest.PrincipalOf(storetest.User(t, d.s, exchange.RoleVendor))
	d.refuse(t, exchange.CodeNotFound, exchange.IntendOTCCancel, o.ID, exchange.OTCStep{Text: "mine now"}, stranger)
	d.refuse(t, exchange.CodeInvalid, exchange.IntendOTCProof, o.ID, exchange.OTCStep{FileID: storetest.Proof(t, d.s, stranger, "theirs").ID}, d.by)
	if _, err := d.s.OTCDeposit(t.Context(), store.ViewOf(stranger, exchange.ActReadOrders), o.ID); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Errorf("a stranger reads it: %v", err)
	}
}

// Whoever writes with the login of the flows, past the code, is refused by the database.
func TestTheDatabaseRefusesInventedSteps(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	pending, settled := d.open(t, "100"), d.confirmed(t, "100")
	d.do(t, exchange.IntendOTCSettle, settled.ID, exchange.OTCStep{}, d.treasury)
	confirmed, claimed := d.confirmed(t, "100"), d.open(t, "100")
	d.shown(t, d.paid("FT9", claimed.Reference, "100"))
	d.do(t, exchange.IntendOTCClaim, claimed.ID, exchange.OTCStep{}, d.one)
	twin := d.confirmed(t, "100")
	id := func(u uuid.UUID) string { return "'" + u.String() + "'" }
	for name, statement := range map[string]string{
		"a holder without a claim":       `UPDATE otc_deposits SET status = 'claimed', claimed_by = ` + id(d.two.UserID) + `, claim_expires_at = now() + interval '1 hour' WHERE id = ` + id(pending.ID),
		"another holder":                 `UPDATE otc_deposits SET claimed_by = ` + id(d.two.UserID) + ` WHERE id = ` + id(claimed.ID),
		"an invented confirmation":       `UPDATE otc_deposits SET status = 'confirmed', confirmed_by = ` + id(d.one.UserID) + `, confirmed_at = now(), claimed_by = NULL, claim_expires_at = NULL WHERE id = ` + id(claimed.ID),
		"an invented settlement":         `UPDATE otc_deposits SET status = 'settling', credited_by = ` + id(d.other.UserID) + ` WHERE id = ` + id(confirmed.ID),
		"a settlement by nobody":         `UPDATE otc_deposits SET status = 'settling' WHERE id = ` + id(confirmed.ID),
		"an invented audit":              `UPDATE otc_deposits SET status = 'audited', audited_by = ` + id(d.other.UserID) + `, audited_at = now() WHERE id = ` + id(settled.ID),
		"an audit by the settler":        `UPDATE otc_deposits SET status = 'audited', audited_by = ` + id(d.treasury.UserID) + `, audited_at = now() WHERE id = ` + id(settled.ID),
		"an invented rejection":          `UPDATE otc_deposits SET status = 'rejected', rejected_by = ` + id(d.one.UserID) + `, rejected_at = now(), reason = 'x' WHERE id = ` + id(pending.ID),
		"an invented cancellation":       `UPDATE otc_deposits SET status = 'cancelled', reason = 'x' WHERE id = ` + id(pending.ID),
		"money that nothing shows":       `UPDATE otc_deposits SET received_amount = 100, received_at = now(), value_date = now(), bank_reference = 'X' WHERE id = ` + id(pending.ID),
		"other money":                    `UPDATE otc_deposits SET received_amount = 1000 WHERE id = ` + id(confirmed.ID),
		"another line":                   `UPDATE otc_deposits SET statement_line_id = ` + id(twin.LineID) + ` WHERE id = ` + id(confirmed.ID),
		"another merchant":               `UPDATE otc_deposits SET merchant_id = ` + id(d.boss.UserID) + ` WHERE id = ` + id(confirmed.ID),
		"a fee of nothing":               `UPDATE otc_deposits SET fee_amount = 1 WHERE id = ` + id(confirmed.ID),
		"another amount than announced":  `UPDATE otc_deposits SET fiat_amount = 1 WHERE id = ` + id(pending.ID),
		"an entry without its deposit":   `INSERT INTO ledger_entries (key, kind, object_type, object_id, digest, at) VALUES ('otc_deposit:` + pending.ID.String() + `:settled', 'otc_deposit.settled', 'otc_deposit', ` + id(pending.ID) + `, decode(repeat('00', 16), 'hex'), now())`,
		"a way back":                     `UPDATE otc_deposits SET status = 'pending' WHERE id = ` + id(confirmed.ID),
		"a deletion":                     `DELETE FROM otc_deposits WHERE id = ` + id(pending.ID),
		"an open end of a settled one":   `UPDATE otc_deposits SET credited_at = NULL WHERE id = ` + id(settled.ID),
		"a higher automatic limit":       `INSERT INTO otc_limits (merchant_id, entry, automatic, entered_by, entered_at) VALUES (` + id(d.merchant.ID) + `, 1, 1e9, ` + id(d.boss.UserID) + `, now())`,
		"a confirmation in other words":  `INSERT INTO otc_confirmations SELECT gen_random_uuid(), ` + id(claimed.ID) + `, officer_id, amount, value_date, bank_account_id, 'X', NULL, true, now() FROM otc_confirmations LIMIT 1`,
		"a credited one without booking": `UPDATE otc_deposits SET status = 'credited', credited_at = now(), credited_by = ` + id(d.other.UserID) + ` WHERE id = ` + id(confirmed.ID),
	} {
		c := storetest.As(t, d.s, store.RoleFlows)
		if _, err := c.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s was stored", name)
		} else if strings.Contains(err.Error(), "syntax") || strings.Contains(err.Error(), "column \"") {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantBooks(t, d.s)
}

// One proof for two deposits, and one receipt number, are flags of both, which stay. One that has ended keeps the flags that it had.
func TestOneProofForTwoIsFlagged(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	first, second, ended := d.open(t, "100"), d.open(t, "100"), d.open(t, "100")
	d.do(t, exchange.IntendOTCProof, ended.ID, exchange.OTCStep{FileID: storetest.Proof(t, d.s, d.by, "the same").ID}, d.by)
	d.do(t, exchange.IntendOTCCancel, ended.ID, exchange.OTCStep{Text: "no"}, d.by)
	one := storetest.Proof(t, d.s, d.by, "the same")
	first = d.do(t, exchange.IntendOTCProof, first.ID, exchange.OTCStep{FileID: one.ID, ReceiptNumber: "R/1"}, d.by)
	if len(first.Flags) != 1 || first.Flags[0] != exchange.FlagSameFile {
		t.Fatalf("beside one that has ended its flags are %v", first.Flags)
	}
	second = d.do(t, exchange.IntendOTCProof, second.ID, exchange.OTCStep{FileID: storetest.Proof(t, d.s, d.by, "the same").ID, ReceiptNumber: "r 1"}, d.by)
	if len(second.Flags) != 2 || second.Flags[0] != exchange.FlagSameFile || second.Flags[1] != exchange.FlagSameReceipt {
		t.Fatalf("its flags are %v", second.Flags)
	}
	if first, ended = d.read(t, first.ID), d.read(t, ended.ID); len(first.Flags) != 2 || len(ended.Flags) != 0 {
		t.Errorf("the flags of the others are %v and %v", first.Flags, ended.Flags)
	}
	second = d.do(t, exchange.IntendOTCProof, second.ID, exchange.OTCStep{FileID: storetest.Proof(t, d.s, d.by, "another").ID, ReceiptNumber: "R2"}, d.by)
	if len(second.Flags) != 2 || second.ReceiptNumber != "R2" {
		t.Errorf("a later proof hides the flags: %+v", second)
	}
	twins, err := d.s.OTCTwins(t.Context(), second.ID)
	if err != nil || len(twins) != 2 || !slices.Contains(twins, first.ID) {
		t.Errorf("its twins are %v, %v", twins, err)
	}
	settle(t, func() bool { // what the merchant does not see below is hidden, not late
		all, err := d.s.FilteredEvents(t.Context(), store.Everything(), store.EventFilter{Type: "otc_deposit.flagged"}, 0, 100)
		return err == nil && len(all) == 4
	})
	events, err := d.s.FilteredEvents(t.Context(), store.ViewOf(d.by, exchange.ActReadEvents), store.EventFilter{Object: "otc_deposit"}, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Type == "otc_deposit.flagged" || strings.Contains(string(e.Payload), "flags") || strings.Contains(string(e.Payload), "claimed_by") {
			t.Errorf("the merchant reads %s %s", e.Type, e.Payload)
		}
	}
	odd := d.shillings(t, "100")
	odd.SenderName = "Jane Roe"
	o, err := storetest.OpenOTC(t.Context(), d.s, exchange.IntendOTCOpen, odd, d.by)
	if err != nil || len(o.Flags) != 1 || o.Flags[0] != exchange.FlagSender {
		t.Errorf("a stranger's payment has %v, %v", o.Flags, err)
	}
}

// An old value date is flagged; the fee in force is taken out of what came.
func TestFeesAndValueDates(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "1000")
	storetest.Exec(t, d.s, `BEGIN; ALTER TABLE fee_profiles DISABLE TRIGGER USER; INSERT INTO fee_profiles (id, scope, method, version, fixed, basis_points, minimum, spread_basis_points, note, valid_from, created_by, created_at)
		VALUES (gen_random_uuid(), 'otc_deposit', 'bank', 1, 10, 100, 0, 0, '', now() - interval '1 hour', '`+d.boss.UserID.String()+`', now() - interval '1 hour'); ALTER TABLE fee_profiles ENABLE TRIGGER USER; COMMIT`)
	priced := d.open(t, "1000")
	if !o.Fee.IsZero() || !priced.Fee.Equal(kes("20")) || priced.ProfileID == uuid.Nil {
		t.Fatalf("the fees are %s and %s", o.Fee, priced.Fee)
	}
	old := d.paid("FT1", o.Reference, "1000")
	old.ValueDate = d.today().AddDate(0, 0, -31)
	d.shown(t, old, d.paid("FT2", priced.Reference, "2000"))
	if o = d.read(t, o.ID); len(o.Flags) != 1 || o.Flags[0] != exchange.FlagOldValue {
		t.Errorf("its flags are %v", o.Flags)
	}
	for id, ref := range map[uuid.UUID]string{o.ID: "FT1", priced.ID: "FT2"} {
		d.do(t, exchange.IntendOTCClaim, id, exchange.OTCStep{}, d.one)
		d.do(t, exchange.IntendOTCConfirm, id, words(d.line(t, ref)), d.one)
		d.do(t, exchange.IntendOTCSettle, id, exchange.OTCStep{}, d.treasury)
	}
	if o, priced = d.read(t, o.ID), d.read(t, priced.ID); !o.Fee.IsZero() || !priced.Fee.Equal(kes("30")) {
		t.Errorf("the fees are %s and %s", o.Fee, priced.Fee)
	}
	wantBalance(t, d.s, balanceOf(d), "2970", "0")
	wantBalance(t, d.s, exchange.House(exchange.AccFees, "KES"), "30", "0")
	small := d.shillings(t, "10")
	if _, err := storetest.OpenOTC(t.Context(), d.s, exchange.IntendOTCOpen, small, d.by); exchange.CodeOf(err) != exchange.CodeInvalid {
		t.Errorf("a deposit below its fee: %v", err)
	}
	wantBooks(t, d.s)
}
