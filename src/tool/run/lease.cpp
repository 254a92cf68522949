// SPDX-License-Identifier: MIT
#include "tool/run/lease.hpp"

#include <poll.h>
#include <string.h>
#include <syslog.h>

#include <new>

#include "tool/system/clock.hpp"
#include "tool/words/denied.hpp"
#include "tool/words/say.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {
namespace {

constexpr uint32_t close_grace_ms = 1000;

// "redlock_acquire_async: a name is given twice": the call is the library's affair, and open() tells the sentence.
const char* behind_call(const char* line) {
  const char* const colon = strstr(line, ": ");
  return strncmp(line, "redlock_", 8) == 0 && colon != nullptr ? colon + 2 : nullptr;
}

// Of several names --any asks for one after another, and the library refuses one only when its turn comes.
bool is_reserved(const redlock_config_t* cfg, const redlock_resource_t& name) {
  auto facts = sized<redlock_site_facts_t>();
  if (redlock_site_facts(cfg, 0, &facts) != 0) return false;
  const Text key("%s%s", facts.key_prefix, static_cast<const char*>(name.data)), ours("redlock:%s:", facts.key_prefix);
  return strncmp(key, ours, ours.size()) == 0;
}

}  // namespace

void Wish::add(const char* resource) {
  names.add(count != 0 ? " " : "").escaped(resource);
  resources[count++] = redlock_resource(resource);
}

Text Wish::bytes_held(uint32_t which) const {
  Text out;
  for (uint32_t i = is_any ? which : 0; i < (is_any ? which + 1 : count); ++i) {
    out.add("%s%s", out.empty() ? "" : " ", static_cast<const char*>(resources[i].data));
  }
  return out;
}

void Lease::open(redlock_config_t* cfg, const Wish& wish, int32_t wait_ms, const Common& common) {
  cfg_ = cfg;
  is_any_ = wish.is_any;
  state_ = waiting;
  exit_code_ = exit_ok;
  lock_ = {};
  any_.~any_of();
  new (&any_) any_of;  // any_of::begin() may be called once
  *sentence_ = *mistake_ = '\0';
  uint32_t bytes = 0;
  for (uint32_t i = 0; !is_any_ && i < wish.count; ++i) bytes += wish.resources[i].size;
  int err = 0;
  for (uint32_t i = 0; is_any_ && i < wish.count; ++i) {
    if (!is_reserved(cfg, wish.resources[i])) continue;
    fail(exit_usage, "%s: %s", wish.held(i).c_str(), redlock_strerror(REDLOCK_E_RESERVED));
  }
  // The room for names is this client's own affair: several names need more than a file that was made for one.
  if (bytes > REDLOCK_RESOURCE_BYTES_DEFAULT) err = redlock_config_set_u32(cfg, "limits.resource_bytes", bytes);
  // So are the places for locks, of which each name takes one.
  if (err == 0 && is_any_) err = redlock_config_set_u32(cfg, "limits.locks", wish.count);
  log_level_ = common.verbose == 0 ? LOG_ERR : common.verbose == 1 ? LOG_INFO : LOG_DEBUG;
  redlock_config_set_log(cfg, on_log, this, log_level_);
  redlock_config_set_event(cfg, on_client_event, this);
  wish_ = &wish;
  ttl_ms_ = wish.how.ttl_ms;
  drift_ms_ = drift_ms(ttl_ms_, setting_of(cfg, "timing.drift_ppm").number,
                       setting_of(cfg, "timing.drift_fixed_ms").number);
  if (err != 0) fail(exit_config, "%s", redlock_config_error(cfg));
  client_ = new_client(cfg);
  how_ = wish.how;
  how_.wait_ms = wait_ms;
  how_.flags |= REDLOCK_F_TELL_WAITING;
  how_.callback = on_event;
  how_.user = this;
  tries_again_ = has_tried_again_ = false;
  err = acquire();
  if (err != 0) fail(exit_code_of(err), "%s", *mistake_ != '\0' ? mistake_ : redlock_strerror(err));
}

int Lease::acquire() {
  return is_any_ ? any_.begin(client_, wish_->resources, wish_->count, how_)
                 : redlock_acquire_async(client_, wish_->resources, wish_->count, &how_, &lock_);
}

void Lease::process() {
  if (redlock_process(client_) == REDLOCK_E_CLOSED) state_ = closed;
  if (state_ == closed) return metrics.end();
  metrics.look(client_);
  metrics.write_due();
}

void Lease::close() {
  if (client_ == nullptr || state_ == closed) return;
  redlock_release_async(client_, lock_);
  redlock_close_async(client_, close_grace_ms);
  while (state_ != closed) {
    pollfd wanted = {descriptor(), POLLIN, 0};
    poll(&wanted, 1, timeout_ms());
    process();
    note_refusals();
  }
}

// ---- what happens -----------------------------------------------------------------------------------------------

void Lease::on_event(redlock_t* client, const redlock_event_t* event, void* self) {
  static_cast<Lease*>(self)->metrics.look(client);  // the last event may come right before the client's end
  static_cast<Lease*>(self)->take(*event);
}

// Events of the client, not of the lock.
void Lease::on_client_event(redlock_t*, const redlock_event_t* event, void* user) {
  Lease& self = *static_cast<Lease*>(user);
  if (event->type == REDLOCK_EV_CLOSED && event->failed != 0) self.tell_key_left();
  if (event->type == REDLOCK_EV_MASTER && self.tries_again_) self.may_try_again();
}

// The client of a new process makes its only try when a quorum votes. Where a master of that quorum denies the name, a
// master that is reached a moment later could have voted in its place. So the try is repeated once, when each master
// was reached or has failed. False: no other quorum could have voted.
bool Lease::may_try_again() {
  auto master = sized<redlock_master_status_t>();
  uint32_t count = 0, usable = 0;
  for (; redlock_master_status(client_, count, &master) == 0; ++count) {
    usable += master.state == REDLOCK_MASTER_UP && master.err == 0;
  }
  const bool is_due = tries_again_;
  tries_again_ = has_untried_master();
  if (tries_again_) return true;
  if (!is_due && 2 * usable <= count) return false;
  has_tried_again_ = true;
  const int err = acquire();
  if (err != 0) fail(exit_code_of(err), "%s", redlock_strerror(err));
  return true;
}

bool Lease::has_untried_master() const {
  auto master = sized<redlock_master_status_t>();
  for (uint32_t i = 0; redlock_master_status(client_, i, &master) == 0; ++i) {
    if (master.state < REDLOCK_MASTER_UP && master.err == 0) return true;
    if (master.state == REDLOCK_MASTER_GUARDED && master.err == REDLOCK_E_UNREAD) return true;
  }
  return false;
}

// A master that has answered everything and still has a delete owed to it has refused that delete.
void Lease::note_refusals() {
  auto master = sized<redlock_master_status_t>();
  for (uint32_t i = 0; state_ != closed && redlock_master_status(client_, i, &master) == 0; ++i) {
    const bool has_answered = master.state == REDLOCK_MASTER_UP && master.in_flight == 0;
    if (!has_answered || master.owed == 0 || master.err == 0) continue;
    refusal_ = master.err;
    refused_by_ = i;
  }
}

// A key that was not deleted keeps others out until it ends by itself. Where a name is denied there is no key.
void Lease::tell_key_left() const {
  const int64_t left_ms = end_ns_ != 0 ? (end_ns_ - now_ns()) / ns_per_ms + drift_ms_ : is_denied_ ? 0 : ttl_ms_;
  if (left_ms <= 0) return;
  Text why("the delete was not answered");
  if (refusal_ != 0) {
    const Text more = refusal(cfg_, refused_by_, refusal_, wish_->resources, wish_->count);
    why = Text("the delete was refused: %s%s", redlock_strerror(refusal_),
               more.empty() ? "; redlock doctor says what to do" : more.c_str());
  }
  say("%s: may stay locked for up to %s s: %s", wish_->names.c_str(), Text().thousandths(left_ms).c_str(), why.c_str());
}

void Lease::on_log(int level, const char* line, void* user) {
  Lease& self = *static_cast<Lease*>(user);
  const char* const mistake = behind_call(line);
  if (mistake != nullptr) format_text(self.mistake_, sizeof self.mistake_, "%s", mistake);
  if (mistake != nullptr || self.log_level_ <= LOG_ERR || is_quiet) return;
  say_as(level <= LOG_ERR       ? Priority::error
         : level == LOG_WARNING ? Priority::warning
                                : Priority::info,
         "%s", line);
}

void Lease::take(const redlock_event_t& event) {
  if (state_ == closed) return;
  is_denied_ = event.master_err == REDLOCK_E_NOPERM;
  const bool was_only_try = event.type == REDLOCK_EV_FAILED && how_.wait_ms == REDLOCK_TRY_ONCE && !is_any_;
  const bool may_change = event.cause == REDLOCK_CAUSE_TOO_FEW || event.cause == REDLOCK_CAUSE_GUARD;
  if (was_only_try && may_change && !has_tried_again_ && may_try_again()) return;
  if (event.type == REDLOCK_EV_FAILED && state_ == waiting) exit_code_ = worse_of(exit_code_, code_of_failure(event));
  if (is_any_ && !any_.take(event)) return;
  switch (event.type) {
    case REDLOCK_EV_ACQUIRED:
      lock_ = event.lock;
      state_ = held;
      token_ = event.token;
      if (const Text warning = mixture(); !warning.empty()) say("%s: %s", wish_->names.c_str(), warning.c_str());
      return read_end();
    case REDLOCK_EV_RENEWED:
      *sentence_ = '\0';
      return read_end();
    case REDLOCK_EV_LOST:
      state_ = lost;
      ran_out_ = event.failed + event.refused == 0;
      break;
    case REDLOCK_EV_FAILED:
      state_ = failed;
      break;
    case REDLOCK_EV_WAITING:
      is_held_by_other_ = event.cause == REDLOCK_CAUSE_HELD;
      describe(event);
      if (is_denied_everywhere(event)) {
        state_ = failed;
        exit_code_ = exit_permission;
        return;
      }
      return tell_denial(event.master_err);
    case REDLOCK_EV_AT_RISK:
      break;
    default:
      return;
  }
  describe(event);
}

// The first master with this error.
uint32_t Lease::first_with(int err) const {
  auto master = sized<redlock_master_status_t>();
  uint32_t m = 0;
  while (redlock_master_status(client_, m, &master) == 0 && master.err != err) ++m;
  return m;
}

// A master of another configuration, whose clients may hold the same names; "": there is none.
Text Lease::mixture() const {
  auto master = sized<redlock_master_status_t>();
  if (redlock_master_status(client_, first_with(REDLOCK_E_FINGERPRINT), &master) != 0) return Text();
  return Text("%s belongs to clients of another configuration, which may hold this, too: compare the files of all "
              "gateways", name_of_master(master.name, master.address).c_str());
}

// redlock_describe() names one master. Other masters with the same error most often have the same cause.
Text Lease::other_masters(const redlock_detail_t& told, int err) const {
  auto master = sized<redlock_master_status_t>();
  const auto is_other = [&](uint32_t m) {
    return redlock_master_status(client_, m, &master) == 0 && master.err != 0 &&
           strcmp(master.address, told.address) != 0;
  };
  Text all;
  bool done[REDLOCK_MASTERS_MAX] = {};
  for (uint32_t i = 0; i < REDLOCK_MASTERS_MAX; ++i) {
    if (done[i] || !is_other(i)) continue;
    const int same = master.err;
    Text names;
    for (uint32_t m = i; m < REDLOCK_MASTERS_MAX; ++m) {
      if (!is_other(m) || master.err != same) continue;
      done[m] = true;
      names.add("%s%s", names.empty() ? "" : ", ", name_of_master(master.name, master.address).c_str());
    }
    const char* const text = same == err ? "the same" : redlock_strerror(same);
    all.add("; %s: %s", names.c_str(), text);
  }
  return all;
}

// What a master denies, or its own words, come from questions that change nothing. While a lock is held none is asked:
// its key was allowed when it was acquired.
void Lease::describe(redlock_event_t event) {
  auto detail = event.detail != nullptr ? *event.detail : redlock_detail_t{};
  const int err = event.master_err;
  const bool is_explained = event.detail != nullptr && (err == REDLOCK_E_NOPERM || err == REDLOCK_E_SERVER);
  if (is_explained && err != explained_) {
    const bool asks = state_ != held && state_ != lost;
    refusal_text_ = asks ? refusal(cfg_, first_with(err), err, wish_->resources, wish_->count) : Text();
    if (refusal_text_.empty()) {
      refusal_text_ =
          Text(err == REDLOCK_E_NOPERM ? "; redlock doctor says which" : "; redlock doctor names the command");
    }
  }
  explained_ = is_explained ? err : 0;
  if (is_explained && err == REDLOCK_E_NOPERM) detail.denied = "";
  const Text others =
      event.cause == REDLOCK_CAUSE_TOO_FEW && event.detail != nullptr ? other_masters(detail, err) : Text();
  Text where;  // with the name by which status and doctor call the master
  const bool has_name = event.detail != nullptr && *detail.name != '\0' && *detail.address != '\0';
  if (has_name && strcmp(detail.name, detail.address) != 0) {
    detail.address = where.escaped(detail.name).add(" (%s)", detail.address);
  }
  if (event.detail != nullptr) event.detail = &detail;
  size_t size = redlock_describe(&event, sentence_, sizeof sentence_);
  const bool is_our_name = event.cause == REDLOCK_CAUSE_HELD && detail.holder != nullptr &&
                           strcmp(detail.holder, setting_of(cfg_, "client_name").value) == 0;
  const char* const our_name =
      "; the name is this gateway's own: another run has it, or was killed, and its key ends by itself";
  const Text warning = event.cause == REDLOCK_CAUSE_GUARD ? mixture() : Text();
  if (!warning.empty()) {
    format_text(sentence_, sizeof sentence_, "%s; %s", warning.c_str(), Text("%s", sentence_).c_str());
    size = strlen(sentence_);
  }
  const char* const more = event.cause == REDLOCK_CAUSE_CHANGE ? "; redlock status says whose"
                           : is_explained                      ? refusal_text_.c_str()
                           : err == REDLOCK_E_RESOLVE          ? "; redlock doctor tries the name server, too"
                           : is_our_name                       ? our_name
                           : !others.empty()                   ? "; redlock doctor says more"
                                                               : "";
  const char *const first = is_explained ? more : others.c_str(), *const last = is_explained ? others.c_str() : more;
  if (size < sizeof sentence_) format_text(sentence_ + size, sizeof sentence_ - size, "%s%s", first, last);
}

// True if all masters are reached and deny the name. No permission comes by itself, so the wait would never end. While
// some masters have not answered, the others may grant the lock without those that deny it.
bool Lease::is_denied_everywhere(const redlock_event_t& event) const {
  if (is_any_ || event.cause != REDLOCK_CAUSE_TOO_FEW || event.master_err != REDLOCK_E_NOPERM) return false;
  auto master = sized<redlock_master_status_t>();
  for (uint32_t i = 0; redlock_master_status(client_, i, &master) == 0; ++i) {
    if (master.state != REDLOCK_MASTER_UP || master.err != REDLOCK_E_NOPERM) return false;
  }
  return true;
}

// Not only with the next line about the wait: somebody must act before the wait can end.
void Lease::tell_denial(int master_err) {
  const bool denied = exit_code_of(master_err) == exit_permission;
  if (denied && !told_denial_) note("%s", sentence_);
  told_denial_ = denied;
}

void Lease::read_end() {
  const int64_t end = redlock_deadline_ns(client_, lock_);
  if (end > 0) end_ns_ = end;
}

// ---- exit codes -------------------------------------------------------------------------------------------------

ExitCode Lease::code_of_failure(const redlock_event_t& event) const {
  if (event.cause == REDLOCK_CAUSE_HELD) return exit_held;
  if (event.cause == REDLOCK_CAUSE_GUARD && !mixture().empty()) return exit_config;  // no wait makes it right
  if (event.cause == REDLOCK_CAUSE_GUARD || event.cause == REDLOCK_CAUSE_CHANGE) return exit_not_admitted;
  if (event.cause == REDLOCK_CAUSE_NEVER || event.cause == REDLOCK_CAUSE_TOO_FEW) {
    return worse_of(exit_code_of(event.master_err), code_of_masters());
  }
  const ExitCode code = exit_code_of(event.err);
  return code == exit_too_few ? code_of_masters() : code;
}

// Too few masters vote. Of those that do not, the one with the cause that tells most.
ExitCode Lease::code_of_masters() const {
  ExitCode worst = exit_too_few;
  auto master = sized<redlock_master_status_t>();
  for (uint32_t i = 0; redlock_master_status(client_, i, &master) == 0; ++i) {
    if (master.state != REDLOCK_MASTER_UP && master.err != 0) worst = worse_of(worst, exit_code_of(master.err));
  }
  return worst;
}

}  // namespace redlock::tool
