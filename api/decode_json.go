package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"kivuko/exchange"
)

// parseObject reads one JSON object. It refuses duplicate keys: encoding/json takes the last of two, a proxy may
// take the first.
func parseObject(raw []byte) (map[string]any, []exchange.FieldError, error) {
	if !utf8.Valid(raw) {
		return nil, nil, exchange.Errorf(exchange.CodeMalformed, "The body is not UTF-8.")
	}
	if !json.Valid(raw) {
		var any any
		return nil, nil, exchange.Errorf(exchange.CodeMalformed, "The body is not JSON%s.", where(json.Unmarshal(raw, &any)))
	}
	p := parser{dec: json.NewDecoder(bytes.NewReader(raw))}
	p.dec.UseNumber()
	v, err := p.value("", 0)
	if err != nil {
		return nil, nil, err
	}
	values, ok := v.(map[string]any)
	if !ok {
		return nil, nil, exchange.Errorf(exchange.CodeMalformed, "The body must be a JSON object.")
	}
	return values, p.nul, nil
}

func where(err error) string {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf(" (at byte %d)", e.Offset)
	}
	return ""
}

type parser struct {
	dec *json.Decoder
	nul []exchange.FieldError
}

func (p *parser) value(at string, depth int) (any, error) {
	t, err := p.dec.Token()
	if err != nil {
		return nil, exchange.Wrap(exchange.CodeMalformed, err, "The body is not JSON.")
	}
	switch t := t.(type) {
	case json.Delim:
		if depth >= maxJSONDepth {
			return nil, exchange.Errorf(exchange.CodeMalformed, "The body is nested deeper than %d levels.", maxJSONDepth)
		}
		if t == '{' {
			return p.object(at, depth)
		}
		return p.array(at, depth)
	case string:
		if strings.ContainsRune(t, 0) {
			p.nul = append(p.nul, exchange.FieldError{Pointer: at, Code: "control_character", Message: "must not contain the NUL character"})
		}
	}
	return t, nil
}

func (p *parser) object(at string, depth int) (any, error) {
	values := map[string]any{}
	for p.dec.More() {
		t, err := p.dec.Token()
		if err != nil {
			return nil, exchange.Wrap(exchange.CodeMalformed, err, "The body is not JSON.")
		}
		name, _ := t.(string)
		if _, twice := values[name]; twice {
			return nil, exchange.Errorf(exchange.CodeMalformed, "The body has the key %q twice.", clip(name, clipLength))
		}
		if values[name], err = p.value(at+"/"+escape(name), depth+1); err != nil {
			return nil, err
		}
	}
	_, err := p.dec.Token()
	return values, err
}

func (p *parser) array(at string, depth int) (any, error) {
	values := []any{}
	for p.dec.More() {
		v, err := p.value(at+"/"+strconv.Itoa(len(values)), depth+1)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	_, err := p.dec.Token()
	return values, err
}

// escape returns a key as a part of a JSON pointer (RFC 6901), clipped because it is the client's.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(clip(name, clipLength))
}

const clipLength = 64

// clip shortens a client's text and removes control characters and invalid UTF-8.
func clip(s string, length int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, s)
	if r := []rune(s); len(r) > length {
		return string(r[:length]) + "…"
	}
	return s
}
