package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gocloud.dev/blob"

	"kivuko/exchange"
)

// Upload is what is known of a file before it is read.
type Upload struct {
	Purpose    exchange.FilePurpose
	Name       string // as its sender calls it
	OwnerID    uuid.UUID
	UploadedBy uuid.UUID
}

// Taken is an accepted file that is not stored yet. The caller closes it.
type Taken struct {
	// Files has the file first; where that is a PDF made from a picture, the picture is second.
	Files  []exchange.NewFile
	drafts []*draft
}

// Close forgets what was not stored.
func (t *Taken) Close() {
	for _, d := range t.drafts {
		d.close()
	}
}

// fieldFile is the JSON pointer of the file in a request.
const fieldFile = "/file"

// refused is the error for a file that breaks a rule; message continues after the field's name.
func refused(code, message string) error {
	return exchange.Invalid(exchange.FieldError{Pointer: fieldFile, Code: code, Message: message})
}

// tooLarge is the error for a file above its limit.
func tooLarge(limit int64) error {
	return &exchange.Error{
		Code: exchange.CodeTooLarge, Message: fmt.Sprintf("The file is larger than %d bytes.", limit),
		Fields: []exchange.FieldError{{Pointer: fieldFile, Code: exchange.FileRuleSize, Message: fmt.Sprintf("must have at most %d bytes", limit)}},
	}
}

// Take reads and checks a file. CodeInvalid and CodeTooLarge name the rule that it breaks; CodeUnavailable when it can't be checked
// now. Errors of the content's reader come back as they are.
func (s *Store) Take(ctx context.Context, in io.Reader, of Upload) (*Taken, error) {
	head := make([]byte, exchange.FileSniff)
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if head = head[:n]; n == 0 {
		return nil, refused(exchange.FileRuleEmpty, "must not be empty")
	}
	t := exchange.FileTypeOf(head)
	if allowed := of.Purpose.Types(); !slices.Contains(allowed, t) {
		return nil, refused(exchange.FileRuleType, "must be "+kinds(allowed)+" by its content, whatever its name")
	}
	whole, err := newDraft(s.Dir, of.Purpose)
	if err != nil {
		return nil, full(err)
	}
	taken := &Taken{drafts: []*draft{whole}}
	if err := taken.read(ctx, s, io.MultiReader(bytes.NewReader(head), in), t, of); err != nil {
		taken.Close()
		return nil, err
	}
	return taken, nil
}

func kinds(types []exchange.FileType) string {
	names := map[exchange.FileType]string{
		exchange.FilePDF: "a PDF", exchange.FilePNG: "a PNG", exchange.FileJPEG: "a JPEG", exchange.FileXML: "CAMT.053 XML", exchange.FileCSV: "CSV",
	}
	var all []string
	for _, t := range types {
		all = append(all, names[t])
	}
	return strings.Join(all, " or ")
}

// full is the error of a local disk that takes no more.
func full(err error) error {
	return exchange.Wrap(exchange.CodeUnavailable, err, "The file can't be taken now. Try again.")
}

// read takes the content and the verdict about it.
func (t *Taken) read(ctx context.Context, s *Store, in io.Reader, kind exchange.FileType, of Upload) error {
	whole, limit := t.drafts[0], of.Purpose.MaxSize()
	disk := &sink{to: whole}
	if _, err := io.Copy(disk, io.LimitReader(in, limit+1)); err != nil {
		if disk.err != nil {
			return full(disk.err)
		}
		return err
	}
	if whole.size > limit {
		return tooLarge(limit)
	}
	if err := whole.in.Close(); err != nil {
		return full(err)
	}
	made := io.Discard
	if kind.Image() {
		pdf, err := newDraft(s.Dir, of.Purpose)
		if err != nil {
			return full(err)
		}
		t.drafts, made = slices.Insert(t.drafts, 0, pdf), pdf
	}
	verdict, err := s.check(ctx, kind, whole, made)
	if err != nil {
		return err
	}
	if verdict.Code != "" {
		return refused(verdict.Code, verdict.Message)
	}
	if kind.Image() {
		if err := t.drafts[0].in.Close(); err != nil {
			return full(err)
		}
	}
	t.describe(kind, of, verdict.Pages)
	return nil
}

// sink tells errors of the disk from those of the sender.
type sink struct {
	to  io.Writer
	err error
}

func (w *sink) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.err = err
	return n, err
}

func (s *Store) check(ctx context.Context, kind exchange.FileType, d *draft, made io.Writer) (exchange.FileVerdict, error) {
	select {
	case s.checks <- struct{}{}:
		defer func() { <-s.checks }()
	case <-ctx.Done():
		return exchange.FileVerdict{}, exchange.Wrap(exchange.CodeUnavailable, ctx.Err(), "Too many files are being checked. Try again.")
	}
	content, err := d.content()
	if err != nil {
		return exchange.FileVerdict{}, full(err)
	}
	verdict, err := s.Check(ctx, kind, content, made)
	if err != nil {
		return verdict, exchange.Wrap(exchange.CodeUnavailable, err, "The file can't be checked now. Try again.")
	}
	return verdict, nil
}

// describe fills the rows of the accepted file.
func (t *Taken) describe(kind exchange.FileType, of Upload, pages int) {
	source := t.drafts[len(t.drafts)-1]
	digest := source.hash.Sum(nil)
	for i, d := range t.drafts {
		f := exchange.File{
			ID: d.ref.ID, Purpose: of.Purpose, OwnerID: of.OwnerID, UploadedBy: of.UploadedBy, Type: kind, Size: d.size, SHA256: d.hash.Sum(nil), SourceSHA256: digest,
		}
		if i == 0 {
			f.Pages = pages
		}
		if d != source {
			f.Type, f.OriginalID = exchange.FilePDF, source.ref.ID
		} else if kind.Image() {
			f.Pages = 0
		}
		f.Name = exchange.CleanFileName(of.Name, kind)
		if d != source {
			f.Name = exchange.CleanFileName(strings.TrimSuffix(f.Name, filepath.Ext(f.Name)), f.Type)
		}
		t.Files = append(t.Files, exchange.NewFile{File: f})
	}
}

// Keep writes the objects of an accepted file, with their keys. Their rows are written after it. CodeUnavailable when the object
// store does not answer: nothing is kept then, and the file is sent again.
func (s *Store) Keep(ctx context.Context, t *Taken) error {
	for i, d := range t.drafts {
		sealed, err := s.Keys.Seal(ctx, d.ref.ID, d.key)
		if err != nil {
			return exchange.Wrap(exchange.CodeUnavailable, err, "The file can't be encrypted now. Try again.")
		}
		t.Files[i].Key = sealed
		if err := s.put(ctx, d); err != nil {
			return away(err)
		}
	}
	return nil
}

func (s *Store) put(ctx context.Context, d *draft) error {
	if _, err := d.disk.Seek(0, io.SeekStart); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var local *os.File
	w, err := s.bucket.NewWriter(ctx, objectKey(d.ref), &blob.WriterOptions{
		ContentType: "application/octet-stream", MaxConcurrency: 1,
		BeforeWrite: func(as func(any) bool) error {
			as(&local) // where the object store is a directory
			return nil
		},
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(w, d.disk)
	if err == nil && local != nil {
		err = local.Sync()
	}
	if err != nil {
		cancel() // what was written so far is dropped
		return errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil || local == nil {
		return err
	}
	dir := filepath.Dir(local.Name())
	return errors.Join(syncDir(dir), syncDir(filepath.Dir(dir))) // the folder of a purpose may be new too
}

// syncDir makes a new name in a directory outlast a loss of power, like the content before it.
func syncDir(name string) error {
	dir, err := os.Open(name) //nolint:gosec // a directory of the object store
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
