// SPDX-License-Identifier: MIT
//
// A client takes the first address that answers, so all addresses of a name must be one server: each is asked who it
// is, all at once, while the other checks go on. The checks use the address that has answered first: where another one
// is silent, each new connection would wait for it.
#include <pthread.h>
#include <string.h>

#include "tool/ask/doctor.hpp"

namespace redlock::tool {
namespace {

struct Asked {
  redlock_site_address_t at;
  unsigned m;
  int err;
  bool knows;  // run_id is known
  char run_id[48];
};

struct Name {
  int count;  // of addresses; 0: the host is an address itself; below 0: an error code
  bool open;  // its thread has not ended
  pthread_t thread;
  bool begun;
  Asked asked[REDLOCK_ADDRESSES_MAX];
};
Name names[REDLOCK_MASTERS_MAX];
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void* ask(void* self) {
  Asked& it = *static_cast<Asked*>(self);
  Questions asked;
  asked.command("INFO server");
  it.err = asked.ask(site.cfg, it.m, it.at.text);
  const char* const info = it.err == 0 ? asked.text(0) : nullptr;
  it.knows = info != nullptr && info_text(info, "run_id", it.run_id, sizeof it.run_id);
  const bool answers = it.err == 0;
  if (it.err == 0) it.err = asked[0].err;
  pthread_mutex_lock(&mutex);
  if (answers && site.master[it.m].at == nullptr) site.master[it.m].at = it.at.text;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
  return nullptr;
}

// The name's own thread asks the first address; each further address has a thread of its own.
void* ask_all(void* self) {
  Name& name = *static_cast<Name*>(self);
  const unsigned m = static_cast<unsigned>(&name - names);
  redlock_site_address_t at[REDLOCK_ADDRESSES_MAX];
  name.count = redlock_site_addresses(site.cfg, m, at, REDLOCK_ADDRESSES_MAX);
  pthread_t threads[REDLOCK_ADDRESSES_MAX];
  bool begun[REDLOCK_ADDRESSES_MAX] = {};
  for (int i = 0; i < name.count; ++i) {
    name.asked[i].at = at[i];
    name.asked[i].m = m;
    begun[i] = i != 0 && pthread_create(&threads[i], nullptr, ask, &name.asked[i]) == 0;
  }
  for (int i = 0; i < name.count; ++i) {
    if (!begun[i]) ask(&name.asked[i]);
  }
  for (int i = 0; i < name.count; ++i) {
    if (begun[i]) pthread_join(threads[i], nullptr);
  }
  pthread_mutex_lock(&mutex);
  name.open = false;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
  return nullptr;
}

void judge_name(unsigned m) {
  const Name& name = names[m];
  about("addresses", &site.master[m]);
  if (name.count == 0 || name.count == REDLOCK_E_RESOLVE) return;  // no name, or reported by the check "reach"
  if (name.count < 0) return tell(Level::unknown, redlock_strerror(name.count));
  const char* first = "";
  bool are_several = false, is_silent = false;
  Text saw;
  for (int i = 0; i < name.count; ++i) {
    const Asked& it = name.asked[i];
    is_silent = is_silent || it.err == REDLOCK_E_CONNECT_TIMEOUT;
    saw.add("%s%s: ", i == 0 ? "" : "; ", it.at.text);
    if (!it.knows) {
      saw.add("%s", it.err == 0 ? "does not tell its run_id" : redlock_strerror(it.err));
      continue;
    }
    saw.add("run_id ").escaped(it.run_id, strlen(it.run_id), 8);
    are_several = are_several || (*first != '\0' && strcmp(first, it.run_id) != 0);
    first = it.run_id;
  }
  judge(saw, {{are_several, Level::fail, "a master's name is one server: give each server a name of its own",
               exit_config},
              {is_silent, Level::warn, "a new connection may wait 0.25 s for an address that is silent: remove it"}});
}

}  // namespace

// Returns when each name has an address that answers, or none.
void begin_addresses() {
  for (unsigned m = 0; m < site.masters; ++m) {
    names[m].open = true;
    names[m].begun = pthread_create(&names[m].thread, nullptr, ask_all, &names[m]) == 0;
    if (!names[m].begun) ask_all(&names[m]);
  }
  pthread_mutex_lock(&mutex);
  for (unsigned m = 0; m < site.masters; ++m) {
    while (site.master[m].at == nullptr && names[m].open) pthread_cond_wait(&changed, &mutex);
  }
  pthread_mutex_unlock(&mutex);
}

void check_addresses() {
  for (unsigned m = 0; m < site.masters; ++m) {
    if (names[m].begun) pthread_join(names[m].thread, nullptr);
    judge_name(m);
  }
}

}  // namespace redlock::tool
