// SPDX-License-Identifier: MIT
//
// The harness itself: servers start, stop, stand still, come back and leave nothing behind.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "support/redis_server.hpp"

namespace redlock::test {
namespace {

TEST(RedisServer, AnswersOnLoopback) {
  RedisServer server;
  EXPECT_EQ(server.command({"SET", "k", "a b\r\nc"}), "OK");
  EXPECT_EQ(server.command({"GET", "k"}), "a b\r\nc");
  EXPECT_EQ(server.command({"GET", "none"}), "(nil)");
  EXPECT_EQ(server.command({"DEL", "k"}), "1");
  EXPECT_EQ(server.command({"FOO"}).rfind("-ERR ", 0), 0u);
  EXPECT_EQ(server.command({"CONFIG", "GET", "bind"}), "bind 127.0.0.1");
  EXPECT_EQ(server.url(), "redis://127.0.0.1:" + std::to_string(server.port()));
}

TEST(RedisServer, RestartKeepsTheAddressAndNothingElse) {
  RedisServer server;
  const uint16_t port = server.port();
  server.command({"SET", "k", "v"});
  server.restart();
  EXPECT_EQ(server.port(), port);
  EXPECT_FALSE(server.exists("k"));
}

TEST(RedisServer, KilledIsGone) {
  RedisServer server;
  const pid_t pid = server.pid();
  server.kill_hard();
  EXPECT_FALSE(server.running());
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_THROW(server.command({"PING"}), std::runtime_error);
}

TEST(RedisServer, FrozenIsSilentAndAnswersLater) {
  RedisServer server;
  RedisConnection conn = server.connect();
  server.freeze();
  conn.send(resp_command({"SET", "k", "v"}));
  EXPECT_THROW(conn.receive(1, 50), std::runtime_error);
  server.thaw();
  EXPECT_EQ(conn.receive(1), "+OK\r\n");
}

TEST(RedisServer, FrozenCanBeKilled) {
  RedisServer server;
  server.freeze();
  server.restart();
  EXPECT_EQ(server.command({"PING"}), "PONG");
}

TEST(RedisServer, PasswordAndArguments) {
  RedisServer::Options options;
  options.password = "p@ss:word/1";
  options.args = {"--maxmemory", "10mb"};
  RedisServer server(options);
  EXPECT_EQ(server.command({"CONFIG", "GET", "maxmemory"}), "maxmemory 10485760");
  RedisConnection stranger = server.connect();
  EXPECT_EQ(stranger.command({"PING"}).rfind("-NOAUTH", 0), 0u);
  EXPECT_EQ(server.url(), "redis://:p%40ss%3Aword%2F1@127.0.0.1:" + std::to_string(server.port()));
}

TEST(RedisServer, UnixSocket) {
  RedisServer::Options options;
  options.unix_socket = true;
  RedisServer server(options);
  EXPECT_EQ(server.command({"PING"}), "PONG");
  EXPECT_EQ(server.url(), "unix://" + server.socket_path());
  EXPECT_EQ(server.port(), 0);
}

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

TEST(RedisServer, BadArgumentsShowTheLog) {
  RedisServer::Options options;
  options.args = {"--maxmemory-policy", "nonsense"};
  EXPECT_THROW(RedisServer{options}, std::runtime_error);
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

TEST(Cluster, ServersAreIndependent) {
  Cluster masters(3);
  masters[0].command({"SET", "k", "v"});
  masters[2].command({"SET", "k", "v"});
  EXPECT_EQ(masters.holders("k"), 2u);
  masters[2].freeze();
  EXPECT_EQ(masters.holders("k"), 1u);
  masters[2].thaw();
  masters[0].kill_hard();
  EXPECT_EQ(masters.holders("k"), 1u);
}

}  // namespace
}  // namespace redlock::test
