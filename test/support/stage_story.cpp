// SPDX-License-Identifier: MIT
//
// The story of a stage: what is written down, in words, and the promises that it watches.
#include "stage.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "stage_words.hpp"

namespace redlock::test {

using namespace stage_words;

// ---- the story ------------------------------------------------------------------------------------------------

void Stage::learn_value(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.size() < 42 || word[40] != ':' || word.find_first_not_of("0123456789abcdef") != 40) continue;
    const std::string owner = word.substr(41);
    if (values_.count(word) == 0) values_[word] = owner + "." + std::to_string(++value_count_[owner]);
  }
}

std::string Stage::label_of(const std::string& value) const {
  const auto found = values_.find(value);
  return found != values_.end() ? found->second : value;
}

namespace {

// "run id:replication id:quarantine id", 16 digits each.
bool is_seal(const std::string& word) {
  return word.size() == 50 && word[16] == ':' && word[33] == ':' &&
         word.find_first_not_of("0123456789abcdef:") == std::string::npos;
}

// "OK", said by all, or "OK; nil; OK, held back", said by one each.
std::string joined(const std::vector<std::string>& answers) {
  const std::set<std::string> different(answers.begin(), answers.end());
  std::string text;
  for (const std::string& answer : answers) {
    text += (text.empty() ? "" : "; ") + answer;
    if (different.size() == 1) break;
  }
  return text;
}

}  // namespace

std::string Stage::in_words(const std::vector<std::string>& words) const {
  static const std::map<std::string, std::string> names = {
      {sha_of(release_script), "release"}, {text_of(release_script), "release"}, {text_of(look_script), "look"},
      {sha_of(extend_script), "extend"},   {text_of(extend_script), "extend"},   {text_of(reading_script), "reading"},
      {sha_of(acquire_script), "acquire"}, {text_of(acquire_script), "acquire"}, {text_of(record_script), "record"},
      {sha_of(token_script), "token"},     {text_of(token_script), "token"},     {text_of(visit_script), "visit"}};
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[0] == "PING" && i == 1) break;
    const bool script_word = words[0] == "EVALSHA" || words[0] == "EVAL";
    if (i == 2 && (text == "EVAL reading" || text == "EVAL visit")) return text;
    if (i == 2 && text == "EVAL record") return text + (words.at(words.size() - 2).empty() ? " quarantine" : " seal");
    if (script_word && i == 2) continue;  // the number of keys
    const auto called = script_word ? names.find(words[1]) : names.end();
    // The library's own keys, and the seal.
    if (i > 2 && called != names.end() && (words[i].compare(0, 8, "redlock:") == 0 || words[i].empty())) continue;
    if (i > 0) text += " ";
    const auto script = names.find(words[i]);
    const bool secret = words[0] == "AUTH" ? i + 1 == words.size() && i > 0
                                           : words[0] == "HELLO" && i == 4 && words.size() == 7;
    text += secret ? "***" : is_seal(words[i]) ? "seal" : script != names.end() ? script->second : label_of(words[i]);
  }
  return text;
}

void Stage::note(const std::string& text) { story_.push_back({now_, text, {}, "", {}}); }

// What several masters do in turn is one line, unless their answers differ and would make it too long.
void Stage::write_down(const std::string& before, unsigned number, const std::string& after,
                       const std::string& answer) {
  for (size_t i = story_.size(); i-- > 0 && story_[i].at == now_;) {
    Line& last = story_[i];
    const bool next = !last.masters.empty() && last.masters.back() < number;
    if (next && last.before == before && last.after == after) {
      std::vector<std::string> answers = last.answers;
      answers.push_back(answer);
      if (const size_t size = joined(answers).size(); size != answer.size() && after.size() + size > 90) break;
      last.masters.push_back(number);
      return last.answers.swap(answers);
    }
    const bool aside = last.after.compare(0, 5, "look ") == 0 || last.after.find("changed") != std::string::npos;
    if (!aside) break;
  }
  story_.push_back({now_, before, {number}, after, {answer}});
}

bool Stage::forget_story(size_t from, const std::string& gateway) {
  for (size_t i = from; i < story_.size(); ++i) {
    if (story_[i].before.compare(0, gateway.size(), gateway) != 0) return false;
  }
  story_.resize(from);
  return true;
}

std::string Stage::take_story() {
  std::string text;
  for (const Line& line : story_) {
    std::string row = ms_text(line.at);
    row += std::string(row.size() < 8 ? 8 - row.size() : 1, ' ') + line.before;
    for (const unsigned m : line.masters) row += " " + std::to_string(m);
    if (!line.after.empty()) row += "  " + line.after;
    const std::string answers = joined(line.answers);
    if (!answers.empty()) row += ": " + answers;
    text += row + "\n";
  }
  story_.clear();
  return text;
}

std::vector<Executed> Stage::executed(const std::string& first_words, unsigned number) const {
  std::vector<Executed> found;
  for (const Executed& e : executed_) {
    const bool named = number == 0 || e.master == number;
    if (named && e.text.compare(0, first_words.size(), first_words) == 0) found.push_back(e);
  }
  return found;
}

std::map<unsigned, std::string> Stage::holders(const std::string& key) const {
  std::map<unsigned, std::string> found;
  for (unsigned m = 1; m <= masters(); ++m) {
    if (const auto entry = master(m).redis.peek(key, now_)) found[m] = label_of(entry->value);
  }
  return found;
}

std::string Stage::keys(unsigned number) const {
  const RedisDouble& redis = master(number).redis;
  std::string text;
  for (const std::string& key : redis.keys(now_)) {
    const RedisDouble::Entry entry = *redis.peek(key, now_);
    text += (text.empty() ? "" : ", ") + key + "=" + (entry.hash ? "(hash)" : label_of(entry.value));
    if (entry.when_ms != 0) text += " for " + std::to_string(entry.when_ms - redis.wall_ms(now_)) + " ms";
  }
  return text.empty() ? "no key" : text;
}

// Would a check pass now? Read without the mark that a failed check leaves.
bool Gateway::could_act(uint64_t handle) const {
  const ValidityCell* cell = client_->cell(handle);
  if (cell == nullptr || jumped_) return false;
  const ValidityCell::Snapshot seen = cell->read();
  return seen.generation == Table::generation(handle) && !cell->expired(seen.generation) &&
         local(stage_.now_) < seen.valid_until;
}

void Stage::check_exclusion() {
  std::map<std::string, std::string> held;
  for (const auto& gateway : gateways_) {
    for (const auto& [label, handle] : gateway->handles_) {
      if (!gateway->could_act(handle.id)) continue;
      const std::string who = gateway->name + "'s " + label;
      for (const std::string& key : handle.keys) {
        const auto [other, first] = held.insert({key, who});
        if (first || !accused_.insert(other->second + " " + who).second) continue;
        ++violations_;
        note("VIOLATION: " + key + " is held as " + other->second + " and as " + who);
      }
    }
  }
}

}  // namespace redlock::test
