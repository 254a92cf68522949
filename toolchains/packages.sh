# SPDX-License-Identifier: MIT
#
# Sourced by the scripts that set a machine up: install_missing INSTALL PACKAGE... installs Debian packages that are not
# there, after it has printed which. With INSTALL=no it only prints them and fails. A package of another architecture is
# written NAME:ARCH; cross_packages ARCH TRIPLET and musl_packages print the ones that a cross build needs, and
# tls_packages [ARCH] the ones for TLS. CMake asks cross_packages and tls_packages too, when a cross build is configured
# (cmake/redlockCross.cmake). source_lists FOLDER SUITE... fetches Debian's lists of source packages.

# A name without an architecture means this machine's; the package may be there for others, too.
package_present() {
  local architecture=${1#*:}
  if [[ $architecture == "$1" ]]; then architecture=$(dpkg --print-architecture); fi
  dpkg-query -W -f '${db:Status-Status} ${Architecture}\n' "$1" 2>/dev/null | grep -qxE "installed ($architecture|all)"
}

cross_packages() {
  echo "gcc-$2 g++-$2 qemu-user libuv1-dev:$1 libcjson-dev:$1 libstdc++6:$1 libgtest-dev:$1 libgmock-dev:$1"
}

# The TLS libraries; the tests of TLS need OpenSSL with either. All architectures of libssl3 must have one version.
tls_packages() { echo "libmbedtls-dev${1:+:$1} libssl-dev${1:+:$1}"; }

musl_packages() { echo "gcc-arm-linux-gnueabihf g++-arm-linux-gnueabihf musl-dev:armhf qemu-user"; }

install_missing() {
  local install=$1 package foreign missing=() sudo=()
  shift
  if ! command -v dpkg-query >/dev/null; then
    echo "This is no Debian: these packages, or what they are called here, are taken to be present: $*"
    return 0
  fi
  for package in "$@"; do
    package_present "$package" || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0

  if [[ $install == no ]]; then
    echo "Missing packages: ${missing[*]}" >&2
    echo "Install them: apt-get install --no-install-recommends ${missing[*]}" >&2
    return 1
  fi
  echo "Installing packages: ${missing[*]}"
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || { echo "Neither root nor sudo: cannot install them." >&2; return 1; }
    sudo=(sudo)
  fi
  for foreign in $(printf '%s\n' "${missing[@]}" | sed -n 's/.*://p' | sort -u); do
    [[ $foreign == "$(dpkg --print-architecture)" ]] || "${sudo[@]}" dpkg --add-architecture "$foreign" || return 1
  done
  apt_install "${missing[@]}" || {
    echo "A second try, in half a minute." >&2
    sleep 30
    apt_install "${missing[@]}"
  } || {
    echo "apt-get could not install: ${missing[*]}" >&2
    return 1
  }
}

# A mirror that is being updated has lists that do not fit together, often of an architecture or a suite that is not
# needed: what apt could read, now or earlier, may do. Uses the variable `sudo` of install_missing.
apt_install() {
  local options=(-q -y -o Acquire::Retries=3)
  "${sudo[@]}" apt-get "${options[@]}" update ||
    echo "apt-get update failed; trying with the package lists that are here." >&2
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" install --no-install-recommends "$@"
}

# The lists are kept in FOLDER: nothing of the machine is changed. What apt-get and apt-cache need to read them is left
# in the array `source_options`. apt compares what it fetches with sums in lists that Debian has signed.
source_lists() {
  local folder=$1 suite archive
  shift
  mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
  for suite in "$@"; do
    archive=debian
    if [[ $suite == *-security ]]; then archive=debian-security; fi
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/$archive $suite main"
  done >"$folder/sources.list"
  source_options=(-q -o Dir::Etc::SourceList="$folder/sources.list" -o Dir::Etc::SourceParts=- -o APT::Sandbox::User=
    -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder/cache")
  apt-get "${source_options[@]}" update
}
