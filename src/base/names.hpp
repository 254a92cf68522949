// SPDX-License-Identifier: MIT
//
// Names: the resources of one lock. A lock has one resource, or several that are taken all or none. The names are
// sorted and different, and their bytes lie one behind the other.
#pragma once
#include "base/types.hpp"

namespace redlock {

class Names {
 public:
  static constexpr unsigned max = REDLOCK_RESOURCES_PER_LOCK_MAX;
  static_assert(max == 4 && REDLOCK_RESOURCE_MAX <= UINT8_MAX);

  constexpr Names() = default;
  constexpr Names(Bytes one) : data_(one.data), size_{static_cast<uint8_t>(one.size), 0, 0, 0} {}

  template <size_t N>
  constexpr Names(const char (&literal)[N]) : Names(Bytes(literal)) {}

  // Copies names into the caller's memory, which must have room for all of them.
  void assign(char* memory, const Bytes* names, unsigned count) {
    *this = Names();
    data_ = memory;
    for (unsigned i = 0; i < count; ++i) {
      REDLOCK_ASSERT(names[i].size > 0);
      REDLOCK_ASSERT(names[i].size <= REDLOCK_RESOURCE_MAX);
      REDLOCK_ASSERT(i == 0 || less(names[i - 1], names[i]));
      size_[i] = static_cast<uint8_t>(names[i].size);
      memcpy(memory, names[i].data, names[i].size);
      memory += names[i].size;
    }
  }
  void assign(char* memory, const Names& names) {
    memcpy(memory, names.data_, names.bytes());
    *this = names;
    data_ = memory;
  }

  unsigned count() const { return size_[1] == 0 ? 1 : size_[2] == 0 ? 2 : size_[3] == 0 ? 3 : 4; }
  size_t bytes() const { return size_t{size_[0]} + size_[1] + size_[2] + size_[3]; }
  Bytes first() const { return Bytes(data_, size_[0]); }
  Bytes operator[](unsigned n) const {
    const char* at = data_;
    for (unsigned i = 0; i < n; ++i) at += size_[i];
    return Bytes(at, size_[n]);
  }

  // for (Bytes name : names)
  struct Iterator {
    const char* at;
    const uint8_t* size;
    Bytes operator*() const { return Bytes(at, *size); }
    Iterator& operator++() { return at += *size++, *this; }
    friend bool operator!=(Iterator a, Iterator b) { return a.size != b.size; }
  };
  Iterator begin() const { return {data_, size_}; }
  Iterator end() const { return {nullptr, size_ + count()}; }

  bool has(Bytes name) const {
    for (Bytes one : *this) {
      if (one == name) return true;
    }
    return false;
  }

  static bool less(Bytes a, Bytes b) {
    const int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order != 0 ? order < 0 : a.size < b.size;
  }
  // Sorts the names. False: a name occurs twice.
  static bool sort(Bytes* names, unsigned count) {
    for (unsigned i = 1; i < count; ++i) {
      for (unsigned at = i; at > 0 && !less(names[at - 1], names[at]); --at) {
        if (names[at - 1] == names[at]) return false;
        const Bytes later = names[at - 1];
        names[at - 1] = names[at];
        names[at] = later;
      }
    }
    return true;
  }

 private:
  const char* data_ = nullptr;
  uint8_t size_[max] = {};
};

}  // namespace redlock
