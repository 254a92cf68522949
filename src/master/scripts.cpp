// SPDX-License-Identifier: MIT
#include "master/scripts.hpp"

#include <scripts_text.hpp>  // generated: namespace redlock::scripts

namespace redlock {

constexpr Script acquire_script = {Bytes(scripts::common), Bytes(scripts::acquire), Bytes(scripts::acquire_sha1)};
constexpr Script extend_script = {Bytes(scripts::common), Bytes(scripts::extend), Bytes(scripts::extend_sha1)};
constexpr Script release_script = {Bytes(), Bytes(scripts::release), Bytes(scripts::release_sha1)};
constexpr Script token_script = {Bytes(scripts::common), Bytes(scripts::token), Bytes(scripts::token_sha1)};
constexpr Script look_script = {Bytes(), Bytes(scripts::look), Bytes(scripts::look_sha1)};
constexpr Script reading_script = {Bytes(), Bytes(scripts::reading), Bytes(scripts::reading_sha1)};
constexpr Script record_script = {Bytes(scripts::common), Bytes(scripts::record), Bytes(scripts::record_sha1)};
constexpr Script visit_script = {Bytes(scripts::common), Bytes(scripts::visit), Bytes(scripts::visit_sha1)};

}  // namespace redlock
