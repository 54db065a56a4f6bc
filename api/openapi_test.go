package api

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"kivuko/exchange"
)

// contract loads the document as the service serves it.
func contract(t testing.TB) *openapi3.T {
	t.Helper()
	raw, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		t.Fatalf("openapi.yaml does not load: %v", err)
	}
	return doc
}

func TestDocumentIsValid(t *testing.T) {
	doc := contract(t)
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatalf("openapi.yaml is not valid: %v", err)
	}
	if doc.Info.Version != "1.1.0" {
		t.Errorf("the document says version %s, the interface description says 1.1.0", doc.Info.Version)
	}
}

// bareRoutes is the table of routes without working handlers.
func bareRoutes() []route { return (&server{}).routes() }

func TestRoutesAreThePathsOfTheDocument(t *testing.T) {
	doc := contract(t)
	var routed, documented []string
	for _, r := range bareRoutes() {
		routed = append(routed, r.method+" "+r.path)
	}
	ids := map[string]string{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			documented = append(documented, method+" "+path)
			if other, twice := ids[op.OperationID]; twice || op.OperationID == "" {
				t.Errorf("operationId %q of %s %s is missing or that of %s", op.OperationID, method, path, other)
			}
			ids[op.OperationID] = method + " " + path
		}
	}
	for _, r := range routed {
		if !slices.Contains(documented, r) {
			t.Errorf("route %s is not in openapi.yaml", r)
		}
	}
	for _, d := range documented {
		if !slices.Contains(routed, d) {
			t.Errorf("openapi.yaml has %s, which no route serves", d)
		}
	}
}

func TestDocumentMatchesTheTable(t *testing.T) {
	doc := contract(t)
	for _, r := range bareRoutes() {
		op := doc.Paths.Find(r.path).GetOperation(r.method)
		public := op.Security != nil && len(*op.Security) == 0
		if public != r.public {
			t.Errorf("%s %s: public is %v in the table and %v in the document", r.method, r.path, r.public, public)
		}
		key := op.Parameters.GetByInAndName("header", headerKey)
		if (key != nil) != (r.key != keyNone) || (key != nil && key.Required != (r.key == keyRequired)) {
			t.Errorf("%s %s: the document and the table disagree about the idempotency key", r.method, r.path)
		}
		for _, name := range pathParameter.FindAllStringSubmatch(r.path, -1) {
			if op.Parameters.GetByInAndName("path", name[1]) == nil {
				t.Errorf("%s %s: path parameter %s is not documented", r.method, r.path, name[1])
			}
		}
	}
}

func TestRouterRefusesARouteWithoutAction(t *testing.T) {
	fine := route{method: get, path: "/x", action: exchange.ActReadSelf, limit: limitGeneral, handle: func(*call) error { return nil }}
	if err := checkRoutes([]route{fine}); err != nil {
		t.Fatalf("a good line is refused: %v", err)
	}
	noAction, both, unknown := fine, fine, fine
	noAction.action = ""
	both.public = true
	unknown.action = "orders.steal"
	for name, r := range map[string]route{"no action": noAction, "action and public": both, "unknown action": unknown} {
		if checkRoutes([]route{r}) == nil {
			t.Errorf("%s: the route is accepted", name)
		}
	}
	if checkRoutes([]route{fine, fine}) == nil {
		t.Error("a duplicate route is accepted")
	}
}

// TestCodesAreWritten checks that the lists of codes agree: the domain's constants, the map to statuses with
// the document's enum, and the table in docs/words.md.
func TestCodesAreWritten(t *testing.T) {
	source, err := os.ReadFile("../exchange/error.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, m := range regexp.MustCompile(`Code\w+\s+Code\s*=\s*"(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		declared = append(declared, m[1])
	}
	if len(declared) < 20 {
		t.Fatalf("only %d codes found in exchange/error.go: the pattern is broken", len(declared))
	}
	page, err := os.ReadFile("../docs/words.md")
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\d{3}) \\|").FindAllStringSubmatch(string(page), -1) {
		written = append(written, m[1]+" "+m[2])
	}
	var enum []string
	for _, v := range contract(t).Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		enum = append(enum, v.(string))
	}
	var mapped []string
	for _, c := range Codes() {
		mapped = append(mapped, string(c))
		line := string(c) + " " + strings.TrimSpace(itoa(meanings[c].status))
		if !slices.Contains(written, line) {
			t.Errorf("docs/words.md does not say %q", line)
		}
	}
	slices.Sort(declared)
	slices.Sort(enum)
	if !slices.Equal(declared, mapped) {
		t.Errorf("codes of the domain %v and of the status map %v differ", declared, mapped)
	}
	if !slices.Equal(enum, mapped) {
		t.Errorf("codes of the document %v and of the status map %v differ", enum, mapped)
	}
	if len(written) != len(mapped) {
		t.Errorf("docs/words.md lists %d codes, the map has %d", len(written), len(mapped))
	}
}

func loadDocument(raw []byte) (*openapi3.T, error) { return openapi3.NewLoader().LoadFromData(raw) }

// TestEverythingIsDescribed checks that each tag, parameter, property and schema has a description; a reference may use
// that of its target.
func TestEverythingIsDescribed(t *testing.T) {
	doc := contract(t)
	for _, tag := range doc.Tags {
		if tag.Description == "" {
			t.Errorf("tag %s is not described", tag.Name)
		}
	}
	described := func(where string, s *openapi3.SchemaRef) {
		if s == nil {
			return
		}
		eachProperty(s, func(path string, p *openapi3.SchemaRef) {
			if p.Value.Description == "" {
				t.Errorf("%s: the property %s is not described", where, path)
			}
		})
	}
	for name, s := range doc.Components.Schemas {
		if s.Value.Description == "" {
			t.Errorf("schema %s is not described", name)
		}
		described(name, s)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			where := method + " " + path
			if op.Summary == "" {
				t.Errorf("%s has no summary", where)
			}
			for _, p := range op.Parameters {
				if p.Value.Description == "" {
					t.Errorf("%s: the parameter %s is not described", where, p.Value.Name)
				}
			}
			for _, r := range op.Responses.Map() {
				for _, m := range r.Value.Content {
					described(where, m.Schema)
				}
			}
			if op.RequestBody != nil {
				for _, m := range op.RequestBody.Value.Content {
					described(where, m.Schema)
				}
			}
		}
	}
}

// TestRolesAreDescribed checks that operations say who may use them.
func TestRolesAreDescribed(t *testing.T) {
	doc := contract(t)
	for _, r := range bareRoutes() {
		text := doc.Paths.Find(r.path).GetOperation(r.method).Description
		if _, roles, found := strings.Cut(text, "Roles: "); found == r.public || found && len(roles) < len("all.") {
			t.Errorf("%s %s is described as %q", r.method, r.path, text)
		}
	}
	for path, want := range map[string]string{
		"/api/v1/auth/orders":          "Roles: customer, user (own); vendor, subvendor (the merchant's); admin, otc_officer, treasury (all).",
		"/api/v1/auth/ledger/accounts": "Roles: admin, treasury.", "/api/v1/auth/state-machines": "Roles: all.",
	} {
		if text := doc.Paths.Find(path).Get.Description; !strings.HasSuffix(text, want) {
			t.Errorf("%s is described as %q", path, text)
		}
	}
}

// generic are the schemas whose descriptions don't say what a property that refers to them is.
var generic = []string{
	"UUID", "OptionalUUID", "Timestamp", "OptionalTimestamp", "Amount", "CryptoInput", "FiatInput", "RateInput", "ChargeInput", "NullableString", "NullableTime",
}

// TestPropertiesSayWhatTheyAre checks that properties which refer to a generic schema have a description of their own. The
// id of an object needs none.
func TestPropertiesSayWhatTheyAre(t *testing.T) {
	raw, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	delete(tree, "webhooks") // generated
	found := 0
	var walk func(at string, node any)
	walk = func(at string, node any) {
		switch node := node.(type) {
		case map[string]any:
			properties, _ := node["properties"].(map[string]any)
			for name, p := range properties {
				p, _ := p.(map[string]any)
				ref, _ := p["$ref"].(string)
				if name == "id" || !slices.Contains(generic, path.Base(ref)) {
					continue
				}
				if found++; p["description"] == nil {
					t.Errorf("%s: the property %s has only the description of %s", at, name, path.Base(ref))
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
	if found < 200 {
		t.Errorf("only %d properties were looked at", found)
	}
}

// TestAnswersAreOpen checks that the served document allows unknown fields in responses, and not in requests.
func TestAnswersAreOpen(t *testing.T) {
	doc := contract(t)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for status, r := range op.Responses.Map() {
				for _, m := range r.Value.Content {
					if m.Schema != nil && m.Schema.Value.AdditionalProperties.Has != nil && !*m.Schema.Value.AdditionalProperties.Has {
						t.Errorf("%s %s: the answer %s is closed", method, path, status)
					}
				}
			}
			if op.RequestBody == nil {
				continue
			}
			if m := op.RequestBody.Value.Content["application/json"]; m != nil && (m.Schema.Value.AdditionalProperties.Has == nil || *m.Schema.Value.AdditionalProperties.Has) {
				t.Errorf("%s %s: the request is open", method, path)
			}
		}
	}
}
