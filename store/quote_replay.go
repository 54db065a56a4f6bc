package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// QuoteReplay is a recomputed quote. Differs names what does not match; see exchange.FXQuote.Replay. In addition,
// "fx_rate" and "fee_profile" mean rows that differ from the frozen terms, and "audit" an audit log with another hash.
type QuoteReplay struct {
	Quote   exchange.FXQuote
	Price   exchange.QuotePrice
	Differs []string
}

// Compares the frozen terms with the rows that they were copied from, and the hash with the one in the chained audit
// log. Each column is true when they match.
const readEvidence = `
SELECT EXISTS (SELECT FROM fx_rates r WHERE r.id = q.rate_id AND r.base = q.asset AND r.quote = q.fiat_currency AND r.bid = q.bid AND r.ask = q.ask
        AND r.source = q.rate_source AND r.valid_from = q.rate_valid_from AND r.stale_at = q.rate_stale_at) AS rate,
    q.profile_id IS NULL OR fee_profile_covers(q.profile_id, q.purpose, q.vendor_id, q.asset, q.network, q.method)
        AND EXISTS (SELECT FROM fee_profiles p WHERE p.id = q.profile_id AND p.version = q.profile_version AND p.fixed = q.fee_fixed AND p.basis_points = q.fee_points AND p.minimum = q.fee_minimum
        AND p.maximum IS NOT DISTINCT FROM q.fee_maximum AND p.spread_basis_points = q.spread_points) AS profile,
    EXISTS (SELECT FROM audit_log a WHERE a.object_type = 'fx_quote' AND a.object_id = q.id AND a.action = 'fx_quote.created'
        AND a.after ->> 'hash' = q.hash) AS audit
FROM fx_quotes q WHERE q.id = $1`

// ReplayQuote recomputes a quote from its frozen terms and compares the result, the hash and the terms with the stored
// ones. The request and its result are audited.
func (s *Store) ReplayQuote(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (QuoteReplay, error) {
	var out QuoteReplay
	err := s.inTx(ctx, "quote", func(t unitTx) error {
		all, owner, vendor := v.args()
		var r quoteRow
		if err := t.Get(ctx, &r, readScopedQuote, id, all, owner, vendor); err != nil {
			return err
		}
		q, err := r.quote()
		if err != nil {
			return err
		}
		out = QuoteReplay{Quote: q}
		out.Price, out.Differs = q.Replay()
		var agree struct{ Rate, Profile, Audit bool }
		if err := t.Get(ctx, &agree, readEvidence, id); err != nil {
			return err
		}
		for _, w := range []struct {
			name string
			ok   bool
		}{{"fx_rate", agree.Rate}, {"fee_profile", agree.Profile}, {"audit", agree.Audit}} {
			if !w.ok {
				out.Differs = append(out.Differs, w.name)
			}
		}
		if q.Status == exchange.QuoteActive && q.Over(t.s.now()) {
			out.Quote.Status = exchange.QuoteExpired
		}
		return t.audit(ctx, by, "fx_quote.replayed", "fx_quote", id, nil, map[string]any{"agrees": len(out.Differs) == 0, "differs": out.Differs})
	})
	return out, err
}
