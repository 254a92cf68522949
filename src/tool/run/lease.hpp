// SPDX-License-Identifier: MIT
//
// One lock of one client, in polled mode: no thread, one descriptor. What happens is remembered, and asked for between
// two calls of process().
#pragma once
#include "tool/run/job.hpp"
#include "tool/run/metrics.hpp"

namespace redlock::tool {

// One lock of one client: of all names of the wish, or of any of them.
class Lease {
 public:
  enum State { waiting, held, lost, failed, closed };

  Metrics metrics;  // to be opened before the lease

  // Begins to ask, for wait_ms. Ends the program if that cannot be. Behind close() it begins anew.
  void open(redlock_config_t* cfg, const Wish& wish, int32_t wait_ms, const Common& common);
  int descriptor() const { return redlock_fd(client_); }
  int timeout_ms() const { return shorter_of(redlock_timeout_ms(client_), metrics.timeout_ms()); }
  void process();

  State state() const { return state_; }
  int64_t end_ns() const { return end_ns_; }  // of the validity; the last known, if the lock is lost
  uint64_t token() const { return token_; }
  bool ran_out() const { return ran_out_; }  // lost, and no master is to blame
  uint32_t which() const { return is_any_ ? any_.which() : 0; }  // held, of a wish for any: its index
  bool is_held_by_other() const { return is_held_by_other_; }  // as the wait has it; any of a wish for any
  // What the acquire waits for, or why it failed, or why the lock is at risk or lost; "": not known.
  const char* sentence() const { return sentence_; }
  ExitCode exit_code() const { return exit_code_; }  // failed
  // Lets go, and waits until the masters have answered, for a second at most. A key that stays is a line on stderr.
  void close();

 private:
  static void on_event(redlock_t* client, const redlock_event_t* event, void* self);
  static void on_client_event(redlock_t* client, const redlock_event_t* event, void* self);
  static void on_log(int level, const char* line, void* self);
  void take(const redlock_event_t& event);
  void read_end();
  void describe(redlock_event_t event);
  uint32_t first_with(int err) const;
  void tell_denial(int master_err);
  bool is_denied_everywhere(const redlock_event_t& event) const;
  int acquire();
  bool has_untried_master() const;
  bool may_try_again();
  Text mixture() const;
  Text other_masters(const redlock_detail_t& told, int err) const;
  void note_refusals();
  void tell_key_left() const;
  ExitCode code_of_failure(const redlock_event_t& event) const;
  ExitCode code_of_masters() const;

  const redlock_config_t* cfg_ = nullptr;
  redlock_t* client_ = nullptr;
  redlock_lock_t lock_{};
  redlock_acquire_opts_t how_{};
  bool tries_again_ = false;      // the only try is repeated when each master was reached or has failed
  bool has_tried_again_ = false;
  bool is_any_ = false;
  const Wish* wish_ = nullptr;
  uint32_t ttl_ms_ = 0, drift_ms_ = 0;
  bool is_denied_ = false;       // as the last event says
  int refusal_ = 0;              // why a master has refused a delete
  uint32_t refused_by_ = 0;
  any_of any_;
  State state_ = waiting;
  int64_t end_ns_ = 0;
  uint64_t token_ = 0;
  bool ran_out_ = false;
  int log_level_ = 0;
  bool told_denial_ = false;
  Text refusal_text_;  // behind the text of `explained_`, as long as that stays the error
  int explained_ = 0;
  bool is_held_by_other_ = false;
  ExitCode exit_code_ = exit_ok;
  char sentence_[2 * REDLOCK_TEXT_MAX] = "";
  char mistake_[256] = "";  // in what was asked for
};

}  // namespace redlock::tool
