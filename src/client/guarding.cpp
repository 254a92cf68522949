// SPDX-License-Identifier: MIT
//
// The client's part of the guard. The fleet compares masters with each other; here the client acts on the result.
#include "client/client.hpp"
#include "lock/validity.hpp"

namespace redlock {
namespace {

Duration guard_time_of(const CommonSettings& s) { return guard_time(s.max_ttl_ms, s.drift_ppm, s.drift_fixed_ms); }

int64_t ms_until(Instant until, const Instant& now) {
  if (until == Instant::never()) return REDLOCK_GUARD_UNKNOWN;
  return remaining_ms(until + Duration::ns(999'999), now);  // a wait is rounded up
}

}  // namespace

// The caller says that no lock is held now. The statement ends after two connect timeouts: of a master that is reached
// only later, the caller cannot know what others hold there by then.
int Client::commission(MasterIndex m, const Instant& now) {
  if (phase_ != Phase::open) return REDLOCK_E_CLOSED;
  const Instant until = now + settings_.connect_timeout + settings_.connect_timeout;
  for (MasterIndex k = 0; k < settings_.masters; ++k) {
    if (m != settings_.masters && m != k) continue;
    sessions_[k].commission(until, now);
    plan(sessions_[k]);
  }
  again_ = true;
  return 0;
}

void Client::boot_time(int64_t ms, const Instant& now) {
  wants_boot_time_ = false;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    sessions_[m].boot_time(ms, now);
    plan(sessions_[m]);
  }
}

// The loop is needed because news of one session may cause news of another: a server that the configuration names
// twice, for example.
void Client::take_news(const Instant& now) {
  while (news_) {
    news_ = false;
    for (MasterIndex m = 0; m < settings_.masters; ++m) {
      const News news = sessions_[m].take_news();
      if (news.strays == Strays::ended) claims_.strays_ended(m, now);
      if (news.strays == Strays::at_large) claims_.strays_at_large(m, now);
      wants_boot_time_ = wants_boot_time_ || news.wants_boot_time;
      if (news.identified) identified();
      if (news.withdrawn) withdrawn(m, now);
      if (news.stepped) clock_stepped(m, news.by, now);
    }
    again_ = true;
  }
}

// If the configuration names a server twice, only the first of the two masters votes.
void Client::identified() {
  Bytes ids[REDLOCK_MASTERS_MAX];
  for (MasterIndex m = 0; m < settings_.masters; ++m) ids[m] = sessions_[m].guard().run_id();
  const Masters duplicates = fleet_.duplicates(ids);
  for (MasterIndex m = 0; m < settings_.masters; ++m) sessions_[m].set_duplicate(duplicates.has(m));
}

void Client::withdrawn(MasterIndex m, const Instant& now) {
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (lock.state == State::free || !lock.round.open) continue;
    perform(lock, machine_.revoke(lock, m, REDLOCK_E_UNREAD, now), now);
  }
  if (sessions_[m].guard().forgot()) forgotten(m, now);
}

// A clock that stepped forward makes keys expire too early, so a held lock needs a quorum of other owners. A clock that
// stepped back keeps keys longer, which harms no holder. Neither master votes for a guard time.
void Client::clock_stepped(MasterIndex m, Duration by, const Instant& now) {
  ++counters_.clock_steps;
  sessions_[m].distrust(now + guard_time_of(settings_));  // take_news() goes on, and hears that the vote is withdrawn
  Masters wrong;
  for (MasterIndex k = 0; k < settings_.masters; ++k) {
    if (sessions_[k].guard().distrusted()) {
      wrong.add(k);
    } else {
      sessions_[k].read_now(now);
    }
    plan(sessions_[k]);
  }
  for (unsigned i = 0; i < table_.capacity() && by > Duration(); ++i) {
    Lock& lock = table_[i];
    if (lock.state == State::held) perform(lock, machine_.distrust(lock, wrong & claims_[lock.claim].sent), now);
  }
  fleet_.clock_stepped(m, now);
  again_ = true;
}

void Client::quarantine_stepped(const Instant& now) {
  Masters agree;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (!sessions_[m].guard().distrusted() && sessions_[m].samples_clock(fleet_.stepped_at())) agree.add(m);
  }
  const Duration patience = reading_lifetime(settings_.max_ttl_ms);
  for (MasterIndex m : fleet_.surely_stepped(agree, patience, now)) sessions_[m].quarantine(now);
}

// ---- for events and status --------------------------------------------------------------------------------------

Instant Client::guarded_until() const {
  Instant admitted_at[REDLOCK_MASTERS_MAX];
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    const Session& session = sessions_[m];
    admitted_at[m] = session.votes()     ? Instant::from_ns(INT64_MIN)
                     : session.guarded() ? session.guard().watched_at()
                                         : Instant::never();
  }
  return fleet_.quorum_admitted_at(admitted_at);
}

int64_t Client::guard_ms(const Instant& now) const {
  return settings_.guard == GuardMode::off ? 0 : ms_until(guarded_until(), now);
}

int64_t Client::guard_ms_of(MasterIndex m, const Instant& now) const {
  return sessions_[m].guarded() ? ms_until(sessions_[m].guard().watched_at(), now) : 0;
}

int32_t Client::shown_state(MasterIndex m) const {
  if (sessions_[m].guarded()) return REDLOCK_MASTER_GUARDED;
  return static_cast<int32_t>(sessions_[m].state()) + REDLOCK_MASTER_DOWN;
}

}  // namespace redlock
