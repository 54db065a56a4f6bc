package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// unknownVersion is the version in an If-Match that is no tag of ours. No object has it.
const unknownVersion = -1

// tagBytes is how much of the hash of a body is in its tag.
const tagBytes = 12

// single reports whether a route reads one object: those answers have an ETag and take If-None-Match.
func (r route) single() bool {
	return r.method == get && !r.public && (r.one || strings.HasSuffix(r.path, "id}"))
}

// describeConditions adds to the document what conditional does on the routes of the table.
func describeConditions(tree map[string]any) error {
	ref := func(kind, name string) map[string]any {
		return map[string]any{"$ref": "#/components/" + kind + "/" + name}
	}
	for _, r := range (&server{}).routes() {
		condition, status, refusal := "IfNoneMatch", "304", "NotModified"
		if r.method == patch {
			condition, status, refusal = "IfMatch", "412", "Changed"
		} else if !r.single() {
			continue
		}
		op, ok := inside(tree, "paths", r.path, strings.ToLower(r.method))
		responses, answers := inside(op, "responses")
		answer, found := inside(responses, "200")
		if name, shared := answer["$ref"].(string); shared {
			answer, found = inside(tree, "components", "responses", strings.TrimPrefix(name, "#/components/responses/"))
		}
		if !ok || !answers || !found {
			return fmt.Errorf("%s %s has no answer 200", r.method, r.path)
		}
		answer = maps.Clone(answer) // other operations share it
		headers, _ := inside(answer, "headers")
		headers = maps.Clone(headers)
		if headers == nil {
			headers = map[string]any{}
		}
		headers["ETag"] = ref("headers", "ETag")
		answer["headers"], responses["200"], responses[status] = headers, answer, ref("responses", refusal)
		parameters, _ := op["parameters"].([]any)
		op["parameters"] = append(slices.Clone(parameters), ref("parameters", condition))
	}
	return nil
}

// inside returns the object at a path of keys.
func inside(tree map[string]any, keys ...string) (map[string]any, bool) {
	for _, k := range keys {
		inner, ok := tree[k].(map[string]any)
		if !ok {
			return nil, false
		}
		tree = inner
	}
	return tree, true
}

// tagged answers with one object that a PATCH can change, and its version.
func (c *call) tagged(version int64, body any) error {
	c.version = version
	return c.json(http.StatusOK, body)
}

// expectations reads If-Match: the versions of which the statement of a PATCH must find one. Any other operation refuses the
// header, because a caller who sends it relies on it. Public operations have no versions and ignore it.
func (c *call) expectations() error {
	given := c.fc.Request().Header.PeekAll(fiber.HeaderIfMatch)
	switch {
	case len(given) == 0, c.route.public:
	case c.route.method == patch:
		c.ifVersions = versionsIn(string(bytes.Join(given, []byte(","))))
	default:
		return exchange.Invalid(exchange.FieldError{
			Pointer: "header/" + fiber.HeaderIfMatch, Code: "unknown_header", Message: "must be left out: only PATCH takes it",
		})
	}
	return nil
}

// conditional runs a handler under the request's preconditions. If-None-Match of a read answers 304 when the object is the
// one that the caller has.
func (s *server) conditional(c *call) error {
	err := c.route.handle(c)
	if len(c.ifVersions) > 0 && errors.Is(err, pg.ErrChangedMeanwhile) {
		return exchange.ChangedMeanwhile()
	}
	if err != nil || c.fc.Response().StatusCode() != http.StatusOK || !c.route.single() && c.version == 0 {
		return err
	}
	tag := c.tag()
	c.fc.Set(fiber.HeaderETag, tag)
	if c.route.single() && holdsTag(c.fc.Get(fiber.HeaderIfNoneMatch), tag) {
		c.fc.Response().ResetBody()
		return c.fc.SendStatus(http.StatusNotModified)
	}
	return nil
}

// tag is the ETag of the answer: a hash of the body. Where a PATCH can change the object, its version comes before the
// hash: a body also has computed figures, whose change must not refuse a PATCH.
func (c *call) tag() string {
	sum := sha256.Sum256(c.fc.Response().Body())
	text := hex.EncodeToString(sum[:tagBytes])
	if c.version != 0 {
		text = strconv.FormatInt(c.version, 10) + "-" + text
	}
	return `"` + text + `"`
}

// versionsIn returns the versions in an If-Match; none when any will do. A tag that is not ours is unknownVersion.
func versionsIn(list string) []int64 {
	if list = strings.TrimSpace(list); list == "" || list == "*" {
		return nil
	}
	var versions []int64
	for tag := range strings.SplitSeq(list, ",") {
		versions = append(versions, versionIn(strings.TrimSpace(tag)))
	}
	return versions
}

// versionIn returns the version in a tag, or unknownVersion.
func versionIn(tag string) int64 {
	text, opened := strings.CutPrefix(tag, `"`)
	text, closed := strings.CutSuffix(text, `"`)
	text, _, versioned := strings.Cut(text, "-")
	version, err := strconv.ParseInt(text, 10, 64)
	if !opened || !closed || !versioned || err != nil || version <= 0 {
		return unknownVersion
	}
	return version
}

// holdsTag reports whether an If-None-Match names a tag. Tags that a proxy made weak count too.
func holdsTag(list, tag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}
