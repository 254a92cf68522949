#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Debian packages: debian.sh FOLDER [ARCHITECTURE] builds source and binary packages in FOLDER, for this machine or,
# with armhf or arm64, across. It needs debhelper, cmake, pkg-config, libuv1-dev and libcjson-dev (of the ARCHITECTURE).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mkdir -p "$1" && cd "$1" && pwd)
architecture=${2:-$(dpkg --print-architecture)}
archive=$("$here/archive.sh" "$folder")
name=$(basename "$archive" .tar.gz)
version=${name#redlock-}

rm -rf "${folder:?}/$name"
mv "$archive" "$folder/redlock_$version.orig.tar.gz"
tar -C "$folder" -xf "$folder/redlock_$version.orig.tar.gz"
cp -r "$here/debian" "$folder/$name"
# A revision below -1: a package of Debian's own replaces ours. One that knows TLS is another package: dpkg installs no
# program beside the other library.
revision=0local1
[[ " ${DEB_BUILD_PROFILES:-} " != *" pkg.redlock.openssl "* ]] || revision+=+openssl
cat >"$folder/$name/debian/changelog" <<TEXT
redlock ($version-$revision) unstable; urgency=medium

  * Release $version. What has changed since earlier releases is in
    changelog.gz.

 -- redlock maintainers <redlock@example.org>  $(date -Rud "@$(stat -c %Y "$folder/$name/CMakeLists.txt")")
TEXT

# A cross build is not asked for crossbuild-essential: the compiler, libuv and cJSON are enough.
cross=()
[[ $architecture == "$(dpkg --print-architecture)" ]] || cross=(--host-arch="$architecture" -d)
cd "$folder/$name"
dpkg-buildpackage --unsigned-source --unsigned-changes --jobs="${CMAKE_BUILD_PARALLEL_LEVEL:-2}" "${cross[@]}"
