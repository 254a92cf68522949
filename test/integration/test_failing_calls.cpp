// SPDX-License-Identifier: MIT
//
// The k-th system call fails, for every k until a run has no k-th call left: socket, connect, send, recv and the
// rest, each with the errors that a kernel gives. A client on three real masters (and on one, by TCP and unix socket)
// locks and releases twice meanwhile; create may refuse with a clear error, everything else recovers. Afterwards
// nothing is left on the loop and no descriptor is open that was not before. The same for the k-th malloc of a
// configuration and of create, and for sockets that take and give one byte at a time.
//
// The program's own definitions of these functions stand in front of libc's, for the library and for libuv alike; they
// fail only on the test's thread and only while a Fault is alive.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "client_harness.hpp"
#include "support/redis_server.hpp"

namespace redlock::test {
namespace {

enum Call {
  call_socket,
  call_connect,
  call_send,  // sendmsg too
  call_recv,
  call_setsockopt,
  call_getsockopt,
  call_timerfd_create,
  call_timerfd_settime,
  call_fcntl,
  call_epoll_ctl,
  call_ioctl,
  call_getrandom,
  call_malloc,
  calls_count
};

constexpr const char* call_names[] = {"socket",     "connect",        "send",            "recv",  "setsockopt",
                                      "getsockopt", "timerfd_create", "timerfd_settime", "fcntl", "epoll_ctl",
                                      "ioctl",      "getrandom",      "malloc"};
static_assert(std::size(call_names) == calls_count);

// What fails: from the k-th call on so many of them. k = 0: none, the calls are only counted.
struct Fault {
  Call call = calls_count;
  int error = 0;
  unsigned k = 0;
  unsigned times = 1;
  size_t bytes_at_most = SIZE_MAX;  // send, sendmsg and recv move no more at a time
  bool every_other = false;         // of them is told to come again
  std::array<unsigned, calls_count> seen{};
  bool fired = false;

  Fault();
  ~Fault();
  bool fails(Call made) {
    const unsigned n = ++seen[made];
    if (every_other && (made == call_send || made == call_recv) && n % 2 == 1) {
      errno = n % 4 == 1 ? EAGAIN : EINTR;
      return true;
    }
    if (made != call || k == 0 || n < k || n >= k + times) return false;
    fired = true;
    errno = error;
    return true;
  }
};

thread_local Fault* fault = nullptr;

Fault::Fault() { fault = this; }
Fault::~Fault() { fault = nullptr; }

bool fails(Call call) { return fault != nullptr && fault->fails(call); }

}  // namespace
}  // namespace redlock::test

// ---- in front of libc ---------------------------------------------------------------------------------------------

using namespace redlock::test;

#define REAL(name) (real(&::name, #name))

extern "C" {

int socket(int domain, int type, int protocol) noexcept {
  return fails(call_socket) ? -1 : REAL(socket)(domain, type, protocol);
}

int connect(int fd, const sockaddr* address, socklen_t size) {
  return fails(call_connect) ? -1 : REAL(connect)(fd, address, size);
}

ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  if (fails(call_send)) return -1;
  const size_t most = fault != nullptr ? fault->bytes_at_most : SIZE_MAX;
  return REAL(send)(fd, bytes, size < most ? size : most, flags);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (fails(call_send)) return -1;
  const size_t most = fault != nullptr ? fault->bytes_at_most : SIZE_MAX;
  if (most == SIZE_MAX || message->msg_iovlen == 0) return REAL(sendmsg)(fd, message, flags);
  iovec part = message->msg_iov[0];
  if (part.iov_len > most) part.iov_len = most;
  msghdr less = *message;
  less.msg_iov = &part;
  less.msg_iovlen = 1;
  return REAL(sendmsg)(fd, &less, flags);
}

ssize_t recv(int fd, void* buffer, size_t size, int flags) {
  if (fails(call_recv)) return errno == 0 ? 0 : -1;  // 0: the end of the stream
  const size_t most = fault != nullptr ? fault->bytes_at_most : SIZE_MAX;
  return REAL(recv)(fd, buffer, size < most ? size : most, flags);
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  return fails(call_setsockopt) ? -1 : REAL(setsockopt)(fd, level, name, value, size);
}

int getsockopt(int fd, int level, int name, void* value, socklen_t* size) noexcept {
  return fails(call_getsockopt) ? -1 : REAL(getsockopt)(fd, level, name, value, size);
}

int timerfd_create(int clock, int flags) noexcept {
  return fails(call_timerfd_create) ? -1 : REAL(timerfd_create)(clock, flags);
}

int timerfd_settime(int fd, int flags, const itimerspec* value, itimerspec* old) noexcept {
  return fails(call_timerfd_settime) ? -1 : REAL(timerfd_settime)(fd, flags, value, old);
}

int fcntl(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  void* const argument = va_arg(list, void*);
  va_end(list);
  return fails(call_fcntl) ? -1 : REAL(fcntl)(fd, command, argument);
}

// libuv aborts when the call that watches a descriptor fails; the trial of uv_poll_init (its data is -1) may.
int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  const bool trial = event != nullptr && operation == EPOLL_CTL_ADD && event->data.fd == -1;
  return trial && fails(call_epoll_ctl) ? -1 : REAL(epoll_ctl)(epoll, operation, fd, event);
}

int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list list;
  va_start(list, request);
  void* const argument = va_arg(list, void*);
  va_end(list);
  return fails(call_ioctl) ? -1 : REAL(ioctl)(fd, request, argument);
}

ssize_t getrandom(void* buffer, size_t size, unsigned flags) {
  return fails(call_getrandom) ? -1 : REAL(getrandom)(buffer, size, flags);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 1
void* __libc_malloc(size_t size);

void* malloc(size_t size) { return fails(call_malloc) ? nullptr : __libc_malloc(size); }
#endif

}  // extern "C"

namespace redlock::test {
namespace {

unsigned open_descriptors() {
  DIR* const dir = opendir("/proc/self/fd");
  if (dir == nullptr) throw std::runtime_error("/proc/self/fd cannot be read");
  unsigned n = 0;
  while (readdir(dir) != nullptr) ++n;
  closedir(dir);
  return n;
}

struct Told {
  int lock = 0;
  int err = 0;
  bool closed = false;
};

void on_event(redlock_t*, const redlock_event_t* event, void* user) {
  Told& told = *static_cast<Told*>(user);
  if (event->type == REDLOCK_EV_CLOSED) told.closed = true;
  if (event->type < REDLOCK_EV_MASTER) told.lock = event->type, told.err = event->err;
}

// One life of a client: create, lock and release twice, close.
class Life {
 public:
  explicit Life(const std::vector<std::string>& urls)
      : cfg_(configure({urls, "test", {{"timing.node_timeout_ms", 1'000}, {"timing.reconnect_max_ms", 20}}, {}})) {
    redlock_config_set_event(cfg_, on_event, &told_);
    memory_.resize(redlock_memory_size(cfg_));
  }
  ~Life() { redlock_config_free(cfg_); }

  // 0, or what create said; then nothing of it may be on the loop, which nobody runs.
  int run(Fault& faults) {
    redlock_t* rl = nullptr;
    const int err = redlock_create_on_loop_in(memory_.data(), memory_.size(), &rl, cfg_, loop_.get());
    EXPECT_EQ(err == 0, rl != nullptr);
    if (err != 0) {
      EXPECT_TRUE(loop_is_bare()) << "left by a create that failed";
      return err;
    }
    EXPECT_TRUE(lock_and_release(rl)) << "while calls fail: " << redlock_err_name(told_.err);
    faults.k = 0;
    EXPECT_TRUE(lock_and_release(rl)) << "after calls have failed: " << redlock_err_name(told_.err);
    // A SET whose answer was lost is owed a delete for a ttl: not waited for.
    EXPECT_EQ(redlock_close_async(rl, 20), 0);
    EXPECT_TRUE(loop_.run_until([this] { return told_.closed; }));
    return 0;
  }

 private:
  bool lock_and_release(redlock_t* rl) {
    const redlock_resource_t bus = redlock_resource("bus");
    redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
    opts.wait_ms = 20'000;
    redlock_lock_t lock;
    told_.lock = 0;
    if (redlock_acquire_async(rl, &bus, 1, &opts, &lock) != 0) return false;
    if (!loop_.run_until([this] { return told_.lock != 0; }) || told_.lock != REDLOCK_EV_ACQUIRED) return false;
    if (redlock_check(rl, lock, 1) != 0 || redlock_release_async(rl, lock) != 0) return false;
    return loop_.run_until([this] { return told_.lock == REDLOCK_EV_RELEASED; });
  }

  bool loop_is_bare() {
    unsigned handles = 0;
    uv_walk(loop_.get(), [](uv_handle_t*, void* n) { ++*static_cast<unsigned*>(n); }, &handles);
    return handles == 1;  // the loop's own timer
  }

  Told told_;
  redlock_config_t* cfg_;
  std::vector<char> memory_;
  Loop loop_;
};

struct Way {
  const char* name;
  size_t masters;
  bool unix_socket;
};

class FailingCalls : public ::testing::TestWithParam<Way> {
 protected:
  FailingCalls() : masters_(GetParam().masters, server_options()), urls_(masters_.urls()) {
    uv_loop_t first;  // libuv opens a pipe with the first loop of a process and keeps it
    if (uv_loop_init(&first) == 0) uv_loop_close(&first);
  }

  // A life with this fault, and what must be so after it. Returns what create said.
  template <class Set>
  int live(Set set, bool& fired) {
    const unsigned before = open_descriptors();
    int err = 0;
    {
      Life life(urls_);
      Fault faults;
      set(faults);
      err = life.run(faults);
      fired = faults.fired;
      seen_ = faults.seen;
    }
    EXPECT_EQ(open_descriptors(), before) << "descriptors";
    return err;
  }

  // The k-th call fails, and the next after it if `times` says so, for every k that there is.
  void fail_each(Call call, int error, unsigned times = 1) {
    const std::string name = std::string(call_names[call]) + ": " + strerror(error);
    unsigned refused = 0;
    for (unsigned k = 1;; ++k) {
      SCOPED_TRACE(name + ", call " + std::to_string(k));
      bool fired = false;
      const int err = live(
          [&](Fault& faults) {
            faults.call = call;
            faults.error = error;
            faults.k = k;
            faults.times = times;
          },
          fired);
      EXPECT_TRUE(err == 0 || err == REDLOCK_E_SYSTEM) << redlock_err_name(err);
      refused += err != 0 ? 1 : 0;
      if (!fired || HasFailure()) {
        EXPECT_GT(k, 1u) << "the call is never made: nothing was tried";
        std::printf("  %-55s %3u tried, %u creates refused\n", name.c_str(), k - 1, refused);
        return;
      }
      ASSERT_LT(k, 1'000u);
    }
  }

  std::array<unsigned, calls_count> seen_{};

 private:
  static RedisServer::Options server_options() {
    RedisServer::Options options;
    options.unix_socket = GetParam().unix_socket;
    return options;
  }

  Cluster masters_;
  std::vector<std::string> urls_;
};

TEST_P(FailingCalls, NoneFails) {
  bool fired = false;
  EXPECT_EQ(live([](Fault&) {}, fired), 0);
  EXPECT_FALSE(fired);
  EXPECT_GT(seen_[call_send], 4u);
  EXPECT_GT(seen_[call_recv], 4u);
}

TEST_P(FailingCalls, Socket) {
  for (const int error : {EMFILE, ENFILE, ENOBUFS, ENOMEM, EACCES}) fail_each(call_socket, error);
  fail_each(call_socket, EMFILE, 5);
}

TEST_P(FailingCalls, Connect) {
  for (const int error : {ECONNREFUSED, ETIMEDOUT, EACCES, ENETUNREACH, EADDRNOTAVAIL}) fail_each(call_connect, error);
  fail_each(call_connect, ECONNREFUSED, 5);
}

// Whether the kernel says so at once or later, the master's error says what an operator has to look at.
TEST(FailingConnects, HaveNames) {
  constexpr std::pair<int, int> names[] = {{ECONNREFUSED, REDLOCK_E_REFUSED},    {ETIMEDOUT, REDLOCK_E_CONNECT_TIMEOUT},
                                           {EHOSTUNREACH, REDLOCK_E_UNREACHABLE}, {ENETUNREACH, REDLOCK_E_UNREACHABLE},
                                           {EHOSTDOWN, REDLOCK_E_UNREACHABLE},    {ENETDOWN, REDLOCK_E_UNREACHABLE},
                                           {EACCES, REDLOCK_E_CONNECT}};
  RedisServer master;
  for (const auto& [error, name] : names) {
    Loop loop;
    Fault faults;
    faults.call = call_connect, faults.error = error, faults.k = 1, faults.times = UINT_MAX - 1;
    Client client(loop, {master.url()});
    client.wait_master_err(0, name);
  }
  master.kill_hard();
  Loop loop;
  Client client(loop, {master.url(), "unix:///nowhere/redis.sock"});
  client.wait_master_err(0, REDLOCK_E_REFUSED);
  client.wait_master_err(1, REDLOCK_E_CONNECT);
}

TEST_P(FailingCalls, Send) {
  for (const int error : {EPIPE, ECONNRESET, ETIMEDOUT, ENOBUFS, ENOMEM, EAGAIN, EINTR}) fail_each(call_send, error);
}

TEST_P(FailingCalls, Receive) {
  for (const int error : {ECONNRESET, ETIMEDOUT, ENOMEM, EAGAIN, EINTR, 0}) fail_each(call_recv, error);
}

TEST_P(FailingCalls, SocketOptions) {
  if (!GetParam().unix_socket) {
    for (const int error : {ENOPROTOOPT, ENOMEM}) fail_each(call_setsockopt, error);
    fail_each(call_getsockopt, ENOBUFS);
  }
}

TEST_P(FailingCalls, Timer) {
  for (const int error : {EMFILE, ENFILE, ENOMEM}) fail_each(call_timerfd_create, error);
  fail_each(call_timerfd_settime, EINVAL);
}

TEST_P(FailingCalls, WatchingADescriptor) {
  for (const int error : {ENOMEM, ENOSPC}) fail_each(call_epoll_ctl, error);
  fail_each(call_ioctl, ENOMEM);
  fail_each(call_fcntl, EMFILE);
}

TEST_P(FailingCalls, Randomness) {
  for (const int error : {EAGAIN, ENOSYS}) fail_each(call_getrandom, error);
  fail_each(call_getrandom, EAGAIN, 3);
}

// Sockets that take and give little at a time, or nothing at first.
TEST_P(FailingCalls, OneByteAtATime) {
  bool fired = false;
  EXPECT_EQ(live([](Fault& faults) { faults.bytes_at_most = 1; }, fired), 0);
  EXPECT_GT(seen_[call_send], 500u);
  EXPECT_GT(seen_[call_recv], 100u);
}

TEST_P(FailingCalls, EveryOtherTimeAgain) {
  bool fired = false;
  EXPECT_EQ(live([](Fault& faults) { faults.every_other = true; }, fired), 0);
  EXPECT_EQ(live([](Fault& faults) { faults.every_other = true, faults.bytes_at_most = 7; }, fired), 0);
}

INSTANTIATE_TEST_SUITE_P(Masters, FailingCalls,
                         ::testing::Values(Way{"OneByTcp", 1, false}, Way{"OneByUnixSocket", 1, true},
                                           Way{"ThreeByTcp", 3, false}),
                         [](const auto& way) { return std::string(way.param.name); });

// ---- memory -------------------------------------------------------------------------------------------------------

#if defined(OWN_MALLOC)

// Work with the k-th malloc failing, for every k that there is. It returns 0 or what it was told.
template <class Work>
unsigned each_malloc(Work work) {
  for (unsigned k = 1; k < 1'000; ++k) {
    SCOPED_TRACE("malloc " + std::to_string(k));
    const unsigned before = open_descriptors();
    int err = 0;
    bool fired = false;
    {
      Fault faults;
      faults.call = call_malloc;
      faults.error = ENOMEM;
      faults.k = k;
      err = work();
      fired = faults.fired;
    }
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_EQ(err, fired ? REDLOCK_E_NOMEM : 0) << redlock_err_name(err);
    if (!fired || ::testing::Test::HasFailure()) return k - 1;
  }
  ADD_FAILURE() << "no end";
  return 0;
}

constexpr char json[] = R"({"client_name":"gw","masters":["redis://10.0.0.1",{"name":"b","url":"redis://10.0.0.2"}],
  "timing":{"node_timeout_ms":40},"limits":{"locks":4}})";

TEST(FailingMalloc, Configuration) {
  EXPECT_EQ(each_malloc([] {
              redlock_config_t* cfg = nullptr;
              const int err = redlock_config_new(&cfg);
              redlock_config_free(cfg);
              return err;
            }),
            1u);
  redlock_config_t* cfg = nullptr;
  ASSERT_EQ(redlock_config_new(&cfg), 0);
  EXPECT_GT(each_malloc([cfg] { return redlock_config_load_json(cfg, json, sizeof json - 1); }), 5u);
  EXPECT_NE(redlock_memory_size(cfg), 0u) << "taken once, when no malloc failed";
  redlock_config_free(cfg);
}

TEST(FailingMalloc, Create) {
  redlock_config_t* cfg = nullptr;
  ASSERT_EQ(redlock_config_new(&cfg), 0);
  ASSERT_EQ(redlock_config_add_master(cfg, "redis://127.0.0.1:1"), 0);
  Told told;
  redlock_config_set_event(cfg, on_event, &told);
  uv_loop_t loop;
  ASSERT_EQ(uv_loop_init(&loop), 0);
  redlock_t* rl = nullptr;
  {
    Fault faults;
    faults.call = call_malloc;
    faults.k = 1;
    EXPECT_EQ(redlock_create_on_loop(&rl, cfg, &loop), REDLOCK_E_NOMEM);
    EXPECT_TRUE(faults.fired);
    EXPECT_EQ(rl, nullptr);
    EXPECT_EQ(uv_loop_alive(&loop), 0);
  }
  EXPECT_EQ(uv_loop_close(&loop), 0) << "never run, and nothing on it";
  redlock_config_free(cfg);
}

#endif

}  // namespace
}  // namespace redlock::test
