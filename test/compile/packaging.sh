#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Of toolchains/packaging/: packaging.sh debian|openwrt|openwrt_sdk|buildroot|yocto|spdx|version. Its environment
# is that of check.sh. Debian's packages are built, installed and used. Of the recipes the tools are not here: what the
# recipes say is carried out with stand-ins that do what the documentation of those tools says.
set -euo pipefail
: "${EMULATOR:=}" "${TOOLCHAIN:=}"
work=$WORK/packaging-$1
rm -rf "$work"
mkdir -p "$work"

# There is no address to watch for releases, and no home page. FORTIFY finds no call in the library whose buffer it does
# not know.
unfit_for_lintian=debian-watch-file-is-missing,no-homepage-field,hardening-no-fortify-functions

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

quietly() { "$@" >>"$work/log" 2>&1 || fail "$*" "$(tail -n 30 "$work/log")"; }

configure() { # BUILD OPTION...
  local compiler=(-DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX")
  [[ -z $TOOLCHAIN ]] || compiler=(-DCMAKE_TOOLCHAIN_FILE="$TOOLCHAIN")
  quietly "$CMAKE" -S "$SOURCE" -B "$1" "${compiler[@]}" -DREDLOCK_CCACHE=ON -DCMAKE_INSTALL_PREFIX=/usr "${@:2}"
  ! grep -A5 'Manually-specified variables were not used' "$work/log" || fail "the recipe sets what we do not know"
}

# Installs the packages with dpkg into a root of their own, where we may, and else unpacks them.
install_packages() {
  local root=$1
  mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/triggers"
  touch "$root/var/lib/dpkg/status"
  if [[ $(id -u) -eq 0 ]]; then
    quietly dpkg --root="$root" --force-depends --force-architecture --install "${@:2}"
    [[ $(dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${db:Status-Status} ' libredlock0 libredlock-dev) == \
      'installed installed ' ]] || fail "dpkg did not install them"
  else
    for package in "${@:2}"; do dpkg-deb -x "$package" "$root"; done
  fi
}

# The files of packages, without the documentation that Debian puts elsewhere than CMake does.
files_of() {
  local package
  for package in "$@"; do
    dpkg-deb --fsys-tarfile "$package" | tar -t | grep -v '/$' | sed 's|^\./||; /^usr\/share\/doc\//d; s|\.gz$||'
  done | sort
}

package_debian() {
  local root=$work/target arch made libdir all unwanted
  arch=$(dpkg --print-architecture)
  case $("$CC" -dumpmachine) in arm-*) arch=armhf ;; aarch64-*) arch=arm64 ;; esac
  # dpkg-buildpackage takes Debian's compiler and flags, not those of this build.
  ! command -v ccache >/dev/null || export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  quietly env -u PKG_CONFIG_LIBDIR "$SOURCE/toolchains/packaging/debian.sh" "$work/packages" "$arch"
  quietly lintian --allow-root --fail-on error,warning,info,pedantic --suppress-tags "$unfit_for_lintian" \
    "$work"/packages/redlock_*.changes

  made=$(echo "$work"/packages/redlock-*/build)
  quietly env DESTDIR="$work/all" "$CMAKE" --install "$made"
  all=$(cd "$work/all" && find . ! -type d ! -path './usr/share/doc/*' | sed 's|^\./||' | sort)
  unwanted=$(diff <(echo "$all") <(files_of $(ls "$work"/packages/*.deb | grep -v dbgsym) |
    grep -v '/libredlock\.a$') || true)
  [[ -z $unwanted ]] || fail "installed (<) or in a package (>) alone:" "$unwanted"
  unwanted=$(files_of "$work"/packages/libredlock0_*.deb | grep -v '/libredlock\.so\.' || true)
  [[ -z $unwanted ]] || fail "not for a gateway:" "$unwanted"
  for wanted in libc6 libuv1 libcjson1; do
    dpkg-deb -f "$work"/packages/libredlock0_*.deb Depends | grep -qE "\<$wanted(t64)? \(>= " ||
      fail "libredlock0 does not depend on $wanted"
  done

  # A program of this version is never beside a library of another build, and a caller's structs are known to it.
  [[ $(dpkg-deb -f "$work"/packages/redlock_*.deb Depends) == *"libredlock0 (= $version-0local1)"* ]] ||
    fail "the program may be beside another library"
  ! grep -nvE "^(libredlock0?\.so|\* )| ${version%.*}\.0$" "$SOURCE/toolchains/packaging/debian/libredlock0.symbols" ||
    fail "a program of this version is allowed beside an older library, which refuses its structs"
  for wanted in etc/redlock/ usr/share/doc/redlock/examples/site/users.acl; do
    dpkg-deb -c "$work"/packages/redlock_*.deb | grep " ./$wanted" >/dev/null || fail "redlock has no $wanted"
  done

  # shellcheck disable=SC2046
  install_packages "$root" $(ls "$work"/packages/*.deb | grep -v dbgsym)
  libdir=$(dirname "$(find "$root" -name 'libredlock.so')")
  for program in main:redlock maintenance:redlock-site; do
    # shellcheck disable=SC2046
    "$CC" "$SOURCE/test/compile/consumer/${program%:*}.c" -DEXPECTED=REDLOCK_E_CONFIG -o "$work/consumer" -L"$libdir" \
      $(PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --cflags --libs "${program#*:}")
    LD_LIBRARY_PATH=$libdir $EMULATOR "$work/consumer"
  done
  # shellcheck disable=SC2046
  "$CC" "$SOURCE/test/compile/consumer/main.c" -DEXPECTED=REDLOCK_E_CONFIG -o "$work/consumer" \
    $(PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --static --cflags --libs redlock |
      sed 's/-lredlock\>/-l:libredlock.a/')
  $EMULATOR "$work/consumer"
  # shellcheck disable=SC2046
  "$SOURCE/test/size/check.sh" hardened "$libdir/libredlock.so.0" \
    $(find "$root/usr" -path '*/bin/redlock')
  [[ $arch != "$(dpkg --print-architecture)" ]] || PYTHONPATH=$root/usr/lib/python3/dist-packages \
    LIBREDLOCK=$libdir/libredlock.so.0 /usr/bin/python3 -B -c 'import libredlock; print(libredlock.__file__)'
  check_unit "$root"
  tls_is_another_version "$arch" "$root"
}

# systemd would start the program of the package. Its targets are those of this machine.
check_unit() { # ROOT
  command -v systemd-analyze >/dev/null || { echo "systemd-analyze is not here: it judges no unit" && return; }
  local said unit
  cp /lib/systemd/system/*.target "$1/usr/lib/systemd/system"
  for unit in redlock@.service redlock-metrics.timer; do
    said=$(systemd-analyze verify --man=no --root="$1" "/usr/lib/systemd/system/$unit" 2>&1) ||
      fail "systemd takes no $unit: $said"
  done
}

# A profile with TLS makes another version, so dpkg configures no program beside the other library.
tls_is_another_version() { # ARCHITECTURE ROOT
  local tls folder=$work/tls said
  mkdir -p "$folder/bin"
  printf '#!/bin/sh\n' >"$folder/bin/dpkg-buildpackage"
  chmod +x "$folder/bin/dpkg-buildpackage"
  DEB_BUILD_PROFILES=pkg.redlock.openssl PATH=$folder/bin:$PATH \
    quietly "$SOURCE/toolchains/packaging/debian.sh" "$folder" "$1"
  tls=$(dpkg-parsechangelog -l "$(echo "$folder"/redlock-*/debian/changelog)" -S Version)
  [[ $tls == "$version-0local1+openssl" ]] || fail "a library with TLS has the version $tls"
  [[ $(id -u) -eq 0 ]] || return 0
  dpkg-deb -R "$work"/packages/libredlock0_*.deb "$folder/other"
  sed -i "s/^Version: .*/Version: $tls/" "$folder/other/DEBIAN/control"
  quietly dpkg-deb -b "$folder/other" "$folder/other.deb"
  quietly dpkg --root="$2" --force-depends --force-architecture --install "$folder/other.deb"
  said=$(dpkg --root="$2" --force-architecture --install "$work"/packages/redlock_*.deb 2>&1) &&
    fail "dpkg configures the program beside a library with TLS"
  grep -qF "Version of libredlock0" <<<"$said" || fail "dpkg does not say that the versions differ:" "$said"
}

# OpenWrt builds in the source folder and lets each package pick its files.
package_openwrt() {
  mkdir -p "$work/include"
  cat >"$work/rules.mk" <<TEXT
INCLUDE_DIR:=$work/include
PKG_BUILD_DIR:=$work/build/redlock
PKG_INSTALL_DIR:=$work/staging
INSTALL_DIR:=install -d -m0755
INSTALL_BIN:=install -m0755
INSTALL_CONF:=install -m0600
INSTALL_DATA:=install -m0644
CP:=cp -fpR
options: ; @echo \$(CMAKE_OPTIONS)
.DEFAULT_GOAL:=all
TEXT
  cat >"$work/include/package.mk" <<'TEXT'
define BuildPackage
all: install-$(1)
install-$(1): compile
	$$(call Package/$(1)/install,$(ROOT)/$(1))
endef
TEXT
  cat >"$work/include/cmake.mk" <<'TEXT'
compile:
	test $(PKG_SOURCE_URL) = $(URL)
	echo "$(PKG_HASH)  $(TOPDIR)/$(PKG_SOURCE)" | sha256sum --check
	mkdir -p $(PKG_BUILD_DIR)
	tar -C $(PKG_BUILD_DIR) --strip-components=1 -xf $(TOPDIR)/$(PKG_SOURCE)
	test -s $(PKG_BUILD_DIR)/$(PKG_LICENSE_FILES)
	cmake -S $(PKG_BUILD_DIR) -B $(PKG_BUILD_DIR) -DREDLOCK_CCACHE=ON -DCMAKE_INSTALL_PREFIX=/usr \
	  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-Os -DNDEBUG" -DCMAKE_INSTALL_LIBDIR=lib $(CMAKE_OPTIONS)
	cmake --build $(PKG_BUILD_DIR) --parallel 2
	DESTDIR=$(PKG_INSTALL_DIR) cmake --install $(PKG_BUILD_DIR)
TEXT
  mkdir -p "$work/feeds/packages/lang/python"
  echo 'PYTHON3_VERSION:=3.11' >"$work/feeds/packages/lang/python/python3-version.mk"
  local tls
  for tls in OPENSSL MBEDTLS ''; do
    [[ $(make -s -C "$work/openwrt" TOPDIR="$work" "CONFIG_LIBREDLOCK_$tls=y" options | xargs) == \
      "-DREDLOCK_TLS=$(tr '[:upper:]' '[:lower:]' <<<"${tls:-off}")" ]] || fail "not the options of TLS: ${tls:-none}"
  done
  quietly make -C "$work/openwrt" TOPDIR="$work" ROOT="$work/target" URL="$url"
  local found wanted="./libredlock/usr/lib/libredlock.so.0 ./libredlock/usr/lib/libredlock.so.$version" module
  for module in "$SOURCE"/src/python/libredlock/{*.py,py.typed}; do
    wanted+=" ./python3-libredlock/usr/lib/python3.11/site-packages/libredlock/${module##*/}"
  done
  wanted+=" ./redlock/etc/config/redlock ./redlock/etc/init.d/redlock ./redlock/usr/bin/redlock"
  wanted+=" ./redlock/usr/bin/redlock-service ./redlock/usr/share/redlock/redis.conf"
  wanted+=" ./redlock/usr/share/redlock/users.acl"
  found=$(cd "$work/target" && find . ! -type d | LC_ALL=C sort | xargs)
  # The init script starts nothing before /etc/config/redlock says so, which has a password and is not overwritten.
  [[ $found == "$wanted" ]] || fail "the packages hold:" "$found"
  [[ $(stat -c %a "$work/target/redlock/etc/config/redlock") == 600 ]] || fail "all can read /etc/config/redlock"
  grep -qFx /etc/config/redlock "$work/openwrt/Makefile" || fail "an upgrade overwrites /etc/config/redlock"
  echo "$found"
}

# openwrt-sdk.cmake finds compiler and libraries in the folders that an SDK has, here filled with Debian's and ours.
package_openwrt_sdk() {
  local staging=$work/sdk/staging_dir bin target
  bin=$staging/toolchain-arm_cortex-a7+neon-vfpv4_gcc-12.2.0_musl_eabi/bin
  target=$staging/target-arm_cortex-a7+neon-vfpv4_musl_eabi
  mkdir -p "$bin" "$target"
  ln -s "$(command -v "$CC")" "$bin/arm-openwrt-linux-gcc"
  ln -s "$(command -v "$CXX")" "$bin/arm-openwrt-linux-g++"
  cp -r "$SOURCE/build/dependencies/arm-linux-musleabihf" "$target/usr"
  sed -i 's|^prefix=.*|prefix=/usr|; s|^\([a-z]*dir\)=/.*/\([a-z]*\)$|\1=/usr/\2|' "$target"/usr/lib/pkgconfig/*.pc
  rm -rf "$target/usr/lib/cmake"
  TOOLCHAIN=$SOURCE/toolchains/openwrt-sdk.cmake
  configure "$work/build" -DOPENWRT_SDK="$work/sdk" -DCMAKE_BUILD_TYPE=MinSizeRel -DBUILD_SHARED_LIBS=OFF \
    -DREDLOCK_BUILD_TESTS=OFF -DREDLOCK_BUILD_EXAMPLES=ON -DCMAKE_EXE_LINKER_FLAGS=-static
  quietly "$CMAKE" --build "$work/build" --parallel 2
  grep -q "^pkgcfg_lib_REDLOCK_libuv_uv:FILEPATH=$target/" "$work/build/CMakeCache.txt" || fail "libuv is not the SDK's"
  $EMULATOR "$work/build/examples/gateway" --help
}

package_buildroot() {
  local mk=$work/buildroot/redlock.mk config=$work/buildroot/Config.in
  printf 'cmake-package = all: ; @echo $(REDLOCK_SITE)/redlock-$(REDLOCK_VERSION).tar.gz\n' >"$work/stand_in.mk"
  [[ $(make -s --no-print-directory -f "$work/stand_in.mk" -f "$mk") == "$url/redlock-$version.tar.gz" ]] ||
    fail "the archive would be looked for elsewhere"
  (cd "$work" && tar -xf "redlock-$version.tar.gz" --strip-components=1 "redlock-$version/LICENSE" &&
    sed -n 's/^sha256  //p' buildroot/redlock.hash | sha256sum --check)
  local tls
  printf 'cmake-package = all: ; @echo $(REDLOCK_CONF_OPTS) $(REDLOCK_DEPENDENCIES)\n' >"$work/stand_in.mk"
  for tls in openssl mbedtls ''; do
    grep -q "^config BR2_PACKAGE_REDLOCK_$(tr '[:lower:]' '[:upper:]' <<<"${tls:-no_tls}")$" "$config"
    [[ $(make -s --no-print-directory -f "$work/stand_in.mk" -f "$mk" "BR2_PACKAGE_REDLOCK_${tls^^}=y" | xargs) == \
      "-DREDLOCK_TLS=${tls:-off} cjson host-pkgconf libuv${tls:+ $tls}" ]] || fail "not the options of TLS: $tls"
  done
  grep -q '^config BR2_PACKAGE_REDLOCK$' "$config" || fail "Config.in names another package"
  # What it selects must be there under the same conditions, or Buildroot makes a configuration that cannot be built.
  for condition in THREADS_NPTL USE_MMU STATIC_LIBS SYNC_4 GCC_AT_LEAST_10 LIBSTDCPP; do
    [[ $(grep -c "$condition" "$config") -eq 2 ]] || fail "Config.in and its comment do not both name $condition"
  done
}

package_yocto() {
  local recipe=$work/yocto/redlock_$version.bb options
  options=$(sed -n 's/^EXTRA_OECMAKE = "\(.*\)"$/\1/p' "$recipe")
  grep -qFx "SRC_URI = \"$url/redlock-\${PV}.tar.gz\"" "$recipe" || fail "the archive would be looked for elsewhere"
  grep -qFx "SRC_URI[sha256sum] = \"$(sha256sum <"$work/redlock-$version.tar.gz" | cut -d' ' -f1)\"" "$recipe" ||
    fail "the hash is not that of the archive"
  grep -q "file://LICENSE;md5=$(md5sum <"$SOURCE/LICENSE" | cut -d' ' -f1)" "$recipe" ||
    fail "LIC_FILES_CHKSUM is not that of LICENSE"
  grep -qFx 'FILES:lib${BPN} = "${libdir}/libredlock.so.*"' "$recipe" || fail "the program is not in redlock"
  # An archive is unpacked where S says by default. ${WORKDIR}/git is an error today.
  ! grep -nE '^S *[?:]*=|WORKDIR|AUTOREV|SRCPV' "$recipe" || fail "not as recipes are written today"
  # shellcheck disable=SC2086
  configure "$work/build" $options
  # What a feature enables is a word of REDLOCK_TLS, and its library is the third field.
  [[ $(sed -n 's/^PACKAGECONFIG\[\(.*\)\] = "-DREDLOCK_TLS=\(.*\),,\(.*\),,,.*"$/\1 \2 \3/p' "$recipe" | xargs) == \
    "mbedtls mbedtls mbedtls openssl openssl openssl" ]] || fail "PACKAGECONFIG is not about TLS"
  echo "configured with $options"
}

# The list names every source of the library that the archive holds, with its hash, and the archive itself.
package_spdx() {
  local archive=$work/redlock-$version.tar.gz list=$work/redlock.spdx.json
  "$SOURCE/toolchains/packaging/archive.sh" "$work" >/dev/null
  "$SOURCE/toolchains/packaging/spdx.py" "$archive" >"$list"
  tar -C "$work" --strip-components=1 -xf "$archive"
  python3 - "$list" "$(sha256sum <"$archive" | cut -d' ' -f1)" >"$work/listed" <<'TEXT'
import json, sys
document = json.load(open(sys.argv[1]))
ids = {thing["SPDXID"] for thing in [document, *document["packages"], *document["files"]]}
assert len(ids) == 1 + len(document["packages"]) + len(document["files"])
assert {r[end] for r in document["relationships"] for end in ("spdxElementId", "relatedSpdxElement")} <= ids
assert {p["name"] for p in document["packages"]} == {"redlock", "libuv", "cJSON", "mbedTLS", "OpenSSL"}
assert document["packages"][0]["checksums"][0]["checksumValue"] == sys.argv[2]
for file in document["files"]:
    assert file["licenseConcluded"] == "MIT"
    print(file["checksums"][1]["checksumValue"], "", file["fileName"][2:])
TEXT
  quietly diff <(sort "$work/listed") <(cd "$work" && find include port src -type f |
    grep -E '\.([ch]|[ch]pp|lua)$' | xargs sha256sum | sort)
  echo "$(wc -l <"$work/listed") files"
}

# The tag is the release. Another commit, changed files, and files of which nobody says what they are say so: in a
# build, and in an archive, which has no git. A build folder that was made of the tag says so when a file is changed
# afterwards.
package_version() {
  local tree=$work/tree git=(git -C "$work/tree" -c user.name=a -c user.email=a@example.org)
  mkdir -p "$tree/toolchains/packaging"
  cp "$SOURCE/toolchains/packaging/"{archive,commit}.sh "$tree/toolchains/packaging"
  project_text " VERSION $version" >"$tree/CMakeLists.txt"
  echo "add_custom_target(all_of_it ALL)
add_dependencies(all_of_it redlock_commit)" >>"$tree/CMakeLists.txt"
  "${git[@]}" init -q
  "${git[@]}" add .
  "${git[@]}" commit -qm one
  local commit
  commit=-dev.$(git -C "$tree" rev-parse --short=10 HEAD)
  ends_with "$commit"
  "${git[@]}" tag "v$version"
  ends_with ''
  quietly "$CMAKE" -S "$tree" -B "$work/tag"
  writes '' "$work/tag"
  echo "# later" >>"$tree/toolchains/packaging/archive.sh"
  quietly "$CMAKE" --build "$work/tag"
  writes "$commit.changed" "$work/tag"
  ends_with "$commit.changed"
}

project_text() { # VERSION
  cat <<TEXT
cmake_minimum_required(VERSION 3.18)
project(redlock$1 LANGUAGES C)
include("$SOURCE/toolchains/cmake/redlockVersion.cmake")
set(REDLOCK_GENERATED_DIR "\${PROJECT_BINARY_DIR}")
redlock_write_commit()
TEXT
}

ends_with() { # TEXT
  "$work/tree/toolchains/packaging/archive.sh" "$work" >/dev/null
  local held
  held=$(tar -xOf "$work/redlock-$version.tar.gz" "redlock-$version/.commit")
  [[ $held == "$1" && $("$work/tree/toolchains/packaging/commit.sh") == "$1" ]] ||
    fail "the version ends with '$held', expected '$1'"
  mkdir "$work/source"
  tar -C "$work/source" --strip-components=1 -xf "$work/redlock-$version.tar.gz"
  project_text '' >"$work/source/CMakeLists.txt"
  built_as "$1"
  rm "$work/source/.commit"  # an archive that archive.sh has not made
  built_as -dev
  rm -rf "$work/source"
}

built_as() { # TEXT
  rm -rf "$work/build"
  quietly "$CMAKE" -S "$work/source" -B "$work/build"
  writes "$1" "$work/build"
}

writes() { # TEXT BUILD
  grep -qF "REDLOCK_COMMIT \"$1\"" "$2/commit_text.hpp" ||
    fail "CMake wrote $(<"$2/commit_text.hpp"), expected '$1'"
}

# The recipes name the archive that they are written for. The same tree gives the same archive.
version=$(sed -n 's/^project(redlock VERSION \([0-9.]*\) .*/\1/p' "$SOURCE/CMakeLists.txt")
url=https://downloads.example.org/redlock
case $1 in
  openwrt | buildroot | yocto)
    "$SOURCE/toolchains/packaging/recipes.sh" "$work" "$url"
    ! grep -rnE '@[A-Z0-9_]+@' "$work/$1" || fail "recipes.sh does not fill these in"
    "$SOURCE/toolchains/packaging/archive.sh" "$work/again" >/dev/null
    cmp "$work/redlock-$version.tar.gz" "$work/again/redlock-$version.tar.gz"
    ;;
esac
"package_$1"
