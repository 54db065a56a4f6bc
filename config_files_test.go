package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func secretFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Production accepts a configuration whose every value is a file.
func TestEveryVariableMayBeAFile(t *testing.T) {
	files := map[string]string{}
	for name, value := range productionEnvironment() {
		files[name+"_FILE"] = secretFile(t, value+"\n")
	}
	c, err := load(t, files)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkAll(c); err != nil {
		t.Fatal(err)
	}
	if want := productionEnvironment()["MOMO_PASSKEY"]; c.Momo.Passkey != want {
		t.Errorf("the file held %q, and %q was read", want, c.Momo.Passkey)
	}
}

func TestFilesOfVariablesAreRefused(t *testing.T) {
	const secret = "c0ffee"
	for name, c := range map[string]struct {
		variables map[string]string
		want      string
	}{
		"both":     {map[string]string{"MOMO_PASSKEY": "a", "MOMO_PASSKEY_FILE": secretFile(t, secret)}, "KIVUKO_MOMO_PASSKEY_FILE and KIVUKO_MOMO_PASSKEY must not both be set"},
		"unknown":  {map[string]string{"MOMO_PASKEY_FILE": secretFile(t, secret)}, "KIVUKO_MOMO_PASKEY_FILE names a file for KIVUKO_MOMO_PASKEY, which is not a variable of Kivuko"},
		"absent":   {map[string]string{"MOMO_PASSKEY_FILE": filepath.Join(t.TempDir(), "none")}, "KIVUKO_MOMO_PASSKEY_FILE: open"},
		"too long": {map[string]string{"MOMO_PASSKEY_FILE": secretFile(t, strings.Repeat(secret, maxSecretFile))}, "KIVUKO_MOMO_PASSKEY_FILE: the file is longer than 65536 bytes"},
		"no key":   {map[string]string{"MOMO_CALLBACK_KEY_FILE": secretFile(t, secret)}, "KIVUKO_MOMO_CALLBACK_KEY: must be 64 hexadecimal digits"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.variables)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v, want it to say %q and nothing of the secret", err, c.want)
			}
		})
	}
}

// Production refuses to start when an empty file leaves a variable unset.
func TestAnEmptyFileSetsNothing(t *testing.T) {
	files := productionEnvironment()
	delete(files, "MOMO_PASSKEY")
	files["MOMO_PASSKEY_FILE"] = secretFile(t, "\n")
	c, err := load(t, files)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkAll(c); err == nil || !strings.Contains(err.Error(), "KIVUKO_MOMO_PASSKEY must be set") {
		t.Errorf("%v", err)
	}
}

// Variables of other programs keep their names and values.
func TestFilesOfOthersAreLeftAlone(t *testing.T) {
	given := map[string]string{"SSL_CERT_FILE": "/absent", "KIVUKO_MODE": "local", "KIVUKO_COLD_KEY": "cold.json"}
	if got, err := withFiles(given); err != nil || !maps.Equal(got, given) {
		t.Errorf("%v, %v", got, err)
	}
}
