// SPDX-License-Identifier: MIT
//
// RecordGate: stands between an engine and the wire while the handshake lasts, and lets one TLS record through per
// step. So the loop gets a turn between two computations of a handshake, however much of it has arrived. What has not
// been let through stays in the socket, which tells the loop that there is more.
//
// It sees the first bytes of each record, and so it notices a peer that speaks something else. What the records say
// before they are encrypted goes through a ChainGate, which refuses a chain of certificates that would cost too much. A
// handshake has at most records_max records. After the handshake the gate is out of the way: the engine's Wire is the
// real one then, without a call between.
#pragma once
#include "port/tls/chain.hpp"
#include "port/tls/engine.hpp"

namespace redlock::tls {

class RecordGate {
 public:
  static constexpr unsigned records_max = 64;

  RecordGate() = default;
  RecordGate(const RecordGate&) = delete;
  RecordGate& operator=(const RecordGate&) = delete;

  // A new connection. No record is let through yet.
  void begin(const Wire& real) {
    real_ = real;
    wire_ = {this, [](void* self, char* at, size_t room) { return static_cast<RecordGate*>(self)->receive(at, room); },
             [](void* self, const char* data, size_t size) {
               const Wire& out = static_cast<RecordGate*>(self)->real_;
               return out.send(out.self, data, size);
             }};
    chain_ = ChainGate();
    refusal_ = 0;
    header_size_ = records_ = 0;
    body_left_ = 0;
    record_open_ = encrypted_ = false;
    silent_ = true;
  }
  void let_one_through() { record_open_ = true; }
  void stand_aside() { wire_ = real_; }

  const Wire& wire() const { return wire_; }  // for the engine
  // Why the peer's bytes go no further, and the engine was told that the wire broke: TLS_NONE (they are no TLS),
  // TLS_FLOOD, or what the ChainGate says. 0: they are let through.
  int refusal() const { return refusal_; }
  bool silent() const { return silent_; }     // the peer has not sent a byte during the handshake

 private:
  static constexpr unsigned header_max = 5;  // type, version, size of the body
  static constexpr unsigned char handshake = 22;

  // As much of the open record as there is room for: an engine may ask for the header first, or for all that is there.
  ssize_t receive(char* at, size_t room) {
    size_t total = 0;
    while (record_open_ && total < room) {
      const size_t left = header_size_ < header_max ? header_max - header_size_ : body_left_;
      const size_t wanted = left < room - total ? left : room - total;
      const ssize_t n = real_.receive(real_.self, at + total, wanted);
      if (n <= 0) return total > 0 ? static_cast<ssize_t>(total) : n;
      if (!let_through(at + total, static_cast<size_t>(n))) return Wire::broken;
      total += static_cast<size_t>(n);
      if (static_cast<size_t>(n) < wanted) break;  // the socket is empty
    }
    return total > 0 ? static_cast<ssize_t>(total) : Wire::nothing_now;
  }

  bool let_through(const char* data, size_t size) {
    silent_ = false;
    if (header_size_ == header_max) {
      body_left_ -= size;
      if (type_ == handshake && !encrypted_) refusal_ = chain_.take(data, size);
    } else {
      for (size_t i = 0; i < size && refusal_ == 0; ++i) take_header(static_cast<unsigned char>(data[i]));
    }
    if (header_size_ == header_max && body_left_ == 0) {
      header_size_ = 0;
      record_open_ = false;
      if (++records_ > records_max) refusal_ = REDLOCK_E_TLS_FLOOD;
    }
    return refusal_ == 0;
  }

  void take_header(unsigned char byte) {
    constexpr unsigned char new_keys = 20, last_type = 23, major_version = 3;
    const unsigned at = header_size_++;
    if (at == 0) {
      type_ = byte;
      encrypted_ = encrypted_ || byte == new_keys;
    }
    const bool tls = at == 0 ? byte >= new_keys && byte <= last_type : at != 1 || byte == major_version;
    if (!tls) refusal_ = REDLOCK_E_TLS_NONE;
    if (at >= 3) body_left_ = (body_left_ << 8 | byte) & 0xffff;
  }

  Wire real_ = {};
  Wire wire_ = {};
  size_t body_left_ = 0;
  ChainGate chain_;
  int refusal_ = 0;
  uint8_t header_size_ = 0;
  uint8_t records_ = 0;
  uint8_t type_ = 0;
  bool record_open_ = false;
  bool encrypted_ = false;  // what follows
  bool silent_ = true;
};

}  // namespace redlock::tls
