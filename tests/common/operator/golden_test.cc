// The workloads and error messages of all operators, kept as digests in workloads.txt. Records are
// found by the digest of a workload, so a difference makes stored records useless.
// HONE_UPDATE_GOLDEN=1 rewrites the file; check the difference before you commit it.

#include "tests/golden.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/common/operator/arrays.h"
#include "tests/common/operator/examples.h"

namespace hone::op {
namespace {

constexpr char kFile[] = "tests/common/operator/workloads.txt";

// Each stands for the lines with one of the values of every word: "conv1d n=1|2 l=9".
constexpr const char* kPatterns[] = {
    "add|add_relu|bias_add|multiply|relu m=1|3 n=1|5|4096",
    "gelu|sigmoid|silu|tanh|softmax|layer_norm|rms_norm m=1|3 n=1|5|4096",
    "argmax|reduce_max|reduce_sum|reduce_mean m=1|3 n=1|5|4096 axis=0|1",
    "matmul|quantized_matmul|quantized_dense|dense|dense_gelu|dense_relu m=1|3|512 n=1|4 k=1|5",
    "batch_matmul b=1|2 m=1|3 n=1|4 k=1|5",
    "transpose_batch_matmul b=1|2 s=1|3 h=1|4 d=1|5",
    "mlp m=1|3 k=1|5 h=1|4",
    "mlp m=3 k=5 h=4 n=1|7",
    "attention b=1|2 h=1|3 s=1|4 d=1|5",
    "attention b=2 h=3 s=4 d=64 t=1|7",
    "lstm_cell b=1|2 i=1|3 h=1|5",
    "norm|batch_transpose b=1|2 m=1|3 n=1|5",
    "transpose m=1|3 n=1|5",
    "global_avg_pool n=1|2 h=1|3 w=1|4 c=1|5",
    "conv1d n=1|2 l=7|8 ci=4 co=8 k=1|3 s=1|2 p=0|1|4 dil=1|2 groups=1|2|4",
    "conv2d|conv2d_nchw|conv2d_bn_relu|quantized_conv2d n=1 h=7 w=8 ci=4 co=8 k=1|3 s=1|2|3 p=0|1 "
    "dil=1|2 groups=1|2|4",
    "conv2d|conv2d_nchw|conv2d_bn_relu|quantized_conv2d n=2 h=6 w=9 ci=3 co=5 k=2 kh=1|3 sw=1|2 "
    "ph=0|2 pw=0|1",
    "conv3d n=1|2 d=3 h=5 w=6 ci=2 co=4 k=1|2 s=1|2 pd=0|1 ph=0|1 dil=1|2 groups=1|2",
    "depthwise_conv2d n=1|2 h=7 w=8 c=1|5 k=1|3 s=1|2 ph=0|1 pw=0|3 dil=1|2",
    "capsule_conv2d n=1|2 h=5 w=6 ci=1|3 co=2 k=1|3 sh=1|2 p=0|1",
    "capsule_conv2d n=1 h=5 w=6 ci=3 co=2 kh=2 kw=3 cap=1|2|8 ph=0|1 pw=0|2",
    "max_pool2d|avg_pool2d n=1|2 h=7 w=8 c=1|5 k=1|2|3 p=0|1",
    "max_pool2d|avg_pool2d n=2 h=7 w=8 c=5 kh=2 kw=3 sh=1|2 sw=1|3 ph=0|1 pw=0|2",
    "avg_pool2d n=2 h=7 w=8 c=5 k=2|3 s=1|2 ph=0|1 pw=0|1 pad_counts=0|1",
    "conv2d_transpose n=1|2 h=1|3 w=4 ci=1|3 co=2 k=1|2|3|4 s=1|2|3 p=0|1",
    "conv2d_transpose n=1 h=3 w=4 ci=3 co=2 kh=3 kw=2 sh=1|2|4 sw=1|3 ph=0|1 pw=0|1",
    "winograd_conv2d n=1|2 h=3|6|7|10 w=4|6|9 ci=1|3 co=1|5",
};

constexpr const char* kTypes[] = {"dtype=f16",
                                  "dtype=bf16",
                                  "dtype=f32",
                                  "dtype=f64",
                                  "dtype=i8",
                                  "dtype=u8",
                                  "dtype=i32",
                                  "dtype=i64",
                                  "dtype=bool",
                                  "dtype=f8e4m3",
                                  "dtype=f8e5m2",
                                  "dtype=i4",
                                  "acc=f32",
                                  "acc=f64",
                                  "acc=f16",
                                  "dtype=f16 acc=f32",
                                  "dtype=bf16 acc=f32",
                                  "dtype=f16 acc=bf16",
                                  "dtype=i8 acc=i32",
                                  "dtype=i8 acc=f32",
                                  "dtype=u8 acc=i32",
                                  "dtype=u8 acc=i64",
                                  "dtype=i4 acc=i8",
                                  "dtype=u4 acc=u8",
                                  "dtype=i4 acc=f32",
                                  "dtype=f8e4m3 acc=f16",
                                  "dtype=i32 acc=f64"};

// Shapes that do not match or overflow; operator_test.cc has more, with their messages.
constexpr const char* kOverflows[] = {
    "add|bias_add|relu|softmax|layer_norm|argmax|reduce_sum|transpose m=131072 n=131072",
    "reduce_mean|reduce_max m=1|8589934592 n=1|8589934592 axis=0|1",
    "matmul|dense|dense_gelu|quantized_matmul m=1|131072 n=131072|1 k=131072",
    "matmul|dense_relu|quantized_dense m=65536 n=65536 k=65536",
    "batch_matmul b=1|8589934592 m=65536 n=65536 k=1|65536",
    "transpose_batch_matmul b=1 s=1048576 h=1|8192 d=1",
    "mlp m=1|4096|1048576 k=1|8192 h=1048576 n=8192|1048576",
    "attention b=1|1048576 h=1 s=1|1048576 d=1|1024 t=1048576",
    "lstm_cell b=1|8589934592 i=1|4294967296 h=1|2147483648|4294967296",
    "norm|batch_transpose b=8192 m=8192 n=128|256",
    "global_avg_pool n=1|2 h=65536 w=65536 c=2|4",
    "conv1d n=1 l=8589934592 ci=1|2 co=1|2 k=1|4294967296 p=0|8589934592 dil=1|8589934592",
    "conv2d|conv2d_nchw|conv2d_bn_relu|quantized_conv2d n=1 h=1|65536 w=1|65536 ci=2 co=1|65536 "
    "k=1|65536|8589934592 p=0|8589934592 s=1|8589934592 groups=1|2|3",
    "conv3d n=1 d=8 h=1024 w=1024 ci=8 co=8192 k=1|8|1024 p=0|1024",
    "depthwise_conv2d n=1 h=65536 w=65536 c=1|2|3 k=1|65536 p=0|8589934592",
    "capsule_conv2d n=1 h=8 w=8 ci=1|65536 co=65536 k=1|8 cap=1|256|8589934592 p=0|8589934592",
    "max_pool2d|avg_pool2d n=1|4 h=65536 w=65536 c=2 k=1|65536|8589934592 p=0|65535|8589934591",
    "conv2d_transpose n=1 h=1|65536 w=1|65536 ci=1 co=1|65536 k=1|65536|8589934592 "
    "s=1|65536|8589934592 p=0|1|65535",
    "winograd_conv2d n=1|65536 h=2|3|65536 w=3|65536 ci=1|2 co=1|8589934592",
};

std::vector<std::string> Expand(const std::string& pattern) {
  std::vector<std::string> lines = {""};
  for (const absl::string_view word : absl::StrSplit(pattern, ' ')) {
    const std::vector<std::string> sides = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const std::string key = sides.size() == 2 ? " " + sides[0] + "=" : "";
    std::vector<std::string> longer;
    for (const std::string& line : lines) {
      for (const absl::string_view value : absl::StrSplit(sides.back(), '|'))
        longer.push_back(absl::StrCat(line, key, value));
    }
    lines = std::move(longer);
  }
  return lines;
}

// The text and the digest of a workload, or its error.
std::string Describe(const std::string& line) {
  const auto workload = Build(line);
  return workload.ok()
             ? absl::StrCat(workload->StructuralDigest().ToHex(), "\n", workload->ToText())
             : absl::StrCat(workload.status().ToString(), "\n");
}

// One line for all of these lines: the pattern, how many are errors, and a digest of everything.
std::string Summary(const std::string& pattern, const std::vector<std::string>& lines) {
  DigestBuilder digest;
  int errors = 0;
  for (const std::string& line : lines) {
    const std::string text = Describe(line);
    errors += !Build(line).ok();
    digest.Add(text);
  }
  return absl::StrCat(pattern, ": ", lines.size(), " lines, ", errors, " errors, ",
                      digest.Finish().ToHex(), "\n");
}

TEST(GoldenTest, WorkloadsAreUnchanged) {
  std::string golden;
  const auto add = [&](const std::string& pattern) {
    const size_t end = pattern.find(' ');
    for (const std::string& op : Expand(pattern.substr(0, end)))
      golden += Summary(op + pattern.substr(end), Expand(op + pattern.substr(end)));
  };
  for (const char* pattern : kPatterns) add(pattern);
  for (const char* pattern : kOverflows) add(pattern);
  for (const std::string example : kExamples) {
    const std::string line = example.substr(0, example.find(" dtype"));
    std::vector<std::string> typed = {line, example};
    for (const char* types : kTypes) typed.push_back(absl::StrCat(line, " ", types));
    golden += Summary(example, typed);
  }
  ExpectGolden(kFile, golden);
}

}  // namespace
}  // namespace hone::op
