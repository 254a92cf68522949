// SPDX-License-Identifier: MIT
//
// DuePages: when a lock of the table is due. There is one instant for each page of 64 locks; nothing on the page is due
// before that instant. The table's owner looks through a page when the page's instant comes. So in a table of thousands
// of held locks, of which one is due at any moment, finding that lock costs a look at each page and at 64 locks.
//
// An instant may be early and is never late: it only moves nearer, until the page has been looked through and the
// instant is set anew.
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
