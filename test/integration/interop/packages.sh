#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# packages.sh FOLDER: the npm packages of package-lock.json, in FOLDER. Nothing is asked of npm's registry if they are
# there. Exit 77: they cannot be had.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../../../toolchains/packages.sh"
mkdir -p "$1"
cd "$1"
! cmp -s "$here/package-lock.json" complete || exit 0
rm -f complete
cp "$here/package.json" "$here/package-lock.json" .
printf "%s\n" audit=false fund=false ignore-scripts=true omit-lockfile-registry-resolved=true update-notifier=false \
  fetch-retry-mintimeout=1000 fetch-retry-maxtimeout=5000 >.npmrc
three_tries npm ci || exit
cp package-lock.json complete
