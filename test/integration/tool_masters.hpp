// SPDX-License-Identifier: MIT
//
// Real servers, configuration files of some of them, `redlock` on these files, and what `redlock doctor` tells.
#pragma once
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "support/redis_server.hpp"
#include "tool_program.hpp"

namespace redlock::test {

struct ToolMasters {
  static constexpr unsigned max_ttl_ms = 1'000;

  explicit ToolMasters(unsigned n) {
    for (unsigned i = 0; i < n; ++i) servers.push_back(std::make_unique<RedisServer>());
    dir = servers[0]->dir();
  }
  RedisServer& operator[](unsigned i) { return *servers.at(i); }

  // A file with these servers, which are called m0, m1 ...; its path.
  std::string file(const std::vector<unsigned>& members, const std::string& more = "", unsigned max_ttl = max_ttl_ms) {
    const std::string path = dir + "/config." + std::to_string(++files_) + ".json";
    std::string list;
    for (const unsigned i : members) {
      list += list.empty() ? "" : ", ";
      list += R"({"url": ")" + servers.at(i)->url() + R"(", "name": "m)" + std::to_string(i) + "\"}";
    }
    std::ofstream(path) << R"({"client_name": "gw-1", "masters": [)" << list << R"(], "defaults": {"ttl_ms": 900},)"
                        << R"( "timing": {"max_ttl_ms": )" << max_ttl
                        << R"(, "node_timeout_ms": 200, "suspect_close_ms": 400, "connect_timeout_ms": 300})" << more
                        << "}";
    ::chmod(path.c_str(), 0600);
    return path;
  }
  Words words(const Words& arguments, const std::string& config) const { return redlock_words(arguments, config); }
  Ended run(const Words& arguments, const std::string& config) const {
    return run_program(words(arguments, config), dir);
  }
  std::string desc(unsigned i) { return servers.at(i)->command({"HGET", "redlock::meta", "desc"}); }
  bool marked(unsigned i) { return desc(i).rfind("moving ", 0) == 0; }
  void set(unsigned i, const std::string& key, const std::string& value, int px = 60'000) {
    servers.at(i)->command({"SET", key, value, "PX", std::to_string(px)});
  }

  std::vector<std::unique_ptr<RedisServer>> servers;
  std::string dir;

 private:
  int files_ = 0;
};

inline void commission(ToolMasters& site, const std::string& config) {
  const Ended ended = site.run({"commission", "-y"}, config);
  ASSERT_EQ(ended.status, 0) << ended.out << ended.err;
}

// A value as a client called `name` writes it.
inline std::string value_of(const std::string& name, char digit = '1') { return std::string(40, digit) + ":" + name; }

// The lines of a check: "fail    role        m1: slave, standalone".
inline bool tells(const Ended& ended, const std::string& level, const std::string& id, const std::string& what) {
  const std::string begin = level + std::string(8 - level.size(), ' ') + id + " ";
  for (size_t at = ended.out.find(begin); at != std::string::npos; at = ended.out.find(begin, at + 1)) {
    if (at != 0 && ended.out[at - 1] != '\n') continue;
    if (has(ended.out.substr(at, ended.out.find('\n', at) - at), what)) return true;
  }
  return false;
}

#define EXPECT_TELLS(ended, level, id, what) EXPECT_TRUE(tells(ended, level, id, what)) << (ended).out << (ended).err

}  // namespace redlock::test
