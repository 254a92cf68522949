// SPDX-License-Identifier: MIT
//
// Gives a RedisDouble the interpreter that Redis has, Lua 5.1, and the very text of every script that ships. So what
// runs in the simulator, in scenarios and in fuzzers is what a server runs.
#pragma once
#include "redis_double.hpp"

namespace redlock {
struct Script;
}

namespace redlock::test {

// What EVAL is given: the common text, where the script has it, and its own.
std::string text_of(const Script& script);

// Teaches it a script; returns the SHA-1 of the text.
std::string register_script(RedisDouble& redis, const std::string& text);
// Teaches it all scripts of src/master/scripts and src/site/scripts.
void register_scripts(RedisDouble& redis);

}  // namespace redlock::test
