// SPDX-License-Identifier: MIT
//
// TlsServer, TlsPeer: a TLS server in memory, made by OpenSSL whatever library the client has. TlsTalk: a client's Tls
// and such a peer with a wire between them that a test may cut, narrow, or write to.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "port/tls/tls.hpp"
#include "support/certificates.hpp"

struct ssl_st;
struct ssl_ctx_st;

namespace redlock::test {

enum class ClientCertificate { not_asked, wanted };
enum class TlsVersions { all, only_1_0, only_1_2, only_1_3 };

class TlsServer {
 public:
  struct Options {
    TlsVersions versions = TlsVersions::all;
    ClientCertificate client = ClientCertificate::not_asked;
    const Certificate* client_authority = nullptr;
    std::string ciphers = {};  // of TLS 1.2
    std::string groups = {};
    bool lax = false;          // shows certificates that OpenSSL finds too weak
    const Certificate* shown_first = nullptr;  // behind the server's own certificate, ahead of those above it
    const Certificate* shown_too = nullptr;    // behind all
  };
  explicit TlsServer(const Certificate& certificate) : TlsServer(certificate, Options{}) {}
  TlsServer(const Certificate& certificate, const Options& options);
  void renew(const Certificate& certificate);  // for new connections; sessions stay good
  ssl_ctx_st* context() const { return context_.get(); }

 private:
  std::shared_ptr<ssl_ctx_st> context_;
};

// One connection of the server.
class TlsPeer {
 public:
  explicit TlsPeer(const TlsServer& server);
  // Bytes of the client's; what they make the peer say is then in take(), their plain text in `heard`.
  void feed(const std::string& bytes);
  std::string take();
  void say(const std::string& plain);
  void change_keys(bool ask_back);  // TLS 1.3
  void say_goodbye();
  bool accepted() const;  // the handshake is over for the peer
  bool failed() const { return failed_; }
  bool client_said_goodbye() const;
  std::string server_name() const;  // that the client asked for; empty: none
  std::string heard;

 private:
  std::shared_ptr<ssl_st> ssl_;
  bool failed_ = false;
};

// The client's end of the wire.
struct TestWire {
  std::string in;   // what the client may still receive
  std::string out;  // what the client has sent
  size_t receive_max = SIZE_MAX;  // bytes in one call
  size_t send_max = SIZE_MAX;
  size_t send_room = SIZE_MAX;    // bytes in all
  bool ended = false;             // behind `in`
  bool broken = false;            // behind `in`
  bool send_broken = false;
  size_t receives = 0;            // calls
  size_t received = 0;            // bytes
  size_t sent = 0;                // bytes

  tls::Wire wire();
};

// What the client is set up with; strings that TlsSettings refers to.
struct TlsWishes {
  std::string ca_file = {};
  std::string cert_file = {};
  std::string key_file = {};
  std::string server_name = "m1.example";
  std::string pins = {};
  bool tls13 = false;

  TlsSettings settings() const;
};

class TlsTalk {
 public:
  TlsTalk(Tls& client, const TlsServer& server, int64_t utc_s);
  TlsTalk(Tls& client, const TlsServer& server);  // at the time of day
  ~TlsTalk() { client.end(false); }

  // One step of the client's, and what the server makes of it.
  tls::Progress step();
  // Until neither side can go on. The result of the client's last step.
  tls::Progress shake();
  // After the handshake: all that the client can read now. `last`: what its last read gave.
  std::string read(tls::Progress* last = nullptr);
  // Writes all, whatever the wire takes at once; `pump` the server's side in between.
  bool write(const std::string& text);
  void pump();  // bytes of both to the other side

  Tls& client;
  TlsPeer peer;
  TestWire wire;
  std::function<void(std::string&)> mangle;  // what the server sends, before the client gets it
  unsigned steps = 0;
};

// Does the client's library know TLS 1.3?
bool client_has_tls13();

}  // namespace redlock::test
