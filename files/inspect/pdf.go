package inspect

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/pdfcpu/pdfcpu/pkg/filter"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"kivuko/exchange"
)

// Limits of a PDF.
const (
	maxInflated  = 256 << 20 // bytes that all its streams expand to; a page that was scanned in colour may take 26 MB
	maxOneStream = 64 << 20  // bytes of one stream that the library expands
	maxObjects   = 200_000
	maxNesting   = 64
	maxPixels    = 100_000_000 // of one picture
	tailLength   = 1024        // where the end mark is looked for
)

// checkPDF refuses PDFs that do more than show pages, and returns their number. It looks twice: at everything that looks like a name
// or a stream, because readers repair broken files and then see more than a parser does, and at the objects as a library reads them.
func checkPDF(ctx context.Context, content []byte) (int, error) {
	if err := checkTail(content); err != nil {
		return 0, err
	}
	counted, err := scan(content)
	if err != nil {
		return 0, err
	}
	if err := checkStart(content); err != nil {
		return 0, err
	}
	if saysTwice(content) {
		return 0, damaged("a PDF")
	}
	doc, err := pdfcpu.ReadWithContext(ctx, bytes.NewReader(content), configuration())
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.Is(err, filter.ErrDecodeLimitExceeded):
		return 0, inflates()
	case err != nil:
		return 0, damaged("a PDF")
	case doc.Encrypt != nil:
		return 0, activeNames["Encrypt"]
	}
	return checkDocument(doc, content, counted)
}

func configuration() *model.Configuration {
	model.ConfigPath = "disable" // the library would write its settings into the home directory
	c := model.NewDefaultConfiguration()
	c.Offline = true
	c.Limits = model.ResourceLimits{
		MaxStreamBytes: exchange.MaxFileSize, MaxDecodeBytes: maxOneStream, MaxImagePixels: maxPixels, MaxImageBytes: maxInflated,
		MaxObjectCount: maxObjects, MaxObjectStreamCount: maxObjects, MaxObjectStreamFirst: maxOneStream, MaxXRefEntries: maxObjects,
		MaxRecursionDepth: maxNesting,
	}
	return c
}

func inflates() error {
	return refuse(exchange.FileRuleInflates, "has compressed content that expands to more than %d MiB", maxInflated>>20)
}

// checkTail refuses a file that goes on after the end of the PDF, or is an archive too, which programs find wherever it begins.
func checkTail(content []byte) error {
	if archived(content) {
		return polyglot()
	}
	end := bytes.LastIndex(content, []byte("%%EOF"))
	if end < 0 {
		return damaged("a PDF")
	}
	if rest := bytes.Trim(content[end+len("%%EOF"):], white); len(rest) > 0 {
		return polyglot()
	}
	if len(content)-end > tailLength {
		return damaged("a PDF")
	}
	return nil
}

// The last line of a PDF, and how the table of objects begins to which it leads: in the clear, or as a stream.
var (
	lastStart   = regexp.MustCompile(`startxref\s+(\d{1,8})\s*%%EOF\s*$`)
	plainTable  = regexp.MustCompile(`^\s*xref\s`)
	packedTable = regexp.MustCompile(`^\s*\d+\s+\d+\s+obj\s*<<`)
)

// checkStart refuses a file whose last line does not lead to a table of its objects: each reader repairs it in its own way, and may
// then show what another one did not see.
func checkStart(content []byte) error {
	end := bytes.TrimRight(content, white)
	start := lastStart.FindSubmatch(end[max(0, len(end)-tailLength):])
	if start == nil || !bytes.HasPrefix(content, []byte("%PDF-")) {
		return damaged("a PDF")
	}
	at, err := strconv.Atoi(string(start[1]))
	if err != nil || at >= len(content) {
		return damaged("a PDF")
	}
	table, _, isStream := bytes.Cut(content[at:], keyword)
	if plainTable.Match(content[at:]) || isStream && packedTable.Match(table) && hasName(table, "XRef") {
		return nil
	}
	return damaged("a PDF")
}

func polyglot() error {
	return refuse(exchange.FileRulePolyglot, "also holds content of another format")
}

// checkDocument walks all objects, whether a page uses them or not. What the streams at some offsets expand to was counted already.
func checkDocument(doc *model.Context, content []byte, counted map[int64]bool) (int, error) {
	left, hidden := int64(maxInflated), maps.Clone(counted)
	maps.DeleteFunc(hidden, func(_ int64, objects bool) bool { return !objects })
	for number, entry := range doc.Table {
		if entry == nil || entry.Free {
			continue
		}
		object, err := doc.Dereference(*types.NewIndirectRef(number, 0)) // one in a stream of objects is read only now
		if err != nil || object == nil && !empty(content, entry.Offset) {
			return 0, damaged("a PDF")
		}
		if err := walk(doc, object, 0); err != nil {
			return 0, err
		}
		if err := expand(object, counted, &left); err != nil {
			return 0, err
		}
		if packed, ok := object.(types.ObjectStreamDict); ok {
			delete(hidden, packed.StreamOffset)
			if objects, err := objectsIn(packed); err != nil || (&words{rest: objects}).twice(false) {
				return 0, damaged("a PDF")
			}
		}
	}
	if len(hidden) > 0 { // another reader may find what is in them
		return 0, damaged("a PDF")
	}
	root, err := doc.Catalog()
	if err != nil {
		return 0, damaged("a PDF")
	}
	if err := checkOpening(doc, root); err != nil {
		return 0, err
	}
	pages, err := countPages(doc, root["Pages"], 0)
	if err == nil && (pages < 1 || pages > exchange.MaxFilePages) {
		err = refuse(exchange.FileRulePages, "must have 1 to %d pages", exchange.MaxFilePages)
	}
	return pages, err
}

// objectsIn is what a stream of objects expands to.
func objectsIn(packed types.ObjectStreamDict) ([]byte, error) {
	if len(packed.FilterPipeline) == 0 {
		return packed.Raw, nil
	}
	return packed.DecodeLengthWithLimit(-1, maxOneStream)
}

// emptyObject is an object without anything in it.
var emptyObject = regexp.MustCompile(`^\s*\d+\s+\d+\s+obj\s*(null\s*)?endobj`)

// empty reports whether there is no object at a place that a table names, rather than one that the library skipped because it could
// not read it: another reader might.
func empty(content []byte, at *int64) bool {
	return at == nil || *at <= 0 || *at < int64(len(content)) && emptyObject.Match(content[*at:])
}

// countPages counts the leaves of a page tree, whatever the tree says about itself, but no further than one beyond the limit.
func countPages(doc *model.Context, node types.Object, depth int) (int, error) {
	d, err := doc.DereferenceDict(node)
	if err != nil || d == nil || depth > maxNesting {
		return 0, damaged("a PDF")
	}
	branches, inner := d.Find("Kids")
	if !inner {
		return 1, nil
	}
	kids, err := doc.DereferenceArray(branches)
	if err != nil {
		return 0, damaged("a PDF")
	}
	pages := 0
	for _, kid := range kids {
		n, err := countPages(doc, kid, depth+1)
		if pages += n; err != nil || pages > exchange.MaxFilePages {
			return pages, err
		}
	}
	return pages, nil
}

// walk checks an object and what it holds directly; what it refers to has an entry of its own. What it does not know it refuses.
func walk(doc *model.Context, o types.Object, depth int) error {
	if depth > maxNesting {
		return damaged("a PDF")
	}
	switch o := o.(type) {
	case nil, types.Boolean, types.Integer, types.Float, types.Name, types.StringLiteral, types.HexLiteral, types.IndirectRef:
		return nil
	case types.Array:
		return walkArray(doc, o, depth)
	case types.Dict:
		return walkDict(doc, o, depth)
	case types.StreamDict:
		return walkStream(doc, o.Dict, depth)
	case types.XRefStreamDict:
		return walkStream(doc, o.Dict, depth)
	case types.ObjectStreamDict:
		if err := walkArray(doc, o.ObjArray, depth); err != nil { // some are in no table, but readers that go by their numbers see them
			return err
		}
		return walkStream(doc, o.Dict, depth)
	case types.LazyObjectStreamObject:
		if object, err := o.DecodedObject(context.Background()); err == nil {
			return walk(doc, object, depth+1)
		}
	}
	return damaged("a PDF")
}

func walkArray(doc *model.Context, a types.Array, depth int) error {
	for _, inner := range a {
		if err := walk(doc, inner, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func walkDict(doc *model.Context, d types.Dict, depth int) error {
	if err := checkDict(doc, d); err != nil {
		return err
	}
	if err := checkEvents(doc, d); err != nil {
		return err
	}
	for _, inner := range d {
		if err := walk(doc, inner, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// walkStream checks a stream, whose content may be in another file.
func walkStream(doc *model.Context, d types.Dict, depth int) error {
	if err := walkDict(doc, d, depth); err != nil || !has(d, "F") {
		return err
	}
	return launches
}

func has(d types.Dict, key string) bool {
	_, found := d.Find(key)
	return found
}

// The refusals by what a dictionary has.
var (
	scripted = refusal{exchange.FileRuleScript, "has JavaScript, which could change what it shows"}
	launches = refusal{exchange.FileRuleLaunch, "starts programs or opens other files"}
	carries  = refusal{exchange.FileRuleEmbedded, "carries other files inside"}
	submits  = refusal{exchange.FileRuleSubmits, "has a form that sends or loads data"}
	plays    = refusal{exchange.FileRuleMedia, "has sound, video or other multimedia"}

	activeKeys = map[string]refusal{
		"JS": scripted, "JavaScript": scripted, "EF": carries, "EmbeddedFiles": carries, "XFA": submits, "RichMediaContent": plays, "RichMediaSettings": plays,
	}
	actions = map[string]refusal{
		"JavaScript": scripted, "Launch": launches, "GoToR": launches, "Thread": launches, "GoToE": carries, "SubmitForm": submits, "ImportData": submits,
		"Rendition": plays, "Movie": plays, "Sound": plays, "RichMediaExecute": plays, "GoTo3DView": plays,
	}
	subtypes = map[string]refusal{
		"FileAttachment": carries, "RichMedia": plays, "Movie": plays, "Sound": plays, "Screen": plays, "3D": plays,
	}
	objectTypes = map[string]refusal{"EmbeddedFile": carries}
)

func checkDict(doc *model.Context, d types.Dict) error {
	for key := range d {
		if r, active := activeKeys[key]; active {
			return r
		}
	}
	kind, err := nameIn(doc, d, "Type")
	if err != nil {
		return err
	}
	for key, harmful := range map[string]map[string]refusal{"S": actions, "Subtype": subtypes, "Type": objectTypes} {
		name, err := nameIn(doc, d, key)
		if err != nil {
			return err
		}
		if r, active := harmful[name]; active && (key != "S" || kind != "StructElem") {
			return r
		}
	}
	return checkPoints(doc, d)
}

func checkPoints(doc *model.Context, d types.Dict) error {
	w, err := numberIn(doc, d, "Width")
	if err != nil {
		return err
	}
	h, err := numberIn(doc, d, "Height")
	if err == nil && (w < 0 || h < 0 || h > 0 && w > maxPixels/h) {
		err = refuse(exchange.FileRuleInflates, "has a picture of more than %d million points", maxPixels/1_000_000)
	}
	return err
}

// entry is what a dictionary has under a key, there or in an object of its own.
func entry(doc *model.Context, d types.Dict, key string) (types.Object, error) {
	o, _ := d.Find(key)
	o, err := doc.Dereference(o)
	if _, again := o.(types.IndirectRef); again || err != nil {
		return nil, damaged("a PDF")
	}
	return o, nil
}

// nameIn is a name that a dictionary has under a key; "" for anything else.
func nameIn(doc *model.Context, d types.Dict, key string) (string, error) {
	o, err := entry(doc, d, key)
	name, _ := o.(types.Name)
	return string(name), err
}

// numberIn is a number that a dictionary has under a key; 0 for anything else.
func numberIn(doc *model.Context, d types.Dict, key string) (int, error) {
	o, err := entry(doc, d, key)
	switch n := o.(type) {
	case types.Integer:
		return n.Value(), err
	case types.Float:
		return int(n.Value()), err
	}
	return 0, err
}

// checkOpening refuses what happens without a click: only going to a page may. A portfolio carries files.
func checkOpening(doc *model.Context, root types.Dict) error {
	if has(root, "Collection") {
		return carries
	}
	if o, found := root.Find("OpenAction"); found {
		return onlyGoes(doc, o)
	}
	return nil
}

// checkEvents refuses what happens by itself, for example when a page or a field is shown.
func checkEvents(doc *model.Context, d types.Dict) error {
	more, found := d.Find("AA")
	if !found {
		return nil
	}
	events, err := doc.DereferenceDict(more)
	if err != nil {
		return damaged("a PDF")
	}
	for _, action := range events {
		if err := onlyGoes(doc, action); err != nil {
			return err
		}
	}
	return nil
}

// turns are the named actions that go to a page. Others print, save or search.
var turns = []string{"NextPage", "PrevPage", "FirstPage", "LastPage"}

func onlyGoes(doc *model.Context, o types.Object) error {
	action, err := doc.Dereference(o)
	if err != nil {
		return damaged("a PDF")
	}
	d, isAction := action.(types.Dict)
	if !isAction { // a destination
		return nil
	}
	kind, err := nameIn(doc, d, "S")
	if err != nil {
		return err
	}
	name, err := nameIn(doc, d, "N")
	if err != nil {
		return err
	}
	goes := kind == "GoTo" || kind == "Named" && slices.Contains(turns, name)
	if !goes || has(d, "Next") {
		return refuse(exchange.FileRuleAutomatic, "does something by itself when it is opened")
	}
	return nil
}

// packers are the filters that expand; the others are of pictures, whose size was checked.
var packers = []string{filter.Flate, filter.LZW, filter.RunLength, filter.ASCII85, filter.ASCIIHex}

// expand counts what a stream expands to before a picture's own filter reads it. One that is only deflated was counted by scan, where
// scan saw it.
func expand(o types.Object, counted map[int64]bool, left *int64) error {
	stream, ok := o.(types.StreamDict)
	if !ok {
		return nil
	}
	first := stream.FilterPipeline
	if n := slices.IndexFunc(first, func(f types.PDFFilter) bool { return !slices.Contains(packers, f.Name) }); n >= 0 {
		first = first[:n]
	}
	packed := 0
	for _, f := range first {
		if f.Name != filter.ASCII85 && f.Name != filter.ASCIIHex {
			packed++
		}
	}
	if packed > 1 {
		return refuse(exchange.FileRuleInflates, "has content that is compressed more than once")
	}
	_, done := counted[stream.StreamOffset]
	if len(first) == 0 || len(first) == 1 && first[0].Name == filter.Flate && done {
		return nil
	}
	stream.FilterPipeline = first
	content, err := stream.DecodeLengthWithLimit(-1, min(*left, maxOneStream))
	if errors.Is(err, filter.ErrDecodeLimitExceeded) {
		return inflates()
	}
	*left -= int64(len(content)) // of a broken stream, what came before the fault
	return nil
}
