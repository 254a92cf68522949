// SPDX-License-Identifier: MIT
//
// ChainGate: looks at a chain of certificates byte by byte, before an engine begins to compute with the chain. Whoever
// answers at a master's address may send a chain, and the keys in the chain decide how long a step of the handshake
// lasts. So the gate refuses what costs more than a well-run site needs: more than certificates_max certificates, more
// than message_max bytes, and keys other than RSA of 2,048 to 4,096 bits with an exponent of at most 32 bits, P-256,
// P-384, P-521 and Ed25519.
// mbedTLS tries each authority of the chain that has the wanted name, and a signature on a curve costs it much. So
// there are at most two authorities of P-256 or P-384, or one of P-521.
//
// The Certificate message of TLS 1.2 is not encrypted, so the gate sees the message on the wire: record.hpp gives the
// gate what the records of the handshake say. One record may hold several messages, and one message may come in several
// records. TLS 1.3 encrypts the message. OpenSSL shows its certificates to a callback before it checks them, and the
// callback asks look_at().
#pragma once
#include <redlock/redlock.h>

#include "base/types.hpp"

namespace redlock::tls {

constexpr unsigned certificates_max = 4;
constexpr size_t message_max = 16384;

// One certificate, DER: fields, each a tag, a size and so many bytes. The key stands behind fields that are skipped.
class KeyGate {
 public:
  int take(unsigned char byte);  // 0, or why the certificate is refused
  bool done() const { return part_ == Part::rest; }  // the key was seen, and may be used
  unsigned weight() const { return weight_; }        // P-256, P-384: 1; P-521: 2

 private:
  // The fields in the order of their bytes. `rest` is what comes behind the key.
  enum class Part : uint8_t {
    certificate, body, version, serial, signature, issuer, validity, subject, key_info, algorithm, key, rsa, modulus,
    exponent, rest,
  };

  bool take_header(unsigned char byte);
  bool enter();
  int take_field(unsigned char byte);
  int take_algorithm(unsigned char byte);
  int take_number(unsigned char byte);
  void next() { part_ = static_cast<Part>(static_cast<uint8_t>(part_) + 1); }

  uint32_t left_ = 0;        // bytes of the field
  Part part_ = Part::certificate;
  uint8_t header_ = 0;       // bytes of the field's header that were seen
  uint8_t size_bytes_ = 0;   // bytes of the field's size that are to come
  uint8_t tag_ = 0;
  bool in_field_ = false;
  bool number_seen_ = false;  // a byte of the number that is not 0
  uint8_t weight_ = 0;
  uint8_t algorithm_size_ = 0;
  unsigned char algorithm_[20] = {};
};

// The messages of a handshake, in the clear.
class ChainGate {
 public:
  // 0, or why the chain is refused.
  int take(const char* data, size_t size);
  // The same for certificates that are there as a whole, one after the other.
  int look_at(Bytes der);

 private:
  int take(unsigned char byte);
  int begin_certificate();
  int end_certificate();
  int begin_message();
  int take_chain(unsigned char byte);

  uint32_t left_ = 0;         // bytes of the message
  uint32_t number_ = 0;       // the size that is being read
  uint32_t certificate_ = 0;  // bytes of the certificate that are to come
  uint8_t header_ = 0;        // bytes of the message's header that were seen
  uint8_t digits_ = 0;        // bytes of the size that were seen
  uint8_t certificates_ = 0;
  uint8_t weight_ = 0;        // of the authorities
  bool is_chain_ = false;
  bool list_begun_ = false;
  KeyGate key_;
};

}  // namespace redlock::tls
