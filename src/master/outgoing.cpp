// SPDX-License-Identifier: MIT
#include "master/outgoing.hpp"

#include "resp/writer.hpp"

namespace redlock {

void Outgoing::send(Bytes words, Request::Kind kind, const Instant& now) {
  tx.append(words);
  fifo.push_own(kind, now);
}

void Outgoing::append_word(Bytes word) {
  char text[16];
  resp::Writer out(text, sizeof text);
  tx.append(out.bulk_header(word.size).written());
  tx.append(word);
  tx.append("\r\n");
}

void Outgoing::append_reference(Bytes first, Bytes second) {
  char text[16];
  resp::Writer out(text, sizeof text);
  tx.append(out.bulk_header(first.size + second.size).written());
  tx.reference(first);
  tx.reference(second);
  tx.append("\r\n");
}

void Outgoing::append_script(const Command& command) {
  REDLOCK_ASSERT(command.script() != nullptr);
  REDLOCK_ASSERT(tx.fits(0, references_max));
  tx.reference(command.script()->common);
  tx.reference(command.script()->body);
  tx.take(command.tail());
}

}  // namespace redlock
