package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// settled waits until every record can be sealed: a transaction of any other test on the server may still hold the newest back.
func settled(t *testing.T, s *store.Store) {
	t.Helper()
	for {
		var done bool
		if err := storetest.Owner(t, s).QueryRowContext(t.Context(), `SELECT max(id) < log_horizon() FROM audit_log`).Scan(&done); err != nil {
			t.Fatal(err)
		}
		if done {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// The owner of the database cut off the end of the audit log, or computed its chain anew: both looked whole, because the chain had
// no key and its head was kept nowhere else. Now audit-verify sees both, and nothing is sealed behind a log that was cut off.
func TestAuditLogIsHeldFromOutside(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	key := exchange.AuditKey{ID: "k1", Secret: bytes.Repeat([]byte{7}, 32)}
	s := storetest.Open(t, url, store.Options{AuditKeys: []exchange.AuditKey{key}})
	storetest.User(t, s, exchange.RoleCustomer)
	storetest.User(t, s, exchange.RoleCustomer)
	file := headFile(filepath.Join(t.TempDir(), "audit.head"))
	seal := func() error {
		t.Helper()
		settled(t, s)
		suite := testsuite.WorkflowTestSuite{}
		env := suite.NewTestActivityEnvironment()
		orders := &activities.Orders{Store: s, Heads: file}
		env.RegisterActivity(orders)
		_, err := env.ExecuteActivity(orders.SealAudit)
		return err
	}
	verify := func() error {
		t.Helper()
		c := Config{DatabaseURL: url, Mode: Local}
		c.Audit = AuditConfig{Keys: Keyring{{ID: key.ID, Key: key.Secret}}, Head: string(file)}
		return runAuditVerify(t.Context(), process{config: c, log: slog.New(slog.DiscardHandler), out: &bytes.Buffer{}}, nil)
	}
	var records int64
	if err := storetest.Owner(t, s).QueryRowContext(t.Context(), `SELECT count(*) FROM audit_log`).Scan(&records); err != nil {
		t.Fatal(err)
	}
	var head exchange.AuditHead
	for head.N < records { // a record is sealed when no older transaction of the server runs any more, those of other tests too
		err := seal()
		if err == nil {
			head, err = file.Kept()
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if head.Hash == "" || head.Key != "k1" {
		t.Fatalf("kept %+v", head)
	}
	if err := verify(); err != nil {
		t.Errorf("a whole log: %v", err)
	}
	tamper := func(statements ...string) {
		t.Helper()
		for _, q := range append([]string{`ALTER TABLE audit_seals DISABLE TRIGGER USER`, `ALTER TABLE audit_log DISABLE TRIGGER USER`}, statements...) {
			storetest.Exec(t, s, q)
		}
	}
	tamper(`DELETE FROM audit_seals WHERE n = (SELECT max(n) FROM audit_seals)`, `DELETE FROM audit_log WHERE id = (SELECT max(id) FROM audit_log)`)
	if err := verify(); err == nil || !strings.Contains(err.Error(), "head") {
		t.Errorf("a log that was cut off: %v", err)
	}
	storetest.User(t, s, exchange.RoleCustomer)
	if err := seal(); err == nil {
		t.Error("records are sealed behind a log that was cut off")
	}
	if again, err := file.Kept(); err != nil || again != head {
		t.Errorf("the kept head is %+v now, %v", again, err)
	}
	if err := os.Remove(string(file)); err != nil {
		t.Fatal(err)
	}
	// Without the key nobody computes the chain: a plain hash of the same fields is no seal.
	tamper(`UPDATE audit_log SET actor = 'somebody else' WHERE id = (SELECT min(id) FROM audit_log)`)
	if err := verify(); err == nil || !strings.Contains(err.Error(), "tampered with at record") {
		t.Errorf("a changed record: %v", err)
	}
}
