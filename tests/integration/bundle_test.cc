// `hone bundle export`, `import` and `verify` between two servers.

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_replace.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"

namespace hone::integration {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const Words kRelu = {"relu", "m=64", "n=48"};

constexpr char kPrivate[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";
constexpr char kPublic[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
    "-----END PUBLIC KEY-----\n";
// The public key of somebody else.
constexpr char kStranger[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=\n"
    "-----END PUBLIC KEY-----\n";

class BundleTest : public ::testing::Test {
 protected:
  BundleTest() {
    std::ofstream(key_) << kPrivate;
    std::filesystem::permissions(key_, std::filesystem::perms::owner_read);
    std::ofstream(public_key_) << kPublic;
    std::ofstream(stranger_) << kStranger;
  }
  static json Run(const HoneHome& home, const Words& words, int code = 0) {
    const Result result = home.Hone(With(words, {"--json"}));
    EXPECT_EQ(result.code, code) << result.errors;
    return OneLineOfJson(result.output);
  }
  static size_t Records(const HoneHome& home) {
    return Run(home, {"records", "query", "--limit", "0"})["records"].size();
  }

  TemporaryFolder files_;
  const std::string key_ = files_ / "key.pem";
  const std::string public_key_ = files_ / "key.pub.pem";
  const std::string stranger_ = files_ / "stranger.pem";
  const std::string bundle_ = files_ / "zen.bundle";
};

TEST_F(BundleTest, RecordsTravelAndAreConfirmedAgain) {
  HoneHome maker, user;
  Run(maker, With({"tune", "--trials", "6"}, kRelu));
  const json written = Run(maker, {"bundle", "export", bundle_, "--best", "--sign", key_});
  EXPECT_EQ(written["record_count"], 1);
  const Words verify = {"--verify", public_key_};
  const json verified = Run(user, With({"bundle", "verify", bundle_}, verify));
  EXPECT_EQ(verified["record_count"], 1);
  EXPECT_EQ(verified["key"], written["key"]);

  const Words import = With({"bundle", "import", bundle_}, verify);
  EXPECT_EQ(Run(user, import)["added"], 1);
  EXPECT_EQ(Run(user, import)["known"], 1) << "a second import adds nothing";
  const json records = Run(user, {"records", "query"})["records"];
  ASSERT_EQ(records.size(), 1u);
  EXPECT_THAT(std::string(records[0]["job"]), HasSubstr("/")) << "it names the store of its origin";
  const Result unknown = user.Hone(With({"best"}, kRelu));
  EXPECT_EQ(unknown.code, 3) << "a signature publishes nothing";
  EXPECT_THAT(unknown.errors, HasSubstr("imported records that this machine has not confirmed"));
  EXPECT_EQ(user.Hone({"revalidate"}).code, 0);
  EXPECT_EQ(user.Hone(With({"best"}, kRelu)).code, 0);
}

TEST_F(BundleTest, WhatIsNotSignedChangesNothing) {
  HoneHome maker, user;
  Run(maker, With({"tune", "--trials", "4"}, kRelu));
  Transcript transcript("bundle", {"hone"}, user.variables());
  Run(maker, {"bundle", "export", bundle_, "--sign", key_});
  const std::string bundle = ReadFile(bundle_).value();
  const std::string changed = files_ / "changed.bundle";
  const auto import = [&](const std::string& text, const std::string& key) {
    std::ofstream(changed) << text;
    const Result result = transcript.Run({"bundle", "import", changed, "--verify", key});
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(user.Hone({"bundle", "verify", changed, "--verify", key}).code, 1);
  };
  import(absl::StrReplaceAll(bundle, {{"\"relu\"", "\"relU\""}}), public_key_);
  import(bundle.substr(0, bundle.size() / 2), public_key_);
  import(bundle.substr(0, bundle.rfind("{\"signature")), public_key_);
  import(bundle + "{}\n", public_key_);
  import(bundle, stranger_);
  const Result exported = maker.Hone({"records", "export"});
  import(exported.output, public_key_);
  EXPECT_EQ(Records(user), 0u);
}

TEST_F(BundleTest, MistakesNameTheFile) {
  HoneHome home;
  Transcript transcript("bundle_mistakes", {"hone"}, home.variables());
  std::filesystem::permissions(public_key_, std::filesystem::perms::owner_read);
  for (const Words& words : {
           Words{"export", bundle_},
           {"export", bundle_, "--sign", files_ / "none.pem"},
           {"export", bundle_, "--sign", public_key_},
           {"import", bundle_, "--verify", public_key_},
           {"verify", bundle_, "--verify", key_},
           {"import", bundle_},
       }) {
    transcript.Run(With({"bundle"}, words));
  }
  std::filesystem::permissions(key_, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  transcript.Run({"bundle", "export", bundle_, "--sign", key_});
  EXPECT_FALSE(std::filesystem::exists(bundle_));
}

}  // namespace
}  // namespace hone::integration
