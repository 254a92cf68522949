#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# library.sh COMMIT SOURCE FOLDER: builds the library of an earlier version in FOLDER, and worker.c with that version's
# header. Nothing but the library is built, without an optimizer: it takes a few seconds. Told by the environment:
# CMAKE, CC, CXX. A clone without that commit, or no clone, is no error: FOLDER/why then says why there is no worker.
set -euo pipefail
commit=$1 source=$2 folder=$3

rm -rf "$folder"
mkdir -p "$folder/source"
if ! git -C "$source" cat-file -e "$commit^{commit}" 2>"$folder/why"; then
  echo "this clone does not have the commit $commit" >>"$folder/why"
  exit 0
fi
rm "$folder/why"

git -C "$source" archive "$commit" CMakeLists.txt include port src toolchains/cmake | tar -x -C "$folder/source"
"$CMAKE" -S "$folder/source" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER="$CC" \
  -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_CXX_FLAGS=-O0 -DREDLOCK_LTO=OFF -DREDLOCK_CCACHE=ON -DREDLOCK_ASSERTS=ON \
  -DREDLOCK_BUILD_TESTS=OFF -DREDLOCK_BUILD_EXAMPLES=OFF -DREDLOCK_INSTALL=OFF >"$folder/log"
"$CMAKE" --build "$folder/build" --target redlock >>"$folder/log" || { cat "$folder/log"; exit 1; }
# libuv and cJSON are the library's own affair.
"$CC" -Wall -Wextra -Werror -I"$folder/source/include" "$source/test/integration/older/worker.c" -o "$folder/worker" \
  -L"$folder/build" -lredlock -Wl,--allow-shlib-undefined
