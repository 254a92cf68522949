// SPDX-License-Identifier: MIT
//
// Deletes that claims owe to masters. A delete is queued when there is room, behind everything that was sent to the
// same master before.
#include "client/client.hpp"

namespace redlock {

// Queues the deletes that a claim owes these masters, where there is room. The other deletes stay owed.
void Client::send_deletes(uint16_t index, Masters masters, const Instant& now) {
  const Claim& claim = claims_[index];
  const size_t size = command_size(claim.names);
  Masters sent;
  if (!shared_.has_room(Shared::size_of(size))) return;
  for (MasterIndex m : masters) {
    if (!sessions_[m].connected()) continue;
    const unsigned places = claims_.reserved(m) + (claim.reserved.has(m) ? 0u : 1u);
    if (sessions_[m].room(size, places, sessions_[m].send_script_text(Op::release))) sent.add(m);
  }
  claims_.deletes_queued(index, sent);
  ask(wording(Op::release, index, 0, 0, now), sent);
  soon(now + settings_.node_timeout);
}

void Client::pay_debts(const Instant& now) {
  while (!ended_.empty()) {
    const uint16_t index = ended_.first();
    ended_.remove(&claims_[0], index);
    if (!claims_[index].owed.empty()) send_deletes(index, claims_[index].owed, now);
    claims_.unqueued(index);
  }
  if (!claims_.owes()) return;
  for (MasterIndex m = 0; m < settings_.masters; ++m) {
    if (!claims_.owes(m) || !sessions_[m].connected()) continue;
    for (uint16_t i = claims_.next_owed(m, 0); i != no_slot; i = claims_.next_owed(m, static_cast<uint16_t>(i + 1))) {
      send_deletes(i, Masters::of(m), now);
    }
  }
}

}  // namespace redlock
