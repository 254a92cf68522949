// SPDX-License-Identifier: MIT
//
// The program inside the guest. `serve TTY` plays the cases that a line on TTY names, and tells there what it saw:
// "say CASE WORD" where it waits for the line "go", "fact CASE NAME=VALUE...", and "end CASE". run.py judges.
//   child FILE          what `redlock run` runs in the guest: counts in FILE what it does
//   act HOST PORT NAME  outside of the guest: tells the witness again and again that NAME uses the device
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <redlock/redlock.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int64_t ns_per_ms = 1'000'000;
constexpr int64_t noticed_ns = 2 * ns_per_ms;  // the library notices a suspend that counts for 1 ms
constexpr char config_file[] = "/tmp/redlock.json";
constexpr char board_file[] = "/tmp/board";

[[noreturn]] void die(const char* what) {
  perror(what);
  _exit(1);
}

int64_t now_ns(clockid_t clock) {
  timespec now{};
  if (clock_gettime(clock, &now) != 0) die("clock_gettime");
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}
int64_t boot_ns() { return now_ns(CLOCK_BOOTTIME); }
// What the kernel has counted of suspends since boot. The two clocks are read one after the other.
int64_t slept_ns() {
  const int64_t boot = boot_ns();
  return boot - now_ns(CLOCK_MONOTONIC);
}
void pause_ms(unsigned ms) { usleep(ms * 1000); }

// ---- the line to the judge --------------------------------------------------------------------------------------

FILE* line_in;
int line_out;

[[gnu::format(printf, 1, 2)]] void tell(const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(text, sizeof text - 1, format, arguments);
  va_end(arguments);
  text[size] = '\n';
  if (write(line_out, text, static_cast<size_t>(size) + 1) < 0) die("line");
}

std::string read_line() {
  char text[4096];
  if (fgets(text, sizeof text, line_in) == nullptr) die("the line is closed");
  text[strcspn(text, "\r\n")] = '\0';
  return text;
}

void wait_for_go(const char* what) {
  tell("say %s", what);
  while (read_line() != "go") {
  }
}

// ---- the witness: outside, and asked before the next step --------------------------------------------------------

class Witness {
 public:
  Witness(const char* host, const char* port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(atoi(port)));
    inet_pton(AF_INET, host, &address.sin_addr);
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("witness");
  }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness() { close(fd_); }

  // Has been written down when it returns.
  void acts(const std::string& name) {
    const std::string text = name + " " + std::to_string(boot_ns() / ns_per_ms) + "\n";
    char answer = 0;
    if (send(fd_, text.data(), text.size(), MSG_NOSIGNAL) < 0) die("witness");
    while (answer != '\n') {
      if (recv(fd_, &answer, 1, 0) <= 0) die("witness");
    }
  }

 private:
  int fd_;
};

// ---- clients -----------------------------------------------------------------------------------------------------

struct Seen {
  int type;
  uint32_t rounds;
  int64_t slept_ns;
};

// A client with its events, in thread mode or polled mode.
class Gateway {
 public:
  enum Mode { thread_mode, polled_mode };

  explicit Gateway(Mode mode, uint32_t node_timeout_ms = 0) : polled_(mode == polled_mode) {
    redlock_config_t* config = nullptr;
    if (redlock_config_new(&config) != 0 || redlock_config_load_file(config, config_file) != 0) die("configuration");
    if (node_timeout_ms != 0 && redlock_config_set_u32(config, "timing.node_timeout_ms", node_timeout_ms) != 0) {
      die(redlock_config_error(config));
    }
    redlock_config_set_event(config, on_event, this);
    redlock_config_set_log(config, redlock_log_stderr, nullptr, 5);
    const int err = polled_ ? redlock_create_polled(&rl_, config) : redlock_create(&rl_, config);
    if (err != 0) die(redlock_config_error(config));
    redlock_config_free(config);
  }
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway() {
    if (!polled_) {
      redlock_destroy(rl_, 200);
      return;
    }
    redlock_close_async(rl_, 200);
    while (redlock_process(rl_) != REDLOCK_E_CLOSED) pause_ms(1);
  }

  void begin(const char* resource, uint32_t ttl_ms, uint32_t flags = 0) {
    redlock_acquire_opts_t opts = REDLOCK_ACQUIRE_OPTS_INIT;
    opts.ttl_ms = ttl_ms;
    opts.flags = flags;
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    const redlock_resource_t name = redlock_resource(resource);
    if (redlock_acquire_async(rl_, &name, 1, &opts, &lock_) != 0) die("acquire");
  }
  void acquire(const char* resource, uint32_t ttl_ms, uint32_t flags = 0) {
    begin(resource, ttl_ms, flags);
    wait_for(REDLOCK_EV_ACQUIRED);
  }
  int check() const { return redlock_check(rl_, lock_, 0); }
  int64_t deadline_ns() const { return redlock_deadline_ns(rl_, lock_); }
  void release() { redlock_release_async(rl_, lock_); }
  redlock_status_t status() const {
    redlock_status_t status{};
    status.size = sizeof status;
    if (redlock_status(rl_, &status) != 0) die("status");
    return status;
  }

  // The count-th event of this type.
  Seen wait_for(int type, size_t count = 1) {
    for (;; pause_ms(1)) {
      if (polled_) redlock_process(rl_);
      const std::lock_guard<std::mutex> guard(mutex_);
      size_t found = 0;
      for (const Seen& seen : seen_) {
        if (seen.type == type && ++found == count) return seen;
      }
    }
  }
  size_t count(int type) {
    const std::lock_guard<std::mutex> guard(mutex_);
    size_t found = 0;
    for (const Seen& seen : seen_) found += seen.type == type;
    return found;
  }
  // The first event after the kernel had counted more than this; 0: none so far.
  int first_after(int64_t slept) {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (const Seen& seen : seen_) {
      if (seen.slept_ns > slept + noticed_ns) return seen.type;
    }
    return 0;
  }

 private:
  static void on_event(redlock_t*, const redlock_event_t* event, void* user) {
    auto* self = static_cast<Gateway*>(user);
    const std::lock_guard<std::mutex> guard(self->mutex_);
    self->seen_.push_back({event->type, event->rounds, slept_ns()});
  }

  const bool polled_;
  redlock_t* rl_ = nullptr;
  redlock_lock_t lock_{};
  std::mutex mutex_;
  std::vector<Seen> seen_;
};

// Threads that ask again and again whether the lock is held. An answer counts as one after the suspend only if the
// clocks told of the suspend before the question.
class Checkers {
 public:
  explicit Checkers(std::vector<const Gateway*> gateways) : base_ns_(slept_ns()), gateways_(std::move(gateways)) {
    for (Counts& counts : counts_) threads_.emplace_back([this, &counts] { ask(counts); });
    while (least(&Counts::yes) == 0) pause_ms(1);
  }
  Checkers(const Checkers&) = delete;
  Checkers& operator=(const Checkers&) = delete;
  ~Checkers() {
    stop_ = true;
    for (std::thread& one : threads_) one.join();
  }

  struct Counts {
    std::atomic<uint32_t> yes, no, yes_after, no_after;
  };
  uint32_t sum(std::atomic<uint32_t> Counts::* which) const {
    uint32_t all = 0;
    for (const Counts& counts : counts_) all += counts.*which;
    return all;
  }
  uint32_t least(std::atomic<uint32_t> Counts::* which) const {
    uint32_t least = UINT32_MAX;
    for (const Counts& counts : counts_) least = std::min<uint32_t>(least, counts.*which);
    return least;
  }

 private:
  void ask(Counts& counts) {
    for (; !stop_; usleep(500)) {
      for (const Gateway* gateway : gateways_) {
        const bool after = slept_ns() > base_ns_ + noticed_ns;
        const bool yes = gateway->check() == 0;
        ++(after ? (yes ? counts.yes_after : counts.no_after) : (yes ? counts.yes : counts.no));
      }
    }
  }

  const int64_t base_ns_;
  const std::vector<const Gateway*> gateways_;
  Counts counts_[4] = {};
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

struct Site {
  std::string witness_port;
  std::string alarm;  // seconds, where nobody can wake the machine but its real-time clock
};

// To RAM, or to the deepest sleep that the machine has, until it is woken.
void suspend(const Site& site) {
  if (!site.alarm.empty()) {
    FILE* alarm = fopen("/sys/class/rtc/rtc0/wakealarm", "w");
    if (alarm == nullptr || fprintf(alarm, "+%s", site.alarm.c_str()) < 0 || fclose(alarm) != 0) die("wakealarm");
  }
  const int state = open("/sys/power/state", O_WRONLY | O_CLOEXEC);
  if (state < 0) die("/sys/power/state");
  while (write(state, "mem", 3) != 3) {
    if (errno != EBUSY && errno != EINTR) die("suspend");
    pause_ms(10);
  }
  close(state);
}

// ---- cases -------------------------------------------------------------------------------------------------------

bool seeded() {
  char byte = 0;
  return getrandom(&byte, 1, GRND_NONBLOCK) == 1;
}

// Until the kernel has random bytes: it makes some for those who wait.
void wait_until_seeded() {
  char byte = 0;
  if (getrandom(&byte, 1, 0) != 1) die("getrandom");
}

// Right after boot, when the kernel has no random bytes yet: an acquire waits for them, and goes on by itself.
void randomness(const Site&) {
  Gateway gateway(Gateway::thread_mode);
  while (gateway.status().masters_up != gateway.status().masters) pause_ms(1);
  gateway.begin("randomness", 3000, REDLOCK_F_TELL_WAITING);
  pause_ms(1000);
  const size_t acquired = gateway.count(REDLOCK_EV_ACQUIRED);
  const bool late = !seeded();
  wait_until_seeded();
  gateway.wait_for(REDLOCK_EV_ACQUIRED);
  tell("fact randomness late=%d acquired_before=%zu check=%s", late, acquired, redlock_err_name(gateway.check()));
}

// A client in thread mode and one in polled mode hold a lock each. Both are told LOST first, and no thread is told yes.
void held(const Site& site) {
  Witness witness("10.0.2.2", site.witness_port.c_str());
  Gateway threaded(Gateway::thread_mode), polled(Gateway::polled_mode);
  threaded.acquire("held_a", 2000);
  polled.acquire("held_b", 2000);
  const Checkers checkers({&threaded, &polled});
  const int64_t slept = slept_ns(), mono = now_ns(CLOCK_MONOTONIC);
  if (threaded.check() == 0) witness.acts("guest");
  wait_for_go("held ready");
  suspend(site);
  const int first_a = threaded.check(), first_b = polled.check();
  if (first_a == 0 || first_b == 0) witness.acts("guest");
  const int64_t counted = slept_ns() - slept, went_on = now_ns(CLOCK_MONOTONIC) - mono;
  threaded.wait_for(REDLOCK_EV_LOST);
  polled.wait_for(REDLOCK_EV_LOST);
  while (counted > noticed_ns && checkers.least(&Checkers::Counts::no_after) < 10) pause_ms(1);
  tell("fact held counted_ms=%lld monotonic_ms=%lld check_a=%s check_b=%s first_event_a=%d first_event_b=%d"
       " yes_before=%u yes_after=%u no_after=%u",
       static_cast<long long>(counted / ns_per_ms), static_cast<long long>(went_on / ns_per_ms),
       redlock_err_name(first_a), redlock_err_name(first_b), threaded.first_after(slept), polled.first_after(slept),
       checkers.sum(&Checkers::Counts::yes), checkers.sum(&Checkers::Counts::yes_after),
       checkers.sum(&Checkers::Counts::no_after));
}

// Two of three masters are frozen while the round is sent, and answer it during the suspend.
void round(const Site& site) {
  Witness witness("10.0.2.2", site.witness_port.c_str());
  Gateway gateway(Gateway::thread_mode, 3000);
  while (gateway.status().masters_up != gateway.status().masters) pause_ms(1);
  wait_for_go("round ready");
  gateway.begin("round", 3500);
  pause_ms(200);
  const redlock_status_t before = gateway.status();
  tell("fact round pending=%u rounds_before=%llu", before.locks_pending,
       static_cast<unsigned long long>(before.rounds));
  wait_for_go("round open");
  const int64_t slept = slept_ns();
  suspend(site);
  while (gateway.status().rounds <= before.rounds && gateway.count(REDLOCK_EV_ACQUIRED) == 0) pause_ms(1);
  tell("say round anew");
  const Seen acquired = gateway.wait_for(REDLOCK_EV_ACQUIRED);
  if (gateway.check() == 0) witness.acts("guest");
  tell("fact round rounds=%u first_event=%d", acquired.rounds, gateway.first_after(slept));
  gateway.release();
  gateway.wait_for(REDLOCK_EV_RELEASED);
}

struct Board {
  std::atomic<int64_t> before, after, first_ns, last_ns;
};

Board* open_board(const char* file) {
  const int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Board)) != 0) die(file);
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return static_cast<Board*>(memory);
}

int play_child(const char* file) {
  Board* board = open_board(file);
  const int64_t slept = slept_ns();
  for (;;) {
    if (slept_ns() < slept + noticed_ns) {
      ++board->before;
      continue;
    }
    board->last_ns = now_ns(CLOCK_MONOTONIC);
    if (board->after++ == 0) board->first_ns = board->last_ns.load();
  }
}

// For how long goes a command on after the resume? `redlock run` ends it, and can only be as fast as the scheduler.
void command(const Site& site) {
  Board* board = open_board(board_file);
  const pid_t pid = fork();
  if (pid == 0) {
    execl("/bin/redlock", "redlock", "run", "-q", "-C", config_file, "-t", "2400", "command", "--",
          "/bin/machine_guest", "child", board_file, nullptr);
    die("/bin/redlock");
  }
  while (board->before == 0) pause_ms(1);
  wait_for_go("command ready");
  suspend(site);
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) die("waitpid");
  const int64_t steps = board->after, span = board->last_ns - board->first_ns;
  pause_ms(100);
  tell("fact command exit=%d steps_after=%lld us_after=%lld steps_later=%lld",
       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), static_cast<long long>(steps),
       static_cast<long long>(span / 1000), static_cast<long long>(board->after - steps));
  munmap(board, sizeof *board);
}

// The hypervisor stops the guest, and no clock of the guest knows.
void stopped(const Site& site) {
  Witness witness("10.0.2.2", site.witness_port.c_str());
  Gateway gateway(Gateway::thread_mode);
  gateway.acquire("stopped", 3000);
  witness.acts("guest");
  tell("say stopped ready");
  uint32_t late = 0;
  for (;; pause_ms(5)) {
    const int64_t end = gateway.deadline_ns(), now = boot_ns();
    if (gateway.check() != 0) break;
    late += end > 0 && now > end && gateway.deadline_ns() == end;
    witness.acts("guest");
  }
  gateway.wait_for(REDLOCK_EV_LOST);
  tell("fact stopped past_validity=%u", late);
}

void step_wall_clock(int hours) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec += hours * 3600;
  if (clock_settime(CLOCK_REALTIME, &now) != 0) die("clock_settime");
}

// As at boot, before and after the time was learned: the client that was there before knows no difference.
void wall_clock(const Site&) {
  Gateway first(Gateway::thread_mode);
  first.acquire("wall_a", 3000);
  const Checkers checkers({&first});
  for (const int hours : {5, -11, 8}) {
    const size_t renewed = first.count(REDLOCK_EV_RENEWED);
    step_wall_clock(hours);
    first.wait_for(REDLOCK_EV_RENEWED, renewed + 1);
    Gateway fresh(Gateway::thread_mode);
    fresh.acquire("wall_b", 3000);
    fresh.release();
    fresh.wait_for(REDLOCK_EV_RELEASED);
  }
  step_wall_clock(-2);
  tell("fact wall_clock renewed=%zu lost=%zu no=%u clock_jumps=%llu clock_steps=%llu",
       first.count(REDLOCK_EV_RENEWED), first.count(REDLOCK_EV_LOST),
       checkers.sum(&Checkers::Counts::no) + checkers.sum(&Checkers::Counts::no_after),
       static_cast<unsigned long long>(first.status().clock_jumps),
       static_cast<unsigned long long>(first.status().clock_steps));
}

// A suspend that the kernel may count as nothing.
void brief(const Site& site) {
  static int number = 0;
  Gateway gateway(Gateway::thread_mode);
  gateway.acquire(("brief" + std::to_string(++number)).c_str(), 6000, REDLOCK_F_NO_RENEW);
  const int64_t slept = slept_ns();
  wait_for_go("brief ready");
  suspend(site);
  const int check = gateway.check();
  const int64_t counted = slept_ns() - slept;
  if (counted > noticed_ns) gateway.wait_for(REDLOCK_EV_LOST);
  tell("fact brief counted_us=%lld check=%s lost=%zu", static_cast<long long>(counted / 1000),
       redlock_err_name(check), gateway.count(REDLOCK_EV_LOST));
}

// Held until the power is cut.
void power(const Site& site) {
  Witness witness("10.0.2.2", site.witness_port.c_str());
  Gateway gateway(Gateway::thread_mode);
  gateway.acquire("power", 3000);
  tell("say power ready");
  for (; gateway.check() == 0; pause_ms(5)) witness.acts("guest");
}

// ----------------------------------------------------------------------------------------------------------------

void configure(const std::string& json) {
  FILE* file = fopen(config_file, "w");
  if (file == nullptr || chmod(config_file, 0600) != 0 || fputs(json.c_str(), file) < 0) die(config_file);
  fclose(file);
}

int serve(const char* tty) {
  const std::map<std::string, std::function<void(const Site&)>> cases = {
      {"randomness", randomness}, {"wall_clock", wall_clock}, {"brief", brief},     {"held", held},
      {"round", round},           {"command", command},       {"stopped", stopped}, {"power", power}};
  line_out = open(tty, O_RDWR | O_NOCTTY | O_CLOEXEC);
  termios raw{};
  if (line_out < 0 || tcgetattr(line_out, &raw) != 0) die(tty);
  cfmakeraw(&raw);
  tcsetattr(line_out, TCSANOW, &raw);
  line_in = fdopen(dup(line_out), "r");
  Site site;
  tell("say guest ready");
  for (;;) {
    const std::string line = read_line();
    const size_t blank = line.find(' ');
    const std::string word = line.substr(0, blank);
    if (word == "witness") site.witness_port = line.substr(blank + 1);
    if (word == "alarm") site.alarm = line.substr(blank + 1);
    if (word == "config") configure(line.substr(blank + 1));
    if (const auto found = cases.find(word); found != cases.end()) {
      if (word != "randomness") wait_until_seeded();
      found->second(site);
      tell("end %s", word.c_str());
    }
  }
}

int act(const char* host, const char* port, const char* name) {
  Witness witness(host, port);
  for (;; pause_ms(10)) witness.acts(name);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "serve" && argc == 3) return serve(argv[2]);
  if (what == "child" && argc == 3) return play_child(argv[2]);
  if (what == "act" && argc == 5) return act(argv[2], argv[3], argv[4]);
  return 2;
}
