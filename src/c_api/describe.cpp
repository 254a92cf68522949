// SPDX-License-Identifier: MIT
//
// An event as one English sentence. A sentence has at most REDLOCK_TEXT_MAX bytes, so long names and addresses are cut,
// and at worst the sentence itself.
#include <string.h>

#include "config/report.hpp"
#include "config/text.hpp"

namespace redlock {
namespace {

constexpr size_t name_shown = 32;
constexpr size_t address_shown = 56;
constexpr size_t holder_shown = REDLOCK_HOLDER_MAX;
constexpr redlock_detail_t no_detail = {0, 0, 0, 0, 0, 0, 0, 0, REDLOCK_GUARD_UNKNOWN, "", "", ""};

// An event on its way to a sentence. `before` is written first.
struct Sentence {
  TextWriter& out;
  const redlock_event_t& event;
  const redlock_detail_t& detail;

  // "1 master", "3 masters"
  void count(Bytes before, uint32_t n, Bytes noun) const {
    out.raw(before).number(n).raw(" ").raw(noun).raw(n == 1 ? Bytes() : Bytes("s"));
  }
  // "1 of 3 masters"; "1 master" where the number of all is not known
  void share(Bytes before, uint32_t n) const {
    out.raw(before);
    if (detail.masters != 0) out.number(n);
    count(detail.masters != 0 ? Bytes(" of ") : Bytes(), detail.masters != 0 ? detail.masters : n, "master");
  }
  void needed() const {
    out.raw(", ").number(detail.quorum).raw(detail.quorum == 1 ? Bytes(" is needed") : Bytes(" are needed"));
  }
  // 27250 is "27.3 s" if it is rounded up, and "27.2 s" if not.
  void time(Bytes before, int64_t ms, bool up) const {
    out.raw(before);
    if (ms < 1000) {
      out.number(static_cast<uint64_t>(ms)).raw(" ms");
      return;
    }
    const uint64_t tenths = (static_cast<uint64_t>(ms) + (up ? 99 : 0)) / 100;
    out.number(tenths / 10).raw(".").number(tenths % 10).raw(" s");
  }
  void text_of(int err) const { out.raw(bytes_of(redlock_strerror(err))); }

  void foreign() const;
  void reason(int err) const;
  void blame(Bytes before) const;
  void guarded() const;
  void held() const;
  void too_few() const;
  void cause(int32_t cause) const;
  void failed() const;
  void at_risk() const;
  void lost() const;
  void master() const;
  void closed() const;
  void write() const;
};

// Behind the address of a master, or of nothing.
void Sentence::foreign() const {
  const bool known = detail.their_masters != 0;
  const bool same = detail.their_masters == detail.masters && detail.their_max_ttl_ms == detail.max_ttl_ms;
  out.raw("belongs to clients of another configuration");
  if (!known) return;
  if (same) {
    out.raw(": only the names of the masters differ");
  } else {
    count(": ", detail.their_masters, "master");
    out.raw(", max_ttl ").number(detail.their_max_ttl_ms);
    count("; ours: ", detail.masters, "master");
    out.raw(", ").number(detail.max_ttl_ms);
  }
  out.raw("; redlock_adopt() takes it over");
}

void Sentence::reason(int err) const {
  if (err == REDLOCK_E_FINGERPRINT) {
    foreign();
  } else {
    text_of(err);
  }
}

// Which master said what: "10.0.0.12:6379: the connection broke".
void Sentence::blame(Bytes before) const {
  if (event.master_err == 0) return;
  out.raw(before);
  if (*detail.address != '\0') {
    out.escaped(bytes_of(detail.address), address_shown);
    out.raw(event.master_err == REDLOCK_E_FINGERPRINT ? Bytes(" ") : Bytes(": "));
  }
  reason(event.master_err);
}

// ---- what an acquire waits for ------------------------------------------------------------------------------------

void Sentence::guarded() const {
  if (detail.watched != 0) {
    share("", detail.watched);
    out.raw(detail.watched == 1 ? Bytes(" is new and watched") : Bytes(" are new and watched"));
  } else {
    text_of(REDLOCK_E_GUARD);
  }
  if (event.guard_ms > 0) {
    time(": ", event.guard_ms, true);
    out.raw(" to go");
  }
  out.raw("; redlock_commission() skips it");
}

void Sentence::held() const {
  if (event.refused == 0) {
    out.raw("another acquire of this client comes first");
    return;
  }
  out.raw("held by ");
  if (*detail.holder != '\0') {
    out.raw(Bytes(detail.holder, strnlen(detail.holder, holder_shown)));
  } else {
    out.raw("somebody else");
  }
  share(" on ", event.refused);
  if (detail.to_go_ms <= 0) return;
  time(", ", detail.to_go_ms, true);
  out.raw(" at most");
}

void Sentence::too_few() const {
  if (detail.voting < detail.quorum) {
    share("", detail.voting);
    out.raw(detail.voting == 1 ? Bytes(" votes") : Bytes(" vote"));
    needed();
  } else {
    text_of(REDLOCK_E_NO_QUORUM);
  }
  blame("; ");
}

void Sentence::cause(int32_t cause) const {
  switch (cause) {
    case REDLOCK_CAUSE_HELD:
      return held();
    case REDLOCK_CAUSE_GUARD:
      return guarded();
    case REDLOCK_CAUSE_CHANGE:
      out.raw("a change of the masters is under way");
      return;
    case REDLOCK_CAUSE_NEVER:
      if (event.master_err == REDLOCK_E_FINGERPRINT) return blame("");
      return too_few();
    case REDLOCK_CAUSE_TOO_FEW:
      return too_few();
    default:
      out.raw("not told what for");
  }
}

// ---- events -------------------------------------------------------------------------------------------------------

// The error of an acquire that says no more than its cause does.
int32_t cause_of(int err) {
  return err == REDLOCK_E_LOCKED      ? REDLOCK_CAUSE_HELD
         : err == REDLOCK_E_GUARD     ? REDLOCK_CAUSE_GUARD
         : err == REDLOCK_E_NO_QUORUM ? REDLOCK_CAUSE_TOO_FEW
                                      : REDLOCK_CAUSE_NONE;
}

void Sentence::failed() const {
  const int32_t by_error = cause_of(event.err);
  const int32_t told = event.cause != REDLOCK_CAUSE_NONE ? event.cause : by_error;
  const bool in_time = event.err == REDLOCK_E_TIMEOUT && told != REDLOCK_CAUSE_NONE;
  out.raw(in_time ? Bytes("not acquired in time: ") : Bytes("not acquired: "));
  if (in_time || by_error != REDLOCK_CAUSE_NONE) return cause(told);
  text_of(event.err);
  blame("; ");
}

void Sentence::at_risk() const {
  out.raw("not extended: ");
  text_of(event.err);
  blame("; ");
  time("; ", event.validity_ms, false);
  out.raw(" of validity left");
}

// The votes are those of the last round, which is decided before all masters have answered.
void Sentence::lost() const {
  out.raw("lost: ");
  if (event.failed + event.refused == 0) return text_of(REDLOCK_E_LOST);
  if (event.refused != 0) {
    share("", event.refused);
    out.raw(event.refused == 1 ? Bytes(" has lost the key") : Bytes(" have lost the key"));
  }
  if (event.failed == 0) return;
  share(event.refused != 0 ? Bytes("; ") : Bytes(), event.failed);
  out.raw(" could not extend it");
  blame("; ");
}

void Sentence::master() const {
  if (*detail.name == '\0') {
    out.raw("master ").number(event.master);
  } else {
    out.escaped(bytes_of(detail.name), name_shown);
    if (strcmp(detail.name, detail.address) != 0) out.raw(" ").escaped(bytes_of(detail.address), address_shown);
  }
  out.raw(": ").raw(state_name(event.state));
  if (event.err != 0) {
    out.raw(": ");
    reason(event.err);
  }
  if (event.guard_ms <= 0) return;
  time("; ", event.guard_ms, true);
  out.raw(" to go");
}

void Sentence::closed() const {
  out.raw("closed");
  if (event.failed == 0) return;
  count("; ", event.failed, "delete");
  out.raw(event.failed == 1 ? Bytes(" was not answered") : Bytes(" were not answered"));
}

void Sentence::write() const {
  switch (event.type) {
    case REDLOCK_EV_ACQUIRED:
    case REDLOCK_EV_RENEWED:
      time(event.type == REDLOCK_EV_ACQUIRED ? Bytes("acquired, ") : Bytes("extended, "), event.validity_ms, false);
      out.raw(" of validity");
      break;
    case REDLOCK_EV_FAILED:
      return failed();
    case REDLOCK_EV_AT_RISK:
      return at_risk();
    case REDLOCK_EV_LOST:
      return lost();
    case REDLOCK_EV_RELEASED:
      out.raw("released");
      break;
    case REDLOCK_EV_MASTER:
      return master();
    case REDLOCK_EV_CLOSED:
      return closed();
    case REDLOCK_EV_WAITING:
      return cause(event.cause);
    default:
      out.raw("an event of a later version");
  }
}

// The text did not fit: "..." shows so. No UTF-8 sequence is cut in two.
void end_in_dots(char* text, size_t size) {
  size_t at = size > 4 ? size - 4 : 0;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0u) == 0x80u) --at;
  for (unsigned i = 0; i < 3 && at + 1 < size; ++i) text[at++] = '.';
  text[at] = '\0';
}

}  // namespace
}  // namespace redlock

extern "C" size_t redlock_describe(const redlock_event_t* event, char* buf, size_t size) {
  const size_t room = size <= REDLOCK_TEXT_MAX ? size : REDLOCK_TEXT_MAX + 1;
  redlock::TextWriter out(buf, room);
  if (event != nullptr) {
    redlock::Sentence{out, *event, event->detail != nullptr ? *event->detail : redlock::no_detail}.write();
  }
  if (!out.fits() && room > 0) redlock::end_in_dots(buf, room);
  return out.needed() - 1 < REDLOCK_TEXT_MAX ? out.needed() - 1 : REDLOCK_TEXT_MAX;
}
