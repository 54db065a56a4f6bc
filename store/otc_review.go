package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Officers' work on deposits: who reviews one, questions to the merchant, and stops.

// assignOTC names the officer who reviews a deposit, or nobody.
func assignOTC(ctx context.Context, w *otcWork) error {
	if w.step.OfficerID != uuid.Nil {
		var u exchange.User
		err := w.Get(ctx, &u, readUser, w.step.OfficerID)
		if err = translate(err, "officer"); err != nil && exchange.CodeOf(err) != exchange.CodeNotFound {
			return err
		}
		if err := require(err == nil && u.IsActive && u.Role == exchange.RoleOTCOfficer && u.ID != w.d.CreatedBy, "/officer_id", "not_found", "must be an active OTC officer"); err != nil {
			return err
		}
	}
	w.d.AssignedTo = w.step.OfficerID
	w.noted()
	return w.move(ctx, w.waiting(), w.waitsFor())
}

// noted keeps an officer's note, if there is one.
func (w *otcWork) noted() {
	if w.step.Note != "" {
		w.d.InternalNote = w.step.Note
	}
}

// claimOTC gives a deposit to an officer by a lease, or renews the lease of who holds it. A lease that has ended gives way. A deposit
// whose confirmation counts no more, because its officer was switched off, is claimed anew.
func claimOTC(ctx context.Context, w *otcWork) error {
	officer := w.by.UserID
	if w.d.TookPart(officer) && w.d.ConfirmedBy != officer {
		return exchange.Errorf(exchange.CodeForbidden, "Who took another part in a deposit can't review it.")
	}
	if w.d.Held(officer, w.now) {
		w.d.ClaimEndsAt = w.now.Add(exchange.OTCLease)
		return w.move(ctx, exchange.OTCClaimed, w.d.Detail)
	}
	if w.d.Status == exchange.OTCClaimed {
		if w.now.Before(w.d.ClaimEndsAt) {
			return exchange.Errorf(exchange.CodeConflict, "Another officer holds the deposit.")
		}
		if err := w.endClaim(ctx); err != nil {
			return err
		}
	}
	if w.d.Status == exchange.OTCConfirmed {
		if err := w.unconfirm(ctx); err != nil {
			return err
		}
	} else if w.d.Status == exchange.OTCAssigned && w.d.AssignedTo != officer {
		return exchange.Errorf(exchange.CodeConflict, "The deposit is assigned to another officer.")
	}
	w.d.ClaimedBy, w.d.ClaimEndsAt = officer, w.now.Add(exchange.OTCLease)
	return w.move(ctx, exchange.OTCClaimed, exchange.WaitReview)
}

const confirmersGone = `
SELECT EXISTS (SELECT FROM unnest(ARRAY[$1, $2]::uuid[]) p LEFT JOIN users u ON u.id = p AND u.is_active AND u.role = 'otc_officer' WHERE p IS NOT NULL AND u.id IS NULL)`

// unconfirm takes a confirmation back that counts no more. CodeStateConflict for one that counts.
func (w *otcWork) unconfirm(ctx context.Context) error {
	var gone bool
	if err := w.Get(ctx, &gone, confirmersGone, nullID(w.d.ConfirmedBy), nullID(w.d.AgreedBy)); err != nil {
		return err
	}
	if !gone {
		return exchange.Errorf(exchange.CodeStateConflict, "The deposit is confirmed.")
	}
	w.d.ConfirmedBy, w.d.AgreedBy, w.d.ConfirmedAt = uuid.Nil, uuid.Nil, time.Time{}
	return w.withdrawSaid(ctx)
}

// releaseOTC gives a claim back.
func releaseOTC(ctx context.Context, w *otcWork) error {
	if err := w.holds(); err != nil {
		return err
	}
	w.noted()
	return w.endClaim(ctx)
}

// holds refuses an officer who does not hold the deposit any more.
func (w *otcWork) holds() error {
	if !w.d.Held(w.by.UserID, w.now) {
		return exchange.Errorf(exchange.CodeConflict, "You don't hold the deposit: your claim has ended, or another officer's runs.")
	}
	return nil
}

// endClaim gives a deposit back to the queue. What its officer said of the money counts no more.
func (w *otcWork) endClaim(ctx context.Context) error {
	if err := w.withdrawSaid(ctx); err != nil {
		return err
	}
	w.d.ClaimedBy, w.d.ClaimEndsAt = uuid.Nil, time.Time{}
	return w.move(ctx, w.waiting(), w.waitsFor())
}

// askOTC asks the merchant a question. The lease stands still until the answer.
func askOTC(ctx context.Context, w *otcWork) error {
	if err := w.holds(); err != nil {
		return err
	}
	if err := w.withdrawSaid(ctx); err != nil {
		return err
	}
	w.d.InfoRequest, w.d.InfoReply = w.step.Text, ""
	w.noted()
	return w.move(ctx, exchange.OTCInfo, exchange.WaitAnswer)
}

// answerOTC brings the merchant's answer back to the officer, with a new lease, or into the queue if that officer is gone.
func answerOTC(ctx context.Context, w *otcWork) error {
	if w.d.Detail == exchange.WaitRequote {
		return exchange.Errorf(exchange.CodeStateConflict, "The deposit waits for another quote, for your choice of shillings, or for its cancellation.")
	}
	if w.step.FileID != uuid.Nil {
		f, err := w.useProof(ctx, w.step.FileID, "/file_id")
		if err != nil {
			return err
		}
		w.d.ProofID, w.d.ProofAt = f.ID, w.now
		if err := w.flagPapers(ctx); err != nil {
			return err
		}
	}
	w.d.InfoReply = w.step.Text
	return w.backToOfficer(ctx)
}

// backToOfficer gives a deposit back to the officer who held it, with a new lease.
func (w *otcWork) backToOfficer(ctx context.Context) error {
	w.moreTime()
	var gone bool
	if w.d.ClaimedBy != uuid.Nil {
		if err := w.Get(ctx, &gone, confirmersGone, nullID(w.d.ClaimedBy), nil); err != nil {
			return err
		}
	}
	if gone || w.d.ClaimedBy == uuid.Nil {
		w.d.ClaimedBy, w.d.ClaimEndsAt, w.d.AssignedTo = uuid.Nil, time.Time{}, uuid.Nil
		return w.move(ctx, exchange.OTCPending, w.waitsFor())
	}
	w.d.ClaimEndsAt = w.now.Add(exchange.OTCLease)
	return w.move(ctx, exchange.OTCClaimed, exchange.WaitReview)
}

// holdOTC stops a deposit.
func holdOTC(ctx context.Context, w *otcWork) error {
	w.d.HeldFrom, w.d.InternalNote = w.d.Status, w.step.Text
	return w.move(ctx, exchange.OTCHold, w.d.Detail)
}

// moreTime lets a deposit whose clock stood still wait for its money for a day at least.
func (w *otcWork) moreTime() {
	if least := w.now.Add(24 * time.Hour); !w.d.HasMoney() && w.d.Method != exchange.OTCByMomo && w.d.ExpiresAt.Before(least) {
		w.d.ExpiresAt = least
	}
}

// unholdOTC lets a deposit go on where it was. A claim has a new lease.
func unholdOTC(ctx context.Context, w *otcWork) error {
	to := w.d.HeldFrom
	w.d.HeldFrom = ""
	w.noted()
	w.moreTime()
	if to == exchange.OTCClaimed {
		w.d.ClaimEndsAt = w.now.Add(exchange.OTCLease)
	}
	return w.move(ctx, to, w.d.Detail)
}
