package api

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/files"
	"kivuko/store"
)

const filesPath = "/api/v1/auth/files"

func (s *server) fileRoutes() []route {
	read := exchange.ActReadFiles
	return []route{
		// It takes no idempotency key: who repeats it sends the file again, and one that nothing uses is deleted.
		{method: post, path: filesPath, action: exchange.ActUploadFiles, limit: limitUpload, form: true, timeout: uploadTimeout, handle: s.uploadFile},
		{method: get, path: filesPath + "/{id}", action: read, limit: limitGeneral, handle: s.getFile},
		{method: get, path: filesPath + "/{id}/content", action: read, limit: limitGeneral, handle: s.fileContent},
		{method: post, path: filesPath + "/{id}/link", action: read, limit: limitGeneral, handle: s.linkFile},
		{method: get, path: "/files/{id}", public: true, limit: limitGeneral, handle: s.linkedFile},
	}
}

// wireOriginal is the picture that a PDF was made from.
type wireOriginal struct {
	ID     uuid.UUID         `json:"id"`
	Name   string            `json:"name"`
	Type   exchange.FileType `json:"content_type"`
	Size   int64             `json:"size_bytes"`
	SHA256 string            `json:"sha256"`
}

// wireTwin is another upload of the same content.
type wireTwin struct {
	ID        uuid.UUID            `json:"id"`
	Purpose   exchange.FilePurpose `json:"purpose"`
	OwnerID   *uuid.UUID           `json:"owner_id"`
	CreatedAt timestamp            `json:"created_at"`
}

// wireFile is a file.
type wireFile struct {
	ID         uuid.UUID            `json:"id"`
	Purpose    exchange.FilePurpose `json:"purpose"`
	OwnerID    *uuid.UUID           `json:"owner_id"`
	UploadedBy uuid.UUID            `json:"uploaded_by"`
	Name       string               `json:"name"`
	Type       exchange.FileType    `json:"content_type"`
	Size       int64                `json:"size_bytes"`
	SHA256     string               `json:"sha256"`
	Pages      *int                 `json:"pages"`
	Original   *wireOriginal        `json:"original"`
	Same       *[]wireTwin          `json:"same_content"` // for staff
	URL        string               `json:"url"`
	CreatedAt  timestamp            `json:"created_at"`
	DeletedAt  *timestamp           `json:"deleted_at"`
}

// fileWire completes a file by the picture that it was made from, and for staff by the other uploads of its content.
func (s *server) fileWire(c *call, f exchange.File) (wireFile, error) {
	w := wireFile{
		ID: f.ID, Purpose: f.Purpose, OwnerID: optID(f.OwnerID), UploadedBy: f.UploadedBy, Name: f.Name, Type: f.Type, Size: f.Size,
		SHA256: hex.EncodeToString(f.SHA256), URL: filesPath + "/" + f.ID.String() + "/content", CreatedAt: stamp(f.CreatedAt), DeletedAt: optTime(f.DeletedAt),
	}
	if f.Type == exchange.FilePDF {
		w.Pages = &f.Pages
	}
	if f.OriginalID != uuid.Nil {
		o, err := s.Store.File(c.ctx, c.view(), f.OriginalID)
		if err != nil {
			return w, err
		}
		w.Original = &wireOriginal{o.ID, o.Name, o.Type, o.Size, hex.EncodeToString(o.SHA256)}
	}
	if c.who.Role.Staff() {
		twins, err := s.Store.FilesLike(c.ctx, f)
		if err != nil {
			return w, err
		}
		same := each(twins, func(t exchange.File) wireTwin { return wireTwin{t.ID, t.Purpose, optID(t.OwnerID), stamp(t.CreatedAt)} })
		w.Same = &same
	}
	return w, nil
}

// errNoFiles is the error where the deployment keeps no files.
var errNoFiles = exchange.Errorf(exchange.CodeUnsupported, "This deployment keeps no files.")

// uploadFile takes a file for a purpose, which the form names before the file.
func (s *server) uploadFile(c *call) error {
	file, err := s.receive(c, func(f *form) (exchange.FilePurpose, error) {
		p := exchange.FilePurpose(f.oneOf("purpose", true, names(exchange.FilePurposes())...))
		if p != "" && !p.UsedBy(c.who.Role) {
			return p, exchange.Errorf(exchange.CodeForbidden, "The role %s may not upload files for %s.", c.who.Role, p)
		}
		return p, nil
	}, func(*form) {})
	if err != nil {
		return err
	}
	w, err := s.fileWire(c, file)
	if err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderLocation, filesPath+"/"+file.ID.String())
	return c.json(http.StatusCreated, w)
}

// receive takes the file of a form: the content while it arrives, then the object, then the row. purpose reads what the file is for,
// from the fields before it; rest reads the other fields, wherever they are.
func (s *server) receive(c *call, purpose func(*form) (exchange.FilePurpose, error), rest func(*form)) (exchange.File, error) {
	if s.Files == nil {
		return exchange.File{}, errNoFiles
	}
	of := cmp.Or(c.who.VendorID, c.who.UserID)
	if !s.uploads.take(of) {
		return exchange.File{}, exchange.Errorf(exchange.CodeUnavailable, "Too many files are being uploaded. Try again.")
	}
	defer s.uploads.give(of)
	if err := s.Store.MayUpload(c.ctx, c.who); err != nil {
		return exchange.File{}, err
	}
	var taken *files.Taken
	f, err := c.upload(func(before *form, name string, content io.Reader) error {
		p, err := purpose(before)
		if err == nil {
			err = exchange.Invalid(*before.bad...)
		}
		if err == nil {
			taken, err = s.Files.Take(c.ctx, content, files.Upload{Purpose: p, Name: name, OwnerID: c.who.VendorID, UploadedBy: c.who.UserID})
		}
		return err
	})
	if taken != nil {
		defer taken.Close()
	}
	if err == nil && taken == nil { // so that what is wrong with the other fields is said too
		_, err = purpose(f)
	}
	if err != nil {
		return exchange.File{}, err
	}
	rest(f)
	if err := f.done(); err != nil {
		return exchange.File{}, err
	}
	if err := s.Files.Keep(c.ctx, taken); err != nil {
		return exchange.File{}, err
	}
	return s.Store.AddFile(c.ctx, taken.Files, c.who)
}

func (s *server) getFile(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	f, err := s.Store.File(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	w, err := s.fileWire(c, f)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, w)
}

func (s *server) fileContent(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	return s.sendFile(c, c.view(), id, "token")
}

// wireLink is a link to a file.
type wireLink struct {
	URL       string    `json:"url"`
	ExpiresAt timestamp `json:"expires_at"`
}

// linkFile makes a link that opens one file for a few minutes, in the caller's name, for as long as the caller's session lives.
func (s *server) linkFile(c *call) error {
	id, err := c.idAlone()
	if err != nil {
		return err
	}
	f, err := s.Store.LinkFile(c.ctx, c.view(), id, c.who)
	if err != nil {
		return hideAbsence(err)
	}
	expires := s.now().Add(exchange.FileLinkLife)
	link, err := s.ring.fileLink(claims{c.who.UserID, c.who.SessionID, c.auth}, f.ID, s.now(), expires)
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, wireLink{"/files/" + f.ID.String() + "?link=" + link, stamp(expires)})
}

var errBadLink = exchange.Errorf(exchange.CodeUnauthenticated, "The link is not valid or has expired. Ask for another one.")

// linkedFile answers with the file of a link. Who made the link counts as its reader.
func (s *server) linkedFile(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	if err := s.holdsLink(c, id); err != nil {
		return err
	}
	return s.sendFile(c, store.ViewOf(c.who, exchange.ActReadFiles), id, "link")
}

// holdsLink makes the maker of the request's link the caller. The link opens the one file, and only while its maker's session is
// live, its rights and credentials are the same, and its role may read files.
func (s *server) holdsLink(c *call, file uuid.UUID) error {
	q := c.query()
	text, _ := q.take("link", true)
	if len(text) > maxBearerLength {
		q.fail("link", "too_long", fmt.Sprintf("must have at most %d characters", maxBearerLength))
	}
	if err := q.done(); err != nil {
		return err
	}
	holder, of, err := s.ring.openFileLink(text, s.now())
	if err != nil || of != file {
		return errBadLink
	}
	state, err := s.authState(c, sessionKey{holder.UserID, holder.SessionID})
	if exchange.CodeOf(err) == exchange.CodeUnauthenticated {
		return errBadLink
	}
	if err != nil {
		return err
	}
	if !state.SessionLive || !state.User.IsActive || state.AuthVersion != holder.AuthVersion {
		return errBadLink
	}
	c.isCaller(state, holder.SessionID)
	if exchange.ScopeOf(c.who.Role, exchange.ActReadFiles) == exchange.ScopeNone {
		return errBadLink
	}
	return s.proven(c, exchange.NeedsOf(c.who.Role, exchange.ActReadFiles))
}

// filePolicy lets a file do nothing: no script, no request, no form, no frame around it.
const filePolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"

// sendFile answers with the content of a file, or a range of it, and writes down that the caller viewed it. Memory does not grow with
// the file.
func (s *server) sendFile(c *call, v store.View, id uuid.UUID, by string) error {
	if s.Files == nil {
		return errNoFiles
	}
	how := map[string]any{"by": by}
	if asked := c.fc.Get(fiber.HeaderRange); asked != "" {
		how["range"] = clip(asked, clipLength)
	}
	f, key, err := s.Store.ViewFile(c.ctx, v, id, how, c.who)
	if err != nil {
		return hideAbsence(err)
	}
	tag := `"` + hex.EncodeToString(f.SHA256) + `"`
	part, err := rangeOf(c.fc.Get(fiber.HeaderRange), c.fc.Get(fiber.HeaderIfRange), tag, f.Size)
	if err != nil {
		c.fc.Set(fiber.HeaderContentRange, fmt.Sprintf("bytes */%d", f.Size))
		return err
	}
	// The content is read after the handler has returned, while the answer is sent.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), s.within(downloadTimeout))
	sent, err := s.openContent(ctx, cancel, f, key, part)
	if err != nil {
		cancel()
		return err
	}
	describeContent(c, f, tag)
	status := http.StatusOK
	if part.length < f.Size {
		status = http.StatusPartialContent
		c.fc.Set(fiber.HeaderContentRange, fmt.Sprintf("bytes %d-%d/%d", part.from, part.from+part.length-1, f.Size))
	}
	c.fc.Status(status).Context().SetBodyStream(sent, int(part.length))
	return nil
}

// openContent opens a part of a file. It reads the first bytes, so that the caller learns of a fault before anything is sent.
func (s *server) openContent(ctx context.Context, cancel func(), f exchange.File, key exchange.SealedFileKey, part byteRange) (*sentContent, error) {
	content, err := s.Files.Open(ctx, exchange.FileRef{ID: f.ID, Purpose: f.Purpose}, key, part.from)
	if err != nil {
		return nil, s.contentFault(f.ID, err)
	}
	watched := faultReader{content, func(err error) error { return s.contentFault(f.ID, err) }}
	sent := &sentContent{Reader: bufio.NewReader(io.LimitReader(watched, part.length)), close: func() error {
		defer cancel()
		return content.Close()
	}}
	if _, err := sent.Peek(1); err != nil {
		return nil, errors.Join(err, sent.Close())
	}
	return sent, nil
}

// contentFault tells who watches that a file can't be read. After the first bytes were sent, the connection closes before the rest.
func (s *server) contentFault(id uuid.UUID, err error) error {
	if exchange.CodeOf(err) == exchange.CodeInternal {
		s.log.Error("ALERT a file is missing or changed in the object store", "file_id", id)
	} else {
		s.log.Warn("a file could not be read", "file_id", id, "error", err)
	}
	return err
}

// faultReader passes errors but the end on to what is done about them.
type faultReader struct {
	io.Reader
	fault func(error) error
}

func (r faultReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.fault(err)
	}
	return n, err
}

// describeContent sets the headers of a file. Only PDFs are shown; all else is saved.
func describeContent(c *call, f exchange.File, tag string) {
	shown := "attachment"
	if f.Type == exchange.FilePDF {
		shown = "inline"
	}
	media := string(f.Type)
	if f.Type == exchange.FileCSV || f.Type == exchange.FileXML {
		media += "; charset=utf-8"
	}
	c.fc.Set(fiber.HeaderContentType, media)
	c.fc.Set(fiber.HeaderContentDisposition, mime.FormatMediaType(shown, map[string]string{"filename": f.Name}))
	c.fc.Set(fiber.HeaderContentSecurityPolicy, filePolicy)
	c.fc.Set(fiber.HeaderCacheControl, "private, no-store")
	c.fc.Set(fiber.HeaderAcceptRanges, "bytes")
	c.fc.Set(fiber.HeaderETag, tag)
	c.fc.Set(fiber.HeaderLastModified, f.CreatedAt.UTC().Format(http.TimeFormat))
}

// sentContent is a file on its way.
type sentContent struct {
	*bufio.Reader
	close func() error
}

func (c *sentContent) Close() error { return c.close() }
