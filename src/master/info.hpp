// SPDX-License-Identifier: MIT
//
// Info: the few facts that the guard wants from INFO's five kilobytes, or from its section "replication". The reader
// gives the text out in parts, and the lines are read as they come. Only the present line is kept, and of a long line
// only the beginning.
#pragma once
#include "base/types.hpp"
#include "resp/reader.hpp"

namespace redlock {

struct InfoFacts {
  static constexpr size_t id_size = 16;  // of the 40 hex digits: enough to tell servers apart
  char run_id[id_size];
  char replid[id_size];
  bool has_run_id;
  bool has_replid;
  bool master;
  bool alone;       // no replica is connected, and no backlog waits for one
  bool standalone;  // false: a cluster node or a sentinel
  bool loading;
  bool evicts;      // maxmemory is set, and the policy is not noeviction
  uint64_t evicted_keys;
};

class InfoReader {
 public:
  void begin();
  void read(Bytes part);
  const InfoFacts& end();  // the text is over

 private:
  void line();

  InfoFacts facts_ = {};
  uint8_t none_ = 0;       // bit 0: no replica is connected; bit 1: there is no backlog
  bool limited_ = false;   // maxmemory is set
  bool evicting_ = false;  // the policy
  uint8_t size_ = 0;
  char line_[72];          // "master_replid:" and 40 digits is the longest that is wanted
};

}  // namespace redlock
