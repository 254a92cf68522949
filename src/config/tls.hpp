// SPDX-License-Identifier: MIT
//
// The TLS of the masters: "tls" of the whole configuration, and "tls" of one master, which replaces value by value what
// stands in the other. A build without TLS refuses both, and every rediss://.
#pragma once
#include "base/tls_faults.hpp"
#include "config/config.hpp"

struct cJSON;

namespace redlock {

#ifdef REDLOCK_TLS

struct TlsKey {
  const char* name;       // "tls.ca_file"
  Text TlsValues::*text;  // null: min_version, pin
  const char* range;      // for a person
  uint32_t max;           // bytes of the text
};
#define REDLOCK_COUNT(...) +1
constexpr unsigned tls_key_count = 0 REDLOCK_TLS_KEY_MAP(REDLOCK_COUNT, REDLOCK_COUNT);
#undef REDLOCK_COUNT
extern const TlsKey tls_keys[tls_key_count];

// The value as text; of a pin, how it begins. False: it is not given.
bool write_tls(TextWriter& out, const TlsKey& key, const TlsValues& values);

// An error is written behind "tls", which `why` holds. pin: pins between commas.
int set_tls(TlsValues& out, Bytes name, Bytes value, TextWriter& why);
// From JSON, where "pin" may be an array of strings, too. path: of the object, behind what `why` holds.
int read_tls(const cJSON& object, const char* path, TlsValues& out, TextWriter& why);

// Do the settings make TLS for each rediss:// of the list?
int check_tls(const Values& values, TextWriter& why);

// Does a password leave this machine in the clear? `line` says to which master first.
bool shows_password(const Values& values, TextWriter& line);

// How a client reaches the master. The strings of `out` point into `values`, which check_tls() has found well.
void tls_settings(const Values& values, unsigned master, TlsSettings& out);

#else

// Ends the sentence, and returns NOTSUP.
int no_tls(TextWriter& why);
inline int read_tls(const cJSON&, const char* path, TlsValues&, TextWriter& why) { return no_tls(why.raw(path)); }
inline int check_tls(const Values&, TextWriter&) { return 0; }
inline bool shows_password(const Values&, TextWriter&) { return false; }  // there is nothing that an operator could do

#endif

// ---- what is wrong; a build without TLS never calls these

// "the master's own ended 2026-11-20 09:30 UTC", behind the text of TLS_EXPIRED or TLS_EARLY.
void write_tls_date(TextWriter& out, int err, const TlsDate& date);

// "tls.key_file: /etc/redlock/gw-17.key: is not the key of tls.cert_file"
void write_tls_file(TextWriter& out, const TlsFile& file);

}  // namespace redlock
