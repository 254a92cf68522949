// SPDX-License-Identifier: MIT
//
// Stands in for port/uv/driver.hpp where src/c_api is to run without libuv, sockets and clocks: the same class with
// a loop that the fuzzer provides.
#pragma once
#include "base/tls_faults.hpp"
#include "fuzz/bare_driver.hpp"

struct uv_loop_s {
  virtual ~uv_loop_s() = default;
  virtual redlock::Instant now() = 0;
  virtual bool clock_agrees() = 0;  // no jump since the driver's last reading
  virtual redlock::test::BareDriver::Peer* add(redlock::test::BareDriver* driver, void (*closed)(void*), void* self,
                                               void (*event)(void*, redlock::Client::Event&)) = 0;
};
using uv_loop_t = uv_loop_s;

namespace redlock {

constexpr bool with_tls = false;

class Driver : public test::BareDriver {
 public:
  struct Owner {
    void* self;
    void (*event)(void* self, Client::Event& event);
    void (*closed)(void* self);
    bool (*forked)(void* self);
    void (*enter)(void* self);
    void (*leave)(void* self);
  };
  struct BootClock {
    uv_loop_t* loop = nullptr;
    bool check(Instant& now) const {
      now = loop->now();
      return loop->clock_agrees();
    }
    int64_t boottime_ns(Instant t) const { return t.ns(); }
  };

  static size_t memory_size(unsigned) { return 0; }
  Driver(Client& client, const Owner& owner, void*) : BareDriver(client, nullptr), owner_(owner) {}
  int open(uv_loop_t* loop) {
    clock_.loop = loop;
    set_peer(loop->add(this, owner_.closed, owner_.self, owner_.event));
    return 0;
  }
  void wake() {}
  int secure(MasterIndex, const TlsSettings&) { return 0; }
  TlsFile file_error(MasterIndex) const { return {}; }
  bool file_error_changed(MasterIndex) { return false; }
  TlsDate wrong_date(MasterIndex) const { return {}; }
  void free_tls() {}
  const BootClock& clock() const { return clock_; }

 private:
  Owner owner_;
  BootClock clock_;
};

}  // namespace redlock
