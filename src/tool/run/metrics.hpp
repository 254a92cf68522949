// SPDX-License-Identifier: MIT
//
// A file of metrics of the runs of one wish, for an agent that collects such files (--metrics). Its counters go on from
// what the file says, so they tell of all runs: each writes only what was added since it wrote last. The file has no
// gauges, which a run that is killed would leave there: `redlock status --prometheus` asks the masters.
#pragma once
#include <redlock/redlock.h>

#include "tool/system/clock.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {

class Metrics {
 public:
  // `path` must outlive this object. Ends the program if the file cannot be written, or is not ours to replace.
  void open(const char* path, const char* names);
  void look(const redlock_t* client);  // whenever something may have changed
  void write_due();                    // a change is written at once, but no more than once a second
  int timeout_ms() const { return timeout_until(due_); }
  void end();  // the client is gone, and what it saw with it: the counters stay

 private:
  class Page;

  void complain();  // once
  bool write(bool is_patient);
  void write_counters(Page& page) const;

  const char* path_ = nullptr;
  Text resource_;
  redlock_status_t told_ = {};  // of what the client has counted, this stands in the file
  redlock_status_t seen_ = {};
  bool complained_ = false;
  int64_t written_at_ = 0;
  int64_t due_ = never;
};

}  // namespace redlock::tool
