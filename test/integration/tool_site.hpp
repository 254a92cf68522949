// SPDX-License-Identifier: MIT
//
// Three real masters that an operator has admitted, and a configuration file for `redlock`.
#pragma once
#include <fcntl.h>
#include <redlock/redlock.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <filesystem>

#include "support/redis_server.hpp"
#include "tool_program.hpp"

namespace redlock::test {

constexpr int64_t ns_per_ms = 1'000'000;

inline int64_t boot_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// What support/tool_witness.c notes.
struct Notes {
  std::atomic<int64_t> last_act_ns;
  std::atomic<uint32_t> owner, overlaps, acts, pid, over, seen[512];
};

// Notes that several processes share, in a file.
class Board {
 public:
  explicit Board(const std::string& file) : file_(file) {
    const int opened = open(file.c_str(), O_RDWR | O_CREAT, 0600);
    EXPECT_EQ(ftruncate(opened, sizeof(Notes)), 0);
    notes_ = static_cast<Notes*>(mmap(nullptr, sizeof(Notes), PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0));
    close(opened);
  }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board() { munmap(notes_, sizeof(Notes)); }

  Notes* operator->() const { return notes_; }
  const std::string& file() const { return file_; }
  bool acts(uint32_t run = 1) const {
    return eventually([&] { return notes_->owner == run; });
  }
  // Has the witness ended that began last?
  bool is_abandoned() const {
    const auto pid = static_cast<pid_t>(notes_->pid.load());
    return pid == 0 || ::kill(pid, 0) != 0 ||
           text_of_file("/proc/" + std::to_string(pid) + "/stat").find(") Z ") != std::string::npos;
  }

 private:
  std::string file_;
  Notes* notes_;
};

struct ToolSite {
  static constexpr uint32_t ttl_ms = 2'400;  // the shortest that `redlock run` takes
  static constexpr int64_t drift_ms = ttl_ms / 100 + 2;

  explicit ToolSite(bool is_admitted = true, uint32_t max_ttl_ms = ttl_ms, uint32_t node_timeout_ms = 500)
      : masters(3), dir(masters[0].dir()), config(dir + "/redlock.json") {
    std::string list;
    for (const std::string& url : masters.urls()) list += (list.empty() ? "\"" : ", \"") + url + "\"";
    std::ofstream(config) << R"({"client_name": "gw-1", "masters": [)" << list
                          << R"(], "defaults": {"ttl_ms": )" << max_ttl_ms << R"(}, "timing": {"max_ttl_ms": )"
                          << max_ttl_ms << R"(, "node_timeout_ms": )" << node_timeout_ms << R"(, "suspect_close_ms": )"
                          << 2 * node_timeout_ms << "}}";
    if (is_admitted) admit();
  }

  // The operator's statement about new masters.
  void admit() const {
    redlock_config_t* cfg = nullptr;
    redlock_t* client = nullptr;
    redlock_lock_t lock;
    const redlock_resource_t any = redlock_resource("admitted");
    ASSERT_EQ(redlock_config_new(&cfg), 0);
    ASSERT_EQ(redlock_config_load_file(cfg, config.c_str()), 0) << redlock_config_error(cfg);
    ASSERT_EQ(redlock_create(&client, cfg), 0);
    ASSERT_EQ(redlock_commission(client), 0);
    ASSERT_EQ(redlock_acquire(client, &any, 1, nullptr, &lock), 0);
    redlock_master_status_t master{};
    master.size = sizeof master;
    for (uint32_t m = 0; m < 3; ++m) {
      EXPECT_TRUE(eventually([&] {
        return redlock_master_status(client, m, &master) == 0 && master.state == REDLOCK_MASTER_UP;
      }));
    }
    redlock_destroy(client, 1'000);
    redlock_config_free(cfg);
  }

  Words words(const Words& arguments) const { return redlock_words(arguments, config); }
  Ended run(const Words& arguments, const Program::Setting& setting = {}) const {
    return run_program(words(arguments), dir, setting);
  }
  // A line of bash.
  Ended shell(const std::string& line, const Words& environment = {}) const {
    return run_program({"bash", "-c", line}, dir, {environment, false});
  }
  // redlock run [OPTIONS] RES -- tool_witness FILE RUN [HOW]...
  Words witness(const Board& board, const std::string& resource, const Words& how = {}, const std::string& run = "1",
                const Words& options = {}) const {
    return words(Words{"run"} + options + Words{resource, "--", REDLOCK_WITNESS, board.file(), run} + how);
  }
  void hold_by_other(const std::string& resource) {
    for (size_t m = 0; m < 2; ++m) masters[m].command({"SET", resource, "somebody", "PX", "60000"});
  }
  void let_go(const std::string& resource) {
    for (size_t m = 0; m < 2; ++m) masters[m].command({"DEL", resource});
  }
  // When somebody else may hold it at the earliest: the end of the validity, as the keys tell it.
  int64_t validity_end_ns(const std::string& resource) {
    int64_t end = INT64_MAX;
    for (size_t m = 0; m < 3; ++m) {
      const int64_t now = boot_ns();
      const int64_t left = std::stoll(masters[m].command({"PTTL", resource}));
      if (left > 0) end = std::min(end, now + (left - drift_ms) * ns_per_ms);
    }
    return end;
  }

  Cluster masters;
  std::string dir;
  std::string config;
};

// The children of a process.
inline std::vector<pid_t> children_of(pid_t pid) {
  std::stringstream text(text_of_file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children"));
  std::vector<pid_t> all;
  for (pid_t child; text >> child;) all.push_back(child);
  return all;
}

}  // namespace redlock::test
