package attacks

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange"
)

const (
	deposits     = auth + "/otc/deposits"
	withdrawals  = auth + "/otc/withdrawals"
	destinations = auth + "/otc/destinations"
)

// desk is a deposit or a withdrawal at the desk, as its readers see it.
type desk struct {
	ID        uuid.UUID  `json:"id"`
	Status    string     `json:"status"`
	Reference string     `json:"payment_reference"`
	Line      *uuid.UUID `json:"statement_line_id"`
	Digest    string     `json:"approval_digest"`
}

// hired is a new member of the staff, whom two officers let in.
func (w *harness) hired(t *testing.T, role exchange.Role) (email string, id uuid.UUID) {
	t.Helper()
	email = string(role) + "-" + uuid.NewString()[:8] + "@kivuko.example"
	in := map[string]any{"email": email, "phone_number": "+" + testbed.NewPhone(), "first_name": "Mgeni", "last_name": "Mpya", "role": role}
	if err := w.Admin(t).Post(t.Context(), auth+"/invitations", testbed.Key(), in, nil); err != nil {
		t.Fatal(err)
	}
	link := w.Inbox(t, email, `/people/invitation#[A-Za-z0-9_-]+`)
	if err := client.New(w.API()).Accept(t.Context(), link[strings.Index(link, "#")+1:], demo.Password); err != nil {
		t.Fatal(err)
	}
	id = w.ID(t, email)
	var waits testbed.Waits
	if err := w.Officer(t).Get(t.Context(), auth+"/approvals/changes?status=pending&subject_id="+id.String(), &waits); err != nil {
		t.Fatal(err)
	}
	w.Agree(t, waits)
	return email, id
}

// turned gives an account another role, past all guards.
func (w *harness) turned(t *testing.T, id uuid.UUID, role exchange.Role) {
	t.Helper()
	if _, err := w.DB.ExecContext(t.Context(), `BEGIN; ALTER TABLE users DISABLE TRIGGER USER; UPDATE users SET role = '`+string(role)+`' WHERE id = '`+id.String()+`';
		ALTER TABLE users ENABLE TRIGGER USER; COMMIT`); err != nil {
		t.Fatal(err)
	}
}

// verb asks for a step of a deposit or of a withdrawal.
func verb(t *testing.T, c *client.Client, kind string, d desk, name string, in map[string]any) error {
	t.Helper()
	if in == nil {
		in = map[string]any{}
	}
	return testbed.Insist(t.Context(), c, kind+"/"+d.ID.String()+"/"+name, testbed.Key(), in, nil)
}

func done(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// deskIs waits until a deposit or a withdrawal is as said.
func deskIs(t *testing.T, c *client.Client, kind string, id uuid.UUID, what string, is func(desk) bool) (d desk) {
	t.Helper()
	testbed.Eventually(t, what, func() error {
		if err := c.Get(t.Context(), kind+"/"+id.String(), &d); err != nil {
			return err
		}
		if !is(d) {
			return errors.New("it is " + d.Status)
		}
		return nil
	})
	return d
}

// deposit has a merchant pay shillings in by bank, which the second treasury officer's statement shows.
func (w *harness) deposit(t *testing.T, merchant *client.Client, shillings string) (d desk) {
	t.Helper()
	in := map[string]any{"method": "bank", "requested_asset": "KES", "fiat_amount": shillings}
	done(t, testbed.Insist(t.Context(), merchant, deposits, testbed.Key(), in, &d))
	done(t, demo.PaidAtBank(t.Context(), w.As(t, demo.SecondTreasuryEmail), d.Reference, shillings))
	w.Trigger(t, testbed.Matching)
	return deskIs(t, merchant, deposits, d.ID, "the statement's line is matched", func(now desk) bool { return now.Line != nil })
}

// words are what an officer says of a deposit's money.
func words(d desk, shillings string) map[string]any {
	return map[string]any{
		"received_amount": shillings, "value_date": time.Now().In(time.FixedZone("EAT", 3*60*60)).Format(time.DateOnly), "statement_line_id": d.Line,
	}
}

// credited counts the entries that gave a merchant a deposit's shillings.
func (w *harness) credited(t *testing.T, d desk, merchant string) int {
	t.Helper()
	return w.count(t, `SELECT count(*) FROM ledger_entries e JOIN ledger_lines l ON l.entry_id = e.id JOIN ledger_accounts a ON a.id = l.account_id
		WHERE e.object_type = 'otc_deposit' AND e.object_id = $1 AND a.kind = 'fiat_balance' AND a.owner_id = $2`, d.ID, w.ID(t, merchant))
}

// Four people carry a deposit: the merchant's, the one who confirms its money, the one who settles, and the auditor; and a fifth
// brought the statement in. One account takes one step, whatever its role was at another.
func TestDesk_OnePersonTakesTwoSteps(t *testing.T) {
	w := openBeside(t)
	vendor, treasury, importer := w.As(t, demo.VendorEmail), w.Officer(t), w.As(t, demo.SecondTreasuryEmail)
	email, id := w.hired(t, exchange.RoleOTCOfficer)
	d := w.deposit(t, vendor, "311")
	done(t, verb(t, w.login(t, email), deposits, d, "claim", nil))
	refused(t, "the merchant confirms", verb(t, vendor, deposits, d, "confirm", words(d, "311")), http.StatusForbidden, "forbidden")
	refused(t, "a treasury officer confirms", verb(t, treasury, deposits, d, "confirm", words(d, "311")), http.StatusForbidden, "forbidden")
	done(t, verb(t, w.login(t, email), deposits, d, "confirm", words(d, "311")))
	refused(t, "who confirmed settles", verb(t, w.login(t, email), deposits, d, "settle", nil), http.StatusForbidden, "forbidden")
	refused(t, "who brought the statement in settles", verb(t, importer, deposits, d, "settle", nil), http.StatusForbidden, "forbidden")
	old := w.login(t, email)
	w.turned(t, id, exchange.RoleTreasury)
	if err := verb(t, old, deposits, d, "settle", nil); err == nil {
		t.Error("who confirmed settles under another role, by a session of the first")
	}
	if err := verb(t, w.login(t, email), deposits, d, "settle", nil); err == nil {
		t.Error("who confirmed settles under another role")
	}
	if n := w.credited(t, d, demo.VendorEmail); n != 0 {
		t.Errorf("it was credited %d times by one person", n)
	}
	w.turned(t, id, exchange.RoleOTCOfficer)
	done(t, verb(t, treasury, deposits, d, "settle", nil))
	for who, c := range map[string]*client.Client{"who settled": treasury, "who brought the statement in": importer, "the merchant": vendor} {
		refused(t, who+" audits", verb(t, c, deposits, d, "audit", nil), http.StatusForbidden, "forbidden")
	}
	w.turned(t, id, exchange.RoleTreasury)
	if err := verb(t, w.login(t, email), deposits, d, "audit", nil); err == nil {
		t.Error("who confirmed audits under another role")
	}
	done(t, verb(t, w.Admin(t), deposits, d, "audit", nil))
	if n := w.credited(t, d, demo.VendorEmail); n != 1 {
		t.Errorf("it was credited %d times", n)
	}
}

// What an officer confirmed counts no more when the account is switched off before the settlement: another one confirms anew.
func TestDesk_SwitchedOffInBetween(t *testing.T) {
	w := openBeside(t)
	email, id := w.hired(t, exchange.RoleOTCOfficer)
	d := w.deposit(t, w.As(t, demo.VendorEmail), "312")
	gone := w.login(t, email)
	done(t, verb(t, gone, deposits, d, "claim", nil))
	done(t, verb(t, gone, deposits, d, "confirm", words(d, "312")))
	if err := w.Admin(t).Do(t.Context(), http.MethodPatch, auth+"/users/"+id.String(), "", map[string]any{"is_active": false}, nil); err != nil {
		t.Fatal(err)
	}
	if err := verb(t, gone, deposits, d, "reject", map[string]any{"rejection_reason": "mine"}); err == nil {
		t.Error("an account that is switched off rejects")
	}
	refused(t, "the settlement of what nobody confirms any more", verb(t, w.Officer(t), deposits, d, "settle", nil), http.StatusConflict, "state_conflict")
	if n := w.credited(t, d, demo.VendorEmail); n != 0 {
		t.Errorf("it was credited %d times", n)
	}
	another := w.As(t, demo.DeskEmail)
	done(t, verb(t, another, deposits, d, "claim", nil))
	done(t, verb(t, another, deposits, d, "confirm", words(d, "312")))
	done(t, verb(t, w.Officer(t), deposits, d, "settle", nil))
	if n := w.credited(t, d, demo.VendorEmail); n != 1 {
		t.Errorf("it was credited %d times", n)
	}
}

// A subvendor's deposit is its master's money, and only its own merchant sees it.
func TestDesk_SubvendorAndMaster(t *testing.T) {
	w := openBeside(t)
	const sub, strange = "nairobi@kivuko.example", "mombasa@kivuko.example" // of two masters
	d := w.deposit(t, w.As(t, sub), "313")
	for _, email := range []string{strange, simba, demo.CustomerEmail} {
		for _, name := range []string{"cancel", "provide-info"} {
			if err := verb(t, w.As(t, email), deposits, d, name, map[string]any{"reason": "mine", "info_reply": "mine"}); err == nil {
				t.Errorf("%s may %s another's deposit", email, name)
			}
		}
		if err := w.As(t, email).Get(t.Context(), deposits+"/"+d.ID.String(), nil); err == nil {
			t.Errorf("%s reads another's deposit", email)
		}
	}
	officer := w.As(t, demo.DeskEmail)
	done(t, verb(t, officer, deposits, d, "claim", nil))
	done(t, verb(t, officer, deposits, d, "confirm", words(d, "313")))
	done(t, verb(t, w.Officer(t), deposits, d, "settle", nil))
	if got, own := w.credited(t, d, demo.VendorEmail), w.credited(t, d, sub); got != 1 || own != 0 {
		t.Errorf("the master was credited %d times and the subvendor %d times", got, own)
	}
}

// goesTo is a destination of a merchant's, which its master merchant confirmed, by a phone.
func (w *harness) goesTo(t *testing.T, by *client.Client) (d desk, phone string) {
	t.Helper()
	phone = testbed.NewPhone()
	done(t, testbed.Insist(t.Context(), by, destinations, testbed.Key(), map[string]any{"kind": "phone", "phone_number": phone}, &d))
	return d, phone
}

// Money leaves to the destination that the master merchant confirmed and the officers saw, and nowhere else.
func TestDesk_AnotherDestination(t *testing.T) {
	w := openBeside(t)
	master, thief := w.As(t, demo.VendorEmail), w.As(t, "nairobi@kivuko.example")
	good, phone := w.goesTo(t, master)
	done(t, verb(t, master, destinations, good, "confirm", nil))
	bad, strange := w.goesTo(t, thief)
	if err := verb(t, thief, destinations, bad, "confirm", nil); err == nil {
		t.Error("a subvendor confirms a destination")
	}
	out := func(by *client.Client, to desk) (o desk, err error) {
		in := map[string]any{"destination_id": to.ID, "source_asset": "KES", "payout_asset": "KES", "payout_amount": "40"}
		return o, testbed.Insist(t.Context(), by, withdrawals, testbed.Key(), in, &o)
	}
	if _, err := out(thief, bad); err == nil {
		t.Error("money is asked for to a destination that nobody confirmed")
	}
	if _, err := out(w.As(t, simba), good); err == nil {
		t.Error("money is asked for to another merchant's destination")
	}
	o, err := out(master, good)
	done(t, err)
	another, err := out(master, good)
	done(t, err)
	for _, d := range []desk{o, another} {
		deskIs(t, w.Admin(t), withdrawals, d.ID, "it waits for officers", func(d desk) bool { return d.Status == "pending_approval" })
	}
	third := w.As(t, demo.SecondTreasuryEmail)
	refused(t, "an execution that nobody approved", verb(t, third, withdrawals, o, "execute", nil), http.StatusConflict, "state_conflict")
	seen := testbed.Seen(t, w.Admin(t), withdrawals+"/"+another.ID.String()+"/approve")
	if err := verb(t, w.Admin(t), withdrawals, o, "approve", seen); err == nil {
		t.Error("the digest of another withdrawal approved it")
	}
	for _, officer := range []*client.Client{w.Admin(t), w.Officer(t)} {
		done(t, officer.Decide(t.Context(), withdrawals+"/"+o.ID.String()+"/approve", testbed.Key(), nil, nil))
	}
	if _, err := w.DB.ExecContext(t.Context(), `UPDATE otc_withdrawals SET destination_id = $2, version = version + 1 WHERE id = $1`, o.ID, bad.ID); err == nil {
		t.Error("a row of the database leads it elsewhere")
	}
	refused(t, "who approved executes", verb(t, w.Officer(t), withdrawals, o, "execute", nil), http.StatusForbidden, "forbidden")
	done(t, verb(t, third, withdrawals, o, "execute", nil))
	deskIs(t, master, withdrawals, o.ID, "it is completed", func(d desk) bool { return d.Status == "completed" })
	w.paidTo(t, phone, 40)
	w.paidTo(t, strange)
	if err := verb(t, third, withdrawals, o, "execute", nil); err == nil {
		t.Error("it is executed twice")
	}
	done(t, verb(t, master, withdrawals, another, "cancel", map[string]any{"reason": "one is enough"}))
	w.paidTo(t, phone, 40)
}
