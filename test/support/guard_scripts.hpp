// SPDX-License-Identifier: MIT
//
// What scripts/seal.lua and scripts/quarantine.lua say, for a RedisDouble.
#pragma once
#include "redis_double.hpp"

namespace redlock::test {

void register_guard_scripts(RedisDouble& redis);

}  // namespace redlock::test
