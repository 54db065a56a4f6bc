#!/bin/sh
# Brings Temporal's two databases to the schema of this release. A current one stays as it is.
set -eu
SQL_PASSWORD=$(cat "${SECRETS:-/run/secrets}/histories_password")
export SQL_PASSWORD
for database in temporal temporal_visibility; do
	schema=postgresql/v12/temporal
	if [ "$database" = temporal_visibility ]; then schema=postgresql/v12/visibility; fi
	temporal-sql-tool --database "$database" setup-schema --version 0.0
	temporal-sql-tool --database "$database" update-schema --schema-name "$schema"
done
