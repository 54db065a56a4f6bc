package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// wordNames are the names of fields and parameters whose values clients branch on.
var wordNames = regexp.MustCompile(`(^|[. ])(status|status_detail|code|object_type|action|purpose|kind|type|network|asset|fee_asset|role|payment_method|` +
	`currency|fiat_currency|state|rail|scope|direction|result|outcome|verdict|owner_type|wallet_type|custody|event_type|order_type|order_subtype|offer_type)$`)

// TestWordsOfTheContract looks for values that clients branch on and that have no enum, and for enums that are written by
// hand although there is a generated one.
func TestWordsOfTheContract(t *testing.T) {
	doc := contract(t)
	lists, generated := map[string]string{}, map[string]bool{}
	for _, w := range words() {
		generated[w.name] = true
		if key := wordKey(w.values, w.nullable); lists[key] == "" {
			lists[key] = w.name
		}
	}
	check := func(where string, s *openapi3.SchemaRef) {
		switch {
		case s.Ref != "" || s.Value.Type == nil || !s.Value.Type.Includes("string") || s.Value.Const != nil:
		case len(s.Value.Enum) > 0:
			var values []string
			for _, v := range s.Value.Enum {
				if v != nil {
					values = append(values, fmt.Sprint(v))
				}
			}
			if name := lists[wordKey(values, s.Value.Type.Includes("null"))]; name != "" && len(values) > 1 {
				t.Errorf("%s repeats the values of %s", where, name)
			} else if len(values) > 1 && !writtenLists[where] {
				t.Errorf("%s has a list that is not generated from the code", where)
			}
		case wordNames.MatchString(where) && !freeWords[where]:
			t.Errorf("%s is a word that clients branch on and has no list", where)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		if !generated[name] {
			eachProperty(doc.Components.Schemas[name], func(path string, s *openapi3.SchemaRef) { check(name+"."+path, s) })
		}
	}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			eachPart(op, func(part string, s *openapi3.SchemaRef) { check(op.OperationID+" "+part, s) })
		}
	}
}

// A list of values that lacks null refuses it, whatever the type says.
func TestListsOfValuesHaveTheNullOfTheirType(t *testing.T) {
	raw, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	seen := 0
	var walk func(at string, node any)
	walk = func(at string, node any) {
		switch node := node.(type) {
		case map[string]any:
			types, _ := node["type"].([]any)
			if list, given := node["enum"].([]any); given && slices.Contains(types, any("null")) {
				if seen++; !slices.Contains(list, nil) {
					t.Errorf("%s may be null by its type and not by its list", at)
				}
			}
			for name, inner := range node {
				walk(at+"/"+name, inner)
			}
		case []any:
			for _, inner := range node {
				walk(at, inner)
			}
		}
	}
	walk("", tree)
	if seen < 20 {
		t.Errorf("only %d lists may be null", seen)
	}
}

func wordKey(values []string, nullable bool) string {
	return fmt.Sprint(nullable, slices.Sorted(slices.Values(values)))
}

// eachPart visits the parameters of an operation and the properties of its bodies, but not those of named schemas.
func eachPart(op *openapi3.Operation, visit func(part string, s *openapi3.SchemaRef)) {
	for _, p := range op.Parameters {
		visit(p.Value.Name, p.Value.Schema)
	}
	body := func(content openapi3.Content) {
		for _, m := range content {
			if m.Schema != nil && m.Schema.Ref == "" {
				eachProperty(m.Schema, visit)
			}
		}
	}
	if op.RequestBody != nil {
		body(op.RequestBody.Value.Content)
	}
	for _, r := range op.Responses.Map() {
		body(r.Value.Content)
	}
}

// freeWords are free texts whose names look like enums: codes of countries, accounts and operators, and lists that
// deployments extend.
var freeWords = map[string]bool{
	"FiatCurrency.code": true, "createCurrency code": true, "patchCurrency code": true, "Account.code": true,
	"Breaker.code": true, "FloatMove.code": true, "ControlTerms.code": true, // the operator's
	"CodeProof.code": true, "resetPassword code": true, "confirmContact code": true, // six digits
	"Problem.type": true, "Problem.errors.code": true, // an address; the list of rules in docs/contract.md
	"docsAsset asset":               true, // a file
	"MultisigAccount.status_detail": true, // what differs, in a sentence
	"Entry.kind":                    true, // the name of a booking, for readers
}

// writtenLists are the lists of values that are written in the document: those of one operation or one field, each shorter
// than what it would be generated from.
var writtenLists = map[string]bool{
	"patchEscrowWallet status": true, "listOffers sort": true, "getMerchantStatement format": true, "listWallets wallet_type": true,
	"provisionWallet purpose": true, "settleFloatMove outcome": true, "allocateTreasury direction": true, "allocateInventory direction": true,
	"momoCallback kind": true, "momoCallback ResultCode": true, "momoCallback ResultDesc": true, // the operator's
	"FXQuote.object_type": true, "ControlTerms.object_type": true, "readyz status": true,
}

func eachProperty(s *openapi3.SchemaRef, visit func(path string, s *openapi3.SchemaRef)) {
	var walk func(at string, s *openapi3.SchemaRef)
	walk = func(at string, s *openapi3.SchemaRef) {
		if s == nil || s.Value == nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(s.Value.Properties)) {
			p := s.Value.Properties[name]
			path := strings.TrimPrefix(at+"."+name, ".")
			visit(path, p)
			if p.Ref == "" {
				walk(path, p)
			}
		}
		if s.Value.Items != nil && s.Value.Items.Ref == "" {
			walk(at, s.Value.Items)
		}
	}
	walk("", s)
}
