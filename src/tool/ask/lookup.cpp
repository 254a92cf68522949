// SPDX-License-Identifier: MIT
#include "tool/ask/lookup.hpp"

#include <string.h>

#include "tool/words/denied.hpp"
#include "tool/words/say.hpp"

namespace redlock::tool {
namespace {

constexpr unsigned at_once = Questions::most / 2;
constexpr size_t digits = 2 * REDLOCK_VALUE_RANDOM;

// Is this a value of the library's: 40 digits, ':', a name?
bool is_ours(const char* value, size_t size) {
  if (size < digits + 2 || size > REDLOCK_VALUE_MAX || value[digits] != ':') return false;
  return strspn(value, "0123456789abcdef") == digits;
}

uint64_t hash_of(const char* text, size_t size) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 1099511628211u;
  return hash;
}

Lookup::Key key_of(const Questions& asked, unsigned get) {
  Lookup::Key out = {};
  const redlock_item_t* value = asked.item(get);
  const redlock_item_t* ends = asked.item(get + 1);
  // A value that is too long, or no string, is not the library's. But something is there.
  out.foreign = asked[get].err == REDLOCK_E_TOOSMALL || asked[get].err == REDLOCK_E_WRONGTYPE;
  out.err = out.foreign ? asked[get + 1].err : asked[get].err != 0 ? asked[get].err : asked[get + 1].err;
  const unsigned i = asked[get].err == REDLOCK_E_NOPERM ? get : get + 1;
  if (out.err == REDLOCK_E_NOPERM) {
    out.denied = is_key_denied(asked[i]) ? "~" : i == get ? "+get" : "+pttl";
  }
  if (out.err != 0) return out;
  out.is_there = out.foreign || value->type == REDLOCK_ITEM_TEXT;
  out.ends_ms = ends->number;
  if (out.ends_ms == -2) out.is_there = false;  // it ended between the two questions
  if (!out.is_there || out.foreign) return out;
  const size_t size = static_cast<size_t>(value->number);
  out.value_hash = hash_of(value->text, size);
  out.foreign = !is_ours(value->text, size);
  if (out.foreign) return out;
  out.name_size = size - digits - 1;
  memcpy(out.name, value->text + digits + 1, out.name_size);
  return out;
}

void look_up_some(const Site& site, unsigned m, const redlock_resource_t* resources, unsigned count, Lookup* out) {
  static Key keys[at_once];
  Questions asked;
  for (unsigned i = 0; i < count; ++i) {
    keys[i] = site.key_of(resources[i].data, resources[i].size);
    asked.command("GET @", keys[i]).command("PTTL @", keys[i]);
  }
  const int err = site.master[m].err != 0 ? site.master[m].err : asked.ask(site.cfg, m);
  for (unsigned i = 0; i < count; ++i) {
    out[i].key[m] = {};
    out[i].key[m].err = err;
    if (err == 0) out[i].key[m] = key_of(asked, 2 * i);
  }
}

constexpr unsigned scan_steps_max = 10'000;  // of 500 keys: a server may never say that it has come to the end

}  // namespace

void look_up(const Site& site, const redlock_resource_t* resources, unsigned count, Lookup* out) {
  for (unsigned first = 0; first < count; first += at_once) {
    const unsigned some = count - first < at_once ? count - first : at_once;
    for (unsigned m = 0; m < site.masters; ++m) look_up_some(site, m, resources + first, some, out + first);
  }
  for (unsigned i = 0; i < count; ++i) {
    out[i].resource = resources[i];
    out[i].judge(site);
  }
}

unsigned Lookup::same(unsigned m, unsigned masters) const {
  unsigned n = 0;
  for (unsigned o = 0; o < masters; ++o) n += has_value(o) && key[o].value_hash == key[m].value_hash;
  return n;
}

void Lookup::judge(const Site& site) {
  unsigned without = 0;
  answered = on = first = 0;
  for (unsigned m = 0; m < site.masters; ++m) {
    if (key[m].err != 0) continue;
    ++answered;
    without += !key[m].is_there;
    if (key[m].is_there && same(m, site.masters) > on) {
      on = same(m, site.masters);
      first = m;
    }
  }
  const unsigned most_without = site.masters - site.quorum;  // with so many fewer than a quorum can have one value
  verdict = on >= site.quorum            ? Verdict::held
            : without > most_without     ? (site.votes() >= site.quorum ? Verdict::free : Verdict::unknown)
            : answered < site.quorum     ? Verdict::unknown
                                         : Verdict::unclear;
  ends_min_ms = ends_max_ms = -1;
  for (unsigned m = 0; m < site.masters; ++m) {
    if (!has_value(m) || key[m].value_hash != key[first].value_hash) continue;
    const int64_t ends = key[m].ends_ms;
    if (ends_min_ms < 0 || (ends >= 0 && ends < ends_min_ms)) ends_min_ms = ends;
    if (ends > ends_max_ms) ends_max_ms = ends;
  }
}

Text Lookup::holder(unsigned m) const {
  return key[m].foreign ? Text("a foreign value") : Text().escaped(key[m].name, key[m].name_size);
}

namespace {

// Has nothing come back? Else the master has refused to be asked, or this client to ask it.
bool is_silent(int err) {
  constexpr int silence[] = {REDLOCK_E_RESOLVE,      REDLOCK_E_CONNECT, REDLOCK_E_DISCONNECTED,
                             REDLOCK_E_NODE_TIMEOUT, REDLOCK_E_REFUSED, REDLOCK_E_CONNECT_TIMEOUT,
                             REDLOCK_E_UNREACHABLE};
  for (const int one : silence) {
    if (err == one) return true;
  }
  return false;
}

}  // namespace

Text Lookup::sentence(const Site& site) const {
  unsigned denied = 0, silent = 0;
  const char *needed = "", *refusal = "";
  for (unsigned m = 0; m < site.masters; ++m) {
    denied += key[m].denied != nullptr;
    silent += is_silent(key[m].err);
    if (key[m].denied != nullptr) {
      needed = key[m].denied;
    } else if (key[m].err != 0 && !is_silent(key[m].err)) {
      refusal = site.master[m].err != 0 ? site.master[m].unasked.c_str() : redlock_strerror(key[m].err);
    }
  }
  const unsigned refused = site.masters - answered - denied - silent;
  if (verdict == Verdict::held) {
    Text out("held by %s on %u/%u", holder(first).c_str(), on, site.masters);
    if (ends_max_ms < 0) return out.add(", without an end");
    out.add(", ends in ").thousandths(ends_min_ms);
    if (ends_min_ms < ends_max_ms) out.add(" - ").thousandths(ends_max_ms);
    return out.add(" s");
  }
  Text out("%s", verdict == Verdict::unclear ? "UNCLEAR" : name_of(verdict));
  const char* between = ": ";
  for (unsigned m = 0; m < site.masters; ++m) {
    if (!has_value(m) || same(m, m) != 0) continue;  // or it was told already
    out.add("%s%s on %u/%u", between, holder(m).c_str(), same(m, site.masters), site.masters);
    between = ", ";
  }
  if (denied != 0) {
    out.add("%snot allowed on %u/%u: its ACL needs %s", between, denied, site.masters, needed);
    const redlock_site_facts_t& all = site.facts();
    if (*needed == '~') out.escaped(all.key_prefix, all.key_prefix_size).add("%s", name().c_str());
    between = ", ";
  }
  if (refused != 0) out.add("%s%u/%u cannot be asked (%s)", between, refused, site.masters, refusal);
  if (refused != 0) between = ", ";
  if (silent != 0) out.add("%s%u/%u did not answer", between, silent, site.masters);
  if (silent + refused + denied == 0 && verdict == Verdict::unknown) {
    out.add("%s%u/%u masters vote%s", between, site.votes(), site.masters, site.votes() == 1 ? "s" : "");
  }
  return out;
}

// ---- all keys ---------------------------------------------------------------------------------------------------

int scan(const Site& site, unsigned m, OnKey* on_key) {
  const redlock_site_facts_t& facts = site.facts();
  const size_t before = facts.key_prefix_size;
  Text all = pattern_of(facts.key_prefix, before);
  const int err = scan(site.cfg, m, site.master[m].at, all.add("*"), scan_steps_max, [=](const char* key, size_t size) {
    const bool own = size >= 8 && memcmp(key, "redlock:", 8) == 0;
    return own || size <= before || on_key(key + before, size - before);
  });
  if (err != scan_cut) return err;
  fail(exit_too_few, "%s: the look at all keys (--scan) comes to no end", site.master[m].name());
}

}  // namespace redlock::tool
