// SPDX-License-Identifier: MIT
//
// `redlock` as a user without any rights. Root runs it as nobody, from copies in a folder of nobody's.
#pragma once
#include <sys/prctl.h>
#include <sys/stat.h>

#include <algorithm>

#include "tool_site.hpp"

namespace redlock::test {

class ToolUser {
 public:
  ToolUser(const ToolSite& site, bool is_unprivileged) : site_(site) {
    char name[] = "/tmp/redlock-user.XXXXXX";
    dir = ::mkdtemp(name);
    config = copy(site.config, "redlock.json");
    if (!is_unprivileged || geteuid() != 0) return;
    user = 65'534;
    before_ = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
    tool = copy(REDLOCK_TOOL, "redlock");
    witness = copy(REDLOCK_WITNESS, "witness");
    const std::string library = REDLOCK_LIBRARY;
    if (library.find(".so") != std::string::npos) {
      copy(library, "libredlock.so." + std::to_string(REDLOCK_VERSION_MAJOR));
    }
    EXPECT_EQ(::chown(dir.c_str(), user, user), 0);
    EXPECT_EQ(::chown(config.c_str(), user, user), 0);
    is_possible = ended(words({tool, "version"})).status == 0;
  }
  ToolUser(const ToolUser&) = delete;
  ToolUser& operator=(const ToolUser&) = delete;
  ~ToolUser() { std::filesystem::remove_all(dir); }

  Words words(const Words& command) const { return before_ + command; }
  Words redlock(const Words& arguments) const {
    return words({tool, arguments[0], "-C", config}) + Words(arguments.begin() + 1, arguments.end());
  }
  Program::Setting setting() const { return {{"LD_LIBRARY_PATH=" + dir}, false}; }
  Ended ended(const Words& all) const { return run_program(all, site_.dir, setting()); }
  // Can this user read the process's memory? The kernel gives these files to root where it keeps other processes out.
  bool is_readable(pid_t pid) const {
    struct stat status = {};
    EXPECT_EQ(::stat(("/proc/" + std::to_string(pid) + "/mem").c_str(), &status), 0) << pid;
    return status.st_uid == user;
  }
  // redlock run --pidns needs it.
  bool has_pid_namespaces() const {
    return ended(words({"unshare", "-p", "--fork", "true"})).status == 0 ||
           ended(words({"unshare", "-Up", "--fork", "true"})).status == 0;
  }

  uid_t user = geteuid();
  bool is_possible = true;
  std::string dir, config;  // the user's own
  std::string tool = REDLOCK_TOOL, witness = REDLOCK_WITNESS;

 private:
  std::string copy(const std::string& file, const std::string& name) const {
    std::filesystem::copy_file(file, dir + "/" + name);
    return dir + "/" + name;
  }

  const ToolSite& site_;
  Words before_;
};

// The processes that programs have left behind since this was made: they become our children.
class LeftBehind {
 public:
  LeftBehind() : before_(children_of(getpid())) { ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }
  LeftBehind(const LeftBehind&) = delete;
  LeftBehind& operator=(const LeftBehind&) = delete;
  ~LeftBehind() { ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); }

  // Also zombies.
  size_t count() const {
    const std::vector<pid_t> now = children_of(getpid());
    return static_cast<size_t>(std::count_if(now.begin(), now.end(), [this](pid_t one) {
      return std::find(before_.begin(), before_.end(), one) == before_.end();
    }));
  }

 private:
  std::vector<pid_t> before_;
};

}  // namespace redlock::test
