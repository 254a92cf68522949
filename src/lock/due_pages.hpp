// SPDX-License-Identifier: MIT
//
// DuePages: when is a lock of the table due? Each page of 64 locks has one instant. No lock of the page is due before
// that instant. When the instant comes, the owner of the table goes through the page. So among thousands of held locks,
// of which one is due at any moment, finding this lock costs one comparison for each page, and 64 locks.
//
// An instant may be too early and is never too late: it only moves nearer, until the owner has gone through the page
// and sets the instant anew.
#pragma once
#include "base/time.hpp"
#include "base/types.hpp"

namespace redlock {

class DuePages {
 public:
  static constexpr unsigned page_locks = 64;
  static constexpr unsigned pages_of(unsigned locks) { return (locks + page_locks - 1) / page_locks; }

  // pages: pages_of(locks) of them.
  void init(Instant* pages, unsigned locks) {
    pages_ = pages;
    locks_ = locks;
    all_due(Instant::never());
  }

  void note(unsigned lock, Instant due) {
    REDLOCK_ASSERT(lock < locks_);
    bring_forward(pages_[lock / page_locks], due);
  }
  // Every page has to be gone through at `now`.
  void all_due(const Instant& now) {
    for (unsigned page = 0; page < pages(); ++page) pages_[page] = now;
  }

  unsigned pages() const { return pages_of(locks_); }
  Instant due(unsigned page) const { return pages_[page]; }
  // The owner is about to go through the page, and notes again what is still to come.
  void clear(unsigned page) { pages_[page] = Instant::never(); }
  unsigned begin(unsigned page) const { return page * page_locks; }
  unsigned end(unsigned page) const { return page + 1 < pages() ? begin(page + 1) : locks_; }

 private:
  Instant* pages_ = nullptr;
  unsigned locks_ = 0;
};

}  // namespace redlock
