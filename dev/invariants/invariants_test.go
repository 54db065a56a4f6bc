package invariants_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/invariants"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

func kes(amount string) money.Amount { return money.Must(money.KES, amount) }

// desk is a store with a merchant that has shillings, and with the staff that serves it.
type desk struct {
	s                                         *store.Store
	merchant, officer, treasury, other, admin exchange.Principal
}

func newDesk(t *testing.T) desk {
	t.Helper()
	s := storetest.New(t)
	who := func(r exchange.Role) exchange.Principal { return storetest.PrincipalOf(storetest.User(t, s, r)) }
	d := desk{s, who(exchange.RoleVendor), who(exchange.RoleOTCOfficer), who(exchange.RoleTreasury), who(exchange.RoleTreasury), who(exchange.RoleAdmin)}
	storetest.Patch(t, s, store.LimitPatch{
		Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleVendor: {}},
		Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{exchange.ApproveTransfer: {OneAbove: kes("500000"), TwoAbove: kes("1000000")}},
	})
	storetest.Shillings(t, s, d.merchant.UserID, kes("10000"))
	storetest.Float(t, s, kes("10000"))
	return d
}

func (d desk) step(t *testing.T, kind exchange.IntentKind, o exchange.OTCDeposit, step exchange.OTCStep, by exchange.Principal) exchange.OTCDeposit {
	t.Helper()
	o, err := storetest.StepOTC(t.Context(), d.s, kind, o.ID, step, by)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	return o
}

func (d desk) open(t *testing.T, method exchange.OTCMethod, amount string) exchange.OTCDeposit {
	t.Helper()
	o, err := storetest.OpenOTC(t.Context(), d.s, exchange.IntendOTCOpen, exchange.OTCRequest{
		ID: storetest.NewID(t), Method: method, Fiat: kes(amount), Asset: money.KES,
	}, d.merchant)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// atBank is a credited deposit whose money a bank's statement shows.
func (d desk) atBank(t *testing.T) exchange.OTCDeposit {
	t.Helper()
	bank := storetest.BankAccount(t, d.s)
	o := d.open(t, exchange.OTCByBank, "500")
	l := storetest.Line(t, "FT1", kes("500"))
	l.Reference, l.ValueDate = o.Reference, exchange.DateOf(time.Now())
	l.BookedOn = l.ValueDate
	storetest.Statement(t, d.s, bank, l)
	o = d.step(t, exchange.IntendOTCClaim, o, exchange.OTCStep{}, d.officer)
	o = d.step(t, exchange.IntendOTCConfirm, o, exchange.OTCStep{Received: o.Received, ValueDate: o.ValueDate, LineID: o.LineID}, d.officer)
	return d.step(t, exchange.IntendOTCSettle, o, exchange.OTCStep{}, d.treasury)
}

// byHand is a credited deposit that was paid to our number.
func (d desk) byHand(t *testing.T) exchange.OTCDeposit {
	t.Helper()
	ctx, o := t.Context(), d.open(t, exchange.OTCByC2B, "700")
	a, _, err := d.s.BeginCollection(ctx, exchange.DepositObject(o.ID), exchange.PaymentAttempt{ID: storetest.NewID(t), Provider: "daraja", WorkflowID: "otc-deposit:x"})
	if err != nil {
		t.Fatal(err)
	}
	paid := storetest.Paid(t, kes("700"))
	paid.Reference, paid.At, paid.Source = o.Reference, time.Now(), exchange.SourceStatement
	if _, err := d.s.AcceptPayment(ctx, a.ID, storetest.Listed(t, d.s, paid), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if o, err = d.s.CreditOTC(ctx, o.ID); err != nil || o.Status != exchange.OTCCredited {
		t.Fatalf("%s, %v", o.Status, err)
	}
	return o
}

func (d desk) withdrawal(t *testing.T, to exchange.Destination) exchange.Withdrawal {
	t.Helper()
	w, err := storetest.OpenWithdrawal(t.Context(), d.s, exchange.WithdrawalRequest{
		ID: storetest.NewID(t), DestinationID: to.ID, Source: money.KES, Payout: money.KES, Amount: kes("300"),
	}, d.merchant)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// toPhone is a completed withdrawal to a phone, and one that its merchant gave up.
func (d desk) toPhone(t *testing.T) (paid, cancelled exchange.Withdrawal) {
	t.Helper()
	ctx := t.Context()
	to := storetest.Destination(t, d.s, exchange.Destination{Kind: exchange.DestinationPhone, Phone: storetest.NewPhone()}, d.merchant)
	paid, cancelled = d.withdrawal(t, to), d.withdrawal(t, to)
	for _, w := range []exchange.Withdrawal{paid, cancelled} {
		if _, err := d.s.AdvanceWithdrawal(ctx, w.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := storetest.StepWithdrawal(ctx, d.s, exchange.IntendWithdrawalCancel, cancelled.ID, exchange.WithdrawalStep{}, d.merchant); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.DecideWithdrawal(ctx, d.s, paid, exchange.Approve, d.admin); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.StepWithdrawal(ctx, d.s, exchange.IntendWithdrawalExecute, paid.ID, exchange.WithdrawalStep{}, d.treasury); err != nil {
		t.Fatal(err)
	}
	of := exchange.WithdrawalObject(paid.ID)
	a, err := d.s.BeginPayout(ctx, of, exchange.PaymentAttempt{ID: uuid.New(), Provider: "daraja", CallbackToken: uuid.NewString(), WorkflowID: "momo-payout:x"})
	if err == nil {
		_, err = d.s.CompletePayout(ctx, of, a.ID, exchange.Observation{State: exchange.SeenSucceeded, Amount: a.Amount, Receipt: storetest.Receipt(t)})
	}
	if err != nil {
		t.Fatal(err)
	}
	return paid, cancelled
}

// copied inserts the rows of a table again that a condition selects, with other values in some columns.
func (d desk) copied(t *testing.T, table, condition, others string) string {
	t.Helper()
	var columns string
	err := storetest.Owner(t, d.s).QueryRowContext(t.Context(), `SELECT string_agg(column_name, ', ') FROM information_schema.columns
		WHERE table_name = $1 AND is_generated = 'NEVER' AND is_identity = 'NO'`, table).Scan(&columns)
	if err != nil {
		t.Fatal(err)
	}
	return `INSERT INTO ` + table + ` (` + columns + `) SELECT ` + columns + ` FROM (SELECT (jsonb_populate_record(r, jsonb_build_object(` + others + `))).* FROM ` + table + ` r WHERE ` + condition + `) c`
}

// unguarded drops the constraints of the tables that the tests change. The primary keys stay.
const unguarded = `SET LOCAL session_replication_role = replica;
DO $$ DECLARE d text; BEGIN
	FOR d IN SELECT format('ALTER TABLE %s DROP CONSTRAINT %I CASCADE', conrelid::regclass, conname) FROM pg_constraint WHERE contype IN ('c', 'u')
			AND conrelid IN ('bank_lines'::regclass, 'collections'::regclass, 'otc_deposits'::regclass, 'otc_withdrawals'::regclass, 'payment_attempts'::regclass,
				'multisig_proposals'::regclass)
		UNION ALL SELECT format('DROP INDEX %s', i.indexrelid::regclass) FROM pg_index i WHERE i.indisunique
			AND i.indrelid IN ('bank_lines'::regclass, 'collections'::regclass, 'payment_attempts'::regclass) AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
	LOOP EXECUTE d; END LOOP;
END $$`

// breakage is a change of the database that none of its guards would let through.
type breakage struct {
	change string // of the object
	object uuid.UUID
	says   string // by the rule
}

// breaks makes each change alone, past the database's guards, and checks that the rule names it.
func (d desk) breaks(t *testing.T, words string, all map[string]breakage) {
	t.Helper()
	var rule invariants.Rule
	for _, r := range invariants.Rules() {
		if strings.Contains(r.Words, words) {
			rule = r
		}
	}
	db := storetest.Owner(t, d.s)
	if err := invariants.Check(t.Context(), db); err != nil {
		t.Fatalf("nothing is broken yet: %v", err)
	}
	for name, b := range all {
		t.Run(name, func(t *testing.T) {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			if _, err := tx.ExecContext(t.Context(), unguarded); err != nil {
				t.Fatal(err)
			}
			changed, err := tx.ExecContext(t.Context(), b.change, b.object)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := changed.RowsAffected(); err != nil || n == 0 {
				t.Fatalf("it changes %d rows, %v", n, err)
			}
			broken, err := rule.Broken(t.Context(), tx)
			if err != nil || len(broken) != 1 || !strings.Contains(broken[0], b.object.String()) || !strings.Contains(broken[0], b.says) {
				t.Errorf("the rule says %q, %v, want %q", broken, err, b.says)
			}
		})
	}
}

// flown are the lines by which money of a deposit left the flight.
const flown = `id IN (SELECT l.id FROM ledger_lines l JOIN ledger_entries e ON e.id = l.entry_id JOIN ledger_accounts a ON a.id = l.account_id
	WHERE e.object_id = $1 AND a.kind = 'orders_in_flight' AND l.amount > 0)`

// What a credited deposit came by, and where it went, is counted.
func TestDepositsAreCounted(t *testing.T) {
	d := newDesk(t)
	bank, hand := d.atBank(t).ID, d.byHand(t).ID
	d.breaks(t, "deposit", map[string]breakage{
		"the line is of another amount": {`UPDATE bank_lines SET amount = amount + 1 WHERE object_id = $1`, bank, "came by 0 lines"},
		"the line is not matched":       {`UPDATE bank_lines SET status = 'unmatched' WHERE object_id = $1`, bank, "came by 0 lines"},
		"a second line": {
			d.copied(t, "bank_lines", "object_id = $1", `'id', gen_random_uuid(), 'bank_reference', 'FT2'`), bank, "came by 2 lines",
		},
		"no receipt":                  {`DELETE FROM collections WHERE object_id = $1`, hand, "0 receipts"},
		"a receipt of another amount": {`UPDATE collections SET amount = amount - 1 WHERE object_id = $1`, hand, "0 receipts"},
		"a late receipt":              {`UPDATE collections SET kind = 'late' WHERE object_id = $1`, hand, "0 receipts"},
		"a second receipt":            {d.copied(t, "collections", "object_id = $1", `'receipt', 'UKLSECOND1'`), hand, "2 receipts"},
		"booked twice":                {d.copied(t, "ledger_lines", flown, `'amount', r.amount`), hand, "of which 1400"},
		"booked less":                 {`UPDATE ledger_lines SET amount = amount - 1 WHERE ` + flown, bank, "of which 499"},
		"not booked":                  {`DELETE FROM ledger_lines WHERE ` + flown, hand, "of which 0"},
		"crypto was never sent":       {`UPDATE otc_deposits SET asset = 'USDT' WHERE id = $1`, hand, "and 0 transfers"},
		"more was received":           {`UPDATE otc_deposits SET received_amount = 701 WHERE id = $1`, hand, "of 701"},
	})
}

// What left for a withdrawal is counted.
func TestWithdrawalsAreCounted(t *testing.T) {
	d := newDesk(t)
	paid, cancelled := d.toPhone(t)
	again := d.copied(t, "payment_attempts", "object_id = '"+paid.ID.String()+"' AND $1::uuid IS NOT NULL", `'id', gen_random_uuid(), 'receipt', 'UKLSECOND1', 'object_id', $1::uuid`)
	d.breaks(t, "withdrawal", map[string]breakage{
		"paid twice":                    {again, paid.ID, "2 times 600"},
		"paid although it was given up": {again, cancelled.ID, "is cancelled"},
		"paid less":                     {`UPDATE payment_attempts SET amount = amount - 1 WHERE object_id = $1`, paid.ID, "1 times 299"},
		"not paid":                      {`UPDATE payment_attempts SET status = 'failed' WHERE object_id = $1`, paid.ID, "0 times 0"},
		"crypto that never came":        {`UPDATE otc_withdrawals SET source_asset = 'USDT', source_amount = 3 WHERE id = $1`, paid.ID, "0 came"},
	})
}

// A wallet of several owners is held to the account that was agreed to.
func TestSharedWalletsAreTheirAccounts(t *testing.T) {
	d := newDesk(t)
	id := d.shares(t, true)
	d.breaks(t, "several owners", map[string]breakage{
		"another address":     {`UPDATE wallets SET address = address || 'x' WHERE id = $1`, id, "has 0 wallets"},
		"no account any more": {`UPDATE multisig_accounts SET status = 'refused', opened_block = NULL WHERE id = $1`, id, "is refused, has 1 wallets"},
		"not opened":          {`UPDATE chain_payments SET status = 'parked', completed_at = NULL WHERE object_id = $1`, id, "0 payments"},
		"opened elsewhere":    {`UPDATE chain_payments SET to_address = 'x' WHERE object_id = $1`, id, "0 payments"},
		"called adopted":      {`UPDATE multisig_accounts SET adopted = true WHERE id = $1`, id, "1 payments"},
		"an owner less":       {`DELETE FROM multisig_owners WHERE account_id = $1 AND n = 1`, id, "1 of 2 owners"},
		"an owner more":       {`INSERT INTO multisig_owners SELECT $1, 3, 'Shared-another-address', NULL, 1, '', false`, id, "3 of 2 owners"},
		"a key is gone":       {`DELETE FROM multisig_owner_keys WHERE account_id = $1`, id, "1 of 2 owners"},
	})
}

// Anyone can open an account for the agreed owners. Then our payment was given up, and none opened it.
func TestSharedWalletsThatOthersOpened(t *testing.T) {
	d := newDesk(t)
	id := d.shares(t, false)
	d.breaks(t, "several owners", map[string]breakage{
		"the payment is alive": {`UPDATE chain_payments SET status = 'parked' WHERE object_id = $1`, id, "0 payments"},
		"there never was one":  {`DELETE FROM chain_payments WHERE object_id = $1`, id, "0 payments"},
	})
}

// shares opens an account of a stranger and an officer by our payment, or by another one's transaction, and returns its id.
func (d desk) shares(t *testing.T, ours bool) uuid.UUID {
	t.Helper()
	ctx, id := t.Context(), storetest.NewID(t)
	gas := storetest.GasWallet(t, d.s, exchange.Solana)
	storetest.Gas(t, d.s, gas.ID, money.Must(money.SOL, "1"))
	if _, err := d.s.StartDeposits(ctx, exchange.Solana, exchange.ChainBlock{Number: 8, ID: "eight", Time: time.Now().UTC()}); err != nil {
		t.Fatal(err)
	}
	place := func() string { return "Shared-" + storetest.NewID(t).String() }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	waits, err := d.s.ProposeMultisigWallet(ctx, exchange.MultisigRequest{
		ID: id, Network: exchange.Solana, Asset: money.USDT, Name: "Reserve", Custody: exchange.MultisigSelf, Threshold: 2,
		Owners: []exchange.MultisigOwner{{Address: place()}, {UserID: d.treasury.UserID}}, Policy: exchange.MultisigPolicy{Approvals: 1},
	}, d.treasury)
	must(err)
	_, err = d.s.ConfirmChange(ctx, waits.ID, "", d.admin)
	must(err)
	_, err = d.s.StoreOwnerKey(ctx, id, 2, place(), exchange.SealedKey{Ciphertext: []byte("sealed"), MasterKey: "test", PublicKey: []byte("public"), Algorithm: "ed25519"})
	must(err)
	a, err := d.s.OpenMultisig(ctx, id, place(), money.Must(money.SOL, "0.003"))
	must(err)
	if ours {
		tx, err := d.s.SaveSignedAttempt(ctx, exchange.ChainAttempt{
			ID: storetest.NewID(t), PaymentID: a.PaymentID, Network: a.Network, TxID: "opening", Raw: []byte("x"), RefBlock: "b", LastValidHeight: 100,
		})
		must(err)
		_, err = d.s.RecordFinal(ctx, tx.ID, true, 9, "nine", money.Must(money.SOL, "0.001"), "")
		must(err)
	}
	q := exchange.MultisigQuorum{Address: a.Address, Threshold: 2, Owners: a.Owners, Block: 9, BlockID: "nine"}
	if a, err = d.s.ActivateMultisig(ctx, id, q, []money.Amount{money.Zero(money.USDT), money.Zero(money.USDC)}); err != nil || a.Status != exchange.MultisigActive {
		t.Fatalf("it is %+v, %v", a, err)
	}
	return id
}

// proposes opens a payment of 100 USDT from a wallet on TRON that an officer approves.
func (d desk) proposes(t *testing.T, account exchange.MultisigAccount) exchange.Proposal {
	t.Helper()
	p, err := storetest.OpenProposal(t.Context(), d.s, exchange.ProposalRequest{
		ID: storetest.NewID(t), WalletID: account.ID, Amount: money.Must(money.USDT, "100"), Destination: "TOutsideOutsideOutsideOutside", Reference: "invoice 7",
	}, d.treasury)
	if err == nil {
		_, err = d.s.AdvanceProposal(t.Context(), p.ID)
	}
	if err == nil {
		p, err = d.s.Proposal(t.Context(), store.Everything(), p.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// executes has an officer approve a proposal, and its two owners sign what our transaction carries out.
func (d desk) executes(t *testing.T, p exchange.Proposal, account exchange.MultisigAccount) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	standing, err := storetest.DecideProposal(ctx, d.s, p, exchange.Approve, d.admin)
	must(err)
	p = standing.Proposal
	must(d.s.RecordRecipient(ctx, p.PaymentID, []exchange.Screening{{Screener: "deny_list", Verdict: exchange.VerdictClear}}))
	y, err := d.s.StorePayload(ctx, storetest.PayloadOf(t, p))
	must(err)
	for _, o := range account.Owners {
		raw := make([]byte, 65)
		copy(raw, o.Address)
		a, err := storetest.AskProposal(ctx, d.s, exchange.IntendProposalSign, p.ID, exchange.OutsideSignature{PayloadID: y.ID, Signature: raw}.Terms(), d.admin)
		must(err)
		_, err = d.s.StoreSignature(ctx, exchange.MultisigSignature{PayloadID: y.ID, Owner: o.Address, Signature: raw}, a)
		must(err)
	}
	_, err = d.s.SignProposal(ctx, p.ID)
	must(err)
	a, err := storetest.AskProposal(ctx, d.s, exchange.IntendProposalExecute, p.ID, nil, d.admin)
	must(err)
	_, err = d.s.ExecuteProposal(ctx, p.ID, a)
	must(err)
	tx, err := d.s.SaveSignedAttempt(ctx, exchange.ChainAttempt{
		ID: storetest.NewID(t), PaymentID: p.PaymentID, Network: p.Network, TxID: y.JointID, Raw: []byte("x"), ExpiresAt: y.ExpiresAt, RefBlock: y.RefBlock, FeeLimit: money.Must(money.TRX, "30"),
	})
	must(err)
	_, err = d.s.RecordFinal(ctx, tx.ID, true, 120, "b-120", money.Must(money.TRX, "1"), "SUCCESS")
	must(err)
}

// What left for a proposal is counted.
func TestProposalsAreCounted(t *testing.T) {
	d := newDesk(t)
	storetest.Rested(t, d.s)
	storetest.AgreeValuations(t, d.s)
	begins := exchange.ChainBlock{Number: 100, ID: "b-100", Time: time.Now().UTC()}
	if _, err := d.s.StartDeposits(t.Context(), exchange.Tron, begins); err != nil {
		t.Fatal(err)
	}
	if err := d.s.WatchAlive(t.Context(), exchange.Tron); err != nil {
		t.Fatal(err)
	}
	if err := d.s.RecordLook(t.Context(), exchange.WatchLook{Network: exchange.Tron, Final: begins}); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, d.s, `UPDATE deposit_looks SET looked_at = now() + interval '1 hour'`)
	account := storetest.MultisigWallet(t, d.s, exchange.MultisigRequest{
		ID: storetest.NewID(t), Network: exchange.Tron, Asset: money.USDT, Name: "Reserve", Custody: exchange.MultisigSelf, Address: "TAccountAccountAccountAccount", Threshold: 2,
		Policy: exchange.MultisigPolicy{Approvals: 1}, Owners: []exchange.MultisigOwner{{Address: "TOwnerAnnaAnnaAnnaAnnaAnna"}, {Address: "TOwnerBobBobBobBobBobBob"}},
	})
	storetest.Deposit(t, d.s, account.ID, money.Must(money.USDT, "1000"))
	storetest.Gas(t, d.s, account.ID, money.Must(money.TRX, "500"))
	paid, waits := d.proposes(t, account), d.proposes(t, account)
	d.executes(t, paid, account)
	const lines = `l.entry_id IN (SELECT e.id FROM ledger_entries e JOIN chain_payments p ON p.id = e.object_id WHERE p.object_id = $1)
		AND l.account_id IN (SELECT id FROM ledger_accounts WHERE code LIKE 'custody:%:USDT')`
	d.breaks(t, "a proposed payment", map[string]breakage{
		"called cancelled":          {`UPDATE multisig_proposals SET status = 'cancelled', completed_at = NULL WHERE id = $1`, paid.ID, "is cancelled, and 1 payments of 100"},
		"called ready":              {`UPDATE multisig_proposals SET status = 'ready', completed_at = NULL WHERE id = $1`, paid.ID, "is ready, and 1 payments of 100"},
		"not paid":                  {`UPDATE multisig_proposals SET status = 'executed' WHERE id = $1`, waits.ID, "0 payments of 0"},
		"paid more":                 {`UPDATE ledger_lines l SET amount = amount - 1 WHERE ` + lines, paid.ID, "1 payments of 101"},
		"paid somewhere else":       {`UPDATE chain_payments SET to_address = 'x' WHERE object_id = $1`, paid.ID, "0 payments of 100"},
		"by another transaction":    {`UPDATE multisig_proposals SET tx_hash = 'x' WHERE id = $1`, paid.ID, "0 payments of 100"},
		"an owner did not sign":     {`DELETE FROM multisig_signatures WHERE owner LIKE 'TOwnerAnna%' AND $1::uuid IS NOT NULL`, paid.ID, "a weight of 1 of 2"},
		"its payload is still open": {`UPDATE multisig_payloads SET status = 'open' WHERE proposal_id = $1`, paid.ID, "0 payloads, with 1 open"},
	})
}
