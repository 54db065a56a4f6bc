package main

import (
	"bytes"
	"crypto/sha256"
	"image"
	"image/png"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/files"
	"kivuko/store"
	"kivuko/store/storetest"
)

// TestMain is also the binary that the API starts to check a file.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == inspectCommand {
		main()
	}
	os.Exit(m.Run())
}

func filesConfig(t *testing.T, master string, old ...string) Config {
	t.Helper()
	return Config{
		Mode: Local, API: APIConfig{SpoolDir: t.TempDir()},
		Files: FilesConfig{Bucket: "file://" + t.TempDir(), Master: master, OldMasters: old},
	}
}

// A picture goes through the real parts: the process that checks it, the keystore's seal, and a directory of objects.
func TestPictureIsTakenByTheRealParts(t *testing.T) {
	t.Parallel()
	s, err := filesConfig(t, "file://"+filepath.Join(t.TempDir(), "master")).uploads()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 300, 200))); err != nil {
		t.Fatal(err)
	}
	taken, err := s.Take(t.Context(), bytes.NewReader(picture.Bytes()), files.Upload{Purpose: exchange.FileOTCProof, Name: "slip.png"})
	if err == nil {
		defer taken.Close()
		err = s.Keep(t.Context(), taken)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(taken.Files) != 2 || taken.Files[0].Type != exchange.FilePDF || taken.Files[0].OriginalID != taken.Files[1].ID || taken.Files[1].Type != exchange.FilePNG {
		t.Fatalf("took %+v", taken.Files)
	}
	for _, f := range taken.Files {
		r, err := s.Open(t.Context(), exchange.FileRef{ID: f.ID, Purpose: f.Purpose}, f.Key, 0)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if sum := sha256.Sum256(content); err != nil || r.Close() != nil || !bytes.Equal(sum[:], f.SHA256) {
			t.Errorf("%s comes back as %d other bytes, %v", f.Name, len(content), err)
		}
	}
	script := "%PDF-1.4\n1 0 obj\n<< /Type /Catalog /OpenAction << /S /JavaScript >> >>\nendobj\n%%EOF\n"
	if _, err := s.Take(t.Context(), strings.NewReader(script), files.Upload{Purpose: exchange.FileOTCProof}); exchange.CodeOf(err) != exchange.CodeInvalid {
		t.Errorf("a PDF with a script: %v", err)
	}
}

// A crash between the object and its row leaves an object that nobody can find. It is swept when it is old; what has a row stays.
func TestObjectOfACrashIsSwept(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	by := storetest.PrincipalOf(storetest.User(t, db, exchange.RoleTreasury))
	c := filesConfig(t, "file://"+filepath.Join(t.TempDir(), "master"))
	s, err := c.uploads()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var kept []exchange.NewFile
	for _, text := range []string{"day,amount\n", "day,amount,side\n"} {
		taken, err := s.Take(t.Context(), strings.NewReader(text), files.Upload{Purpose: exchange.FileBankStatement, Name: "s.csv", UploadedBy: by.UserID})
		if err == nil {
			defer taken.Close()
			err = s.Keep(t.Context(), taken)
		}
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, taken.Files[0])
	}
	if _, err := db.AddFile(t.Context(), kept[:1], by); err != nil { // the process ends before the second one's row
		t.Fatal(err)
	}
	objects, err := c.objects()
	if err != nil {
		t.Fatal(err)
	}
	defer objects.Close()
	now := time.Now()
	sweep := func() activities.SweptObjects {
		t.Helper()
		env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
		f := &activities.Files{Store: db, Objects: objects, Now: func() time.Time { return now }}
		env.RegisterActivity(f)
		var out activities.SweptObjects
		result, err := env.ExecuteActivity(f.SweepObjects, activities.SweepObjectsInput{})
		if err == nil {
			err = result.Get(&out)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := sweep(); out.Removed != 0 {
		t.Errorf("a young object is swept: %+v", out)
	}
	now = now.Add(31 * 24 * time.Hour)
	if out := sweep(); out.Removed != 1 {
		t.Errorf("swept %+v", out)
	}
	for i, there := range []bool{true, false} {
		r, err := s.Open(t.Context(), exchange.FileRef{ID: kept[i].ID, Purpose: kept[i].Purpose}, kept[i].Key, 0)
		if err == nil {
			err = r.Close()
		}
		if (err == nil) != there {
			t.Errorf("file %d after the sweep: %v", i+1, err)
		}
	}
}

// The master key of files can be retired: their keys are sealed anew, and what they encrypt stays as it is.
func TestMasterKeyOfFilesCanBeRetired(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	dir := t.TempDir()
	first, second := "file://"+filepath.Join(dir, "first"), "file://"+filepath.Join(dir, "second")
	vault, err := filesConfig(t, first).filesVault()
	if err != nil {
		t.Fatal(err)
	}
	vendor := storetest.User(t, s, exchange.RoleVendor)
	by := storetest.PrincipalOf(vendor)
	var ids []uuid.UUID
	for range 3 {
		id := storetest.NewID(t)
		sum := sha256.Sum256(id[:])
		sealed, err := fileKeys{vault}.Seal(t.Context(), id, id[:])
		if err != nil {
			t.Fatal(err)
		}
		f := exchange.File{
			ID: id, Purpose: exchange.FileOTCProof, OwnerID: vendor.ID, UploadedBy: vendor.ID, Name: "a.pdf", Type: exchange.FilePDF, Size: 1, SHA256: sum[:], SourceSHA256: sum[:], Pages: 1,
		}
		if _, err := s.AddFile(t.Context(), []exchange.NewFile{{File: f, Key: sealed}}, by); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	c := filesConfig(t, second, first)
	c.DatabaseURL = url
	for _, want := range []string{"3 keys were sealed anew", "0 keys were sealed anew"} {
		var out bytes.Buffer
		if err := runRewrapFiles(t.Context(), process{config: c, log: slog.New(slog.DiscardHandler), out: &out}, nil); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), want) || strings.Contains(out.String(), vault.MasterKey()) {
			t.Errorf("said %q", out.String())
		}
	}
	fresh, err := filesConfig(t, second).filesVault() // the first one is gone
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		_, sealed, err := s.ViewFile(t.Context(), store.ViewOf(by, exchange.ActReadFiles), id, nil, by)
		if err != nil {
			t.Fatal(err)
		}
		if key, err := (fileKeys{fresh}).Open(t.Context(), sealed); err != nil || !bytes.Equal(key, id[:]) {
			t.Errorf("the key of %s: %v", id, err)
		}
		sealed.FileID = storetest.NewID(t)
		if _, err := (fileKeys{fresh}).Open(t.Context(), sealed); err == nil {
			t.Error("a key opens for another file")
		}
	}
}

func TestRulesForTheStoreOfFiles(t *testing.T) {
	t.Parallel()
	for bucket, want := range map[string]bool{
		"file:///var/lib/kivuko-files": true, "s3://receipts?region=eu-west-1": true, "file://./files": false, "file://host/files": false, "s3://": false, "gs://receipts": false, "/var": false,
	} {
		var n need
		Config{Mode: Production, Files: FilesConfig{Bucket: bucket}}.checkFiles(&n)
		if (n.err() == nil) != want {
			t.Errorf("%s: %v", bucket, n.err())
		}
	}
	for name, c := range map[string]Config{
		"a file in production": {Mode: Production, Files: FilesConfig{Master: "file:///key"}},
		"the wallets' key":     {Files: FilesConfig{Master: "hcvault://v/transit/keys/a"}, Keys: KeysConfig{Master: "hcvault://v/transit/keys/a"}},
	} {
		var n need
		if c.checkFilesMaster(&n); n.err() == nil {
			t.Errorf("%s is accepted as the master key of files", name)
		}
	}
}
