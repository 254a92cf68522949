// SPDX-License-Identifier: MIT
//
// The client's part of the guard. The fleet compares masters with each other; here the client acts on the result.
#include "client/client.hpp"

namespace redlock {
void Client::boot_time(int64_t ms, const Instant& now) {
  wants_boot_time_ = false;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    post_[m].boot_time(ms, now);
    plan(post_[m]);
  }
}

// The loop is needed because news of one session may cause news of another: a server that the configuration names
// twice, for example.
void Client::take_news(const Instant& now) {
  while (post_.news) {
    post_.news = false;
    for (MasterIndex m = 0; m < settings_.masters; ++m) {
      const News news = post_[m].take_news();
      if (news.strays == Strays::ended) post_.claims.strays_ended(m, now);
      if (news.strays == Strays::at_large) post_.claims.strays_at_large(m, now);
      wants_boot_time_ = wants_boot_time_ || news.wants_boot_time;
      if (news.identified) identified();
      if (news.withdrawn) withdrawn(m, now);
      if (news.stepped) clock_stepped(m, news.by, now);
    }
    begin_states(now);
    want_turn();
  }
}

// If the configuration names a server twice, only the first of the two masters votes.
void Client::identified() {
  Bytes ids[REDLOCK_MASTERS_MAX];
  for (MasterIndex m = 0; m < settings_.masters; ++m) ids[m] = post_[m].guard().run_id();
  const Masters duplicates = fleet_.duplicates(ids);
  for (MasterIndex m = 0; m < settings_.masters; ++m) post_[m].set_duplicate(duplicates.has(m));
}

// A master that lacks our record is given one only if a quorum of the masters is known to serve this configuration, or
// nobody yet. A master that is down counts by its last reading. One that is up and was not read for long is read first:
// it may have been left for another set since.
void Client::begin_states(const Instant& now) {
  Masters ours;
  bool wanted = false;
  Instant until = Instant::never();
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    const Guard& guard = post_[m].guard();
    wanted = wanted || post_[m].wants_state();
    if (!guard.is_ours() || guard.lapsed(now)) continue;
    ours.add(m);
    until = earlier(until, guard.lapses_at());
  }
  const bool allowed = fleet_.is_quorum(ours);
  post_.begins_until = allowed ? until : Instant::from_ns(INT64_MIN);
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    post_[m].begin_state(allowed, now);
    if (wanted && !allowed) post_[m].look_ahead(now);
    plan(post_[m]);
  }
}

// look_ahead() asks for readings that stand ahead of this turn's rounds, so the votes behind them are judged by the
// present states of the masters.
void Client::look_ahead(const Instant& now) {
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (post_[m].look_ahead(now)) plan(post_[m]);
  }
}

void Client::withdrawn(MasterIndex m, const Instant& now) {
  for (unsigned i = 0; i < table_.capacity(); ++i) {
    Lock& lock = table_[i];
    if (lock.state == State::free || !lock.round.open) continue;
    perform(lock, machine_.revoke(lock, m, post_[m].guard().reason(), now), now);
  }
  if (post_[m].guard().forgot()) forgotten(m, now);
}

// A clock that stepped forward makes keys expire too early, so a held lock needs a quorum of other owners. A clock that
// stepped back keeps keys longer, which harms no holder. Neither master votes for a guard time.
void Client::clock_stepped(MasterIndex m, Duration by, const Instant& now) {
  ++notices_.counters.clock_steps;
  Masters wrong;
  for (MasterIndex k = 0; k < settings_.masters; ++k) {
    if (post_[k].guard().distrusted()) {
      wrong.add(k);
    } else {
      post_[k].read_now(now);
    }
    plan(post_[k]);
  }
  for (unsigned i = 0; i < table_.capacity() && by > Duration(); ++i) {
    Lock& lock = table_[i];
    if (lock.state == State::held) perform(lock, machine_.distrust(lock, wrong & post_.claims[lock.claim].sent), now);
  }
  fleet_.clock_stepped(m, now);
  want_turn();
}

void Client::quarantine_stepped(const Instant& now) {
  if (!fleet_.doubts_clocks()) return;
  Masters agree;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (!post_[m].guard().distrusted() && post_[m].samples_clock(fleet_.stepped_at())) agree.add(m);
  }
  const Duration patience = reading_lifetime(settings_.max_ttl_ms);
  for (MasterIndex m : fleet_.surely_stepped(agree, patience, now)) post_[m].quarantine(now);
}

}  // namespace redlock
