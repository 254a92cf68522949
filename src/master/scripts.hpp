// SPDX-License-Identifier: MIT
//
// The Lua scripts and the SHA-1 names that EVALSHA wants. The text is one file each in scripts/; the build embeds it
// without its comments and computes the digest, so no device ever hashes anything.
#pragma once
#include <scripts_text.hpp>  // generated: namespace redlock::scripts

#include "base/types.hpp"

namespace redlock {

struct Script {
  Bytes common;  // what stands in front of the body in several scripts; empty in the others
  Bytes body;
  Bytes sha;

  constexpr size_t size() const { return common.size + body.size; }
};

inline constexpr Script acquire_script = {Bytes(scripts::common), Bytes(scripts::acquire),
                                          Bytes(scripts::acquire_sha1)};
inline constexpr Script extend_script = {Bytes(scripts::common), Bytes(scripts::extend), Bytes(scripts::extend_sha1)};
inline constexpr Script release_script = {Bytes(), Bytes(scripts::release), Bytes(scripts::release_sha1)};
inline constexpr Script token_script = {Bytes(scripts::common), Bytes(scripts::token), Bytes(scripts::token_sha1)};
inline constexpr Script look_script = {Bytes(), Bytes(scripts::look), Bytes(scripts::look_sha1)};
inline constexpr Script reading_script = {Bytes(), Bytes(scripts::reading), Bytes(scripts::reading_sha1)};
inline constexpr Script record_script = {Bytes(scripts::common), Bytes(scripts::record), Bytes(scripts::record_sha1)};
inline constexpr Script visit_script = {Bytes(scripts::common), Bytes(scripts::visit), Bytes(scripts::visit_sha1)};

}  // namespace redlock
