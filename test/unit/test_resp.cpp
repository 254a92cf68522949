// SPDX-License-Identifier: MIT
//
// The reader against tables of wire texts: every text in every way bytes can arrive, what is not RESP, every limit at
// its last good value and one beyond.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "resp/writer.hpp"
#include "support/resp_feed.hpp"

namespace redlock::test {
namespace {

using namespace std::string_literals;
using resp::Reader;

std::string repeat(std::string_view text, size_t n) {
  std::string s;
  s.reserve(text.size() * n);
  for (size_t i = 0; i < n; ++i) s += text;
  return s;
}

std::string line(char type, auto number) { return type + std::to_string(number) + "\r\n"; }
std::string string_of(char type, const std::string& text) { return line(type, text.size()) + text + "\r\n"; }

struct Wire {
  const char* name;
  std::string bytes;
  std::string items;  // as describe() tells them
};

// What `redis-server` 7.0.15 sends after HELLO 3.
const std::string redis_7_hello =
    "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:3\r\n"
    "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";
const std::string redis_7_hello_items =
    "0 map 14\n1 string 'server'\n1 string 'redis'\n1 string 'version'\n1 string '7.0.15'\n1 string 'proto'\n"
    "1 integer 3\n1 string 'id'\n1 integer 3\n1 string 'mode'\n1 string 'standalone'\n1 string 'role'\n"
    "1 string 'master'\n1 string 'modules'\n1 array 0 last\n";

// Valkey 9.1 names a module of its own: maps in an array in a map, and an array in each.
const std::string valkey_9_hello =
    "%7\r\n$6\r\nserver\r\n$6\r\nvalkey\r\n$7\r\nversion\r\n$5\r\n9.1.2\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:12\r\n"
    "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*2\r\n"
    "%4\r\n$4\r\nname\r\n$3\r\nlua\r\n$3\r\nver\r\n:1\r\n$4\r\npath\r\n$17\r\n/lib/valkeylua.so\r\n$4\r\nargs\r\n*0\r\n"
    "%4\r\n$4\r\nname\r\n$4\r\njson\r\n$3\r\nver\r\n:10002\r\n$4\r\npath\r\n$0\r\n\r\n$4\r\nargs\r\n"
    "*2\r\n$1\r\na\r\n$1\r\nb\r\n";
const std::string valkey_9_hello_items =
    "0 map 14\n1 string 'server'\n1 string 'valkey'\n1 string 'version'\n1 string '9.1.2'\n1 string 'proto'\n"
    "1 integer 3\n1 string 'id'\n1 integer 12\n1 string 'mode'\n1 string 'standalone'\n1 string 'role'\n"
    "1 string 'master'\n1 string 'modules'\n1 array 2\n"
    "2 map 8\n3 string 'name'\n3 string 'lua'\n3 string 'ver'\n3 integer 1\n3 string 'path'\n"
    "3 string '/lib/valkeylua.so'\n3 string 'args'\n3 array 0\n"
    "2 map 8\n3 string 'name'\n3 string 'json'\n3 string 'ver'\n3 integer 10002\n3 string 'path'\n3 string ''\n"
    "3 string 'args'\n3 array 2\n4 string 'a'\n4 string 'b' last\n";

const std::vector<Wire>& good_wires() {
  static const std::vector<Wire> wires = {
      {"ok", "+OK\r\n", "0 simple 'OK' last\n"},
      {"not ok", "+ON\r\n", "0 simple 'ON' last\n"},
      {"empty simple", "+\r\n", "0 simple '' last\n"},
      {"simple of any bytes", "+\x01\t\xff $1\r\n", "0 simple '\x01\t\xff $1' last\n"},
      {"simple with nul", "+a\0b\r\n"s, "0 simple 'a\0b' last\n"s},
      {"error", "-NOSCRIPT No matching script.\r\n", "0 error 'NOSCRIPT No matching script.' last\n"},
      {"empty error", "-\r\n", "0 error '' last\n"},
      {"string", "$5\r\nhello\r\n", "0 string 'hello' last\n"},
      {"empty string", "$0\r\n\r\n", "0 string '' last\n"},
      {"string with line ends", "$6\r\n\r\n$\n\r\r\r\n", "0 string '\r\n$\n\r\r' last\n"},
      {"null string", "$-1\r\n", "0 null last\n"},
      {"null array", "*-1\r\n", "0 null last\n"},
      {"null", "_\r\n", "0 null last\n"},
      {"true", "#t\r\n", "0 boolean 1 last\n"},
      {"false", "#f\r\n", "0 boolean 0 last\n"},
      {"real", ",1.5\r\n", "0 real '1.5' last\n"},
      {"real with exponent", ",-12.25e+20\r\n", "0 real '-12.25e+20' last\n"},
      {"real with bare exponent", ",1E9\r\n", "0 real '1E9' last\n"},
      {"infinity", ",inf\r\n", "0 real 'inf' last\n"},
      {"minus infinity", ",-inf\r\n", "0 real '-inf' last\n"},
      {"not a number", ",nan\r\n", "0 real 'nan' last\n"},
      {"big number", "(3492890328409238509324850943850943825024385\r\n",
       "0 big_number '3492890328409238509324850943850943825024385' last\n"},
      {"big number 0", "(0\r\n", "0 big_number '0' last\n"},
      {"negative big number", "(-10\r\n", "0 big_number '-10' last\n"},
      {"bulk error", "!21\r\nSYNTAX invalid syntax\r\n", "0 error 'SYNTAX invalid syntax' last\n"},
      {"verbatim", "=15\r\ntxt:Some string\r\n", "0 string 'Some string' last\n"},
      {"empty verbatim", "=4\r\nmkd:\r\n", "0 string '' last\n"},
      {"empty array", "*0\r\n", "0 array 0 last\n"},
      {"array", "*3\r\n:1\r\n$1\r\na\r\n+b\r\n", "0 array 3\n1 integer 1\n1 string 'a'\n1 simple 'b' last\n"},
      {"map", "%1\r\n+k\r\n*1\r\n:2\r\n", "0 map 2\n1 simple 'k'\n1 array 1\n2 integer 2 last\n"},
      {"set", "~2\r\n#t\r\n_\r\n", "0 set 2\n1 boolean 1\n1 null last\n"},
      {"empty aggregates in one", "*3\r\n*0\r\n%0\r\n~0\r\n", "0 array 3\n1 array 0\n1 map 0\n1 set 0 last\n"},
      {"two levels end at once", "*2\r\n:1\r\n*2\r\n:2\r\n*1\r\n:3\r\n",
       "0 array 2\n1 integer 1\n1 array 2\n2 integer 2\n2 array 1\n3 integer 3 last\n"},
      {"null array as a child", "*2\r\n*-1\r\n$-1\r\n", "0 array 2\n1 null\n1 null last\n"},
      {"push", ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n",
       "0 push 2 push\n1 simple 'invalidate' push\n1 array 1 push\n2 string 'k' push last\n"},
      {"flush push", ">2\r\n$10\r\ninvalidate\r\n_\r\n",
       "0 push 2 push\n1 string 'invalidate' push\n1 null push last\n"},
      {"push, then a reply", ">1\r\n+a\r\n+OK\r\n", "0 push 1 push\n1 simple 'a' push last\n0 simple 'OK' last\n"},
      {"attribute", "|1\r\n+ttl\r\n:3600\r\n:5\r\n", "0 integer 5 last\n"},
      {"attribute before the usual", "|1\r\n+a\r\n+b\r\n+OK\r\n", "0 simple 'OK' last\n"},
      {"empty attribute", "|0\r\n+OK\r\n", "0 simple 'OK' last\n"},
      {"two attributes", "|1\r\n+a\r\n+b\r\n|1\r\n+c\r\n+d\r\n_\r\n", "0 null last\n"},
      {"attribute within an array", "*2\r\n|1\r\n+ttl\r\n:1\r\n:5\r\n|1\r\n+x\r\n*2\r\n$1\r\na\r\n_\r\n:6\r\n",
       "0 array 2\n1 integer 5\n1 integer 6 last\n"},
      {"attribute within an attribute", "|1\r\n+a\r\n|1\r\n+b\r\n*1\r\n:1\r\n%1\r\n:2\r\n:3\r\n*0\r\n",
       "0 array 0 last\n"},
      {"attribute before an array", "|1\r\n+a\r\n+b\r\n*1\r\n:1\r\n", "0 array 1\n1 integer 1 last\n"},
      {"attribute before a push", "|1\r\n+a\r\n+b\r\n>1\r\n:1\r\n", "0 push 1 push\n1 integer 1 push last\n"},
      {"attribute within a push", ">1\r\n|1\r\n+a\r\n+b\r\n:1\r\n", "0 push 1 push\n1 integer 1 push last\n"},
      {"verbatim and error in an attribute", "|1\r\n=5\r\ntxt:a\r\n!1\r\ne\r\n-ERR\r\n", "0 error 'ERR' last\n"},
      {"HELLO of Redis 7.0", redis_7_hello, redis_7_hello_items},
      {"HELLO of Valkey 9.1", valkey_9_hello, valkey_9_hello_items},
  };
  return wires;
}

const std::vector<std::pair<const char*, std::string>>& broken_wires() {
  static const std::vector<std::pair<const char*, std::string>> wires = {
      {"only a line end", "\r\n"},
      {"LF without CR", "+OK\n"},
      {"CR without LF", "+OK\r+"},
      {"LF within a line", "-a\nb\r\n"},
      {"a letter", ":a\r\n"},
      {"nul in a number", ":1\0\r\n"s},
      {"streamed string", "$?\r\n;4\r\nabcd\r\n;0\r\n"},
      {"streamed array", "*?\r\n:1\r\n.\r\n"},
      {"string longer than said", "$2\r\nabc\r\n"},
      {"string shorter than said", "$4\r\nabc\r\n\r\n"},
      {"string ends in LF LF", "$1\r\na\n\n"},
      {"string ends in CR CR", "$1\r\na\r\r"},
      {"verbatim shorter than its prefix", "=3\r\ntxt\r\n"},
      {"verbatim without colon", "=6\r\ntxt.ab\r\n"},
      {"huge array", "*4294967297\r\n"},
      {"map whose double wraps", "%4611686018427387905\r\n"},
      {"map whose double wraps to none", "%9223372036854775807\r\n"},
      {"null with text", "_1\r\n"},
      {"boolean of neither", "#x\r\n"},
      {"empty boolean", "#\r\n"},
      {"empty real", ",\r\n"},
      {"real with plus", ",+1.0\r\n"},
      {"real without digits after the point", ",1.\r\n"},
      {"real without digits before the point", ",.5\r\n"},
      {"real without exponent", ",1e\r\n"},
      {"real with a word", ",infinity\r\n"},
      {"big number with plus", "(+1\r\n"},
      {"big number with leading zero", "(00\r\n"},
      {"big number minus zero", "(-0\r\n"},
      {"push within an array", "*1\r\n>1\r\n:1\r\n"},
      {"push within a push", ">1\r\n>1\r\n:1\r\n"},
      {"push within an attribute", "|1\r\n+a\r\n>1\r\n:1\r\n"},
      {"broken within an attribute", "|1\r\n+a\r\n:x\r\n"},
      {"broken child", "*2\r\n:1\r\n:01\r\n"},
      {"deep", repeat("*1\r\n", 100'000)},
      {"deep attributes", repeat("|1\r\n", 100'000)},
      {"line without end", "+" + std::string(2000, 'a')},
      {"number without end", ":" + std::string(2000, '1')},
  };
  return wires;
}

// ---- every text in every way ----------------------------------------------------------------------------------

TEST(RespReader, ReadsEachTextSplitAnywhere) {
  for (const Wire& wire : good_wires()) {
    for (size_t at = 0; at <= wire.bytes.size(); ++at) {
      SCOPED_TRACE(wire.name + " split at "s + std::to_string(at));
      Feed feed;
      EXPECT_TRUE(feed.bytes(std::string_view(wire.bytes).substr(0, at)));
      EXPECT_TRUE(feed.bytes(std::string_view(wire.bytes).substr(at)));
      EXPECT_EQ(feed.description(), wire.items);
      EXPECT_TRUE(feed.at_boundary());
      EXPECT_EQ(feed.unread(), 0u);
    }
  }
}

TEST(RespReader, BreaksOnWhatIsNotRespAndStaysBroken) {
  for (const auto& [name, bytes] : broken_wires()) {
    for (const size_t piece : {size_t{1}, size_t{3}, bytes.size()}) {
      SCOPED_TRACE(name + " in pieces of "s + std::to_string(piece));
      Feed feed;
      EXPECT_FALSE(feed.in_pieces(bytes, piece));
      EXPECT_EQ(feed.description().find("last"), std::string::npos);
    }
  }
}

TEST(RespReader, IsBrokenUntilReset) {
  Reader reader(64);
  resp::Item item;
  size_t used = 0;
  EXPECT_EQ(reader.next("HTTP", 4, used, item), resp::Progress::broken);
  EXPECT_FALSE(reader.at_boundary());
  EXPECT_EQ(reader.next("+OK\r\n", 5, used, item), resp::Progress::broken);
  reader.reset();
  EXPECT_EQ(reader.next("+OK\r\n", 5, used, item), resp::Progress::item);
  EXPECT_TRUE(item.last && item.depth == 0 && !item.push);
}

// ---- lines ----------------------------------------------------------------------------------------------------

// Bytes already searched are not looked at again before the line has ended: changing them to LF is not noticed.
TEST(RespReader, SearchesALineOnce) {
  Reader reader(64);
  resp::Item item;
  size_t used = 0;
  ASSERT_EQ(reader.next("+abcd", 5, used, item), resp::Progress::need_more);
  ASSERT_EQ(used, 0u);
  ASSERT_EQ(reader.next("+\n\n\n\ne\r\n", 8, used, item), resp::Progress::item);
  EXPECT_EQ(used, 8u);
  EXPECT_TRUE(item.text == Bytes("\n\n\n\ne"));
}

TEST(RespReader, ALineMustFitIntoTheBuffer) {
  for (const size_t capacity : {size_t{32}, size_t{33}, size_t{1024}}) {
    const std::string longest(capacity - 3, 'x');
    for (const size_t piece : {size_t{1}, capacity + 1}) {
      Feed fits(capacity);
      EXPECT_TRUE(fits.in_pieces("-" + longest + "\r\n", piece));
      EXPECT_EQ(fits.description(), "0 error '" + longest + "' last\n");
      Feed too_long(capacity);
      EXPECT_FALSE(too_long.in_pieces("-" + longest + "x\r\n", piece));
      EXPECT_EQ(too_long.description(), "");
    }
  }
}

TEST(RespReader, SaysAtTheFirstByteThatThisIsNoReply) {
  const std::string types = "+-:$*_#,(!=%|~>";
  for (int c = 0; c < 256; ++c) {
    const char byte = static_cast<char>(c);
    Feed feed;
    EXPECT_EQ(feed.bytes(std::string_view(&byte, 1)), types.find(byte) != std::string::npos) << c;
  }
}

// ---- numbers --------------------------------------------------------------------------------------------------

// The dumb second implementation: a number is what printing gives back.
bool is_number(const std::string& text, long long& value) {
  value = strtoll(text.c_str(), nullptr, 10);
  return std::to_string(value) == text;
}

template <class F>
void for_each_short_text(std::string_view alphabet, size_t longest, F f) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    f(texts[i]);
    if (texts[i].size() == longest) continue;
    for (const char c : alphabet) {
      std::string longer = texts[i] + c;
      texts.push_back(std::move(longer));
    }
  }
}

TEST(RespReader, NumbersHaveOneSpelling) {
  size_t tried = 0;
  for_each_short_text("+-019 ", 4, [&](const std::string& text) {
    ++tried;
    long long value = 0;
    const bool good = is_number(text, value);
    for (const size_t piece : {size_t{1}, size_t{16}}) {
      Feed feed;
      EXPECT_EQ(feed.in_pieces(":" + text + "\r\n", piece), good) << '"' << text << '"';
      EXPECT_EQ(feed.description(), good ? "0 integer " + std::to_string(value) + " last\n" : "") << text;
    }
  });
  EXPECT_EQ(tried, 1u + 6 + 36 + 216 + 1296);
}

TEST(RespReader, LengthsHaveOneSpelling) {
  for_each_short_text("+-019 ", 4, [&](const std::string& text) {
    long long value = 0;
    const bool number = is_number(text, value);
    for (const char type : "$=!*%~>|"s) {
      const bool null = type == '$' || type == '*';
      const bool pairs = type == '%' || type == '|';
      const bool string = type == '$' || type == '=' || type == '!';
      const long long least = null ? -1 : type == '=' ? 4 : 0;
      const long long most = string ? Reader::string_max : pairs ? Reader::children_max / 2 : Reader::children_max;
      Feed feed;
      EXPECT_EQ(feed.bytes(type + text + "\r\n"), number && value >= least && value <= most) << type << text;
    }
  });
}

TEST(RespReader, NumbersAtTheEdgesOf64Bits) {
  std::mt19937_64 random(1);
  std::vector<int64_t> values = {INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1};
  for (int64_t power = 1; power <= INT64_MAX / 10; power *= 10) {
    values.insert(values.end(), {power, power - 1, -power, 1 - power, power * 9});
  }
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<int64_t>(random()) >> (random() % 64));
  for (const int64_t value : values) {
    Feed feed;
    feed.bytes(line(':', value));
    EXPECT_EQ(feed.description(), "0 integer " + std::to_string(value) + " last\n");
  }
  // Every number of 19 digits and a sign that is out of range by its last digit, and longer ones.
  for (const char* text : {"9223372036854775808", "9223372036854775809", "9999999999999999999", "10000000000000000000",
                           "18446744073709551615", "18446744073709551616", "-9223372036854775809",
                           "-9999999999999999999", "-18446744073709551616", "00000000000000000001",
                           "99999999999999999999999999999999999999999"}) {
    Feed feed;
    EXPECT_FALSE(feed.bytes(":"s + text + "\r\n")) << text;
  }
}

// ---- limits ---------------------------------------------------------------------------------------------------

TEST(RespReader, DepthLimit) {
  for (const char* open : {"*1\r\n", "%1\r\n+k\r\n", "~1\r\n"}) {
    SCOPED_TRACE(open);
    const std::string deepest = repeat(open, Reader::depth_max);
    Feed fits;
    EXPECT_TRUE(fits.bytes(deepest + ":1\r\n"));
    EXPECT_EQ(describe(fits.items().back()), "8 integer 1 last");
    for (const char* beyond : {"*1\r\n", "*0\r\n", "%0\r\n", "|1\r\n"}) {
      Feed too_deep;
      EXPECT_FALSE(too_deep.bytes(deepest + beyond)) << beyond;
    }
  }
  static_assert(Reader::depth_max == 8);
}

TEST(RespReader, AttributesCountAsDepthWhileTheyAreOpen) {
  const std::string outer = repeat("*1\r\n", Reader::depth_max - 1);
  Feed fits;
  EXPECT_TRUE(fits.bytes(outer + "|1\r\n+a\r\n+b\r\n*1\r\n:1\r\n"));
  EXPECT_EQ(describe(fits.items().back()), "8 integer 1 last");
  Feed too_deep;
  EXPECT_FALSE(too_deep.bytes(outer + "|1\r\n+a\r\n*1\r\n"));

  const std::string nested = repeat("|1\r\n+a\r\n", Reader::depth_max);
  Feed all;
  EXPECT_TRUE(all.bytes(nested + repeat("+v\r\n", Reader::depth_max) + ":1\r\n"));
  EXPECT_EQ(all.description(), "0 integer 1 last\n");
}

TEST(RespReader, ChildrenLimit) {
  for (const char type : "*~>"s) {
    Feed fits;
    EXPECT_TRUE(fits.bytes(line(type, Reader::children_max) + repeat("_\r\n", Reader::children_max - 1)));
    EXPECT_FALSE(fits.at_boundary());
    fits.bytes("+OK\r\n");
    EXPECT_TRUE(fits.at_boundary());
    EXPECT_EQ(fits.items().size(), size_t{Reader::children_max} + 1);
    EXPECT_TRUE(fits.items().back().item.last);
    Feed too_many;
    EXPECT_FALSE(too_many.bytes(line(type, Reader::children_max + 1)));
  }
  for (const char type : "%|"s) {
    Feed fits;
    EXPECT_TRUE(fits.bytes(line(type, Reader::children_max / 2) + repeat("_\r\n", Reader::children_max - 1)));
    EXPECT_FALSE(fits.at_boundary());
    EXPECT_TRUE(fits.bytes("_\r\n" + ":1\r\n"s));
    EXPECT_EQ(describe(fits.items().back()), "0 integer 1 last");
    Feed too_many;
    EXPECT_FALSE(too_many.bytes(line(type, Reader::children_max / 2 + 1)));
  }
}

TEST(RespReader, StringLimit) {
  for (const char type : "$=!"s) {
    std::string text(Reader::string_max, 's');
    text.replace(0, 4, "txt:");
    Feed fits;
    EXPECT_TRUE(fits.bytes(string_of(type, text) + ":1\r\n"));
    const auto whole = fits.joined();
    ASSERT_EQ(whole.size(), 2u);
    EXPECT_TRUE(whole[0].text == (type == '=' ? text.substr(4) : text));
    EXPECT_TRUE(whole[0].item.last);
    EXPECT_EQ(whole[0].item.type, type == '!' ? resp::Type::error : resp::Type::string);
    Feed too_long;
    EXPECT_FALSE(too_long.bytes(line(type, Reader::string_max + 1)));
  }
}

// ---- bodies ---------------------------------------------------------------------------------------------------

TEST(RespReader, ALongerBodyComesOutInPartsAndNoneIsEmpty) {
  for (size_t size = 31; size < 200; ++size) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i % 26);
    for (const size_t piece : {size_t{1}, size_t{3}, size_t{30}, size_t{31}, size_t{32}, size_t{1000}}) {
      SCOPED_TRACE(std::to_string(size) + " in pieces of " + std::to_string(piece));
      Feed feed(32);
      EXPECT_TRUE(feed.in_pieces("*2\r\n" + string_of('$', text) + ":1\r\n", piece));
      const auto& items = feed.items();
      ASSERT_GE(items.size(), 4u);
      for (size_t i = 1; i + 1 < items.size(); ++i) {
        EXPECT_EQ(items[i].item.part, i + 2 < items.size());
        EXPECT_EQ(items[i].item.depth, 1);
        EXPECT_FALSE(items[i].item.last);
        EXPECT_GT(items[i].text.size(), 0u);
      }
      EXPECT_EQ(describe(feed.joined()), "0 array 2\n1 string '" + text + "'\n1 integer 1 last\n");
    }
  }
}

TEST(RespReader, ALongBodyInAnAttributeIsReadOver) {
  const std::string bytes = "|1\r\n+a\r\n" + string_of('$', std::string(5000, 'x')) + "+OK\r\n";
  for (const size_t piece : {size_t{1}, size_t{1448}, bytes.size()}) {
    Feed feed(256);
    EXPECT_TRUE(feed.in_pieces(bytes, piece));
    EXPECT_EQ(feed.description(), "0 simple 'OK' last\n");
  }
}

using resp::Writer;

std::string text_of(Bytes bytes) { return bytes.size == 0 ? std::string() : std::string(bytes.data, bytes.size); }
Bytes bytes_of(const std::string& text) { return Bytes(text.data(), text.size()); }

std::string written(const std::function<void(Writer&)>& write) {
  std::string buffer(8192, '?');
  Writer out(buffer.data(), buffer.size());
  write(out);
  EXPECT_TRUE(out.fits());
  EXPECT_EQ(out.size(), out.written().size);
  return text_of(out.written());
}

const std::string value = "0123456789abcdef0123456789abcdef01234567";

void write_acquire(Writer& out) {
  out.array(6).bulk("SET").bulk("lock:", "pump").bulk(bytes_of(value)).bulk("NX").bulk("PX").number(10000);
}

void write_acquire_in_pieces(Writer& out) {
  out.array(6).bulk("SET").bulk_header(9).raw("lock:").raw("pump").crlf();
  out.bulk_header(value.size()).raw(bytes_of(value)).crlf().bulk("NX").bulk("PX").number(10000);
}

const std::string acquire =
    "*6\r\n$3\r\nSET\r\n$9\r\nlock:pump\r\n$40\r\n0123456789abcdef0123456789abcdef01234567\r\n$2\r\nNX\r\n$2\r\nPX\r\n"
    "$5\r\n10000\r\n";

TEST(RespWriter, EveryCapacityThatIsTooSmallWritesNothingPastTheEnd) {
  GuardedMemory memory(1);
  for (const auto write : {write_acquire, write_acquire_in_pieces}) {
    for (size_t capacity = 0; capacity < acquire.size(); ++capacity) {
      char* const buffer = memory.last(capacity);
      memset(memory.last(memory.size()), '#', memory.size());
      Writer out(buffer, capacity);
      write(out);
      EXPECT_FALSE(out.fits()) << capacity;
      EXPECT_EQ(out.size(), 0u);
      EXPECT_EQ(out.written().size, 0u);
      EXPECT_EQ(std::string(memory.last(memory.size()), memory.size() - capacity),
                std::string(memory.size() - capacity, '#'));
    }
    Writer exact(memory.last(acquire.size()), acquire.size());
    write(exact);
    EXPECT_EQ(text_of(exact.written()), acquire);
  }
}

TEST(RespWriter, TheReaderGivesBackWhatWasWritten) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> arguments(1 + random() % 12);
    std::string expected = "0 array " + std::to_string(arguments.size()) + "\n";
    const std::string command = written([&](Writer& out) {
      out.array(static_cast<unsigned>(arguments.size()));
      for (std::string& argument : arguments) {
        argument.resize(random() % 4 == 0 ? random() % 300 : random() % 12);
        for (char& c : argument) c = static_cast<char>(random() & 0xFF);
        const size_t cut = argument.empty() ? 0 : random() % argument.size();
        out.bulk(Bytes(argument.data(), cut), Bytes(argument.data() + cut, argument.size() - cut));
        expected += "1 string '" + argument + "'" + (&argument == &arguments.back() ? " last\n" : "\n");
      }
    });
    Feed feed;
    EXPECT_TRUE(feed.in_pieces(command, 1 + random() % 50));
    EXPECT_EQ(feed.description(), expected);
    EXPECT_TRUE(feed.at_boundary());
  }
}

}  // namespace
}  // namespace redlock::test
