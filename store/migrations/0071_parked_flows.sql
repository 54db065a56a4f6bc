-- +goose Up
-- The flows that wait for an operator, one row each. A flow writes its row when it parks and deletes it when it goes on.
-- Temporal's search attributes say the same and are right when the two differ: a scheduled flow compares them. No row moves
-- money, and none is proof of anything.
CREATE TABLE parked_flows (
    workflow_id text        PRIMARY KEY CHECK (char_length(workflow_id) BETWEEN 1 AND 200),
    run_id      text        NOT NULL CHECK (char_length(run_id) BETWEEN 1 AND 100),
    flow_type   text        NOT NULL CHECK (char_length(flow_type) BETWEEN 1 AND 100),
    object_type text        NOT NULL DEFAULT '' CHECK (char_length(object_type) <= 40),
    object_id   uuid,
    reason      text        NOT NULL CHECK (reason ~ '^[a-z0-9_-]{1,60}$'),
    network     text        NOT NULL DEFAULT '',
    since       timestamptz NOT NULL,
    CONSTRAINT parked_flows_object CHECK ((object_type = '') = (object_id IS NULL))
);
CREATE INDEX parked_flows_since_idx ON parked_flows (since, workflow_id);
CREATE INDEX parked_flows_reason_idx ON parked_flows (reason, since, workflow_id);
CREATE INDEX parked_flows_object_idx ON parked_flows (object_id) WHERE object_id IS NOT NULL;

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON parked_flows TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
