#include "common/rpc/secret.h"

#include <sys/stat.h>

#include <fstream>
#include <set>

#include "common/rpc/token_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::rpc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SecretTest, TokensHave256BitsAndAreAllDifferent) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto token, RandomToken());
    EXPECT_EQ(token.size(), 64u);
    tokens.insert(token);
  }
  EXPECT_EQ(tokens.size(), 100u);
}

TEST(SecretTest, TheHashIsSha256) {
  EXPECT_EQ(HashToken("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(SecretTest, EqualSecretsComparesAll) {
  EXPECT_TRUE(EqualSecrets("abc", "abc"));
  EXPECT_FALSE(EqualSecrets("abc", "abd"));
  EXPECT_FALSE(EqualSecrets("abc", "ab"));
}

TEST(SecretTest, RejectsAWorldReadableSecret) {
  const TemporaryFolder folder;
  const std::string path = folder / "token";
  std::ofstream(path) << "  word\n";
  chmod(path.c_str(), 0600);
  EXPECT_EQ(ReadSecretFile(path).value_or(""), "word");
  chmod(path.c_str(), 0604);
  EXPECT_THAT(ReadSecretFile(path),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("chmod 600")));
}

TEST(TokenTableTest, FindsTheOwnerOfAToken) {
  const std::string text = "# who may call\n\n" + TokenLine({"ann", Role::kClient}, "one") + "  " +
                           TokenLine({"pi-*", Role::kWorker}, "two") +
                           TokenLine({"root", Role::kAdmin}, "three");
  HONE_ASSERT_OK_AND_ASSIGN(const auto table, TokenTable::Parse(text));
  EXPECT_EQ(table.Find("one"), (Identity{"ann", Role::kClient}));
  EXPECT_EQ(table.Find("two"), (Identity{"pi-*", Role::kWorker}));
  EXPECT_EQ(table.Find("three"), (Identity{"root", Role::kAdmin}));
  EXPECT_FALSE(table.Find("four").has_value());
  EXPECT_FALSE(table.Find("").has_value());
  EXPECT_THAT(text, Not(HasSubstr("one"))) << "the table has no token";
}

TEST(TokenTableTest, ErrorsNameTheLineButNoHash) {
  const std::string good = TokenLine({"ann", Role::kClient}, "one");
  const struct {
    std::string text, says;
  } cases[] = {
      {good + "client bob\n", "line 2: not three words"},
      {good + "king bob " + HashToken("x") + "\n", "line 2: unknown role 'king'"},
      {good + "client bob " + HashToken("x").substr(1) + "\n", "line 2: the hash"},
      {good + good, "line 2: the name was used before"},
      {good + TokenLine({"bob", Role::kClient}, "one"), "line 2: the token already belongs to ann"},
  };
  for (const auto& test : cases) {
    const auto table = TokenTable::Parse(test.text);
    ASSERT_THAT(table, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.says)))
        << test.text;
    EXPECT_THAT(std::string(table.status().message()), Not(HasSubstr(HashToken("one"))));
    EXPECT_THAT(std::string(table.status().message()), Not(HasSubstr(HashToken("x").substr(1))));
  }
}

TEST(IdentityTest, StarMatchesManyNames) {
  EXPECT_TRUE((Identity{"pi-07", Role::kWorker}).MayBeCalled("pi-07"));
  EXPECT_FALSE((Identity{"pi-07", Role::kWorker}).MayBeCalled("pi-08"));
  EXPECT_TRUE((Identity{"pi-*", Role::kWorker}).MayBeCalled("pi-08"));
  EXPECT_FALSE((Identity{"pi-*", Role::kWorker}).MayBeCalled("x-pi-08"));
  EXPECT_TRUE((Identity{"*", Role::kWorker}).MayBeCalled("anything"));
}

}  // namespace
}  // namespace hone::rpc
