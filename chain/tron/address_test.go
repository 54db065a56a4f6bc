package tron

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kivuko/chain"
)

func TestParseAddressNamesWhatIsWrong(t *testing.T) {
	const good = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
	for text, want := range map[string]error{
		good: nil,
		"":   errAddressEmpty,
		"0xdAC17F958D2ee523a2206206994597C13D831ec7": errAddressEthereum,
		"0xdac17f958d2ee523a2206206994597c13d831ec7": errAddressEthereum,
		"0Xdac17f958d2ee523a2206206994597c13d831ec7": errAddressEthereum,
		"dac17f958d2ee523a2206206994597c13d831ec7":   errAddressEthereum,
		"0x": errAddressEthereum,
		"41a614f803b6fd780986a42c78ec9c7f77e6ded13c":   errAddressHex,
		"41A614F803B6FD780986A42C78EC9C7F77E6DED13C":   errAddressHex,
		"0x41a614f803b6fd780986a42c78ec9c7f77e6ded13c": errAddressHex,
		good[:33]:                              errAddressLength,
		good + "t":                             errAddressLength,
		strings.Repeat("T", 129):               errAddressLength,
		strings.Repeat("é", 4000):              errAddressLength,
		"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u":   errAddressChecksum,
		"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLJ6t":   errAddressChecksum,
		"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6O":   errAddressAlphabet,
		" " + good[1:]:                         errAddressAlphabet,
		good + "\n":                            errAddressAlphabet,
		"тR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t":   errAddressAlphabet,
		"1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2":   errAddressPrefix,
		"bc1qar0srrr7xfkvy5l643lydnw9re59gtzz": errAddressAlphabet,
	} {
		_, err := parse(text)
		if !errors.Is(err, want) {
			t.Errorf("%.60q: %v, want %v", text, err, want)
		}
		_, err = ParseAddress(text)
		if e, ok := errors.AsType[*chain.Error](err); want != nil && (!ok || e.Reason != chain.ReasonAddress || e.Detail != want.Error()) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// Any change of one character is detected, and any 20 bytes can be written and read back.
func TestAddressRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := accountID(rapid.SliceOfN(rapid.Byte(), idLength, idLength).Draw(t, "id"))
		text := id.String()
		if got, err := parse(text); err != nil || got != id {
			t.Fatalf("%s: %v, %v", text, got, err)
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		with := rapid.SampledFrom([]byte("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")).Draw(t, "with")
		if text[at] == with {
			return
		}
		if got, err := parse(text[:at] + string(with) + text[at+1:]); err == nil {
			t.Fatalf("a mistyped %s was read as %s", text, got)
		}
	})
}

func FuzzParseAddress(f *testing.F) {
	f.Add("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t")
	f.Add("0x41")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseAddress(s)
		if err == nil && got != s {
			t.Errorf("%q has the canonical form %q: base58check has no second spelling", s, got)
		}
	})
}

func TestPublicKeyMustBeUncompressed(t *testing.T) {
	c := offline(t)
	for _, key := range [][]byte{nil, make([]byte, 33), make([]byte, 64), make([]byte, 65), make([]byte, 66)} {
		if a, err := c.Address(key); chain.ReasonOf(err) != chain.ReasonAddress {
			t.Errorf("%d bytes: %s, %v", len(key), a, err)
		}
	}
}

func TestEndpointHidesItsKey(t *testing.T) {
	e := Endpoint{Address: "node:50051", APIKey: "secret-api-key"}
	c := Config{FullNodes: []Endpoint{e}}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "endpoint", e, "config", c)
	for _, s := range []string{fmt.Sprint(e), fmt.Sprintf("%+v %#v %v %x", c, c, &e, e), log.String()} {
		if strings.Contains(s, "secret") || strings.Contains(s, "7365637265742d") {
			t.Errorf("the key is shown: %s", s)
		}
	}
}
