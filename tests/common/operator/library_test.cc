// Properties of every operator: it is listed with its keys, its text parses back, other parts of
// Hone can use its stages, and the shapes of published benchmarks build.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/ir/interpreter.h"
#include "common/ir/reference_workload.h"
#include "common/ir/workload.h"
#include "common/ir/workload_parser.h"
#include "common/operator/operator.h"
#include "tests/common/operator/arrays.h"
#include "tests/common/operator/examples.h"
#include "tests/status.h"

namespace hone::op {
namespace {

std::string OperatorOf(const std::string& line) {
  return std::vector<std::string>(absl::StrSplit(line, ' '))[0];
}

TEST(LibraryTest, EveryOperatorIsDocumented) {
  std::vector<std::string> names;
  std::set<std::string> examples;
  for (const char* line : kExamples) examples.insert(OperatorOf(line));
  for (const OperatorInfo& info : Operators()) {
    names.push_back(info.name);
    EXPECT_TRUE(examples.contains(info.name)) << info.name << " has no example above";
    EXPECT_FALSE(info.meaning.empty() || info.inputs.empty() || info.outputs.empty()) << info.name;
    EXPECT_EQ(FindOperator(info.name), &info);
    std::set<std::string> keys;
    for (const KeyInfo& key : info.keys) {
      EXPECT_FALSE(key.meaning.empty()) << info.name << " " << key.name;
      EXPECT_TRUE(keys.insert(key.name).second) << info.name << " " << key.name;
      EXPECT_TRUE(key.default_key.empty() || keys.contains(key.default_key))
          << info.name << " " << key.name;
      EXPECT_TRUE(key.default_value < 0 || key.default_value >= key.minimum)
          << info.name << " " << key.name;
    }
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(FindOperator("matmull"), nullptr);
}

// Evaluates a dimension as `hone operators` prints it, e.g. "ci/groups". An error if a name is not
// a key, such as oh.
absl::StatusOr<int64_t> Dimension(const std::string& text,
                                  const std::map<std::string, int64_t>& keys) {
  for (const char op : {'/', '*'}) {
    const std::vector<std::string> sides = absl::StrSplit(text, op);
    if (sides.size() != 2) continue;
    const auto left = Dimension(sides[0], keys), right = Dimension(sides[1], keys);
    if (!left.ok() || !right.ok()) return absl::NotFoundError(text);
    return op == '/' ? *left / *right : *left * *right;
  }
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number)) return number;
  const auto key = keys.find(text);
  if (key == keys.end()) return absl::NotFoundError(text);
  return key->second;
}

TEST(LibraryTest, TensorsMatchTheDocumentation) {
  for (const std::string line : kExamples) {
    if (absl::StrContains(line, "axis=0")) continue;  // explained in the meaning
    const OperatorInfo& info = *FindOperator(OperatorOf(line));
    std::map<std::string, int64_t> keys;
    for (const KeyInfo& key : info.keys) {
      if (key.default_value >= 0) keys[key.name] = key.default_value;
    }
    std::string dtype = "f32", acc;
    for (const std::string& word : std::vector<std::string>(absl::StrSplit(line, ' '))) {
      const std::vector<std::string> pair = absl::StrSplit(word, '=');
      if (pair.size() < 2) continue;
      if (pair[0] == "dtype") dtype = pair[1];
      if (pair[0] == "acc") acc = pair[1];
      int64_t value = 0;
      if (absl::SimpleAtoi(pair[1], &value)) keys[pair[0]] = value;
    }
    for (const KeyInfo& key : info.keys) {
      if (!keys.contains(key.name) && keys.contains(key.default_key))
        keys[key.name] = keys[key.default_key];
    }
    const ir::Workload workload = Built(line);
    EXPECT_EQ(workload.name, info.name);
    const auto check = [&](const std::vector<TensorInfo>& listed,
                           const std::vector<ir::BufferId>& ids, const std::string& otherwise) {
      ASSERT_EQ(listed.size(), ids.size()) << line;
      for (size_t i = 0; i < ids.size(); ++i) {
        const ir::Tensor& tensor = workload.tensors[ids[i]];
        EXPECT_EQ(tensor.name, listed[i].name) << line;
        EXPECT_EQ(tensor.constant, listed[i].constant) << line << " " << tensor.name;
        EXPECT_EQ(std::string(ir::DTypeName(tensor.dtype)),
                  listed[i].dtype.empty() ? otherwise : listed[i].dtype)
            << line << " " << tensor.name;
        const std::vector<std::string> dimensions = absl::StrSplit(listed[i].layout, ' ');
        ASSERT_EQ(tensor.shape.size(), dimensions.size()) << line << " " << tensor.name;
        for (size_t d = 0; d < dimensions.size(); ++d) {
          const auto extent = Dimension(dimensions[d], keys);
          if (extent.ok()) {
            EXPECT_EQ(tensor.shape[d], *extent)
                << line << " " << tensor.name << ": " << dimensions[d];
          } else {
            EXPECT_EQ(dimensions[d][0], 'o')
                << line << ": " << dimensions[d] << " is neither a key nor explained";
          }
        }
      }
    };
    check(info.inputs, workload.Inputs(), dtype);
    check(info.outputs, workload.Outputs(), acc.empty() ? dtype : acc);
  }
}

TEST(LibraryTest, TextRoundTrips) {
  for (const char* line : kExamples) {
    const ir::Workload workload = Built(line);
    const auto parsed = ir::ParseWorkload(workload.ToText());
    ASSERT_THAT(parsed, IsOk()) << workload.ToText();
    EXPECT_EQ(parsed->ToText(), workload.ToText());
    EXPECT_EQ(parsed->StructuralDigest(), workload.StructuralDigest()) << workload.ToText();
  }
}

// The f64 reference workload agrees with the operator within the magnitudes.
TEST(LibraryTest, ReferenceWorkloadsAgree) {
  for (const char* line : kExamples) {
    const ir::Workload workload = Built(line);
    const auto reference = ir::ReferenceWorkload(workload);
    ASSERT_THAT(reference, IsOk()) << line;
    const auto inputs = Inputs(workload, 31, Kind::kReal);
    const auto got = Compute(workload, inputs), expected = Compute(*reference, inputs);
    const size_t count = got.size();
    ASSERT_EQ(expected.size(), 2 * count) << line;
    for (size_t o = 0; o < count; ++o) {
      const ir::DType dtype = workload.tensors[workload.Outputs()[o]].dtype;
      const double unit = dtype == ir::DType::kBF16  ? 0x1p-8
                          : dtype == ir::DType::kF16 ? 0x1p-11
                                                     : 0x1p-23;
      for (size_t i = 0; i < got[o].data.size(); ++i) {
        EXPECT_GE(expected[count + o].data[i], 0) << line;
        EXPECT_NEAR(got[o].data[i], expected[o].data[i],
                    200 * unit * (1e-3 + expected[count + o].data[i]))
            << line;
      }
    }
  }
}

// Every shape of the Ansor and MetaSchedule benchmarks, with the multiply-adds of their formulas.
struct FieldShape {
  std::string line;
  double macs;  // 0: not a contraction
};

// The number of taps inside the input, along one dimension.
double Taps(int64_t extent, int64_t k, int64_t s, int64_t p, int64_t dil = 1) {
  double taps = 0;
  for (int64_t o = 0; o <= (extent + 2 * p - (k - 1) * dil - 1) / s; ++o) {
    for (int64_t r = 0; r < k; ++r) {
      const int64_t at = o * s + r * dil - p;
      taps += at >= 0 && at < extent;
    }
  }
  return taps;
}

std::vector<FieldShape> FieldShapes() {
  struct Conv {
    int64_t n, h, w, ci, co, k, s, p;
    std::string Keys() const {
      return absl::StrCat(" n=", n, " h=", h, " w=", w, " ci=", ci, " co=", co, " k=", k, " s=", s,
                          " p=", p);
    }
    double Macs(int64_t dil = 1) const {
      return n * ci * co * Taps(h, k, s, p, dil) * Taps(w, k, s, p, dil);
    }
  };
  const Conv kConv2d[] = {{1, 224, 224, 3, 64, 7, 2, 3},
                          {1, 56, 56, 64, 64, 1, 1, 0},
                          {1, 14, 14, 256, 256, 3, 1, 1},
                          {1, 7, 7, 512, 512, 3, 1, 1}};
  std::vector<FieldShape> shapes;
  const auto add = [&](double macs, auto&&... words) {
    shapes.push_back({absl::StrCat(words...), macs});
  };
  for (const auto& [l, ci, co, k, s, p] : {std::tuple(256, 64, 128, 3, 2, 1),
                                           {128, 128, 256, 1, 2, 0},
                                           {64, 256, 256, 5, 1, 2},
                                           {32, 512, 512, 3, 1, 1}}) {
    add(ci * co * Taps(l, k, s, p), "conv1d n=1 l=", l, " ci=", ci, " co=", co, " k=", k, " s=", s,
        " p=", p);
  }
  for (const Conv& c : kConv2d) {
    add(c.Macs(), "conv2d", c.Keys());
    add(c.Macs() * Taps(16, c.k, c.s, c.p), "conv3d d=16", c.Keys());
    add(c.Macs(2), "conv2d dil=2", c.Keys());
  }
  for (const Conv& c : {Conv{1, 56, 56, 64, 128, 3, 2, 1}, kConv2d[1], kConv2d[2], kConv2d[3]}) {
    add(c.Macs() / 4, "conv2d groups=4", c.Keys());
  }
  for (const auto& [b, m, n, k] : {std::tuple(1, 128, 128, 128),
                                   {1, 512, 32, 512},
                                   {1, 512, 512, 512},
                                   {1, 1024, 1024, 1024}}) {
    add(1.0 * b * m * n * k, "batch_matmul b=", b, " m=", m, " n=", n, " k=", k);
  }
  for (const auto& [h, c, k, s, p] :
       {std::tuple(112, 32, 3, 1, 1), {112, 64, 3, 2, 1}, {14, 512, 3, 2, 1}, {7, 1024, 3, 1, 1}}) {
    add(c * Taps(h, k, s, p) * Taps(h, k, s, p), "depthwise_conv2d n=1 h=", h, " w=", h, " c=", c,
        " k=", k, " s=", s, " p=", p);
  }
  for (const Conv& c : {Conv{1, 4, 4, 512, 256, 4, 2, 1}, Conv{1, 8, 8, 256, 128, 4, 2, 1},
                        Conv{1, 16, 16, 128, 64, 4, 2, 1}, Conv{1, 32, 32, 64, 3, 4, 2, 1}}) {
    // Each input meets 4 taps, minus one at the border.
    add(1.0 * c.ci * c.co * (4 * c.h - 2) * (4 * c.w - 2), "conv2d_transpose", c.Keys());
  }
  for (const Conv& c : {Conv{1, 16, 16, 32, 32, 3, 2, 1}, Conv{1, 8, 8, 32, 32, 3, 1, 1},
                        Conv{1, 16, 16, 8, 16, 3, 2, 1}, Conv{1, 8, 8, 16, 16, 3, 1, 1}}) {
    add(64 * c.Macs(), "capsule_conv2d", c.Keys());
  }
  for (const auto& [b, m, n] :
       {std::tuple(1, 256, 256), {1, 512, 512}, {1, 1024, 1024}, {1, 4096, 1024}}) {
    add(1.0 * b * m * n, "norm b=", b, " m=", m, " n=", n);
  }
  for (const int64_t n : {256, 512, 1024, 2048}) add(0, "softmax m=", n, " n=", n);
  for (const Conv& c : {kConv2d[0], Conv{1, 56, 56, 64, 128, 3, 2, 1},
                        Conv{1, 28, 28, 128, 256, 1, 2, 0}, kConv2d[3]}) {
    add(c.Macs(), "conv2d_bn_relu", c.Keys());
  }
  for (const auto& [b, s, h, d] :
       {std::tuple(1, 128, 12, 64), {1, 128, 16, 64}, {1, 64, 12, 128}, {1, 128, 12, 128}}) {
    add(1.0 * b * h * s * s * d, "transpose_batch_matmul b=", b, " s=", s, " h=", h, " d=", d);
  }
  add(36.0 * 9 * 128 * 128, "winograd_conv2d n=1 h=14 w=14 ci=128 co=128");
  // The ResNet-18 operators of Zheng et al.
  for (const Conv& c : {Conv{1, 28, 28, 128, 256, 3, 2, 1}, kConv2d[3]})
    add(c.Macs(), "conv2d", c.Keys());
  return shapes;
}

TEST(LibraryTest, EveryPublishedShapeBuilds) {
  const std::vector<FieldShape> shapes = FieldShapes();
  EXPECT_EQ(shapes.size(), 55u);
  for (const FieldShape& shape : shapes) {
    const auto workload = Build(shape.line);
    ASSERT_THAT(workload, IsOk()) << shape.line;
    const double flops = FlopCount(*workload);
    EXPECT_GE(flops, 2 * shape.macs) << shape.line;
    if (shape.macs == 0) continue;
    EXPECT_LE(flops, 2 * shape.macs * 1.06) << shape.line;  // epilogues and transforms
  }
}

}  // namespace
}  // namespace hone::op
