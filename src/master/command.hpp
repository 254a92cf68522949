// SPDX-License-Identifier: MIT
//
// Command: what is said to a master about one claim, and what the reply means. The bytes of a SET or of a script are
// the same for every master, apart from the guard's seal. So they are encoded once, in master/shared. This is the only
// file that knows the words SET, NX, PTTL, EVALSHA, and the meaning of +OK, null, :1 and an error prefix.
#pragma once
#include "base/names.hpp"
#include "base/types.hpp"
#include "master/scripts.hpp"
#include "resp/reader.hpp"
#include "resp/writer.hpp"

namespace redlock {

// What the commands of a round are about.
struct Subject {
  Bytes key_prefix;
  Names names;
  Bytes value_hex;    // the random half of the value
  Bytes client_name;  // ':' and this follow it
  uint32_t ttl_ms = 0;
};

// The state that a master was admitted in: the record's key, and the seal that must stand there. Seal empty: no guard.
struct Sealed {
  Bytes meta_key;
  Bytes seal;
};

// An encoded command: bytes in a buffer owned by someone else, and at most one script, whose text is sent by reference
// between these bytes. When the buffer was too small there is nothing to send, and fits() is false.
class Command {
 public:
  // Everything but key and value: EVALSHA, a digest, two numbers and the headers of six arguments.
  static constexpr size_t frame_max = 144;
  // The frame of a SET, which is shorter.
  static constexpr size_t set_frame_max = 60;
  // What a script that compares the guard's state adds: the keys of the record and of the counters, the seal, a token.
  static constexpr size_t sealed_size(size_t prefix) { return 2 * (prefix + 24) + 64 + 32; }
  // The header of each name but the first.
  static constexpr size_t name_max = 8;

  // acquire of one name by SET; extend and release of any number of names by a script. by_name: by the script's digest;
  // otherwise with its text, for a master that does not know the script.
  static Command plain(Space space, Op op, const Subject& subject, bool by_name);
  // acquire, extend, acquire_fenced and token of any number of names, by a script that also compares the guard's state.
  // token: the proposal of an acquire_fenced (0: none), or the number to be stored.
  static Command sealed(Space space, Op op, const Subject& subject, const Sealed& state, uint64_t token, bool by_name);
  // Two requests: register the keys that are read next, and read how long it is until all of them are gone.
  static Command look(Space space, Bytes key_prefix, const Names& names);
  static constexpr unsigned look_requests = 2;
  // One request: read the value of the first name's key, for the name of its holder.
  static Command holder(Space space, Bytes key_prefix, const Names& names) {
    return read_keys(space, "*2\r\n$3\r\nGET\r\n", key_prefix, names, 1);
  }
  // Sent ahead of a command: the keys that the command reads are tracked.
  static constexpr Bytes caching() { return "*3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nyes\r\n"; }

  Bytes head() const { return Bytes(text_, script_at_); }
  const Script* script() const { return script_; }  // whose text stands behind the head; nullptr: none
  Bytes tail() const { return Bytes(text_ + script_at_, static_cast<size_t>(size_ - script_at_)); }
  size_t text_size() const { return size_; }
  bool fits() const { return size_ != 0; }
  size_t seal() const { return seal_; }  // so many bytes before the end the seal stands; 0: there is none

 private:
  explicit Command(Space space) : text_(space.data) {}
  static Command read_keys(Space space, Bytes begin, Bytes key_prefix, const Names& names, unsigned n);
  void write_text(resp::Writer& out, const Script& script);
  REDLOCK_IN_LINE_FOR_SPEED inline void write_script(resp::Writer& out, const Script& script, bool by_name);
  void finish(const resp::Writer& out);

  uint16_t size_ = 0;
  uint16_t script_at_ = 0;
  uint16_t seal_ = 0;
  const Script* script_ = nullptr;
  const char* text_;
};

// yes: +OK of an acquire, :1 of the other scripts. no: null, :0. error: an error reply; never a refusal and never a
// grant.
enum class Answer : uint8_t { yes, no, error };

struct Meaning {
  Answer answer = Answer::error;
  int error = REDLOCK_E_PROTOCOL;  // enum redlock_err, with Answer::error
  Counter counter = {};            // of an acquire_fenced
};

// The script of an op. An acquire of one name may be a SET instead.
const Script& script_of(Op op);

// What an item of depth 0 means as the reply to a request. PROTOCOL: no master gives such a reply.
Meaning meaning(Op op, const resp::Item& item);

// Whose value is this? An item of the reply to Command::holder. yes: a value of this library's, and `name` is the
// client name in it. no: another value, or part of one. error: no value was told.
Answer holder_in(const resp::Item& item, Bytes& name);

// The first word of an error reply, as enum redlock_err.
int classify_error(Bytes text);
int error_of(const resp::Item& item);  // 0: it is no error
bool is_ok(const resp::Item& item);    // "+OK"

}  // namespace redlock
