// SPDX-License-Identifier: MIT
#include "support/certificates.hpp"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <unistd.h>

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

std::shared_ptr<EVP_PKEY> make_key(bool rsa) {
  const std::unique_ptr<EVP_PKEY_CTX, void (*)(EVP_PKEY_CTX*)> context(
      EVP_PKEY_CTX_new_id(rsa ? EVP_PKEY_RSA : EVP_PKEY_EC, nullptr), EVP_PKEY_CTX_free);
  EVP_PKEY* key = nullptr;
  must(context && EVP_PKEY_keygen_init(context.get()) == 1, "a generator of keys");
  const int chosen = rsa ? EVP_PKEY_CTX_set_rsa_keygen_bits(context.get(), 2'048)
                         : EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context.get(), NID_X9_62_prime256v1);
  must(chosen > 0 && EVP_PKEY_keygen(context.get(), &key) == 1, "a key");
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
  add_extension(x, NID_basic_constraints, authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  add_extension(x, NID_key_usage, authority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature");
  add_names(x, options.names);
  must(X509_sign(x, issuer != nullptr ? issuer->key() : made.key(), EVP_sha256()) > 0, "a signature");

  made.pem_ = pem_of([x](BIO* out) { return PEM_write_bio_X509(out, x); });
  made.key_ = pem_of([&made](BIO* out) {
    return PEM_write_bio_PKCS8PrivateKey(out, made.key(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  made.root_ = issuer == nullptr;
  if (issuer != nullptr && !issuer->root_) made.above_ = issuer->chain_pem();
  return made;
}

Certificate Certificate::self_signed(const Options& options) { return make(options, make_key(options.rsa), nullptr); }

Certificate Certificate::authority(const std::string& cn) {
  return self_signed({.cn = cn, .use = Use::authority, .until_s = 10 * 365 * 86'400});
}

Certificate Certificate::issue(const Options& options) const { return make(options, make_key(options.rsa), this); }

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
