package store_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// uploaded are the rows of an upload; of a picture the PDF made from it comes first.
func uploaded(t testing.TB, by exchange.User, content string, picture bool) []exchange.NewFile {
	t.Helper()
	one := func(kind exchange.FileType, content, source string) exchange.NewFile {
		sum, from := sha256.Sum256([]byte(content)), sha256.Sum256([]byte(source))
		f := exchange.File{
			ID: storetest.NewID(t), Purpose: exchange.FileOTCProof, OwnerID: exchange.VendorOf(by), UploadedBy: by.ID, Name: "a.pdf", Type: kind,
			Size: int64(len(content)), SHA256: sum[:], SourceSHA256: from[:],
		}
		if kind == exchange.FilePDF {
			f.Pages = 1
		}
		return exchange.NewFile{File: f, Key: exchange.SealedFileKey{FileID: f.ID, Ciphertext: []byte("sealed " + content), MasterKey: "first"}}
	}
	if !picture {
		return []exchange.NewFile{one(exchange.FilePDF, content, content)}
	}
	pdf, original := one(exchange.FilePDF, "the PDF of "+content, content), one(exchange.FileJPEG, content, content)
	pdf.OriginalID = original.ID
	return []exchange.NewFile{pdf, original}
}

func addFile(t testing.TB, s *store.Store, by exchange.User, content string, picture bool) exchange.File {
	t.Helper()
	f, err := s.AddFile(t.Context(), uploaded(t, by, content, picture), storetest.PrincipalOf(by))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func seen(u exchange.User) store.View {
	return store.ViewOf(storetest.PrincipalOf(u), exchange.ActReadFiles)
}

func TestFilesAreSeenByTheirMerchantAndStaff(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	vendor, rival := storetest.User(t, s, exchange.RoleVendor), storetest.User(t, s, exchange.RoleVendor)
	sub := storetest.Subvendor(t, s, vendor)
	f := addFile(t, s, sub, "receipt", false)
	for u, want := range map[*exchange.User]exchange.Code{&vendor: "", &sub: "", &rival: exchange.CodeNotFound} {
		if _, err := s.File(t.Context(), seen(*u), f.ID); exchange.CodeOf(err) != want {
			t.Errorf("a %s: %v, want %q", u.Role, err, want)
		}
		if _, _, err := s.ViewFile(t.Context(), seen(*u), f.ID, nil, storetest.PrincipalOf(*u)); exchange.CodeOf(err) != want {
			t.Errorf("a %s views it: %v, want %q", u.Role, err, want)
		}
	}
	for _, role := range []exchange.Role{exchange.RoleAdmin, exchange.RoleOTCOfficer, exchange.RoleTreasury} {
		u := storetest.User(t, s, role)
		got, key, err := s.ViewFile(t.Context(), seen(u), f.ID, map[string]any{"by": "token"}, storetest.PrincipalOf(u))
		if err != nil || !bytes.Equal(got.SHA256, f.SHA256) || string(key.Ciphertext) != "sealed receipt" || key.MasterKey != "first" || key.FileID != f.ID {
			t.Errorf("a %s reads %+v with %q, %v", role, got, key.Ciphertext, err)
		}
	}
	statement := storetest.StatementFile(t, s, storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury)), []byte("balances"))
	for role, want := range map[exchange.Role]exchange.Code{exchange.RoleAdmin: "", exchange.RoleTreasury: "", exchange.RoleOTCOfficer: exchange.CodeNotFound} {
		if _, err := s.File(t.Context(), seen(storetest.User(t, s, role)), statement.ID); exchange.CodeOf(err) != want {
			t.Errorf("a %s reads a bank's statement: %v, want %q", role, err, want)
		}
	}
	if _, err := s.File(t.Context(), store.Everything(), statement.ID); err != nil {
		t.Errorf("a flow reads it: %v", err)
	}
	if _, err := s.File(t.Context(), seen(storetest.User(t, s, exchange.RoleCustomer)), f.ID); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Errorf("a customer reads it: %v", err)
	}
	records, err := s.AuditRecords(t.Context(), store.AuditFilter{ObjectType: "file", ObjectID: f.ID}, 100)
	var actions []string
	for _, r := range records {
		actions = append(actions, r.Action)
	}
	if want := append(slices.Repeat([]string{"file.viewed"}, 5), "file.uploaded"); err != nil || !slices.Equal(actions, want) {
		t.Errorf("the audit log has %v, %v", actions, err)
	}
}

func TestOneContentIsFoundWhoeverSendsIt(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	vendor, rival := storetest.User(t, s, exchange.RoleVendor), storetest.User(t, s, exchange.RoleVendor)
	first, second := addFile(t, s, vendor, "slip", true), addFile(t, s, rival, "slip", true)
	addFile(t, s, rival, "another slip", true)
	picture, err := s.File(t.Context(), seen(rival), second.OriginalID)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []exchange.File{second, picture} { // a picture and its PDF are one upload
		same, err := s.FilesLike(t.Context(), f)
		if err != nil || len(same) != 1 || same[0].ID != first.ID || same[0].Type != exchange.FilePDF {
			t.Errorf("of %s are found %+v, %v", f.Type, same, err)
		}
	}
}

// What the database refuses, whoever writes it.
func TestRowsOfFilesAreGuarded(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	vendor, customer := storetest.User(t, s, exchange.RoleVendor), storetest.User(t, s, exchange.RoleCustomer)
	rival, by := storetest.User(t, s, exchange.RoleVendor), storetest.PrincipalOf(vendor)
	for name, change := range map[string]func([]exchange.NewFile){
		"a customer's":                 func(f []exchange.NewFile) { f[0].OwnerID = customer.ID },
		"a digest that is not its own": func(f []exchange.NewFile) { f[0].SourceSHA256 = make([]byte, 32) },
		"a short digest":               func(f []exchange.NewFile) { f[0].SHA256, f[0].SourceSHA256 = []byte{1}, []byte{1} },
		"a path as its name":           func(f []exchange.NewFile) { f[0].Name = "../a.pdf" },
		"a line break in its name":     func(f []exchange.NewFile) { f[0].Name = "a\r\nb.pdf" },
		"a page of the web":            func(f []exchange.NewFile) { f[0].Type = "text/html" },
		"too many pages":               func(f []exchange.NewFile) { f[0].Pages = exchange.MaxFilePages + 1 },
		"a statement as a PDF":         func(f []exchange.NewFile) { f[0].Purpose = exchange.FileBankStatement },
		"an unknown purpose":           func(f []exchange.NewFile) { f[0].Purpose = "holiday" },
		"no bytes":                     func(f []exchange.NewFile) { f[0].Size = 0 },
		"too many bytes":               func(f []exchange.NewFile) { f[0].Size = exchange.MaxFileSize + 1 },
		"another merchant as owner":    func(f []exchange.NewFile) { f[0].OwnerID = rival.ID },
		"the house as owner":           func(f []exchange.NewFile) { f[0].OwnerID = uuid.Nil },
		"no key":                       func(f []exchange.NewFile) { f[0].Key.Ciphertext = nil },
	} {
		files := uploaded(t, vendor, name, false)
		change(files)
		if _, err := s.AddFile(t.Context(), files, by); err == nil {
			t.Errorf("a file with %s is stored", name)
		}
	}
	for name, change := range map[string]func(pdf, picture *exchange.NewFile){
		"of another merchant": func(_, picture *exchange.NewFile) { picture.OwnerID = uuid.Nil },
		"of another content":  func(pdf, _ *exchange.NewFile) { pdf.SourceSHA256 = make([]byte, 32) },
		"of a PDF":            func(_, picture *exchange.NewFile) { picture.Type, picture.Pages = exchange.FilePDF, 1 },
	} {
		files := uploaded(t, vendor, name, true)
		change(&files[0], &files[1])
		if _, err := s.AddFile(t.Context(), files, by); err == nil {
			t.Errorf("a PDF made from a picture %s is stored", name)
		}
	}
	if _, err := s.AddFile(t.Context(), uploaded(t, vendor, "alone", true)[1:], by); err == nil {
		t.Error("a picture without its PDF is stored")
	}
	f := addFile(t, s, vendor, "receipt", false)
	db := storetest.Owner(t, s)
	for _, query := range []string{
		`UPDATE files SET sha256 = source_sha256 || ''::bytea, name = 'b.pdf'`, `UPDATE files SET owner_id = NULL`, `DELETE FROM files`, `TRUNCATE files CASCADE`,
		`UPDATE files SET deleted_at = now()`, `UPDATE files SET purged_at = now()`, `UPDATE files SET deleted_at = now() + interval '100 years'`,
		`DELETE FROM file_keys`, `UPDATE file_keys SET master_key = 'second'`, `DELETE FROM file_retention`,
		`UPDATE file_retention SET kept = interval '1 year'`, `INSERT INTO file_keys (file_id, seal, ciphertext, master_key) SELECT id, 3, 'x', 'third' FROM files`,
		`INSERT INTO file_keys (file_id, seal, ciphertext, master_key) SELECT id, 2, 'x', 'first' FROM files`,
		`INSERT INTO files (id, purpose, owner_id, uploaded_by, name, content_type, size_bytes, sha256, source_sha256, pages, created_at)
			SELECT gen_random_uuid(), purpose, owner_id, uploaded_by, name, content_type, size_bytes, sha256, source_sha256, pages, created_at FROM files`,
	} {
		if _, err := db.ExecContext(t.Context(), query); err == nil {
			t.Errorf("%s is done", query)
		}
	}
	if _, _, err := s.ViewFile(t.Context(), seen(vendor), f.ID, nil, by); err != nil {
		t.Error(err)
	}
}

// The database takes a file for a purpose from whom the rules take it, up to the size that they allow.
func TestTheDatabaseKnowsWhoUploadsWhat(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	vendor := storetest.User(t, s, exchange.RoleVendor)
	for _, role := range exchange.Roles() {
		who := storetest.Subvendor(t, s, vendor)
		if role != exchange.RoleSubvendor {
			who = storetest.User(t, s, role)
		}
		for _, purpose := range exchange.FilePurposes() {
			files := uploaded(t, who, string(role)+string(purpose), false)
			files[0].Purpose, files[0].Size = purpose, purpose.MaxSize()
			if purpose == exchange.FileBankStatement {
				files[0].Type, files[0].Pages = exchange.FileCSV, 0
			}
			if _, err := s.AddFile(t.Context(), files, storetest.PrincipalOf(who)); (err == nil) != purpose.UsedBy(role) {
				t.Errorf("a %s uploads %s: %v", role, purpose, err)
			}
			files = uploaded(t, who, string(role)+string(purpose)+" is long", false)
			files[0].Purpose, files[0].Type, files[0].Pages, files[0].Size = purpose, exchange.FilePDF, 1, purpose.MaxSize()+1
			if _, err := s.AddFile(t.Context(), files, storetest.PrincipalOf(who)); err == nil {
				t.Errorf("a %s uploads %s above its limit", role, purpose)
			}
		}
	}
}

// An upload takes minutes. Who was deactivated meanwhile, or whose merchant was, has sent nothing.
func TestNobodyUploadsWhoWasDeactivated(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	vendor := storetest.User(t, s, exchange.RoleVendor)
	sub, gone := storetest.Subvendor(t, s, vendor), storetest.Subvendor(t, s, vendor)
	for _, step := range []struct{ off, by exchange.User }{{gone, gone}, {vendor, sub}, {vendor, vendor}} {
		if _, err := storetest.Owner(t, s).ExecContext(t.Context(), `UPDATE users SET is_active = false WHERE id = $1`, step.off.ID); err != nil {
			t.Fatal(err)
		}
		_, err := s.AddFile(t.Context(), uploaded(t, step.by, "late", false), storetest.PrincipalOf(step.by))
		if exchange.CodeOf(err) != exchange.CodeStateConflict {
			t.Errorf("a %s: %v", step.by.Role, err)
		}
	}
}

// ago is the store with a clock that is behind.
func ago(t *testing.T, dsn string, d time.Duration) *store.Store {
	t.Helper()
	return storetest.Open(t, dsn, store.Options{Now: func() time.Time { return time.Now().Add(-d) }})
}

const day = 24 * time.Hour

// A file that nothing uses goes after two weeks, one that is used after seven years, a picture with its PDF. The row of each stays,
// and still shows that the same content comes again.
func TestRetentionOfFiles(t *testing.T) {
	t.Parallel()
	dsn := storetest.URL(t)
	s := storetest.Open(t, dsn, store.Options{})
	vendor := storetest.User(t, s, exchange.RoleVendor)
	by := storetest.PrincipalOf(vendor)
	use := func(f exchange.File) exchange.File {
		t.Helper()
		for range 2 { // the second time changes nothing
			if err := s.UseFile(t.Context(), exchange.FileUse{FileID: f.ID, ObjectType: "otc_deposit", ObjectID: vendor.ID}, by); err != nil {
				t.Fatal(err)
			}
		}
		return f
	}
	years := ago(t, dsn, 7*366*day)
	gone := map[string]exchange.File{
		"unused": addFile(t, ago(t, dsn, 15*day), vendor, "unused", false), "unused picture": addFile(t, ago(t, dsn, 15*day), vendor, "unused picture", true),
		"used long ago": use(addFile(t, years, vendor, "used long ago", true)),
	}
	kept := map[string]exchange.File{
		"new": addFile(t, ago(t, dsn, 13*day), vendor, "new", false), "used": use(addFile(t, ago(t, dsn, 6*365*day), vendor, "used", true)),
	}
	ended := 0
	for { // in batches of two
		n, err := s.EndFiles(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		if ended += n; n == 0 {
			break
		}
	}
	if ended != 5 { // three files and two pictures
		t.Errorf("%d files have ended", ended)
	}
	for name, f := range gone {
		if _, _, err := s.ViewFile(t.Context(), seen(vendor), f.ID, nil, by); exchange.CodeOf(err) != exchange.CodeExpired {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.UseFile(t.Context(), exchange.FileUse{FileID: f.ID, ObjectType: "otc_deposit", ObjectID: f.ID}, by); exchange.CodeOf(err) != exchange.CodeStateConflict {
			t.Errorf("%s is used: %v", name, err)
		}
	}
	for name, f := range gone { // its name could tell of somebody
		if after, err := s.File(t.Context(), seen(vendor), f.ID); err != nil || after.Name != "deleted" {
			t.Errorf("%s is still known as %q, %v", name, after.Name, err)
		}
	}
	if _, err := storetest.As(t, s, store.RoleFlows).ExecContext(t.Context(), `UPDATE files SET name = 'another' WHERE id = $1`, kept["new"].ID); sqlState(err) != "KV002" {
		t.Errorf("a file is renamed: %v", err)
	}
	for name, f := range kept {
		if _, _, err := s.ViewFile(t.Context(), seen(vendor), f.ID, nil, by); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	refs, err := s.UnpurgedFiles(t.Context(), 10)
	if err != nil || len(refs) != 5 {
		t.Fatalf("%d files are to be purged, %v", len(refs), err)
	}
	for _, f := range refs {
		for range 2 {
			if err := s.PurgeFile(t.Context(), f.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if refs, err = s.UnpurgedFiles(t.Context(), 10); err != nil || len(refs) != 0 {
		t.Errorf("%v are still to be purged, %v", refs, err)
	}
	var keys int
	if err := storetest.Owner(t, s).QueryRowContext(t.Context(), `SELECT count(*) FROM file_keys`).Scan(&keys); err != nil || keys != 3 {
		t.Errorf("%d keys are left, %v", keys, err)
	}
	if same, err := s.FilesLike(t.Context(), addFile(t, s, vendor, "unused", false)); err != nil || len(same) != 1 {
		t.Errorf("a deleted file is forgotten: %v, %v", same, err)
	}
}

// A file that comes into use while its retention ends is either used and kept, or not used and gone: with its picture's end, or at the
// next end of files, because one that is just looked at is left for it.
func TestAFileIsNotUsedWhileItEnds(t *testing.T) {
	t.Parallel()
	dsn := storetest.URL(t)
	s := storetest.Open(t, dsn, store.Options{})
	vendor := storetest.User(t, s, exchange.RoleVendor)
	for n := range 20 {
		f := addFile(t, ago(t, dsn, 15*day), vendor, storetest.NewID(t).String(), n%2 == 0)
		var both sync.WaitGroup
		var used error
		both.Go(func() {
			used = s.UseFile(t.Context(), exchange.FileUse{FileID: f.ID, ObjectType: "otc_deposit", ObjectID: vendor.ID}, storetest.PrincipalOf(vendor))
		})
		both.Go(func() { _, _ = s.EndFiles(t.Context(), 10) }) // refused when the other was first
		both.Wait()
		if used != nil {
			if _, err := s.EndFiles(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
		}
		after, err := s.File(t.Context(), seen(vendor), f.ID)
		if err != nil || after.DeletedAt.IsZero() != (used == nil) {
			t.Fatalf("used: %v, ended at %v, %v", used, after.DeletedAt, err)
		}
		if f.OriginalID == uuid.Nil {
			continue
		}
		if picture, err := s.File(t.Context(), seen(vendor), f.OriginalID); err != nil || used == nil && !picture.DeletedAt.IsZero() {
			t.Fatalf("used, and its picture ended at %v, %v", picture.DeletedAt, err)
		}
	}
}

// A PDF whose picture has ended can't come into use: both are the proof.
func TestAPDFIsNotUsedWithoutItsPicture(t *testing.T) {
	t.Parallel()
	dsn := storetest.URL(t)
	s := storetest.Open(t, dsn, store.Options{})
	vendor := storetest.User(t, s, exchange.RoleVendor)
	f := addFile(t, ago(t, dsn, 15*day), vendor, "slip", true)
	if _, err := storetest.Owner(t, s).ExecContext(t.Context(), `UPDATE files SET deleted_at = now(), name = 'deleted' WHERE id = $1`, f.OriginalID); err != nil {
		t.Fatal(err)
	}
	err := s.UseFile(t.Context(), exchange.FileUse{FileID: f.ID, ObjectType: "otc_deposit", ObjectID: vendor.ID}, storetest.PrincipalOf(vendor))
	if exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("it is used: %v", err)
	}
}

// A database that was put back may lack the use of a file: its retention does not end before the database was released.
func TestNoFileEndsInADatabaseThatWasPutBack(t *testing.T) {
	t.Parallel()
	dsn := storetest.URL(t)
	s := storetest.Open(t, dsn, store.Options{})
	vendor, m := storetest.User(t, s, exchange.RoleVendor), storetest.NewMarket(t, s)
	addFile(t, ago(t, dsn, 15*day), vendor, "ended before", false)
	if n, err := s.EndFiles(t.Context(), 10); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	f := addFile(t, ago(t, dsn, 15*day), vendor, "due", false)
	storetest.Attempt(t, s, m.Order(t, s, "10")) // what was sent once makes a difference
	storetest.PutBack(t, s)
	if n, err := s.EndFiles(t.Context(), 10); n != 0 || err != nil {
		t.Errorf("%d files have ended, %v", n, err)
	}
	if refs, err := s.UnpurgedFiles(t.Context(), 10); len(refs) != 0 || err != nil {
		t.Errorf("%v are to be purged, %v", refs, err)
	}
	if _, err := storetest.Owner(t, s).ExecContext(t.Context(), `UPDATE files SET deleted_at = now() WHERE id = $1`, f.ID); sqlState(err) != "KV001" {
		t.Errorf("its owner ends one: %v", err)
	}
}

// Objects without a row are found, but not while a database that was put back may lack rows.
func TestObjectsWithoutARowAreFound(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	vendor := storetest.User(t, s, exchange.RoleVendor)
	f := addFile(t, s, vendor, "receipt", false)
	known, stray := exchange.FileRef{ID: f.ID, Purpose: f.Purpose}, exchange.FileRef{ID: storetest.NewID(t), Purpose: f.Purpose}
	got, err := s.UnknownFiles(t.Context(), []exchange.FileRef{known, stray})
	if err != nil || !slices.Equal(got, []exchange.FileRef{stray}) {
		t.Errorf("unknown are %v, %v", got, err)
	}
	if got, err := s.UnknownFiles(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("of none %v are unknown, %v", got, err)
	}
	m := storetest.NewMarket(t, s)
	storetest.Attempt(t, s, m.Order(t, s, "10")) // what was sent once makes a difference
	storetest.PutBack(t, s)
	if got, err := s.UnknownFiles(t.Context(), []exchange.FileRef{known, stray}); err != nil || len(got) != 0 {
		t.Errorf("in a database that was put back %v are unknown, %v", got, err)
	}
}

func TestUploadsOfADayAreLimited(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	vendor := storetest.User(t, s, exchange.RoleVendor)
	if err := s.MayUpload(t.Context(), storetest.PrincipalOf(vendor)); err != nil {
		t.Error(err)
	}
	for range exchange.MaxFilesPerDay / 2 {
		addFile(t, s, vendor, storetest.NewID(t).String(), true)
		addFile(t, s, vendor, storetest.NewID(t).String(), false)
	}
	if _, err := s.AddFile(t.Context(), uploaded(t, vendor, "one more", false), storetest.PrincipalOf(vendor)); exchange.CodeOf(err) != exchange.CodeLimitReached {
		t.Errorf("one more: %v", err)
	}
	if err := s.MayUpload(t.Context(), storetest.PrincipalOf(vendor)); exchange.CodeOf(err) != exchange.CodeLimitReached {
		t.Errorf("one more may come: %v", err)
	}
}

// The accounts of one merchant together take no more than a merchant may. Others still upload.
func TestUploadsOfAMerchantAreLimited(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	vendor, rival := storetest.User(t, s, exchange.RoleVendor), storetest.User(t, s, exchange.RoleVendor)
	addFile(t, s, storetest.Subvendor(t, s, vendor), "receipt", false)
	storetest.Exec(t, s, fmt.Sprintf(`
		INSERT INTO files (id, purpose, owner_id, uploaded_by, name, content_type, size_bytes, sha256, source_sha256, pages, created_at)
			SELECT gen_random_uuid(), purpose, owner_id, uploaded_by, name, content_type, size_bytes, sha256, source_sha256, pages, created_at
			FROM files, generate_series(2, %d);
		INSERT INTO file_keys (file_id, ciphertext, master_key)
			SELECT f.id, 'x', 'first' FROM files f WHERE NOT EXISTS (SELECT FROM file_keys k WHERE k.file_id = f.id)`, exchange.MaxMerchantFiles))
	for _, u := range []exchange.User{vendor, storetest.Subvendor(t, s, vendor)} {
		if _, err := s.AddFile(t.Context(), uploaded(t, u, "one more", false), storetest.PrincipalOf(u)); exchange.CodeOf(err) != exchange.CodeLimitReached {
			t.Errorf("one more of a %s: %v", u.Role, err)
		}
		if err := s.MayUpload(t.Context(), storetest.PrincipalOf(u)); exchange.CodeOf(err) != exchange.CodeLimitReached {
			t.Errorf("one more of a %s may come: %v", u.Role, err)
		}
	}
	addFile(t, s, rival, "another merchant's", false)
}

// Each process can do with files what it must, and no more.
func TestProcessesAndFiles(t *testing.T) {
	t.Parallel()
	dsn := storetest.URL(t)
	s := storetest.Open(t, dsn, store.Options{})
	api, flows := storetest.OpenAs(t, dsn, store.RoleAPI, store.Options{}), storetest.OpenAs(t, dsn, store.RoleFlows, store.Options{})
	vendor := storetest.User(t, s, exchange.RoleVendor)
	f := addFile(t, api, vendor, "receipt", true)
	if err := api.UseFile(t.Context(), exchange.FileUse{FileID: f.ID, ObjectType: "otc_deposit", ObjectID: vendor.ID}, storetest.PrincipalOf(vendor)); err != nil {
		t.Error(err)
	}
	old := addFile(t, ago(t, dsn, 15*day), vendor, "old", false)
	if n, err := flows.EndFiles(t.Context(), 10); err != nil || n != 1 {
		t.Errorf("%d files have ended, %v", n, err)
	}
	if refs, err := flows.UnpurgedFiles(t.Context(), 10); err != nil || len(refs) != 1 {
		t.Errorf("%v are to be purged, %v", refs, err)
	}
	if err := flows.PurgeFile(t.Context(), old.ID); err != nil {
		t.Error(err)
	}
	if _, err := flows.UnknownFiles(t.Context(), []exchange.FileRef{{ID: f.ID}}); err != nil {
		t.Error(err)
	}
	if _, err := api.EndFiles(t.Context(), 10); err == nil {
		t.Error("the API ends files")
	}
	if _, _, err := flows.ViewFile(t.Context(), store.Everything(), f.ID, nil, exchange.System("flows")); err == nil {
		t.Error("the flows read the keys of files")
	}
}
