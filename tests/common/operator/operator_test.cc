#include "common/operator/operator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "tests/common/operator/arrays.h"
#include "tests/status.h"

namespace hone::op {
namespace {

using ::testing::HasSubstr;

TEST(OperatorTest, KeysHaveDefaults) {
  EXPECT_EQ(Built("conv2d n=1 h=4 w=4 ci=1 co=1 k=3").StructuralDigest(),
            Built("conv2d p=0 s=1 k=3 co=1 ci=1 w=4 h=4 n=1 dtype=f32").StructuralDigest());
  // A key may be the default of others; it is optional if these are given.
  const Digest digest = Built("conv2d n=1 h=5 w=5 ci=2 co=2 k=3 s=2 p=1").StructuralDigest();
  EXPECT_EQ(Built("conv2d n=1 h=5 w=5 ci=2 co=2 kh=3 kw=3 sh=2 s=7 sw=2 ph=1 pw=1 dil=1 groups=1")
                .StructuralDigest(),
            digest);
  EXPECT_EQ(Built("conv2d n=1 h=5 w=5 ci=2 co=2 k=9 kh=3 kw=3 s=2 p=1").StructuralDigest(), digest);
  EXPECT_NE(Built("conv2d n=1 h=5 w=5 ci=2 co=2 k=3 kw=2 s=2 p=1").StructuralDigest(), digest);
}

TEST(OperatorTest, ErrorsNameTheCause) {
  const std::pair<const char*, const char*> kCases[] = {
      {"matmul m=4 n=4", "matmul needs key 'k' (columns of A, rows of B)"},
      {"matmul m=4 n=4 k=4 k=4", "key 'k' is given twice"},
      {"matmul m=4 n=4 k=4 dtype=f32 dtype=f32", "key 'dtype' is given twice"},
      {"matmul m=4 n=4 j=4", "matmul has no key 'j'"},
      {"conv2d n=1 h=4 w=4 ci=1 co=1 kk=3", "conv2d has no key 'kk'"},
      {"matmul m=0 n=4 k=4", "key 'm' is 0; it must be at least 1"},
      {"matmul m=-3 n=4 k=4", "key 'm' is -3; it must be at least 1"},
      {"conv2d n=1 h=4 w=4 ci=1 co=1 k=3 s=0", "key 's' is 0; it must be at least 1"},
      {"conv2d n=1 h=4 w=4 ci=1 co=1 k=3 p=-1", "key 'p' is -1; it must be at least 0"},
      {"matmul m=9223372036854775808 n=4 k=4",
       "key 'm': '9223372036854775808' is not a whole number that fits in 64 bits"},
      {"matmul m=9223372036854775807 n=4 k=4",
       "key 'm' is 9223372036854775807; at most 8589934592 is supported"},
      {"matmul m=4.5 n=4 k=4", "key 'm': '4.5' is not a whole number"},
      {"matmul m=4x n=4 k=4", "key 'm': '4x' is not a whole number"},
      {"matmul m= n=4 k=4", "'m=' is not of the form key=value"},
      {"matmul m n=4 k=4", "'m' is not of the form key=value"},
      {"matmul =4 n=4 k=4", "'=4' is not of the form key=value"},
      {"matmul m=4 n=4 k=4 dtype=f31", "unknown dtype 'f31'; known: f16, bf16"},
      {"matmul m=4 n=4 k=4 dtype=bool", "dtype bool has no arithmetic"},
      {"matmul m=4 n=4 k=4 dtype=i4", "choose the type of the results, as in acc=i32"},
      {"matmul m=131072 n=131072 k=1",
       "tensor C: f32[131072, 131072] has more than 8589934592 elements"},
      {"conv2d n=1 h=1000 w=1000 ci=1000 co=8000 k=30", "stage Y has 6.78"},
      {"conv2d n=1 h=4 w=4 ci=1 co=1 k=5",
       "conv2d: a kernel of 5x5 does not fit into the padded input of 4x4"},
      {"conv2d n=1 h=9 w=4 ci=1 co=1 k=7 p=1", "does not fit into the padded input of 11x6"},
      {"conv2d n=1 h=4 w=4 ci=1 co=1 k=3 p=8589934592", "elements"},
      {"conv2d n=1 h=8589934592 w=8589934592 ci=1 co=1 k=3", "has more than 8589934592 elements"},
      {"conv2d n=1 h=4 w=4 ci=1 co=1 k=8589934592 p=8589934591", "elements"},
      {"conv2d n=1 h=4 w=4 ci=1 co=1 kh=3",
       "conv2d needs key 'k' (kernel extent in every dimension)"},
      {"conv2d n=1 h=4 w=4 ci=1 co=1", "conv2d needs key 'k'"},
      {"mlp m=4 h=4 n=4", "mlp needs key 'k'"},
      {"attention b=1 h=1 t=4 d=4", "attention needs key 's'"},
      {"conv2d n=1 h=6 w=6 ci=1 co=1 k=4 dil=2",
       "conv2d: a kernel of 4x4 with dilation 2 does not fit into the padded input of 6x6"},
      {"conv2d n=1 h=6 w=6 ci=1 co=1 k=8589934592 dil=8589934592", "does not fit"},
      {"conv2d n=1 h=4 w=4 ci=6 co=4 k=3 groups=4",
       "conv2d: 4 groups do not divide 6 input channels"},
      {"conv2d_nchw n=1 h=4 w=4 ci=4 co=6 k=3 groups=4",
       "conv2d_nchw: 4 groups do not divide 6 output channels"},
      {"conv2d n=1 h=4 w=4 ci=4 co=4 k=3 groups=0", "key 'groups' is 0; it must be at least 1"},
      {"conv2d n=1 h=4 w=4 ci=4 co=4 k=3 acc=bf16", "acc bf16 cannot hold what dtype f32 can"},
      {"matmul m=4 n=4 k=4 dtype=u8 acc=i8", "acc i8 cannot hold what dtype u8 can"},
      {"matmul m=4 n=4 k=4 dtype=f32 acc=i64", "acc i64 cannot hold what dtype f32 can"},
      {"matmul m=4 n=4 k=4 acc=f64 acc=f64", "key 'acc' is given twice"},
      {"softmax m=4 n=4 dtype=i32",
       "softmax computes in a float type, not i32; with acc=f32 it converts its inputs"},
      {"quantized_matmul m=4 n=4 k=4 dtype=f32", "quantized_matmul has no key 'dtype'"},
      {"conv1d n=1 l=4 ci=1 co=1 k=5",
       "conv1d: a kernel of 5 does not fit into the padded input of 4"},
      {"conv1d n=1 l=4 ci=1 co=1 kw=3", "conv1d has no key 'kw'"},
      {"conv3d n=1 d=2 h=9 w=9 ci=1 co=1 k=3",
       "conv3d: a kernel of 3x3x3 does not fit into the padded input of 2x9x9"},
      {"depthwise_conv2d n=1 h=2 w=9 c=1 k=3",
       "depthwise_conv2d: a kernel of 3x3 does not fit into the padded input of 2x9"},
      {"capsule_conv2d n=1 h=2 w=9 ci=1 co=1 k=3", "capsule_conv2d: a kernel of 3x3 does not fit"},
      {"conv2d_transpose n=1 h=1 w=1 ci=1 co=1 k=4 p=2",
       "conv2d_transpose: padding 2 leaves nothing of the output along h (4 without padding)"},
      {"conv2d_transpose n=1 h=4 w=4 ci=1 co=1 k=4 p=8589934592", "leaves nothing of the output"},
      {"conv2d_transpose n=1 h=8589934592 w=1 ci=1 co=1 k=1 s=8589934592", "strides of 8589934592"},
      {"winograd_conv2d n=1 h=2 w=9 ci=1 co=1",
       "winograd_conv2d: a kernel of 3x3 does not fit into the input of 2x9"},
      {"winograd_conv2d n=8589934592 h=8589934592 w=8589934592 ci=1 co=1",
       "tensor X: f32[8589934592"},
      {"max_pool2d n=1 h=4 w=4 c=1 k=5", "max_pool2d: a kernel of 5x5 does not fit"},
      {"max_pool2d n=1 h=4 w=4 c=1 k=2 p=2",
       "max_pool2d: padding 2 must be smaller than the kernel (2)"},
      {"avg_pool2d n=1 h=4 w=4 c=1 k=2 ph=3",
       "avg_pool2d: padding 3 must be smaller than the kernel (2)"},
      {"avg_pool2d n=1 h=4 w=4 c=1 k=2 pad_counts=2",
       "key 'pad_counts' is 2; at most 1 is supported"},
      {"argmax m=1 n=8589934592", "an index below 8589934592 does not fit into i32"},
      {"lstm_cell b=1 i=1 h=8589934592", "has more than 8589934592 elements"},
      {"mlp m=1 k=8589934592 h=2", "has more than 8589934592 elements"},
  };
  for (const auto& [line, error] : kCases) {
    const auto workload = Build(line);
    ASSERT_FALSE(workload.ok()) << line;
    EXPECT_THAT(workload, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error))) << line;
  }
}

TEST(OperatorTest, UnknownOperatorsAndKeysGetASuggestion) {
  const auto error = [](const std::string& line) {
    return std::string(Build(line).status().message());
  };
  EXPECT_THAT(Build("matmull m=1 n=1 k=1"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(error("matmull m=1 n=1 k=1"), "unknown operator 'matmull'; did you mean 'matmul'?");
  EXPECT_EQ(error("conv2 n=1"), "unknown operator 'conv2'; did you mean 'conv2d'?");
  EXPECT_EQ(error("batchmatmul m=1"),
            "unknown operator 'batchmatmul'; did you mean 'batch_matmul'?");
  EXPECT_EQ(error("zzzzzzzz m=1"), "unknown operator 'zzzzzzzz'");
  EXPECT_EQ(error(""), "unknown operator ''");
  EXPECT_EQ(error("conv2d n=1 h=1 w=1 cii=1"), "conv2d has no key 'cii'; did you mean 'ci'?");
  EXPECT_EQ(error("conv2d n=1 group=1"), "conv2d has no key 'group'; did you mean 'groups'?");
  EXPECT_EQ(error("sofmax m=1"), "unknown operator 'sofmax'; did you mean 'softmax'?");
  EXPECT_THAT(error(std::string(100000, 'm')), HasSubstr("unknown operator"));
}

}  // namespace
}  // namespace hone::op
