// SPDX-License-Identifier: MIT
//
// What a master refuses of all that a client needs. Each command that is asked here changes nothing: its key does not
// exist, or its arguments are wrong, which a server finds only behind the permissions.
#pragma once
#include "tool/words/questions.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {

// What one command needs of the user, and what goes without it.
struct Permission {
  const char* grant;
  const char* without;  // nullptr: no lock
  const char* command;
};
constexpr unsigned permission_count = 22;
extern const Permission permissions[permission_count];
void add_permissions(Questions& asked, const Key& unused);  // a question for each, in their order
// The library's own keys, for the guard, and then for tokens; each is read and written.
constexpr const char* own_keys[] = {":meta", ":seen", ":fence"};
constexpr unsigned guard_keys = 2;
void add_own_key(Questions& asked, const Key& key);
void add_lock_key(Questions& asked, const Key& key);

// Does NOPERM deny the key? Else it denies the command, which a server judges first.
inline bool is_key_denied(const redlock_question_t& refused) {
  return strstr(refused.item->text, " to access ") != nullptr;
}

enum class Refused { no, command, key, unknown };
Refused refused(const redlock_question_t& asked);

// Why this user can have no lock on a master: "this user cannot lock there: it lacks +eval". is_unknown: because the
// server does not know a command. "": it can have one, or the master did not answer. `unused`: a key that nobody has.
Text lacking(const redlock_config_t* cfg, uint32_t m, const char* address, const Key& unused, bool& is_unknown);

// Behind the text of the error NOPERM or SERVER of a master: what it denies of what a lock of these names needs, or in
// which words it refuses a command. "": it now refuses nothing.
Text refusal(const redlock_config_t* cfg, uint32_t m, int err, const redlock_resource_t* names, uint32_t count);

}  // namespace redlock::tool
