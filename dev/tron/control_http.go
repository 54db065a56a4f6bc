package tron

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"time"
)

// MarshalText puts ids into JSON as hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// maxControlBytes bounds a request to the control endpoint.
const maxControlBytes = 1 << 16

// controlHandler serves the fault switches:
//
//	GET  /state                      Summary
//	GET  /transactions?address=T...  Transactions
//	GET  /movements?address=T...     Movements
//	POST /fund       {"address", "token": "TRX"|"USDT"|"USDC", "amount": "units", "mine": bool}
//	POST /produce    {"blocks": n}
//	POST /interval   {"milliseconds": n}
//	POST /pause, /resume
//	POST /time       {"advance_ms": n}
//	POST /faults     Faults, replacing all of them; delays as "answer_delay_ms"
//	POST /reset      all faults off
//	POST /reorganise {"blocks": n, "drop": bool}
//	POST /energy     {"contract", "factor": ten-thousandths above 1.0}
//
// A refused request is answered with status 400 and {"error": "..."}.
func (n *Node) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, n.Summary()) })
	mux.HandleFunc("GET /transactions", n.listFor(func(a Address) any { return n.Transactions(a) }))
	mux.HandleFunc("GET /movements", n.listFor(func(a Address) any { return n.Movements(a) }))
	mux.HandleFunc("POST /fund", control(n.controlFund))
	mux.HandleFunc("POST /produce", control(func(r struct{ Blocks int }) (any, error) { return n.ProduceBlocks(r.Blocks) }))
	mux.HandleFunc("POST /interval", control(func(r struct{ Milliseconds int64 }) (any, error) {
		return n.done(n.SetBlockInterval(time.Duration(r.Milliseconds) * time.Millisecond))
	}))
	mux.HandleFunc("POST /pause", control(func(struct{}) (any, error) { n.Pause(); return n.done(nil) }))
	mux.HandleFunc("POST /resume", control(func(struct{}) (any, error) { n.Resume(); return n.done(nil) }))
	mux.HandleFunc("POST /reset", control(func(struct{}) (any, error) { n.ResetFaults(); return n.done(nil) }))
	mux.HandleFunc("POST /time", control(func(r struct {
		AdvanceMS int64 `json:"advance_ms"`
	},
	) (any, error) {
		return n.done(n.AdvanceTime(time.Duration(r.AdvanceMS) * time.Millisecond))
	}))
	mux.HandleFunc("POST /faults", control(func(r struct {
		Faults
		AnswerDelayMS int64 `json:"answer_delay_ms"`
	},
	) (any, error) {
		r.AnswerDelay += time.Duration(r.AnswerDelayMS) * time.Millisecond
		return n.done(n.SetFaults(r.Faults))
	}))
	mux.HandleFunc("POST /reorganise", control(func(r struct {
		Blocks int
		Drop   bool
	},
	) (any, error) {
		return n.done(n.Reorganise(r.Blocks, r.Drop))
	}))
	mux.HandleFunc("POST /energy", control(func(r struct {
		Contract string
		Factor   int64
	},
	) (any, error) {
		a, err := ParseAddress(r.Contract)
		if err != nil {
			return nil, fmt.Errorf("contract: %w", err)
		}
		return n.done(n.SetEnergyFactor(a, r.Factor))
	}))
	return mux
}

// done answers a change with the state it led to.
func (n *Node) done(err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return n.Summary(), nil
}

// control decodes a request strictly, calls f and encodes the answer.
func control[T any](f func(T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request T
		decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxControlBytes))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&request)
		if errors.Is(err, io.EOF) { // an empty body is an empty request
			err = nil
		}
		if err != nil {
			writeJSON(w, http.StatusBadRequest, object{"error": fmt.Sprintf("parse the request: %v", err)})
			return
		}
		out, err := f(request)
		if err != nil {
			writeJSON(w, http.StatusBadRequest, object{"error": err.Error()})
			return
		}
		writeJSON(w, http.StatusOK, out)
	}
}

func (n *Node) listFor(list func(Address) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := ParseAddress(r.URL.Query().Get("address"))
		if err != nil {
			writeJSON(w, http.StatusBadRequest, object{"error": err.Error()})
			return
		}
		writeJSON(w, http.StatusOK, list(a))
	}
}

type fundRequest struct {
	Address string
	Token   string
	Amount  string
	Mine    bool
}

// controlFund sends TRX or tokens and, when asked, mines them at once.
func (n *Node) controlFund(r fundRequest) (any, error) {
	to, err := ParseAddress(r.Address)
	if err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	amount, ok := new(big.Int).SetString(r.Amount, 10)
	if !ok {
		return nil, errors.New("amount: want a whole number of sun or token units, as text")
	}
	var id Hash
	switch r.Token {
	case "TRX":
		if !amount.IsInt64() {
			return nil, errors.New("amount: does not fit 64 bits")
		}
		id, err = n.FundTRX(to, amount.Int64())
	case "USDT":
		id, err = n.FundToken(mustAddress(USDTAddress), to, amount)
	case "USDC":
		id, err = n.FundToken(mustAddress(USDCAddress), to, amount)
	default:
		return nil, errors.New("token: want TRX, USDT or USDC")
	}
	if err != nil {
		return nil, err
	}
	if r.Mine {
		if _, err := n.ProduceBlock(); err != nil {
			return nil, err
		}
	}
	return object{"transaction": id}, nil
}
