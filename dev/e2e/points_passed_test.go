package e2e

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kivuko/dev/testbed"
	"kivuko/workflows"
)

// exemption lists points that need no trial, with a reason.
type exemption struct {
	at  string // a pattern of points; it also exempts activities that no scenario executes
	why string
}

const (
	noMoney  = "it keeps records of rates, comparisons, reports, looks or waits; no money moves by them"
	past     = "it clears or seals what is past"
	question = "it asks the operator a question; the answer that is lost is asked for again"
	another  = "the same methods of the store are played under another activity"
	reading  = "it changes nothing"
	float    = "it records the operator's balances and charges; a flow that waits for float and is not notified checks later anyway"
)

// exemptions are by activity or by kind of step.
var exemptions = []exemption{
	{"PullRates/*/*", noMoney},
	{"ListParked/*/*", noMoney},
	{"RepairParked/*/*", noMoney},
	{"BeginReconciliation/*/*", noMoney},
	{"FinishReconciliation/*/*", noMoney},
	{"CompareWallets/*/*", noMoney},
	{"WriteReserves/*/*", noMoney},
	{"AwaitDeposits/*/*", noMoney},
	{"EndDepositWait/*/*", noMoney},
	{"RecordWoken/*/*", noMoney},
	{"DeliverPayment/RecordIncluded#[2-9]/*", "it writes again what the first wrote, whose points are played; whether a delivery looks twice depends on the watch"},
	{"FollowDeposits/RecordLook#?/*", noMoney},
	{"FollowDeposits/WatchAlive#?/*", noMoney},
	{"SignPayment/AwaitSignature#?/*", noMoney},
	{"Prune/*/*", past},
	{"KeepMonths/*/*", "each step is one transaction, which the next run finds done"},
	{"SealAudit/*/*", past},
	{"EndFiles/*/*", past},
	{"SweepObjects/*/*", past},
	{"MatchStatements/*/*", "it writes down what explains a line of a bank's statement, each line in one transaction; the next run takes what is left"},
	{"MarkBankRefund/*/*", "it writes down what a refund waits for, for readers"},
	{"MarkWithdrawal/*/*", "it writes down what a withdrawal waits for, for readers"},
	{"AwaitOfficers/*/*", "it writes down what a withdrawal waits for, for readers"},
	{"FailWithdrawal/*/*", "it ends what is proven not to be paid; a repeated call finds it ended"},
	{"RefuseWithdrawalTransfer/*/*", "it writes down that a transfer which was refused is given up; nothing moves by it"},
	{"RecordRefusedSwapDecision/*/*", "it writes down a decision that changed nothing"},
	{"StallSwap/*/*", "it has people look at a swap; nothing moves by it"},
	{"WatchInventory/*/*", noMoney},
	{"ReadSwap/*/*", reading},
	{"ReadMultisig/*/*", reading},
	{"ReadProposal/*/*", reading},
	{"RecordRefusedProposalDecision/*/*", "it writes down a decision that changed nothing"},
	{"DeliverPayment/AdoptFailure#?/*", "it names the failed transaction of a proposal, in one transaction; a repeated call finds it named, and what books its fee is played"},
	{"DeliverPayment/FailProposal#?/*", "it ends what is proven never to be executed; a repeated call finds it ended"},
	{"PlaceMultisig/*/*", reading},
	{"ReadLack/*/*", reading},
	{"FundMultisig/*/*", "it approves what an account lacks after a fee rose, each payment in one transaction; a repeated call finds the payment"},
	{"CheckMultisigs/*/*", noMoney},
	{"RecordRefusedWithdrawalDecision/*/*", "it writes down a decision that changed nothing"},
	{"LapseOTC/*/*", "it ends by time what holds no money: a claim, a quote, a draft"},
	{"RefuseTransfer/*/*", "it writes down that a transfer which was refused is given up; nothing moves by it"},
	{"AskBalance/*/*", float},
	{"TakeFloatReport/*/*", float},
	{"FixCharges/*/*", float},
	{"FollowDeposits/StartDeposits#?/*", "it is done once in the life of a database, before there is anything to lose"},
	{"ConfirmPayee/*/*", "it writes down that the payee was confirmed; what pays is played"},
	{"*/NoteCredential#?/*", "it writes down what the operator says of our credential, which only ever stops payouts"},
	{"TakeStatementPage/QuarantineLine#?/*", "it keeps a line of the operator's list that is no payment, once, for people to look at"},
	{"TakeStatementPage/call#?/*", question},
	{"ConfirmPayment/call#[2-9]/*", question}, // the first is played
	{"Submit*/RecordSubmission#2/*", "it is come to only after a death; the trials of that death go through it"},
	{"CheckPayout/call#?/*", question},
	{"CheckFloatMove/call#?/*", question},
	{"CheckLatePayout/call#?/*", question},
	{"ConfirmPayment/RecordSubmission#?/*", another},
	{"ConfirmPayment/SetCollectionDetail#?/*", another},
	{"ConfirmPayment/UseCommand#?/*", another},
	{"CheckLatePayout/*/*", another},
	{"SettleLatePayout/*/*", another},
	{"ReleaseStale/*/*", another},
	{"BringGas/*/*", "it approves gas that no payment waits for yet, each top-up in one transaction; the next run begins what it leaves"},
	{"FindDeposits/*/*", reading},
	{"LookAtDeposit/*/*", reading},
	{"ReconciledNetworks/*/*", reading},
	{"ReadOffRamp/*/*", reading},
	{"CheckIntent/*/*", reading},
	{"ReadWalletIntent/*/*", reading},
	{"PurchaseProgress/*/*", reading},
	{"SweptByRule/*/*", reading},
	{"UseIntent/*/*", "it marks a request for another prompt as used; the prompt is played"},
}

// broadcasters are the queues on which a broadcast must be a point.
func (w *harness) broadcasters() []string {
	var queues []string
	for _, n := range w.seed().Nodes() {
		queues = append(queues, workflows.QueueChain(n.Network))
	}
	return queues
}

// exempt reports whether a point needs no trial.
func exempt(point string) bool {
	return slices.ContainsFunc(exemptions, func(e exemption) bool { return matches(e.at, point) })
}

// pointUse is a flow and a queue that pass a point.
type pointUse struct{ flow, queue string }

// passed reads which points the processes of a stack have passed so far, and where. It also has the names of all executed
// activities.
func passed(dir string) (map[string][]pointUse, error) {
	files, err := filepath.Glob(filepath.Join(dir, "passed", "*"))
	if err != nil {
		return nil, err
	}
	all := map[string][]pointUse{}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(content)) {
			cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(cells) != 3 {
				continue // the process died while it wrote
			}
			if at := (pointUse{cells[1], cells[2]}); !slices.Contains(all[cells[0]], at) {
				all[cells[0]] = append(all[cells[0]], at)
			}
		}
	}
	return all, nil
}

// unaccounted returns the passed points that neither a row of the table nor an exemption covers.
func unaccounted(all map[string][]pointUse) (points []string) {
	tracks := table()
	for point := range all {
		_, found := rowOf(tracks, point)
		if strings.Contains(point, "/") && !found && !exempt(point) {
			points = append(points, point)
		}
	}
	slices.Sort(points)
	return points
}

// complete checks that each passed point and each activity of a share has a row or an exemption. It checks activities too, because
// one that no scenario executes has no points.
func (w *harness) complete(t *testing.T, of share) {
	t.Helper()
	all, err := passed(w.crash)
	if err != nil {
		t.Fatal(err)
	}
	if points := unaccounted(all); len(points) > 0 {
		t.Errorf("no trial plays these points: %v", points)
	}
	for _, queue := range w.broadcasters() { // a network may be paid on in the trials of another share alone
		if of.of == 1 && !slices.ContainsFunc(all["DeliverPayment/call#1/before"], func(p pointUse) bool { return p.queue == queue }) {
			t.Errorf("no broadcast on the queue %s was a point", queue)
		}
	}
	for _, name := range activitiesOf(t) {
		excused := slices.ContainsFunc(exemptions, func(e exemption) bool { return e.at == name+"/*/*" })
		if of.has(name) && len(all[name]) == 0 && !excused {
			t.Errorf("no scenario executes the activity %s: give it one, or an exemption of all its points with the reason", name)
		}
	}
}

// activitiesOf reads the names of all activities from the source: exported methods with a context, without adapters.
func activitiesOf(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "activities", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && isActivity(f) {
				names = append(names, f.Name.Name)
			}
		}
	}
	const atLeast = 60 // so that a change of style can't make the list empty
	if len(names) < atLeast {
		t.Fatalf("only %d activities were found", len(names))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func isActivity(f *ast.FuncDecl) bool {
	if f.Recv == nil || !f.Name.IsExported() || len(f.Type.Params.List) == 0 {
		return false
	}
	first, isType := f.Type.Params.List[0].Type.(*ast.SelectorExpr)
	on, isPointer := f.Recv.List[0].Type.(*ast.StarExpr)
	if !isType || first.Sel.Name != "Context" || !isPointer {
		return false
	}
	receiver, _ := on.X.(*ast.Ident)
	return !strings.HasPrefix(receiver.Name, "HTTP") && !strings.HasSuffix(receiver.Name, "Sender")
}

// TestBriefTrialsHitEachProcess checks that the trials of every run include each kind of process.
func TestBriefTrialsHitEachProcess(t *testing.T) {
	killed, kinds := map[string]bool{}, map[string]bool{}
	tracks := table()
	for _, l := range tracks {
		for _, r := range l.rows {
			kind, _, _ := strings.Cut(r.worker, "-")
			kinds[kind] = true
		}
	}
	for _, point := range brief {
		r, _ := rowOf(tracks, point)
		kind, _, _ := strings.Cut(r.worker, "-")
		killed[kind] = true
	}
	if len(kinds) < 5 || !maps.Equal(killed, kinds) {
		t.Errorf("every run kills workers of the kinds %v, of %v", killed, kinds)
	}
}

// TestReleasesHaveNoPoints checks that a build without the tag does not contain package crash.
func TestReleasesHaveNoPoints(t *testing.T) {
	w := openBeside(t)
	released := filepath.Join(t.TempDir(), "kivuko")
	if err := testbed.Build(t.Context(), filepath.Join("..", ".."), released); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{w.product: true, released: false} {
		binary, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, sign := range []string{"KIVUKO_CRASH_DIR", "kivuko/crash.(*"} {
			if got := bytes.Contains(binary, []byte(sign)); got != want {
				t.Errorf("%s is in %s: %t", sign, name, got)
			}
		}
	}
}
