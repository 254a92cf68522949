// SPDX-License-Identifier: MIT
#include "tool/words/denied.hpp"

#include "tool/words/options.hpp"

namespace redlock::tool {

const Permission permissions[permission_count] = {
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

void add_permissions(Questions& asked, const Key& unused) {
  for (const Permission& one : permissions) asked.command(one.command, unused);
}

void add_own_key(Questions& asked, const Key& key) { asked.command("HGET @ f", key).command("HSET @ f v g", key); }
void add_lock_key(Questions& asked, const Key& key) { asked.command("GET @", key).command("SET @ x NX XX", key); }

Refused refused(const redlock_question_t& asked) {
  if (is_unknown_command(asked)) return Refused::unknown;
  if (asked.err != REDLOCK_E_NOPERM) return Refused::no;
  return is_key_denied(asked) ? Refused::key : Refused::command;
}

Text lacking(const redlock_config_t* cfg, uint32_t m, const char* address, const Key& unused, bool& is_unknown) {
  is_unknown = false;
  Questions asked;
  add_permissions(asked, unused);
  Text out;
  if (asked.ask(cfg, m, address) != 0) return out;
  for (unsigned i = 0; i < permission_count; ++i) {
    const Refused how = permissions[i].without == nullptr ? refused(asked[i]) : Refused::no;
    const char* const command = permissions[i].command;
    const int size = static_cast<int>(strcspn(command, " "));
    is_unknown = how == Refused::unknown;
    if (is_unknown) return Text("no client can lock there: it does not know %.*s", size, command);
    if (how == Refused::command) out.add(" %s", permissions[i].grant);
  }
  return out.empty() ? out : Text("this user cannot lock there: it lacks%s", out.c_str());
}

namespace {

constexpr uint32_t names_max = 16;  // of a wish

// "ERR unknown command 'EVAL'": without the arguments, which are those of the question.
Text words_of(const redlock_question_t& asked) {
  constexpr size_t shown = 60;
  const char* const text = asked.item->text;
  const char* const arguments = strstr(text, ", with args");
  return Text(": ").escaped(text, arguments != nullptr ? static_cast<size_t>(arguments - text) : strlen(text), shown);
}

}  // namespace

Text refusal(const redlock_config_t* cfg, uint32_t m, int err, const redlock_resource_t* names, uint32_t count) {
  auto facts = sized<redlock_site_facts_t>();
  if (redlock_site_facts(cfg, m, &facts) != 0) return Text();
  const auto own = [&facts](const char* name) {
    return Key().add("redlock:").add(facts.key_prefix, facts.key_prefix_size).add(name);
  };
  const unsigned guard = strcmp(setting_of(cfg, "guard").value, "off") != 0 ? guard_keys : 0;
  const Key unused = own(":doctor");
  Key keys[guard_keys + names_max];
  unsigned key_count = 0;
  Questions asked;
  add_permissions(asked, unused);
  for (; key_count < guard; ++key_count) add_own_key(asked, keys[key_count] = own(own_keys[key_count]));
  for (uint32_t i = 0; i < count && i < names_max; ++i) {
    Key& key = keys[key_count++].add(facts.key_prefix, facts.key_prefix_size);
    add_lock_key(asked, key.add(static_cast<const char*>(names[i].data), names[i].size));
  }
  if (asked.ask(cfg, m) != 0) return Text();
  Text out;
  for (unsigned i = 0; i < permission_count; ++i) {
    const Refused how = refused(asked[i]);
    if (err == REDLOCK_E_SERVER && how == Refused::unknown) return words_of(asked[i]);
    if (err != REDLOCK_E_SERVER && how == Refused::command && permissions[i].without == nullptr) {
      out.add(" %s", permissions[i].grant);
    }
  }
  for (unsigned i = 0; err != REDLOCK_E_SERVER && i < key_count; ++i) {
    const unsigned at = permission_count + 2 * i;
    const bool is_denied = refused(asked[at]) == Refused::key || refused(asked[at + 1]) == Refused::key;
    if (is_denied) out.add(" ~").escaped(keys[i].text, keys[i].size);
  }
  return out.empty() ? out : Text(": its ACL needs%s", out.c_str());
}

}  // namespace redlock::tool
