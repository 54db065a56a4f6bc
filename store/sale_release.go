package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// A sale from a wallet in our custody lets crypto leave its owner for a payee of shillings. The crypto is held, and its payment
// approved, from the beginning; nothing of it is signed before its release has passed (funding_fault). Until then the sale
// waits for officers, at most for its life.

// announceFunding announces what a sale lets leave the wallet in our custody that its crypto comes from, and returns the sale,
// with what it waits for when the rule about all that leaves does not let it pass at once.
func (t unitTx) announceFunding(ctx context.Context, o exchange.Order) (exchange.Order, error) {
	value, err := t.limitValue(ctx, o.Price)
	if err != nil {
		return o, err
	}
	_, err = t.announce(ctx, exchange.Release{
		Purpose: exchange.ReleaseFunding, ObjectID: o.ID, OwnerID: o.CustomerID, Source: o.FundWalletID.String(), RequesterID: o.CustomerID,
		Recipient: o.PaymentMethod + ":" + o.Payee(), Value: value, OpenedAt: o.CreatedAt, Digest: o.FundingIntent(),
	})
	if err != nil {
		return o, err
	}
	r, err := t.judgeSale(ctx, o)
	return r.Order, err
}

const readSaleRelease = `
SELECT r.digest, r.passed_at IS NOT NULL AS passed, (SELECT count(*) FROM release_voices(r)) AS approvals,
    EXISTS (SELECT FROM approvals a WHERE a.object_type = 'order' AND a.object_id = r.object_id AND a.action = 'reject' AND a.digest = r.digest) AS rejected
FROM releases r WHERE r.purpose = 'funding' AND r.object_id = $1 AND r.ended_at IS NULL`

// saleReleaseRow is the release of a sale that was not given up.
type saleReleaseRow struct {
	Digest    string
	Passed    bool
	Approvals int
	Rejected  bool
}

// judgeSale lets the crypto of a locked sale leave its wallet when the rule allows it, and stores what it waits for otherwise.
func (t unitTx) judgeSale(ctx context.Context, before exchange.Order) (exchange.SaleRelease, error) {
	out := exchange.SaleRelease{Order: before}
	row, found, err := readFound[saleReleaseRow](ctx, t, readSaleRelease, before.ID)
	switch {
	case err != nil:
		return out, err
	case !found:
		out.GivenUp = true
		return out, nil
	case row.Passed || before.Status != exchange.OrderPending:
		out.Passed = row.Passed
		return out, nil
	}
	v, err := t.judge(ctx, exchange.ReleaseFunding, before.ID)
	if err != nil {
		return out, err
	}
	out.Passed, out.Until, out.Needed, out.Approvals = v.Pass, v.Until, v.Officers, row.Approvals
	detail := exchange.WaitDeposit
	switch {
	case v.Pass:
	case row.Approvals >= v.Officers:
		detail = exchange.WaitRest
	case row.Approvals > 0:
		detail = exchange.WaitSecond
	default:
		detail = exchange.WaitApproval
	}
	if detail != before.StatusDetail {
		o := before
		o.StatusDetail = detail
		out.Order, err = t.saveOrder(ctx, "order.detail_changed", flow, before, o)
	}
	return out, err
}

// ReleaseSale lets the crypto of a sale leave the wallet in our custody that it comes from, when the rule about all that leaves
// allows it, and otherwise returns what it waits for. One that was given up is returned as such.
func (s *Store) ReleaseSale(ctx context.Context, orderID uuid.UUID) (exchange.SaleRelease, error) {
	return change(ctx, s, "order", orderID, func(ctx context.Context, t unitTx) (exchange.SaleRelease, exchange.Posting, error) {
		o, err := t.lockedOrder(ctx, orderID)
		if err != nil {
			return exchange.SaleRelease{}, exchange.Posting{}, err
		}
		out, err := t.judgeSale(ctx, o)
		return out, exchange.Posting{}, err
	})
}

// decidableSale is a locked sale from a wallet in our custody as officers decide about it.
func (t unitTx) decidableSale(ctx context.Context, o exchange.Order) (decidable, error) {
	row, found, err := readFound[saleReleaseRow](ctx, t, readSaleRelease, o.ID)
	return decidable{
		object: exchange.ApproveSale, id: o.ID, requester: o.CustomerID, amount: o.Price.Crypto, digest: row.Digest, intent: o.FundingIntent(),
		involved: func(_ context.Context, officer uuid.UUID) error {
			if officer == o.CustomerID || officer == o.VendorID {
				return exchange.Errorf(exchange.CodeForbidden, "You can't decide about your own order.")
			}
			return nil
		},
		open: func() error {
			if !found || row.Passed || o.Status != exchange.OrderPending {
				return exchange.Errorf(exchange.CodeStateConflict, "The order does not wait for officers.")
			}
			return nil
		},
	}, err
}

// IssueSaleTicket gives an officer the right to one decision about one sale from a wallet in our custody, see issueTicket.
func (s *Store) IssueSaleTicket(ctx context.Context, k exchange.ApprovalTicket, by exchange.Principal) error {
	return s.inTx(ctx, "order", func(t unitTx) error {
		o, err := t.lockedOrder(ctx, k.ObjectID)
		if err != nil {
			return err
		}
		d, err := t.decidableSale(ctx, o)
		if err != nil {
			return err
		}
		return t.issueTicket(ctx, d, k, by)
	})
}

// DecideSale proves a token and counts its decision about a sale from a wallet in our custody. The token alone identifies the
// officer. One refusal gives the payment from the wallet up; the flow then closes the sale. A repeated call with a counted
// token returns what the sale waits for. The codes are those of provenTicket.
func (s *Store) DecideSale(ctx context.Context, orderID uuid.UUID, token string, action exchange.ApprovalAction) (exchange.SaleRelease, error) {
	return change(ctx, s, "order", orderID, func(ctx context.Context, t unitTx) (exchange.SaleRelease, exchange.Posting, error) {
		var none exchange.Posting
		o, err := t.lockedOrder(ctx, orderID)
		if err != nil {
			return exchange.SaleRelease{}, none, err
		}
		d, err := t.decidableSale(ctx, o)
		if err != nil {
			return exchange.SaleRelease{}, none, err
		}
		k, counted, err := t.provenTicket(ctx, d, token, action)
		if err != nil {
			return exchange.SaleRelease{}, none, err
		}
		var free exchange.Posting
		if !counted {
			by, err := t.countTicket(ctx, d, k)
			if err == nil && action == exchange.Reject {
				free, err = t.cancelFunding(ctx, orderID, by)
			}
			if err != nil {
				return exchange.SaleRelease{}, none, err
			}
		}
		out, err := t.judgeSale(ctx, o)
		return out, free, err
	})
}

const maxPendingSales = 100

const pendingSales = `
SELECT r.object_id AS order_id, r.digest, release_officers(r, clock_timestamp()) AS needed, (SELECT count(*) FROM release_voices(r)) AS approvals
FROM releases r JOIN orders o ON o.id = r.object_id
WHERE r.purpose = 'funding' AND r.passed_at IS NULL AND r.ended_at IS NULL AND o.status = 'pending' AND $1 NOT IN (o.customer_id, o.vendor_id)
    AND NOT EXISTS (SELECT FROM approvals a WHERE a.object_type = 'order' AND a.object_id = o.id AND a.digest = r.digest AND a.officer_id = $1)
ORDER BY r.opened_at, r.id LIMIT $2`

// PendingSale is a sale from a wallet in our custody that waits for officers.
type PendingSale struct {
	Order     exchange.Order
	Digest    string // of its terms, which officers approve
	Needed    int
	Approvals int
}

// PendingSales are the sales from wallets in our custody that the officer may decide, oldest first, at most a hundred.
func (s *Store) PendingSales(ctx context.Context, officer uuid.UUID) ([]PendingSale, error) {
	var rows []struct {
		OrderID           uuid.UUID
		Digest            string
		Needed, Approvals int
	}
	if err := s.db.All(ctx, &rows, pendingSales, officer, maxPendingSales); err != nil {
		return nil, translate(err, "order")
	}
	var all []PendingSale
	for _, r := range rows {
		o, err := s.OrderByID(ctx, r.OrderID)
		if err != nil {
			return nil, err
		}
		all = append(all, PendingSale{Order: o, Digest: r.Digest, Needed: r.Needed, Approvals: r.Approvals})
	}
	return all, nil
}
