package api

import (
	"errors"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

func reading(t *testing.T, raw string) *form {
	t.Helper()
	values, nul, err := parseObject([]byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return &form{values: values, read: map[string]bool{}, bad: &nul}
}

func TestParseObjectRefuses(t *testing.T) {
	for name, raw := range map[string]string{
		"nothing": " ", "array": "[]", "text": `"x"`, "number": "1", "null": "null", "cut": `{"a":`, "trailing": `{} {}`,
		"twice": `{"a":1,"a":2}`, "twice inside": `{"a":{"b":1,"b":1}}`, "twice by escape": `{"a":1,"\u0061":2}`, "single quotes": `{'a':1}`,
		"comment": `{/**/}`, "NaN": `{"a":NaN}`, "plus": `{"a":+1}`, "broken UTF-8": "{\"a\":\"\xff\"}", "raw NUL": "{\"a\":\"\x00\"}",
		"deep": strings.Repeat(`{"a":`, 9) + "1" + strings.Repeat("}", 9), "very deep": strings.Repeat("[", 30000) + strings.Repeat("]", 30000),
	} {
		_, _, err := parseObject([]byte(raw))
		if exchange.CodeOf(err) != exchange.CodeMalformed {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := parseObject([]byte(strings.Repeat(`{"a":`, 8) + "1" + strings.Repeat("}", 8))); err != nil {
		t.Errorf("eight levels: %v", err)
	}
}

// broken returns "pointer code" of each broken rule.
func broken(err error) string {
	e, ok := errors.AsType[*exchange.Error](err)
	if !ok {
		return ""
	}
	var all []string
	for _, f := range e.Fields {
		all = append(all, f.Pointer+" "+f.Code)
	}
	return strings.Join(all, ", ")
}

func TestFormNamesTheBrokenRule(t *testing.T) {
	text := func(f *form) { f.text("a", true, 5) }
	line := func(f *form) { f.line("a", true, 5) }
	amount := func(f *form) { f.amount("a", money.USDT, true) }
	whole := func(f *form) { f.integer("a", true, 1, 10) }
	for _, c := range []struct {
		raw, want string
		read      func(*form)
	}{
		{`{}`, "/a required", text},
		{`{"a":null}`, "/a required", text},
		{`{"a":""}`, "/a required", text},
		{`{"a":7}`, "/a type", text},
		{`{"a":{}}`, "/a type", text},
		{`{"a":"sixsix"}`, "/a too_long", text},
		{`{"a":"äöüßé"}`, "", text},
		{`{"a":"x\u0000y"}`, "/a control_character", text},
		{`{"a":"x\ty"}`, "/a control_character", text},
		{`{"a":"x\ny"}`, "/a control_character", line},
		{`{"a":"   "}`, "/a required", line},
		{`{"a":"ok","b":1}`, "/b unknown_field", text},
		{`{"a":"ok","x/y~":1}`, "/x~1y~0 unknown_field", text},
		{`{"a":"10"}`, "", amount},
		{`{"a":"10.123456"}`, "", amount},
		{`{"a":"10.1234567"}`, "/a precision", amount},
		{`{"a":10}`, "/a type", amount},
		{`{"a":10.5}`, "/a type", amount},
		{`{"a":""}`, "/a required", amount},
		{`{"a":"-1"}`, "/a format", amount},
		{`{"a":"+1"}`, "/a format", amount},
		{`{"a":"1e3"}`, "/a format", amount},
		{`{"a":"NaN"}`, "/a format", amount},
		{`{"a":" 1"}`, "/a format", amount},
		{`{"a":"1,000"}`, "/a format", amount},
		{`{"a":"١٠"}`, "/a format", amount},
		{`{"a":".5"}`, "/a format", amount},
		{`{"a":"5."}`, "/a format", amount},
		{`{"a":"0"}`, "/a out_of_range", amount},
		{`{"a":"0.000000"}`, "/a out_of_range", amount},
		{`{"a":"1000000000000000"}`, "/a out_of_range", amount},
		{`{"a":5}`, "", whole},
		{`{"a":0}`, "/a out_of_range", whole},
		{`{"a":11}`, "/a out_of_range", whole},
		{`{"a":1e999}`, "/a type", whole},
		{`{"a":1.5}`, "/a type", whole},
		{`{"a":99999999999999999999}`, "/a out_of_range", whole},
		{`{"a":"5"}`, "/a type", whole},
		{`{"a":"not-a-uuid"}`, "/a format", func(f *form) { f.id("a", true) }},
		{`{"a":"{019a9f5e-0000-7000-8000-000000000000}"}`, "/a format", func(f *form) { f.id("a", true) }},
		{`{"a":"maybe"}`, "/a enum", func(f *form) { f.oneOf("a", true, "yes", "no") }},
		{`{"a":"yes"}`, "/a type", func(f *form) { f.boolean("a", true) }},
		{`{"a":{"b":1}}`, "/a/b type", func(f *form) { f.object("a", true).text("b", true, 5) }},
		{`{"a":{"b":"x","c":1}}`, "/a/c unknown_field", func(f *form) { f.object("a", true).text("b", true, 5) }},
		{`{"a":[]}`, "/a type", func(f *form) { f.object("a", true) }},
	} {
		f := reading(t, c.raw)
		c.read(f)
		if got := broken(f.done()); got != c.want {
			t.Errorf("%s: %q, want %q", c.raw, got, c.want)
		}
	}
}

func TestAmountAsNumberIsExplained(t *testing.T) {
	f := reading(t, `{"crypto_amount": 10.5}`)
	f.amount("crypto_amount", money.USDT, true)
	e, ok := errors.AsType[*exchange.Error](f.done())
	if !ok {
		t.Fatal("the number is accepted")
	}
	if got := e.Fields[0].Message; got != `must be a decimal string such as "10.50"; amounts are never JSON numbers` {
		t.Errorf("message: %s", got)
	}
}
