package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// timeLayout is RFC 3339 with milliseconds; every time on the wire is UTC.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// timestamp is a time in the format of responses.
type timestamp string

func stamp(t time.Time) timestamp { return timestamp(t.UTC().Format(timeLayout)) }

// NullableString is a text that may be absent, in the format of the interface description.
type NullableString struct {
	String string `json:"String"`
	Valid  bool   `json:"Valid"`
}

// NullableTime is a time that may be absent, in the format of the interface description. Time is always a text: the zero
// time when absent.
type NullableTime struct {
	Time  timestamp `json:"Time"`
	Valid bool      `json:"Valid"`
}

func nullString(s string) NullableString { return NullableString{s, s != ""} }

func nullTime(t time.Time) NullableTime { return NullableTime{stamp(t), !t.IsZero()} }

// optTime returns nil, which is null in JSON, for an absent time.
func optTime(t time.Time) *timestamp {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}

// optText returns nil, which is null in JSON, for an absent text.
func optText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// optID returns nil, which is null in JSON, for an absent id.
func optID(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// each converts a list. An empty one is never nil, so that JSON shows [].
func each[A, B any](in []A, convert func(A) B) []B {
	out := make([]B, 0, len(in))
	for _, a := range in {
		out = append(out, convert(a))
	}
	return out
}

// names lists the values of a type of words.
func names[S ~string](in []S) []string {
	return each(in, func(s S) string { return string(s) })
}

// showOne answers with the object of the path's id. Every caller who may use the operation may see every object.
func showOne[T, W any](find func(context.Context, uuid.UUID) (T, error), wire func(T) W) func(*call) error {
	return func(c *call) error {
		id, err := c.pathID("id")
		if err != nil {
			return err
		}
		return answer(c, http.StatusOK, wire)(find(c.ctx, id))
	}
}

// answer returns a function that answers with an object that was read or changed, or hides that it is missing.
func answer[T, W any](c *call, status int, wire func(T) W) func(T, error) error {
	return func(found T, err error) error {
		if err != nil {
			return hideAbsence(err)
		}
		return c.json(status, wire(found))
	}
}

// listed returns a function that answers with a page of a list that was read.
func listed[T, W any](c *call, plural string, page store.Page, wire func(T) W) func([]T, int, error) error {
	return func(rows []T, total int, err error) error {
		if err != nil {
			return err
		}
		return c.list(plural, each(rows, wire), page, total)
	}
}

// wireUser is a user as staff and the user see it.
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
	EmailProven *timestamp    `json:"email_proven_at"`
	PhoneProven *timestamp    `json:"phone_proven_at"`
	CreatedAt   timestamp     `json:"created_at"`
	UpdatedAt   timestamp     `json:"updated_at"`
}

func userWire(u exchange.User) wireUser {
	return wireUser{
		ID: u.ID, Email: u.Email, PhoneNumber: u.PhoneNumber.Digits(), FirstName: u.FirstName, LastName: u.LastName,
		Role: u.Role, IsActive: u.IsActive, VendorID: optID(u.VendorID), VerifiedAt: optTime(u.VerifiedAt),
		EmailProven: optTime(u.EmailProvenAt), PhoneProven: optTime(u.PhoneProvenAt),
		CreatedAt: stamp(u.CreatedAt), UpdatedAt: stamp(u.UpdatedAt),
	}
}

// entryWire is a user in the account-status listing, which has exactly the fields of the interface description.
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
