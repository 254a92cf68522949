// SPDX-License-Identifier: MIT
//
// Turns: the loop that moves a client. port/uv, the simulator, the explorer, the fuzzers and the tests' stage all run
// this code. Each of them has a port: a class that derives from Turns<itself>.
//
// Everything that happens is an input: bytes, a connection that opens or closes, the timer, a call of the API. The port
// passes each input on with now(), read after the input arrived. Before its loop waits, the port calls before_wait().
// Then turns follow until the client wants no more turns. One turn:
//
//   on_time        The client handles what is due. Silence of the masters is due when the port has looked at its
//                  sockets since: an instant that has passed while the loop stood still says nothing about a master,
//                  whose answer may be there. The timer fires at once then, and the look that follows does not wait.
//   refill         The client gets the random bytes that it asked for. Without random bytes no acquire round begins.
//   turn           The client queues deletes that it owes, rounds that were asked for, and looks. RELEASED is told at
//                  once, and what its callback asks for is queued too: both leave in one write.
//   flush          Each master's output leaves, in one write per master.
//   flushed        A client that closes learns that nothing is left to write.
//   wishes         The port closes and opens connections, if a session wishes so.
//   events         The port delivers as many events as there are now. The clock is read before each event, because the
//                  callback before took some time: an event must be true when it is delivered.
//
// At the end the timer is armed. A call of the API inside a callback only notes what is wanted. A later turn of the
// same step carries the wish out.
//
// A port supplies the functions below. None of them waits. Only event() may lead to calls of the API:
//
//   Client& client()
//   Reading clock_reading()         from port/clock
//   int64_t boot_ms()               CLOCK_BOOTTIME; negative when that clock cannot be read
//   size_t fill_random(unsigned char* out, size_t size)
//                                   fills from the front, and returns how many bytes it filled; 0: none now
//   void flush(MasterIndex m, const Instant& now)
//                                   writes Client::output(m), as much as the socket takes, and calls Client::sent or
//                                   Client::all_sent. The output may be empty, and the master may be disconnected
//   bool can_connect(MasterIndex m) false while part of the connection before is not closed yet
//   void connect(MasterIndex m, const Instant& now)
//                                   begins to connect. connected() or closed() follows, at once or later
//   void close(MasterIndex m, int reason, bool polite, const Instant& now)
//                                   sends and reads no more bytes, and calls closed() before it returns
//   void event(Client::Event& event)
//                                   delivers the event to the owner, perhaps with its detail
//   bool arm(Instant deadline)      sets the timer; false: the timer could not be set
//   void ended()                    the client is closed, and no turn follows
//   bool joins() const              optional; false: RELEASED is told behind the flush, as all other events are
//   void turn_ended()               optional, and public: all events of a turn were delivered
#pragma once
#include <string.h>

#include "client/client.hpp"

namespace redlock {

template <class Port>
class Turns {
 public:
  // ---- inputs. Bytes that arrived go to Client::received, calls of the API to the client --------------------------
  void touch() { touched_ = true; }  // for an input that needs a turn, although the client does not ask for one
  void timer_fired() {
    armed_for_ = Instant::never();
    touched_ = true;
  }
  void connected(MasterIndex m, const Instant& now) {
    touched_ = true;
    client().connected(m, now);
    flush_apart(m, now);
  }
  void closed(MasterIndex m, int reason, const Instant& now) {
    touched_ = true;
    client().closed(m, reason, now);
  }
  void writable(MasterIndex m) {
    touched_ = true;
    flush_apart(m, now());
  }

  // Reads the clock. The client learns of a jump before anything else that follows.
  [[gnu::noinline]] Instant now() { return now_in_line(); }
  [[gnu::always_inline]] Instant now_in_line() {  // for the reading after each read of a socket
    const Reading reading = port().clock_reading();
    if (reading.jumped) client().clock_jumped(reading.now);
    return reading.now;
  }

  // ---- the loop ---------------------------------------------------------------------------------------------------
  // Is there something to do before the loop may wait?
  bool pending() const { return touched_ || client().wants_turn() || client().notices().of_locks(); }
  bool stepping() const { return stepping_; }  // inside before_wait(); stays true when the client has ended
  Instant armed_for() const { return armed_for_; }
  // How late the loop came to what was due the last time: for so many seconds at least it did not run. Told once.
  uint32_t take_late() {
    const uint32_t late_s = late_s_;
    late_s_ = 0;
    return late_s;
  }

  // Must not be called while stepping().
  // all_read: since the last call the port has read everything that had arrived by then. A port that reads one input at
  // a time says false while others wait. So the client learns up to which instant it has heard its masters out, however
  // long the loop stood still.
  void before_wait(bool all_read = true) {
    if (all_read) client().heard(looked_);
    if (pending()) {
      step();
    } else {
      arm();  // bytes that were read may have brought the deadline nearer
    }
  }

  // The timer is set only when the deadline moves nearer, so most inputs do not touch the timer. The timer may fire too
  // early, which costs one turn that does nothing.
  void arm() {
    if (!touched_) due_ = client().deadline();
    const Instant deadline = touched_ ? Instant::from_ns(0) : due_;
    if (deadline >= armed_for_) return;
    if (port().arm(deadline)) armed_for_ = deadline;
  }

 private:
  static constexpr unsigned turns_max = 16;  // in one step; then others on the same loop have their turn

  Port& port() { return static_cast<Port&>(*this); }
  Client& client() const { return const_cast<Port&>(static_cast<const Port&>(*this)).client(); }

  void step() {
    REDLOCK_ASSERT(!stepping_);
    stepping_ = true;
    turns();
    if (client().is_closed()) return port().ended();
    stepping_ = false;
    arm();
  }

  void turns() {
    for (unsigned i = 0; i < turns_max; ++i) {
      const Instant now = handle_time();
      const bool turns = touched_ || client().wants_turn();  // false: there are only events
      if (turns) turn(now);
      deliver(now, turns);
      if constexpr (requires(Port& port) { port.turn_ended(); }) port().turn_ended();
      if (!touched_ && !client().wants_turn()) return;
    }
    touched_ = true;
  }

  [[gnu::noinline]] Instant handle_time() {
    const Instant now = now_in_line();
    if (now >= due_) {
      late_s_ = whole_seconds(now.ns() - due_.ns());
      due_ = Instant::never();
    }
    client().on_time(now);
    looked_ = now;
    return now;
  }

  void turn(Instant now) {
    touched_ = false;
    refill();
    if (client().wants_boot_time()) client().boot_time(port().boot_ms(), now);
    client().turn(now);
    if (client().notices().tells_released() && may_join()) {
      deliver(now, true, true);
      if (client().wants_turn()) {
        refill();
        client().turn(now = handle_time());
      }
    }
    const unsigned masters = client().settings().masters;
    for (MasterIndex m = 0; m < masters; ++m) port().flush(m, now);
    client().flushed(now);
    if (client().needs_port()) act_on_wishes(now);
  }

  // noinline: a port may have flush() inlined into turn(), and a second copy would only cost bytes.
  [[gnu::noinline]] void flush_apart(MasterIndex m, const Instant& now) { port().flush(m, now); }

  // noinline: keeps the 256 bytes off the stack while the rest of the turn runs.
  [[gnu::noinline]] void refill() {
    unsigned char bytes[256];
    for (size_t wanted = client().entropy_wanted(); wanted > 0; wanted = client().entropy_wanted()) {
      const size_t size = port().fill_random(bytes, wanted < sizeof bytes ? wanted : sizeof bytes);
      if (size == 0) return;
      client().add_entropy(bytes, size);
      explicit_bzero(bytes, size);
    }
  }

  void act_on_wishes(const Instant& now) {
    const unsigned masters = client().settings().masters;
    for (MasterIndex m = 0; m < masters; ++m) {
      const Session& session = client().session(m);
      const Session::Wish wish = session.wish();
      if (wish == Session::Wish::none) continue;
      if (wish == Session::Wish::close) {
        port().close(m, 0, session.reason() == REDLOCK_E_CLOSED, now);
      } else if (port().can_connect(m)) {
        client().connecting(m, now);
        port().connect(m, now);
      }
    }
  }

  bool may_join() {
    if constexpr (requires(Port& port) { port.joins(); }) return port().joins();
    return true;
  }

  // Delivers as many events as there are now. Events that a callback causes come after the next turn. late: time has
  // passed since `now` was read. released: no others than RELEASED.
  void deliver(Instant now, bool late, bool released = false) {
    for (unsigned n = client().notices().count(); n > 0; --n, late = true) {
      if (released && !client().notices().tells_released()) return;
      if (late) now = handle_time();
      Client::Event event;
      if (!client().next_event(event, now)) return;
      port().event(event);
      client().notices().delivered(event, now);
    }
  }

  Instant armed_for_ = Instant::never();
  Instant due_ = Instant::never();  // the client's deadline when the loop began to wait
  Instant looked_ = Instant::never();  // the latest reading of the clock before the port looks at its sockets
  uint32_t late_s_ = 0;
  bool touched_ = true;  // an input came since the last turn
  bool stepping_ = false;
};

}  // namespace redlock
