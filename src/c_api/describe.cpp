// SPDX-License-Identifier: MIT
//
// An event as one English sentence. A sentence has at most REDLOCK_TEXT_MAX bytes, so long names and addresses are cut,
// and at worst the sentence itself.
#include <string.h>

#include "base/digits.hpp"
#include "config/report.hpp"
#include "config/text.hpp"

namespace redlock {
namespace {

constexpr size_t name_shown = 32;
constexpr size_t address_shown = 56;
constexpr size_t key_shown = 96;
constexpr redlock_detail_t no_detail = {0, 0, 0, 0, 0, 0, 0, 0, REDLOCK_GUARD_UNKNOWN, "", "", "", "", "", ""};

// An event on its way to a sentence. The sentences stand below as patterns, which also saves code:
//
//     %r %f %v %w   "2 of 3 masters": refused, failed, voting, watched
//     %o %n         "3 masters", "1 master": ours, theirs; %x %y  theirs and our max_ttl_ms
//     %q %d         the quorum; how many deletes failed
//     %h %a         the holder; the master's address
//     %i %j %k      a master of theirs, a master of ours; the key or certificate that is denied
//     %g %t %l      how long the guard still watches, the key lives if nobody renews it, the lock is valid
//     %s            the text of the event's error
//     {is|are}      by the number before
class Sentence {
 public:
  Sentence(TextWriter& out, const redlock_event_t& event, const redlock_detail_t& detail)
      : out_(out), e_(event), d_(detail) {}
  void write();

 private:
  void say(const char* pattern);
  void field(char name);
  void number(uint32_t n) {
    out_.number(n);
    one_ = n == 1;
  }
  void masters(uint32_t n) {
    number(n);
    out_.raw(one_ ? Bytes(" master") : Bytes(" masters"));
  }
  void share(uint32_t n);
  void time(int64_t ms, unsigned up);
  void text_of(int err) { out_.raw(redlock_strerror(err)); }
  void reason(int err);
  void blame(const char* before);
  void too_few();
  void cause(int32_t cause);
  void failed();
  void lost();
  void master();

  TextWriter& out_;
  const redlock_event_t& e_;
  const redlock_detail_t& d_;
  bool one_ = false;  // the last number
};

void Sentence::say(const char* at) {
  bool left_out = false;  // the word at which the loop is
  for (; *at != '\0'; ++at) {
    switch (*at) {
      case '%': field(*++at); break;
      case '{': left_out = !one_; break;
      case '|': left_out = one_; break;
      case '}': left_out = false; break;
      default:
        if (!left_out) out_.raw(Bytes(at, 1));
    }
  }
}

void Sentence::field(char name) {
  switch (name) {
    case 'r': return share(e_.refused);
    case 'f': return share(e_.failed);
    case 'v': return share(d_.voting);
    case 'w': return share(d_.watched);
    case 'o': return masters(d_.masters);
    case 'n': return masters(d_.their_masters);
    case 'x': return number(d_.their_max_ttl_ms);
    case 'y': return number(d_.max_ttl_ms);
    case 'q': return number(d_.quorum);
    case 'd': return number(e_.failed);
    case 'g': return time(e_.guard_ms, 99);
    case 't': return time(d_.to_go_ms, 99);
    case 'l': return time(e_.validity_ms, 0);
    case 's': return text_of(e_.err);
    case 'i': out_.raw(d_.their_name); return;
    case 'j': out_.raw(d_.our_name); return;
    case 'k': out_.escaped(bytes_of(d_.denied), key_shown); return;
    case 'h': out_.raw(d_.holder); return;
    default: break;
  }
  REDLOCK_ASSERT(name == 'a');
  out_.escaped(bytes_of(d_.address), address_shown);
}

// "1 of 3 masters"; "1 master" where the number of all is not known.
void Sentence::share(uint32_t n) {
  if (d_.masters != 0) out_.number(n).raw(" of ");
  masters(d_.masters != 0 ? d_.masters : n);
  one_ = n == 1;
}

// up: 99 rounds up to a tenth of a second, 0 rounds down.
void Sentence::time(int64_t ms, unsigned up) {
  const uint32_t n = static_cast<uint32_t>(ms);
  if (n < 1000) {
    out_.number(n).raw(" ms");
  } else {
    const size_t tenths = tenth(tenth(n + up)), whole = tenth(tenths);
    out_.number(whole).raw(".").number(tenths - 10 * whole).raw(" s");
  }
}

// Of a master, behind its address or its state.
void Sentence::reason(int err) {
  if (err != REDLOCK_E_FINGERPRINT) {
    text_of(err);
#ifdef REDLOCK_TLS
    const bool dated = err == REDLOCK_E_TLS_EXPIRED || err == REDLOCK_E_TLS_EARLY;
    if (dated && *d_.denied != '\0') return say(" (%k)");
#endif
    return say(err == REDLOCK_E_NOPERM && *d_.denied != '\0' ? ": its ACL needs ~%k" : "");
  }
  say("belongs to clients of another configuration");
  say(d_.their_masters == 0                                ? ""
      : d_.their_masters != d_.masters                     ? ": it has %n, ours has %o"
      : d_.their_max_ttl_ms != d_.max_ttl_ms               ? ": its max_ttl_ms is %x, ours is %y"
      : *d_.their_name == '\0' || *d_.our_name == '\0'     ? ": the names of the masters differ"
                                                           : ": its masters include %i, ours %j");
  say("; make the files alike, unless a change");
  say(" has left this client behind");  // the linker finds these words at the end of another sentence
}

// Which master said what: "10.0.0.12:6379: the connection broke".
void Sentence::blame(const char* before) {
  if (e_.master_err == 0) return;
  say(before);
  if (*d_.address != '\0') say(e_.master_err == REDLOCK_E_FINGERPRINT ? "%a " : "%a: ");
  reason(e_.master_err);
}

// ---- what an acquire waits for ------------------------------------------------------------------------------------

void Sentence::too_few() {
  if (d_.voting < d_.quorum) {
    say("%v {votes|vote}, %q {is|are} needed");
  } else {
    text_of(REDLOCK_E_NO_QUORUM);
  }
  blame("; ");
}

void Sentence::cause(int32_t cause) {
  switch (cause) {
    case REDLOCK_CAUSE_HELD:
      // No master refused, and none told when the key ends: the event does not say which of the two is the case.
      if (e_.refused == 0 && d_.to_go_ms <= 0) {
        return say("held or wanted by another client or another lock of this one");
      }
      say(*d_.holder != '\0' ? "held by %h" : "held by another client");
      // A round is decided before all masters have answered, and a part of them would look like a minority.
      if (e_.refused != 0 && e_.granted + e_.refused + e_.failed >= d_.masters) say(" on %r");
      if (d_.to_go_ms > 0) say(", %t unless renewed");
      return;
    case REDLOCK_CAUSE_GUARD:
      if (d_.watched != 0) {
        say("%w {is|are} new and watched");
      } else {
        text_of(REDLOCK_E_GUARD);
      }
      return say(e_.guard_ms > 0 ? ": %g to go" : "");
    case REDLOCK_CAUSE_CHANGE:
      return say("a change of the masters is under way, was given up, or has left this client behind");
    case REDLOCK_CAUSE_NEVER:
      if (e_.master_err == REDLOCK_E_LEFT) return text_of(REDLOCK_E_LEFT);
      return e_.master_err == REDLOCK_E_FINGERPRINT ? blame("") : too_few();
    case REDLOCK_CAUSE_TOO_FEW:
      return too_few();
    default:
      say("unknown");
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

void Sentence::failed() {
  const int32_t by_error = cause_of(e_.err);
  const int32_t told = e_.cause != REDLOCK_CAUSE_NONE ? e_.cause : by_error;
  const bool in_time = e_.err == REDLOCK_E_TIMEOUT && told != REDLOCK_CAUSE_NONE;
  say(in_time ? "not acquired in time: " : "not acquired: ");
  if (in_time || by_error != REDLOCK_CAUSE_NONE) return cause(told);
  text_of(e_.err);
  blame("; ");
}

void Sentence::lost() {
  say("lost: ");
  if (e_.failed + e_.refused == 0) return text_of(REDLOCK_E_LOST);
  if (e_.refused != 0) say("%r {lacks|lack} the key");
  if (e_.failed == 0) return;
  say(e_.refused != 0 ? "; %f could not extend it" : "%f could not extend it");
  blame("; ");
}

void Sentence::master() {
  if (*d_.name == '\0') {
    out_.raw("master ").number(e_.master);
  } else {
    out_.escaped(bytes_of(d_.name), name_shown);
    if (bytes_of(d_.name) != bytes_of(d_.address)) say(" %a");
  }
  out_.raw(": ").raw(state_name(e_.state));
  if (e_.err != 0) {
    say(": ");
    reason(e_.err);
  }
  if (e_.guard_ms > 0) say("; %g to go");
}

void Sentence::write() {
  switch (e_.type) {
    case REDLOCK_EV_ACQUIRED:
      return say("acquired, %l of validity");
    case REDLOCK_EV_FAILED:
      return failed();
    case REDLOCK_EV_RENEWED:
      return say("extended, %l of validity");
    case REDLOCK_EV_AT_RISK:
      say("not extended: %s");
      blame("; ");
      return say("; %l of validity left");
    case REDLOCK_EV_LOST:
      return lost();
    case REDLOCK_EV_RELEASED:
      return say("released");
    case REDLOCK_EV_MASTER:
      return master();
    case REDLOCK_EV_CLOSED:
      return say(e_.failed == 0 ? "closed" : "closed; %d {delete was|deletes were} not answered");
    case REDLOCK_EV_WAITING:
      return cause(e_.cause);
    default:
      say("an event of a later version");
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
    redlock::Sentence(out, *event, event->detail != nullptr ? *event->detail : redlock::no_detail).write();
  }
  if (!out.fits() && room > 0) redlock::end_in_dots(buf, room);
  return out.needed() - 1 < REDLOCK_TEXT_MAX ? out.needed() - 1 : REDLOCK_TEXT_MAX;
}
