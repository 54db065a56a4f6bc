package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// board is two admins, a treasury officer and a customer.
type board struct {
	store         *store.Store
	one, two      exchange.Principal
	officer       exchange.Principal
	customer      exchange.User
	officerID     uuid.UUID
	wantForbidden func(error)
}

func newBoard(t *testing.T, o store.Options) board {
	t.Helper()
	s := storetest.Open(t, storetest.URL(t), o)
	officer := storetest.User(t, s, exchange.RoleTreasury)
	return board{
		store: s, one: storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin)), two: storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin)),
		officer: storetest.PrincipalOf(officer), customer: storetest.User(t, s, exchange.RoleCustomer), officerID: officer.ID,
		wantForbidden: func(err error) { t.Helper(); wantFault(t, err, exchange.CodeForbidden) },
	}
}

// rule is an approval rule for transfers.
func rule(one, two string) map[exchange.ApprovalObject]exchange.ApprovalRule {
	return map[exchange.ApprovalObject]exchange.ApprovalRule{exchange.ApproveTransfer: {OneAbove: kes(one), TwoAbove: kes(two)}}
}

func (b board) patch(t *testing.T, p store.LimitPatch) exchange.ControlChange {
	t.Helper()
	c, err := b.store.PatchLimits(t.Context(), p, b.one)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (b board) wantRule(t *testing.T, one, two string) {
	t.Helper()
	all, err := b.store.ApprovalRules(t.Context())
	r := all[exchange.ApproveTransfer]
	if err != nil || r.OneAbove.String() != one || r.TwoAbove.String() != two {
		t.Errorf("officers are asked above %s and %s, %v; want %s and %s", r.OneAbove, r.TwoAbove, err, one, two)
	}
}

// One officer can't loosen the controls alone; any can tighten them at once.
func TestHouseLimitsRiseWithTwoOfficers(t *testing.T) {
	t.Parallel()
	b := newBoard(t, store.Options{})
	ctx, s := t.Context(), b.store
	if c := b.patch(t, store.LimitPatch{Rules: rule("100000", "1000000")}); c.ID != uuid.Nil {
		t.Errorf("a lower rule waits: %+v", c)
	}
	b.wantRule(t, "100000.00", "1000000.00")
	p := store.LimitPatch{
		Rules:      rule("300000", "1000000"),
		Valuations: map[money.Asset]decimal.Decimal{money.USDT: decimal.RequireFromString("0.01"), money.USDC: decimal.RequireFromString("160")},
		Roles: map[exchange.Role]exchange.SpendingLimits{
			exchange.RoleCustomer: {PerTransaction: kes("250000"), PerDay: kes("500000")}, exchange.RoleVendor: {PerTransaction: kes("1"), PerDay: kes("2"), PerMonth: kes("3")},
		},
	}
	c := b.patch(t, p)
	if again := b.patch(t, p); c.ID == uuid.Nil || again.ID != c.ID {
		t.Errorf("asked for twice: %s and %s wait", c.ID, again.ID)
	}
	b.wantRule(t, "100000.00", "1000000.00")
	rates, err := s.Valuations(ctx)
	if err != nil || rates[1].Rate.String() != "150" || rates[0].Rate.String() != "160" {
		t.Errorf("valuations %v, %v", rates, err)
	}
	roles, err := s.RoleLimits(ctx)
	if err != nil || roles[exchange.RoleCustomer].PerMonth.String() != "5000000.00" || roles[exchange.RoleVendor].PerDay.String() != "2.00" {
		t.Errorf("limits %v, %v", roles, err)
	}
	_, err = s.ConfirmChange(ctx, c.ID, "", b.one)
	b.wantForbidden(err)
	_, err = s.ConfirmChange(ctx, c.ID, "", storetest.PrincipalOf(b.customer))
	b.wantForbidden(err)
	if list, err := s.ChangesFor(ctx, b.one.UserID); err != nil || len(list) != 0 {
		t.Errorf("the proposer is asked: %d, %v", len(list), err)
	}
	if list, err := s.ChangesFor(ctx, b.officerID); err != nil || len(list) != 1 {
		t.Errorf("a colleague is asked about %d, %v", len(list), err)
	}
	for range 2 { // also when the answer was lost
		if c, err = s.ConfirmChange(ctx, c.ID, "as agreed", b.officer); err != nil || c.Status != exchange.ControlConfirmed || c.DecidedBy != b.officerID {
			t.Fatalf("confirmed %+v, %v", c, err)
		}
	}
	b.wantRule(t, "300000.00", "1000000.00")
	if rates, err = s.Valuations(ctx); err != nil || rates[1].Rate.String() != "0.01" {
		t.Errorf("valuations %v, %v", rates, err)
	}
	if roles, err = s.RoleLimits(ctx); err != nil || roles[exchange.RoleCustomer].PerMonth.Asset() != "" {
		t.Errorf("limits %v, %v", roles, err)
	}
	_, err = s.RejectChange(ctx, c.ID, "no", b.two)
	wantFault(t, err, exchange.CodeStateConflict)
}

// The confirmation of an older proposal does not raise a limit that was lowered since, and every proposal expires.
func TestOldChangesAreNotConfirmed(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := newBoard(t, store.Options{Now: func() time.Time { return now }})
	ctx, s := t.Context(), b.store
	old := b.patch(t, store.LimitPatch{Rules: rule("300000", "2000000")})
	b.patch(t, store.LimitPatch{Rules: rule("1", "2")})
	_, err := s.ConfirmChange(ctx, old.ID, "", b.two)
	wantFault(t, err, exchange.CodeStateConflict)
	b.wantRule(t, "1.00", "2.00")

	late := b.patch(t, store.LimitPatch{Rules: rule("5", "6")})
	now = now.Add(exchange.ControlChangeLife)
	_, err = s.ConfirmChange(ctx, late.ID, "", b.two)
	wantFault(t, err, exchange.CodeExpired)
	if list, err := s.ChangesFor(ctx, b.officerID); err != nil || len(list) != 0 {
		t.Errorf("asked about what is too late: %d, %v", len(list), err)
	}
	fresh := b.patch(t, store.LimitPatch{Rules: rule("5", "6")})
	if fresh.ID == late.ID {
		t.Error("what is too late was proposed again and not renewed")
	}
	if c, err := s.RejectChange(ctx, fresh.ID, "a slip", b.one); err != nil || c.Status != exchange.ControlRejected {
		t.Errorf("taken back: %+v, %v", c, err)
	}
	_, err = s.ConfirmChange(ctx, fresh.ID, "", b.two)
	wantFault(t, err, exchange.CodeStateConflict)

	// A proposal by an officer who was deactivated since does not count.
	gone := b.patch(t, store.LimitPatch{Rules: rule("7", "8")})
	off := false
	if _, err := s.UpdateUser(ctx, b.one.UserID, store.UserPatch{IsActive: &off}, b.two); err != nil {
		t.Fatal(err)
	}
	_, err = s.ConfirmChange(ctx, gone.ID, "", b.two)
	wantFault(t, err, exchange.CodeStateConflict)
	b.wantRule(t, "1.00", "2.00")
}

// An officer who benefits from a change can't confirm it.
func TestWhoGainsDoesNotConfirm(t *testing.T) {
	t.Parallel()
	b := newBoard(t, store.Options{})
	ctx, s := t.Context(), b.store
	b.patch(t, store.LimitPatch{Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleTreasury: {PerTransaction: kes("10")}}})
	own := exchange.SpendingLimits{PerTransaction: kes("20")}
	u, err := s.UpdateUser(ctx, b.officerID, store.UserPatch{Limits: &own}, b.one)
	if err != nil || len(u.Waits) != 1 {
		t.Fatalf("%d changes wait, %v", len(u.Waits), err)
	}
	all := b.patch(t, store.LimitPatch{Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleTreasury: {}}})
	for _, c := range []exchange.ControlChange{u.Waits[0], all} {
		_, err := s.ConfirmChange(ctx, c.ID, "", b.officer)
		b.wantForbidden(err)
		query := fmt.Sprintf(`UPDATE control_changes SET status = 'confirmed', decided_by = '%s', decided_at = now() WHERE id = '%s'`, b.officerID, c.ID)
		if _, err := storetest.Owner(t, s).ExecContext(ctx, query); sqlState(err) != "KV006" && sqlState(err) != "23514" {
			t.Errorf("the database lets who gains confirm: %v", err)
		}
		if _, err := s.ConfirmChange(ctx, c.ID, "", b.two); err != nil {
			t.Error(err)
		}
	}
	if list, err := s.ChangesFor(ctx, b.officerID); err != nil || len(list) != 0 {
		t.Errorf("%d wait, %v", len(list), err)
	}
}

// One officer may raise a user's own limits up to its role's, two above that.
func TestUserLimitsAboveTheRole(t *testing.T) {
	t.Parallel()
	b := newBoard(t, store.Options{})
	ctx, s := t.Context(), b.store
	set := func(l exchange.SpendingLimits) []exchange.ControlChange {
		t.Helper()
		u, err := s.UpdateUser(ctx, b.customer.ID, store.UserPatch{Limits: &l}, b.one)
		if err != nil {
			t.Fatal(err)
		}
		return u.Waits
	}
	effective := func(want string) {
		t.Helper()
		if l, err := s.LimitsOf(ctx, b.customer); err != nil || l.Effective.PerTransaction.String() != want {
			t.Errorf("at most %s in a transaction, %v; want %s", l.Effective.PerTransaction, err, want)
		}
	}
	for _, at := range []string{"100", "250000"} {
		if waits := set(exchange.SpendingLimits{PerTransaction: kes(at)}); len(waits) != 0 {
			t.Errorf("%s waits", at)
		}
		effective(at + ".00")
	}
	waits := set(exchange.SpendingLimits{PerTransaction: kes("250000.01")})
	if len(waits) != 1 || waits[0].SubjectID != b.customer.ID {
		t.Fatalf("%v waits", waits)
	}
	effective("250000.00")
	if _, err := s.ConfirmChange(ctx, waits[0].ID, "", b.officer); err != nil {
		t.Fatal(err)
	}
	effective("250000.01")
	if waits := set(exchange.SpendingLimits{PerTransaction: kes("250000.01")}); len(waits) != 0 {
		t.Error("what it has already waits")
	}
}

// One officer can appoint the second, but no further one.
func TestOfficersAreActivatedByTwoOfficers(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ctx := t.Context()
	create := func(role exchange.Role, by exchange.Principal) exchange.User {
		t.Helper()
		id := storetest.NewID(t)
		u, err := s.CreateUser(ctx, exchange.User{
			ID: id, Email: id.String() + "@example.com", PhoneNumber: storetest.NewPhone(), FirstName: "A", LastName: "B", Role: role, IsActive: true,
		}, exchange.Credentials{PasswordHash: "x"}, by)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	first := create(exchange.RoleAdmin, exchange.System("configuration"))
	one := storetest.PrincipalOf(first)
	second := create(exchange.RoleTreasury, one)
	if !first.IsActive || !second.IsActive {
		t.Fatal("the first two are not active")
	}
	var alone int
	if err := storetest.Owner(t, s).QueryRowContext(ctx, `SELECT count(*) FROM audit_log WHERE action = 'staff.appointed_by_one_officer'`).Scan(&alone); err != nil || alone != 2 {
		t.Errorf("%d appointments by one officer are in the audit log, %v", alone, err)
	}
	third := create(exchange.RoleTreasury, one)
	if third.IsActive {
		t.Fatal("one officer appointed a third officer")
	}
	list, n, err := s.ControlChanges(ctx, store.ControlFilter{SubjectID: third.ID, Status: exchange.ControlPending}, store.Page{Number: 1, Size: 5})
	if err != nil || n != 1 {
		t.Fatalf("%d changes wait, %v", n, err)
	}
	_, err = s.ConfirmChange(ctx, list[0].ID, "", one)
	wantFault(t, err, exchange.CodeForbidden)
	if _, err := s.ConfirmChange(ctx, list[0].ID, "", storetest.PrincipalOf(second)); err != nil {
		t.Fatal(err)
	}
	if u, err := s.User(ctx, third.ID); err != nil || !u.IsActive {
		t.Errorf("the confirmed officer is %+v, %v", u, err)
	}
	// Deactivation needs one officer, reactivation two. Being alone again changes nothing.
	off, on := false, true
	for _, id := range []uuid.UUID{second.ID, third.ID} {
		if _, err := s.UpdateUser(ctx, id, store.UserPatch{IsActive: &off}, one); err != nil {
			t.Fatal(err)
		}
	}
	back, err := s.UpdateUser(ctx, second.ID, store.UserPatch{IsActive: &on}, one)
	if err != nil || back.IsActive || len(back.Waits) != 1 {
		t.Errorf("reactivated %v, %d wait, %v", back.IsActive, len(back.Waits), err)
	}
	if puppet := create(exchange.RoleTreasury, one); puppet.IsActive {
		t.Error("the last officer let another one in")
	}
	_, err = s.ConfirmChange(ctx, back.Waits[0].ID, "", one)
	wantFault(t, err, exchange.CodeForbidden)
	for name, query := range map[string]string{
		"reactivation": fmt.Sprintf(`UPDATE users SET is_active = true WHERE id = '%s'`, second.ID),
		"promotion":    fmt.Sprintf(`UPDATE users SET role = 'treasury' WHERE id = '%s'`, storetest.User(t, s, exchange.RoleOTCOfficer).ID),
		"confirmation": fmt.Sprintf(`UPDATE control_changes SET status = 'confirmed', decided_by = '%s', decided_at = now() WHERE id = '%s'`, third.ID, back.Waits[0].ID),
		"own word":     fmt.Sprintf(`UPDATE control_changes SET status = 'confirmed', decided_by = '%s', decided_at = now() WHERE id = '%s'`, first.ID, back.Waits[0].ID),
	} {
		if _, err := storetest.Owner(t, s).ExecContext(ctx, query); sqlState(err) != "KV006" && sqlState(err) != "23514" {
			t.Errorf("%s past the code: %v", name, err)
		}
	}
}

// The database's guards work without the code.
func TestControlsAreGuardedByTheDatabase(t *testing.T) {
	t.Parallel()
	b := newBoard(t, store.Options{})
	ctx, s := t.Context(), b.store
	c := b.patch(t, store.LimitPatch{Rules: rule("300000", "3000000")})
	confirm := fmt.Sprintf(`UPDATE control_changes SET status = 'confirmed', decided_by = '%s', decided_at = now() WHERE id = '%s'; `, b.two.UserID, c.ID)
	for name, query := range map[string]string{
		"a higher rule":              `UPDATE approval_rules SET one_above = 200001`,
		"a lower valuation":          `UPDATE valuations SET rate = 149 WHERE asset = 'USDT'`,
		"a lifted limit":             `UPDATE role_limits SET per_day = NULL WHERE role = 'customer'`,
		"a higher limit":             `UPDATE role_limits SET per_day = per_day + 1 WHERE role = 'customer'`,
		"limits above the role's":    fmt.Sprintf(`INSERT INTO user_limits (user_id, per_day, updated_at) VALUES ('%s', 600000, now())`, b.customer.ID),
		"another rule than agreed":   confirm + `UPDATE approval_rules SET one_above = 300001, two_above = 3000000`,
		"the rule of another object": confirm + `UPDATE approval_rules SET one_above = 300000, two_above = 3000000 WHERE object_type = 'refund'`,
		"more than was agreed":       confirm + `UPDATE valuations SET rate = 1 WHERE asset = 'USDT'`,
	} {
		if _, err := storetest.Owner(t, s).ExecContext(ctx, query); sqlState(err) != "KV006" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.ConfirmChange(ctx, c.ID, "", b.two); err != nil {
		t.Fatal(err)
	}
	b.patch(t, store.LimitPatch{Rules: rule("1", "2")})
	if _, err := storetest.Owner(t, s).ExecContext(ctx, `UPDATE approval_rules SET one_above = 300000, two_above = 3000000`); sqlState(err) != "KV006" {
		t.Errorf("an agreement was used twice: %v", err)
	}
	for _, query := range []string{`UPDATE control_changes SET note = 'x'`, `DELETE FROM control_changes`, `UPDATE control_changes SET applied_in = pg_current_xact_id()`} {
		if _, err := storetest.Owner(t, s).ExecContext(ctx, query); sqlState(err) != "KV002" && sqlState(err) != "KV006" {
			t.Errorf("%s: %v", query, err)
		}
	}
}
