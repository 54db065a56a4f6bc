package api

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

var (
	escrowStatuses = []string{"free", "leased", "resting", "disabled"}
	escrowSwitches = []string{"free", "disabled"} // what an officer may set; orders and time set the others
)

func (s *server) escrowRoutes() []route {
	const pool = "/api/v1/auth/escrow-wallets"
	return []route{
		{method: get, path: pool, action: exchange.ActReadEscrow, limit: limitGeneral, handle: s.listEscrow},
		{method: post, path: pool, action: exchange.ActWriteEscrow, limit: limitGeneral, key: keyOptional, handle: s.provisionEscrow},
		{method: get, path: pool + "/policy", one: true, action: exchange.ActReadEscrow, limit: limitGeneral, handle: s.escrowPolicies},
		{method: patch, path: pool + "/policy", action: exchange.ActWriteEscrow, limit: limitGeneral, handle: s.patchEscrowPolicy},
		{method: get, path: pool + "/{id}", action: exchange.ActReadEscrow, limit: limitGeneral, handle: s.getEscrow},
		{method: patch, path: pool + "/{id}", action: exchange.ActWriteEscrow, limit: limitGeneral, handle: s.patchEscrow},
	}
}

// wireEscrow is an address of the escrow pool.
type wireEscrow struct {
	ID         uuid.UUID         `json:"id"`
	WalletID   uuid.UUID         `json:"wallet_id"` // the same id: an address has one wallet
	Network    string            `json:"network"`
	Address    string            `json:"address"`
	Status     string            `json:"status"`
	Trouble    *string           `json:"trouble"`
	OrderID    *uuid.UUID        `json:"order_id"`
	LeasedAt   *timestamp        `json:"leased_at"`
	RestUntil  *timestamp        `json:"rest_until"`
	LastUsedAt *timestamp        `json:"last_used_at"`
	Label      *string           `json:"label"`
	Note       *string           `json:"note"`
	Balances   map[string]string `json:"balances"`
	CreatedAt  timestamp         `json:"created_at"`
	UpdatedAt  timestamp         `json:"updated_at"`
}

func escrowWire(a exchange.EscrowAddress) wireEscrow {
	w := wireEscrow{
		ID: a.ID, WalletID: a.ID, Network: string(a.Network), Address: a.Address, Status: string(a.Status), Trouble: optText(string(a.Trouble)),
		OrderID: optID(a.OrderID), LeasedAt: optTime(a.LeasedAt), RestUntil: optTime(a.RestUntil), LastUsedAt: optTime(a.LastUsedAt),
		Label: optText(a.Label), Note: optText(a.Reason), Balances: map[string]string{}, CreatedAt: stamp(a.CreatedAt), UpdatedAt: stamp(a.UpdatedAt),
	}
	for _, m := range a.Balances {
		w.Balances[string(m.Asset())] = m.String()
	}
	return w
}

func (s *server) listEscrow(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.EscrowFilter{
		Network: exchange.Network(q.oneOf("network", networkNames...)), Status: exchange.EscrowStatus(q.oneOf("status", escrowStatuses...)),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "escrow_wallets", page, escrowWire)(s.Store.EscrowAddresses(c.ctx, filter, page))
}

// wireEscrowRequest is a request for more addresses.
type wireEscrowRequest struct {
	Network   string      `json:"network"`
	WalletIDs []uuid.UUID `json:"wallet_ids"`
	Total     int         `json:"total"`
	Most      int         `json:"most"`
}

// provisionEscrow requests more addresses. The network's signer makes their keys when the pool is replenished next.
func (s *server) provisionEscrow(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	network := exchange.Network(f.oneOf("network", true, networkNames...))
	count := f.integer("count", true, 1, exchange.MaxEscrowBatch)
	if err := f.done(); err != nil {
		return err
	}
	d, err := s.Store.ProvisionEscrow(c.ctx, c.objectID, network, *count, c.who)
	if err != nil {
		return err
	}
	return c.json(http.StatusAccepted, wireEscrowRequest{Network: string(network), WalletIDs: d.Make, Total: d.Total, Most: d.Most})
}

func (s *server) getEscrow(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	a, err := s.Store.EscrowAddress(c.ctx, id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.tagged(a.Version, escrowWire(a))
}

// patchEscrow labels, disables or enables an address.
func (s *server) patchEscrow(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	p := store.EscrowPatch{IfVersions: c.ifVersions}
	if status := exchange.EscrowStatus(f.oneOf("status", false, escrowSwitches...)); status != "" {
		p.Status = &status
	}
	for name, to := range map[string]**string{"label": &p.Label, "note": &p.Reason} {
		if text := f.line(name, false, exchange.MaxEscrowText); f.has(name) {
			*to = &text
		}
	}
	if err := f.donePatch(); err != nil {
		return err
	}
	a, err := s.Store.ChangeEscrow(c.ctx, id, p, c.who)
	if err != nil {
		return hideAbsence(err)
	}
	return c.tagged(a.Version, escrowWire(a))
}

// wireEscrowPolicy is how large the pool of a network is and for how long its addresses rest.
type wireEscrowPolicy struct {
	Network     string     `json:"network"`
	KeepFree    int        `json:"keep_free"`
	Most        int        `json:"most"`
	RestSeconds int        `json:"rest_seconds"`
	IdleSeconds int        `json:"idle_rest_seconds"`
	UserPercent int        `json:"user_percent"`
	UpdatedBy   *uuid.UUID `json:"updated_by"`
	UpdatedAt   timestamp  `json:"updated_at"`
}

func escrowPolicyWire(p exchange.EscrowPolicy) wireEscrowPolicy {
	return wireEscrowPolicy{
		Network: string(p.Network), KeepFree: p.KeepFree, Most: p.Most, RestSeconds: int(p.Rest / time.Second),
		IdleSeconds: int(p.IdleRest / time.Second), UserPercent: p.UserPercent, UpdatedBy: optID(p.UpdatedBy), UpdatedAt: stamp(p.UpdatedAt),
	}
}

// policiesVersion is the version of all policies together, which only grows.
func policiesVersion(all []exchange.EscrowPolicy) int64 {
	var sum int64
	for _, p := range all {
		sum += p.Version
	}
	return sum
}

func (s *server) escrowPolicies(c *call) error {
	if err := c.query().done(); err != nil {
		return err
	}
	all, err := s.Store.EscrowPolicies(c.ctx)
	if err != nil {
		return err
	}
	return c.tagged(policiesVersion(all), map[string]any{"policies": each(all, escrowPolicyWire)})
}

// patchEscrowPolicy changes the policy of a network. Shorter rests and a larger share of unverified users wait for a second
// officer, and the answer is 202; the other changes take effect at once.
func (s *server) patchEscrowPolicy(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	network := exchange.Network(f.oneOf("network", true, networkNames...))
	p := store.EscrowPolicyPatch{
		IfVersions: c.ifVersions,
		KeepFree:   f.integer("keep_free", false, 0, exchange.MaxEscrowKept), Most: f.integer("most", false, 1, exchange.MaxEscrowPool),
		UserPercent: f.integer("user_percent", false, 1, 100),
	}
	p.Rest, p.IdleRest = f.escrowRest("rest_seconds"), f.escrowRest("idle_rest_seconds")
	if err := f.donePatch(); err != nil {
		return err
	}
	changed, err := s.Store.ChangeEscrowPolicy(c.ctx, network, p, c.who)
	if err != nil {
		return err
	}
	if changed.Waits.ID != uuid.Nil {
		return answerPending(c, changed.Waits)
	}
	return c.tagged(changed.Version, escrowPolicyWire(changed.Policy))
}

// escrowRest reads how long an address rests; nil where the field is not given.
func (f *form) escrowRest(name string) *time.Duration {
	seconds := f.integer(name, false, int(exchange.MinEscrowRest/time.Second), int(exchange.MaxEscrowRest/time.Second))
	if seconds == nil {
		return nil
	}
	rest := time.Duration(*seconds) * time.Second
	return &rest
}
