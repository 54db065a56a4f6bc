-- The roles and the database of Kivuko's books, on the first start of an empty volume. The service's role owns
-- nothing, so it can't change the triggers that guard it; migrations run as the owner. Passwords come from files.
\set ON_ERROR_STOP on
\set owner_password `cat "${SECRETS:-/run/secrets}/books_owner_password"`
\set service_password `cat "${SECRETS:-/run/secrets}/books_service_password"`

CREATE ROLE kivuko_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE kivuko_app NOLOGIN;
CREATE ROLE kivuko_service LOGIN PASSWORD :'service_password' IN ROLE kivuko_app;
CREATE DATABASE kivuko OWNER kivuko_owner;
REVOKE ALL ON DATABASE kivuko FROM PUBLIC;
GRANT CONNECT ON DATABASE kivuko TO kivuko_app;
