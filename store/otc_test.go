package store_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// otcDesk is a store with a merchant, two OTC officers, two treasury officers and an admin, whose clock a test moves.
type otcDesk struct {
	s                     *store.Store
	momo                  *store.Store // with the rights of the mobile money worker
	dsn                   string
	clock                 *atomic.Int64 // Unix milliseconds
	merchant              exchange.User
	by                    exchange.Principal // the merchant
	one, two              exchange.Principal // OTC officers
	treasury, other, boss exchange.Principal // two treasury officers and an admin
	bank                  exchange.HouseBankAccount
}

func newOTC(t *testing.T) otcDesk {
	t.Helper()
	d := otcDesk{clock: &atomic.Int64{}}
	d.clock.Store(time.Now().UnixMilli())
	dsn, o := storetest.URL(t), store.Options{Now: func() time.Time { return time.UnixMilli(d.clock.Load()) }}
	d.dsn = dsn
	d.s, d.momo = storetest.Open(t, dsn, o), storetest.OpenAs(t, dsn, store.RoleMomo, o)
	who := func(r exchange.Role) exchange.Principal { return storetest.PrincipalOf(storetest.User(t, d.s, r)) }
	d.merchant = storetest.User(t, d.s, exchange.RoleVendor)
	d.by, d.one, d.two = storetest.PrincipalOf(d.merchant), who(exchange.RoleOTCOfficer), who(exchange.RoleOTCOfficer)
	d.treasury, d.other, d.boss = who(exchange.RoleTreasury), who(exchange.RoleTreasury), who(exchange.RoleAdmin)
	d.bank = storetest.BankAccount(t, d.s)
	return d
}

func (d otcDesk) wait(by time.Duration) { d.clock.Add(by.Milliseconds()) }

func (d otcDesk) today() time.Time {
	y, m, day := time.UnixMilli(d.clock.Load()).In(time.FixedZone("EAT", 3*60*60)).Date()
	return time.Date(y, m, day, 0, 0, 0, 0, time.UTC)
}

// shillings is a request for shillings by bank.
func (d otcDesk) shillings(t *testing.T, amount string) exchange.OTCRequest {
	t.Helper()
	return exchange.OTCRequest{ID: storetest.NewID(t), Method: exchange.OTCByBank, Fiat: kes(amount), Asset: money.KES, SenderName: "Otieno Traders", SenderLast4: "4321"}
}

// open submits a deposit of shillings by bank.
func (d otcDesk) open(t *testing.T, amount string) exchange.OTCDeposit {
	t.Helper()
	o, err := storetest.OpenOTC(t.Context(), d.s, exchange.IntendOTCOpen, d.shillings(t, amount), d.by)
	if err != nil {
		t.Fatalf("open a deposit: %v", err)
	}
	return o
}

// do carries out a verb that must succeed.
func (d otcDesk) do(t *testing.T, kind exchange.IntentKind, id uuid.UUID, step exchange.OTCStep, by exchange.Principal) exchange.OTCDeposit {
	t.Helper()
	o, err := storetest.StepOTC(t.Context(), d.s, kind, id, step, by)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	return o
}

// refuse carries out a verb that must fail with a code.
func (d otcDesk) refuse(t *testing.T, code exchange.Code, kind exchange.IntentKind, id uuid.UUID, step exchange.OTCStep, by exchange.Principal) {
	t.Helper()
	if _, err := storetest.StepOTC(t.Context(), d.s, kind, id, step, by); exchange.CodeOf(err) != code {
		t.Fatalf("%s by %s: %v, want %s", kind, by.Role, err, code)
	}
}

func (d otcDesk) want(t *testing.T, id uuid.UUID, status exchange.OTCStatus, detail string) exchange.OTCDeposit {
	t.Helper()
	o := d.read(t, id)
	if o.Status != status || o.Detail != detail {
		t.Fatalf("the deposit is %s (%s), want %s (%s)", o.Status, o.Detail, status, detail)
	}
	return o
}

// paid is a line of money that came today with a reference.
func (d otcDesk) paid(bankReference, reference, amount string) exchange.StatementLine {
	return exchange.StatementLine{
		BankReference: bankReference, ValueDate: d.today(), BookedOn: d.today(), Side: exchange.SideCredit, Amount: kes(amount), Reference: reference, PartyName: "Otieno Traders",
	}
}

// shown imports a statement with lines, by an officer who takes no other part, and settles them.
func (d otcDesk) shown(t *testing.T, lines ...exchange.StatementLine) {
	t.Helper()
	storetest.Statement(t, d.s, d.bank, lines...)
}

func (d otcDesk) line(t *testing.T, reference string) exchange.StatementLine {
	t.Helper()
	all, total, err := d.s.StatementLines(t.Context(), store.LineFilter{BankID: d.bank.ID, Reference: reference}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 1 {
		t.Fatalf("%d lines have the reference %s, %v", total, reference, err)
	}
	return all[0]
}

// words are what an officer says of a line.
func words(l exchange.StatementLine) exchange.OTCStep {
	return exchange.OTCStep{Received: l.Amount, ValueDate: l.ValueDate, LineID: l.ID}
}

// confirmed is a deposit that the first officer confirmed by a line.
func (d otcDesk) confirmed(t *testing.T, amount string) exchange.OTCDeposit {
	t.Helper()
	o := d.open(t, amount)
	ref := "B" + o.Reference
	d.shown(t, d.paid(ref, "pay "+o.Reference, amount))
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	return d.do(t, exchange.IntendOTCConfirm, o.ID, words(d.line(t, ref)), d.one)
}

func balanceOf(d otcDesk) exchange.AccountRef {
	return exchange.Owned(exchange.AccFiatBalance, d.merchant.ID, money.KES)
}

func flying() exchange.AccountRef { return exchange.House(exchange.AccOrdersInFlight, money.KES) }

// A bank deposit of shillings goes from its draft to its audit by four people, and its money is booked at each step.
func TestBankDepositFromDraftToAudit(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	ctx := t.Context()
	r := d.shillings(t, "1500")
	r.Method, r.SenderName = "", ""
	o, err := storetest.OpenOTC(ctx, d.s, exchange.IntendOTCDraft, r, d.by)
	if err != nil || o.Status != exchange.OTCDraft || !exchange.ValidOTCReference(o.Reference) || o.ExpiresAt.Sub(o.CreatedAt) != exchange.OTCDraftLife {
		t.Fatalf("drafted %+v, %v", o, err)
	}
	d.refuse(t, exchange.CodeInvalid, exchange.IntendOTCSubmit, o.ID, exchange.OTCStep{}, d.by)
	r.Method, r.SenderName, r.Version = exchange.OTCByBank, "Otieno Traders", "1"
	if o, err = storetest.EditOTC(ctx, d.s, r, d.by); err != nil || o.SenderName != "Otieno Traders" || o.Version != 2 {
		t.Fatalf("edited %+v, %v", o, err)
	}
	if _, err = storetest.EditOTC(ctx, d.s, r, d.by); exchange.CodeOf(err) != exchange.CodePrecondition {
		t.Errorf("an edit of an older version: %v", err)
	}
	o = d.do(t, exchange.IntendOTCSubmit, o.ID, exchange.OTCStep{}, d.by)
	if o.Status != exchange.OTCPending || o.Detail != exchange.WaitMoney || o.BankID != d.bank.ID || o.ExpiresAt.Sub(o.SubmittedAt) != exchange.OTCMoneyLife {
		t.Fatalf("submitted %+v", o)
	}
	if _, err = storetest.EditOTC(ctx, d.s, d.shillings(t, "1"), d.by); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Errorf("an edit of no deposit: %v", err)
	}
	proof := storetest.Proof(t, d.s, d.by, "a receipt")
	o = d.do(t, exchange.IntendOTCProof, o.ID, exchange.OTCStep{FileID: proof.ID, ReceiptNumber: "R-1"}, d.by)
	if o.Status != exchange.OTCPending || o.Detail != exchange.WaitReview || o.ProofID != proof.ID || o.ProofName != "receipt.pdf" || o.ReceiptNumber != "R-1" || len(o.ProofSHA256) != 64 {
		t.Fatalf("proven %+v", o)
	}

	d.shown(t, d.paid("FT1", "invoice 7 "+o.Reference, "1500"))
	o = d.want(t, o.ID, exchange.OTCPending, exchange.WaitReview)
	l := d.line(t, "FT1")
	if o.LineID != l.ID || !o.Received.Equal(kes("1500")) || l.ObjectID != o.ID || l.Status != exchange.LineMatched || len(o.Flags) != 0 {
		t.Fatalf("received %+v by %+v", o, l)
	}
	wantBalance(t, d.s, d.bank.Ledger(), "1500", "0")
	wantBalance(t, d.s, flying(), "1500", "0")

	queue, total, err := d.s.OTCQueue(ctx, store.OTCQueueFilter{}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 1 || queue[0].ID != o.ID {
		t.Fatalf("the queue has %d: %v", total, err)
	}
	d.do(t, exchange.IntendOTCAssign, o.ID, exchange.OTCStep{OfficerID: d.one.UserID, Note: "yours"}, d.boss)
	d.refuse(t, exchange.CodeConflict, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.two)
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	d.refuse(t, exchange.CodeInvalid, exchange.IntendOTCConfirm, o.ID, exchange.OTCStep{Received: kes("1400"), ValueDate: d.today(), LineID: l.ID}, d.one)
	o = d.do(t, exchange.IntendOTCConfirm, o.ID, words(l), d.one)
	if o.Status != exchange.OTCConfirmed || o.ConfirmedBy != d.one.UserID || o.ClaimedBy != uuid.Nil {
		t.Fatalf("confirmed %+v", o)
	}
	o = d.do(t, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, d.treasury)
	if o.Status != exchange.OTCCredited || o.CreditedBy != d.treasury.UserID || o.CreditedAt.IsZero() {
		t.Fatalf("settled %+v", o)
	}
	wantBalance(t, d.s, balanceOf(d), "1500", "0")
	wantBalance(t, d.s, flying(), "0", "0")
	d.refuse(t, exchange.CodeForbidden, exchange.IntendOTCAudit, o.ID, exchange.OTCStep{}, d.treasury)
	o = d.do(t, exchange.IntendOTCAudit, o.ID, exchange.OTCStep{}, d.other)
	if o.Status != exchange.OTCAudited || o.AuditedBy != d.other.UserID {
		t.Fatalf("audited %+v", o)
	}
	wantBooks(t, d.s)
	wantLastMovements(t, d.s, o.MerchantID, "otc_deposit "+o.Reference+" - 1500.00 0.00")
	trail, err := d.s.OTCTrail(ctx, store.Everything(), o.ID, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, r := range trail {
		actions = append(actions, r.Action)
	}
	for _, a := range []string{
		"otc_deposit.draft", "otc_deposit.pending", "file.uploaded", "file.used", "otc_deposit.proof_added", "bank_line.matched", "otc_deposit.received", "otc_deposit.assigned",
		"otc_deposit.claimed", "otc_deposit.confirmed", "otc_deposit.settling", "otc_deposit.credited", "otc_deposit.audited", "otc_deposit.reviewed",
	} {
		if !slices.Contains(actions, a) {
			t.Errorf("the trail lacks %s: %v", a, actions)
		}
	}
}

// Of fifty officers who claim one deposit at once, one holds it.
func TestOneOfManyOfficersHoldsADeposit(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "100")
	const officers = 50
	all := make([]exchange.Principal, officers)
	for i := range all {
		all[i] = storetest.PrincipalOf(storetest.User(t, d.s, exchange.RoleOTCOfficer))
	}
	var wins, losses atomic.Int64
	var wg sync.WaitGroup
	for _, by := range all {
		wg.Go(func() {
			switch _, err := storetest.StepOTC(t.Context(), d.s, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, by); exchange.CodeOf(err) {
			case "":
				wins.Add(1)
			case exchange.CodeConflict:
				losses.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if wins.Load() != 1 || losses.Load() != officers-1 {
		t.Errorf("%d officers hold it, %d were refused", wins.Load(), losses.Load())
	}
	d.want(t, o.ID, exchange.OTCClaimed, exchange.WaitReview)
}

// A claim that ended gives way, whether its end was noted or not, and confirms nothing.
func TestAClaimEndsByTime(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "100")
	d.shown(t, d.paid("FT1", o.Reference, "100"))
	l := d.line(t, "FT1")
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	d.wait(exchange.OTCLease - time.Second)
	d.refuse(t, exchange.CodeConflict, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.two)
	if renewed := d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one); renewed.ClaimEndsAt.Sub(renewed.UpdatedAt) != exchange.OTCLease {
		t.Errorf("renewed %+v", renewed)
	}
	d.wait(exchange.OTCLease)
	d.refuse(t, exchange.CodeConflict, exchange.IntendOTCConfirm, o.ID, words(l), d.one)
	d.refuse(t, exchange.CodeConflict, exchange.IntendOTCRelease, o.ID, exchange.OTCStep{}, d.one)
	if o := d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.two); o.ClaimedBy != d.two.UserID {
		t.Errorf("claimed by %s", o.ClaimedBy)
	}
	d.refuse(t, exchange.CodeConflict, exchange.IntendOTCConfirm, o.ID, words(l), d.one)
	d.wait(exchange.OTCLease)
	if o, err := d.s.LapseOTC(t.Context(), o.ID); err != nil || o.Status != exchange.OTCPending || o.ClaimedBy != uuid.Nil || o.Detail != exchange.WaitReview {
		t.Errorf("lapsed %+v, %v", o, err)
	}
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	d.do(t, exchange.IntendOTCRelease, o.ID, exchange.OTCStep{}, d.one)
	d.want(t, o.ID, exchange.OTCPending, exchange.WaitReview)
}

// Without a line two officers must say the same, each twice.
func TestTwoOfficersProveMoneyWithoutALine(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "900")
	said := exchange.OTCStep{Received: kes("900"), ValueDate: d.today(), Reference: "ft 77-a", ReferenceAgain: "FT77A"}
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	typo := said
	typo.ReferenceAgain = "FT77B"
	d.refuse(t, exchange.CodeInvalid, exchange.IntendOTCConfirm, o.ID, typo, d.one)
	d.do(t, exchange.IntendOTCConfirm, o.ID, said, d.one)
	d.want(t, o.ID, exchange.OTCClaimed, exchange.WaitSecond)
	wantBalance(t, d.s, d.bank.Ledger(), "0", "0")
	other := said
	other.Received = kes("901")
	d.refuse(t, exchange.CodeConflict, exchange.IntendOTCConfirm, o.ID, other, d.two)
	d.wait(12 * time.Hour) // the first officer's claim waits for the second
	o = d.do(t, exchange.IntendOTCConfirm, o.ID, said, d.two)
	if o.Status != exchange.OTCConfirmed || o.ConfirmedBy != d.one.UserID || o.AgreedBy != d.two.UserID || o.BankRef != "FT77A" {
		t.Fatalf("confirmed %+v", o)
	}
	wantBalance(t, d.s, d.bank.Ledger(), "900", "0")

	// The same reference proves no other deposit, neither typed nor by a line, and the line that comes later is the first one's.
	again := d.open(t, "900")
	d.do(t, exchange.IntendOTCClaim, again.ID, exchange.OTCStep{}, d.one)
	d.refuse(t, exchange.CodeConflict, exchange.IntendOTCConfirm, again.ID, said, d.one)
	d.shown(t, d.paid("FT77A", "no reference", "900"))
	o = d.want(t, o.ID, exchange.OTCConfirmed, exchange.WaitSettle)
	if l := d.line(t, "FT77A"); o.LineID != l.ID || l.Status != exchange.LineMatched {
		t.Errorf("the line is %+v, the deposit has %s", l, o.LineID)
	}
	wantBalance(t, d.s, d.bank.Ledger(), "900", "0")
	d.do(t, exchange.IntendOTCSettle, o.ID, exchange.OTCStep{}, d.treasury)
	wantBalance(t, d.s, balanceOf(d), "900", "0")
	wantBooks(t, d.s)
}

// The line of money that officers typed is the deposit's also when the bank counts it from another day, which a flag tells.
func TestALineWithAnotherValueDateIsFlagged(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "900")
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	said := exchange.OTCStep{Received: kes("900"), ValueDate: d.today().AddDate(0, 0, -1), Reference: "FT78", ReferenceAgain: "FT78"}
	for _, officer := range []exchange.Principal{d.one, d.two} {
		o = d.do(t, exchange.IntendOTCConfirm, o.ID, said, officer)
	}
	if len(o.Flags) != 0 {
		t.Errorf("flags %v before the line", o.Flags)
	}
	d.shown(t, d.paid("FT78", "no reference", "900"))
	if o = d.want(t, o.ID, exchange.OTCConfirmed, exchange.WaitSettle); o.LineID != d.line(t, "FT78").ID || !slices.Equal(o.Flags, []exchange.OTCFlag{exchange.FlagValue}) {
		t.Errorf("line %s, flags %v", o.LineID, o.Flags)
	}
}

// What the first officer said counts no more when the claim ends.
func TestWordsEndWithTheClaim(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "900")
	said := exchange.OTCStep{Received: kes("900"), ValueDate: d.today(), Reference: "FT1", ReferenceAgain: "FT1"}
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	d.do(t, exchange.IntendOTCConfirm, o.ID, said, d.one)
	d.wait(store.OTCSecondLife)
	d.refuse(t, exchange.CodeConflict, exchange.IntendOTCConfirm, o.ID, said, d.two)
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.two)
	d.do(t, exchange.IntendOTCConfirm, o.ID, said, d.two)
	d.want(t, o.ID, exchange.OTCClaimed, exchange.WaitSecond)
	if o = d.do(t, exchange.IntendOTCConfirm, o.ID, said, d.one); o.ConfirmedBy != d.two.UserID || o.AgreedBy != d.one.UserID {
		t.Errorf("confirmed %+v", o)
	}
}

// A question stops the clock; the answer brings the deposit back to its officer.
func TestQuestionsToTheMerchant(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "100")
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	d.refuse(t, exchange.CodeInvalid, exchange.IntendOTCAsk, o.ID, exchange.OTCStep{}, d.one)
	o = d.do(t, exchange.IntendOTCAsk, o.ID, exchange.OTCStep{Text: "Whose account is it?"}, d.one)
	if o.Status != exchange.OTCInfo || o.InfoRequest == "" || o.ClaimedBy != d.one.UserID {
		t.Fatalf("asked %+v", o)
	}
	d.wait(100 * time.Hour)
	if o, err := d.s.LapseOTC(t.Context(), o.ID); err != nil || o.Status != exchange.OTCInfo {
		t.Errorf("lapsed %+v, %v", o, err)
	}
	stranger := storetest.PrincipalOf(storetest.User(t, d.s, exchange.RoleVendor))
	d.refuse(t, exchange.CodeNotFound, exchange.IntendOTCAnswer, o.ID, exchange.OTCStep{Text: "mine"}, stranger)
	sub := storetest.PrincipalOf(storetest.Subvendor(t, d.s, d.merchant))
	file := storetest.Proof(t, d.s, sub, "a letter")
	o = d.do(t, exchange.IntendOTCAnswer, o.ID, exchange.OTCStep{Text: "Our own.", FileID: file.ID}, sub)
	if o.Status != exchange.OTCClaimed || o.ClaimedBy != d.one.UserID || o.ClaimEndsAt.Sub(o.UpdatedAt) != exchange.OTCLease || o.InfoReply != "Our own." || o.ProofID != file.ID {
		t.Fatalf("answered %+v", o)
	}
}

// A stop returns to where it began.
func TestHoldsReturnToWhereTheyBegan(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "100")
	held := func(from exchange.OTCStatus) exchange.OTCDeposit {
		d.do(t, exchange.IntendOTCHold, o.ID, exchange.OTCStep{Text: "looks odd"}, d.boss)
		now := d.read(t, o.ID)
		if now.Status != exchange.OTCHold || now.HeldFrom != from || now.InternalNote != "looks odd" {
			t.Fatalf("held %+v", now)
		}
		d.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.two)
		now = d.do(t, exchange.IntendOTCUnhold, o.ID, exchange.OTCStep{}, d.two)
		if now.Status != from {
			t.Fatalf("unheld %+v", now)
		}
		return now
	}
	d.wait(71 * time.Hour)
	if now := held(exchange.OTCPending); now.ExpiresAt.Sub(now.UpdatedAt) != 24*time.Hour {
		t.Errorf("it ends %s", now.ExpiresAt)
	}
	d.do(t, exchange.IntendOTCAssign, o.ID, exchange.OTCStep{OfficerID: d.one.UserID}, d.two)
	held(exchange.OTCAssigned)
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	d.wait(time.Hour)
	if now := held(exchange.OTCClaimed); !now.Held(d.one.UserID, now.UpdatedAt) {
		t.Errorf("its officer has no new lease: %+v", now)
	}
	d.do(t, exchange.IntendOTCAsk, o.ID, exchange.OTCStep{Text: "?"}, d.one)
	held(exchange.OTCInfo)
}

func (d otcDesk) read(t *testing.T, id uuid.UUID) exchange.OTCDeposit {
	t.Helper()
	o, err := d.s.OTCDepositByID(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Drafts, and deposits without money, end by time; money keeps a deposit alive.
func TestDepositsEndByTime(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	ctx := t.Context()
	draft, err := storetest.OpenOTC(ctx, d.s, exchange.IntendOTCDraft, exchange.OTCRequest{ID: storetest.NewID(t)}, d.by)
	if err != nil {
		t.Fatal(err)
	}
	o, paid, proven := d.open(t, "100"), d.open(t, "200"), d.open(t, "300")
	d.shown(t, d.paid("FT2", paid.Reference, "200"))
	d.do(t, exchange.IntendOTCProof, proven.ID, exchange.OTCStep{FileID: storetest.Proof(t, d.s, d.by, "paid").ID}, d.by)
	d.wait(exchange.OTCMoneyLife)
	for id, status := range map[uuid.UUID]exchange.OTCStatus{
		draft.ID: exchange.OTCDraft, o.ID: exchange.OTCExpired, paid.ID: exchange.OTCPending, proven.ID: exchange.OTCPending,
	} {
		if got, err := d.s.LapseOTC(ctx, id); err != nil || got.Status != status {
			t.Errorf("%+v, %v, want %s", got, err, status)
		}
	}
	d.wait(exchange.OTCDraftLife)
	if got, err := d.s.LapseOTC(ctx, draft.ID); err != nil || got.Status != exchange.OTCExpired || got.Detail != exchange.DetailStale {
		t.Errorf("%+v, %v", got, err)
	}

	// Money that comes for one that has ended is late, and belongs to nobody until an officer decides.
	d.shown(t, d.paid("FT3", o.Reference, "100"))
	d.want(t, o.ID, exchange.OTCExpired, exchange.DetailNoMoney)
	list, total, err := d.s.ListExceptions(ctx, store.ExceptionFilter{Kind: exchange.ExcLate}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 1 || list[0].DepositID != o.ID || list[0].Rail() != exchange.RailBank {
		t.Fatalf("%d late: %+v, %v", total, list, err)
	}
	wantBalance(t, d.s, suspense(), "100", "0")
	if _, _, err := d.s.DecideException(ctx, exchange.ExceptionDecision{ID: storetest.NewID(t), ExceptionID: list[0].ID, Verdict: exchange.ExcCredited, MerchantID: d.merchant.ID, Reason: "late"}, d.boss); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, d.s, balanceOf(d), "100", "0")
	wantBooks(t, d.s)
}

// What is rejected or cancelled gives its money to nobody: it lies in suspense under an exception of the deposit.
func TestMoneyOfRejectedDepositsIsAnException(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	ctx := t.Context()
	o := d.open(t, "100")
	d.shown(t, d.paid("FT1", o.Reference, "100"))
	d.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCCancel, o.ID, exchange.OTCStep{Text: "changed my mind"}, d.by)
	d.refuse(t, exchange.CodeInvalid, exchange.IntendOTCReject, o.ID, exchange.OTCStep{}, d.one)
	d.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCReject, o.ID, exchange.OTCStep{Text: "no"}, d.treasury)
	o = d.do(t, exchange.IntendOTCReject, o.ID, exchange.OTCStep{Text: "the sender is denied"}, d.one)
	if o.Status != exchange.OTCRejected || o.Detail != exchange.DetailReturned || o.RejectedBy != d.one.UserID || o.Reason == "" {
		t.Fatalf("rejected %+v", o)
	}
	list, total, err := d.s.ListExceptions(ctx, store.ExceptionFilter{Rail: exchange.RailBank}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 1 || list[0].DepositID != o.ID || !list[0].Amount.Equal(kes("100")) {
		t.Fatalf("%d exceptions: %+v, %v", total, list, err)
	}
	wantBalance(t, d.s, suspense(), "100", "0")
	wantBalance(t, d.s, flying(), "0", "0")
	wantBooks(t, d.s)

	confirmed := d.confirmed(t, "50")
	d.do(t, exchange.IntendOTCReject, confirmed.ID, exchange.OTCStep{Text: "a court's order"}, d.treasury)
	wantBalance(t, d.s, suspense(), "150", "0")
	nothing := d.open(t, "70")
	d.do(t, exchange.IntendOTCCancel, nothing.ID, exchange.OTCStep{Text: "changed my mind"}, d.by)
	d.want(t, nothing.ID, exchange.OTCCancelled, exchange.DetailCancelled)
	wantBalance(t, d.s, suspense(), "150", "0")
	wantBooks(t, d.s)
}

// Another amount of shillings is taken as it came, with a flag; a second payment under a reference is set aside.
func TestWhatCameIsCredited(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "100")
	d.shown(t, d.paid("FT1", o.Reference, "120"), d.paid("FT2", o.Reference, "100"))
	o = d.want(t, o.ID, exchange.OTCPending, exchange.WaitReview)
	if !o.Received.Equal(kes("120")) && !o.Received.Equal(kes("100")) {
		t.Fatalf("received %s", o.Received)
	}
	list, total, err := d.s.ListExceptions(t.Context(), store.ExceptionFilter{}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 1 || !list[0].Amount.Add(o.Received).Equal(kes("220")) {
		t.Fatalf("%d exceptions: %+v, %v", total, list, err)
	}
	first := d.open(t, "100")
	d.shown(t, d.paid("FT3", first.Reference, "80"))
	first = d.want(t, first.ID, exchange.OTCPending, exchange.WaitReview)
	if !slices.Equal(first.Flags, []exchange.OTCFlag{exchange.FlagAmount}) {
		t.Errorf("its flags are %v", first.Flags)
	}
	d.do(t, exchange.IntendOTCClaim, first.ID, exchange.OTCStep{}, d.one)
	d.do(t, exchange.IntendOTCConfirm, first.ID, words(d.line(t, "FT3")), d.one)
	d.do(t, exchange.IntendOTCSettle, first.ID, exchange.OTCStep{}, d.treasury)
	wantBalance(t, d.s, balanceOf(d), "80", "0")
	wantBooks(t, d.s)
}

// A line without the reference is named by the officer; what its exception booked is undone.
func TestAnOfficerNamesTheLine(t *testing.T) {
	t.Parallel()
	d := newOTC(t)
	o := d.open(t, "100")
	d.shown(t, d.paid("FT1", "KVD3333", "100"))
	d.want(t, o.ID, exchange.OTCPending, exchange.WaitMoney)
	wantBalance(t, d.s, suspense(), "100", "0")
	l := d.line(t, "FT1")
	d.do(t, exchange.IntendOTCClaim, o.ID, exchange.OTCStep{}, d.one)
	o = d.do(t, exchange.IntendOTCConfirm, o.ID, words(l), d.one)
	if o.Status != exchange.OTCConfirmed || o.LineID != l.ID {
		t.Fatalf("confirmed %+v", o)
	}
	wantBalance(t, d.s, suspense(), "0", "0")
	wantBalance(t, d.s, d.bank.Ledger(), "100", "0")
	other := d.open(t, "100")
	d.do(t, exchange.IntendOTCClaim, other.ID, exchange.OTCStep{}, d.one)
	d.refuse(t, exchange.CodeStateConflict, exchange.IntendOTCConfirm, other.ID, words(l), d.one)
	wantBooks(t, d.s)
}
