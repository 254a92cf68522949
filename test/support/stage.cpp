// SPDX-License-Identifier: MIT
#include "stage.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "lua_scripts.hpp"
#include "stage_words.hpp"

namespace redlock::test {

using namespace stage_words;

std::string ms_text(TrueTime ns) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ns) / 1e6);
  std::string out = text;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out;
}

// ---- stage ----------------------------------------------------------------------------------------------------

Stage::Stage(unsigned masters) {
  for (unsigned m = 0; m < masters; ++m) {
    masters_.push_back(std::make_unique<Master>(m + 1));
    register_scripts(masters_.back()->redis);
  }
}

Stage::~Stage() = default;

Gateway& Stage::add(const std::string& name, const std::function<void(Settings&)>& change, int64_t rate_ppm,
                    bool entropy, bool commission) {
  static constexpr const char* names[] = {"m1", "m2",  "m3",  "m4",  "m5",  "m6",  "m7", "m8",
                                          "m9", "m10", "m11", "m12", "m13", "m14", "m15"};
  Settings settings;
  settings.masters = masters();
  for (unsigned m = 0; m < masters(); ++m) {
    settings.master[m].name = Bytes(names[m], strlen(names[m]));
    settings.master[m].host = Bytes("127.0.0.1");
    settings.master[m].port = static_cast<uint16_t>(m + 1);
  }
  settings.client_name = Bytes(name.data(), name.size());
  if (change) change(settings);
  const unsigned number = static_cast<unsigned>(gateways_.size()) + 1;
  gateways_.push_back(std::unique_ptr<Gateway>(new Gateway(*this, name, number, settings, rate_ppm)));
  Gateway& gateway = *gateways_.back();
  gateway.set_entropy(entropy);
  if (commission) gateway.client_->commission(settings.masters, gateway.now());
  gateway.loop();
  settle();
  return gateway;
}

Gateway& Stage::gateway(const std::string& name) {
  for (const auto& gateway : gateways_) {
    if (gateway->name == name) return *gateway;
  }
  std::fprintf(stderr, "no gateway is called %s\n", name.c_str());
  std::abort();
}

// ---- time -----------------------------------------------------------------------------------------------------

void Stage::advance_ms(double ms) {
  const TrueTime until = now_ + static_cast<TrueTime>(ms * 1e6 + 0.5);
  unsigned at_once = 0;
  TrueTime before = now_;
  while (run_one(until)) {
    at_once = now_ == before ? at_once + 1 : 0;
    before = now_;
    if (at_once == inputs_max) {
      std::fprintf(stderr, "the stage does not come to rest:\n%s", take_story().c_str());
      std::abort();
    }
  }
  if (now_ < until) now_ = until;  // a callback may have taken longer
}

void Stage::settle() {
  for (const auto& gateway : gateways_) {
    if (gateway->stepping() && !gateway->closed_) return;  // called from a callback: the step under way comes to it
  }
  for (unsigned m = 1; m <= masters(); ++m) tell_pushed(m);
  advance_ms(0);
}

// The earliest thing that is due by then: an input, else a timer. A paused gateway lets its own wait.
bool Stage::run_one(TrueTime until) {
  auto input = inputs_.begin();
  while (input != inputs_.end() && sockets_.at(input->second.socket).gateway->paused_) ++input;
  TrueTime at = input != inputs_.end() ? input->first.first : never;
  Gateway* timer = nullptr;
  for (const auto& gateway : gateways_) {
    if (!gateway->paused_ && gateway->due() < at) {
      timer = gateway.get();
      at = timer->due();
    }
  }
  if (at > until || at == never) return false;
  if (now_ < at) now_ = at;
  if (timer != nullptr) {
    timer->timer_fired();
    timer->loop();
    return true;
  }
  const Input taken = input->second;
  inputs_.erase(input);
  feed(*sockets_.at(taken.socket).gateway, taken);
  return true;
}

bool Stage::input_waits(const Gateway& gateway) const {
  for (auto input = inputs_.begin(); input != inputs_.end() && input->first.first <= now_; ++input) {
    if (sockets_.at(input->second.socket).gateway == &gateway) return true;
  }
  return false;
}

void Stage::feed(Gateway& gateway, const Input& input) {
  const Socket& socket = sockets_.at(input.socket);
  const MasterIndex m = gateway.index_of(socket.master);
  Gateway::Connection& c = gateway.connections_[m];
  if (!socket.open || c.id != input.socket || gateway.closed_) return;
  switch (input.kind) {
    case Input::Kind::connected: {
      c.state = Gateway::Connection::State::open;
      gateway.connected(m, gateway.now());
      break;
    }
    case Input::Kind::refused:
      gateway.close(m, REDLOCK_E_CONNECT, true, gateway.now());
      break;
    case Input::Kind::bytes:
      return gateway.read(m, input.bytes);
    case Input::Kind::end:
      gateway.close(m, REDLOCK_E_DISCONNECTED, false, gateway.now());
      break;
  }
  gateway.loop();
}

// ---- between gateways and masters -----------------------------------------------------------------------------

uint64_t Stage::open_socket(Gateway& gateway, unsigned number) {
  const uint64_t id = next_socket_++;
  Socket& socket = sockets_[id];
  socket.gateway = &gateway;
  socket.master = number;
  if (master(number).way == Way::down) {
    send_back(id, socket, "", Input::Kind::refused);
  } else if (master(number).way != Way::unreachable) {
    accept(id, socket);
  }
  return id;
}

void Stage::accept(uint64_t id, Socket& socket) {
  Master& m = master(socket.master);
  socket.conn = m.redis.open(now_);
  send_back(id, socket, "", Input::Kind::connected);
  std::string& greeting = m.redis.out(socket.conn);
  if (greeting.empty()) return;
  send_back(id, socket, greeting, Input::Kind::bytes);
  greeting.clear();
  send_back(id, socket, "", Input::Kind::end);
}

void Stage::arrive(uint64_t id, const std::string& bytes) {
  Socket& socket = sockets_.at(id);
  const uint64_t write = next_write_++;
  socket.partial += bytes;
  std::vector<std::string> words;
  while (const std::optional<size_t> end = command_end(socket.partial, words)) {
    socket.unread.push_back({socket.partial.substr(0, *end), write});
    socket.partial.erase(0, *end);
    learn_value(words);
    const Way way = master(socket.master).way;
    const bool waits = way == Way::frozen || way == Way::unreachable ||
                       blocked_.count({socket.gateway->name, socket.master}) != 0;
    if (waits && (show_greetings || !is_greeting(words))) {
      write_down(socket.gateway->name + " >", socket.master, in_words(words), "unread");
    }
  }
  read(id, socket);
}

void Stage::read(uint64_t id, Socket& socket) {
  if (socket.stalled || blocked_.count({socket.gateway->name, socket.master}) != 0) return;
  const Way way = master(socket.master).way;
  if (way != Way::answering && way != Way::silent && way != Way::stuffed) return;
  std::vector<Socket::Request> requests;
  requests.swap(socket.unread);
  for (size_t i = 0; i < requests.size(); ++i) {
    execute(id, socket, requests[i], i + 1 < requests.size() ? &requests[i + 1] : nullptr);
  }
  if (!socket.open) master(socket.master).redis.close(socket.conn);
}

void Stage::execute(uint64_t id, Socket& socket, const Socket::Request& request, const Socket::Request* next) {
  Master& m = master(socket.master);
  std::vector<std::string> words;
  command_end(request.bytes, words);
  if (m.redis.closed_by_server(socket.conn)) return;
  const bool of_a_reading =
      is_caching(words) && next != nullptr && next->bytes.find(text_of(reading_script)) != std::string::npos;
  m.redis.receive(socket.conn, request.bytes, now_);
  std::string reply = m.redis.out(socket.conn);
  m.redis.out(socket.conn).clear();
  const bool load = words[0] == "SCRIPT" && reply[0] == '$';
  const std::string answer = load ? "its digest" : label_of(reply_in_words(reply));
  executed_.push_back({now_ms(), socket.gateway->name, socket.master, request.write, words, in_words(words), answer});
  if (lie) lie(socket.master, words, reply);
  std::string fate;
  if (!socket.open) {
    fate = ", to nobody";
  } else if (m.way == Way::silent) {
    socket.held.push_back(reply);
    fate = ", held back";
  } else {
    send_back(id, socket, reply, Input::Kind::bytes);
    if (m.delay > 0) fate = ", on its way";
  }
  const bool looks = words[0] == "EVAL" && words[1] == text_of(look_script);
  if (words[0] == "PTTL" || looks) {  // with the CLIENT CACHING before it
    const std::string names = looks ? executed_.back().text.substr(sizeof "EVAL look") : words[1];
    write_down(socket.gateway->name + " >", socket.master, "look " + names, answer + fate);
  } else if (show_greetings || !(is_greeting(words) || of_a_reading)) {
    write_down(socket.gateway->name + " >", socket.master, executed_.back().text, answer + fate);
  }
  if (socket.open && m.redis.closed_by_server(socket.conn)) send_back(id, socket, "", Input::Kind::end);
  tell_pushed(socket.master);
}

// What the master says unasked goes the way of its replies.
void Stage::tell_pushed(unsigned number) {
  Master& m = master(number);
  for (const int conn : m.redis.take_pushed()) {
    std::string& bytes = m.redis.out(conn);
    if (bytes.empty()) continue;
    for (auto& [id, socket] : sockets_) {
      if (socket.master != number || socket.conn != conn || !socket.open) continue;
      write_down(socket.gateway->name + " <", number,
                 reply_in_words(bytes) + (m.way == Way::silent ? ", held back" : ""));
      if (m.way == Way::silent) {
        socket.held.push_back(bytes);
      } else {
        send_back(id, socket, bytes, Input::Kind::bytes);
      }
    }
    bytes.clear();
  }
}

// Replies keep their order also when the delay gets shorter.
void Stage::send_back(uint64_t id, Socket& socket, const std::string& bytes, Input::Kind kind) {
  TrueTime at = now_ + master(socket.master).delay;
  if (at < socket.last_arrival) at = socket.last_arrival;
  socket.last_arrival = at;
  inputs_[{at, next_input_++}] = {kind, id, bytes};
}

// The gateway closes its end. What the master has not read stays there: a frozen server executes it when it thaws.
void Stage::hang_up(Gateway& gateway, uint64_t id) {
  const auto found = sockets_.find(id);
  if (found == sockets_.end() || found->second.gateway != &gateway) return;
  Socket& socket = found->second;
  socket.open = false;
  socket.partial.clear();
  socket.held.clear();
  if (socket.unread.empty()) master(socket.master).redis.close(socket.conn);
}

void Stage::break_sockets(unsigned number, Unread unread) {
  for (auto& [id, socket] : sockets_) {
    if (socket.master != number) continue;
    if (unread == Unread::dropped) socket.unread.clear();
    if (unread == Unread::stalled) socket.stalled = true;
    if (!socket.open) continue;
    socket.held.clear();
    for (auto input = inputs_.begin(); input != inputs_.end();) {
      input = input->second.socket == id ? inputs_.erase(input) : std::next(input);
    }
    inputs_[{now_, next_input_++}] = {Input::Kind::end, id, ""};
  }
}

// ---- masters --------------------------------------------------------------------------------------------------

RedisDouble& Stage::redis(unsigned number) { return master(number).redis; }

void Stage::set_delay_ms(unsigned number, double ms) { master(number).delay = static_cast<TrueTime>(ms * 1e6); }

void Stage::set_way(unsigned number, Way way) {
  Master& m = master(number);
  const Way before = m.way;
  m.way = way;
  if (way == Way::down) {
    break_sockets(number, Unread::dropped);
    return settle();
  }
  std::vector<uint64_t> mine;
  for (const auto& [id, socket] : sockets_) {
    if (socket.master == number) mine.push_back(id);
  }
  for (const uint64_t id : mine) {
    Socket& socket = sockets_.at(id);
    const bool waits = socket.open && socket.conn == 0 && before == Way::unreachable;
    if (waits && way != Way::unreachable) accept(id, socket);
    if (way == Way::answering) {
      for (const std::string& reply : socket.held) {
        write_down(socket.gateway->name + " <", number, label_of(reply_in_words(reply)));
        send_back(id, socket, reply, Input::Kind::bytes);
      }
      socket.held.clear();
    }
    read(id, socket);
  }
  if (way == Way::stuffed || before == Way::stuffed) set_room(number, way == Way::stuffed ? 0 : SIZE_MAX);
  settle();
}

void Stage::set_room(unsigned number, size_t bytes) {
  master(number).room = bytes;
  for (const auto& gateway : gateways_) {
    const MasterIndex at = gateway->index_of(number);
    if (bytes == 0 || at == gateway->connections_.size() || !gateway->connections_[at].full) continue;
    gateway->connections_[at].full = false;
    gateway->writable(at);
    gateway->loop();
  }
  settle();
}

void Stage::answer(unsigned number, unsigned replies) {
  for (auto& [id, socket] : sockets_) {
    if (socket.master != number) continue;
    for (unsigned i = 0; i < replies && !socket.held.empty(); ++i) {
      write_down(socket.gateway->name + " <", number, label_of(reply_in_words(socket.held.front())));
      send_back(id, socket, socket.held.front(), Input::Kind::bytes);
      socket.held.erase(socket.held.begin());
    }
  }
  settle();
}

void Stage::reset(unsigned number, Unread unread) {
  break_sockets(number, unread);
  settle();
}

void Stage::block(Gateway& gateway, unsigned number, bool blocked) {
  if (blocked) {
    blocked_.insert({gateway.name, number});
    return;
  }
  blocked_.erase({gateway.name, number});
  for (auto& [id, socket] : sockets_) {
    if (socket.master == number && socket.gateway == &gateway) read(id, socket);
  }
  settle();
}

void Stage::drain(unsigned number) {
  for (auto& [id, socket] : sockets_) {
    if (socket.master != number || !socket.stalled) continue;
    socket.stalled = false;
    read(id, socket);
  }
  settle();
}

void Stage::restart(unsigned number, RedisDouble::Keep keep) {
  break_sockets(number, Unread::dropped);
  master(number).redis.crash(keep, now_);
  settle();
}

}  // namespace redlock::test
