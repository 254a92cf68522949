// SPDX-License-Identifier: MIT
//
// Detail: what an event points to while it is delivered, with its strings. It lies on the stack of the delivery.
#pragma once
#include "client/client.hpp"

namespace redlock {

// "10.0.0.11:6379", "[fd00::1]:6379", "/run/redis.sock"
using AddressText = char[REDLOCK_HOST_MAX + 8];
void write_address(const MasterSettings& master, AddressText& out);

struct Detail {
  redlock_detail_t detail;
  char name[REDLOCK_MASTER_NAME_MAX + 1];
  AddressText address;
  char holder[REDLOCK_HOLDER_MAX + 1];
  char their_name[REDLOCK_MASTER_NAME_MAX + 1];
  char our_name[REDLOCK_MASTER_NAME_MAX + 1];
  char denied[4 * (REDLOCK_KEY_PREFIX_MAX + REDLOCK_RESOURCE_MAX) + 1];
};

// Gives the event its detail.
void fill_detail(const Client& client, Client::Event& event, Detail& out);

}  // namespace redlock
