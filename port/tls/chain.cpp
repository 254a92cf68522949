// SPDX-License-Identifier: MIT
#include "port/tls/chain.hpp"

#include <string.h>

namespace redlock::tls {
namespace {

constexpr uint8_t sequence = 0x30, integer = 0x02, bit_string = 0x03, explicit_version = 0xa0;
constexpr unsigned modulus_min = 2048, modulus_max = 4096, exponent_max = 32;
constexpr unsigned weight_max = 2;

// What stands in an AlgorithmIdentifier. RSA's goes on: with 1 for any use, with 10 for PSS alone.
constexpr struct KnownKey {
  uint8_t size, weight;
  unsigned char text[19];
} known_keys[] = {
    {10, 0, {6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1}},                                           // RSA
    {19, 1, {6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7}},    // P-256
    {16, 1, {6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 5, 0x2b, 0x81, 4, 0, 0x22}},                   // P-384
    {16, 2, {6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 5, 0x2b, 0x81, 4, 0, 0x23}},                   // P-521
    {5, 0, {6, 3, 0x2b, 0x65, 0x70}},                                                                    // Ed25519
};
constexpr const KnownKey& rsa = known_keys[0];

}  // namespace

// ---- one certificate ----------------------------------------------------------------------------------------------

// False: no header that DER has, or a longer field than any message.
bool KeyGate::take_header(unsigned char byte) {
  const unsigned at = header_++;
  if (at == 0) {
    tag_ = byte;
  } else if (at == 1) {
    size_bytes_ = byte > 0x80 ? byte & 0x7f : 0;
    left_ = byte > 0x80 ? 0 : byte;
    if (byte == 0x80 || size_bytes_ > 3) return false;
  } else {
    left_ = left_ << 8 | byte;
    --size_bytes_;
  }
  if (at > 0 && size_bytes_ == 0) return enter();
  return true;
}

// False: another field belongs here.
bool KeyGate::enter() {
  if (part_ == Part::version && tag_ != explicit_version) next();  // a certificate may tell no version
  const bool number = part_ == Part::serial || part_ == Part::modulus || part_ == Part::exponent;
  const uint8_t wanted = part_ == Part::version ? explicit_version
                         : part_ == Part::key   ? bit_string
                         : number               ? integer
                                                : sequence;
  if (part_ == Part::key && left_ > 0) left_ = 1;  // how many bits of the last byte do not count
  if (part_ == Part::certificate || part_ == Part::body || part_ == Part::key_info || part_ == Part::rsa) left_ = 0;
  header_ = 0;
  number_seen_ = false;
  in_field_ = left_ > 0;
  if (!in_field_) next();
  return tag_ == wanted;
}

int KeyGate::take_algorithm(unsigned char byte) {
  if (left_ > sizeof algorithm_ - algorithm_size_) return REDLOCK_E_TLS_KEY;
  algorithm_[algorithm_size_++] = byte;
  if (left_ > 1) return 0;
  for (const KnownKey& known : known_keys) {
    const bool fits = algorithm_size_ == known.size || (&known == &rsa && algorithm_size_ > rsa.size);
    if (!fits || memcmp(algorithm_, known.text, known.size) != 0) continue;
    if (&known != &rsa) part_ = Part::exponent;  // nothing to be looked at follows
    weight_ = known.weight;
    return 0;
  }
  return REDLOCK_E_TLS_KEY;
}

// The first byte that is not 0 tells how many bits the number has.
int KeyGate::take_number(unsigned char byte) {
  if (number_seen_) return 0;
  if (byte == 0) return left_ > 1 ? 0 : int{REDLOCK_E_TLS_WEAK};
  number_seen_ = true;
  const uint32_t bits = left_ * 8 - static_cast<uint32_t>(__builtin_clz(byte) - 24);
  if (part_ == Part::exponent) return bits > exponent_max ? int{REDLOCK_E_TLS_EXPONENT} : 0;
  if (bits < modulus_min) return REDLOCK_E_TLS_WEAK;
  return bits > modulus_max ? int{REDLOCK_E_TLS_MODULUS} : 0;
}

int KeyGate::take_field(unsigned char byte) {
  int refused = 0;
  if (part_ == Part::algorithm) {
    refused = take_algorithm(byte);
  } else if (part_ == Part::modulus || part_ == Part::exponent) {
    refused = take_number(byte);
  }
  in_field_ = --left_ > 0;
  if (!in_field_) next();
  return refused;
}

int KeyGate::take(unsigned char byte) {
  if (done()) return 0;
  if (in_field_) return take_field(byte);
  return take_header(byte) ? 0 : int{REDLOCK_E_TLS_BROKEN};
}

// ---- the messages -------------------------------------------------------------------------------------------------

int ChainGate::begin_message() {
  header_ = digits_ = certificates_ = weight_ = 0;
  certificate_ = 0;
  list_begun_ = false;
  return is_chain_ && left_ > message_max ? int{REDLOCK_E_TLS_MESSAGE} : 0;
}

int ChainGate::begin_certificate() {
  key_ = KeyGate();
  return ++certificates_ > certificates_max ? int{REDLOCK_E_TLS_CHAIN} : 0;
}

int ChainGate::end_certificate() {
  if (!key_.done()) return REDLOCK_E_TLS_BROKEN;
  if (certificates_ > 1) weight_ = static_cast<uint8_t>(weight_ + key_.weight());
  return weight_ > weight_max ? int{REDLOCK_E_TLS_CURVES} : 0;
}

int ChainGate::look_at(Bytes der) {
  int refused = begin_certificate();
  for (size_t i = 0; i < der.size && refused == 0; ++i) refused = key_.take(static_cast<unsigned char>(der.data[i]));
  return refused != 0 ? refused : end_certificate();
}

// The size of the list, and then for each certificate its size and its bytes. An engine refuses sizes that do not fit.
int ChainGate::take_chain(unsigned char byte) {
  if (certificate_ > 0) {
    const int refused = key_.take(byte);
    return refused != 0 || --certificate_ > 0 ? refused : end_certificate();
  }
  number_ = number_ << 8 | byte;
  if (++digits_ < 3) return 0;
  digits_ = 0;
  if (list_begun_) {
    certificate_ = number_ & 0xffffff;
    return begin_certificate();
  }
  list_begun_ = true;
  return 0;
}

int ChainGate::take(unsigned char byte) {
  constexpr unsigned char certificate_message = 11;
  if (left_ > 0) {
    --left_;
    return is_chain_ ? take_chain(byte) : 0;
  }
  if (header_ == 0) is_chain_ = byte == certificate_message;
  number_ = number_ << 8 | byte;
  if (++header_ < 4) return 0;
  left_ = number_ & 0xffffff;
  return begin_message();
}

int ChainGate::take(const char* data, size_t size) {
  int refused = 0;
  for (size_t i = 0; i < size && refused == 0; ++i) refused = take(static_cast<unsigned char>(data[i]));
  return refused;
}

}  // namespace redlock::tls
