// SPDX-License-Identifier: MIT
//
// Looks at what a process is about to say to a master: what no rule about votes, keys or events would show.
#include <algorithm>
#include <string_view>

#include "lock/validity.hpp"
#include "master/scripts.hpp"
#include "process.hpp"
#include "world.hpp"

namespace redlock::sim {

// Claims of locks with a round that is not decided; none begins while answers are read.
uint64_t Process::open_rounds() const {
  uint64_t open = 0;
  const Claims& claims = client_->claims();
  for (uint16_t i = 0; i < claims.capacity(); ++i) {
    const uint16_t slot = claims[i].slot;
    if (claims[i].used && !claims[i].ended && slot != no_slot && client_->extend_open(slot)) open |= uint64_t{1} << i;
  }
  return open;
}

// Claims about which this master owes an answer.
uint64_t Process::claims_asked(MasterIndex m) const {
  uint64_t asked = 0;
  const Claims& claims = client_->claims();
  for (uint16_t i = 0; i < claims.capacity(); ++i) {
    if (claims[i].used && client_->session(m).owes_answer(i)) asked |= uint64_t{1} << i;
  }
  return asked;
}

// Behind what was left to send when the master's bytes were last looked at.
std::string Process::not_yet_seen(MasterIndex m, const Bytes* chunks, unsigned n) const {
  std::string text;
  for (unsigned i = 0; i < n; ++i) text.append(chunks[i].data, chunks[i].size);
  text.erase(0, unsent_[m]);
  return text;
}

// The master did not know a script. It is told its text while the round is open, and not when that is over. But what it
// has answered to an extend in the same bytes may be that the key is gone: several names are put back with the script's
// text.
void Process::watch_dead_rounds(MasterIndex m, uint64_t open, uint64_t asked) {
  Bytes chunks[Tx::chunks_max];
  const unsigned n = client_->output(m).gather(chunks, Tx::chunks_max);
  const std::string text = not_yet_seen(m, chunks, n);
  const Claims& claims = client_->claims();
  for (const Script* const script : {&acquire_script, &extend_script}) {
    const size_t at = text.find(script->body.data, 0, script->body.size);
    if (at == text.npos) continue;
    const uint64_t wanted = script == &acquire_script ? open | asked : open;
    const std::string_view command(text.data() + at, std::min(text.find("\r\n*", at), text.size()) - at);
    for (uint16_t i = 0; i < claims.capacity(); ++i) {
      const bool its =
          claims[i].used && command.find(hex_of(claims[i])) != command.npos;
      if (its && !(wanted >> i & 1)) {
        world_.violate(t_ - second, 1u << index_, "m%u did not know a script, and is told it for a round that is over",
                       m);
      }
    }
  }
}

// A held lock's key lies, or is on its way, on every master that votes and has room: where it was missing it was put
// back before the turns ended, unless an open round is to tell more.
void Process::watch_missing() {
  for (const User& user : users_) {
    if (user.handle == 0) continue;
    const Lock& lock = client_->lock(static_cast<uint16_t>((user.handle & 0xFFFF) - 1));
    const bool short_lived = remaining_ms(lock.valid_until, client_->now()) < 3;
    if (lock.state != State::held || lock.round.open || short_lived) continue;
    for (MasterIndex m : lock.hold.gone) {
      const Session& session = client_->session(m);
      if (!session.votes() || !client_->claims().may_send(m) || !client_->output(m).empty()) continue;
      const size_t prefix = client_->settings().key_prefix.size;
      const size_t size = Post::command_size(prefix, lock.names.count(), lock.names.bytes());
      const unsigned requests = client_->claims().reserved(m) + 2;
      if (!session.room(size + Command::sealed_size(prefix), requests, true)) continue;
      world_.violate(user.asked_at, 1u << index_, "m%u votes, and u%u's key is not put back there", m, user.index);
    }
  }
}

// An event is true at the instant it is told, however long the callback before it took: the validity is what is left,
// and no lock that is over waits for its LOST behind another's event. After a suspend that the clock has not found yet
// nothing is known.
void Process::watch_instant(const User& user, const redlock_event_t& event) {
  Instant now;
  exact_ = true;
  const bool agrees = clock_.check(now);
  exact_ = false;
  if (!agrees) return;
  const auto until = [&](const User& of) { return client_->cell(of.handle)->read().valid_until; };
  const int type = event.type;
  const bool told = type == REDLOCK_EV_ACQUIRED || type == REDLOCK_EV_RENEWED || type == REDLOCK_EV_AT_RISK;
  if (told && event.validity_ms != remaining_ms(until(user), now)) {
    world_.violate(user.asked_at, 1u << index_, "u%u is told of a validity of %lld ms, and it is %lld", user.index,
                   static_cast<long long>(event.validity_ms), static_cast<long long>(remaining_ms(until(user), now)));
  }
  for (const User& other : users_) {
    const bool holds = other.state == User::State::held && !other.left && !close_called_;
    if (!holds || type == REDLOCK_EV_LOST) continue;
    if (until(other) > now && !client_->cell(other.handle)->expired(Table::generation(other.handle))) continue;
    world_.violate(other.asked_at, 1u << index_, "u%u is told something, and u%u has lost its lock and is not told",
                   user.index, other.index);
  }
}

// A master that was suspect already when its bytes were last looked at gets no SET and no extend among the new ones.
void Process::watch_suspect(MasterIndex m, const Bytes* chunks, unsigned n) {
  const bool suspect = client_->session(m).state() == Session::State::suspect;
  if (suspect && suspect_[m]) {
    const std::string text = not_yet_seen(m, chunks, n);
    const auto says = [&](const Script& script) {
      return text.find(script.sha.data, 0, script.sha.size) != text.npos;
    };
    if (text.find("\r\nSET\r\n") != text.npos || says(acquire_script) || says(extend_script)) {
      world_.violate(t_ - second, 1u << index_, "m%u is suspect and is asked for a vote", m);
    }
  }
  suspect_[m] = suspect;
}

}  // namespace redlock::sim
