// SPDX-License-Identifier: MIT
//
// Passwords that are replaced while clients run, in the order of the guide: the servers take both, the file is
// replaced, the servers forget the old one.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "client_harness.hpp"
#include "support/redis_server.hpp"
#include "support/server_kind.hpp"

namespace redlock::test {
namespace {

class Passwords : public ::testing::Test {
 protected:
  Passwords() {
    write("old");
    for (size_t m = 0; m < 3; ++m) {
      set_user(masters[m], "gateway", {"on", ">old", "~*", "&*", "+@all"});
    }
  }
  // With a connection that is refused the next attempt is ten minutes away, unless the file has another password.
  Settings settings() const {
    Settings out{masters.urls(), "test", {{"timing.reconnect_max_ms", 600'000}}, {{"username", "gateway"}}};
    out.password_file = file;
    return out;
  }
  void write(const std::string& password, mode_t mode = 0640) const {
    const std::string next = file + ".new";
    std::ofstream(next) << password << "\n";
    ASSERT_EQ(::chmod(next.c_str(), mode), 0);
    std::filesystem::rename(next, file);
  }
  void on_all(const std::vector<std::string>& command) {
    for (size_t m = 0; m < 3; ++m) masters[m].command(command);
  }
  void end_connections() { on_all({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}); }
  size_t lines(const Client& client, const std::string& text) const {
    size_t found = 0;
    for (const std::string& line : client.log()) found += line.find(text) != std::string::npos ? 1 : 0;
    return found;
  }
  void expect_renewed(const Lock& lock) {
    const size_t before = lock.count(REDLOCK_EV_RENEWED);
    EXPECT_TRUE(loop.run_until([&] { return lock.ended() || lock.count(REDLOCK_EV_RENEWED) >= before + 2; }));
    EXPECT_FALSE(lock.ended());
  }

  Loop loop;
  Cluster masters{3};
  const std::string file = masters[0].dir() + "/password";
};

TEST_F(Passwords, ARotationEndsNoHoldAndNoWait) {
  UpClient client(loop, settings()), other(loop, settings());
  Lock& lock = client.hold("bus", options(3'000, 20'000));
  Lock& waiter = other.start("bus", options(3'000, 600'000));
  for (const std::string& next : {std::string("new"), std::string("newer")}) {
    const std::string old = next == "new" ? "old" : "new";
    on_all({"ACL", "SETUSER", "gateway", ">" + next});
    write(next);
    on_all({"ACL", "SETUSER", "gateway", "<" + old});
    end_connections();
    client.wait_up(3);
    other.wait_up(3);
    expect_renewed(lock);
  }
  EXPECT_FALSE(waiter.decided());
  EXPECT_EQ(lines(client, "password_file: has changed, and is used"), 6u) << "once for each master and change";
  EXPECT_EQ(lines(client, "was refused"), 0u) << "nobody is alarmed";
  for (const redlock_event_t& event : client.master_events()) EXPECT_NE(event.err, REDLOCK_E_AUTH);
  client.release(lock);
  EXPECT_TRUE(loop.run_until([&] { return waiter.decided(); }));
  EXPECT_TRUE(waiter.has(REDLOCK_EV_ACQUIRED));
  other.release(waiter);
}

// The password that was read last stays in use, and is right as soon as the server takes it again.
TEST_F(Passwords, AFileThatIsNoGoodChangesNothing) {
  Settings patient = settings();
  patient.numbers = {{"timing.reconnect_max_ms", 50}};
  UpClient client(loop, patient);
  const auto locked_out = [&] {
    on_all({"ACL", "SETUSER", "gateway", "resetpass", ">another"});
    end_connections();
    for (uint32_t m = 0; m < 3; ++m) client.wait_master_err(m, REDLOCK_E_AUTH);
  };
  const auto let_in = [&](const std::string& password) {
    on_all({"ACL", "SETUSER", "gateway", ">" + password});
    client.wait_up(3);
  };
  locked_out();
  EXPECT_EQ(lines(client, "password_file"), 0u) << "the file has not changed";
  let_in("old");

  write("another", 0646);
  locked_out();
  const std::string line = file + ": can be written by group or others; type: chmod go-w " + file +
                           ": what was read before is used";
  EXPECT_EQ(lines(client, line), 3u) << "once for each master, however often it is refused";
  let_in("old");
  locked_out();
  EXPECT_EQ(lines(client, line), 3u);
  ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
  client.wait_up(3);
  EXPECT_EQ(lines(client, "password_file: has changed, and is used"), 3u);

  if (geteuid() != 0) return;  // a program that has dropped its rights
  write("next", 0600);
  ASSERT_EQ(::seteuid(12'345), 0);
  on_all({"ACL", "SETUSER", "gateway", "resetpass", ">next"});
  end_connections();
  for (uint32_t m = 0; m < 3; ++m) client.wait_master_err(m, REDLOCK_E_AUTH);
  EXPECT_EQ(lines(client, file + ": may not be read by this user; type: chown root:GROUP " + file), 3u);
  ASSERT_EQ(::seteuid(0), 0);
  let_in("another");
}

}  // namespace
}  // namespace redlock::test
