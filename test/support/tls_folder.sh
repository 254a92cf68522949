#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Makes the folder that REDLOCK_TEST_TLS names: an authority, and the certificate of servers on this machine, for ten
# days.
set -euo pipefail
folder=${1:?usage: tls_folder.sh FOLDER}
mkdir -p "$folder"
cd "$folder"
make_key() { openssl ecparam -name prime256v1 -genkey -noout; }
make_key >ca.key
openssl req -new -x509 -key ca.key -subj "/CN=redlock test authority" -days 10 -sha256 -out ca.pem
make_key >server.key
openssl req -new -key server.key -subj "/CN=redlock test" -out server.csr
printf 'subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:master.test\nbasicConstraints=CA:FALSE\n' >server.ext
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 10 -sha256 -extfile server.ext \
  -out server.pem
