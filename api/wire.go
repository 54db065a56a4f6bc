package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// timeLayout is RFC 3339 with milliseconds; every time on the wire is UTC.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// timestamp is a time as clients see it.
type timestamp string

func stamp(t time.Time) timestamp { return timestamp(t.UTC().Format(timeLayout)) }

// NullableString is a text that may be absent, in the form that interface.md gives it.
type NullableString struct {
	String string `json:"String"`
	Valid  bool   `json:"Valid"`
}

// NullableTime is a time that may be absent. Time of an absent one is the zero time, not null: the
// form has a text there in both cases.
type NullableTime struct {
	Time  timestamp `json:"Time"`
	Valid bool      `json:"Valid"`
}

func nullString(s string) NullableString { return NullableString{s, s != ""} }

func nullTime(t time.Time) NullableTime { return NullableTime{stamp(t), !t.IsZero()} }

// optTime is a time that may be absent where plain JSON null says so.
func optTime(t time.Time) *timestamp {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}

// optText is a text that may be absent where plain JSON null says so.
func optText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// optID is an id that may be absent where plain JSON null says so.
func optID(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// each converts a list and never gives null for an empty one.
func each[A, B any](in []A, convert func(A) B) []B {
	out := make([]B, 0, len(in))
	for _, a := range in {
		out = append(out, convert(a))
	}
	return out
}

// showOne answers with the object of the path's id, which everybody may see who may ask.
func showOne[T, W any](find func(context.Context, uuid.UUID) (T, error), wire func(T) W) func(*call) error {
	return func(c *call) error {
		id, err := c.pathID("id")
		if err != nil {
			return err
		}
		found, err := find(c.ctx, id)
		if err != nil {
			return hideAbsence(err)
		}
		return c.json(http.StatusOK, wire(found))
	}
}

// wireUser is a user as staff, and the user itself, see it.
type wireUser struct {
	ID          uuid.UUID     `json:"id"`
	Email       string        `json:"email"`
	PhoneNumber string        `json:"phone_number"`
	FirstName   string        `json:"first_name"`
	LastName    string        `json:"last_name"`
	Role        exchange.Role `json:"role"`
	IsActive    bool          `json:"is_active"`
	VendorID    *uuid.UUID    `json:"vendor_id"`
	VerifiedAt  *timestamp    `json:"verified_at"`
	CreatedAt   timestamp     `json:"created_at"`
	UpdatedAt   timestamp     `json:"updated_at"`
}

func userWire(u exchange.User) wireUser {
	return wireUser{
		ID: u.ID, Email: u.Email, PhoneNumber: u.PhoneNumber.Digits(), FirstName: u.FirstName, LastName: u.LastName,
		Role: u.Role, IsActive: u.IsActive, VendorID: optID(u.VendorID), VerifiedAt: optTime(u.VerifiedAt),
		CreatedAt: stamp(u.CreatedAt), UpdatedAt: stamp(u.UpdatedAt),
	}
}

// entryWire is a user in the account-status listing, which has exactly the fields of interface.md.
type entryWire struct {
	ID          uuid.UUID     `json:"id"`
	Email       string        `json:"email"`
	PhoneNumber string        `json:"phone_number"`
	FirstName   string        `json:"first_name"`
	LastName    string        `json:"last_name"`
	Role        exchange.Role `json:"role"`
	IsActive    bool          `json:"is_active"`
	CreatedAt   timestamp     `json:"created_at"`
}

func userEntry(u exchange.User) entryWire {
	return entryWire{u.ID, u.Email, u.PhoneNumber.Digits(), u.FirstName, u.LastName, u.Role, u.IsActive, stamp(u.CreatedAt)}
}
