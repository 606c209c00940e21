#include "client/cli/dataset/foreign_workload.h"

#include <openssl/evp.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/ir/workload_parser.h"
#include "common/operator/operator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string TextOf(const std::string& key) {
  const absl::StatusOr<ForeignWorkload> workload = WorkloadOfAnsor(key);
  return workload.ok() ? workload->text : workload.status().ToString();
}

TEST(ForeignWorkloadTest, OperatorsOfAnsor) {
  EXPECT_EQ(TextOf(R"(["d7b65649a4dd54becea0a52aabbc5af5", [8, 100], [8, 100]])"),
            op::BuildWorkload("softmax", {"m=8", "n=100"})->ToText());
  EXPECT_EQ(TextOf(R"(["d7b65649a4dd54becea0a52aabbc5af5", 1, 100, 1, 100])"),
            op::BuildWorkload("softmax", {"m=1", "n=100"})->ToText());
  EXPECT_THAT(TextOf(R"(["matmul_add", 8, 16, 32, "float32"])"),
              AllOf(HasSubstr("A: f32[8, 16]"), HasSubstr("B: f32[16, 32]"),
                    HasSubstr("Product[i, j] + C[i, j]")));
  EXPECT_THAT(TextOf(R"(["conv2d_layer", 1, 7, 7, 64, 32, 3, 3, [1, 1], [1, 1]])"),
              AllOf(HasSubstr("X: f32[1, 32, 7, 7]"), HasSubstr("W: f32[64, 32, 3, 3]"),
                    HasSubstr("max(Conv[n, co, h, w] + Bias[co], 0")));
  for (const char* unknown :
       {R"(["matmul_add", 8, "x", 32, "float32"])", R"(["matmul_add"])",
        R"(["conv2d_layer", 1, 2, 3, 4, 5, 6, 7, [], []])", R"(["another", 8])"}) {
    EXPECT_EQ(TextOf(unknown), "") << unknown;
  }
  for (const char* malformed : {"", "matmul", "[]", "[1]", "{}"}) {
    EXPECT_THAT(WorkloadOfAnsor(malformed), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(ForeignWorkloadTest, OperatorsOfAutoTvm) {
  const auto of = [](const std::string& task, const std::string& arguments) {
    return WorkloadOfAutoTvm(task, nlohmann::json::parse(arguments));
  };
  const auto tensor = [](const std::string& shape) {
    return absl::StrCat(R"(["TENSOR", [)", shape, R"(], "float32"])");
  };
  const std::string nchw = absl::StrCat("[", tensor("1, 3, 224, 224"), ",", tensor("64, 3, 7, 7"));
  EXPECT_EQ(of("conv2d_NCHWc.x86",
               nchw + R"(, [2, 2], [3, 3, 3, 3], [1, 1], "NCHW", "NCHW", "float32"])"),
            op::BuildWorkload("conv2d_nchw",
                              {"n=1", "h=224", "w=224", "ci=3", "co=64", "k=7", "s=2", "p=3"})
                ->ToText());
  EXPECT_EQ(of("conv2d_nchw.cuda", nchw + ", [2, 2], [3, 3, 2, 2], [1, 1], \"float32\"]"), "")
      << "padding that is not symmetric";
  EXPECT_EQ(
      of("conv2d_nhwc.cuda", absl::StrCat("[", tensor("1, 14, 14, 32"), ",", tensor("3, 3, 32, 64"),
                                          ", [1, 1], [1, 1], [1, 1], \"float32\"]")),
      op::BuildWorkload("conv2d", {"n=1", "h=14", "w=14", "ci=32", "co=64", "k=3", "p=1"})
          ->ToText());
  EXPECT_EQ(of("depthwise_conv2d_nhwc.generic",
               absl::StrCat("[", tensor("1, 14, 14, 32"), ",", tensor("3, 3, 32, 1"),
                            ", [1, 1], [1, 1], [1, 1], \"float32\"]")),
            op::BuildWorkload("depthwise_conv2d", {"n=1", "h=14", "w=14", "c=32", "k=3", "p=1"})
                ->ToText());
  const std::string batch = absl::StrCat("[", tensor("4, 8, 32"), ",", tensor("4, 16, 32"));
  EXPECT_THAT(of("batch_matmul.x86", batch + "]"), HasSubstr("A[b, i, k] * B[b, j, k]"));
  EXPECT_THAT(of("batch_matmul.x86", batch + R"(, [4, 8, 16], "float32", false, true])"),
              StartsWith("workload batch_matmul_nt\n"));
  EXPECT_EQ(of("batch_matmul.x86", batch + R"(, [4, 8, 16], "float32", true, true])"), "");
  EXPECT_EQ(of("conv1d.x86", "[]"), "");
  EXPECT_EQ(of("dense.x86", "[1, {}]"), "");
}

std::string Md5(const std::string& text) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
             EVP_md5(), nullptr);
  return absl::BytesToHexString(digest.substr(0, size));
}

// TVM's text of a convolution and the element-wise stages after it, without shapes: what the
// workload keys of networks' tasks hash. `named`: newer versions name inputs p0, p1, ….
std::string ConvolutionText(const std::string& pad, const std::string& conv, bool named,
                            const std::string& stride, const std::string& then) {
  int inputs = 0;
  const auto next = [&] {
    return named ? absl::StrCat("p", inputs++) : std::string("placeholder");
  };
  const auto read = [&](const std::string& input) {
    return absl::StrCat(input, " = PLACEHOLDER \n");
  };
  const std::string x = next(), w = next();
  const auto at = [&](const std::string& i) {
    return stride == "1" ? i : absl::StrCat("(", i, "*", stride, ")");
  };
  std::string text = absl::StrCat(read(x), pad, "(i0, i1, i2, i3) = ", x, "[i0, i1, i2, i3]\n",
                                  read(w), conv, "(nn, yy, xx, ff) += (", pad, "[nn, (", at("yy"),
                                  " + ry), (", at("xx"), " + rx), rc]*", w, "[ry, rx, rc, ff])\n");
  std::string previous = conv;
  for (const char stage : then) {
    const std::string input = stage == 'x' ? "" : next();
    const std::string of = "(ax0, ax1, ax2, ax3) = ", axes = "[ax0, ax1, ax2, ax3]";
    if (stage == 'x') {
      absl::StrAppend(&text, "T_relu", of, "max(", previous, axes, ", 0f)\n");
      previous = "T_relu";
    } else if (stage == 'm') {
      absl::StrAppend(&text, read(input), "T_multiply", of, "(", previous, axes, "*", input,
                      "[ax0, 0, 0, ax3])\n");
      previous = "T_multiply";
    } else {
      absl::StrAppend(&text, read(input), "T_add", of, "(", previous, axes, " + ", input,
                      stage == 'r' ? axes : "[ax0, 0, 0, ax3]", ")\n");
      previous = "T_add";
    }
  }
  return text;
}

// A key with the shapes of a convolution from 8x8 and 4 channels to 16 channels.
std::string ConvolutionKey(const std::string& text, const std::string& stride,
                           const std::string& then) {
  const std::string out = stride == "1" ? "1, 8, 8, 16" : "1, 4, 4, 16";
  std::string shapes = "1, 8, 8, 4, 1, 1, 4, 16, ";
  for (const char stage : then) {
    if (stage != 'x') absl::StrAppend(&shapes, stage == 'r' ? out : "1, 1, 1, 16", ", ");
  }
  return absl::StrCat("[\"", Md5(text), "\", ", shapes, out, "]");
}

TEST(ForeignWorkloadTest, AHashProvesTheConvolution) {
  struct Case {
    const char *pad, *conv;
    bool named;
    const char *stride, *then;
  };
  const Case cases[] = {{"PaddedInput", "Conv2dOutput", false, "1", ""},
                        {"pad_temp", "conv2d_nhwc", false, "1", ""},
                        {"pad_temp", "conv2d_nhwc", true, "1", ""},
                        {"PaddedInput", "Conv2dOutput", false, "2", ""},
                        {"pad_temp", "conv2d_nhwc", true, "2", ""},
                        {"PaddedInput", "Conv2dOutput", false, "1", "r"},
                        {"PaddedInput", "Conv2dOutput", false, "1", "bx"},
                        {"PaddedInput", "Conv2dOutput", false, "2", "bx"},
                        {"PaddedInput", "Conv2dOutput", false, "1", "rbx"},
                        {"PaddedInput", "Conv2dOutput", false, "1", "rmbx"}};
  for (const auto& [pad, conv, named, stride, then] : cases) {
    const std::string text = ConvolutionText(pad, conv, named, stride, then);
    HONE_ASSERT_OK_AND_ASSIGN(const ForeignWorkload workload,
                              WorkloadOfAnsor(ConvolutionKey(text, stride, then)));
    HONE_ASSERT_OK_AND_ASSIGN(const ir::Workload parsed, ir::ParseWorkload(workload.text));
    // X, the padding, W, the convolution; then a stage each, with its input.
    const std::string elements = then;
    const auto relus = std::count(elements.begin(), elements.end(), 'x');
    EXPECT_EQ(workload.stages.size(), 4 + 2 * elements.size() - relus) << text;
    EXPECT_EQ(workload.free_layout, "W");
    EXPECT_THAT(workload.text, HasSubstr(*stride == '1' ? "X[n, h + r, w + s, ci]"
                                                        : "X[n, 2*h + r, 2*w + s, ci]"));
    EXPECT_EQ(workload.text.find("max(") != std::string::npos, relus > 0) << text;
    EXPECT_EQ(parsed.Inputs().size(), 2 + elements.size() - relus);
  }
  // Other shapes than those of a convolution without padding.
  const std::string text = ConvolutionText("PaddedInput", "Conv2dOutput", false, "1", "");
  for (const char* shapes : {"1, 8, 8, 4, 3, 3, 4, 16, 1, 8, 8, 16", "1, 8, 8, 4", "[1, 8], \"x\"",
                             "1, 8, 8, 4, 1, 1, 5, 16, 1, 8, 8, 16"}) {
    EXPECT_EQ(TextOf(absl::StrCat("[\"", Md5(text), "\", ", shapes, "]")), "") << shapes;
  }
}

TEST(ForeignWorkloadTest, AHashProvesOtherOperators) {
  for (const std::string input : {"placeholder", "p0"}) {
    const std::string softmax = absl::StrReplaceAll(
        "$ = PLACEHOLDER \nT_softmax_maxelem(i0) max= $[i0, k]\n"
        "T_softmax_exp(i0, i1) = Op(tir.exp)\nT_softmax_expsum(i0) += T_softmax_exp[i0, k]\n"
        "T_softmax_norm(i0, i1) = (T_softmax_exp[i0, i1]/T_softmax_expsum[i0])\n",
        {{"$", input}});
    EXPECT_THAT(TextOf(absl::StrCat("[\"", Md5(softmax), "\", [2, 9], [2, 9]]")),
                StartsWith("workload softmax\n"));
    const std::string pool = absl::StrReplaceAll(
        "$ = PLACEHOLDER \n"
        "tensor(ax0, ax1, ax2, ax3) += $[ax0, ((ax1*7) + rv0), ((ax2*7) + rv1), ax3]\n"
        "tensor(ax0, ax1, ax2, ax3) = (tensor[ax0, ax1, ax2, ax3]/"
        "(float32((select((bool)1, ((ax1 + 1)*7), (((ax1 + 1)*7) + 1)) - (ax1*7)))*"
        "float32((select((bool)1, ((ax2 + 1)*7), (((ax2 + 1)*7) + 1)) - (ax2*7)))))\n",
        {{"$", input}});
    EXPECT_THAT(TextOf(absl::StrCat("[\"", Md5(pool), "\", 1, 7, 7, 3, 1, 1, 1, 3]")),
                HasSubstr("Sum[n, h, w, c] / 49.0"));
    EXPECT_EQ(TextOf(absl::StrCat("[\"", Md5(pool), "\", 1, 14, 14, 3, 2, 2, 2, 3]")), "");
  }
  const std::string dense =
      "p0 = PLACEHOLDER \np1 = PLACEHOLDER \nT_matmul_NT(i, j) += (p0[i, k]*p1[j, k])\n"
      "p2 = PLACEHOLDER \nT_add(ax0, ax1) = (T_matmul_NT[ax0, ax1] + p2[ax0, ax1])\n";
  const std::string key = absl::StrCat("[\"", Md5(dense), "\", [2, 3], [4, 3], [2, 4], [2, 4]]");
  EXPECT_THAT(TextOf(key), HasSubstr("X[i, k] * W[j, k]"));
}

// A padded stage is a call, of which the hash does not contain the arguments. So these tasks of
// ResNet stay unknown.
TEST(ForeignWorkloadTest, AHashDoesNotTellThePadding) {
  std::string text = ConvolutionText("PaddedInput", "Conv2dOutput", false, "2", "bx");
  text = absl::StrReplaceAll(text, {{"= placeholder[i0, i1, i2, i3]", "= Op(tir.if_then_else)"}});
  EXPECT_EQ(Md5(text), "12b88bedece6984af589a28b43e0f3c4");
  EXPECT_EQ(TextOf(R"(["12b88bedece6984af589a28b43e0f3c4", 1, 224, 224, 3, 7, 7, 3, 64, 1, 1, 1, 64,
                      1, 112, 112, 64])"),
            "");
}

}  // namespace
}  // namespace hone::cli
