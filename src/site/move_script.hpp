// SPDX-License-Identifier: MIT
//
// The script that reads and writes the guard's record for a change of masters. No client that locks sends this script.
#pragma once
#include "master/scripts.hpp"

namespace redlock {

inline constexpr Script move_script = {Bytes(), Bytes(scripts::move), Bytes(scripts::move_sha1)};

}  // namespace redlock
