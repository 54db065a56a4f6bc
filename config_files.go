package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

const (
	variablePrefix = "KIVUKO_"
	// fileSuffix names the file that holds a variable's value: KIVUKO_X_FILE in place of KIVUKO_X.
	fileSuffix = "_FILE"
	// maxSecretFile bounds such a file; the longest value is a list of keys or nodes.
	maxSecretFile = 64 << 10
)

// withFiles replaces each KIVUKO_X_FILE by KIVUKO_X with the file's content, without a line break at its end; an
// empty file is a variable that is not set.
// Secrets then stay out of the environment, which every container tool shows. All problems are reported at once, by
// the variables' names; a file's content is never part of an error.
func withFiles(environment map[string]string) (map[string]string, error) {
	known := map[string]bool{}
	for _, v := range (Config{}).variables() {
		known[v.name] = true
	}
	out := maps.Clone(environment)
	var n need
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		value, ok := strings.CutSuffix(name, fileSuffix)
		if !ok || !strings.HasPrefix(name, variablePrefix) || environment[name] == "" {
			continue
		}
		if !known[value] {
			n.rule(false, name+" names a file for "+value+", which is not a variable of Kivuko")
			continue
		}
		if environment[value] != "" {
			n.rule(false, name+" and "+value+" must not both be set")
			continue
		}
		text, err := readSecret(environment[name])
		if err != nil {
			n.rule(false, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		delete(out, name)
		out[value] = text
	}
	return out, n.err()
}

func readSecret(path string) (string, error) {
	f, err := os.Open(path) //nolint:gosec // the deployment's environment names the file
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", err
	}
	if len(content) > maxSecretFile {
		return "", fmt.Errorf("the file is longer than %d bytes", maxSecretFile)
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}
