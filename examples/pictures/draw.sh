#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# draw.sh [DIR]: draws the pictures of this folder again, from real runs. DIR is where the examples are built (default
# build/examples). Draw on a machine that does nothing else, and look at them before they are committed:
# `rsvg-convert acts.svg -o acts.png`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=${1:-$here/../../build/examples}

"$here/../demo.sh" --no-install --programs "$programs" --picture "$here/acts.svg"
python3 "$here/acquire.py" "$programs/blocking_service" >"$here/acquire.svg.new"
mv "$here/acquire.svg.new" "$here/acquire.svg"
