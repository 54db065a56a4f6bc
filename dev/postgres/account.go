package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// serverAccount is the system user that Debian's packages make for the server.
const serverAccount = "postgres"

// account is the system user under which the server's programs run: the current
// user, or for root the server's own user, since PostgreSQL refuses to run as root.
type account struct {
	credential *syscall.Credential // nil: the current user
}

func chooseAccount(ctx context.Context) (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	u, err := user.Lookup(serverAccount)
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) {
		if u, err = createAccount(ctx); err != nil {
			return account{}, err
		}
	}
	if err != nil {
		return account{}, fmt.Errorf("look up the system user %s: %w", serverAccount, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user %s: uid %q: %w", serverAccount, u.Uid, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user %s: gid %q: %w", serverAccount, u.Gid, err)
	}
	return account{credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

func createAccount(ctx context.Context) (*user.User, error) {
	cmd := exec.CommandContext(ctx, "useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", serverAccount)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("PostgreSQL cannot run as root, and making the system user %s failed: %w: %s", serverAccount, err, out)
	}
	return user.Lookup(serverAccount)
}

// apply makes cmd run under the account. It removes inherited settings of PostgreSQL's
// tools (PGDATA, PGPORT and the like): ours are all on the command line.
func (a account) apply(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential}
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "TZ=UTC"}
}

// own makes the account the owner of path.
func (a account) own(path string) error {
	if a.credential == nil {
		return nil
	}
	return os.Chown(path, int(a.credential.Uid), int(a.credential.Gid))
}

// canUse reports whether the account can enter dir and write there. It tries, because
// mode bits do not show ACLs and mount options of dir and its parents.
func (a account) canUse(ctx context.Context, dir string) bool {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `cd "$1" && : >.probe && rm .probe`, "sh", dir)
	a.apply(cmd)
	cmd.Dir = "/"
	return cmd.Run() == nil
}
