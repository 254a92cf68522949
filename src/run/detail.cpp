// SPDX-License-Identifier: MIT
#include "run/detail.hpp"

#include "base/digits.hpp"
#include "config/text.hpp"
#include "lock/quorum.hpp"

namespace redlock {
namespace {

// Printable ASCII as it is, anything else as \xNN: the name is what some other client claims. A backslash is escaped,
// too, so that no name looks like another one.
void write_holder(const Holder& holder, TextWriter& out) {
  if (holder.foreign) out.raw("a foreign value");
  for (size_t i = 0; i < holder.size; ++i) {
    const unsigned char c = static_cast<unsigned char>(holder.name[i]);
    if (c >= 0x20 && c < 0x7F && c != '\\') {
      out.raw(Bytes(holder.name + i, 1));
    } else {
      const char escape[] = {'\\', 'x', hex_digits[c >> 4], hex_digits[c & 15]};
      out.raw(Bytes(escape, sizeof escape));
    }
  }
}

}  // namespace

void write_address(const MasterSettings& master, AddressText& out) {
  TextWriter text(out, sizeof out);
  const bool v6 = !master.unix_socket && memchr(master.host.data, ':', master.host.size) != nullptr;
  if (v6) text.raw("[");
  text.raw(master.host);
  if (v6) text.raw("]");
  if (!master.unix_socket) text.raw(":").number(master.port);
}

void fill_detail(const Client& client, Client::Event& event, Detail& out) {
  const CommonSettings& settings = client.settings();
  redlock_detail_t& d = out.detail;
  d = {};
  d.size = sizeof d;
  d.masters = settings.masters;
  d.quorum = quorum_of(settings.masters);
  d.max_ttl_ms = settings.max_ttl_ms;
  for (MasterIndex m = 0; m < settings.masters; ++m) {
    const Session& session = client.session(m);
    d.voting += session.votes() ? 1 : 0;
    d.watched += session.guarded() && session.guard().watched_at() != Instant::never() ? 1 : 0;
  }
  Client::Detail about = {event.event.master, nullptr, REDLOCK_GUARD_UNKNOWN};
  if (event.slot != no_slot) about = client.detail(event);
  d.to_go_ms = about.to_go_ms;
  TextWriter name(out.name, sizeof out.name), holder(out.holder, sizeof out.holder);
  out.address[0] = '\0';
  if (about.master < settings.masters) {
    name.raw(client.master(about.master).name);
    write_address(client.master(about.master), out.address);
    const Fingerprint theirs = client.session(about.master).guard().theirs();
    d.their_masters = theirs.masters;
    d.their_max_ttl_ms = theirs.max_ttl_ms;
  }
  if (about.holder != nullptr) write_holder(*about.holder, holder);
  d.name = out.name;
  d.address = out.address;
  d.holder = out.holder;
  event.event.detail = &d;
}

}  // namespace redlock
