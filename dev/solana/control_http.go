package solana

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/gagliardetto/solana-go"
)

// maxControlBytes bounds a request to the control endpoint.
const maxControlBytes = 1 << 16

// controlHandler serves the fault switches:
//
//	GET  /state                      Summary
//	GET  /transactions?address=...   Transactions
//	GET  /movements?address=...      Movements
//	POST /fund       {"address", "token": "SOL"|"USDT"|"USDC"|mint, "amount": "units", "mine": bool}
//	POST /freeze     {"address", "token": "USDT"|"USDC"|mint, "frozen": bool, "mine": bool}
//	POST /mint       {"decimals", "token2022": bool, "fee_basis_points", "mine": bool}
//	POST /produce    {"blocks": n}
//	POST /skip       {"slots": n}
//	POST /interval   {"milliseconds": n}
//	POST /finality   {"confirm": n, "final": n} blocks that stand on a confirmed, on a final one
//	POST /pause, /resume
//	POST /time       {"advance_ms": n}
//	POST /faults     Faults, replacing all of them; delays as "answer_delay_ms"
//	POST /reset      all faults off
//	POST /reorganise {"blocks": n, "drop": bool}
//
// A refused request is answered with status 400 and {"error": "..."}.
func (n *Node) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, n.Summary()) })
	mux.HandleFunc("GET /transactions", listFor(func(a solana.PublicKey) any { return orEmpty(n.Transactions(a)) }))
	mux.HandleFunc("GET /movements", listFor(func(a solana.PublicKey) any { return orEmpty(n.Movements(a)) }))
	mux.HandleFunc("POST /fund", control(n.controlFund))
	mux.HandleFunc("POST /freeze", control(n.controlFreeze))
	mux.HandleFunc("POST /mint", control(n.controlMint))
	mux.HandleFunc("POST /produce", control(func(r struct{ Blocks int }) (any, error) { return n.ProduceBlocks(r.Blocks) }))
	mux.HandleFunc("POST /skip", control(func(r struct{ Slots int }) (any, error) { return n.done(n.SkipSlots(r.Slots)) }))
	mux.HandleFunc("POST /interval", control(func(r struct{ Milliseconds int64 }) (any, error) {
		return n.done(n.SetSlotInterval(time.Duration(r.Milliseconds) * time.Millisecond))
	}))
	mux.HandleFunc("POST /finality", control(func(r struct{ Confirm, Final int }) (any, error) {
		return n.done(n.SetFinality(r.Confirm, r.Final))
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
	return mux
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set(headerContentType, contentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the reader went away
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

func listFor(list func(solana.PublicKey) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, err := solana.PublicKeyFromBase58(r.URL.Query().Get("address"))
		if err != nil {
			writeJSON(w, http.StatusBadRequest, object{"error": fmt.Sprintf("address: %v", err)})
			return
		}
		writeJSON(w, http.StatusOK, list(key))
	}
}

// tokenNamed is a mint by the name of its token or by its address.
func tokenNamed(name string) (solana.PublicKey, error) {
	switch name {
	case "USDT":
		return mustKey(USDTAddress), nil
	case "USDC":
		return mustKey(USDCAddress), nil
	}
	key, err := solana.PublicKeyFromBase58(name)
	if err != nil {
		return key, errors.New("token: want USDT, USDC, a mint, or with /fund SOL")
	}
	return key, nil
}

type fundRequest struct {
	Address string
	Token   string
	Amount  string
	Mine    bool
}

// controlFund sends SOL or tokens and, when asked, makes the block at once.
func (n *Node) controlFund(r fundRequest) (any, error) {
	to, err := solana.PublicKeyFromBase58(r.Address)
	if err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	amount, err := strconv.ParseUint(r.Amount, 10, 64)
	if err != nil {
		return nil, errors.New("amount: want a whole number of lamports or token units, as text")
	}
	if r.Token == "SOL" {
		signature, err := n.FundSOL(to, amount)
		return n.mined(signature, r.Mine, nil, err)
	}
	mint, err := tokenNamed(r.Token)
	if err != nil {
		return nil, err
	}
	signature, err := n.FundToken(mint, to, amount)
	return n.mined(signature, r.Mine, nil, err)
}

type freezeRequest struct {
	Address string
	Token   string
	Frozen  bool
	Mine    bool
}

func (n *Node) controlFreeze(r freezeRequest) (any, error) {
	owner, err := solana.PublicKeyFromBase58(r.Address)
	if err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	mint, err := tokenNamed(r.Token)
	if err != nil {
		return nil, err
	}
	signature, err := n.Freeze(mint, owner, r.Frozen)
	return n.mined(signature, r.Mine, nil, err)
}

type mintRequest struct {
	Decimals       uint8
	Token2022      bool
	FeeBasisPoints uint16 `json:"fee_basis_points"`
	Mine           bool
}

func (n *Node) controlMint(r mintRequest) (any, error) {
	mint, signature, err := n.CreateMint(NewMint{Decimals: r.Decimals, Token2022: r.Token2022, FeeBasisPoints: r.FeeBasisPoints})
	return n.mined(signature, r.Mine, object{"mint": mint}, err)
}

// mined answers with a transaction of the node's own, in a block if asked for.
func (n *Node) mined(signature solana.Signature, mine bool, more object, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if mine {
		if _, err := n.ProduceBlock(); err != nil {
			return nil, err
		}
	}
	out := object{"transaction": signature}
	for name, value := range more {
		out[name] = value
	}
	return out, nil
}
