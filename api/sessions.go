package api

import (
	"crypto/sha256"
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

var errBadRefresh = exchange.Errorf(exchange.CodeUnauthenticated, "The refresh token is not valid.")

// refresh exchanges a refresh token, once. It ignores an access token in the header.
func (s *server) refresh(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	text := f.text("refresh_token", true, maxRefreshLength)
	if err := f.done(); err != nil {
		return err
	}
	now := s.now().UTC()
	of, err := s.ring.openRefresh(text, now)
	if err != nil {
		return errBadRefresh
	}
	// The lifetime in the token is only an upper bound: the store has the end of the session.
	nextText, hash, err := s.ring.refresh(of.UserID, of.SessionID, now, now.Add(RefreshTokenLife))
	if err != nil {
		return err
	}
	old := store.Session{UserID: of.UserID, FamilyID: of.SessionID, TokenHash: sha256.Sum256([]byte(text))}
	next := store.Session{ID: newID(), TokenHash: hash, IP: c.who.IP, UserAgent: userAgent(c.fc), CreatedAt: now}
	u, session, err := s.Store.RotateSession(c.ctx, old, next)
	if err != nil {
		s.sessions.forget(of.UserID) // the session may have ended
		return err
	}
	state, err := s.Store.AuthState(c.ctx, u.ID, session.FamilyID)
	if err != nil {
		return err
	}
	answer, err := s.tokens(u, state.AuthVersion, session, nextText)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, answer)
}

func (s *server) logout(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	return s.endSession(c, c.who.SessionID, "logout")
}

// deleteSession ends a session of the caller's own, on another device for example.
func (s *server) deleteSession(c *call) error {
	id, err := c.idAlone()
	if err != nil {
		return err
	}
	return s.endSession(c, id, "ended by its user")
}

func (s *server) endSession(c *call, id uuid.UUID, reason string) error {
	if err := s.Store.RevokeSession(c.ctx, id, reason, c.who); err != nil {
		return hideAbsence(err)
	}
	s.sessions.forget(c.who.UserID)
	return c.empty()
}

func (s *server) revokeAll(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	if err := s.Store.RevokeAllSessions(c.ctx, c.who.UserID, c.who); err != nil {
		return err
	}
	s.sessions.forget(c.who.UserID)
	return c.empty()
}

// wireSession is a session as its user sees it.
type wireSession struct {
	ID          uuid.UUID          `json:"id"`
	Current     bool               `json:"current"`
	Assurance   exchange.Assurance `json:"assurance"`
	IP          string             `json:"ip"`
	UserAgent   string             `json:"user_agent"`
	CreatedAt   timestamp          `json:"created_at"`
	LastSeenAt  timestamp          `json:"last_seen_at"`
	SteppedUpAt timestamp          `json:"stepped_up_at"`
	ExpiresAt   timestamp          `json:"expires_at"`
}

// listSessions lists the caller's live sessions.
func (s *server) listSessions(c *call) error {
	all, err := s.Store.Sessions(c.ctx, c.who.UserID)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"sessions": each(all, func(l store.LiveSession) wireSession {
		return wireSession{
			ID: l.ID, Current: l.ID == c.who.SessionID, Assurance: l.Assurance, IP: l.IP, UserAgent: l.UserAgent,
			CreatedAt: stamp(l.CreatedAt), LastSeenAt: stamp(l.SeenAt), SteppedUpAt: stamp(l.SteppedUpAt), ExpiresAt: stamp(l.ExpiresAt),
		}
	})})
}
