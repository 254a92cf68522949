#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# systemd 252.39 (Debian 12): `systemd-analyze verify` of a valid unit whose manual page is not installed.
#
# A good guess: `verify` judges what systemd would run, and Documentation= is a text for a person. The unit is valid, so
# the exit status is 0, perhaps with a warning.
#
# What happens: for each man: of Documentation= it runs `man`, and a page that is not there is an error: exit status 1.
# Containers and small images leave manual pages out, so there each unit of a package fails that names its page.
# --man=no leaves this check out; the other checks stay.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
version=252.39-1~deb12u2
apt-get -qq download "systemd=$version" "libsystemd-shared=$version"
for package in ./*.deb; do dpkg -x "$package" .; done
library=$(dirname "$(find "$PWD/usr/lib" -name 'libsystemd-shared*')")
verify() { LD_LIBRARY_PATH=$library usr/bin/systemd-analyze verify "$@"; }

page='of-a-page-that-is-not-installed(8)'
printf '%s\n' '[Unit]' "Documentation=man:$page" '[Service]' ExecStart=/bin/true >valid.service
status=0
said=$(verify ./valid.service 2>&1) || status=$?
echo "systemd $version: verify says: $said, exit status $status"
verify --man=no ./valid.service
echo 'with --man=no: exit status 0'
[[ $status -eq 1 && $said == *"Command 'man $page' failed with code"* ]]
