package activities

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// DepositStore stores what the deposit watch reads.
type DepositStore interface {
	WatchAlive(ctx context.Context, n exchange.Network) error
	RecordLook(ctx context.Context, l exchange.WatchLook) error
	DepositCursor(ctx context.Context, n exchange.Network) (exchange.DepositCursor, bool, error)
	StartDeposits(ctx context.Context, n exchange.Network, after exchange.ChainBlock) (exchange.DepositCursor, error)
	RecordFinalBlock(ctx context.Context, b exchange.BlockScan) (exchange.DepositCursor, error)
	RecordSeenBlock(ctx context.Context, b exchange.BlockScan) (exchange.DepositCursor, error)
	DropSeenBlock(ctx context.Context, n exchange.Network, b exchange.ChainBlock) error
	DueWakeups(ctx context.Context, n exchange.Network) ([]exchange.DepositWakeup, error)
	OpenQuarantine(ctx context.Context, n exchange.Network) ([]exchange.QuarantinedMovement, error)
}

// BlockReader is the part of a network's driver that reads blocks.
type BlockReader interface {
	Network() exchange.Network
	Head(ctx context.Context) (chain.Head, error)
	Transfers(ctx context.Context, number uint64) (chain.BlockTransfers, error)
}

// Deposits watches one network for deposits into our wallets.
type Deposits struct {
	Store  DepositStore
	Client BlockReader
	// Poll is the wait between two reads of the chain; about the network's block time.
	Poll time.Duration
	// Stretch is how long one call follows the chain before it reports; zero makes it read once.
	Stretch time.Duration
	// From is the first block to read on a network without progress. Zero begins with the next final block.
	From uint64
	// Minimum is the least amount of an asset that wakes a flow.
	Minimum map[money.Asset]money.Amount
	// Life and LifeBlocks are how long the network may include a transaction after it was signed, in block time or blocks.
	// After the watch was down for long, nothing is signed until every transaction signed before has expired. Both are zero
	// where nonces keep a transaction from being executed twice.
	Life       time.Duration
	LifeBlocks uint64
}

// The limits of reading.
const (
	// DefaultStretch makes one report a minute, and few events in the history of the watch.
	DefaultStretch = time.Minute
	// readAhead is how many blocks are read before the first of them is recorded. Blocks up to the final head must link to
	// it; blocks of an older range are at least this deep below it.
	readAhead = 64
	// readers is how many blocks are read at once.
	readers = 4
	// lookEvery is the pause between two recorded reads of the head. It is shorter than the age at which a read is too old
	// for signing.
	lookEvery = 10 * time.Second
	// maxGlimpse bounds how many blocks above the final one are read between two reads of the head.
	maxGlimpse = 256
)

// FollowInput asks to follow a network's blocks.
type FollowInput struct {
	Network exchange.Network `json:"network"`
}

// Followed is how far the deposits of a network were read.
type Followed struct {
	Final       uint64                   `json:"final"` // the newest block that is booked
	FinalTime   time.Time                `json:"final_time,omitzero"`
	Seen        uint64                   `json:"seen"`       // the newest block that was read
	HeadFinal   uint64                   `json:"head_final"` // the network's newest final block
	HeadLatest  uint64                   `json:"head_latest"`
	Quarantined int                      `json:"quarantined,omitempty"` // movements that wait for an operator
	Wakeups     []exchange.DepositWakeup `json:"wakeups,omitempty"`
}

// Lag counts the final blocks that are not booked yet.
func (f Followed) Lag() uint64 { return f.HeadFinal - min(f.Final, f.HeadFinal) }

// FollowDeposits reads a network's blocks: final blocks to book deposits, then newer ones to show deposits early. It returns
// when a flow must be woken, otherwise after a while, and is called again. All of its progress is in the database, so it may
// crash anywhere, and two runs may overlap.
func (d *Deposits) FollowDeposits(ctx context.Context, _ FollowInput) (Followed, error) {
	f, err := d.follow(ctx)
	return f, Failure(ctx, err)
}

func (d *Deposits) follow(ctx context.Context) (Followed, error) {
	end := time.Now().Add(d.Stretch)
	c, found, err := d.Store.DepositCursor(ctx, d.Client.Network())
	if err == nil && !found {
		c, err = d.start(ctx)
	}
	if err != nil {
		return Followed{}, err
	}
	var looked time.Time
	for {
		head, err := d.look(ctx, &looked)
		if err != nil {
			return Followed{}, err
		}
		if c, err = d.finalise(ctx, c, head); err != nil {
			return Followed{}, err
		}
		behind := c.Final.Number < head.Final.Number
		if !behind {
			if c, err = d.glimpse(ctx, c, head); err != nil {
				return Followed{}, err
			}
		}
		f, over, err := d.report(ctx, c, head, end)
		if err != nil || over {
			return f, err
		}
		if behind {
			continue
		}
		if !d.pause(ctx) {
			if ctx.Err() != nil {
				return f, ctx.Err()
			}
			f, _, err = d.report(ctx, c, head, time.Time{})
			return f, err
		}
	}
}

// look reads the network's head and records it, not more often than needed. It first records that the watch runs, because a
// network without an answer does not mean that the watch was down.
func (d *Deposits) look(ctx context.Context, last *time.Time) (chain.Head, error) {
	due := last.IsZero() || time.Since(*last) >= lookEvery
	if due {
		if err := d.Store.WatchAlive(ctx, d.Client.Network()); err != nil {
			return chain.Head{}, err
		}
	}
	head, err := d.Client.Head(ctx)
	if err != nil || !due {
		return head, err
	}
	*last = time.Now()
	return head, d.Store.RecordLook(ctx, exchange.WatchLook{
		Network: d.Client.Network(), Final: blockOf(head.Final), FinalHeight: head.Final.Height, LatestHeight: head.Latest.Height,
		Life: d.Life, LifeBlocks: d.LifeBlocks,
	})
}

// start begins after the current final block, or at the configured block.
func (d *Deposits) start(ctx context.Context) (exchange.DepositCursor, error) {
	if d.From > 0 {
		return d.Store.StartDeposits(ctx, d.Client.Network(), exchange.ChainBlock{Number: d.From - 1})
	}
	head, err := d.Client.Head(ctx)
	if err != nil {
		return exchange.DepositCursor{}, err
	}
	return d.Store.StartDeposits(ctx, d.Client.Network(), blockOf(head.Final))
}

// report returns the progress, and whether the call must end.
func (d *Deposits) report(ctx context.Context, c exchange.DepositCursor, head chain.Head, end time.Time) (Followed, bool, error) {
	f := Followed{
		Final: c.Final.Number, FinalTime: c.Final.Time, Seen: c.Tip.Number, HeadFinal: head.Final.Number, HeadLatest: head.Latest.Number,
	}
	activity.RecordHeartbeat(ctx, f)
	d.gauge(ctx, "kivuko_deposit_lag_blocks", int(min(f.Lag(), math.MaxInt32)))
	var err error
	if f.Wakeups, err = d.Store.DueWakeups(ctx, d.Client.Network()); err != nil {
		return f, true, err
	}
	if len(f.Wakeups) == 0 && time.Now().Before(end) {
		return f, false, nil
	}
	open, err := d.Store.OpenQuarantine(ctx, d.Client.Network())
	f.Quarantined = len(open)
	sent := 0
	for _, q := range open {
		if q.Reason == exchange.QuarantineOutgoing || q.Reason == exchange.QuarantineUnexpected {
			sent++
		}
	}
	d.gauge(ctx, "kivuko_unaccounted_sends", sent)
	return f, true, err
}

// gauge exports a number about the network.
func (d *Deposits) gauge(ctx context.Context, name string, n int) {
	g := activity.GetMetricsHandler(ctx).WithTags(map[string]string{"network": string(d.Client.Network())}).Gauge(name)
	g.Update(float64(n)) //nolint:forbidigo // a gauge of the SDK takes nothing else, and a number of things is no money
}

// pause waits for the next block; it returns false when the call must end.
func (d *Deposits) pause(ctx context.Context) bool {
	timer := time.NewTimer(d.Poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-activity.GetWorkerStopChannel(ctx):
		return false
	case <-timer.C:
		return true
	}
}

// finalise records some of the final blocks that are not recorded yet. Each is read again, even if it was read before it was
// final. It is recorded only when it links to the network's final head or is far below it, because a node may be behind or
// on another branch.
func (d *Deposits) finalise(ctx context.Context, c exchange.DepositCursor, head chain.Head) (exchange.DepositCursor, error) {
	if c.Final.Number >= head.Final.Number {
		return c, nil
	}
	last := head.Final.Number
	if last-c.Final.Number > 2*readAhead {
		last = c.Final.Number + readAhead
	}
	blocks, err := d.read(ctx, c.Final.Number+1, last)
	if err != nil {
		return c, err
	}
	if blocks, err = linked(c.LinkID, blocks, head.Final); err != nil {
		return c, err
	}
	for _, b := range blocks {
		after, err := d.Store.RecordFinalBlock(ctx, d.scan(b))
		if exchange.CodeOf(err) == exchange.CodeStateConflict { // another run of this call has advanced more
			after, _, err = d.Store.DepositCursor(ctx, d.Client.Network())
			return after, err
		}
		if err != nil {
			return c, err
		}
		c = after
		activity.RecordHeartbeat(ctx, Followed{Final: c.Final.Number, HeadFinal: head.Final.Number, HeadLatest: head.Latest.Number})
	}
	return c, nil
}

// linked checks that each block follows from the previous one, and that the last one is the final head if the range reaches
// it. It returns the blocks that are proven so: skipped numbers at the end of a range are proven only by a later block.
func linked(link string, blocks []chain.BlockTransfers, final chain.Block) ([]chain.BlockTransfers, error) {
	proven := 0
	for i, b := range blocks {
		if b.Skipped {
			continue
		}
		if link != "" && b.Block.Parent != link {
			return nil, chain.Errorf(chain.ReasonProtocol, "final block %d follows from %s; the one that was read before it is %s", b.Block.Number, b.Block.Parent, link)
		}
		link, proven = b.Block.ID, i+1
	}
	switch last := blocks[len(blocks)-1].Block.Number; {
	case last == final.Number && link != final.ID:
		return nil, chain.Errorf(chain.ReasonProtocol, "the blocks up to %d end with %s; the final head is %s", last, link, final.ID)
	case proven == 0: // a network that stood still skips many
		return blocks, nil
	}
	return blocks[:proven], nil
}

// read reads a range of blocks, several at a time.
func (d *Deposits) read(ctx context.Context, from, to uint64) ([]chain.BlockTransfers, error) {
	blocks := make([]chain.BlockTransfers, to-from+1)
	faults := make([]error, len(blocks))
	var wg sync.WaitGroup
	turns := make(chan struct{}, readers)
	for i := range blocks {
		turns <- struct{}{}
		activity.RecordHeartbeat(ctx)
		wg.Go(func() {
			defer func() { <-turns }()
			blocks[i], faults[i] = d.Client.Transfers(ctx, from+uint64(i)) //nolint:gosec // G115: an index
		})
	}
	wg.Wait()
	return blocks, errors.Join(faults...)
}

// glimpse reads the blocks above the final one. Its deposits are shown but may vanish again.
func (d *Deposits) glimpse(ctx context.Context, c exchange.DepositCursor, head chain.Head) (exchange.DepositCursor, error) {
	for range maxGlimpse {
		switch {
		case c.Tip.Number == head.Latest.Number && c.Tip.Number > c.Final.Number && c.Tip.ID != head.Latest.ID:
			after, moved, err := d.unwind(ctx, c)
			if err != nil || !moved {
				return after, err
			}
			c = after
			continue
		case c.Tip.Number >= head.Latest.Number:
			return c, nil
		}
		b, err := d.Client.Transfers(ctx, c.Tip.Number+1)
		if chain.ReasonOf(err) == chain.ReasonUnavailable && ctx.Err() == nil {
			return c, nil // the node that was asked does not have the block yet
		}
		if err != nil {
			return c, err
		}
		after, err := d.Store.RecordSeenBlock(ctx, d.scan(b))
		if exchange.CodeOf(err) == exchange.CodeStateConflict {
			var moved bool
			if after, moved, err = d.unwind(ctx, c); err == nil && !moved {
				return after, nil
			}
		}
		if err != nil {
			return c, err
		}
		c = after
		activity.RecordHeartbeat(ctx)
	}
	return c, nil
}

// unwind compares the newest recorded block above the final one with the chain, and drops it if the chain has another block
// there. A skipped number proves nothing, so the comparison goes on below it. It reports whether a block was dropped.
func (d *Deposits) unwind(ctx context.Context, c exchange.DepositCursor) (exchange.DepositCursor, bool, error) {
	for c.Tip.Number > c.Final.Number { // at the final block it is the node that is not on the final chain yet
		now, err := d.Client.Transfers(ctx, c.Tip.Number)
		if err != nil {
			return c, false, err
		}
		if !now.Skipped && now.Block.ID == c.Tip.ID {
			return c, false, nil // the block above it came from a node on another branch
		}
		nothing := now.Skipped && c.Tip.Skipped
		if err := d.Store.DropSeenBlock(ctx, d.Client.Network(), c.Tip); err != nil {
			return c, false, err
		}
		if c, _, err = d.Store.DepositCursor(ctx, d.Client.Network()); err != nil || !nothing {
			return c, true, err
		}
		activity.RecordHeartbeat(ctx)
	}
	return c, false, nil
}

func blockOf(b chain.Block) exchange.ChainBlock {
	return exchange.ChainBlock{Number: b.Number, ID: b.ID, Parent: b.Parent, Time: b.Time}
}

// scan converts a block to the form in which it is recorded.
func (d *Deposits) scan(b chain.BlockTransfers) exchange.BlockScan {
	s := exchange.BlockScan{Network: d.Client.Network(), Block: blockOf(b.Block), Minimum: d.Minimum}
	if b.Skipped {
		s.Block = exchange.ChainBlock{Number: b.Block.Number, Skipped: true}
		return s
	}
	for _, m := range b.Movements {
		s.Movements = append(s.Movements, exchange.ChainMovement{
			TxID: m.TxID, Index: m.Index, From: m.From, To: m.To, Amount: m.Amount, Others: m.Others, Accounts: m.Accounts,
		})
	}
	for _, u := range b.Unreadable {
		s.Unreadable = append(s.Unreadable, exchange.UnreadableMovement{TxID: u.TxID, Detail: u.Detail})
	}
	return s
}
