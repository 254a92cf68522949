// SPDX-License-Identifier: MIT
#include "support/certificates.hpp"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace redlock::test {
namespace {

void must(bool done, const char* what) {
  if (!done) throw std::runtime_error(std::string("certificates: libcrypto refuses: ") + what);
}

using Number = std::unique_ptr<BIGNUM, void (*)(BIGNUM*)>;
Number number() { return {BN_new(), BN_free}; }

Number random_number(unsigned bits) {
  Number made = number();
  must(BN_rand(made.get(), static_cast<int>(bits), BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ODD) == 1, "a number");
  return made;
}

// d: null, or the private exponent.
std::shared_ptr<EVP_PKEY> rsa_key(const BIGNUM* n, const BIGNUM* e, const BIGNUM* d) {
  const std::unique_ptr<OSSL_PARAM_BLD, void (*)(OSSL_PARAM_BLD*)> build(OSSL_PARAM_BLD_new(), OSSL_PARAM_BLD_free);
  OSSL_PARAM_BLD_push_BN(build.get(), "n", n);
  OSSL_PARAM_BLD_push_BN(build.get(), "e", e);
  if (d != nullptr) OSSL_PARAM_BLD_push_BN(build.get(), "d", d);
  const std::unique_ptr<OSSL_PARAM, void (*)(OSSL_PARAM*)> params(OSSL_PARAM_BLD_to_param(build.get()),
                                                                OSSL_PARAM_free);
  const std::unique_ptr<EVP_PKEY_CTX, void (*)(EVP_PKEY_CTX*)> context(
      EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr), EVP_PKEY_CTX_free);
  EVP_PKEY* key = nullptr;
  const int kind = d != nullptr ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY;
  must(EVP_PKEY_fromdata_init(context.get()) == 1 && EVP_PKEY_fromdata(context.get(), &key, kind, params.get()) == 1,
       "an RSA key of our own numbers");
  return {key, EVP_PKEY_free};
}

std::shared_ptr<EVP_PKEY> hollow_key(unsigned modulus_bits, unsigned exponent_bits) {
  return rsa_key(random_number(modulus_bits).get(), random_number(exponent_bits).get(), nullptr);
}

// The modulus is a product of primes of 64 bits, which are found at once. It may have a few bits less.
std::shared_ptr<EVP_PKEY> quick_key(unsigned modulus_bits, unsigned exponent_bits) {
  const std::unique_ptr<BN_CTX, void (*)(BN_CTX*)> space(BN_CTX_new(), BN_CTX_free);
  const Number n = number(), phi = number(), prime = number(), d = number();
  BN_one(n.get());
  BN_one(phi.get());
  for (unsigned bits = 0; bits < modulus_bits; bits += 64) {
    must(BN_generate_prime_ex(prime.get(), 64, 0, nullptr, nullptr, nullptr) == 1, "a prime");
    BN_mul(n.get(), n.get(), prime.get(), space.get());
    BN_sub_word(prime.get(), 1);
    BN_mul(phi.get(), phi.get(), prime.get(), space.get());
  }
  Number e = random_number(exponent_bits);
  while (BN_mod_inverse(d.get(), e.get(), phi.get(), space.get()) == nullptr) e = random_number(exponent_bits);
  return rsa_key(n.get(), e.get(), d.get());
}

std::shared_ptr<EVP_PKEY> make_key(const Certificate::Options& options) {
  std::string kind = options.key;
  if (kind.empty()) kind = options.rsa ? "rsa:2048" : "P-256";
  unsigned bits = 0, exponent = 0;
  if (sscanf(kind.c_str(), "hollow:%u:%u", &bits, &exponent) == 2) return hollow_key(bits, exponent);
  if (sscanf(kind.c_str(), "quick:%u:%u", &bits, &exponent) == 2) return quick_key(bits, exponent);
  EVP_PKEY* key = nullptr;
  if (kind == "ed25519") {
    key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  } else if (sscanf(kind.c_str(), "rsa:%u", &bits) == 1) {
    key = EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", static_cast<size_t>(bits));
  } else {
    key = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", kind.c_str());
  }
  must(key != nullptr, "a key");
  return {key, EVP_PKEY_free};
}

template <class Write>
std::string pem_of(Write write) {
  const std::unique_ptr<BIO, int (*)(BIO*)> out(BIO_new(BIO_s_mem()), BIO_free);
  must(out && write(out.get()) == 1, "PEM");
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<size_t>(size)};
}

void add_extension(X509* certificate, int nid, const std::string& value) {
  const std::unique_ptr<X509_EXTENSION, void (*)(X509_EXTENSION*)> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str()), X509_EXTENSION_free);
  must(extension && X509_add_ext(certificate, extension.get(), -1) == 1, value.c_str());
}

void add_name(GENERAL_NAMES* names, const std::string& name) {
  const bool address = name.rfind("IP:", 0) == 0;
  if (!address && name.rfind("DNS:", 0) != 0) throw std::runtime_error("certificates: neither DNS: nor IP: " + name);
  std::string value = name.substr(name.find(':') + 1);
  if (address) {
    unsigned char bytes[16];
    const bool v6 = inet_pton(AF_INET6, value.c_str(), bytes) == 1;
    if (!v6 && inet_pton(AF_INET, value.c_str(), bytes) != 1) throw std::runtime_error("certificates: " + name);
    value.assign(reinterpret_cast<char*>(bytes), v6 ? 16 : 4);
  }
  GENERAL_NAME* const entry = GENERAL_NAME_new();
  ASN1_STRING* const text = address ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
  must(entry != nullptr && text != nullptr && ASN1_STRING_set(text, value.data(), static_cast<int>(value.size())) == 1,
       "a name");
  GENERAL_NAME_set0_value(entry, address ? GEN_IPADD : GEN_DNS, text);
  must(sk_GENERAL_NAME_push(names, entry) > 0, "a name");
}

void add_names(X509* certificate, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> all(GENERAL_NAMES_new(), GENERAL_NAMES_free);
  for (const std::string& name : names) add_name(all.get(), name);
  must(X509_add1_ext_i2d(certificate, NID_subject_alt_name, all.get(), 0, X509V3_ADD_APPEND) == 1, "subjectAltName");
}

void set_serial(X509* certificate) {
  static uint64_t last = static_cast<uint64_t>(time(nullptr)) << 20;
  must(ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), ++last) == 1, "a serial number");
}

}  // namespace

Certificate Certificate::make(const Options& options, std::shared_ptr<EVP_PKEY> pair, const Certificate* issuer) {
  Certificate made;
  made.pair_ = std::move(pair);
  made.certificate_ = {X509_new(), X509_free};
  X509* const x = made.certificate_.get();
  must(x != nullptr && X509_set_version(x, 2) == 1, "a certificate");
  set_serial(x);
  const time_t now = options.now_s != 0 ? static_cast<time_t>(options.now_s) : time(nullptr);
  const auto set = [now](ASN1_TIME* time, int64_t from_now_s) {
    ASN1_TIME_adj(time, now, static_cast<int>(from_now_s / 86'400), static_cast<long>(from_now_s % 86'400));
  };
  set(X509_getm_notBefore(x), options.from_s);
  set(X509_getm_notAfter(x), options.until_s);
  must(X509_set_pubkey(x, made.pair_.get()) == 1, "a public key");
  const auto* const cn = reinterpret_cast<const unsigned char*>(options.cn.c_str());
  must(X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8, cn, -1, -1, 0) == 1, "a name");
  X509* const above = issuer != nullptr ? issuer->x509() : x;
  must(X509_set_issuer_name(x, X509_get_subject_name(above)) == 1, "the issuer's name");
  const bool authority = options.use == Use::authority;
  add_extension(x, NID_basic_constraints,
                !authority                   ? "critical,CA:FALSE"
                : options.signs_leaves_alone ? "critical,CA:TRUE,pathlen:0"
                                             : "critical,CA:TRUE");
  const char* const usage = authority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature";
  add_extension(x, NID_key_usage, options.usage.empty() ? usage : options.usage);
  if (!options.extended_usage.empty()) add_extension(x, NID_ext_key_usage, options.extended_usage);
  if (!options.name_constraints.empty()) add_extension(x, NID_name_constraints, options.name_constraints);
  add_names(x, options.names);
  EVP_PKEY* const signer = issuer != nullptr ? issuer->key() : made.key();
  const EVP_MD* const digest = options.sha1 ? EVP_sha1() : EVP_sha256();
  must(X509_sign(x, signer, EVP_PKEY_get_base_id(signer) == EVP_PKEY_ED25519 ? nullptr : digest) > 0, "a signature");

  made.pem_ = pem_of([x](BIO* out) { return PEM_write_bio_X509(out, x); });
  if (options.key.rfind("hollow", 0) != 0 && options.key.rfind("quick", 0) != 0) {
    made.key_ = pem_of([&made](BIO* out) {
      return PEM_write_bio_PKCS8PrivateKey(out, made.key(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  made.root_ = issuer == nullptr;
  if (issuer != nullptr && !issuer->root_) made.above_ = issuer->chain_pem();
  return made;
}

Certificate Certificate::self_signed(const Options& options) { return make(options, make_key(options), nullptr); }

Certificate Certificate::authority(const std::string& cn) {
  return self_signed({.cn = cn, .use = Use::authority, .until_s = 10 * 365 * 86'400});
}

Certificate Certificate::issue(const Options& options) const { return make(options, make_key(options), this); }

Certificate Certificate::renewed(const Options& options, const Certificate& issuer) const {
  return make(options, pair_, &issuer);
}

std::string Certificate::pin() const {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key(), &der);
  must(size > 0, "a public key as DER");
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned digest_size = 0;
  const int hashed = EVP_Digest(der, static_cast<size_t>(size), digest, &digest_size, EVP_sha256(), nullptr);
  OPENSSL_free(der);
  must(hashed == 1 && digest_size == 32, "SHA-256");
  return {reinterpret_cast<char*>(digest), digest_size};
}

std::string Certificate::pin_hex() const {
  std::string hex;
  for (const char byte : pin()) {
    hex += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    hex += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15];
  }
  return hex;
}

CertificateFolder::CertificateFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "redlock-tls.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("certificates: cannot make a folder " + name);
  folder_ = name;
}

CertificateFolder::~CertificateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string CertificateFolder::write(const std::string& name, const std::string& text) const {
  const std::string whole = path(name), unfinished = whole + ".new";
  std::ofstream(unfinished, std::ios::binary) << text;
  std::filesystem::permissions(unfinished, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::rename(unfinished, whole);
  return whole;
}

}  // namespace redlock::test
