// SPDX-License-Identifier: MIT
//
// The script that reads and writes the guard's record for a change of masters. Clients that lock never send it.
#pragma once
#include "master/scripts.hpp"

namespace redlock {

inline constexpr Script move_script = {Bytes(), Bytes(scripts::move), Bytes(scripts::move_sha1)};

}  // namespace redlock
