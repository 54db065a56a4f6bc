package solana

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/devnode"
)

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
	mux := devnode.Switches(n, n.SetSlotInterval)
	mux.HandleFunc("GET /transactions", devnode.ListFor(address, func(a solana.PublicKey) (any, error) { return orEmpty(n.Transactions(a)), nil }))
	mux.HandleFunc("GET /movements", devnode.ListFor(address, func(a solana.PublicKey) (any, error) { return orEmpty(n.Movements(a)), nil }))
	mux.HandleFunc("POST /fund", devnode.Handle(n.controlFund))
	mux.HandleFunc("POST /freeze", devnode.Handle(n.controlFreeze))
	mux.HandleFunc("POST /mint", devnode.Handle(n.controlMint))
	mux.HandleFunc("POST /produce", devnode.Handle(func(r struct{ Blocks int }) (any, error) { return n.ProduceBlocks(r.Blocks) }))
	mux.HandleFunc("POST /skip", devnode.Handle(func(r struct{ Slots int }) (any, error) { return devnode.Done(n, n.SkipSlots(r.Slots)) }))
	mux.HandleFunc("POST /finality", devnode.Handle(func(r struct{ Confirm, Final int }) (any, error) {
		return devnode.Done(n, n.SetFinality(r.Confirm, r.Final))
	}))
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
	return mux
}

func address(text string) (solana.PublicKey, error) {
	key, err := solana.PublicKeyFromBase58(text)
	if err != nil {
		return key, fmt.Errorf("address: %w", err)
	}
	return key, nil
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
	to, err := address(r.Address)
	if err != nil {
		return nil, err
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
	owner, err := address(r.Address)
	if err != nil {
		return nil, err
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
