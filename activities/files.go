package activities

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// FileStore stores the rows of files.
type FileStore interface {
	// EndFiles ends the retention of at most limit files, and returns their number.
	EndFiles(ctx context.Context, limit int) (int, error)
	// UnpurgedFiles lists files whose retention has ended and whose bytes are to be deleted; PurgeFile notes that they were.
	UnpurgedFiles(ctx context.Context, limit int) ([]exchange.FileRef, error)
	PurgeFile(ctx context.Context, id uuid.UUID) error
	// UnknownFiles returns those of some objects that no row names.
	UnknownFiles(ctx context.Context, refs []exchange.FileRef) ([]exchange.FileRef, error)
}

// FileObjects is the object store with the bytes of files.
type FileObjects interface {
	// List returns a page of objects that are older than a moment, and where the next page begins: "" after the last one.
	List(ctx context.Context, from string, size int, before time.Time) ([]exchange.FileRef, string, error)
	Delete(ctx context.Context, f exchange.FileRef) error
}

// Files deletes files whose retention has ended, and objects that no row names.
type Files struct {
	Store   FileStore
	Objects FileObjects
	Now     func() time.Time
}

const (
	fileBatch   = 100  // files that one step ends
	objectBatch = 1000 // objects that one step looks at
	// strayObjectsKept is how old an object without a row is before it is deleted. A crash between the two leaves one. So does a
	// database that was put back: then there is a month to notice what it lacks.
	strayObjectsKept = 30 * 24 * time.Hour
)

// EndedFiles is what one step of EndFiles did.
type EndedFiles struct {
	Ended  int  `json:"ended"`
	Purged int  `json:"purged"`
	More   bool `json:"more,omitempty"`
}

// EndFiles ends the retention of a batch of files, and deletes the bytes of a batch of ended ones. The bytes go before their row says
// so: a second run deletes what is left.
func (f *Files) EndFiles(ctx context.Context) (EndedFiles, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	var out EndedFiles
	var err error
	if out.Ended, err = f.Store.EndFiles(ctx, fileBatch); err != nil {
		return out, Failure(ctx, err)
	}
	refs, err := f.Store.UnpurgedFiles(ctx, fileBatch)
	if err != nil {
		return out, Failure(ctx, err)
	}
	for _, ref := range refs {
		if err := f.Objects.Delete(ctx, ref); err != nil {
			return out, Failure(ctx, err)
		}
		if err := f.Store.PurgeFile(ctx, ref.ID); err != nil {
			return out, Failure(ctx, err)
		}
		out.Purged++
	}
	out.More = max(out.Ended, out.Purged) == fileBatch
	return out, nil
}

// SweepObjectsInput says where a page of objects begins; "" for the first one.
type SweepObjectsInput struct {
	From string `json:"from,omitempty"`
}

// SweptObjects is the result of SweepObjects.
type SweptObjects struct {
	Next    string `json:"next,omitempty"` // where the next page begins; "" after the last one
	Removed int    `json:"removed"`
}

// SweepObjects deletes the objects of a page that are old and that no row names.
func (f *Files) SweepObjects(ctx context.Context, in SweepObjectsInput) (SweptObjects, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	var out SweptObjects
	refs, next, err := f.Objects.List(ctx, in.From, objectBatch, f.Now().Add(-strayObjectsKept))
	if err == nil {
		refs, err = f.Store.UnknownFiles(ctx, refs)
	}
	if err != nil {
		return out, Failure(ctx, err)
	}
	for _, ref := range refs {
		if err := f.Objects.Delete(ctx, ref); err != nil {
			return out, Failure(ctx, err)
		}
		out.Removed++
	}
	out.Next = next
	return out, nil
}
