// Package files keeps the bytes of files in an object store.
//
// An upload is read once. While it arrives it is counted, hashed and encrypted with a key of its own onto the local disk, under no
// name; a process of its own (files/inspect) checks it there. Only an accepted file goes to the object store, and only then its row
// is written. So what is refused never gets there, the bytes are nowhere in the clear, and memory does not grow with the file. An
// object without a row, after a crash in between, is swept later.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	_ "gocloud.dev/blob/s3blob" // s3://
	"gocloud.dev/gcerrors"

	"kivuko/exchange"
)

// Keys encrypts the keys of files with a master key.
type Keys interface {
	Seal(ctx context.Context, id uuid.UUID, key []byte) (exchange.SealedFileKey, error)
	Open(ctx context.Context, sealed exchange.SealedFileKey) ([]byte, error)
}

// Check reads a file of a type and returns what it found. Of an accepted picture it writes a PDF to made. An error means that the
// check could not be made.
type Check func(ctx context.Context, t exchange.FileType, content io.Reader, made io.Writer) (exchange.FileVerdict, error)

// Config is what a Store works with.
type Config struct {
	// Bucket is where objects are: file:///<directory> or s3://<bucket>?region=<region>, with the parameters of gocloud.dev/blob.
	Bucket string
	// Keys and Check are needed by who takes and opens files.
	Keys  Keys
	Check Check
	// Dir is the local directory of uploads in progress.
	Dir string
}

// maxChecks bounds how many files are checked at a time, each with up to 384 MiB of memory.
const maxChecks = 2

// Store keeps files. It is safe for concurrent use.
type Store struct {
	Config
	bucket *blob.Bucket
	dir    string        // of objects, where they are in a directory
	checks chan struct{} // one entry for each running check
}

// Open opens the object store. It does not connect.
func Open(ctx context.Context, c Config) (*Store, error) {
	address, dir, err := bucketURL(c.Bucket)
	if err != nil {
		return nil, err
	}
	bucket, err := blob.OpenBucket(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	return &Store{Config: c, bucket: bucket, dir: dir, checks: make(chan struct{}, maxChecks)}, nil
}

// bucketURL completes the address of a directory: it is made, for us alone, and objects are written beside their places, so that a
// move there never crosses to another disk.
func bucketURL(text string) (address, dir string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return "", "", errors.New("files: the object store must be a URL such as file:///var/lib/kivuko/files or s3://bucket")
	}
	if u.Scheme == fileblob.Scheme {
		q := u.Query()
		for name, value := range map[string]string{"create_dir": "true", "dir_file_mode": "0700", "no_tmp_dir": "true", "metadata": "skip"} {
			q.Set(name, value)
		}
		u.RawQuery = q.Encode()
		if dir = u.Path; u.Host == "." {
			dir = strings.TrimPrefix(dir, "/")
		}
	}
	return u.String(), dir, nil
}

// Close closes the object store.
func (s *Store) Close() error { return s.bucket.Close() }

// Reach reports whether the object store answers.
func (s *Store) Reach(ctx context.Context) error {
	there, err := s.bucket.IsAccessible(ctx)
	if err == nil && !there {
		err = errors.New("files: the object store has no such bucket, or refuses us")
	}
	if s.dir == "" || err != nil {
		return err
	}
	info, err := os.Stat(s.dir) // one that is gone or no directory looks empty to the library
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("files: %s is no directory", s.dir)
	}
	return err
}

// objectKey is the name of a file's object. Nothing that a user chose is part of it.
func objectKey(f exchange.FileRef) string { return string(f.Purpose) + "/" + f.ID.String() }

// refOf reads the name of an object; false for one that is not ours.
func refOf(key string) (exchange.FileRef, bool) {
	id, err := uuid.Parse(path.Base(key))
	f := exchange.FileRef{ID: id, Purpose: exchange.FilePurpose(path.Dir(key))}
	return f, err == nil && objectKey(f) == key && f.Purpose.MaxSize() > 0
}

// away is the error of an object store that does not answer. Nothing was lost: the caller tries again.
func away(err error) error {
	return exchange.Wrap(exchange.CodeUnavailable, err, "The store of files can't be reached. Try again.")
}

// Open returns the content of a file from an offset. It and the reader fail with CodeInternal where the object is not what was stored,
// and with CodeUnavailable when the object store does not answer.
func (s *Store) Open(ctx context.Context, f exchange.FileRef, sealed exchange.SealedFileKey, offset int64) (io.ReadCloser, error) {
	key, err := s.Keys.Open(ctx, sealed)
	if err != nil {
		return nil, exchange.Wrap(exchange.CodeUnavailable, err, "The key of the file can't be opened. Try again.")
	}
	defer clear(key)
	object, err := s.bucket.NewReader(ctx, objectKey(f), nil)
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		return nil, exchange.Wrap(exchange.CodeInternal, err, "The object of file %s is missing.", f.ID)
	case err != nil:
		return nil, away(err)
	}
	c := &content{object: object, source: sourceReader{from: object}, id: f.ID}
	if c.plain, err = opened(&c.source, key, f.ID); err == nil {
		_, err = io.CopyN(io.Discard, c.plain, offset)
	}
	if err != nil {
		return nil, errors.Join(c.fault(err), object.Close())
	}
	return c, nil
}

// content is a file that is being read.
type content struct {
	plain  io.Reader
	source sourceReader
	object io.Closer
	id     uuid.UUID
	failed error
}

func (c *content) Read(b []byte) (int, error) {
	if c.failed != nil { // the decryption would go on as if this were the end
		return 0, c.failed
	}
	n, err := c.plain.Read(b)
	if err != nil && err != io.EOF {
		c.failed = c.fault(err)
		err = c.failed
	}
	return n, err
}

// fault tells an object store that is away from an object that is not what was stored.
func (c *content) fault(err error) error {
	if c.source.err != nil {
		return away(c.source.err)
	}
	return exchange.Wrap(exchange.CodeInternal, err, "The object of file %s does not open.", c.id)
}

func (c *content) Close() error { return c.object.Close() }

// Delete removes a file's object. One that is gone already is no error.
func (s *Store) Delete(ctx context.Context, f exchange.FileRef) error {
	if err := s.bucket.Delete(ctx, objectKey(f)); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return away(err)
	}
	return nil
}

// List returns a page of objects that are older than a moment, and where the next page begins: "" after the last one. Objects whose
// names are not of this package are left out; the left-overs of our own that are as old are deleted, because no row names them.
func (s *Store) List(ctx context.Context, from string, size int, before time.Time) ([]exchange.FileRef, string, error) {
	token := blob.FirstPageToken
	if from != "" {
		token = []byte(from)
	}
	if err := s.Reach(ctx); err != nil {
		return nil, "", away(err)
	}
	page, next, err := s.bucket.ListPage(ctx, token, size, nil)
	if err != nil {
		return nil, "", away(err)
	}
	var all []exchange.FileRef
	for _, o := range page {
		if o.IsDir || !o.ModTime.Before(before) {
			continue
		}
		if f, ours := refOf(o.Key); ours {
			all = append(all, f)
		} else if err := s.deleteLeftOver(ctx, o.Key); err != nil {
			return nil, "", err
		}
	}
	return all, string(next), nil
}

// leftOver matches what the end of a process leaves of an object that was being written into a directory.
var leftOver = regexp.MustCompile(`^(.+)\.[0-9a-f]{1,16}\.tmp$`)

func (s *Store) deleteLeftOver(ctx context.Context, key string) error {
	of := leftOver.FindStringSubmatch(key)
	if of == nil {
		return nil
	}
	if _, ours := refOf(of[1]); !ours {
		return nil
	}
	if err := s.bucket.Delete(ctx, key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return away(err)
	}
	return nil
}
