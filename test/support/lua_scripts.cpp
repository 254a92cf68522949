// SPDX-License-Identifier: MIT
#include "lua_scripts.hpp"

#include <cstdio>
#include <cstdlib>
#include <lua.hpp>
#include <map>
#include <memory>

#include "master/scripts.hpp"
#include "site/move_script.hpp"
#include "support/sha1.hpp"

static_assert(LUA_VERSION_NUM == 501, "Redis has Lua 5.1");

namespace redlock::test {
namespace {

// One interpreter for all doubles of a thread: a script keeps nothing between two calls.
struct Lua {
  Lua();
  ~Lua() { lua_close(state); }
  lua_State* const state;
  int globals = 0;                                   // a reference to what scripts see of the global names
  std::map<std::string, int, std::less<>> compiled;  // by text: a reference to the function
  ScriptCall* call = nullptr;
  std::vector<std::string_view> words;  // of the command that the script calls; kept for its memory alone
};

Lua& lua() {
  static thread_local Lua one;
  return one;
}

// ---- replies as Lua values, and back: "Conversion from RESP to Lua" and "from Lua to RESP" of Redis' Lua API
// ---------

void push_words(lua_State* state, const char* field, std::string_view text) {
  lua_createtable(state, 0, 1);
  lua_pushlstring(state, text.data(), text.size());
  lua_setfield(state, -2, field);
}

// A script is answered in RESP2: a map is an array, and INFO a string, whatever the connection speaks.
void push(lua_State* state, const Reply& reply) {
  switch (reply.kind) {
    case Reply::integer:
      return lua_pushnumber(state, static_cast<lua_Number>(reply.number));
    case Reply::bulk:
    case Reply::verbatim:
      return lua_pushlstring(state, reply.text.data(), reply.text.size());
    case Reply::nil:
      return lua_pushboolean(state, 0);
    case Reply::status:
      return push_words(state, "ok", reply.text);
    case Reply::error:
      return push_words(state, "err", reply.text);
    case Reply::array:
    case Reply::map:
      lua_createtable(state, static_cast<int>(reply.items.size()), 0);
      for (size_t i = 0; i < reply.items.size(); ++i) {
        push(state, reply.items[i]);
        lua_rawseti(state, -2, static_cast<int>(i) + 1);
      }
  }
}

std::string_view text_at(lua_State* state, int at) {
  size_t size = 0;
  const char* const text = lua_tolstring(state, at, &size);
  return {text, size};
}

// A number is no text here: Redis tells a field that holds one as it tells an empty table.
bool field_at_top(lua_State* state, const char* name, std::string& text) {
  lua_pushstring(state, name);
  lua_rawget(state, -2);
  const bool found = lua_type(state, -1) == LUA_TSTRING;
  if (found) text = text_at(state, -1);
  lua_pop(state, 1);
  for (char& c : text) c = c == '\r' || c == '\n' ? ' ' : c;
  return found;
}

Reply value_at_top(lua_State* state);

// An array ends at its first nil.
Reply table_at_top(lua_State* state) {
  std::string text;
  if (field_at_top(state, "err", text)) return Reply::make_error(text);
  if (field_at_top(state, "ok", text)) return Reply::make_status(text);
  std::vector<Reply> items;
  for (int i = 1;; ++i) {
    lua_rawgeti(state, -1, i);
    const bool end = lua_isnil(state, -1);
    if (!end) items.push_back(value_at_top(state));
    lua_pop(state, 1);
    if (end) return Reply::make_array(std::move(items));
  }
}

Reply value_at_top(lua_State* state) {
  switch (lua_type(state, -1)) {
    case LUA_TNUMBER:
      return Reply::make_integer(static_cast<int64_t>(lua_tonumber(state, -1)));
    case LUA_TSTRING:
      return Reply::make_bulk(text_at(state, -1));
    case LUA_TBOOLEAN:
      return lua_toboolean(state, -1) ? Reply::make_integer(1) : Reply();
    case LUA_TTABLE:
      return table_at_top(state);
    default:
      return Reply();
  }
}

// ---- the table `redis` ----------------------------------------------------------------------------------------------

// A number has 17 digits for Redis, where tostring() would write 14.
Reply answer(lua_State* state) {
  std::vector<std::string_view>& words = lua().words;
  words.clear();
  for (int i = 1; i <= lua_gettop(state); ++i) {
    if (lua_type(state, i) == LUA_TNUMBER) {
      char digits[40];
      std::snprintf(digits, sizeof digits, "%.17g", lua_tonumber(state, i));
      lua_pushstring(state, digits);
      lua_replace(state, i);
    }
    if (lua_type(state, i) != LUA_TSTRING) {
      return Reply::make_error("ERR Lua redis lib command arguments must be strings or integers");
    }
    words.push_back(text_at(state, i));
  }
  if (words.empty()) {
    return Reply::make_error("ERR Please specify at least one argument for this redis lib call");
  }
  return lua().call->call(words);
}

// True for an error. Apart from redis_call(), because lua_error() runs no destructors.
bool push_answer(lua_State* state) {
  const Reply reply = answer(state);
  push(state, reply);
  return reply.is_error();
}

int redis_call(lua_State* state) { return push_answer(state) ? lua_error(state) : 1; }

int redis_pcall(lua_State* state) {
  push_answer(state);
  return 1;
}

int redis_status_reply(lua_State* state) {
  push_words(state, "ok", text_at(state, 1));
  return 1;
}

int redis_sha1hex(lua_State* state) {
  push(state, Reply::make_bulk(Sha1::hex(text_at(state, 1))));
  return 1;
}

// Of an array of strings and booleans, as a server encodes it but for what JSON escapes.
int cjson_encode(lua_State* state) {
  std::string text = "[";
  for (int i = 1; i <= static_cast<int>(lua_objlen(state, 1)); ++i) {
    lua_rawgeti(state, 1, i);
    if (lua_isboolean(state, -1)) {
      text += "false,";
    } else {
      text.append("\"").append(text_at(state, -1)).append("\",");
    }
    lua_pop(state, 1);
  }
  text.back() = ']';
  lua_pushlstring(state, text.data(), text.size());
  return 1;
}

// A global that a script forgets to declare ends the script on a server, so it does here.
constexpr char guarded_globals[] = R"(
for _, name in ipairs{'dofile', 'loadfile', 'print'} do _G[name] = nil end
setmetatable(_G, {__index = function(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end})
return setmetatable({}, {__index = _G, __newindex = function() error('Attempt to modify a readonly table', 2) end})
)";

Lua::Lua() : state(luaL_newstate()) {
  for (const lua_CFunction open : {luaopen_base, luaopen_table, luaopen_string, luaopen_math}) {
    lua_pushcfunction(state, open);
    lua_call(state, 0, 0);
  }
  const luaL_Reg functions[] = {{"call", redis_call},
                                {"pcall", redis_pcall},
                                {"status_reply", redis_status_reply},
                                {"sha1hex", redis_sha1hex},
                                {nullptr, nullptr}};
  luaL_register(state, "redis", functions);
  const luaL_Reg encoders[] = {{"encode", cjson_encode}, {nullptr, nullptr}};
  luaL_register(state, "cjson", encoders);
  if (luaL_loadstring(state, guarded_globals) != 0 || lua_pcall(state, 0, 1, 0) != 0) std::abort();
  globals = luaL_ref(state, LUA_REGISTRYINDEX);
}

// ---- a call of a script ---------------------------------------------------------------------------------------------

void set_global(lua_State* state, const char* name, const Args& texts) {
  lua_createtable(state, static_cast<int>(texts.size()), 0);
  for (size_t i = 0; i < texts.size(); ++i) {
    lua_pushlstring(state, texts[i].data(), texts[i].size());
    lua_rawseti(state, -2, static_cast<int>(i) + 1);
  }
  lua_setglobal(state, name);
}

int function_of(const std::string& text) {
  const auto found = lua().compiled.find(text);
  if (found != lua().compiled.end()) return found->second;
  lua_State* const state = lua().state;
  if (luaL_loadbuffer(state, text.data(), text.size(), "@user_script") != 0) {
    std::fprintf(stderr, "a script does not compile: %s\n", lua_tostring(state, -1));
    std::abort();
  }
  lua_rawgeti(state, LUA_REGISTRYINDEX, lua().globals);
  lua_setfenv(state, -2);
  return lua().compiled[text] = luaL_ref(state, LUA_REGISTRYINDEX);
}

Reply run_script(const std::string& text, ScriptCall& call) {
  lua_State* const state = lua().state;
  const int function = function_of(text);
  set_global(state, "KEYS", call.keys);
  set_global(state, "ARGV", call.argv);
  lua().call = &call;
  lua_rawgeti(state, LUA_REGISTRYINDEX, function);
  const bool done = lua_pcall(state, 0, 1, 0) == 0;
  Reply reply = value_at_top(state);
  lua_pop(state, 1);
  if (done) return reply;
  // What a command refused, or what the interpreter says of a mistake.
  return call.ended_by(reply.is_error() ? reply.text : "ERR " + reply.text);
}

}  // namespace

std::string text_of(const Script& script) {
  return std::string(script.common.data, script.common.size).append(script.body.data, script.body.size);
}

std::string register_script(RedisDouble& redis, const std::string& text) {
  // Shared, because the explorer copies doubles half a million times.
  const auto shared = std::make_shared<const std::string>(text);
  return redis.register_script(text, [shared](ScriptCall& call) { return run_script(*shared, call); });
}

void register_scripts(RedisDouble& redis) {
  for (const Script* script : {&acquire_script, &extend_script, &release_script, &token_script, &look_script,
                               &reading_script, &record_script, &visit_script, &move_script}) {
    register_script(redis, text_of(*script));
  }
}

}  // namespace redlock::test
