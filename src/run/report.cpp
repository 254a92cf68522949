// SPDX-License-Identifier: MIT
#include "run/report.hpp"

#include <stddef.h>
#include <string.h>

#include "base/types.hpp"
#include "config/text.hpp"

namespace redlock {
namespace {

constexpr uint32_t opts_size = offsetof(redlock_acquire_opts_t, report) + sizeof(redlock_report_t*);
constexpr uint32_t numbers_size = offsetof(redlock_report_t, holder);  // every report has these fields

// How much room has the caller's struct for a text at this offset?
size_t room_for(const redlock_report_t& report, size_t offset, size_t whole) {
  const size_t there = report.size > offset ? report.size - offset : 0;
  return there < whole ? there : whole;
}

void write_numbers(redlock_report_t& report, int err, const redlock_event_t& event) {
  if (report.size > sizeof report) report.size = sizeof report;
  report.err = err;
  report.cause = event.cause;
  report.master_err = event.master_err;
  report.granted = event.granted;
  report.refused = event.refused;
  report.failed = event.failed;
  report.rounds = event.rounds;
  report.guard_ms = event.guard_ms;
}

void write_holder(redlock_report_t& report, const char* name) {
  TextWriter(report.holder, room_for(report, numbers_size, sizeof report.holder)).raw(name);
}

size_t text_room(const redlock_report_t& report) {
  return room_for(report, offsetof(redlock_report_t, text), sizeof report.text);
}

}  // namespace

bool find_report(const redlock_acquire_opts_t* opts, redlock_report_t*& report) {
  report = opts != nullptr && opts->size >= opts_size ? opts->report : nullptr;
  if (report == nullptr || clear_output(report, sizeof *report, numbers_size)) return true;
  report = nullptr;
  return false;
}

void report_event(redlock_report_t* report, const redlock_event_t& event, int err) {
  if (report == nullptr) return;
  write_numbers(*report, err, event);
  write_holder(*report, event.detail != nullptr ? event.detail->holder : "");
  redlock_describe(&event, report->text, text_room(*report));
}

int report_error(redlock_report_t* report, int err, const char* text) {
  if (report == nullptr) return err;
  write_numbers(*report, err, redlock_event_t());
  write_holder(*report, "");
  TextWriter(report->text, text_room(*report)).raw(text != nullptr ? text : redlock_strerror(err));
  return err;
}

}  // namespace redlock
