#include <cmath>
#include <cstdint>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/tables.h"
#include "tests/status.h"

namespace hone::store {
namespace {

TEST(BlobCodec, DecisionsRoundTrip) {
  for (const std::vector<int64_t>& decisions : {std::vector<int64_t>{},
                                                {0},
                                                {-1, 1, -64, 63, 64, -65},
                                                {INT64_MIN, INT64_MAX, 0, 1 << 20}}) {
    EXPECT_EQ(DecodeDecisions(EncodeDecisions(decisions)).value(), decisions);
  }
}

// The encoding is part of the schema and must not change.
TEST(BlobCodec, DecisionEncodingIsStable) {
  EXPECT_EQ(EncodeDecisions({0, -1, 1, 64, -150}), std::string("\0\x01\x02\x80\x01\xab\x02", 7));
}

TEST(BlobCodec, SampleEncodingIsStable) {
  EXPECT_EQ(EncodeSamples({1.0, -2.5}),
            std::string("\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\x04\xc0", 16));
}

TEST(BlobCodec, SamplesRoundTripExactly) {
  const std::vector<double> samples = {0.1, -0.0, 1e-310, std::numeric_limits<double>::infinity(),
                                       std::numeric_limits<double>::quiet_NaN()};
  const std::vector<double> back = DecodeSamples(EncodeSamples(samples)).value();
  ASSERT_EQ(back.size(), samples.size());
  for (size_t i = 0; i + 1 < samples.size(); ++i) {
    EXPECT_EQ(back[i], samples[i]);
    EXPECT_EQ(std::signbit(back[i]), std::signbit(samples[i]));
  }
  EXPECT_TRUE(std::isnan(back.back()));
}

TEST(BlobCodec, DamagedBlobsAreDataLoss) {
  EXPECT_THAT(DecodeDecisions("\x80"), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(DecodeDecisions(std::string(10, '\xff')), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(DecodeDecisions(std::string(9, '\xff') + "\x02"),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(DecodeSamples("1234567"), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace hone::store
