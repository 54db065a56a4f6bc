#!/bin/sh
# Makes the deployment's certificates that are missing in a directory: two authorities, the servers' certificates that the first
# signed, and one for each process that uses Temporal, that the second signed. To renew a certificate, remove its two files and run
# this again. No process needs the authorities' keys: keep them elsewhere.
set -eu

cd "${1:?the directory of the secrets}"
days=${DAYS:-398}
umask 077
config=$(mktemp)
trap 'rm -f "$config" request.csr' EXIT
cat >"$config" <<'END'
[req]
distinguished_name = name
prompt = no
[name]
CN = ${ENV::NAME}
[authority]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = DNS:${ENV::NAME}
[client]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
subjectAltName = DNS:${ENV::NAME}
END

# authority <file>: a certificate that signs itself.
authority() {
	[ ! -e "$1.crt" ] || return 0
	NAME="kivuko $1" openssl req -config "$config" -extensions authority -x509 -days 3650 -noenc \
		-newkey ec -pkeyopt ec_paramgen_curve:P-256 -keyout "$1.key" -out "$1.crt"
	chmod 0444 "$1.crt"
}

# certificate <authority> <use> <name> <file>: containers read it as their own users.
certificate() {
	[ ! -e "$4.crt" ] || return 0
	export NAME="$3"
	openssl req -config "$config" -noenc -newkey ec -pkeyopt ec_paramgen_curve:P-256 -keyout "$4.key" -out request.csr
	openssl x509 -req -in request.csr -CA "$1.crt" -CAkey "$1.key" -CAcreateserial -days "$days" -extfile "$config" -extensions "$2" -out "$4.crt"
	chmod 0444 "$4.crt" "$4.key"
}

authority ca
authority clients
for name in books histories temporal; do
	certificate ca server "$name" "$name"
done
for name in api apply flows momo webhooks chain_tron chain_ethereum chain_solana signer_tron signer_ethereum signer_solana ui tools temporal; do
	certificate clients client "$name" "client_$name"
done
# PostgreSQL refuses a key that others may read; its user in the containers is 999.
chmod 0600 books.key histories.key
if [ "$(id -u)" -eq 0 ]; then
	chown 999:999 books.key histories.key
fi
