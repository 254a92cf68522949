#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Recipes for Yocto, Buildroot and OpenWrt: recipes.sh FOLDER URL writes the archive of this version into FOLDER, and
# the recipes that download this very archive from URL/redlock-VERSION.tar.gz, with its hash. Put the archive there, and
# copy
#   FOLDER/yocto/*       to recipes-connectivity/redlock/ of a layer;
#   FOLDER/buildroot/*   to package/redlock/ of an external tree, and name its Config.in there;
#   FOLDER/openwrt/*     to libs/redlock/ of a feed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
archive=$("$here/archive.sh" "$1")
folder=$(dirname "$archive")
name=$(basename "$archive" .tar.gz)
license=$here/../../LICENSE

hash() { "$1" <"$2" | cut -d' ' -f1; }

write() { # RECIPE OUTPUT
  mkdir -p "$folder/${2%/*}"
  sed -e "s|@VERSION@|${name#redlock-}|; s|@URL@|${3%/}|; s|@SHA256@|$(hash sha256sum "$archive")|" \
    -e "s|@LICENSE_MD5@|$(hash md5sum "$license")|; s|@LICENSE_SHA256@|$(hash sha256sum "$license")|" \
    "$here/$1" >"$folder/$2"
}

write yocto/redlock.bb.in "yocto/redlock_${name#redlock-}.bb" "$2"
write buildroot/Config.in buildroot/Config.in "$2"
write buildroot/redlock.hash.in buildroot/redlock.hash "$2"
write buildroot/redlock.mk.in buildroot/redlock.mk "$2"
write openwrt/Makefile.in openwrt/Makefile "$2"
