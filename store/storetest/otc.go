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
	if kind == exchange.IntendOTCOpen && r.Asset.Stablecoin() && r.QuoteID == uuid.Nil {
		q, err := quoteOTC(ctx, s, exchange.OTCDeposit{Fiat: r.Fiat, Asset: r.Asset, Network: r.Network, Method: r.Method}, by)
		if err != nil {
			return exchange.OTCDeposit{}, err
		}
		r.QuoteID = q
	}
	a, err := Ask(ctx, s, kind, r.ID, r.ID, r.Terms(), by)
	if err != nil {
		return exchange.OTCDeposit{}, err
	}
	return s.OpenOTC(ctx, a)
}

// quoteOTC opens a quote for what a deposit pays, as the API does for a merchant that names none.
func quoteOTC(ctx context.Context, s *store.Store, d exchange.OTCDeposit, by exchange.Principal) (uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil, err
	}
	q, err := s.OpenQuote(ctx, store.QuoteForOTC(id, d), by)
	return q.ID, err
}

// StepOTC carries out a verb on a deposit.
func StepOTC(ctx context.Context, s *store.Store, kind exchange.IntentKind, id uuid.UUID, step exchange.OTCStep, by exchange.Principal) (exchange.OTCDeposit, error) {
	request, err := uuid.NewV7()
	if err != nil {
		return exchange.OTCDeposit{}, err
	}
	if kind == exchange.IntendOTCQuote && !step.TakeKES && step.QuoteID == uuid.Nil {
		d, err := s.OTCDepositByID(ctx, id)
		if err == nil && d.Admit(kind, by) == nil && d.Sells() {
			step.QuoteID, err = quoteOTC(ctx, s, d, by)
		}
		if err != nil {
			return exchange.OTCDeposit{}, err
		}
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
