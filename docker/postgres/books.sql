-- The roles and the database of Kivuko's books, on the first start of an empty volume. Each process logs in with a role of its
-- own, whose rights the migrations write (store/roles.go). None but kivuko_migrate owns anything, so none can change the triggers
-- that guard it. Passwords come from files.
\set ON_ERROR_STOP on
\set migrate_password `cat "${SECRETS:-/run/secrets}/books_migrate_password"`
\set api_password `cat "${SECRETS:-/run/secrets}/books_api_password"`
\set flows_password `cat "${SECRETS:-/run/secrets}/books_flows_password"`
\set momo_password `cat "${SECRETS:-/run/secrets}/books_momo_password"`
\set chain_password `cat "${SECRETS:-/run/secrets}/books_chain_password"`
\set signer_password `cat "${SECRETS:-/run/secrets}/books_signer_password"`
\set webhooks_password `cat "${SECRETS:-/run/secrets}/books_webhooks_password"`
\set codec_password `cat "${SECRETS:-/run/secrets}/books_codec_password"`

CREATE ROLE kivuko_migrate LOGIN PASSWORD :'migrate_password';
CREATE ROLE kivuko_api LOGIN PASSWORD :'api_password';
CREATE ROLE kivuko_flows LOGIN PASSWORD :'flows_password';
CREATE ROLE kivuko_momo LOGIN PASSWORD :'momo_password';
CREATE ROLE kivuko_chain LOGIN PASSWORD :'chain_password';
CREATE ROLE kivuko_signer LOGIN PASSWORD :'signer_password';
CREATE ROLE kivuko_webhooks LOGIN PASSWORD :'webhooks_password';
CREATE ROLE kivuko_codec LOGIN PASSWORD :'codec_password';
CREATE DATABASE kivuko OWNER kivuko_migrate;
REVOKE ALL ON DATABASE kivuko FROM PUBLIC;
GRANT CONNECT ON DATABASE kivuko TO kivuko_api, kivuko_flows, kivuko_momo, kivuko_chain, kivuko_signer, kivuko_webhooks, kivuko_codec;
