// Compares the design spaces of some workloads with the text in testdata/. HONE_UPDATE_GOLDEN=1
// updates the files.

#include "tests/golden.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/tuner/space/generate.h"
#include "server/tuner/space/maker.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

struct Golden {
  const char* file;
  const char* workload;
  const char* maker = "rules";
  const char* only = "";  // the name of the only space to compare, if there are too many
  const char* target = "x86-avx512";
  double tolerance = 1e-3;
};

class GoldenText : public testing::TestWithParam<Golden> {};

TEST_P(GoldenText, IsUnchanged) {
  const auto workload = MakeWorkload(GetParam().workload);
  const target::Target target = target::TargetByName(GetParam().target).value();
  HONE_ASSERT_OK_AND_ASSIGN(auto spaces,
                            MakeSpaces({.workload = workload,
                                        .target = &target,
                                        .generation = {.tolerance = GetParam().tolerance}},
                                       GetParam().maker));
  spaces.push_back(DefaultCandidate(workload, target).value());
  const std::string only = GetParam().only;
  if (!only.empty())
    std::erase_if(spaces, [&](const auto& space) { return space->name() != only; });
  std::string text = absl::StrCat("# ", GetParam().workload, " on ", GetParam().target, "\n\n",
                                  workload->ToText());
  for (const auto& space : spaces) {
    absl::StrAppend(&text, "\n# ", space->name(), " ", space->digest(), "\n",
                    space->trace().ToText());
  }
  const std::string path =
      absl::StrCat("tests/server/tuner/space/testdata/", GetParam().file, ".txt");
  ExpectGolden(path, text);
}

INSTANTIATE_TEST_SUITE_P(
    All, GoldenText,
    testing::Values(
        Golden{"matmul", "matmul m=256 n=256 k=256"},
        Golden{"conv2d", "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1"},
        Golden{"conv2d_pointwise", "conv2d n=1 h=14 w=14 ci=1024 co=512 k=1 s=1 p=0"},
        Golden{"conv2d_nchw", "conv2d_nchw n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1", "rules",
               "transposed_tile_wco_wco_packW"},
        Golden{"conv2d_nchw_groups", "conv2d_nchw n=1 h=28 w=28 ci=272 co=68 k=1 groups=4", "rules",
               "", "x86-avx2"},
        Golden{"matmul_parts", "matmul m=1 n=64 k=16384"},
        Golden{"dense_relu", "dense_relu m=19 n=70 k=9"},
        Golden{"quantized_conv2d", "quantized_conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1",
               "rules", "usdot_4x4", "arm/neoverse-v2"},
        Golden{"amx_int8", "quantized_dense m=256 n=256 k=256", "rules", "amx_u8i8_16x16x64",
               "intel/sapphirerapids"},
        Golden{"amx_bf16", "dense m=256 n=256 k=256", "rules", "bf16_amx_bf16_16x16x32",
               "intel/sapphirerapids", 1e-2},
        Golden{"attention_chain", "attention b=1 h=8 s=2048 d=64", "rules", "chain"},
        Golden{"mlp_chain", "mlp m=512 k=768 h=3072 n=768", "rules", "chain"},
        Golden{"templates_dense", "dense m=128 n=768 k=768", "templates"},
        Golden{"templates_conv2d", "conv2d_bn_relu n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1",
               "templates"},
        Golden{"templates_depthwise", "depthwise_conv2d n=1 h=14 w=14 c=512 k=3 s=1 p=1",
               "templates"},
        Golden{"templates_batch_matmul", "batch_matmul b=12 m=128 n=128 k=64", "templates"},
        Golden{"templates_grouped", "conv2d n=1 h=56 w=56 ci=64 co=128 k=3 s=2 p=1 groups=4",
               "templates"},
        Golden{"templates_nchw", "conv2d_nchw n=1 h=28 w=28 ci=128 co=128 k=3 s=1 p=1",
               "templates"},
        Golden{"templates_gpu_conv2d", "conv2d n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1", "templates",
               "gpu_conv2d_direct", "nvidia/a100"},
        Golden{"templates_gpu_winograd", "conv2d n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1",
               "templates", "gpu_conv2d_winograd4", "nvidia/a100"},
        Golden{"gpu_dense_relu", "dense_relu m=512 n=512 k=512", "rules", "", "generic/opencl"},
        Golden{"gpu_softmax", "softmax m=1024 n=1024", "rules", "", "arm/mali-g610"}),
    [](const auto& info) { return std::string(info.param.file); });

}  // namespace
}  // namespace hone::space
