// SPDX-License-Identifier: MIT
//
// Network: one connection is two flows of bytes, each in order. What was sent arrives after a delay of its own; what a
// client had sent before it closed a connection may still arrive, even after what it says on the next one.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "plan.hpp"
#include "support/redis_double.hpp"

namespace redlock::sim {

using Garbage = test::RedisDouble::Garbage;

class World;

struct Flow {
  struct Part {
    Ns arrives;
    uint32_t size;  // 0: the end
  };
  std::string bytes;
  size_t taken = 0;  // of bytes
  std::vector<Part> parts;
  size_t first = 0;  // of parts
  bool ended = false;

  bool idle() const { return first == parts.size(); }
  Ns last() const { return idle() ? 0 : parts.back().arrives; }
};

// A look at a master's wall clock: how often that had been stepped, and where the answer ends.
struct Look {
  unsigned steps = 0;
  uint64_t said = UINT64_MAX;
};

struct Connection {
  uint32_t id;
  unsigned client;
  unsigned master;
  // the client's side
  bool gone = false;      // the client has closed it, or died
  bool answered = false;  // the attempt has come to an outcome ...
  bool refused = false;   // ... and this is it
  bool told = false;      // the client has been told
  bool end = false;       // read to the end
  bool error = false;     // reset
  Ns blocked_until = 0;   // a write accepted a part; writable again then
  bool blocked = false;
  std::string in;  // arrived and not read
  size_t in_taken = 0;
  Ns closed_at = 0;
  // the master's side
  bool accepted = false;
  int redis = 0;  // the double's number for it
  bool master_gone = false;
  bool peer_ended = false;  // the client's end has arrived
  Garbage nonsense = Garbage::none;  // said on it; answers may be taken for those of other requests
  std::string released;     // the value that it last asked to delete
  uint64_t said = 0;        // bytes by the master ...
  uint64_t heard = 0;       // ... and by the client
  Look look;                // the last that the master answered
  bool looked = false;      // and it is not among what was said yet
  std::string waiting;      // arrived while the master stood still
  Ns stalled_until = 0;
  Flow up;
  Flow down;

  bool readable() const { return in.size() > in_taken || end || error; }
};

class Network {
 public:
  explicit Network(World& world);

  // The client's side. Times are those of the client, which may be a little ahead of the world.
  Connection& open(unsigned client, unsigned master, Ns t);
  size_t send(Connection& c, const Bytes* chunks, unsigned n, Ns t);  // 0: not writable now
  void close(Connection& c, bool polite, Ns t);
  void vanish(Connection& c, Ns t);  // the machine lost its power: nobody is told

  // Was nonsense said to this client by one of these masters, on a connection that lived at or after t?
  bool heard_nonsense(unsigned client, unsigned masters, Ns t, Garbage least = Garbage::whole) const;

  // The master's side.
  void reply(Connection& c, std::string& bytes);
  void end_down(Connection& c, bool reset);

  void on_syn(Connection& c);
  void on_connect_done(Connection& c);
  void on_up(Connection& c);
  void on_down(Connection& c);

  Connection& operator[](uint32_t id) { return connections_[id]; }
  std::deque<Connection>& all() { return connections_; }

  void partition(unsigned client, unsigned master, bool up, bool down, Ns until);
  void calm();  // the quiet phase: nothing is held back any more

  size_t in_flight_max = 0;

 private:
  Ns delay(unsigned client, unsigned master);
  void put(Connection& c, Flow& flow, bool up, uint32_t size, Ns t);
  void cut(Connection& c, Flow& flow, bool up, size_t size, Ns t);
  Ns aim_late(const Connection& c, Ns t);
  void finish_up(Connection& c, bool deliver, Ns t);

  World& world_;
  Stream random_;
  std::deque<Connection> connections_;
  Ns up_blocked_[clients_max][masters_max] = {};
  Ns down_blocked_[clients_max][masters_max] = {};
};

}  // namespace redlock::sim
