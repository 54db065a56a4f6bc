package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Limits of requests to nodes.
const (
	chainTimeout  = 4 * time.Second // for one balance
	maxChainReads = 16              // at a time, of all callers; above it a balance is "unavailable"
)

// offered refuses an asset that this deployment does not offer on a network.
func (s *server) offered(n exchange.Network, a money.Asset) error {
	if s.Refuses == nil {
		return nil
	}
	if why := s.Refuses(n, a); why != "" {
		return exchange.Invalid(exchange.FieldError{
			Pointer: "/asset", Code: "unsupported_asset", Message: "can't be " + string(a) + " on " + string(n) + ": " + why,
		})
	}
	return nil
}

// wireBlock is the block at which a balance was read.
type wireBlock struct {
	Number uint64     `json:"number"`
	ID     string     `json:"id"`
	Time   *timestamp `json:"time"`
}

func blockWire(b exchange.ChainBlock) *wireBlock {
	return &wireBlock{b.Number, b.ID, optTime(b.Time)}
}

// chainWire is a balance as the chain reports it. Amount and block are null unless the status is read.
type chainWire struct {
	Status string     `json:"status"` // one of the chain… constants
	Detail *string    `json:"detail"`
	Amount *string    `json:"amount"`
	Block  *wireBlock `json:"block"`
}

// The outcomes of reading a balance from a chain.
const (
	chainRead        = "read"
	chainUnavailable = "unavailable" // no node answers now; the ledger's balances are still shown
	chainUnsupported = "unsupported" // the network is off here, or does not have the asset
)

// walletBalance is one asset of a wallet: what we owe its owner, what the ledger counts at its address,
// and what the chain reports there.
type walletBalance struct {
	balanceWire
	Custody string    `json:"custody"`
	Chain   chainWire `json:"chain"`
}

// walletBalances returns the balances of the native coin and both stablecoins. The balances of the chain are read
// concurrently. They may be behind the ledger, because they count only final blocks.
func (s *server) walletBalances(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	w, err := s.Store.Wallet(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	owed, err := s.Store.WalletBalances(c.ctx, id)
	if err != nil {
		return err
	}
	custody, err := s.Store.WalletCustody(c.ctx, id)
	if err != nil {
		return err
	}
	all := make([]walletBalance, len(owed))
	var wg sync.WaitGroup
	for i, a := range owed {
		all[i] = walletBalance{balanceWire: accountBalance(a), Custody: custody[i].Posted.String()}
		wg.Go(func() { all[i].Chain = s.onChain(c.ctx, w, a.Ref.Asset) })
	}
	wg.Wait()
	return c.json(http.StatusOK, map[string]any{"wallet_id": w.ID, "network": w.Network, "balances": all})
}

// onChain reads a balance from the wallet's network. A failure there is a status, not an error of the request.
func (s *server) onChain(ctx context.Context, w exchange.Wallet, a money.Asset) chainWire {
	ask := s.Balances[w.Network]
	if ask == nil {
		return chainWire{Status: chainUnsupported, Detail: optText("the network is off here")}
	}
	if s.Refuses != nil {
		if why := s.Refuses(w.Network, a); why != "" {
			return chainWire{Status: chainUnsupported, Detail: optText(why)}
		}
	}
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
	default:
		return chainWire{Status: chainUnavailable, Detail: optText("too many balances are being read at the moment")}
	}
	ctx, cancel := context.WithTimeout(ctx, chainTimeout)
	defer cancel()
	b, err := ask(ctx, w.Address, a)
	if err != nil {
		s.log.Warn("a balance could not be read", "network", w.Network, "wallet", w.ID, "asset", a, "cause", err)
		return chainWire{Status: chainUnavailable, Detail: optText("no node of the network answers")}
	}
	amount := b.Amount.String()
	return chainWire{Status: chainRead, Amount: &amount, Block: blockWire(b.Block)}
}
