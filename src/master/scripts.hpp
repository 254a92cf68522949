// SPDX-License-Identifier: MIT
//
// The Lua scripts and the SHA-1 names that EVALSHA wants. The text is one file each in scripts/; the build embeds it
// without its comments and computes the digest, so no device ever hashes anything.
#pragma once
#include <scripts_text.hpp>  // generated: namespace redlock::scripts

#include "types.hpp"

namespace redlock {

struct Script {
  Bytes body;
  Bytes sha;
};

inline constexpr Script release_script = {Bytes(scripts::release), Bytes(scripts::release_sha1)};
inline constexpr Script release_several_script = {Bytes(scripts::release_several),
                                                  Bytes(scripts::release_several_sha1)};
inline constexpr Script look_script = {Bytes(scripts::look), Bytes(scripts::look_sha1)};
inline constexpr Script extend_script = {Bytes(scripts::extend), Bytes(scripts::extend_sha1)};
inline constexpr Script seal_script = {Bytes(scripts::seal), Bytes(scripts::seal_sha1)};
inline constexpr Script quarantine_script = {Bytes(scripts::quarantine), Bytes(scripts::quarantine_sha1)};
inline constexpr Script move_script = {Bytes(scripts::move), Bytes(scripts::move_sha1)};
inline constexpr Script acquire_fenced_script = {Bytes(scripts::acquire_fenced), Bytes(scripts::acquire_fenced_sha1)};
inline constexpr Script token_script = {Bytes(scripts::token), Bytes(scripts::token_sha1)};
inline constexpr Script extend_fenced_script = {Bytes(scripts::extend_fenced), Bytes(scripts::extend_fenced_sha1)};

}  // namespace redlock
