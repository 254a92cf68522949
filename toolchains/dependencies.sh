#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds libuv and cJSON as static libraries for a target whose distribution has none, from the sources that Debian
# ships and signs:
#   toolchains/dependencies.sh TOOLCHAIN        e.g. arm-linux-musleabihf, for toolchains/TOOLCHAIN.cmake
# They are installed below build/dependencies/TOOLCHAIN, where the toolchain file looks. Nothing of the machine is
# changed: the package lists that the sources need are kept in build/dependencies too. Exit 77: the sources cannot be
# had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source toolchains/packages.sh
toolchain=$1
folder=$PWD/build/dependencies
prefix=$folder/$toolchain
[[ -e toolchains/$toolchain.cmake ]] || { echo "there is no toolchains/$toolchain.cmake" >&2; exit 2; }
[[ ! -e $prefix/complete ]] || exit 0

download() {
  own_lists "$folder" source "$1" "$1-security"
  (cd "$folder/sources" && apt-get "${own_options[@]}" source --only-source --download-only libuv1 cjson)
}

fetch_sources() {
  [[ ! -e $folder/sources/complete ]] || return 0
  rm -rf "$folder/sources"
  mkdir -p "$folder/sources"
  three_tries download "$(debian_suite)" || exit
  for name in libuv1 cjson; do
    mkdir "$folder/sources/$name"
    tar -xf "$folder/sources/${name}"_*.orig.tar.* -C "$folder/sources/$name" --strip-components=1
    tar -xf "$folder/sources/${name}"_*.debian.tar.* -C "$folder/sources/$name"
    # Debian's patches carry the security fixes.
    (cd "$folder/sources/$name" && while read -r patch _; do
      [[ -z $patch || $patch == \#* ]] || patch -s -p1 <"debian/patches/$patch"
    done <debian/patches/series)
  done
  touch "$folder/sources/complete"
}

build() {
  local name=$1
  shift
  rm -rf "$folder/build-$toolchain-$name"
  cmake -S "$folder/sources/$name" -B "$folder/build-$toolchain-$name" -G Ninja -Wno-dev \
    -DCMAKE_TOOLCHAIN_FILE="$PWD/toolchains/$toolchain.cmake" -DCMAKE_BUILD_TYPE=MinSizeRel \
    -DCMAKE_C_FLAGS="-ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables -fno-unwind-tables" \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_TESTING=OFF "$@"
  cmake --build "$folder/build-$toolchain-$name" || exit 1
  cmake --install "$folder/build-$toolchain-$name"
}

fetch_sources
rm -rf "$prefix"
build libuv1
build cjson -DBUILD_SHARED_LIBS=OFF -DENABLE_CJSON_TEST=OFF -DENABLE_CJSON_UTILS=OFF -DENABLE_TARGET_EXPORT=ON
# libuv always builds both and its CMake package insists on both: keep the archive, under the name that libuv.pc gives.
rm -rf "$prefix"/lib/libuv.so* "$prefix/lib/cmake/libuv"
ln -s libuv_a.a "$prefix/lib/libuv.a"
touch "$prefix/complete"
