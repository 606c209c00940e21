#include "server/tuner/cost_model/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/status.h"

namespace hone::cost_model {
namespace {

using ::testing::HasSubstr;

const ModelHeader kHeader = {
    .name = "trees", .version = 3, .feature_set = "statement", .columns = 164};

std::string Refusal(absl::string_view bytes, const ModelHeader& expected) {
  const absl::Status status = DecodeModel(bytes, expected).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  return std::string(status.message());
}

TEST(ModelFileTest, RoundTrips) {
  const std::string payload("\0binary\xff", 8);
  HONE_ASSERT_OK_AND_ASSIGN(const auto file, DecodeModel(EncodeModel(kHeader, payload), kHeader));
  EXPECT_EQ(file.header.columns, 164);
  EXPECT_EQ(file.payload, payload);
}

TEST(ModelFileTest, ReportsMismatches) {
  const std::string bytes = EncodeModel(kHeader, "payload");
  ModelHeader expected = kHeader;
  expected.name = "bushes";
  EXPECT_THAT(Refusal(bytes, expected), HasSubstr("it is of model 'trees', not 'bushes'"));
  expected = kHeader;
  expected.version = 4;
  EXPECT_THAT(Refusal(bytes, expected),
              HasSubstr("version 3 of model 'trees', but this program reads"));
  expected = kHeader;
  expected.feature_set = "curve";
  EXPECT_THAT(Refusal(bytes, expected), HasSubstr("feature set 'statement', not 'curve'"));
}

TEST(ModelFileTest, ReportsDamage) {
  const std::string bytes = EncodeModel(kHeader, "payload");
  EXPECT_THAT(Refusal("SQLite format 3", kHeader), HasSubstr("do not start with a model header"));
  EXPECT_THAT(Refusal(bytes.substr(0, 30), kHeader), HasSubstr("truncated"));
  EXPECT_THAT(Refusal(bytes.substr(0, bytes.size() - 1), kHeader), HasSubstr("truncated"));
  EXPECT_THAT(Refusal(bytes + "x", kHeader), HasSubstr("foreign bytes"));
  std::string damaged = bytes;
  damaged[bytes.size() - 20] ^= 1;  // in the payload
  EXPECT_THAT(Refusal(damaged, kHeader), HasSubstr("digest"));
  damaged = bytes;
  damaged[8] = 2;
  EXPECT_THAT(Refusal(damaged, kHeader), HasSubstr("layout 2, but this program reads layout 1"));
}

}  // namespace
}  // namespace hone::cost_model
