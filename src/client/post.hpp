// SPDX-License-Identifier: MIT
//
// Post: all that a client says to its masters about locks, and the room for it. A post owns the sessions, the memory
// for commands that several masters are told, and the claims: the memory of what was said.
//
// Room. A master can take a command when its FIFO has places for the command, beside those that are kept for deletes,
// and when there is room for the bytes. A SET keeps a place for its own delete, so a delete never waits for others to
// be answered. Bytes stand in the shared memory; a script's text, and what one master alone is told, in the buffer of
// that master. Our own memory is empty again behind each turn, but for the buffer of a slow connection. What finds no
// room in it waits for the next turn.
#pragma once
#include "client/claims.hpp"
#include "lock/machine.hpp"
#include "master/session.hpp"

namespace redlock {

class Post {
 public:
  using Request = Session::Request;

  // What the sessions refer to. Small members come first: on ARM their instructions are short where they lie near the
  // beginning.
  bool for_port = true;  // a session may have a wish or an untold change
  bool news = false;     // a session may have news
  bool asked = false;    // a round has begun
  Awake awake = Awake::no;
  Instant begins_until = Instant::from_ns(INT64_MIN);  // until then a master that lacks our record may be given one

  explicit Post(const CommonSettings& settings) : settings_(settings) {}
  void init(Session* sessions, char* shared, size_t shared_size) {
    sessions_ = sessions;
    shared_.init(shared, shared_size);
  }
  // What a session needs of its post.
  void lend(Session::Memory& memory) {
    memory.shared = &shared_;
    memory.for_port = &for_port;
    memory.news = &news;
    memory.begins_until = &begins_until;
    memory.awake = &awake;
  }

  Session& operator[](MasterIndex m) { return sessions_[m]; }
  const Session& operator[](MasterIndex m) const { return sessions_[m]; }

  // ---- who may be asked
  Masters voting() const;
  // Has every master been tried once, or does a quorum vote? Before that a round would only be lost because the client
  // has just been created.
  bool introduced() const;
  // Must this master be asked by a script? A script takes several names, asks for a token, and compares the guard's
  // state on the server.
  static bool script_only(const Lock& lock) { return lock.options.fenced || lock.names.count() > 1; }
  bool by_script(const Lock& lock, MasterIndex m) const { return script_only(lock) || sessions_[m].asked_by_script(); }
  // Which of the voting masters have room for the round that a lock wants, and for the delete behind a SET?
  Masters ready(const Lock& lock, Masters votes, Masters by_script) const;
  // Which of these masters have room for one more command of the lock's round, by script?
  Masters able(Op op, const Lock& lock, Masters masters) const;
  // Why did a master that is not ready fail? enum redlock_err.
  int why_unable(const Lock& lock, MasterIndex m) const;

  // ---- what they are told: they have room for it
  // The open round of a lock begins.
  void ask_round(const Lock& lock, Masters masters, Masters by_script, const Instant& now);
  // One more command of the open round, or the token. by_script: otherwise it compares no state of the guard.
  void ask_more(Op op, const Lock& lock, Masters masters, bool by_script, const Instant& now);

  // ---- what they are told where there is room; false: there is none
  bool put_back(const Lock& lock, MasterIndex m, uint32_t ttl_ms, const Instant& now);
  // How long will the lock's keys live? holder: whose value do they have instead?
  bool look(const Lock& lock, MasterIndex m, bool holder, const Instant& now);

  // ---- deletes
  // A claim ends, and its value is deleted on these masters in the next turn.
  void end(uint16_t claim, Masters owed, const Instant& now);
  // Queues the deletes that a claim owes these masters, where there is room. The other deletes stay owed. False: our
  // own memory is full.
  bool send_deletes(uint16_t claim, Masters masters, const Instant& now);
  // All deletes that are owed.
  struct Paid {
    bool queued = false;
    bool full = false;  // some wait for our own memory, which is empty again behind the turn
  };
  Paid pay_debts(const Instant& now);

  // ---- behind a turn
  bool is_shared() const { return shared_.is_used(); }
  // A connection was slow. Takes back the newest command that it did not begin to take. A delete is owed again, and a
  // SET was never sent. False: no more is to be taken back.
  bool take_back(MasterIndex m, Request& out, const Instant& now);
  // To be sent before the next call: the shared commands in it carry this master's seal.
  const Tx& output(MasterIndex m) {
    if (shared_.has_seals()) sessions_[m].write_seals();
    return sessions_[m].tx();
  }
  // Has any session a wish or a changed state?
  bool needs_port();

  // An upper bound for the size of any command about so many names of so many bytes, without a script's text.
  static constexpr size_t command_size(size_t prefix, size_t names, size_t bytes) {
    return Command::frame_max + REDLOCK_VALUE_MAX + bytes + prefix + (names - 1) * (prefix + Command::name_max);
  }

 private:
  // A command for some masters, before it is encoded: the request that each FIFO remembers, and what the command says.
  struct Wording {
    Request request;
    uint32_t ttl_ms;
    bool sealed;     // by a script that compares the guard's state
    uint64_t token;  // Command::sealed
    Op op() const { return static_cast<Op>(request.kind); }
  };
  static constexpr unsigned set_requests = 2;  // a SET, and its delete

  static Wording wording(Op op, uint16_t claim, uint32_t round, uint32_t ttl_ms, const Instant& now) {
    return {{now, round, claim, static_cast<uint8_t>(op), false}, ttl_ms, false, 0};
  }
  inline Subject subject(uint16_t claim, uint32_t ttl_ms, char (&hex)[ValueBytes::hex_size]) const;
  REDLOCK_IN_LINE_FOR_SPEED inline Command encode(Space space, const Wording& what, MasterIndex m, bool by_name) const;
  [[gnu::noinline]] Command encode_apart(const Wording& what, MasterIndex m);  // with the script's text, for one master
  Masters without_script(Op op, Masters masters) const;
  void ask(const Wording& what, Masters masters, Masters apart);
  Masters with_room(Op op, const Names& names, Masters masters, Masters by_script, bool is_new) const;
  // The sum: so many requests beside the places that are kept for deletes.
  unsigned places(MasterIndex m, unsigned requests) const { return claims.reserved(m) + requests; }
  size_t command_size(const Names& names) const {
    return command_size(settings_.key_prefix.size, names.count(), names.bytes());
  }

  Queue<Claim, &Claim::place> ended_;  // claims whose deletes leave in the next turn
  Session* sessions_ = nullptr;
  const CommonSettings& settings_;
  Shared shared_;

 public:
  Claims claims;
};

}  // namespace redlock
