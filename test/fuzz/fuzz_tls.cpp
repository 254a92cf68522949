// SPDX-License-Identifier: MIT
//
// A client's Tls against a server in memory that is OpenSSL's, and a wire that cuts, changes, drops, repeats, exchanges
// and makes up what the server sends, as the input says; or, instead of a server, the input's bytes themselves.
//
// After each step: the handshake is done only where the client got the server's messages as they were sent, and where
// the settings fit the server; what the client reads is what the server said, from its beginning, and the reverse; each
// step that asks for input has taken what there was. Keys are random: an input tells what is done to the bytes, not
// which bytes they are.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "input.hpp"
#include "port/tls/tls.hpp"
#include "support/certificates.hpp"
#include "support/tls_peer.hpp"

namespace redlock::test {
namespace {

using tls::Progress;

void require(bool condition, int line = __builtin_LINE()) {
  if (condition) return;
  fprintf(stderr, "not so: fuzz_tls.cpp:%d\n", line);
  abort();
}

// ---- the site: servers, and settings that fit them or not

struct Site {
  CertificateFolder folder;
  Certificate authority = Certificate::authority();
  Certificate stranger = Certificate::authority("a stranger");
  Certificate server = authority.issue(std::vector<std::string>{"DNS:m1.example"});
  Certificate client = authority.issue(std::vector<std::string>{"DNS:client"});
  std::string ca = folder.write("ca.pem", authority.pem());
  std::string other_ca = folder.write("other.pem", stranger.pem());
  std::string certificate = folder.write("client.pem", client.pem());
  std::string key = folder.write("client.key", client.key_pem());
  TlsServer usual{server};
  TlsServer only12{server, {.versions = TlsVersions::only_1_2}};
  TlsServer asking{server, {.client = ClientCertificate::wanted, .client_authority = &authority}};
  int64_t now = time(nullptr);
};

Site& site() {
  static Site one;
  return one;
}

const TlsServer& some_server(Input& input) {
  const TlsServer* const servers[] = {&site().usual, &site().only12, &site().asking};
  return *servers[input.below(3)];
}

struct Client {
  TlsWishes wishes;
  int64_t utc_s = site().now;
  bool fits = true;  // but for a server that asks for a certificate
  bool has_own = false;
};

Client some_client(Input& input) {
  const Site& s = site();
  Client client;
  switch (input.below(8)) {
    case 0:
      client.wishes = {.ca_file = s.ca, .cert_file = s.certificate, .key_file = s.key};
      break;
    case 1:
      client.wishes = {.ca_file = s.ca};
      break;
    case 2:
      client.wishes = {.pins = s.stranger.pin() + s.server.pin()};
      break;
    case 3:
      client.wishes = {.ca_file = s.ca, .pins = s.server.pin()};
      break;
    case 4:
      client.wishes = {.ca_file = s.other_ca};
      break;
    case 5:
      client.wishes = {.pins = s.stranger.pin()};
      break;
    case 6:
      client.wishes = {.ca_file = s.ca, .server_name = "m2.example"};
      break;
    default:
      client.wishes = {.ca_file = s.ca};
      client.utc_s += 365 * 86'400;
      client.fits = false;
      break;
  }
  client.has_own = !client.wishes.cert_file.empty();
  if (client.wishes.ca_file == s.other_ca || client.wishes.server_name != "m1.example" ||
      client.wishes.pins == s.stranger.pin()) {
    client.fits = false;
  }
  return client;
}

// ---- records

constexpr size_t header = 5;

size_t record_size(const std::string& bytes, size_t at) {
  if (bytes.size() - at < header) return bytes.size() - at;
  const size_t body =
      static_cast<size_t>(static_cast<unsigned char>(bytes[at + 3])) << 8 | static_cast<unsigned char>(bytes[at + 4]);
  return std::min(bytes.size() - at, header + body);
}

// What TLS vouches for: the bodies of records of the handshake and of encrypted ones. The headers' versions, the
// "change cipher spec" of 1.3, warnings, and how messages are cut into records, are not among it.
std::string messages(const std::string& bytes) {
  std::string all;
  for (size_t at = 0, size = 0; at < bytes.size(); at += size) {
    size = record_size(bytes, at);
    if (size < header || (bytes[at] != 22 && bytes[at] != 23)) continue;
    for (size_t i = at + header; i < at + size; ++i) {
      all += bytes[at];
      all += bytes[i];
    }
  }
  return all;
}

bool begins(const std::string& whole, const std::string& start) { return whole.compare(0, start.size(), start) == 0; }

// ---- one connection

class Talk {
 public:
  Talk(Tls& client, const Client& settings, const TlsServer& server, Input& input)
      : client_(client),
        settings_(settings),
        peer_(server),
        input_(input),
        must_work_(settings.fits && (settings.has_own || &server != &site().asking)) {}

  // raw: the peer is no server, but what the input says.
  void run(bool raw) {
    if (input_.flip()) wire_.receive_max = 1 + input_.byte();
    require(client_.begin(wire_.wire(), settings_.utc_s) == 0);
    if (raw) wire_.in = input_.bytes(4'096);
    const Progress progress = shake(raw);
    require(progress != Progress::failed || client_.error() < 0);
    if (progress == Progress::done) {
      require(!raw && settings_.fits);
      require(begins(messages(sent_), messages(given_.substr(0, given_.size() - wire_.in.size()))));
      talk();
    } else {
      require(raw || touched_ || !must_work_);
    }
    client_.end(input_.flip());
    require(!client_.under_way());
  }

 private:
  // Until nobody has anything to say.
  Progress shake(bool raw) {
    Progress progress = Progress::wants_input;
    for (unsigned idle = 0; idle < 2;) {
      wire_.send_room = some_room();
      const size_t before = wire_.in.size(), out = wire_.out.size();
      progress = client_.step();
      if (progress != Progress::wants_input && progress != Progress::wants_output) return progress;
      const bool moved = wire_.in.size() < before || wire_.out.size() > out;
      require(moved || before == 0 || progress == Progress::wants_output);
      require(++steps_ < 100 + 2 * (given_.size() + sent_.size()) + 8'192);
      raw ? wire_.out.clear() : pump();
      idle = moved || !wire_.in.empty() || progress == Progress::wants_output ? 0 : idle + 1;
    }
    return progress;
  }

  // After the handshake: both say something now and then. False: the connection has ended.
  bool take_turn() {
    switch (input_.below(6)) {
      case 0:
        return say();
      case 1:
        return write();
      case 2:
        wire_.send_room = some_room();
        return true;
      case 3:
        return read(1 + input_.byte() * 4u);
      case 4:
        change();
        return true;
      default:
        return goes_on(client_.flush());
    }
  }

  void talk() {
    for (unsigned turns = 0; turns < 64 && !input_.empty(); ++turns) {
      const bool goes_on = take_turn();
      pump();
      require(begins(said_, got_) && begins(told_, peer_.heard));
      if (!goes_on) return;
    }
    wire_.send_room = SIZE_MAX;
    for (unsigned turns = 0; turns < 8; ++turns) {
      if (!read(4'096)) return;
      pump();
    }
    require(begins(said_, got_) && (touched_ || peer_.failed() || got_ == said_));
  }

  bool say() {
    if (!server_talks()) return true;
    const std::string text(1 + input_.byte() * 5u, static_cast<char>('a' + said_.size() % 26));
    peer_.say(text);
    said_ += text;
    return true;
  }

  bool write() {
    const Progress earlier = client_.flush();
    if (earlier != Progress::done) return goes_on(earlier);
    const std::string text(1 + input_.byte() * 5u, static_cast<char>('A' + told_.size() % 26));
    size_t taken = 0;
    const Progress progress = client_.write({text.data(), text.size()}, taken);
    require(taken <= text.size() && (progress != Progress::done || taken > 0));
    told_ += text.substr(0, taken);
    return goes_on(progress);
  }

  bool read(size_t room) {
    std::string space(room, '\0');
    for (;;) {
      size_t got = 0;
      const Progress progress = client_.read(space.data(), room, got);
      if (progress != Progress::done) {
        require(progress != Progress::wants_input || !client_.has_read_ahead());
        return goes_on(progress);
      }
      require(got > 0 && got <= room);
      got_.append(space, 0, got);
    }
  }

  void change() {
    Tls::Facts facts;
    require(client_.facts(facts) && facts.not_before_s < facts.not_after_s);
    if (!server_talks()) return;
    if (input_.flip()) {
      peer_.say_goodbye();
      closed_ = true;
    } else if (std::string(facts.version) == "TLSv1.3") {
      peer_.change_keys(input_.flip());
    }
  }

  bool server_talks() const { return peer_.accepted() && !peer_.failed() && !closed_; }
  static bool goes_on(Progress progress) { return progress != Progress::failed && progress != Progress::ended; }
  size_t some_room() { return input_.flip() ? input_.byte() : SIZE_MAX; }

  // ---- the wire

  void pump() {
    peer_.feed(wire_.out);
    wire_.out.clear();
    const std::string bytes = peer_.take();
    sent_ += bytes;
    for (size_t at = 0, size = 0; at < bytes.size(); at += size) {
      size = record_size(bytes, at);
      pass(bytes.substr(at, size));
    }
  }

  void give(const std::string& bytes) {
    if (wire_.ended || wire_.broken) return;
    given_ += bytes;
    wire_.in += bytes;
  }

  void pass(std::string record) {
    constexpr unsigned untouched = 24;
    const unsigned what = input_.below(untouched + 8);
    if (what >= untouched) touched_ = true;
    const size_t place = what >= untouched ? (input_.byte() << 8 | input_.byte()) % record.size() : 0;
    const std::string held = std::exchange(held_, "");
    switch (what) {
      case untouched:
        record[place] = static_cast<char>(record[place] ^ (1 << input_.below(8)));
        break;
      case untouched + 1:
        record.resize(place);
        break;
      case untouched + 2:
        record.clear();
        break;
      case untouched + 3:
        record += record;
        break;
      case untouched + 4:
        held_ = std::exchange(record, "");
        break;
      case untouched + 5:
        record.insert(0, input_.bytes(input_.byte()));
        break;
      case untouched + 6:
        record = in_two(record, place);
        break;
      case untouched + 7:
        (input_.flip() ? wire_.ended : wire_.broken) = true;
        break;
      default:
        break;
    }
    give(record + held);
  }

  // The body up to `place` in a record of its own.
  static std::string in_two(const std::string& record, size_t place) {
    if (place <= header) return record;
    const auto with_size = [&record](const std::string& body) {
      return record.substr(0, 3) + static_cast<char>(body.size() >> 8) + static_cast<char>(body.size() & 0xff) + body;
    };
    return with_size(record.substr(header, place - header)) + with_size(record.substr(place));
  }

  Tls& client_;
  const Client& settings_;
  TlsPeer peer_;
  Input& input_;
  const bool must_work_;
  TestWire wire_;
  std::string sent_;        // by the server
  std::string given_;       // to the client
  std::string held_;        // a record that the next one overtakes
  std::string said_, got_;  // plain text of the server's; what of it the client has
  std::string told_;        // plain text of the client's
  bool touched_ = false;    // the client may not get what the server sent
  bool closed_ = false;
  unsigned long steps_ = 0;
};

}  // namespace
}  // namespace redlock::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace redlock::test;
  Input input(data, size);
  const Client client = some_client(input);
  redlock::Tls tls;
  require(tls.init(client.wishes.settings()) == 0);
  const bool raw = input.below(8) == 7;
  for (unsigned n = 1 + input.below(3); n > 0; --n) {
    Talk talk(tls, client, some_server(input), input);
    talk.run(raw);
  }
  return 0;
}
