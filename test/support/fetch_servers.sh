#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: test/support/fetch_servers.sh FOLDER [NAME-VERSION...]      (test/servers.sh --fetch calls this)
# Builds servers from the upstream sources that Debian's source packages hold, without Debian's patches, into
# FOLDER/NAME-VERSION; what is there already is left alone. A suite moves on to other versions. Then the server cannot
# be had by this way any more, and the script says so.
set -euo pipefail
folder=$1
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source toolchains/packages.sh

# server, suite, and the SHA-256 of its upstream sources
table='
redis-6.0.16   bullseye      8bea58a468bb67bedc92d8c2e44c170e42e6ea02527cbc5d233e92e8d78d1b99
redis-7.0.15   bookworm      4b1dc4ee6d622a09fff9c6777191209750fb5e5a725ef78ea012d6eef4c22982
redis-8.0.2    trixie        caf3c0069f06fc84c5153bd2a348b204c578de80490c73857bee01d9b5d7401f
redis-8.6.3    experimental  58d0d1eb49a1ea6c2179659707fec171b1e2e2b8d5157ed2ec59d1d66ad5a654
valkey-8.1.1   trixie        d9bbd82eecb82f359e649a0007ad3dc1b47cc15afa626348ca86b73c4ae2c7ee
valkey-9.1.2   forky         8e8557da7426a51b4e0fb514a65ef6241dc7c85cb408243af389070abf379cec
'

# build SERVER SUITE SUM
build() {
  local name=${1%-*} version=${1#*-} scratch=$folder/scratch/$1 known full tarball
  known=$(apt-cache "${own_options[@]}" showsrc --only-source "$name" | sed -n 's/^Version: //p' | sort -u)
  # Debian's version: an epoch may stand before upstream's, and +dfsg1 behind it; a dash ends it.
  full=$(grep -m 1 -E "^([0-9]+:)?${version//./\\.}(\+dfsg[0-9]+)?-" <<<"$known") || {
    echo "Debian's $2 has no $name $version; the suites have: ${known//$'\n'/, }"
    return 1
  }
  rm -rf "$scratch"
  mkdir -p "$scratch/source"
  (cd "$scratch" && apt-get "${own_options[@]}" source --only-source --tar-only "$name=$full") || return 1
  tarball=$(echo "$scratch"/*.orig.tar.*)
  echo "$3  $tarball" | sha256sum --check || {
    echo "the sources of $1 are not those that were tried"
    return 1
  }
  tar -xf "$tarball" -C "$scratch/source" --strip-components=1
  # The Makefile asks git for a commit, and would find one of ours.
  GIT_DIR=/dev/null nice make -C "$scratch/source/src" -j "$(nproc)" MALLOC=libc BUILD_TLS=no USE_SYSTEMD=no \
    "$name-server" || return 1
  mkdir -p "$folder/$1"
  mv "$scratch/source/src/$name-server" "$folder/$1/"
  rm -r "$scratch"
}

wanted=${*:-$(awk '{ print $1 }' <<<"$table")}
for server in $wanted; do
  grep -q "^$server " <<<"$table" || { echo "the table of $0 has no $server" >&2; exit 2; }
done
mkdir -p "$folder/log"
# shellcheck disable=SC2046
own_lists "$folder/apt" source $(awk '{ print $2 }' <<<"$table" | sort -u)

status=0
while read -r server suite sum; do
  [[ " ${wanted//$'\n'/ } " == *" $server "* ]] || continue
  log=$folder/log/$server.log
  if [[ -x $folder/$server/${server%-*}-server ]]; then
    echo "$server: is there"
  elif build "$server" "$suite" "$sum" >"$log" 2>&1; then
    echo "$server: built"
  else
    echo "$server: FAILED: $(grep -m 1 'error:' "$log" || tail -n 1 "$log") (log: $log)"
    status=1
  fi
done < <(grep . <<<"$table")
exit $status
