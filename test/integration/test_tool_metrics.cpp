// SPDX-License-Identifier: MIT
//
// redlock run --metrics: the file that an agent collects.
#include <sys/stat.h>

#include <map>
#include <regex>
#include <set>

#include "tool_site.hpp"

namespace redlock::test {
namespace {

// Metrics in the text format of Prometheus: what an agent would refuse, and what it would read.
struct Samples {
  std::map<std::string, double> value;        // by name and labels
  std::map<std::string, std::string> type;    // by family
  double operator[](const std::string& name) const {
    const auto found = value.find(name);
    return found != value.end() ? found->second : -1;
  }
};

// The family that a sample belongs to, if it has the last family's type.
bool belongs(const std::string& name, const std::string& family, const std::string& type) {
  if (name == family) return type != "histogram";
  return type == "histogram" && (name == family + "_bucket" || name == family + "_sum" || name == family + "_count");
}

Samples read_metrics(const std::string& text) {
  static const std::regex help("# HELP ([a-z_]+) [^\\n]+"), type("# TYPE ([a-z_]+) (counter|gauge|histogram)");
  static const std::string pair = R"re([a-z]+="(?:[^"\\\n]|\\[\\"n])*")re";
  static const std::regex sample("([a-z_]+)(\\{" + pair + "(?:," + pair + R"re()*\})? (-?[0-9]+(?:\.[0-9]+)?))re");
  Samples out;
  std::istringstream lines(text);
  std::smatch parts;
  std::string family, with_help;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, parts, help)) {
      with_help = parts[1];
    } else if (std::regex_match(line, parts, type)) {
      family = parts[1];
      EXPECT_EQ(family, with_help) << line;
      EXPECT_TRUE(out.type.emplace(family, parts[2]).second) << "a family in two places: " << line;
      EXPECT_EQ(family.ends_with("_total"), parts[2] == "counter") << line;
    } else if (std::regex_match(line, parts, sample)) {
      EXPECT_TRUE(belongs(parts[1], family, out.type[family])) << line << " in " << family;
      EXPECT_TRUE(out.value.emplace(parts[1].str() + parts[2].str(), std::stod(parts[3])).second) << "twice: " << line;
    } else {
      ADD_FAILURE() << "no line of metrics: " << line;
    }
  }
  EXPECT_TRUE(text.ends_with('\n')) << "the last line is whole";
  return out;
}

// Buckets grow, and the last one is the count.
void expect_histogram(const Samples& samples, const std::string& family, const std::string& labels) {
  double before = 0;
  for (const char* limit : {"0.01", "0.1", "1", "10", "100", "1000", "10000", "+Inf"}) {
    const double now = samples[family + "_bucket{" + labels + ",le=\"" + limit + "\"}"];
    EXPECT_GE(now, before) << family << " " << limit;
    before = now;
  }
  EXPECT_EQ(before, samples[family + "_count{" + labels + "}"]) << family;
  EXPECT_GE(samples[family + "_sum{" + labels + "}"], 0) << family;
}

class ToolMetrics : public ::testing::Test {
 protected:
  Ended run(const Words& options, const Words& command = {"true"}) {
    return site_.run(Words{"run", "--metrics", file_} + options + Words{"bus", "--"} + command);
  }
  Samples read() const {
    const std::string text = text_of_file(file_);
    return text.empty() ? Samples() : read_metrics(text);  // the run has just begun
  }
  // Files that cannot be replaced, and why.
  std::vector<std::pair<std::string, std::string>> not_ours() const {
    std::ofstream(other_) << "precious\n";
    const std::string why = "is no file of metrics of redlock, and stays as it is";
    return {{site_.dir + "/none/bus.prom", "cannot be written: No such file or directory"},
            {"", "cannot be written: "},
            {folder_, why},
            {"/dev/null", why},
            {other_, why}};
  }
  void expect_not_ours_stay() const {
    EXPECT_FALSE(std::filesystem::exists(".new")) << "a half-made file is left";
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
    EXPECT_EQ(text_of_file(other_), "precious\n");
  }
  static std::string of_bus(const std::string& name) { return "redlock_" + name + "{resource=\"bus\"}"; }

  ToolSite site_;
  std::string folder_ = site_.dir + "/metrics";
  std::string file_ = folder_ + "/bus.prom";
  std::string other_ = site_.dir + "/other.txt";
  bool made_ = std::filesystem::create_directory(folder_);
};

TEST_F(ToolMetrics, CountersGoOnFromRunToRun) {
  EXPECT_EQ(run({}, {"sh", "-c", "sleep 1.1; exit 7"}).status, 7);
  EXPECT_EQ(run({}).status, 0);
  site_.hold_by_other("bus");
  EXPECT_EQ(run({"-n"}).status, 75);
  const Samples samples = read();
  EXPECT_EQ(samples[of_bus("acquired_total")], 2);
  EXPECT_EQ(samples[of_bus("released_total")], 2);
  EXPECT_EQ(samples[of_bus("failed_locked_total")], 1);
  EXPECT_EQ(samples[of_bus("failed_no_quorum_total")], 0);
  EXPECT_EQ(samples[of_bus("lost_total")], 0);
  EXPECT_EQ(samples[of_bus("wait_seconds_count")], 3);
  EXPECT_EQ(samples[of_bus("hold_seconds_count")], 2);
  EXPECT_GE(samples[of_bus("hold_seconds_sum")], 1.1);
  EXPECT_GE(samples[of_bus("hold_max_seconds")], 1.1);
  expect_histogram(samples, "redlock_wait_seconds", "resource=\"bus\"");
  expect_histogram(samples, "redlock_hold_seconds", "resource=\"bus\"");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "nothing is left beside it";
}

// What was so when a run was killed would stand there for good.
TEST_F(ToolMetrics, ARunThatIsKilledLeavesCountersAndNothingOfNow) {
  Program holder(site_.words({"run", "--metrics", file_, "bus", "--", "sleep", "600"}), site_.dir);
  struct stat before {}, now {};
  unsigned changes = 0;
  const int64_t begin = boot_ns();
  ASSERT_TRUE(eventually([&] {
    if (stat(file_.c_str(), &now) == 0) changes += now.st_ino != before.st_ino ? 1 : 0;
    before = now;
    return read()[of_bus("renewed_total")] >= 3;
  }));
  EXPECT_LE(changes, 2u + static_cast<unsigned>((boot_ns() - begin) / 1'000'000'000)) << "once a second";
  holder.signal(SIGKILL);
  holder.exit_status();
  const Samples samples = read();
  EXPECT_EQ(samples[of_bus("acquired_total")], 1);
  for (const auto& [family, type] : samples.type) {
    EXPECT_TRUE(type != "gauge" || family.ends_with("_max_seconds")) << family << " is of another time";
  }
}

TEST_F(ToolMetrics, StatusReplacesAFileOfItsOwnByWhatIsSoNow) {
  const auto write = [&](const std::string& file) {
    const Words words = {"bash", "-c", "umask 077; exec \"$@\"", "-"};
    Words line = site_.words({"status", "--prometheus", "-o", file, "bus"});
    line.insert(line.begin(), words.begin(), words.end());
    Program program(line, site_.dir);
    const int status = program.exit_status();
    return Ended{status, program.out(), program.err()};
  };
  for (const double held : {0.0, 1.0}) {
    if (held == 1) site_.hold_by_other("bus");
    const Ended ended = write(file_);
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ended.out + ended.err, "");
    EXPECT_EQ(read()[of_bus("resource_held")], held);
    EXPECT_EQ(read()["redlock_masters_up"], 3);
    struct stat found {};
    ASSERT_EQ(stat(file_.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0644u) << "an agent is another user";
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "nothing is left beside it";
  for (const auto& [file, why] : not_ours()) {
    const Ended ended = write(file);
    EXPECT_EQ(ended.status, 74) << file;
    EXPECT_EQ(ended.err.find("redlock: --output: " + file + " " + why), 0u) << ended.err;
  }
  expect_not_ours_stay();
}

TEST_F(ToolMetrics, RunsThatShareAFileLoseNoCount) {
  std::vector<std::unique_ptr<Program>> runs;
  for (int i = 0; i < 5; ++i) {
    runs.push_back(std::make_unique<Program>(
        site_.words({"run", "--metrics", file_, "bus", "--", "true"}), site_.dir));
  }
  for (const auto& one : runs) EXPECT_EQ(one->exit_status(), 0);
  EXPECT_EQ(read()[of_bus("acquired_total")], 5);
}

TEST_F(ToolMetrics, AFileThatCannotBeWrittenOrIsNotOursEndsTheRunFirst) {
  const std::string trace = site_.dir + "/trace";
  for (const auto& [file, why] : not_ours()) {
    const Ended ended = site_.run({"run", "--metrics", file, "bus", "--", "touch", trace});
    EXPECT_EQ(ended.status, 74) << file;
    EXPECT_NE(ended.err.find("redlock: --metrics: " + file + " " + why), std::string::npos) << ended.err;
  }
  EXPECT_FALSE(std::filesystem::exists(trace));
  expect_not_ours_stay();
}

TEST_F(ToolMetrics, AFileThatCannotBeWrittenLaterEndsNothing) {
  const Ended ended = run({}, {"rm", "-r", folder_});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.err, "redlock: --metrics: " + file_ + " cannot be written: No such file or directory\n");
}

// One name for one thing: in redlock.h, in its JSON, and here.
TEST_F(ToolMetrics, NamesAreThoseOfTheHeader) {
  std::string header = text_of_file(std::string(REDLOCK_SOURCE_DIR) + "/include/redlock/redlock.h");
  const size_t begin = header.find("typedef struct redlock_status_s {");
  header = header.substr(begin, header.find("} redlock_master_status_t;") - begin);
  Program holder(site_.words({"run", "--metrics", file_, "bus", "--", "sleep", "600"}), site_.dir);
  EXPECT_TRUE(eventually([&] { return read()[of_bus("acquired_total")] == 1; }));
  const Samples samples = read();
  for (std::string name : {"_total", "_max_seconds", "_seconds"}) {
    unsigned found = 0;
    for (const auto& [family, type] : samples.type) found += family.ends_with(name);
    EXPECT_GT(found, 0u) << name;
  }
  for (const auto& [family, type] : samples.type) {
    const std::string field = std::regex_replace(family, std::regex("^redlock_|_total$|_max_seconds$|_seconds$"), "");
    const std::regex declared("  [a-z0-9_]+ " + field + ";");
    EXPECT_TRUE(std::regex_search(header, declared)) << family << " is no field: " << field;
  }
  for (const char* field : {"acquired", "failed_locked", "failed_no_quorum", "failed_other", "rounds", "renewed",
                            "renew_failed", "released", "lost", "clock_jumps", "clock_steps"}) {
    EXPECT_EQ(samples.type.count(std::string("redlock_") + field + "_total"), 1u) << field;
  }
}

// ---- the rules of examples/site -------------------------------------------------------------------------------------

// The first column of the guide's table of alarms.
std::set<std::string> alarms_of_the_guide() {
  const std::string guide = text_of_file(std::string(REDLOCK_SOURCE_DIR) + "/examples/site/README.md");
  std::istringstream lines(guide.substr(guide.find("| alarm |")));
  std::set<std::string> alarms;
  std::string line;
  for (std::getline(lines, line), std::getline(lines, line); std::getline(lines, line) && line.starts_with("| ");) {
    alarms.insert(line.substr(2, line.find(" |", 2) - 2));
  }
  return alarms;
}

TEST_F(ToolMetrics, EachAlarmOfTheGuideHasARuleOverMetricsThatAreWritten) {
  std::set<std::string> written;
  const auto add_written = [&] {
    for (const auto& [name, value] : read().value) written.insert(name.substr(0, name.find('{')));
  };
  EXPECT_EQ(run({}).status, 0);
  add_written();
  site_.hold_by_other("bus");
  EXPECT_EQ(site_.run({"status", "--prometheus", "-o", file_, "bus"}).status, 0);
  add_written();
  std::string rules = text_of_file(std::string(REDLOCK_SOURCE_DIR) + "/examples/site/alarms.yml");
  rules = std::regex_replace(rules, std::regex("\n {12}"), " ");  // an expression of several lines
  const std::regex form("(#[^\n]*\n)+groups:\n  - name: redlock\n    rules:\n"
                        "(      - alert: [A-Za-z]+\n        expr: [^\n:]+\n(        for: [0-9]+[ms]\n)?"
                        "        annotations:\n          summary: [^\n:]+\n)+");
  EXPECT_TRUE(std::regex_match(rules, form)) << rules;
  std::set<std::string> alarms;
  std::istringstream lines(rules);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("          summary: ")) alarms.insert(line.substr(strlen("          summary: ")));
    if (!line.starts_with("        expr: ")) continue;
    const std::regex metric("redlock_[a-z_]+");
    const std::sregex_iterator begin(line.begin(), line.end(), metric);
    EXPECT_TRUE(begin != std::sregex_iterator() || line.find(R"({file=~"(.*/)?redlock.prom"})") != std::string::npos)
        << line;
    for (std::sregex_iterator at = begin; at != std::sregex_iterator(); ++at) {
      EXPECT_EQ(written.count(at->str()), 1u) << at->str() << " is written by nobody: " << line;
    }
  }
  EXPECT_EQ(alarms, alarms_of_the_guide());
  EXPECT_GE(alarms.size(), 8u);
}

}  // namespace
}  // namespace redlock::test
