// SPDX-License-Identifier: MIT
//
// Servers that speak TLS, the authority of their certificates, and settings for clients of theirs.
#pragma once
#include "client_harness.hpp"
#include "support/certificates.hpp"
#include "support/redis_server.hpp"

namespace redlock::test {

class TlsSite {
 public:
  // clients: see ServerTls.
  explicit TlsSite(size_t masters, const std::string& clients = "no",
                   const Certificate::Options& servers_certificate = {.names = {"IP:127.0.0.1"}})
      : authority(Certificate::authority()), certificate(authority.issue(servers_certificate)) {
    start(masters, clients);
  }
  TlsSite(size_t masters, const Certificate& of_servers, const Certificate& of_authority)
      : authority(of_authority), certificate(of_servers) {
    start(masters, "no");
  }
  RedisServer& operator[](size_t m) { return *servers.at(m); }

  // A server's files, which NAME.pem and NAME.key are called.
  ServerTls files(const std::string& name, const Certificate& of, const std::string& clients = "no") const {
    return {folder.write(name + ".pem", of.chain_pem()), folder.write(name + ".key", of.key_pem()),
            folder.path("ca.pem"), clients};
  }

  std::vector<std::string> urls() const {
    std::vector<std::string> all;
    for (const auto& server : servers) all.push_back(server->url());
    return all;
  }
  Settings settings(const std::vector<std::pair<std::string, std::string>>& strings) const {
    return {urls(), "test", {}, strings};
  }
  Settings settings() const { return settings({{"tls.ca_file", folder.path("ca.pem")}}); }

  CertificateFolder folder;
  Certificate authority;
  Certificate certificate;
  std::vector<std::unique_ptr<RedisServer>> servers;

 private:
  void start(size_t masters, const std::string& clients) {
    folder.write("ca.pem", authority.pem());
    RedisServer::Options options;
    options.tls = files("server", certificate, clients);
    for (size_t m = 0; m < masters; ++m) servers.push_back(std::make_unique<RedisServer>(options));
  }
};

}  // namespace redlock::test
