// SPDX-License-Identifier: MIT
#include "network.hpp"

#include <algorithm>

#include "world.hpp"

namespace redlock::sim {
namespace {

constexpr size_t kernel_buffer = 8192;  // unacknowledged bytes that a client's kernel takes

}  // namespace

Network::Network(World& world) : world_(world), random_(world.seed(), Purpose::network) {}

Ns Network::delay(unsigned client, unsigned master) {
  if (world_.plan().ring) return world_.plan().delay * (5 + (master + 3 - client) % 3) / 5;
  const Ns usual = world_.plan().delay / 2 + static_cast<Ns>(random_.below(static_cast<uint64_t>(world_.plan().delay)));
  if (world_.on(Fault::tail) && random_.chance(20)) {
    world_.count(Fault::tail);
    return random_.spread(20 * ms, 1600 * ms);
  }
  return usual;
}

// ---- the client's side ----------------------------------------------------------------------------------------

Connection& Network::open(unsigned client, unsigned master, Ns t) {
  connections_.emplace_back();
  Connection& c = connections_.back();
  c.id = static_cast<uint32_t>(connections_.size() - 1);
  c.client = client;
  c.master = master;
  const Ns from = std::max(t, up_blocked_[client][master]);
  world_.heap().push(from + delay(client, master), Kind::syn, c.id);
  return c;
}

void Network::put(Connection& c, Flow& flow, bool up, uint32_t size, Ns t) {
  const Ns blocked = up ? up_blocked_[c.client][c.master] : down_blocked_[c.client][c.master];
  const Ns arrives = std::max(flow.last(), std::max(std::max(t, blocked), c.stalled_until) + delay(c.client, c.master));
  flow.parts.push_back({arrives, size});
  if (arrives - t > 10 * ms) world_.checker().slow_bytes(c, arrives);
  world_.heap().push(arrives, up ? Kind::up : Kind::down, c.id);
}

// Bytes travel in one piece, or are cut anywhere.
void Network::cut(Connection& c, Flow& flow, bool up, size_t size, Ns t) {
  while (size > 0) {
    size_t part = size;
    if (world_.on(Fault::split) && size > 1 && random_.chance(150)) {
      part = 1 + random_.index_below(size);
      world_.count(Fault::split);
    }
    put(c, flow, up, static_cast<uint32_t>(part), t);
    size -= part;
  }
}

size_t Network::send(Connection& c, const Bytes* chunks, unsigned n, Ns t) {
  const size_t pending = c.up.bytes.size() - c.up.taken;
  size_t room = pending < kernel_buffer ? kernel_buffer - pending : 0;
  if (world_.on(Fault::partial_write) && random_.chance(100)) {
    room = std::min(room, random_.index_below(120));
    world_.count(Fault::partial_write);
  }
  size_t sent = 0;
  for (unsigned i = 0; i < n && sent < room; ++i) {
    const size_t part = std::min(chunks[i].size, room - sent);
    c.up.bytes.append(chunks[i].data, part);
    sent += part;
  }
  in_flight_max = std::max(in_flight_max, c.up.bytes.size() - c.up.taken);
  cut(c, c.up, true, sent, t);
  if (sent > 0) world_.sent(c, t);
  c.blocked = false;
  c.blocked_until = t + random_.spread(50 * us, 4 * ms);
  return sent;
}

// They come where it hurts most: into a master that stands still when the time is over in which they were waited for,
// so that they lie there beside the delete that leaves then.
Ns Network::aim_late(const Connection& c, Ns t) {
  const Ns ttl = world_.plan().ttl_ms[random_.below(2)] * ms;
  const Ns freeze = random_.between(ttl * 70 / 100, ttl * 95 / 100);
  const Ns later = random_.between(freeze, ttl * 98 / 100);
  const Ns thaw = ttl + random_.between(20 * ms, 400 * ms);
  world_.freeze_later(c.master, t + freeze, t + thaw);
  return later;
}

// What was sent and has not arrived: it is lost with the connection, or it arrives all the same, in order.
void Network::finish_up(Connection& c, bool deliver, Ns t) {
  if (!deliver) {
    c.up.parts.resize(c.up.first);
    c.up.bytes.resize(c.up.taken);
  } else if (world_.on(Fault::late) && !c.up.idle()) {
    Ns later = random_.coin() ? random_.spread(1 * ms, 100 * ms) : random_.spread(20 * ms, 3000 * ms);
    if (world_.on(Fault::freeze) && random_.chance(250)) later = aim_late(c, t);
    for (size_t i = c.up.first; i < c.up.parts.size(); ++i) {
      c.up.parts[i].arrives += later;
      world_.heap().push(c.up.parts[i].arrives, Kind::up, c.id);
    }
    world_.count(Fault::late);
  }
  c.up.ended = true;
  put(c, c.up, true, 0, t);
}

void Network::close(Connection& c, bool polite, Ns t) {
  if (c.gone) return;
  c.gone = true;
  c.closed_at = t;
  c.down.parts.resize(c.down.first);
  c.down.bytes.clear();
  c.down.taken = 0;
  finish_up(c, polite || random_.coin(), t);
}

void Network::vanish(Connection& c, Ns t) {
  if (c.gone) return;
  c.gone = true;
  c.closed_at = t;
  c.down.parts.resize(c.down.first);
}

bool Network::heard_nonsense(unsigned client, unsigned masters, Ns t, Garbage least) const {
  return std::any_of(connections_.begin(), connections_.end(), [=](const Connection& c) {
    return c.nonsense >= least && c.client == client && (masters >> c.master & 1) && (!c.gone || c.closed_at >= t);
  });
}

// ---- the master's side ----------------------------------------------------------------------------------------

void Network::reply(Connection& c, std::string& bytes) {
  if (!c.gone) {
    c.down.bytes += bytes;
    c.said += bytes.size();
    if (c.looked) c.look.said = c.said, c.looked = false;
    cut(c, c.down, false, bytes.size(), world_.now());
  }
  bytes.clear();
}

void Network::end_down(Connection& c, bool reset) {
  if (c.gone || c.down.ended) return;
  if (reset && random_.coin()) {  // what is on its way is lost
    c.down.parts.resize(c.down.first);
    c.down.bytes.resize(c.down.taken);
  }
  c.down.ended = true;
  put(c, c.down, false, 0, world_.now());
}

// ---- arrivals -------------------------------------------------------------------------------------------------

void Network::on_syn(Connection& c) {
  Master& master = world_.master(c.master);
  if (c.gone) return;
  if (master.down && master.silent) return;
  c.refused = master.down;
  if (!master.down) {
    c.accepted = true;
    master.serve(c);
  }
  const Ns from = std::max(world_.now(), down_blocked_[c.client][c.master]);
  world_.heap().push(from + delay(c.client, c.master), Kind::connect_done, c.id);
}

void Network::on_connect_done(Connection& c) {
  if (c.gone) return;
  c.answered = true;
  world_.process(c.client).wake(world_.now());
}

void Network::on_up(Connection& c) {
  bool any = false;
  while (!c.up.idle() && c.up.parts[c.up.first].arrives <= world_.now()) {
    const Flow::Part part = c.up.parts[c.up.first++];
    if (part.size == 0) c.peer_ended = true;
    c.waiting.append(c.up.bytes, c.up.taken, part.size);
    c.up.taken += part.size;
    any = true;
  }
  if (c.up.taken == c.up.bytes.size()) c.up.bytes.clear(), c.up.taken = 0;
  if (!any) return;
  if (c.gone && !c.waiting.empty()) world_.checker().late_bytes(c, world_.now());
  world_.master(c.master).serve(c);
}

void Network::on_down(Connection& c) {
  if (c.gone) return;
  bool any = false;
  while (!c.down.idle() && c.down.parts[c.down.first].arrives <= world_.now()) {
    const Flow::Part part = c.down.parts[c.down.first++];
    if (part.size == 0) c.end = true;
    c.in.append(c.down.bytes, c.down.taken, part.size);
    c.down.taken += part.size;
    any = true;
  }
  if (c.down.taken == c.down.bytes.size()) c.down.bytes.clear(), c.down.taken = 0;
  if (any) world_.process(c.client).wake(world_.now());
}

// ---- disturbance ----------------------------------------------------------------------------------------------

void Network::partition(unsigned client, unsigned master, bool up, bool down, Ns until) {
  if (up) up_blocked_[client][master] = std::max(up_blocked_[client][master], until);
  if (down) down_blocked_[client][master] = std::max(down_blocked_[client][master], until);
}

void Network::calm() {
  const Ns soon = world_.now() + 300 * ms;
  for (auto& row : up_blocked_) {
    for (Ns& blocked : row) blocked = 0;
  }
  for (auto& row : down_blocked_) {
    for (Ns& blocked : row) blocked = 0;
  }
  for (Connection& c : connections_) {
    c.stalled_until = 0;
    for (Flow* flow : {&c.up, &c.down}) {
      for (size_t i = flow->first; i < flow->parts.size(); ++i) {
        if (flow->parts[i].arrives <= soon) continue;
        flow->parts[i].arrives = soon;
        world_.heap().push(soon, flow == &c.up ? Kind::up : Kind::down, c.id);
      }
    }
  }
}

}  // namespace redlock::sim
