package demo

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

const (
	offerAmount = "2000"
	offerRate   = "129.355"
	buyingRate  = "128.755" // of offers to buy
	offerMin    = "1"
	offerMax    = "1000"
)

// networkNames are the networks' display names.
var networkNames = map[exchange.Network]string{exchange.Tron: "TRON", exchange.Ethereum: "Ethereum", exchange.Solana: "Solana"}

// offers publishes each vendor's offers on a network.
func (s *seeder) offers(ctx context.Context, n exchange.Network) error {
	for email, c := range s.vendors {
		p := person(email)
		for _, asset := range n.WalletAssets()[1:] {
			if asset == money.USDC && n != usdcOn {
				continue
			}
			for _, kind := range []exchange.OfferType{exchange.OfferSell, exchange.OfferBuy} {
				if err := s.offer(ctx, c, p, kind, n, asset); err != nil {
					return fmt.Errorf("offer of %s: %w", p.Email, err)
				}
			}
		}
	}
	return nil
}

// offersPage is the largest page of offers.
const offersPage = 10

// listed has the fields of an offer that the demo reads.
type listed struct {
	account
	Status      string   `json:"status"`
	Description nullable `json:"description"`
}

// offer makes an offer, unless the vendor ever published such an offer there. Other drafts of the vendor stay as they are.
func (s *seeder) offer(ctx context.Context, c *client.Client, p Person, kind exchange.OfferType, n exchange.Network, asset money.Asset) error {
	key, does, rate := strings.Join([]string{p.Email, string(n), string(asset)}, "-"), "sells", offerRate
	if kind == exchange.OfferBuy {
		key, does, rate = key+"-buy", "buys", buyingRate
	}
	description := fmt.Sprintf("%s %s %s on %s", p.First, does, asset, networkNames[n])
	var made account
	query := url.Values{
		"page_size": {strconv.Itoa(offersPage)}, "vendor_id": {s.ids[p.Email].String()}, "network": {string(n)}, "asset": {string(asset)},
		"offer_type": {string(kind)},
	}
	for page, more := 1, true; more; page++ {
		query.Set("page_id", strconv.Itoa(page))
		var have []listed
		if err := c.Get(ctx, "/api/v1/auth/offers?"+query.Encode(), &have); err != nil {
			return err
		}
		for _, one := range have {
			if one.Status != string(exchange.OfferDraft) {
				return nil
			}
			if one.Description.String == description {
				made = one.account // an earlier run ended before it was published
			}
		}
		more = len(have) == offersPage
	}
	if made.ID == uuid.Nil {
		in := map[string]any{
			"offer_type": kind, "asset": asset, "network": n, "usdt_amount": offerAmount, "rate": rate,
			"min_order": offerMin, "max_order": offerMax, "description": description,
		}
		if err := c.Post(ctx, "/api/v1/auth/offers", "demo-offer-"+key, in, &made); err != nil {
			return err
		}
	}
	if err := c.Post(ctx, "/api/v1/auth/offers/"+made.ID.String()+"/publish", "demo-publish-"+made.ID.String(), nil, nil); err != nil {
		return fmt.Errorf("publishing: %w", err)
	}
	return nil
}
