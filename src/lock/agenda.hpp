// SPDX-License-Identifier: MIT
//
// Agenda: when a lock of the table is due. It keeps one instant for each page of 64 locks, before which nothing on
// that page is due, and the table's owner looks through a page when its instant comes. So a table of thousands of
// held locks, some of which is due at any moment, costs a look at each page and through one of them; a table of up to
// 64 is one page.
//
// An instant may be early, never late: it only moves nearer, and when the page has been looked through it is set anew.
#pragma once
#include "base/time.hpp"
#include "base/types.hpp"

namespace redlock {

class Agenda {
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
    Instant& page = pages_[lock / page_locks];
    page = earlier(page, due);
  }
  // Every page is to be looked through.
  void all_due(Instant now) {
    for (unsigned page = 0; page < pages(); ++page) pages_[page] = now;
  }

  unsigned pages() const { return pages_of(locks_); }
  Instant due(unsigned page) const { return pages_[page]; }
  // The page is about to be looked through: what is still to come is noted anew.
  void clear(unsigned page) { pages_[page] = Instant::never(); }
  unsigned begin(unsigned page) const { return page * page_locks; }
  unsigned end(unsigned page) const { return page + 1 < pages() ? begin(page + 1) : locks_; }

 private:
  Instant* pages_ = nullptr;
  unsigned locks_ = 0;
};

}  // namespace redlock
