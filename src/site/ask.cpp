// SPDX-License-Identifier: MIT
//
// redlock_site_ask() and its kin: calls for maintenance programs. They block. src/site/inquiry asks.
#include <arpa/inet.h>
#include <poll.h>
#include <redlock/site.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/tls.hpp"
#include "config/version.hpp"
#include "port/uv/names.hpp"
#include "site/inquiry.hpp"
#include "site/site_clients.hpp"

namespace redlock {
namespace {

constexpr size_t command_max = REDLOCK_TX_BYTES_MAX - 64;

// The room that the longest command needs; 0: a question is out of range.
size_t room_for(const redlock_question_t* questions, uint32_t count) {
  size_t most = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (questions[i].words == 0 || questions[i].word == nullptr) return 0;
    const uint64_t size = Inquiry::encoded_size(questions[i]);
    if (size > command_max) return 0;
    if (size > most) most = static_cast<size_t>(size);
  }
  return most;
}

// One master of the configuration, for a client that only asks. address: of its name; empty: any.
void narrow(Settings& settings, uint32_t master, Bytes address) {
  settings.master[0] = settings.master[master];
  if (address.size != 0) settings.master[0].host = address;
  settings.masters = 1;
  settings.reconnect_max_ms = settings.reconnect_min_ms;
  settings.any_role = true;
  SiteClients::lock_nothing(settings);
}

#ifdef REDLOCK_TLS
void write_tls(const TlsReport& report, bool dated, redlock_site_tls_t& out) {
  out.step_us = static_cast<uint32_t>(report.longest_step.ns() / 1'000);
  out.ends_s = dated ? report.facts.not_after_s : 0;
  TextWriter(out.version, sizeof out.version).raw(report.facts.version);
  TextWriter(out.cipher, sizeof out.cipher).raw(report.facts.cipher);
}
#endif

// tls: where to write how the master was reached by TLS; null: nowhere.
int ask(const redlock_config_t& cfg, Settings& settings, uint32_t master, Bytes address, redlock_question_t* questions,
        uint32_t count, Space replies, [[maybe_unused]] redlock_site_tls_t* tls) {
  const size_t size = room_for(questions, count);
  char* const room = static_cast<char*>(malloc(size));
  if (room == nullptr) return REDLOCK_E_NOMEM;
  Inquiry inquiry(questions, count, replies, {room, size});
  narrow(settings, master, address);
  SiteClients clients;
  clients.secure(0, cfg, master);
  int err = clients.open(&settings, 1);
  if (err == 0) {
    inquiry.begin(clients.client(0));
    clients.carry_out(inquiry, [&](Instant now) { inquiry.step(now); });
    err = inquiry.result();
  }
#ifdef REDLOCK_TLS
  TlsReport report;
  TlsSettings how;
  tls_settings(cfg.values, master, how);
  if (tls != nullptr && err == 0 && clients.tls_report(0, report)) write_tls(report, how.ca_file.size != 0, *tls);
  if (tls != nullptr && (err == REDLOCK_E_TLS_EXPIRED || err == REDLOCK_E_TLS_EARLY)) {
    TextWriter denied(tls->denied, sizeof tls->denied);
    write_tls_date(denied, err, clients.wrong_date(0));
  }
#endif
  clients.close();
  free(room);
  return err;
}

// address: of several that the name has; null: any.
int site_ask(const redlock_config_t* cfg, uint32_t master, const char* address, redlock_question_t* questions,
             uint32_t count, Space replies) {
  if (!is_build_of_library()) return REDLOCK_E_NOTSUP;
  if (cfg == nullptr || count == 0 || (replies.data == nullptr && replies.size != 0)) return REDLOCK_E_INVAL;
  if (room_for(questions, count) == 0) return REDLOCK_E_INVAL;
  Settings settings;
  const int err = finish(*cfg, settings);
  if (err != 0) return err;
  if (master >= settings.masters) return REDLOCK_E_INVAL;
  MasterSettings at;
  Address digits;
  if (address != nullptr) at.host = Bytes(address, strlen(address));
  if (address != nullptr && (at.host.size > REDLOCK_HOST_MAX || !numeric_address(at, digits))) return REDLOCK_E_INVAL;
  return ask(*cfg, settings, master, at.host, questions, count, replies, nullptr);
}

// Waits for the thread that looks the name up, which need not keep its pace here.
int addresses_of(const Settings& settings, uint32_t master, redlock_site_address_t* out, uint32_t most) {
  Address address = {};
  if (numeric_address(settings.master[master], address)) return 0;
  const int timeout_ms = static_cast<int>(settings.connect_timeout.ns() / 1'000'000);
  const int names = look_up(settings.master[master], address, timeout_ms);
  if (names < 0) return names;
  uint32_t count = 0;
  for (pollfd wanted = {names, POLLIN, 0}; count < most && poll(&wanted, 1, timeout_ms) == 1; ++count) {
    if (next_address(names, address) != Named::address) break;
    const bool v4 = address.any.sa_family == AF_INET;
    const void* const bytes = v4 ? static_cast<const void*>(&address.v4.sin_addr) : &address.v6.sin6_addr;
    inet_ntop(address.any.sa_family, bytes, out[count].text, sizeof out[count].text);
    hurry(names);
  }
  ::close(names);
  return count != 0 ? static_cast<int>(count) : int{REDLOCK_E_RESOLVE};
}

}  // namespace
}  // namespace redlock

extern "C" int redlock_site_ask_at(const redlock_config_t* cfg, uint32_t master, const char* address,
                                    redlock_question_t* questions, uint32_t count, void* buf, size_t size) {
  if (questions == nullptr) return REDLOCK_E_INVAL;
  redlock::Inquiry::clear(questions, count);
  const int err = redlock::site_ask(cfg, master, address, questions, count, {static_cast<char*>(buf), size});
  for (uint32_t i = 0; i < count; ++i) {  // those of a call that asked nothing
    if (questions[i].err == 0 && questions[i].item == nullptr) questions[i].err = err;
  }
  return err;
}

extern "C" int redlock_site_ask(const redlock_config_t* cfg, uint32_t master, redlock_question_t* questions,
                                uint32_t count, void* buf, size_t size) {
  return redlock_site_ask_at(cfg, master, nullptr, questions, count, buf, size);
}

extern "C" int redlock_site_addresses(const redlock_config_t* cfg, uint32_t master, redlock_site_address_t* addresses,
                                      uint32_t most) {
  if (addresses == nullptr) return REDLOCK_E_INVAL;
  memset(addresses, 0, most * sizeof *addresses);
  if (!redlock::is_build_of_library()) return REDLOCK_E_NOTSUP;
  if (cfg == nullptr) return REDLOCK_E_INVAL;
  redlock::Settings settings;
  const int err = redlock::finish(*cfg, settings);
  if (err != 0) return err;
  return master < settings.masters ? redlock::addresses_of(settings, master, addresses, most) : REDLOCK_E_INVAL;
}

#ifdef REDLOCK_TLS

extern "C" int redlock_site_tls(const redlock_config_t* cfg, uint32_t master, redlock_site_tls_t* tls) {
  const bool fits = redlock::clear_output(tls, sizeof *tls, sizeof *tls);
  if (!redlock::is_build_of_library()) return REDLOCK_E_NOTSUP;
  if (cfg == nullptr || !fits) return REDLOCK_E_INVAL;
  redlock::Settings settings;
  const int err = redlock::finish(*cfg, settings);
  if (err != 0) return err;
  if (master >= settings.masters) return REDLOCK_E_INVAL;
  if (!cfg->values.master[master].tls.wanted) return REDLOCK_E_NOTSUP;
  tls->size = sizeof *tls;
  const redlock_resource_t word = redlock_resource("PING");
  redlock_question_t ping = {};
  ping.word = &word;
  ping.words = 1;
  char reply[sizeof(redlock_item_t) * 4];
  return redlock::ask(*cfg, settings, master, {}, &ping, 1, {reply, sizeof reply}, tls);
}

#endif
