// SPDX-License-Identifier: MIT
//
// The table of include/API.md, "Which call may be made where", walked row by row: it is read from the page itself, so
// neither the table nor the library can drift from the other. Each function of a row is called in each place that a
// column names, and then in forked children. "yes" means that the call is let in: its result is whatever the arguments
// deserve, but neither THREAD nor DEADLOCK nor NO_BLOCKING nor NOTSUP
// nor FORKED.
//
// The second table is that of all calls that fill something of the caller's: after an error each output is zeroed.
#include <redlock/site.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <set>
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

// ---- outputs -----------------------------------------------------------------------------------------------------

constexpr unsigned char dirt = 0x5a;

// A struct of the caller's that is full of dirt, but for its size.
template <class Struct>
struct Dirty {
  explicit Dirty(uint32_t size = sizeof(Struct)) : given(size) {
    memset(static_cast<void*>(&value), dirt, sizeof value);
    value.size = size;
  }
  // The size stands as it was; what is behind it is zeroed as far as it reaches, and no byte more.
  bool zeroed() const {
    unsigned char bytes[sizeof value];
    memcpy(bytes, &value, sizeof value);
    bool well = value.size == given;
    for (size_t i = sizeof value.size; i < sizeof value; ++i) well = well && bytes[i] == (i < given ? 0 : dirt);
    return well;
  }
  Struct value;
  const uint32_t given;
};

// No descriptor can be opened meanwhile.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none = {0, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// One call that must fail: with which result, and are its outputs zeroed?
struct Failed {
  int err;
  bool zeroed;
};
struct Row {
  const char* function;
  const char* because;
  std::function<Failed()> call;
};

struct Site {
  Site() {
    EXPECT_EQ(redlock_config_new(&cfg), 0);
    EXPECT_EQ(redlock_config_new(&empty), 0);
    EXPECT_EQ(redlock_config_add_master(cfg, "redis://127.0.0.1:1"), 0);
  }
  ~Site() {
    redlock_config_free(cfg);
    redlock_config_free(empty);
  }
  redlock_config_t* cfg = nullptr;
  redlock_config_t* empty = nullptr;  // without a master: not valid
};

using Rows = std::vector<Row>;

void add_creates(Rows& rows, Site& site, uv_loop_t* loop) {
  static char memory[64];
  const auto add = [&](const char* function, const char* because, auto create) {
    rows.push_back({function, because, [create] {
                      redlock_t* out = reinterpret_cast<redlock_t*>(memory);
                      const int err = create(&out);
                      return Failed{err, out == nullptr};
                    }});
  };
  redlock_config_t* const bad = site.empty;
  redlock_config_t* const cfg = site.cfg;
  add("redlock_create", "no master", [=](redlock_t** out) { return redlock_create(out, bad); });
  add("redlock_create", "NULL", [=](redlock_t** out) { return redlock_create(out, nullptr); });
  add("redlock_create_polled", "no master", [=](redlock_t** out) { return redlock_create_polled(out, bad); });
  add("redlock_create_on_loop", "no master", [=](redlock_t** out) { return redlock_create_on_loop(out, bad, loop); });
  add("redlock_create_on_loop", "no loop", [=](redlock_t** out) { return redlock_create_on_loop(out, cfg, nullptr); });
  add("redlock_create_in", "small", [=](redlock_t** out) { return redlock_create_in(memory, 0, out, cfg); });
  add("redlock_create_polled_in", "NULL",
      [=](redlock_t** out) { return redlock_create_polled_in(nullptr, 0, out, cfg); });
  add("redlock_create_on_loop_in", "NULL",
      [=](redlock_t** out) { return redlock_create_on_loop_in(nullptr, 0, out, cfg, loop); });
  add("redlock_create", "no descriptor", [=](redlock_t** out) {
    const NoDescriptors none;
    return redlock_create(out, cfg);
  });
}

void add_acquires(Rows& rows, redlock_t* of_thread, redlock_t* of_loop) {
  static const redlock_resource_t pump = redlock_resource("pump");
  const auto add = [&](const char* function, const char* because, auto acquire) {
    rows.push_back({function, because, [acquire] {
                      redlock_lock_t lock = {42};
                      redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
                      const int err = acquire(opts, &lock);
                      return Failed{err, lock.id == 0};
                    }});
  };
  const auto flags = [=](redlock_acquire_opts_t& opts, redlock_lock_t* lock) {
    opts.flags = ~0u;
    return redlock_acquire(of_thread, &pump, 1, &opts, lock);
  };
  add("redlock_acquire", "flags", flags);
  add("redlock_acquire", "NULL", [](auto& opts, auto lock) { return redlock_acquire(nullptr, &pump, 1, &opts, lock); });
  add("redlock_acquire", "mode",
      [=](auto& opts, auto lock) { return redlock_acquire(of_loop, &pump, 1, &opts, lock); });
  add("redlock_acquire_async", "count",
      [=](auto& opts, auto lock) { return redlock_acquire_async(of_thread, &pump, 0, &opts, lock); });
  add("redlock_acquire_async", "thread",
      [=](auto& opts, auto lock) { return redlock_acquire_async(of_loop, &pump, 1, &opts, lock); });
  rows.push_back({"redlock_acquire", "report->size", [=] {
                    Dirty<redlock_report_t> report(30);
                    redlock_lock_t lock = {42};
                    redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
                    opts.report = &report.value;
                    const int err = redlock_acquire(of_thread, &pump, 1, &opts, &lock);
                    return Failed{err, lock.id == 0 && report.zeroed()};
                  }});
}

void add_states(Rows& rows, redlock_t* of_thread, redlock_t* of_loop) {
  const auto status = [&](const char* because, redlock_t* rl, uint32_t size) {
    rows.push_back({"redlock_status", because, [=] {
                      Dirty<redlock_status_t> out(size);
                      const int err = redlock_status(rl, &out.value);
                      return Failed{err, out.zeroed()};
                    }});
  };
  status("NULL", nullptr, sizeof(redlock_status_t));
  status("thread", of_loop, sizeof(redlock_status_t));
  status("thread, of an earlier version", of_loop, offsetof(redlock_status_t, wait));
  status("size", of_thread, 0);
  const auto master = [&](const char* because, redlock_t* rl, uint32_t index, uint32_t size) {
    rows.push_back({"redlock_master_status", because, [=] {
                      Dirty<redlock_master_status_t> out(size);
                      const int err = redlock_master_status(rl, index, &out.value);
                      return Failed{err, out.zeroed()};
                    }});
  };
  master("index", of_thread, 1, sizeof(redlock_master_status_t));
  master("thread", of_loop, 0, sizeof(redlock_master_status_t));
  master("size", of_thread, 0, 7);
  rows.push_back({"redlock_status_json", "thread", [=] {
                    char text[4] = "abc";
                    size_t size = sizeof text;
                    const int err = redlock_status_json(of_loop, text, &size);
                    return Failed{err, *text == '\0' && text[1] == 'b' && size == 0};
                  }});
  rows.push_back({"redlock_status_json", "NULL", [=] {
                    size_t size = 100;
                    const int err = redlock_status_json(of_thread, nullptr, &size);
                    return Failed{err, size == 0};
                  }});
  rows.push_back({"redlock_status_json", "no room", [=] {
                    char text[4] = "abc";
                    size_t size = sizeof text;
                    const int err = redlock_status_json(of_thread, text, &size);
                    return Failed{err, *text == '\0' && size > sizeof text};  // the needed size is no leftover
                  }});
  rows.push_back({"redlock_describe", "NULL", [] {
                    char text[4] = "abc";
                    const size_t needed = redlock_describe(nullptr, text, sizeof text);
                    return Failed{REDLOCK_E_INVAL, *text == '\0' && needed == 0};
                  }});
}

template <class Struct, class Ask>
void add_site(Rows& rows, const char* function, const char* because, Ask ask, uint32_t size = sizeof(Struct)) {
  rows.push_back({function, because, [=] {
                    Dirty<Struct> out(size);
                    const int err = ask(&out.value);
                    return Failed{err, out.zeroed()};
                  }});
}

void add_site_calls(Rows& rows, Site& site) {
  redlock_config_t* const cfg = site.cfg;
  redlock_config_t* const bad = site.empty;
  using Report = redlock_reconfigure_report_t;
  add_site<Report>(rows, "redlock_reconfigure", "NULL",
                   [=](Report* out) { return redlock_reconfigure(cfg, nullptr, out); });
  add_site<Report>(rows, "redlock_reconfigure", "no master",
                   [=](Report* out) { return redlock_reconfigure(bad, cfg, out); });
  add_site<Report>(rows, "redlock_reconfigure", "size", [=](Report* out) { return redlock_reconfigure(cfg, cfg, out); },
                   40);
  using Setting = redlock_setting_t;
  const auto setting = [&](const char* because, redlock_config_t* of, uint32_t index, uint32_t size) {
    add_site<Setting>(rows, "redlock_site_setting", because,
                      [=](Setting* out) { return redlock_site_setting(of, index, out); }, size);
  };
  setting("index", cfg, 1'000, sizeof(Setting));
  setting("no master", bad, 0, sizeof(Setting));
  setting("size", cfg, 0, sizeof(Setting) - 1);
  using Facts = redlock_site_facts_t;
  const auto facts = [&](const char* because, redlock_config_t* of, uint32_t master, uint32_t size) {
    add_site<Facts>(rows, "redlock_site_facts", because,
                    [=](Facts* out) { return redlock_site_facts(of, master, out); }, size);
  };
  facts("index", cfg, 1, sizeof(Facts));
  facts("no master", bad, 0, sizeof(Facts));
  facts("NULL", nullptr, 0, sizeof(Facts));
  facts("size", cfg, 0, sizeof(Facts) - 1);
  using Left = redlock_site_left_t;
  add_site<Left>(rows, "redlock_site_left", "no master", [=](Left* out) { return redlock_site_left(bad, cfg, out); });
  add_site<Left>(rows, "redlock_site_left", "size", [=](Left* out) { return redlock_site_left(cfg, cfg, out); }, 8);
#ifdef REDLOCK_TLS
  using Tls = redlock_site_tls_t;
  add_site<Tls>(rows, "redlock_site_tls", "no TLS", [=](Tls* out) { return redlock_site_tls(cfg, 0, out); });
  add_site<Tls>(rows, "redlock_site_tls", "no master", [=](Tls* out) { return redlock_site_tls(bad, 0, out); });
#endif
}

// A question that was not asked has the call's error.
void add_questions(Rows& rows, Site& site) {
  const auto ask = [](redlock_config_t* cfg, uint32_t master, uint32_t words, const char* address) {
    const redlock_resource_t ping = redlock_resource("PING");
    const redlock_item_t item = {};
    redlock_question_t questions[2];
    for (redlock_question_t& one : questions) one = {&ping, words, 42, &item, 42, 42, 42};
    char buf[64];
    const int err = address != nullptr
                        ? redlock_site_ask_at(cfg, master, address, questions, 2, buf, sizeof buf)
                        : redlock_site_ask(cfg, master, questions, 2, buf, sizeof buf);
    bool zeroed = true;
    for (const redlock_question_t& one : questions) {
      zeroed = zeroed && one.err == err && one.item == nullptr && one.asked_ns == 0 && one.items + one.rtt_us == 0;
    }
    return Failed{err, zeroed};
  };
  const auto add = [&](const char* because, redlock_config_t* cfg, uint32_t master, uint32_t words,
                       const char* address = nullptr) {
    rows.push_back({address != nullptr ? "redlock_site_ask_at" : "redlock_site_ask", because,
                    [=] { return ask(cfg, master, words, address); }});
  };
  add("index", site.cfg, 1, 1);
  add("no word", site.cfg, 0, 0);
  add("no master", site.empty, 0, 1);
  add("index", site.cfg, 1, 1, "127.0.0.1");
  add("no address", site.cfg, 0, 1, "localhost");
  rows.push_back({"redlock_site_ask", "no descriptor", [=, cfg = site.cfg] {
                    const NoDescriptors none;
                    return ask(cfg, 0, 1, nullptr);
                  }});
  rows.push_back({"redlock_site_addresses", "index", [cfg = site.cfg] {
                    redlock_site_address_t addresses[2];
                    memset(addresses, 42, sizeof addresses);
                    const int err = redlock_site_addresses(cfg, 1, addresses, 2);
                    return Failed{err, addresses[0].text[0] == 0 && addresses[1].text[47] == 0};
                  }});
}

// Of a header: the functions that fill something behind a pointer. `kept`: what a pointer stands for elsewhere.
std::set<std::string> functions_with_outputs(const char* header) {
  const std::set<std::string> kept = {"redlock_t *rl", "redlock_config_t *cfg", "void *mem", "void *user",
                                      "struct uv_loop_s *loop"};
  std::set<std::string> out;
  const std::string text = text_of(header);
  for (size_t at = 0; (at = text.find("\nREDLOCK_API", at)) != std::string::npos; ++at) {
    const size_t open = text.find('(', at);
    const size_t name = text.find_last_of(" *", open) + 1;
    std::istringstream parameters(text.substr(open + 1, text.find(')', open) - open - 1));
    for (std::string parameter; std::getline(parameters, parameter, ',');) {
      parameter.erase(0, parameter.find_first_not_of(" \n"));
      const bool fills = parameter.find('*') != std::string::npos && parameter.find("const ") == std::string::npos;
      if (fills && kept.count(parameter) == 0) out.insert(text.substr(name, open - name));
    }
  }
  return out;
}

TEST(CallTable, AnErrorLeavesNothingOldInAnOutput) {
  Site site;
  Loop loop;
  Client of_loop(loop, {"redis://127.0.0.1:1"});
  ThreadClient of_thread({"redis://127.0.0.1:1"});
  Rows rows;
  add_creates(rows, site, loop.get());
  add_acquires(rows, of_thread.get(), of_loop.get());
  add_states(rows, of_thread.get(), of_loop.get());
  add_site_calls(rows, site);
  add_questions(rows, site);
  std::set<std::string> there;
  std::thread([&] {  // where calls of `of_loop` are refused
    for (const Row& row : rows) {
      const Failed failed = row.call();
      EXPECT_LT(failed.err, 0) << row.function << ": " << row.because;
      EXPECT_TRUE(failed.zeroed) << row.function << ": " << row.because << ": " << redlock_err_name(failed.err);
      there.insert(row.function);
    }
  }).join();
  there.insert("redlock_config_new");  // integration_failing_calls: only memory can be missing
  there.insert("redlock_site_tls");    // a build with TLS has it
  std::set<std::string> wanted = functions_with_outputs("/include/redlock/redlock.h");
  wanted.merge(functions_with_outputs("/include/redlock/site.h"));
  EXPECT_EQ(there, wanted);
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
