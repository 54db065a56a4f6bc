package solana

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/base58"

	"kivuko/dev/nodes/solana/svm"
)

const (
	encodingBase58     = "base58"
	encodingBase64     = "base64"
	encodingJSONParsed = "jsonParsed"
	// encodingBinary is the default: base58 without the name of the encoding.
	encodingBinary = "binary"
	// maxBase58Bytes is Agave's MAX_BASE58_BYTES.
	maxBase58Bytes = 128
)

// accountForm is how an account is to be shown.
type accountForm struct {
	Encoding  string `json:"encoding"`
	DataSlice *struct {
		Offset uint64 `json:"offset"`
		Length uint64 `json:"length"`
	} `json:"dataSlice"`
}

func (f accountForm) check() error {
	switch f.Encoding {
	case "", encodingBinary, encodingBase58, encodingBase64, encodingJSONParsed:
		return nil
	case "base64+zstd":
		return invalid("Invalid params: this development node has no base64+zstd: use base64")
	}
	return invalid("Invalid params: unknown variant `%s`, expected one of `binary`, `base64`, `base58`, `jsonParsed`", f.Encoding)
}

// show writes an account, null for one that doesn't exist.
func (v view) show(account svm.Account, exists bool, form accountForm) (any, error) {
	if !exists {
		return nil, nil
	}
	out := object{
		"lamports": account.Lamports, "owner": account.Owner, "executable": account.Executable,
		"rentEpoch": account.RentEpoch, "space": len(account.Data),
	}
	if form.Encoding == encodingJSONParsed {
		if parsed := v.parseAccount(account); parsed != nil {
			out["data"] = parsed
			return out, nil
		}
	}
	data := account.Data
	if s := form.DataSlice; s != nil {
		size := uint64(len(data))
		from := min(s.Offset, size)
		data = data[from : from+min(s.Length, size-from)]
	}
	switch form.Encoding {
	case encodingBase64, encodingJSONParsed:
		out["data"] = []string{base64.StdEncoding.EncodeToString(data), encodingBase64}
		return out, nil
	default:
	}
	if len(data) > maxBase58Bytes {
		return nil, &rpcError{
			Code:    codeInvalidRequest,
			Message: "Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.",
		}
	}
	out["data"] = base58.Encode(data)
	if form.Encoding == encodingBase58 {
		out["data"] = []string{base58.Encode(data), encodingBase58}
	}
	return out, nil
}

func (c *call) form(i int) (form accountForm, err error) {
	if err := c.options(i, &form); err != nil {
		return form, err
	}
	return form, form.check()
}

func getBalance(c *call, v view) (any, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	account, _ := v.read(key)
	return inContext(v, account.Lamports), nil
}

func getAccountInfo(c *call, v view) (any, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	form, err := c.form(1)
	if err != nil {
		return nil, err
	}
	account, exists := v.read(key)
	shown, err := v.show(account, exists, form)
	if err != nil {
		return nil, err
	}
	return inContext(v, shown), nil
}

func getMultipleAccounts(c *call, v view) (any, error) {
	var texts []string
	if err := c.argument(0, "addresses", &texts); err != nil {
		return nil, err
	}
	if len(texts) > maxMultipleAccounts {
		return nil, invalid("Too many inputs provided; max %d", maxMultipleAccounts)
	}
	form, err := c.form(1)
	if err != nil {
		return nil, err
	}
	if form.Encoding == "" { // unlike for one account, and as with Agave
		form.Encoding = encodingBase64
	}
	out := []any{}
	for _, text := range texts {
		key, err := parseKey(text)
		if err != nil {
			return nil, err
		}
		account, exists := v.read(key)
		shown, err := v.show(account, exists, form)
		if err != nil {
			return nil, err
		}
		out = append(out, shown)
	}
	return inContext(v, out), nil
}

// list shows all accounts of the view that match, in the order of their addresses.
func (v view) list(form accountForm, matches func(svm.Account) bool) ([]object, error) {
	out := []object{}
	for _, key := range v.accounts.addresses(v.slot()) {
		account, _ := v.Account(key)
		if !matches(account) {
			continue
		}
		shown, err := v.show(account, true, form)
		if err != nil {
			return nil, err
		}
		out = append(out, object{"pubkey": key, "account": shown})
	}
	return out, nil
}

// filter is one condition of getProgramAccounts.
type filter struct {
	DataSize *uint64 `json:"dataSize"`
	Memcmp   *struct {
		Offset   uint64 `json:"offset"`
		Bytes    string `json:"bytes"`
		Encoding string `json:"encoding"`
	} `json:"memcmp"`
}

// condition makes the filter a function.
func (f filter) condition() (func(svm.Account) bool, error) {
	if f.DataSize != nil {
		return func(a svm.Account) bool { return uint64(len(a.Data)) == *f.DataSize }, nil
	}
	if f.Memcmp == nil {
		return nil, invalid("Invalid params: a filter is dataSize or memcmp")
	}
	decode := base58.Decode
	if f.Memcmp.Encoding == encodingBase64 {
		decode = base64.StdEncoding.DecodeString
	}
	want, err := decode(f.Memcmp.Bytes)
	if err != nil {
		return nil, invalid("Invalid param: memcmp: %v", err)
	}
	if len(want) > maxBase58Bytes {
		return nil, invalid("Invalid param: memcmp: at most %d bytes", maxBase58Bytes)
	}
	return func(a svm.Account) bool {
		return f.Memcmp.Offset <= uint64(len(a.Data)) && bytes.HasPrefix(a.Data[f.Memcmp.Offset:], want)
	}, nil
}

// programFilter reads the program and the filters of a request: which accounts are meant.
func (c *call) programFilter() (func(svm.Account) bool, error) {
	program, err := c.key()
	if err != nil {
		return nil, err
	}
	var o struct {
		Filters []filter `json:"filters"`
	}
	if err := c.options(1, &o); err != nil {
		return nil, err
	}
	if len(o.Filters) > maxFilters {
		return nil, invalid("Too many filters provided; max %d", maxFilters)
	}
	conditions := []func(svm.Account) bool{func(a svm.Account) bool { return a.Owner == program }}
	for _, f := range o.Filters {
		condition, err := f.condition()
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, condition)
	}
	return func(a svm.Account) bool {
		for _, holds := range conditions {
			if !holds(a) {
				return false
			}
		}
		return true
	}, nil
}

func getProgramAccounts(c *call, v view) (any, error) {
	matches, err := c.programFilter()
	if err != nil {
		return nil, err
	}
	form, err := c.form(1)
	if err != nil {
		return nil, err
	}
	var o struct {
		WithContext bool `json:"withContext"`
	}
	if err := c.options(1, &o); err != nil {
		return nil, err
	}
	found, err := v.list(form, matches)
	if err != nil {
		return nil, err
	}
	if o.WithContext {
		return inContext(v, found), nil
	}
	return found, nil
}

func getTokenAccountBalance(c *call, v view) (any, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	account, exists := v.Account(key)
	if !exists {
		return nil, invalid(textInvalidParam + "could not find account")
	}
	token, ok := readTokenAccount(account)
	if !ok {
		return nil, invalid(textInvalidParam + "not a Token account")
	}
	mint, ok := v.mint(token.mint)
	if !ok {
		return nil, invalid(textInvalidParam + "could not find mint")
	}
	return inContext(v, units(token.amount, mint.decimals)), nil
}

func (v view) mint(address solana.PublicKey) (tokenMint, bool) {
	account, _ := v.Account(address)
	return readMint(account)
}

func getTokenSupply(c *call, v view) (any, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	account, exists := v.Account(key)
	if !exists {
		return nil, invalid(textInvalidParam + "could not find account")
	}
	mint, ok := readMint(account)
	if !ok {
		return nil, invalid(textInvalidParam + "not a Token mint")
	}
	return inContext(v, units(mint.supply, mint.decimals)), nil
}

// getTokenAccountsByOwner lists the accounts of one mint, or of one token program.
func getTokenAccountsByOwner(c *call, v view) (any, error) {
	owner, err := c.key()
	if err != nil {
		return nil, err
	}
	var which map[string]json.RawMessage
	if err := c.argument(1, "mint or programId", &which); err != nil {
		return nil, err
	}
	form, err := c.form(2)
	if err != nil {
		return nil, err
	}
	var text string
	var matches func(tokenAccount) bool
	name := "mint"
	if which[name] == nil {
		name = "programId"
	}
	if err := json.Unmarshal(which[name], &text); err != nil || len(which) != 1 {
		return nil, invalid("Invalid params: want mint or programId")
	}
	key, err := parseKey(text)
	switch {
	case err != nil:
		return nil, err
	case name == "mint":
		if _, ok := v.mint(key); !ok {
			return nil, invalid(textInvalidParam + "could not find mint")
		}
		matches = func(t tokenAccount) bool { return t.mint == key }
	case !isTokenProgram(key):
		return nil, invalid(textInvalidParam + "unrecognized Token program id")
	default:
		matches = func(t tokenAccount) bool { return t.program == key }
	}
	found, err := v.list(form, func(a svm.Account) bool {
		token, ok := readTokenAccount(a)
		return ok && token.owner == owner && matches(token)
	})
	if err != nil {
		return nil, err
	}
	return inContext(v, found), nil
}

// parseAccount is the jsonParsed form of what this node can read, nil for the rest.
func (v view) parseAccount(a svm.Account) any {
	wrap := func(program, kind string, info any) any {
		return object{"program": program, "space": len(a.Data), "parsed": object{"type": kind, "info": info}}
	}
	program := tokenProgramName(a.Owner)
	if token, ok := readTokenAccount(a); ok {
		mint, ok := v.mint(token.mint)
		if !ok {
			return nil
		}
		return wrap(program, "account", token.describe(mint.decimals))
	}
	if mint, ok := readMint(a); ok {
		info := object{
			"decimals": mint.decimals, "isInitialized": true, "supply": units(mint.supply, 0)["amount"],
			"mintAuthority": mint.authority, "freezeAuthority": mint.freeze,
		}
		if mint.program == solana.Token2022ProgramID {
			info["extensions"] = describeExtensions(mint.extensions)
		}
		return wrap(program, "mint", info)
	}
	if isTokenProgram(a.Owner) && len(a.Data) == multisigBytes && a.Data[2] != 0 {
		signers := []solana.PublicKey{}
		for i := range int(a.Data[1]) {
			signers = append(signers, solana.PublicKey(a.Data[3+32*i:35+32*i]))
		}
		return wrap(program, "multisig", object{
			"numRequiredSigners": a.Data[0], "numValidSigners": a.Data[1], "isInitialized": true, "signers": signers,
		})
	}
	if table, ok := svm.LookupTableOf(a); ok {
		info := object{
			"deactivationSlot": units(table.Deactivated, 0)["amount"], "lastExtendedSlot": units(table.Extended, 0)["amount"],
			"lastExtendedSlotStartIndex": table.Before, "addresses": orEmpty(table.Addresses),
		}
		if table.Authority != nil {
			info["authority"] = table.Authority
		}
		return wrap(lookupTableName, "lookupTable", info)
	}
	const nonceBytes, nonceInitialized = 80, 1
	if a.Owner == solana.SystemProgramID && len(a.Data) == nonceBytes && le.Uint32(a.Data[4:]) == nonceInitialized {
		return wrap("nonce", "initialized", object{
			"authority": solana.PublicKey(a.Data[8:40]), "blockhash": solana.Hash(a.Data[40:72]),
			"feeCalculator": object{"lamportsPerSignature": units(le.Uint64(a.Data[72:]), 0)["amount"]},
		})
	}
	return nil
}

func tokenProgramName(program solana.PublicKey) string {
	if program == solana.Token2022ProgramID {
		return "spl-token-2022"
	}
	return "spl-token"
}

// describe is the jsonParsed form of a token account.
func (t tokenAccount) describe(decimals uint8) object {
	info := object{
		"mint": t.mint, "owner": t.owner, "isNative": t.native, "state": "initialized", "tokenAmount": units(t.amount, decimals),
	}
	if t.frozen {
		info["state"] = "frozen"
	}
	if t.native {
		info["rentExemptReserve"] = units(t.reserve, 9)
	}
	if t.delegate != nil {
		info["delegate"], info["delegatedAmount"] = t.delegate, units(t.delegated, decimals)
	}
	if t.close != nil {
		info["closeAuthority"] = t.close
	}
	if t.program == solana.Token2022ProgramID {
		info["extensions"] = describeExtensions(t.extensions)
	}
	return info
}
