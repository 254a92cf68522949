// SPDX-License-Identifier: MIT
//
// Metrics in the text format of Prometheus: what an agent would refuse, and what it would read.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace redlock::test {

struct Samples {
  std::map<std::string, double> value;        // by name and labels
  std::map<std::string, std::string> type;    // by family
  double operator[](const std::string& name) const {
    const auto found = value.find(name);
    return found != value.end() ? found->second : -1;
  }
};

// The family that a sample belongs to, if it has the last family's type.
inline bool belongs(const std::string& name, const std::string& family, const std::string& type) {
  if (name == family) return type != "histogram";
  return type == "histogram" && (name == family + "_bucket" || name == family + "_sum" || name == family + "_count");
}

inline Samples read_metrics(const std::string& text) {
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
inline void expect_histogram(const Samples& samples, const std::string& family, const std::string& labels) {
  double before = 0;
  for (const char* limit : {"0.01", "0.1", "1", "10", "100", "1000", "10000", "+Inf"}) {
    const double now = samples[family + "_bucket{" + labels + ",le=\"" + limit + "\"}"];
    EXPECT_GE(now, before) << family << " " << limit;
    before = now;
  }
  EXPECT_EQ(before, samples[family + "_count{" + labels + "}"]) << family;
  EXPECT_GE(samples[family + "_sum{" + labels + "}"], 0) << family;
}

}  // namespace redlock::test
