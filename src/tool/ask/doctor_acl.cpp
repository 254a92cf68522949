// SPDX-License-Identifier: MIT
//
// Does a master know the commands that a client needs, and may the user use them, with the keys of this configuration?
#include <stdlib.h>
#include <string.h>

#include "tool/ask/doctor.hpp"
#include "tool/words/denied.hpp"

namespace redlock::tool {
namespace {

// What the user lacks, as a list, and what it could use besides.
void tell_lacking(const Text& needed, const Text& useful, const char* todo) {
  judge(Text("denied:%s%s", needed.c_str(), useful.c_str()),
        {{!needed.empty(), Level::fail, todo, exit_permission}, {true, Level::warn, todo}});
}

// The command of an operator, as a shell or redis-cli reads it.
Text grant(unsigned m, const Text& what) {
  constexpr char option[] = " --user ";  // the last one, and quoted already
  const char* const options = site.master[m].facts.redis_cli;
  const char* const found = strstr(options, option);
  const char* const user = found != nullptr ? found + sizeof option - 1 : *options != '\0' ? "default" : "USER";
  return Text("ACL SETUSER %s%s, then ACL SAVE (without an aclfile CONFIG REWRITE)", user, what.c_str());
}

// Reports commands that the server does not know: they were renamed, the server is too old, or a proxy answers.
void tell_unknown(const Master& it, const Text& needed, const Text& useful) {
  const bool is_old = strtol(it.version, nullptr, 10) < 6;
  judge(Text("not known there:%s%s", needed.c_str(), useful.c_str()),
        {{!needed.empty(), Level::fail,
          "give the command its name back (rename-command), or list a server, not a proxy",
          exit_code_of(REDLOCK_E_SERVER)},
         {is_old, Level::warn, "take a server of 6.0 or later"},
         {true, Level::warn, "give the command its name back (rename-command)"}});
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
  add_permissions(asked, key);
  const int err = ask(asked, m);
  if (err != 0 && unanswered(asked) != nullptr) {
    about("commands", &it);
    tell_unknown(it, Text(" %s, which ends the connection", unanswered(asked)), {});
  }
  about("acl", &it);
  if (err != 0) return tell(Level::unknown, redlock_strerror(err));
  Text lists[2][2];  // denied, not known; needed, useful
  Text grants;
  for (unsigned i = 0; i < asked.count(); ++i) {
    const Refused how = refused(asked[i]);
    if (how != Refused::command && how != Refused::unknown) continue;
    const bool is_unknown = how == Refused::unknown;
    const char* const without = permissions[i].without;
    Text& list = lists[is_unknown][without != nullptr];
    list.add(" %s", permissions[i].grant + is_unknown);
    if (!is_unknown) grants.add(" ").word(permissions[i].grant);
    if (without != nullptr) list.add(" (without it %s)", without);
  }
  const auto& [denied, unknown] = lists;
  if (!unknown[0].empty() || !unknown[1].empty()) {
    about("commands", &it);
    tell_unknown(it, unknown[0], unknown[1]);
    about("acl", &it);
  }
  if (denied[0].empty() && denied[1].empty()) {
    return tell(Level::ok, Text("all %u permissions are there", asked.count()));
  }
  tell_lacking(denied[0], denied[1], Text("an operator grants them: %s", grant(m, grants).c_str()));
}

namespace {

// What there is to do where keys are denied. Where the library's own ones are, and those of another prefix are not, the
// key_prefix may be wrong, and not the user's patterns.
Text todo_for_keys(unsigned m, const Text& patterns, bool may_be_prefix, const Text& usable) {
  const Text granted = grant(m, patterns);
  if (!may_be_prefix) return Text("an operator grants them: %s", granted.c_str());
  const Text prefix = Text().escaped(site.facts().key_prefix, site.facts().key_prefix_size);
  Text out;
  if (!usable.empty()) {
    out.add("this user's patterns fit key_prefix %s, of which clients were here, and not \"%s\": correct key_prefix in "
            "the file; or, ", usable.c_str(), prefix.c_str());
  }
  return out.add("if key_prefix \"%s\" is right: %s; else correct it in the file", prefix.c_str(), granted.c_str());
}

}  // namespace

// May the user read and write the keys? Without resources a name is tried that nobody needs: where it is denied, the
// user's patterns may be for certain resources, as in the guide, and nobody has named one.
bool check_keys(unsigned m, char** resources) {
  constexpr unsigned own_count = sizeof own_keys / sizeof *own_keys;
  const bool is_guess = *resources == nullptr;
  Key keys[own_count + resources_max];
  unsigned count = 0;
  Questions asked;
  for (const char* own : own_keys) keys[count++] = site.own_key(own);
  if (is_guess) keys[count++] = site.key_of("doctor", 6);
  for (; *resources != nullptr; ++resources) keys[count++] = site.key_of(*resources, strlen(*resources));
  for (unsigned i = 0; i < count; ++i) (i < own_count ? add_own_key : add_lock_key)(asked, keys[i]);
  const int err = ask(asked, m);
  if (err != 0) return tell(Level::unknown, redlock_strerror(err)), true;
  Text needed, useful, unsure, patterns;
  bool has_own = false, has_name = false;
  for (unsigned i = 0; i < count; ++i) {
    const Refused reading = refused(asked[2 * i]), writing = refused(asked[2 * i + 1]);
    const bool is_known = reading == Refused::key || writing == Refused::key;  // else the command itself is denied
    if ((reading == Refused::no && writing == Refused::no) || (i < guard_keys && !site.is_guarded())) continue;
    has_name = has_name || (is_known && i >= own_count);
    if (is_known && is_guess && i >= own_count) {
      no_resource_was_named();
      --count;
      const Text names = pattern_of(site.facts().key_prefix, site.facts().key_prefix_size);
      if (has_own && !names.empty()) patterns.add(" ").word(Text("~%s*", names.c_str()));
      continue;
    }
    Text& list = !is_known ? unsure : i >= guard_keys && i < own_count ? useful : needed;
    list.add(" ").escaped(keys[i].text, keys[i].size);
    if (!is_known || (i < own_count && has_own)) continue;
    has_own = has_own || i < own_count;
    const Key all = i < own_count ? site.own_key(":") : keys[i];
    const Text pattern = pattern_of(all.text, all.size);
    patterns.add(" ").word(Text("~%s%s", pattern.c_str(), i < own_count ? "*" : ""));
  }
  if (!useful.empty()) useful.add(" (without it no fencing tokens)");
  if (needed.empty() && !unsure.empty()) {
    const Text saw("whether these keys are allowed is not known:%s%s", unsure.c_str(), useful.c_str());
    return tell(has_failed(m) ? Level::skipped : Level::unknown, saw), true;
  }
  if (needed.empty() && useful.empty()) return tell(Level::ok, Text("%u keys can be read and written", count)), true;
  const Text usable = has_own ? usable_prefix(m) : Text();
  tell_lacking(needed, useful, todo_for_keys(m, patterns, has_own && has_name, usable));
  return usable.empty();
}

}  // namespace redlock::tool
