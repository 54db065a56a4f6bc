package workflows_test

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// transferRows is the store of a transfer's flow, with the harness's faults around each call.
type transferRows struct{ w *transferHarness }

func (r transferRows) around(call string, do func() (exchange.Transfer, error)) (exchange.Transfer, error) {
	return result(r.w.store, call, do)
}

func (r transferRows) OpenTransfer(ctx context.Context, a exchange.Asked) (exchange.Transfer, error) {
	return r.around("OpenTransfer", func() (exchange.Transfer, error) { return r.w.store.OpenTransfer(ctx, a) })
}

func (r transferRows) TransferByID(ctx context.Context, id uuid.UUID) (exchange.Transfer, error) {
	return r.around("TransferByID", func() (exchange.Transfer, error) { return r.w.store.TransferByID(ctx, id) })
}

func (r transferRows) AdvanceTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error) {
	f, err := r.around("AdvanceTransfer", func() (exchange.Transfer, error) { return r.w.store.AdvanceTransfer(ctx, id) })
	if r.w.judged != nil && f.Status == exchange.TransferPending {
		r.w.judged()
	}
	return f, err
}

func (r transferRows) Denied(ctx context.Context, n exchange.Network, address string) (bool, error) {
	return r.w.store.Denied(ctx, n, address)
}

func (r transferRows) RecordScreening(ctx context.Context, id uuid.UUID, said []exchange.Screening) (exchange.Transfer, error) {
	if r.w.judged != nil {
		defer r.w.judged()
	}
	return r.around("RecordScreening", func() (exchange.Transfer, error) { return r.w.store.RecordScreening(ctx, id, said) })
}

func (r transferRows) SignTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error) {
	return r.around("SignTransfer", func() (exchange.Transfer, error) { return r.w.store.SignTransfer(ctx, id) })
}

func (r transferRows) SetTransferDetail(ctx context.Context, id uuid.UUID, detail string) (exchange.Transfer, error) {
	return r.around("SetTransferDetail", func() (exchange.Transfer, error) { return r.w.store.SetTransferDetail(ctx, id, detail) })
}

func (r transferRows) CancelTransfer(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Transfer, error) {
	return r.around("CancelTransfer", func() (exchange.Transfer, error) { return r.w.store.CancelTransfer(ctx, id, a) })
}

func (r transferRows) LapseTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error) {
	return r.around("LapseTransfer", func() (exchange.Transfer, error) { return r.w.store.LapseTransfer(ctx, id) })
}

func (r transferRows) GiveUpTransfer(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.Transfer, error) {
	r.w.store.watch()
	return r.around("GiveUpTransfer", func() (exchange.Transfer, error) { return r.w.store.GiveUpTransfer(ctx, id, by) })
}

func (r transferRows) Decide(ctx context.Context, id uuid.UUID, token string, action exchange.ApprovalAction) (exchange.Transfer, error) {
	return r.around("Decide", func() (exchange.Transfer, error) { return r.w.store.Decide(ctx, id, token, action) })
}

func (r transferRows) DecideSale(ctx context.Context, id uuid.UUID, token string, action exchange.ApprovalAction) (exchange.SaleRelease, error) {
	return r.w.store.DecideSale(ctx, id, token, action)
}

func (r transferRows) Acting(ctx context.Context, a exchange.Asked) (exchange.Principal, error) {
	return r.w.store.Acting(ctx, a)
}

// RecordRefusedDecision keeps the code as well.
func (r transferRows) RecordRefusedDecision(
	ctx context.Context, object exchange.ApprovalObject, id uuid.UUID, action exchange.ApprovalAction, channel exchange.ApprovalChannel, code exchange.Code,
) error {
	r.w.mu.Lock()
	r.w.noted = append(r.w.noted, code)
	r.w.mu.Unlock()
	return r.w.store.RecordRefusedDecision(ctx, object, id, action, channel, code)
}
