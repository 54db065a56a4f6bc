package soak

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/exchange"
	"kivuko/momo/sandbox"
)

// nodeProcesses are the networks' nodes.
var nodeProcesses = map[exchange.Network]string{
	exchange.Tron: stack.ProcessTron, exchange.Ethereum: stack.ProcessEthereum, exchange.Solana: stack.ProcessSolana,
}

// away is how long a killed process stays down.
const away = 300 * time.Millisecond

// strike causes the fault of a step.
func (w *harness) strike(ctx context.Context, s Step) error {
	n := w.nodes[s.Network]
	faults := map[Fault]map[string]any{
		faultDrop: {"drop_next": s.Count}, faultLose: {"lose_next": s.Count}, faultBusy: {"busy_next": s.Count}, faultDelay: {"answer_delay_ms": 1000 * s.Count},
	}
	switch s.Fault {
	case faultDrop, faultLose, faultBusy, faultDelay:
		return n.Call(ctx, http.MethodPost, "/faults", faults[s.Fault], nil)
	case faultReorg, faultForget:
		return n.Call(ctx, http.MethodPost, "/reorganise", map[string]any{"blocks": s.Count, "drop": s.Fault == faultForget}, nil)
	case faultNode:
		return w.kill(ctx, nodeProcesses[n.Network])
	case faultChain:
		return w.kill(ctx, stack.ProcessWorker("chain-"+string(n.Network)))
	case faultSigner:
		return w.kill(ctx, stack.ProcessWorker("signer-"+string(n.Network)))
	case faultMomo, faultFlows, faultAPI, faultFlow:
		return w.kill(ctx, processes[s.Fault])
	case faultRows:
		return w.databaseDies(ctx)
	case faultMute:
		return w.fault(ctx, "maintenance", "", "", s.Count)
	case faultPages:
		return w.fault(ctx, "html_502", sandbox.OpQuery, "", s.Count)
	case faultAsk:
		return w.fault(ctx, "status_silent", sandbox.OpStatus, "", s.Count)
	case faultTokens:
		return w.operator(ctx, http.MethodPost, "/control/revoke", nil, nil)
	case faultDrained, faultFrozen, faultBooks: // these last, see lasting
	}
	return fmt.Errorf("no such fault: %q", s.Fault)
}

// kill ends a process like a crash and restarts it after away.
func (w *harness) kill(ctx context.Context, name string) error {
	c := w.stack.Supervisor.Child(name)
	if c == nil {
		return fmt.Errorf("there is no process %q", name)
	}
	if err := c.Kill(); err != nil {
		return err
	}
	if err := pause(ctx, away); err != nil {
		return err
	}
	return c.Restart(ctx)
}

// databaseDies kills the server of Kivuko's and Temporal's databases, without a checkpoint, and waits until it is back.
func (w *harness) databaseDies(ctx context.Context) error {
	before := w.stack.Postgres.PID()
	if err := syscall.Kill(before, syscall.SIGQUIT); err != nil {
		return err
	}
	return until(ctx, time.Minute, func() error {
		if w.stack.Postgres.PID() == before {
			return errors.New("PostgreSQL is down")
		}
		return w.db.PingContext(ctx)
	})
}

// calm ends all troubles, and releases the operator's late results.
func (w *harness) calm(ctx context.Context) error {
	for _, n := range w.nodes {
		if err := until(ctx, time.Minute, func() error { return heal(ctx, n) }); err != nil {
			return err
		}
	}
	if w.Only == Swap {
		if err := w.thaw(ctx); err != nil {
			return err
		}
	}
	return errors.Join(
		w.operator(ctx, http.MethodPost, "/control/reset", nil, nil),
		w.operator(ctx, http.MethodPost, "/control/release", nil, nil))
}

func heal(ctx context.Context, n demo.Node) error {
	return n.Call(ctx, http.MethodPost, "/reset", nil, nil)
}

// until repeats a call until it succeeds.
func until(ctx context.Context, limit time.Duration, try func() error) error {
	for deadline := time.Now().Add(limit); ; {
		err := try()
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}
