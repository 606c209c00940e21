#include "client/cli/records/bundle.h"

#include "absl/strings/str_replace.h"
#include "common/rpc/signature.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

// openssl genpkey -algorithm ed25519
constexpr char kSigner[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";
constexpr char kOther[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
    "-----END PRIVATE KEY-----\n";
constexpr char kExport[] = "{\"hone_records\":1}\n{\"end\":{\"records\":0}}\n";

class BundleTest : public ::testing::Test {
 protected:
  static std::string Bundle(const char* signer = kSigner) {
    return SignBundle(kExport, signer).value();
  }
  // "" for a good bundle, otherwise why it is refused.
  static std::string Refusal(const std::string& bundle) {
    const auto records = VerifyBundle(bundle, rpc::PublicKeyOfPrivate(kSigner).value());
    if (records.ok()) return "";
    EXPECT_EQ(records.status().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(records.status().message());
  }
};

TEST_F(BundleTest, GivesTheSignedExport) {
  const std::string bundle = Bundle();
  HONE_ASSERT_OK_AND_ASSIGN(const absl::string_view records,
                            VerifyBundle(bundle, rpc::PublicKeyOfPrivate(kSigner).value()));
  EXPECT_EQ(records, kExport);
}

TEST_F(BundleTest, ASignatureOfAnotherKeyIsRefused) {
  EXPECT_THAT(Refusal(Bundle(kOther)), HasSubstr("signed with key "));
  // Another signer who claims the key.
  const std::string claim = Bundle().substr(0, Bundle().find('\n'));
  const std::string other = Bundle(kOther);
  EXPECT_THAT(Refusal(claim + other.substr(other.find('\n'))), HasSubstr("the signature is wrong"));
}

TEST_F(BundleTest, EveryChangedByteIsNoticed) {
  const std::string bundle = Bundle();
  for (size_t i = 0; i < bundle.size(); ++i) {
    for (const char bit : {1, 32}) {
      std::string changed = bundle;
      changed[i] ^= bit;
      EXPECT_NE(Refusal(changed), "") << i;
    }
  }
}

TEST_F(BundleTest, EveryTruncationAndAdditionIsNoticed) {
  const std::string bundle = Bundle();
  for (size_t size = 0; size < bundle.size(); ++size) {
    EXPECT_NE(Refusal(bundle.substr(0, size)), "") << size;
    EXPECT_NE(Refusal(bundle.substr(size + 1)), "") << size;
  }
  EXPECT_NE(Refusal(bundle + "\n"), "");
  EXPECT_NE(Refusal(bundle + "{}\n"), "");
  EXPECT_NE(Refusal(bundle + bundle), "");
  EXPECT_NE(Refusal(absl::StrReplaceAll(bundle, {{"{\"signature\":", "{\"signature\": "}})), "");
}

TEST_F(BundleTest, UnsignedAndLaterFilesAreExplained) {
  EXPECT_THAT(Refusal(kExport), HasSubstr("which is not signed"));
  EXPECT_THAT(Refusal(""), HasSubstr("not a bundle"));
  EXPECT_THAT(Refusal("{\"hone_bundle\":2}\n"), HasSubstr("has version 2; this program reads"));
  const std::string bundle = Bundle();
  EXPECT_THAT(Refusal(bundle.substr(0, bundle.rfind("{\"signature"))),
              HasSubstr("the last line is not a signature"));
}

TEST_F(BundleTest, APublicKeyCannotSign) {
  EXPECT_FALSE(SignBundle(kExport, "-----BEGIN PUBLIC KEY-----\n").ok());
}

}  // namespace
}  // namespace hone::cli
