// SPDX-License-Identifier: MIT
#include "master/command.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "support/lua_scripts.hpp"
#include "support/space.hpp"

namespace redlock {
namespace {

using resp::Item;
using resp::Type;

const char hex[] = "00112233445566778899aabbccddeeff00112233";

Bytes bytes(const std::string& s) { return Bytes(s.data(), s.size()); }
std::string text(Bytes b) { return std::string(b.data, b.size); }

Subject subject() {
  Subject s;
  s.key_prefix = "plant:";
  s.names = "valve";
  s.value_hex = Bytes(hex);
  s.client_name = "gw-17";
  s.ttl_ms = 10'000;
  return s;
}

Command by_name(Op op, const Subject& s) { return Command::plain(test::space(), op, s, true); }

std::string wire(const Command& command) {
  const Script* const script = command.script();
  return text(command.head()) + (script != nullptr ? test::text_of(*script) : "") + text(command.tail());
}

std::string bulks(const std::vector<std::string>& words) {
  std::string s = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& w : words) s += "$" + std::to_string(w.size()) + "\r\n" + w + "\r\n";
  return s;
}

const std::string value = std::string(hex) + ":gw-17";
std::string sha(const Script& script) { return std::string(script.sha.data, 40); }
const std::string release_sha = sha(release_script), extend_sha = sha(extend_script);

TEST(Command, exact_bytes) {
  EXPECT_EQ(wire(by_name(Op::acquire, subject())),
            "*6\r\n$3\r\nSET\r\n$11\r\nplant:valve\r\n"
            "$46\r\n00112233445566778899aabbccddeeff00112233:gw-17\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n10000\r\n");
  EXPECT_EQ(wire(by_name(Op::release, subject())), bulks({"EVALSHA", release_sha, "1", "plant:valve", value}));
  EXPECT_EQ(wire(by_name(Op::extend, subject())), bulks({"EVALSHA", extend_sha, "1", "plant:valve", value, "10000"}));
}

TEST(Command, four_of_the_longest_names_fit) {
  const std::string prefix(REDLOCK_KEY_PREFIX_MAX, 'p'), name(REDLOCK_CLIENT_NAME_MAX, 'n'), seal_text(50, 's');
  const std::string meta = "redlock:" + prefix + ":meta";
  std::string names[Names::max];
  Bytes views[Names::max];
  for (unsigned i = 0; i < Names::max; ++i) {
    names[i] = std::string(REDLOCK_RESOURCE_MAX, static_cast<char>('a' + i));
    views[i] = bytes(names[i]);
  }
  char memory[REDLOCK_RESOURCE_BYTES_MAX];
  Subject s{bytes(prefix), Names(), Bytes(hex), bytes(name), UINT32_MAX};
  s.names.assign(memory, views, Names::max);
  const Sealed state = {bytes(meta), bytes(seal_text)};
  const size_t keys = Names::max * (prefix.size() + REDLOCK_RESOURCE_MAX) + (Names::max - 1) * Command::name_max;
  size_t longest = 0;
  for (const bool by_name : {true, false}) {
    for (const Op op : {Op::acquire, Op::acquire_fenced, Op::token, Op::extend}) {
      const size_t size = Command::sealed(test::space(), op, s, state, UINT64_MAX, by_name).text_size();
      EXPECT_LE(size, Command::frame_max + keys + REDLOCK_VALUE_MAX + Command::sealed_size(prefix.size()));
      EXPECT_GT(size, keys);
      longest = std::max(longest, size);
    }
  }
  EXPECT_GT(longest + 64, Command::frame_max + keys + REDLOCK_VALUE_MAX + Command::sealed_size(prefix.size()))
      << "too generous";
  for (const Op op : {Op::release, Op::extend}) {
    EXPECT_LE(by_name(op, s).text_size(), Command::frame_max + keys + REDLOCK_VALUE_MAX);
  }
  EXPECT_LE(Command::look(test::space(), s.key_prefix, s.names).text_size(), Command::frame_max + keys);
}

TEST(Command, one_that_does_not_fit_is_none) {
  const Subject s = subject();
  const Sealed state = {"redlock:plant::meta", "seal"};
  const size_t sizes[] = {Command::plain(test::space(), Op::acquire, s, true).text_size(),
                          Command::sealed(test::space(), Op::extend, s, state, 0, false).text_size(),
                          Command::sealed(test::space(), Op::acquire_fenced, s, state, 42, true).text_size(),
                          Command::look(test::space(), s.key_prefix, s.names).text_size()};
  char text[512];
  for (size_t room = 0; room < sizeof text; ++room) {
    EXPECT_EQ(Command::plain({text, room}, Op::acquire, s, true).fits(), room >= sizes[0]);
    EXPECT_EQ(Command::sealed({text, room}, Op::extend, s, state, 0, false).fits(), room >= sizes[1]);
    EXPECT_EQ(Command::sealed({text, room}, Op::acquire_fenced, s, state, 42, true).fits(), room >= sizes[2]);
    EXPECT_EQ(Command::look({text, room}, s.key_prefix, s.names).fits(), room >= sizes[3]);
  }
}

// Platform facts, A7: every first word that a server was seen to answer.
TEST(Command, error_words) {
  const std::map<std::string, int> known = {{"READONLY", REDLOCK_E_READONLY},
                                            {"MASTERDOWN", REDLOCK_E_READONLY},
                                            {"LOADING", REDLOCK_E_LOADING},
                                            {"OOM", REDLOCK_E_OOM},
                                            {"BUSY", REDLOCK_E_SCRIPT_BUSY},
                                            {"MISCONF", REDLOCK_E_MISCONF},
                                            {"NOREPLICAS", REDLOCK_E_NOREPLICAS},
                                            {"NOAUTH", REDLOCK_E_AUTH_MISSING},
                                            {"WRONGPASS", REDLOCK_E_AUTH},
                                            {"NOPERM", REDLOCK_E_NOPERM},
                                            {"DENIED", REDLOCK_E_DENIED},
                                            {"NOSCRIPT", REDLOCK_E_NOSCRIPT},
                                            {"MOVED", REDLOCK_E_CLUSTER},
                                            {"ASK", REDLOCK_E_CLUSTER},
                                            {"CLUSTERDOWN", REDLOCK_E_CLUSTER},
                                            {"CROSSSLOT", REDLOCK_E_CLUSTER},
                                            {"TRYAGAIN", REDLOCK_E_CLUSTER},
                                            {"WRONGTYPE", REDLOCK_E_WRONGTYPE},
                                            {"ERR", REDLOCK_E_SERVER},
                                            {"NOPROTO", REDLOCK_E_SERVER},
                                            {"EXECABORT", REDLOCK_E_SERVER},
                                            {"UNKILLABLE", REDLOCK_E_SERVER}};
  for (const auto& [word, error] : known) {
    EXPECT_EQ(classify_error(bytes(word)), error) << word;
    EXPECT_EQ(classify_error(bytes(word + " and more")), error) << word;
    EXPECT_EQ(classify_error(bytes(word + "X and more")), REDLOCK_E_SERVER) << "only whole words count: " << word;
    EXPECT_EQ(classify_error(bytes(word.substr(0, word.size() - 1))), REDLOCK_E_SERVER) << "cut: " << word;
    EXPECT_EQ(classify_error(bytes("ERR " + word)), REDLOCK_E_SERVER) << "only the first word counts: " << word;
    EXPECT_EQ(classify_error(bytes(" " + word)), REDLOCK_E_SERVER) << word;
  }
}

TEST(Command, error_sentences_as_servers_write_them) {
  const auto error = [](const char* sentence) { return classify_error(Bytes(sentence, strlen(sentence))); };
  EXPECT_EQ(error("ERR max number of clients reached"), REDLOCK_E_MAXCLIENTS);
  EXPECT_EQ(error("ERR max number of clients + cluster connections reached"), REDLOCK_E_MAXCLIENTS);
  EXPECT_EQ(error("ERR max number of clientsX"), REDLOCK_E_SERVER);
  EXPECT_EQ(error("BUSYKEY Target key name already exists."), REDLOCK_E_SERVER);
  EXPECT_EQ(error("readonly in lower case"), REDLOCK_E_SERVER);
  EXPECT_EQ(classify_error(Bytes()), REDLOCK_E_SERVER);
}

// A script may run what its user may not: the refusal has no word of its own.
TEST(Command, a_permission_that_a_script_lacks) {
  const auto error = [](const std::string& sentence) { return classify_error(bytes(sentence)); };
  const std::string behind = " script: 0123456789abcdef0123456789abcdef01234567, on @user_script:1.";
  const std::string seven = "The user executing the script can't run this command or subcommand";
  EXPECT_EQ(error("ERR " + seven), REDLOCK_E_NOPERM);
  EXPECT_EQ(error("ERR " + seven + behind), REDLOCK_E_NOPERM);
  EXPECT_EQ(error("ERR Error running script (call to f_0123): @user_script:1: @user_script: 1: " + seven),
            REDLOCK_E_NOPERM);
  EXPECT_EQ(error("ERR The user executing the script can't access at least one of the keys mentioned in the command "
                  "arguments" +
                  behind),
            REDLOCK_E_NOPERM);
  EXPECT_EQ(error("ERR ACL failure in script: User gw has no permissions to run the 'del' command" + behind),
            REDLOCK_E_NOPERM)
      << "since Redis 7.2, and in Valkey";
  EXPECT_EQ(error("ERR the script can't be run"), REDLOCK_E_SERVER);
  EXPECT_EQ(error("ERR has no permission"), REDLOCK_E_SERVER);
}

// Before Redis 7 the error that ended a script stands behind other words.
TEST(Command, an_error_inside_a_script_of_redis_6) {
  const auto error = [](const std::string& sentence) {
    return classify_error(
        bytes("ERR Error running script (call to f_0123): @user_script:1: @user_script: 1: " + sentence));
  };
  EXPECT_EQ(error("-READONLY You can't write against a read only replica."), REDLOCK_E_READONLY);
  EXPECT_EQ(error("-OOM command not allowed when used memory > 'maxmemory'."), REDLOCK_E_OOM);
  EXPECT_EQ(error("-MISCONF Redis is configured to save RDB snapshots, but"), REDLOCK_E_MISCONF);
  EXPECT_EQ(error("-WRONGTYPE Operation against a key holding the wrong kind of value"), REDLOCK_E_WRONGTYPE);
  EXPECT_EQ(error("-NOREPLICAS Not enough good replicas to write."), REDLOCK_E_NOREPLICAS);
  EXPECT_EQ(error("Write commands not allowed after non deterministic commands."), REDLOCK_E_SERVER);
  EXPECT_EQ(error("-"), REDLOCK_E_SERVER);
  EXPECT_EQ(error("-READONLYX"), REDLOCK_E_SERVER) << "only whole words count";
  EXPECT_EQ(
      classify_error("ERR Error running script (call to f_0123): @user_script:1: WRONGTYPE Operation against a key "
                     "holding the wrong kind of value"),
      REDLOCK_E_WRONGTYPE)
      << "what the command itself said has no dash";
  EXPECT_EQ(classify_error("ERR Error running script (call to f_0123): @user_script:1: ERR value is not an integer"),
            REDLOCK_E_SERVER);
  EXPECT_EQ(error("-ERR Error running script (call to f_4567): @user_script:1: -READONLY no"), REDLOCK_E_READONLY);
  EXPECT_EQ(classify_error("OOM no: -READONLY no"), REDLOCK_E_OOM) << "the first word goes before";
}

// A server may say what it likes, in as many bytes as the receive buffer has; a thread's stack may be small.
TEST(Command, an_error_inside_an_error_inside_an_error) {
  static std::string text;
  while (text.size() < REDLOCK_RX_BYTES_MAX) text += ": -";
  text += "READONLY no";
  static int found = 0;
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  const auto classify = [](void*) -> void* {
    found = classify_error(bytes(text));
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, classify, nullptr), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(found, REDLOCK_E_READONLY);
}

struct Said {
  const char* what;
  Item item;
};

Item item(Type type, Bytes said = {}, int64_t integer = 0) {
  Item i;
  i.type = type;
  i.text = said;
  i.integer = integer;
  i.last = true;
  return i;
}

// The whole table: what each kind of reply says to each request. y: yes, n: no, p: not a reply to this.
TEST(Command, meaning_of_every_reply) {
  const struct {
    Said said;
    const char* acquire_extend_release;
  } table[] = {
      {{"+OK", item(Type::simple, "OK")}, "ypp"},
      {{"+QUEUED", item(Type::simple, "QUEUED")}, "ppp"},
      {{"+ok", item(Type::simple, "ok")}, "ppp"},
      {{"+OK and more", item(Type::simple, "OK!")}, "ppp"},
      {{"+", item(Type::simple)}, "ppp"},
      {{"null", item(Type::null)}, "npp"},
      {{":1", item(Type::integer, {}, 1)}, "pyy"},
      {{":0", item(Type::integer, {}, 0)}, "pnn"},
      {{":2", item(Type::integer, {}, 2)}, "ppp"},
      {{":-1", item(Type::integer, {}, -1)}, "ssp"},
      {{":2^32+1", item(Type::integer, {}, (int64_t{1} << 32) + 1)}, "ppp"},
      {{":min", item(Type::integer, {}, INT64_MIN)}, "ppp"},
      {{"$OK", item(Type::string, "OK")}, "ppp"},
      {{"$1", item(Type::string, "1")}, "ppp"},
      {{"#t", item(Type::boolean, {}, 1)}, "ppp"},
      {{"#f", item(Type::boolean, {}, 0)}, "ppp"},
      {{",1", item(Type::real, "1", 1)}, "ppp"},
      {{"(1", item(Type::big_number, "1", 1)}, "ppp"},
      {{"*0", item(Type::array)}, "ppp"},
      {{"*1", item(Type::array, {}, 1)}, "ppp"},
      {{"%0", item(Type::map)}, "ppp"},
      {{"~0", item(Type::set)}, "ppp"},
      {{">1", item(Type::push, {}, 1)}, "ppp"},
  };
  for (const auto& row : table) {
    for (unsigned op = 0; op < 3; ++op) {
      const Meaning m = meaning(static_cast<Op>(op), row.said.item);
      const char expected = row.acquire_extend_release[op];
      const Answer answer = expected == 'y' ? Answer::yes : expected == 'n' ? Answer::no : Answer::error;
      EXPECT_EQ(m.answer, answer) << row.said.what << " to op " << op;
      EXPECT_EQ(m.error, expected == 'p'   ? REDLOCK_E_PROTOCOL
                         : expected == 's' ? REDLOCK_E_SEAL
                                           : 0)
          << row.said.what << " to op " << op;
    }
  }
}

// ---- fenced ------------------------------------------------------------------------------------------------------

const std::string seal(50, 's');

const std::string meta = "redlock:plant::meta", fence = "redlock:plant::fence";

Sealed state() { return {bytes(meta), bytes(seal)}; }
Command sealed(Op op, const Subject& s, uint64_t token, bool by_name = true) {
  return Command::sealed(test::space(), op, s, state(), token, by_name);
}

// Each compares the state that it is meant for, in itself.
TEST(Command, sealed_words) {
  EXPECT_EQ(wire(sealed(Op::acquire, subject(), 0)),
            bulks({"EVALSHA", sha(acquire_script), "2", "plant:valve", meta, value, "10000", seal}));
  EXPECT_EQ(wire(sealed(Op::extend, subject(), 0)),
            bulks({"EVALSHA", extend_sha, "2", "plant:valve", meta, value, "10000", seal}));
  EXPECT_EQ(wire(sealed(Op::acquire_fenced, subject(), 42)),
            bulks({"EVALSHA", sha(acquire_script), "3", "plant:valve", meta, fence, value, "10000", seal, "42"}));
  EXPECT_EQ(wire(sealed(Op::token, subject(), 9007199254740993u)),
            bulks({"EVALSHA", sha(token_script), "3", "plant:valve", meta, fence, value, seal, "9007199254740993"}));
  EXPECT_EQ(wire(sealed(Op::token, subject(), UINT64_MAX, false)),
            bulks({"EVAL", test::text_of(token_script), "3", "plant:valve", meta, fence, value, seal,
                   "18446744073709551615"}));
  EXPECT_EQ(wire(sealed(Op::acquire_fenced, subject(), 0, false)),
            bulks({"EVAL", test::text_of(acquire_script), "3", "plant:valve", meta, fence, value, "10000", seal, "0"}));
}

#if defined(REDLOCK_ASSERTS)
TEST(Command, what_cannot_be_said_traps) {
  const Sealed none = {bytes(meta), Bytes()};
  EXPECT_DEATH(sealed(Op::release, subject(), 0), "") << "a delete compares no state";
  EXPECT_DEATH(Command::sealed(test::space(), Op::extend, subject(), none, 0, true), "") << "a plain one does";
}
#endif

TEST(Command, what_a_fenced_acquire_answers) {
  struct Row {
    const char* said;
    Answer answer;
    Counter::State state;
    uint64_t value, ms;
  };
  using State = Counter::State;
  const Row rows[] = {
      {"ack 42", Answer::yes, State::ack, 42, 0},
      {"known 41 1700000000000", Answer::yes, State::known, 41, 1700000000000},
      {"hint 0 1700000000000", Answer::yes, State::hint, 0, 1700000000000},
      {"held known 41", Answer::no, State::known, 41, 0},
      {"held hint 0", Answer::no, State::hint, 0, 0},
      {"ack 9007199254740993", Answer::yes, State::ack, 9007199254740993u, 0},
      {"ack 18446744073709551615", Answer::yes, State::ack, UINT64_MAX, 0},
      {"ack 18446744073709551616", Answer::yes, State::ack, UINT64_MAX, 0},
      {"ack 99999999999999999999999", Answer::yes, State::ack, UINT64_MAX, 0},
  };
  for (const Row& row : rows) {
    const Meaning m = meaning(Op::acquire_fenced, item(Type::string, Bytes(row.said, strlen(row.said))));
    EXPECT_EQ(m.answer, row.answer) << row.said;
    EXPECT_EQ(m.error, 0) << row.said;
    EXPECT_EQ(m.counter.state, row.state) << row.said;
    EXPECT_EQ(m.counter.value, row.value) << row.said;
    EXPECT_EQ(m.counter.server_ms, row.ms) << row.said;
  }
  for (const char* said :
       {"", "ack", "ack ", "ack x", "ack 4 2", "ack -1", "ack 4x", "known 41", "known 41 ", "hint", "held", "held 41",
        "held ack 41", "held known", "held known 41 1", "OK", "held  known 41", "1 41"}) {
    const Meaning m = meaning(Op::acquire_fenced, item(Type::string, Bytes(said, strlen(said))));
    EXPECT_EQ(m.answer, Answer::error) << said;
    EXPECT_EQ(m.error, REDLOCK_E_PROTOCOL) << said;
  }
  for (const Op op : {Op::acquire_fenced, Op::token, Op::extend}) {
    EXPECT_EQ(meaning(op, item(Type::integer, {}, -1)).error, REDLOCK_E_SEAL);
    EXPECT_EQ(meaning(op, item(Type::simple, "OK")).error, REDLOCK_E_PROTOCOL);
    EXPECT_EQ(meaning(op, item(Type::null)).error, REDLOCK_E_PROTOCOL);
  }
  EXPECT_EQ(meaning(Op::acquire_fenced, item(Type::integer, {}, 1)).error, REDLOCK_E_PROTOCOL);
  EXPECT_EQ(meaning(Op::token, item(Type::integer, {}, 1)).answer, Answer::yes);
  EXPECT_EQ(meaning(Op::token, item(Type::integer, {}, 0)).answer, Answer::no);
  EXPECT_EQ(meaning(Op::token, item(Type::string, "ack 42")).error, REDLOCK_E_PROTOCOL);
}

// An error is never a refusal and never a grant; but what is of another kind is not ours to delete.
TEST(Command, meaning_of_every_error) {
  const std::string words[] = {"READONLY",  "MASTERDOWN", "LOADING",     "OOM",       "BUSY",
                               "MISCONF",   "NOREPLICAS", "NOAUTH",      "WRONGPASS", "NOPERM",
                               "DENIED",    "MOVED",      "CLUSTERDOWN", "NOSCRIPT",  "ERR",
                               "WRONGTYPE", "EXECABORT",  "TRYAGAIN",    "OK",        ""};
  for (const std::string& word : words) {
    for (const Op op : {Op::acquire, Op::extend, Op::release, Op::acquire_fenced, Op::token}) {
      const Meaning m = meaning(op, item(Type::error, bytes(word)));
      if ((op == Op::extend || op == Op::release) && word == "WRONGTYPE") {  // a key of another kind: ours is gone
        EXPECT_EQ(m.answer, Answer::no);
        EXPECT_EQ(m.error, 0);
      } else {
        EXPECT_EQ(m.answer, Answer::error) << word;
        EXPECT_EQ(m.error, classify_error(bytes(word))) << word;
        EXPECT_NE(m.error, 0) << word;
      }
    }
  }
}

}  // namespace
}  // namespace redlock
