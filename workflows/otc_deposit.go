package workflows

import (
	"cmp"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// OTCDeposit is the flow of an OTC deposit, from its draft to its audit: it carries out what people ask for, ends what is over by time,
// and has the crypto of a settlement transferred.
func OTCDeposit(ctx workflow.Context, in OTCDepositInput) (OTCDepositResult, error) {
	// Money may have come, so a cancellation of the execution is ignored. Merchants cancel deposits by a verb.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &otcDeposit{in: in}
	if err := f.handlers(ctx); err != nil {
		return OTCDepositResult{}, err
	}
	return attended(ctx, f.commands, f.run)
}

// otcDeposit is the state of one deposit. Its database row decides, because people and the bank's statement change it meanwhile.
type otcDeposit struct {
	flow
	in        OTCDepositInput
	depositID uuid.UUID
	row       activities.OpenedOTC
	short     time.Time // since when the treasury's wallet has had too little; zero while it has enough
	source    string    // where more can be brought from meanwhile, in words
	paying    otcCollection
}

func (f *otcDeposit) run(ctx workflow.Context) (OTCDepositResult, error) {
	f.open(ctx)
	for f.refusal == nil && !exchange.OTCMachine.Terminal(f.row.Status) {
		if f.long(ctx) {
			return f.goOn(ctx)
		}
		switch {
		case f.row.Status == exchange.OTCSettling:
			f.settle(ctx)
		case f.row.Credit && !f.paying.credited:
			f.credit(ctx)
		case f.row.Named && f.paying.named < f.row.Version:
			f.takeNamed(ctx)
		case f.row.Collects != "":
			f.collect(ctx)
		default:
			f.leave(ctx)
			f.await(ctx)
		}
	}
	f.leave(ctx)
	return f.finish(ctx)
}

// long reports whether the run has nearly as many events or updates as a run may have: people may ask for any number of verbs, also of
// ones that are refused, and a run with too many takes none. One that is parked waits for its operator first.
func (f *otcDeposit) long(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && f.commands.reason == ""
}

// goOn continues in another run, which finds the deposit by the intent that opened it.
func (f *otcDeposit) goOn(ctx workflow.Context) (OTCDepositResult, error) {
	if err := lastHandlers(ctx); err != nil {
		return OTCDepositResult{}, err
	}
	return OTCDepositResult{}, goOn(ctx, TypeOTCDeposit, f.in)
}

func (f *otcDeposit) named() activities.OTCInput { return activities.OTCInput{DepositID: f.depositID} }

// open writes the deposit and shows it.
func (f *otcDeposit) open(ctx workflow.Context) {
	f.row = open(ctx, &f.flow, "Open the deposit", otc.OpenOTC, activities.IntentInput{IntentID: f.in.IntentID}, nil)
	if f.refusal != nil {
		return
	}
	show(ctx, AttrMerchantID.ValueSet(f.row.MerchantID.String()), AttrNeedsAttention.ValueSet(false))
	f.showState(ctx)
}

// learn stores the deposit's state if it is newer. Answers of two steps may come in any order.
func (f *otcDeposit) learn(ctx workflow.Context, s activities.OTCState) {
	if s.Version > f.row.Version {
		f.row.OTCState = s
		f.showState(ctx)
	}
}

// dueMargin covers the difference between the server's clock and the database's.
const dueMargin = time.Second

// await waits until somebody changes the deposit, or until something is due by time. What changed the row without this flow, as a
// bank's statement does, shows then.
func (f *otcDeposit) await(ctx workflow.Context) {
	was := f.row.Version
	changed := func() bool { return f.row.Version != was }
	ready := func() bool { return changed() || len(f.paying.callbacks) > 0 || f.long(ctx) }
	if f.row.Due.IsZero() {
		patiently(ctx, ready)
		return
	}
	if await(ctx, max(f.row.Due.Sub(workflow.Now(ctx)), 0)+dueMargin, "Wait for people, or for the time", ready); ready() {
		return
	}
	s := mustStep(ctx, &f.flow, database, "End what is over by time", otc.LapseOTC, f.named())
	f.learn(ctx, s)
	if !changed() { // its row has another end by now
		f.row.Due = s.Due
	}
}

// inventoryPause is how long the flow waits between looks for the treasury's coins, at first.
const inventoryPause = time.Minute

// settle has the crypto transferred, and waits until the transfer has ended. While the treasury's wallet has too little, nothing is
// opened.
func (f *otcDeposit) settle(ctx workflow.Context) {
	now := mustStep(ctx, &f.flow, database, "Look for the transfer", otc.FollowTransfer, f.named())
	f.source = now.Source
	f.learn(ctx, now.OTCState)
	f.describe(ctx) // also where only the source is another one
	f.short = since(ctx, f.short, now.Short)
	switch {
	case now.Status != exchange.OTCSettling:
	case now.Short:
		await(ctx, slower(ctx, inventoryPause, f.short), "Look whether the treasury has enough", func() bool { return false })
	default:
		f.transfer(ctx, now)
	}
}

// transfer runs the flow of the transfer to its end. One that is refused at its opening never opens, and the deposit is settled anew.
func (f *otcDeposit) transfer(ctx workflow.Context, t activities.OTCSettlement) {
	c := child{
		id: TransferID(t.TransferID), summary: "Transfer the crypto of deposit " + f.depositID.String(), priority: fairness(priorityOrder, f.row.MerchantID),
		shown: attributes(StageScreening, WaitsForOfficer, AttrNetwork.ValueSet(string(f.row.Network)), AttrAsset.ValueSet(string(f.row.Asset))), resumed: &f.resumed,
	}
	var result TransferResult
	f.must(ctx, c.summary, func() (err error) {
		result, err = run(ctx, c, Transfer, TransferInput{IntentID: t.IntentID}, looking("Look whether the transfer is open", f.transferred))
		return err
	})
	if result.Status != "" {
		return
	}
	code, _, _ := strings.Cut(result.Detail, ":")
	if exchange.Code(code) == exchange.CodeInsufficientFunds {
		await(ctx, inventoryPause, "Look whether the treasury has enough", func() bool { return false }) // somebody else took the coins
		return
	}
	in := activities.RefusedTransferInput{DepositID: f.depositID, Code: exchange.Code(cmp.Or(code, string(exchange.CodeInternal)))}
	f.learn(ctx, mustStep(ctx, &f.flow, database, "Give the refused transfer up", otc.RefuseTransfer, in))
}

// transferred shows the transfer on the deposit, whose officers have to find it, and reports whether it is open, or given up.
func (f *otcDeposit) transferred(ctx workflow.Context) bool {
	now := mustStep(ctx, &f.flow, database, "Look whether the transfer is open", otc.FollowTransfer, f.named())
	f.learn(ctx, now.OTCState)
	return now.Opened || now.Status != exchange.OTCSettling
}

// finish waits for the handlers and ends the flow.
func (f *otcDeposit) finish(ctx workflow.Context) (OTCDepositResult, error) {
	if err := lastHandlers(ctx); err != nil {
		return OTCDepositResult{}, err
	}
	if f.row.Status == "" { // refused
		return OTCDepositResult{DepositID: f.depositID, Detail: words(f.refusal)}, nil
	}
	f.showState(ctx)
	return OTCDepositResult{DepositID: f.depositID, Status: f.row.Status, Detail: f.row.Detail}, nil
}
