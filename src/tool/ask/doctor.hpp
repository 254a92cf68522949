// SPDX-License-Identifier: MIT
//
// Doctor: is a site fit for locks? Each check has an id, says what it saw and what to do, and is told at once. What was
// denied is unknown, never ok.
#pragma once
#include "tool/ask/site.hpp"
#include "tool/words/exit_code.hpp"

namespace redlock::tool {

enum class Level { ok, warn, fail, unknown };

class Doctor {
 public:
  static constexpr unsigned resources_max = 32;

  Doctor(Site& site, uint32_t ttl_ms, bool json, char** resources, unsigned resource_count)
      : site_(site), ttl_ms_(ttl_ms), json_(json), resources_(resources), resource_count_(resource_count) {
    if (json_) out_.open('{').text("schema", "redlock.doctor/1").open('[', "checks");
  }

  void examine_site();
  void examine_master(unsigned m);
  void compare_masters();  // when each was examined
  void check_clock_source();
  void check_suspend();
  void check_secrets(const char* config);
  ExitCode end();

 private:
  static constexpr unsigned cycles = 50;

  // Two readings of a server's clock against ours.
  struct Sample {
    int64_t ours_ns = 0;    // as redlock_question_t tells time
    int64_t server_us = 0;  // 0: not told
    int64_t rtt_us = 0;
  };

  // What the next tell() is about.
  void about(const char* id, const Master* master = nullptr) {
    id_ = id;
    master_ = master != nullptr ? master->name() : nullptr;
  }
  void tell(Level level, const char* saw, const char* todo = "", ExitCode code = exit_internal);
  // The first of these that holds; if none does, all is well.
  struct Finding {
    bool holds;
    Level level;
    const char* todo;
    ExitCode code = exit_internal;
  };
  void judge(const Text& saw, std::initializer_list<Finding> findings);
  void denied(int err);
  // What the user lacks, as a list, and what it could use besides.
  void tell_lacking(const Text& needed, const Text& useful, const char* todo);
  Level unless_quorum(unsigned good) const { return good >= site_.quorum ? Level::warn : Level::fail; }
  bool check_reach(unsigned m, const Master& it);
  void check_tls(unsigned m, const Master& it);
  void check_version(unsigned m, const Master& it);
  void check_role(unsigned m, const Master& it);
  void check_replicas(unsigned m, const Master& it);
  void check_memory(unsigned m, const Master& it);
  void check_persistence(unsigned m, const Master& it);
  void check_permissions(unsigned m, const Master& it);
  void check_keys(unsigned m, const Master& it);
  void check_record(unsigned m, const Master& it);
  void tell_mark(unsigned m);
  void check_guard(unsigned m, const Master& it);
  void check_prefix(unsigned m, const Master& it);
  void check_round_trip(unsigned m, const Master& it);
  void check_clock(unsigned m, const Sample& first, const Sample& second);
  Sample sample(unsigned m) const;

  Site& site_;
  const uint32_t ttl_ms_;
  const bool json_;
  char** const resources_;
  const unsigned resource_count_;
  const char* id_ = "";
  const char* master_ = nullptr;  // its name
  Json out_;
  Sample first_[REDLOCK_MASTERS_MAX];
  ExitCode code_ = exit_ok;
  unsigned told_[4] = {};  // of each level
};

}  // namespace redlock::tool
