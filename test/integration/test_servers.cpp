// SPDX-License-Identifier: MIT
//
// The harness itself: servers leave nothing behind.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "support/redis_server.hpp"

namespace redlock::test {
namespace {

TEST(RedisServer, LeavesNothing) {
  std::string dir;
  pid_t pid = 0;
  {
    RedisServer server;
    dir = server.dir();
    pid = server.pid();
    EXPECT_TRUE(std::filesystem::exists(dir));
  }
  EXPECT_FALSE(std::filesystem::exists(dir));
  EXPECT_EQ(::kill(pid, 0), -1);
}

// A test process that is killed takes its servers with it: the pipe that the server inherited ends.
TEST(RedisServer, DiesWithTheTest) {
  int alive[2];
  ASSERT_EQ(::pipe(alive), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(alive[0]);
    RedisServer server;
    std::filesystem::remove_all(server.dir());
    ::raise(SIGKILL);
  }
  ::close(alive[1]);
  ::waitpid(child, nullptr, 0);
  char nothing;
  EXPECT_EQ(::read(alive[0], &nothing, 1), 0);
  ::close(alive[0]);
}

TEST(RedisServer, MissingProgramIsAClearError) {
  if (std::getenv("REDLOCK_REDIS_SERVER")) GTEST_SKIP() << "REDLOCK_REDIS_SERVER names the program";
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  try {
    RedisServer server;
    ADD_FAILURE() << "started";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("install the package redis-server"), std::string::npos) << error.what();
  }
  ::setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace redlock::test
