package api

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// webhookSchemas are the schemas of the bodies of deliveries, by type of event, closed for fields that the document does
// not name.
func webhookSchemas(t *testing.T) openapi3.Schemas {
	t.Helper()
	raw, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	closeObjects(tree)
	components, _ := inside(tree, "components", "schemas")
	hooks, _ := inside(tree, "webhooks")
	for kind := range hooks {
		body, ok := inside(hooks, kind, "post", "requestBody", "content", "application/json", "schema")
		if !ok {
			t.Fatalf("%s has no schema", kind)
		}
		components["sent."+kind] = body
	}
	if raw, err = json.Marshal(tree); err != nil {
		t.Fatal(err)
	}
	doc, err := loadDocument(raw)
	if err != nil {
		t.Fatal(err)
	}
	out := maps.Clone(doc.Components.Schemas)
	maps.DeleteFunc(out, func(name string, _ *openapi3.SchemaRef) bool { return !strings.HasPrefix(name, "sent.") })
	return out
}

// The bodies that endpoints get for real events fit the schemas of their types, and fit no longer with another field.
func TestDeliveriesFitTheDocument(t *testing.T) {
	w := newHarness(t)
	w.fund(w.wallet[w.people[exchange.RoleVendor].ID], "1000000")
	s := scene{w: w, who: w.people[exchange.RoleCustomer], own: true}
	s.orderID()
	s.saleID()
	s.transferID()
	s.quoteID()
	s.webhookID()
	s.swapped()
	s.paid("100", false)
	s.paid("259", true)
	w.misfit()
	w.change()
	w.comparedRun()
	w.movedFloat()
	w.destination(w.rival)
	w.proposal(w.rival)
	schemas := webhookSchemas(t)
	rows, err := storetest.Owner(t, w.store).QueryContext(t.Context(), `SELECT cursor, object_type, object_id, sequence, type, payload, at FROM events`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	kinds := map[string]bool{}
	for rows.Next() {
		var e exchange.Event
		var payload []byte
		if err := rows.Scan(&e.Cursor, &e.ObjectType, &e.ObjectID, &e.Sequence, &e.Type, &payload, &e.At); err != nil {
			t.Fatal(err)
		}
		e.Payload = payload
		raw, err := exchange.WebhookBody(e)
		if err != nil {
			t.Fatal(err)
		}
		var body map[string]any
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Fatal(err)
		}
		schema := schemas["sent."+e.Type].Value
		if err := schema.VisitJSON(body); err != nil {
			t.Errorf("%s: %v\n%s", e.Type, err, raw)
		}
		within, _ := inside(body, "data", "payload")
		within["more"] = "than documented"
		if schema.VisitJSON(body) == nil {
			t.Errorf("%s: the payload's schema is open", e.Type)
		}
		kinds[e.Type] = true
	}
	if err := rows.Err(); err != nil || len(kinds) < 15 {
		t.Errorf("only %d types of events, %v", len(kinds), err)
	}
}
