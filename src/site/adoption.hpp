// SPDX-License-Identifier: MIT
//
// Adoption takes masters that belong to another configuration into this one. The other configuration is known only by
// what its masters' records say: how many masters it has, their quorum, its longest ttl, and a hash of their names.
//
//     read      asks every master which configuration it belongs to. A record that is not understood, a mark of another
//               change, or too few masters of one other configuration end the call, and nothing was written
//     take over each other configuration in turn, by the steps of a takeover (site/reconfiguration)
//
// A takeover must leave the clients of the other configuration without a quorum. So it needs a quorum of that
// configuration's masters here, each a server of its own: two names of one server, and a copied data set, count once.
// A master counts if its record says so, or bears the mark of an earlier adoption: that one has found it so. If these
// are too few, masters count that an earlier adoption has entered. They are then marked and entered anew, unless they
// are a quorum by themselves (the change is over, and is completed). The mark of a redlock_reconfigure() does not
// count: it may stand on a master that was never of the old set.
//
// The operator may state that the other masters are gone for good. Then those that are here are all that is needed.
//
// Masters that are ours, or have no record, are not written. So our clients go on with them, as before the call.
//
// The class owns nothing and does no I/O. A driver moves its client, which has no guard; step() is called after its
// turns.
#pragma once
#include "site/reconfiguration.hpp"

namespace redlock {

class Adoption {
 public:
  // seed: random bits, from which the quarantine ids are drawn.
  Adoption(Client& set, bool rest_is_gone, uint64_t seed, Instant now);

  void step(Instant now);
  void clock_jumped(Instant now);
  bool over() const { return over_; }
  // When over: how many masters could not be read or written, or enum redlock_err.
  int result() const { return result_; }
  void tell(redlock_adopt_report_t& out, Instant now) const;

 private:
  static constexpr unsigned piece_size = Guard::id_size;
  static constexpr unsigned pieces = 2 + fingerprint_max / piece_size;
  static_assert(fingerprint_max % piece_size == 0);

  // What a master's record says, in the answers of scripts/owner.lua.
  struct Owner {
    int letter = 0;
    unsigned known = 0;  // pieces of the text
    char text[pieces * piece_size];

    Bytes run_id() const { return Bytes(text, piece_size); }
    Bytes q() const { return Bytes(text + piece_size, piece_size); }
    Bytes fingerprint() const;
  };
  // What the fingerprint of another configuration tells.
  struct Other {
    uint32_t masters = 0;
    uint32_t quorum = 0;
    uint32_t max_ttl_ms = 0;
  };

  static bool parse(Bytes fingerprint, Other& out);
  void read(Instant now);
  void hear(MasterIndex m);
  bool read_enough(Instant now);
  int judge();
  bool choose(MasterIndex first);
  Masters with_servers_of(Masters known, Masters more) const;
  bool same_server(MasterIndex a, MasterIndex b) const;
  Masters that_name(Bytes fingerprint, Masters masters) const;
  void begin_next(Instant now);
  void end_takeover();
  void finish(int result);

  Client& client_;
  const bool rest_is_gone_;
  bool over_ = false;
  int result_ = 0;
  uint32_t step_ = REDLOCK_ADOPT_READ;
  Random seeds_;
  Instant until_;    // of the reading
  Masters unread_;
  Masters asked_;
  Masters theirs_;   // are to be taken over
  Masters entered_;  // were entered by an earlier adoption
  Masters adopted_;  // were entered by this one
  // The configuration that is being taken over:
  Other other_;
  Masters group_;    // those of theirs_ that name it
  Masters counted_;  // its masters here, each a server of its own
  int err_[REDLOCK_MASTERS_MAX] = {};
  Owner owner_[REDLOCK_MASTERS_MAX];
  Reconfiguration* takeover_ = nullptr;
  alignas(Reconfiguration) unsigned char memory_[sizeof(Reconfiguration)];
};

}  // namespace redlock
