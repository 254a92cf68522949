// SPDX-License-Identifier: MIT
//
// The configuration: one flat object with its own storage for every string. Setters or JSON fill it, and finish()
// checks it as a whole. redlock_config_new() allocates it; a client needs nothing of it after create. It may hold
// passwords, so its memory is wiped before it is freed.
//
// A function that can fail returns 0 or a REDLOCK_E_* number. On an error it writes one sentence into `why`: path of
// the field, value, range. The sentence never contains a password, or text that could be one.
#pragma once
#include "base/settings.hpp"
#include "config/text.hpp"

namespace redlock {

// A string and its storage; `data` ends with a NUL. All have one type, so that one table of keys can point to each.
struct Text {
  static constexpr size_t max = 128;
  size_t size;
  char data[max + 1];

  Bytes bytes() const { return Bytes(data, size); }
  bool empty() const { return size == 0; }
  // The caller has checked that the text is not longer than max. Wipes the old text, which may be a password.
  void assign(Bytes text) {
    explicit_bzero(data, sizeof data);
    size = text.size < max ? text.size : max;
    if (size > 0) memcpy(data, text.data, size);
  }
};
static_assert(Text::max >= REDLOCK_HOST_MAX && Text::max >= REDLOCK_USER_MAX && Text::max >= REDLOCK_PASSWORD_MAX);
static_assert(Text::max >= REDLOCK_MASTER_NAME_MAX && Text::max >= REDLOCK_KEY_PREFIX_MAX);
static_assert(Text::max >= REDLOCK_CLIENT_NAME_MAX);

// What "tls" says of all masters, or of one. A build without TLS keeps nothing.
struct TlsValues {
#ifdef REDLOCK_TLS
  Text ca_file, cert_file, key_file, server_name;
  uint32_t min_version;  // 12, 13; 0: not given
  uint32_t pins;
  unsigned char pin[REDLOCK_TLS_PINS_MAX][TlsSettings::pin_size];
  bool wanted;  // of one master: its URL begins with rediss://
#endif
};
static_assert(Text::max >= REDLOCK_TLS_PATH_MAX);

struct Master {
  Text name;
  Text host;
  Text user;
  Text password;
  uint16_t port;  // 0 for a socket path
  bool unix_socket;
  PasswordFile* file;  // which has the password, and comes from malloc(); null: there is none
  [[no_unique_address]] TlsValues tls;
};

#define REDLOCK_COUNT(...) +1
constexpr unsigned key_count =
    0 REDLOCK_KEY_MAP(REDLOCK_COUNT, REDLOCK_COUNT, REDLOCK_COUNT, REDLOCK_COUNT);
#undef REDLOCK_COUNT

// All that loading JSON changes. A load that fails changes nothing of it. A copy has the same password files.
struct Values : Numbers {
#define REDLOCK_TIME(section, name, min, max, initial, text) uint32_t name##_ms = initial;
#define REDLOCK_CHOICE(name, words, initial, text) uint32_t name = initial;
  REDLOCK_KEY_MAP(REDLOCK_NO_KEY, REDLOCK_CHOICE, REDLOCK_NO_KEY, REDLOCK_TIME)
#undef REDLOCK_TIME
#undef REDLOCK_CHOICE
#define REDLOCK_TEXT(name, min, max, form, text) Text name;
  REDLOCK_KEY_MAP(REDLOCK_TEXT, REDLOCK_NO_KEY, REDLOCK_NO_KEY, REDLOCK_NO_KEY)
#undef REDLOCK_TEXT
  bool given[key_count];  // of each key of the table: it was set, so its value is not the default
  [[no_unique_address]] TlsValues tls;  // for masters that do not say otherwise
  unsigned masters;
  Master master[REDLOCK_MASTERS_MAX];
};

// Every default; the client's name is the host's name; no master.
void set_defaults(Values& values);

// Empties the next free place of the list and writes its path, "masters[2]", into `why`. Null when the list is full.
Master* next_master(Values& values, TextWriter& why);
// Frees the password files of the masters from `first` on, and of the one that next_master() has begun.
void forget_files(Values& values, unsigned first);
// Adds the master that next_master() has returned. A master without a name is named after its address. CONFIG: another
// master has the same address or name. `why` must hold the path.
int take_master(Values& values, TextWriter& why);

// Checks how the values relate to each other, and writes them as Settings. The strings of `out` point into `values`.
int finish(const Values& values, Settings& out, TextWriter& why);

constexpr size_t error_text_max = 512;  // a path may stand three times in it

}  // namespace redlock

struct redlock_config_s {
  redlock::Values values;
  redlock_event_fn event;
  void* event_user;
  redlock_log_fn log;
  void* log_user;
  int log_level;
  mutable char error[redlock::error_text_max];  // mutable: checking a const configuration may fail too
};

namespace redlock {

// The same; on an error the sentence is kept for redlock_config_error().
int finish(const redlock_config_s& config, Settings& out);
// Keeps the sentence if `result` is an error. Returns `result`.
int keep_error(const redlock_config_s& config, int result, const char* sentence);

}  // namespace redlock
