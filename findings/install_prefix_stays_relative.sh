#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# CMake 3.25.1 (Debian 12), and `cmake --install BUILD --prefix out`.
#
# A good guess: the prefix is made absolute, as a relative CMAKE_INSTALL_PREFIX is at configure time (a cache entry of
# type PATH), so a script of install(SCRIPT) or install(CODE) may write it into a file, a unit or a .pc.
#
# What happens: --prefix is handed on as it was typed. install(CODE) sees CMAKE_INSTALL_PREFIX = "out", and what it
# writes names a path that is true only in the folder in which somebody typed the command. The same prefix given by
# -DCMAKE_INSTALL_PREFIX=out is absolute.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
version=3.25.1-1
apt-get -qq download "cmake=$version" "cmake-data=$version" libarchive13 libjsoncpp25 librhash0 libuv1
for package in ./*.deb; do dpkg -x "$package" unpacked; done
LD_LIBRARY_PATH=$(dirname "$(find "$PWD/unpacked" -name 'libuv.so.1')")
export LD_LIBRARY_PATH
cmake=$PWD/unpacked/usr/bin/cmake

mkdir source
cat >source/CMakeLists.txt <<'T'
cmake_minimum_required(VERSION 3.20)
project(prefix NONE)
install(CODE "message(STATUS \"prefix: \${CMAKE_INSTALL_PREFIX}\")")
T
"$cmake" -S source -B build >/dev/null
by_option=$("$cmake" --install build --prefix out | sed -n 's/^-- prefix: //p')
"$cmake" -S source -B build -DCMAKE_INSTALL_PREFIX=out >/dev/null
by_cache=$("$cmake" --install build | sed -n 's/^-- prefix: //p')
echo "CMake $version: --prefix out: '$by_option'; -DCMAKE_INSTALL_PREFIX=out: '${by_cache/#$PWD/FOLDER}'"
[[ $by_option == out && $by_cache == "$PWD/out" ]]
