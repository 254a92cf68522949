#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# draw.sh [DIR]: draws the pictures of this folder, and test/nightly/bench/bench.svg, again, from real runs. DIR is
# where the examples are built (default build/examples; the library stands in the folder above). bench.svg takes some
# minutes, and builds what it measures. owner.svg needs root, ser2net and keepalived.
# Draw on a machine that does nothing else, and look at them before they are committed: `rsvg-convert acts.svg -o
# acts.png`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=${1:-$here/../../build/examples}

picture() { # NAME COMMAND...
  "${@:2}" >"$here/$1.new"
  mv "$here/$1.new" "$here/$1"
}

"$here/../demo.sh" --no-install --programs "$programs" --picture "$here/acts.svg"
picture acquire.svg python3 "$here/acquire.py" "$programs/firmware"
picture restart.svg python3 "$here/restart.py" "$programs/../libredlock.so"
record=$(mktemp -d)
trap 'rm -r "$record"' EXIT
"$here/../site/owner.sh" --redlock "$programs/../redlock" --record "$record"
picture owner.svg python3 "$here/owner.py" "$record"
"$here/../../test/nightly/bench/run.sh" picture
cp "$here/../../build/bench/bench.svg" "$here/../../test/nightly/bench/"
