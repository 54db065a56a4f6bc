package storetest

import (
	"context"
	"crypto/sha256"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// OpenOTC drafts a deposit for a merchant, or opens it at once.
func OpenOTC(ctx context.Context, s *store.Store, kind exchange.IntentKind, r exchange.OTCRequest, by exchange.Principal) (exchange.OTCDeposit, error) {
	a, err := Ask(ctx, s, kind, r.ID, r.ID, r.Terms(), by)
	if err != nil {
		return exchange.OTCDeposit{}, err
	}
	return s.OpenOTC(ctx, a)
}

// StepOTC carries out a verb on a deposit.
func StepOTC(ctx context.Context, s *store.Store, kind exchange.IntentKind, id uuid.UUID, step exchange.OTCStep, by exchange.Principal) (exchange.OTCDeposit, error) {
	request, err := uuid.NewV7()
	if err != nil {
		return exchange.OTCDeposit{}, err
	}
	a, err := Ask(ctx, s, kind, request, id, step.Terms(), by)
	if err != nil {
		return exchange.OTCDeposit{}, err
	}
	return s.StepOTC(ctx, id, a)
}

// EditOTC replaces what a draft has.
func EditOTC(ctx context.Context, s *store.Store, r exchange.OTCRequest, by exchange.Principal) (exchange.OTCDeposit, error) {
	request, err := uuid.NewV7()
	if err != nil {
		return exchange.OTCDeposit{}, err
	}
	a, err := Ask(ctx, s, exchange.IntendOTCEdit, request, r.ID, r.Terms(), by)
	if err != nil {
		return exchange.OTCDeposit{}, err
	}
	return s.StepOTC(ctx, r.ID, a)
}

// Proof is the row of a merchant's PDF with a receipt.
func Proof(t testing.TB, s *store.Store, by exchange.Principal, content string) exchange.File {
	t.Helper()
	id, sum := NewID(t), sha256.Sum256([]byte(content))
	f, err := s.AddFile(t.Context(), []exchange.NewFile{{File: exchange.File{
		ID: id, Purpose: exchange.FileOTCProof, OwnerID: by.VendorID, UploadedBy: by.UserID, Name: "receipt.pdf", Type: exchange.FilePDF, Size: int64(len(content)),
		SHA256: sum[:], SourceSHA256: sum[:], Pages: 1,
	}, Key: exchange.SealedFileKey{FileID: id, Ciphertext: []byte("sealed"), MasterKey: "first"}}}, by)
	if err != nil {
		t.Fatalf("seed a proof: %v", err)
	}
	return f
}
