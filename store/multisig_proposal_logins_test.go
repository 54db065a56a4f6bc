package store_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// together runs statements in one transaction with a login of a process.
func (h *reserve) together(t *testing.T, role store.Role, statements ...string) error {
	t.Helper()
	if h.logins[role] == nil {
		h.logins[role] = storetest.As(t, h.s, role)
	}
	tx, err := h.logins[role].BeginTx(t.Context(), nil)
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

// but tries statements with every login but some, each of which must be refused.
func (h *reserve) but(t *testing.T, may []store.Role, what string, statements ...string) {
	t.Helper()
	for _, role := range loginsOfSwaps {
		if len(may) > 0 && may[0] == role {
			continue
		}
		if err := h.together(t, role, statements...); !refused(err) {
			t.Errorf("%s: %s: %v", role, what, err)
		}
	}
}

func (h *reserve) every(t *testing.T, what string, statements ...string) {
	t.Helper()
	h.but(t, nil, what, statements...)
}

// refusedFor tries statements with one login, which must be refused for a reason.
func (h *reserve) refusedFor(t *testing.T, role store.Role, reason string, statements ...string) {
	t.Helper()
	if err := h.together(t, role, statements...); err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("%s is refused by %v, want %q", role, err, reason)
	}
}

func steps(p exchange.Proposal, more string) string {
	return `UPDATE multisig_proposals SET version = version + 1, updated_at = now(), ` + more + ` WHERE id = ` + quotedID(p.ID)
}

// freed are the statements that take the money of a proposal back.
func freed(p exchange.Proposal) []string {
	return []string{
		`UPDATE holds SET status = 'released' WHERE id = ` + quotedID(p.HoldID), `UPDATE releases SET ended_at = now() WHERE object_id = ` + quotedID(p.ID),
		`UPDATE chain_payments SET status = 'parked', version = version + 1 WHERE id = ` + quotedID(p.PaymentID),
		`UPDATE chain_payments SET status = 'cancelled', version = version + 1 WHERE id = ` + quotedID(p.PaymentID),
	}
}

// beside inserts a payload beside the chain's worker, as a copy of what a driver prepared.
func beside(y exchange.MultisigPayload, p exchange.Proposal) string {
	sequence, expires, signers := `NULL`, `NULL`, `'{}'`
	switch p.Network {
	case exchange.Ethereum:
		sequence = `77`
	case exchange.Tron:
		expires = `now() + interval '1 hour'`
	case exchange.Solana:
	}
	return `INSERT INTO multisig_payloads (id, proposal_id, payment_id, wallet_id, n, network, joint, digest, joint_id, sequence, nonce_account, ref_block, signers, expires_at, block, block_id,
		status, created_at, updated_at) SELECT ` + quotedID(y.ID) + `, s.id, p.id, s.wallet_id, (SELECT count(*) + 1 FROM multisig_payloads WHERE proposal_id = s.id), s.network, '{}',
		decode('` + y.JointID + `', 'hex'), '` + y.JointID + `', ` + sequence + `, '', '', ` + signers + `, ` + expires + `, 95, 'b-95', 'open', now(), now()
		FROM multisig_proposals s JOIN chain_payments p ON p.purpose = 'proposal' AND p.object_id = s.id WHERE s.id = ` + quotedID(p.ID)
}

// A proposal has only so many payloads, whoever prepares them. With the last one void it waits, is cancelled, and its money is free.
func TestTooManyPayloads(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Ethereum)
	p, y := h.signing(t, usdt("100"))
	id := quotedID(p.ID)
	used := func(to string) string {
		return `BEGIN; SET LOCAL session_replication_role = replica; UPDATE multisig_payloads SET status = 'void', evidence = 'a number taken', updated_at = now() - interval '1 day' WHERE proposal_id = ` + id + `;
			UPDATE multisig_proposals SET status = 'approving', status_detail = 'payload', version = version + 1 WHERE id = ` + id + `;
			INSERT INTO multisig_payloads SELECT (jsonb_populate_record(y, jsonb_build_object('id', gen_random_uuid(), 'n', g, 'joint_id', repeat(md5(g::text), 2)))).*
			FROM multisig_payloads y, generate_series((SELECT max(n) + 1 FROM multisig_payloads WHERE proposal_id = ` + id + `), ` + to + `) g WHERE y.id = ` + quotedID(y.ID) + `; COMMIT`
	}
	storetest.Exec(t, h.s, used(strconv.Itoa(exchange.MaxPayloads-1)))
	p = h.is(t, p, exchange.ProposalApproving, exchange.WaitPayload)
	last, err := h.chain.StorePayload(t.Context(), h.payloadFor(t, p))
	if err != nil || last.N != exchange.MaxPayloads {
		t.Fatalf("the last payload: %+v, %v", last, err)
	}
	storetest.Exec(t, h.s, used("0"))
	p = h.is(t, p, exchange.ProposalApproving, exchange.WaitPayload)
	_, err = h.chain.StorePayload(t.Context(), h.payloadFor(t, p))
	if wantFault(t, err, exchange.CodeStateConflict); !strings.Contains(err.Error(), "has had 100 payloads") {
		t.Errorf("one more is refused by %v", err)
	}
	h.refusedFor(t, store.RoleChain, "one too many", beside(h.payloadFor(t, p), p))
	if _, err := h.cancels(t, p, h.merchant); err != nil {
		t.Fatal(err)
	}
	h.is(t, p, exchange.ProposalCancelled, exchange.DetailBySender)
}

// writes inserts a signature beside the processes.
func writes(y exchange.MultisigPayload, owner exchange.MultisigOwner, held string, user uuid.UUID, approval, intent string) string {
	return `INSERT INTO multisig_signatures (payload_id, owner, signature, held, user_id, approval_id, intent_id, at) VALUES (` + quotedID(y.ID) + `, '` + owner.Address +
		`', decode(repeat('ab', 65), 'hex'), ` + held + `, ` + quotedID(user) + `, ` + approval + `, ` + intent + `, now())`
}

// No login changes what is proposed, makes a payment of something else, or lets a payload be signed before officers approved it.
func TestTheDatabaseRefusesUnreleasedProposals(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Ethereum)
	p := h.opened(t, usdt("100"))
	h.every(t, "pays more", steps(p, `amount = amount + 1`))
	h.every(t, "pays another", steps(p, `destination = 'stranger-0000000000000000000000000'`))
	h.every(t, "asks for fewer officers", steps(p, `policy_needed = 1`))
	h.every(t, "removes it", `DELETE FROM multisig_proposals WHERE id = `+quotedID(p.ID))
	h.every(t, "releases it without officers", `UPDATE releases SET passed_at = now() WHERE object_id = `+quotedID(p.ID))
	h.every(t, "takes it out of the sums", `UPDATE releases SET ended_at = now() WHERE object_id = `+quotedID(p.ID))
	h.every(t, "frees its money", `UPDATE holds SET status = 'released' WHERE id = `+quotedID(p.HoldID))
	h.every(t, "frees half", `UPDATE holds SET amount = amount / 2 WHERE id = `+quotedID(p.HoldID))
	for _, to := range []string{"signing", "ready", "broadcasting", "confirming", "superseded", "failed", "executed"} {
		h.every(t, "calls it "+to, steps(p, `status = '`+to+`'`))
	}
	h.every(t, "cancels it", steps(p, `status = 'cancelled'`))
	h.every(t, "cancels it and frees it", append(freed(p)[:2], steps(p, `status = 'cancelled'`))...)
	h.every(t, "expires it early", append(freed(p)[:2], steps(p, `status = 'expired'`))...)
	h.every(t, "rejects it", append(freed(p)[:2], steps(p, `status = 'rejected'`))...)
	pays := func(amount, to, fee string) string {
		return `INSERT INTO chain_payments (id, purpose, object_id, n, network, asset, amount, wallet_id, from_address, to_address, fee_wallet_id, fee_payer, hold_id, intent_hash, status,
			approved_by, created_at, updated_at) SELECT gen_random_uuid(), 'proposal', s.id, 1, s.network, s.asset, ` + amount + `, s.wallet_id, ` + quoted(h.wallet.Address) + `, ` + to + `, ` + fee +
			`, s.hold_id, repeat('0', 64), 'approved', 'policy', now(), now() FROM multisig_proposals s WHERE s.id = ` + quotedID(p.ID)
	}
	sponsored := quotedID(h.gas.ID) + `, ` + quoted(h.gas.Address)
	h.every(t, "approves its payment without officers", pays(`s.amount`, `s.destination`, sponsored))
	for _, by := range []exchange.Principal{h.boss, h.three} {
		if _, err := h.decides(t, p, exchange.Approve, by); err != nil {
			t.Fatal(err)
		}
	}
	p = h.is(t, p, exchange.ProposalApproving, exchange.WaitPayload)
	h.every(t, "approves a second payment", pays(`s.amount`, `s.destination`, sponsored))
	h.every(t, "stores a payload before the screening", beside(storetest.PayloadOf(t, p), p), steps(p, `status = 'signing'`))

	q := h.opened(t, usdt("10"))
	if _, err := h.decides(t, q, exchange.Approve, h.one); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, h.s, `SET session_replication_role = replica; DELETE FROM network_fees; DELETE FROM chain_payments WHERE object_id = '`+q.ID.String()+`'; SET session_replication_role = origin`)
	p = q // released, and without a payment
	h.every(t, "pays more than was released", pays(`s.amount + 1`, `s.destination`, sponsored))
	h.every(t, "pays another than was released", pays(`s.amount`, `'stranger-0000000000000000000000000'`, sponsored))
	h.every(t, "pays without a gas wallet", pays(`s.amount`, `s.destination`, `NULL, ''`))
}

// Only the chain's worker stores a payload and ends one, and not what is withheld, or could be executed.
func TestTheDatabaseRefusesPayloads(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Ethereum)
	p := h.released(t, usdt("100"))
	fresh := storetest.PayloadOf(t, p)
	h.but(t, []store.Role{store.RoleChain}, "stores a payload", beside(fresh, p), steps(p, `status = 'signing', status_detail = 'owners'`))
	h.every(t, "stores a payload and leaves the proposal", beside(fresh, p))
	h.every(t, "calls it signing", steps(p, `status = 'signing'`))
	if _, err := h.api.Freeze(t.Context(), storetest.NewID(t), "a test", h.one); err != nil {
		t.Fatal(err)
	}
	h.every(t, "stores a payload in a freeze", beside(fresh, p), steps(p, `status = 'signing', status_detail = 'owners'`))
	storetest.Exec(t, h.s, `ALTER TABLE freezes DISABLE TRIGGER USER; DELETE FROM freezes; ALTER TABLE freezes ENABLE TRIGGER USER`)
	p, y := h.signing(t, usdt("50"))
	h.every(t, "changes the digest", `UPDATE multisig_payloads SET digest = decode(repeat('00', 32), 'hex') WHERE id = `+quotedID(y.ID))
	h.every(t, "changes what is signed", `UPDATE multisig_payloads SET joint = '{"to": "me"}' WHERE id = `+quotedID(y.ID))
	h.every(t, "stores one beside it", beside(fresh, p))
	other := h.released(t, usdt("1"))
	h.every(t, "takes its number", strings.Replace(beside(fresh, other), `', 77, `, `', 3, `, 1), steps(other, `status = 'signing'`))
	h.every(t, "removes it", `DELETE FROM multisig_payloads WHERE id = `+quotedID(y.ID))
	voids := `UPDATE multisig_payloads SET status = 'void', evidence = 'it says so', updated_at = now() WHERE id = ` + quotedID(y.ID)
	h.but(t, []store.Role{store.RoleChain}, "voids it", voids, steps(p, `status = 'approving'`))
	h.every(t, "voids it and leaves the proposal", voids)
	h.every(t, "voids it without evidence", `UPDATE multisig_payloads SET status = 'void' WHERE id = `+quotedID(y.ID), steps(p, `status = 'approving'`))
	h.every(t, "calls it executed", `UPDATE multisig_payloads SET status = 'executed', evidence = 'x' WHERE id = `+quotedID(y.ID))
	for _, to := range []string{"cancelled", "rejected", "expired", "superseded", "failed"} {
		h.every(t, to+" with an open payload", append(freed(p), steps(p, `status = '`+to+`'`))...)
	}
	h.but(t, []store.Role{store.RoleChain}, "calls it superseded", steps(p, `ending = 'superseded', ending_detail = 'x'`))
	h.every(t, "wants it cancelled", steps(p, `ending = 'cancelled', ending_detail = 'x'`))
	h.every(t, "calls it approving", steps(p, `status = 'approving'`))
	h.every(t, "calls it ready", steps(p, `status = 'ready'`))
	h.every(t, "has it executed", steps(p, `payload_id = `+quotedID(y.ID)+`, executed_by = `+quotedID(h.one.UserID)))
	if _, err := h.cancels(t, p, h.merchant); err != nil {
		t.Fatal(err)
	}
	p = h.is(t, p, exchange.ProposalSigning, exchange.WaitImpossible)
	h.every(t, "takes back that it is to end", steps(p, `ending = NULL, ending_detail = ''`))
	h.every(t, "ends it otherwise", append(freed(p), steps(p, `status = 'expired', ending = NULL, ending_detail = ''`))...)
	h.every(t, "ends it before its payload", append(freed(p), steps(p, `status = 'cancelled', ending = NULL, ending_detail = ''`))...)
}

// A signature of a key of ours is the signer's, with its officer's approval of exactly that payload; one from outside the chain worker's.
func TestTheDatabaseRefusesSignatures(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.signing(t, usdt("100"))
	q, z := h.signing(t, usdt("50"))
	outside, held, second := h.account.Owners[0], h.account.Owners[1], h.account.Owners[2]
	approvalOf := func(payload exchange.MultisigPayload, by exchange.Principal) string {
		t.Helper()
		token, err := storetest.PayloadTicket(ctx, h.api, payload, map[uuid.UUID]exchange.Proposal{y.ID: p, z.ID: q}[payload.ID].Amount, by)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.flows.ConfirmPayload(ctx, payload.ID, token); err != nil {
			t.Fatal(err)
		}
		return `(SELECT id FROM approvals WHERE object_type = 'multisig_payload' AND object_id = ` + quotedID(payload.ID) + ` AND officer_id = ` + quotedID(by.UserID) + `)`
	}
	other, mine := approvalOf(z, h.one), approvalOf(y, h.two)
	h.every(t, "signs without an approval", writes(y, held, `true`, h.one.UserID, `NULL`, `NULL`))
	h.every(t, "signs with the approval of another payload", writes(y, held, `true`, h.one.UserID, other, `NULL`))
	h.every(t, "signs with the approval of another officer", writes(y, held, `true`, h.two.UserID, mine, `NULL`))
	h.every(t, "signs for another owner", writes(y, second, `true`, h.one.UserID, other, `NULL`))
	h.every(t, "signs with the approval of the proposal", writes(y, held, `true`, h.three.UserID, `(SELECT id FROM approvals WHERE object_type = 'multisig_proposal' AND object_id = `+quotedID(p.ID)+` LIMIT 1)`, `NULL`))
	ask := func(payload exchange.MultisigPayload) string {
		t.Helper()
		a, err := storetest.AskProposal(ctx, h.api, exchange.IntendProposalSign, payload.ProposalID, exchange.OutsideSignature{PayloadID: payload.ID, Signature: []byte("x")}.Terms(), h.merchant)
		if err != nil {
			t.Fatal(err)
		}
		return quotedID(a.IntentID)
	}
	here, there := ask(y), ask(exchange.MultisigPayload{ID: z.ID, ProposalID: p.ID}) // which names the other payload
	use := func(intent string) string {
		return `UPDATE intents SET used_at = now(), used_by = 'multisig-proposal:' || object_id WHERE id = ` + intent
	}
	h.every(t, "brings one without an intent", writes(y, outside, `false`, h.merchant.UserID, `NULL`, `NULL`))
	h.every(t, "brings one with an unused intent", writes(y, outside, `false`, h.merchant.UserID, `NULL`, here))
	h.every(t, "brings one for another payload", use(there), writes(y, outside, `false`, h.merchant.UserID, `NULL`, there))
	h.every(t, "brings one of a stranger", use(here), writes(y, exchange.MultisigOwner{Address: "owner-stranger"}, `false`, h.merchant.UserID, `NULL`, here))
	h.every(t, "brings one of a key of ours", use(here), writes(y, held, `false`, h.merchant.UserID, `NULL`, here))
	h.but(t, []store.Role{store.RoleChain}, "brings one", use(here), writes(y, outside, `false`, h.merchant.UserID, `NULL`, here))
	h.but(t, []store.Role{store.RoleSigner}, "signs", writes(y, second, `true`, h.two.UserID, mine, `NULL`))
	approves := func(payload exchange.MultisigPayload, officer exchange.Principal, digest string) string {
		return `INSERT INTO approvals (id, token_id, object_type, object_id, officer_id, requester_id, action, digest, created_at) SELECT gen_random_uuid(), id, 'multisig_payload', ` +
			quotedID(payload.ID) + `, ` + quotedID(officer.UserID) + `, NULL, 'approve', '` + digest + `', now() FROM approval_tokens LIMIT 1`
	}
	h.every(t, "approves a payload without a token", approves(y, h.one, y.Intent()))
	if _, err := h.keySigns(t, y, second); err != nil {
		t.Fatal(err)
	}
	h.every(t, "calls it ready with one signature of two", steps(p, `status = 'ready'`))
	h.every(t, "changes a signature", `UPDATE multisig_signatures SET signature = decode(repeat('cd', 65), 'hex')`)
	h.every(t, "removes a signature", `DELETE FROM multisig_signatures`)
}

// Nothing is sent that an officer did not have executed, with signatures of enough owners, and a number of the gas wallet.
func TestTheDatabaseRefusesExecutions(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Ethereum)
	p, y := h.ready(t, usdt("100"))
	sends := func(wallet uuid.UUID) []string {
		return []string{
			`UPDATE chain_payments SET status = 'signed', tx_id = '0xevil', version = version + 1 WHERE id = ` + quotedID(p.PaymentID),
			`INSERT INTO nonces (wallet_id, nonce, payment_id) SELECT wallet_id, next, ` + quotedID(p.PaymentID) + ` FROM nonce_sequences WHERE wallet_id = ` + quotedID(wallet),
			`INSERT INTO chain_attempts (id, payment_id, network, n, tx_id, raw, nonce_wallet, nonce, status, created_at, updated_at) SELECT gen_random_uuid(), ` + quotedID(p.PaymentID) +
				`, 'ethereum', 1, '0xevil', 'x', wallet_id, next - 1, 'signed', now(), now() FROM nonce_sequences WHERE wallet_id = ` + quotedID(wallet),
		}
	}
	h.every(t, "sends what no officer had executed", sends(h.gas.ID)...)
	h.every(t, "has it executed by itself", steps(p, `payload_id = `+quotedID(y.ID)+`, executed_by = `+quotedID(h.one.UserID)))
	h.every(t, "calls it executed", steps(p, `status = 'executed', completed_at = now(), tx_hash = '0xevil'`))
	h.every(t, "completes its payment", `UPDATE chain_payments SET status = 'signed', tx_id = '0xevil', version = version + 1 WHERE id = `+quotedID(p.PaymentID),
		`UPDATE chain_payments SET status = 'completed', tx_id = '0xevil', completed_at = now(), version = version + 1 WHERE id = `+quotedID(p.PaymentID))
	h.every(t, "adopts a transaction that was not seen", `INSERT INTO chain_attempts (id, payment_id, network, n, tx_id, raw, adopted, status, created_at, updated_at)
		VALUES (gen_random_uuid(), `+quotedID(p.PaymentID)+`, 'ethereum', 1, '0xlost', 'x', true, 'signed', now(), now())`)
	p, err := h.executes(t, p, h.two)
	if err != nil {
		t.Fatal(err)
	}
	h.but(t, []store.Role{store.RoleSigner, store.RoleChain}, "calls it broadcasting without a transaction", steps(p, `status = 'broadcasting'`))
	for _, role := range []store.Role{store.RoleSigner, store.RoleChain} {
		if err := h.together(t, role, steps(p, `status = 'broadcasting'`)); !refused(err) {
			t.Errorf("%s calls it broadcasting without a transaction: %v", role, err)
		}
	}
	h.every(t, "takes a number for another payment's wallet", `INSERT INTO nonce_sequences (wallet_id, first, next, opened_at) VALUES (`+quotedID(h.wallet.ID)+`, 0, 0, now())`, sends(h.wallet.ID)[0], sends(h.wallet.ID)[1], sends(h.wallet.ID)[2])
	a, err := h.sends(t, p, y)
	if err != nil || a.NonceWallet != h.gas.ID {
		t.Fatalf("the transaction is %+v, %v", a, err)
	}
	h.every(t, "voids what is sent", `UPDATE multisig_payloads SET status = 'void', evidence = 'x', updated_at = now() WHERE id = `+quotedID(y.ID), steps(p, `status = 'ready'`))
	h.every(t, "calls it confirming", steps(p, `status = 'confirming'`))
	h.every(t, "sponsors another payment on Ethereum", `INSERT INTO chain_payments (id, purpose, object_id, n, network, asset, amount, wallet_id, from_address, to_address, fee_wallet_id, fee_payer,
		intent_hash, status, approved_by, created_at, updated_at) SELECT gen_random_uuid(), 'gas', id, 9, network, 'ETH', 0.1, `+quotedID(h.gas.ID)+`, `+quoted(h.gas.Address)+`, from_address, `+
		quotedID(h.wallet.ID)+`, `+quoted(h.wallet.Address)+`, repeat('0', 64), 'approved', 'policy', now(), now() FROM chain_payments WHERE id = `+quotedID(p.PaymentID))
	tron := newReserve(t, exchange.Tron)
	q, z := tron.ready(t, usdt("100"))
	if q, err = tron.executes(t, q, tron.two); err != nil {
		t.Fatal(err)
	}
	evil := tron.transaction(t, q, z)
	evil.TxID = "another" + z.JointID
	_, err = tron.signer.SaveSignedAttempt(t.Context(), evil) // what owners did not sign
	wantFault(t, err, exchange.CodeStateConflict)
}

// No login proposes what its intent does not say, or for an account that may not.
func TestTheDatabaseRefusesProposalsWithoutIntent(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Tron)
	stranger := storetest.PrincipalOf(storetest.User(t, h.s, exchange.RoleVendor))
	inserts := func(by exchange.Principal, edit map[string]string) []string {
		t.Helper()
		r := h.asks(t, usdt("100"))
		a, err := storetest.Ask(t.Context(), h.api, exchange.IntendProposal, r.ID, r.ID, r.Terms(), by)
		if err != nil {
			t.Fatal(err)
		}
		hold := storetest.NewID(t)
		v := map[string]string{
			"amount": `100`, "destination": quoted(faraway), "value": `100 * greatest(150, 1.2 * reference_rate('USDT', now()))`, "rate": `greatest(150, 1.2 * reference_rate('USDT', now()))`,
			"policy_needed": `2`, "proposer_id": quotedID(by.UserID), "reference": `'invoice 7'`, "status": `'proposed'`,
		}
		for k, x := range edit {
			v[k] = x
		}
		return []string{
			`UPDATE intents SET used_at = now(), used_by = 'multisig-proposal:' || object_id WHERE id = ` + quotedID(a.IntentID),
			`INSERT INTO holds (id, key, account_id, placed, amount, status, object_type, object_id, created_at, updated_at) SELECT ` + quotedID(hold) + `, ` + quotedID(hold) + `, id, ` + v["amount"] + `, ` +
				v["amount"] + `, 'held', 'multisig_proposal', ` + quotedID(r.ID) + `, now(), now() FROM ledger_accounts WHERE code = 'wallet_balance:` + h.wallet.ID.String() + `:USDT'`,
			`INSERT INTO multisig_proposals (id, intent_id, kind, proposer_id, merchant_id, wallet_id, network, asset, amount, destination, reference, value, rate, policy_version, policy_needed,
				digest, status, status_detail, hold_id, created_at, expires_at, updated_at) VALUES (` + quotedID(r.ID) + `, ` + quotedID(a.IntentID) + `, 'payment', ` + v["proposer_id"] + `, ` +
				quotedID(h.merchant.UserID) + `, ` + quotedID(h.wallet.ID) + `, 'tron', 'USDT', ` + v["amount"] + `, ` + v["destination"] + `, ` + v["reference"] + `, ` + v["value"] + `, ` + v["rate"] +
				`, 1, ` + v["policy_needed"] + `, repeat('0', 64), ` + v["status"] + `, 'none', ` + quotedID(hold) + `, now(), now() + interval '168 hours', now())`,
		}
	}
	h.every(t, "proposes more", inserts(h.merchant, map[string]string{"amount": `101`})...)
	h.every(t, "proposes another recipient", inserts(h.merchant, map[string]string{"destination": `'stranger-0000000000000000000000000'`})...)
	h.every(t, "proposes at a low value", inserts(h.merchant, map[string]string{"value": `1`, "policy_needed": `1`})...)
	h.every(t, "proposes at a low rate", inserts(h.merchant, map[string]string{"value": `100`, "rate": `1`, "policy_needed": `1`})...)
	h.every(t, "proposes with fewer officers", inserts(h.merchant, map[string]string{"policy_needed": `1`})...)
	h.every(t, "proposes as another", inserts(h.merchant, map[string]string{"proposer_id": quotedID(h.one.UserID)})...)
	h.every(t, "proposes another note", inserts(h.merchant, map[string]string{"reference": `''`})...)
	h.every(t, "proposes what is approved", inserts(h.merchant, map[string]string{"status": `'approving'`})...)
	h.every(t, "proposes for a stranger", inserts(stranger, nil)...)
	if err := h.together(t, store.RoleFlows, inserts(h.merchant, nil)...); err != nil {
		t.Errorf("as it was asked for it is refused: %v", err)
	}
}

// After its time no login stores a payload of a proposal, a signature or an execution.
func TestTheDatabaseRefusesOldProposals(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	released := h.released(t, usdt("5"))
	signing, y := h.signing(t, usdt("10"))
	ready, z := h.ready(t, usdt("20"))
	token, err := storetest.PayloadTicket(ctx, h.api, y, signing.Amount, h.one)
	if err == nil {
		_, err = h.flows.ConfirmPayload(ctx, y.ID, token)
	}
	if err != nil {
		t.Fatal(err)
	}
	asks := func(kind exchange.IntentKind, id uuid.UUID, terms exchange.Terms, by exchange.Principal) (intent, use string) {
		t.Helper()
		a, err := storetest.AskProposal(ctx, h.api, kind, id, terms, by)
		if err != nil {
			t.Fatal(err)
		}
		intent = quotedID(a.IntentID)
		return intent, `UPDATE intents SET used_at = now(), used_by = 'multisig-proposal:' || object_id WHERE id = ` + intent
	}
	brought, use := asks(exchange.IntendProposalSign, signing.ID, exchange.OutsideSignature{PayloadID: y.ID, Signature: []byte("x")}.Terms(), h.merchant)
	_, execute := asks(exchange.IntendProposalExecute, ready.ID, nil, h.one)
	for _, p := range []exchange.Proposal{released, signing, ready} {
		h.ages(t, p)
	}
	h.refusedFor(t, store.RoleChain, "comes too late", beside(storetest.PayloadOf(t, released), released), steps(released, `status = 'signing', status_detail = 'owners'`))
	h.refusedFor(t, store.RoleChain, "comes too late", use, writes(y, h.account.Owners[0], `false`, h.merchant.UserID, `NULL`, brought))
	h.refusedFor(t, store.RoleSigner, "comes too late", writes(y, h.account.Owners[1], `true`, h.one.UserID,
		`(SELECT id FROM approvals WHERE object_type = 'multisig_payload' AND object_id = `+quotedID(y.ID)+`)`, `NULL`))
	h.refusedFor(t, store.RoleFlows, "is executed after its time", execute, steps(ready, `payload_id = `+quotedID(z.ID)+`, executed_by = `+quotedID(h.one.UserID)))
}
