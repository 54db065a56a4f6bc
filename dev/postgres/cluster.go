package postgres

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kivuko/dev/ports"
)

const (
	temporaryPrefix     = "kivuko-postgres-"
	superuser           = "kivuko"
	maintenanceDatabase = "postgres"
	ownerOnlyDir        = 0o700
	ownerOnlyFile       = 0o600
	// maxSocketDir keeps the socket's path within the 107 bytes that the system
	// allows.
	maxSocketDir = 80
	// maxLog is the size in bytes above which the log of earlier runs is renamed.
	maxLog = 16 << 20
	// maxLogTail is the number of bytes of the log that an error quotes.
	maxLogTail = 4 << 10
)

// cluster is the directory of one PostgreSQL installation:
//
//	data/       PostgreSQL's data directory
//	run/        the Unix socket
//	password    of the superuser
//	ports.json  the TCP port
//	log         the server's log
//	lock        held while one of our processes runs the server
type cluster struct {
	dir       string
	socketDir string
	throwaway bool
	account   account
	binaries  binaries
	password  string
	lock      *os.File
}

func (c *cluster) dataDir() string { return filepath.Join(c.dir, "data") }
func (c *cluster) logPath() string { return filepath.Join(c.dir, "log") }

func openCluster(ctx context.Context, opts Options) (_ *cluster, err error) {
	c := &cluster{throwaway: opts.Dir == ""}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	// Installing comes first because it creates the server's account.
	if c.binaries, err = findOrInstall(ctx, 0, opts); err != nil {
		return nil, err
	}
	if c.account, err = chooseAccount(ctx); err != nil {
		return nil, err
	}
	if err = c.chooseDir(ctx, opts); err != nil {
		return nil, err
	}
	if err = c.takeLock(); err != nil {
		return nil, err
	}
	if err = c.matchRelease(ctx, opts); err != nil {
		return nil, err
	}
	if err = c.loadPassword(); err != nil {
		return nil, err
	}
	if err = c.makeSocketDir(); err != nil {
		return nil, err
	}
	return c, c.initialise(ctx)
}

// chooseDir picks a directory that the account can use: the wanted one, or one under
// the system's state directory when the account can't reach that (a checkout in
// root's home, for example).
func (c *cluster) chooseDir(ctx context.Context, opts Options) error {
	if c.throwaway {
		return c.chooseTemporaryDir(ctx)
	}
	wanted, err := filepath.Abs(opts.Dir)
	if err != nil {
		return err
	}
	fallback := fallbackDir(wanted)
	candidates := []string{wanted, fallback}
	// Keep using the fallback when an earlier run put data there.
	if _, err := os.Stat(filepath.Join(fallback, "data")); err == nil {
		candidates = []string{fallback}
	}
	for _, dir := range candidates {
		if err := c.makeDir(dir); err != nil {
			return err
		}
		if c.account.canUse(ctx, dir) {
			c.dir = dir
			if dir == fallback {
				_, _ = fmt.Fprintf(opts.Progress, "PostgreSQL keeps its data in %s: its system user cannot reach %s\n", dir, wanted)
			}
			return nil
		}
		if c.account.credential == nil {
			return fmt.Errorf("%s is not writable for this user: was it made by root? `make clean-data` as root removes it", dir)
		}
	}
	return fmt.Errorf("the system user %s can use neither %s nor %s", serverAccount, wanted, fallback)
}

func (c *cluster) chooseTemporaryDir(ctx context.Context) error {
	parents := []string{os.TempDir(), "/tmp", "/var/tmp"}
	if roomy(memoryDir) {
		parents = slices.Insert(parents, 0, memoryDir)
	}
	for _, parent := range parents {
		sweepTemporary(parent)
		dir, err := os.MkdirTemp(parent, temporaryPrefix)
		if err != nil {
			continue // try the next parent
		}
		c.dir = dir
		if err := c.account.own(dir); err != nil {
			return err
		}
		if c.account.canUse(ctx, dir) {
			return nil
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		c.dir = ""
	}
	return fmt.Errorf("no temporary directory that the server's system user can use: set TMPDIR to one")
}

// memoryDir is Linux's directory for files in memory. A test's database has almost a thousand small files; there, making
// it takes a third of the time and does not load the disk.
const memoryDir = "/dev/shm"

// roomy reports whether a directory has ample room for the databases of a run of all tests. Containers often have little
// there.
func roomy(dir string) bool {
	const enough = 4 << 30
	var room syscall.Statfs_t
	return syscall.Statfs(dir, &room) == nil && uint64(room.Bsize)*room.Bavail >= enough
}

// sweepTemporary removes the temporary clusters that killed processes left behind:
// old directories whose lock is free. It leaves those that it can't remove, such as
// another user's.
func sweepTemporary(parent string) {
	const settled = 15 * time.Minute // a younger one may be incomplete
	dirs, err := filepath.Glob(filepath.Join(parent, temporaryPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < settled {
			continue
		}
		c := &cluster{dir: dir, throwaway: true}
		if c.takeLock() == nil {
			_ = c.close() // if removing fails, the next run tries again
		}
	}
}

// fallbackDir returns the directory that replaces wanted when the server's account
// can't reach wanted.
func fallbackDir(wanted string) string {
	const shortHash = 6
	sum := sha256.Sum256([]byte(wanted))
	return "/var/lib/kivuko-" + hex.EncodeToString(sum[:shortHash])
}

func (c *cluster) makeDir(dir string) error {
	if err := os.MkdirAll(dir, ownerOnlyDir); err != nil {
		return err
	}
	// MkdirAll gives missing parents the closed mode of the last one, but the server's
	// user must be able to pass the directory of the local state.
	if c.account.credential != nil {
		const passable = 0o755
		if parent := filepath.Dir(dir); filepath.Base(parent) == ".local" {
			if err := os.Chmod(parent, passable); err != nil {
				return err
			}
		}
	}
	return c.account.own(dir)
}

// takeLock fails when another of our processes runs this cluster.
func (c *cluster) takeLock() error {
	path := filepath.Join(c.dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, ownerOnlyFile)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("the cluster in %s is in use by another running process", c.dir)
		}
		return fmt.Errorf("lock %s: %w", path, err)
	}
	c.lock = f
	return nil
}

// matchRelease switches to the server programs of the release that wrote the data.
func (c *cluster) matchRelease(ctx context.Context, opts Options) error {
	raw, err := os.ReadFile(filepath.Join(c.dataDir(), "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return fmt.Errorf("%s/PG_VERSION holds %q, not the number of a release", c.dataDir(), raw)
	}
	if major == c.binaries.major {
		return nil
	}
	c.binaries, err = findOrInstall(ctx, major, opts)
	return err
}

// loadPassword reads the superuser's password, or makes one while there is no data,
// which would have another password.
func (c *cluster) loadPassword() error {
	path := filepath.Join(c.dir, "password")
	_, err := os.Stat(c.dataDir())
	if err == nil {
		raw, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("the password of the cluster: %w", err)
		}
		c.password = strings.TrimSpace(string(raw))
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c.password = rand.Text()
	if err := os.WriteFile(path, []byte(c.password+"\n"), ownerOnlyFile); err != nil {
		return err
	}
	return c.account.own(path)
}

func (c *cluster) makeSocketDir() error {
	c.socketDir = filepath.Join(c.dir, "run")
	if len(c.socketDir) <= maxSocketDir {
		if err := os.MkdirAll(c.socketDir, ownerOnlyDir); err != nil {
			return err
		}
		return c.account.own(c.socketDir)
	}
	// The path is too long for a socket. We connect over TCP anyway, so the server
	// needs none.
	c.socketDir = ""
	return nil
}

// initialise makes the data directory unless it exists. It uses another name and
// renames it at the end, so that an interrupted run leaves no incomplete directory.
func (c *cluster) initialise(ctx context.Context) error {
	if _, err := os.Stat(c.dataDir()); err == nil {
		return nil
	}
	next := c.dataDir() + ".new"
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	args := []string{
		"--pgdata", next, "--username", superuser, "--pwfile", filepath.Join(c.dir, "password"),
		"--auth-local", "trust", "--auth-host", "scram-sha-256",
		"--encoding", "UTF8", "--lc-collate", "C", "--lc-ctype", "C.UTF-8", "--data-checksums",
	}
	if c.throwaway {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, c.binaries.initdb(), args...)
	c.account.apply(cmd)
	cmd.Dir = c.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return os.Rename(next, c.dataDir())
}

func (c *cluster) assignPort() (int, error) {
	book, err := ports.OpenBook(filepath.Join(c.dir, "ports.json"))
	if err != nil {
		return 0, err
	}
	return book.Assign("postgres", 0)
}

func (c *cluster) openLog() (*os.File, error) {
	if info, err := os.Stat(c.logPath()); err == nil && info.Size() > maxLog {
		if err := os.Rename(c.logPath(), c.logPath()+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(c.logPath(), os.O_CREATE|os.O_APPEND|os.O_RDWR, ownerOnlyFile)
}

// logSince returns the end of the log's part after the offset.
func (c *cluster) logSince(offset int64) string {
	raw, err := os.ReadFile(c.logPath())
	if err != nil {
		return err.Error()
	}
	if offset <= int64(len(raw)) {
		raw = raw[offset:]
	}
	if len(raw) > maxLogTail {
		raw = raw[len(raw)-maxLogTail:]
	}
	return string(raw)
}

// close releases the cluster and removes a temporary one.
func (c *cluster) close() error {
	var err error
	if c.throwaway && c.dir != "" {
		err = os.RemoveAll(c.dir)
	}
	if c.lock != nil {
		err = errors.Join(err, c.lock.Close())
		c.lock = nil
	}
	return err
}

// Remove deletes the cluster that Start made for dir, also from the fallback
// directory. It refuses while the server runs.
func Remove(dir string) error {
	wanted, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for _, d := range []string{wanted, fallbackDir(wanted)} {
		if _, err := os.Stat(d); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		c := &cluster{dir: d}
		if err := c.takeLock(); err != nil {
			return err
		}
		if err := errors.Join(os.RemoveAll(d), c.close()); err != nil {
			return err
		}
	}
	return nil
}
