package solana

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// txAnswer is a transaction in a block, in the form "json".
type txAnswer struct {
	Slot        uint64 `json:"slot"` // only from getTransaction
	Transaction struct {
		Signatures []string `json:"signatures"`
		Message    struct {
			AccountKeys []string `json:"accountKeys"`
		} `json:"message"`
	} `json:"transaction"`
	Meta *struct {
		Err               json.RawMessage `json:"err"`
		Fee               uint64          `json:"fee"`
		PreBalances       []uint64        `json:"preBalances"`
		PostBalances      []uint64        `json:"postBalances"`
		PreTokenBalances  []tokenHolding  `json:"preTokenBalances"`
		PostTokenBalances []tokenHolding  `json:"postTokenBalances"`
		LoadedAddresses   struct {
			Writable []string `json:"writable"`
			Readonly []string `json:"readonly"`
		} `json:"loadedAddresses"`
	} `json:"meta"`
}

// tokenHolding is the balance of a token account before or after a transaction. Only the raw amount is read: the others are
// rounded.
type tokenHolding struct {
	Index   int    `json:"accountIndex"`
	Mint    string `json:"mint"`
	Owner   string `json:"owner"`
	Program string `json:"programId"`
	Amount  struct {
		Raw string `json:"amount"`
	} `json:"uiTokenAmount"`
}

// effect is what a transaction in a block did.
type effect struct {
	failure string // empty when it succeeded
	fee     money.Amount
	moved   []chain.Movement
}

// nativeIndex numbers movements of SOL above those of tokens, because one account may take part in both. Each is numbered by
// the receiving account's place in the transaction, which a node can't choose.
const nativeIndex = 1 << 20

// maxAccounts bounds the accounts of a transaction: an index has one byte.
const maxAccounts = 256

// effect reads fee and movements from the balances before and after the transaction. A failed one pays its fee and moves
// nothing.
func (c *Client) effect(tx *txAnswer) (effect, error) {
	if tx.Meta == nil || len(tx.Transaction.Signatures) == 0 {
		return effect{}, chain.Errorf(chain.ReasonUnavailable, "the node keeps no balances of the transaction")
	}
	id := tx.Transaction.Signatures[0]
	keys := slices.Concat(tx.Transaction.Message.AccountKeys, tx.Meta.LoadedAddresses.Writable, tx.Meta.LoadedAddresses.Readonly)
	if n := len(keys); n == 0 || n > maxAccounts || len(tx.Meta.PreBalances) != n || len(tx.Meta.PostBalances) != n {
		return effect{}, chain.Errorf(chain.ReasonProtocol, "transaction %s has %d accounts, %d balances before and %d after",
			quote(id), n, len(tx.Meta.PreBalances), len(tx.Meta.PostBalances))
	}
	e := effect{failure: failureOf(tx.Meta.Err), fee: lamports(tx.Meta.Fee)}
	if e.failure != "" {
		return e, nil
	}
	if tx.Meta.PreTokenBalances == nil || tx.Meta.PostTokenBalances == nil { // an empty list would be present
		return effect{}, chain.Errorf(chain.ReasonUnavailable, "the node keeps no token balances of transaction %s", quote(id))
	}
	r := reader{client: c, id: id, keys: keys, tx: tx, tokens: map[int]bool{}, made: map[int]bool{}}
	tokens, err := r.tokenMovements()
	if err != nil {
		return effect{}, err
	}
	native, rent := r.nativeMovements()
	e.fee = lamports(tx.Meta.Fee + rent)
	e.moved = append(tokens, native...)
	return e, nil
}

// reader reads one transaction.
type reader struct {
	client *Client
	id     string
	keys   []string
	tx     *txAnswer
	tokens map[int]bool // accounts that hold tokens of any kind
	made   map[int]bool // those of them that the transaction created
}

// change is the change of one account's balance of one asset.
type change struct {
	index int
	name  string // the wallet that the account represents, or the account itself
	owner string // of a token account
	gain  *big.Int
}

// tokenMovements reads the movements of the configured tokens, one for each account that gained. Programs may move one token
// between many accounts in one transaction. Balances then don't show who paid whom: the account that lost most is the
// sender, and all others that lost are listed beside it. A payment of ours has one sender and one receiver. Minted tokens
// come from the mint.
func (r *reader) tokenMovements() ([]chain.Movement, error) {
	changes := map[sdk.PublicKey][]change{}
	before, err := r.holdings(r.tx.Meta.PreTokenBalances)
	if err != nil {
		return nil, err
	}
	after, err := r.holdings(r.tx.Meta.PostTokenBalances)
	if err != nil {
		return nil, err
	}
	for index := range r.keys {
		was, had := before[index]
		is, has := after[index]
		r.tokens[index] = had || has
		r.made[index] = has && !had
		switch {
		case had && has && was.mint == is.mint:
			is.amount = new(big.Int).Sub(is.amount, was.amount)
			named := is
			if is.amount.Sign() < 0 {
				named = was // its owner when it was spent
			}
			r.note(changes, index, named, is.amount)
		default:
			if had {
				r.note(changes, index, was, new(big.Int).Neg(was.amount))
			}
			if has {
				r.note(changes, index, is, is.amount)
			}
		}
	}
	var out []chain.Movement
	for _, asset := range money.Assets() {
		mint, ours := r.client.mints[asset]
		if ours {
			out = append(out, r.gains(asset, changes[mint], mint.String(), 0)...)
		}
	}
	return out, nil
}

// holding is one entry of the balances of a transaction.
type holding struct {
	mint   sdk.PublicKey
	ours   bool // of a configured token
	owner  string
	amount *big.Int
}

// holdings returns the entries by account.
func (r *reader) holdings(all []tokenHolding) (map[int]holding, error) {
	out := make(map[int]holding, len(all))
	for _, t := range all {
		mint, err := readKey(t.Mint)
		_, twice := out[t.Index]
		if err != nil || twice || t.Index < 0 || t.Index >= len(r.keys) {
			return nil, chain.Errorf(chain.ReasonProtocol, "transaction %s has an impossible token balance of account %d", quote(r.id), t.Index)
		}
		h := holding{mint: mint, owner: t.Owner}
		if _, h.ours = r.client.assets[mint]; h.ours {
			amount, err := strconv.ParseUint(t.Amount.Raw, 10, 64)
			_, errOwner := readKey(t.Owner)
			if err != nil || errOwner != nil || t.Program != sdk.TokenProgramID.String() {
				return nil, chain.Errorf(chain.ReasonProtocol, "transaction %s has a token balance of %q, owned by %q under program %q",
					quote(r.id), quote(t.Amount.Raw), quote(t.Owner), quote(t.Program))
			}
			h.amount = new(big.Int).SetUint64(amount)
		} else {
			h.amount = new(big.Int)
		}
		out[t.Index] = h
	}
	return out, nil
}

// note adds a change of a configured token.
func (r *reader) note(changes map[sdk.PublicKey][]change, index int, h holding, gain *big.Int) {
	if h.ours && gain.Sign() != 0 {
		changes[h.mint] = append(changes[h.mint], change{index: index, name: r.nameOf(index, h), owner: h.owner, gain: gain})
	}
}

// nameOf is the address that a token account represents: its owner's if it is the owner's associated token account, else its
// own. So an account that was given to a new owner represents neither the old nor the new owner.
func (r *reader) nameOf(index int, h holding) string {
	owner, err := readKey(h.owner)
	if err != nil {
		return r.keys[index]
	}
	if derived, err := tokenAccount(owner, h.mint); err == nil && derived.String() == r.keys[index] {
		return h.owner
	}
	return r.keys[index]
}

// gains makes the movements of one asset: one for each account that gained, from the one that lost most (the first of
// equals), or from the placeholder when none lost.
func (r *reader) gains(asset money.Asset, all []change, noSender string, offset uint32) []chain.Movement {
	from, least := noSender, new(big.Int)
	for _, c := range all {
		if c.gain.Cmp(least) < 0 {
			from, least = c.name, c.gain
		}
	}
	others, accounts := othersThan(from, all), r.accountsOf(all)
	var out []chain.Movement
	for _, c := range all {
		if c.gain.Sign() > 0 {
			out = append(out, chain.Movement{
				TxID: r.id, Index: offset + uint32(c.index), From: from, To: c.name,
				Amount: money.FromUnits(asset, c.gain), Others: slices.Clone(others), Accounts: slices.Clone(accounts),
			})
		}
	}
	return out
}

// accountsOf lists the accounts that lost and are named by their owner's address.
func (r *reader) accountsOf(all []change) []string {
	var out []string
	for _, c := range all {
		if c.gain.Sign() < 0 && c.name != r.keys[c.index] {
			out = append(out, r.keys[c.index])
		}
	}
	slices.Sort(out)
	return out
}

// othersThan lists all that lost, except the named sender. For an account that is not its owner's associated one, the owner
// is listed too, because deny lists have wallets.
func othersThan(from string, all []change) []string {
	var out []string
	for _, c := range all {
		if c.gain.Sign() < 0 {
			out = append(out, c.name, c.owner)
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(name string) bool { return name == from || name == "" })
}

// nativeMovements reads the movements of SOL besides the fee, and how much the fee payer spent on the rent of new token
// accounts. The rent counts as fee and not as a movement, because it is a cost of the payment. SOL in token accounts is
// their rent, or wrapped SOL, and not a movement.
func (r *reader) nativeMovements() ([]chain.Movement, uint64) {
	meta := r.tx.Meta
	var all []change
	rent := new(big.Int)
	for i := range r.keys {
		gain := new(big.Int).Sub(new(big.Int).SetUint64(meta.PostBalances[i]), new(big.Int).SetUint64(meta.PreBalances[i]))
		if i == 0 {
			gain.Add(gain, new(big.Int).SetUint64(meta.Fee))
		}
		if r.tokens[i] {
			if r.made[i] && gain.Sign() > 0 {
				rent.Add(rent, gain)
			}
			continue
		}
		all = append(all, change{index: i, name: r.keys[i], gain: gain})
	}
	// The fee payer is the first account. Rent that another account paid is that account's loss.
	if len(all) == 0 || all[0].index != 0 || new(big.Int).Neg(all[0].gain).Cmp(rent) < 0 {
		rent.SetUint64(0)
	} else {
		all[0].gain.Add(all[0].gain, rent)
	}
	return r.gains(money.SOL, all, r.keys[0], nativeIndex), rent.Uint64()
}
