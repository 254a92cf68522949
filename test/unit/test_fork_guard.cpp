// SPDX-License-Identifier: MIT
#include "port/posix/fork_guard.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>

namespace redlock {
namespace {

// Runs `in_child` in a forked child; true when it returned true there.
bool holds_in_child(const std::function<bool()>& in_child) {
  const pid_t pid = fork();
  if (pid == 0) _exit(in_child() ? 0 : 1);
  int status = -1;
  return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ForkGuard, stays_in_one_process) {
  const uint32_t created = fork_generation();
  EXPECT_NE(created, 0u);
  EXPECT_EQ(fork_generation(), created);
}

TEST(ForkGuard, a_child_sees_another_generation_and_the_parent_does_not) {
  const uint32_t created = fork_generation();
  EXPECT_TRUE(holds_in_child([created] { return fork_generation() != created; }));
  EXPECT_EQ(fork_generation(), created);
}

TEST(ForkGuard, counts_each_fork_once) {
  const uint32_t created = fork_generation();
  EXPECT_TRUE(holds_in_child([created] { return fork_generation() == created + 1; }));
}

TEST(ForkGuard, a_grandchild_differs_from_both) {
  const uint32_t created = fork_generation();
  EXPECT_TRUE(holds_in_child([created] {
    const uint32_t child = fork_generation();
    return child != created && holds_in_child([created, child] {
             const uint32_t grandchild = fork_generation();
             return grandchild != created && grandchild != child;
           });
  }));
}

TEST(ForkGuard, an_object_of_the_child_belongs_to_the_child) {
  EXPECT_TRUE(holds_in_child([] {
    const uint32_t created = fork_generation();
    return created != 0 && fork_generation() == created;
  }));
}

}  // namespace
}  // namespace redlock
