// SPDX-License-Identifier: MIT
//
// Stage: gateways (each a process with a client) and Redis masters, with no socket, no thread and no clock between
// them. Time stands still until advance() is called; then everything that is due happens in order of its time, and in
// order of its cause where times are equal, so that the same script always gives the same story.
//
// After each input of a gateway (bytes, a connection's fate, the timer, a call of the API) the loop that ships runs,
// src/client/turns. A gateway is a port of that loop. A client that forgets to say that it wants a turn, or arms its
// timer too late, stands still here as it would on a device.
//
// A master is a RedisDouble behind a way that the test bends:
//
//     answering    reads at once; its replies arrive after `delay`, in order
//     silent       reads and executes at once; its replies are held back until it answers again
//     frozen       connections are accepted, bytes wait unread, also those of a connection that was closed meanwhile
//     stuffed      the gateways' sockets take no more bytes
//     down         connections break, new ones are refused; the keys stay and expire
//     unreachable  established connections are silent in both directions, new ones get no answer
//
// A gateway's client lives in a block of exactly the size that it asked for; a byte written beside it ends the test.
// The stage watches two promises all the time and writes VIOLATION into the story when one is broken: no two locks on
// one resource are held at the same instant, and no acquire gets a second verdict or end.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/turns.hpp"
#include "guarded_memory.hpp"
#include "redis_double.hpp"

namespace redlock::test {

class Stage;

enum class Way { answering, silent, frozen, stuffed, down, unreachable };

// What becomes of the bytes that a master has not read when a connection breaks: it never reads them, reads them
// when it reads again, or only after drain(), when newer connections have been served.
enum class Unread { dropped, kept, stalled };

// A command that a master has executed.
struct Executed {
  double at_ms = 0;
  std::string gateway;
  unsigned master = 0;      // from 1, as everywhere on the stage
  uint64_t write = 0;       // commands that left in the same write have the same number
  std::vector<std::string> words;
  std::string text;         // in words: "SET bus a.1 NX PX 1000"
  std::string reply;        // "OK", "nil", "1", "-OOM"
};

struct Told {
  double at_ms = 0;
  std::string lock;  // the label; empty: about a master or the client
  redlock_event_t event = {};  // without its detail, which is gone
};

class Gateway : public Turns<Gateway> {
 public:
  const std::string name;

  // ---- the API. A lock is called by the resource's name ("bus+valve": two at once), or by the label that its acquire
  // gave it.
  static Options options(uint32_t ttl_ms, int32_t wait_ms = 0);
  int acquire(const std::string& resource, const Options& options, const std::string& label = "");
  int cancel(const std::string& label);
  int extend(const std::string& label, uint32_t ttl_ms = 0);
  int release(const std::string& label);
  int close(uint32_t grace_ms);
  int suspended();
  int commission();
  int fence_init(const std::string& resource);
  // All that is done to the gateway from outside between two turns: `input` calls the client, or some of the functions
  // above, or resumes, so that what waits is read.
  void act(const std::function<void(Instant now)>& input);
  uint64_t token(const std::string& label) const;  // as redlock_fencing_token()
  int check(const std::string& label, uint32_t need_ms = 0) const;  // as redlock_check()
  int64_t validity_ms(const std::string& label) const;              // as redlock_validity_ms()
  bool holds(const std::string& label) const { return check(label) == 0; }

  // ---- the process and its clock
  void pause();   // SIGSTOP: no step is done, what arrives waits
  void resume();
  void jump();    // the next clock reading says that the clock has jumped
  void set_entropy(bool available) { entropy_available_ = available; }

  // ---- what was told
  const std::vector<Told>& told() const { return told_; }
  const Told* last(const std::string& label) const;
  unsigned told_count(const std::string& label, int type) const;
  // "ACQUIRED", or "FAILED LOCKED"; "" when nothing was told.
  std::string outcome(const std::string& label) const;
  bool closed() const { return closed_; }
  Client& client() { return *client_; }
  const Client& client() const { return *client_; }
  uint64_t steps() const { return steps_; }

 private:
  friend class Stage;
  struct Connection {
    enum class State { idle, connecting, open };
    State state = State::idle;
    uint64_t id = 0;  // of the socket; inputs for an older one are dropped
    bool full = false;
  };

  Gateway(Stage& stage, std::string name, unsigned number, const Settings& settings, int64_t rate_ppm);
  // A master's number on the stage is the port of its address; index_of: connections_.size() when it is none of ours.
  unsigned number_of(MasterIndex m) const { return client_->session(m).master().port; }
  MasterIndex index_of(unsigned number) const;
  Instant local(TrueTime now) const;
  TrueTime due() const;  // when the timer fires, in true time

  // ---- the port's functions, for Turns
  friend class Turns<Gateway>;
  Reading clock_reading();
  int64_t boot_ms() const;
  size_t fill_random(unsigned char* out, size_t size);
  void flush(MasterIndex m, Instant now);
  static bool can_connect(MasterIndex) { return true; }
  void connect(MasterIndex m, Instant now);
  void close(MasterIndex m, int reason, bool polite, Instant now);
  void event(Client::Event& event);
  static bool arm(Instant) { return true; }  // the stage asks for armed_for()
  void ended();

  void loop();
  int after_call(int result);
  void read(MasterIndex m, std::string bytes);
  void watch(const std::string& label, const redlock_event_t& event);
  bool could_act(uint64_t handle) const;

  struct Handle {
    uint64_t id = 0;
    std::vector<std::string> keys;
    bool decided = false;
    bool ended = false;
  };

  Stage& stage_;
  unsigned number_;
  int64_t rate_ppm_;
  Block block_;
  std::unique_ptr<Client> client_;
  std::vector<Connection> connections_;
  std::map<std::string, Handle> handles_;
  std::map<uint64_t, std::string> labels_;
  std::vector<Told> told_;
  std::map<unsigned, std::pair<int, int>> shown_;  // master → state and reason last written down
  uint64_t entropy_ = 0;
  bool entropy_available_ = true;
  bool acting_ = false;
  bool paused_ = false;
  bool jumped_ = false;
  bool closed_ = false;
  uint64_t steps_ = 0;
};

class Stage {
 public:
  explicit Stage(unsigned masters);
  ~Stage();

  // A gateway whose client connects at once. rate_ppm: how fast its clock runs. Its masters are all of the stage;
  // `change` may leave it some of them, named by their ports.
  Gateway& add(const std::string& name, const std::function<void(Settings&)>& change = nullptr, int64_t rate_ppm = 0,
               bool entropy = true, bool commission = false);
  Gateway& gateway(const std::string& name);
  unsigned masters() const { return static_cast<unsigned>(masters_.size()); }

  // ---- time
  void advance_ms(double ms);
  void settle();  // all that is due now
  TrueTime now() const { return now_; }
  double now_ms() const { return static_cast<double>(now_) / 1e6; }

  // ---- masters, counted from 1
  RedisDouble& redis(unsigned master);
  void set_way(unsigned master, Way way);
  void set_delay_ms(unsigned master, double ms);
  void set_room(unsigned master, size_t bytes);            // that the gateways' sockets take until the next call
  void answer(unsigned master, unsigned replies);          // lets so many held replies of each connection go
  void reset(unsigned master, Unread unread);              // its connections break; it goes on
  bool input_waits(const Gateway& gateway) const;          // that has arrived, and is not read yet
  void drain(unsigned master);                             // reads what stalled
  void block(Gateway& gateway, unsigned master, bool blocked);  // what this gateway sends stays on its way
  void restart(unsigned master, RedisDouble::Keep keep);   // a new process: connections and scripts are gone

  // ---- the story
  bool show_greetings = false;
  void note(const std::string& text);
  std::string take_story();
  size_t story_lines() const { return story_.size(); }
  bool forget_story(size_t from, const std::string& gateway);  // false: another gateway is in it
  const std::vector<Executed>& executed() const { return executed_; }
  // Those whose words begin so, on one master or on all (0).
  std::vector<Executed> executed(const std::string& first_words, unsigned master = 0) const;
  unsigned violations() const { return violations_; }
  // Masters that hold this resource's key now, and for whom: "a.1".
  std::map<unsigned, std::string> holders(const std::string& key) const;
  std::string keys(unsigned master) const;
  std::string label_of(const std::string& value) const;  // "a.1", or the value itself

  std::function<void(Gateway&, const std::string& label, const redlock_event_t&)> on_event;
  // The bytes of the next piece that an engine of TLS reads or takes. Null: gateways have sockets in the clear.
  std::function<size_t()> piece;
  // Changes what a master answers, after it has executed the command and the story was written.
  std::function<void(unsigned master, const std::vector<std::string>& words, std::string& reply)> lie;

 private:
  friend class Gateway;
  struct Socket {
    Gateway* gateway = nullptr;
    unsigned master = 0;
    int conn = 0;
    bool open = true;          // the gateway's end
    bool stalled = false;
    std::string partial;       // a command that has not arrived whole
    struct Request {
      std::string bytes;
      uint64_t write;
    };
    std::vector<Request> unread;
    std::vector<std::string> held;
    TrueTime last_arrival = 0;
  };
  struct Master {
    RedisDouble redis;
    Way way = Way::answering;
    TrueTime delay = 0;
    size_t room = SIZE_MAX;  // in the gateways' sockets
    explicit Master(uint64_t seed) : redis(seed) {}
  };
  struct Input {
    enum class Kind { connected, refused, bytes, end };
    Kind kind;
    uint64_t socket;
    std::string bytes;
  };
  struct Line {
    TrueTime at = 0;
    std::string before;
    std::vector<unsigned> masters;
    std::string after;
    std::vector<std::string> answers;  // of the masters, in order; empty where nothing was asked
  };

  Master& master(unsigned number) { return *masters_.at(number - 1); }
  const Master& master(unsigned number) const { return *masters_.at(number - 1); }
  uint64_t open_socket(Gateway& gateway, unsigned master);
  void arrive(uint64_t socket, const std::string& bytes);
  void accept(uint64_t id, Socket& socket);
  void read(uint64_t id, Socket& socket);
  void execute(uint64_t id, Socket& socket, const Socket::Request& request, const Socket::Request* next);
  void tell_pushed(unsigned master);
  void send_back(uint64_t id, Socket& socket, const std::string& bytes, Input::Kind kind);
  void hang_up(Gateway& gateway, uint64_t socket);
  void break_sockets(unsigned master, Unread unread);
  bool run_one(TrueTime until);
  void feed(Gateway& gateway, const Input& input);
  void check_exclusion();

  std::string in_words(const std::vector<std::string>& words) const;
  void learn_value(const std::vector<std::string>& words);
  void write_down(const std::string& before, unsigned master, const std::string& after,
                  const std::string& answer = "");

  std::vector<std::unique_ptr<Master>> masters_;
  std::vector<std::unique_ptr<Gateway>> gateways_;
  std::map<uint64_t, Socket> sockets_;
  std::map<std::pair<TrueTime, uint64_t>, Input> inputs_;
  TrueTime now_ = 0;
  uint64_t next_input_ = 1;
  uint64_t next_socket_ = 1;
  uint64_t next_write_ = 1;
  std::vector<Line> story_;
  std::vector<Executed> executed_;
  std::map<std::string, std::string> values_;  // value → label
  std::map<std::string, unsigned> value_count_;
  std::set<std::string> accused_;
  std::set<std::pair<std::string, unsigned>> blocked_;
  unsigned violations_ = 0;
};

// "1000" for whole milliseconds, "0.5" else.
std::string ms_text(TrueTime ns);

}  // namespace redlock::test
