// SPDX-License-Identifier: MIT
//
// Shared: commands that several masters are told, each written once. Only the guard's seal differs from master to
// master. The command leaves a gap for the seal, and each master's own seal is written into the gap just before the
// bytes leave for that master (Post::output).
//
// The bytes of the commands stand one behind the other, so what one master is told in a turn is usually one run. The
// list of the commands grows towards the bytes, from the end of the same memory. The whole memory is free again when no
// connection refers to a command any more. That is so after each turn: a slow connection's commands are taken back, and
// the oldest of them, which may have been begun, moves into the connection's own buffer (Tx::keep).
#pragma once
#include "base/masters.hpp"
#include "base/types.hpp"

namespace redlock {

class Shared {
 public:
  struct Command {
    uint32_t end;   // offset behind the command's last byte
    uint16_t seal;  // the gap begins so many bytes before `end`; 0: there is no gap
    Masters to;     // the masters that are told
  };

  // memory: aligned for Command.
  void init(char* memory, size_t size) {
    memory_ = memory;
    room_ = size / sizeof(Command) * sizeof(Command);
    list_ = reinterpret_cast<Command*>(memory + room_);
  }

  // The memory that a command of so many bytes takes, with its place in the list.
  static constexpr size_t size_of(size_t bytes) { return bytes + sizeof(Command); }
  bool has_room(size_t size) const { return room_ >= size; }
  Space space() { return {memory_ + tail_, room_ > sizeof(Command) ? room_ - sizeof(Command) : 0}; }
  // What was written to the front of space() is a command for these masters.
  void add(size_t size, size_t seal, Masters to) {
    REDLOCK_ASSERT(size != 0);
    REDLOCK_ASSERT(has_room(size_of(size)));
    tail_ += static_cast<uint32_t>(size);
    room_ -= size + sizeof(Command);
    ++count_;
    (*this)[count_ - 1] = {tail_, static_cast<uint16_t>(seal), to};
    common_ = count_ == 1 ? to : common_ & to;
    if (seal != 0) seals_ = true;
    if (size > longest_) longest_ = static_cast<uint32_t>(size);
  }

  unsigned count() const { return count_; }
  Command& operator[](unsigned i) { return list_[-1 - static_cast<int>(i)]; }
  const Command& operator[](unsigned i) const { return list_[-1 - static_cast<int>(i)]; }
  // The commands from `first` to before `end`, one run.
  Bytes run(unsigned first, unsigned end) const {
    const size_t at = begin(first);
    return Bytes(memory_ + at, (*this)[end - 1].end - at);
  }
  // All from the command `first` on, without its first bytes.
  Bytes rest(unsigned first, size_t without) const {
    const size_t at = begin(first) + without;
    return Bytes(memory_ + at, tail_ - at);
  }
  // Is every command for this master?
  bool all_for(MasterIndex m) const { return common_.has(m); }
  size_t longest() const { return longest_; }
  bool has_seals() const { return seals_; }
  bool is_used() const { return users_ != 0; }
  // Writes a master's seal into its commands from `first` on.
  void write_seals(MasterIndex m, unsigned first, Bytes seal) {
    for (unsigned i = first; i < count_; ++i) {
      const Command& command = (*this)[i];
      if (command.seal != 0 && command.to.has(m)) memcpy(memory_ + command.end - command.seal, seal.data, seal.size);
    }
  }

  // This master is not told that command after all.
  void take_back(unsigned i, MasterIndex m) {
    (*this)[i].to.remove(m);
    common_.remove(m);
  }

  // A connection begins to refer to commands, or refers to none any more.
  void hold() { ++users_; }
  void let_go() {
    REDLOCK_ASSERT(users_ != 0);
    if (--users_ != 0) return;
    room_ += tail_ + count_ * sizeof(Command);
    tail_ = count_ = longest_ = 0;
    seals_ = false;
  }

 private:
  size_t begin(unsigned i) const { return i == 0 ? 0 : (*this)[i - 1].end; }

  char* memory_ = nullptr;
  Command* list_ = nullptr;
  size_t room_ = 0;
  uint32_t tail_ = 0;
  uint32_t count_ = 0;
  uint32_t longest_ = 0;
  uint16_t users_ = 0;
  Masters common_;  // masters that every command is for
  bool seals_ = false;
};

}  // namespace redlock
