package solana

import (
	"context"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// readEnds reads every account that affects a transfer, in one slot.
func readEnds(ctx context.Context, n *node, in intent, minSlot uint64) (snapshot, error) {
	keys := []sdk.PublicKey{in.from, in.to, in.payer}
	if in.token {
		source, err := tokenAccount(in.from, in.mint)
		if err != nil {
			return snapshot{}, err
		}
		dest, err := tokenAccount(in.to, in.mint)
		if err != nil {
			return snapshot{}, err
		}
		keys = append(keys, in.mint, source, dest)
	}
	return readAccounts(ctx, n, confirmed, minSlot, keys...)
}

// route finds the accounts between which the plan moves money, and refuses accounts that can't send or must not be paid.
func (p *plan) route(s snapshot) error {
	if !s.accounts[p.payer].wallet() || p.joint == nil && !s.accounts[p.from].wallet() {
		return chain.Errorf(chain.ReasonAddress, "sender or fee payer is not a plain wallet")
	}
	switch {
	case p.joint != nil:
		if err := p.routeJoint(s); err != nil {
			return err
		}
	case p.opens != nil:
		return p.routeOpening(s)
	case p.step != "":
		return p.routeStep(s)
	}
	if !p.token {
		if !s.accounts[p.to].wallet() {
			return chain.Errorf(chain.ReasonAddress, "the recipient %s is not a wallet: its account belongs to program %s", p.to, s.accounts[p.to].owner)
		}
		return nil
	}
	if err := checkMint(p.amount.Asset(), p.mint, s.accounts[p.mint]); err != nil {
		return err
	}
	if err := p.routeSource(s); err != nil {
		return err
	}
	return p.routeDest(s)
}

// routeSource finds the sender's token account.
func (p *plan) routeSource(s snapshot) error {
	var err error
	if p.source, err = tokenAccount(p.from, p.mint); err != nil {
		return err
	}
	t, ok := held(s.accounts[p.source], p.from, p.mint)
	if ok && t.State == token.Frozen {
		return frozen(p.from, p.amount.Asset())
	}
	has := money.Zero(p.amount.Asset())
	if ok {
		has = units(p.amount.Asset(), t.Amount)
	}
	if has.Cmp(p.amount) < 0 {
		return short(chain.ReasonFunds, p.from, p.amount, has)
	}
	return nil
}

// routeDest finds the token account that is paid. The recipient's address must be a wallet, an account of several owners, or a
// token account of that mint. Tokens sent anywhere else can't be moved again.
func (p *plan) routeDest(s snapshot) error {
	to := s.accounts[p.to]
	_, shared := to.multisig()
	if !shared && !p.to.IsOnCurve() {
		return chain.Errorf(chain.ReasonAddress, "the recipient's %s", errKeyless)
	}
	if t, ok := to.token(); ok {
		if t.Mint != p.mint {
			return chain.Errorf(chain.ReasonAddress, "the recipient %s is a token account of another token", p.to)
		}
		if t.State == token.Frozen {
			return frozen(p.to, p.amount.Asset())
		}
		p.dest = p.to
		return nil
	}
	if !to.wallet() && !shared {
		return chain.Errorf(chain.ReasonAddress, "the recipient %s is not a wallet: its account belongs to program %s", p.to, to.owner)
	}
	var err error
	if p.dest, err = tokenAccount(p.to, p.mint); err != nil {
		return err
	}
	p.create = true
	dest := s.accounts[p.dest]
	if dest.wallet() {
		return nil // not created yet, though someone may have sent SOL there
	}
	t, ok := held(dest, p.to, p.mint)
	if !ok {
		return chain.Errorf(chain.ReasonAddress, "the token account %s of the recipient %s was given to another owner", p.dest, p.to)
	}
	if t.State == token.Frozen {
		return frozen(p.to, p.amount.Asset())
	}
	return nil
}

func frozen(holder sdk.PublicKey, a money.Asset) error {
	return chain.Errorf(chain.ReasonBlocked, "the issuer of %s has frozen the account of %s", string(a), holder)
}

// short is the error for a balance that is too low, with the missing amount.
func short(r chain.Reason, holder sdk.PublicKey, need, has money.Amount) *chain.Error {
	e := chain.Errorf(r, "%s needs %s %s and has %s", holder, need, need.Asset(), has)
	e.Missing = need.Sub(has)
	return e
}

// written are the accounts that the transaction writes, and for which others bid too.
func (p plan) written() []sdk.PublicKey {
	if p.token {
		return []sdk.PublicKey{p.payer, p.source, p.dest}
	}
	if p.payer == p.from {
		return []sdk.PublicKey{p.from, p.to}
	}
	return []sdk.PublicKey{p.payer, p.from, p.to}
}

// accountsRent is the most that the plan spends on the rent of new token accounts.
func (p plan) accountsRent(r rents) uint64 {
	switch {
	case p.opens != nil:
		return uint64(len(p.opens.mints)) * r.tokenAccount
	case p.create:
		return r.tokenAccount
	}
	return 0
}

// covered checks that sender and fee payer have the SOL that the transaction needs besides tokens. A wallet must end with
// zero, or with at least the rent.
func (p plan) covered(s snapshot, r rents, fee uint64) error {
	cost := fee
	if dest := s.accounts[p.dest]; p.create && dest.wallet() && dest.lamports < r.tokenAccount {
		cost += r.tokenAccount - dest.lamports
	}
	if p.opens != nil {
		cost += p.accountsRent(r)
	}
	if p.token {
		return spends(chain.ReasonGas, p.payer, s, cost, r)
	}
	has := s.accounts[p.from].lamports
	if has < p.units {
		return short(chain.ReasonFunds, p.from, p.amount, lamports(has))
	}
	if s.accounts[p.to].lamports+p.units < r.wallet {
		return chain.Errorf(chain.ReasonReverts, "the recipient %s would hold less than the %s SOL that an account needs", p.to, lamports(r.wallet))
	}
	if p.payer == p.from {
		return spends(chain.ReasonGas, p.from, s, p.units+cost, r)
	}
	if err := spends(chain.ReasonFunds, p.from, s, p.units, r); err != nil {
		return err
	}
	return spends(chain.ReasonGas, p.payer, s, cost, r)
}

// spends checks that a wallet can give away an amount of lamports.
func spends(reason chain.Reason, wallet sdk.PublicKey, s snapshot, cost uint64, r rents) error {
	has := s.accounts[wallet].lamports
	need := cost
	if has > cost && has-cost < r.wallet {
		need += r.wallet // otherwise the rest would be too little for the account to exist
	}
	if has < need {
		return short(reason, wallet, lamports(need), lamports(has))
	}
	return nil
}
