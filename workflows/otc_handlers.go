package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// OTCDepositInput starts the flow of an OTC deposit.
type OTCDepositInput struct {
	IntentID uuid.UUID `json:"intent_id"`
}

// OTCDepositResult is how the flow ended.
type OTCDepositResult struct {
	DepositID uuid.UUID          `json:"deposit_id"`
	Status    exchange.OTCStatus `json:"status,omitempty"` // empty when the deposit was refused and never existed
	Detail    string             `json:"detail,omitempty"`
}

// OTCAck answers the updates of a deposit with its state.
type OTCAck struct {
	Status exchange.OTCStatus `json:"status,omitempty"`
	Detail string             `json:"detail,omitempty"`
}

// handlers registers every handler before the first wait.
func (f *otcDeposit) handlers(ctx workflow.Context) error {
	id, err := otcDepositForm.object(ctx)
	if err != nil {
		return err
	}
	f.depositID = id
	h := &handlers{ctx: ctx}
	h.err = f.reach(ctx, OTCDepositID(id), "OTC deposit "+id.String(), of(activities.ObjectOTCDeposit, id))
	h.update(UpdateOpen, "Answers when the deposit is stored, or refused.", apartOpen(f.onOpen), nil)
	h.update(UpdateStep, "Carries out a verb on the deposit, as somebody asked.", apart(f.onStep), nil)
	signal(f.commands.ears, "callbacks", SignalCallback, func(_ workflow.Context, ref CallbackRef) { f.paying.callbacks = append(f.paying.callbacks, ref) })
	return h.err
}

func (f *otcDeposit) onOpen(ctx workflow.Context) (OTCAck, error) {
	if err := f.hasOpened(ctx); err != nil {
		return OTCAck{}, err
	}
	return OTCAck{Status: f.row.Status, Detail: f.row.Detail}, nil
}

// onStep asks the database: only its row shows what a verb may do now. The flow goes on with the state of the row.
func (f *otcDeposit) onStep(ctx workflow.Context, ref IntentRef) (OTCAck, error) {
	if err := f.hasOpened(ctx); err != nil {
		return OTCAck{}, err
	}
	in := activities.OTCStepInput{DepositID: f.depositID, IntentID: ref.IntentID}
	s, err := step(ctx, database, ref.summary(), otc.StepOTC, in)
	if err != nil {
		return OTCAck{}, passOn(err)
	}
	if s.Named && s.Version > f.row.Version {
		if taken, err := step(ctx, rail, "Take the payment that was named", momo.TakeNamed, f.named()); err == nil {
			s = taken // otherwise the flow tries again
		}
	}
	f.learn(ctx, s)
	return OTCAck{Status: s.Status, Detail: s.Detail}, nil
}

// stage and waitsFor are what operators search by.
func (f *otcDeposit) stage() string {
	switch f.row.Status {
	case exchange.OTCDraft, exchange.OTCQuoted, exchange.OTCPending:
		return StageDeposit
	case exchange.OTCAssigned, exchange.OTCClaimed, exchange.OTCInfo, exchange.OTCHold, exchange.OTCConfirmed:
		return StageReview
	case exchange.OTCSettling:
		return StagePayout
	case exchange.OTCCredited:
		return StageAudit
	case exchange.OTCAudited, exchange.OTCRejected, exchange.OTCCancelled, exchange.OTCExpired:
	}
	return StageDone
}

func (f *otcDeposit) waitsFor() string {
	switch f.row.Status {
	case exchange.OTCDraft, exchange.OTCQuoted, exchange.OTCInfo:
		return WaitsForMerchant
	case exchange.OTCPending:
		switch f.row.Detail {
		case exchange.WaitMoney, exchange.WaitPrompt, exchange.WaitPayment, exchange.WaitRetry:
			return WaitsForPayer
		case exchange.WaitOutcome, exchange.WaitReceipt:
			return WaitsForMomo
		}
		return WaitsForOfficer
	case exchange.OTCAssigned, exchange.OTCClaimed, exchange.OTCHold, exchange.OTCConfirmed, exchange.OTCCredited, exchange.OTCSettling:
		return WaitsForOfficer
	case exchange.OTCAudited, exchange.OTCRejected, exchange.OTCCancelled, exchange.OTCExpired:
	}
	return WaitsForNothing
}

// showState shows the state of the deposit, unless the flow is parked: then the details show the park reason.
func (f *otcDeposit) showState(ctx workflow.Context) {
	if f.row.Status == "" {
		return
	}
	show(ctx, AttrStatus.ValueSet(string(f.row.Status)), AttrStage.ValueSet(f.stage()))
	if f.commands.reason != "" {
		return
	}
	show(ctx, AttrWaitingFor.ValueSet(f.waitsFor()))
	if !f.row.Due.IsZero() {
		show(ctx, AttrDeadline.ValueSet(f.row.Due))
	}
	f.describe(ctx)
}

// describe describes the state of the deposit.
func (f *otcDeposit) describe(ctx workflow.Context) {
	if f.commands.reason == "" {
		f.commands.describe(ctx, f.stateCard())
	}
}

func (f *otcDeposit) stateCard() card {
	d := f.row
	c := card{title: "OTC deposit " + string(d.Status)}
	c.add("Deposit", d.DepositID.String())
	c.add("Merchant", d.MerchantID.String())
	c.add("Waits for", d.Detail)
	c.add("To bring more", f.source)
	if !d.Due.IsZero() {
		c.add("Until", moment(d.Due))
	}
	return c
}

// OTCDepositAttributes are the search attributes with which the API starts a deposit's flow.
func OTCDepositAttributes() temporal.SearchAttributes {
	return temporal.NewSearchAttributes(AttrStatus.ValueSet(string(exchange.OTCDraft)), AttrStage.ValueSet(StageDeposit), AttrNeedsAttention.ValueSet(false))
}

// OTCDepositSummary is the summary of a deposit's flow in the Web UI.
func OTCDepositSummary(r exchange.OTCRequest) string {
	if r.Fiat.Asset() == "" {
		return "OTC deposit"
	}
	return "OTC deposit of " + r.Fiat.String() + " " + string(r.Fiat.Asset())
}
