// SPDX-License-Identifier: MIT
#include "port/tls/tls.hpp"

#include <stdlib.h>

#include "port/tls/certificate.hpp"

namespace redlock {

// ---- settings and files -----------------------------------------------------------------------------------------

namespace {

// Copies to `at`, with a NUL behind, and moves `at` on.
Bytes append(char*& at, Bytes text) {
  if (text.size > 0) memcpy(at, text.data, text.size);
  const Bytes copy(at, text.size);
  at += text.size;
  *at++ = '\0';
  return copy;
}

}  // namespace

Tls::~Tls() {
  end(false);
  drop_session();
  tls::free_trust(trust_);
  free(strings_);
}

int Tls::init(const TlsSettings& settings) {
  REDLOCK_ASSERT(!wanted_);
  if (!settings.wanted) return 0;
  const int copied = copy(settings);
  return copied != 0 ? copied : load();
}

int Tls::copy(const TlsSettings& s) {
  const Bytes given[files] = {s.ca_file, s.cert_file, s.key_file};
  size_t size = s.server_name.size + s.pins.size + 2;
  for (const Bytes& path : given) size += path.size + 1;
  strings_ = static_cast<char*>(malloc(size));
  if (strings_ == nullptr) return REDLOCK_E_NOMEM;
  char* at = strings_;
  for (unsigned i = 0; i < files; ++i) {
    const Bytes path = append(at, given[i]);
    if (path.size > 0) paths_[i] = path.data;
  }
  server_name_ = append(at, s.server_name);
  sni_ = tls::ServerName(server_name_).host();
  pins_ = append(at, s.pins);
  tls13_ = s.tls13;
  wanted_ = true;
  return 0;
}

bool Tls::files_changed() const {
  for (unsigned i = 0; i < files; ++i) {
    if (paths_[i] != nullptr && !(look_at(paths_[i]) == stamps_[i])) return true;
  }
  return false;
}

// The first that is wrong is told.
void Tls::blame(unsigned file, TlsFile::Fault fault) {
  if (fault == TlsFile::Fault::none || broken_file_.fault != TlsFile::Fault::none) return;
  broken_file_ = {static_cast<TlsFile::Name>(file), fault, paths_[file]};
}

// All files anew: a certificate and its key fit each other, or neither is used.
int Tls::load() {
  tls::FileText texts[files];
  bool memory = true;
  broken_file_ = TlsFile();
  for (unsigned i = 0; i < files; ++i) {
    if (paths_[i] == nullptr) continue;
    const TlsFile::Fault fault = texts[i].read(paths_[i], i == key, stamps_[i]);
    blame(i, fault);
    memory = memory && (fault != TlsFile::Fault::none || texts[i].text().data != nullptr);
  }
  int result = memory ? int{REDLOCK_E_TLS_FILE} : int{REDLOCK_E_NOMEM};
  if (memory && broken_file_.fault == TlsFile::Fault::none) result = use(texts);
  if (result == REDLOCK_E_NOMEM) {
    stamps_[authorities] = stamps_[certificate] = stamps_[key] = FileStamp();  // tried again
  }
  return result;
}

int Tls::use(const tls::FileText (&texts)[files]) {
  using tls::Part;
  using Fault = TlsFile::Fault;
  tls::Trust* made = nullptr;
  const Bytes key_text = texts[key].text();
  switch (tls::make_trust(made, {texts[authorities].text(), texts[certificate].text(), key_text}, tls13_)) {
    case Part::none:
      drop_session();
      tls::free_trust(trust_);
      trust_ = made;
      return 0;
    case Part::memory: return REDLOCK_E_NOMEM;
    case Part::version: return REDLOCK_E_NOTSUP;
    case Part::authorities: blame(authorities, Fault::no_pem); break;
    case Part::certificate: blame(certificate, Fault::no_pem); break;
    case Part::pair: blame(key, Fault::other_key); break;
    case Part::key:
      // A line of its PEM says so: "BEGIN ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED".
      blame(key, memmem(key_text.data, key_text.size, "ENCRYPTED", 9) != nullptr ? Fault::encrypted : Fault::no_pem);
      break;
  }
  return REDLOCK_E_TLS_FILE;
}

// ---- the session that may be resumed ----------------------------------------------------------------------------

void Tls::drop_session() {
  tls::free_ticket(ticket_);
  ticket_ = nullptr;
}

void Tls::keep_session() {
  tls::Peer peer;
  tls::Ticket* const newest = tls::take_ticket(*link_);
  if (newest == nullptr) return;
  drop_session();
  ticket_ = newest;
  const bool dated = paths_[authorities] != nullptr && tls::read_peer(*link_, peer);
  session_end_s_ = dated ? tls::earliest_end_s(peer) : INT64_MAX;
}

// ---- a connection -----------------------------------------------------------------------------------------------

int Tls::begin(const tls::Wire& wire, int64_t utc_s) {
  REDLOCK_ASSERT(wanted_);
  REDLOCK_ASSERT(link_ == nullptr);
  if (files_changed()) load();  // what is broken changes nothing
  if (utc_s > session_end_s_) drop_session();
  error_ = 0;
  utc_s_ = utc_s;
  gate_.begin(wire);
  link_ = tls::make_link(*trust_, gate_.wire(), sni_, ticket_, utc_s);
  return link_ != nullptr ? 0 : REDLOCK_E_NOMEM;
}

Tls::Progress Tls::step() {
  gate_.let_one_through();
  const Progress progress = told(tls::handshake(*link_));
  if (progress == Progress::done) return verify();
  if (progress == Progress::failed && gate_.refusal() != 0) error_ = gate_.refusal();
  if (progress == Progress::ended) drop_session();  // a peer that cannot bear it
  return progress;
}

Tls::Progress Tls::verify() {
  gate_.stand_aside();
  error_ = tls::judge(*link_, {paths_[authorities] != nullptr, server_name_, pins_, utc_s_}, wrong_date_);
  verified_ = error_ == 0;
  return verified_ ? Progress::done : Progress::failed;
}

inline Tls::Progress Tls::told(Progress progress) {
  if (progress == Progress::failed) error_ = tls::link_error(*link_);
  return progress;
}

Tls::Progress Tls::read(char* at, size_t room, size_t& got) {
  if (!verified_) return Progress::failed;
  return told(tls::read(*link_, at, room, got));
}

Tls::Progress Tls::write(Bytes text, size_t& taken) {
  if (!verified_) return Progress::failed;
  return told(tls::write(*link_, text, taken));
}

Tls::Progress Tls::flush() { return told(tls::flush(*link_)); }

void Tls::end(bool polite) {
  if (link_ == nullptr) return;
  const bool sound = error_ == 0 || error_ == REDLOCK_E_DISCONNECTED;
  if (verified_ && polite && sound) tls::say_goodbye(*link_);
  if (verified_ && sound) keep_session();
  if (!sound) drop_session();
  tls::free_link(link_);
  link_ = nullptr;
  verified_ = false;
}

bool Tls::facts(Facts& out) const {
  tls::Peer peer;
  if (!verified_ || !tls::read_peer(*link_, peer)) return false;
  out = {tls::link_version(*link_), tls::link_cipher(*link_), peer.validity[0].not_before_s,
         tls::earliest_end_s(peer), tls::was_resumed(*link_)};
  return true;
}

}  // namespace redlock
