package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// However many callbacks an attempt's address receives, the first and the last ones are read.
func TestCallbacksKeepBothEnds(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	a := storetest.Attempt(t, s, m.Order(t, s, "10"))
	storetest.Exec(t, s, `INSERT INTO momo_callbacks (id, attempt_id, kind, remote_ip, off_range, body, received_at)
		SELECT gen_random_uuid(), $1, 'result', '192.0.2.1', false, convert_to(n::text, 'UTF8'), now() - make_interval(secs => 1000 - n)
		FROM generate_series(1, 300) n`, a.ID)
	all, err := s.Callbacks(ctx, a.ID)
	if err != nil || len(all) != 200 {
		t.Fatalf("%d callbacks, %v", len(all), err)
	}
	for i, want := range map[int]string{0: "1", 99: "100", 100: "201", 199: "300"} {
		if string(all[i].Body) != want {
			t.Errorf("callback %d is %q, want %q", i, all[i].Body, want)
		}
	}
	if err := s.SaveCallback(ctx, exchange.MomoCallback{
		ID: uuid.New(), AttemptID: a.ID, Standing: true, Kind: exchange.CallbackResult, RemoteIP: "192.0.2.1", ReceivedAt: time.Now(),
	}); err == nil {
		t.Error("a notice of an attempt is stored as one of none")
	}
}
