// SPDX-License-Identifier: MIT
//
// What each key of a configuration means, for `redlock config template` and redlock.json(5). Names, order, ranges and
// defaults come from the parser's own table (redlock_site_setting()).
#pragma once

namespace redlock::tool {

// One or more English sentences, or null: no such key. Lines are at most 96 columns wide.
const char* text_of_key(const char* key);
// A value that a template shows in the place of the default; null: the default.
const char* example_of_key(const char* key);
// The default follows from other keys or from the host. A template shows such a key in a comment.
bool default_follows(const char* key);

}  // namespace redlock::tool
