package api

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/files"
	"kivuko/files/inspect"
)

// reversing seals the keys of tests' files, so that sealed ones can be told from opened ones. The root's tests seal with a vault.
type reversing struct{}

func (reversing) Seal(_ context.Context, id uuid.UUID, key []byte) (exchange.SealedFileKey, error) {
	sealed := slices.Clone(key)
	slices.Reverse(sealed)
	return exchange.SealedFileKey{FileID: id, Ciphertext: sealed, MasterKey: "reversing"}, nil
}

func (reversing) Open(_ context.Context, s exchange.SealedFileKey) ([]byte, error) {
	key := slices.Clone(s.Ciphertext)
	slices.Reverse(key)
	return key, nil
}

func testFiles(t testing.TB, bucket string) *files.Store {
	t.Helper()
	s, err := files.Open(context.Background(), files.Config{Bucket: bucket, Keys: reversing{}, Check: inspect.Check, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// receipt is a PDF of one page with a text that makes it differ from others.
func receipt(text string) []byte {
	content := "BT /F1 12 Tf 20 100 Td (" + text + ") Tj ET"
	var out bytes.Buffer
	out.WriteString("%PDF-1.4\n")
	var starts []int
	for i, o := range []string{
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(content), content), "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	} {
		starts = append(starts, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	table := out.Len()
	out.WriteString("xref\n0 6\n0000000000 65535 f \n")
	for _, at := range starts {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", table)
	return out.Bytes()
}

// padded makes a PDF as long as wanted, by a comment before its table.
func padded(pdf []byte, size int) []byte {
	at := bytes.LastIndex(pdf, []byte("xref\n0"))
	table, where, _ := bytes.Cut(pdf[at:], []byte("startxref\n"+strconv.Itoa(at)))
	for n := size - len(pdf) - 2; ; n-- { // the number of the table's place may get longer
		comment := "%" + strings.Repeat("x", n) + "\n"
		out := slices.Concat(pdf[:at], []byte(comment), table, []byte("startxref\n"+strconv.Itoa(at+len(comment))), where)
		if len(out) == size {
			return out
		}
	}
}

// formPart is a field of a form, or its file.
type formPart struct{ name, file, value string }

// sentForm writes a form and says what its media type is.
func sentForm(t testing.TB, parts ...formPart) (string, option) {
	t.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for _, p := range parts {
		head := textproto.MIMEHeader{}
		if p.file == "" {
			head.Set("Content-Disposition", fmt.Sprintf(`form-data; name=%q`, p.name))
		} else {
			head.Set("Content-Disposition", fmt.Sprintf(`form-data; name=%q; filename="%s"`, p.name, p.file))
			head.Set("Content-Type", "application/x-whatever")
		}
		part, err := w.CreatePart(head)
		if err == nil {
			_, err = io.WriteString(part, p.value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String(), header("Content-Type", w.FormDataContentType())
}

func (e *env) upload(p person, purpose exchange.FilePurpose, name string, content []byte) *reply {
	e.t.Helper()
	body, media := sentForm(e.t, formPart{name: "purpose", value: string(purpose)}, formPart{name: "file", file: name, value: string(content)})
	return e.do(post, filesPath, body, p.auth(), media)
}

// file is a receipt that somebody uploaded.
func (e *env) file(p person) uuid.UUID {
	e.t.Helper()
	got := e.upload(p, exchange.FileOTCProof, "receipt.pdf", receipt(newID().String())).want(http.StatusCreated)
	return uuid.MustParse(got.text("id"))
}

func fileCells() map[string]cell {
	of := func(s scene) uuid.UUID { return s.w.file(s.w.session(s.merchant().User)) } // an earlier cell may have ended the last one
	return map[string]cell{
		"GET " + filesPath + "/{id}": {id: of}, "GET " + filesPath + "/{id}/content": {id: of}, "POST " + filesPath + "/{id}/link": {id: of},
	}
}

// audited are the actions of the audit log about a file, oldest first.
func (e *env) audited(id uuid.UUID) []string {
	e.t.Helper()
	admin := e.person(exchange.RoleAdmin)
	rows := e.do(get, "/api/v1/auth/audit?object_type=file&object_id="+id.String(), nil, admin.auth()).want(http.StatusOK).object()["audit"].([]any)
	var all []string
	for _, r := range rows {
		all = append(all, r.(map[string]any)["action"].(string))
	}
	slices.Reverse(all)
	return all
}

func TestFilesAreTheirOwners(t *testing.T) {
	e := start(t)
	vendor, officer := e.person(exchange.RoleVendor), e.person(exchange.RoleOTCOfficer)
	content := receipt("Paid 1,000 KES")
	made := e.upload(vendor, exchange.FileOTCProof, "receipt.pdf", content).want(http.StatusCreated)
	id, where := uuid.MustParse(made.text("id")), made.header.Get("Location")
	if f := made.object(); f["content_type"] != "application/pdf" || f["pages"] != 1.0 || f["size_bytes"] != float64(len(content)) || f["owner_id"] != vendor.ID.String() ||
		f["original"] != nil || f["same_content"] != nil || where != filesPath+"/"+id.String() {
		t.Errorf("uploaded %v at %s", f, where)
	}
	for _, reader := range []person{vendor, e.person(exchange.RoleSubvendor, vendor.ID), officer, e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)} {
		e.do(get, where, nil, reader.auth()).want(http.StatusOK)
		if got := e.do(get, where+"/content", nil, reader.auth()).want(http.StatusOK); !bytes.Equal(got.body, content) {
			t.Errorf("a %s reads %d other bytes", reader.Role, len(got.body))
		}
	}
	rival := e.person(exchange.RoleVendor)
	for _, path := range []string{where, where + "/content"} {
		e.do(get, path, nil, rival.auth()).refused(exchange.CodeNotFound)
		e.do(get, path, nil, e.person(exchange.RoleCustomer).auth()).refused(exchange.CodeForbidden)
		e.do(get, path, nil).refused(exchange.CodeUnauthenticated)
	}
	e.do(post, where+"/link", nil, rival.auth()).refused(exchange.CodeNotFound)
	e.do(post, where+"/link", nil, vendor.auth()).want(http.StatusCreated)
	got := e.audited(id)
	if want := append([]string{"file.uploaded"}, slices.Repeat([]string{"file.viewed"}, 5)...); !slices.Equal(got, append(want, "file.link_issued")) {
		t.Errorf("the audit log has %v", got)
	}
}

// One proof for two is seen, whoever sends it and whatever it is called. Merchants don't learn what others have sent.
func TestOneContentUploadedTwiceIsSeen(t *testing.T) {
	e := start(t)
	vendor, rival, officer := e.person(exchange.RoleVendor), e.person(exchange.RoleVendor), e.person(exchange.RoleOTCOfficer)
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 30, 20))); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"a.pdf": receipt("one"), "a.png": picture.Bytes()} {
		first := e.upload(vendor, exchange.FileOTCProof, name, content).want(http.StatusCreated)
		second := e.upload(rival, exchange.FileOTCProof, "b"+name, content).want(http.StatusCreated)
		if second.object()["same_content"] != nil {
			t.Error("a merchant learns of another's upload")
		}
		same := e.do(get, second.header.Get("Location"), nil, officer.auth()).want(http.StatusOK).object()["same_content"].([]any)
		if len(same) != 1 || same[0].(map[string]any)["id"] != first.text("id") || same[0].(map[string]any)["owner_id"] != vendor.ID.String() {
			t.Errorf("%s: an officer sees %v", name, same)
		}
	}
}

func TestPicturesAreKeptBesideTheirPDF(t *testing.T) {
	e := start(t)
	vendor := e.person(exchange.RoleVendor)
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 30, 20))); err != nil {
		t.Fatal(err)
	}
	made := e.upload(vendor, exchange.FileOTCProof, "photo of a slip.JPG", picture.Bytes()).want(http.StatusCreated)
	f := made.object()
	original, _ := f["original"].(map[string]any)
	if f["content_type"] != "application/pdf" || f["name"] != "photo of a slip.JPG.pdf" || original["content_type"] != "image/png" || original["name"] != "photo of a slip.JPG.png" {
		t.Errorf("uploaded %v", f)
	}
	pdf := e.do(get, made.header.Get("Location")+"/content", nil, vendor.auth()).want(http.StatusOK)
	kept := e.do(get, filesPath+"/"+fmt.Sprint(original["id"])+"/content", nil, vendor.auth()).want(http.StatusOK)
	if !bytes.HasPrefix(pdf.body, []byte("%PDF-")) || !bytes.Equal(kept.body, picture.Bytes()) || !strings.HasPrefix(kept.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("read %.20q, and %q as the original with %v", pdf.body, kept.body, kept.header)
	}
}

// A file does nothing in a browser, and no proxy keeps it.
func TestFilesAreSentWithCare(t *testing.T) {
	e := start(t)
	vendor := e.person(exchange.RoleVendor)
	made := e.upload(vendor, exchange.FileOTCProof, "receipt.pdf", receipt("care")).want(http.StatusCreated)
	got := e.do(get, made.text("url"), nil, vendor.auth()).want(http.StatusOK)
	for name, want := range map[string]string{
		"Content-Type": "application/pdf", "Content-Disposition": "inline; filename=receipt.pdf", "X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-store",
		"Content-Security-Policy": filePolicy, "Accept-Ranges": "bytes", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Resource-Policy": "same-origin", "Content-Length": strconv.Itoa(len(got.body)), "ETag": `"` + made.text("sha256") + `"`,
	} {
		if have := got.header.Get(name); have != want {
			t.Errorf("%s is %q, want %q", name, have, want)
		}
	}
}

func TestNamesOfFilesAreCleaned(t *testing.T) {
	e := start(t)
	vendor := e.person(exchange.RoleVendor)
	for given, want := range map[string]string{
		"../../../etc/passwd": "passwd.pdf", `C:\\Windows\\system.ini`: "system.ini.pdf", "receipt.pdf.exe": "receipt.pdf.exe.pdf", "..": "file.pdf", "con.pdf": "file_con.pdf",
		"a\u202efdp.exe": "afdp.exe.pdf", "caf\u00e9.PDF": "caf\u00e9.pdf", "a;b=c.pdf": "a_b=c.pdf", strings.Repeat("x", 300) + ".pdf": strings.Repeat("x", 116) + ".pdf",
	} {
		got := e.upload(vendor, exchange.FileOTCProof, given, receipt(given)).want(http.StatusCreated)
		if name := got.text("name"); name != want {
			t.Errorf("%q is called %q, want %q", given, name, want)
		}
		sent := e.do(get, got.text("url"), nil, vendor.auth()).want(http.StatusOK).header.Get("Content-Disposition")
		if strings.ContainsAny(sent, "\r\n/\\") || !strings.HasPrefix(sent, "inline; filename") {
			t.Errorf("%q is sent as %q", given, sent)
		}
	}
}

func TestRangesOfFiles(t *testing.T) {
	e := start(t)
	vendor := e.person(exchange.RoleVendor)
	content := padded(receipt("long"), 200_000)
	made := e.upload(vendor, exchange.FileOTCProof, "a.pdf", content).want(http.StatusCreated)
	read := func(asked string, more ...option) *reply {
		return e.do(get, made.text("url"), nil, append(more, vendor.auth(), header("Range", asked))...)
	}
	for asked, want := range map[string][2]int{
		"bytes=0-0": {0, 1}, "bytes=0-99": {0, 100}, "bytes=65530-65550": {65530, 65551}, "bytes=150000-": {150_000, 200_000}, "bytes=-7": {199_993, 200_000},
		"bytes=199999-300000": {199_999, 200_000}, "bytes=0-99999999999999999999999": {0, 200_000},
	} {
		got := read(asked)
		if want[1]-want[0] < len(content) {
			got.want(http.StatusPartialContent)
			if at := fmt.Sprintf("bytes %d-%d/200000", want[0], want[1]-1); got.header.Get("Content-Range") != at {
				t.Errorf("%s answers %q, want %q", asked, got.header.Get("Content-Range"), at)
			}
		}
		if !bytes.Equal(got.body, content[want[0]:want[1]]) {
			t.Errorf("%s answers %d other bytes", asked, len(got.body))
		}
	}
	for _, asked := range []string{"bytes=0-1,5-6", "bytes=5-1", "bytes=a-b", "bytes=-", "lines=0-1", "bytes=--1"} {
		if got := read(asked).want(http.StatusOK); len(got.body) != len(content) {
			t.Errorf("%s answers %d bytes, want all", asked, len(got.body))
		}
	}
	for _, asked := range []string{"bytes=200000-", "bytes=-0"} {
		if got := read(asked).refused(exchange.CodeRange); got.header.Get("Content-Range") != "bytes */200000" {
			t.Errorf("%s answers %v", asked, got.header)
		}
	}
	read("bytes=0-0", header("If-Range", `"`+made.text("sha256")+`"`)).want(http.StatusPartialContent)
	read("bytes=0-0", header("If-Range", `"another"`)).want(http.StatusOK)
}

func TestLinksOpenOneFileForAWhile(t *testing.T) {
	e := start(t)
	vendor := e.person(exchange.RoleVendor)
	id, other := e.file(vendor), e.file(vendor)
	link := e.do(post, filesPath+"/"+id.String()+"/link", nil, vendor.auth()).want(http.StatusCreated).text("url")
	e.do(get, link, nil).want(http.StatusOK)
	e.do(get, link, nil, header("Range", "bytes=0-3")).want(http.StatusPartialContent)
	e.do(get, strings.Replace(link, id.String(), other.String(), 1), nil).refused(exchange.CodeUnauthenticated)
	e.do(get, "/files/"+id.String(), nil).blames("query/link required")
	e.do(get, "/files/"+id.String()+"?link=x", nil).refused(exchange.CodeUnauthenticated)
	e.do(get, "/files/"+id.String()+"?link="+vendor.token, nil).refused(exchange.CodeUnauthenticated) // an access token is no link
	_, token, _ := strings.Cut(link, "link=")
	e.do(get, "/api/v1/auth/user/me", nil, bearer(token)).refused(exchange.CodeUnauthenticated) // and a link no access token
	got := e.audited(id)
	if want := []string{"file.uploaded", "file.link_issued", "file.viewed", "file.viewed"}; !slices.Equal(got, want) {
		t.Errorf("the audit log has %v", got)
	}
	again := e.session(vendor.User)
	e.do(post, "/api/v1/auth/logout", nil, vendor.auth()).want(http.StatusNoContent)
	e.do(get, link, nil).refused(exchange.CodeUnauthenticated)
	link = e.do(post, filesPath+"/"+id.String()+"/link", nil, again.auth()).want(http.StatusCreated).text("url")
	e.skew.Store(int64(exchange.FileLinkLife - time.Second))
	e.do(get, link, nil).want(http.StatusOK)
	e.skew.Store(int64(exchange.FileLinkLife + time.Second))
	e.do(get, link, nil).refused(exchange.CodeUnauthenticated)
}

// A link dies with its maker's account, and does not outlive its role.
func TestLinksDieWithTheirMaker(t *testing.T) {
	e := start(t)
	vendor, admin := e.person(exchange.RoleVendor), e.person(exchange.RoleAdmin)
	link := e.do(post, filesPath+"/"+e.file(vendor).String()+"/link", nil, vendor.auth()).want(http.StatusCreated).text("url")
	e.do(patch, "/api/v1/auth/users/"+vendor.ID.String(), map[string]any{"is_active": false}, admin.auth()).want(http.StatusOK)
	e.do(get, link, nil).refused(exchange.CodeUnauthenticated)
}

func TestFilesAboveTheLimitAreRefusedByName(t *testing.T) {
	e := start(t)
	vendor := e.person(exchange.RoleVendor)
	most := padded(receipt("long"), exchange.MaxFileSize)
	if got := e.upload(vendor, exchange.FileOTCProof, "a.pdf", most).want(http.StatusCreated); got.object()["size_bytes"] != float64(exchange.MaxFileSize) {
		t.Errorf("took %v", got.object())
	}
	p := e.upload(vendor, exchange.FileOTCProof, "a.pdf", padded(receipt("long"), exchange.MaxFileSize+1)).refused(exchange.CodeTooLarge).problem()
	if len(p.Errors) != 1 || p.Errors[0].Pointer != "/file" || p.Errors[0].Code != exchange.FileRuleSize || !strings.Contains(p.Errors[0].Message, "10485760") {
		t.Errorf("refused with %+v", p)
	}
	// A body far above the limit is not read to its end: the connection closes instead.
	huge := append(padded(receipt("long"), exchange.MaxFileSize), make([]byte, exchange.MaxFileSize)...)
	body, media := sentForm(t, formPart{name: "purpose", value: "otc_proof"}, formPart{name: "file", file: "a.pdf", value: string(huge)})
	r, err := http.NewRequestWithContext(t.Context(), post, e.base+filesPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	media(r)
	vendor.auth()(r)
	if got, err := e.client.Do(r); err == nil { // the client may see the closed connection first
		_ = got.Body.Close()
		if got.StatusCode != http.StatusRequestEntityTooLarge || !got.Close {
			t.Errorf("a huge file answers %d, closes %t", got.StatusCode, got.Close)
		}
	}
}

func TestHarmfulFilesAreRefusedByRule(t *testing.T) {
	e := start(t)
	vendor, treasury := e.person(exchange.RoleVendor), e.person(exchange.RoleTreasury)
	script := bytes.Replace(receipt("x"), []byte("/Pages 2 0 R"), []byte("/Pages 2 0 R /OpenAction << /S /JavaScript /JS (app.alert(1)) >>"), 1)
	for name, content := range map[string][]byte{
		"file_type": []byte("<html><script>alert(1)</script></html>"), "empty": {}, "damaged": []byte("%PDF-1.4\n%%EOF\n"), "javascript": script,
		"second_format": append(receipt("x"), append([]byte("PK\x05\x06"), make([]byte, 18)...)...),
	} {
		e.upload(vendor, exchange.FileOTCProof, "receipt.pdf", content).blames("/file " + name)
	}
	const statement = `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt/></Document>`
	e.upload(treasury, exchange.FileBankStatement, "s.xml", []byte(statement)).want(http.StatusCreated)
	e.upload(treasury, exchange.FileBankStatement, "s.csv", []byte("date,amount\n")).want(http.StatusCreated)
	e.upload(treasury, exchange.FileBankStatement, "s.xml", []byte("<!DOCTYPE a>"+statement)).blames("/file markup")
	e.upload(treasury, exchange.FileBankStatement, "s.pdf", receipt("x")).blames("/file file_type")
	e.upload(vendor, exchange.FileBankStatement, "s.xml", []byte(statement)).refused(exchange.CodeForbidden)
	e.upload(e.person(exchange.RoleOTCOfficer), exchange.FileExceptionEvidence, "e.pdf", receipt("x")).want(http.StatusCreated)
	e.upload(vendor, exchange.FileExceptionEvidence, "e.pdf", receipt("x")).refused(exchange.CodeForbidden)
}

func TestFormsAreReadStrictly(t *testing.T) {
	e := start(t)
	vendor := e.person(exchange.RoleVendor)
	purpose, file := formPart{name: "purpose", value: "otc_proof"}, formPart{name: "file", file: "a.pdf", value: string(receipt("x"))}
	send := func(parts ...formPart) *reply {
		body, media := sentForm(t, parts...)
		return e.do(post, filesPath, body, vendor.auth(), media)
	}
	send(file, purpose).blames("/purpose required")
	send(purpose).blames("/file required")
	send(purpose, file, file).blames("/file repeated")
	send(purpose, formPart{name: "file", value: "text"}).blames("/file type")
	send(purpose, file, formPart{name: "note", value: "x"}).blames("/note unknown_field")
	send(formPart{name: "purpose", value: "holiday"}, file).blames("/purpose enum")
	send(purpose, purpose, file).refused(exchange.CodeMalformed)
	send(formPart{name: "purpose", value: "\xff"}, file).refused(exchange.CodeMalformed)
	send(formPart{name: "purpose", value: strings.Repeat("x", maxFormField+1)}, file).refused(exchange.CodeInvalid)
	send(append([]formPart{purpose, file}, manyFields(maxFormFields)...)...).refused(exchange.CodeMalformed)
	send(purpose, formPart{name: "file", file: strings.Repeat("n", 2*maxPartHead), value: "x"}).refused(exchange.CodeMalformed)
	e.do(post, filesPath, map[string]any{"purpose": "otc_proof"}, vendor.auth()).refused(exchange.CodeMediaType)
	e.do(post, filesPath, "x", vendor.auth(), header("Content-Type", "multipart/form-data")).refused(exchange.CodeMediaType)
	body, media := sentForm(t, purpose, file)
	e.do(post, filesPath, body[:len(body)-200], vendor.auth(), media).refused(exchange.CodeMalformed)
	e.do(post, filesPath, body, vendor.auth(), media, header("Content-Encoding", "gzip")).refused(exchange.CodeMediaType)
	e.do(post, filesPath, body, media).refused(exchange.CodeUnauthenticated)
	// Operations without a file take no form.
	e.do(post, "/api/v1/auth/offers", body, vendor.auth(), media).refused(exchange.CodeMediaType)
}

func manyFields(n int) []formPart {
	all := make([]formPart, n)
	for i := range all {
		all[i] = formPart{name: "f" + strconv.Itoa(i), value: "x"}
	}
	return all
}

// An upload that breaks off leaves nothing behind, and the next one succeeds.
func TestBrokenUploadsLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	e := start(t, func(d *Deps) { d.Files = testFiles(t, "file://"+dir) })
	vendor := e.person(exchange.RoleVendor)
	body, media := sentForm(t, formPart{name: "purpose", value: "otc_proof"}, formPart{name: "file", file: "a.pdf", value: string(padded(receipt("x"), 1<<20))})
	r, err := http.NewRequestWithContext(t.Context(), post, e.base+filesPath, io.MultiReader(strings.NewReader(body[:1<<19]), failing{}))
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = int64(len(body))
	media(r)
	vendor.auth()(r)
	if got, err := e.client.Do(r); err == nil {
		t.Errorf("half an upload answers %d", got.StatusCode)
	}
	e.upload(vendor, exchange.FileOTCProof, "a.pdf", receipt("x")).want(http.StatusCreated)
	if kept, err := filepath.Glob(filepath.Join(dir, "*", "*")); err != nil || len(kept) != 1 {
		t.Errorf("%v objects are kept, %v", kept, err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// While the store of files is away, uploads and reads answer that they are to be tried again, and nothing is lost.
func TestStoreOfFilesIsAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "objects")
	e := start(t, func(d *Deps) { d.Files = testFiles(t, "file://"+dir) })
	vendor := e.person(exchange.RoleVendor)
	content := receipt("before")
	before := e.upload(vendor, exchange.FileOTCProof, "a.pdf", content).want(http.StatusCreated)
	away := dir + ".away"
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file where the directory was: nothing can be read or made below
		t.Fatal(err)
	}
	got := e.upload(vendor, exchange.FileOTCProof, "b.pdf", receipt("during")).refused(exchange.CodeUnavailable)
	if got.header.Get("Retry-After") == "" {
		t.Error("the answer does not say when to try again")
	}
	e.do(get, before.text("url"), nil, vendor.auth()).refused(exchange.CodeUnavailable)
	e.do(get, before.header.Get("Location"), nil, vendor.auth()).want(http.StatusOK)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	e.upload(vendor, exchange.FileOTCProof, "b.pdf", receipt("during")).want(http.StatusCreated)
	if after := e.do(get, before.text("url"), nil, vendor.auth()).want(http.StatusOK); !bytes.Equal(after.body, content) {
		t.Error("the file is another one")
	}
}

// An object that was changed, exchanged or lost in the object store is never sent as the file.
func TestChangedObjectsAreNotSent(t *testing.T) {
	dir := t.TempDir()
	e := start(t, func(d *Deps) { d.Files = testFiles(t, "file://"+dir) })
	vendor := e.person(exchange.RoleVendor)
	first, second := e.file(vendor), e.file(vendor)
	object := func(id uuid.UUID) string { return filepath.Join(dir, string(exchange.FileOTCProof), id.String()) }
	raw, err := os.ReadFile(object(first))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte("%PDF")) {
		t.Fatal("the object is not encrypted")
	}
	other, err := os.ReadFile(object(second))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(raw)
	flipped[len(flipped)-1] ^= 1
	for name, content := range map[string][]byte{"changed": flipped, "cut off": raw[:len(raw)-1], "empty": {}, "another file's": other} {
		if err := os.WriteFile(object(first), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := e.do(get, filesPath+"/"+first.String()+"/content", nil, vendor.auth()); got.status != http.StatusInternalServerError {
			t.Errorf("a %s object answers %d", name, got.status)
		}
	}
	if err := os.Remove(object(first)); err != nil {
		t.Fatal(err)
	}
	e.do(get, filesPath+"/"+first.String()+"/content", nil, vendor.auth()).refused(exchange.CodeInternal)
	if got := strings.Count(e.logs.String(), "ALERT a file is missing or changed"); got != 5 {
		t.Errorf("%d alerts are given", got)
	}
}

// What is changed behind the first bytes is not sent either: the connection closes before it, and an alert is given.
func TestChangedEndsAreNotSent(t *testing.T) {
	dir := t.TempDir()
	e := start(t, func(d *Deps) { d.Files = testFiles(t, "file://"+dir) })
	vendor := e.person(exchange.RoleVendor)
	made := e.upload(vendor, exchange.FileOTCProof, "a.pdf", padded(receipt("long"), 1<<20)).want(http.StatusCreated)
	name := filepath.Join(dir, string(exchange.FileOTCProof), made.text("id"))
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-1] ^= 1
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), get, e.base+made.text("url"), nil)
	if err != nil {
		t.Fatal(err)
	}
	vendor.auth()(r)
	got, err := e.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if sent, err := io.ReadAll(got.Body); err == nil || len(sent) >= 1<<20 {
		t.Errorf("%d bytes are sent, %v", len(sent), err)
	}
	if got := strings.Count(e.logs.String(), "ALERT a file is missing or changed"); got != 1 {
		t.Errorf("%d alerts are given", got)
	}
}

func TestUploadsHaveLimits(t *testing.T) {
	e := start(t, func(d *Deps) { d.Config.Rates.Upload = Rate{Max: 2, Per: time.Hour} })
	vendor := e.person(exchange.RoleVendor)
	e.file(vendor)
	e.file(vendor)
	e.upload(vendor, exchange.FileOTCProof, "a.pdf", receipt("x")).refused(exchange.CodeRateLimited)
	slow, other := e.person(exchange.RoleVendor), e.person(exchange.RoleVendor)
	for e.server.uploads.take(slow.ID) {
	}
	for _, who := range []person{slow, e.person(exchange.RoleSubvendor, slow.ID)} {
		e.upload(who, exchange.FileOTCProof, "a.pdf", receipt("x")).refused(exchange.CodeUnavailable)
	}
	e.file(other) // slow ones of one merchant are no other's
	for e.server.uploads.take(newID()) {
	}
	e.upload(other, exchange.FileOTCProof, "a.pdf", receipt("x")).refused(exchange.CodeUnavailable)
}

func TestWithoutAStoreOfFilesNoneAreTaken(t *testing.T) {
	e := start(t, func(d *Deps) { d.Files = nil })
	e.upload(e.person(exchange.RoleVendor), exchange.FileOTCProof, "a.pdf", receipt("x")).refused(exchange.CodeUnsupported)
}
