// SPDX-License-Identifier: MIT
//
// Info: the few facts that the guard needs from INFO. The reading script finds their lines in the text of about five
// kilobytes, and returns the values in the order of InfoReader::Line.
#pragma once
#include "base/types.hpp"

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
  bool evicts;      // maxmemory is set, and the policy is not noeviction
  uint64_t evicted_keys;
};

class InfoReader {
 public:
  enum class Line : uint8_t {
    run_id,
    replid,
    role,
    replicas,
    backlog,
    mode,
    server_mode,
    limit,
    policy,
    evicted,
  };
  static constexpr unsigned lines = static_cast<unsigned>(Line::evicted) + 1;

  void begin();
  void read(Line line, Bytes value);  // not called for a line that the server does not have
  const InfoFacts& end();             // all lines were read

 private:
  bool all(unsigned bits) const { return (as_wanted_ & bits) == bits; }

  InfoFacts facts_ = {};
  uint16_t there_ = 0;      // bits of lines
  uint16_t as_wanted_ = 0;  // of those that have the value of a lone master that evicts nothing
};

}  // namespace redlock
