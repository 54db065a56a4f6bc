package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// reopeningTerms are the number from which a wallet's sequence continues, by the count of the final chain at a block.
type reopeningTerms struct {
	ID       uuid.UUID `json:"id"`
	WalletID uuid.UUID `json:"wallet_id"`
	Next     uint64    `json:"next"`
	Block    uint64    `json:"block"`
	BlockID  string    `json:"block_id"`
	Note     string    `json:"note"`
}

// sequenceSnapshot is a sequence before its reopening.
func sequenceSnapshot(s nonceSequenceRow) map[string]any {
	before := map[string]any{"next": s.Next, "foreign_nonce": nil}
	if s.Foreign.Valid {
		before["foreign_nonce"] = s.Foreign.Int64
	}
	return before
}

// ProposeReopening proposes to let a wallet whose sequence is closed send again, from the number that the final chain
// counts; a second officer confirms it. count must have been read from the chain for this decision. The id identifies the
// reopening. CodeStateConflict when the sequence is open, when the chain's count may still grow or is below the numbers
// already used, and while a transaction of the sequence is undecided.
func (s *Store) ProposeReopening(ctx context.Context, id, walletID uuid.UUID, note string, count exchange.SenderCount, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	if err := require(note != "" && len([]rune(note)) <= exchange.MaxReopeningReason, "/note", "required", "must say why, in at most 500 characters"); err != nil {
		return proposed, err
	}
	err := s.inTx(ctx, "sequence", func(t unitTx) error {
		sequence, err := t.closedNonceSequence(ctx, walletID, count)
		if err != nil {
			return err
		}
		terms := reopeningTerms{id, walletID, count.Final, count.Block.Number, count.Block.ID, note}
		proposed, err = t.propose(ctx, exchange.ControlNonceReopened, uuid.Nil, sequenceSnapshot(sequence), terms, by)
		return err
	})
	return proposed, err
}

const insertReopening = `
INSERT INTO nonce_sequence_reopenings (id, wallet_id, foreign_nonce, next_before, next_after, block, block_id, reason, reopened_by, reopened_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

// applyReopening reopens a sequence that is as it was when the reopening was proposed.
func (t unitTx) applyReopening(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[reopeningTerms](c)
	if err != nil {
		return err
	}
	sequence, err := t.closedNonceSequence(ctx, terms.WalletID, exchange.SenderCount{Latest: terms.Next, Final: terms.Next})
	if err != nil {
		return err
	}
	before := sequenceSnapshot(sequence)
	if err := unchanged(c, before); err != nil {
		return err
	}
	err = t.One(ctx, insertReopening, terms.ID, terms.WalletID, sequence.Foreign, sequence.Next, blockNumber(terms.Next), blockNumber(terms.Block), terms.BlockID,
		terms.Note, c.ProposedBy, t.s.now())
	if err != nil {
		return err
	}
	return t.audit(ctx, by, "wallet.nonce_sequence_reopened", "wallet", terms.WalletID, before,
		map[string]any{"reopening_id": terms.ID, "next": terms.Next, "block": terms.Block, "block_id": terms.BlockID, "reason": terms.Note})
}

const undecided = `
SELECT EXISTS (SELECT FROM chain_attempts WHERE nonce_wallet = $1 AND status IN ('signed', 'broadcast', 'included', 'replaced')) AS sent,
    EXISTS (SELECT FROM cold_drafts WHERE nonce_wallet = $1 AND status = 'open') AS handed_out`

// closedNonceSequence locks the sequence of a wallet, and returns why it can't be reopened.
func (t unitTx) closedNonceSequence(ctx context.Context, walletID uuid.UUID, count exchange.SenderCount) (nonceSequenceRow, error) {
	refuse := func(format string, args ...any) (nonceSequenceRow, error) {
		return nonceSequenceRow{}, exchange.Errorf(exchange.CodeStateConflict, format, args...)
	}
	var rows []nonceSequenceRow
	if err := t.All(ctx, &rows, lockNonceSequence, walletID); err != nil {
		return nonceSequenceRow{}, err
	}
	if len(rows) == 0 {
		return refuse("The wallet has no sequence: nothing was sent from it, or its network does not number transactions.")
	}
	sequence := rows[0]
	final, next := count.Final, height(sequence.Next)
	var open struct {
		Sent      bool
		HandedOut bool
	}
	if err := t.Get(ctx, &open, undecided, walletID); err != nil {
		return sequence, err
	}
	switch {
	case !sequence.Foreign.Valid && final <= next:
		return refuse("The sequence is open: the chain counts %d transactions and the next number is %d.", final, next)
	case open.Sent:
		return refuse("A transaction of ours may still be included. Wait until every payment of the wallet is decided.")
	case open.HandedOut:
		return refuse("A transaction of the wallet was handed out for signing. Wait until it is returned or lapses.")
	case count.Latest != final:
		return refuse("The chain counts %d transactions, of which %d are final. Wait for the others.", count.Latest, final)
	case final < next || (sequence.Foreign.Valid && final <= height(sequence.Foreign.Int64)):
		return refuse("The final chain counts %d transactions of the wallet, but numbers up to %d were used. The node is behind, or on another chain.", final, next)
	}
	return sequence, nil
}
