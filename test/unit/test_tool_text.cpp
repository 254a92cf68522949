// SPDX-License-Identifier: MIT
//
// format_text() against snprintf(), whose conversions it has in part; and what Text adds to it.
#include <gtest/gtest.h>
#include <limits.h>
#include <stdio.h>

#include "tool/words/options.hpp"
#include "tool/words/text.hpp"

namespace redlock::tool {
namespace {

// A command with an option too many does not compile.
template <size_t count>
constexpr bool takes = std::is_constructible_v<Options, const Command&, int, char**, const Option (&)[count]>;
static_assert(takes<1> && takes<Options::own_max> && !takes<Options::own_max + 1>);

template <class... Arguments>
void expect_same(const char* format, Arguments... arguments) {
  char ours[128], theirs[128];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const size_t size = format_text(ours, sizeof ours, format, arguments...);
  const int wanted = snprintf(theirs, sizeof theirs, format, arguments...);
#pragma GCC diagnostic pop
  EXPECT_STREQ(ours, theirs) << format;
  EXPECT_EQ(size, static_cast<size_t>(wanted)) << format;
}

TEST(ToolFormat, ANumberOfAServerIsCut) {
  char* behind = nullptr;
  EXPECT_EQ(number_within(100, "42 rest", &behind), 42);
  EXPECT_STREQ(behind, " rest");
  EXPECT_EQ(number_within(100, "99999999999999999999 7", &behind), 100);
  EXPECT_STREQ(behind, " 7");
  EXPECT_EQ(number_within(100, "-9223372036854775808"), -100);
  EXPECT_EQ(number_within(100, "none"), 0);
}

TEST(ToolFormat, NumbersOfEachSizeAtTheirEnds) {
  for (const int number : {0, 1, -1, 9, -10, INT_MAX, INT_MIN}) expect_same("<%d>", number);
  for (const unsigned number : {0u, 10u, UINT_MAX}) expect_same("<%u %x>", number, number);
  for (const long number : {0L, -1L, LONG_MAX, LONG_MIN}) expect_same("<%ld>", number);
  for (const unsigned long number : {0UL, ULONG_MAX}) expect_same("<%lu>", number);
  for (const long long number : {0LL, -1LL, LLONG_MAX, LLONG_MIN}) expect_same("<%lld>", number);
  expect_same("<%llu>", ULLONG_MAX);
  expect_same("%d%lld%s%c%u", -5, LLONG_MIN, "text", 'c', 7u);  // each takes no more than its own argument
}

TEST(ToolFormat, WidthsAndTexts) {
  expect_same("plain");
  expect_same("100%%");
  expect_same("<%-7s><%7s><%-3s>", "ok", "ok", "longer");
  expect_same("<%.*s>", 3, "abcdef");
  expect_same("<%.*s>", 9, "abc");
  expect_same("<%.*s>", 0, "abc");
  expect_same("<%s>", "");
  expect_same("\\x%02x %03d", 7u, 8);
  expect_same("<%-4d><%4d>", -12, -12);
}

TEST(ToolFormat, CutsWhatDoesNotFit) {
  char out[6];
  EXPECT_EQ(format_text(out, sizeof out, "%s%d", "abc", 1234), 5u);
  EXPECT_STREQ(out, "abc12");
  EXPECT_EQ(format_text(out, 1, "%s", "abc"), 0u);
  EXPECT_STREQ(out, "");
  const char unterminated[] = {'a', 'b'};
  EXPECT_EQ(format_text(out, sizeof out, "%.*s", 2, unterminated), 2u);
}

TEST(ToolText, ThousandthsAreRounded) {
  const struct {
    int64_t number;
    const char* wanted;
  } cases[] = {{0, "0.0"}, {49, "0.0"}, {50, "0.1"}, {999, "1.0"}, {6240, "6.2"}, {-1250, "-1.3"}, {-49, "0.0"}};
  for (const auto& one : cases) EXPECT_STREQ(Text().thousandths(one.number).c_str(), one.wanted);
}

TEST(ToolText, AWordIsOneForTheShell) {
  const auto word = [](const std::string& text) { return std::string(Text().word(text.data(), text.size()).c_str()); };
  EXPECT_EQ(word("redlock::meta"), "'redlock::meta'");
  EXPECT_EQ(word("/etc/a-b_1.json"), "/etc/a-b_1.json");
  EXPECT_EQ(word("it's $(reboot) \\"), "'it'\\''s $(reboot) \\'");
  EXPECT_EQ(word("a\n'\\\xff"), "$'a\\x0a\\'\\\\\\xff'");
  EXPECT_EQ(word(""), "''");
}

TEST(ToolText, NeitherEndsNorEscapesLeaveTheBuffer) {
  Text full;
  for (int i = 0; i < 2000; ++i) full.add("x");
  const size_t most = full.size();
  full.escaped("\n").add("%d", 5);
  EXPECT_EQ(full.size(), most);
  EXPECT_STREQ(Text().escaped("a\n\\\x1b").c_str(), "a\\x0a\\x5c\\x1b");
}

}  // namespace
}  // namespace redlock::tool
