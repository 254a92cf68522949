// SPDX-License-Identifier: MIT
//
// The scripts that read and write the guard's record for a change of masters. Clients that lock never send them.
#pragma once
#include <scripts_text.hpp>  // generated: namespace redlock::scripts

#include "master/scripts.hpp"

namespace redlock {

inline constexpr Script move_script = {Bytes(), Bytes(scripts::move), Bytes(scripts::move_sha1)};

}  // namespace redlock
