// SPDX-License-Identifier: MIT
#include "master/command.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

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
  return text(command.head()) + text(command.splice()) + text(command.tail());
}

std::string bulks(const std::vector<std::string>& words) {
  std::string s = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& w : words) s += "$" + std::to_string(w.size()) + "\r\n" + w + "\r\n";
  return s;
}

const std::string value = std::string(hex) + ":gw-17";
const std::string release_sha(release_script.sha.data, 40);
const std::string extend_sha(extend_script.sha.data, 40);

TEST(Command, exact_bytes) {
  EXPECT_EQ(wire(by_name(Op::acquire, subject())),
            "*6\r\n$3\r\nSET\r\n$11\r\nplant:valve\r\n"
            "$46\r\n00112233445566778899aabbccddeeff00112233:gw-17\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n10000\r\n");
  EXPECT_EQ(wire(by_name(Op::release, subject())), bulks({"EVALSHA", release_sha, "1", "plant:valve", value}));
  EXPECT_EQ(wire(by_name(Op::extend, subject())), bulks({"EVALSHA", extend_sha, "1", "plant:valve", value, "10000"}));
}

TEST(Command, a_script_spelled_out_goes_by_reference) {
  const Command release = Command::plain(test::space(), Op::release, subject(), false);
  EXPECT_EQ(wire(release), bulks({"EVAL", text(release_script.body), "1", "plant:valve", value}));
  EXPECT_EQ(release.splice().data, release_script.body.data);
  const Command extend = Command::plain(test::space(), Op::extend, subject(), false);
  EXPECT_EQ(wire(extend), bulks({"EVAL", text(extend_script.body), "1", "plant:valve", value, "10000"}));
  EXPECT_EQ(extend.splice().data, extend_script.body.data);
  for (const Command* c : {&release, &extend}) {
    EXPECT_EQ(c->text_size(), c->head().size + c->tail().size);
    EXPECT_GT(c->tail().size, 2u);
  }
  for (const Command& c : {by_name(Op::acquire, subject()), by_name(Op::release, subject()), by_name(Op::extend, subject())}) {
    EXPECT_EQ(c.splice().size, 0u);
    EXPECT_EQ(c.tail().size, 0u);
    EXPECT_EQ(c.text_size(), c.head().size);
  }
}

TEST(Command, no_prefix_no_name_any_bytes) {
  Subject s = subject();
  s.key_prefix = {};
  s.client_name = {};
  const std::string resource("\r\n\0*$ \xff", 7);
  s.names = bytes(resource);
  s.ttl_ms = UINT32_MAX;
  EXPECT_EQ(wire(by_name(Op::acquire, s)), bulks({"SET", resource, std::string(hex) + ":", "NX", "PX", "4294967295"}));
  EXPECT_EQ(wire(by_name(Op::release, s)), bulks({"EVALSHA", release_sha, "1", resource, std::string(hex) + ":"}));
}

// ---- several names ---------------------------------------------------------------------------------------------

Subject two_names() {
  static char memory[REDLOCK_RESOURCE_BYTES_MAX];
  const Bytes names[] = {"bus", "valve"};
  Subject s = subject();
  s.names.assign(memory, names, 2);
  return s;
}

TEST(Command, several_names_are_keys_of_one_script) {
  const auto sha = [](const Script& script) { return std::string(script.sha.data, 40); };
  const Subject s = two_names();
  EXPECT_EQ(wire(Command::plain(test::space(), Op::release, s, true)), bulks({"EVALSHA", sha(release_several_script), "2", "plant:bus", "plant:valve", value}));
  EXPECT_EQ(wire(Command::plain(test::space(), Op::release, s, false)),
            bulks({"EVAL", text(release_several_script.body), "2", "plant:bus", "plant:valve", value}));
  const Fencing none = {"redlock:plant::meta", Bytes(), 0};
  EXPECT_EQ(wire(Command::fenced(test::space(), Op::acquire_fenced, s, none, true)),
            bulks({"EVALSHA", sha(acquire_fenced_script), "4", "plant:bus", "plant:valve", "redlock:plant::meta",
                   "redlock:plant::fence", value, "10000", "", "0"}));
  EXPECT_EQ(wire(Command::fenced(test::space(), Op::token, s, {"redlock:plant::meta", Bytes(), 42}, false)),
            bulks({"EVAL", text(token_script.body), "4", "plant:bus", "plant:valve", "redlock:plant::meta",
                   "redlock:plant::fence", value, "", "42"}));
  EXPECT_EQ(wire(Command::fenced(test::space(), Op::extend, s, none, true)),
            bulks({"EVALSHA", sha(extend_fenced_script), "3", "plant:bus", "plant:valve", "redlock:plant::meta", value,
                   "10000", ""}));
}

TEST(Command, a_look_at_several_names_is_two_requests_too) {
  EXPECT_EQ(wire(Command::look(test::space(), "plant:", "valve")), bulks({"CLIENT", "CACHING", "yes"}) + bulks({"PTTL", "plant:valve"}));
  const Command look = Command::look(test::space(), "plant:", two_names().names);
  EXPECT_EQ(wire(look), bulks({"CLIENT", "CACHING", "yes"}) +
                            bulks({"EVAL", text(look_script.body), "2", "plant:bus", "plant:valve"}));
  EXPECT_EQ(look.splice().data, look_script.body.data);
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
  const Fencing f = {bytes(meta), bytes(seal_text), UINT64_MAX};
  const size_t keys = Names::max * (prefix.size() + REDLOCK_RESOURCE_MAX) + (Names::max - 1) * Command::name_max;
  for (const bool by_name : {true, false}) {
    for (const Op op : {Op::acquire_fenced, Op::token, Op::extend}) {
      const size_t size = Command::fenced(test::space(), op, s, f, by_name).text_size();
      EXPECT_LE(size, Command::frame_max + keys + REDLOCK_VALUE_MAX + Command::fencing_max);
      EXPECT_GT(size, keys);
    }
  }
  EXPECT_LE(Command::plain(test::space(), Op::release, s, true).text_size(), Command::frame_max + keys + REDLOCK_VALUE_MAX);
  EXPECT_LE(Command::look(test::space(), s.key_prefix, s.names).text_size(), Command::frame_max + keys);
}

TEST(Command, one_that_does_not_fit_is_none) {
  const Subject s = subject();
  const Fencing f = {"redlock:plant::meta", "seal", 42};
  const size_t sizes[] = {Command::plain(test::space(), Op::acquire, s, true).text_size(),
                          Command::fenced(test::space(), Op::extend, s, f, false).text_size(),
                          Command::look(test::space(), s.key_prefix, s.names).text_size()};
  char text[512];
  for (size_t room = 0; room < sizeof text; ++room) {
    EXPECT_EQ(Command::plain({text, room}, Op::acquire, s, true).fits(), room >= sizes[0]);
    EXPECT_EQ(Command::fenced({text, room}, Op::extend, s, f, false).fits(), room >= sizes[1]);
    EXPECT_EQ(Command::look({text, room}, s.key_prefix, s.names).fits(), room >= sizes[2]);
  }
}

// frame_max is what the client reserves beside key and value: enough for the longest, and not far above.
TEST(Command, the_longest_fit_their_frame) {
  const std::string prefix(REDLOCK_KEY_PREFIX_MAX, 'p'), resource(REDLOCK_RESOURCE_MAX, 'r'),
      name(REDLOCK_CLIENT_NAME_MAX, 'n');
  Subject s{bytes(prefix), bytes(resource), Bytes(hex), bytes(name), UINT32_MAX};
  const size_t payload = prefix.size() + resource.size() + REDLOCK_VALUE_MAX;
  size_t longest = 0;
  for (const Command& c : {by_name(Op::acquire, s), by_name(Op::release, s), by_name(Op::extend, s),
                           Command::plain(test::space(), Op::release, s, false),
                           Command::plain(test::space(), Op::extend, s, false)}) {
    EXPECT_LE(c.text_size(), payload + Command::frame_max);
    longest = std::max(longest, c.text_size());
  }
  EXPECT_GT(longest + 48, payload + Command::frame_max) << "frame_max is too generous";
  const size_t set = by_name(Op::acquire, s).text_size();
  EXPECT_LE(set, payload + Command::set_frame_max);
  EXPECT_GT(set + 4, payload + Command::set_frame_max) << "set_frame_max is too generous";
}

// Platform facts, A7: every first word that a server was seen to answer.
TEST(Command, error_words) {
  const std::map<std::string, int> known = {
      {"READONLY", REDLOCK_E_READONLY},   {"MASTERDOWN", REDLOCK_E_READONLY}, {"LOADING", REDLOCK_E_LOADING},
      {"OOM", REDLOCK_E_OOM},             {"BUSY", REDLOCK_E_SCRIPT_BUSY},    {"MISCONF", REDLOCK_E_MISCONF},
      {"NOREPLICAS", REDLOCK_E_NOREPLICAS}, {"NOAUTH", REDLOCK_E_AUTH},       {"WRONGPASS", REDLOCK_E_AUTH},
      {"NOPERM", REDLOCK_E_NOPERM},       {"DENIED", REDLOCK_E_DENIED},       {"NOSCRIPT", REDLOCK_E_NOSCRIPT},
      {"MOVED", REDLOCK_E_CLUSTER},       {"ASK", REDLOCK_E_CLUSTER},         {"CLUSTERDOWN", REDLOCK_E_CLUSTER},
      {"CROSSSLOT", REDLOCK_E_CLUSTER},   {"TRYAGAIN", REDLOCK_E_CLUSTER},    {"WRONGTYPE", REDLOCK_E_WRONGTYPE},
      {"ERR", REDLOCK_E_SERVER},          {"NOPROTO", REDLOCK_E_SERVER},      {"EXECABORT", REDLOCK_E_SERVER},
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
  EXPECT_EQ(error("ERR unknown command 'HELLO'"), REDLOCK_E_SERVER);
  EXPECT_EQ(error("ERR Protocol error: unbalanced quotes in request"), REDLOCK_E_SERVER);
  EXPECT_EQ(error("NOPROTO unsupported protocol version"), REDLOCK_E_SERVER);
  EXPECT_EQ(error("READONLY You can't write against a read only replica."), REDLOCK_E_READONLY);
  EXPECT_EQ(error("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
            REDLOCK_E_READONLY);
  EXPECT_EQ(error("NOSCRIPT No matching script. Please use EVAL."), REDLOCK_E_NOSCRIPT);
  EXPECT_EQ(error("OOM command not allowed when used memory > 'maxmemory'."), REDLOCK_E_OOM);
  EXPECT_EQ(error("BUSYKEY Target key name already exists."), REDLOCK_E_SERVER);
  EXPECT_EQ(error("MOVED 3999 127.0.0.1:6381"), REDLOCK_E_CLUSTER);
  EXPECT_EQ(error("ERR ACL failure in script: this user has no permissions"), REDLOCK_E_SERVER);
  EXPECT_EQ(error("readonly in lower case"), REDLOCK_E_SERVER);
  EXPECT_EQ(classify_error(Bytes()), REDLOCK_E_SERVER);
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
      {{":-1", item(Type::integer, {}, -1)}, "psp"},
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
      EXPECT_EQ(m.error, expected == 'p' ? REDLOCK_E_PROTOCOL : expected == 's' ? REDLOCK_E_SEAL : 0) << row.said.what << " to op " << op;
    }
  }
}

// ---- fenced ------------------------------------------------------------------------------------------------------

const std::string seal(50, 's');

Fencing fencing(uint64_t token) { return {Bytes("redlock:plant::meta"), Bytes(seal.data(), seal.size()), token}; }

TEST(Command, fenced_words) {
  const std::string meta = "redlock:plant::meta", fence = "redlock:plant::fence";
  const auto sha = [](const Script& script) { return std::string(script.sha.data, 40); };
  EXPECT_EQ(wire(Command::fenced(test::space(), Op::acquire_fenced, subject(), fencing(42), true)),
            bulks({"EVALSHA", sha(acquire_fenced_script), "3", "plant:valve", meta, fence, value, "10000", seal, "42"}));
  EXPECT_EQ(wire(Command::fenced(test::space(), Op::token, subject(), fencing(9007199254740993u), true)),
            bulks({"EVALSHA", sha(token_script), "3", "plant:valve", meta, fence, value, seal, "9007199254740993"}));
  EXPECT_EQ(wire(Command::fenced(test::space(), Op::extend, subject(), fencing(0), true)),
            bulks({"EVALSHA", sha(extend_fenced_script), "2", "plant:valve", meta, value, "10000", seal}));
  EXPECT_EQ(wire(Command::fenced(test::space(), Op::token, subject(), fencing(UINT64_MAX), false)),
            bulks({"EVAL", text(token_script.body), "3", "plant:valve", meta, fence, value, seal, "18446744073709551615"}));
}

TEST(Command, the_longest_fenced_command_fits) {
  const std::string prefix(REDLOCK_KEY_PREFIX_MAX, 'p'), resource(REDLOCK_RESOURCE_MAX, 'r');
  const std::string client(REDLOCK_CLIENT_NAME_MAX, 'c'), digits(40, 'f'), meta = "redlock:" + prefix + ":meta";
  const Subject s = {Bytes(prefix.data(), prefix.size()), Bytes(resource.data(), resource.size()),
                     Bytes(digits.data(), digits.size()), Bytes(client.data(), client.size()), UINT32_MAX};
  const Fencing f = {Bytes(meta.data(), meta.size()), Bytes(seal.data(), seal.size()), UINT64_MAX};
  for (const Op op : {Op::acquire_fenced, Op::token, Op::extend}) {
    for (const bool by_name : {true, false}) {
      const Command c = Command::fenced(test::space(), op, s, f, by_name);
      EXPECT_GT(c.text_size(), 0u);
      EXPECT_LE(c.text_size(), Command::frame_max + prefix.size() + resource.size() + REDLOCK_VALUE_MAX + Command::fencing_max);
    }
  }
}

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
  for (const char* said : {"", "ack", "ack ", "ack x", "ack 4 2", "ack -1", "ack 4x", "known 41", "known 41 ", "hint", "held",
                           "held 41", "held ack 41", "held known", "held known 41 1", "OK", "held  known 41", "1 41"}) {
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
  const std::string words[] = {"READONLY", "MASTERDOWN", "LOADING",  "OOM",     "BUSY", "MISCONF",     "NOREPLICAS",
                               "NOAUTH",   "WRONGPASS",  "NOPERM",   "DENIED",  "MOVED", "CLUSTERDOWN", "NOSCRIPT",
                               "ERR",      "WRONGTYPE",  "EXECABORT", "TRYAGAIN", "OK",   ""};
  for (const std::string& word : words) {
    for (const Op op : {Op::acquire, Op::extend, Op::release}) {
      const Meaning m = meaning(op, item(Type::error, bytes(word)));
      if (op == Op::release && word == "WRONGTYPE") {
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
