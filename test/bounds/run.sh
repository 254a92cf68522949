#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The exhaustive tests with their far bounds, built by clang with AddressSanitizer, UndefinedBehaviorSanitizer and its
# check for unsigned overflow; then with the near bounds and gcov, to print which lines and branches they reach. About
# five minutes; everything is written below build/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

install=yes
for argument in "$@"; do
  case $argument in
    --no-install) install=no ;;
    --help | -h) echo "usage: test/bounds/run.sh [--no-install]"; exit 0 ;;
    *) echo "run.sh: unknown option: $argument" >&2; exit 2 ;;
  esac
done
source toolchains/packages.sh
install_missing "$install" build-essential clang cmake ninja-build pkg-config libuv1-dev libcjson-dev libgtest-dev \
  libgmock-dev liblua5.1-0-dev gcovr || exit 1

# Where numbers are meant to wrap: the standard library, the test for a digit, and the reader when it negates a number.
mkdir -p build/bounds
cat >build/bounds/meant.txt <<'TEXT'
[unsigned-integer-overflow]
src:/usr/*
src:*/base/digits.*
fun:*parse_integer*
TEXT
checks="-fsanitize=address,undefined,unsigned-integer-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer"
checks+=" -fsanitize-ignorelist=$PWD/build/bounds/meant.txt"
cmake -S . -B build/bounds -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
  -DREDLOCK_BUILD_TESTS=ON -DREDLOCK_CCACHE=ON -DCMAKE_C_FLAGS="-O1 $checks" -DCMAKE_CXX_FLAGS="-O1 $checks" >/dev/null
cmake --build build/bounds --target bounds_tests
REDLOCK_BOUNDS=far ctest --test-dir build/bounds -L '^bounds$' -V | grep -E "texts|sequences|tests passed|Failed"

cmake --preset coverage >/dev/null
cmake --build --preset coverage --target bounds_tests
find build/coverage -name '*.gcda' -delete
ctest --test-dir build/coverage -L '^bounds$' --output-on-failure >/dev/null
gcovr --root . --object-directory build/coverage --exclude-throw-branches --branches \
  --filter 'src/(resp/reader|master/(tx|shared|fifo|clock_watch)|lock/(table|validity)|base/time)\.'
