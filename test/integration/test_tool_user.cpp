// SPDX-License-Identifier: MIT
//
// `redlock` as a user without any rights: what others of this user can see of it, and what it leaves behind.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tool_site.hpp"

namespace redlock::test {
namespace {

constexpr uid_t nobody = 65'534;

// Root runs the programs as nobody, from copies that nobody can read.
class ToolUser : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) return;
    if (std::system("setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null") != 0) {
      GTEST_SKIP() << "setpriv cannot make another user";
    }
    user_ = nobody;
    as_user_ = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
    tool_ = site_.dir + "/redlock";
    std::filesystem::copy_file(REDLOCK_TOOL, tool_);
    const std::string library = REDLOCK_LIBRARY;
    if (library.find(".so") != std::string::npos) {
      const std::string name = "libredlock.so." + std::to_string(REDLOCK_VERSION_MAJOR);
      std::filesystem::copy_file(library, site_.dir + "/" + name);
    }
    ASSERT_EQ(::chmod(site_.dir.c_str(), 0755), 0);
  }

  Words words(const Words& command) const { return as_user_ + command; }
  Words redlock(const Words& arguments) const {
    Words all = words({tool_, arguments[0], "-C", site_.config});
    all.insert(all.end(), arguments.begin() + 1, arguments.end());
    return all;
  }
  Program::Setting setting(bool stdin_closed = false) const {
    return {{"LD_LIBRARY_PATH=" + site_.dir}, stdin_closed};
  }
  // Can this user read the process's memory? The kernel gives these files to root where it keeps other processes out.
  bool is_readable(pid_t pid) const {
    struct stat status = {};
    EXPECT_EQ(::stat(("/proc/" + std::to_string(pid) + "/mem").c_str(), &status), 0) << pid;
    return status.st_uid == user_;
  }

  ToolSite site_;
  uid_t user_ = geteuid();
  Words as_user_;
  std::string tool_ = REDLOCK_TOOL;
  const std::string res_ = "plant1/rs485-a";
};

TEST_F(ToolUser, OtherProgramsOfTheUserCannotReadThePasswords) {
  Program run(redlock({"run", "-c", "echo held; exec sleep 100", res_}), site_.dir, setting());
  ASSERT_TRUE(eventually([&] { return run.out() == "held\n"; })) << run.err();
  EXPECT_FALSE(is_readable(run.pid())) << "keeper";
  const std::vector<pid_t> guard = children_of(run.pid());
  ASSERT_EQ(guard.size(), 1u);
  EXPECT_FALSE(is_readable(guard[0])) << "guard";
  const std::vector<pid_t> command = children_of(guard[0]);
  ASSERT_EQ(command.size(), 1u);
  EXPECT_TRUE(is_readable(command[0])) << "the command is as it would be without us";

  const std::string self = std::to_string(getpid());
  Program hold(redlock({"hold", "--for", self, "bus"}), site_.dir, setting());
  EXPECT_EQ(hold.exit_status(), 0) << hold.err();
  const auto holder = static_cast<pid_t>(std::stol(hold.out()));
  EXPECT_FALSE(is_readable(holder));
  ::kill(holder, SIGTERM);
  EXPECT_TRUE(eventually([&] { return site_.masters.holders("bus") == 0; }));
}

}  // namespace
}  // namespace redlock::test
