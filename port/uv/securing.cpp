// SPDX-License-Identifier: MIT
//
// The part of Connection and Driver that a build with TLS has. port/tls/tls computes; this file moves its bytes, and
// decides when it may compute.
//
// A step of a handshake takes milliseconds on a slow processor, and nothing divides it. So the client takes one step in
// each round of the loop, whatever has arrived: on_poll only notes that a connection may go on, and on_prepare lets one
// of them take its step, behind the turn. Replies, due timers and renewals of other masters are handled before the next
// step. A connection that waits leaves its bytes in the socket, whose readiness comes again.
#include <time.h>

#include "lock/validity.hpp"
#include "port/uv/driver.hpp"

namespace redlock {
namespace {

// Of one event, so that one master does not keep the loop from the others. A read gives text of one record, and takes
// every record without text ahead of the text: so the bytes are counted as well. The largest record is eleven shares.
constexpr unsigned reads_max = 8;
constexpr uint16_t share_max = 1536;
constexpr uint8_t wasted_max = 16;

}  // namespace

ssize_t Connection::take(void* self, char* at, size_t room) {
  Connection& c = *static_cast<Connection*>(self);
  uint16_t& share = c.secured_.share;
  if (share == 0) return tls::Wire::nothing_now;
  const ssize_t n = receive(c.fd_, at, room < share ? room : share);
  if (n > 0) share = static_cast<uint16_t>(share - n);
  if (n >= 0) return n;
  return nothing_now() ? tls::Wire::nothing_now : tls::Wire::broken;
}

// A server that hangs up may have said why, and TLS would not read it behind a write that failed. So the bytes count as
// sent. The end of the connection is read behind the server's last words. A record that asks for an answer costs a
// write: so what TLS writes while it reads is taken from the share, too.
ssize_t Connection::give(void* self, const char* data, size_t size) {
  Connection& c = *static_cast<Connection*>(self);
  const ssize_t n = send_run(c.fd_, {data, size});
  uint16_t& share = c.secured_.share;
  if (n > 0) share = n < share ? static_cast<uint16_t>(share - n) : 0;
  if (n > 0) return n;
  return n < 0 && nothing_now() ? tls::Wire::nothing_now : static_cast<ssize_t>(size);
}

// ---- the handshake ----------------------------------------------------------------------------------------------

// False: the master is asked in the clear.
bool Connection::begin_tls(const Instant& now) {
  if (!secured_.tls.wanted()) return false;
  state_ = State::securing;
  secured_.wire = {this, take, give};
  secured_.wasted = 0;
  int err = secured_.tls.begin(secured_.wire, time(nullptr));
  if (err == 0 && !watch(UV_READABLE)) err = REDLOCK_E_SYSTEM;
  if (err != 0) {
    close(err, true, now);
  } else {
    driver_.go_on(master_);
  }
  return true;
}

// Behind a turn.
void Connection::go_on() {
  if (state_ == State::securing) take_step();
  if (state_ == State::secured) read_tls();
}

// Other threads may use the client meanwhile: a step touches nothing of the client.
void Connection::take_step() {
  const Instant begun = driver_.now();
  secured_.share = share_max;
  driver_.leave();
  const Tls::Progress progress = secured_.tls.step();
  driver_.enter();
  const Instant now = driver_.now();
  const Duration took = left(now, begun);
  if (took > secured_.longest_step) secured_.longest_step = took;
  if (progress != Tls::Progress::done) return wait_for(progress, now);
  state_ = State::secured;
  secured_.spoke_tls = true;
  if (!watch(UV_READABLE)) return close(REDLOCK_E_SYSTEM, false, now);
  driver_.connected(master_, now);
}

// Watches the socket for what TLS wants, or closes the connection.
void Connection::wait_for(Tls::Progress progress, const Instant& now) {
  int events = UV_READABLE;
  if (progress == Tls::Progress::wants_output) events = state_ == State::securing ? UV_WRITABLE : events | UV_WRITABLE;
  if (progress == Tls::Progress::wants_input) events |= state_ == State::securing ? 0 : events_ & UV_WRITABLE;
  if (progress == Tls::Progress::ended) return close(REDLOCK_E_DISCONNECTED, state_ == State::securing, now);
  if (progress == Tls::Progress::failed) return close(secured_.tls.error(), state_ == State::securing, now);
  if (!watch(events)) close(REDLOCK_E_SYSTEM, false, now);
}

// polite: see close().
void Connection::end_tls(bool polite) {
  if (state_ == State::securing) explain_silence();
  secured_.tls.end(polite && state_ == State::secured);
}

// A server without TLS waits for the end of a line, which a handshake does not have. So does a frozen server with TLS;
// but a first connection is rather meant for another port.
void Connection::explain_silence() {
  const bool timeout = client_.session(master_).reason() == REDLOCK_E_CONNECT_TIMEOUT;
  if (timeout && secured_.tls.silent() && !secured_.spoke_tls) client_.set_reason(master_, REDLOCK_E_TLS_NONE);
}

// ---- bytes ------------------------------------------------------------------------------------------------------

// libuv has stopped to watch a socket that is broken. What has arrived before is still to be read.
void Connection::on_poll_tls(int status, int events) {
  if (status < 0 && uv_poll_start(&poll_, events_, on_poll) != 0) {
    return close(REDLOCK_E_DISCONNECTED, false, driver_.now());
  }
  if (state_ == State::securing) return driver_.go_on(master_);
  if ((events & UV_WRITABLE) && !flush_rest()) return;
  read_tls();
}

// Sends what a write left. True: the connection stands.
bool Connection::flush_rest() {
  const Tls::Progress progress = secured_.tls.flush();
  if (progress == Tls::Progress::done) {
    watch(UV_READABLE);
    driver_.writable(master_);
  } else {
    wait_for(progress, driver_.now());
  }
  return state_ == State::secured;
}

// True: this event took its whole share and gave no text, as the events before it did.
bool Connection::wastes_shares() {
  if (secured_.share > 0) return false;
  return ++secured_.wasted > wasted_max;
}

// Plain text may wait inside of TLS while the socket is empty. So either TLS has said that it wants input, or the
// connection goes on behind the next turn. Where the share is used up, the socket is readable still, and its turn comes
// in the next round of the loop.
void Connection::read_tls() {
  secured_.share = share_max;
  for (unsigned n = 0; n < reads_max; ++n) {
    size_t room = 0, got = 0;
    char* const at = client_.rx_room(master_, room);
    if (room == 0) return close(REDLOCK_E_PROTOCOL, false, driver_.now());
    const Tls::Progress progress = secured_.tls.read(at, room, got);
    const Instant now = driver_.now();
    if (progress == Tls::Progress::wants_input && n == 0 && wastes_shares()) {
      return close(REDLOCK_E_TLS_FLOOD, false, now);
    }
    if (progress != Tls::Progress::done) return wait_for(progress, now);
    secured_.wasted = 0;
    client_.received(master_, got, now);
  }
  driver_.go_on(master_);
}

// What TLS has taken is sent: it is encrypted, and cannot be taken back.
void Connection::flush_tls(const Tx& tx, const Instant& now) {
  if (state_ != State::secured || (events_ & UV_WRITABLE)) return;
  while (!tx.empty()) {
    Bytes runs[Tx::chunks_max];
    tx.gather(runs, Tx::chunks_max);
    size_t taken = 0;
    const Tls::Progress progress = secured_.tls.write(runs[0], taken);
    if (taken > 0) client_.sent(master_, taken);
    if (progress != Tls::Progress::done) return wait_for(progress, now);
    REDLOCK_ASSERT(taken > 0);
  }
}

// Did the server answer our first command with an alert of TLS?
bool Connection::is_alert(const char* at, ssize_t size) const {
  return size >= 2 && at[0] == 0x15 && at[1] == 3 && client_.session(master_).state() == Session::State::greeting;
}

bool Connection::report(TlsReport& out) const {
  out.longest_step = secured_.longest_step;
  return state_ == State::secured && secured_.tls.facts(out.facts);
}

// ---- the driver -------------------------------------------------------------------------------------------------

int Driver::secure(MasterIndex m, const TlsSettings& settings) { return connections_[m].secured().tls.init(settings); }

const TlsFile& Driver::file_error(MasterIndex m) const { return connections_[m].secured().tls.file_error(); }

bool Driver::file_error_changed(MasterIndex m) {
  Secured& secured = connections_[m].secured();
  const TlsFile& now = secured.tls.file_error();
  if (now == secured.file_told) return false;
  secured.file_told = now;
  return true;
}

const TlsDate& Driver::wrong_date(MasterIndex m) const { return connections_[m].secured().tls.wrong_date(); }

bool Driver::tls_report(MasterIndex m, TlsReport& out) const { return connections_[m].report(out); }

void Driver::free_tls() {
  for (MasterIndex m = 0; m < masters_; ++m) connections_[m].secured().~Secured();
}

void Driver::go_on(MasterIndex m) {
  steps_.ready.add(m);
  wake();
}

// The masters take turns.
void Driver::go_on_one() {
  if (closing_ || steps_.ready.empty()) return;
  MasterIndex next = *steps_.ready.begin();
  for (MasterIndex m : steps_.ready) {
    if (m > steps_.last) {
      next = m;
      break;
    }
  }
  steps_.last = next;
  steps_.ready.remove(next);
  connections_[next].go_on();
  if (pending() || !steps_.ready.empty()) wake();
}

}  // namespace redlock
