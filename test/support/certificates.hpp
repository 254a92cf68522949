// SPDX-License-Identifier: MIT
//
// Certificate: authorities, and certificates and keys of servers and clients, made by libcrypto for one test. Each of
// them issues others, as text (PEM) or as files. Library redlock_test_tls, where OpenSSL's headers are found.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

struct evp_pkey_st;
struct x509_st;

namespace redlock::test {

class Certificate {
 public:
  enum class Use { leaf, authority };
  struct Options {
    std::string cn = "redlock test";
    std::vector<std::string> names = {};  // subjectAltName, in this order: "DNS:m1.example", "IP:10.0.0.1", "IP:::1"
    Use use = Use::leaf;
    // The validity, in seconds from `now_s`. now_s 0: the time of day.
    int64_t from_s = -3'600;
    int64_t until_s = 30 * 86'400;
    int64_t now_s = 0;
    bool rsa = false;  // RSA of 2,048 bits; else P-256
    // Another key: "P-384", "P-521", "brainpoolP512r1", "ed25519", "rsa:4096", or "hollow:8192:33": an RSA modulus and
    // an exponent of so many bits, with no private half, so that nobody can sign with the key. "quick:8192:8000" signs,
    // is made at once, protects nothing, and has no key_pem().
    std::string key = {};
    bool sha1 = false;                      // signed with SHA-1
    std::string usage = {};                 // keyUsage; empty: what `use` needs
    std::string extended_usage = {};        // empty: none
    std::string name_constraints = {};      // "permitted;DNS:plant.example"; empty: none
    bool signs_leaves_alone = false;        // an authority of path length 0
  };

  // Throw std::runtime_error where libcrypto refuses.
  static Certificate self_signed(const Options& options);
  static Certificate authority(const std::string& cn = "redlock test authority");
  Certificate issue(const Options& options) const;
  // A server's certificate, or a client's, with the usual validity.
  template <std::same_as<std::vector<std::string>> Names>  // a template, because braces mean Options
  Certificate issue(const Names& names) const {
    return issue(Options{.names = names});
  }
  Certificate issue(std::initializer_list<const char*> names) const {
    return issue(std::vector<std::string>(names.begin(), names.end()));
  }
  // The same key in a new certificate of the same issuer.
  Certificate renewed(const Options& options, const Certificate& issuer) const;

  const std::string& pem() const { return pem_; }        // this certificate alone
  const std::string& key_pem() const { return key_; }    // PKCS #8, without a password
  std::string chain_pem() const { return pem_ + above_; }  // and those above it, up to the root and without it
  std::string pin() const;      // SHA-256 of the SubjectPublicKeyInfo: 32 bytes
  std::string pin_hex() const;  // 64 digits

  x509_st* x509() const { return certificate_.get(); }
  evp_pkey_st* key() const { return pair_.get(); }

 private:
  Certificate() = default;
  static Certificate make(const Options& options, std::shared_ptr<evp_pkey_st> pair, const Certificate* issuer);

  std::shared_ptr<x509_st> certificate_;
  std::shared_ptr<evp_pkey_st> pair_;
  std::string pem_;
  std::string key_;
  std::string above_;
  bool root_ = false;
};

// A folder for PEM files, gone with the object.
class CertificateFolder {
 public:
  CertificateFolder();
  ~CertificateFolder();
  CertificateFolder(const CertificateFolder&) = delete;
  CertificateFolder& operator=(const CertificateFolder&) = delete;

  // Writes or replaces (by rename, as tools that rotate certificates do) a file, mode 0600; returns its path.
  std::string write(const std::string& name, const std::string& text) const;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace redlock::test
