package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/momo/sandbox"
	"kivuko/workflows"
)

// floatRows are those with movements of money from our collection account to the payout account. Only one movement may be
// open, and each takes twenty seconds, so the rows are spread among others. Groups belong together.
func floatRows() [][]row {
	var moved int64 = floatMoved
	made := func(b floatScenario) func() scenario {
		return func() scenario {
			moved++
			one := b
			one.amount = moved
			return &one
		}
	}
	settled := &floatScenario{next: "CheckFloatMove/SettleFloatMove#1/after", amount: floatMoved}
	return [][]row{
		{{"SubmitFloatMove/*/*", "momo", made(floatScenario{})}},
		{{"CheckFloatMove/SaveFloatQuery#1/*", "momo", made(floatScenario{})}},
		{{"SubmitFloatMove/ClaimFloatMove#1/after", "momo", made(floatScenario{unsent: true})}},
		{{"SubmitFloatMove/call#1/before", "momo", made(floatScenario{unsent: true})}},
		{
			{"CheckFloatMove/SettleFloatMove#1/before", "momo", func() scenario { return settled }},
			{"CheckFloatMove/SettleFloatMove#1/after", "momo", func() scenario { return &floatScenario{of: settled} }},
		},
	}
}

// among spreads groups of rows evenly among others. Two rows of one side effect stay together: the first may open the
// object of the second too.
func among(others []row, groups [][]row) []row {
	var all []row
	placed := 0
	for i, r := range others {
		all = append(all, r)
		if before, ok := strings.CutSuffix(r.at, "/before"); ok && i+1 < len(others) && others[i+1].at == before+"/after" {
			continue
		}
		for ; placed < (i+1)*len(groups)/len(others); placed++ {
			all = append(all, groups[placed]...)
		}
	}
	return all
}

// floatScenario is the scenario of a movement from our collection account to the payout account. When the process dies
// between storing the movement and requesting it, it may not be requested again, and an officer finds that it was never
// made.
type floatScenario struct {
	unsent bool
	next   string         // another point, which the same movement reaches when the process is back
	of     *floatScenario // scenario that opened the movement; nil: this one
	amount int64          // in shillings; it identifies the movement in the operator's books, which have their own ids
	id     uuid.UUID
}

// floatMoved is the approximate amount of a trial's movement, in shillings.
const floatMoved = 1000

func (b *floatScenario) play(t *testing.T, w *harness, tr *trial, arm func()) {
	t.Helper()
	if b.of != nil { // its point is armed, and may have been reached
		b.id, b.amount = b.of.id, b.of.amount
		return
	}
	w.floatStill(t)
	if b.next != "" {
		w.arm(t, b.next, tr.worker)
	}
	arm()
	var made struct {
		ID uuid.UUID `json:"id"`
	}
	in := map[string]any{"amount": fmt.Sprint(b.amount)}
	if err := insist(t.Context(), w.operator(t), "/api/v1/auth/momo/float/moves", uuid.NewString(), in, &made); err != nil {
		t.Fatal(err)
	}
	b.id = made.ID
}

// floatStill waits until no movement of float is open.
func (w *harness) floatStill(t *testing.T) {
	t.Helper()
	eventually(t, "no float is on its way", func() error {
		var open int
		err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM float_moves WHERE status IN ('created', 'accepted', 'unknown')`).Scan(&open)
		if err == nil && open > 0 {
			err = fmt.Errorf("%d movements are open", open)
		}
		return err
	})
}

// restarted lets the movement continue. Officers settle one that was never requested.
func (b *floatScenario) restarted(t *testing.T, w *harness, _ *trial) {
	t.Helper()
	w.hasten(t, workflows.MoveFloatID(b.id))
	if !b.unsent {
		return
	}
	path := "/api/v1/auth/momo/float/moves/" + b.id.String() + "/settle"
	in := map[string]any{"outcome": "failed", "note": "the operator never heard of it"}
	const older = `UPDATE float_moves SET claimed_at = claimed_at - interval '10 minutes' WHERE id = $1`
	if _, err := w.db.ExecContext(t.Context(), older, b.id); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the movement is settled by another officer", func() error {
		return w.as(t, secondOfficer).Post(t.Context(), path, uuid.NewString(), in, nil)
	})
}

// floatSettled waits until a movement has ended.
func (w *harness) floatSettled(t *testing.T, id uuid.UUID) (status string, err error) {
	t.Helper()
	return status, await(t.Context(), recovery, func() error {
		err := w.db.QueryRowContext(t.Context(), `SELECT status FROM float_moves WHERE id = $1`, id).Scan(&status)
		if err == nil && (status == "created" || status == "accepted" || status == "unknown") {
			err = errors.New("the movement is " + status)
		}
		return err
	})
}

// judge compares what is booked with the operator's books.
func (b *floatScenario) judge(t *testing.T, w *harness, _ *trial) {
	t.Helper()
	status, err := w.floatSettled(t, b.id)
	moved := 0
	for _, e := range w.books(t).Effects {
		if e.Direction == sandbox.Float && e.Amount == b.amount {
			moved++
		}
	}
	var booked int
	read := `SELECT count(*) FROM ledger_entries WHERE key = 'float_move:' || $1`
	err = errors.Join(err, w.db.QueryRowContext(t.Context(), read, b.id).Scan(&booked))
	want := map[bool]int{false: 1}[b.unsent]
	if err != nil || moved != want || booked != want {
		t.Errorf("float was moved %d times, booked %d times, and is %s: %v", moved, booked, status, err)
	}
}
