// SPDX-License-Identifier: MIT
#include "port/posix/fork_guard.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "port/posix/boot_id.hpp"
#include "port/posix/entropy.hpp"
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

namespace {

// The kernel's generator, or one that is not seeded after so many bytes, as in early boot.
struct Generator {
  bool fake = false;
  size_t bytes_left = 0;
  unsigned calls = 0;
  size_t largest = 0;
  unsigned flags_seen = 0;
};

Generator generator;

}  // namespace

// In place of the C library's.
extern "C" ssize_t getrandom(void* out, size_t n, unsigned flags) {
  ++generator.calls;
  generator.largest = n > generator.largest ? n : generator.largest;
  generator.flags_seen |= 1u << flags;
  if (!generator.fake) return syscall(SYS_getrandom, out, n, flags);
  if (generator.bytes_left == 0) {
    errno = EAGAIN;
    return -1;
  }
  const size_t given = n < generator.bytes_left ? n : generator.bytes_left;
  for (size_t i = 0; i < given; ++i) static_cast<uint8_t*>(out)[i] = 0xAA;
  generator.bytes_left -= given;
  return static_cast<ssize_t>(given);
}

namespace redlock {
namespace {

class Entropy : public testing::Test {
 protected:
  void SetUp() override { generator = Generator(); }
};

TEST_F(Entropy, fills_all_in_small_pieces_and_never_waits) {
  std::vector<uint8_t> bytes(1'000, 0);
  EXPECT_EQ(fill_random(bytes.data(), bytes.size()), bytes.size());
  EXPECT_EQ(generator.calls, 4u);
  EXPECT_EQ(generator.largest, 256u);
  EXPECT_EQ(generator.flags_seen, 1u << GRND_NONBLOCK);
  size_t zeros = 0;
  for (uint8_t byte : bytes) zeros += byte == 0;
  EXPECT_LT(zeros, 40u);  // 4 are expected; 40 come once in 10^25 runs
}

TEST_F(Entropy, nothing_while_the_kernel_is_not_seeded) {
  generator.fake = true;
  std::vector<uint8_t> bytes(64, 0x11);
  EXPECT_EQ(fill_random(bytes.data(), bytes.size()), 0u);
  EXPECT_EQ(bytes, std::vector<uint8_t>(64, 0x11)) << "no weaker bytes instead";
  EXPECT_EQ(generator.calls, 1u) << "asked once, not in a loop";
}

TEST_F(Entropy, as_many_as_there_are) {
  generator.fake = true;
  generator.bytes_left = 300;
  std::vector<uint8_t> bytes(600, 0x11);
  EXPECT_EQ(fill_random(bytes.data(), bytes.size()), 300u);
  for (size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], i < 300 ? 0xAA : 0x11) << i;
}

// The boot id of this machine, from the kernel's own files; and in processes whose clock is not the machine's, or that
// cannot find out. Those are children, so that what they do to themselves ends with them.
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
