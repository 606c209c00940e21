#include "common/base/config_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ConfigFileTest, ReadsEveryForm) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto entries, ParseConfig(R"(# a comment
listen = ["0.0.0.0:7070",  # one
  'unix:/run/hone.sock',
]
store = "/var/lib/hone/a \"b\".db"   # with a # behind
threads=4
rate-limit = 2.5
insecure = true
literal = 'C:\new # none'
empty = []
pem = '''
-----BEGIN X-----
# no comment
'''
last = "x")"));
  std::vector<std::string> keys;
  for (const ConfigEntry& entry : entries) keys.push_back(entry.key);
  EXPECT_THAT(keys, ElementsAre("listen", "store", "threads", "rate-limit", "insecure", "literal",
                                "empty", "pem", "last"));
  EXPECT_THAT(entries[0].values, ElementsAre("0.0.0.0:7070", "unix:/run/hone.sock"));
  EXPECT_THAT(entries[1].values, ElementsAre("/var/lib/hone/a \"b\".db"));
  EXPECT_THAT(entries[2].values, ElementsAre("4"));
  EXPECT_THAT(entries[3].values, ElementsAre("2.5"));
  EXPECT_THAT(entries[4].values, ElementsAre("true"));
  EXPECT_THAT(entries[5].values, ElementsAre("C:\\new # none"));
  EXPECT_THAT(entries[6].values, ElementsAre());
  EXPECT_THAT(entries[7].values, ElementsAre("-----BEGIN X-----\n# no comment\n"));
  EXPECT_EQ(entries[7].line, 11);
  EXPECT_EQ(entries[8].line, 15);
}

TEST(ConfigFileTest, ErrorsNameTheLine) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"a = 1\nb", "line 2: '=' is missing after 'b'"},
      {"a = 1\n[section]\n", "line 2: sections are not supported"},
      {"a = 1\n\na = 2", "line 3: 'a' is set twice"},
      {"a = text", "line 1: the text text must be quoted"},
      {"a = ", "line 1: the value is missing"},
      {"a = \"x", "line 1: the closing \" is missing"},
      {"a = 'x\ny'", "line 1: the closing ' is missing"},
      {"a = '''x\ny", "line 1: the closing ''' is missing"},
      {"a = [\"x\"\nb = 1", "line 2: the values of a list must be separated by commas"},
      {"a = [\"x\",", "line 1: the closing ']' is missing"},
      {"a = \"x\" y", "line 1: unexpected text after the value of 'a'"},
      {"a = \"\\x\"", "line 1: only n, t, "},
      {"= 3", "line 1: a line is 'key = value'"},
      {"a = 1:2", "line 1: text must be quoted"},
  };
  for (const auto& test : cases) {
    ASSERT_THAT(ParseConfig(test.text),
                StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(test.says)))
        << test.text;
  }
}

TEST(ConfigFileTest, QuotedValuesRoundTrip) {
  for (const std::string value : {"", "plain", "with \"quotes\" and \\", "two\nlines\n"}) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto entries, ParseConfig("key = " + QuoteConfigValue(value)));
    EXPECT_THAT(entries[0].values, ElementsAre(value));
  }
}

}  // namespace
}  // namespace hone
