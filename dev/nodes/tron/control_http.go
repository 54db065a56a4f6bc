package tron

import (
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"time"

	"kivuko/dev/nodes/devnode"
)

// MarshalText puts ids into JSON as hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

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
//	POST /token/block {"token": "USDT"|"USDC", "address", "blocked": bool}
//
// A refused request is answered with status 400 and {"error": "..."}.
func (n *Node) controlHandler() http.Handler {
	mux := devnode.Switches(n, n.SetBlockInterval)
	mux.HandleFunc("GET /transactions", devnode.ListFor(ParseAddress, infallible(n.Transactions)))
	mux.HandleFunc("GET /movements", devnode.ListFor(ParseAddress, infallible(n.Movements)))
	mux.HandleFunc("POST /fund", devnode.Handle(n.controlFund))
	mux.HandleFunc("POST /produce", devnode.Handle(func(r struct{ Blocks int }) (any, error) { return n.ProduceBlocks(r.Blocks) }))
	mux.HandleFunc("POST /time", devnode.Handle(func(r struct {
		AdvanceMS int64 `json:"advance_ms"`
	},
	) (any, error) {
		return devnode.Done(n, n.AdvanceTime(time.Duration(r.AdvanceMS)*time.Millisecond))
	}))
	mux.HandleFunc("POST /faults", devnode.Handle(func(r struct {
		Faults
		AnswerDelayMS int64 `json:"answer_delay_ms"`
	},
	) (any, error) {
		r.AnswerDelay += time.Duration(r.AnswerDelayMS) * time.Millisecond
		return devnode.Done(n, n.SetFaults(r.Faults))
	}))
	mux.HandleFunc("POST /energy", devnode.Handle(func(r struct {
		Contract string
		Factor   int64
	},
	) (any, error) {
		a, err := ParseAddress(r.Contract)
		if err != nil {
			return nil, fmt.Errorf("contract: %w", err)
		}
		return devnode.Done(n, n.SetEnergyFactor(a, r.Factor))
	}))
	mux.HandleFunc("POST /token/block", devnode.Handle(n.controlBlock))
	return mux
}

// controlBlock has a token's issuer block an address, or not.
func (n *Node) controlBlock(r struct {
	Token, Address string
	Blocked        bool
},
) (any, error) {
	token, named := map[string]string{"USDT": USDTAddress, "USDC": USDCAddress}[r.Token]
	if !named {
		return nil, errors.New("token: want USDT or USDC")
	}
	a, err := ParseAddress(r.Address)
	if err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	return devnode.Done(n, n.SetBlocked(mustAddress(token), a, r.Blocked))
}

// infallible makes a list that can't fail one that may.
func infallible[T any](list func(Address) T) func(Address) (T, error) {
	return func(a Address) (T, error) { return list(a), nil }
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
