#include "common/ir/intrinsic.h"

#include "absl/algorithm/container.h"
#include "common/ir/workload_parser.h"

namespace hone::ir {
namespace {

using IntrinsicShape = Intrinsic::Shape;

constexpr char kVnni16[] =
    "workload vnni\ninput A: u8[4]\ninput B: i8[16, 4]\n"
    "output C[j: 16] = sum(k: 4) i32(A[k]) * i32(B[j, k])\n";
constexpr char kVnni8[] =
    "workload vnni\ninput A: u8[4]\ninput B: i8[8, 4]\n"
    "output C[j: 8] = sum(k: 4) i32(A[k]) * i32(B[j, k])\n";
constexpr char kBf16[] =
    "workload dpbf16ps\ninput A: bf16[2]\ninput B: bf16[16, 2]\n"
    "output C[j: 16] = sum(k: 2) f32(A[k]) * f32(B[j, k])\n";
constexpr char kAmxU8I8x16[] =
    "workload tdpbusd\ninput A: u8[16, 64]\ninput B: i8[16, 16, 4]\n"
    "output C[i: 16, j: 16] = sum(k: 64) i32(A[i, k]) * i32(B[k / 4, j, k % 4])\n";
constexpr char kAmxI8x16[] =
    "workload tdpbssd\ninput A: i8[16, 64]\ninput B: i8[16, 16, 4]\n"
    "output C[i: 16, j: 16] = sum(k: 64) i32(A[i, k]) * i32(B[k / 4, j, k % 4])\n";
constexpr char kAmxU8x16[] =
    "workload tdpbuud\ninput A: u8[16, 64]\ninput B: u8[16, 16, 4]\n"
    "output C[i: 16, j: 16] = sum(k: 64) i32(A[i, k]) * i32(B[k / 4, j, k % 4])\n";
constexpr char kAmxBf16x16[] =
    "workload tdpbf16ps\ninput A: bf16[16, 32]\ninput B: bf16[16, 16, 2]\n"
    "output C[i: 16, j: 16] = sum(k: 32) f32(A[i, k]) * f32(B[k / 2, j, k % 2])\n";
constexpr char kAmxU8I8x14[] =
    "workload tdpbusd\ninput A: u8[14, 64]\ninput B: i8[16, 16, 4]\n"
    "output C[i: 14, j: 16] = sum(k: 64) i32(A[i, k]) * i32(B[k / 4, j, k % 4])\n";
constexpr char kAmxI8x14[] =
    "workload tdpbssd\ninput A: i8[14, 64]\ninput B: i8[16, 16, 4]\n"
    "output C[i: 14, j: 16] = sum(k: 64) i32(A[i, k]) * i32(B[k / 4, j, k % 4])\n";
constexpr char kAmxU8x14[] =
    "workload tdpbuud\ninput A: u8[14, 64]\ninput B: u8[16, 16, 4]\n"
    "output C[i: 14, j: 16] = sum(k: 64) i32(A[i, k]) * i32(B[k / 4, j, k % 4])\n";
constexpr char kAmxBf16x14[] =
    "workload tdpbf16ps\ninput A: bf16[14, 32]\ninput B: bf16[16, 16, 2]\n"
    "output C[i: 14, j: 16] = sum(k: 32) f32(A[i, k]) * f32(B[k / 2, j, k % 2])\n";
constexpr char kMaddU8I8x8[] =
    "workload madd\ninput A: u8[4]\ninput B: i8[8, 4]\n"
    "output C[j: 8] = sum(k: 4) i32(A[k]) * i32(B[j, k])\n";
constexpr char kMaddI8x8[] =
    "workload madd\ninput A: i8[4]\ninput B: i8[8, 4]\n"
    "output C[j: 8] = sum(k: 4) i32(A[k]) * i32(B[j, k])\n";
constexpr char kMaddU8x8[] =
    "workload madd\ninput A: u8[4]\ninput B: u8[8, 4]\n"
    "output C[j: 8] = sum(k: 4) i32(A[k]) * i32(B[j, k])\n";
constexpr char kMaddU8I8x16[] =
    "workload madd\ninput A: u8[4]\ninput B: i8[16, 4]\n"
    "output C[j: 16] = sum(k: 4) i32(A[k]) * i32(B[j, k])\n";
constexpr char kMaddI8x16[] =
    "workload madd\ninput A: i8[4]\ninput B: i8[16, 4]\n"
    "output C[j: 16] = sum(k: 4) i32(A[k]) * i32(B[j, k])\n";
constexpr char kMaddU8x16[] =
    "workload madd\ninput A: u8[4]\ninput B: u8[16, 4]\n"
    "output C[j: 16] = sum(k: 4) i32(A[k]) * i32(B[j, k])\n";
constexpr char kSdot[] =
    "workload sdot\ninput A: i8[4]\ninput B: i8[4, 4]\n"
    "output C[j: 4] = sum(k: 4) i32(A[k]) * i32(B[j, k])\n";
constexpr char kUdot[] =
    "workload udot\ninput A: u8[4]\ninput B: u8[4, 4]\n"
    "output C[j: 4] = sum(k: 4) i32(A[k]) * i32(B[j, k])\n";
constexpr char kUsdot[] =
    "workload usdot\ninput A: u8[4]\ninput B: i8[4, 4]\n"
    "output C[j: 4] = sum(k: 4) i32(A[k]) * i32(B[j, k])\n";
constexpr char kBfdot[] =
    "workload bfdot\ninput A: bf16[2]\ninput B: bf16[4, 2]\n"
    "output C[j: 4] = sum(k: 2) f32(A[k]) * f32(B[j, k])\n";
constexpr char kSmmla[] =
    "workload smmla\ninput A: i8[2, 8]\ninput B: i8[2, 8]\n"
    "output C[i: 2, j: 2] = sum(k: 8) i32(A[i, k]) * i32(B[j, k])\n";
constexpr char kUmmla[] =
    "workload ummla\ninput A: u8[2, 8]\ninput B: u8[2, 8]\n"
    "output C[i: 2, j: 2] = sum(k: 8) i32(A[i, k]) * i32(B[j, k])\n";
constexpr char kUsmmla[] =
    "workload usmmla\ninput A: u8[2, 8]\ninput B: i8[2, 8]\n"
    "output C[i: 2, j: 2] = sum(k: 8) i32(A[i, k]) * i32(B[j, k])\n";
constexpr char kBfmmla[] =
    "workload bfmmla\ninput A: bf16[2, 4]\ninput B: bf16[2, 4]\n"
    "output C[i: 2, j: 2] = sum(k: 4) f32(A[i, k]) * f32(B[j, k])\n";
constexpr char kDp4aI8[] =
    "workload dp4a\ninput A: i8[4]\ninput B: i8[4]\n"
    "output C[j: 1] = sum(k: 4) i32(A[k]) * i32(B[k])\n";
constexpr char kDp4aU8[] =
    "workload dp4a\ninput A: u8[4]\ninput B: u8[4]\n"
    "output C[j: 1] = sum(k: 4) i32(A[k]) * i32(B[k])\n";
constexpr char kDp4aU8I8[] =
    "workload dp4a\ninput A: u8[4]\ninput B: i8[4]\n"
    "output C[j: 1] = sum(k: 4) i32(A[k]) * i32(B[k])\n";

constexpr Intrinsic kIntrinsics[] = {
    {1, "vnni_16x4", kVnni16, "x86_64", "avx512vnni", IntrinsicShape::kDot},
    {2, "vnni_8x4", kVnni8, "x86_64", "avx512vnni", IntrinsicShape::kDot},
    {3, "bf16dot_16x2", kBf16, "x86_64", "avx512bf16", IntrinsicShape::kDot},
    {4, "amx_u8i8_16x16x64", kAmxU8I8x16, "x86_64", "amx-int8", IntrinsicShape::kTile},
    {21, "amx_i8_16x16x64", kAmxI8x16, "x86_64", "amx-int8", IntrinsicShape::kTile},
    {22, "amx_u8_16x16x64", kAmxU8x16, "x86_64", "amx-int8", IntrinsicShape::kTile},
    {5, "amx_bf16_16x16x32", kAmxBf16x16, "x86_64", "amx-bf16", IntrinsicShape::kTile},
    {23, "amx_u8i8_14x16x64", kAmxU8I8x14, "x86_64", "amx-int8", IntrinsicShape::kTile},
    {24, "amx_i8_14x16x64", kAmxI8x14, "x86_64", "amx-int8", IntrinsicShape::kTile},
    {25, "amx_u8_14x16x64", kAmxU8x14, "x86_64", "amx-int8", IntrinsicShape::kTile},
    {26, "amx_bf16_14x16x32", kAmxBf16x14, "x86_64", "amx-bf16", IntrinsicShape::kTile},
    {6, "sdot_4x4", kSdot, "aarch64", "dotprod", IntrinsicShape::kDot},
    {7, "udot_4x4", kUdot, "aarch64", "dotprod", IntrinsicShape::kDot},
    {8, "usdot_4x4", kUsdot, "aarch64", "i8mm", IntrinsicShape::kDot},
    {9, "bfdot_4x2", kBfdot, "aarch64", "bf16", IntrinsicShape::kDot},
    {10, "smmla_2x2x8", kSmmla, "aarch64", "i8mm", IntrinsicShape::kDot},
    {11, "ummla_2x2x8", kUmmla, "aarch64", "i8mm", IntrinsicShape::kDot},
    {12, "usmmla_2x2x8", kUsmmla, "aarch64", "i8mm", IntrinsicShape::kDot},
    {13, "bfmmla_2x2x4", kBfmmla, "aarch64", "bf16", IntrinsicShape::kDot},
    {20, "avxvnni_8x4", kVnni8, "x86_64", "avxvnni", IntrinsicShape::kDot},
    {14, "madd_u8i8_8x4", kMaddU8I8x8, "x86_64", "avx2", IntrinsicShape::kDot, 4},
    {15, "madd_i8_8x4", kMaddI8x8, "x86_64", "avx2", IntrinsicShape::kDot, 4},
    {16, "madd_u8_8x4", kMaddU8x8, "x86_64", "avx2", IntrinsicShape::kDot, 4},
    {17, "madd_u8i8_16x4", kMaddU8I8x16, "x86_64", "avx512bw", IntrinsicShape::kDot, 4},
    {18, "madd_i8_16x4", kMaddI8x16, "x86_64", "avx512bw", IntrinsicShape::kDot, 4},
    {19, "madd_u8_16x4", kMaddU8x16, "x86_64", "avx512bw", IntrinsicShape::kDot, 4},
    {32, "dp4a_i8", kDp4aI8, "nvptx64", "sm_61", IntrinsicShape::kScalar},
    {33, "dp4a_u8", kDp4aU8, "nvptx64", "sm_61", IntrinsicShape::kScalar},
    {34, "dp4a_u8i8", kDp4aU8I8, "nvptx64", "sm_61", IntrinsicShape::kScalar},
    {35, "dot4_i8", kDp4aI8, "opencl", "dot", IntrinsicShape::kScalar},
    {36, "dot4_u8", kDp4aU8, "opencl", "dot", IntrinsicShape::kScalar},
    {37, "dot4_u8i8", kDp4aU8I8, "opencl", "dot", IntrinsicShape::kScalar},
    {38, "arm_dot4_i8", kDp4aI8, "opencl", "arm_dot", IntrinsicShape::kScalar},
    {39, "arm_dot4_u8", kDp4aU8, "opencl", "arm_dot", IntrinsicShape::kScalar},
    {40, "arm_dot4_u8i8", kDp4aU8I8, "opencl", "arm_dot", IntrinsicShape::kScalar},
};

template <typename Matches>
const Intrinsic* Find(Matches&& matches) {
  const auto* found = absl::c_find_if(kIntrinsics, matches);
  return found == std::end(kIntrinsics) ? nullptr : found;
}

}  // namespace

absl::Span<const Intrinsic> Intrinsics() { return kIntrinsics; }

const Intrinsic* FindIntrinsic(absl::string_view name) {
  return Find([&](const Intrinsic& i) { return i.name == name; });
}

const Intrinsic* FindIntrinsic(int64_t id) {
  return Find([&](const Intrinsic& i) { return i.id == id; });
}

const Workload& DescriptionOf(const Intrinsic& intrinsic) {
  static const auto* const parsed = [] {
    auto* all = new std::vector<Workload>;
    for (const Intrinsic& each : kIntrinsics)
      all->push_back(ParseWorkload(each.description).value());
    return all;
  }();
  return (*parsed)[&intrinsic - kIntrinsics];
}

}  // namespace hone::ir
