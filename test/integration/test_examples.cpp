// SPDX-License-Identifier: MIT
//
// The examples, as they are built, run against real masters: each does what its first lines promise.
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "client_harness.hpp"
#include "notify_socket.hpp"
#include "support/eventually.hpp"
#include "support/pauses.hpp"
#include "support/redis_server.hpp"
#include "tool_program.hpp"

namespace redlock::test {
namespace {

// An example as it is built.
Words words_of(const std::string& name, const Words& arguments) {
  std::stringstream emulator(REDLOCK_EMULATOR);
  Words words;
  for (std::string word; emulator >> word;) words.push_back(word);
  return words + Words{std::string(REDLOCK_BINARY_DIR) + "/examples/" + name} + arguments;
}
class Started : public Program {
 public:
  Started(const std::string& name, const Words& arguments, const std::string& dir, const std::string& input = "")
      : Program(words_of(name, arguments), dir, {{}, false, input}) {}
  std::string output() const { return err() + out(); }
};

class Example : public ::testing::Test {
 protected:
  // The examples trust masters that have been watched; these are new, and an operator says that nothing is held.
  void SetUp() override { commission(masters_.urls()); }

  Cluster masters_{3};
  std::string dir_ = masters_[0].dir();
};

// A device that takes each request, and answers at once.
constexpr char answers[] = "/dev/zero";

TEST_F(Example, Firmware) {
  Started service("firmware", Words{"--jobs", "3", answers} + masters_.urls(), dir_);
  EXPECT_EQ(service.exit_status(), 0) << service.output();
  EXPECT_EQ(service.output(), "3 jobs done\n");
  EXPECT_EQ(masters_.holders("plant1/rs485-a"), 0u) << "released";
}

// In a full stop, too, which it tells once, the watchdog is fed and SIGTERM ends the service.
TEST_F(Example, FirmwareStaysInAFullStopAndEndsOnSigterm) {
  for (size_t m = 0; m < 2; ++m) masters_[m].kill_hard();
  const NotifySocket systemd(dir_ + "/notify");
  ::setenv("NOTIFY_SOCKET", systemd.path().c_str(), 1);
  Started service("firmware", Words{answers} + masters_.urls(), dir_);
  ::unsetenv("NOTIFY_SOCKET");
  EXPECT_EQ(systemd.heard(), "READY=1");
  for (int rounds = 0; rounds < 3; ++rounds) EXPECT_EQ(systemd.heard(), "WATCHDOG=1");
  service.signal(SIGTERM);
  EXPECT_EQ(service.exit_status(), 0) << service.output();
  std::string last, heard;
  while (!(heard = systemd.heard(MSG_DONTWAIT)).empty()) last = heard;
  EXPECT_EQ(last, "STOPPING=1");
  const std::string output = service.output();
  EXPECT_NE(output.find("0 jobs done\n"), std::string::npos) << output;
  const size_t told = output.find("<4>not acquired: 1 of 3 masters votes");
  EXPECT_NE(told, std::string::npos) << output;
  EXPECT_EQ(output.find("<4>not acquired", told + 1), std::string::npos) << output;
}

// A change of masters is done: it ends, so that its unit starts it with the file that is there then.
TEST_F(Example, FirmwareEndsWhenAChangeHasLeftItBehind) {
  Started service("firmware", Words{answers} + masters_.urls(), dir_);
  ASSERT_TRUE(eventually([&] { return masters_.holders("plant1/rs485-a") == 3; }));
  const std::string ours = masters_[0].command({"HGET", "redlock::meta", "desc"});
  for (size_t m = 0; m < 3; ++m) masters_[m].command({"HSET", "redlock::meta", "desc", "left " + ours + " > v1 n=5"});
  EXPECT_EQ(service.exit_status(), 80) << service.output();
  EXPECT_NE(service.output().find("the site was changed: copy its redlock.json here\n"), std::string::npos)
      << service.output();
}

// The masters forget the lock while the device works on the first request: there is no second one.
TEST_F(Example, FirmwareBreaksAJobOffWhenItsLockIsLost) {
  const Pauses pauses;
  const int line = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_EQ(::grantpt(line), 0);
  ASSERT_EQ(::unlockpt(line), 0);
  Started service("firmware", Words{::ptsname(line)} + masters_.urls(), dir_);
  char bytes[64];
  ASSERT_GT(::read(line, bytes, sizeof bytes), 0);
  for (size_t m = 0; m < 2; ++m) masters_[m].command({"FLUSHALL"});
  const auto says = [&](const char* what) { return service.output().find(what) != std::string::npos; };
  EXPECT_TRUE(eventually([&] { return says("<4>lost: ") || says("<4>job broken off: "); })) << service.output();
  // The answer is still awaited, unless the 200 ms for it passed before anybody could say LOST.
  EXPECT_TRUE(says("<4>lost: ") || pauses.were_too_long()) << service.output();
  EXPECT_EQ(::write(line, bytes, 7), 7);
  EXPECT_TRUE(eventually([&] { return says("<4>job broken off: "); })) << service.output();
  pollfd more{line, POLLIN, 0};
  EXPECT_EQ(::poll(&more, 1, 0), 0) << "the device was touched again";
  service.signal(SIGTERM);
  EXPECT_EQ(service.exit_status(), 0) << service.output();
  ::close(line);
}

// Nothing is sent without an answer to what was sent before.
TEST_F(Example, FirmwareBreaksAJobOffWhenTheDeviceDoesNotAnswer) {
  Started service("firmware", Words{"/dev/null"} + masters_.urls(), dir_);
  EXPECT_TRUE(eventually([&] { return service.output().find("<4>job broken off: ") != std::string::npos; }));
  service.signal(SIGTERM);
  EXPECT_EQ(service.exit_status(), 0) << service.output();
  EXPECT_NE(service.output().find("\n0 jobs done\n"), std::string::npos) << service.output();
}

TEST_F(Example, FirmwareSaysWhatIsWrongWithItsConfiguration) {
  const std::string path = dir_ + "/wrong.json";
  std::vector<std::pair<std::string, std::string>> files = {{R"({"masters": ["redis://127.0.0.1:70000"]})",
                                                             ".port: not a number in 1..65535"}};
#ifdef REDLOCK_TLS
  files.emplace_back(R"({"masters": ["rediss://127.0.0.1:1"], "tls": {"ca_file": "/nowhere.pem"}})", "nowhere.pem");
#endif
  files.emplace_back("", "wrong.json");  // it is not there
  for (const auto& [text, cause] : files) {
    std::ofstream(path) << text;
    ASSERT_EQ(text.empty() ? ::unlink(path.c_str()) : ::chmod(path.c_str(), 0600), 0);
    Started service("firmware", {answers, path}, dir_);
    EXPECT_EQ(service.exit_status(), 78) << text;
    EXPECT_NE(service.output().find(cause), std::string::npos) << service.output();
  }
}

TEST_F(Example, ServiceFilesAreWellFormed) {
  const std::string dir = std::string(REDLOCK_SOURCE_DIR) + "/examples/";
  EXPECT_EQ(std::system(("sh -n " + dir + "firmware.init").c_str()), 0);
  const std::string unit = text_of_file(dir + "firmware.service");
  for (const char* line : {"[Unit]", "[Service]", "[Install]", "\nExecStart=/", "\nStartLimitIntervalSec=0\n"}) {
    EXPECT_NE(unit.find(line), std::string::npos) << line;
  }
  EXPECT_EQ(unit.find("RestartPrevent"), std::string::npos) << "a new file mends a wrong or an old one";
}

TEST_F(Example, UvApp) {
  Started first("uv_app", Words{"23"} + masters_.urls(), dir_);
  Started second("uv_app", Words{"23"} + masters_.urls(), dir_);
  EXPECT_EQ(first.exit_status(), 0) << first.output();
  EXPECT_EQ(second.exit_status(), 0) << second.output();
  EXPECT_NE(first.output().find("23 readings written, 0 not"), std::string::npos) << first.output();
}

TEST_F(Example, PollApp) {
  Started app("poll_app", masters_.urls(), dir_, "open the valve\nclose the valve\nlast words");
  EXPECT_EQ(app.exit_status(), 0) << app.output();
  EXPECT_NE(app.output().find("3 commands done, 0 failed"), std::string::npos) << app.output();
  EXPECT_NE(app.output().find("open the valve\nclose the valve\nlast words\n"), std::string::npos) << app.output();
}

std::string write_file(const std::string& path, const Words& urls) {
  std::string list;
  for (const std::string& url : urls) list += (list.empty() ? "\"" : ", \"") + url + "\"";
  std::ofstream(path) << R"({"masters": [)" << list
                      << R"(], "defaults": {"ttl_ms": 1000}, "timing": {"max_ttl_ms": 1500}})";
  EXPECT_EQ(chmod(path.c_str(), 0600), 0);  // whatever the umask is
  return path;
}

TEST_F(Example, Reconfigure) {
  const std::string before = write_file(dir_ + "/old.json", {masters_.urls()[0]}),
                    after = write_file(dir_ + "/new.json", masters_.urls());
  for (size_t m = 0; m < masters_.size(); ++m) masters_[m].command({"FLUSHALL"});
  Started change("reconfigure", {before, after}, dir_);
  EXPECT_EQ(change.exit_status(), 0) << change.output();
  EXPECT_NE(change.output().find("masters[2]: done"), std::string::npos) << change.output();
  Started none("reconfigure", {after, after}, dir_);
  EXPECT_EQ(none.exit_status(), 2);
  EXPECT_NE(none.output().find("timing.max_ttl_ms"), std::string::npos) << none.output();
  Started third("reconfigure", {write_file(dir_ + "/b.json", {masters_.urls()[1]}), before}, dir_);
  EXPECT_EQ(third.exit_status(), 1);
  EXPECT_NE(third.output().find("nothing was written\nare these the right files?"), std::string::npos)
      << third.output();
  const auto marked = [&](size_t m) {
    return masters_[m].command({"HGET", "redlock::meta", "desc"}).rfind("moving", 0) == 0;
  };
  Started lost("reconfigure", {after, before}, dir_);
  EXPECT_TRUE(eventually([&] { return marked(0) && marked(1) && marked(2); }));
  masters_[1].kill_hard();
  masters_[2].kill_hard();
  EXPECT_EQ(lost.exit_status(), 1);
  EXPECT_NE(lost.output().find("Start no gateway with NEW.json"), std::string::npos) << lost.output();
  Started back("reconfigure", {after, before}, dir_);
  EXPECT_EQ(back.exit_status(), 1);
  EXPECT_NE(back.output().find("nothing was written"), std::string::npos) << back.output();
}

// Two processes of eight threads each: not one turn is missing in the file.
TEST_F(Example, Threads) {
  const std::string file = dir_ + "/number";
  Started first("threads", Words{"5", file} + masters_.urls(), dir_);
  Started second("threads", Words{"5", file} + masters_.urls(), dir_);
  EXPECT_EQ(first.exit_status(), 0) << first.output();
  EXPECT_EQ(second.exit_status(), 0) << second.output();
  long number = 0;
  std::ifstream(file) >> number;
  EXPECT_EQ(number, 80);
}

TEST_F(Example, Raii) {
  Started raii("raii", masters_.urls(), dir_);
  EXPECT_EQ(raii.exit_status(), 0) << raii.output();
  EXPECT_NE(raii.output().find("job: REDLOCK_OK; with a broken device: REDLOCK_E_SYSTEM; again: REDLOCK_OK"),
            std::string::npos) << raii.output();
}

TEST_F(Example, WithoutArgumentsSaysHowItIsUsed) {
  for (const char* name : {"firmware", "threads", "uv_app", "raii", "leader", "deadline_guard", "reconfigure"}) {
    Started program(name, {}, dir_);
    EXPECT_NE(program.exit_status(), 0) << name;
    EXPECT_NE(program.output().find("URL..."), program.output().find("OLD.json")) << name << ": " << program.output();
  }
}

// Stopped between check and write until the lock is over: what is then written is late, and with the guard nothing is.
struct Writes {
  int stopped = -1, in_time = -1, late = -1, refused = -1;
};

Writes writes_of(const std::string& text) {
  static const std::regex line(
      "stopped ([0-9]+) times .*; ([0-9]+) writes were in time .*, ([0-9]+) late, ([0-9]+) refused");
  std::smatch match;
  if (!std::regex_search(text, match, line)) return {};
  return {std::stoi(match[1]), std::stoi(match[2]), std::stoi(match[3]), std::stoi(match[4])};
}

TEST_F(Example, DeadlineGuard) {
  Started without("deadline_guard", Words{"--no-guard", "20", dir_ + "/device"} + masters_.urls(), dir_);
  EXPECT_EQ(without.exit_status(), 0) << without.output();
  Writes writes = writes_of(without.output());
  EXPECT_GT(writes.late, 0) << without.output();
  EXPECT_EQ(writes.refused, 0) << without.output();
  EXPECT_EQ(writes.late + writes.in_time, writes.stopped) << without.output();

  Started with("deadline_guard", Words{"20", dir_ + "/device"} + masters_.urls(), dir_);
  EXPECT_EQ(with.exit_status(), 0) << with.output();
  writes = writes_of(with.output());
  EXPECT_EQ(writes.late, 0) << with.output();
  EXPECT_GT(writes.refused, 0) << with.output();
  EXPECT_EQ(writes.refused + writes.in_time, writes.stopped) << with.output();
}

// The text of a picture; a failure where it is not well-formed.
std::string read_picture(const std::string& file) {
  const std::string parse = "python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' " + file;
  EXPECT_EQ(std::system(parse.c_str()), 0);
  const std::string text = text_of_file(file);
  ::unlink(file.c_str());
  return text;
}

// The pictures are not drawn again here; what draws them works. The last of the five masters does not answer.
TEST(Pictures, Acquire) {
  const std::string picture = ::testing::TempDir() + "redlock-acquire." + std::to_string(::getpid());
  const std::string command = "python3 " REDLOCK_SOURCE_DIR "/examples/pictures/acquire.py " REDLOCK_EMULATOR
                              " " REDLOCK_BINARY_DIR "/examples/firmware 2>/dev/null >" + picture;
  EXPECT_EQ(std::system(command.c_str()), 0);
  const std::string svg = read_picture(picture);
  for (const char* text : {"three of five: ACQUIRED", "NX PX 5000", "EVALSHA", "no answer"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
}

// It loads the library into Python.
TEST(Pictures, Restart) {
  const std::string library = REDLOCK_BINARY_DIR "/libredlock.so";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "Python has no sanitizer";
#endif
  const bool loads = *REDLOCK_EMULATOR == '\0' && ::access(library.c_str(), R_OK) == 0;
  if (!loads) GTEST_SKIP() << "Python cannot load the library";
  const std::string picture = ::testing::TempDir() + "redlock-restart." + std::to_string(::getpid());
  const std::string command =
      "python3 -B " REDLOCK_SOURCE_DIR "/examples/pictures/restart.py " + library + " 1000 >" + picture;
  EXPECT_EQ(std::system(command.c_str()), 0);
  const std::string svg = read_picture(picture);
  for (const char* text : {"killed", "back, empty", "guard: 1.0 s to go", "votes again"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
}

// One owner after the other above, two at the same time below.
TEST(Pictures, Owner) {
  const std::string folder = ::testing::TempDir() + "redlock-owner." + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/redlock.line.log") << "1.0 1\n1.2 1\n1.3 2\n1.5 2\n";
  std::ofstream(folder + "/redlock.events") << "1.25 handed over\n";
  std::ofstream(folder + "/keepalived.line.log") << "1.0 1\n1.1 2\n1.2 1\n1.3 2\n";
  std::ofstream(folder + "/keepalived.events") << "1.05 the cable between the two is cut\n";
  const std::string command =
      "python3 -B " REDLOCK_SOURCE_DIR "/examples/pictures/owner.py " + folder + " >" + folder + ".svg";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::filesystem::remove_all(folder);
  const std::string svg = read_picture(folder + ".svg");
  const size_t below = svg.find("with keepalived"), both = svg.find("#d3382f"), legend = svg.rfind("#d3382f");
  EXPECT_LT(svg.find("handed over"), below);
  EXPECT_LT(below, svg.find("the cable between the two is cut"));
  EXPECT_LT(below, both) << "two owners above";
  EXPECT_LT(both, legend) << "one owner below";
}

// Both ways to write a gateway: they collide without the lock, never with it, and not when masters fail. The demo
// judges.
class Demo : public ::testing::TestWithParam<const char*> {};

TEST_P(Demo, NothingCollidesWithTheLock) {
  // One style under each sanitizer: the gateway of threads where threads are watched.
#ifdef __SANITIZE_ADDRESS__
  if (GetParam() == std::string("blocking")) GTEST_SKIP() << "the thread sanitizer sees this one";
#elif defined(__SANITIZE_THREAD__)
  if (GetParam() == std::string("loop")) GTEST_SKIP() << "it has one thread";
#endif
  const std::string root = REDLOCK_SOURCE_DIR, programs = std::string(REDLOCK_BINARY_DIR) + "/examples";
  ::setenv("REDLOCK_EMULATOR", REDLOCK_EMULATOR, 1);
  const std::string picture = ::testing::TempDir() + "redlock-acts." + std::to_string(::getpid());
  const std::string command = root + "/examples/demo.sh --no-install --seconds 3 --style " + GetParam() +
                              " --programs " + programs + " --picture " + picture + " >/dev/null";
  // The scripts' act is the same in both styles. The program is not run by an emulator.
  const std::string tool = REDLOCK_TOOL;
  const bool has_scripts = !tool.empty() && GetParam() == std::string("loop");
  EXPECT_EQ(std::system((command + (has_scripts ? " --redlock " + tool : "")).c_str()), 0);
  const std::string svg = read_picture(picture);
  for (const char* title : {"1 without the lock", "2 with the lock", "5 with it, masters failing"}) {
    EXPECT_NE(svg.find(title), std::string::npos) << title;
  }
  EXPECT_EQ(svg.find("6 shell scripts") != std::string::npos, has_scripts);
}
INSTANTIATE_TEST_SUITE_P(Style, Demo, ::testing::Values("loop", "blocking"));

// What the demo makes of its logs; times in milliseconds.
struct LogLine {
  const char* what;
  int ms;
  const char* whose;
};

std::string judged(const std::vector<LogLine>& lines) {
  const std::string file = ::testing::TempDir() + "redlock-judge." + std::to_string(::getpid());
  std::ofstream log(file);
  for (const LogLine& line : lines) log << line.what << " " << 1'000'000LL * line.ms << " " << line.whose << "\n";
  log.close();
  const std::string judge = REDLOCK_SOURCE_DIR "/examples/shared_device/judge.awk";
  const std::string command =
      "sort -s -n -k 2,2 '" + file + "' | awk -v need_ms=150 -v arrive_ms=50 -f '" + judge + "'";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  char chunk[256];
  while (pipe != nullptr && std::fgets(chunk, sizeof chunk, pipe) != nullptr) text += chunk;
  EXPECT_EQ(::pclose(pipe), 0);
  ::unlink(file.c_str());
  return text;
}

TEST(DemoJudge, TellsAStallFromTwoHolders) {
  const std::vector<LogLine> turns = {
      {"checked", 100, "1 1 0"}, {"written", 101, "1 1 0"}, {"frame", 101, "1 1 0"}, {"over", 110, "1 1"},
      {"checked", 111, "2 1 0"}, {"written", 112, "2 1 0"}, {"frame", 112, "2 1 0"}, {"over", 120, "2 1"}};
  EXPECT_EQ(judged(turns), "two_holders 0 stalled 0 unexplained 0\n");

  // Gateway 2 is let through while gateway 1 still holds what its check has promised, or has been let through since.
  EXPECT_THAT(judged({{"checked", 100, "1 1 0"}, {"checked", 249, "2 1 0"}}),
              ::testing::HasSubstr("two_holders 1 stalled 0 unexplained 0\ntwo holders: gateway 2 was let through at "
                                   "149.0 ms, in a job of gateway 1\n"));
  EXPECT_THAT(judged({{"checked", 100, "1 1 0"}, {"checked", 251, "2 1 0"}}), ::testing::StartsWith("two_holders 0"));
  EXPECT_THAT(judged({{"checked", 100, "1 1 0"}, {"checked", 251, "2 1 0"}, {"over", 260, "2 1"},
                      {"checked", 300, "1 1 1"}}), ::testing::StartsWith("two_holders 1"));

  // 79 ms between check and write: the frame that collides is the late one, or the next one.
  EXPECT_EQ(judged({{"checked", 100, "1 1 0"}, {"written", 179, "1 1 0"}, {"frame", 180, "1 1 0"},
                    {"collision", 180, "1 1"}, {"collision", 279, "2 1"}, {"collision", 281, "2 1"}}),
            "two_holders 0 stalled 2 unexplained 1\n"
            "stall: collision at 80.0 ms: a frame of gateway 1 was written 79 ms and read 80 ms after its check\n"
            "stall: collision at 179.0 ms: a frame of gateway 1 was written 79 ms and read 80 ms after its check\n"
            "unexplained: collision at 181.0 ms of gateway 2\n");
  EXPECT_THAT(judged({{"frame", 100, "1 1 0"}, {"collision", 100, "1 1"}}),
              ::testing::StartsWith("two_holders 0 stalled 0 unexplained 1\n"));
}

// The device is stopped while its answer to gateway 1 is due, for longer than it remembers a command. The frame of
// gateway 2 that came meanwhile is not in between the frames of gateway 1.
TEST(Device, AnAnswerThatIsLateIsNoCollision) {
  const std::string dir = ::testing::TempDir(), log = dir + "redlock-device." + std::to_string(::getpid());
  const auto logged = [&log](const char* what) { return text_of_file(log).find(what) != std::string::npos; };
  Started device("device", {"--wire-ms", "150", "--log", log}, dir);
  ASSERT_TRUE(eventually([&] { return device.output().find('\n') != std::string::npos; }));
  const std::string address = device.output();
  const sockaddr_in at = loopback(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  int gateways[2];
  for (int& gateway : gateways) {
    gateway = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::connect(gateway, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  }
  // The first of two frames of job 1.
  constexpr char first[] = "\x11\x41\x01\0\x02\0\0\0\0\x01\0\0\0\0\0\0\0\0\x8b\x5b";
  constexpr char second[] = "\x11\x41\x02\0\x02\0\0\0\0\x01\0\0\0\0\0\0\0\0\xcb\xaa";
  ASSERT_EQ(::write(gateways[0], first, 20), 20);
  ASSERT_TRUE(eventually([&] { return logged("begin "); }));
  device.signal(SIGSTOP);
  ASSERT_EQ(::write(gateways[1], second, 20), 20);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));  // time itself is what the device misses
  device.signal(SIGCONT);
  ASSERT_TRUE(eventually([&] { return logged(" 2 1 0\n"); }));
  device.signal(SIGTERM);
  EXPECT_EQ(device.exit_status(), 0);
  EXPECT_THAT(device.output(), ::testing::HasSubstr("\"collisions\":0"));
  for (const int gateway : gateways) ::close(gateway);
  ::unlink(log.c_str());
}

#ifdef REDLOCK_MODBUS
// Gateways on one RS-485 line: with the lock no value is wrong, and no frame has two senders. The script judges.
TEST_F(Example, Modbus) {
  const std::string root = REDLOCK_SOURCE_DIR, programs = std::string(REDLOCK_BINARY_DIR) + "/examples";
  std::string command = root + "/examples/modbus/demo.sh --seconds 4 --programs " + programs;
  for (const std::string& url : masters_.urls()) command += " " + url;
  EXPECT_EQ(std::system(command.c_str()), 0);
}
#endif

// Four members, three hand-overs: one leader at a time, and the one that takes over after a kill has waited for the
// keys.
TEST_F(Example, Leader) {
  Started leader("leader", Words{"4", "700"} + masters_.urls(), dir_);
  EXPECT_EQ(leader.exit_status(), 0) << leader.output();
  const std::string text = leader.output();
  const std::regex line("gateway-([0-3]) (stepped down|was killed): gateway-([0-3]) leads after ([0-9.]+) ms");
  std::string last;
  size_t hand_overs = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), line), end; it != end; ++it, ++hand_overs) {
    EXPECT_TRUE(last.empty() || (*it)[1] == last) << text;
    EXPECT_NE((*it)[1], (*it)[3]) << text;
    last = (*it)[3];
  }
  EXPECT_EQ(hand_overs, 3u) << text;
  EXPECT_NE(text.find("(ttl 700 ms)"), std::string::npos) << text;
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string number = std::to_string(pid);
  std::ifstream list("/proc/" + number + "/task/" + number + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

// No member can lead here, so each would wait for ever.
TEST_F(Example, LeaderThatIsEndedLeavesNobodyBehind) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);  // who is left is our child then
  Started leader("leader", Words{"3", "1000", "redis://127.0.0.1:1"}, dir_);
  std::vector<pid_t> members;
  for (int tries = 0; members.size() < 3 && tries < 3000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    members = children_of(leader.pid());
  }
  ASSERT_EQ(members.size(), 3u);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // likely all of them wait by now
  leader.signal(SIGTERM);
  EXPECT_EQ(leader.exit_status(), 128 + SIGTERM);
  for (const pid_t member : members) {
    int tries = 0, status = 0;
    while (::waitpid(member, &status, WNOHANG) == 0 && ++tries < 1000) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_LT(tries, 1000) << "still there";
    if (tries == 1000) ::kill(member, SIGKILL);
  }
}

}  // namespace
}  // namespace redlock::test
