package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// World is the running stack as the demo needs it.
type World struct {
	API         string // http://host:port
	TronControl string // http://host:port of the development node's control
	DatabaseURL string
	AdminEmail  string
	AdminPass   string
	Say         func(format string, args ...any)
}

// What the demo puts into the stack.
const (
	vendorUSDT  = "5000"
	vendorTRX   = "2000"
	offerUSDT   = "2000"
	offerRate   = "129.355"
	offerMin    = "1"
	offerMax    = "1000"
	payoutFloat = "1000000"
)

// seeder is one run of Seed.
type seeder struct {
	World
	admin *client.Client
	store *store.Store
	ids   map[string]uuid.UUID // of users, by e-mail
}

type account struct {
	ID    uuid.UUID `json:"id"`
	Email string    `json:"email"`
}

type wallet struct {
	ID      uuid.UUID  `json:"id"`
	OwnerID *uuid.UUID `json:"owner_id"`
	Address string     `json:"address"`
	Purpose *string    `json:"purpose"`
}

// Seed makes what is missing of the demo's accounts, wallets, balances and offers. Running it again
// changes nothing.
func Seed(ctx context.Context, w World) error {
	admin, err := client.New(w.API).Login(ctx, w.AdminEmail, w.AdminPass)
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, w.DatabaseURL, store.Options{MaxConns: 2})
	if err != nil {
		return err
	}
	s := &seeder{World: w, admin: admin, store: db, ids: map[string]uuid.UUID{}}
	return errors.Join(s.run(ctx), db.Close())
}

func (s *seeder) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{s.people, s.houseWallets, s.wallets, s.float, s.offers} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *seeder) people(ctx context.Context) error {
	for _, p := range People() {
		in := map[string]any{
			"email": p.Email, "phone_number": p.Phone, "first_name": p.First, "last_name": p.Last,
			"password": Password, "role": p.Role,
		}
		if p.Vendor != "" {
			in["vendor_id"] = s.ids[p.Vendor]
		}
		var made account
		err := s.admin.Post(ctx, "/api/v1/auth/users", "", in, &made)
		if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Status == http.StatusConflict {
			known, err := s.store.UserByEmail(ctx, p.Email)
			if err != nil {
				return err
			}
			s.ids[p.Email] = known.ID
			continue
		}
		if err != nil {
			return fmt.Errorf("account %s: %w", p.Email, err)
		}
		s.ids[p.Email] = made.ID
	}
	return nil
}

// houseWallets provisions the house's own wallets on TRON.
func (s *seeder) houseWallets(ctx context.Context) error {
	for _, purpose := range []exchange.HousePurpose{exchange.HouseGas, exchange.HouseTreasury} {
		have, _, err := s.store.ListWallets(ctx, store.Everything(),
			store.WalletFilter{Network: exchange.Tron, Purpose: purpose}, store.Page{Number: 1, Size: 1})
		if err != nil {
			return err
		}
		if len(have) > 0 {
			continue
		}
		in := map[string]any{"purpose": purpose, "network": "tron", "asset": "USDT", "label": "House " + string(purpose)}
		if err := s.admin.Post(ctx, "/api/v1/auth/wallets/provision", "demo-house-"+string(purpose), in, nil); err != nil {
			return fmt.Errorf("house wallet %s: %w", purpose, err)
		}
	}
	return nil
}

func (s *seeder) wallets(ctx context.Context) error {
	if err := Watched(ctx, s.store, exchange.Tron); err != nil {
		return err
	}
	var funded []exchange.Wallet
	for _, p := range People() {
		if !p.Wallet {
			continue
		}
		w, err := s.wallet(ctx, p)
		if err != nil {
			return fmt.Errorf("wallet of %s: %w", p.Email, err)
		}
		if p.Role != "vendor" {
			continue
		}
		if err := s.fund(ctx, w); err != nil {
			return fmt.Errorf("funds of %s: %w", p.Email, err)
		}
		funded = append(funded, w)
	}
	for _, w := range funded {
		for _, least := range []money.Amount{money.Must(money.TRX, "0.000001"), money.Must(money.USDT, "0.000001")} {
			if err := Booked(ctx, s.store, w, least); err != nil {
				return err
			}
		}
	}
	return nil
}

// wallet finds or creates the person's wallet on TRON.
func (s *seeder) wallet(ctx context.Context, p Person) (exchange.Wallet, error) {
	id := s.ids[p.Email]
	w, err := s.store.DefaultWallet(ctx, id, exchange.Tron)
	if err == nil || exchange.CodeOf(err) != exchange.CodeNotFound {
		return w, err
	}
	in := map[string]any{"user_id": id, "network": "tron", "asset": "USDT", "set_default": true, "label": p.First + "'s wallet"}
	var made wallet
	if err := s.admin.Post(ctx, "/api/v1/auth/wallets", "demo-wallet-"+p.Email, in, &made); err != nil {
		return w, err
	}
	return s.store.Wallet(ctx, store.Everything(), made.ID)
}

// fund brings coins to a wallet on the chain, each once. The product sees and books them.
func (s *seeder) fund(ctx context.Context, w exchange.Wallet) error {
	var movements []struct {
		Token string `json:"token"` // empty for TRX
	}
	if err := s.control(ctx, http.MethodGet, "/movements?address="+url.QueryEscape(w.Address), nil, &movements); err != nil {
		return err
	}
	came := map[bool]bool{} // whether TRX (true) and tokens (false) came
	for _, m := range movements {
		came[m.Token == ""] = true
	}
	for _, m := range []money.Amount{money.Must(money.TRX, vendorTRX), money.Must(money.USDT, vendorUSDT)} {
		if came[m.Asset() == money.TRX] {
			continue
		}
		in := map[string]any{"address": w.Address, "token": m.Asset(), "amount": m.Units().String(), "mine": true}
		if err := s.control(ctx, http.MethodPost, "/fund", in, nil); err != nil {
			return err
		}
	}
	return nil
}

// float books the house's money at the operator, from which refunds are paid.
func (s *seeder) float(ctx context.Context) error {
	kes := money.Must(money.KES, payoutFloat)
	return s.store.Post(ctx, exchange.Posting{Entries: []exchange.Entry{{
		Key: "opening:momo_payout", Kind: "float.opening", ObjectType: "house", ObjectID: uuid.Nil,
		Lines: exchange.Lines(
			exchange.Debit(exchange.House(exchange.AccMomoPayout, money.KES), kes),
			exchange.Credit(exchange.House(exchange.AccCapital, money.KES), kes)),
	}}})
}

// offers publishes one offer for each vendor.
func (s *seeder) offers(ctx context.Context) error {
	for _, p := range People() {
		if p.Role != "vendor" {
			continue
		}
		c, err := client.New(s.API).Login(ctx, p.Email, Password)
		if err != nil {
			return err
		}
		var have []struct{}
		if err := c.Get(ctx, "/api/v1/auth/offers?page_id=1&page_size=5&vendor_id="+s.ids[p.Email].String(), &have); err != nil {
			return err
		}
		if len(have) > 0 {
			continue
		}
		in := map[string]any{
			"offer_type": "SELL", "asset": "USDT", "network": "tron", "usdt_amount": offerUSDT, "rate": offerRate,
			"min_order": offerMin, "max_order": offerMax, "description": p.First + " sells USDT on TRON",
		}
		var made account
		if err := c.Post(ctx, "/api/v1/auth/offers", "demo-offer-"+p.Email, in, &made); err != nil {
			return fmt.Errorf("offer of %s: %w", p.Email, err)
		}
		if err := c.Post(ctx, "/api/v1/auth/offers/"+made.ID.String()+"/publish", "demo-publish-"+p.Email, nil, nil); err != nil {
			return fmt.Errorf("publishing the offer of %s: %w", p.Email, err)
		}
	}
	return nil
}

// control talks to the development node's control endpoint.
func (s *seeder) control(ctx context.Context, method, path string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return err
		}
	}
	const timeout = 15 * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.TronControl+path, &body)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // the answer was read
	if resp.StatusCode != http.StatusOK {
		var refused struct {
			Error string `json:"error"`
		}
		_ = json.NewDecoder(resp.Body).Decode(&refused) // the status alone says enough
		return fmt.Errorf("TRON node: %s %s: %s %s", method, path, resp.Status, refused.Error)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}
