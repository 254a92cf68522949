// SPDX-License-Identifier: MIT
#include "tool/system/children.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/system/clock.hpp"
#include "tool/system/descriptors.hpp"
#include "tool/words/say.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {
namespace {

constexpr int64_t patience_ns = 100 * ns_per_ms;

class Pids {
 public:
  void clear() { count_ = 0; }
  unsigned count() const { return count_; }
  pid_t operator[](unsigned place) const { return pids_[place]; }
  bool add(pid_t pid) {
    if (count_ == sizeof pids_ / sizeof pids_[0]) return false;
    pids_[count_++] = pid;
    return true;
  }
  bool has(pid_t pid) const { return place_of(pid) < count_; }
  void remove(pid_t pid) {
    const unsigned place = place_of(pid);
    if (place < count_) pids_[place] = pids_[--count_];
  }

 private:
  unsigned place_of(pid_t pid) const {
    unsigned i = 0;
    while (i < count_ && pids_[i] != pid) ++i;
    return i;
  }

  pid_t pids_[512];
  unsigned count_ = 0;
};
Pids earlier;  // the children that were there before
Pids found;    // we, and our descendants; what has no room is found again when its parent is gone: it is our child then
Pids groups;   // that were killed as a whole
bool has_lists;  // the kernel lists the children of each process

struct Process {
  pid_t parent = 0;        // 0: there is no such process
  bool has_ended = false;  // and its parent has not noticed yet

  explicit Process(pid_t pid) {
    char text[256];
    if (read_file(Text("/proc/%d/stat", pid), text, sizeof text) < 0) return;
    const char* const at = strrchr(text, ')');  // "12 (any name) S 1 12 12 ..."
    if (at == nullptr || strlen(at) < 4) return;
    has_ended = at[2] == 'Z' || at[2] == 'X';
    parent = static_cast<pid_t>(strtol(at + 3, nullptr, 10));
  }
};

// Who has no child has no descendant.
bool has_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// The entries of a folder that are numbers. False: `take` has said so, and wants no more.
template <typename Take>
bool for_each_number(const char* path, Take take) {
  DIR* const folder = opendir(path);
  if (folder == nullptr) return true;
  bool goes_on = true;
  while (const dirent* const entry = goes_on ? readdir(folder) : nullptr) {
    const pid_t number = static_cast<pid_t>(strtol(entry->d_name, nullptr, 10));
    if (number > 0) goes_on = take(number);
  }
  closedir(folder);
  return goes_on;
}

Text list_path(pid_t process, pid_t thread) { return Text("/proc/%d/task/%d/children", process, thread); }

// The children of one thread: "13 15 20 ". One that appears meanwhile stands behind the others.
template <typename Take>
bool for_each_in_list(const char* path, Take take) {
  const int list = open(path, O_RDONLY | O_CLOEXEC);
  if (list < 0) return true;
  char text[4096];
  pid_t pid = 0;
  bool goes_on = true;
  for (ssize_t size; goes_on && (size = read(list, text, sizeof text)) > 0;) {
    for (const char* at = text; goes_on && at < text + size; ++at) {
      const bool is_digit = *at >= '0' && *at <= '9';
      if (!is_digit) goes_on = take(pid);
      pid = is_digit ? 10 * pid + (*at - '0') : 0;
    }
  }
  close(list);
  return goes_on;
}

// The children of all threads of a process.
template <typename Take>
bool for_each_listed(pid_t process, Take take) {
  return for_each_number(Text("/proc/%d/task", process),
                         [&](pid_t thread) { return for_each_in_list(list_path(process, thread), take); });
}

// The children of those in `parents`, to which `take` may add. We are the first of `parents`, and looked at behind all
// that were there: what lost its parent meanwhile is ours now.
template <typename Take>
void for_each_child(const Pids& parents, Take take) {
  if (!has_children() || !is_proc_ours()) return;
  if (!has_lists) {
    for_each_number("/proc", [&](pid_t pid) { return !parents.has(Process(pid).parent) || take(pid); });
    return;
  }
  const unsigned known = parents.count();
  bool goes_on = true;
  for (unsigned i = 1; goes_on && i < known; ++i) goes_on = for_each_listed(parents[i], take);
  goes_on = goes_on && for_each_listed(parents[0], take);
  for (unsigned i = known; goes_on && i < parents.count(); ++i) goes_on = for_each_listed(parents[i], take);
}

// Of a chain of processes, each of which forks and ends, we may see only those that have ended, by the thousand where a
// warden was stopped. Such a chain is a process group. A group of another session than ours has no members but
// descendants, and its number is not given away as long as one of these is not reaped.
void signal_one(pid_t pid, int number) {
  kill(pid, number);
  if (number != SIGKILL) return;
  const pid_t group = getpgid(pid);
  if (group <= 1 || getsid(pid) == getsid(0) || groups.has(group)) return;
  kill(-group, SIGKILL);
  groups.add(group);
}

void find_only_us() {
  found.clear();
  found.add(getpid());
}

}  // namespace

void become_parent_of_orphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  has_lists = access(list_path(getpid(), getpid()), R_OK) == 0;
  earlier.clear();
  find_only_us();
  for_each_child(found, [](pid_t pid) {
    if (!earlier.add(pid)) fail(exit_system, "this process has too many children already");
    return true;
  });
}

bool is_proc_ours() {
  char self[16] = "";
  return readlink("/proc/self", self, sizeof self - 1) < 0 || strtol(self, nullptr, 10) == getpid();
}

// Passes follow until one finds nobody new. A KILL that is pending stops a fork, so who was killed before a pass has no
// child that the pass cannot see.
//   A pass signals when it has found all generations, and the last of them first. A process that is killed may run at
// once in our place, and ends: its children would move while we look for them, and a pass would find one generation.
//   Who forks faster than we read keeps a pass busy: what is not told to end in good time is killed later.
unsigned signal_descendants(int number) {
  const int64_t give_up_at = number == SIGKILL ? never : now_ns() + patience_ns;
  find_only_us();
  groups.clear();
  for (unsigned before = 0; before != found.count();) {
    before = found.count();
    for_each_child(found, [=](pid_t pid) {
      if (now_ns() >= give_up_at) return false;
      if (found.has(pid) || earlier.has(pid) || (number == 0 && Process(pid).has_ended)) return true;
      if (!found.add(pid)) signal_one(pid, number);
      return true;
    });
    for (unsigned i = found.count(); i > before; --i) signal_one(found[i - 1], number);
  }
  return found.count() - 1;
}

// The last of them is our child. Who has ended may have forked.
bool has_descendants() {
  bool has_one = false;
  find_only_us();
  for_each_child(found, [&has_one](pid_t pid) {
    has_one = !earlier.has(pid);
    return !has_one;
  });
  return has_one;
}

// The numbers of parents go on to the machine's init, or to 0.
bool is_descendant(pid_t pid) {
  if (!is_proc_ours()) return false;
  do {
    pid = Process(pid).parent;
  } while (pid > 1 && pid != getpid());
  return pid == getpid();
}

pid_t reap_child(int& status) {
  const pid_t child = waitpid(-1, &status, WNOHANG);
  if (child > 0) earlier.remove(child);
  return child;
}

bool has_earlier_children() { return earlier.count() != 0; }

}  // namespace redlock::tool
