#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What follows the number of the version: nothing for the files of the tag vX.Y.Z, "-dev.COMMIT" for another commit,
# "-dev.COMMIT.changed" for files that are not those of the commit. Fails without git.
set -euo pipefail
command -v git >/dev/null || exit 1
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
version=$(sed -n 's/^project(redlock VERSION \([0-9.]*\) .*/\1/p' "$source/CMakeLists.txt")
commit=$(git -C "$source" rev-parse --short=10 HEAD)
changed=
if [[ -n $(git -C "$source" status --porcelain --untracked-files=no) ]]; then changed=.changed; fi
if [[ -z $changed && $(git -C "$source" tag --points-at HEAD) == *"v$version"* ]]; then exit 0; fi
echo "-dev.$commit$changed"
