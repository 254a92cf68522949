// SPDX-License-Identifier: MIT
#include "site/inquiry.hpp"

#include "base/digits.hpp"
#include "resp/writer.hpp"

namespace redlock {
namespace {

redlock_item_t* first_item(Space space) {
  const size_t skipped = -reinterpret_cast<uintptr_t>(space.data) % alignof(redlock_item_t);
  return reinterpret_cast<redlock_item_t*>(space.data + (skipped < space.size ? skipped : space.size));
}

uint32_t type_of(resp::Type type) {
  switch (type) {
    case resp::Type::null:
      return REDLOCK_ITEM_NULL;
    case resp::Type::integer:
    case resp::Type::boolean:
      return REDLOCK_ITEM_INTEGER;
    case resp::Type::error:
      return REDLOCK_ITEM_ERROR;
    case resp::Type::simple:
    case resp::Type::string:
    case resp::Type::real:
    case resp::Type::big_number:
      return REDLOCK_ITEM_TEXT;
    default:
      return REDLOCK_ITEM_LIST;
  }
}

bool has_text(const redlock_item_t& item) {
  return item.type == REDLOCK_ITEM_TEXT || item.type == REDLOCK_ITEM_ERROR;
}

}  // namespace

Inquiry::Inquiry(redlock_question_t* questions, unsigned count, Space replies, Space room)
    : Listener{[](Listener& self, const resp::Item& item) { static_cast<Inquiry&>(self).take(item); }},
      questions_(questions),
      count_(count),
      room_(room),
      item_(first_item(replies)),
      text_(replies.data + replies.size) {
  clear(questions, count);
}

void Inquiry::clear(redlock_question_t* questions, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    questions[i].err = 0;
    questions[i].items = questions[i].rtt_us = 0;
    questions[i].asked_ns = 0;
    questions[i].item = nullptr;
  }
}

// ---- the questions --------------------------------------------------------------------------------------------

uint64_t Inquiry::encoded_size(const redlock_question_t& question) {
  constexpr uint64_t header = 1 + 10 + 2;  // a type, the digits of a 32-bit number, CR LF
  uint64_t size = header;
  for (uint32_t i = 0; i < question.words; ++i) size += header + question.word[i].size + 2;
  return size;
}

Bytes Inquiry::encode(const redlock_question_t& question) const {
  resp::Writer out(room_.data, room_.size);
  out.array(question.words);
  for (uint32_t i = 0; i < question.words; ++i) {
    out.bulk(Bytes(static_cast<const char*>(question.word[i].data), question.word[i].size));
  }
  REDLOCK_ASSERT(out.fits());
  return out.written();
}

void Inquiry::step(Instant now) {
  const Session& session = client_->session(0);
  if (waits_ && !ended_ && !session.asked()) return finish(session.reason());  // the connection broke
  if (waits_ && ended_) end_reply(now);
  if (over_ || waits_) return;  // a session that waits too long closes the connection
  if (next_ == count_) return finish(0);
  if (client_->ask(0, encode(questions_[next_]), nullptr, 0, *this, now)) {
    asked_at_ = now;
    questions_[next_].asked_ns = now.ns();
    texts_before_ = text_;
    waits_ = true;
    ended_ = false;
    questions_[next_].err = 0;
    questions_[next_].item = item_;
  } else if (session.tried() && session.state() == Session::State::down) {
    finish(session.reason());
  }
}

void Inquiry::finish(int result) {
  over_ = true;
  result_ = result;
  if (waits_) drop();
  for (unsigned i = next_; i < count_; ++i) questions_[i].err = result;
}

// ---- the replies ----------------------------------------------------------------------------------------------

void Inquiry::take(const resp::Item& item) {
  ended_ = item.last;
  redlock_question_t& question = questions_[next_];
  if (question.err == REDLOCK_E_TOOSMALL) return;
  if (!(part_ || open_item(item)) || !add_text(item.text)) {
    drop();
    question.err = REDLOCK_E_TOOSMALL;
    return;
  }
  part_ = item.part;
}

bool Inquiry::open_item(const resp::Item& item) {
  if (static_cast<size_t>(text_ - reinterpret_cast<char*>(item_)) < sizeof *item_) return false;
  *item_ = {type_of(item.type), item.depth, item.integer, ""};
  if (has_text(*item_)) {
    item_->number = 0;
    item_->text = text_;
  }
  ++item_;
  ++questions_[next_].items;
  return true;
}

// The text of the last item, or its next part, which stands behind the parts before.
bool Inquiry::add_text(Bytes text) {
  redlock_item_t& item = item_[-1];
  if (!has_text(item)) return true;
  const size_t before = static_cast<size_t>(item.number);
  const size_t more = text.size + (part_ ? 0 : 1);  // the NUL is there already
  if (static_cast<size_t>(text_ - reinterpret_cast<char*>(item_)) < more) return false;
  memmove(text_ - more, text_, before);
  text_ -= more;
  if (text.size != 0) memcpy(text_ + before, text.data, text.size);
  text_[before + text.size] = '\0';
  item.number = static_cast<int64_t>(before + text.size);
  item.text = text_;
  return true;
}

// Forgets the reply that is being read.
void Inquiry::drop() {
  redlock_question_t& question = questions_[next_];
  item_ -= question.items;
  text_ = texts_before_;
  question.items = 0;
  question.item = nullptr;
  part_ = false;
}

void Inquiry::end_reply(Instant now) {
  redlock_question_t& question = questions_[next_];
  question.rtt_us = static_cast<uint32_t>((now.ns() - asked_at_.ns()) / 1'000);
  if (question.items != 0 && question.item->type == REDLOCK_ITEM_ERROR) {
    question.err = classify_error(Bytes(question.item->text, static_cast<size_t>(question.item->number)));
  }
  waits_ = false;
  ++next_;
}

}  // namespace redlock
