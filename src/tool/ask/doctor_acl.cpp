// SPDX-License-Identifier: MIT
//
// Does a master know the commands that a client needs, and may the user use them? Each command that is asked here
// changes nothing: its key does not exist, or its arguments are wrong, which a server finds only behind the
// permissions.
#include <string.h>

#include "tool/ask/doctor.hpp"
#include "tool/words/denied.hpp"

namespace redlock::tool {
namespace {

// What one command needs of the user, and what goes without it.
struct Permission {
  const char* grant;
  const char* without;  // nullptr: no lock
  const char* command;
};
constexpr Permission permissions[] = {
    {"+set", nullptr, "SET @ x NX XX"},
    {"+get", nullptr, "GET @"},
    {"+del", nullptr, "DEL @"},
    {"+exists", nullptr, "EXISTS @"},
    {"+pttl", nullptr, "PTTL @"},
    {"+pexpire", nullptr, "PEXPIRE @ 1"},
    {"+hget", nullptr, "HGET @ f"},
    {"+hmget", nullptr, "HMGET @ f"},
    {"+hset", nullptr, "HSET @ f v g"},
    {"+hdel", nullptr, "HDEL @ f"},
    {"+hlen", nullptr, "HLEN @"},
    {"+eval", nullptr, "EVAL return 1 @"},
    {"+evalsha", nullptr, "EVALSHA 0000000000000000000000000000000000000000 1 @"},
    {"+info", nullptr, "INFO server"},
    {"+time", nullptr, "TIME"},
    {"+role", "a replica is noticed later", "ROLE"},
    {"+ping", "an idle connection is not tried", "PING"},
    {"+script|load", "each script is sent as text", "SCRIPT LOAD ("},
    {"+client|tracking", "each acquire is a script, and waiters poll", "CLIENT TRACKING off"},
    {"+client|caching", "the same", "CLIENT CACHING yes"},
    {"+client|id", "deletes are repeated for a ttl after a broken connection", "CLIENT ID"},
    {"+client|kill", "the same", "CLIENT KILL ID 9223372036854775807"},
};

enum class Refused { no, command, key, unknown };

// Of the two, a server judges the command first.
Refused refused(const Questions& asked, unsigned i) {
  if (is_unknown_command(asked[i])) return Refused::unknown;
  if (asked[i].err != REDLOCK_E_NOPERM) return Refused::no;
  return is_key_denied(asked[i]) ? Refused::key : Refused::command;
}

// What the user lacks, as a list, and what it could use besides.
void tell_lacking(const Text& needed, const Text& useful, const char* todo) {
  judge(Text("denied:%s%s", needed.c_str(), useful.c_str()),
        {{!needed.empty(), Level::fail, todo, exit_permission}, {true, Level::warn, ""}});
}

// Reports commands that the server does not know: they were renamed, the server is too old, or a proxy answers.
void tell_unknown(const Text& needed, const Text& useful) {
  judge(Text("not known there:%s%s", needed.c_str(), useful.c_str()),
        {{!needed.empty(), Level::fail,
          "give the command its name back (rename-command), or list a server, not a proxy",
          exit_code_of(REDLOCK_E_SERVER)},
         {true, Level::warn, ""}});
}

// A proxy may close the connection instead of replying to a command that it does not know. Returns that command, or
// nullptr if there is a reply to each.
const char* unanswered(const Questions& asked) {
  for (unsigned i = 0; i < asked.count(); ++i) {
    if (asked.item(i) == nullptr && asked[i].err == REDLOCK_E_DISCONNECTED) return permissions[i].grant + 1;
  }
  return nullptr;
}

}  // namespace

void check_permissions(unsigned m) {
  const Master& it = site.master[m];
  const Key key = site.own_key(":doctor");
  Questions asked;
  for (const Permission& one : permissions) asked.command(one.command, key);
  const int err = ask(asked, m);
  if (err != 0 && unanswered(asked) != nullptr) {
    about("commands", &it);
    tell_unknown(Text(" %s, which ends the connection", unanswered(asked)), {});
  }
  about("acl", &it);
  if (err != 0) return tell(Level::unknown, redlock_strerror(err));
  Text lists[2][2];  // denied, not known; needed, useful
  for (unsigned i = 0; i < asked.count(); ++i) {
    const Refused how = refused(asked, i);
    if (how != Refused::command && how != Refused::unknown) continue;
    const bool is_unknown = how == Refused::unknown;
    const char* const without = permissions[i].without;
    Text& list = lists[is_unknown][without != nullptr];
    list.add(" %s", permissions[i].grant + is_unknown);
    if (without != nullptr) list.add(" (without it %s)", without);
  }
  const auto& [denied, unknown] = lists;
  if (!unknown[0].empty() || !unknown[1].empty()) {
    about("commands", &it);
    tell_unknown(unknown[0], unknown[1]);
    about("acl", &it);
  }
  if (denied[0].empty() && denied[1].empty()) {
    return tell(Level::ok, Text("all %u permissions are there", asked.count()));
  }
  tell_lacking(denied[0], denied[1], "an operator grants them: ACL SETUSER USER +COMMAND ..., then ACL SAVE");
}

// May the user read and write the keys? Without resources a name is tried that nobody needs: where it is denied, the
// user's patterns may be for certain resources, as in the guide, and nobody has named one.
void check_keys(unsigned m, char** resources) {
  constexpr unsigned own_count = 3, fence = 2;
  const bool is_guess = *resources == nullptr;
  Key keys[own_count + resources_max];
  unsigned count = 0;
  for (const char* own : {":meta", ":seen", ":fence"}) keys[count++] = site.own_key(own);
  if (is_guess) keys[count++] = site.key_of("doctor", 6);
  for (; *resources != nullptr; ++resources) keys[count++] = site.key_of(*resources, strlen(*resources));
  Questions asked;
  for (unsigned i = 0; i < count; ++i) {
    const bool is_own = i < own_count;
    asked.command(is_own ? "HGET @ f" : "GET @", keys[i]);
    asked.command(is_own ? "HSET @ f v g" : "SET @ x NX XX", keys[i]);
  }
  const int err = ask(asked, m);
  if (err != 0) return tell(Level::unknown, redlock_strerror(err));
  Text needed, useful, unsure;
  for (unsigned i = 0; i < count; ++i) {
    const Refused reading = refused(asked, 2 * i), writing = refused(asked, 2 * i + 1);
    const bool is_known = reading == Refused::key || writing == Refused::key;  // else the command itself is denied
    if ((reading == Refused::no && writing == Refused::no) || (i < fence && !site.is_guarded())) continue;
    if (is_known && is_guess && i >= own_count) {
      no_resource_was_named();
      --count;
      continue;
    }
    Text& list = !is_known ? unsure : i == fence ? useful : needed;
    list.add(" ").escaped(keys[i].text, keys[i].size);
  }
  if (!useful.empty()) useful.add(" (without it no fencing tokens)");
  if (needed.empty() && !unsure.empty()) {
    const Text saw("whether these keys are allowed is not known:%s%s", unsure.c_str(), useful.c_str());
    return tell(has_failed(m) ? Level::skipped : Level::unknown, saw);
  }
  if (needed.empty() && useful.empty()) return tell(Level::ok, Text("%u keys can be read and written", count));
  const Text prefix = Text().escaped(site.facts().key_prefix, site.facts().key_prefix_size);
  tell_lacking(needed, useful,
               Text("if key_prefix \"%s\" is right: ACL SETUSER USER ~%sRES ~redlock:%s:*, then ACL SAVE",
                    prefix.c_str(), prefix.c_str(), prefix.c_str()));
}

}  // namespace redlock::tool
