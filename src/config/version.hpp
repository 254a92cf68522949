// SPDX-License-Identifier: MIT
//
// The version of this build: "0.3.0" for the tag, "0.3.0-dev.COMMIT" for another commit, then "+openssl" with TLS.
#pragma once
#include <commit_text.hpp>
#include <redlock/redlock.h>
#include <string.h>

#define REDLOCK_TEXT(x) #x
#define REDLOCK_TEXT_OF(x) REDLOCK_TEXT(x)

namespace redlock {

constexpr char build_version[] = REDLOCK_TEXT_OF(REDLOCK_VERSION_MAJOR) "." REDLOCK_TEXT_OF(
    REDLOCK_VERSION_MINOR) "." REDLOCK_TEXT_OF(REDLOCK_VERSION_PATCH) REDLOCK_COMMIT
#ifdef REDLOCK_TLS
    "+" REDLOCK_TLS_ENGINE
#endif
    ;

// For libredlock_site: it reads the inside of configurations that libredlock has made. This inside may be another one
// in another version, and is another one with TLS.
inline bool is_build_of_library() { return strcmp(redlock_version_string(), build_version) == 0; }

}  // namespace redlock

#undef REDLOCK_TEXT_OF
#undef REDLOCK_TEXT
