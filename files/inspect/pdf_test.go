package inspect

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pdfcpu/pdfcpu/pkg/api"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"

	"kivuko/exchange"
)

// document writes a PDF of objects, numbered from 1; the first is the catalog.
func document(objects ...string) []byte {
	var out bytes.Buffer
	out.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	var starts []int
	for i, o := range objects {
		starts = append(starts, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	table := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(starts)+1)
	for _, at := range starts {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(starts)+1, table)
	return out.Bytes()
}

// withCatalog is a PDF of one page whose catalog has more entries, and with more objects from number 4 on.
func withCatalog(entries string, more ...string) []byte {
	return document(append([]string{
		"<< /Type /Catalog /Pages 2 0 R " + entries + " >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] >>",
	}, more...)...)
}

// withPage is a PDF of one page that has more entries, and with more objects from number 4 on.
func withPage(entries string, more ...string) []byte {
	return document(append([]string{
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] " + entries + " >>",
	}, more...)...)
}

// link has a page do something on a click.
func link(action string) string {
	return "/Annots [<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A " + action + " >>]"
}

func withPages(n int) []byte {
	kids := make([]string, n)
	objects := []string{"<< /Type /Catalog /Pages 2 0 R >>", ""}
	for i := range n {
		kids[i] = fmt.Sprintf("%d 0 R", i+3)
		objects = append(objects, "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] >>")
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), n)
	return document(objects...)
}

func packed(content []byte) []byte {
	var out bytes.Buffer
	w, _ := zlib.NewWriterLevel(&out, zlib.BestCompression)
	_, _ = w.Write(content)
	_ = w.Close()
	return out.Bytes()
}

func stream(dict string, content []byte) string {
	return fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", dict, len(content), content)
}

// madeObjects are the objects of a PDF as document writes them.
var madeObjects = regexp.MustCompile(`(?s)(\d+) 0 obj\n(.*?)\nendobj\n`)

// inObjectStream is a PDF that document wrote, with all objects but streams in a compressed stream, and a compressed table; none for
// another PDF. The hidden objects follow in that stream, as number 1, but no table names them.
func inObjectStream(content []byte, hidden ...string) []byte {
	var objects []string
	for _, o := range madeObjects.FindAllSubmatch(content, -1) {
		objects = append(objects, string(o[2]))
	}
	if !bytes.Equal(document(objects...), content) {
		return nil
	}
	var out, first, inside bytes.Buffer
	out.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	table := []byte{0, 0, 0, 0, 0, 0xff, 0xff}
	entry := func(kind byte, where, index int) {
		table = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(append(table, kind), uint32(where)), uint16(index))
	}
	packer, packedObjects := len(objects)+1, 0
	for i, o := range objects {
		if strings.Contains(o, "endstream") {
			entry(1, out.Len(), 0)
			fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
			continue
		}
		entry(2, packer, packedObjects)
		packedObjects++
		fmt.Fprintf(&first, "%d %d ", i+1, inside.Len())
		inside.WriteString(o + "\n")
	}
	for _, o := range hidden {
		packedObjects++
		fmt.Fprintf(&first, "1 %d ", inside.Len())
		inside.WriteString(o + "\n")
	}
	entry(1, out.Len(), 0)
	dict := fmt.Sprintf("/Type /ObjStm /N %d /First %d /Filter /FlateDecode", packedObjects, first.Len())
	fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", packer, stream(dict, packed(append(first.Bytes(), inside.Bytes()...))))
	start := out.Len()
	entry(1, start, 0)
	dict = fmt.Sprintf("/Type /XRef /Size %d /W [1 4 2] /Root 1 0 R /Filter /FlateDecode", packer+2)
	fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\nstartxref\n%d\n%%%%EOF\n", packer+1, stream(dict, packed(table)), start)
	return out.Bytes()
}

// optimized is a PDF as the library writes it, with streams of objects.
func optimized(t *testing.T, content []byte) []byte {
	t.Helper()
	c := configuration()
	c.WriteObjectStream, c.WriteXRefStream, c.Cmd = true, true, model.OPTIMIZE
	var out bytes.Buffer
	if err := api.Optimize(bytes.NewReader(content), &out, c); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func locked(t *testing.T, user, owner string) []byte {
	t.Helper()
	c := configuration()
	c.UserPW, c.OwnerPW, c.EncryptUsingAES, c.EncryptKeyLength = user, owner, true, 256
	var out bytes.Buffer
	if err := api.Encrypt(bytes.NewReader(withPage("")), &out, c); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func verdictOf(t *testing.T, kind exchange.FileType, content []byte) (exchange.FileVerdict, []byte) {
	t.Helper()
	var made bytes.Buffer
	v, err := Check(t.Context(), kind, bytes.NewReader(content), &made)
	if err != nil {
		t.Fatal(err)
	}
	return v, made.Bytes()
}

func TestHarmlessPDFsAreAccepted(t *testing.T) {
	drawing := packed([]byte("BT /F1 12 Tf 20 100 Td (Paid 1,000 KES) Tj ET"))
	for name, c := range map[string]struct {
		content []byte
		pages   int
	}{
		"one page":                      {withPage(""), 1},
		"as many as may be":             {withPages(exchange.MaxFilePages), exchange.MaxFilePages},
		"packed content":                {withPage("/Contents 4 0 R", stream("/Filter /FlateDecode", drawing)), 1},
		"a link":                        {withPage(link("<< /S /URI /URI (https://bank.example) >>")), 1},
		"a form to fill in":             {withCatalog("/AcroForm << /Fields [4 0 R] >>", "<< /FT /Tx /T (name) /V (Wanjiru) >>"), 1},
		"opening at its page":           {withCatalog("/OpenAction [3 0 R /Fit]"), 1},
		"opening by an action":          {withCatalog("/OpenAction << /S /GoTo /D [3 0 R /Fit] >>"), 1},
		"in an object stream":           {optimized(t, withPage("")), 1},
		"objects that are not deflated": {withHidden("/Type /ObjStm /N 1 /First 4", "9 0 <<>>"), 1},
		"turning a page at opening":     {withCatalog("/OpenAction << /S /Named /N /LastPage >>"), 1},
		"a second saving":               {append(withPage(""), withPage("")...), 1},
		"a structure":                   {withCatalog("/StructTreeRoot << /Type /StructTreeRoot /K 4 0 R >>", "<< /Type /StructElem /S /Sound /P 1 0 R >>"), 1},
		"names of resources":            {withPage("/Resources << /Font << /S 4 0 R /Type 4 0 R /Width 4 0 R >> >>", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"), 1},
		"a link, kind elsewhere":        {withPage(link("<< /S 4 0 R /URI (https://bank.example) >>"), "/URI"), 1},
		"objects with nothing":          {withPage("", "null"), 1},
		"a language given twice":        {withCatalog("/Lang (en) /Lang (sw) /MarkInfo << /Marked true >>"), 1},
		"the same keys in many":         {withPage("/Resources << /S << /Type /A /Type2 /Type >> /F << /Type /A /S (x) /N [/S /S] >> /N null >>"), 1},
		"white space at the end":        {append(withPage(""), "\r\n \x00\n"...), 1},
	} {
		t.Run(name, func(t *testing.T) {
			for how, content := range bothWays(c.content) {
				if v, _ := verdictOf(t, exchange.FilePDF, content); v.Code != "" || v.Pages != c.pages {
					t.Errorf("%s: verdict %+v, want %d pages", how, v, c.pages)
				}
			}
		})
	}
}

func TestHarmfulPDFsAreRefused(t *testing.T) {
	const script = "<< /S /JavaScript /JS (app.alert(1)) >>"
	zeros := bytes.Repeat([]byte{0}, 1<<20)
	bomb := packed(bytes.Repeat(zeros, maxInflated>>20+1))
	for name, c := range map[string]struct {
		content []byte
		code    string
	}{
		"a script at opening":                {withCatalog("/OpenAction " + script), exchange.FileRuleScript},
		"a script by name":                   {withCatalog("/Names << /JavaScript << /Names [(a) 4 0 R] >> >>", script), exchange.FileRuleScript},
		"a script spelled by numbers":        {withCatalog("/OpenAction << /S /J#61#76aScrip#74 /J#53 (app.alert(1)) >>"), exchange.FileRuleScript},
		"a script whose kind is elsewhere":   {withCatalog("/OpenAction << /S 4 0 R /X (app.alert(1)) >>", "/JavaScript"), exchange.FileRuleScript},
		"a script that no table names":       {unlisted("9 0 obj\n" + script + "\nendobj\n"), exchange.FileRuleScript},
		"a script under a click":             {withPage(link(script)), exchange.FileRuleScript},
		"a script in an object stream":       {optimized(t, withCatalog("/OpenAction "+script)), exchange.FileRuleScript},
		"a script in a field":                {withCatalog("/AcroForm << /Fields [4 0 R] >>", "<< /FT /Tx /T (a) /AA << /K "+script+" >> >>"), exchange.FileRuleScript},
		"a program":                          {withCatalog("/OpenAction << /S /Launch /F (calc.exe) >>"), exchange.FileRuleLaunch},
		"another document":                   {withPage("/Annots [<< /Subtype /Link /Rect [0 0 9 9] /A << /S /GoToR /F (//evil/x.pdf) /D [0 /Fit] >> >>]"), exchange.FileRuleLaunch},
		"a file inside":                      {withCatalog("/Names << /EmbeddedFiles << /Names [(a) 4 0 R] >> >>", "<< /Type /Filespec /F (a.exe) >>"), exchange.FileRuleEmbedded},
		"a file as a note":                   {withPage("/Annots [<< /Subtype /FileAttachment /Rect [0 0 9 9] /FS 4 0 R >>]", "<< /F (a) >>"), exchange.FileRuleEmbedded},
		"a file behind a note":               {withPage("/Annots [<< /Subtype /Text /Rect [0 0 9 9] /FS 4 0 R >>]", "<< /Type /Filespec /F (a.exe) /EF << /F 5 0 R >> >>", stream("", []byte("MZ"))), exchange.FileRuleEmbedded},
		"a file that nothing names":          {withPage("", stream("/Type /EmbeddedFile", []byte("MZ"))), exchange.FileRuleEmbedded},
		"a document of LibreOffice inside":   {bytes.Replace(withPage("", stream("", []byte("x"))), []byte("/Root 1 0 R"), []byte("/Root 1 0 R /AdditionalStreams [/application#2Fvnd#2Eoasis 4 0 R]"), 1), exchange.FileRuleEmbedded},
		"a portfolio":                        {withCatalog("/Collection << /View /D >>"), exchange.FileRuleEmbedded},
		"a form that sends":                  {withPage("/Annots [<< /Subtype /Widget /Rect [0 0 9 9] /A << /S /SubmitForm /F (https://evil.example) >> >>]"), exchange.FileRuleSubmits},
		"a form that loads":                  {withPage("/Annots [<< /Subtype /Widget /Rect [0 0 9 9] /A << /S /ImportData /F (a.fdf) >> >>]"), exchange.FileRuleSubmits},
		"a form in XFA":                      {withCatalog("/AcroForm << /Fields [] /XFA 4 0 R >>", stream("", []byte("<xdp/>"))), exchange.FileRuleSubmits},
		"a form in XFA elsewhere":            {withCatalog("/AcroForm 4 0 R", "<< /Fields [] /XFA 5 0 R >>", stream("", []byte("<xdp/>"))), exchange.FileRuleSubmits},
		"a film":                             {withPage("/Annots [<< /Subtype /RichMedia /Rect [0 0 9 9] >>]"), exchange.FileRuleMedia},
		"a sound":                            {withPage("/Annots [<< /Subtype /Link /Rect [0 0 9 9] /A << /S /Sound >> >>]"), exchange.FileRuleMedia},
		"a page of the web at opening":       {withCatalog("/OpenAction << /S /URI /URI (https://evil.example) >>"), exchange.FileRuleAutomatic},
		"a page of the web on its page":      {withPage("/AA << /O << /S /URI /URI (https://evil.example) >> >>"), exchange.FileRuleAutomatic},
		"a page of the web under a pointer":  {withPage("/Annots [<< /Subtype /Widget /Rect [0 0 9 9] /AA << /E << /S /URI /URI (https://evil.example) >> >> >>]"), exchange.FileRuleAutomatic},
		"a printer at opening":               {withCatalog("/OpenAction << /S /Named /N /Print >>"), exchange.FileRuleAutomatic},
		"content in another file":            {withPage("/Contents 4 0 R", stream("/F (//evil/x)", nil)), exchange.FileRuleLaunch},
		"a thread of another document":       {withPage("/Annots [<< /Subtype /Link /Rect [0 0 9 9] /A << /S /Thread /F (//evil/x.pdf) /D 0 >> >>]"), exchange.FileRuleLaunch},
		"objects in a stream of digits":      {withHidden("/Type /ObjStm /N 1 /First 4 /Filter /ASCIIHexDecode", "392030 3C3C2F532F4A6176615363726970743E3E>"), exchange.FileRuleDamaged},
		"objects by another one's filter":    {withHidden("/Type /ObjStm /N 1 /First 4 /Filter 8 0 R", "x"), exchange.FileRuleDamaged},
		"objects by differences":             {withHidden("/Type /#4fbjStm /N 1 /First 4 /Filter /FlateDecode /DecodeParms << /Predictor 12 >>", "x"), exchange.FileRuleDamaged},
		"objects with a false beginning":     {withHidden("/Filter /LZWDecode /X (1 0 obj <<) /Type /ObjStm /N 1 /First 4", "x"), exchange.FileRuleDamaged},
		"an object of a stream, in no table": {inObjectStream(withPage(""), "<< /Type /Catalog /Pages 2 0 R /AA << /O << /S /URI /URI (https://evil.example) >> >> >>"), exchange.FileRuleAutomatic},
		"an object of a stream, half":        {inObjectStream(withPage(""), "<< /Type /Catalog"), exchange.FileRuleDamaged},
		"objects behind another word":        {hiddenScript("stream x\n"), exchange.FileRuleDamaged},
		"objects behind a form feed":         {hiddenScript("stream\f\n"), exchange.FileRuleDamaged},
		"objects behind a comment":           {hiddenScript("stream%\n"), exchange.FileRuleDamaged},
		"objects behind an empty line":       {hiddenScript("stream\n\n"), exchange.FileRuleDamaged},
		"objects behind white space":         {hiddenScript("stream \t\r\n"), exchange.FileRuleScript},
		"objects that are not deflated":      {withHidden("/Type /ObjStm /N 1 /First 4 /Filter /FlateDecode", "9 0 <<>>"), exchange.FileRuleDamaged},
		"objects that break off":             {withHidden("/Type /ObjStm /N 1 /First 4 /Filter /FlateDecode", string(packed([]byte("9 0 <<>>"))[:12])), exchange.FileRuleDamaged},
		"a stream behind another word":       {withPage("/Contents 4 0 R", strings.Replace(stream("", []byte("q Q")), "stream\n", "stream x\n", 1)), exchange.FileRuleDamaged},
		"a table that is not there":          {startingAt(withPage(""), 7), exchange.FileRuleDamaged},
		"an object as a table":               {startingAt(withPage(""), 15), exchange.FileRuleDamaged},
		"a table behind the end":             {startingAt(withPage(""), 99_999), exchange.FileRuleDamaged},
		"another document, kind elsewhere":   {withPage(link("<< /S 4 0 R /F (//evil/x.pdf) /D [0 /Fit] >>"), "/GoToR"), exchange.FileRuleLaunch},
		"another document, kind given twice": {withPage(link("<< /S /GoToR /S /URI /F (//evil/x.pdf) /D [0 /Fit] >>")), exchange.FileRuleLaunch},
		"a thread, kind given twice":         {withPage(link("<< /S /Thread /F (//evil/x.pdf) /D 0 /S /URI >>")), exchange.FileRuleDamaged},
		"a sound, kind given twice":          {withPage(link("<< /S/Sound /X (a \\) b) /Y [/S /S] /Z << /S 1 >> % x\n /#53/URI >>")), exchange.FileRuleDamaged},
		"two openings":                       {withCatalog("/OpenAction << /S /URI /URI (https://evil.example) >> /OpenAction [3 0 R /Fit]"), exchange.FileRuleDamaged},
		"two events, one by reference":       {withPage("/AA 4 0 R /AA << >>", "<< /O << /S /URI /URI (https://evil.example) >> >>"), exchange.FileRuleDamaged},
		"objects in one another":             {withPage("/Contents 4 0 R", stream("", bytes.Repeat([]byte("1 0 obj("), 1<<19))), exchange.FileRuleDamaged},
		"two catalogs":                       {bytes.Replace(withPage("", "<< /Type /Catalog /Pages 2 0 R >>"), []byte("/Root 1 0 R"), []byte("/Root 4 0 R /Root 1 0 R"), 1), exchange.FileRuleDamaged},
		"a thread, kind elsewhere":           {withPage(link("<< /S 4 0 R /F (//evil/x.pdf) /D 0 >>"), "/Thread"), exchange.FileRuleLaunch},
		"a sound, kind elsewhere":            {withPage(link("<< /S 4 0 R >>"), "/Sound"), exchange.FileRuleMedia},
		"a sound, kind further":              {withPage(link("<< /S 4 0 R >>"), "5 0 R", "/Sound"), exchange.FileRuleDamaged},
		"a film, kind elsewhere":             {withPage("/Annots [<< /Subtype 4 0 R /Rect [0 0 9 9] /Movie << /F (//evil/x.avi) >> >>]", "/Movie"), exchange.FileRuleMedia},
		"an action by itself, elsewhere":     {withPage("/AA 4 0 R", "<< /O 5 0 R >>", "<< /S 6 0 R /URI (https://evil.example) >>", "/URI"), exchange.FileRuleAutomatic},
		"packed objects in no table":         {withHidden("/Type /ObjStm /N 1 /First 4 /Filter /FlateDecode", string(packed([]byte("1 0 << /Type /Catalog /Pages 2 0 R /AA << /O << /S /URI >> >> >>")))), exchange.FileRuleDamaged},
		"an object that nobody can read":     {withPage("/AA 4 0 R", "<< /O << /S /URI /URI (https://evil.example) >> >> ]"), exchange.FileRuleAutomatic},
		"an action that the library skips":   {withPage("", "<< /S /Sound /X <zz> /Y /#zz >>"), exchange.FileRuleDamaged},
		"a chain of actions":                 {withCatalog("/OpenAction << /S /GoTo /D [3 0 R /Fit] /Next << /S /URI /URI (https://evil.example) >> >>"), exchange.FileRuleAutomatic},
		"a password":                         {locked(t, "secret", "owner"), exchange.FileRuleEncrypted},
		"protection without a password":      {locked(t, "", "owner"), exchange.FileRuleEncrypted},
		"too many pages":                     {withPages(exchange.MaxFilePages + 1), exchange.FileRulePages},
		"more pages than it says":            {bytes.Replace(withPages(exchange.MaxFilePages+1), []byte("/Count 51"), []byte("/Count  1"), 1), exchange.FileRulePages},
		"no page":                            {withPages(0), exchange.FileRulePages},
		"a bomb":                             {withPage("/Contents 4 0 R", stream("/Filter /FlateDecode", bomb)), exchange.FileRuleInflates},
		"a bomb that nothing names":          {unlisted("<< >>\nstream\n" + string(bomb) + "\nendstream\n"), exchange.FileRuleInflates},
		"a bomb in a bomb":                   {withPage("/Contents 4 0 R", stream("/Filter [/FlateDecode /FlateDecode]", packed(bomb))), exchange.FileRuleInflates},
		"a bomb of many parts": {
			withPage("/Contents 4 0 R", repeated(stream("/Filter /FlateDecode", packed(bytes.Repeat(zeros, 16))), maxInflated/(16<<20)+1)...),
			exchange.FileRuleInflates,
		},
		"a bomb behind white space":     {withPage("/Contents 4 0 R", strings.Replace(stream("/Filter /FlateDecode", bomb), "stream\n", "stream \n", 1)), exchange.FileRuleInflates},
		"a bomb before a picture":       {withPage("", stream("/Subtype /Image /Width 9 /Height 9 /Filter [/RunLengthDecode /DCTDecode]", bytes.Repeat([]byte{129, 0}, maxOneStream/128+1))), exchange.FileRuleInflates},
		"two bombs before a picture":    {withPage("", stream("/Subtype /Image /Width 9 /Height 9 /Filter [/LZWDecode /RunLengthDecode /DCTDecode]", []byte("x"))), exchange.FileRuleInflates},
		"a bomb of runs":                {withPage("/Contents 4 0 R", stream("/Filter /RunLengthDecode", bytes.Repeat([]byte{129, 0}, maxOneStream/128+1))), exchange.FileRuleInflates},
		"a picture of a billion points": {withPage("", stream("/Subtype /Image /Width 65000 /Height 65000 /Filter /JBIG2Decode", []byte("x"))), exchange.FileRuleInflates},
		"a picture, size elsewhere":     {withPage("", stream("/Subtype /Image /Width 5 0 R /Height 5 0 R /Filter /JBIG2Decode", []byte("x")), "65000"), exchange.FileRuleInflates},
		"a picture, size in parts":      {withPage("", stream("/Subtype /Image /Width 65000.0 /Height 65000.0 /Filter /JBIG2Decode", []byte("x"))), exchange.FileRuleInflates},
		"an archive at its end":         {append(withPage(""), emptyArchive...), exchange.FileRulePolyglot},
		"an archive of 64 bits":         {withArchive(t, true), exchange.FileRulePolyglot},
		"an archive with a gap":         {withArchive(t, false), exchange.FileRulePolyglot},
		"another archive inside":        {withPage("/Contents 4 0 R", stream("", []byte("Rar!\x1a\x07\x01\x00"))), exchange.FileRulePolyglot},
		"a tape archive":                {taped(withPage("")), exchange.FileRulePolyglot},
		"a page of the web at its end":  {append(withPage(""), "<html><script>alert(1)</script>"...), exchange.FileRulePolyglot},
		"half a file":                   {withPage("")[:80], exchange.FileRuleDamaged},
		"only a beginning":              {[]byte("%PDF-1.7\n%%EOF\n"), exchange.FileRuleDamaged},
		"nesting without an end":        {withPage("/X " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)), exchange.FileRuleDamaged},
		"dictionaries without an end":   {withPage("/X " + strings.Repeat("<</A", 100_000)), exchange.FileRuleDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			if len(c.content) > exchange.MaxFileSize {
				t.Fatalf("%d bytes are too many to come so far", len(c.content))
			}
			for how, content := range bothWays(c.content) {
				if v, _ := verdictOf(t, exchange.FilePDF, content); v.Code != c.code || v.Message == "" {
					t.Errorf("%s: verdict %+v, want %s", how, v, c.code)
				}
			}
		})
	}
}

// bothWays is a PDF as it is and, if document wrote it, with its objects in a stream of objects, as most programs write them.
func bothWays(content []byte) map[string][]byte {
	ways := map[string][]byte{"as it is": content}
	if other := inObjectStream(content); other != nil {
		ways["in an object stream"] = other
	}
	return ways
}

// withHidden is a PDF of one page with a stream of objects that no table names.
func withHidden(dict, content string) []byte {
	return unlisted("9 0 obj\n" + stream(dict, []byte(content)) + "\nendobj\n")
}

// unlisted is a PDF of one page with something before its table that is not in it.
func unlisted(what string) []byte {
	content := withPage("")
	at := bytes.Index(content, []byte("xref\n"))
	return startingAt(slices.Concat(content[:at], []byte(what), content[at:]), at+len(what))
}

// startingAt has the last line of a PDF lead to a place.
func startingAt(content []byte, at int) []byte {
	end := bytes.LastIndex(content, []byte("startxref"))
	return fmt.Appendf(slices.Clone(content[:end]), "startxref\n%d\n%%%%EOF\n", at)
}

// hiddenScript is a PDF of one page with a script in a stream of objects that no table names.
func hiddenScript(keyword string) []byte {
	objects := packed([]byte("1 0 << /Type /Catalog /Pages 2 0 R /OpenAction << /S /JavaScript /JS (app.alert(1)) >> >>"))
	dict := fmt.Sprintf("9 0 obj\n<< /Type /ObjStm /N 1 /First 4 /Filter /FlateDecode /Length %d >>\n", len(objects))
	return unlisted(dict + keyword + string(objects) + "\nendstream\nendobj\n")
}

// taped puts the mark of a tape archive at its place.
func taped(content []byte) []byte {
	at := bytes.Index(content, []byte("1 0 obj"))
	return slices.Concat(content[:at], []byte("%"), bytes.Repeat([]byte("x"), 257-at-1), []byte("ustar\x00\n"), content[at:])
}

func repeated(object string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = object
	}
	return all
}

// emptyArchive is a ZIP archive with no file in it.
var emptyArchive = append([]byte("PK\x05\x06"), make([]byte, 18)...)

// withArchive is a PDF of one page that is an archive with a program in it too, in the format for 64 bits or with something before its
// last record.
func withArchive(t *testing.T, wide bool) []byte {
	t.Helper()
	page, gap := withPage(""), []byte("xxxxxxxx")
	at := bytes.Index(page, []byte("xref\n"))
	out := bytes.NewBuffer(slices.Clone(page[:at]))
	w := zip.NewWriter(out)
	w.SetOffset(int64(at))
	if f, err := w.Create("evil.exe"); err != nil || must(f.Write([]byte("MZ"))) != 2 {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	content, little := out.Bytes(), binary.LittleEndian
	end := bytes.LastIndex(content, emptyArchive[:4])
	last := content[end:]
	size, start := little.Uint32(last[12:]), little.Uint32(last[16:])
	if wide {
		gap = little.AppendUint64([]byte("PK\x06\x06"), 44)
		gap = append(little.AppendUint32(gap, 45|45<<16), make([]byte, 8)...)
		for _, n := range []uint64{1, 1, uint64(size), uint64(start)} {
			gap = little.AppendUint64(gap, n)
		}
		gap = little.AppendUint32(append(gap, "PK\x06\x07"...), 0)
		gap = little.AppendUint32(little.AppendUint64(gap, uint64(end)), 1)
		copy(last[8:], "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
	}
	content = slices.Concat(content[:end], gap, last)
	table := len(content)
	content = startingAt(append(content, page[at:]...), table)
	little.PutUint16(content[table-2:], uint16(len(content)-table))
	r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil || len(r.File) != 1 || must(r.File[0].Open()) == nil {
		t.Fatal("it does not open as an archive: ", err)
	}
	return content
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A page tree that leads to itself must not hold the check up.
func TestATreeThatLeadsToItselfEnds(t *testing.T) {
	content := document("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R] /Count 1 /Parent 2 0 R >>")
	if v, _ := verdictOf(t, exchange.FilePDF, content); v.Code != exchange.FileRuleDamaged {
		t.Errorf("verdict %+v", v)
	}
	wide := document("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R 2 0 R 2 0 R 2 0 R] /Count 1 /Parent 2 0 R >>")
	if v, _ := verdictOf(t, exchange.FilePDF, wide); v.Code != exchange.FileRuleDamaged {
		t.Errorf("verdict %+v", v)
	}
}

func FuzzPDF(f *testing.F) {
	f.Add(withPage(""))
	f.Add(withCatalog("/OpenAction << /S /JavaScript >>"))
	f.Add(withPage("/Contents 4 0 R", stream("/Filter /FlateDecode", packed([]byte("BT ET")))))
	f.Fuzz(func(t *testing.T, content []byte) {
		if _, err := Check(t.Context(), exchange.FilePDF, bytes.NewReader(content), nil); err != nil {
			t.Error(err)
		}
	})
}
