// SPDX-License-Identifier: MIT
//
// Master: a Redis double on its machine. It may stand still (its kernel goes on taking connections and bytes, which are
// executed when it goes on), die and restart, or refuse.
#pragma once
#include <map>

#include "network.hpp"
#include "support/redis_double.hpp"

namespace redlock::sim {

// The last step of a wall clock.
struct Step {
  unsigned count = 0;  // of its clock
  Ns at = -never;
  bool forward = false;
};

class Master {
 public:
  Master(World& world, unsigned index, uint64_t seed, int64_t rate_ppm);

  void serve(Connection& c);  // whatever has arrived on it
  void tell_pushed();         // what it says unasked, also when nothing has arrived
  void freeze();
  void thaw();
  void crash(test::RedisDouble::Keep keep, bool silently);
  void restart();
  void kill(Connection& c);  // closed by the server
  void mend();               // no error state any more
  void resync(bool back_at_once);
  void remember(bool always);  // what it has now, or only if the record is another one
  // What it had then, or before, is what RedisDouble::Keep::snapshot brings back.
  void recall(Ns then);
  // Any instant of the past; with a record, one at which it had this record, if there is one before any instant.
  Ns some_instant(Stream& random, std::string_view record = {}) const;
  void leave_visit(const std::string& machine, int64_t boot_ms);

  test::RedisDouble redis;
  bool down = false;
  bool silent = false;  // while down, nothing is refused, it is just lost
  bool frozen = false;
  Ns troubled_until = -never / 2;  // answered errors
  bool clock_disturbed = false;    // stepped, slewed or stopped at any time
  Step step;                       // in Worlds::clocks
  Ns replica_at = never;           // its first replica connected

 private:
  struct Past {
    Ns at;
    test::RedisDouble::Data keys;
  };
  void answer(Connection& c);

  World& world_;
  unsigned index_;
  std::vector<Past> past_;
  std::map<int, uint32_t> connections_;  // the double's number → the network's
};

}  // namespace redlock::sim
