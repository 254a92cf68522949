// SPDX-License-Identifier: MIT
//
// A file of metrics of the runs of one wish, for an agent that collects such files (--metrics). It is replaced as a
// whole. Its counters go on from what the file says, so they tell of all runs: each writes only what was added since it
// wrote last. The lock of the folder lets runs that share a file take turns.
#pragma once
#include <redlock/redlock.h>

#include "tool/system/clock.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {

class Metrics {
 public:
  // `names` and `path` must live as long. Ends the program if the file cannot be written, or is not ours to replace.
  void open(const char* path, const char* names);
  void look(const redlock_t* client);  // whenever something may have changed
  void write_due();                    // a change is written at once, but no more than once a second
  int timeout_ms() const { return timeout_until(due_); }
  void end();  // the client is gone, and what it saw with it: the counters stay

 private:
  class Page;

  void complain();  // once
  bool write(bool is_patient);
  bool replace();
  void write_counters(Page& page) const;
  void write_gauges(Page& page) const;

  const char* path_ = nullptr;
  Text resource_;
  redlock_status_t told_ = {};  // of what the client has counted, this stands in the file
  redlock_status_t seen_ = {};
  uint32_t up_ = 0;  // masters, as bits
  char masters_[REDLOCK_MASTERS_MAX][REDLOCK_MASTER_NAME_MAX + 1] = {};
  bool has_client_ = false;
  bool complained_ = false;
  int64_t written_at_ = 0;
  int64_t due_ = never;
};

}  // namespace redlock::tool
