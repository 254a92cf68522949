#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The archive that every package here is built from: archive.sh FOLDER writes FOLDER/redlock-VERSION.tar.gz and prints
# its path. The same commit gives the same bytes everywhere, so a recipe can name the archive's hash. The recipes are
# left out: they name the hash, so the archive cannot hold them.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mkdir -p "$1" && cd "$1" && pwd)
version=$(sed -n 's/^project(redlock VERSION \([0-9.]*\) .*/\1/p' "$source/CMakeLists.txt")
archive=$folder/redlock-$version.tar.gz

# Without git, this is an unpacked archive already.
files() {
  if git -C "$source" rev-parse HEAD >/dev/null 2>&1; then
    git -C "$source" ls-files -z
  else
    (cd "$source" && find . -name 'build*' -prune -o -type f -printf '%P\0')
  fi
}

# The version of an archive that is no release says so (redlockVersion.cmake).
extra=$(mktemp -d)
trap 'rm -rf "$extra"' EXIT
if [[ -e $source/.commit ]]; then
  cp "$source/.commit" "$extra"
else
  "$source/toolchains/packaging/commit.sh" >"$extra/.commit"
fi

date=$(git -C "$source" log -1 --format=%ct 2>/dev/null || stat -c %Y "$source/CMakeLists.txt")
files | grep -zvE '^(\.ci|toolchains/packaging)/' | tar -C "$source" --null --files-from=- --sort=name \
  --mtime="@$date" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=ustar \
  --transform="s|^|redlock-$version/|" -cf - -C "$extra" .commit | gzip -9n >"$archive"
echo "$archive"
