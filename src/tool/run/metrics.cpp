// SPDX-License-Identifier: MIT
#include "tool/run/metrics.hpp"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tool/system/descriptors.hpp"
#include "tool/system/replaced_file.hpp"
#include "tool/words/options.hpp"
#include "tool/words/prometheus.hpp"
#include "tool/words/say.hpp"

namespace redlock::tool {
namespace {

constexpr int64_t pause_ns = 1'000 * ns_per_ms;  // between two changes of the file

using Status = redlock_status_t;

constexpr struct {
  const char* name;
  const char* help;
  uint64_t Status::*value;
} counters[] = {
    {"acquired", "Acquires that were won.", &Status::acquired},
    {"failed_locked", "Acquires that failed: others held the lock.", &Status::failed_locked},
    {"failed_no_quorum", "Acquires that failed: too few masters answered.", &Status::failed_no_quorum},
    {"failed_other", "Acquires that failed for another reason.", &Status::failed_other},
    {"rounds", "Acquire rounds begun.", &Status::rounds},
    {"renewed", "Renewals.", &Status::renewed},
    {"renew_failed", "Renewals that failed.", &Status::renew_failed},
    {"released", "Locks that were let go.", &Status::released},
    {"lost", "Locks that were lost.", &Status::lost},
    {"clock_jumps", "Suspends and clock misreadings of this machine.", &Status::clock_jumps},
    {"clock_steps", "Steps and wrong rates of clocks of masters.", &Status::clock_steps},
};

char last[65'536];  // what the file says

// In thousandths; 0: the file does not have the sample.
uint64_t last_value(const char* sample) {
  const size_t size = strlen(sample);
  const char* at = last;
  while (strncmp(at, sample, size) != 0 || at[size] != ' ') {
    at = strchr(at, '\n');
    if (at++ == nullptr) return 0;
  }
  uint64_t value = 0;
  for (at += size + 1; *at >= '0' && *at <= '9'; ++at) value = 10 * value + static_cast<uint64_t>(*at - '0');
  const bool has_point = *at == '.';
  for (unsigned i = 0; i < 3; ++i) {
    const bool is_digit = has_point && *++at >= '0' && *at <= '9';
    value = 10 * value + (is_digit ? static_cast<uint64_t>(*at - '0') : 0);
  }
  return value;
}

}  // namespace

// ---- a file in the making -------------------------------------------------------------------------------------------

class Metrics::Page {
 public:
  Page(int file, const Text& resource) : file_(file), resource_(resource) {}

  void family(const Metric& metric, const char* type) { add(tool::family(metric, type).c_str()); }
  // What becomes of a sample's value in the file: it is added to, the same in ms, or raised.
  enum Kind { count, seconds, most_seconds };
  void sample(Kind kind, const char* name, const char* labels, uint64_t value) {
    Text line("redlock_%s{resource=\"%s\"%s}", name, resource_.c_str(), labels);
    const uint64_t before = last_value(line.c_str());
    if (kind == count) value += before / 1'000;
    if (kind == seconds) value += before;
    if (kind == most_seconds && before > value) value = before;
    const bool is_ms = kind >= seconds;
    line.add(" %llu", static_cast<unsigned long long>(is_ms ? value / 1'000 : value));
    if (is_ms) line.add(".%03u", static_cast<unsigned>(value % 1'000));
    add(line.add("\n"));
  }
  // A family of one sample.
  void single(Kind kind, const Metric& metric, uint64_t value) {
    family(metric, kind == count ? "counter" : "gauge");
    sample(kind, metric.name, "", value);
  }
  bool is_whole() const { return is_whole_; }

 private:
  void add(const char* text) {
    const size_t size = strlen(text);
    is_whole_ = is_whole_ && ::write(file_, text, size) == static_cast<ssize_t>(size);
  }

  int file_;
  const Text& resource_;
  bool is_whole_ = true;
};

void Metrics::write_counters(Page& page) const {
  for (const auto& counter : counters) {
    const Text name = Text("%s_total", counter.name);
    page.single(Page::count, {name, counter.help}, seen_.*counter.value - told_.*counter.value);
  }
  const auto times = [&](const char* what, const char* help, redlock_times_t Status::*member) {
    const redlock_times_t &now = seen_.*member, &before = told_.*member;
    const auto name = [what](const char* end) { return Text("%s_%s", what, end); };
    page.family({name("seconds").c_str(), help}, "histogram");
    constexpr const char* limits[] = {"0.01", "0.1", "1", "10", "100", "1000", "10000", "+Inf"};
    uint64_t added = 0;
    for (unsigned i = 0; i < 8; ++i) {
      added += now.buckets[i] - before.buckets[i];
      page.sample(Page::count, name("seconds_bucket").c_str(), Text(",le=\"%s\"", limits[i]).c_str(), added);
    }
    page.sample(Page::seconds, name("seconds_sum").c_str(), "", now.sum_ms - before.sum_ms);
    page.sample(Page::count, name("seconds_count").c_str(), "", now.count - before.count);
    page.single(Page::most_seconds, {name("max_seconds"), "The longest of these times."}, now.max_ms);
  };
  times("wait", "How long acquires waited, won or not.", &Status::wait);
  times("hold", "How long locks were held.", &Status::hold);
}

// ---- when -----------------------------------------------------------------------------------------------------------

void Metrics::open(const char* path, const char* names) {
  path_ = path;
  resource_ = label(names);
  check_is_ours("--metrics", path);
  if (!write(true)) fail(exit_output, "--metrics: %s cannot be written: %s", path, strerror(errno));
}

void Metrics::look(const redlock_t* client) {
  if (path_ == nullptr) return;
  auto now = sized<redlock_status_t>();
  if (redlock_status(client, &now) != 0) return;
  now.guard_ms = 0;  // of no interest here, and never the same
  if (memcmp(&now, &seen_, sizeof now) == 0) return;
  seen_ = now;
  if (due_ == never) due_ = written_at_ + pause_ns;
}

void Metrics::write_due() {
  if (due_ == never || now_ns() < due_) return;
  due_ = never;
  if (write(false)) return;
  due_ = written_at_ + pause_ns;
  if (errno != EWOULDBLOCK) complain();
}

void Metrics::end() {
  if (path_ == nullptr) return;
  if (!write(true)) complain();
  told_ = seen_ = {};  // the next client counts from 0
}

void Metrics::complain() {
  if (!complained_) say_as(Priority::warning, "--metrics: %s cannot be written: %s", path_, strerror(errno));
  complained_ = true;
}

// False: it was not written; EWOULDBLOCK: another run writes.
bool Metrics::write(bool is_patient) {
  written_at_ = now_ns();
  const auto write_page = [](void* self, int file) {
    const Metrics& metrics = *static_cast<Metrics*>(self);
    read_file(metrics.path_, last, sizeof last);
    Page page(file, metrics.resource_);
    metrics.write_counters(page);
    return page.is_whole();
  };
  if (!replace_file(path_, is_patient, write_page, this)) return false;
  told_ = seen_;
  complained_ = false;
  return true;
}

}  // namespace redlock::tool
