package ethereum

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// maxControlBytes bounds a request to the control endpoint.
const maxControlBytes = 1 << 16

// object is a JSON object of few fields.
type object map[string]any

// controlHandler serves the fault switches:
//
//	GET  /state                       Summary
//	GET  /transactions?address=0x...  Transactions
//	GET  /movements?address=0x...     Movements
//	POST /fund       {"address", "token": "ETH"|"USDT"|"USDC", "amount": "units", "mine": bool}
//	POST /mine       {"blocks": n}
//	POST /finalise   as many blocks as make the newest one final
//	POST /interval   {"milliseconds": n}
//	POST /pause, /resume
//	POST /faults     Faults, replacing all of them; delays as "answer_delay_ms"
//	POST /reset      all faults off
//	POST /forget     empty the pool
//	POST /reorganise {"blocks": n, "drop": bool}
//	POST /basefee    {"wei": "units"}
//	POST /token/block {"token", "address", "blocked": bool}
//	POST /token/pause {"token", "paused": bool}
//	POST /token/fee   {"basis_points": n, "at_most": whole USDT}
//
// A refused request is answered with status 400 and {"error": "..."}.
func (n *Node) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, n.Summary()) })
	mux.HandleFunc("GET /transactions", n.listFor(func(a common.Address) (any, error) { return n.Transactions(a) }))
	mux.HandleFunc("GET /movements", n.listFor(func(a common.Address) (any, error) { return n.Movements(a) }))
	mux.HandleFunc("POST /fund", control(n.controlFund))
	mux.HandleFunc("POST /mine", control(func(r struct{ Blocks int }) (any, error) { return n.MineBlocks(r.Blocks) }))
	mux.HandleFunc("POST /finalise", control(func(struct{}) (any, error) { return n.Finalise() }))
	mux.HandleFunc("POST /interval", control(func(r struct{ Milliseconds int64 }) (any, error) {
		return n.done(n.SetBlockInterval(time.Duration(r.Milliseconds) * time.Millisecond))
	}))
	mux.HandleFunc("POST /pause", control(func(struct{}) (any, error) { n.Pause(); return n.done(nil) }))
	mux.HandleFunc("POST /resume", control(func(struct{}) (any, error) { n.Resume(); return n.done(nil) }))
	mux.HandleFunc("POST /reset", control(func(struct{}) (any, error) { n.ResetFaults(); return n.done(nil) }))
	mux.HandleFunc("POST /forget", control(func(struct{}) (any, error) { n.Forget(); return n.done(nil) }))
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
	mux.HandleFunc("POST /basefee", control(func(r struct{ Wei string }) (any, error) {
		wei, err := whole("wei", r.Wei)
		if err != nil {
			return nil, err
		}
		return n.done(n.SetBaseFee(wei))
	}))
	n.tokenControls(mux)
	return mux
}

// tokenControls are the issuer's switches.
func (n *Node) tokenControls(mux *http.ServeMux) {
	mux.HandleFunc("POST /token/block", control(func(r struct {
		Token, Address string
		Blocked        bool
	},
	) (any, error) {
		token, err := tokenNamed(r.Token)
		if err != nil {
			return nil, err
		}
		a, err := address(r.Address)
		if err != nil {
			return nil, err
		}
		return n.done(n.SetBlocked(token, a, r.Blocked))
	}))
	mux.HandleFunc("POST /token/pause", control(func(r struct {
		Token  string
		Paused bool
	},
	) (any, error) {
		token, err := tokenNamed(r.Token)
		if err != nil {
			return nil, err
		}
		return n.done(n.SetTokenPaused(token, r.Paused))
	}))
	mux.HandleFunc("POST /token/fee", control(func(r struct {
		BasisPoints uint64 `json:"basis_points"`
		AtMost      uint64 `json:"at_most"`
	},
	) (any, error) {
		return n.done(n.SetTokenFee(r.BasisPoints, r.AtMost))
	}))
}

func tokenNamed(name string) (common.Address, error) {
	for a, token := range tokens() {
		if token == name {
			return a, nil
		}
	}
	return common.Address{}, errors.New("token: want USDT or USDC")
}

func address(text string) (common.Address, error) {
	if !common.IsHexAddress(text) {
		return common.Address{}, errors.New("address: want 0x and 40 hexadecimal digits")
	}
	return common.HexToAddress(text), nil
}

// maxDigits bounds a number in a request.
const maxDigits = 80

func whole(field, text string) (*big.Int, error) {
	v, ok := new(big.Int).SetString(text, 10)
	if len(text) > maxDigits || !ok {
		return nil, fmt.Errorf("%s: want a whole number of the smallest units, as text", field)
	}
	return v, nil
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

func (n *Node) listFor(list func(common.Address) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := address(r.URL.Query().Get("address"))
		if err != nil {
			writeJSON(w, http.StatusBadRequest, object{"error": err.Error()})
			return
		}
		out, err := list(a)
		if err != nil {
			writeJSON(w, http.StatusInternalServerError, object{"error": err.Error()})
			return
		}
		writeJSON(w, http.StatusOK, out)
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client went away
}

type fundRequest struct {
	Address string
	Token   string
	Amount  string
	Mine    bool
}

// controlFund sends ether or tokens and, when asked, mines them at once.
func (n *Node) controlFund(r fundRequest) (any, error) {
	to, err := address(r.Address)
	if err != nil {
		return nil, err
	}
	amount, err := whole("amount", r.Amount)
	if err != nil {
		return nil, err
	}
	var id common.Hash
	if r.Token == "ETH" {
		id, err = n.Fund(to, amount)
	} else {
		var token common.Address
		if token, err = tokenNamed(r.Token); err != nil {
			return nil, errors.New("token: want ETH, USDT or USDC")
		}
		id, err = n.FundToken(token, to, amount)
	}
	if err != nil {
		return nil, err
	}
	if r.Mine {
		if _, err := n.MineBlock(); err != nil {
			return nil, err
		}
	}
	return object{"transaction": id}, nil
}
