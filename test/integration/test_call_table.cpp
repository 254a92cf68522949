// SPDX-License-Identifier: MIT
//
// The table of include/API.md, "Which call may be made where", walked row by row: it is read from the page itself, so
// neither the table nor the library can drift from the other. Each function of a row is called in each place that a
// column names, and then in forked children. "yes" means that the call is let in: its result is whatever the arguments
// deserve, but neither THREAD nor DEADLOCK nor NO_BLOCKING nor NOTSUP
// nor FORKED.
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>

#include "polled_harness.hpp"
#include "support/redis_server.hpp"
#include "thread_harness.hpp"

namespace redlock::test {
namespace {

// One call with arguments that do no harm where it is let in: so it may be made in every place.
using Call = std::function<int64_t(redlock_t*)>;

std::map<std::string, Call> make_calls() {
  static const redlock_resource_t pump = redlock_resource("pump");
  const redlock_lock_t none = {0};
  const uint32_t grace_out_of_range = 60'001;
  std::map<std::string, Call> calls;
  calls["redlock_acquire"] = [](redlock_t* rl) {
    redlock_lock_t lock = {0};
    return redlock_acquire(rl, nullptr, 1, nullptr, &lock);
  };
  calls["redlock_acquire_async"] = [](redlock_t* rl) {
    redlock_lock_t lock = {0};
    return redlock_acquire_async(rl, &pump, 0, nullptr, &lock);
  };
  calls["redlock_extend"] = [=](redlock_t* rl) { return redlock_extend(rl, none, 0); };
  calls["redlock_extend_async"] = [=](redlock_t* rl) { return redlock_extend_async(rl, none, 0); };
  calls["redlock_release"] = [=](redlock_t* rl) { return redlock_release(rl, none); };
  calls["redlock_release_async"] = [=](redlock_t* rl) { return redlock_release_async(rl, none); };
  calls["redlock_cancel"] = [=](redlock_t* rl) { return redlock_cancel(rl, none); };
  calls["redlock_destroy"] = [=](redlock_t* rl) { return redlock_destroy(rl, grace_out_of_range); };
  calls["redlock_close_async"] = [=](redlock_t* rl) { return redlock_close_async(rl, grace_out_of_range); };
  calls["redlock_commission"] = [](redlock_t* rl) { return redlock_commission(rl); };
  calls["redlock_commission_master"] = [](redlock_t* rl) { return redlock_commission_master(rl, 0); };
  calls["redlock_fence_init"] = [](redlock_t* rl) { return redlock_fence_init(rl, &pump); };
  calls["redlock_fencing_token"] = [=](redlock_t* rl) { return static_cast<int>(redlock_fencing_token(rl, none)); };
  calls["redlock_suspended"] = [](redlock_t* rl) { return redlock_suspended(rl); };
  calls["redlock_status"] = [](redlock_t* rl) {
    redlock_status_t status = {};
    status.size = sizeof status;
    return redlock_status(rl, &status);
  };
  calls["redlock_master_status"] = [](redlock_t* rl) {
    redlock_master_status_t status = {};
    status.size = sizeof status;
    return redlock_master_status(rl, 0, &status);
  };
  calls["redlock_status_json"] = [](redlock_t* rl) {
    size_t size = 0;
    return redlock_status_json(rl, nullptr, &size);
  };
  calls["redlock_process"] = [](redlock_t* rl) { return redlock_process(rl); };
  calls["redlock_timeout_ms"] = [](redlock_t* rl) {
    const int ms = redlock_timeout_ms(rl);
    return ms == -1 ? 0 : ms;
  };
  calls["redlock_fd"] = [](redlock_t* rl) { return redlock_fd(rl); };
  calls["redlock_check"] = [=](redlock_t* rl) { return redlock_check(rl, none, 0); };
  calls["redlock_validity_ms"] = [=](redlock_t* rl) { return redlock_validity_ms(rl, none); };
  calls["redlock_deadline_ns"] = [=](redlock_t* rl) { return redlock_deadline_ns(rl, none); };
  return calls;
}

const std::map<std::string, Call>& calls() {
  static const std::map<std::string, Call> made = make_calls();
  return made;
}

enum Column { loop_own, loop_other, polled_own, polled_other, thread_any, in_loop, in_polled, in_thread, columns };
constexpr const char* column_names[] = {"loop own",     "loop other", "polled own", "polled other",
                                        "thread any",   "in a callback, loop",      "in a callback, polled",
                                        "in a callback, thread"};

using Table = std::map<std::string, std::vector<std::string>>;

std::string text_of(const char* path) {
  std::ifstream file(std::string(REDLOCK_SOURCE_DIR) + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A row has a function in its first cell, or the name of several, and the answer of each column behind it. A list above
// the table says which functions a name stands for; a line of the list may go on in the next.
Table read_table() {
  Table table;
  std::map<std::string, std::string> named;
  std::istringstream text(text_of("/include/API.md"));
  for (std::string line, name; std::getline(text, line);) {
    if (line.starts_with("- *")) name = line.substr(2, line.find(' ', 2) - 2);
    if (line.starts_with("- *") || line.starts_with("  `redlock_")) {
      named[name] += line.substr(line.find('`')) + " ";
      continue;
    }
    if (!line.starts_with("| `redlock_") && !line.starts_with("| *")) continue;
    std::vector<std::string> cells;
    std::istringstream row(line.substr(1));
    for (std::string cell; std::getline(row, cell, '|');) {
      const size_t begin = cell.find_first_not_of(' ');
      cells.push_back(cell.substr(begin, cell.find_last_not_of(' ') + 1 - begin));
    }
    std::istringstream functions(named.count(cells[0]) != 0 ? named[cells[0]] : cells[0]);
    cells.erase(cells.begin());
    EXPECT_EQ(cells.size(), size_t{columns}) << line;
    for (std::string function; functions >> function;) {
      function = function.substr(1, function.rfind('`') - 1);
      EXPECT_EQ(table.count(function), 0u) << function << " stands twice in the table";
      table[function] = cells;
    }
  }
  return table;
}

// What the table calls the result.
std::string cell_of(int64_t result) {
  switch (result) {
    case REDLOCK_E_THREAD:
      return "THREAD";
    case REDLOCK_E_DEADLOCK:
      return "DEADLOCK";
    case REDLOCK_E_NO_BLOCKING:
      return "NO_BLOCKING";
    case REDLOCK_E_NOTSUP:
      return "NOTSUP";
    case REDLOCK_E_FORKED:
      return "FORKED";
    default:
      return "yes";
  }
}

void walk(Column column, redlock_t* rl) {
  const Table table = read_table();
  for (const auto& [function, call] : calls()) {
    const auto row = table.find(function);
    ASSERT_NE(row, table.end()) << function;
    EXPECT_EQ(cell_of(call(rl)), row->second[column]) << function << ", " << column_names[column];
  }
}

void walk_elsewhere(Column column, redlock_t* rl) {
  std::thread([=] { walk(column, rl); }).join();
}

TEST(CallTable, NamesEveryFunctionOfAClient) {
  const Table table = read_table();
  EXPECT_EQ(table.size(), calls().size());
  for (const auto& [function, cells] : table) EXPECT_EQ(calls().count(function), 1u) << function;
  // Every declaration whose first argument is a client is in the table.
  std::istringstream text(text_of("/include/redlock/redlock.h"));
  std::string declarations;
  for (std::string line; std::getline(text, line);) {
    const size_t at = line.find("(redlock_t *rl") != std::string::npos ? line.find("(redlock_t *rl")
                                                                        : line.find("(const redlock_t *rl");
    if (!line.starts_with("REDLOCK_API") || at == std::string::npos) continue;
    const size_t name = line.find_last_of(" *", at - 1) + 1;
    EXPECT_EQ(table.count(line.substr(name, at - name)), 1u) << line;
    declarations += line;
  }
  EXPECT_FALSE(declarations.empty());
}

TEST(CallTable, LoopMode) {
  RedisServer master;
  Loop loop;
  Client client(loop, {master.url()});
  walk(loop_own, client.get());
  walk_elsewhere(loop_other, client.get());
  Lock& lock = client.start("bus");
  bool walked = false;
  lock.on_event = [&](const redlock_event_t&) {
    if (!walked) walk(in_loop, client.get());
    walked = true;
  };
  EXPECT_TRUE(loop.run_until([&] { return walked; }));
}

TEST(CallTable, PolledMode) {
  RedisServer master;
  PolledClient client({master.url()});
  client.may_be_told = true;
  walk(polled_own, client.get());
  client.may_be_told = false;
  walk_elsewhere(polled_other, client.get());
  bool walked = false;
  client.also = [&](redlock_t* rl, const redlock_event_t&) {
    if (!walked) walk(in_polled, rl);
    walked = true;
  };
  redlock_lock_t lock{0};
  ASSERT_EQ(client.acquire_async("bus", lock), 0);
  EXPECT_TRUE(client.run_until([&] { return walked; }));
}

TEST(CallTable, ThreadMode) {
  Flag walked;
  RedisServer master;
  ThreadClient client({master.url()});
  walk(thread_any, client.get());
  walk_elsewhere(thread_any, client.get());
  client.also = [&](redlock_t* rl, const redlock_event_t&) {
    if (!walked.is_set()) walk(in_thread, rl);
    walked.set();
  };
  redlock_lock_t lock{0};
  ASSERT_EQ(client.acquire_async("bus", lock), 0);
  EXPECT_TRUE(walked.wait());
}

// Commands that the master has been sent, ours here and the idle connection's pings apart.
std::string commands_seen(RedisServer& master) {
  std::istringstream text(master.command({"INFO", "commandstats"}));
  std::string seen;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("cmdstat_info") || line.starts_with("cmdstat_ping")) continue;
    seen += line.substr(0, line.find(',')) + "\n";
  }
  return seen;
}

// Every function, in a child: FORKED, and not a command to the parent's master, which would answer the parent.
void expect_forked(redlock_t* rl, RedisServer& master) {
  const std::string before = commands_seen(master);
  const pid_t child = ::fork();
  if (child == 0) {
    int wrong = 0;
    for (const auto& [function, call] : calls()) {
      // A token is a number that a device would take: in a child there is none.
      const bool is_number = function == "redlock_fencing_token";
      if (is_number ? call(rl) == 0 : cell_of(call(rl)) == "FORKED") continue;
      ::dprintf(2, "%s: not FORKED in a child\n", function.c_str());
      ++wrong;
    }
    ::_exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(commands_seen(master), before);
}

TEST(Forked, LoopMode) {
  RedisServer master;
  Loop loop;
  Client client(loop, {master.url()});
  Lock& lock = client.acquire("bus", options(20'000));
  expect_forked(client.get(), master);
  EXPECT_EQ(client.check(lock), 0);
  client.release(lock);
  EXPECT_EQ(lock.count(REDLOCK_EV_RELEASED), 1u);
  EXPECT_EQ(client.master(0).connects, 1u) << "the connection has not suffered";
}

TEST(Forked, PolledMode) {
  RedisServer master;
  PolledClient client({master.url()});
  redlock_lock_t lock{0};
  ASSERT_EQ(client.acquire_async("bus", lock, options(20'000)), 0);
  ASSERT_TRUE(client.run_until([&] { return client.count(REDLOCK_EV_ACQUIRED) == 1; }));
  ASSERT_EQ(redlock_extend_async(client.get(), lock, 0), 0) << "something is about to be written";
  expect_forked(client.get(), master);
  EXPECT_TRUE(client.run_until([&] { return client.count(REDLOCK_EV_RENEWED) == 1; }));
  EXPECT_EQ(redlock_check(client.get(), lock, 0), 0);
  EXPECT_EQ(redlock_release_async(client.get(), lock), 0);
  EXPECT_TRUE(client.run_until([&] { return client.count(REDLOCK_EV_RELEASED) == 1; }));
}

// The thread does not exist in the child, and the gate may have been taken when it was made.
TEST(Forked, ThreadMode) {
  RedisServer master;
  ThreadClient client({master.url()});
  redlock_lock_t lock{0};
  ASSERT_EQ(client.acquire("bus", lock, options(20'000)), 0);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) (void)client.status();
  });
  for (int i = 0; i < 20; ++i) expect_forked(client.get(), master);
  stop = true;
  busy.join();
  EXPECT_EQ(client.check(lock), 0);
  EXPECT_EQ(client.release(lock), 0);
}

}  // namespace
}  // namespace redlock::test
