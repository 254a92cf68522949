// SPDX-License-Identifier: MIT
//
// The boot id of this machine, from the kernel's own files; and in processes whose clock is not the machine's, or that
// cannot find out. Those are children, so that what they do to themselves ends with them.
#include "port/posix/boot_id.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace redlock {
namespace {

std::string content(const char* path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A process in a container may have a clock of its own.
bool clock_is_shifted() {
  std::ifstream file("/proc/self/timens_offsets");
  std::string clock;
  for (long long seconds = 0, ns = 0; file >> clock >> seconds >> ns;) {
    if (seconds != 0 || ns != 0) return true;
  }
  return false;
}

enum Answer { has_none, has_one, cannot_be_tried };

// What read_boot_id() says in a child that has prepared itself.
template <class Prepare>
Answer in_child(Prepare prepare) {
  const pid_t child = fork();
  if (child == 0) {
    char id[boot_id_size];
    _exit(!prepare() ? cannot_be_tried : read_boot_id(id) ? has_one : has_none);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return static_cast<Answer>(WEXITSTATUS(status));
}

TEST(BootId, is_the_kernels) {
  struct {
    char id[boot_id_size];
    char behind[8];
  } memory;
  memset(&memory, 'x', sizeof memory);
  const std::string file = content("/proc/sys/kernel/random/boot_id");
  const bool expected = file.size() == boot_id_size + 1 && !clock_is_shifted();
  ASSERT_EQ(read_boot_id(memory.id), expected);
  EXPECT_EQ(std::string(memory.behind, sizeof memory.behind), "xxxxxxxx");
  if (!expected) return;
  const std::string id(memory.id, boot_id_size);
  EXPECT_EQ(id, file.substr(0, boot_id_size));
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef-"), std::string::npos);
  char again[boot_id_size];
  ASSERT_TRUE(read_boot_id(again));
  EXPECT_EQ(std::string(again, boot_id_size), id);
  EXPECT_EQ(in_child([] { return true; }), has_one) << "a forked child is of the same boot";
}

// Its CLOCK_BOOTTIME would be compared with that of others: hours apart, perhaps.
TEST(BootId, none_where_the_clock_has_an_offset) {
  for (const char* offset : {"boottime 1000 0\n", "boottime 100 5\n", "boottime 0 1\n", "monotonic 7 0\n"}) {
    const Answer answer = in_child([offset] {
      constexpr int new_time_namespace = 0x80;  // CLONE_NEWTIME, which is of the children
      if (unshare(new_time_namespace) != 0) return false;
      std::ofstream file("/proc/self/timens_offsets");
      file << offset << std::flush;
      if (!file) return false;
      const pid_t child = fork();
      if (child == 0) {
        char id[boot_id_size];
        _exit(read_boot_id(id) ? has_one : has_none);
      }
      int status = 0;
      waitpid(child, &status, 0);
      _exit(WEXITSTATUS(status));
    });
    if (answer == cannot_be_tried) GTEST_SKIP() << "no time namespaces for this user";
    EXPECT_EQ(answer, has_none) << offset;
  }
}

TEST(BootId, none_without_a_descriptor) {
  const Answer answer = in_child([] {
    const rlimit none = {0, 0};
    return setrlimit(RLIMIT_NOFILE, &none) == 0;
  });
  EXPECT_EQ(answer, has_none);
}

// There is a file that tells of offsets, and only that one cannot be read: a socket stands in its place.
TEST(BootId, none_where_offsets_cannot_be_known) {
  const Answer answer = in_child([] {
    char folder[] = "/tmp/redlock-boot-id-XXXXXX";
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    if (mkdtemp(folder) == nullptr) return false;
    const std::string path = std::string(folder) + "/socket";
    const bool mounted = mknod(path.c_str(), S_IFSOCK | 0600, 0) == 0 &&
                         mount(path.c_str(), "/proc/self/timens_offsets", nullptr, MS_BIND, nullptr) == 0;
    unlink(path.c_str());
    rmdir(folder);
    return mounted;
  });
  if (answer == cannot_be_tried) GTEST_SKIP() << "this user may not mount";
  EXPECT_EQ(answer, has_none);
}

TEST(BootId, none_without_the_kernels_files) {
  const Answer answer = in_child([] { return chroot("/var/empty") == 0 || chroot("/mnt") == 0; });
  if (answer == cannot_be_tried) GTEST_SKIP() << "this user may not change the root";
  EXPECT_EQ(answer, has_none);
}

}  // namespace
}  // namespace redlock
