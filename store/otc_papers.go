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

const (
	sameProof = `SELECT EXISTS (SELECT FROM file_uses u JOIN files f ON f.id = u.file_id JOIN files o ON o.source_sha256 = f.source_sha256
    JOIN file_uses v ON v.file_id = o.id AND v.object_type = 'otc_deposit' AND v.object_id <> $1 WHERE u.object_type = 'otc_deposit' AND u.object_id = $1)`
	sameReceipt = `SELECT EXISTS (SELECT FROM otc_deposits WHERE receipt_code = upper(regexp_replace($2, '[^0-9A-Za-z]', '', 'g')) AND receipt_code <> '' AND id <> $1)`
	twinsOfOTC  = `SELECT DISTINCT v.object_id FROM file_uses u JOIN files f ON f.id = u.file_id JOIN files o ON o.source_sha256 = f.source_sha256
    JOIN file_uses v ON v.file_id = o.id AND v.object_type = 'otc_deposit' AND v.object_id <> $1 WHERE u.object_type = 'otc_deposit' AND u.object_id = $1 ORDER BY 1 LIMIT 100`
)

// flagPapers flags what about the merchant's papers is known from another deposit, and a sender who is called otherwise.
func (w *otcWork) flagPapers(ctx context.Context) error {
	var flags []exchange.OTCFlag
	for _, c := range []struct {
		flag  exchange.OTCFlag
		query string
		args  []any
	}{
		{exchange.FlagSameFile, sameProof, []any{w.d.ID}},
		{exchange.FlagSameReceipt, sameReceipt, []any{w.d.ID, w.d.ReceiptNumber}},
	} {
		var seen bool
		if err := w.Get(ctx, &seen, c.query, c.args...); err != nil {
			return err
		}
		if seen {
			flags = append(flags, c.flag)
		}
	}
	var merchant exchange.User
	if err := w.Get(ctx, &merchant, readUser, w.d.MerchantID); err != nil {
		return err
	}
	if !exchange.SoundsLike(w.d.SenderName, merchant.FirstName+" "+merchant.LastName) {
		flags = append(flags, exchange.FlagSender)
	}
	return w.flag(ctx, flags...)
}

// OTCTwins lists other deposits that have a file with the same content as a file of this one.
func (s *Store) OTCTwins(ctx context.Context, id uuid.UUID) ([]uuid.UUID, error) {
	return readAll[uuid.UUID](ctx, s.db, "OTC deposit", twinsOfOTC, id)
}
