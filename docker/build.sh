#!/bin/sh
# Makes the image's content: <directory>/image, its files, and <directory>/spool, heads and files, empty directories. The Dockerfile
# and the checks both run it, so that they build the same. REVISION is the commit of the files.
set -eu

out=${1:?the directory to fill}
case ${REVISION:-} in
*[!0-9a-f]* | '') echo "REVISION must be the commit's name, 40 hexadecimal digits: flows are pinned to it" >&2 && exit 1 ;;
esac
if [ ${#REVISION} -ne 40 ]; then
	echo "REVISION must be the commit's name, 40 hexadecimal digits, and has ${#REVISION}" >&2
	exit 1
fi

cd "$(dirname "$0")/.."
mkdir -p "$out/image/etc/ssl/certs" "$out/spool" "$out/heads" "$out/files"
# No C and no paths of this machine: the same files give the same binary everywhere.
export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=readonly GOEXPERIMENT='' GOAMD64=v1 GOARM64=v8.0
go build -trimpath -buildvcs=false -ldflags="-s -w -buildid= -X main.revision=$REVISION" -o "$out/image/kivuko" .
# The root certificates of the base image. No time zone data is needed: Kenya's day is computed.
cp /etc/ssl/certs/ca-certificates.crt "$out/image/etc/ssl/certs/ca-certificates.crt"
find "$out/image" -type d -exec chmod 0755 {} +
chmod 0444 "$out/image/etc/ssl/certs/ca-certificates.crt"
chmod 0555 "$out/image/kivuko"
