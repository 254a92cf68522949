################################################################################
#
# redlock
#
# REDLOCK_SITE is where your copy of the source lives; without a REDLOCK_SITE of
# your own, set REDLOCK_OVERRIDE_SRCDIR in local.mk.
#
################################################################################

REDLOCK_VERSION = 0.1.0
REDLOCK_SITE ?= https://git.example.org/redlock.git
REDLOCK_SITE_METHOD ?= git
REDLOCK_LICENSE = MIT
REDLOCK_LICENSE_FILES = LICENSE
REDLOCK_INSTALL_STAGING = YES
REDLOCK_DEPENDENCIES = cjson host-pkgconf libuv
REDLOCK_CONF_OPTS = \
	-DCMAKE_BUILD_TYPE=MinSizeRel

$(eval $(cmake-package))
