// SPDX-License-Identifier: MIT
//
// A gateway of the weather campaign (README.md): takes locks through the public C API in one of four modes, and appends
// a line to its history for each fact. weather.py starts, freezes and kills it.
//
//   campaign_worker MODE STYLE SEED CONFIG HISTORY RESOURCE...
//     MODE    loop, polled, thread or blocking
//     STYLE   busy: asks again at once; idle: rests for seconds between two locks, and with "+nights" for many guard
//             times; endless: holds a lock shortly, and asks for the next one behind the release. With "+token": half
//             of the locks of an idle one, and all of the others, have a fencing token. With "+urgent": half of the
//             acquires are urgent
//   campaign_worker --act HISTORY N
//     the command under `redlock run`: acts for a while, and notes each act as a check that said yes
//
// With CAMPAIGN_UP_FOR=S it believes that its machine is up for S seconds longer, as a neighbour's with the same boot
// id may be.
//
// Facts, all times in ns of the machine's CLOCK_BOOTTIME; n numbers the acquires of this process:
//   wanted T n RESOURCE[+RESOURCE]     before the call
//   got T n TOKEN FLOORED VALIDITY_MS  ACQUIRED, in its callback; under `redlock run` also which RESOURCE
//   failed T n ERROR                   FAILED, in its callback
//   yes B A n UNTIL                    a check that said yes, with the time before and after it, and
//                                      redlock_deadline_ns() as asked behind it
//   no B A n ERROR                     a check that said no
//   letgo B n                          before the release
//   ended T n released|lost            the terminal event of a lock
//   bye T                              the last line of a process that was not killed
#include <fcntl.h>
#include <poll.h>
#include <redlock/redlock.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#include <uv.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

namespace {

volatile sig_atomic_t stop = 0;

int64_t up_for_ns = 0;  // longer than the machine

int64_t boot_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec - up_for_ns;
}

void sleep_ms(unsigned ms) {
  const timespec time = {static_cast<time_t>(ms / 1'000), static_cast<long>(ms % 1'000) * 1'000'000};
  nanosleep(&time, nullptr);
}

[[noreturn]] void die(const char* what, int err) {
  std::fprintf(stderr, "%s: %s\n", what, redlock_err_name(err));
  std::exit(1);
}

// Each line is one write(2), so that a kill loses no line that was begun before, and cuts none in two.
class History {
 public:
  explicit History(const char* path) : fd_(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    if (fd_ < 0) die(path, REDLOCK_E_SYSTEM);
  }
  __attribute__((format(printf, 2, 3))) void line(const char* format, ...) const {
    char text[512];
    va_list values;
    va_start(values, format);
    const int size = std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (write(fd_, text, static_cast<size_t>(size)) != size) die("history", REDLOCK_E_SYSTEM);
  }

 private:
  int fd_;
};

// One acquire, as its events tell. In thread mode they come on the client's thread.
struct Acquire {
  enum State { waiting, held, failed, released, lost };
  std::atomic<State> state = waiting;
  int64_t at_ns = 0;
  uint64_t token = 0;
  bool floored = false;
  int64_t validity_ms = 0;
  int err = 0;
  std::atomic<int64_t> ended_ns = 0;
};

void on_event(redlock_t*, const redlock_event_t* event, void* user) {
  auto& acquire = *static_cast<Acquire*>(user);
  const int64_t now = boot_ns();
  switch (event->type) {
    case REDLOCK_EV_ACQUIRED:
      acquire.at_ns = now;
      acquire.token = event->token;
      acquire.floored = (event->flags & REDLOCK_EV_F_FLOORED) != 0;
      acquire.validity_ms = event->validity_ms;
      acquire.state = Acquire::held;
      break;
    case REDLOCK_EV_FAILED:
      acquire.at_ns = now;
      acquire.err = event->err;
      acquire.state = Acquire::failed;
      break;
    case REDLOCK_EV_RELEASED:
    case REDLOCK_EV_LOST:
      acquire.ended_ns = now;
      acquire.state = event->type == REDLOCK_EV_LOST ? Acquire::lost : Acquire::released;
      break;
    default: break;
  }
}

// A client in one of the modes. turn() gives it time; a client with a thread of its own needs none.
class Client {
 public:
  Client(const std::string& mode, const char* path) : mode_(mode) {
    redlock_config_t* cfg = nullptr;
    int err = redlock_config_new(&cfg);
    if (err == 0) err = redlock_config_load_file(cfg, path);
    if (err != 0) die(redlock_config_error(cfg), err);
    redlock_config_set_event(cfg, on_client_event, this);
    redlock_config_set_log(cfg, redlock_log_stderr, nullptr, 5);
    if (mode == "loop") {
      uv_loop_init(&loop_);
      uv_timer_init(&loop_, &timer_);
      err = redlock_create_on_loop(&rl_, cfg, &loop_);
    } else {
      err = mode == "polled" ? redlock_create_polled(&rl_, cfg) : redlock_create(&rl_, cfg);
    }
    if (err != 0) die("create", err);
    redlock_config_free(cfg);
  }
  redlock_t* get() const { return rl_; }
  bool blocks() const { return mode_ == "blocking"; }

  void turn(unsigned ms) {
    if (mode_ == "loop" && ms == 0) {  // libuv 1.45 does not poll where a timer that is due stops the loop
      uv_run(&loop_, UV_RUN_NOWAIT);
    } else if (mode_ == "loop") {
      uv_timer_start(&timer_, [](uv_timer_t* timer) { uv_stop(timer->loop); }, ms, 0);
      uv_run(&loop_, UV_RUN_DEFAULT);
    } else if (mode_ == "polled") {
      const int64_t until = boot_ns() + int64_t{ms} * 1'000'000;
      do {
        const auto left = static_cast<int>((until - boot_ns()) / 1'000'000);
        pollfd ready = {redlock_fd(rl_), POLLIN, 0};
        (void)poll(&ready, 1, left > 0 ? left : 0);
        if (redlock_process(rl_) == REDLOCK_E_CLOSED) return;
      } while (boot_ns() < until);
    } else {
      sleep_ms(ms);
    }
  }
  void close() {
    if (mode_ != "loop" && mode_ != "polled") {
      const int err = redlock_destroy(rl_, 1'000);
      if (err != 0) die("destroy", err);
      return;
    }
    (void)redlock_close_async(rl_, 1'000);
    while (!closed_) turn(10);
    if (mode_ != "loop") return;
    uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }

 private:
  static void on_client_event(redlock_t*, const redlock_event_t* event, void* user) {
    if (event->type == REDLOCK_EV_CLOSED) static_cast<Client*>(user)->closed_ = true;
  }

  std::string mode_;
  redlock_t* rl_ = nullptr;
  uv_loop_t loop_{};
  uv_timer_t timer_{};
  bool closed_ = false;
};

class Worker {
 public:
  Worker(const std::string& mode, const std::string& style, unsigned seed, const char* config, const char* history,
         std::vector<std::string> resources)
      : client_(mode, config),
        history_(history),
        random_(seed),
        idle_(style.rfind("idle", 0) == 0),
        nights_(style.find("+nights") != std::string::npos),
        endless_(style.rfind("endless", 0) == 0),
        urgent_(style.find("+urgent") != std::string::npos),
        tokens_(style.find("+token") != std::string::npos),
        resources_(std::move(resources)) {}

  void live() {
    while (stop == 0) {
      if (idle_) rest(nights_ ? 8'000 + below(12'000) : 1'000 + below(5'000));
      if (stop == 0) take_a_lock();
    }
    client_.close();
    history_.line("bye %lld\n", static_cast<long long>(boot_ns()));
  }

 private:
  unsigned below(unsigned limit) { return std::uniform_int_distribution<unsigned>(0, limit - 1)(random_); }

  void rest(unsigned ms) {
    for (const int64_t until = boot_ns() + int64_t{ms} * 1'000'000; stop == 0 && boot_ns() < until;) client_.turn(50);
  }

  // Most ask for one resource, some for two at once.
  std::vector<std::string> wish() {
    const unsigned first = below(static_cast<unsigned>(resources_.size()));
    std::vector<std::string> names = {resources_[first]};
    if (resources_.size() > 1 && below(8) == 0) names.push_back(resources_[(first + 1) % resources_.size()]);
    return names;
  }

  void take_a_lock() {
    const std::vector<std::string> names = wish();
    std::vector<redlock_resource_t> resources;
    for (const std::string& name : names) resources.push_back(redlock_resource(name.c_str()));
    const unsigned size = below(8);  // 0: as long as the set's clients may, and to its end
    // 0: renewed, longer than its ttl; 1, 2: until it ends by itself; else short
    const unsigned kind = endless_ ? 4 : size == 0 ? 1 : below(8);
    redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
    opts.flags = (kind == 0 ? 0 : REDLOCK_F_NO_RENEW) | (tokens_ && (!idle_ || below(2) == 0) ? REDLOCK_F_FENCING : 0);
    if (urgent_ && below(2) == 0) opts.flags |= REDLOCK_F_URGENT;
    if (size != 0) opts.ttl_ms = 200 + below(size == 1 ? 2'300 : 800);
    const int32_t waits[] = {REDLOCK_TRY_ONCE, 2'000, REDLOCK_WAIT_DEFAULT};
    opts.wait_ms = waits[endless_ ? 2 : below(3)];
    Acquire acquire;
    opts.callback = on_event;
    opts.user = &acquire;
    redlock_lock_t lock{0};
    history_.line("wanted %lld %u %s%s%s\n", static_cast<long long>(boot_ns()), ++n_, names[0].c_str(),
                  names.size() > 1 ? "+" : "", names.size() > 1 ? names[1].c_str() : "");
    const auto count = static_cast<uint32_t>(resources.size());
    const int err = client_.blocks() ? redlock_acquire(client_.get(), resources.data(), count, &opts, &lock)
                                     : redlock_acquire_async(client_.get(), resources.data(), count, &opts, &lock);
    if (err != 0 && !client_.blocks()) die("acquire", err);
    // A blocking call that was given up ends by itself.
    while (acquire.state == Acquire::waiting) client_.turn(endless_ ? 1 : 20);
    if (acquire.state == Acquire::failed) {
      history_.line("failed %lld %u %s\n", static_cast<long long>(acquire.at_ns), n_, redlock_err_name(acquire.err));
      if (!idle_) rest(below(20));  // whoever tries once must not keep a core busy
      return;
    }
    history_.line("got %lld %u %llu %d %lld\n", static_cast<long long>(acquire.at_ns), n_,
                  static_cast<unsigned long long>(acquire.token), acquire.floored,
                  static_cast<long long>(acquire.validity_ms));
    if (err == 0) hold(acquire, lock, kind == 0 ? 1'500 : kind <= 2 ? 10'000 : endless_ ? 0 : below(60), kind == 3);
    while (acquire.state == Acquire::held) client_.turn(endless_ ? 0 : 20);
    history_.line("ended %lld %u %s\n", static_cast<long long>(acquire.ended_ns), n_,
                  acquire.state == Acquire::lost ? "lost" : "released");
  }

  // Until the time is over or the lock has ended. Extends the lock by hand, where that is asked for. A lost lock is not
  // released: the checker holds others off until the end of the validity that was told last.
  void hold(Acquire& acquire, redlock_lock_t lock, unsigned ms, bool extends) {
    const int64_t until = boot_ns() + int64_t{ms} * 1'000'000;
    do {
      if (!check(lock)) return;
      if (extends && redlock_extend_async(client_.get(), lock, 0) != 0) extends = false;
      client_.turn(2 + below(20));
    } while (acquire.state == Acquire::held && boot_ns() < until && stop == 0);
    if (!check(lock)) return;
    history_.line("letgo %lld %u\n", static_cast<long long>(boot_ns()), n_);
    if (client_.blocks()) {
      (void)redlock_release(client_.get(), lock);
    } else {
      (void)redlock_release_async(client_.get(), lock);
    }
    (void)check(lock);
  }

  bool check(redlock_lock_t lock) {
    const int64_t before = boot_ns();
    const int err = redlock_check(client_.get(), lock, 0);
    const int64_t after = boot_ns();
    if (err != 0) {
      history_.line("no %lld %lld %u %s\n", static_cast<long long>(before), static_cast<long long>(after), n_,
                    redlock_err_name(err));
      return false;
    }
    const int64_t until = redlock_deadline_ns(client_.get(), lock) - up_for_ns;
    history_.line("yes %lld %lld %u %lld\n", static_cast<long long>(before), static_cast<long long>(after), n_,
                  static_cast<long long>(until > before ? until : before));
    return true;
  }

  Client client_;
  History history_;
  std::mt19937 random_;
  bool idle_, nights_, endless_, urgent_, tokens_;
  std::vector<std::string> resources_;
  unsigned n_ = 0;
};

// What runs under `redlock run`. Nobody asks it whether it may: it is ended in time.
int act(const char* path, const char* n) {
  const History history(path);
  const char* const token = std::getenv("REDLOCK_FENCING_TOKEN");
  history.line("got %lld %s %s 0 0 %s\n", static_cast<long long>(boot_ns()), n, token != nullptr ? token : "0",
               std::getenv("REDLOCK_RESOURCE"));
  auto below = [random = std::mt19937(std::random_device{}())](unsigned limit) mutable {
    return std::uniform_int_distribution<unsigned>(0, limit - 1)(random);
  };
  for (unsigned left = below(100); stop == 0 && left > 0; --left) {
    const auto before = static_cast<long long>(boot_ns());
    history.line("yes %lld %lld %s %lld\n", before, before, n, before);
    sleep_ms(2 + below(20));
  }
  return 0;
}

// Its time namespace begins with the next exec. Where there is none, the machine's own time is as good.
void be_up_for(const char* seconds, char** argv) {
  const int64_t begun = boot_ns();
  if (const char* const before = std::getenv("CAMPAIGN_BEGUN"); before != nullptr) {
    const int64_t wanted = std::strtoll(seconds, nullptr, 10) * 1'000'000'000;
    if (begun - std::strtoll(before, nullptr, 10) >= wanted) up_for_ns = wanted;
    return;
  }
  setenv("CAMPAIGN_BEGUN", std::to_string(begun).c_str(), 1);
  if (unshare(CLONE_NEWTIME) != 0) return;
  std::FILE* const offsets = std::fopen("/proc/self/timens_offsets", "w");
  if (offsets == nullptr) return;
  std::fprintf(offsets, "boottime %s 0\n", seconds);
  if (std::fclose(offsets) == 0) execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action {};
  action.sa_handler = [](int) { stop = 1; };
  sigaction(SIGTERM, &action, nullptr);
  if (argc == 4 && std::string(argv[1]) == "--act") return act(argv[2], argv[3]);
  if (argc < 7) return 2;
  if (const char* const seconds = std::getenv("CAMPAIGN_UP_FOR"); seconds != nullptr) be_up_for(seconds, argv);
  Worker(argv[1], argv[2], static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)), argv[4], argv[5],
         {argv + 6, argv + argc})
      .live();
  return 0;
}
