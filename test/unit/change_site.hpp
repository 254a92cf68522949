// SPDX-License-Identifier: MIT
//
// A stage on which operators change the records of masters while gateways want one resource, "bus", all the time. The
// stage looks at every instant whether two gateways hold the resource.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "test/support/stage.hpp"

namespace redlock::test {

constexpr uint32_t longest_ms = 3'000;

// The masters from `first` to `last` of the stage are a configuration.
struct Range {
  unsigned first, last;
  uint32_t max_ttl_ms = longest_ms;
};

inline std::function<void(Settings&)> set_of(Range set, GuardMode guard) {
  return [=](Settings& s) {
    s.masters = set.last - set.first + 1;
    for (unsigned m = 0; m < s.masters; ++m) s.master[m] = s.master[set.first - 1 + m];
    s.guard = guard;
    s.max_ttl_ms = set.max_ttl_ms;
    s.ttl_ms = 1'000;
  };
}

struct ChangeSite {
  explicit ChangeSite(unsigned masters) : stage(masters) {}

  // A lock that is renewed, or as long as may be: one that somebody else gets only when it ends. Once at a time.
  void want(Gateway& gateway, uint32_t ttl_ms = 1'000, bool renew = true) {
    unsigned& asked = wanted_[&gateway];
    const unsigned decided =
        gateway.told_count("bus", REDLOCK_EV_ACQUIRED) + gateway.told_count("bus", REDLOCK_EV_FAILED);
    if (asked > decided || (asked != 0 && gateway.holds("bus"))) return;
    ++asked;
    Options o = Gateway::options(ttl_ms, REDLOCK_WAIT_FOREVER);
    o.renew = renew;
    gateway.acquire("bus", o);
  }
  // A call that never ends would be waited for without end.
  void expect_an_end() const {
    if (stage.now_ms() <= 300'000) return;
    ADD_FAILURE() << "the call did not end within five minutes";
    std::abort();
  }
  std::string field(unsigned m, const std::string& name) {
    const auto meta = stage.redis(m).peek("redlock::meta", stage.now());
    return meta && meta->fields.count(name) != 0 ? meta->fields.at(name) : "";
  }
  std::string desc(unsigned m) { return field(m, "desc"); }
  bool marked(unsigned m) { return desc(m).rfind("moving ", 0) == 0; }
  void all_well() {
    for (unsigned m = 1; m <= stage.masters(); ++m) stage.set_way(m, Way::answering);
  }

  Stage stage;

 private:
  std::map<Gateway*, unsigned> wanted_;
};

}  // namespace redlock::test
