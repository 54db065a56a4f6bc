package safe

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kivuko/dev/nodes/npm"
)

// ours are the contracts of this machine's cache, or the end of the test.
func ours(t *testing.T) Set {
	t.Helper()
	dir, err := CacheDir()
	require.NoError(t, err)
	set, err := Cached(dir)
	if err != nil {
		t.Skipf("the contracts of Safe are not on this machine (the local stack takes them from npm when it starts): %v", err)
	}
	return set
}

// pack makes a package like npm's with these contracts in it.
func pack(t *testing.T, set Set) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	files := tar.NewWriter(zipped)
	for i, c := range set {
		content, err := json.Marshal(map[string]any{"contractName": c.Name, "bytecode": "0x" + hex.EncodeToString(c.Creation)})
		require.NoError(t, err)
		name := "package/build/artifacts/contracts/" + pins()[i].path + ".json"
		require.NoError(t, files.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644}))
		_, err = files.Write(content)
		require.NoError(t, err)
	}
	require.NoError(t, files.Close())
	require.NoError(t, zipped.Close())
	return packed.Bytes()
}

// withNPM puts a program named npm first in the path, which does what the script says.
func withNPM(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "npm"), []byte("#!/bin/sh\n"+script), 0o755))
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

func TestGetExplainsWhyThereAreNoContracts(t *testing.T) {
	for name, test := range map[string]struct{ script, says string }{
		"npm fails":       {"echo 'no network' >&2; exit 1", "no network"},
		"another package": {"echo other > a.tgz", "has the hash sha512-"},
	} {
		t.Run(name, func(t *testing.T) {
			withNPM(t, test.script)
			dir := t.TempDir()
			_, err := Get(t.Context(), Options{Dir: dir, Options: npm.Options{NoInstall: true}})
			var unavailable *UnavailableError
			require.ErrorAs(t, err, &unavailable)
			require.ErrorContains(t, err, test.says)
			kept, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, kept)
		})
	}
}

func TestUnpackChecksEachContract(t *testing.T) {
	set := ours(t)
	got, err := unpack(pack(t, set))
	require.NoError(t, err)
	require.Equal(t, set, got)

	_, err = unpack(pack(t, set[:len(set)-1]))
	require.ErrorContains(t, err, "SimulateTxAccessor is not in the package")
	changed := append(Set(nil), set...)
	changed[2].Creation = bytes.Clone(set[2].Creation)
	changed[2].Creation[100] ^= 1
	_, err = unpack(pack(t, changed))
	require.ErrorContains(t, err, "SafeProxyFactory is not the contract at 0x4e1DCf7AD4e460CfD30791CCC4F9c8a4f820ec67")
	_, err = unpack([]byte("no package"))
	require.ErrorContains(t, err, "unpack the package")
}

func TestCachedChecksEachContract(t *testing.T) {
	set, dir := ours(t), filepath.Join(t.TempDir(), "new", "directory")
	_, err := Cached(dir)
	require.ErrorIs(t, err, ErrNotCached)
	require.NoError(t, keep(dir, set))
	got, err := Cached(dir)
	require.NoError(t, err)
	require.Equal(t, set, got)
	for _, broken := range []string{"60", "no code"} {
		require.NoError(t, os.WriteFile(pins()[0].file(dir), []byte(broken), 0o644))
		_, err = Cached(dir)
		require.ErrorIs(t, err, ErrNotCached)
		require.ErrorContains(t, err, "is not the code of")
	}
}
