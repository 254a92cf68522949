// SPDX-License-Identifier: MIT
#include "port/posix/fork_guard.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "test/support/wiped_page.hpp"

// In front of libc's, for an older kernel.
static bool wipes_pages = true;
extern "C" int madvise(void* address, size_t size, int advice) noexcept {
  if (!wipes_pages) return errno = EINVAL, -1;
  return reinterpret_cast<decltype(&::madvise)>(dlsym(RTLD_NEXT, "madvise"))(address, size, advice);
}

namespace redlock {
namespace {

// Runs `in_child` in a forked child; true when it returned true there.
bool holds_in_child(const std::function<bool()>& in_child) {
  const pid_t pid = fork();
  if (pid == 0) _exit(in_child() ? 0 : 1);
  return test::ended_well(pid);
}

// The same past fork()'s handlers.
bool holds_in_clone(const std::function<bool()>& in_child) {
  const pid_t pid = test::bare_clone();
  if (pid == 0) _exit(in_child() ? 0 : 1);
  return test::ended_well(pid);
}

bool clone_is_noticed() {
  const uint32_t created = fork_generation();
  return created != 0 && holds_in_clone([created] { return fork_generation() != created; });
}
bool fork_is_noticed() {
  const uint32_t created = fork_generation();
  return created != 0 && holds_in_child([created] { return fork_generation() != created; });
}

// Before anything else of this program has asked.
const bool old_kernel_is_as_it_was = holds_in_child([] {
  wipes_pages = false;
  return fork_is_noticed() && !clone_is_noticed();
});

TEST(ForkGuard, on_an_old_kernel_only_fork_is_noticed) { EXPECT_TRUE(old_kernel_is_as_it_was); }

TEST(ForkGuard, a_child_past_the_handlers_sees_another_generation) {
  if (!test::pages_are_wiped()) GTEST_SKIP() << "this system does not wipe pages in children";
  EXPECT_TRUE(clone_is_noticed());
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
  const uint32_t created = fork_generation();
  const pid_t pid = _Fork();
  if (pid == 0) _exit(fork_generation() != created ? 0 : 1);
  EXPECT_TRUE(test::ended_well(pid));
#endif
}

TEST(ForkGuard, children_past_the_handlers_differ_from_their_parents) {
  if (!test::pages_are_wiped()) GTEST_SKIP() << "this system does not wipe pages in children";
  const uint32_t created = fork_generation();
  EXPECT_TRUE(holds_in_clone([created] {
    const uint32_t child = fork_generation();
    return child != created && fork_generation() == child &&
           holds_in_clone([created, child] { return fork_generation() != created && fork_generation() != child; });
  }));
  EXPECT_EQ(fork_generation(), created);
}

TEST(ForkGuard, counts_each_fork_once) {
  const uint32_t created = fork_generation();
  EXPECT_TRUE(holds_in_child([created] { return fork_generation() == created + 1; }));
}

}  // namespace
}  // namespace redlock
