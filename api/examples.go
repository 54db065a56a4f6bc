package api

import (
	_ "embed" // examples.json
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// examplesJSON has one request and one answer of each operation, as tests exchanged them with this service.
//
//go:embed examples.json
var examplesJSON []byte

// operationExample is one request of an operation and the answer to it. Request and Answer are absent where the operation
// has no body.
type operationExample struct {
	Parameters map[string]any `json:"parameters,omitempty"` // of path and query
	Request    any            `json:"request,omitempty"`
	Status     string         `json:"status"`
	Answer     any            `json:"answer,omitempty"`
}

func readExamples() (map[string]operationExample, error) {
	var all map[string]operationExample
	if err := json.Unmarshal(examplesJSON, &all); err != nil {
		return nil, fmt.Errorf("examples.json: %w", err)
	}
	return all, nil
}

// describeExamples adds the examples to the operations of the document. What operations share is copied first. An example of what is
// no longer described is left out; a test finds it.
func describeExamples(tree map[string]any) error {
	all, err := readExamples()
	if err != nil {
		return err
	}
	for _, r := range (&server{}).routes() {
		op, ok := inside(tree, "paths", r.path, strings.ToLower(r.method))
		if !ok {
			return fmt.Errorf("%s %s is not described", r.method, r.path)
		}
		id, _ := op["operationId"].(string)
		example, found := all[id]
		if !found {
			continue
		}
		parameters, _ := op["parameters"].([]any)
		parameters = slices.Clone(parameters)
		for i, p := range parameters {
			described := ownCopy(tree, p)
			name, _ := described["name"].(string)
			if v, given := example.Parameters[name]; given {
				described["example"], parameters[i] = v, described
			}
		}
		if len(parameters) > 0 {
			op["parameters"] = parameters
		}
		if op["requestBody"] != nil && example.Request != nil {
			op["requestBody"] = withExample(ownCopy(tree, op["requestBody"]), example.Request)
		}
		if responses, _ := inside(op, "responses"); responses[example.Status] != nil && example.Answer != nil {
			responses = maps.Clone(responses)
			responses[example.Status] = withExample(ownCopy(tree, responses[example.Status]), example.Answer)
			op["responses"] = responses
		}
	}
	return nil
}

// ownCopy is a copy of an object, or of the component that it refers to.
func ownCopy(tree map[string]any, node any) map[string]any {
	object, _ := node.(map[string]any)
	if name, shared := object["$ref"].(string); shared {
		object, _ = inside(tree, strings.Split(strings.TrimPrefix(name, "#/"), "/")...)
	}
	return maps.Clone(object)
}

// withExample sets the example of a body of JSON.
func withExample(body map[string]any, example any) map[string]any {
	content, _ := inside(body, "content")
	media, _ := inside(content, "application/json")
	content, media = maps.Clone(content), maps.Clone(media)
	media["example"], content["application/json"] = example, media
	body["content"] = content
	return body
}
