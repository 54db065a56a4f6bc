package programs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pack makes a package like npm's, with one file in it.
func pack(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	files := tar.NewWriter(zipped)
	require.NoError(t, files.WriteHeader(&tar.Header{Name: "package/" + name, Size: int64(len(content)), Mode: 0o644}))
	_, err := files.Write(content)
	require.NoError(t, err)
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

func TestGetExplainsWhyThereAreNoPrograms(t *testing.T) {
	library := bytes.Join([][]byte{[]byte("no programs"), elfMagic, elfMagic, bytes.Repeat([]byte("x"), 1000)}, nil)
	other := filepath.Join(t.TempDir(), "other.tgz")
	require.NoError(t, os.WriteFile(other, pack(t, "litesvm.node", library), 0o644))
	empty := filepath.Join(t.TempDir(), "empty.tgz")
	require.NoError(t, os.WriteFile(empty, pack(t, "README.md", nil), 0o644))
	for name, test := range map[string]struct{ script, says string }{
		"npm fails":        {"echo 'no network' >&2; exit 1", "npm can't fetch " + packageSpec},
		"npm says why":     {"echo 'no network' >&2; exit 1", "no network"},
		"npm does nothing": {"exit 0", "npm left 0 packages"},
		"no package":       {"echo broken > a.tgz", "unpack the package"},
		"no library in it": {"cp " + empty + " .", "holds no library"},
		"other programs":   {"cp " + other + " .", "the program token is not in the package"},
	} {
		t.Run(name, func(t *testing.T) {
			withNPM(t, test.script)
			dir := t.TempDir()
			_, err := Get(t.Context(), Options{Dir: dir, NoInstall: true})
			var unavailable *UnavailableError
			require.ErrorAs(t, err, &unavailable)
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), "\n")
			kept, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, kept)
		})
	}
}

func TestGetWithoutNPM(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Get(t.Context(), Options{Dir: t.TempDir(), NoInstall: true})
	var unavailable *UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.EqualError(t, err, "Solana's programs can't be had: npm is not installed")
}

// ours are the programs of this machine's cache, or the end of the test.
func ours(t *testing.T) Set {
	t.Helper()
	dir, err := CacheDir()
	require.NoError(t, err)
	set, err := Cached(dir)
	if err != nil {
		t.Skipf("Solana's programs are not on this machine (the local stack takes them from npm when it starts): %v", err)
	}
	return set
}

func TestGetFindsKeepsAndChecksThePrograms(t *testing.T) {
	set := ours(t)
	var parts [][]byte
	for _, p := range slices.Backward(set) {
		parts = append(parts, []byte("something else"), elfMagic, p.ELF)
	}
	packed := filepath.Join(t.TempDir(), "a.tgz")
	require.NoError(t, os.WriteFile(packed, pack(t, "litesvm.node", bytes.Join(parts, nil)), 0o644))
	withNPM(t, `case "$*" in *--ignore-scripts*`+packageSpec+`*) cp `+packed+` . ;; *) exit 1 ;; esac`)
	dir := filepath.Join(t.TempDir(), "new", "directory")
	got, err := Get(t.Context(), Options{Dir: dir, NoInstall: true})
	require.NoError(t, err)
	require.Equal(t, set, got)

	withNPM(t, "exit 1")
	got, err = Get(t.Context(), Options{Dir: dir, NoInstall: true})
	require.NoError(t, err, "the second time it comes from the cache")
	require.Equal(t, set, got)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, len(set))
	for _, f := range files {
		require.False(t, strings.HasSuffix(f.Name(), ".part"))
	}

	broken := filepath.Join(dir, files[0].Name())
	code, err := os.ReadFile(broken)
	require.NoError(t, err)
	code[100] ^= 1
	require.NoError(t, os.WriteFile(broken, code, 0o644))
	_, err = Cached(dir)
	require.ErrorIs(t, err, ErrNotCached)
	require.ErrorContains(t, err, "another hash")
}

func TestCachedMissesPrograms(t *testing.T) {
	_, err := Cached(t.TempDir())
	require.ErrorIs(t, err, ErrNotCached)
}

func TestCachedCannotRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(pins()[0].file(dir), 0o755))
	_, err := Cached(dir)
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrNotCached)
	withNPM(t, "exit 1")
	_, err = Get(t.Context(), Options{Dir: dir, NoInstall: true})
	var unavailable *UnavailableError
	require.ErrorAs(t, err, &unavailable)
}

func TestGetInstallsNPM(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("Only root installs packages without asking; this is somebody else.")
	}
	dir := t.TempDir()
	env, err := exec.LookPath("env")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(env, filepath.Join(dir, "env")))
	apt := `#!/bin/sh
[ "$DEBIAN_FRONTEND" = noninteractive ] || exit 9
case "$*" in
update) : > ` + dir + `/updated ;;
"install -y --no-install-recommends npm")
	[ -e ` + dir + `/updated ] || exit 8
	printf '#!/bin/sh\nexit 7\n' > ` + dir + `/npm
	/bin/chmod +x ` + dir + `/npm ;;
*) exit 6 ;;
esac
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "apt-get"), []byte(apt), 0o755))
	t.Setenv("PATH", dir)
	var said strings.Builder
	_, err = Get(t.Context(), Options{Dir: t.TempDir(), Progress: &said})
	require.ErrorContains(t, err, "exit status 7", "the npm that was installed is the one that runs")
	require.Contains(t, said.String(), "npm is not installed: running apt-get update\n")
}
