// SPDX-License-Identifier: MIT
//
// What the guard's scripts say (src/master/scripts/reading, record, visit; src/site/scripts/move, owner), in C++ for a
// RedisDouble; test/integration/test_guard_scripts.cpp holds both against a real server.
#pragma once
#include "redis_double.hpp"

namespace redlock::test {

void register_guard_scripts(RedisDouble& redis);

}  // namespace redlock::test
