package demo

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// offersAPI is the part of the API that offers are made at.
type offersAPI struct {
	have []listed
	made []string // what was posted: the path and the key
	id   uuid.UUID
}

func (a *offersAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		a.made = append(a.made, r.URL.Path+" "+r.Header.Get("Idempotency-Key"))
		_ = json.NewEncoder(w).Encode(account{a.id})
		return
	}
	page, _ := strconv.Atoi(r.FormValue("page_id"))
	size, _ := strconv.Atoi(r.FormValue("page_size"))
	pages := slices.Collect(slices.Chunk(a.have, size))
	rows := []listed{}
	if page <= len(pages) {
		rows = pages[page-1]
	}
	_ = json.NewEncoder(w).Encode(rows)
}

// The demo publishes its own offer once, whatever other drafts the vendor has.
func TestOffersOfOthersAreLeftAlone(t *testing.T) {
	made, drafted, strange := uuid.New(), uuid.New(), uuid.New()
	p := person(VendorEmail)
	offer := func(id uuid.UUID, status exchange.OfferStatus, description string) listed {
		return listed{account: account{id}, Status: string(status), Description: nullable{description, true}}
	}
	own := p.First + " sells USDT on TRON"
	const path, key = "/api/v1/auth/offers", "demo-offer-" + VendorEmail + "-tron-USDT"
	publish := func(id uuid.UUID) string { return path + "/" + id.String() + "/publish demo-publish-" + id.String() }
	many := slices.Repeat([]listed{offer(strange, exchange.OfferDraft, "mine")}, 2*offersPage)
	for name, test := range map[string]struct {
		have []listed
		want []string
	}{
		"nothing":                              {nil, []string{path + " " + key, publish(made)}},
		"a draft of the vendor's":              {many[:1], []string{path + " " + key, publish(made)}},
		"a draft of the vendor's above ours":   {[]listed{many[0], offer(drafted, exchange.OfferDraft, own)}, []string{publish(drafted)}},
		"a published one below the draft":      {[]listed{many[0], offer(strange, exchange.OfferActive, own)}, nil},
		"a published one below many drafts":    {append(slices.Clone(many), offer(strange, exchange.OfferClosed, own)), nil},
		"our draft below many of the vendor's": {append(slices.Clone(many), offer(drafted, exchange.OfferDraft, own)), []string{publish(drafted)}},
	} {
		t.Run(name, func(t *testing.T) {
			api := &offersAPI{have: test.have, id: made}
			server := httptest.NewServer(api)
			defer server.Close()
			s := &seeder{ids: map[string]uuid.UUID{}}
			if err := s.offer(t.Context(), client.New(server.URL), p, exchange.OfferSell, exchange.Tron, money.USDT); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(api.made, test.want) {
				t.Errorf("posted %q, want %q", api.made, test.want)
			}
		})
	}
}
