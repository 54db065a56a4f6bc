package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// A second type of object that mobile money is collected for, as a new one is added: this file, its line in
// collectionTypes, and in the database what TestTypeSchema has. It exists in tests only.

// TestType is the type, and TestTypeSchema its migration: the table, its column in payment_attempts, and what its
// collections must agree with.
const (
	TestType       exchange.MomoObjectType = "test"
	TestTypeSchema string                  = `
CREATE TABLE tests (
    id        uuid            PRIMARY KEY,
    owner_id  uuid            NOT NULL REFERENCES users (id),
    amount    positive_amount NOT NULL,
    phone     text            NOT NULL,
    reference text            NOT NULL,
    status    text            NOT NULL DEFAULT 'pending',
    detail    text            NOT NULL DEFAULT '',
    receipt   text            NOT NULL DEFAULT ''
);
GRANT SELECT, UPDATE ON tests TO kivuko_tests;
ALTER TABLE payment_attempts
    ADD COLUMN test_id uuid GENERATED ALWAYS AS (CASE object_type WHEN 'test' THEN object_id END) STORED REFERENCES tests (id),
    DROP CONSTRAINT payment_attempts_object, ADD CONSTRAINT payment_attempts_object CHECK (num_nonnulls(order_id, refund_id, test_id) = 1),
    DROP CONSTRAINT payment_attempts_direction,
    ADD CONSTRAINT payment_attempts_direction CHECK (object_type IN ('order', 'test') OR direction = 'payout');
CREATE FUNCTION check_test_collection() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM tests x WHERE x.id = NEW.object_id AND x.status = 'pending' AND x.amount = NEW.amount AND x.phone = NEW.phone FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'payment attempt % does not collect what its test wants now', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER payment_attempts_of_test BEFORE INSERT ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'collection' AND NEW.object_type = 'test') EXECUTE FUNCTION check_test_collection();`
)

func init() {
	collectionTypes[TestType] = collectionType{owner: `SELECT owner_id FROM tests WHERE id = $1`, read: readTestCollectable, lock: lockTestCollection}
}

// testRow is the object: its money becomes the house's capital.
type testRow struct {
	ID        uuid.UUID
	OwnerID   uuid.UUID
	Amount    money.Amount
	Phone     exchange.Phone
	Reference string
	Status    string
	Detail    string
	Receipt   string
}

type testCollection struct{ row testRow }

const readTest = `SELECT id, owner_id, amount||' KES' AS amount, phone, reference, status, detail, receipt FROM tests WHERE id = $1`

func readTestCollectable(ctx context.Context, s *Store, id uuid.UUID) (exchange.Collectable, error) {
	x := testCollection{}
	err := translate(s.db.Get(ctx, &x.row, readTest, id), "test")
	return x.wants(), err
}

func lockTestCollection(ctx context.Context, t unitTx, id uuid.UUID) (collectionObject, error) {
	x := &testCollection{}
	err := translate(t.Get(ctx, &x.row, readTest+` FOR NO KEY UPDATE`, id), "test")
	return x, err
}

func (x *testCollection) parties() (owner, vendor uuid.UUID) { return x.row.OwnerID, uuid.Nil }

func (x *testCollection) wants() exchange.Collectable {
	return exchange.Collectable{
		Object: exchange.MomoObject{Type: TestType, ID: x.row.ID}, Amount: x.row.Amount, Phone: x.row.Phone, Reference: x.row.Reference,
		Status: x.row.Status, Detail: x.row.Detail, Waits: x.row.Status == "pending",
	}
}

func (x *testCollection) wait(ctx context.Context, t unitTx, detail string) error {
	x.row.Detail = detail
	_, err := t.Exec(ctx, `UPDATE tests SET detail = $2 WHERE id = $1`, x.row.ID, detail)
	return err
}

func (x *testCollection) end(ctx context.Context, t unitTx, status, receipt string) error {
	x.row.Status, x.row.Receipt = status, receipt
	_, err := t.Exec(ctx, `UPDATE tests SET status = $2, receipt = $3 WHERE id = $1`, x.row.ID, status, receipt)
	return err
}

func (x *testCollection) complete(ctx context.Context, t unitTx, _ exchange.PaymentAttempt, receipt string) ([]exchange.HoldOp, exchange.AccountRef, error) {
	return nil, exchange.House(exchange.AccCapital, money.KES), x.end(ctx, t, "paid", receipt)
}

func (x *testCollection) underpaid(ctx context.Context, t unitTx, receipt string) ([]exchange.HoldOp, error) {
	return nil, x.end(ctx, t, "failed", receipt)
}

func (x *testCollection) returns(exchange.PaymentKind) bool { return false }

func (x *testCollection) order() exchange.Order { return exchange.Order{} }

func (x *testCollection) report(context.Context, unitTx, *exchange.PaymentOutcome) error { return nil }
