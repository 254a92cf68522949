// SPDX-License-Identifier: MIT
//
// redlock_site_ask(): a call for maintenance programs. It blocks. src/site/inquiry asks.
#include <redlock/site.h>
#include <stdlib.h>

#include "config/config.hpp"
#include "port/posix/socket.hpp"
#include "site/inquiry.hpp"
#include "site/site_clients.hpp"

namespace redlock {
namespace {

constexpr size_t ping_room = 64;  // for what the greeting sends, texts apart

// The transmit buffer that the longest command needs; 0: a question is out of range.
size_t room_for(const redlock_question_t* questions, uint32_t count) {
  size_t most = REDLOCK_TX_BYTES_MIN - ping_room;
  for (uint32_t i = 0; i < count; ++i) {
    if (questions[i].words == 0 || questions[i].word == nullptr) return 0;
    const uint64_t size = Inquiry::encoded_size(questions[i]);
    if (size > REDLOCK_TX_BYTES_MAX - ping_room) return 0;
    if (size > most) most = static_cast<size_t>(size);
  }
  return most;
}

// One master of the configuration, for a client that only asks.
void narrow(Settings& settings, uint32_t master, size_t tx_size, Listener& listener) {
  settings.master[0] = settings.master[master];
  settings.masters = 1;
  settings.tx_bytes = static_cast<uint32_t>(tx_size);
  settings.reconnect_max_ms = settings.reconnect_min_ms;
  settings.listener = &listener;
  SiteClients::lock_nothing(settings);
}

int ask(Settings& settings, uint32_t master, redlock_question_t* questions, uint32_t count, Space replies) {
  const size_t size = room_for(questions, count);
  char* const room = static_cast<char*>(malloc(size));
  if (room == nullptr) return REDLOCK_E_NOMEM;
  Inquiry inquiry(questions, count, replies, {room, size});
  narrow(settings, master, size + ping_room, inquiry);
  Address address;
  const bool once = numeric_address(settings.master[0], address);  // a host name may have more addresses
  SiteClients clients;
  int err = clients.open(&settings, 1);
  if (err == 0) {
    inquiry.begin(clients.client(0), settings.connect_timeout + settings.connect_timeout, once, clients.now());
    clients.carry_out(inquiry, [](Instant) {});
    err = inquiry.result();
  }
  clients.close();
  free(room);
  return err;
}

}  // namespace
}  // namespace redlock

extern "C" int redlock_site_ask(const redlock_config_t* cfg, uint32_t master, redlock_question_t* questions,
                                uint32_t count, void* buf, size_t size) {
  // libredlock has made the configuration. This code reads its inside, which may be another in another version.
  if (redlock_version() != REDLOCK_VERSION_NUM) return REDLOCK_E_NOTSUP;
  if (cfg == nullptr || questions == nullptr || count == 0 || (buf == nullptr && size != 0)) return REDLOCK_E_INVAL;
  if (redlock::room_for(questions, count) == 0) return REDLOCK_E_INVAL;
  redlock::Settings settings;
  const int err = redlock::finish(*cfg, settings);
  if (err != 0) return err;
  if (master >= settings.masters) return REDLOCK_E_INVAL;
  return redlock::ask(settings, master, questions, count, {static_cast<char*>(buf), size});
}
