// SPDX-License-Identifier: MIT
//
// A whole client with one or three masters and no sockets, with a guard or without. The input is what the world does,
// one decision after the other: it answers what was asked, well or badly, or says any bytes; connections come about,
// are refused, break, take few bytes; time passes, the clock jumps, random bytes run out; the API is called, also from
// callbacks.
//
// After each decision: what was sent is RESP and a command we know; each value is SET with the ttl that was asked for,
// and put back with no more of it behind a grant of a quorum, never after its end; scripts speak only of values that
// were; requests sent, answered and in flight add up; the counters of claims and status are right; each accepted
// acquire gets one verdict and one end. At the end the client is closed, which must come to an end however the world
// goes on.
#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "bare_driver.hpp"
#include "input.hpp"
#include "wire.hpp"

namespace redlock::test {
namespace {

// What masters, old, new, broken or foreign, say.
const char* const sayings[] = {
    "+OK\r\n", "_\r\n", "$-1\r\n", ":1\r\n", ":0\r\n", ":2\r\n", "-ERR unknown command\r\n",
    "-NOSCRIPT No matching\r\n",
    "-READONLY You can't\r\n", "-LOADING Redis is\r\n", "-OOM command not\r\n", "-BUSY Redis is busy\r\n",
    "-WRONGTYPE Operation\r\n", "-NOPERM this user\r\n", "-NOAUTH Authentication\r\n", "-WRONGPASS invalid\r\n",
    "-MISCONF Redis is\r\n", "-NOREPLICAS Not enough\r\n", "-MOVED 1 1.2.3.4:1\r\n", "-MASTERDOWN Link\r\n", "-\r\n",
    "-ERR max number of clients reached\r\n", "-DENIED Redis is running\r\n", "+PONG\r\n", "$0\r\n\r\n", "#t\r\n",
    "*0\r\n", "*2\r\n:1\r\n:0\r\n", "%1\r\n+role\r\n+master\r\n", "$2\r\nOK\r\n", "!5\r\nERR x\r\n",
    ",1.5\r\n", "x\r\n",
    ">2\r\n+invalidate\r\n_\r\n", "|1\r\n+ttl\r\n:3\r\n", "%1\r\n$4\r\nrole\r\n$7\r\nreplica\r\n",
    "%2\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$4\r\nmode\r\n$7\r\ncluster\r\n",
    "*4\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n", "*1\r\n$5\r\nslave\r\n",
    ">2\r\n$10\r\ninvalidate\r\n_\r\n", ">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$6\r\nsite:a\r\n",
};

// And those that are asked for their state.
const char* const readings[] = {
    "*5\r\n$11\r\nrole:slave\n\r\n_\r\n_\r\n_\r\n_\r\n", "*5\r\n-ERR can't run this command\r\n_\r\n_\r\n_\r\n_\r\n",
    "*5\r\n$0\r\n\r\n$6\r\nv1 n=9\r\n_\r\n_\r\n_\r\n", "*5\r\n$3\r\nabc\r\n*1\r\n:1\r\n_\r\n_\r\n_\r\n",
    "*4\r\n$0\r\n\r\n_\r\n_\r\n_\r\n", "*2\r\n$2\r\n17\r\n$1\r\n5\r\n", ":-1\r\n",
    ">2\r\n$10\r\ninvalidate\r\n*1\r\n$13\r\nredlock::meta\r\n", "$9\r\nloading:1\r\n", "$12\r\nrole:master\r\n\r\n",
};

std::string bulk(const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; }

// What a good master answers; no: somebody else holds the key, or the value is not there.
std::string good_answer(const Wire::Command& words, bool no) {
  const std::string& name = words[0];
  if (name == "HELLO") {
    if (no) return "-ERR unknown command `HELLO`\r\n";
    return "%3\r\n" + bulk("id") + ":7\r\n" + bulk("mode") + bulk("standalone") + bulk("role") + bulk("master");
  }
  if (name == "AUTH") return no ? "-WRONGPASS invalid\r\n" : "+OK\r\n";
  if (name == "ROLE") return no ? "-NOPERM this user\r\n" : "*3\r\n" + bulk("master") + ":0\r\n*0\r\n";
  if (name == "CLIENT" && (words[1] == "ID" || words[1] == "KILL")) return no ? "-NOPERM this user\r\n" : ":1\r\n";
  if (name == "CLIENT") return no ? "-ERR unknown subcommand\r\n" : "+OK\r\n";
  if (name == "GET") return no ? "_\r\n" : bulk("00112233445566778899aabbccddeeff00112233:gw");
  if (name == "PTTL") return no ? ":-2\r\n" : ":700\r\n";
  if (name == "SCRIPT") return no ? "-ERR unknown command\r\n" : bulk(std::string(40, 'a'));
  if (name == "PING") return bulk(words[1]);
  if (name == "SET" || script_of(words) == &acquire_script) return no ? "_\r\n" : "+OK\r\n";
  return no ? ":0\r\n" : ":1\r\n";
}

// What was sent about one value, to all masters.
struct Life {
  unsigned long ttl = 0;      // of the acquire
  unsigned long ttl_max = 0;  // extends included
  Masters granted;            // said something that may have been a grant
};

struct Record {
  bool decided = false;
  bool ended = false;
};

class World : public BareDriver::Peer {
 public:
  World(const uint8_t* data, size_t size, bool secured)
      : input_(data, size),
        secured_(secured),
        settings_(choose_settings()),
        memory_(Client::memory_size(settings_) / sizeof(uint64_t) + 1),
        client_(settings_, memory_.data()),
        driver_(client_, this) {}

  void run() {
    driver_.prepare();
    while (!input_.empty() && !driver_.done()) {
      decide();
      if (!input_.flip()) driver_.prepare();  // else more comes in the same turn of the loop
      check();
    }
    finish();
  }

  // ---- Peer -----------------------------------------------------------------------------------------------------
  Instant now() override { return now_; }
  bool clock_jumped() override {
    const bool jumped = jumped_;
    jumped_ = false;
    return jumped;
  }
  int64_t boot_ms() override { return now_.ns() / 1'000'000; }
  BareDriver::Connect connect(MasterIndex) override { return static_cast<BareDriver::Connect>(connect_ % 3); }
  void connected(MasterIndex m) override {
    Link& link = links_[m];
    link.wire.clear();
    link.asked.clear();
    link.in.clear();
    link.answered_before = client_.session(m).replies();
  }
  size_t send(MasterIndex m, std::string_view bytes) override {
    Link& link = links_[m];
    const size_t size = link.room < bytes.size() ? link.room : bytes.size();
    if (link.room != SIZE_MAX) link.room -= size;
    const size_t before = link.asked.size();
    link.wire.arrive(bytes.substr(0, size), link.asked);
    for (size_t i = before; i < link.asked.size(); ++i) note(link, link.asked[i]);
    return size;
  }
  // A slow connection's SET may be taken back before it leaves. What follows then finds nothing at that master.
  void refused(MasterIndex m, std::string_view bytes) override {
    Wire wire = links_[m].wire;
    std::deque<Wire::Command> waiting;
    wire.arrive(bytes, waiting);
    for (const Wire::Command& words : waiting) {
      if (words[0] == "SET" || script_of(words) == &acquire_script) queued_.insert(words[words[0] == "SET" ? 2 : 5]);
    }
  }
  void hang_up(MasterIndex m) override {
    links_[m].asked.clear();
    links_[m].in.clear();
  }
  bool entropy(unsigned char* out, size_t size) override {
    if (!entropy_) return false;
    for (size_t i = 0; i < size; ++i) {
      noise_ = noise_ * 6364136223846793005u + 1442695040888963407u;
      out[i] = static_cast<unsigned char>(noise_ >> 56);
    }
    return true;
  }
  StandInEngine* engine(MasterIndex m) override { return secured_ ? &engines_[m] : nullptr; }
  void event(Client::Event& event) override {
    const redlock_event_t& e = event.event;
    if (e.type == REDLOCK_EV_MASTER) {
      require(e.master < settings_.masters && e.state >= REDLOCK_MASTER_DOWN && e.state <= REDLOCK_MASTER_GUARDED,
              "a master's event names its state");
    } else {
      lock_event(e);
    }
    leaving_ = records_.count(e.lock.id) != 0 && records_[e.lock.id].ended ? 1 : 0;
    if (input_.below(4) == 3) call();
    leaving_ = 0;
  }

 private:
  struct Link {
    Wire wire;
    std::deque<Wire::Command> asked;  // not answered yet
    std::string in;                   // has arrived at the client's socket
    size_t room = SIZE_MAX;           // of the socket
    uint64_t answered_before = 0;
    std::map<std::string, bool> values;        // ever SET here → its delete was sent
    std::map<std::string, unsigned> extends;   // commands
    std::map<std::string, unsigned> put_back;  // times, at least
    std::set<std::string> without_text;        // whose last SET was a script by its digest alone
    std::string desc, q, seal, visit;          // its record
    unsigned data = 1;                         // each replication id has a number
  };

  Settings choose_settings() {
    static constexpr const char* names[] = {"m1", "m2", "m3"};
    Settings s;
    const uint8_t kind = input_.byte();
    s.masters = kind & 1 ? 3 : 1;
    for (MasterIndex m = 0; m < s.masters; ++m) {
      s.master[m].name = Bytes(names[m], 2);
      s.master[m].host = Bytes("127.0.0.1");
      if (kind & 2) s.master[m].password = Bytes("secret");
      if (kind & 4) s.master[m].user = Bytes("gateway");
    }
    if ((kind & 6) == 4) {  // a user without a password is nobody
      s.guard = kind & 16 ? GuardMode::weak : GuardMode::strict;
      s.has_boot_id = true;
      memset(s.boot_id, 'b', sizeof s.boot_id);
    }
    s.client_name = Bytes("gw");
    if (kind & 8) s.key_prefix = Bytes("site:");
    s.max_ttl_ms = 5000;
    s.ttl_ms = 1000;
    s.locks = 1 + (kind >> 4 & 3);
    s.debts = s.locks + 1 + (kind >> 6);
    s.in_flight = REDLOCK_IN_FLIGHT_MIN;
    s.tx_bytes = REDLOCK_TX_BYTES_MIN;
    s.rx_bytes = REDLOCK_RX_BYTES_MIN;
    return s;
  }

  // ---- what may happen ------------------------------------------------------------------------------------------
  void decide() {
    const uint8_t what = input_.byte();
    const MasterIndex m = (what >> 5) % settings_.masters;
    switch (what & 31) {
      case 0 ... 5:
        return answer(m);
      case 6:
        return everything_goes_well();
      case 7: {
        std::string& in = links_[m].in;
        if (driver_.is_open(m)) in += input_.bytes(1 + input_.below(64)), wild_ = true;
        return driver_.readable(m, in, SIZE_MAX);
      }
      case 8:
        return driver_.established(m);
      case 9:
        return driver_.broke(m, input_.flip() ? REDLOCK_E_CONNECT : REDLOCK_E_DISCONNECTED);
      case 10:
        connect_ = input_.byte();
        return;
      case 11:
        links_[m].room = input_.byte();
        return;
      case 12:
        links_[m].room = SIZE_MAX;
        return driver_.writable(m);
      case 13:
        links_[m].room += links_[m].room < 10'000 ? input_.byte() : 0;
        return driver_.writable(m);
      case 14 ... 18:
        return pass_time();
      case 19:
        driver_.tick();
        return;
      case 20:
        jumped_ = true;
        return;
      case 21:
        entropy_ = !entropy_;
        return;
      default:
        return call();
    }
  }

  void answer(MasterIndex m) {
    Link& link = links_[m];
    const unsigned kind = input_.byte();
    const unsigned count = 1 + input_.below(8);
    for (unsigned i = 0; i < count && !link.asked.empty(); ++i) {
      const unsigned said = kind / 4 % (2 * std::size(sayings));
      const bool well = kind % 4 < 2 || said >= std::size(sayings);
      const size_t before = link.in.size();
      const bool of_a_state = settings_.guard != GuardMode::off && said - std::size(sayings) < std::size(readings);
      link.in += kind % 4 >= 2 && of_a_state ? readings[said - std::size(sayings)]
                 : well                      ? answer_of(m, link.asked.front(), kind % 2 != 0)
                                             : sayings[said];
      hear(m, link.in.substr(before));
      link.asked.pop_front();
    }
    driver_.readable(m, link.in, kind % 4 == 3 ? 1 + input_.byte() : SIZE_MAX);
  }

  // An answer that is neither an error nor null may grant any SET of this master: a push, or an answer too many, moves
  // the answers behind it.
  void hear(MasterIndex m, const std::string& text) {
    if (text[0] == '-' || text[0] == '_' || text == "$-1\r\n") return;
    for (const auto& value : links_[m].values) lives_[value.first].granted.add(m);
  }

  // What a good master says of its state; no: its data have just been replaced, or it says nothing.
  std::string answer_of(MasterIndex m, const Wire::Command& words, bool no) {
    Link& link = links_[m];
    const std::string id(15, '1');
    const auto field = [](const std::string& text) { return text.empty() ? "_\r\n" : bulk(text); };
    if (words[0] == "TIME" && no) return "-NOPERM this user\r\n";
    if (words[0] == "TIME") return "*2\r\n" + bulk(std::to_string(now_.ns() / 1'000'000'000)) + bulk("0");
    const Script* const script = script_of(words);
    if (script == &reading_script) {
      link.data += no;
      const std::string number = std::to_string(10'000'000 + link.data);
      const size_t record = std::hash<std::string>()(link.desc + link.q + link.seal);
      const std::string tag = number + std::to_string(10'000'000 + record % 10'000'000);
      if (words.size() == 5 && words[4] == tag) return ":1\r\n";
      return "*17\r\n" + bulk(id + std::to_string(m)) + bulk("22222222" + number) + bulk("master") + bulk("0") +
             bulk(link.data % 4 == 3 ? "1" : "0") + bulk("standalone") + "_\r\n" + bulk("0") + bulk("noeviction") +
             bulk("0") + field(link.desc) + field(link.q) + field(link.seal) + "_\r\n_\r\n" + field(link.visit) +
             bulk(tag);
    }
    if (script == &record_script && !no) link.desc = words[8], link.q = words[9], link.seal = words[10];
    if (script == &visit_script && !no) link.visit = words[6].substr(17) + " " + words[7] + " " + words[8];
    return good_answer(words, no);
  }

  void everything_goes_well() {
    for (unsigned i = 0; i < 12; ++i) {
      for (MasterIndex m = 0; m < settings_.masters; ++m) {
        Link& link = links_[m];
        driver_.established(m);
        link.room = SIZE_MAX;
        driver_.writable(m);
        for (; !link.asked.empty(); link.asked.pop_front()) {
          const std::string text = answer_of(m, link.asked.front(), false);
          hear(m, text);
          link.in += text;
        }
        driver_.readable(m, link.in, SIZE_MAX);
      }
      driver_.prepare();
    }
  }

  void pass_time() {
    const Instant due = driver_.due();
    const uint8_t kind = input_.byte();
    switch (kind & 3) {
      case 0:
        if (due != Instant::never()) now_ = later(now_, due + Duration::ns((kind >> 2 & 3) - 1));
        break;
      case 1:
        now_ = now_ + Duration::ms(kind >> 2);
        break;
      case 2:
        now_ = now_ + Duration::ms(int64_t{input_.byte()} * 50);
        break;
      default:
        now_ = now_ + Duration::us(kind);
        return;  // and the timer is late
    }
    driver_.settle();
  }

  void call() {
    const uint8_t what = input_.byte();
    uint64_t handle = choose_handle();
    const bool known = records_.count(handle) != 0;
    const Record record = known ? records_[handle] : Record();
    int err = 0;
    switch (what % 16) {
      case 0 ... 5:
        return acquire();
      case 6 ... 9:
        err = client_.release(handle);
        require(err == (known ? 0 : REDLOCK_E_STALE), "release takes what was issued");
        return;
      case 10 ... 11:
        err = client_.cancel(handle);
        require(known ? err == 0 || err == REDLOCK_E_BUSY : err == REDLOCK_E_STALE, "cancel takes what was issued");
        require(err != REDLOCK_E_BUSY || (record.decided && !record.ended), "only what was told ACQUIRED is busy");
        return;
      case 12 ... 13:
        err = client_.extend(handle, input_.flip() ? 20 + input_.byte() : 0);
        require(known || err == REDLOCK_E_STALE, "extend takes what was issued");
        require(!record.ended || err != 0, "what has ended is not extended");
        return;
      case 14:
        err = settings_.guard != GuardMode::off && what >= 128
                  ? client_.commission(what % (settings_.masters + 1), now_)
                  : client_.suspended(now_);
        require(err == (closing_ ? REDLOCK_E_CLOSED : 0), "suspended, or a new site");
        return;
      default:
        if (what < 0xC0) return;  // else hardly anything would be seen of an open client
        err = client_.close(Duration::ms(input_.byte() * 4), now_);
        require(err == (closing_ ? REDLOCK_E_CLOSED : 0), "close");
        closing_ = true;
    }
  }

  void acquire() {
    const uint8_t kind = input_.byte();
    Options options = {20u << (kind & 7), 0, 0, 0, 10, (kind & 8) != 0};
    const int32_t budget = (kind & 7) < 4 ? 300 : REDLOCK_WAIT_DEFAULT;
    options.wait_ms = kind & 16 ? (kind & 32 ? REDLOCK_WAIT_FOREVER : budget) : REDLOCK_TRY_ONCE;
    options.tell_waiting = (kind & 16) != 0;
    options.max_hold_ms = kind & 64 ? 1 + input_.byte() * 8u : 0;
    options.min_validity_ms = kind & 128 ? options.ttl_ms / 2 : 0;
    options.wants_holder = (kind & 5) == 5;
    static const std::string names[] = {"bus", "valve", std::string(REDLOCK_RESOURCE_MAX, '\n')};
    const std::string& name = names[kind % 3];
    uint64_t handle = 0;
    const int err = client_.acquire(Bytes(name.data(), name.size()), options, nullptr, nullptr, handle);
    if (closing_) return require(err == REDLOCK_E_CLOSED, "a closing client takes nothing");
    if (err != 0) return require(err == REDLOCK_E_TABLE_FULL && open_ + leaving_ >= settings_.locks, "full");
    require(handle != 0 && records_.count(handle) == 0, "a handle names one acquire for ever");
    ttls_.insert(options.ttl_ms);
    records_[handle] = {};
    issued_.push_back(handle);
    ++open_;
  }

  uint64_t choose_handle() {
    const uint8_t which = input_.byte();
    if (which < 230 && !issued_.empty()) return issued_[issued_.size() - 1 - which % issued_.size() % 8];
    if (which < 245 && !issued_.empty()) return issued_.back() + (uint64_t{input_.byte()} << 16);
    return uint64_t{input_.number()} << 32 | input_.number();
  }

  // ---- what must be -----------------------------------------------------------------------------------------------
  void note(Link& link, const Wire::Command& words) {
    const Script* const script = script_of(words);
    if (words[0] == "SET") {
      note_set(link, words[2], std::stoul(words[5]));
    } else if (script == &acquire_script) {
      note_acquire_script(link, words);
    } else if (script == &extend_script || script == &release_script) {
      const size_t at = words[2] == "2" ? 5 : 4;
      const auto value = link.values.find(words[at]);
      const bool deletes = script == &release_script;
      const bool known = lives_.count(words[at]) != 0 || queued_.count(words[at]) != 0;
      require(known, "a script is about a value of a SET that was written");
      if (!deletes) note_extend(link, words[at], std::stoul(words[at + 1]));
      if (value == link.values.end()) return;
      if (deletes) value->second = true;
      require(deletes || !value->second, "a value that was deleted is not extended");
    }
  }

  // A master that does not know the script is told the same command once more, with the script's text.
  void note_acquire_script(Link& link, const Wire::Command& words) {
    const std::string& value = words[5];
    const bool has_text = words[0] == "EVAL";
    if (has_text && link.without_text.erase(value) != 0) {
      require(!link.values[value], "a value that was deleted is not sent again");
      return;
    }
    if (!has_text) link.without_text.insert(value);
    note_set(link, value, std::stoul(words[6]));
  }

  void note_set(Link& link, const std::string& value, unsigned long ttl) {
    const auto here = link.values.find(value);
    require(here == link.values.end() || !here->second, "a value that was deleted is not SET again");
    Life& life = lives_[value];
    if (life.ttl == 0) {
      require(wild_ || ttls_.count(ttl) != 0, "the ttl of an acquire");
      life.ttl = life.ttl_max = ttl;
    } else if (here != link.values.end() || ttl != life.ttl) {
      const unsigned quorum = settings_.masters / 2 + 1;
      require(ttl >= 1 && ttl <= settings_.max_ttl_ms, "what is left of a ttl");
      require(wild_ || ttl <= life.ttl_max, "what is left of this ttl");
      require(wild_ || life.granted.count() >= quorum, "a key is put back behind a grant");
      require(wild_ || ++link.put_back[value] <= 1 + link.extends[value], "once, and once behind each extend");
    }
    link.values[value] = false;
  }

  void note_extend(Link& link, const std::string& value, unsigned long ttl) {
    Life& life = lives_[value];
    life.ttl_max = std::max(life.ttl_max, ttl);
    ++link.extends[value];
  }

  void lock_event(const redlock_event_t& e) {
    require(records_.count(e.lock.id) != 0, "an event is about an acquire");
    Record& record = records_[e.lock.id];
    require(!record.ended, "nothing comes after the end");
    require(e.granted + e.refused + e.failed <= settings_.masters, "a master votes once");
    const bool waits = e.type == REDLOCK_EV_WAITING;
    const bool verdict = e.type == REDLOCK_EV_ACQUIRED || e.type == REDLOCK_EV_FAILED;
    require((verdict || waits) != record.decided, "one verdict, and only WAITING comes before");
    record.decided = !waits;
    ++told_[e.type];
    if (waits) return require(e.cause > 0 && e.cause < REDLOCK_CAUSE_NEVER, "what it waits for");
    if (e.type == REDLOCK_EV_ACQUIRED || e.type == REDLOCK_EV_RENEWED) {
      require(e.err == 0 && e.validity_ms >= 0 && e.validity_ms <= settings_.max_ttl_ms, "validity of a held lock");
      require(e.granted > settings_.masters / 2 || e.type == REDLOCK_EV_RENEWED, "acquired by a quorum");
    } else if (e.type == REDLOCK_EV_FAILED || e.type == REDLOCK_EV_LOST || e.type == REDLOCK_EV_RELEASED) {
      require(e.validity_ms == 0, "nothing is left at the end");
      record.ended = true;
      --open_;
    } else {
      require(e.type == REDLOCK_EV_AT_RISK && e.err != 0, "an event of a lock");
    }
  }

  void check() {
    redlock_status_t status = {};
    client_.notices().status(status, client_.now());
    require(status.locks_held + status.locks_pending <= open_, "only what is open is held or pending");
    require(open_ <= settings_.locks, "the table");
    require(status.acquired == told_[REDLOCK_EV_ACQUIRED] && status.lost == told_[REDLOCK_EV_LOST] &&
                status.released == told_[REDLOCK_EV_RELEASED] && status.renewed == told_[REDLOCK_EV_RENEWED] &&
                status.renew_failed == told_[REDLOCK_EV_AT_RISK] &&
                status.failed_locked + status.failed_no_quorum + status.failed_other == told_[REDLOCK_EV_FAILED],
            "what was told is counted");
    check_claims(client_);
    check_deadline(client_, status.locks_held, closing_ && !driver_.done());
    for (MasterIndex m = 0; m < settings_.masters; ++m) {
      const Session& session = client_.session(m);
      if (!driver_.is_open(m) || session.wish() != Session::Wish::none || !client_.output(m).empty()) continue;
      if (!driver_.has_sent_all(m)) continue;
      require(links_[m].wire.at_boundary(), "commands leave whole");
      require(links_[m].wire.commands() == session.replies() - links_[m].answered_before + session.in_flight(),
              "each request is in flight until it is answered");
    }
  }

  void finish() {
    entropy_ = true;
    if (!closing_) require(client_.close(Duration::ms(100), now_) == 0, "close");
    closing_ = true;
    for (unsigned i = 0; i < 100 && !driver_.done(); ++i) {
      driver_.settle();
      if (driver_.done()) break;
      require(driver_.due() != Instant::never(), "closing has a deadline");
      now_ = later(now_, driver_.due());
    }
    require(driver_.done(), "closing comes to an end");
    require(open_ == 0, "every acquire has its end");
  }

  Input input_;
  bool secured_;
  StandInEngine engines_[3] = {StandInEngine(1), StandInEngine(2), StandInEngine(3)};
  Settings settings_;
  std::vector<uint64_t> memory_;
  Client client_;
  BareDriver driver_;
  Link links_[3];
  std::map<uint64_t, Record> records_;
  std::map<std::string, Life> lives_;
  std::set<std::string> queued_;  // values of SETs that waited for room in a socket
  std::set<unsigned long> ttls_;  // of acquires
  std::vector<uint64_t> issued_;
  std::map<int, uint64_t> told_;
  unsigned open_ = 0;
  unsigned leaving_ = 0;  // its slot is free when its callback returns
  Instant now_ = Instant::from_ns(1'000'000'000'000);
  uint64_t noise_ = 1;
  uint8_t connect_ = 0;
  bool entropy_ = true;
  bool jumped_ = false;
  bool closing_ = false;
  bool wild_ = false;  // any bytes were said: they may answer what has not been sent
};

}  // namespace
}  // namespace redlock::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  redlock::test::World(data, size, false).run();
  redlock::test::World(data, size, true).run();
  return 0;
}
