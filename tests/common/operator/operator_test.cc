#include "common/operator/operator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/rng.h"
#include "common/ir/interpreter.h"

namespace hone::op {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<ir::Workload> Build(const std::string& line) {
  std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  const std::string name = words.empty() ? "" : words[0];
  if (!words.empty()) words.erase(words.begin());
  return BuildWorkload(name, words);
}

ir::Workload Built(const std::string& line) {
  auto workload = Build(line);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return std::move(workload).value();
}

// Small whole numbers: sums are exact in every type used here.
std::vector<ir::Values> Inputs(const ir::Workload& workload, uint64_t seed) {
  Rng rng(seed);
  std::vector<ir::Values> inputs;
  for (ir::BufferId id : workload.Inputs()) {
    ir::Values& values = inputs.emplace_back(ir::ElementsOf(workload.tensors[id].shape));
    for (double& value : values) value = static_cast<double>(rng.Below(7)) - 3;
  }
  return inputs;
}

ir::Values Compute(const ir::Workload& workload, const std::vector<ir::Values>& inputs) {
  auto outputs = ir::Interpret(workload, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(outputs->size(), 1u);
  return outputs->at(0);
}

// The product of the matrices that begin at these elements, from the definition.
ir::Values Product(const ir::Values& a, int64_t a_begin, const ir::Values& b, int64_t b_begin, int64_t m, int64_t n,
                   int64_t k) {
  ir::Values c;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t r = 0; r < k; ++r) sum += a[a_begin + i * k + r] * b[b_begin + r * n + j];
      c.push_back(sum);
    }
  }
  return c;
}

TEST(OperatorTest, MatmulIsTheDefinition) {
  for (const char* dtype : {"f32", "f64", "bf16", "i32"}) {
    const ir::Workload workload = Built(absl::StrCat("matmul m=5 n=7 k=6 dtype=", dtype));
    EXPECT_FALSE(workload.tensors[0].constant || workload.tensors[1].constant);
    const auto inputs = Inputs(workload, 1);
    EXPECT_EQ(Compute(workload, inputs), Product(inputs[0], 0, inputs[1], 0, 5, 7, 6)) << dtype;
  }
}

TEST(OperatorTest, BatchMatmulIsTheDefinition) {
  const ir::Workload workload = Built("batch_matmul b=3 m=4 n=5 k=6");
  const auto inputs = Inputs(workload, 2);
  ir::Values expected;
  for (int64_t b = 0; b < 3; ++b) {
    const ir::Values one = Product(inputs[0], b * 24, inputs[1], b * 30, 4, 5, 6);
    expected.insert(expected.end(), one.begin(), one.end());
  }
  EXPECT_EQ(Compute(workload, inputs), expected);
}

TEST(OperatorTest, DenseReluIsTheDefinition) {
  const ir::Workload workload = Built("dense_relu m=5 n=7 k=6");
  EXPECT_FALSE(workload.tensors[0].constant);
  EXPECT_TRUE(workload.tensors[1].constant);
  const auto inputs = Inputs(workload, 3);
  ir::Values expected = Product(inputs[0], 0, inputs[1], 0, 5, 7, 6);
  for (double& value : expected) value = value > 0 ? value : 0;
  EXPECT_EQ(Compute(workload, inputs), expected);
}

// From the definition, with an explicitly padded input.
TEST(OperatorTest, Conv2dIsTheDefinition) {
  struct Shape {
    int64_t n, h, w, ci, co, k, s, p;
  };
  for (const Shape& c : {Shape{1, 5, 6, 2, 3, 3, 1, 1}, Shape{2, 7, 5, 1, 2, 3, 2, 0}, Shape{1, 8, 8, 3, 2, 5, 3, 4},
                         Shape{2, 4, 4, 2, 2, 1, 2, 0}, Shape{1, 3, 3, 1, 1, 3, 1, 2}, Shape{1, 6, 4, 2, 2, 2, 2, 1}}) {
    const ir::Workload workload = Built(absl::StrCat("conv2d n=", c.n, " h=", c.h, " w=", c.w, " ci=", c.ci, " co=", c.co,
                                                     " k=", c.k, " s=", c.s, " p=", c.p));
    EXPECT_TRUE(workload.tensors[1].constant);
    const auto inputs = Inputs(workload, 4);
    const int64_t oh = (c.h + 2 * c.p - c.k) / c.s + 1, ow = (c.w + 2 * c.p - c.k) / c.s + 1;
    EXPECT_EQ(workload.tensors[2].shape, (ir::Shape{c.n, oh, ow, c.co}));
    const auto x = [&](int64_t n, int64_t h, int64_t w, int64_t ci) {
      const bool inside = h >= 0 && h < c.h && w >= 0 && w < c.w;
      return inside ? inputs[0][((n * c.h + h) * c.w + w) * c.ci + ci] : 0.0;
    };
    ir::Values expected;
    for (int64_t n = 0; n < c.n; ++n) {
      for (int64_t h = 0; h < oh; ++h) {
        for (int64_t w = 0; w < ow; ++w) {
          for (int64_t co = 0; co < c.co; ++co) {
            double sum = 0;
            for (int64_t r = 0; r < c.k; ++r) {
              for (int64_t s = 0; s < c.k; ++s) {
                for (int64_t ci = 0; ci < c.ci; ++ci) {
                  sum += x(n, h * c.s + r - c.p, w * c.s + s - c.p, ci) * inputs[1][((r * c.k + s) * c.ci + ci) * c.co + co];
                }
              }
            }
            expected.push_back(sum);
          }
        }
      }
    }
    EXPECT_EQ(Compute(workload, inputs), expected) << workload.ToText();
  }
}

TEST(OperatorTest, KeysHaveDefaults) {
  EXPECT_EQ(Built("conv2d n=1 h=4 w=4 ci=1 co=1 k=3").StructuralDigest(),
            Built("conv2d p=0 s=1 k=3 co=1 ci=1 w=4 h=4 n=1 dtype=f32").StructuralDigest());
}

TEST(OperatorTest, ErrorsSayWhatIsWrong) {
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
      {"matmul m=9223372036854775808 n=4 k=4", "key 'm': '9223372036854775808' is not a whole number that fits in 64 bits"},
      {"matmul m=9223372036854775807 n=4 k=4", "key 'm' is 9223372036854775807; at most 8589934592 is supported"},
      {"matmul m=4.5 n=4 k=4", "key 'm': '4.5' is not a whole number"},
      {"matmul m=4x n=4 k=4", "key 'm': '4x' is not a whole number"},
      {"matmul m= n=4 k=4", "'m=' is not of the form key=value"},
      {"matmul m n=4 k=4", "'m' is not of the form key=value"},
      {"matmul =4 n=4 k=4", "'=4' is not of the form key=value"},
      {"matmul m=4 n=4 k=4 dtype=f31", "unknown dtype 'f31'; known: f16, bf16"},
      {"matmul m=4 n=4 k=4 dtype=bool", "dtype bool has no arithmetic"},
      {"matmul m=131072 n=131072 k=1", "tensor C: f32[131072, 131072] has more than 8589934592 elements"},
      {"conv2d n=1 h=1000 w=1000 ci=1000 co=8000 k=30", "stage Y has 6.78"},
      {"conv2d n=1 h=4 w=4 ci=1 co=1 k=5", "conv2d: a kernel of 5x5 does not fit into the padded input of 4x4"},
      {"conv2d n=1 h=9 w=4 ci=1 co=1 k=7 p=1", "does not fit into the padded input of 11x6"},
      {"conv2d n=1 h=4 w=4 ci=1 co=1 k=3 p=3", "padding 3 must be smaller than the kernel (3)"},
      {"conv2d n=1 h=8589934592 w=8589934592 ci=1 co=1 k=3", "has more than 8589934592 elements"},
      {"conv2d n=1 h=4 w=4 ci=1 co=1 k=8589934592 p=8589934591", "elements"},
  };
  for (const auto& [line, error] : kCases) {
    const auto workload = Build(line);
    ASSERT_FALSE(workload.ok()) << line;
    EXPECT_EQ(workload.status().code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(workload.status().message()), HasSubstr(error)) << line;
  }
}

TEST(OperatorTest, UnknownOperatorsAndKeysGetASuggestion) {
  const auto error = [](const std::string& line) { return std::string(Build(line).status().message()); };
  EXPECT_EQ(Build("matmull m=1 n=1 k=1").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(error("matmull m=1 n=1 k=1"), "unknown operator 'matmull'; did you mean 'matmul'?");
  EXPECT_EQ(error("conv2 n=1"), "unknown operator 'conv2'; did you mean 'conv2d'?");
  EXPECT_EQ(error("batchmatmul m=1"), "unknown operator 'batchmatmul'; did you mean 'batch_matmul'?");
  EXPECT_EQ(error("zzzzzzzz m=1"), "unknown operator 'zzzzzzzz'");
  EXPECT_EQ(error(""), "unknown operator ''");
  EXPECT_EQ(error("conv2d n=1 h=1 w=1 cii=1"), "conv2d has no key 'cii'; did you mean 'ci'?");
  EXPECT_THAT(error(std::string(100000, 'm')), HasSubstr("unknown operator"));
}

// What `hone --help` shows and scripts rely on.
TEST(OperatorTest, LibraryIsListed) {
  std::vector<std::string> names;
  for (const OperatorInfo& info : Operators()) {
    names.push_back(info.name);
    EXPECT_FALSE(info.meaning.empty());
    for (const KeyInfo& key : info.keys) EXPECT_FALSE(key.meaning.empty()) << info.name << " " << key.name;
  }
  EXPECT_EQ(absl::StrJoin(names, " "), "batch_matmul conv2d dense_relu matmul");
}

TEST(NearestTest, FindsTheNearestName) {
  EXPECT_EQ(Nearest("mtamul", {"matmul", "conv2d"}), "matmul");
  EXPECT_EQ(Nearest("x", {"y"}), "");
  EXPECT_EQ(Nearest("anything", {}), "");
}

}  // namespace
}  // namespace hone::op
