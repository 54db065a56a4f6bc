package solana

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/base58"

	"kivuko/dev/nodes/solana/svm"
)

// decodeTransaction reads the transaction of a call and refuses with Agave's texts.
func (c *call) decodeTransaction(encoding string) (*svm.Transaction, error) {
	var text string
	if err := c.argument(0, "transaction", &text); err != nil {
		return nil, err
	}
	decode := base58.Decode
	switch encoding {
	case "", encodingBase58:
		encoding = encodingBase58
	case encodingBase64:
		decode = base64.StdEncoding.DecodeString
	default:
		return nil, invalid("unsupported encoding: %s. Supported encodings: base58, base64", encoding)
	}
	wire, err := decode(text)
	if err != nil {
		return nil, invalid("invalid %s encoding: %v", encoding, err)
	}
	tx, err := svm.Decode(wire)
	switch {
	case errors.Is(err, svm.ErrTooLarge):
		return nil, invalid("%s encoded solana_transaction::versioned::VersionedTransaction too large: %d bytes (max: encoded/raw 1644/%d)", encoding, len(wire), svm.PacketSize)
	case err != nil:
		return nil, invalid("%v", err)
	}
	return tx, nil
}

func sendTransaction(c *call) (any, error) {
	if c.node.faults.busy() {
		return nil, unhealthy(max(c.behind, 1))
	}
	var o struct {
		Encoding            string     `json:"encoding"`
		SkipPreflight       bool       `json:"skipPreflight"`
		PreflightCommitment commitment `json:"preflightCommitment"`
		MinContextSlot      *uint64    `json:"minContextSlot"`
	}
	if err := c.options(1, &o); err != nil {
		return nil, err
	}
	tx, err := c.decodeTransaction(o.Encoding)
	if err != nil {
		return nil, err
	}
	if err := c.preflight(tx, reading{o.PreflightCommitment, o.MinContextSlot}, o.SkipPreflight); err != nil {
		return nil, err
	}
	c.outcome = c.node.accept(tx)
	return tx.ID(), nil
}

// preflight refuses a transaction that would not succeed now. As with Agave, one whose lookup tables are not there at the
// commitment is refused even when the check is to be skipped.
func (c *call) preflight(tx *svm.Transaction, r reading, skip bool) error {
	if skip && len(tx.Message.AddressTableLookups) == 0 {
		return nil
	}
	l := c.node.ledger
	l.mu.RLock()
	defer l.mu.RUnlock()
	v, err := c.view(r)
	if err != nil {
		return err
	}
	if tx, err = v.resolve(tx, "transaction"); err != nil || skip {
		return err
	}
	if !tx.SignaturesValid() {
		return &rpcError{Code: codeSignature, Message: textSignatureFailed}
	}
	if c.behind > 0 {
		return unhealthy(c.behind)
	}
	result := l.machine.Execute(tx, v.context(), v)
	if result.Err == nil {
		return nil
	}
	return &rpcError{
		Code: codePreflight, Message: "Transaction simulation failed: " + result.Err.Error(),
		Data: object{
			"err": result.Err, "logs": orEmpty(result.Logs), "accounts": nil, "unitsConsumed": result.Units,
			"returnData": returned(result), "innerInstructions": nil, "replacementBlockhash": nil,
		},
	}
}

// resolve loads what a transaction takes from lookup tables.
func (v view) resolve(tx *svm.Transaction, what string) (*svm.Transaction, error) {
	resolved, err := v.machine.Resolve(tx, v.context(), v)
	if err != nil {
		return nil, invalid("invalid %s: %v", what, err)
	}
	return resolved, nil
}

// orEmpty makes JSON's [] of nothing.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func returned(r svm.Result) any {
	if r.ReturnData == nil {
		return nil
	}
	return object{
		"programId": r.ReturnData.Program,
		"data":      []string{base64.StdEncoding.EncodeToString(r.ReturnData.Data), encodingBase64},
	}
}

type simulation struct {
	reading
	Encoding          string `json:"encoding"`
	SigVerify         bool   `json:"sigVerify"`
	ReplaceBlockhash  bool   `json:"replaceRecentBlockhash"`
	InnerInstructions bool   `json:"innerInstructions"`
	Accounts          *struct {
		Encoding  string   `json:"encoding"`
		Addresses []string `json:"addresses"`
	} `json:"accounts"`
}

func simulateTransaction(c *call) (any, error) {
	var o simulation
	if err := c.options(1, &o); err != nil {
		return nil, err
	}
	tx, err := c.decodeTransaction(o.Encoding)
	if err != nil {
		return nil, err
	}
	if o.SigVerify && o.ReplaceBlockhash {
		return nil, invalid("sigVerify may not be used with replaceRecentBlockhash")
	}
	l := c.node.ledger
	l.mu.RLock()
	defer l.mu.RUnlock()
	v, err := c.view(o.reading)
	if err != nil {
		return nil, err
	}
	if tx, err = v.resolve(tx, "transaction"); err != nil {
		return nil, err
	}
	if o.SigVerify && !tx.SignaturesValid() {
		return nil, &rpcError{Code: codeSignature, Message: textSignatureFailed}
	}
	result := l.machine.Simulate(tx, v.context(), v, svm.Simulation{VerifySignatures: o.SigVerify, ReplaceBlockhash: o.ReplaceBlockhash})
	shown, err := v.touched(tx, result, o)
	if err != nil {
		return nil, err
	}
	value := object{
		"err": errorOrNull(result.Err), "logs": orEmpty(result.Logs), "accounts": shown, "unitsConsumed": result.Units,
		"returnData": returned(result), "loadedAddresses": loadedAddresses(tx), "fee": result.Fee, "replacementBlockhash": nil, "innerInstructions": nil,
		"preBalances": orEmpty(result.PreBalances), "postBalances": orEmpty(result.PostBalances),
		"preTokenBalances": tokenBalances(result.PreTokens), "postTokenBalances": tokenBalances(result.PostTokens),
	}
	if o.InnerInstructions {
		value["innerInstructions"] = innerInstructions(tx, result, encodingJSONParsed)
	}
	if o.ReplaceBlockhash {
		value["replacementBlockhash"] = object{"blockhash": v.header().hash, "lastValidBlockHeight": v.lastValidHeight()}
	}
	return inContext(v, value), nil
}

// errorOrNull keeps a nil error from becoming an interface that is not nil.
func errorOrNull(err *svm.TransactionError) any {
	if err == nil {
		return nil
	}
	return err
}

// touched shows the accounts that a simulation was asked for as it left them.
func (v view) touched(tx *svm.Transaction, r svm.Result, o simulation) (any, error) {
	if o.Accounts == nil {
		return nil, nil
	}
	form := accountForm{Encoding: o.Accounts.Encoding}
	if form.Encoding == "" {
		form.Encoding = encodingBase64
	}
	if err := form.check(); err != nil {
		return nil, err
	}
	if most := len(tx.Keys()); len(o.Accounts.Addresses) > most {
		return nil, invalid("Too many accounts provided; max %d", most)
	}
	after := map[solana.PublicKey]svm.Account{}
	for i, account := range r.Touched {
		after[tx.Keys()[i]] = account
	}
	out := []any{}
	for _, text := range o.Accounts.Addresses {
		key, err := parseKey(text)
		if err != nil {
			return nil, err
		}
		account, there := after[key]
		exists := there && account.Lamports > 0
		if !there {
			account, exists = v.read(key)
		}
		shown, err := v.show(account, exists, form)
		if err != nil {
			return nil, err
		}
		out = append(out, shown)
	}
	return out, nil
}

func requestAirdrop(c *call) (any, error) {
	to, err := c.key()
	if err != nil {
		return nil, err
	}
	var lamports uint64
	if err := c.argument(1, "lamports", &lamports); err != nil {
		return nil, err
	}
	signature, err := c.node.FundSOL(to, lamports)
	if err != nil {
		return nil, &rpcError{Code: codeInvalidRequest, Message: fmt.Sprintf("airdrop request failed: %v", err)}
	}
	return signature, nil
}
