// SPDX-License-Identifier: MIT
//
// Plays the scenarios: files of commands, a line "----", and what is to come of them, in the manner of the
// interaction tests of etcd's raft. test/scenario/README.md tells the commands. With --rewrite the files get what
// came of them; read the difference before you believe it.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/stage.hpp"

namespace redlock::test {
namespace {

using Words = std::vector<std::string>;

struct Mistake {
  std::string text;
};

// Blanks separate; "..." holds words together and knows \r, \n, \" and \\.
Words split(const std::string& line) {
  Words words;
  std::string word;
  bool quoted = false, any = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '\\' && i + 1 < line.size()) {
      const char next = line[++i];
      word += next == 'r' ? '\r' : next == 'n' ? '\n' : next;
    } else if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (any || !word.empty()) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
    }
  }
  if (any || !word.empty()) words.push_back(word);
  return words;
}

// "a,b" and "l1..3": what a list stands for, in order.
Words listed(const std::string& list) {
  Words members;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) {
    const size_t dots = part.find("..");
    if (dots == std::string::npos) {
      members.push_back(part);
      continue;
    }
    const size_t first = part.find_last_not_of("0123456789", dots - 1) + 1;
    const unsigned long last = std::stoul(part.substr(dots + 2));
    for (unsigned long i = std::stoul(part.substr(first)); i <= last; ++i) {
      members.push_back(part.substr(0, first) + std::to_string(i));
    }
  }
  return members;
}

double to_ms(const std::string& text) {
  size_t used = 0;
  const double number = std::stod(text, &used);
  const std::string unit = text.substr(used);
  if (unit == "ms" || unit.empty()) return number;
  if (unit == "s") return number * 1000;
  if (unit == "us") return number / 1000;
  throw Mistake{"no time: " + text};
}

std::string result_name(int result) {
  const std::string name = redlock_err_name(result);
  return name.substr(name.compare(0, 10, "REDLOCK_E_") == 0 ? 10 : 8);
}

// What stands behind the fixed words of a command: key=value, or a bare word.
class Extras {
 public:
  Extras(const Words& words, size_t from) {
    for (size_t i = from; i < words.size(); ++i) {
      const size_t equals = words[i].find('=');
      values_[words[i].substr(0, equals)] = equals == std::string::npos ? "" : words[i].substr(equals + 1);
    }
  }

  bool take(const std::string& key, std::string& value) {
    const auto found = values_.find(key);
    if (found == values_.end()) return false;
    value = found->second;
    values_.erase(found);
    return true;
  }
  bool take(const std::string& key) {
    std::string value;
    return take(key, value);
  }
  std::string text(const std::string& key, const std::string& otherwise) {
    std::string value;
    return take(key, value) ? value : otherwise;
  }
  uint32_t ms(const std::string& key, uint32_t otherwise) {
    std::string value;
    return take(key, value) ? static_cast<uint32_t>(to_ms(value)) : otherwise;
  }
  void done() const {
    if (!values_.empty()) throw Mistake{"unknown: " + values_.begin()->first};
  }

 private:
  std::map<std::string, std::string> values_;
};

class Player {
 public:
  void play(const std::string& line);
  std::string take_output();

 private:
  struct Hook {
    std::string gateway, event, lock, command;
  };

  void perform_each(Words words, size_t list = 1);
  void perform(const Words& words);
  bool call_api(const Words& words);
  bool bend_process(const Words& words);
  void add_client(const Words& words);
  std::string acquire(const Words& words);
  void hold(const Words& words);
  void master(const Words& words);
  bool set_knob(RedisDouble& redis, const Words& words);
  bool touch_keys(unsigned number, const Words& words);
  void status(const Words& words);
  void keys();
  void heard(Gateway& gateway, const std::string& label, const redlock_event_t& event);
  Gateway& who(const Words& words) { return stage().gateway(words.at(1)); }
  void answered(int result) {
    if (result != 0) stage_->note("-> " + result_name(result));
  }
  Stage& stage() {
    if (stage_ == nullptr) throw Mistake{"first say how many masters there are"};
    return *stage_;
  }

  std::unique_ptr<Stage> stage_;
  std::vector<Hook> hooks_;
};

void Player::play(const std::string& line) {
  const Words words = split(line);
  try {
    perform_each(words);
  } catch (const Mistake& mistake) {
    throw Mistake{line + ": " + mistake.text};
  } catch (const std::exception&) {
    throw Mistake{line + ": a word is missing or wrong"};
  }
}

std::string Player::take_output() {
  const std::string story = stage_ != nullptr ? stage_->take_story() : "";
  return story.empty() ? "ok\n" : story;
}

// The two words behind the verb may be lists: who, and what.
void Player::perform_each(Words words, size_t list) {
  if (list > 2 || list >= words.size()) return perform(words);
  for (const std::string& member : listed(words[list])) {
    words[list] = member;
    perform_each(words, list + 1);
  }
}

void Player::perform(const Words& words) {
  const std::string& verb = words.at(0);
  if (verb == "masters") {
    stage_ = std::make_unique<Stage>(static_cast<unsigned>(std::stoul(words.at(1))));
    stage_->on_event = [this](Gateway& g, const std::string& label, const redlock_event_t& e) { heard(g, label, e); };
  } else if (verb == "client") {
    add_client(words);
  } else if (verb == "greetings") {
    stage().show_greetings = words.at(1) == "shown";
  } else if (verb == "advance") {
    stage().advance_ms(to_ms(words.at(1)));
  } else if (verb == "way") {  // way a 2 blocked|open
    stage().block(who(words), static_cast<unsigned>(std::stoul(words.at(2))), words.at(3) == "blocked");
  } else if (verb == "on") {  // on a ACQUIRED bus COMMAND
    std::string command;
    for (size_t i = 4; i < words.size(); ++i) command += (i > 4 ? " " : "") + words[i];
    hooks_.push_back({words.at(1), words.at(2), words.at(3), command});
  } else if (verb == "master") {
    master(words);
  } else if (verb == "status") {
    status(words);
  } else if (verb == "keys") {
    keys();
  } else if (!call_api(words) && !bend_process(words)) {
    throw Mistake{"no such command"};
  }
}

bool Player::call_api(const Words& words) {
  const std::string& verb = words.at(0);
  if (verb == "acquire") {
    acquire(words);
  } else if (verb == "hold") {
    hold(words);
  } else if (verb == "release") {
    answered(who(words).release(words.at(2)));
  } else if (verb == "cancel") {
    answered(who(words).cancel(words.at(2)));
  } else if (verb == "extend") {
    Extras extras(words, 3);
    answered(who(words).extend(words.at(2), extras.ms("ttl", 0)));
  } else if (verb == "check") {
    Extras extras(words, 3);
    const int result = who(words).check(words.at(2), extras.ms("need", 0));
    stage().note("check " + words.at(2) + ": " + result_name(result));
  } else if (verb == "close") {
    Extras extras(words, 2);
    answered(who(words).close(extras.ms("grace", 0)));
  } else if (verb == "token") {
    stage().note("token of " + words.at(2) + ": " + std::to_string(who(words).token(words.at(2))));
  } else if (verb == "fence_init") {
    answered(who(words).fence_init(words.at(2)));
  } else if (verb == "suspended") {
    answered(who(words).suspended());
  } else if (verb == "commission") {
    answered(who(words).commission());
  } else {
    return false;
  }
  return true;
}

bool Player::bend_process(const Words& words) {
  const std::string& verb = words.at(0);
  if (verb == "pause") {
    who(words).pause();
  } else if (verb == "resume") {
    who(words).resume();
  } else if (verb == "suspend") {  // the machine sleeps; its clock knows when it wakes
    who(words).pause();
    stage().advance_ms(to_ms(words.at(2)));
    who(words).jump();
    who(words).resume();
  } else if (verb == "entropy") {
    who(words).set_entropy(words.at(2) == "yes");
  } else {
    return false;
  }
  return true;
}

void Player::heard(Gateway& gateway, const std::string& label, const redlock_event_t&) {
  const std::string outcome = gateway.outcome(label);
  for (size_t i = 0; i < hooks_.size(); ++i) {
    const Hook hook = hooks_[i];
    if (hook.gateway != gateway.name || hook.lock != label) continue;
    if (outcome.compare(0, hook.event.size(), hook.event) != 0) continue;
    hooks_.erase(hooks_.begin() + static_cast<std::ptrdiff_t>(i));
    stage().note("(" + hook.command + ")");
    return play(hook.command);
  }
}

// The word of a setting is its key without section and _ms.
std::string word_of(const std::string& name) {
  return name.size() > 3 && name.compare(name.size() - 3, 3, "_ms") == 0 ? name.substr(0, name.size() - 3) : name;
}
#define NUMBER(section, name, min, max, initial, text) s.name = extras.ms(word_of(#name), s.name);
#define TIME(section, name, min, max, initial, text) s.name = Duration::ms(extras.ms(#name, initial));

void Player::add_client(const Words& words) {
  Extras extras(words, 2);
  const std::string rate = extras.text("rate", "0");
  const std::string guard = extras.text("guard", "off");
  const std::string fence = extras.text("fence", "floor");
  const bool entropy = extras.text("entropy", "yes") == "yes";
  const bool commission = extras.take("commission");
  const std::string machine = extras.text("machine", "");
  const size_t before = stage().story_lines();
  const Gateway& gateway = stage().add(
      words.at(1),
      [&](Settings& s) {
        REDLOCK_KEY_MAP(REDLOCK_NO_KEY, REDLOCK_NO_KEY, NUMBER, TIME)
        s.fence_strict = fence == "strict";
        s.has_boot_id = !machine.empty();
        for (size_t i = 0; i < s.boot_id_size; ++i) s.boot_id[i] = i < machine.size() ? machine[i] : '-';
        s.guard = guard == "strict" ? GuardMode::strict : guard == "weak" ? GuardMode::weak : GuardMode::off;
        extras.done();
      },
      std::stoll(rate), entropy, commission);
  redlock_status_t status = {};
  gateway.client().notices().status(status, gateway.client().now());
  const bool is_admitted = commission && status.masters_up == stage().masters();
  if (is_admitted && !stage().show_greetings) stage().forget_story(before, gateway.name);
}

std::string Player::acquire(const Words& words) {
  Extras extras(words, 3);
  Gateway& gateway = who(words);
  Options options = Gateway::options(extras.ms("ttl", gateway.client().settings().ttl_ms));
  const std::string wait = extras.text("wait", "0");
  options.wait_ms = wait == "forever"   ? REDLOCK_WAIT_FOREVER
                    : wait == "default" ? REDLOCK_WAIT_DEFAULT
                                        : static_cast<int32_t>(to_ms(wait));
  options.tell_waiting = extras.take("tell");
  options.min_validity_ms = extras.ms("min_validity", 0);
  options.max_hold_ms = extras.ms("max_hold", 0);
  options.retry_delay_ms = extras.ms("retry_delay", options.retry_delay_ms);
  options.renew = extras.take("renew");
  options.fenced = extras.take("fenced");
  options.wants_holder = extras.take("wants_holder");
  options.urgent = extras.take("urgent");
  const std::string label = extras.text("as", "");
  extras.done();
  answered(gateway.acquire(words.at(2), options, label));
  return label.empty() ? words.at(2) : label;
}

// An acquire that nothing is to be seen of, since all grant it at once.
void Player::hold(const Words& words) {
  const size_t before = stage().story_lines();
  const std::string label = acquire(words);
  const Told* const told = who(words).last(label);
  if (told == nullptr || told->event.type != REDLOCK_EV_ACQUIRED || told->event.refused + told->event.failed != 0) {
    throw Mistake{"not held at once"};
  }
  if (!stage().forget_story(before, words.at(1))) throw Mistake{"others have something to say of it"};
}

void Player::master(const Words& words) {
  const unsigned number = static_cast<unsigned>(std::stoul(words.at(1)));
  const std::string& what = words.at(2);
  static const std::map<std::string, Way> ways = {
      {"answers", Way::answering}, {"silent", Way::silent}, {"frozen", Way::frozen},
      {"stuffed", Way::stuffed},   {"down", Way::down},     {"unreachable", Way::unreachable}};
  const auto way = ways.find(what);
  if (way != ways.end()) return stage().set_way(number, way->second);
  if (set_knob(stage().redis(number), words) || touch_keys(number, words)) return stage().settle();
  if (what == "delay") {
    stage().set_delay_ms(number, to_ms(words.at(3)));
  } else if (what == "answer") {
    stage().answer(number, words.size() > 3 ? static_cast<unsigned>(std::stoul(words[3])) : 1000);
  } else if (what == "reset") {
    static const std::map<std::string, Unread> unread = {
        {"drops", Unread::dropped}, {"keeps", Unread::kept}, {"stalls", Unread::stalled}};
    stage().reset(number, words.size() > 3 ? unread.at(words[3]) : Unread::dropped);
  } else if (what == "drains") {
    stage().drain(number);
  } else if (what == "restart") {
    stage().restart(number, words.at(3) == "keeps" ? RedisDouble::Keep::all : RedisDouble::Keep::none);
  } else {
    throw Mistake{"no such thing can be done to a master"};
  }
}

// Keys, and what the next answer is.
bool Player::touch_keys(unsigned number, const Words& words) {
  RedisDouble& redis = stage().redis(number);
  const std::string& what = words.at(2);
  if (what == "put") {
    redis.put(words.at(3), words.at(4), words.size() > 5 ? static_cast<int64_t>(to_ms(words[5])) : 0, stage().now());
  } else if (what == "put_hash") {
    redis.put_hash(words.at(3));
  } else if (what == "put_field") {
    redis.put_fields(words.at(3), {{words.at(4), words.at(5)}});
  } else if (what == "evict") {
    redis.evict(words.at(3));
  } else if (what == "flush_all") {
    redis.flush_all();
  } else if (what == "script_flush") {
    redis.script_flush();
  } else if (what == "replica_attaches") {
    redis.attach_replica();
  } else if (what == "copied") {
    redis.snapshot(stage().now());
  } else if (what == "resyncs") {
    redis.take_over_snapshot(words.at(3) == "full" ? RedisDouble::Resync::full : RedisDouble::Resync::partial);
    if (words.size() > 4) redis.become_master();
  } else if (what == "maxmemory") {
    redis.knobs.maxmemory = 1'000'000;
    redis.knobs.maxmemory_policy = words.at(3);
  } else if (what == "clock") {
    redis.wall.step_ms(static_cast<int64_t>(to_ms(words.at(3))), stage().now());
  } else if (what == "fails_next") {
    redis.fail_next(words.at(3), words.size() > 4 ? words[4] : "");
  } else if (what == "says_next") {
    redis.garbage_next(words.at(3), words.size() > 4 ? words[4] : "");
  } else {
    return false;
  }
  return true;
}

bool Player::set_knob(RedisDouble& redis, const Words& words) {
  RedisDouble::Knobs& k = redis.knobs;
  const std::map<std::string, bool*> flags = {
      {"replica", &k.replica},       {"loading", &k.loading},       {"oom", &k.oom},
      {"busy", &k.busy},             {"cluster", &k.cluster},       {"max_clients", &k.max_clients},
      {"loops", &k.loops},           {"script_errors", &k.script_errors}, {"denied", &k.denied},
      {"no_hello", &k.no_hello},     {"no_scripts", &k.no_scripts}, {"no_tracking", &k.no_tracking}};
  const auto flag = flags.find(words.at(2));
  if (flag != flags.end()) {
    *flag->second = words.size() < 4 || words[3] == "yes";
    return true;
  }
  if (words[2] == "noperm") {
    k.noperm.clear();
    for (size_t i = 3; i < words.size(); ++i) k.noperm.insert(words[i]);
    return true;
  }
  return false;
}

void Player::status(const Words& words) {
  const Client& client = who(words).client();
  redlock_status_t s = {};
  client.notices().status(s, client.now());
  std::string text = "held " + std::to_string(s.locks_held) + ", pending " + std::to_string(s.locks_pending) +
                     ", debts " + std::to_string(s.debts) + ", rounds " + std::to_string(s.rounds);
  for (MasterIndex m = 0; m < s.masters; ++m) {
    redlock_master_status_t ms = {};
    client.notices().master_status(m, ms, client.now());
    static constexpr const char* states[] = {"?", "down", "connecting", "greeting", "up", "suspect", "guarded"};
    text += "; " + std::to_string(m + 1) + " " + states[ms.state];
    if (ms.state >= REDLOCK_MASTER_UP && ms.tracked == 0) text += ", not tracked";
    if (ms.in_flight != 0) text += ", in flight " + std::to_string(ms.in_flight);
    if (ms.owed != 0) text += ", owed " + std::to_string(ms.owed);
  }
  stage().note(text);
}

void Player::keys() {
  for (unsigned m = 1; m <= stage().masters();) {
    std::string line = std::to_string(m);
    const std::string keys = stage().keys(m++);
    for (; m <= stage().masters() && stage().keys(m) == keys; ++m) line += " " + std::to_string(m);
    stage().note("on " + line + ": " + keys);
  }
}

// ---- files ----------------------------------------------------------------------------------------------------

// A block: comments and commands, "----", the output, an empty line.
struct Result {
  std::string text;
  std::string complaint;
};

Result run_file(std::istream& in) {
  Result result;
  Player player;
  std::string line;
  int number = 0;
  const auto next = [&] { return ++number, static_cast<bool>(std::getline(in, line)); };
  bool has_commands = false;
  while (next()) {
    result.text += line + "\n";
    if (line.empty() || line[0] == '#') continue;
    if (line != "----") {
      has_commands = true;
      player.play(line);
      continue;
    }
    const int at = number;
    std::string expected;
    while (next() && !line.empty()) expected += line + "\n";
    const std::string actual = player.take_output();
    result.text += actual + "\n";
    has_commands = false;
    if (actual != expected && result.complaint.empty()) {
      result.complaint = "line " + std::to_string(at) + ":\n--- expected\n" + expected + "--- came\n" + actual;
    }
  }
  if (has_commands && result.complaint.empty()) result.complaint = "the last commands have no \"----\" behind them\n";
  while (result.text.size() > 1 && result.text.compare(result.text.size() - 2, 2, "\n\n") == 0) result.text.pop_back();
  return result;
}

bool run(const std::string& path, bool rewrite) {
  std::ifstream in(path);
  if (!in) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    return false;
  }
  Result result;
  try {
    result = run_file(in);
  } catch (const Mistake& mistake) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), mistake.text.c_str());
    return false;
  }
  in.close();
  if (rewrite) {
    std::ofstream(path) << result.text;
    return true;
  }
  if (!result.complaint.empty()) std::fprintf(stderr, "%s: %s", path.c_str(), result.complaint.c_str());
  return result.complaint.empty();
}

}  // namespace
}  // namespace redlock::test

int main(int argc, char** argv) {
  bool rewrite = false;
  int failed = 0, files = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--rewrite") {
      rewrite = true;
    } else {
      ++files;
      failed += redlock::test::run(argument, rewrite) ? 0 : 1;
    }
  }
  if (files == 0) std::fprintf(stderr, "usage: %s [--rewrite] FILE...\n", argv[0]);
  return failed != 0 || files == 0 ? 1 : 0;
}
