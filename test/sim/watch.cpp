// SPDX-License-Identifier: MIT
//
// Looks at what a process is about to say to a master: what no rule about votes, keys or events would show.
#include <algorithm>
#include <string_view>

#include "master/scripts.hpp"
#include "process.hpp"
#include "world.hpp"

namespace redlock::sim {

// Claims of locks with a round that is not decided; none begins while answers are read.
uint32_t Process::open_rounds() const {
  uint32_t open = 0;
  const Claims& claims = client_->claims();
  for (uint16_t i = 0; i < claims.capacity(); ++i) {
    const uint16_t slot = claims[i].slot;
    if (claims[i].used && !claims[i].ended && slot != no_slot && client_->extend_open(slot)) open |= 1u << i;
  }
  return open;
}

// Behind what was left to send when the master's bytes were last looked at.
std::string Process::not_yet_seen(MasterIndex m, const Bytes* chunks, unsigned n) const {
  std::string text;
  for (unsigned i = 0; i < n; ++i) text.append(chunks[i].data, chunks[i].size);
  text.erase(0, unsent_[m]);
  return text;
}

// The master did not know a script. It is told its text while the round is open, and not when that is over.
void Process::watch_dead_rounds(MasterIndex m, uint32_t open) {
  Bytes chunks[Tx::chunks_max];
  const unsigned n = client_->output(m).gather(chunks, Tx::chunks_max);
  const std::string text = not_yet_seen(m, chunks, n);
  const Claims& claims = client_->claims();
  for (const Script* const script : {&acquire_fenced_script, &extend_script, &extend_fenced_script}) {
    const size_t at = text.find(script->body.data, 0, script->body.size);
    if (at == text.npos) continue;
    const std::string_view command(text.data() + at, std::min(text.find("\r\n*", at), text.size()) - at);
    for (uint16_t i = 0; i < claims.capacity(); ++i) {
      const bool its = claims[i].used && command.find(claims[i].value_hex, 0, sizeof claims[i].value_hex) != command.npos;
      if (its && !(open >> i & 1)) {
        world_.violate(t_ - second, 1u << index_, "m%u did not know a script, and is told it for a round that is over", m);
      }
    }
  }
}

// A master that was suspect already when its bytes were last looked at gets no SET and no extend among the new ones.
void Process::watch_suspect(MasterIndex m, const Bytes* chunks, unsigned n) {
  const bool suspect = client_->session(m).state() == Session::State::suspect;
  if (suspect && suspect_[m]) {
    const std::string text = not_yet_seen(m, chunks, n);
    const std::string extend(extend_script.sha.data, extend_script.sha.size);
    if (text.find("\r\nSET\r\n") != text.npos || text.find(extend) != text.npos) {
      world_.violate(t_ - second, 1u << index_, "m%u is suspect and is asked for a vote", m);
    }
  }
  suspect_[m] = suspect;
}

}  // namespace redlock::sim
