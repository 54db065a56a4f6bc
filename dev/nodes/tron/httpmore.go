package tron

import (
	"context"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
)

// The calls whose request and answer are the messages of the gRPC service, written as JSON.

// builders make a transaction out of its contract.
var builders = map[string]func(*httpCall) (any, error){
	"createaccount":          building((*walletServer).CreateAccount2),
	"freezebalancev2":        building((*walletServer).FreezeBalanceV2),
	"unfreezebalancev2":      building((*walletServer).UnfreezeBalanceV2),
	"withdrawexpireunfreeze": building((*walletServer).WithdrawExpireUnfreeze),
	"cancelallunfreezev2":    building((*walletServer).CancelAllUnfreezeV2),
	"delegateresource":       building((*walletServer).DelegateResource),
	"undelegateresource":     building((*walletServer).UnDelegateResource),
}

// readers answer with a message.
var readers = map[string]func(*httpCall) (any, error){
	"getaccountnet":                      answering((*walletServer).GetAccountNet),
	"getavailableunfreezecount":          answering((*walletServer).GetAvailableUnfreezeCount),
	"getcanwithdrawunfreezeamount":       answering((*walletServer).GetCanWithdrawUnfreezeAmount),
	"getcandelegatedmaxsize":             answering((*walletServer).GetCanDelegatedMaxSize),
	"getdelegatedresourcev2":             answering((*walletServer).GetDelegatedResourceV2),
	"getdelegatedresourceaccountindexv2": (*httpCall).delegationIndex,
	"getenergyprices":                    answering((*walletServer).GetEnergyPrices),
	"getbandwidthprices":                 answering((*walletServer).GetBandwidthPrices),
	"getmemofee":                         answering((*walletServer).GetMemoFee),
	"listwitnesses":                      answering((*walletServer).ListWitnesses),
	"listnodes":                          answering((*walletServer).ListNodes),
	"gettransactionlistfrompending":      answering((*walletServer).GetTransactionListFromPending),
	"gettransactionfrompending":          (*httpCall).transactionFromPending,
	"getpendingsize":                     (*httpCall).pendingSize,
	"gettransactioncountbyblocknum":      (*httpCall).transactionCount,
	"validateaddress":                    (*httpCall).validateAddress,
}

// solidReaders are those readers that are also under /walletsolidity. They show the newest state there too: what an account
// may do with its stake is asked before a transaction is made, which meets the newest state.
var solidReaders = map[string]bool{
	"getavailableunfreezecount": true, "getcanwithdrawunfreezeamount": true, "getcandelegatedmaxsize": true,
	"getdelegatedresourcev2": true, "getdelegatedresourceaccountindexv2": true, "getenergyprices": true,
	"getbandwidthprices": true, "listwitnesses": true, "gettransactioncountbyblocknum": true,
}

// methodOf finds a call of the HTTP API, nil for one that there isn't.
func methodOf(service, name string) func(*httpCall) (any, error) {
	switch service {
	case "wallet":
	case "walletsolidity":
		if !solidMethods[name] && !solidReaders[name] {
			return nil
		}
	default:
		return nil
	}
	for _, table := range []map[string]func(*httpCall) (any, error){httpMethods, builders, readers} {
		if method := table[name]; method != nil {
			return method
		}
	}
	return nil
}

// requestOf reads a request's message from its fields.
func requestOf[In proto.Message](c *httpCall) (In, error) {
	var none In
	m := none.ProtoReflect().New()
	err := fill(m, c.fields, c.visible())
	return m.Interface().(In), err
}

func building[In proto.Message](f func(*walletServer, context.Context, In) (*api.TransactionExtention, error)) func(*httpCall) (any, error) {
	return func(c *httpCall) (any, error) {
		m, err := requestOf[In](c)
		if err != nil {
			return nil, err
		}
		return c.built(f(c.wallet, c.ctx, m))
	}
}

func answering[In, Out proto.Message](f func(*walletServer, context.Context, In) (Out, error)) func(*httpCall) (any, error) {
	return func(c *httpCall) (any, error) {
		m, err := requestOf[In](c)
		if err != nil {
			return nil, err
		}
		out, err := f(c.wallet, c.ctx, m)
		if err != nil {
			return nil, err
		}
		return toJSON(out, c.visible()), nil
	}
}

// delegationIndex lists with whom an account shares its stake. The request has the account in "value".
func (c *httpCall) delegationIndex() (any, error) {
	a := c.address("value")
	return c.read(func(ch *chain) any { return toJSON(ch.delegationIndex(a), c.visible()) })
}

func (c *httpCall) transactionFromPending() (any, error) {
	id := c.bytes("value")
	return c.read(func(ch *chain) any { return transactionJSON(ch.pending(id), c.visible()) })
}

func (c *httpCall) pendingSize() (any, error) {
	return c.read(func(ch *chain) any { return object{"pendingSize": len(ch.pool)} })
}

func (c *httpCall) transactionCount() (any, error) {
	num := c.integer("num")
	return c.read(func(ch *chain) any {
		if b := ch.blockAt(num, c.solid); b != nil {
			return object{"count": len(b.infos)}
		}
		return object{"count": -1}
	})
}

// validateAddress tells the form of an address.
func (c *httpCall) validateAddress() (any, error) {
	text := c.text("address")
	if c.err != nil {
		return nil, c.err
	}
	_, err := ParseAddress(text)
	if err != nil {
		return object{"result": false, "message": "Invalid address"}, nil //nolint:nilerr // that is the answer
	}
	if len(text) == 2*len(Address{}) {
		return object{"result": true, "message": "Hex string format"}, nil
	}
	return object{"result": true, "message": "Base58check format"}, nil
}

func (w *walletServer) CancelAllUnfreezeV2(_ context.Context, m *core.CancelAllUnfreezeV2Contract) (*api.TransactionExtention, error) {
	return w.build(m, core.Transaction_Contract_CancelAllUnfreezeV2Contract)
}

func (w *walletServer) GetAvailableUnfreezeCount(_ context.Context, m *api.GetAvailableUnfreezeCountRequestMessage) (*api.GetAvailableUnfreezeCountResponseMessage, error) {
	return reading(w.node.chain, func() *api.GetAvailableUnfreezeCountResponseMessage {
		c := w.node.chain
		out := &api.GetAvailableUnfreezeCountResponseMessage{}
		if a, ok := addressOf(m.OwnerAddress); ok && c.state.account(a) != nil {
			out.Count = maxUnstaking - unstaking(c.state.account(a), c.head().time)
		}
		return out
	})
}

func (w *walletServer) GetCanWithdrawUnfreezeAmount(_ context.Context, m *api.CanWithdrawUnfreezeAmountRequestMessage) (*api.CanWithdrawUnfreezeAmountResponseMessage, error) {
	return reading(w.node.chain, func() *api.CanWithdrawUnfreezeAmountResponseMessage {
		c := w.node.chain
		at := m.Timestamp
		if at == 0 {
			at = c.head().time
		}
		a, _ := addressOf(m.OwnerAddress)
		return &api.CanWithdrawUnfreezeAmountResponseMessage{Amount: expiredUnstakes(c.state.account(a), at)}
	})
}

func (w *walletServer) GetDelegatedResourceAccountIndexV2(_ context.Context, m *api.BytesMessage) (*core.DelegatedResourceAccountIndex, error) {
	return reading(w.node.chain, func() *core.DelegatedResourceAccountIndex { return w.node.chain.delegationIndex(m.Value) })
}
