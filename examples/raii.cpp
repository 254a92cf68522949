// SPDX-License-Identifier: MIT
//
// raii: the lock as a C++ object. Whichever way a job ends - done, device broken, validity over - the lock is given
// back at the end of its scope. Builds as C++11 and without exceptions; needs nothing of the C++ runtime.
//
//     raii URL...
#include <redlock/redlock.hpp>

#include <cstdio>

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds one_transaction_takes(100);

bool transact(int step) { return step < 3; }  // here the device would be; it breaks at the fourth step

int job(redlock_t *rl, int steps) {
  redlock::lock bus;
  const int err = redlock::acquire(rl, "plant1/rs485-a", redlock::options().ttl(seconds(5)), bus);
  if (err != 0) return err;
  for (int i = 0; i < steps; ++i) {
    if (!bus.valid_for(one_transaction_takes)) return REDLOCK_E_LOST;
    if (!transact(i)) return REDLOCK_E_SYSTEM;
  }
  return bus.release();
}

int create(redlock_t *&rl, char **urls) {
  redlock_config_t *cfg = nullptr;
  int err = redlock_config_new(&cfg);
  for (; err == 0 && *urls != nullptr; ++urls) err = redlock_config_add_master(cfg, *urls);
  if (err == 0) redlock_config_set_log(cfg, redlock_log_stderr, nullptr, 5);  // it says what a new site waits for
  if (err == 0) err = redlock_create(&rl, cfg);
  if (err != 0) std::printf("%s: %s\n", redlock_strerror(err), cfg != nullptr ? redlock_config_error(cfg) : "");
  redlock_config_free(cfg);
  return err;
}

}  // namespace

int main(int argc, char **argv) {
  redlock_t *rl = nullptr;
  if (argc < 2) return std::fputs("usage: raii URL...\n", stderr), 2;
  if (create(rl, argv + 1) != 0) return 1;
  const int good = job(rl, 3);
  const int broken = job(rl, 4);  // returns in the middle
  const int again = job(rl, 3);   // and yet the bus is free
  std::printf("job: %s; with a broken device: %s; again: %s\n", redlock_err_name(good), redlock_err_name(broken),
              redlock_err_name(again));
  redlock_destroy(rl, 500);
  return good == 0 && broken == REDLOCK_E_SYSTEM && again == 0 ? 0 : 1;
}
