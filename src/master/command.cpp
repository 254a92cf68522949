// SPDX-License-Identifier: MIT
#include "master/command.hpp"

#include "base/digits.hpp"

namespace redlock {
namespace {

REDLOCK_IN_LINE_FOR_SPEED inline void write_keys(resp::Writer& out, Bytes key_prefix, const Names& names, unsigned n) {
  if (n == 1) {  // in nearly all commands
    out.bulk(key_prefix, names.first());
  } else {
    for (Bytes name : names) out.bulk(key_prefix, name);
  }
}

REDLOCK_IN_LINE_FOR_SPEED inline void write_value(resp::Writer& out, const Subject& s) {
  constexpr size_t hex_size = 2 * REDLOCK_VALUE_RANDOM;  // a constant, so that it is copied in line
  REDLOCK_ASSERT(s.value_hex.size == hex_size);
  out.bulk(Bytes(s.value_hex.data, hex_size), ":", s.client_name);
}

// Only the first word of an error is stable between servers and versions. One word stands behind the other, because the
// loader would have to relocate a table of pointers; the errors have the order of the words.
constexpr char first_words[] =
    "READONLY\0MASTERDOWN\0LOADING\0OOM\0BUSY\0MISCONF\0NOREPLICAS\0NOAUTH\0WRONGPASS\0NOPERM\0DENIED\0NOSCRIPT\0"
    "MOVED\0ASK\0CLUSTERDOWN\0CROSSSLOT\0TRYAGAIN\0WRONGTYPE\0ERR max number of clients";
constexpr ErrorByte errors_of_words[] = {
    -REDLOCK_E_READONLY, -REDLOCK_E_READONLY, -REDLOCK_E_LOADING, -REDLOCK_E_OOM, -REDLOCK_E_SCRIPT_BUSY,
    -REDLOCK_E_MISCONF, -REDLOCK_E_NOREPLICAS, -REDLOCK_E_AUTH_MISSING, -REDLOCK_E_AUTH, -REDLOCK_E_NOPERM,
    -REDLOCK_E_DENIED, -REDLOCK_E_NOSCRIPT, -REDLOCK_E_CLUSTER, -REDLOCK_E_CLUSTER, -REDLOCK_E_CLUSTER,
    -REDLOCK_E_CLUSTER, -REDLOCK_E_CLUSTER, -REDLOCK_E_WRONGTYPE, -REDLOCK_E_MAXCLIENTS,
};

}  // namespace

const Script& script_of(Op op) {
  switch (op) {
    case Op::extend:
      return extend_script;
    case Op::release:
      return release_script;
    case Op::token:
      return token_script;
    default:
      return acquire_script;
  }
}

void Command::write_text(resp::Writer& out, const Script& script) {
  out.bulk("EVAL").bulk_header(script.size());
  script_at_ = static_cast<uint16_t>(out.size());
  script_ = &script;
  out.crlf();
}

inline void Command::write_script(resp::Writer& out, const Script& script, bool by_name) {
  if (by_name) {
    constexpr size_t sha_size = 40;
    REDLOCK_ASSERT(script.sha.size == sha_size);
    out.raw("$7\r\nEVALSHA\r\n$40\r\n").raw(Bytes(script.sha.data, sha_size)).crlf();
  } else {
    write_text(out, script);
  }
}

void Command::finish(const resp::Writer& out) {
  REDLOCK_ASSERT(out.size() <= UINT16_MAX);
  REDLOCK_ASSERT(!out.fits() || script_at_ <= out.size());
  size_ = static_cast<uint16_t>(out.size());
  if (script_ == nullptr) script_at_ = size_;
}

Command Command::plain(Space space, Op op, const Subject& s, bool by_name) {
  Command c(space);
  resp::Writer out(space.data, space.size);
  const unsigned n = s.names.count();
  REDLOCK_ASSERT(n != 0);
  REDLOCK_ASSERT(op != Op::acquire_fenced);
  REDLOCK_ASSERT(op != Op::token);
  if (op == Op::acquire) {
    REDLOCK_ASSERT(n == 1);
    out.raw("*6\r\n$3\r\nSET\r\n");
  } else {
    const bool extends = op == Op::extend;
    if (n == 1) {  // in nearly all commands
      out.raw(extends ? "*6\r\n" : "*5\r\n");
    } else {
      out.array((extends ? 5 : 4) + n);
    }
    c.write_script(out, extends ? extend_script : release_script, by_name);
    n == 1 ? out.raw("$1\r\n1\r\n") : out.number(n);
  }
  write_keys(out, s.key_prefix, s.names, n);
  write_value(out, s);
  if (op == Op::acquire) out.raw("$2\r\nNX\r\n$2\r\nPX\r\n");
  if (op != Op::release) out.number(s.ttl_ms);
  c.finish(out);
  return c;
}

Command Command::sealed(Space space, Op op, const Subject& s, const Sealed& state, uint64_t token, bool by_name) {
  Command c(space);
  resp::Writer out(space.data, space.size);
  REDLOCK_ASSERT(op != Op::release);
  REDLOCK_ASSERT(op != Op::extend || state.seal.size != 0);
  REDLOCK_ASSERT(s.names.count() != 0);
  REDLOCK_ASSERT(state.meta_key.size != 0);
  // Keys: the names, the record, and the counters where a token is asked for or stored. Arguments: the value, the ttl
  // (not for the token's script), the seal, the token.
  const unsigned n = s.names.count();
  const bool counts = op == Op::acquire_fenced || op == Op::token;
  const bool two_keys = n == 1 && !counts;  // in nearly all commands
  two_keys ? out.raw("*8\r\n") : out.array((op == Op::acquire_fenced ? 9 : counts ? 8 : 7) + n);
  c.write_script(out, script_of(op), by_name);
  two_keys ? out.raw("$1\r\n2\r\n") : out.number(n + (counts ? 2 : 1));
  write_keys(out, s.key_prefix, s.names, n);
  out.bulk(state.meta_key);
  if (counts) out.bulk_header(8 + s.key_prefix.size + 6).raw("redlock:").raw(s.key_prefix).raw(":fence").crlf();
  write_value(out, s);
  if (op != Op::token) out.number(s.ttl_ms);
  out.bulk(state.seal);
  const size_t sealed = out.size();
  if (counts) {
    char digits[20];
    out.bulk(to_decimal(token, digits));
  }
  if (state.seal.size != 0) c.seal_ = static_cast<uint16_t>(out.size() - sealed + state.seal.size + 2);
  c.finish(out);
  return c;
}

// One name by the command that `begin` begins. Several names are read by a script, so that there is one answer. The
// script is always sent as text, since nobody repeats a look after NOSCRIPT.
Command Command::read_keys(Space space, Bytes begin, Bytes key_prefix, const Names& names, unsigned n) {
  Command c(space);
  resp::Writer out(space.data, space.size);
  out.raw(begin);
  if (n != 1) {
    out.array(3 + n);
    c.write_text(out, look_script);
    out.number(n);
  }
  write_keys(out, key_prefix, names, n);
  c.finish(out);
  return c;
}

Command Command::look(Space space, Bytes key_prefix, const Names& names) {
  static constexpr char one[] = "*3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nyes\r\n*2\r\n$4\r\nPTTL\r\n";
  static_assert(sizeof one > caching().size);
  const unsigned n = names.count();
  return read_keys(space, n == 1 ? Bytes(one) : caching(), key_prefix, names, n);
}

namespace {

// The rest of a text behind these words; nothing when the text does not contain them.
Bytes behind(Bytes text, Bytes words) {
  for (size_t at = 0; at + words.size <= text.size; ++at) {
    const size_t end = at + words.size;
    if (memcmp(text.data + at, words.data, words.size) == 0) return Bytes(text.data + end, text.size - end);
  }
  return Bytes();
}

}  // namespace

int classify_error(Bytes text) {
  // Redis 6 puts the error that ended a script behind words of its own: that of a refused command behind ": -", that of
  // a failed one behind ": ". A permission that a script lacks has no word.
  for (Bytes inner = text; inner.size != 0; inner = behind(inner, ": ")) {
    const size_t dash = inner.data[0] == '-' ? 1 : 0;
    const Bytes words(inner.data + dash, inner.size - dash);
    const char* word = first_words;
    for (const int error : errors_of_words) {
      const size_t size = strlen(word);
      const bool begins = words.size >= size && memcmp(words.data, word, size) == 0;
      if (begins && (words.size == size || words.data[size] == ' ')) return -error;
      word += size + 1;
    }
  }
  const bool before_7_2 = behind(text, "executing the script can't").data != nullptr;
  return before_7_2 || behind(text, "has no permissions").data != nullptr ? REDLOCK_E_NOPERM : REDLOCK_E_SERVER;
}

namespace {

// Removes the first word from a text, and returns it.
Bytes take_word(Bytes& text) {
  size_t n = 0;
  while (n < text.size && text.data[n] != ' ') ++n;
  const Bytes word(text.data, n);
  const size_t used = n < text.size ? n + 1 : n;
  text = Bytes(text.data + used, text.size - used);
  return word;
}

// A token that is too large for 64 bits is as good as the largest: no token is left above it.
// "held known 41", "ack 42", "known 41 1700000000000", "hint 0 1700000000000"
Meaning fenced_meaning(Bytes text) {
  Meaning out = {Answer::yes, 0};
  Bytes word = take_word(text);
  const bool held = word == Bytes("held");
  if (held) {
    out.answer = Answer::no;
    word = take_word(text);
  }
  out.counter.state = word == Bytes("known")          ? Counter::State::known
                      : word == Bytes("hint")         ? Counter::State::hint
                      : word == Bytes("ack") && !held ? Counter::State::ack
                                                      : Counter::State::none;
  bool well_formed = out.counter.state != Counter::State::none && parse_decimal(take_word(text), out.counter.value);
  if (!held && out.counter.state != Counter::State::ack) {
    well_formed = well_formed && parse_decimal(take_word(text), out.counter.server_ms);
  }
  return well_formed && text.size == 0 ? out : Meaning{};
}

}  // namespace

int error_of(const resp::Item& item) { return item.type == resp::Type::error ? classify_error(item.text) : 0; }

bool is_ok(const resp::Item& item) { return item.type == resp::Type::simple && item.text == Bytes("OK"); }

Meaning meaning(Op op, const resp::Item& item) {
  using resp::Type;
  if (const int error = error_of(item)) {
    // A key of another type is not ours: comparing it would fail, and nothing of ours is left there.
    const bool foreign = error == REDLOCK_E_WRONGTYPE && (op == Op::release || op == Op::extend);
    return foreign ? Meaning{Answer::no, 0} : Meaning{Answer::error, error};
  }
  if (item.type == Type::integer && item.integer == -1 && op != Op::release) return {Answer::error, REDLOCK_E_SEAL};
  if (op == Op::acquire) {
    if (is_ok(item)) return {Answer::yes, 0};
    if (item.type == Type::null) return {Answer::no, 0};
  } else if (op == Op::acquire_fenced) {
    if (item.type == Type::string) return fenced_meaning(item.text);
  } else if (item.type == Type::integer) {
    if (item.integer == 1) return {Answer::yes, 0};
    if (item.integer == 0) return {Answer::no, 0};
  }
  return {Answer::error, REDLOCK_E_PROTOCOL};
}

namespace {

bool is_digit_of_ours(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

}  // namespace

// A value lets anybody delete its key. Nothing of a foreign value may leave this function, and only the name of ours.
Answer holder_in(const resp::Item& item, Bytes& name) {
  constexpr size_t hex_size = 2 * REDLOCK_VALUE_RANDOM;
  const Bytes value = item.text;
  if (item.type != resp::Type::string) {
    return error_of(item) == REDLOCK_E_WRONGTYPE ? Answer::no : Answer::error;
  }
  size_t digits = 0;
  while (digits < value.size && is_digit_of_ours(value.data[digits])) ++digits;
  const bool ours = digits == hex_size && digits < value.size && value.data[digits] == ':';
  if (!ours || item.part || value.size > REDLOCK_VALUE_MAX) return Answer::no;
  name = Bytes(value.data + digits + 1, value.size - digits - 1);
  return Answer::yes;
}

}  // namespace redlock
