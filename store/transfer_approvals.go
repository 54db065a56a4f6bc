package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// decidableTransfer is a transfer as officers decide about it.
func decidableTransfer(f exchange.Transfer) decidable {
	return decidable{
		object: exchange.ApproveTransfer, id: f.ID, requester: f.RequestedBy, amount: f.Amount, digest: f.Digest, intent: f.Intent(),
		involved: func(_ context.Context, officer uuid.UUID) error {
			if f.RequestedBy == officer {
				return exchange.Errorf(exchange.CodeForbidden, "The requester of a transfer can't decide about it.")
			}
			return nil
		},
		open: func() error {
			if f.Status != exchange.TransferPending {
				return exchange.Errorf(exchange.CodeStateConflict, "A transfer that is %s can't be decided.", f.Status)
			}
			return nil
		},
	}
}

// IssueTicket gives an officer the right to one decision about one transfer, see issueTicket.
func (s *Store) IssueTicket(ctx context.Context, k exchange.ApprovalTicket, by exchange.Principal) (exchange.Transfer, error) {
	var about exchange.Transfer
	err := s.inTx(ctx, "transfer", func(t unitTx) (err error) {
		if about, err = readOne[exchange.Transfer](ctx, t, "transfer", readTransfer, k.ObjectID); err != nil {
			return err
		}
		return t.issueTicket(ctx, decidableTransfer(about), k, by)
	})
	return about, err
}

// Decide proves a token, applies its decision in one transaction, and moves the transfer when that was the last decision
// needed. The token alone identifies the officer. A repeated call with a counted token returns the current transfer. The
// codes are those of provenTicket.
func (s *Store) Decide(ctx context.Context, transferID uuid.UUID, token string, action exchange.ApprovalAction) (exchange.Transfer, error) {
	return s.stepTransfer(ctx, transferID, func(ctx context.Context, t unitTx, f exchange.Transfer) (exchange.Transfer, exchange.Posting, error) {
		d := decidableTransfer(f)
		k, counted, err := t.provenTicket(ctx, d, token, action)
		if err != nil || counted {
			return f, exchange.Posting{}, err
		}
		by, err := t.countTicket(ctx, d, k)
		switch {
		case err != nil:
			return f, exchange.Posting{}, err
		case action == exchange.Reject:
			return t.endTransfer(ctx, f, exchange.TransferRejected, exchange.DetailRejected, by)
		}
		f.Approvals++
		return t.releaseTransfer(ctx, by, f)
	})
}

// PendingApprovals pages through the transfers that the officer may decide about, oldest first, with their number:
// those requested by others that the officer has not decided yet.
func (s *Store) PendingApprovals(ctx context.Context, officer uuid.UUID, p Page) ([]exchange.Transfer, int, error) {
	var w where
	w.add(`f.status = 'pending_approval'`)
	w.add(`f.requested_by <> ?`, officer)
	w.add(`NOT EXISTS (SELECT FROM approvals a WHERE a.object_type = 'transfer' AND a.object_id = f.id AND a.officer_id = ?)`, officer)
	return readPage[exchange.Transfer](ctx, s, "transfer", list{columns: transferColumns, from: transferTables, where: w, order: "f.created_at, f.id"}, p)
}
