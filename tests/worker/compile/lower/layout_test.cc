#include "worker/compile/lower/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/status.h"

namespace hone::lower {
namespace {

using ::testing::HasSubstr;

absl::Status Check(const ir::Shape& shape, const ir::Shape& strides) {
  return CheckStrides("T", ir::DType::kF32, shape, strides);
}

TEST(LayoutTest, SlicesOfLargerTensorsAreAccepted) {
  const struct {
    ir::Shape shape, strides;
    int64_t row, pitch, span;
  } slices[] = {
      {{4, 6}, {6, 1}, 24, 0, 24},                     // dense
      {{4, 6}, {16, 1}, 6, 16, 54},                    // of columns
      {{2, 3, 4}, {60, 4, 1}, 12, 60, 72},             // of the middle dimension
      {{2, 3, 4, 5}, {600, 200, 10, 1}, 5, 10, 1035},  // of two dimensions
      {{1, 6}, {1, 1}, 6, 0, 6},                       // one row
      {{3, 1}, {8, 1}, 1, 8, 17},                      // one column
      {{3, 4, 1}, {40, 2, 1}, 1, 2, 87},               // of one of two channels
  };
  for (const auto& slice : slices) {
    EXPECT_THAT(CheckStrides("T", ir::DType::kI4, slice.shape, slice.strides).message(),
                HasSubstr("a tensor of i4 is dense"));
    ASSERT_THAT(Check(slice.shape, slice.strides), IsOk());
    const Rows rows = RowsOf(slice.shape, slice.strides);
    EXPECT_EQ(rows.elements, slice.row);
    EXPECT_EQ(rows.pitch, slice.pitch);
    EXPECT_EQ(SpanOf(slice.shape, slice.strides), slice.span);
    std::set<int64_t> offsets;
    for (int64_t e = 0; e < ir::ElementsOf(slice.shape); ++e) {
      const int64_t offset = OffsetOf(slice.shape, slice.strides, e);
      EXPECT_TRUE(offsets.insert(offset).second);
      EXPECT_LT(offset, slice.span);
      EXPECT_LT(slice.pitch > 0 ? offset % slice.pitch : 0, slice.row);
    }
  }
}

TEST(LayoutTest, OtherStridesAreRefusedWithTheReason) {
  const struct {
    ir::Shape shape, strides;
    const char* reason;
  } mistakes[] = {
      {{4, 6}, {6}, "for each of the 2 dimensions"},
      {{4, 6}, {5, 1}, "dimension 0 needs a stride of at least 6"},
      {{4, 6}, {1, 4}, "dimension 0 needs a stride of at least 21"},
      {{4, 6}, {0, 1}, "at least 6"},
      {{4, 6}, {-6, 1}, "at least 6"},
      {{1, 6}, {-6, 1}, "at least 6"},
      {{3, 4}, {40, 2}, "dimension 1 needs a stride of 1, because the elements of a row"},
      {{5}, {2}, "dimension 0 needs a stride of 1"},
      {{2, 3, 4}, {35, 10, 1}, "dimension 0 must be a multiple of 10"},
      {{4, 6}, {int64_t{1} << 62, 1}, "more than 1 TiB"},
      {{1 << 20, 1 << 10, 4}, {1 << 28, 1 << 18, 1}, "more than 1 TiB"},
  };
  for (const auto& mistake : mistakes) {
    EXPECT_THAT(Check(mistake.shape, mistake.strides),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(mistake.reason)));
  }
}

}  // namespace
}  // namespace hone::lower
