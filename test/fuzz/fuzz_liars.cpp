// SPDX-License-Identifier: MIT
//
// Three, five or seven masters, of which as many lie as may be lost. A liar executes what it is asked, and then changes
// each of its replies, or each behind the greeting: numbers become huge, a grant becomes a refusal, ids those of
// another master; words are cut off, doubled, left out, or any bytes. The input chooses; when it is used up, noise that
// follows from it does. Each input is played twice: in the clear, and behind an engine of TLS that cuts what comes and
// goes into pieces of any length.
//
// Whatever is said: the client comes to rest; an acquire ends in time; who acquires has the keys of all but the liars
// that it needs; numbers are left for the tokens to come; two gateways that hear only the truth get their locks beside
// the liars, or learn of a number that too few honest masters have; and close comes to an end.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "bare_driver.hpp"
#include "input.hpp"
#include "lock/fence.hpp"
#include "support/stage.hpp"

namespace redlock::test {
namespace {

using Words = std::vector<std::string>;

const char* const numbers[] = {"0",
                               "1",
                               "-1",
                               "4294967296",
                               "281474976710655",
                               "281474976710657",
                               "281474993487873",
                               "9007199254740993",
                               "9223372036854775806",
                               "9223372036854775807",
                               "18446744073709551615",
                               "99999999999999999999"};
const char* const sayings[] = {"+OK\r\n",
                               ":1\r\n",
                               ":0\r\n",
                               ":-1\r\n",
                               "_\r\n",
                               "$-1\r\n",
                               "*0\r\n",
                               "-NOSCRIPT No\r\n",
                               "-READONLY You\r\n",
                               "-LOADING Redis\r\n",
                               "-OOM command\r\n",
                               "-BUSY Redis\r\n",
                               "-NOAUTH Authentication\r\n",
                               "-WRONGTYPE Operation\r\n",
                               "-ERR max number of clients\r\n",
                               ">2\r\n$10\r\ninvalidate\r\n_\r\n",
                               "$536870912\r\nx",
                               "*1000000\r\n",
                               "%1\r\n*1\r\n*1\r\n"};

class World {
 public:
  World(const uint8_t* data, size_t size, bool secured) : input_(data, size), secured_(secured) {
    for (size_t i = 0; i < size; ++i) noise_ = (noise_ ^ data[i]) * 1099511628211u;
  }

  void run() {
    const unsigned masters = 3 + 2 * pick(3);
    liars_ = masters / 2;
    first_liar_ = 1 + pick(masters);
    polite_ = pick(4) != 0;  // the greeting is honest, or the liar would never be heard
    const bool guard = pick(4) == 0;
    Stage stage(masters);
    stage_ = &stage;
    if (secured_) stage.piece = [this] { return engine_.piece(); };
    stage.lie = [this](unsigned m, const Words& words, std::string& reply) {
      if (lies(m) && !(polite_ && greets(words))) reply = lie(m, words, reply);
    };
    stage.on_event = [this](Gateway&, const std::string& label, const redlock_event_t& event) { heard(label, event); };
    const auto settings = [&](Settings& s) { s.guard = guard ? GuardMode::strict : GuardMode::off; };
    for (const char* name : {"a", "b"}) stage.add(name, settings, 0, true, guard);
    for (unsigned i = 0; i < 40; ++i) step(stage.gateway(pick(2) == 0 ? "a" : "b"));
    stage.advance_ms(5000);
    for (const std::string& label : labels_) {
      Gateway& gateway = stage.gateway(label.substr(0, 1));
      require(!gateway.outcome(label).empty(), "an acquire ends in time");
      gateway.release(label);
    }
    // With the guard a liar also chooses whose run id it shows, and so costs another master's vote.
    if (!guard) honest_majority_locks();
    for (const char* name : {"a", "b"}) stage.gateway(name).close(1000);
    stage.advance_ms(10'000);
    for (const char* name : {"a", "b"}) require(stage.gateway(name).closed(), "close comes to an end");
  }

 private:
  unsigned pick(unsigned n) {
    if (!input_.empty()) return input_.byte() % n;
    noise_ = noise_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<unsigned>(noise_ >> 33) % n;
  }
  bool lies(unsigned m) const {
    const unsigned masters = stage_->masters();
    return (m + masters - first_liar_) % masters < liars_;
  }
  static bool greets(const Words& words) {
    return words[0] == "HELLO" || words[0] == "CLIENT" || words[0] == "SCRIPT" || words[0] == "PING";
  }

  void step(Gateway& gateway) {
    Options options = Gateway::options(200 + 100 * pick(8), static_cast<int32_t>(20 * pick(16)));
    options.fenced = pick(2) == 0;
    options.renew = pick(2) == 0;
    switch (pick(4)) {
      case 0:
      case 1: {
        const std::string label = gateway.name + std::to_string(labels_.size());
        if (gateway.acquire(pick(4) == 0 ? "bus+valve" : "bus", options, label) == 0) labels_.push_back(label);
        break;
      }
      case 2:
        for (const std::string& label : labels_) {
          if (label[0] == gateway.name[0] && gateway.holds(label)) gateway.release(label);
        }
        break;
      default:
        if (pick(4) == 0) stage_->reset(1 + pick(stage_->masters()), Unread::kept);
    }
    stage_->advance_ms(1 + pick(64));
  }

  void heard(const std::string& label, const redlock_event_t& event) {
    if (event.type != REDLOCK_EV_ACQUIRED || label.empty()) return;
    unsigned honest = 0;
    for (const auto& [m, holder] : stage_->holders("bus")) honest += !lies(m) && holder[0] == label[0];
    require(honest >= stage_->masters() / 2 + 1 - liars_, "one vote for each master, and none for nothing");
    // Each acquire may raise the numbers by a step, and so may each try of it.
    if (event.token != 0) require(event.token < uint64_t{1} << 49, "there are numbers left");
  }

  void honest_majority_locks() {
    for (unsigned i = 0; i < 4; ++i) {
      Gateway& gateway = stage_->gateway(i % 2 == 0 ? "a" : "b");
      Options options = Gateway::options(1000, 20'000);
      options.fenced = i >= 2;
      const std::string label = gateway.name + "-last" + std::to_string(i);
      require(gateway.acquire("bus", options, label) == 0, "there is room for an acquire");
      for (unsigned ms = 0; ms < 25'000 && gateway.outcome(label).empty(); ++ms) stage_->advance_ms(1);
      if (options.fenced && gateway.outcome(label) == "FAILED FENCE_RANGE" && honest_are_apart()) continue;
      require(gateway.outcome(label) == "ACQUIRED", "an honest majority locks");
      gateway.release(label);
      stage_->advance_ms(100);
    }
  }

  // The price of Belief (lock/fence.hpp): too few honest masters have the latest number, and it is a large one.
  bool honest_are_apart() {
    std::vector<uint64_t> kept_numbers;
    for (unsigned m = 1; m <= stage_->masters(); ++m) {
      const RedisDouble::Entry* const kept = stage_->redis(m).peek("redlock::fence", stage_->now());
      if (lies(m) || kept == nullptr || kept->fields.count("bus") == 0) continue;
      kept_numbers.push_back(std::strtoull(kept->fields.at("bus").c_str(), nullptr, 10));
    }
    uint64_t top = 0;
    for (const uint64_t n : kept_numbers) top = std::max(top, n);
    const auto near = [&](uint64_t n) { return n + Belief::step >= top; };
    return top > Belief::free && std::count_if(kept_numbers.begin(), kept_numbers.end(), near) <= liars_;
  }

  // ---- the lies
  std::string lie(unsigned m, const Words& words, const std::string& truth) {
    switch (pick(10)) {
      case 0:
      case 1:
        if (words.size() == 10) return number(words);
        return renumbered(truth);
      case 2:
        return sayings[pick(sizeof sayings / sizeof *sayings)];
      case 3:
        return truth + truth;
      case 4:
        return truth.substr(0, pick(64) % (truth.size() + 1));
      case 5:
        return "";
      case 6: {
        std::string any;
        for (unsigned n = pick(32); n > 0; --n) any += static_cast<char>(pick(256));
        return any;
      }
      case 7:
        return impersonated(1 + m % stage_->masters(), truth);
      case 8:
        return ">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nbus\r\n" + truth;
      default:
        return truth.find("+OK") == 0 || truth.find(":1") == 0 ? "_\r\n" : words[0] == "SET" ? "+OK\r\n" : ":1\r\n";
    }
  }
  std::string number(const Words& words) {
    static const char* const forms[] = {"known ", "hint ", "ack ", "held known ", "held hint "};
    const unsigned form = pick(5);
    std::string text = std::string(forms[form]) + (pick(8) == 0 ? words.back() : numbers[pick(12)]);
    if (form < 2) text += std::string(" ") + numbers[pick(12)];
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  }
  std::string renumbered(const std::string& truth) {
    std::string out;
    for (size_t i = 0; i < truth.size(); ++i) {
      out += truth[i];
      const bool begins = (truth[i] == ':' || truth[i] == '$') && i + 1 < truth.size() && truth[i + 1] != '\r';
      if (!begins || pick(3) != 0) continue;
      out += numbers[pick(12)];
      while (i + 1 < truth.size() && truth[i + 1] >= '0' && truth[i + 1] <= '9') ++i;
    }
    return out;
  }
  std::string impersonated(unsigned other, std::string reply) {
    const std::string mark = "$40\r\n";  // a reading begins with the two ids
    const size_t run = reply.find(mark), line = reply.find(mark, run + 1);
    if (run != std::string::npos) reply.replace(run + 5, 40, stage_->redis(other).run_id());
    if (run != std::string::npos && line != std::string::npos) {
      reply.replace(line + 5, 40, stage_->redis(other).replid());
    }
    return reply;
  }

  Input input_;
  bool secured_;
  StandInEngine engine_{1};
  uint64_t noise_ = 1469598103934665603u;
  Stage* stage_ = nullptr;
  unsigned liars_ = 0;
  unsigned first_liar_ = 1;
  bool polite_ = false;
  std::vector<std::string> labels_;
};

}  // namespace
}  // namespace redlock::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  redlock::test::World(data, size, false).run();
  redlock::test::World(data, size, true).run();
  return 0;
}
