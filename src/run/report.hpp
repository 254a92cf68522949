// SPDX-License-Identifier: MIT
//
// Report: how a blocking acquire ended, in a struct of the caller's (redlock_report_t). The struct belongs to the
// thread that blocks. The client's thread writes into it while that thread stands in the list of blocked threads
// (run/blocked), and at no other time. No more bytes are written than the caller's `size` says.
//
// A null report stands for none.
#pragma once
#include <redlock/redlock.h>

namespace redlock {

// Zeroes the report that the options name, or finds null. False: its size is too small for the first fields.
bool find_report(const redlock_acquire_opts_t* opts, redlock_report_t*& report);

// The call ends with this event, and returns err.
void report_event(redlock_report_t* report, const redlock_event_t& event, int err);
// The call ends with this error, without an event. text: what is wrong; null: the text of the error. Returns err.
int report_error(redlock_report_t* report, int err, const char* text = nullptr);

}  // namespace redlock
