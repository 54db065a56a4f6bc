package store

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const deniedColumns = `id, network, address, reason, added_by, added_at, removed_at`

const insertDenied = `
INSERT INTO deny_list (id, network, address, reason, added_by, added_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (network, address) WHERE removed_at IS NULL DO NOTHING`

const readDenied = `SELECT ` + deniedColumns + ` FROM deny_list WHERE network = $1 AND address = $2 AND removed_at IS NULL`

// Deny puts an address, in its network's canonical form, on the deny list under a new id. An existing entry stays and
// is returned.
func (s *Store) Deny(ctx context.Context, d exchange.DeniedAddress, by exchange.Principal) (exchange.DeniedAddress, error) {
	var listed exchange.DeniedAddress
	err := s.inTx(ctx, "denied address", func(t unitTx) error {
		n, err := t.Exec(ctx, insertDenied, d.ID, d.Network, d.Address, d.Reason, by.UserID, t.s.now())
		if err != nil {
			return err
		}
		var r exchange.DeniedAddress
		if err := t.Get(ctx, &r, readDenied, d.Network, d.Address); err != nil {
			return err
		}
		if listed = r; n == 0 {
			return nil
		}
		return t.audit(ctx, by, "deny_list.added", "denied_address", d.ID, nil, map[string]any{"network": d.Network, "address": d.Address, "reason": d.Reason})
	})
	return listed, err
}

// DenyList pages through the active entries, newest first, with their number.
func (s *Store) DenyList(ctx context.Context, n exchange.Network, p Page) ([]exchange.DeniedAddress, int, error) {
	var w where
	w.add(`removed_at IS NULL`)
	w.eq("network", string(n))
	return readPage[exchange.DeniedAddress](ctx, s, "denied address", list{columns: deniedColumns, from: "deny_list", where: w, order: "added_at DESC, id DESC"}, p)
}

const isDenied = `SELECT EXISTS (SELECT FROM deny_list WHERE network = $1 AND address = $2 AND removed_at IS NULL)`

const isDeniedOutside = isDenied + ` AND NOT EXISTS (SELECT FROM wallets WHERE network = $1 AND address = $2)`

// Denied reports whether an address is on the deny list.
func (s *Store) Denied(ctx context.Context, n exchange.Network, address string) (bool, error) {
	return readOne[bool](ctx, s.db, "denied address", isDenied, n, address)
}

const insertScreening = `INSERT INTO screenings (id, transfer_id, payment_id, screener, verdict, reference, at) VALUES ($1, $2, $3, $4, $5, $6, $7)`

// DenyListScreener is the name of the deny list as a screener.
const DenyListScreener = "deny_list"

func (t unitTx) saveScreening(ctx context.Context, s exchange.Screening) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	return t.One(ctx, insertScreening, id, nullID(s.TransferID), nullID(s.PaymentID), clip(s.Screener, 80), s.Verdict, clip(s.Reference, 200), t.s.now())
}

const readSigningTerms = `
SELECT ` + paymentColumns + `, w.type = 'cold' AS cold, recipient_cleared(p) AS cleared,
    NOT EXISTS (SELECT FROM wallets o WHERE o.network = p.network AND o.address = p.to_address) AS external,
    EXISTS (SELECT FROM deny_list d WHERE d.network = p.network AND d.address = p.to_address AND d.removed_at IS NULL) AS denied
FROM chain_payments p JOIN wallets w ON w.id = p.wallet_id WHERE p.id = $1`

// SigningTerms reads the data to check before a payment is signed.
func (s *Store) SigningTerms(ctx context.Context, paymentID uuid.UUID) (exchange.SigningTerms, error) {
	var r struct {
		exchange.ChainPayment
		Cold, Cleared, External, Denied bool
	}
	if err := s.db.Get(ctx, &r, readSigningTerms, paymentID); err != nil {
		return exchange.SigningTerms{}, translate(err, "chain payment")
	}
	return exchange.SigningTerms{Payment: r.ChainPayment, Cold: r.Cold, External: r.External, Denied: r.Denied, Cleared: r.Cleared}, nil
}

// RecordRecipient stores the screening results of the recipient of a payment other than a transfer; the worst result
// counts. A repeated call replaces earlier results.
func (s *Store) RecordRecipient(ctx context.Context, paymentID uuid.UUID, said []exchange.Screening) error {
	return s.inTx(ctx, "screening", func(t unitTx) error {
		worst := slices.SortedStableFunc(slices.Values(said), func(a, b exchange.Screening) int { return severity(a.Verdict) - severity(b.Verdict) })
		for _, v := range worst {
			v.TransferID, v.PaymentID = uuid.Nil, paymentID
			if err := t.saveScreening(ctx, v); err != nil {
				return err
			}
		}
		return nil
	})
}
