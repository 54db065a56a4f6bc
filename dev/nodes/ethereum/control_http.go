package ethereum

import (
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"kivuko/dev/nodes/devnode"
)

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
	mux := devnode.Switches(n, n.SetBlockInterval)
	mux.HandleFunc("GET /transactions", devnode.ListFor(address, n.Transactions))
	mux.HandleFunc("GET /movements", devnode.ListFor(address, n.Movements))
	mux.HandleFunc("POST /fund", devnode.Handle(n.controlFund))
	mux.HandleFunc("POST /mine", devnode.Handle(func(r struct{ Blocks int }) (any, error) { return n.MineBlocks(r.Blocks) }))
	mux.HandleFunc("POST /finalise", devnode.Handle(func(struct{}) (any, error) { return n.Finalise() }))
	mux.HandleFunc("POST /forget", devnode.Handle(func(struct{}) (any, error) { n.Forget(); return devnode.Done(n, nil) }))
	mux.HandleFunc("POST /faults", devnode.Handle(func(r struct {
		Faults
		AnswerDelayMS int64 `json:"answer_delay_ms"`
	},
	) (any, error) {
		r.AnswerDelay += time.Duration(r.AnswerDelayMS) * time.Millisecond
		return devnode.Done(n, n.SetFaults(r.Faults))
	}))
	mux.HandleFunc("POST /basefee", devnode.Handle(func(r struct{ Wei string }) (any, error) {
		wei, err := whole("wei", r.Wei)
		if err != nil {
			return nil, err
		}
		return devnode.Done(n, n.SetBaseFee(wei))
	}))
	n.tokenControls(mux)
	return mux
}

// tokenControls are the issuer's switches.
func (n *Node) tokenControls(mux *http.ServeMux) {
	mux.HandleFunc("POST /token/block", devnode.Handle(func(r struct {
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
		return devnode.Done(n, n.SetBlocked(token, a, r.Blocked))
	}))
	mux.HandleFunc("POST /token/pause", devnode.Handle(func(r struct {
		Token  string
		Paused bool
	},
	) (any, error) {
		token, err := tokenNamed(r.Token)
		if err != nil {
			return nil, err
		}
		return devnode.Done(n, n.SetTokenPaused(token, r.Paused))
	}))
	mux.HandleFunc("POST /token/fee", devnode.Handle(func(r struct {
		BasisPoints uint64 `json:"basis_points"`
		AtMost      uint64 `json:"at_most"`
	},
	) (any, error) {
		return devnode.Done(n, n.SetTokenFee(r.BasisPoints, r.AtMost))
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

type fundRequest struct {
	Address string
	Token   string
	Amount  string
	Mine    bool
}

// controlFund sends ether or tokens and, when asked, mines them at once, which fails where the recipient refuses them.
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
		block, err := n.MineBlock()
		if err != nil {
			return nil, err
		}
		for _, r := range n.eth.BlockChain().GetReceiptsByHash(block.ID) {
			if r.TxHash == id && r.Status != types.ReceiptStatusSuccessful {
				return nil, fmt.Errorf("address: %s refuses the payment (transaction %s failed)", to, id)
			}
		}
	}
	return object{"transaction": id}, nil
}
