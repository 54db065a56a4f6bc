package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// scan is the state of one block while it is recorded.
type scan struct {
	t       unitTx
	network exchange.Network
	block   exchange.ChainBlock
	minimum map[money.Asset]money.Amount
	final   bool

	byAddress map[string]walletEnd
	byID      map[uuid.UUID]walletEnd
	known     map[movementKey]exchange.ChainDeposit
	payments  map[string]uuid.UUID      // the payments of our own transactions, by transaction
	givenUp   map[string]uuid.UUID      // transactions of ours recorded as impossible or as paying nothing
	waits     map[uuid.UUID][]uuid.UUID // flows that wait for deposits, by wallet
	leased    map[uuid.UUID]time.Time   // when the wallets of the escrow pool were lent
	entries   []exchange.Entry
}

type movementKey struct {
	tx    string
	index uint32
}

// walletEnd is a wallet of ours at one end of a movement.
type walletEnd struct {
	ID            uuid.UUID
	Address       string
	Purpose       exchange.HousePurpose
	OwnerID       uuid.NullUUID
	VendorID      uuid.NullUUID
	CounterpartOf uuid.NullUUID
}

// RecordFinalBlock records a final block, books incoming money of our wallets, and moves the cursor to it, in one
// transaction. Blocks come in order: a recorded one changes nothing, a gap is CodeStateConflict, and a block that is
// not the successor of the previous one is CodeConflict, because the final chain was replaced or the node is wrong.
func (s *Store) RecordFinalBlock(ctx context.Context, b exchange.BlockScan) (exchange.DepositCursor, error) {
	return change(ctx, s, "block", depositsLock(b.Network), func(ctx context.Context, t unitTx) (exchange.DepositCursor, exchange.Posting, error) {
		var none exchange.Posting
		if err := t.lockDeposits(ctx, b.Network); err != nil {
			return exchange.DepositCursor{}, none, err
		}
		c, found, err := t.depositCursor(ctx, b.Network)
		if err != nil || (found && b.Block.Number <= c.Final.Number) {
			return c, none, err
		}
		switch {
		case !found || b.Block.Number != c.Final.Number+1:
			return c, none, exchange.Errorf(exchange.CodeStateConflict, "Block %d does not follow block %d.", b.Block.Number, c.Final.Number)
		case !b.Block.Skipped && c.LinkID != "" && b.Block.Parent != c.LinkID:
			return c, none, exchange.Errorf(exchange.CodeConflict, "The final block %d has the parent %s, but %s was read as final before it.",
				b.Block.Number, clip(b.Block.Parent, 128), c.LinkID)
		}
		sc := &scan{t: t, network: b.Network, block: b.Block, minimum: b.Minimum, final: true}
		if err := sc.record(ctx, b); err != nil {
			return c, none, err
		}
		forked, err := t.advance(ctx, b.Network, b.Block)
		if err != nil {
			return c, none, err
		}
		last := blockNumber(b.Block.Number)
		if forked {
			last = maxHeight
		}
		if err := t.orphan(ctx, b.Network, 0, last); err != nil {
			return c, none, err
		}
		if c, _, err = t.depositCursor(ctx, b.Network); err != nil {
			return c, none, err
		}
		return c, exchange.Posting{Entries: sc.entries}, nil
	})
}

// RecordSeenBlock records a block that may still be undone: its movements are shown and wake the flows that wait, and
// nothing is booked. A block that does not follow the newest known one is CodeStateConflict; the caller then compares
// the newest known one with the chain. A known block changes nothing.
func (s *Store) RecordSeenBlock(ctx context.Context, b exchange.BlockScan) (exchange.DepositCursor, error) {
	return change(ctx, s, "block", depositsLock(b.Network), func(ctx context.Context, t unitTx) (exchange.DepositCursor, exchange.Posting, error) {
		var none exchange.Posting
		if err := t.lockDeposits(ctx, b.Network); err != nil {
			return exchange.DepositCursor{}, none, err
		}
		c, found, err := t.depositCursor(ctx, b.Network)
		if err != nil || (found && b.Block.Number <= c.Final.Number) || (found && b.Block.Number == c.Tip.Number && b.Block.ID == c.Tip.ID) {
			return c, none, err
		}
		if !found || b.Block.Number != c.Tip.Number+1 || (!b.Block.Skipped && c.TipLink != "" && b.Block.Parent != c.TipLink) {
			return c, none, exchange.Errorf(exchange.CodeStateConflict, "Block %d does not follow the seen block %d.", b.Block.Number, c.Tip.Number)
		}
		sc := &scan{t: t, network: b.Network, block: b.Block, minimum: b.Minimum}
		if err := sc.record(ctx, b); err != nil {
			return c, none, err
		}
		if _, err := t.Exec(ctx, insertSeenBlock, b.Network, blockNumber(b.Block.Number), b.Block.ID, b.Block.Parent, b.Block.Skipped, nullTime(b.Block.Time)); err != nil {
			return c, none, err
		}
		c, _, err = t.depositCursor(ctx, b.Network)
		return c, none, err
	})
}

// record classifies every movement of the block that touches a wallet of ours.
func (sc *scan) record(ctx context.Context, b exchange.BlockScan) error {
	for _, u := range b.Unreadable {
		if err := sc.quarantine(ctx, exchange.ChainMovement{TxID: u.TxID}, exchange.QuarantineUnreadable, u.Detail); err != nil {
			return err
		}
	}
	ours, err := sc.ours(ctx, b.Movements)
	if err != nil || len(ours) == 0 {
		return err
	}
	if err := sc.load(ctx, ours); err != nil {
		return err
	}
	met := map[movementKey]bool{}
	for _, m := range ours {
		key := movementKey{m.TxID, m.Index}
		if fault := faultOf(sc.network, m, met[key]); fault != "" {
			if err := sc.quarantine(ctx, m, exchange.QuarantineInvalid, fault); err != nil {
				return err
			}
			continue
		}
		met[key] = true
		refusal, err := sc.t.guarded(ctx, func() error { return sc.movement(ctx, m) })
		if err != nil {
			return err
		}
		if refusal != nil {
			if err := sc.t.setAside(ctx, sc.refused(m, refusal)); err != nil {
				return err
			}
		}
	}
	return nil
}

// The largest sizes of a movement's texts, as in its table.
const (
	maxTxID    = 128
	maxAddress = 128
	maxOthers  = 512 // senders besides the first one: a Solana transaction has up to 256 accounts, each with an owner
)

// faultOf returns why a movement read by a driver is invalid; empty when it is valid.
func faultOf(n exchange.Network, m exchange.ChainMovement, again bool) string {
	switch {
	case again:
		return "the transaction has two events with this number"
	case m.TxID == "" || len(m.TxID) > maxTxID:
		return "the transaction's id is empty or too long"
	case len(m.From) > maxAddress || len(m.To) > maxAddress:
		return "an address is too long"
	case len(m.Others) > maxOthers, len(m.Accounts) > maxOthers,
		slices.ContainsFunc(slices.Concat(m.Others, m.Accounts), func(a string) bool { return len(a) > maxAddress }):
		return "it has too many possible senders, or the address of one is too long"
	case !slices.Contains(n.WalletAssets(), m.Amount.Asset()):
		return "the asset is not one of the network's"
	case m.Amount.Sign() < 0:
		return "the amount is negative"
	}
	return ""
}

// What moved up to the block of the opening balance of an account of several owners is part of that balance.
const walletsAt = `SELECT w.id, w.address, w.purpose, w.owner_id, w.vendor_id, w.counterpart_of FROM wallets w WHERE w.network = $1 AND w.address = ANY ($2)
    AND NOT EXISTS (SELECT FROM multisig_accounts a WHERE w.purpose = 'multisig' AND a.id = w.id AND a.opened_block >= $3)`

// What moves in an account of several owners before it is a wallet is only noted: its opening balance is read at no block before that.
const noteMoves = `
INSERT INTO multisig_moves (account_id, block) SELECT a.id, $3 FROM multisig_accounts a
WHERE a.network = $1 AND a.address = ANY ($2) AND a.status IN ('preparing', 'opening') ON CONFLICT DO NOTHING`

// ours picks the movements that touch a wallet of ours. The query contains the block's addresses, so its cost depends
// on the block and not on the number of wallets.
func (sc *scan) ours(ctx context.Context, all []exchange.ChainMovement) ([]exchange.ChainMovement, error) {
	if len(all) == 0 {
		return nil, nil
	}
	var addresses []string
	for _, m := range all {
		addresses = append(addresses, m.From, m.To)
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	at := blockNumber(sc.block.Number)
	if sc.final {
		if _, err := sc.t.Exec(ctx, noteMoves, sc.network, pq.Array(addresses), at); err != nil {
			return nil, err
		}
	}
	var ends []walletEnd
	if err := sc.t.All(ctx, &ends, walletsAt, sc.network, pq.Array(addresses), at); err != nil {
		return nil, err
	}
	counterparts, err := sc.counterparts(ctx, all)
	if ends = append(ends, counterparts...); err != nil || len(ends) == 0 {
		return nil, err
	}
	sc.byAddress, sc.byID = map[string]walletEnd{}, map[uuid.UUID]walletEnd{}
	for _, e := range ends {
		sc.byAddress[e.Address], sc.byID[e.ID] = e, e
	}
	var ours []exchange.ChainMovement
	for _, m := range all {
		_, from := sc.byAddress[m.From]
		_, to := sc.byAddress[m.To]
		if from || to {
			ours = append(ours, m)
		}
	}
	return ours, nil
}

const walletsByID = `SELECT id, address, purpose, owner_id, vendor_id, counterpart_of FROM wallets WHERE id = ANY ($1::uuid[])`

// loadEnds reads the wallets of known movements.
func (sc *scan) loadEnds(ctx context.Context, all []exchange.ChainDeposit) error {
	var ids []string
	for _, d := range all {
		ids = append(ids, d.WalletID.String(), d.FromWalletID.String())
	}
	var ends []walletEnd
	if err := sc.t.All(ctx, &ends, walletsByID, pq.Array(ids)); err != nil {
		return err
	}
	sc.byID = map[uuid.UUID]walletEnd{}
	for _, e := range ends {
		sc.byID[e.ID] = e
	}
	return nil
}

// lockTransactions serialises the completion of a payment and the recording of its transaction here, so that they
// never both book the incoming money.
const lockTransactions = `
SELECT pg_advisory_xact_lock(hashtextextended('kivuko tx ' || $1::text || ' ' || tx, 0)) FROM unnest($2::text[]) AS tx`

func (t unitTx) lockTransaction(ctx context.Context, n exchange.Network, txID string) error {
	_, err := t.Exec(ctx, lockTransactions, n, pq.Array([]string{txID}))
	return err
}

const depositsOfTx = `SELECT ` + depositColumns + ` FROM chain_deposits WHERE network = $1 AND tx_id = ANY ($2) FOR NO KEY UPDATE`

const paymentsOfTx = `SELECT tx_id, payment_id, status IN ('expired', 'failed') AS given_up FROM chain_attempts WHERE network = $1 AND tx_id = ANY ($2)`

const waitsOfWallets = `
SELECT w.id, w.wallet_id, l.leased_at FROM deposit_waits w LEFT JOIN escrow_leases l ON l.wallet_id = w.wallet_id AND l.ended_at IS NULL
WHERE w.wallet_id = ANY ($1::uuid[]) AND w.ended_at IS NULL`

// load reads everything that classification depends on.
func (sc *scan) load(ctx context.Context, ours []exchange.ChainMovement) error {
	var txs []string
	for _, m := range ours {
		txs = append(txs, m.TxID)
	}
	slices.Sort(txs)
	txs = slices.Compact(txs)
	if sc.final {
		if _, err := sc.t.Exec(ctx, lockTransactions, sc.network, pq.Array(txs)); err != nil {
			return err
		}
		if err := sc.lockPayers(ctx, ours); err != nil {
			return err
		}
	}
	var rows []exchange.ChainDeposit
	if err := sc.t.All(ctx, &rows, depositsOfTx, sc.network, pq.Array(txs)); err != nil {
		return err
	}
	sc.known = map[movementKey]exchange.ChainDeposit{}
	for _, d := range rows {
		sc.known[movementKey{d.TxID, d.Index}] = d
	}
	var own []struct {
		TxID      string
		PaymentID uuid.UUID
		GivenUp   bool
	}
	if err := sc.t.All(ctx, &own, paymentsOfTx, sc.network, pq.Array(txs)); err != nil {
		return err
	}
	sc.payments, sc.givenUp = map[string]uuid.UUID{}, map[string]uuid.UUID{}
	for _, o := range own {
		if o.GivenUp { // no completion books it: another transaction carries out its payment
			sc.givenUp[o.TxID] = o.PaymentID
			continue
		}
		sc.payments[o.TxID] = o.PaymentID
	}
	return sc.loadWaits(ctx)
}

func (sc *scan) loadWaits(ctx context.Context) error {
	ids := make([]string, 0, len(sc.byID))
	for id := range sc.byID {
		ids = append(ids, id.String())
	}
	var waits []struct {
		ID       uuid.UUID
		WalletID uuid.UUID
		LeasedAt sql.NullTime
	}
	if err := sc.t.All(ctx, &waits, waitsOfWallets, pq.Array(ids)); err != nil {
		return err
	}
	sc.waits, sc.leased = map[uuid.UUID][]uuid.UUID{}, map[uuid.UUID]time.Time{}
	for _, w := range waits {
		sc.waits[w.WalletID] = append(sc.waits[w.WalletID], w.ID)
		if w.LeasedAt.Valid {
			sc.leased[w.WalletID] = w.LeasedAt.Time
		}
	}
	return nil
}

// verdict classifies a movement for our books.
func (sc *scan) verdict(m exchange.ChainMovement) exchange.ChainDeposit {
	from, leaves := sc.byAddress[m.From]
	to, arrives := sc.byAddress[m.To]
	payment, own := sc.payments[m.TxID]
	d := exchange.ChainDeposit{
		Network: sc.network, TxID: m.TxID, Index: m.Index, From: m.From, To: m.To, Others: m.Others, Accounts: m.Accounts, Amount: m.Amount, Status: exchange.DepositSeen,
		FromWalletID: from.ID, WalletID: to.ID, Block: sc.block.Number, BlockID: sc.block.ID, BlockTime: sc.block.Time,
	}
	native := m.Amount.Asset() == sc.network.NativeCoin()
	switch {
	case m.Amount.IsZero():
		d.Kind = exchange.DepositEmpty
	case own:
		d.Kind, d.PaymentID = exchange.DepositOwn, payment
	case leaves && !arrives:
		d.Kind = exchange.DepositOutgoing
	case leaves: // its owner is unknown until the alarm is settled
		d.Kind = exchange.DepositUnmatched
	case to.OwnerID.Valid:
		d.Kind = exchange.DepositCredit
	case to.Purpose == exchange.HouseTreasury, to.Purpose == exchange.HouseGas && native, to.Purpose == exchange.HouseMultisig && (!native || exchange.MultisigKindOn(sc.network).SpendsCoin()):
		d.Kind = exchange.DepositHouse
	case sc.awaited(to.ID):
		d.Kind = exchange.DepositAwaited
	default:
		d.Kind = exchange.DepositUnmatched
	}
	return d
}

// movement stores one movement, and books it when it is final.
func (sc *scan) movement(ctx context.Context, m exchange.ChainMovement) error {
	d := sc.verdict(m)
	before, known := sc.known[movementKey{m.TxID, m.Index}]
	if known && before.Status == exchange.DepositFinal {
		if !sc.final {
			return nil // the node is behind; the movement is already final
		}
		return sc.quarantine(ctx, m, exchange.QuarantineContradicts, fmt.Sprintf("it is already final in block %d (%s)", before.Block, before.BlockID))
	}
	if !sc.final && known && before.Status == exchange.DepositSeen && before.BlockID == d.BlockID {
		return nil
	}
	var err error
	if !known {
		if before, err = sc.t.addDeposit(ctx, d); err != nil {
			return err
		}
	} else if !sc.final {
		if before, err = sc.t.saveDeposit(ctx, before, d); err != nil {
			return err
		}
	}
	if d.FromWalletID != uuid.Nil && d.Kind != exchange.DepositOwn && d.Kind != exchange.DepositEmpty {
		if err := sc.t.setAside(ctx, sc.outgoing(m, d.FromWalletID)); err != nil {
			return err
		}
	}
	if !sc.final {
		return sc.publish(ctx, string(exchange.DepositSeen), before)
	}
	return sc.settle(ctx, before, d)
}

// settle makes a movement final and books it.
func (sc *scan) settle(ctx context.Context, before, d exchange.ChainDeposit) error {
	d.Status, d.FinalAt = exchange.DepositFinal, sc.t.s.now()
	if d.Kind == exchange.DepositUnmatched {
		o, err := sc.lateFor(ctx, d)
		if err != nil {
			return err
		}
		x := exchange.PaymentException{Kind: exchange.ExcUnmatched, OrderID: o.ID, Receipt: receiptOf(d), Amount: d.Amount}
		switch {
		case sc.byID[d.WalletID].CounterpartOf.Valid:
			x.Kind = exchange.ExcWrongNetwork
		case o.ID != uuid.Nil:
			x.Kind = exchange.ExcLate
		}
		if x, err = sc.t.openException(ctx, o.CustomerID, x); err != nil {
			return err
		}
		d.ExceptionID = x.ID
	}
	d, err := sc.t.saveDeposit(ctx, before, d)
	if err != nil {
		return err
	}
	if err := sc.publish(ctx, string(exchange.DepositFinal), d); err != nil {
		return err
	}
	if !d.Kind.Booked() {
		return nil
	}
	explained, err := sc.net(ctx, d)
	if err == nil {
		sc.entries = append(append(sc.entries, depositEntry(d)), explained...)
	}
	return err
}

// ownedByHouse is the account of the house's own money in a wallet. Its stablecoins are in the balance of their wallet, where transfers reserve
// and spend them as in any other wallet.
func ownedByHouse(wallet uuid.UUID, asset money.Asset) exchange.AccountRef {
	if asset.Stablecoin() {
		return exchange.Owned(exchange.AccWalletBalance, wallet, asset)
	}
	return exchange.House(exchange.AccCapital, asset)
}

// depositEntry books an incoming movement: the wallet's custody grows, and the money is owed to the wallet's owner, is
// the house's own, or lies in suspense until its owner is known.
func depositEntry(d exchange.ChainDeposit) exchange.Entry {
	asset := d.Amount.Asset()
	owed := exchange.House(exchange.AccSuspense, asset)
	switch d.Kind {
	case exchange.DepositCredit:
		owed = exchange.Owned(exchange.AccWalletBalance, d.WalletID, asset)
	case exchange.DepositHouse:
		owed = ownedByHouse(d.WalletID, asset)
	case exchange.DepositAwaited, exchange.DepositUnmatched, exchange.DepositOwn, exchange.DepositOutgoing, exchange.DepositEmpty:
	}
	return exchange.Entry{
		Key: "chain_deposit:" + d.ID.String(), Kind: "chain_deposit." + string(d.Kind), ObjectType: "chain_deposit", ObjectID: d.ID,
		Lines: []exchange.Line{exchange.Debit(exchange.Owned(exchange.AccCustody, d.WalletID, asset), d.Amount), exchange.Credit(owed, d.Amount)},
	}
}

// publish appends the event and the audit row of a movement and wakes waiting flows. Movements of our own payments are
// reported by the payments; empty ones are not reported.
func (sc *scan) publish(ctx context.Context, what string, d exchange.ChainDeposit) error {
	if d.Kind != exchange.DepositOwn && d.Kind != exchange.DepositEmpty {
		end := sc.byID[d.WalletID]
		if d.WalletID == uuid.Nil {
			end = walletEnd{} // an unaccounted outgoing movement is shown only to staff
		}
		err := sc.t.record(ctx, auditEvent{
			by: watching, object: "chain_deposit", id: d.ID, name: "chain_deposit." + what, owner: end.OwnerID.UUID, vendor: end.VendorID.UUID,
			after: depositSnapshot(d),
		})
		if err != nil {
			return err
		}
	}
	return sc.wake(ctx, d)
}

const bookedByWatch = `
SELECT EXISTS (SELECT FROM chain_deposits WHERE network = $1 AND tx_id = $2 AND wallet_id = $3 AND status = 'final'
    AND kind IN ('credit', 'house', 'awaited', 'unmatched'))`

// bookedBefore reports whether the watch has booked a transaction's incoming money before the transaction was known as
// ours: an externally signed payment can be on the chain before it is imported. The result holds until the end of the
// transaction.
func (t unitTx) bookedBefore(ctx context.Context, n exchange.Network, txID string, wallet uuid.UUID) (bool, error) {
	if err := t.lockTransaction(ctx, n, txID); err != nil {
		return false, err
	}
	var booked bool
	err := t.Get(ctx, &booked, bookedByWatch, n, txID, wallet)
	return booked, err
}
