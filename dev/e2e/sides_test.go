package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// reads are the methods through which activities ask the world and change nothing.
var reads = []string{
	"Attempt", "AttemptAt", "Balance", "BalanceCallbacks", "BankPayout", "Breaker", "CallbackSilence", "Callbacks",
	"Capabilities", "ChainDeposit", "ChainPayment", "ColdDrafts", "CompareReadings", "CryptoIsHere", "DeclaredUnpaid",
	"Denied", "DepositCursor", "DraftSpent", "DueWakeups", "FloatCallbacks", "FloatMove", "FloatState", "Head",
	"KeptUnmoved", "LiveAttempt", "LiveAttempts", "Network", "NextWebhook", "NonceLane", "OffRampDeposits",
	"OpenDifferences", "OpenFloatMoves", "OpenQuarantine", "OpenWebhookSecret", "OrderByID", "OrderPayout",
	"PaidTwiceBy", "ParseBalance", "ParseCallback", "Payouts", "Pull", "QueryFloat", "Rates", "ReceiptNeedsSecond",
	"ReceiptsFor", "ReconciledNetworks", "Reconciliation", "Refund", "Screen", "ScreenTerms", "SigningHold",
	"SigningTerms", "StaleLeases", "StrayPayments", "Supports", "TransferByID", "Transfers", "UnlistedPayments",
	"WaitingForFloat", "WalletsAfter", "WebhooksToWake",
}

// unpointed are those that change something and have no points.
var unpointed = []string{
	// They keep the records of rates, comparisons, reports, looks and waits. No money moves with them.
	"AwaitDeposits", "BeginReconciliation", "EndDepositWait", "EnterSourcedRate", "FinishReconciliation",
	"RecordComparisons", "RecordLook", "RecordWoken", "WaitForWatch", "WatchAlive", "WriteReserves",
	// It keeps a line of the operator's list that is no payment, once, for a person to look at.
	"QuarantineLine",
	// They clear and seal what is past.
	"Prune", "SealAudit",
	// It is done once in the life of a database, before there is anything to lose.
	"StartDeposits",
	// It writes down that a person confirmed who is paid; what pays has points of its own.
	"ConfirmPayee",
	// It writes down what the operator says of our credential, which only ever stops payouts.
	"NoteCredential",
	// They write down what the operator says that it holds and took. No money moves with them.
	"FixCharges", "RecordFloatReport",
	// It tells who waits for float to look at once. A sale that is not told looks a while later; a refund is parked anyway.
	"WakeForFloat",
}

// TestEverySideEffectHasAPoint holds that whatever activities do to the world has points around it, or is named
// here with the reason why not. Whoever adds a side effect has to decide.
func TestEverySideEffectHasAPoint(t *testing.T) {
	pointed := map[string]bool{}
	inspect(t, "crash_*.go", func(n ast.Node) {
		if f, ok := n.(*ast.FuncDecl); ok && f.Recv != nil {
			pointed[f.Name.Name] = true
		}
	})
	known := slices.Concat(reads, unpointed)
	for _, name := range doors(t) {
		switch listed := slices.Contains(known, name); {
		case !pointed[name] && !listed:
			t.Errorf("activities call %s, around which there is no point", name)
		case pointed[name] && listed:
			t.Errorf("%s has points and is excused from them", name)
		}
	}
}

// doors are the methods of all interfaces that activities declare.
func doors(t *testing.T) []string {
	t.Helper()
	all := map[string]bool{}
	inspect(t, filepath.Join("activities", "*.go"), func(n ast.Node) {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return
		}
		if door, ok := spec.Type.(*ast.InterfaceType); ok {
			for _, m := range door.Methods.List {
				for _, name := range m.Names {
					all[name.Name] = true
				}
			}
		}
	})
	const atLeast = 60 // so that a change to how they are declared can't make this empty
	if len(all) < atLeast {
		t.Fatalf("only %d methods were found", len(all))
	}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// inspect visits the nodes of the product's files, except tests.
func inspect(t *testing.T, pattern string, visit func(ast.Node)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			visit(n)
			return true
		})
	}
}
