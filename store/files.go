package store

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
)

// The rows of files. Their bytes are in the object store, which is written before a row and swept after it.

const fileColumns = `id, purpose, owner_id, uploaded_by, name, content_type AS type, size_bytes AS size, sha256, source_sha256,
    coalesce(pages, 0) AS pages, original_id, created_at, deleted_at`

const insertFile = `
INSERT INTO files (id, purpose, owner_id, uploaded_by, name, content_type, size_bytes, sha256, source_sha256, pages, original_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`

const insertFileKey = `INSERT INTO file_keys (file_id, seal, ciphertext, master_key) VALUES ($1, $2, $3, $4)`

const countUploads = `SELECT count(*) FROM files WHERE uploaded_by = $1 AND created_at > now() - interval '1 day' AND original_id IS NULL`

const countMerchantUploads = `SELECT count(*) FROM files WHERE owner_id = $1 AND created_at > now() - interval '1 day' AND original_id IS NULL`

// MayUpload refuses a user that has sent too many files within a day, or whose merchant has, before one more is read. AddFile decides.
func (s *Store) MayUpload(ctx context.Context, by exchange.Principal) error {
	return s.inTx(ctx, "file", func(t unitTx) error { return t.mayUpload(ctx, by) })
}

func (t unitTx) mayUpload(ctx context.Context, by exchange.Principal) error {
	if err := t.below(ctx, exchange.MaxMerchantFiles, countMerchantUploads, by.VendorID, "files of one merchant within a day"); err != nil {
		return err
	}
	return t.below(ctx, exchange.MaxFilesPerDay, countUploads, by.UserID, "files of one account within a day")
}

// AddFile stores a file whose bytes are stored already; a PDF that was made from a picture comes with the picture as second.
// CodeLimitReached when the uploader or its merchant has sent too many within a day, CodeStateConflict when it was deactivated meanwhile.
func (s *Store) AddFile(ctx context.Context, files []exchange.NewFile, by exchange.Principal) (exchange.File, error) {
	var added exchange.File
	err := s.inTx(ctx, "file", func(t unitTx) error {
		if err := t.One(ctx, lockOwner, cmp.Or(by.VendorID, by.UserID)); err != nil { // uploads of one merchant are counted one after the other
			return err
		}
		if err := t.mayUpload(ctx, by); err != nil {
			return err
		}
		for _, f := range slices.Backward(files) {
			var err error
			if added, err = t.addFile(ctx, f); err != nil {
				return err
			}
		}
		return t.audit(ctx, by, "file.uploaded", "file", added.ID, nil, fileDigest(added))
	})
	return added, err
}

func (t unitTx) addFile(ctx context.Context, f exchange.NewFile) (exchange.File, error) {
	f.CreatedAt = t.s.now()
	var pages *int
	if f.Type == exchange.FilePDF {
		pages = &f.Pages
	}
	err := t.One(ctx, insertFile, f.ID, f.Purpose, nullID(f.OwnerID), f.UploadedBy, f.Name, f.Type, f.Size, f.SHA256, f.SourceSHA256, pages,
		nullID(f.OriginalID), f.CreatedAt)
	if err == nil {
		err = t.One(ctx, insertFileKey, f.ID, 1, f.Key.Ciphertext, f.Key.MasterKey)
	}
	return f.File, err
}

// fileDigest is a file in the audit log: what it is, and the digests by which it can be told.
func fileDigest(f exchange.File) map[string]any {
	return map[string]any{
		"purpose": f.Purpose, "owner_id": nullID(f.OwnerID), "content_type": f.Type, "size_bytes": f.Size, "sha256": hex.EncodeToString(f.SHA256), "source_sha256": hex.EncodeToString(f.SourceSHA256),
	}
}

const readFile = `SELECT ` + fileColumns + ` FROM files WHERE id = $1 AND ($2 OR uploaded_by = $3 OR owner_id = $4) AND purpose = ANY ($5)`

// fileArgs are the arguments of readFile: who uploads no files of a purpose sees none of it either.
func (v View) fileArgs(id uuid.UUID) []any {
	all, owner, vendor := v.args()
	purposes := exchange.FilePurposes()
	if v.role != "" {
		purposes = slices.DeleteFunc(purposes, func(p exchange.FilePurpose) bool { return !p.UsedBy(v.role) })
	}
	return []any{id, all, owner, vendor, pq.Array(purposes)}
}

// File reads a file that the view may see.
func (s *Store) File(ctx context.Context, v View, id uuid.UUID) (exchange.File, error) {
	return readOne[exchange.File](ctx, s.db, "file", readFile, v.fileArgs(id)...)
}

const newestFileSeal = `NOT EXISTS (SELECT FROM file_keys later WHERE later.file_id = k.file_id AND later.seal > k.seal)`

const readFileKey = `SELECT k.file_id, k.ciphertext, k.master_key FROM file_keys k WHERE k.file_id = $1 AND ` + newestFileSeal

// ViewFile reads a file that the view may see, with the key of its bytes, and writes down who views it and how. CodeExpired when its
// retention has ended.
func (s *Store) ViewFile(ctx context.Context, v View, id uuid.UUID, how map[string]any, by exchange.Principal) (exchange.File, exchange.SealedFileKey, error) {
	var f exchange.File
	var key exchange.SealedFileKey
	err := s.inTx(ctx, "file", func(t unitTx) error {
		var err error
		if f, err = t.visibleFile(ctx, v, id); err != nil {
			return err
		}
		if key, err = readOne[exchange.SealedFileKey](ctx, t, "file", readFileKey, id); err != nil {
			return err
		}
		return t.audit(ctx, by, "file.viewed", "file", id, nil, how)
	})
	return f, key, err
}

// LinkFile writes down that a link to a file that the view may see was given to the caller. CodeExpired when its retention has ended.
func (s *Store) LinkFile(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.File, error) {
	var f exchange.File
	err := s.inTx(ctx, "file", func(t unitTx) error {
		var err error
		if f, err = t.visibleFile(ctx, v, id); err != nil {
			return err
		}
		return t.audit(ctx, by, "file.link_issued", "file", id, nil, nil)
	})
	return f, err
}

func (t unitTx) visibleFile(ctx context.Context, v View, id uuid.UUID) (exchange.File, error) {
	f, err := readOne[exchange.File](ctx, t, "file", readFile, v.fileArgs(id)...)
	if err == nil && !f.DeletedAt.IsZero() {
		err = exchange.Errorf(exchange.CodeExpired, "The file was deleted because its retention has ended.")
	}
	return f, err
}

const readTwins = `SELECT ` + fileColumns + ` FROM files WHERE source_sha256 = $1 AND id <> $2 AND original_id IS DISTINCT FROM $2 AND content_type NOT IN ('image/png', 'image/jpeg')
ORDER BY created_at, id LIMIT $3`

// maxTwins bounds how many uploads of one content are listed.
const maxTwins = 100

// FilesLike lists other uploads of the same content, whoever sent them and whenever, oldest first. Deleted ones are among them.
func (s *Store) FilesLike(ctx context.Context, f exchange.File) ([]exchange.File, error) {
	return readAll[exchange.File](ctx, s.db, "file", readTwins, f.SourceSHA256, f.ID, maxTwins)
}

const insertFileUse = `INSERT INTO file_uses (file_id, object_type, object_id, used_by, used_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`

// useFile ties a file to the object that uses it, so that it is kept for its purpose's time. The caller has checked that both belong
// to one owner. A second call changes nothing. CodeStateConflict when the file's retention has ended.
func (t unitTx) useFile(ctx context.Context, u exchange.FileUse, by exchange.Principal) error {
	n, err := t.Exec(ctx, insertFileUse, u.FileID, u.ObjectType, u.ObjectID, by.UserID, t.s.now())
	if err != nil || n == 0 {
		return err
	}
	return t.audit(ctx, by, "file.used", "file", u.FileID, nil, map[string]any{"object_type": u.ObjectType, "object_id": u.ObjectID})
}

// A database that was put back may lack the rows of files that it had, and the uses of those that it has. Nothing ends and nothing is
// swept before it was released. A file is due when all of its purpose are, or when nothing uses it, nor the PDF that was made from it;
// file_due says the same of one file, but would be asked about all that are in use.
const endFiles = `
WITH due AS (
    SELECT f.id FROM files f JOIN file_retention r ON r.purpose = f.purpose WHERE f.deleted_at IS NULL AND f.created_at < $1::timestamptz - r.kept
    UNION ALL
    SELECT f.id FROM files f JOIN file_retention r ON r.purpose = f.purpose LEFT JOIN file_uses u ON u.file_id = f.id
        LEFT JOIN files d ON d.original_id = f.id LEFT JOIN file_uses p ON p.file_id = d.id
    WHERE f.deleted_at IS NULL AND f.created_at < $1::timestamptz - r.unused_kept AND u.file_id IS NULL AND p.file_id IS NULL)
UPDATE files SET deleted_at = $1, name = 'deleted' WHERE id IN (
    SELECT f.id FROM files f WHERE database_released() AND f.id IN (SELECT id FROM due) ORDER BY f.created_at LIMIT $2 FOR UPDATE OF f SKIP LOCKED)
RETURNING ` + fileColumns

// EndFiles ends the retention of at most limit files, and returns their number. From then on nobody sees them. None while the database,
// which was put back, is not released.
func (s *Store) EndFiles(ctx context.Context, limit int) (int, error) {
	n := 0
	err := s.inTx(ctx, "file", func(t unitTx) error {
		ended, err := readAll[exchange.File](ctx, t, "file", endFiles, t.s.now(), limit)
		n = len(ended)
		for _, f := range ended {
			if err == nil {
				err = t.audit(ctx, exchange.System("retention"), "file.deleted", "file", f.ID, fileDigest(f), nil)
			}
		}
		return err
	})
	return n, err
}

const readUnpurged = `SELECT id, purpose FROM files WHERE database_released() AND deleted_at IS NOT NULL AND purged_at IS NULL ORDER BY deleted_at LIMIT $1`

// UnpurgedFiles lists files whose retention has ended and whose bytes are to be deleted. None while the database, which was put back,
// is not released.
func (s *Store) UnpurgedFiles(ctx context.Context, limit int) ([]exchange.FileRef, error) {
	return readAll[exchange.FileRef](ctx, s.db, "file", readUnpurged, limit)
}

const (
	purgeFile     = `UPDATE files SET purged_at = greatest($2, deleted_at) WHERE id = $1 AND deleted_at IS NOT NULL AND purged_at IS NULL`
	deleteFileKey = `DELETE FROM file_keys WHERE file_id = $1`
)

// PurgeFile notes that the bytes of a file were deleted, and deletes its key, so that no copy of them can be read either.
func (s *Store) PurgeFile(ctx context.Context, id uuid.UUID) error {
	return s.inTx(ctx, "file", func(t unitTx) error {
		if _, err := t.Exec(ctx, purgeFile, id, t.s.now()); err != nil {
			return err
		}
		_, err := t.Exec(ctx, deleteFileKey, id)
		return err
	})
}

const readUnknown = `
SELECT x.id FROM unnest($1::uuid[]) AS x (id) WHERE database_released() AND NOT EXISTS (SELECT FROM files f WHERE f.id = x.id AND f.purged_at IS NULL)`

// UnknownFiles returns those of some objects that no row names. None while the database, which was put back, is not released.
func (s *Store) UnknownFiles(ctx context.Context, refs []exchange.FileRef) ([]exchange.FileRef, error) {
	ids := make([]string, len(refs))
	for i, f := range refs {
		ids[i] = f.ID.String()
	}
	unknown, err := readAll[uuid.UUID](ctx, s.db, "file", readUnknown, pq.Array(ids))
	return slices.DeleteFunc(slices.Clone(refs), func(f exchange.FileRef) bool { return !slices.Contains(unknown, f.ID) }), err
}

const readOtherFileSeals = `
SELECT k.file_id, k.ciphertext, k.master_key FROM file_keys k
WHERE k.file_id > $1 AND k.master_key <> $2 AND ` + newestFileSeal + ` ORDER BY k.file_id LIMIT $3`

// FileKeysOfOtherMasters reads the keys of files that another master key seals than the given one, ordered by file.
func (s *Store) FileKeysOfOtherMasters(ctx context.Context, master string, after uuid.UUID, size int) ([]exchange.SealedFileKey, error) {
	return readAll[exchange.SealedFileKey](ctx, s.db, "file key", readOtherFileSeals, after, master, size)
}

const readNewestFileSeal = `SELECT k.seal, k.master_key FROM file_keys k WHERE k.file_id = $1 AND ` + newestFileSeal

// SealFileKeyAnew stores the seal of a file's key under another master key; the earlier seal stays. A key that this master key seals
// already is left as it is, and one whose file was purged meanwhile is gone.
func (s *Store) SealFileKeyAnew(ctx context.Context, k exchange.SealedFileKey, by exchange.Principal) error {
	err := s.inTx(ctx, "file key", func(t unitTx) error {
		var last struct {
			Seal      int
			MasterKey string
		}
		if err := t.Get(ctx, &last, readNewestFileSeal, k.FileID); err != nil || last.MasterKey == k.MasterKey {
			return err
		}
		if err := t.One(ctx, insertFileKey, k.FileID, last.Seal+1, k.Ciphertext, k.MasterKey); err != nil {
			return err
		}
		return t.audit(ctx, by, "file.key_sealed_anew", "file", k.FileID, map[string]any{"master_key": last.MasterKey}, map[string]any{"master_key": k.MasterKey, "seal": last.Seal + 1})
	})
	if code := exchange.CodeOf(err); code == exchange.CodeNotFound || code == exchange.CodeStateConflict {
		return nil
	}
	return err
}

const countFileMasters = `SELECT k.master_key, count(*) AS keys FROM file_keys k WHERE ` + newestFileSeal + ` GROUP BY k.master_key ORDER BY k.master_key`

// FileKeysByMaster counts the keys of files by the master key that seals them. One that seals none may be retired.
func (s *Store) FileKeysByMaster(ctx context.Context) ([]exchange.MasterKeyUse, error) {
	return readAll[exchange.MasterKeyUse](ctx, s.db, "file key", countFileMasters)
}
