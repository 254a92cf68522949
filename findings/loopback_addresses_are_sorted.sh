#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# glibc 2.36 (Debian 12), and a name with several addresses of 127.0.0.0/8 in /etc/hosts.
#
# A good guess: getaddrinfo() gives the addresses of a name in the order of the file, at least where all of them are of
# one family, one scope and one network; or it sorts them by number.
#
# What happens: getaddrinfo() sorts by RFC 3484. The source address for any of 127.0.0.0/8 is 127.0.0.1, and rule 9
# prefers the destination that shares the longest prefix with it: 127.0.0.1 comes first wherever it stands, and the
# others follow by likeness, 127.0.0.3 before 127.0.0.8 before 127.0.0.128. A test that gives a name two loopback
# addresses, to see the second one tried, sees another first one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
version=2.36-9+deb12u14
apt-get -qq download "libc6=$version" "libc-bin=$version"
for package in ./*.deb; do dpkg -x "$package" .; done
library=$(dirname "$(find . -name libc.so.6)")
loader=$(find "$library" -name 'ld-linux*' | head -n 1)

echo '127.0.0.128 127.0.0.8 127.0.0.3 127.0.0.1' | tr ' ' '\n' | sed 's/$/ several.test/' >hosts
# The file stands in the place of /etc/hosts in a mount namespace of its own.
looked_up=$(unshare --mount sh -c "mount --bind hosts /etc/hosts &&
  '$loader' --library-path '$library' usr/bin/getent ahostsv4 several.test" |
  awk '$2 == "STREAM" { printf "%s%s", gap, $1; gap = " " }')
echo "glibc $version: the file has .128 .8 .3 .1, and getaddrinfo() says: $looked_up"
[[ $looked_up == '127.0.0.1 127.0.0.3 127.0.0.8 127.0.0.128' ]]
