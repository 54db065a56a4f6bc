package store

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Proofs of deposits: the files that merchants send, and what about them an officer should look at.

const readProof = `SELECT ` + fileColumns + ` FROM files WHERE id = $1 AND deleted_at IS NULL`

const countOTCFiles = `SELECT count(*) FROM file_uses WHERE object_type = 'otc_deposit' AND object_id = $1`

// useProof ties a file of the merchant to the deposit. CodeInvalid when it is none.
func (w *otcWork) useProof(ctx context.Context, id uuid.UUID, pointer string) (exchange.File, error) {
	f, known, err := readFound[exchange.File](ctx, w, readProof, id)
	if err != nil {
		return f, err
	}
	if err := require(known && f.Purpose == exchange.FileOTCProof && f.OwnerID == w.d.MerchantID && !f.Type.Image(), pointer, "not_found", "must be one of your files with the purpose otc_proof"); err != nil {
		return f, err
	}
	if err := w.below(ctx, exchange.MaxOTCFiles, countOTCFiles, w.d.ID, "files of one deposit"); err != nil {
		return f, err
	}
	return f, w.useFile(ctx, exchange.FileUse{FileID: f.ID, ObjectType: "otc_deposit", ObjectID: w.d.ID}, w.by)
}

// proveOTC adds a proof. The latest counts and all stay; no status changes.
func proveOTC(ctx context.Context, w *otcWork) error {
	f, err := w.useProof(ctx, w.step.FileID, "/file")
	if err != nil {
		return err
	}
	w.d.ProofID, w.d.ProofAt = f.ID, w.now
	w.d.ReceiptNumber = cmp.Or(w.step.ReceiptNumber, w.d.ReceiptNumber)
	if !w.step.TransferDate.IsZero() {
		w.d.TransferDate = w.step.TransferDate
	}
	detail := w.d.Detail
	if w.d.Status.WaitsForOfficer() && detail == exchange.WaitMoney {
		detail = exchange.WaitReview
	}
	if err := w.flagPapers(ctx); err != nil {
		return err
	}
	w.d.Detail = detail
	return w.save(ctx, "otc_deposit.proof_added")
}

const proofOfOTC = `SELECT file_id FROM file_uses WHERE object_type = 'otc_deposit' AND object_id = $1 AND file_id = $2`

// OTCProof checks that a file is a proof of a deposit that the view may see. CodeNotFound otherwise.
func (s *Store) OTCProof(ctx context.Context, v View, id, file uuid.UUID) error {
	if _, err := s.OTCDeposit(ctx, v, id); err != nil {
		return err
	}
	_, err := readOne[uuid.UUID](ctx, s.db, "file", proofOfOTC, id, file)
	return err
}

// Two deposits that get the same papers at the same time see each other: the second one waits here for the first.
const lockPapers = `
SELECT pg_advisory_xact_lock(hashtextextended('kivuko paper ' || p.paper, 0)) FROM (
    SELECT encode(f.source_sha256, 'hex') AS paper FROM file_uses u JOIN files f ON f.id = u.file_id WHERE u.object_type = 'otc_deposit' AND u.object_id = $1
    UNION SELECT upper(regexp_replace($2, '[^0-9A-Za-z]', '', 'g')) ORDER BY paper) p`

const (
	withSameProof = `FROM otc_deposits d WHERE d.id <> $1 AND d.id IN (SELECT v.object_id FROM file_uses u JOIN files f ON f.id = u.file_id JOIN files o ON o.source_sha256 = f.source_sha256
    JOIN file_uses v ON v.file_id = o.id AND v.object_type = 'otc_deposit' WHERE u.object_type = 'otc_deposit' AND u.object_id = $1)`
	twinsOfOTC = `SELECT d.id ` + withSameProof + ` ORDER BY d.id LIMIT 100`
	// unflagged is whether a deposit d has not ended and lacks the flag $2; those come first.
	unflagged     = `SELECT d.id, d.status NOT IN ('audited', 'rejected', 'cancelled', 'expired') AND NOT $2 = ANY (d.flags) AS unflagged `
	sameProof     = unflagged + withSameProof + ` ORDER BY unflagged DESC, d.id LIMIT 100`
	sameReceipt   = unflagged + `FROM otc_deposits d WHERE d.receipt_code = upper(regexp_replace($3, '[^0-9A-Za-z]', '', 'g')) AND d.receipt_code <> '' AND d.id <> $1 ORDER BY unflagged DESC, d.id LIMIT 100`
	sameReference = unflagged + `FROM otc_deposits d WHERE d.bank_reference = $3 AND d.bank_reference <> '' AND d.id <> $1 ORDER BY unflagged DESC, d.id LIMIT 100`
)

// flagPapers flags what about the merchant's papers is known from another deposit, and a sender who is called otherwise.
func (w *otcWork) flagPapers(ctx context.Context) error {
	if _, err := w.Exec(ctx, lockPapers, w.d.ID, w.d.ReceiptNumber); err != nil {
		return err
	}
	if err := w.flagSame(ctx, exchange.FlagSameFile, sameProof); err != nil {
		return err
	}
	if err := w.flagSame(ctx, exchange.FlagSameReceipt, sameReceipt, w.d.ReceiptNumber); err != nil {
		return err
	}
	var merchant exchange.User
	if err := w.Get(ctx, &merchant, readUser, w.d.MerchantID); err != nil {
		return err
	}
	if exchange.SoundsLike(w.d.SenderName, merchant.FirstName+" "+merchant.LastName) {
		return nil
	}
	return w.flag(ctx, exchange.FlagSender)
}

// flagSame flags the deposit where another one has the same, and those others that have not ended: their officers have to see it too.
func (w *otcWork) flagSame(ctx context.Context, f exchange.OTCFlag, query string, same ...any) error {
	others, err := readAll[struct {
		ID        uuid.UUID
		Unflagged bool
	}](ctx, w, "OTC deposit", query, append([]any{w.d.ID, f}, same...)...)
	if err != nil || len(others) == 0 {
		return err
	}
	for _, o := range others {
		if !o.Unflagged {
			continue
		}
		if err := w.flagOther(ctx, o.ID, f); err != nil {
			return err
		}
	}
	return w.flag(ctx, f)
}

// flagOther flags another deposit. Its merchant hears nothing of it.
func (w *otcWork) flagOther(ctx context.Context, id uuid.UUID, f exchange.OTCFlag) error {
	other, err := w.startOTC(ctx, id)
	if err != nil || other.d.Over() {
		return err
	}
	other.by = w.by
	if err := other.flag(ctx, f); err != nil {
		return err
	}
	before, err := other.store(ctx)
	if err != nil {
		return err
	}
	return other.reviewed(ctx, before)
}

// OTCTwins lists other deposits that have a file with the same content as a file of this one.
func (s *Store) OTCTwins(ctx context.Context, id uuid.UUID) ([]uuid.UUID, error) {
	return readAll[uuid.UUID](ctx, s.db, "OTC deposit", twinsOfOTC, id)
}
