package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/files"
	"kivuko/files/inspect"
)

// TestMain is also the program that checks a file in a process of its own: the real one, and some that go wrong.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 || !strings.HasPrefix(os.Args[1], "check-") {
		os.Exit(m.Run())
	}
	if err := inspect.Confine(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	switch os.Args[1] {
	case "check-well":
		if err := inspect.Serve(context.Background(), exchange.FileType(os.Args[2]), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
	case "check-hog":
		for whole := []byte{1}; ; {
			whole = append(whole, whole...)
		}
	case "check-panic":
		panic("what the library did not expect")
	case "check-fault":
		os.Exit(1)
	case "check-environment":
		fmt.Printf("{\"message\":%q}\n", strings.Join(os.Environ(), " "))
	case "check-alone":
		_, opened := os.Open("/etc/passwd")
		_, connected := net.Dial("udp", "127.0.0.1:9")
		written := os.WriteFile(filepath.Join(os.TempDir(), "kivuko-check"), []byte("x"), 0o600)
		started := exec.Command("/bin/true").Run()
		fmt.Printf("{\"message\":\"%t %t %t %t\"}\n", opened == nil, connected == nil, written == nil, started == nil)
	case "check-flood":
		for fmt.Println("{}"); ; {
			fmt.Println(strings.Repeat("x", 1<<16))
		}
	}
	os.Exit(0)
}

func process(t testing.TB, name string) files.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return files.Process{Path: self, Args: []string{name}, Read: inspect.ReadAnswer}
}

// reversing seals keys so that sealed ones can be told from opened ones.
type reversing struct{ fault *error }

func (r reversing) Seal(_ context.Context, id uuid.UUID, key []byte) (exchange.SealedFileKey, error) {
	sealed := slices.Clone(key)
	slices.Reverse(sealed)
	return exchange.SealedFileKey{FileID: id, Ciphertext: sealed, MasterKey: "reversing"}, *r.fault
}

func (r reversing) Open(_ context.Context, s exchange.SealedFileKey) ([]byte, error) {
	key := slices.Clone(s.Ciphertext)
	slices.Reverse(key)
	return key, *r.fault
}

type env struct {
	*files.Store
	objects, drafts string
	fault           *error
}

func start(t testing.TB, check files.Check) env {
	t.Helper()
	e := env{objects: t.TempDir(), drafts: t.TempDir(), fault: new(error)}
	var err error
	e.Store, err = files.Open(t.Context(), files.Config{Bucket: "file://" + e.objects, Keys: reversing{e.fault}, Check: check, Dir: e.drafts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Store.Close() })
	return e
}

func accept(_ context.Context, _ exchange.FileType, in io.Reader, _ io.Writer) (exchange.FileVerdict, error) {
	_, err := io.Copy(io.Discard, in)
	return exchange.FileVerdict{Pages: 1}, err
}

func (e env) take(t testing.TB, content []byte) (*files.Taken, error) {
	t.Helper()
	taken, err := e.Take(t.Context(), bytes.NewReader(content), files.Upload{Purpose: exchange.FileOTCProof, Name: "a.pdf", UploadedBy: uuid.New()})
	if taken != nil {
		t.Cleanup(taken.Close)
	}
	return taken, err
}

func (e env) keep(t testing.TB, content []byte) exchange.NewFile {
	t.Helper()
	taken, err := e.take(t, content)
	if err == nil {
		err = e.Keep(t.Context(), taken)
	}
	if err != nil {
		t.Fatal(err)
	}
	return taken.Files[0]
}

func ref(f exchange.NewFile) exchange.FileRef { return exchange.FileRef{ID: f.ID, Purpose: f.Purpose} }

func (e env) read(t testing.TB, f exchange.NewFile, offset int64) ([]byte, error) {
	t.Helper()
	r, err := e.Store.Open(t.Context(), ref(f), f.Key, offset)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

func refusedBy(err error) string {
	if e, ok := errors.AsType[*exchange.Error](err); ok && len(e.Fields) == 1 {
		return e.Fields[0].Code
	}
	return fmt.Sprint(err)
}

// pdf begins like a PDF; what is checked is up to each test.
func pdf(size int) []byte { return append([]byte("%PDF-1.4\n"), bytes.Repeat([]byte("x"), size-9)...) }

func TestContentComesBackFromEveryOffset(t *testing.T) {
	e := start(t, accept)
	for _, size := range []int{10, 64 << 10, 64<<10 - 40 - 16, 3*64<<10 + 1} {
		content := pdf(size)
		f := e.keep(t, content)
		if f.Size != int64(size) || len(f.SHA256) != 32 || !bytes.Equal(f.SHA256, f.SourceSHA256) {
			t.Errorf("described as %+v", f)
		}
		for _, offset := range []int{0, 1, size / 2, size - 1, size} {
			if got, err := e.read(t, f, int64(offset)); err != nil || !bytes.Equal(got, content[offset:]) {
				t.Errorf("%d bytes from %d: %d bytes, %v", size, offset, len(got), err)
			}
		}
	}
}

// Neither the object store nor the local disk ever has a file in the clear, and nothing is left of one that was refused.
func TestNothingIsInTheClear(t *testing.T) {
	e := start(t, func(_ context.Context, _ exchange.FileType, in io.Reader, _ io.Writer) (exchange.FileVerdict, error) {
		content, err := io.ReadAll(in)
		if bytes.Contains(content, []byte("bad")) {
			return exchange.FileVerdict{Code: "bad", Message: "is bad"}, err
		}
		return exchange.FileVerdict{Pages: 1}, err
	})
	f := e.keep(t, pdf(100_000))
	raw, err := os.ReadFile(filepath.Join(e.objects, string(f.Purpose), f.ID.String()))
	if err != nil || bytes.Contains(raw, []byte("xxxx")) || bytes.Contains(raw, []byte("PDF")) {
		t.Errorf("the object holds the content: %v", err)
	}
	if _, err := e.take(t, append(pdf(100_000), "bad"...)); refusedBy(err) != "bad" {
		t.Errorf("a bad file is taken: %v", err)
	}
	kept, err := filepath.Glob(filepath.Join(e.objects, "*", "*"))
	drafts, draftErr := os.ReadDir(e.drafts)
	if len(kept) != 1 || len(drafts) != 0 || err != nil || draftErr != nil {
		t.Errorf("%d objects and %d drafts are left (%v, %v)", len(kept), len(drafts), err, draftErr)
	}
}

func TestObjectsOpenOnlyAsWhatTheyAre(t *testing.T) {
	e := start(t, accept)
	first, second := e.keep(t, pdf(200_000)), e.keep(t, pdf(200_000))
	stolen := first
	stolen.Key = second.Key
	if _, err := e.read(t, stolen, 0); exchange.CodeOf(err) != exchange.CodeInternal {
		t.Errorf("a file opens with another one's key: %v", err)
	}
	name := filepath.Join(e.objects, string(first.Purpose), first.ID.String())
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, at := range map[string]int{"head": 1, "first segment": 100, "second segment": 70_000, "end": len(raw) - 1} {
		changed := bytes.Clone(raw)
		changed[at] ^= 1
		if err := os.WriteFile(name, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := e.read(t, first, 0); exchange.CodeOf(err) != exchange.CodeInternal {
			t.Errorf("a change of its %s: %v", what, err)
		}
	}
	for _, length := range []int{0, 20, 64 << 10, len(raw) - 1} {
		if err := os.WriteFile(name, raw[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := e.read(t, first, 0); exchange.CodeOf(err) != exchange.CodeInternal {
			t.Errorf("an object cut off after %d bytes: %v", length, err)
		}
	}
}

func TestLimitsOfFiles(t *testing.T) {
	e := start(t, accept)
	if _, err := e.take(t, pdf(exchange.MaxFileSize)); err != nil {
		t.Errorf("the largest file is refused: %v", err)
	}
	if _, err := e.take(t, pdf(exchange.MaxFileSize+1)); exchange.CodeOf(err) != exchange.CodeTooLarge || refusedBy(err) != exchange.FileRuleSize {
		t.Errorf("a larger file: %v", err)
	}
	if _, err := e.take(t, nil); refusedBy(err) != exchange.FileRuleEmpty {
		t.Errorf("no file: %v", err)
	}
	for _, content := range []string{"MZ\x90\x00", "<html>", "PK\x03\x04", "GIF89a", " %PDF-1.4", "date,amount\n", "\x00\x01"} {
		if _, err := e.take(t, []byte(content)); refusedBy(err) != exchange.FileRuleType {
			t.Errorf("%q: %v", content, err)
		}
	}
	broken := errors.New("the sender is gone")
	_, err := e.Take(t.Context(), io.MultiReader(bytes.NewReader(pdf(5000)), failing{broken}), files.Upload{Purpose: exchange.FileOTCProof})
	if !errors.Is(err, broken) {
		t.Errorf("half a file: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// What is away now is to be tried again, and then works.
func TestWhatIsAwayComesBack(t *testing.T) {
	away := errors.New("away")
	checkFault := away
	e := start(t, func(ctx context.Context, k exchange.FileType, in io.Reader, made io.Writer) (exchange.FileVerdict, error) {
		if checkFault != nil {
			return exchange.FileVerdict{}, checkFault
		}
		return accept(ctx, k, in, made)
	})
	unavailable := func(what string, err error) {
		t.Helper()
		if exchange.CodeOf(err) != exchange.CodeUnavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := e.take(t, pdf(100))
	unavailable("the check", err)
	checkFault = nil
	taken, err := e.take(t, pdf(100))
	if err != nil {
		t.Fatal(err)
	}
	*e.fault = away
	unavailable("the key service", e.Keep(t.Context(), taken))
	*e.fault = nil
	if err := os.Rename(e.objects, e.objects+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.objects, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	unavailable("the object store", e.Keep(t.Context(), taken))
	if e.Reach(t.Context()) == nil {
		t.Error("an object store that is away counts as reached")
	}
	_, _, err = e.List(t.Context(), "", 10, time.Now())
	unavailable("the list", err)
	if err := os.Remove(e.objects); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(e.objects+".away", e.objects); err != nil {
		t.Fatal(err)
	}
	if err := e.Keep(t.Context(), taken); err != nil { // the same upload again
		t.Fatal(err)
	}
	if got, err := e.read(t, taken.Files[0], 0); err != nil || len(got) != 100 {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if err := e.Reach(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOnlyOurOldObjectsAreListed(t *testing.T) {
	e := start(t, accept)
	var want []exchange.FileRef
	for range 5 {
		want = append(want, ref(e.keep(t, pdf(100))))
	}
	for _, name := range []string{"stray", "otc_proof/stray", "holiday/" + uuid.NewString(), "otc_proof/" + strings.ToUpper(uuid.NewString())} {
		if err := os.MkdirAll(filepath.Join(e.objects, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(e.objects, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := func(before time.Time) []exchange.FileRef {
		var all []exchange.FileRef
		for from, pages := "", 0; pages == 0 || from != ""; pages++ {
			page, next, err := e.List(t.Context(), from, 2, before)
			if err != nil || pages > 10 {
				t.Fatal(pages, err)
			}
			all, from = append(all, page...), next
		}
		return all
	}
	if got := list(time.Now().Add(time.Minute)); !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	if got := list(time.Now().Add(-time.Minute)); len(got) != 0 {
		t.Errorf("new objects are listed: %v", got)
	}
	for range 2 { // the second time it is gone already
		if err := e.Delete(t.Context(), want[0]); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(time.Now().Add(time.Minute)); !slices.Equal(got, want[1:]) {
		t.Errorf("after a deletion %v are listed", got)
	}
}

// What a crash leaves of an object in a directory goes with the sweep; what is not ours, or may still be written, stays.
func TestLeftOversAreDeleted(t *testing.T) {
	e := start(t, accept)
	kept := ref(e.keep(t, pdf(100)))
	old, cut := time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	names := map[string]time.Time{
		"otc_proof/" + uuid.NewString() + ".18a0b1c2d3e4f506.tmp": old, "otc_proof/" + uuid.NewString() + ".18a0b1c2d3e4f507.tmp": time.Now(),
		"otc_proof/stray.18a0b1c2d3e4f506.tmp": old, "holiday/" + uuid.NewString() + ".18a0b1c2d3e4f506.tmp": old, "otc_proof/" + uuid.NewString() + ".tmp": old,
	}
	for name, at := range names {
		path := filepath.Join(e.objects, filepath.FromSlash(name))
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600), os.Chtimes(path, at, at))
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := e.List(t.Context(), "", 100, cut); err != nil {
		t.Fatal(err)
	}
	for name, at := range names {
		_, err := os.Stat(filepath.Join(e.objects, filepath.FromSlash(name)))
		ours := regexp.MustCompile(`^otc_proof/[0-9a-f-]{36}\.[0-9a-f]+\.tmp$`).MatchString(name)
		if gone := os.IsNotExist(err); gone != (ours && at.Before(cut)) {
			t.Errorf("%s of %s is gone: %t", name, at, gone)
		}
	}
	if got, _, err := e.List(t.Context(), "", 100, time.Now().Add(time.Minute)); err != nil || !slices.Contains(got, kept) {
		t.Errorf("listed %v, %v", got, err)
	}
}

// blank is a PDF with an empty page.
func blank() string {
	out, starts := "%PDF-1.4\n", ""
	for i, o := range []string{"/Type /Catalog /Pages 2 0 R", "/Type /Pages /Kids [3 0 R] /Count 1", "/Type /Page /Parent 2 0 R /MediaBox [0 0 300 200]"} {
		starts += fmt.Sprintf("%010d 00000 n \n", len(out))
		out += fmt.Sprintf("%d 0 obj\n<< %s >>\nendobj\n", i+1, o)
	}
	return out + fmt.Sprintf("xref\n0 4\n0000000000 65535 f \n%strailer\n<< /Size 4 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", starts, len(out))
}

func TestFilesAreCheckedInAProcessOfTheirOwn(t *testing.T) {
	check := func(name string, kind exchange.FileType, content string) (exchange.FileVerdict, error) {
		return process(t, name).Check(t.Context(), kind, strings.NewReader(content), io.Discard)
	}
	if v, err := check("check-well", exchange.FileCSV, "date,amount\n"); err != nil || v.Code != "" {
		t.Errorf("a table: %+v, %v", v, err)
	}
	if v, err := check("check-well", exchange.FilePDF, "%PDF-1.4"); err != nil || v.Code != exchange.FileRuleDamaged {
		t.Errorf("a broken PDF: %+v, %v", v, err)
	}
	if v, err := check("check-well", exchange.FilePDF, blank()); err != nil || v.Code != "" || v.Pages != 1 {
		t.Errorf("a PDF of one page: %+v, %v", v, err)
	}
	for _, name := range []string{"check-hog", "check-panic"} {
		if v, err := check(name, exchange.FilePDF, "%PDF-1.4"); err != nil || v.Code != exchange.FileRuleUnchecked {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	if v, err := check("check-fault", exchange.FilePDF, "%PDF-1.4"); err == nil {
		t.Errorf("a check that could not be made found %+v", v)
	}
	if v, err := check("check-environment", exchange.FilePDF, "%PDF-1.4"); err != nil || v.Message != "GOMEMLIMIT=300MiB" {
		t.Errorf("it knows %q, %v", v.Message, err)
	}
	if v, err := check("check-alone", exchange.FilePDF, "%PDF-1.4"); err != nil || v.Message != "false false false false" {
		t.Errorf("it opens a file, connects, writes a file or starts a program: %s, %v", v.Message, err)
	}
	if v, err := check("check-flood", exchange.FilePDF, "%PDF-1.4"); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("an answer without an end: %+v, %v", v, err)
	}
	if _, err := (files.Process{Path: "/nowhere", Read: inspect.ReadAnswer}).Check(t.Context(), exchange.FilePDF, strings.NewReader(""), io.Discard); err == nil {
		t.Error("a program that is not there has checked a file")
	}
	broken := errors.New("the draft can't be read")
	if _, err := process(t, "check-well").Check(t.Context(), exchange.FilePDF, failing{broken}, io.Discard); !errors.Is(err, broken) {
		t.Errorf("an unreadable draft: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := process(t, "check-well").Check(ended, exchange.FilePDF, strings.NewReader("x"), io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("after the request ended: %v", err)
	}
}

func TestAddressesOfObjectStores(t *testing.T) {
	for _, bad := range []string{"", "/var/lib/kivuko", "ftp://x", "gs://bucket", "file:///tmp/x?unknown=1"} {
		if s, err := files.Open(t.Context(), files.Config{Bucket: bad}); err == nil {
			_ = s.Close()
			t.Errorf("%q is taken", bad)
		}
	}
}
