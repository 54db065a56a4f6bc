-- Temporal's role and its two databases, on the first start of an empty volume.
\set ON_ERROR_STOP on
\set password `cat "${SECRETS:-/run/secrets}/histories_password"`

CREATE ROLE temporal LOGIN PASSWORD :'password';
CREATE DATABASE temporal OWNER temporal;
CREATE DATABASE temporal_visibility OWNER temporal;
REVOKE ALL ON DATABASE temporal, temporal_visibility FROM PUBLIC;
