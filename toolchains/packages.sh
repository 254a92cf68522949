# SPDX-License-Identifier: MIT
#
# Sourced by the scripts that set a machine up: install_missing INSTALL PACKAGE... installs Debian packages that are not
# there, after it has printed which. With INSTALL=no it only prints them and fails. install_wanted INSTALL PACKAGE... is
# the same for packages that can be done without. cross_packages TRIPLET prints the
# ones that a cross build needs; sysroot.sh brings the target's. own_lists FOLDER KIND SUITE... fetches Debian's lists
# of source packages, or of another architecture. three_tries COMMAND... is for what asks a server on the network.

package_present() {
  dpkg-query -W -f '${db:Status-Status} ${Architecture}\n' "$1" 2>/dev/null |
    grep -qxE "installed ($(dpkg --print-architecture)|all)"
}

cross_packages() { echo "gcc-$1 g++-$1 qemu-user"; }

install_missing() {
  local install=$1 package missing=() sudo=()
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
  three_tries apt_install "${missing[@]}"
}

# If not all can be had, those that can. The others are left in the array `without`.
without=()
install_wanted() {
  local install=$1 package
  shift
  if install_missing "$install" "$@"; then return 0; fi
  [[ $install == yes ]] || return 1
  for package in "$@"; do
    REDLOCK_FETCH_PAUSE=0 install_missing yes "$package" || without+=("$package")
  done
}

# Returns 77 if COMMAND failed each time: what it wanted cannot be had now, which says nothing about this project. The
# tries are spread over some minutes, until a mirror that is being updated is whole again.
three_tries() {
  local try pause=${REDLOCK_FETCH_PAUSE:-100}
  for try in 1 2 3; do
    if "$@"; then return 0; fi
    if [[ $try -lt 3 ]]; then
      echo "Try $try of 3 failed; the next one follows in $pause s: $*" >&2
      sleep "$pause"
    fi
  done
  echo "cannot be had, tries: 3: $*" >&2
  return 77
}

# A mirror that is being updated has lists that do not fit together, often of an architecture or a suite that is not
# needed: what apt could read, now or earlier, may do. Uses the variable `sudo` of install_missing.
apt_install() {
  local options=(-q -y -o Acquire::Retries=3)
  "${sudo[@]}" apt-get "${options[@]}" update ||
    echo "apt-get update failed; trying with the package lists that are here." >&2
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" install --no-install-recommends "$@"
}

# KIND is `source` or an architecture. The lists are kept in FOLDER: nothing of the machine is changed. What apt-get and
# apt-cache need to read them is left in the array `own_options`. To apt no package is installed there: `install
# --download-only` fetches a package with all that it needs. apt compares what it fetches with sums in lists that Debian
# has signed. A list that does not fit them, while the mirror is updated, is left out: what the others name may do.
own_lists() {
  local folder=$1 kind=$2 type=deb arch="arch=$2 " suite archive
  shift 2
  if [[ $kind == source ]]; then type=deb-src arch=; fi
  mkdir -p "$folder"/{lists/partial,cache/archives/partial}
  : >"$folder/status"
  for suite in "$@"; do
    archive=debian
    if [[ $suite == *-security ]]; then archive=debian-security; fi
    echo "$type [${arch}signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
      "http://deb.debian.org/$archive $suite main"
  done >"$folder/sources.list"
  own_options=(-q -o APT::Sandbox::User= -o Dir::Etc::SourceList="$folder/sources.list" -o Dir::Etc::SourceParts=-
    -o Dir::State="$folder" -o Dir::State::lists="$folder/lists" -o Dir::State::status="$folder/status"
    -o Dir::Cache="$folder/cache")
  if [[ $type == deb ]]; then own_options+=(-o APT::Architecture="$kind" -o APT::Architectures="$kind"); fi
  apt-get "${own_options[@]}" update || echo "some lists cannot be had; going on with the others" >&2
}

# debian_root SUITE TARGET OPTION...: what every Debian has, and apt, from the mirrors of this machine's apt.
debian_root() {
  local options=(--mode=root --variant=minbase) line lines ours='^Acquire::(https?::Proxy|Check-Valid-Until)'
  while read -r line; do options+=(--aptopt="$line"); done < <(apt-config dump | grep -E "$ours")
  lines=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    sed -nE "s/ $(debian_suite)(-updates|-security)? main$/ $1\1 main/p" | sort -u)
  if [[ $1 == sid ]]; then lines=$(grep ' sid main$' <<<"$lines"); fi  # it has neither updates nor a security suite
  if [[ $lines == *' https:'* ]]; then options+=(--include=ca-certificates); fi
  rm -rf "$2.new"
  mmdebstrap --quiet "${options[@]}" "${@:3}" "$1" "$2.new" - <<<"$lines" && mv "$2.new" "$2"
}

debian_suite() {
  # shellcheck disable=SC1091
  (. /etc/os-release && echo "$VERSION_CODENAME")
}
