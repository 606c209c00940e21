#include "common/rpc/signature.h"

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "common/rpc/certificate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::rpc {
namespace {

using ::testing::HasSubstr;

// The first key of RFC 8032, section 7.1, whose signature of the empty message the RFC gives.
constexpr char kPrivate[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";
constexpr char kPublic[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
    "-----END PUBLIC KEY-----\n";

TEST(SignatureTest, IsThatOfTheStandard) {
  HONE_ASSERT_OK_AND_ASSIGN(const std::string signature, Sign(kPrivate, ""));
  EXPECT_EQ(absl::BytesToHexString(signature),
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b");
}

TEST(SignatureTest, BothTextsHaveTheSamePublicKey) {
  HONE_ASSERT_OK_AND_ASSIGN(const std::string own, PublicKeyOfPrivate(kPrivate));
  HONE_ASSERT_OK_AND_ASSIGN(const std::string given, ParsePublicKey(kPublic));
  EXPECT_EQ(own, given);
  EXPECT_EQ(own.size(), 32u);
}

TEST(SignatureTest, IsOfOneMessageAndKey) {
  HONE_ASSERT_OK_AND_ASSIGN(const std::string key, ParsePublicKey(kPublic));
  HONE_ASSERT_OK_AND_ASSIGN(const std::string signature, Sign(kPrivate, "a text"));
  EXPECT_TRUE(IsSignatureOf(key, "a text", signature));
  EXPECT_FALSE(IsSignatureOf(key, "a test", signature));
  EXPECT_FALSE(IsSignatureOf(key, "a text", signature.substr(1)));
  EXPECT_FALSE(IsSignatureOf(key, "a text", ""));
  EXPECT_FALSE(IsSignatureOf(std::string(32, '\1'), "a text", signature));
  EXPECT_FALSE(IsSignatureOf("", "a text", signature));
}

TEST(SignatureTest, OtherKeysAreRefused) {
  HONE_ASSERT_OK_AND_ASSIGN(const KeyPair other,
                            MakeAuthority("ca", absl::UnixEpoch(), absl::Now() + absl::Hours(1)));
  EXPECT_THAT(std::string(Sign(other.key, "").status().message()), HasSubstr("not an Ed25519 key"))
      << "it is on the curve P-256";
  EXPECT_THAT(std::string(Sign(kPublic, "").status().message()), HasSubstr("not a private key"));
  EXPECT_THAT(std::string(ParsePublicKey(kPrivate).status().message()),
              HasSubstr("not a public Ed25519 key"));
  EXPECT_FALSE(ParsePublicKey(other.certificate).ok());
  EXPECT_FALSE(ParsePublicKey("").ok());
}

}  // namespace
}  // namespace hone::rpc
