package attacks

import (
	"database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/lib/pq"

	"kivuko/store"
)

// C1: every process wrote every authorising row, so that any of them approved a payment, made an officer, or logged one in. Now
// each has a role of its own. That the signer checks who approved what is not part of this.
func TestC1_EveryProcessAuthorises(t *testing.T) {
	w := openBeside(t)
	authority := []string{"approvals", "intents", "control_changes", "users", "passkeys", "sessions", "session_families", "approval_tokens", "operator_commands"}
	may := map[store.Role][]string{store.RoleFlows: {"approvals"}} // it checks the tickets
	for _, role := range store.Roles() {
		if role == store.RoleAPI {
			continue
		}
		db, err := sql.Open("postgres", w.Stack.Postgres.RoleDSN("kivuko", string(role)))
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range authority {
			_, err := db.ExecContext(t.Context(), `INSERT INTO `+table+` DEFAULT VALUES`)
			said, _ := errors.AsType[*pq.Error](err)
			if denied := said != nil && said.Code == "42501"; denied == slices.Contains(may[role], table) {
				t.Errorf("%s writes %s: %v", role, table, err)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
