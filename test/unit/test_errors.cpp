// SPDX-License-Identifier: MIT
//
// The numbers are frozen: the table is literal, so that a change of the header's map is seen here.
#include <commit_text.hpp>
#include <error_map.hpp>
#include <redlock/redlock.h>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace {

struct Frozen {
  int number;
  const char* name;
};

constexpr Frozen frozen[] = {
    {0, "REDLOCK_OK"},
    {-1, "REDLOCK_E_LOCKED"},
    {-2, "REDLOCK_E_NO_QUORUM"},
    {-3, "REDLOCK_E_TOO_SLOW"},
    {-4, "REDLOCK_E_TIMEOUT"},
    {-5, "REDLOCK_E_CANCELED"},
    {-6, "REDLOCK_E_LOST"},
    {-7, "REDLOCK_E_GUARD"},
    {-20, "REDLOCK_E_INVAL"},
    {-21, "REDLOCK_E_CONFIG"},
    {-22, "REDLOCK_E_STALE"},
    {-23, "REDLOCK_E_TABLE_FULL"},
    {-24, "REDLOCK_E_DEADLOCK"},
    {-25, "REDLOCK_E_THREAD"},
    {-26, "REDLOCK_E_FORKED"},
    {-27, "REDLOCK_E_NOTSUP"},
    {-28, "REDLOCK_E_NOMEM"},
    {-29, "REDLOCK_E_BUSY"},
    {-30, "REDLOCK_E_HOLD_LIMIT"},
    {-31, "REDLOCK_E_TOOSMALL"},
    {-32, "REDLOCK_E_CLOSED"},
    {-33, "REDLOCK_E_CLOCK"},
    {-34, "REDLOCK_E_SYSTEM"},
    {-35, "REDLOCK_E_NOT_HELD"},
    {-36, "REDLOCK_E_RESERVED"},
    {-50, "REDLOCK_E_RESOLVE"},
    {-51, "REDLOCK_E_CONNECT"},
    {-52, "REDLOCK_E_DISCONNECTED"},
    {-53, "REDLOCK_E_NODE_TIMEOUT"},
    {-54, "REDLOCK_E_SUSPECT"},
    {-55, "REDLOCK_E_NO_ROOM"},
    {-56, "REDLOCK_E_AUTH"},
    {-57, "REDLOCK_E_NOPERM"},
    {-58, "REDLOCK_E_PROTOCOL"},
    {-59, "REDLOCK_E_ROLE"},
    {-60, "REDLOCK_E_MODE"},
    {-61, "REDLOCK_E_DUPLICATE"},
    {-62, "REDLOCK_E_READONLY"},
    {-63, "REDLOCK_E_LOADING"},
    {-64, "REDLOCK_E_OOM"},
    {-65, "REDLOCK_E_SCRIPT_BUSY"},
    {-66, "REDLOCK_E_MISCONF"},
    {-67, "REDLOCK_E_NOREPLICAS"},
    {-68, "REDLOCK_E_CLUSTER"},
    {-69, "REDLOCK_E_WRONGTYPE"},
    {-70, "REDLOCK_E_NOSCRIPT"},
    {-71, "REDLOCK_E_MAXCLIENTS"},
    {-72, "REDLOCK_E_DENIED"},
    {-73, "REDLOCK_E_SERVER"},
    {-74, "REDLOCK_E_TLS"},
    {-75, "REDLOCK_E_GONE"},
    {-80, "REDLOCK_E_UNREAD"},
    {-81, "REDLOCK_E_UNWATCHED"},
    {-82, "REDLOCK_E_FINGERPRINT"},
    {-83, "REDLOCK_E_IDENTITY"},
    {-84, "REDLOCK_E_MAXMEMORY"},
    {-85, "REDLOCK_E_WALL_CLOCK"},
    {-86, "REDLOCK_E_SEAL"},
    {-90, "REDLOCK_E_REPLID"},
    {-91, "REDLOCK_E_NO_GREETING"},
    {-92, "REDLOCK_E_LEFT"},
    {-93, "REDLOCK_E_EVICTED"},
    {-94, "REDLOCK_E_TWO_SERVERS"},
    {-8, "REDLOCK_E_FENCE_UNKNOWN"},
    {-9, "REDLOCK_E_FENCE_RANGE"},
    {-10, "REDLOCK_E_FENCED"},
    {-11, "REDLOCK_E_CHANGING"},
    {-12, "REDLOCK_E_RECORD_LOST"},
    {-37, "REDLOCK_E_NO_BLOCKING"},
    {-76, "REDLOCK_E_REFUSED"},
    {-77, "REDLOCK_E_CONNECT_TIMEOUT"},
    {-78, "REDLOCK_E_UNREACHABLE"},
    {-79, "REDLOCK_E_AUTH_MISSING"},
#ifdef REDLOCK_TLS
    {-100, "REDLOCK_E_TLS_NONE"},
    {-101, "REDLOCK_E_TLS_ONLY"},
    {-102, "REDLOCK_E_TLS_AUTHORITY"},
    {-103, "REDLOCK_E_TLS_EXPIRED"},
    {-104, "REDLOCK_E_TLS_EARLY"},
    {-105, "REDLOCK_E_TLS_NAME"},
    {-106, "REDLOCK_E_TLS_PIN"},
    {-107, "REDLOCK_E_TLS_CLIENT_CERT"},
    {-108, "REDLOCK_E_TLS_CLIENT_REFUSED"},
    {-109, "REDLOCK_E_TLS_COMMON"},
    {-110, "REDLOCK_E_TLS_BROKEN"},
    {-111, "REDLOCK_E_TLS_FILE"},
    {-112, "REDLOCK_E_TLS_CHAIN"},
    {-113, "REDLOCK_E_TLS_MESSAGE"},
    {-114, "REDLOCK_E_TLS_MODULUS"},
    {-115, "REDLOCK_E_TLS_EXPONENT"},
    {-116, "REDLOCK_E_TLS_KEY"},
    {-117, "REDLOCK_E_TLS_WEAK"},
    {-118, "REDLOCK_E_TLS_USE"},
    {-119, "REDLOCK_E_TLS_FLOOD"},
    {-120, "REDLOCK_E_TLS_CURVES"},
#endif
};

static_assert(REDLOCK_E_TLS_NONE == -100 && REDLOCK_E_TLS_CURVES == -120, "numbers are there without TLS, too");

TEST(Errors, NumbersAndNamesAreFrozen) {
  for (const Frozen& f : frozen) EXPECT_STREQ(redlock_err_name(f.number), f.name) << f.number;
}

TEST(Errors, NoOtherNumberHasAName) {
  std::set<int> known;
  for (const Frozen& f : frozen) known.insert(f.number);
  for (int number = -200; number <= 200; ++number) {
    if (known.count(number) != 0) continue;
    EXPECT_STREQ(redlock_err_name(number), "REDLOCK_E_UNKNOWN") << number;
    EXPECT_STREQ(redlock_strerror(number), "not an error number of this library") << number;
  }
}

TEST(Errors, EachTextStandsForOneNumber) {
  std::set<std::string> texts;
  for (const Frozen& f : frozen) {
    const std::string text = redlock_strerror(f.number);
    EXPECT_FALSE(text.empty()) << f.name;
    EXPECT_TRUE(texts.insert(text).second) << f.name << " shares the text: " << text;
  }
}

TEST(Errors, TheTableHoldsTheWholeMap) {
#define COUNT(name, number, text) +1
#ifdef REDLOCK_TLS
  constexpr size_t with_tls = 0 REDLOCK_TLS_ERROR_MAP(COUNT);
#else
  constexpr size_t with_tls = 0;
#endif
  EXPECT_EQ(sizeof frozen / sizeof frozen[0], with_tls + 1 REDLOCK_ERROR_MAP(COUNT));
#undef COUNT
}

TEST(Errors, TheLastNumberOfTheEnumIsNoError) { EXPECT_STREQ(redlock_err_name(REDLOCK_E_LAST_), "REDLOCK_E_UNKNOWN"); }

TEST(Version, NumberAndTextAgree) {
  EXPECT_EQ(redlock_version(), static_cast<uint32_t>(REDLOCK_VERSION_NUM));
#ifdef REDLOCK_TLS
  const std::string tls = "+" REDLOCK_TLS_ENGINE;
#else
  const std::string tls;
#endif
  EXPECT_EQ(redlock_version_string(), std::to_string(redlock_version() >> 16) + "." +
                                          std::to_string((redlock_version() >> 8) & 255) + "." +
                                          std::to_string(redlock_version() & 255) + REDLOCK_COMMIT + tls);
}

}  // namespace
