package api

// The enums of the contract, its webhooks and docs/words.md are generated from the code; a test fails when they are not current.
//go:generate go test -count=1 -run WordsAreCurrent . -update
// The examples are what tests and the service exchange, on a real PostgreSQL.
//go:generate go test -count=1 -run ExamplesAreCurrent . -update

import (
	_ "embed" // openapi.yaml
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/gofiber/fiber/v2"
	swaggerFiles "github.com/swaggo/files/v2"
	"go.yaml.in/yaml/v3"

	"kivuko/exchange"
)

//go:embed openapi.yaml
var openapiYAML []byte

// Document is the contract as it is served, as JSON.
func Document() ([]byte, error) {
	var tree map[string]any
	if err := yaml.Unmarshal(openapiYAML, &tree); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	delete(tree, "x-answers") // YAML anchors only, of no use in JSON
	if err := describeConditions(tree); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	if err := describeRoles(tree); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	if err := describeExamples(tree); err != nil {
		return nil, err
	}
	raw, err := encode(tree)
	if err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	return raw, nil
}

// scopeNames say on which objects a role may use an operation.
var scopeNames = []struct {
	scope exchange.Scope
	name  string
}{{exchange.ScopeOwn, " (own)"}, {exchange.ScopeVendor, " (the merchant's)"}, {exchange.ScopeAny, " (all)"}}

// describeRoles adds to the description of each operation who may use it, as the policy says.
func describeRoles(tree map[string]any) error {
	for _, r := range (&server{}).routes() {
		op, ok := inside(tree, "paths", r.path, strings.ToLower(r.method))
		if !ok {
			return fmt.Errorf("%s %s is not described", r.method, r.path)
		}
		if !r.public {
			text, _ := op["description"].(string)
			op["description"] = strings.TrimSpace(text + "\n\nRoles: " + rolesOf(r.action) + ".")
		}
	}
	return nil
}

// rolesOf lists the roles that may perform an action, with the objects where roles differ.
func rolesOf(a exchange.Action) string {
	var groups []string
	most := ""
	for _, s := range scopeNames {
		var names []string
		for _, role := range exchange.Roles() {
			if exchange.ScopeOf(role, a) == s.scope {
				names = append(names, string(role))
			}
		}
		if len(names) > 0 {
			most = strings.Join(names, ", ")
			groups = append(groups, most+s.name)
		}
		if len(names) == len(exchange.Roles()) {
			return "all"
		}
	}
	if len(groups) == 1 {
		return most
	}
	return strings.Join(groups, "; ")
}

func (s *server) openapi(c *call) error {
	c.fc.Set(fiber.HeaderContentType, "application/json")
	c.fc.Set(fiber.HeaderCacheControl, "public, max-age=300")
	return c.fc.Send(s.document)
}

// docsPolicy lets the page run only its own scripts. Swagger UI needs style attributes, and data URLs for its icons.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

const docsPage = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Kivuko API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="icon" type="image/png" href="/docs/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

const docsStart = `window.onload = function () {
  window.ui = SwaggerUIBundle({
    url: "/openapi.json",
    dom_id: "#swagger-ui",
    deepLinking: true,
    validatorUrl: null,
    presets: [SwaggerUIBundle.presets.apis]
  });
};
`

func (s *server) docs(c *call) error {
	c.fc.Set(fiber.HeaderContentSecurityPolicy, docsPolicy)
	c.fc.Set(fiber.HeaderContentType, "text/html; charset=utf-8")
	return c.fc.SendString(docsPage)
}

// docsTypes are the files of Swagger UI that are served, with their media types.
var docsTypes = map[string]string{
	"swagger-ui.css":       "text/css; charset=utf-8",
	"swagger-ui-bundle.js": "text/javascript; charset=utf-8",
	"favicon-32x32.png":    "image/png",
	"start.js":             "text/javascript; charset=utf-8",
}

func (s *server) docsAsset(c *call) error {
	name := path.Base(c.fc.Params("asset"))
	media, known := docsTypes[name]
	if !known {
		return notFound()
	}
	raw := []byte(docsStart)
	if name != "start.js" {
		var err error
		if raw, err = fs.ReadFile(swaggerFiles.FS, name); err != nil {
			return err
		}
	}
	c.fc.Set(fiber.HeaderContentType, media)
	c.fc.Set(fiber.HeaderCacheControl, "public, max-age=86400")
	return c.fc.Status(http.StatusOK).Send(raw)
}
