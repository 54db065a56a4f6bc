package api

import (
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"github.com/maypok86/otter/v2"

	"kivuko/exchange"
	"kivuko/store"
)

// sessionCache caches the state of sessions for a few seconds, so that not every request reads the store. A change
// made by this process removes the user's entries at once. A change made by another process takes effect here when
// the entry is older than sessionCacheLife.
type sessionCache struct {
	entries *otter.Cache[sessionKey, sessionEntry]
	now     func() time.Time

	mu      sync.Mutex // orders put and forget; readers don't need it
	changes uint64     // grows with each forget, so that put drops a state that was read before it
}

type sessionKey struct{ user, session uuid.UUID }

type sessionEntry struct {
	state store.AuthState
	until time.Time
}

func newSessionCache(now func() time.Time) (*sessionCache, error) {
	entries, err := otter.New(&otter.Options[sessionKey, sessionEntry]{MaximumSize: sessionCacheSize})
	return &sessionCache{entries: entries, now: now}, err
}

func (c *sessionCache) get(k sessionKey) (store.AuthState, uint64, bool) {
	if e, ok := c.entries.GetIfPresent(k); ok && c.now().Before(e.until) {
		return e.state, 0, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return store.AuthState{}, c.changes, false
}

func (c *sessionCache) put(k sessionKey, state store.AuthState, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changes == c.changes {
		c.entries.Set(k, sessionEntry{state, c.now().Add(sessionCacheLife)})
	}
}

// forget removes all sessions of a user from the cache.
func (c *sessionCache) forget(user uuid.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	for k := range c.entries.Keys() {
		if k.user == user {
			c.entries.Invalidate(k)
		}
	}
}

// forgetAll empties the cache, for changes that end sessions of unknown users.
func (c *sessionCache) forgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.entries.InvalidateAll()
}

var (
	errNoToken  = exchange.Errorf(exchange.CodeUnauthenticated, "Send an access token in the header Authorization: Bearer <ACCESS_TOKEN>.")
	errBadToken = exchange.Errorf(exchange.CodeUnauthenticated, "The access token is not valid, has expired or was revoked. "+
		"Exchange the refresh token at /api/v1/auth/refresh or log in again.")
)

// authenticate verifies the bearer token and sets the caller.
func (s *server) authenticate(c *call) error {
	headers := c.fc.Request().Header.PeekAll(fiber.HeaderAuthorization)
	if len(headers) == 0 {
		return errNoToken
	}
	scheme, token, _ := strings.Cut(string(headers[0]), " ")
	if len(headers) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return errNoToken
	}
	claim, err := s.ring.open(token, s.now())
	if err != nil {
		return errBadToken
	}
	state, err := s.authState(c, sessionKey{claim.UserID, claim.SessionID})
	if err != nil {
		return err
	}
	if !state.SessionLive || !state.User.IsActive || state.AuthVersion != claim.AuthVersion {
		return errBadToken
	}
	c.isCaller(state, claim.SessionID)
	return s.touch(c, state)
}

// isCaller sets the caller by the state of its session.
func (c *call) isCaller(state store.AuthState, session uuid.UUID) {
	c.user, c.auth = state.User, state.AuthVersion
	c.who.UserID, c.who.Role = state.User.ID, state.User.Role
	c.who.VendorID, c.who.SessionID = exchange.VendorOf(state.User), session
	c.who.Assurance, c.who.SteppedUpAt, c.who.SteppedUpBy, c.device = state.Assurance, state.SteppedUpAt, state.SteppedUpBy, state.DeviceID
}

// touchEvery is how often the use of a session is written down.
const touchEvery = time.Minute

// touch notes that a member of staff is at work, so that the session does not end as idle.
func (s *server) touch(c *call, state store.AuthState) error {
	if !c.who.Role.Staff() || s.now().Sub(state.SeenAt) < touchEvery {
		return nil
	}
	if err := s.Store.TouchSession(c.ctx, c.who.SessionID); err != nil {
		return err
	}
	s.sessions.forget(c.who.UserID)
	return nil
}

func (s *server) authState(c *call, k sessionKey) (store.AuthState, error) {
	state, changes, ok := s.sessions.get(k)
	if ok {
		return state, nil
	}
	state, err := s.Store.AuthState(c.ctx, k.user, k.session)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return store.AuthState{}, errBadToken
	}
	if err != nil {
		return store.AuthState{}, err
	}
	s.sessions.put(k, state, changes)
	return state, nil
}

// authorise checks that the policy allows the caller's role the route's action, and that the caller has proven what it needs.
func (s *server) authorise(c *call) error {
	if c.route.public {
		return nil
	}
	if c.refused != nil {
		return c.refused
	}
	if exchange.ScopeOf(c.who.Role, c.route.action) == exchange.ScopeNone {
		return exchange.Errorf(exchange.CodeForbidden, "The role %s may not use this operation.", c.who.Role)
	}
	return s.proven(c, c.route.needs(c.who.Role))
}

// view is the part of the SQL that limits the caller to the objects which the route's action allows.
func (c *call) view() store.View { return store.ViewOf(c.who, c.route.action) }
