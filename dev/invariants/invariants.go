// Package invariants holds what must be true of Kivuko's database at every moment, whatever is under way.
package invariants

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// A Rule is one statement about the whole database, in words and in SQL. The query gives one text per place where it
// is broken, and looks at one moment.
type Rule struct{ Words, Query string }

// Rules are all of them.
func Rules() []Rule {
	return []Rule{
		{"the ledger balances in every asset", balanced},
		{"balances are the sums of their lines", sums},
		{"what a wallet holds is what it owes and what the house earned in it", owed},
		{"every hold has an owner that still needs it", needed},
		{"accounts hold what their holds say", held},
		{"a credited deposit came once and was booked once", deposited},
		{"a withdrawal left once when it is completed, and otherwise not", withdrawn},
		{"a swap collected once, and then paid or refunded once, never both", swapped},
		{"a refund by bank left once when it is completed, and its exception was refunded once", returned},
		{"a wallet of several owners is the account that two officers agreed to, opened once unless it was adopted", shared},
		{"a proposed payment left once when it is executed, by as many owners as its wallet needs, and otherwise not", proposed},
	}
}

const balanced = `
SELECT asset || ' is off by ' || sum(CASE WHEN debit_normal THEN posted ELSE -posted END)
FROM ledger_accounts GROUP BY asset HAVING sum(CASE WHEN debit_normal THEN posted ELSE -posted END) <> 0`

const sums = `
SELECT a.code || ' says ' || a.posted FROM ledger_accounts a
LEFT JOIN (SELECT account_id, sum(amount) AS sum FROM ledger_lines GROUP BY account_id) l ON l.account_id = a.id
WHERE a.posted <> coalesce(CASE WHEN a.debit_normal THEN l.sum ELSE -l.sum END, 0)`

// What came to an escrow address and was not taken for its order lies in suspense until a person decides about it, and so
// does what came to an address of ours on a network where it has no owner.
const owed = `
SELECT c.code || ' holds ' || c.posted || ', owes ' || coalesce(b.posted, 0) || ', earned ' || coalesce(f.posted, 0) || ' and has ' || s.lies || ' in suspense'
FROM ledger_accounts c
JOIN wallets w ON w.id = c.owner_id
LEFT JOIN ledger_accounts b ON b.kind = 'wallet_balance' AND b.owner_id = c.owner_id AND b.asset = c.asset
LEFT JOIN ledger_accounts f ON f.kind = 'wallet_fees' AND f.owner_id = c.owner_id AND f.asset = c.asset
CROSS JOIN LATERAL (
    SELECT coalesce(-sum(l.amount), 0) AS lies FROM ledger_lines l JOIN ledger_accounts a ON a.id = l.account_id
    WHERE w.purpose IN ('escrow', 'counterpart') AND a.kind = 'suspense' AND a.asset = c.asset
        AND l.entry_id IN (SELECT o.entry_id FROM ledger_lines o WHERE o.account_id IN (c.id, b.id, f.id))) s
WHERE c.kind = 'custody' AND c.asset IN ('USDT', 'USDC') AND (b.id IS NOT NULL OR w.purpose IN ('escrow', 'counterpart')) AND c.posted <> coalesce(b.posted, 0) + coalesce(f.posted, 0) + s.lies`

// Crypto of a sale stays held when its order is over, until it has left the escrow address. So do the shillings of one that
// failed after its payout was begun, until the refund is final.
const needed = `
SELECT h.key || ' of ' || h.object_type || ' ' || h.object_id || ' holds ' || h.amount FROM holds h
WHERE h.status = 'held' AND h.amount > 0 AND NOT (
    (h.object_type = 'offer' AND EXISTS (SELECT 1 FROM offers o WHERE o.id = h.object_id))
    OR (h.object_type = 'inventory' AND EXISTS (SELECT 1 FROM inventories i WHERE i.hold_id = h.id))
    OR EXISTS (SELECT 1 FROM orders o WHERE o.id = h.object_id AND o.status IN ('pending', 'processing', 'confirming'))
    OR EXISTS (SELECT 1 FROM transfers f WHERE f.id = h.object_id AND f.status_detail <> 'released'
        AND f.status NOT IN ('completed', 'cancelled', 'rejected', 'failed'))
    OR EXISTS (SELECT 1 FROM fee_sweeps f WHERE f.hold_id = h.id AND f.status IN ('pending', 'processing'))
    OR EXISTS (SELECT 1 FROM escrow_claims c WHERE c.hold_id = h.id AND c.taken + c.refunded + c.kept < c.amount)
    OR EXISTS (SELECT 1 FROM order_payouts p WHERE p.hold_id = h.id AND p.status = 'processing')
    OR (h.object_type = 'payment_exception' AND NOT EXISTS (SELECT 1 FROM chain_payments p WHERE p.hold_id = h.id AND p.status = 'completed'))
    OR EXISTS (SELECT 1 FROM refunds r JOIN orders o ON o.id = r.order_id WHERE o.hold_id = h.id AND r.exception_id IS NULL AND r.status <> 'completed'
        AND EXISTS (SELECT 1 FROM payment_attempts a WHERE a.object_type = 'order' AND a.object_id = o.id AND a.direction = 'payout'))
    OR EXISTS (SELECT 1 FROM swaps s WHERE s.id = h.object_id AND s.status NOT IN ('completed', 'refunded', 'cancelled', 'expired', 'failed'))
    OR EXISTS (SELECT 1 FROM multisig_proposals p WHERE p.hold_id = h.id AND p.status NOT IN ('executed', 'rejected', 'cancelled', 'expired', 'superseded', 'failed'))
    OR EXISTS (SELECT 1 FROM otc_withdrawals o WHERE o.id = h.object_id AND o.status NOT IN ('completed', 'rejected', 'cancelled', 'failed'))
    OR EXISTS (SELECT 1 FROM refunds r WHERE r.id = h.object_id AND r.status IN ('pending', 'processing', 'needs_review'))
    OR EXISTS (SELECT 1 FROM payment_attempts p WHERE p.id = h.object_id AND p.direction = 'payout' AND p.status IN ('created', 'unknown', 'accepted')))`

const held = `
SELECT a.code || ' holds ' || a.held FROM ledger_accounts a
LEFT JOIN (SELECT account_id, sum(amount) AS sum FROM holds WHERE status = 'held' GROUP BY account_id) h ON h.account_id = a.id
WHERE a.held <> coalesce(h.sum, 0)`

// What came is one line of a statement, or a reference that two officers read, or one receipt of the operator. It left the flight once, for
// shillings of the merchant's or for one transfer of the crypto.
const deposited = `
SELECT 'deposit ' || d.id || ' of ' || d.received_amount || ' came by ' || c.lines || ' lines, ' || c.words || ' words and ' || c.receipts || ' receipts, of which '
    || c.booked || ' is booked, and ' || c.transfers || ' transfers carried it out'
FROM otc_deposits d CROSS JOIN LATERAL (SELECT
    (SELECT count(*) FROM bank_lines l WHERE l.object_type = 'otc_deposit' AND l.object_id = d.id AND l.status = 'matched' AND l.amount = d.received_amount) AS lines,
    (SELECT count(DISTINCT o.officer_id) FROM otc_confirmations o WHERE o.deposit_id = d.id AND o.withdrawn_at IS NULL AND o.amount = d.received_amount) AS words,
    (SELECT count(*) FROM collections r WHERE r.object_type = 'otc_deposit' AND r.object_id = d.id AND r.kind IN ('exact', 'over', 'under') AND r.amount = d.received_amount) AS receipts,
    (SELECT coalesce(sum(l.amount), 0) FROM ledger_entries e JOIN ledger_lines l ON l.entry_id = e.id JOIN ledger_accounts a ON a.id = l.account_id
        WHERE e.object_type = 'otc_deposit' AND e.object_id = d.id AND a.kind = 'orders_in_flight' AND l.amount > 0) AS booked,
    (SELECT count(*) FROM transfers f WHERE f.id = d.transfer_id AND f.status = 'completed' AND f.amount = d.crypto_amount) AS transfers) c
WHERE d.status IN ('credited', 'audited') AND NOT (c.booked = d.received_amount AND c.transfers = (d.asset <> 'KES')::int
    AND CASE d.method WHEN 'bank' THEN c.receipts = 0 AND (c.lines = 1 OR c.lines = 0 AND c.words = 2) ELSE c.receipts = 1 AND c.lines = 0 END)`

// What left is one payout of the operator's, one payment at a bank, or one transfer of the crypto, of exactly the amount. Crypto that was sold
// came to the house once before.
const withdrawn = `
SELECT 'withdrawal ' || w.id || ' is ' || w.status || ', and ' || c.times || ' times ' || c.paid || ' of ' || w.payout_amount || ' left, for which ' || c.came || ' came'
FROM otc_withdrawals w CROSS JOIN LATERAL (SELECT count(*) AS times, coalesce(sum(amount), 0) AS paid,
    (SELECT coalesce(sum(p.amount), 0) FROM chain_payments p WHERE p.purpose = 'withdrawal' AND p.object_id = w.id AND p.status = 'completed') AS came
    FROM (SELECT a.amount FROM payment_attempts a WHERE a.withdrawal_id = w.id AND a.direction = 'payout' AND a.status = 'succeeded' AND w.method = 'momo'
        UNION ALL SELECT -l.amount FROM ledger_entries e JOIN ledger_lines l ON l.entry_id = e.id JOIN ledger_accounts a ON a.id = l.account_id
            WHERE e.object_type = 'otc_withdrawal' AND e.object_id = w.id AND a.kind = 'bank'
        UNION ALL SELECT f.amount FROM transfers f JOIN intents i ON i.object_id = f.id WHERE i.id = w.transfer_intent_id AND f.status = 'completed') s) c
WHERE w.status = 'completed' AND NOT (c.times = 1 AND c.paid = w.payout_amount AND c.came = CASE w.source_asset WHEN 'KES' THEN 0 ELSE w.source_amount END)
    OR w.status IN ('rejected', 'cancelled', 'failed') AND c.times > 0`

// A swap that ended moved one side for the other, or brought what it collected back, or moved nothing.
const swapped = `
SELECT 'swap ' || s.id || ' is ' || s.status || ', and collected ' || c.collected || ', paid ' || c.paid || ' and gave back ' || c.returned
FROM swaps s CROSS JOIN LATERAL (SELECT
    coalesce(sum(p.amount) FILTER (WHERE p.purpose = 'swap_collect' AND p.asset = s.from_asset), 0) AS collected,
    coalesce(sum(p.amount) FILTER (WHERE p.purpose = 'swap_payout' AND p.asset = s.to_asset), 0) AS paid,
    coalesce(sum(p.amount) FILTER (WHERE p.purpose = 'swap_refund' AND p.asset = s.from_asset), 0) AS returned
    FROM chain_payments p WHERE p.object_id = s.id AND p.purpose LIKE 'swap\_%' AND p.status = 'completed') c
WHERE NOT CASE s.status
    WHEN 'completed' THEN (c.collected, c.paid, c.returned) = (s.from_amount, s.to_amount, 0)
    WHEN 'refunded' THEN (c.collected, c.paid, c.returned) = (s.from_amount, 0, s.from_amount)
    WHEN 'reserved' THEN (c.collected, c.paid, c.returned) = (0, 0, 0)
    WHEN 'cancelled' THEN (c.collected, c.paid, c.returned) = (0, 0, 0)
    WHEN 'expired' THEN (c.collected, c.paid, c.returned) = (0, 0, 0)
    WHEN 'failed' THEN (c.collected, c.paid, c.returned) = (0, 0, 0)
    ELSE c.collected IN (0, s.from_amount) AND c.paid IN (0, s.to_amount) AND c.returned = 0 END`

// What left is exactly the money of the exception, once, of all refunds that were tried.
const returned = `
SELECT 'refund ' || f.id || ' of exception ' || f.exception_id || ' is ' || f.status || ', and ' || c.times || ' times ' || c.paid || ' of ' || x.amount || ' left, by ' || c.refunds || ' refunds'
FROM refunds f JOIN payment_exceptions x ON x.id = f.exception_id CROSS JOIN LATERAL (SELECT count(*) AS times, coalesce(-sum(l.amount), 0) AS paid,
    (SELECT count(*) FROM refunds o WHERE o.exception_id = f.exception_id AND o.status <> 'failed') AS refunds
    FROM ledger_entries e JOIN ledger_lines l ON l.entry_id = e.id JOIN ledger_accounts a ON a.id = l.account_id
    WHERE e.object_type = 'refund' AND e.object_id = f.id AND a.kind = 'bank') c
WHERE f.rail = 'bank' AND NOT (c.refunds <= 1 AND CASE f.status WHEN 'completed' THEN c.times = 1 AND c.paid = x.amount AND x.status = 'refunded' ELSE c.times = 0 END)`

// Every owner that was agreed to, first or by a change, has an address, which is that of a key of ours where we hold the key. One payment opened an account that
// was not adopted, or none when another one's transaction did: then ours was given up. On TRON up to three pay for one transaction that gives the account to
// its owners.
const shared = `
SELECT 'account ' || a.id || ' is ' || a.status || ', has ' || c.wallets || ' wallets and ' || c.owners || ' of ' || c.agreed || ' owners, and ' || c.paid || ' payments opened it'
FROM multisig_accounts a CROSS JOIN LATERAL (SELECT
    (SELECT count(*) FROM wallets w WHERE w.id = a.id AND w.purpose = 'multisig' AND (w.network, w.address) = (a.network, a.address)) AS wallets,
    (SELECT count(*) FROM multisig_owners o WHERE o.account_id = a.id AND o.standing = 'agreed' AND o.address IS NOT NULL
        AND o.held = EXISTS (SELECT FROM multisig_owner_keys k WHERE (k.account_id, k.n) = (o.account_id, o.n))) AS owners,
    coalesce((SELECT jsonb_array_length(s.change -> 'owners') FROM multisig_proposals s WHERE s.wallet_id = a.id AND s.kind = 'owners' AND s.status = 'executed'
            ORDER BY s.completed_at DESC, s.id DESC LIMIT 1),
        (SELECT jsonb_array_length(g.change -> 'owners') FROM control_changes g WHERE g.id = a.change_id AND g.status = 'confirmed')) AS agreed,
    (SELECT count(*) FROM chain_payments p WHERE p.purpose = 'multisig_open' AND p.object_id = a.id AND p.status = 'completed' AND p.to_address = a.address) AS paid,
    (SELECT count(*) FROM multisig_handovers h WHERE h.account_id = a.id AND h.status <> 'expired') AS given,
    (SELECT count(*) FROM multisig_handovers h WHERE h.account_id = a.id AND h.status = 'executed') AS executed,
    (SELECT count(*) FROM chain_payments p WHERE p.purpose = 'multisig_open' AND p.object_id = a.id AND p.status = 'cancelled') AS given_up,
    (SELECT count(*) FROM chain_payments p WHERE p.purpose = 'multisig_open' AND p.object_id = a.id AND p.status NOT IN ('completed', 'cancelled')) AS alive) c
WHERE (a.status IN ('active', 'differs')) <> (c.wallets = 1) OR a.status IN ('active', 'differs') AND NOT (c.owners = c.agreed AND c.alive = 0 AND
    CASE WHEN a.adopted THEN (c.paid, c.given) = (0, 0) WHEN a.kind = 'tron' THEN c.paid BETWEEN 1 AND 3 AND (c.given, c.executed) = (1, 1) ELSE c.given = 0 AND (c.paid = 1 OR c.paid = 0 AND c.given_up > 0) END)`

// What left is exactly the proposal's amount, once, in the books and in each final block that the watch has read. Owners of enough weight signed
// what we sent; what another tool sent, the chain has verified. Weights and threshold of a wallet whose owners changed are not those of before.
// What moves nothing costs the account a fee on TRON, in the native coin that it names.
const proposed = `
SELECT 'proposal ' || s.id || ' of ' || s.amount || ' is ' || s.status || ', and ' || c.paid || ' payments of ' || c.left || ' left, by ' || c.moves || ' movements, a weight of ' || c.weight
    || ' of ' || a.threshold || ' and ' || c.executed || ' payloads, with ' || c.open || ' open'
FROM multisig_proposals s JOIN multisig_accounts a ON a.id = s.wallet_id CROSS JOIN LATERAL (SELECT
    (SELECT count(*) FROM chain_payments p WHERE p.purpose = 'proposal' AND p.object_id = s.id AND p.status = 'completed' AND (p.wallet_id, p.to_address, p.asset, p.tx_id)
        = (s.wallet_id, s.destination, s.asset, s.tx_hash)) AS paid,
    (SELECT coalesce(-sum(l.amount), 0) FROM chain_payments p JOIN ledger_entries e ON e.object_type = 'chain_payment' AND e.object_id = p.id JOIN ledger_lines l ON l.entry_id = e.id
        JOIN ledger_accounts g ON g.id = l.account_id WHERE p.purpose = 'proposal' AND p.object_id = s.id AND g.code = 'custody:' || s.wallet_id || ':' || s.asset AND s.kind = 'payment') AS left,
    (SELECT count(*) FROM chain_payments p JOIN chain_deposits d ON d.payment_id = p.id WHERE p.purpose = 'proposal' AND p.object_id = s.id AND d.status = 'final'
        AND d.from_wallet_id = s.wallet_id AND d.asset = s.asset AND d.amount > 0) AS moves,
    (SELECT coalesce(sum(o.weight), 0) FROM multisig_signatures g JOIN multisig_owners o ON o.account_id = s.wallet_id AND o.address = g.owner WHERE g.payload_id = s.payload_id) AS weight,
    (SELECT count(*) FROM multisig_payloads y WHERE y.proposal_id = s.id AND y.status = 'executed') AS executed,
    (SELECT count(*) FROM multisig_payloads y WHERE y.proposal_id = s.id AND y.status = 'open') AS open,
    (SELECT count(*) FROM chain_payments p JOIN chain_attempts t ON t.payment_id = p.id AND t.tx_id = p.tx_id WHERE p.purpose = 'proposal' AND p.object_id = s.id AND t.adopted) AS adopted) c
WHERE NOT CASE
    WHEN s.status = 'executed' THEN c.paid = 1 AND c.left = s.amount AND c.moves <= 1 AND c.executed = 1 AND c.open = 0 AND (c.adopted = 1 OR c.weight >= a.threshold
        OR EXISTS (SELECT 1 FROM multisig_proposals o WHERE o.wallet_id = s.wallet_id AND o.kind = 'owners' AND o.status = 'executed'))
    WHEN s.status IN ('rejected', 'cancelled', 'expired', 'superseded', 'failed') THEN c.left = 0 AND c.moves = 0 AND c.executed = 0 AND c.open = 0
    ELSE c.left = 0 AND c.executed = 0 END`

// Queryer is a database, or a transaction of one.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Broken lists the places where a rule is broken.
func (r Rule) Broken(ctx context.Context, db Queryer) ([]string, error) {
	rows, err := db.QueryContext(ctx, r.Query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var broken []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		broken = append(broken, line)
	}
	return broken, rows.Err()
}

// Check names every rule that is broken, and where.
func Check(ctx context.Context, db *sql.DB) error {
	var all []string
	for _, r := range Rules() {
		broken, err := r.Broken(ctx, db)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Words, err)
		}
		if len(broken) > 0 {
			all = append(all, r.Words+", but "+strings.Join(broken, "; "))
		}
	}
	if len(all) > 0 {
		return fmt.Errorf("invariants: %s", strings.Join(all, "\n"))
	}
	return nil
}
