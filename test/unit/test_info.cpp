// SPDX-License-Identifier: MIT
#include "master/info.hpp"

#include <gtest/gtest.h>

#include <new>
#include <string>
#include <string_view>

#include "test/support/resp_feed.hpp"

namespace redlock {
namespace {

// As Redis 7.0 says it, shortened.
const std::string redis7 =
    "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"
    "run_id:b236baf9976a2bb9393b99dbf730ae58d09aa084\r\nexecutable:/usr/bin/redis-server\r\n"
    "\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_human:0B\r\nmaxmemory_policy:noeviction\r\n"
    "\r\n# Persistence\r\nloading:0\r\nasync_loading:0\r\n\r\n# Stats\r\nevicted_keys:18446744073709551615\r\n"
    "\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"
    "master_replid:f6e98a0f09967f6d2423cd5791992dc33d4b3bbb\r\n"
    "master_replid2:0000000000000000000000000000000000000000\r\nrepl_backlog_active:0\r\n";

// Behind the reader lies a page that may not be touched.
InfoFacts read(std::string_view text, size_t piece = 1'000'000) {
  test::GuardedMemory memory(sizeof(InfoReader));
  InfoReader& reader = *new (memory.last(sizeof(InfoReader))) InfoReader;
  reader.begin();
  for (size_t at = 0; at < text.size(); at += piece) {
    const std::string_view part = text.substr(at, piece);
    reader.read(Bytes(part.data(), part.size()));
  }
  return reader.end();
}
std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}
std::string id(const char (&id)[InfoFacts::id_size]) { return std::string(id, sizeof id); }

TEST(Info, the_facts_of_a_plain_master_however_the_text_is_cut) {
  for (size_t piece = 1; piece <= redis7.size(); ++piece) {
    const InfoFacts facts = read(redis7, piece);
    ASSERT_TRUE(facts.has_run_id && facts.has_replid) << piece;
    ASSERT_EQ(id(facts.run_id), "b236baf9976a2bb9") << piece;
    ASSERT_EQ(id(facts.replid), "f6e98a0f09967f6d") << piece;
    ASSERT_TRUE(facts.standalone && facts.master && facts.alone && !facts.loading && !facts.evicts) << piece;
    ASSERT_EQ(facts.evicted_keys, UINT64_MAX) << piece;
  }
}

TEST(Info, every_fact_that_refuses) {
  EXPECT_FALSE(read(with(redis7, "role:master", "role:slave")).master);
  EXPECT_FALSE(read(with(redis7, "role:master", "role:masters")).master);
  EXPECT_FALSE(read(with(redis7, "role:master", "no_role:master")).master) << "a server that tells no role is none";
  EXPECT_FALSE(read(with(redis7, "redis_mode:standalone", "redis_mode:cluster")).standalone);
  EXPECT_FALSE(read(with(redis7, "redis_mode:standalone", "server_mode:sentinel")).standalone);
  EXPECT_FALSE(read("redis_mode:standalone\r\nserver_mode:cluster\r\n").standalone);
  EXPECT_FALSE(read("redis_mode:cluster\r\nserver_mode:standalone\r\n").standalone);
  EXPECT_EQ(read("evicted_keys:12/\r\n").evicted_keys, 0u);
  EXPECT_EQ(read("evicted_keys:12:\r\n").evicted_keys, 0u);
  EXPECT_TRUE(read(with(redis7, "\nloading:0", "\nloading:1")).loading);
  EXPECT_TRUE(read(with(redis7, "async_loading:0", "async_loading:1")).loading);
  EXPECT_FALSE(read(with(redis7, "run_id:b2", "run_xx:b2")).has_run_id);
  EXPECT_FALSE(read(with(redis7, "run_id:b236baf9976a2bb9393b99dbf730ae58d09aa084", "run_id:b236")).has_run_id);
  EXPECT_FALSE(read(with(redis7, "master_replid:f6", "master_xxxxxx:f6")).has_replid);
}

// Zeros stand for "not known" in a seal.
TEST(Info, an_id_of_zeros_is_none) {
  const std::string zeros(40, '0');
  EXPECT_FALSE(read(with(redis7, "f6e98a0f09967f6d2423cd5791992dc33d4b3bbb", zeros)).has_replid);
  EXPECT_FALSE(read(with(redis7, "b236baf9976a2bb9393b99dbf730ae58d09aa084", zeros)).has_run_id);
  EXPECT_FALSE(read("run_id:0000000000000000b236\r\n").has_run_id) << "no more of it is compared";
  EXPECT_TRUE(read("run_id:0000000000000001\r\n").has_run_id);
  EXPECT_FALSE(read("run_id:b236baf9976a2bb9\r\nrun_id:" + zeros + "\r\n").has_run_id) << "the last word counts";
}

// Both lines must be there: a server that does not tell has a replica, perhaps.
TEST(Info, alone_is_a_master_that_says_so_twice) {
  EXPECT_FALSE(read(with(redis7, "connected_slaves:0", "connected_slaves:1")).alone);
  EXPECT_FALSE(read(with(redis7, "connected_slaves:0\r\n", "")).alone);
  EXPECT_FALSE(read(with(redis7, "repl_backlog_active:0", "repl_backlog_active:1")).alone);
  EXPECT_FALSE(read(with(redis7, "repl_backlog_active:0\r\n", "")).alone);
  EXPECT_FALSE(read(with(redis7, "role:master", "role:slave")).alone) << "it has a master";
  EXPECT_FALSE(read(with(redis7, "connected_slaves:0", "repl_backlog_active:0")).alone) << "one of them twice";
  InfoReader reader;
  reader.begin();
  reader.read(Bytes(redis7.data(), redis7.size()));
  EXPECT_TRUE(reader.end().alone);
  reader.begin();
  reader.read("role:master\r\n");
  EXPECT_FALSE(reader.end().alone) << "the next text begins with nothing";
}

// volatile-* evicts just the lock keys, allkeys-* may; without a limit no policy evicts anything.
TEST(Info, evicts_only_with_a_limit_and_a_policy) {
  const std::string limited = with(redis7, "maxmemory:0", "maxmemory:1000000");
  EXPECT_FALSE(read(limited).evicts);
  for (const char* policy : {"volatile-ttl", "volatile-lru", "allkeys-lru", "allkeys-random", "something-new"}) {
    const std::string change = std::string("maxmemory_policy:") + policy;
    EXPECT_TRUE(read(with(limited, "maxmemory_policy:noeviction", change)).evicts) << policy;
    EXPECT_FALSE(read(with(redis7, "maxmemory_policy:noeviction", change)).evicts) << policy;
  }
}

// 72 bytes of a line are kept, and not one more: what is behind them is neither read nor written.
TEST(Info, a_line_is_kept_as_far_as_there_is_room) {
  constexpr size_t room = 72;
  for (const size_t size : {room - 1, room, room + 1, size_t{200}}) {
    std::string line = "evicted_keys:";
    while (line.size() < size) line += line.size() < room - 1 ? '0' : line.size() == room - 1 ? '1' : '2';
    const std::string text = line + "\r\n" + redis7.substr(redis7.find("run_id:"), 60) + "\r\n";
    for (size_t piece = 1; piece <= text.size(); ++piece) {
      const InfoFacts facts = read(text, piece);
      ASSERT_EQ(facts.evicted_keys, size < room ? 0u : 1u) << size << " bytes in pieces of " << piece;
      ASSERT_EQ(id(facts.run_id), "b236baf9976a2bb9") << size << " bytes in pieces of " << piece;
    }
  }
}

}  // namespace
}  // namespace redlock
