#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Makes a root folder of Debian's armhf or arm64, with what the library and its tests need on the target:
#   toolchains/sysroot.sh ARCHITECTURE [release]
# It is build/sysroot/ARCHITECTURE, where the toolchain files look. With `release` it has what the presets need that
# build no tests (armhf-release). The packages are unpacked and not installed, and need not have the versions of this
# machine's. Nothing of the machine is changed, and root is not needed. Exit 77: the packages cannot be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source toolchains/packages.sh
architecture=$1
root=$PWD/build/sysroot/$architecture
# The libraries of the build, of the tests, of the tests of TLS, and an interpreter for those of the Python module.
packages=(libuv1-dev libcjson-dev libstdc++6 libgtest-dev libgmock-dev liblua5.1-0-dev libmbedtls-dev libssl-dev
  python3-minimal libpython3-stdlib)
all=${packages[*]}
[[ ${2-} != release ]] || packages=(libuv1-dev libcjson-dev)

download() {
  own_lists "$root.apt" "$architecture" "$1" "$1-security"
  apt-get "${own_options[@]}" install --yes --download-only --no-install-recommends "${packages[@]}" || return
  # These two need a compiler, which here is a cross compiler.
  [[ $architecture != armhf || ${packages[*]} != "$all" ]] ||
    (cd "$root.apt/cache/archives" && apt-get "${own_options[@]}" download musl musl-dev)
}

if [[ -e $root/packages && $(<"$root/packages") =~ ^("${packages[*]}"|"$all")$ ]]; then exit 0; fi
rm -rf "$root" "$root.apt"
mkdir -p "$root"
three_tries download "$(debian_suite)" || exit
for package in "$root.apt"/cache/archives/*.deb; do dpkg -x "$package" "$root"; done
rm -r "$root.apt"
# What names files of the root that runs. cJSON has a .pc file, too.
rm -r "$root"/usr/lib/*/cmake/cJSON
[[ ! -e $root/usr/bin/arm-linux-musleabihf-gcc ]] ||
  sed -i "s|/usr/|$root/usr/|g" "$root/usr/bin/arm-linux-musleabihf-gcc" \
    "$root/usr/lib/arm-linux-musleabihf/musl-gcc.specs"
echo "${packages[*]}" >"$root/packages"
