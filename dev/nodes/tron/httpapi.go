package tron

import (
	"context"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
)

// httpCall is one request of the HTTP API.
type httpCall struct {
	*arguments
	ctx    context.Context
	node   *Node
	wallet *walletServer
	solid  bool
}

// httpMethods is the part of java-tron's HTTP API whose requests have a form of their own (the rest is in httpmore.go). Those
// in solidMethods are also under /walletsolidity.
var httpMethods = map[string]func(*httpCall) (any, error){
	"getnowblock":                  (*httpCall).nowBlock,
	"getblock":                     (*httpCall).block,
	"getblockbynum":                (*httpCall).blockByNum,
	"getblockbyid":                 (*httpCall).blockByID,
	"getblockbylimitnext":          (*httpCall).blockByLimit,
	"getblockbylatestnum":          (*httpCall).blockByLatest,
	"getaccount":                   (*httpCall).account,
	"getaccountresource":           (*httpCall).accountResource,
	"gettransactionbyid":           (*httpCall).transactionByID,
	"gettransactioninfobyid":       (*httpCall).transactionInfo,
	"gettransactioninfobyblocknum": (*httpCall).transactionInfos,
	"createtransaction":            (*httpCall).createTransaction,
	"accountpermissionupdate":      (*httpCall).permissionUpdate,
	"triggersmartcontract":         (*httpCall).triggerContract,
	"triggerconstantcontract":      (*httpCall).constantContract,
	"estimateenergy":               (*httpCall).estimateEnergy,
	"broadcasttransaction":         (*httpCall).broadcast,
	"broadcasthex":                 (*httpCall).broadcast,
	"getsignweight":                (*httpCall).signWeight,
	"getapprovedlist":              (*httpCall).approvedList,
	"getcontract":                  (*httpCall).contract,
	"getcontractinfo":              (*httpCall).contractInfo,
	"getchainparameters":           func(*httpCall) (any, error) { return toJSON(chainParameters(), false), nil },
	"getnodeinfo":                  (*httpCall).nodeInfo,
}

var solidMethods = map[string]bool{
	"getnowblock": true, "getblock": true, "getblockbynum": true, "getaccount": true, "gettransactionbyid": true,
	"gettransactioninfobyid": true, "gettransactioninfobyblocknum": true, "triggerconstantcontract": true, "estimateenergy": true,
}

func (n *Node) httpHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if service == "v1" {
			n.eventAPI(w, r)
			return
		}
		solid := service == "walletsolidity"
		method := methodOf(service, name)
		if method == nil {
			writeJSON(w, http.StatusNotFound, object{"Error": errNoSuchMethod.Error()})
			return
		}
		args, err := readArguments(r)
		if err != nil {
			writeJSON(w, http.StatusOK, object{"Error": err.Error()})
			return
		}
		c := &httpCall{arguments: args, ctx: r.Context(), node: n, wallet: &walletServer{node: n}, solid: solid}
		out, err := method(c)
		if err == nil {
			err = c.err
		}
		if err != nil {
			writeJSON(w, http.StatusOK, object{"Error": err.Error()})
			return
		}
		writeJSON(w, http.StatusOK, out)
	})
}

// read runs f under the chain's read lock.
func (c *httpCall) read(f func(*chain) any) (any, error) {
	if c.err != nil {
		return nil, c.err
	}
	return reading(c.node.chain, func() any { return f(c.node.chain) })
}

func (c *httpCall) nowBlock() (any, error) {
	return c.read(func(ch *chain) any { return blockJSON(ch.top(c.solid), true, c.visible()) })
}

func (c *httpCall) block() (any, error) {
	text, detail := c.text("id_or_num"), c.flag("detail")
	return c.read(func(ch *chain) any {
		if text == "" {
			return blockJSON(ch.top(c.solid), detail, c.visible())
		}
		b, err := ch.blockByText(text, c.solid)
		if err != nil {
			return object{"Error": err.Error()}
		}
		return blockJSON(b, detail, c.visible())
	})
}

func (c *httpCall) blockByNum() (any, error) {
	num := c.integer("num")
	return c.read(func(ch *chain) any { return blockJSON(ch.blockAt(num, c.solid), true, c.visible()) })
}

func (c *httpCall) blockByID() (any, error) {
	id := c.bytes("value")
	return c.read(func(ch *chain) any {
		b, err := ch.blockByText(hex.EncodeToString(id), false)
		if err != nil {
			return object{"Error": err.Error()}
		}
		return blockJSON(b, true, c.visible())
	})
}

func (c *httpCall) blockByLimit() (any, error) {
	start, end := c.integer("startNum"), c.integer("endNum")
	return c.read(func(ch *chain) any { return blocksJSON(ch.blockRange(start, end), c.visible()) })
}

func (c *httpCall) blockByLatest() (any, error) {
	num := c.integer("num")
	return c.read(func(ch *chain) any {
		if num <= 0 || num > maxLatestBlocks {
			return object{}
		}
		end := ch.head().number + 1
		return blocksJSON(ch.blockRange(max(0, end-num), end), c.visible())
	})
}

func (c *httpCall) account() (any, error) {
	a := c.address("address")
	return c.read(func(ch *chain) any { return toJSON(ch.account(a, c.solid), c.visible()) })
}

func (c *httpCall) accountResource() (any, error) {
	a := c.address("address")
	return c.read(func(ch *chain) any { return toJSON(ch.accountResource(a), c.visible()) })
}

func (c *httpCall) transactionByID() (any, error) {
	id := c.bytes("value")
	return c.read(func(ch *chain) any { return transactionJSON(ch.transaction(id, c.solid), c.visible()) })
}

func (c *httpCall) transactionInfo() (any, error) {
	id := c.bytes("value")
	return c.read(func(ch *chain) any { return toJSON(ch.transactionInfo(id, c.solid), c.visible()) })
}

func (c *httpCall) transactionInfos() (any, error) {
	num := c.integer("num")
	return c.read(func(ch *chain) any {
		list := []object{}
		for _, info := range ch.transactionInfos(num, c.solid).TransactionInfo {
			list = append(list, toJSON(info, c.visible()))
		}
		return list
	})
}

func (c *httpCall) createTransaction() (any, error) {
	m := &core.TransferContract{OwnerAddress: c.address("owner_address"), ToAddress: c.address("to_address"), Amount: c.integer("amount")}
	if c.err != nil {
		return nil, c.err
	}
	return c.built(c.wallet.CreateTransaction2(c.ctx, m))
}

func (c *httpCall) permissionUpdate() (any, error) {
	m := &core.AccountPermissionUpdateContract{}
	if err := fill(m.ProtoReflect(), c.fields, c.visible()); err != nil {
		return nil, err
	}
	return c.built(c.wallet.AccountPermissionUpdate(c.ctx, m))
}

// built answers with a transaction that the node built.
func (c *httpCall) built(x *api.TransactionExtention, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if x.Transaction == nil {
		return object{"Error": "class org.tron.core.exception.ContractValidateException : " + string(x.Result.Message)}, nil
	}
	if id := c.integer("Permission_id"); id > 0 {
		x.Transaction.RawData.Contract[0].PermissionId = int32(id)
	}
	return transactionJSON(x.Transaction, c.visible()), c.err
}

func (c *httpCall) triggerContract() (any, error) {
	m, fee, permission := c.trigger(), c.integer("fee_limit"), c.integer("Permission_id")
	if c.err != nil {
		return nil, c.err
	}
	x, err := c.wallet.TriggerContract(c.ctx, m)
	if err != nil {
		return nil, err
	}
	if x.Transaction != nil {
		x.Transaction.RawData.FeeLimit = fee
		x.Transaction.RawData.Contract[0].PermissionId = int32(permission)
	}
	return extensionJSON(x, c.visible()), nil
}

func (c *httpCall) constantContract() (any, error) {
	m := c.trigger()
	if c.err != nil {
		return nil, c.err
	}
	return extensionJSON(c.node.chain.constantCall(m, c.solid), c.visible()), nil
}

func extensionJSON(x *api.TransactionExtention, visible bool) object {
	out := object{"result": returnJSON(x.Result, visible)}
	if x.Transaction != nil {
		out["transaction"] = transactionJSON(x.Transaction, visible)
		if ret := x.Transaction.Ret; len(ret) > 0 { // a constant call's verdict is in ret, not contractRet
			out["transaction"].(object)["ret"] = []any{toJSON(ret[0], visible)}
		}
	}
	if x.EnergyUsed > 0 {
		out["energy_used"] = x.EnergyUsed
	}
	if x.EnergyPenalty > 0 {
		out["energy_penalty"] = x.EnergyPenalty
	}
	if len(x.ConstantResult) > 0 {
		out["constant_result"] = []string{hex.EncodeToString(x.ConstantResult[0])}
	}
	if len(x.Logs) > 0 {
		logs := make([]object, len(x.Logs))
		for i, l := range x.Logs {
			logs[i] = toJSON(l, visible)
		}
		out["logs"] = logs
	}
	return out
}

func (c *httpCall) estimateEnergy() (any, error) {
	m := c.trigger()
	if c.err != nil {
		return nil, c.err
	}
	e := c.node.chain.estimateEnergy(m, c.solid)
	out := object{"result": returnJSON(e.Result, c.visible())}
	if e.EnergyRequired > 0 {
		out["energy_required"] = e.EnergyRequired
	}
	return out, nil
}

// broadcast serves broadcasttransaction, which takes JSON, and broadcasthex.
func (c *httpCall) broadcast() (any, error) {
	var tx *core.Transaction
	if c.fields["transaction"] != nil {
		tx = c.transactionHex()
	} else {
		tx = c.transaction()
	}
	if c.err != nil {
		return nil, c.err
	}
	r, err := c.node.broadcast(c.ctx, tx)
	if err != nil {
		return nil, err
	}
	out := returnJSON(r, c.visible())
	out["txid"] = TransactionID(tx).String()
	return out, nil
}

func (c *httpCall) signWeight() (any, error) {
	tx := c.transaction()
	return c.read(func(ch *chain) any {
		w := ch.state.signWeight(tx)
		out := toJSON(w, c.visible())
		out["transaction"] = signedJSON(tx, c.visible())
		if out["result"] == nil {
			out["result"] = object{}
		}
		return out
	})
}

func (c *httpCall) approvedList() (any, error) {
	tx := c.transaction()
	return c.read(func(ch *chain) any {
		out := toJSON(ch.state.approvedList(tx), c.visible())
		out["transaction"] = signedJSON(tx, c.visible())
		if out["result"] == nil {
			out["result"] = object{}
		}
		return out
	})
}

func signedJSON(tx *core.Transaction, visible bool) object {
	return object{"result": object{"result": true}, "txid": TransactionID(tx).String(), "transaction": transactionJSON(tx, visible)}
}

func (c *httpCall) contract() (any, error) {
	a := c.address("value")
	return c.read(func(ch *chain) any {
		if contract := ch.contractInfo(a).SmartContract; contract != nil {
			return toJSON(contract, c.visible())
		}
		return object{}
	})
}

func (c *httpCall) contractInfo() (any, error) {
	a := c.address("value")
	return c.read(func(ch *chain) any { return toJSON(ch.contractInfo(a), c.visible()) })
}

func (c *httpCall) nodeInfo() (any, error) {
	return c.read(func(ch *chain) any { return toJSON(ch.nodeInfo(), c.visible()) })
}
