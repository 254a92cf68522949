// SPDX-License-Identifier: MIT
//
// The program `redlock` on masters over TLS: what it says of their certificates, and its other commands.
#include <sys/stat.h>

#include "support/proxy.hpp"
#include "tls_site.hpp"
#include "tool_masters.hpp"

namespace redlock::test {
namespace {

std::string write_config(const TlsSite& site, const std::string& tls) {
  std::string list;
  for (const std::string& url : site.urls()) list += (list.empty() ? "\"" : ", \"") + url + "\"";
  return site.folder.write("redlock.json", R"({"client_name": "gw-1", "masters": [)" + list + R"(], "tls": {)" + tls +
                                               R"(}, "timing": {"max_ttl_ms": 3000, "node_timeout_ms": 200},)" +
                                               R"( "defaults": {"ttl_ms": 2600}})");
}

std::string by_authority(const TlsSite& site) { return R"("ca_file": ")" + site.folder.path("ca.pem") + "\""; }

Ended run(const TlsSite& site, const Words& words, const std::string& config) {
  return run_redlock(Words{words[0], "-C", config} + Words(words.begin() + 1, words.end()), site.folder.folder());
}

TEST(TlsTool, ItsCommandsReachTheMasters) {
  TlsSite site(3);
  const std::string config = write_config(site, by_authority(site));
  const Ended commission = run(site, {"commission", "--yes"}, config);
  EXPECT_EQ(commission.status, 0) << commission.out << commission.err;
  const Ended status = run(site, {"status"}, config);
  EXPECT_EQ(status.status, 0) << status.out << status.err;
  const Ended locked = run(site, {"run", "bus", "--", "echo", "held"}, config);
  EXPECT_EQ(locked.status, 0) << locked.err;
  EXPECT_EQ(locked.out, "held\n");
  for (size_t m = 0; m < 3; ++m) EXPECT_GE(site[m].calls("hello"), 1u);
}

TEST(TlsTool, TheDoctorSeesVersionCipherAndDates) {
  TlsSite site(1, "no", {.names = {"IP:127.0.0.1"}, .until_s = 90 * 86'400 + 3'600});
  const Ended ended = run(site, {"doctor", "-v"}, write_config(site, by_authority(site)));
  EXPECT_TELLS(ended, "ok", "tls", "TLSv1.");
  EXPECT_TELLS(ended, "ok", "tls", "longest step");
  EXPECT_TELLS(ended, "ok", "tls", "90 more day");
}

TEST(TlsTool, TheDoctorWarnsThirtyDaysAhead) {
  TlsSite site(1, "no", {.names = {"IP:127.0.0.1"}, .until_s = 29 * 86'400 + 3'600});
  EXPECT_TELLS(run(site, {"doctor", "-v"}, write_config(site, by_authority(site))), "warn", "tls", "29 more day");
  // With the key alone no date counts.
  const std::string pin = R"("pin": "sha256:)" + site.certificate.pin_hex() + "\"";
  const Ended ended = run(site, {"doctor", "-v"}, write_config(site, pin));
  EXPECT_TELLS(ended, "ok", "tls", "TLSv1.");
  EXPECT_FALSE(tells(ended, "ok", "tls", "more day")) << ended.out;
}

// The line that deletes another configuration's record works as it is pasted.
TEST(TlsTool, TheDoctorsLineReachesAMaster) {
  TlsSite site(1);
  ASSERT_EQ(run(site, {"commission", "--yes"}, write_config(site, by_authority(site))).status, 0);
  site[0].command({"HSET", "redlock::meta", "desc", "v1 n=1 q=1 max_ttl_ms=4000 ids=0123456789abcdef"});
  const Ended doctor = run(site, {"doctor", "-v"}, write_config(site, by_authority(site)));
  const size_t at = doctor.out.find("redis-cli ");
  ASSERT_NE(at, std::string::npos) << doctor.out;
  const std::string line = doctor.out.substr(at, doctor.out.find('\n', at) - at);
  EXPECT_NE(line.find(" --tls --cacert "), std::string::npos) << line;
  EXPECT_EQ(std::system((line + " >/dev/null 2>&1").c_str()), 0) << line;
  EXPECT_FALSE(site[0].exists("redlock::meta")) << line;
}

// The doctor and `status` say which certificate, and since when.
TEST(TlsTool, ACertificateThatHasEnded) {
  TlsSite site(1, "no", {.names = {"IP:127.0.0.1"}, .from_s = -7'200, .until_s = -3'600});
  const std::string config = write_config(site, by_authority(site));
  EXPECT_TELLS(run(site, {"doctor", "-v"}, config), "fail", "reach", "has expired (the master's own ended 2");
  const Ended status = run(site, {"status"}, config);
  EXPECT_NE(status.out.find("has expired (the master's own ended 2"), std::string::npos) << status.out;
}

// `config check` looks at the files that the configuration names, though it reaches nobody.
TEST(TlsTool, TheCheckOfAConfigurationLooksAtItsFiles) {
  TlsSite site(1);
  const std::string config = write_config(site, by_authority(site));
  const auto check = [&] { return run_redlock({"config", "check", config}, site.folder.folder()); };
  EXPECT_EQ(check().status, 0);
  const std::string ca = site.folder.path("ca.pem");
  ASSERT_EQ(chmod(ca.c_str(), 0666), 0);
  const Ended open_to_all = check();
  EXPECT_EQ(open_to_all.status, 78);
  EXPECT_NE(open_to_all.err.find("tls.ca_file: " + ca + ": can be written by group or others"), std::string::npos)
      << open_to_all.err;
  ASSERT_EQ(unlink(ca.c_str()), 0);
  const Ended missing = check();
  EXPECT_EQ(missing.status, 78);
  EXPECT_NE(missing.err.find("tls.ca_file: " + ca + ": does not exist"), std::string::npos) << missing.err;
  const Ended stated = run_redlock({"commission", "--yes", "-C", config}, site.folder.folder());
  EXPECT_EQ(stated.status, 78);
  EXPECT_NE(stated.err.find("tls.ca_file: " + ca + ": does not exist"), std::string::npos) << stated.err;
}

// The doctor connects anew for each check. A handshake that is slow after others were well is no other port.
TEST(TlsTool, AMasterThatFallsSilentSpeaksTls) {
  TlsSite site(1);
  const std::string url = site[0].url();
  Proxy proxy(static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
  const std::string path = site.folder.path("silent.json"), direct = "\"" + url + "\", ";
  std::ofstream(path) << R"({"masters": [)" << direct << R"({"url": "rediss://127.0.0.1:)" << proxy.port()
                      << R"(", "name": "far"}], "tls": {"ca_file": ")" << site.folder.path("ca.pem")
                      << R"("}, "timing": {"connect_timeout_ms": 300}})";
  ::chmod(path.c_str(), 0600);
  Program doctor(redlock_words({"doctor", "-v", "-C", path}), site.folder.folder());
  ASSERT_TRUE(eventually([&] { return has(doctor.out(), "ok      reach "); }));  // both have answered by now
  proxy.hold_from("\x16\x03");
  doctor.exit_status();
  EXPECT_TRUE(has(doctor.out(), "unknown acl         far: the connection timed out\n")) << doctor.out();
  EXPECT_FALSE(has(doctor.out(), "speaks no TLS")) << doctor.out();
}

TEST(TlsTool, WhatIsWrongHasItsWords) {
  TlsSite site(1, "no", {.names = {"DNS:elsewhere"}});
  const Ended doctor = run(site, {"doctor"}, write_config(site, by_authority(site)));
  EXPECT_TELLS(doctor, "fail", "reach", "for another name");
  const RedisServer plain;
  const std::string url = "rediss://127.0.0.1:" + std::to_string(plain.port());
  const std::string to_plain = site.folder.write("plain.json", R"({"masters": [")" + url + R"("], "tls": {)" +
                                                                   by_authority(site) + "}}");
  const Ended none = run(site, {"doctor"}, to_plain);
  EXPECT_TELLS(none, "fail", "reach", "speaks no TLS");
  EXPECT_NE(none.out.find("-> write redis:// in the url, or the port that has TLS\n"), std::string::npos) << none.out;
  const std::string nowhere = R"("ca_file": "/nowhere/ca.pem")";
  for (const Words& command : {Words{"run", "bus", "--", "true"}, Words{"status"}, Words{"doctor"}}) {
    const Ended missing = run(site, command, write_config(site, nowhere));
    EXPECT_EQ(missing.status, 78) << command[0];
    EXPECT_NE(missing.err.find("tls.ca_file: /nowhere/ca.pem: does not exist"), std::string::npos)
        << command[0] << missing.out << missing.err;
  }
}

}  // namespace
}  // namespace redlock::test
