#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What toolchains/packaging/ makes: packaging.sh debian|openwrt|openwrt_sdk|buildroot|yocto. The environment is that of
# check.sh. Debian's packages are built, installed and used. Of the other three the tools are not here: what the recipes
# say is carried out with stand-ins that do what the documentation of those tools says.
set -euo pipefail
: "${EMULATOR:=}" "${TOOLCHAIN:=}"
recipes=$SOURCE/toolchains/packaging
work=$WORK/packaging-$1
rm -rf "$work"
mkdir -p "$work"

# There is no address to watch for releases. FORTIFY finds no call in the library whose buffer it does not know.
unfit_for_lintian=debian-watch-file-is-missing,hardening-no-fortify-functions

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
  unwanted=$(diff <(echo "$all") <(files_of $(ls "$work"/packages/*.deb | grep -v dbgsym)) || true)
  [[ -z $unwanted ]] || fail "installed (<) or in a package (>) alone:" "$unwanted"
  unwanted=$(files_of "$work"/packages/libredlock0_*.deb | grep -v '/libredlock\.so\.' || true)
  [[ -z $unwanted ]] || fail "not for a gateway:" "$unwanted"
  for wanted in libc6 libuv1 libcjson1; do
    dpkg-deb -f "$work"/packages/libredlock0_*.deb Depends | grep -qE "\<$wanted(t64)? \(>= " ||
      fail "libredlock0 does not depend on $wanted"
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
  "$SOURCE/test/size/check.sh" hardened "$libdir/libredlock.so.0"
}

# OpenWrt builds in the source folder and lets each package pick its files.
package_openwrt() {
  local copy=$work/source recipe=$recipes/openwrt
  mkdir -p "$copy" "$work/include"
  (cd "$SOURCE" && cp -r CMakeLists.txt LICENSE include src port toolchains examples "$copy")
  cat >"$work/rules.mk" <<TEXT
INCLUDE_DIR:=$work/include
PKG_BUILD_DIR:=$copy
PKG_INSTALL_DIR:=$work/staging
INSTALL_DIR:=install -d -m0755
INSTALL_BIN:=install -m0755
INSTALL_CONF:=install -m0600
CP:=cp -fpR
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
	cmake -S $(PKG_BUILD_DIR) -B $(PKG_BUILD_DIR) -DREDLOCK_CCACHE=ON -DCMAKE_INSTALL_PREFIX=/usr \
	  -DCMAKE_INSTALL_LIBDIR=lib $(CMAKE_OPTIONS)
	cmake --build $(PKG_BUILD_DIR) --parallel 2
	DESTDIR=$(PKG_INSTALL_DIR) cmake --install $(PKG_BUILD_DIR)
TEXT
  quietly make -C "$recipe" TOPDIR="$work" ROOT="$work/target"
  local found
  found=$(cd "$work/target" && find . ! -type d | sort | xargs)
  [[ $found == "./libredlock/usr/lib/libredlock.so.0 ./libredlock/usr/lib/libredlock.so.0.1.0 \
./redlock-gateway/etc/init.d/redlock-gateway ./redlock-gateway/etc/redlock.json \
./redlock-gateway/usr/bin/redlock-gateway" ]] ||
    fail "the packages hold:" "$found"

  # The service starts what the package brings, with options that the program knows.
  local started
  started=$(sh -c '
    config_load() { :; }; config_get_bool() { eval "$1=$4"; }; config_get() { eval "$1=$4"; }
    procd_open_instance() { :; }; procd_close_instance() { echo; }
    procd_set_param() { [ "$1" != command ] || { shift; echo "$*"; }; }
    . "$1"; start_service' sh "$work/target/redlock-gateway/etc/init.d/redlock-gateway")
  # shellcheck disable=SC2086
  set -- $started
  [[ -x $work/target/redlock-gateway$1 ]] || fail "procd would start $1, which is not in the package"
  for option in "${@:2}"; do
    [[ $option != --* ]] || grep -q -- "  $option " "$SOURCE/examples/shared_device/options.h" ||
      fail "the gateway does not know $option"
  done
  echo "procd starts: $*"
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
  local options
  printf 'cmake-package = options: ; @echo $(REDLOCK_CONF_OPTS)\n' >"$work/stand_in.mk"
  options=$(make -s --no-print-directory -f "$work/stand_in.mk" -f "$recipes/buildroot/redlock.mk" options)
  [[ -n $options ]] || fail "redlock.mk gives no options"
  # shellcheck disable=SC2086
  configure "$work/build" -DBUILD_SHARED_LIBS=ON $options
  grep -q '^config BR2_PACKAGE_REDLOCK$' "$recipes/buildroot/Config.in" || fail "Config.in names another package"
  echo "configured with $options"
}

package_yocto() {
  local recipe options md5
  recipe=$(ls "$recipes"/yocto/redlock_*.bb)
  options=$(sed -n 's/^EXTRA_OECMAKE = "\(.*\)"$/\1/p' "$recipe")
  [[ -n $options ]] || fail "the recipe gives no options"
  md5=$(sed -n 's/.*file:\/\/LICENSE;md5=\([0-9a-f]*\).*/\1/p' "$recipe")
  [[ $md5 == "$(md5sum <"$SOURCE/LICENSE" | cut -d' ' -f1)" ]] || fail "LIC_FILES_CHKSUM is not that of LICENSE"
  # shellcheck disable=SC2086
  configure "$work/build" $options
  echo "configured with $options"
}

# The recipes name the version in their own ways.
version=$(sed -n 's/^project(redlock VERSION \([0-9.]*\) .*/\1/p' "$SOURCE/CMakeLists.txt")
case $1 in
  openwrt) grep -qx "PKG_VERSION:=$version" "$recipes/openwrt/Makefile" || fail "the recipe is not for $version" ;;
  buildroot)
    grep -qx "REDLOCK_VERSION = $version" "$recipes/buildroot/redlock.mk" || fail "the recipe is not for $version"
    ;;
  yocto) [[ -e $recipes/yocto/redlock_$version.bb ]] || fail "the recipe is not for $version" ;;
esac
"package_$1"
