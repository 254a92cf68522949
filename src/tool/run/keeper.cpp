// SPDX-License-Identifier: MIT
//
// The keeper: the process that the caller started. It has the client and takes the signals. It gives the command's end
// as its own, and lets the lock go when the command and all its descendants are gone. See warden.hpp for the command's
// parent.
//
// The keeper stays in the caller's session. A session of its own would gain one thing: a KILL or STOP to the caller's
// process group would miss the keeper. But a shell makes a job's first process the leader of a group, and a leader may
// not call setsid(). So a third process would have to stay behind as the job. Shells and init systems would wait for
// that process, signals and ^Z would have to go through it, and it could be stopped and killed as well.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/run/lease.hpp"
#include "tool/run/nesting.hpp"
#include "tool/run/relay.hpp"
#include "tool/run/waiting.hpp"
#include "tool/run/warden.hpp"
#include "tool/system/children.hpp"
#include "tool/system/descriptors.hpp"
#include "tool/words/changed.hpp"
#include "tool/words/say.hpp"

namespace redlock::tool {
namespace {

constexpr int64_t patience_ns = 10'000 * ns_per_ms;
constexpr int dismissal_ms = 1'000;
constexpr int left_tries = 10, left_again_ms = 100, look_again_ms = 1'000;
constexpr int last_words = 64;  // messages of the command right before its end

class Keeper {
 public:
  explicit Keeper(const Job& job)
      : job_(job), names_(job.wish.names.c_str()),
        waiting_(names_, job.tells_systemd || job.relay != nullptr, job.relay != nullptr) {}

  int run(redlock_config_t* cfg, const Common& common) {
    if (!job_.has_pid_namespace && !is_proc_ours()) {
      fail(exit_system, "/proc is that of another PID namespace: what the command leaves behind could not be found; "
           "--pidns needs no /proc");
    }
    if (job_.metrics != nullptr) lease_.metrics.open(job_.metrics, names_);
    become_parent_of_orphans();
    // A HUP that stayed ignored would be kept from the command, too.
    signals_.take({SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCHLD},
                  job_.ignores_hup ? SIGHUP : 0);
    warden_.fork(job_, signals_);  // before there is a client
    if (job_.relay != nullptr) relay_.open(job_.relay);
    cfg_ = cfg;
    lease_.open(cfg_, job_.wish, wait_left_ms(), common);
    int signal = wait_for_lock();
    while (signal == 0 && lease_.exit_code() == exit_left) {
      const bool follows = follow_change(common);
      if (!follows && !stays_behind(common)) break;
      signal = follows ? wait_for_lock() : wait_for_file(config_path(common));
    }
    if (signal == 0 && lease_.state() != Lease::held) signal = next_that_ends_a_wait();
    if (signal != 0 || lease_.state() != Lease::held) return end_of_wait(signal);
    const int64_t let_go_at = now_ns() + job_.at_least_ms * ns_per_ms;
    held_ = job_.wish.held(lease_.which());
    names_ = held_.c_str();
    end_ns_ = lease_.end_ns();
    const int64_t longer_ms = int64_t{job_.wish.how.max_hold_ms} - job_.wish.how.ttl_ms;
    longest_end_ns_ = job_.wish.how.max_hold_ms != 0 ? end_ns_ + longer_ms * ns_per_ms : never;
    if (waiting_.has_told_ready()) relay_.stood_by();
    if (job_.relay != nullptr) notify(Text("STATUS=holding %s", names_));
    if (job_.tells_systemd && !notify(Text("READY=1\nSTATUS=holding %s", names_))) {
      say("%s: the command was not started: systemd cannot be told: %s", names_, strerror(errno));
      end_without_command();
      return exit_output;
    }
    warden_.start(static_cast<int32_t>(lease_.which()), end_ns_, lease_.token());
    let_go_of_streams();
    if (common.verbose != 0) note("%s is held", names_);
    hold();
    for (int i = 0; i < last_words && relay_.pass();) ++i;
    keep_until(let_go_at);
    if (job_.tells_systemd) notify(Text("STOPPING=1"));
    lease_.close();  // deletes a lost lock's keys, too: every process that relied on the lock was seen to end
    return end_of_command();
  }

 private:
  // ---- waiting ----------------------------------------------------------------------------------------------------

  bool ends_a_wait(int number) const {
    return number == SIGTERM || number == SIGINT || number == SIGQUIT || (number == SIGHUP && !job_.ignores_hup);
  }

  // A signal that has come: 0: none.
  int next_that_ends_a_wait() {
    while (const int number = signals_.next()) {
      if (number == SIGHUP) waiting_.reload();
      if (!ends_a_wait(number)) continue;
      end_progress();
      return number;
    }
    return 0;
  }

  // Until it is held, or cannot be had, or a signal has come: which; 0: none.
  int wait_for_lock() {
    while (lease_.state() == Lease::waiting) {
      pollfd wanted[] = {{lease_.descriptor(), POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}};
      poll(wanted, 2, shorter_of(lease_.timeout_ms(), waiting_.timeout_ms()));
      if (const int number = next_that_ends_a_wait(); number != 0) return number;
      lease_.process();
      waiting_.tell(lease_.sentence(), lease_.is_held_by_other());
    }
    end_progress();
    return 0;
  }

  // What is left of --wait.
  int32_t wait_left_ms() const {
    const int32_t whole = job_.wish.how.wait_ms;
    if (whole <= 0) return whole;
    const int64_t left = whole - (now_ns() - began_ns_) / ns_per_ms;
    return left > 1 ? static_cast<int32_t>(left) : 1;
  }

  // A change of masters has left this client behind. If its file has been replaced, the wait goes on with the new one.
  // An operator may have copied that file before the change was done, or copied that of another change, so it is used
  // only if a quorum of the old masters records that the site was changed to it.
  bool follow_change(const Common& common) {
    const char* const path = config_path(common);
    if (path == nullptr || common.url_count != 0) return false;
    redlock_config_t* next = nullptr;
    look_at(path, tried_);
    const bool read = redlock_config_new(&next) == 0 && redlock_config_load_file(next, path) == 0;
    if (!read || setting_of(next, "timing.max_ttl_ms").number < job_.wish.how.ttl_ms || !is_changed_to(next)) {
      redlock_config_free(next);
      return false;
    }
    note("%s: the site was changed: the wait goes on with the new %s", names_, path);
    lease_.close();
    redlock_config_free(cfg_);
    cfg_ = next;
    lease_.open(cfg_, job_.wish, wait_left_ms(), common);
    return true;
  }

  static void look_at(const char* path, struct stat& about) {
    if (stat(path, &about) != 0) about = {};
  }

  // A unit that ends is started again, with whatever file is there: another change's, or one that came too early. So it
  // waits for the file that its masters record.
  bool stays_behind(const Common& common) const {
    const bool is_unit = job_.tells_systemd || job_.relay != nullptr;
    return is_unit && common.url_count == 0 && job_.wish.how.wait_ms == REDLOCK_WAIT_FOREVER;
  }

  static bool is_another(const struct stat& a, const struct stat& b) {
    return a.st_ino != b.st_ino || a.st_ctim.tv_sec != b.st_ctim.tv_sec || a.st_ctim.tv_nsec != b.st_ctim.tv_nsec;
  }

  // Waits until the file is another one than that which was tried. Returns a signal that ends the wait; 0: none came.
  int wait_for_file(const char* path) {
    const Text why = reason();
    say("%s: %s", names_, why.c_str());
    lease_.close();
    for (struct stat now = tried_;; look_at(path, now)) {
      if (is_another(now, tried_)) return 0;
      pollfd signal = {signals_.descriptor(), POLLIN, 0};
      poll(&signal, 1, shorter_of(look_again_ms, waiting_.timeout_ms()));
      if (const int number = next_that_ends_a_wait(); number != 0) return number;
      waiting_.tell(why.c_str(), true);  // ready, because a boot must not wait for the file
    }
  }

  // A change writes to one master after the other, so a quorum may record it a moment after the wait has ended. No
  // signal waits for that.
  bool is_changed_to(const redlock_config_t* next) const {
    auto left = sized<redlock_site_left_t>();
    for (int tries = 0; tries < left_tries; ++tries) {
      const int result = redlock_site_left(cfg_, next, &left);
      if (result != 0 || left.say == 0) return result == 1;
      pollfd signal = {signals_.descriptor(), POLLIN, 0};
      if (poll(&signal, 1, left_again_ms) != 0) return false;
    }
    return false;
  }

  // Why the wait has ended. If a change of masters ended it, the masters are asked what the site was changed to.
  Text reason() const {
    auto left = sized<redlock_site_left_t>();
    const bool is_left = lease_.exit_code() == exit_left;
    if (!is_left || redlock_site_left(cfg_, nullptr, &left) < 0 || left.say == 0) return Text("%s", lease_.sentence());
    const Numbers ours = {left.old_masters, setting_of(cfg_, "timing.max_ttl_ms").number};
    return changed_text(ours, {left.masters, left.max_ttl_ms}, left.done_s);
  }

  // A warden that is dismissed ends behind the init of its PID namespace. One that somebody has stopped does not see
  // it; it has no command, and its init dies with it.
  void end_without_command() {
    warden_.dismiss();
    lease_.close();
    pollfd end = {warden_.descriptor(), POLLIN, 0};
    poll(&end, 1, dismissal_ms);
    kill(warden_.pid(), SIGKILL);
    waitpid(warden_.pid(), nullptr, 0);
  }

  int end_of_wait(int signal) {
    const ExitCode code = lease_.exit_code();
    const int end = code == exit_held ? static_cast<int>(job_.held_code) : code;
    if (signal != 0) {
      say_as(Priority::info, "%s: the wait was ended by signal %d", names_, signal);
    } else if (end == exit_ok) {
      note("%s: %s", names_, reason().c_str());  // with -E 0 it is no error
    } else {
      say_as(code == exit_held ? Priority::warning : Priority::error, "%s: %s", names_, reason().c_str());
    }
    end_without_command();
    return signal != 0 ? end_by(signal) : end;
  }

  // ---- holding ----------------------------------------------------------------------------------------------------

  // Until the warden and every descendant have ended. The lock is renewed meanwhile.
  void hold() {
    while (!reap()) {
      pollfd wanted[] = {{signals_.descriptor(), POLLIN, 0},
                         {warden_is_gone_ ? -1 : warden_.descriptor(), POLLIN, 0},
                         {lease_.descriptor(), POLLIN, 0},
                         relay_.wanted()};
      const int pause = killing_ ? again_ms : timeout_until(kill_at());
      poll(wanted, 4, shorter_of(pause, lease_.timeout_ms()));
      look_at_clock();  // before anything that would renew the lock
      while (const int number = signals_.next()) on_signal(number);
      lease_.process();
      follow_lease();
      hear_warden();
      if (wanted[3].revents != 0) relay_.pass();
    }
  }

  void on_signal(int number) {
    end_asked_ = end_asked_ || ends_a_wait(number);
    if (number == SIGCHLD || has_command_got(number)) return;
    if (number != SIGTERM || stop_asked_) return warden_.signal(number);
    stop_asked_ = true;
    end_within(job_.schedule.stop_ms);
  }

  // What is typed goes to the group, and so to the command. A hangup goes to the leader of the session alone: to us
  // below `ssh -t HOST redlock run ...`.
  bool has_command_got(int number) const {
    return job_.has_terminal && signals_.is_from_terminal() && (number != SIGHUP || getsid(0) != getpid());
  }

  // The warden does it. We do it where the warden is stopped.
  void end_within(int64_t ms) {
    const int64_t when = now_ns() + ms * ns_per_ms;
    if (ms > 0) warden_.end(when);
    ordered_kill_at_ = earlier_of(ordered_kill_at_, ms > 0 ? when + lead_ms * ns_per_ms : when);
  }

  void hear_warden() {
    for (Report report{}; warden_.receive(report);) {
      has_ended_ = true;
      status_ = report.status;
      lost_ = lost_ || report.in_time == 0;
    }
  }

  void follow_lease() {
    if (lease_.state() == Lease::held) {
      if (lease_.end_ns() == end_ns_) return;
      end_ns_ = lease_.end_ns();
      return warden_.move(end_ns_);
    }
    if (lost_ || has_ended_) return;
    lost_ = true;
    end_within(job_.schedule.grace_ms);
  }

  // --at-least: nothing of the command is left, and others see the lock held. A signal lets it go.
  void keep_until(int64_t let_go_at) {
    while (!end_asked_ && lease_.state() == Lease::held && now_ns() < let_go_at) {
      pollfd wanted[] = {{signals_.descriptor(), POLLIN, 0}, {lease_.descriptor(), POLLIN, 0}};
      poll(wanted, 2, shorter_of(timeout_until(let_go_at), lease_.timeout_ms()));
      while (const int number = signals_.next()) end_asked_ = end_asked_ || ends_a_wait(number);
      lease_.process();
    }
    if (job_.wish.how.max_hold_ms != 0 && lease_.ran_out()) return;  // as was asked for, less the drift of clocks
    if (!lost_ && lease_.state() == Lease::lost) say("%s: %s", names_, lease_.sentence());
  }

  // ---- the end ----------------------------------------------------------------------------------------------------

  void look_at_clock() {
    const int64_t now = now_ns();
    if (!killing_ && now >= kill_at()) {
      killing_ = true;
      kill_began_ = now;
      if (!has_ended_ && now >= job_.schedule.kernel_kills_at(lease_.end_ns())) lost_ = true;
      if (!warden_is_gone_) kill(warden_.pid(), SIGKILL);
    }
    if (!killing_) return;
    signal_descendants(SIGKILL);
    if (now - kill_began_ < patience_ns) return;
    kill_began_ = now;
    say_as(Priority::warning, "%s: processes that the kernel cannot end yet are waited for", names_);
  }

  // True: nothing is left. The warden's children become ours when it dies; it ends by itself only when it has none.
  bool reap() {
    for (;;) {
      int status = 0;
      const pid_t child = reap_child(status);
      if (child < 0 && errno == ECHILD) return true;
      if (child <= 0) return warden_is_gone_ && has_earlier_children() && !has_descendants();
      if (child != warden_.pid()) continue;
      hear_warden();
      warden_is_gone_ = true;
      warden_status_ = status;
      ordered_kill_at_ = 0;
      look_at_clock();
    }
  }

  int end_of_command() {
    if (lost_) {
      const char* why = lease_.sentence();
      const bool is_longest = lease_.end_ns() >= longest_end_ns_;
      if (*why == '\0') why = is_longest ? "--max-hold allows no later end" : "no renewal was answered in time";
      say("%s: the lock was lost, and the command was ended: %s", names_, why);
      return exit_lost;
    }
    if (has_ended_) return WIFEXITED(status_) ? WEXITSTATUS(status_) : end_by(WTERMSIG(status_));
    if (stop_asked_) return end_by(SIGKILL);
    if (WIFEXITED(warden_status_)) return WEXITSTATUS(warden_status_);  // it has said why
    say("%s: the warden was killed, and the command with it", names_);
    return exit_system;
  }

  const Job& job_;
  redlock_config_t* cfg_ = nullptr;  // until the end: the lease asks why a delete was refused
  struct stat tried_{};              // the file that was to follow it
  int64_t began_ns_ = now_ns();
  Text held_;
  const char* names_;  // wished for, and then held
  Signals signals_;
  CommandWarden warden_;
  Lease lease_;
  Waiting waiting_;
  Relay relay_;

  int64_t kill_at() const {
    return earlier_of(ordered_kill_at_, job_.schedule.kernel_kills_at(lease_.end_ns()));
  }

  bool has_ended_ = false;  // the command; status_ says how
  int status_ = 0;
  bool lost_ = false;
  bool stop_asked_ = false;     // by TERM
  bool end_asked_ = false;      // by that or another signal that ends a wait
  bool warden_is_gone_ = false;
  int warden_status_ = 0;
  bool killing_ = false;
  int64_t end_ns_ = 0;  // as the warden knows it
  int64_t longest_end_ns_ = never;  // what --max-hold allows, less the drift of clocks
  int64_t ordered_kill_at_ = never;
  int64_t kill_began_ = 0;
};

}  // namespace

int keep(const Job& job, redlock_config_t* cfg, const Common& common) {
  remember_keeper(cfg);
  if (const Above above = held_above(job.wish); above.name != nullptr) {
    const int code = static_cast<int>(job.held_code);
    (code == exit_ok ? note : say)("%s: not acquired: this command runs under it already, by redlock run (process %d)",
                                   Text().escaped(above.name).c_str(), above.keeper);
    return code;
  }
  static Keeper keeper(job);
  return keeper.run(cfg, common);
}

}  // namespace redlock::tool
