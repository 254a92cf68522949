// SPDX-License-Identifier: MIT
#include "run/detail.hpp"

#include "base/digits.hpp"
#include "config/url.hpp"
#include "lock/quorum.hpp"

namespace redlock {
namespace {

// Printable ASCII as it is, anything else as \xNN: the text is what some other client claims, or a key of any bytes. A
// backslash is escaped, too, so that no text looks like another one.
void write_escaped(Bytes name, TextWriter& out) {
  for (size_t i = 0; i < name.size; ++i) {
    const unsigned char c = static_cast<unsigned char>(name.data[i]);
    if (c >= 0x20 && c < 0x7F && c != '\\') {
      out.raw(Bytes(name.data + i, 1));
    } else {
      const char escape[] = {'\\', 'x', hex_digits[c >> 4], hex_digits[c & 15]};
      out.raw(Bytes(escape, sizeof escape));
    }
  }
}

void write_holder(const Holder& holder, TextWriter& out) {
  if (holder.foreign) out.raw("a foreign value");
  write_escaped(Bytes(holder.name, holder.size), out);
}

// What the master says of another configuration, or denies.
void fill_reason(const Client& client, MasterIndex m, const Client::Event& event, Detail& out) {
  const Session& session = client.session(m);
  const CommonSettings& settings = client.settings();
  const Guard& guard = session.guard();
  out.detail.their_masters = guard.theirs().masters;
  out.detail.their_max_ttl_ms = guard.theirs().max_ttl_ms;
  TextWriter theirs(out.their_name, sizeof out.their_name), ours(out.our_name, sizeof out.our_name);
  if (out.detail.their_masters != 0) {
    write_escaped(guard.their_name(), theirs);
    write_escaped(guard.our_name(), ours);
  }
  TextWriter denied(out.denied, sizeof out.denied);
  if (event.slot == no_slot || event.event.master_err != REDLOCK_E_NOPERM || !session.votes()) return;
  write_escaped(settings.key_prefix, denied);
  write_escaped(client.lock(event.slot).names.first(), denied);
}

}  // namespace

void write_address(const MasterSettings& master, AddressText& out) {
  TextWriter text(out, sizeof out);
  if (master.unix_socket) {
    text.raw(master.host);
  } else {
    write_host_and_port(text, master.host, master.port);
  }
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
  Notices::Detail about = {event.event.master, nullptr, REDLOCK_GUARD_UNKNOWN};
  if (event.slot != no_slot) about = client.notices().detail(event, client.now());
  REDLOCK_ASSERT(about.master <= settings.masters);
  d.to_go_ms = about.to_go_ms;
  TextWriter name(out.name, sizeof out.name), holder(out.holder, sizeof out.holder);
  out.address[0] = out.their_name[0] = out.our_name[0] = out.denied[0] = '\0';
  if (about.master < settings.masters) {
    name.raw(client.session(about.master).master().name);
    write_address(client.session(about.master).master(), out.address);
    fill_reason(client, about.master, event, out);
  }
  if (about.holder != nullptr) write_holder(*about.holder, holder);
  d.name = out.name;
  d.address = out.address;
  d.holder = out.holder;
  d.their_name = out.their_name;
  d.our_name = out.our_name;
  d.denied = out.denied;
  event.event.detail = &d;
}

}  // namespace redlock
