// SPDX-License-Identifier: MIT
//
// redlock_site_ask(): a call for maintenance programs. It blocks. src/site/inquiry asks.
#include <redlock/site.h>
#include <stdlib.h>

#include "config/tls.hpp"
#include "config/version.hpp"
#include "port/posix/socket.hpp"
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

// One master of the configuration, for a client that only asks.
void narrow(Settings& settings, uint32_t master) {
  settings.master[0] = settings.master[master];
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
int ask(const redlock_config_t& cfg, Settings& settings, uint32_t master, redlock_question_t* questions, uint32_t count,
        Space replies, [[maybe_unused]] redlock_site_tls_t* tls) {
  const size_t size = room_for(questions, count);
  char* const room = static_cast<char*>(malloc(size));
  if (room == nullptr) return REDLOCK_E_NOMEM;
  Inquiry inquiry(questions, count, replies, {room, size});
  narrow(settings, master);
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

int site_ask(const redlock_config_t* cfg, uint32_t master, redlock_question_t* questions, uint32_t count,
             Space replies) {
  if (!is_build_of_library()) return REDLOCK_E_NOTSUP;
  if (cfg == nullptr || count == 0 || (replies.data == nullptr && replies.size != 0)) return REDLOCK_E_INVAL;
  if (room_for(questions, count) == 0) return REDLOCK_E_INVAL;
  Settings settings;
  const int err = finish(*cfg, settings);
  if (err != 0) return err;
  if (master >= settings.masters) return REDLOCK_E_INVAL;
  return ask(*cfg, settings, master, questions, count, replies, nullptr);
}

}  // namespace
}  // namespace redlock

extern "C" int redlock_site_ask(const redlock_config_t* cfg, uint32_t master, redlock_question_t* questions,
                                uint32_t count, void* buf, size_t size) {
  if (questions == nullptr) return REDLOCK_E_INVAL;
  redlock::Inquiry::clear(questions, count);
  const int err = redlock::site_ask(cfg, master, questions, count, {static_cast<char*>(buf), size});
  for (uint32_t i = 0; i < count; ++i) {  // those of a call that asked nothing
    if (questions[i].err == 0 && questions[i].item == nullptr) questions[i].err = err;
  }
  return err;
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
  return redlock::ask(*cfg, settings, master, &ping, 1, {reply, sizeof reply}, tls);
}

#endif
