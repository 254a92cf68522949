// SPDX-License-Identifier: MIT
//
// Command: what is said to a master about one claim, and what its reply means. The bytes of a SET or of a script are
// the same for every master, so they are encoded once, where the first master's are sent from, and copied to the
// others. This is the only file that knows the words SET, NX, PTTL, EVALSHA, and what +OK, null, :1 and an error prefix
// stand for.
#pragma once
#include "master/scripts.hpp"
#include "names.hpp"
#include "resp/reader.hpp"
#include "resp/writer.hpp"
#include "types.hpp"

namespace redlock {

// What the commands of a round are about.
struct Subject {
  Bytes key_prefix;
  Names names;
  Bytes value_hex;    // the random half of the value
  Bytes client_name;  // ':' and this follow it
  uint32_t ttl_ms = 0;
};

// What the round of a fenced lock, or of one with several names, adds to it. The seal is the one that this master was
// admitted under; empty: no guard.
struct Fencing {
  Bytes meta_key;
  Bytes seal;
  uint64_t token = 0;  // the proposal, or the token to be stored; 0: none
};

// An encoded command: bytes in a space of somebody else's, and at most one text (a script body) that is sent by
// reference from between them. Where the space was too small there is nothing to send: fits() is false.
class Command {
 public:
  // Everything but key and value: EVALSHA, a digest, two numbers and the headers of six arguments.
  static constexpr size_t frame_max = 144;
  // The same of a SET, which is shorter.
  static constexpr size_t set_frame_max = 60;
  // What fencing adds: the keys of the guard's record and of the counters, the seal, a token.
  static constexpr size_t fencing_max = 2 * (REDLOCK_KEY_PREFIX_MAX + 24) + 64 + 32;
  // The header of each name but the first.
  static constexpr size_t name_max = 8;

  // acquire and extend of one name, release of any number; the latter two by the script's name, or with its text for a
  // master that does not know it (NOSCRIPT).
  static Command plain(Space space, Op op, const Subject& subject, bool by_name);
  // Two requests: register what is read next, and read how long it is until all names are gone.
  static Command look(Space space, Bytes key_prefix, const Names& names);
  static constexpr unsigned look_requests = 2;
  // Ahead of a command: what it reads is tracked.
  static constexpr Bytes caching() { return "*3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nyes\r\n"; }
  // acquire_fenced, token and extend of a fenced lock, or of one with several names; by name, or with the script's
  // text.
  static Command fenced(Space space, Op op, const Subject& subject, const Fencing& fencing, bool by_name);

  Bytes head() const { return Bytes(text_, splice_at_); }
  Bytes splice() const { return splice_; }
  Bytes tail() const { return Bytes(text_ + splice_at_, static_cast<size_t>(size_ - splice_at_)); }
  size_t text_size() const { return size_; }
  bool fits() const { return size_ != 0; }

 private:
  explicit Command(Space space) : text_(space.data) {}
  void write_script(resp::Writer& out, const Script& script, bool by_name);
  void finish(const resp::Writer& out);

  uint16_t size_ = 0;
  uint16_t splice_at_ = 0;
  Bytes splice_;
  const char* text_;
};

// yes: +OK of a SET, :1 of a script. no: null, :0. error: an error reply; never a refusal and never a grant.
enum class Answer : uint8_t { yes, no, error };

struct Meaning {
  Answer answer = Answer::error;
  int error = REDLOCK_E_PROTOCOL;  // enum redlock_err, with Answer::error
  Counter counter = {};            // of an acquire_fenced
};

// What an item of depth 0 says to a request. PROTOCOL: an item that no master answers to it.
Meaning meaning(Op op, const resp::Item& item);

// 64 bits in decimal, at the end of `digits`: a token is text on its way to the masters, never a Lua number.
Bytes to_decimal(uint64_t number, char (&digits)[20]);

// The first word of an error reply, as enum redlock_err.
int classify_error(Bytes text);

}  // namespace redlock
