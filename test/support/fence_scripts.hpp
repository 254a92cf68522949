// SPDX-License-Identifier: MIT
//
// What the scripts of fenced rounds say (src/master/scripts/acquire_fenced, token, extend_fenced), and the others that take
// several names (release_several, look), in C++ for the double.
// Tokens are compared as text here, too; test/integration/test_fence_scripts.cpp holds both against a real server.
#pragma once
#include "redis_double.hpp"

namespace redlock::test {

void register_fence_scripts(RedisDouble& redis);

}  // namespace redlock::test
