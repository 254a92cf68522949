// SPDX-License-Identifier: MIT
//
// The Lua scripts and the SHA-1 names that EVALSHA wants. The text is one file each in scripts/; the build embeds it
// without its comments and computes the digest, so no device ever hashes anything.
#pragma once
#include "base/types.hpp"

namespace redlock {

struct Script {
  Bytes common;  // what stands in front of the body in several scripts; empty in the others
  Bytes body;
  Bytes sha;

  constexpr size_t size() const { return common.size + body.size; }
};

extern const Script acquire_script;
extern const Script extend_script;
extern const Script release_script;
extern const Script token_script;
extern const Script look_script;
extern const Script reading_script;
extern const Script record_script;
extern const Script visit_script;

}  // namespace redlock
