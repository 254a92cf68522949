// SPDX-License-Identifier: MIT
//
// What the scripts about locks say (src/master/scripts/acquire, extend, release, token, look), in C++ for a
// RedisDouble. Tokens are compared as text here, too; test/integration/test_fence_scripts.cpp holds both against a real
// server.
#pragma once
#include "redis_double.hpp"

namespace redlock {
struct Script;
}

namespace redlock::test {

void register_lock_scripts(RedisDouble& redis);

// scripts/common.lua: is the server, or the state of the record, another one than the one that was read?
bool is_other_server(ScriptCall& call, const std::string& replid);
bool is_other_state(ScriptCall& call, const std::string& meta_key, const std::string& seal);

std::string text_of(const Script& script);

}  // namespace redlock::test
