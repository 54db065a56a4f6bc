package storetest

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// knownPayloads fails the test when the payload of an event that it caused is not what the contract says.
func knownPayloads(t testing.TB, db *sql.DB) {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), `SELECT DISTINCT ON (type, payload - 'id') type, payload FROM events
		WHERE object_type <> 'test' AND payload ->> 'object_type' IS DISTINCT FROM 'test'`)
	if err != nil {
		return // a test has dropped the database
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var kind string
		var payload []byte
		if err := rows.Scan(&kind, &payload); err != nil {
			t.Fatal(err)
		}
		object, _, _ := strings.Cut(kind, ".")
		seen := exchange.Event{ObjectType: object, Payload: payload}.ForMerchant(uuid.Max)
		if err := errors.Join(CheckPayload(kind, payload), CheckPayload(kind, seen.Payload)); err != nil {
			t.Errorf("%v\n%s", err, payload)
		}
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
}

// CheckPayload returns what is wrong with the payload of a type of event: it has exactly the fields of exchange.EventPayload.
func CheckPayload(kind string, payload []byte) error {
	all := exchange.EventTypes()
	i := slices.IndexFunc(all, func(e exchange.EventType) bool { return e.Type == kind })
	if i < 0 {
		return fmt.Errorf("there is no event %s", kind)
	}
	var have map[string]any
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.UseNumber()
	if err := decoder.Decode(&have); err != nil {
		return fmt.Errorf("the payload of %s is no object: %w", kind, err)
	}
	for _, f := range exchange.EventPayload(all[i]) {
		v, given := have[f.Name]
		delete(have, f.Name)
		switch {
		case !given && f.Optional, given && v == nil && f.Nullable:
		case !given:
			return fmt.Errorf("the payload of %s has no field %s", kind, f.Name)
		case !fits(f, v):
			return fmt.Errorf("the field %s of %s is no %s of %v: %v", f.Name, kind, f.Value, f.Words, v)
		}
	}
	for name := range have {
		return fmt.Errorf("exchange.EventPayload does not list the field %s of %s", name, kind)
	}
	return nil
}

var decimalText = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

func fits(f exchange.EventField, v any) bool {
	text, isText := v.(string)
	if len(f.Words) > 0 && !slices.Contains(f.Words, text) {
		return false
	}
	switch f.Value {
	case exchange.EventID:
		_, err := uuid.Parse(text)
		return err == nil
	case exchange.EventAmount:
		return decimalText.MatchString(text)
	case exchange.EventTime:
		at, err := time.Parse(time.RFC3339Nano, text)
		return err == nil && at.Location() == time.UTC
	case exchange.EventText:
		return isText
	case exchange.EventNumber:
		n, ok := v.(json.Number)
		_, err := n.Int64()
		return ok && err == nil
	case exchange.EventFlag:
		_, ok := v.(bool)
		return ok
	case exchange.EventTexts:
		all, ok := v.([]any)
		return ok && !slices.ContainsFunc(all, func(v any) bool { _, ok := v.(string); return !ok })
	case exchange.EventTerms:
		_, ok := v.(map[string]any)
		return ok
	}
	return false
}
