// The effect of primitives on machine code: threads and their schedule, instructions, vector
// accumulators, aligned strides. Each trace is compiled, run and compared with the interpreter, and
// its assembly is checked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/rng.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "worker/compile/llvm/compile.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

ir::Program ProgramOf(const std::string& text) {
  const auto file = schedule::ParseTraceFile(text);
  EXPECT_THAT(file, IsOk());
  auto program = schedule::Replay(std::make_shared<const ir::Workload>(file->workload),
                                  file->parsed.trace, file->parsed.decisions);
  EXPECT_THAT(program, IsOk());
  return *std::move(program);
}

target::Target Host(int cores = 2) {
  target::Target target = target::DetectHost();
  target.cores = cores;
  return target;
}

// Whole numbers that the inputs' types can represent. The sums in these tests are exact.
std::vector<ir::Values> Inputs(const ir::Workload& workload) {
  Rng rng(7, 1);
  std::vector<ir::Values> inputs;
  for (ir::BufferId id : workload.Inputs()) {
    ir::Values& values = inputs.emplace_back(ir::ElementsOf(workload.tensors[id].shape));
    const ir::DType dtype = workload.tensors[id].dtype;
    for (double& value : values) {
      const auto drawn = static_cast<double>(rng.Below(256));
      value = dtype == ir::DType::kU8   ? drawn
              : dtype == ir::DType::kI8 ? drawn - 128
                                        : static_cast<double>(rng.Below(9)) - 4;
    }
  }
  return inputs;
}

void ExpectRight(const std::string& text, const target::Target& target) {
  const ir::Program program = ProgramOf(text);
  const std::vector<ir::Values> inputs = Inputs(program.workload());
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Interpret(program.workload(), inputs));
  HONE_ASSERT_OK_AND_ASSIGN(const auto interpreted, ir::Interpret(program, inputs));
  EXPECT_EQ(interpreted, expected) << program.ToText();
  HONE_ASSERT_OK_AND_ASSIGN(const auto compiled, CompiledProgram::Load(program, target));
  for (int run = 0; run < 3; ++run) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto actual, compiled->Run(inputs));
    EXPECT_EQ(actual, expected) << program.ToText();
  }
}

std::string IrOf(const std::string& text, const target::Target& target) {
  const auto lowered = lower::Lower(ProgramOf(text), target);
  EXPECT_THAT(lowered, IsOk());
  const auto object = Compile(*lowered, target, {.keep_ir = true});
  EXPECT_THAT(object, IsOk());
  return object.ok() ? object->ir : "";
}

std::string AssemblyOf(const std::string& text, const target::Target& target) {
  const auto lowered = lower::Lower(ProgramOf(text), target);
  EXPECT_THAT(lowered, IsOk());
  const auto object = Compile(*lowered, target, {.keep_assembly = true});
  EXPECT_THAT(object, IsOk());
  return object.ok() ? object->assembly : "";
}

int64_t WorkspaceOf(const std::string& text, const target::Target& target) {
  const auto lowered = lower::Lower(ProgramOf(text), target);
  return lowered->WorkspaceBytes(lowered->threads);
}

constexpr char kDense[] =
    "workload w\ninput A: f32[40, 24]\ninput B: f32[24, 48]\nC[i: 40, j: 48] = sum(k: 24) A[i, k] "
    "* B[k, j]\n"
    "output D[i: 40, j: 48] = max(C[i, j], 0.0)\ntrace 1\nb0 = block(\"C\")\nl0, l1, l2 = "
    "loops(b0)\nparallel(l0)\n";

TEST(ThreadsTest, OneThreadDoesNotFork) {
  const std::string text = absl::StrCat(kDense, "thread_count(l0, 1)\n");
  EXPECT_THAT(IrOf(kDense, Host()), HasSubstr("call void %"));
  EXPECT_THAT(IrOf(text, Host()), Not(HasSubstr("call void %")));
  ExpectRight(text, Host());
}

TEST(ThreadsTest, EveryCountAndScheduleIsRight) {
  for (const int threads : {2, 3, 7, 64}) {
    for (const int chunk : {0, 1, 3, 1000}) {
      const std::string text = absl::StrCat(kDense, "thread_count(l0, ", threads,
                                            ")\nannotate(l0, \"omp_schedule\", ", chunk, ")\n");
      ExpectRight(text, Host(1));
      // The call of the runtime.
      EXPECT_THAT(IrOf(text, Host(1)),
                  ContainsRegex(absl::StrCat("call void %.*, i64 40, i64 ", chunk, ", i32 ")))
          << text;
    }
  }
}

// Each thread needs its own copy of memory that is private to an iteration.
TEST(ThreadsTest, PrivateMemoryFollowsTheCount) {
  const std::string text =
      "workload w\ninput X: f32[24, 16384]\nP[i: 24, j: 16384] = X[i, j] * 2.0\noutput S[i: 24] = "
      "sum(j: 16384) P[i, j]\ntrace 1\n"
      "b0 = block(\"S\")\nl0, l1 = loops(b0)\nb1 = block(\"P\")\ncompute_at(b1, "
      "l0)\nparallel(l0)\n";
  const int64_t two = WorkspaceOf(text, Host(2)),
                eight = WorkspaceOf(absl::StrCat(text, "thread_count(l0, 8)\n"), Host(2));
  EXPECT_GE(two, 2 * 16384 * 4);
  EXPECT_EQ(eight, 4 * two);
  ExpectRight(absl::StrCat(text, "thread_count(l0, 8)\nannotate(l0, \"omp_schedule\", 1)\n"),
              Host(2));
}

TEST(RfactorTest, RowSumsAccumulateInVectors) {
  const std::string text =
      "workload w\ninput X: f32[24, 1030]\noutput S[i: 24] = sum(k: 1030) X[i, k]\ntrace 1\n"
      "b0 = block(\"S\")\nl0, l1 = loops(b0)\nl2, l3 = split(l1, 0, 64)\nb1 = rfactor(b0, l3)\nl4, "
      "l5 = split(l3, 4, 16)\n"
      "unroll(l4)\nvectorize(l5)\nparallel(l0)\n";
  ExpectRight(text, Host());
  const auto target = target::TargetByName("x86-avx512");
  const std::string assembly = AssemblyOf(text, *target);
  // Four vector registers hold the sums, and their operand is read from memory.
  EXPECT_THAT(assembly, HasSubstr("vaddps"));
  EXPECT_THAT(assembly, ::testing::ContainsRegex("vaddps\t[^\n]*\\(%r[^\n]*%zmm[0-9]+"));
}

TEST(RfactorTest, TuplesAndSplitK) {
  ExpectRight(
      "workload w\ninput X: f32[6, 100]\n(V, I)[i: 6] = argmax(k: 100) (X[i, k], index(k))\noutput "
      "D[i: 6] = V[i] * 100.0 + f32(I[i])\ntrace 1\n"
      "b0 = block(\"V\")\nl0, l1 = loops(b0)\nl2, l3 = split(l1, 0, 16)\nb1 = rfactor(b0, "
      "l3)\nvectorize(l3)\n",
      Host());
  ExpectRight(
      "workload w\ninput A: f32[12, 64]\ninput B: f32[64, 32]\noutput C[i: 12, j: 32] = sum(k: 64) "
      "A[i, k] * B[k, j]\ntrace 1\n"
      "b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\nl3, l4 = split(l2, 4, 16)\nreorder(l3, l0, l1, "
      "l4)\nb1 = rfactor(b0, l3, 0)\nparallel(l3)\n"
      "l5, l6 = split(l1, 0, 16)\nreorder(l4, l6)\nvectorize(l6)\n",
      Host());
}

// If a loop carries spatial and reduction iterations, an element can begin in the middle of it.
TEST(AccumulatorTest, ElementsBeginWhereTheirBindingsSay) {
  constexpr char kText[] =
      "workload w\ninput X: f32[7, 6, 3]\noutput Y[i: 7] = min(j: 6, k: 3) X[i, j, k]\ntrace 1\nb0 "
      "= block(\"Y\")\nl0, l1, l2 = loops(b0)\n";
  ExpectRight(absl::StrCat(kText, "l3 = fuse(l0, l1)\n"), Host());
  ExpectRight(absl::StrCat(kText, "l3 = reorder_space(l0, l1, \"grouped\", 4)\n"), Host());
  // The last tile has no element; its offset is past the end of the output.
  ExpectRight(absl::StrCat(kText,
                           "l3 = fuse(l0, l1)\nreorder(l2, l3)\nl4, l5 = split(l3, 0, 15)\n"
                           "l6, l7 = split(l5, 0, 2)\n"),
              Host());
}

TEST(StorageAlignTest, StridesArePaddedAndRight) {
  const std::string text = absl::StrCat(kDense, "storage_align(b0, 0, 16, 1)\n");
  ExpectRight(text, Host());
  // A row of 48 numbers is padded to 49.
  EXPECT_EQ(WorkspaceOf(text, Host()), (40 * 49 * 4 + 63) / 64 * 64);
}

std::string Quantized(absl::string_view intrinsic, int lanes, int rows = 4,
                      absl::string_view left = "u8", absl::string_view right = "i8") {
  return absl::StrCat(
      "workload w\ninput A: ", left, "[10, 70]\ninput B: ", right,
      "[70, 44] constant\nC[i: 10, j: 44] = sum(k: 70) "
      "i32(A[i, k]) * i32(B[k, j])\n"
      "output D[i: 10, j: 44] = C[i, j] + 1\ntrace 1\nb0 = block(\"C\")\nb1, b2, b3 = "
      "pad_einsum(b0, ",
      rows, ", ", lanes,
      ", 4)\n"
      "transform_layout(b2, \"k, j -> j / ",
      lanes, ", k / 4, j % ", lanes,
      ", k % 4\")\n"
      "l0, l1, l2 = loops(b0)\nl3, l4 = split(l0, 0, 4)\nl5, l6 = split(l1, 0, ",
      lanes,
      ")\nl7, l8 = split(l2, 0, 4)\n"
      "reorder(l3, l5, l7, l4, l6, l8)\ntensorize(l6, \"",
      intrinsic, "\")\nunroll(l4)\nl9 = fuse(l3, l5)\nparallel(l9)\n");
}

TEST(TensorizeTest, VnniComputesQuantizedMatmul) {
  const target::Target host = Host();
  if (!host.HasFeature("avx512vnni")) GTEST_SKIP() << "this CPU has no avx512vnni";
  ExpectRight(Quantized("vnni_16x4", 16), host);
  ExpectRight(Quantized("vnni_8x4", 8), host);
  // A single instruction computes the whole sum.
  ExpectRight(
      "workload w\ninput A: u8[3, 4]\ninput B: i8[16, 4]\noutput C[i: 3, j: 16] = sum(k: 4) "
      "i32(A[i, k]) * i32(B[j, k])\ntrace 1\nb0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n"
      "tensorize(l1, \"vnni_16x4\")\n",
      host);
  // The rows are not padded, so the last tile has fewer.
  ExpectRight(Quantized("vnni_16x4", 16, 1), host);
  // With four rows per tile, the accumulators are in registers and the packed operand is loaded
  // once.
  const std::string assembly = AssemblyOf(Quantized("vnni_16x4", 16), host);
  size_t count = 0;
  for (size_t at = assembly.find("vpdpbusd"); at != std::string::npos;
       at = assembly.find("vpdpbusd", at + 1))
    ++count;
  EXPECT_EQ(count, 4u);
}

// Products of bytes are exact, unlike those of VPMADDUBSW, which saturates.
TEST(TensorizeTest, MaddComputesQuantizedMatmul) {
  const target::Target host = Host();
  if (!host.HasFeature("avx2")) GTEST_SKIP() << "this CPU has no avx2";
  for (const int lanes : {8, 16}) {
    if (lanes == 16 && !host.HasFeature("avx512bw")) continue;
    const std::string end = absl::StrCat("_", lanes, "x4");
    for (const int rows : {1, 4}) {
      ExpectRight(Quantized("madd_u8i8" + end, lanes, rows), host);
      ExpectRight(Quantized("madd_i8" + end, lanes, rows, "i8", "i8"), host);
      ExpectRight(Quantized("madd_u8" + end, lanes, rows, "u8", "u8"), host);
    }
  }
  // Each of the four rows of a tile multiplies the bytes at even and at odd places. (With AVX-512
  // VNNI, LLVM joins some of these products and their sums to one instruction.)
  const auto target = target::TargetByName("x86-avx2");
  ASSERT_THAT(target, IsOk());
  const std::string assembly = AssemblyOf(Quantized("madd_u8i8_8x4", 8), *target);
  size_t count = 0;
  for (size_t at = assembly.find("vpmaddwd"); at != std::string::npos;
       at = assembly.find("vpmaddwd", at + 1))
    ++count;
  EXPECT_EQ(count, 8u);
}

// Taps outside of the image are left out, so the first and the last tile of a row have fewer.
TEST(TensorizeTest, VnniComputesQuantizedConvolution) {
  const target::Target host = Host();
  if (!host.HasFeature("avx512vnni")) GTEST_SKIP() << "this CPU has no avx512vnni";
  for (const int stride : {1, 2}) {
    for (const int unrolled : {1, 3}) {
      const std::string h = absl::StrCat(stride, "*h + r - 1"),
                        w = absl::StrCat(stride, "*w + s - 1");
      ExpectRight(
          absl::StrCat("workload w\ninput X: u8[1, 12, 14, 8]\ninput W: i8[3, 3, 8, 32] constant\n"
                       "output Y[n: 1, h: ",
                       12 / stride, ", w: ", 14 / stride,
                       ", c: 32] = sum(r: 3, s: 3, k: 8 where 0 <= ", h, " < 12, 0 <= ", w,
                       " < 14) i32(X[n, ", h, ", ", w,
                       ", k]) * i32(W[r, s, k, c])\ntrace 1\nb0 = block(\"Y\")\n"
                       "l0, l1, l2, l3, l4, l5, l6 = loops(b0)\nl7, l8 = split(l3, 0, 16)\n"
                       "l9, l10 = split(l6, 0, 4)\nl11, l12 = split(l2, 0, 7)\n"
                       "l13, l14 = split(l5, 0, ",
                       unrolled,
                       ")\nreorder(l11, l4, l13, l9, l14, l12, l7, l8, l10)\nunroll(l14)\n"
                       "unroll(l12)\nunroll(l7)\nb1 = cache_read(b0, \"W\", \"global\")\n"
                       "transform_layout(b1, \"r, s, k, c -> r, s, k / 4, c, k % 4\")\n"
                       "tensorize(l8, \"vnni_16x4\")\nparallel(l1)\n"),
          host);
    }
  }
}

TEST(TensorizeTest, ATargetWithoutTheInstructionRefuses) {
  const auto target = target::TargetByName("x86-avx2");
  HONE_ASSERT_OK_AND_ASSIGN(const auto lowered,
                            lower::Lower(ProgramOf(Quantized("vnni_16x4", 16)), *target));
  EXPECT_THAT(Compile(lowered, *target, {}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("vnni_16x4 needs x86_64 with avx512vnni")));
}

// This machine may lack these instructions, so the test reads the assembly for a target that has
// them.
TEST(TensorizeTest, EveryInstructionOfTheTableIsEmitted) {
  target::Target rapids = *target::TargetByName("x86-avx512");
  rapids.cpu = "sapphirerapids";
  rapids.features = {"amx-bf16",   "amx-int8", "avx",      "avx2",    "avx512bf16",
                     "avx512bw",   "avx512cd", "avx512dq", "avx512f", "avx512vl",
                     "avx512vnni", "f16c",     "fma"};
  target::Target arm;
  arm.arch = "aarch64";
  arm.triple = "aarch64-linux-gnu";
  arm.cpu = "neoverse-v1";
  arm.features = {"bf16", "dotprod", "i8mm", "neon"};
  const std::string bf16 =
      "workload w\ninput A: bf16[8, 32]\ninput B: bf16[32, 16] constant\noutput C[i: 8, j: 16] = "
      "sum(k: 32) f32(A[i, k]) * f32(B[k, j])\ntrace 1\n"
      "b0 = block(\"C\")\nb1 = cache_read(b0, \"B\", \"global\")\ntransform_layout(b1, \"k, j -> k "
      "/ 2, j, k % 2\")\n"
      "l0, l1, l2 = loops(b0)\nl3, l4 = split(l2, 0, 2)\nreorder(l3, l1, l4)\ntensorize(l1, "
      "\"bf16dot_16x2\")\n";
  EXPECT_THAT(AssemblyOf(bf16, rapids), HasSubstr("vdpbf16ps"));
  EXPECT_THAT(AssemblyOf(Quantized("madd_u8i8_16x4", 16), rapids),
              AllOf(HasSubstr("vpmaddwd\t%zmm"), Not(HasSubstr("vpdpbusd"))));
  target::Target alder = *target::TargetByName("x86-avx2");
  alder.cpu = "alderlake";
  alder.features = {"avx", "avx2", "avxvnni", "f16c", "fma"};
  EXPECT_THAT(AssemblyOf(Quantized("avxvnni_8x4", 8), alder),
              AllOf(HasSubstr("vpdpbusd"), Not(HasSubstr("zmm"))));
  const auto amx = [](const char* a, const char* b, const char* c, int steps, const char* name) {
    const int group = steps / 16;
    return absl::StrCat(
        "workload w\ninput A: ", a, "[32, 128]\ninput B: ", b,
        "[128, 32] constant\noutput C[i: 32, j: 32] = sum(k: 128) ", c, "(A[i, k]) * ", c,
        "(B[k, j])\ntrace 1\nb0 = block(\"C\")\nb1 = cache_read(b0, \"B\", \"global\")\n",
        "transform_layout(b1, \"k, j -> k / ", group, ", j / 16, j % 16, k % ", group,
        "\")\nl0, l1, l2 = loops(b0)\n",
        "l3, l4 = split(l0, 0, 16)\nl5, l6 = split(l1, 0, 16)\nl7, l8 = split(l2, 0, ", steps,
        ")\n",
        "reorder(l3, l5, l7, l4, l6, l8)\nb2 = decompose_reduction(b0, l7)\ntensorize(l4, \"", name,
        "\")\n");
  };
  // The guard asks Linux for the tile registers, if the code uses them.
  EXPECT_THAT(AssemblyOf(bf16, rapids), Not(HasSubstr("syscall")));
  EXPECT_THAT(AssemblyOf(amx("u8", "i8", "i32", 64, "amx_u8i8_16x16x64"), rapids),
              AllOf(HasSubstr("tdpbusd"), HasSubstr("syscall")));
  EXPECT_THAT(AssemblyOf(amx("bf16", "bf16", "f32", 32, "amx_bf16_16x16x32"), rapids),
              HasSubstr("tdpbf16ps"));
  const auto dot = [](const char* dtype, const char* name, const char* other = nullptr) {
    return absl::StrCat("workload w\ninput A: ", dtype,
                        "[8, 32]\ninput B: ", other == nullptr ? dtype : other,
                        "[32, 8] constant\n",
                        "output C[i: 8, j: 8] = sum(k: 32) i32(A[i, k]) * i32(B[k, j])\ntrace "
                        "1\nb0 = block(\"C\")\n",
                        "b1 = cache_read(b0, \"B\", \"global\")\ntransform_layout(b1, \"k, j -> j "
                        "/ 4, k / 4, j % 4, k % 4\")\n",
                        "l0, l1, l2 = loops(b0)\nl3, l4 = split(l1, 0, 4)\nl5, l6 = split(l2, 0, "
                        "4)\nreorder(l5, l4, l6)\ntensorize(l4, \"",
                        name, "\")\n");
  };
  EXPECT_THAT(AssemblyOf(dot("i8", "sdot_4x4"), arm), HasSubstr("sdot"));
  EXPECT_THAT(AssemblyOf(dot("u8", "udot_4x4"), arm), HasSubstr("udot"));
  EXPECT_THAT(AssemblyOf(dot("u8", "usdot_4x4", "i8"), arm), HasSubstr("usdot"));
  const std::string bfdot = absl::StrReplaceAll(
      bf16, {{"bf16dot_16x2", "bfdot_4x2"},
             {"l3, l4 = split(l2, 0, 2)\nreorder(l3, l1, l4)\ntensorize(l1,",
              "l5, l6 = split(l1, 0, 4)\nl3, l4 = split(l2, 0, 2)\nreorder(l5, l3, l6, l4)\n"
              "tensorize(l6,"}});
  EXPECT_THAT(AssemblyOf(bfdot, arm), HasSubstr("bfdot"));
  const auto block = [](const char* left, const char* right, const char* sum, int group,
                        const char* name) {
    return absl::StrCat("workload w\ninput A: ", left, "[4, 3, 2, ", group, "]\ninput B: ", right,
                        "[5, 3, 2, ", group,
                        "]\noutput C[i: 4, j: 5, u: 2, v: 2] = sum(k: 3, t: ", group, ") ", sum,
                        "(A[i, k, u, t]) * ", sum,
                        "(B[j, k, v, t])\ntrace 1\nb0 = block(\"C\")\n"
                        "l0, l1, l2, l3, l4, l5 = loops(b0)\nreorder(l4, l2, l3, l5)\n"
                        "tensorize(l2, \"",
                        name, "\")\n");
  };
  EXPECT_THAT(AssemblyOf(block("i8", "i8", "i32", 8, "smmla_2x2x8"), arm), HasSubstr("\tsmmla\t"));
  EXPECT_THAT(AssemblyOf(block("u8", "u8", "i32", 8, "ummla_2x2x8"), arm), HasSubstr("\tummla\t"));
  EXPECT_THAT(AssemblyOf(block("u8", "i8", "i32", 8, "usmmla_2x2x8"), arm),
              HasSubstr("\tusmmla\t"));
  EXPECT_THAT(AssemblyOf(block("bf16", "bf16", "f32", 4, "bfmmla_2x2x4"), arm),
              HasSubstr("\tbfmmla\t"));
}

constexpr char kStream[] =
    "workload w\ninput A: f32[8, 256]\noutput B[i: 8, j: 256] = A[i, j] * 2.0\ntrace 1\nb0 = "
    "block(\"B\")\nl0, l1 = loops(b0)\n"
    "l2, l3 = split(l1, 0, 16)\nvectorize(l3)\n";

TEST(HintTest, StoresPassTheCachesAndAreFenced) {
  const std::string text =
      absl::StrCat(kStream, "annotate(b0, \"nontemporal\", 1)\nparallel(l0)\n");
  const auto target = target::TargetByName("x86-avx512");
  EXPECT_THAT(AssemblyOf(kStream, *target), Not(HasSubstr("vmovntps")));
  EXPECT_THAT(AssemblyOf(text, *target), HasSubstr("vmovntps"));
  EXPECT_THAT(AssemblyOf(text, *target), HasSubstr("sfence"));
  ExpectRight(text, Host());
  // Rows of 250 numbers are not aligned, so the stores are ordinary ones.
  const std::string unaligned =
      "workload w\ninput A: f32[8, 250]\noutput B[i: 8, j: 250] = A[i, j] * 2.0\ntrace 1\nb0 = "
      "block(\"B\")\nl0, l1 = loops(b0)\n"
      "l2, l3 = split(l1, 0, 16)\nvectorize(l3)\nannotate(b0, \"nontemporal\", 1)\n";
  EXPECT_THAT(AssemblyOf(unaligned, *target), Not(HasSubstr("vmovntps")));
  ExpectRight(unaligned, Host());
}

// A runtime may start its threads with an ordinary store, which does not wait for non-temporal
// ones.
TEST(HintTest, StoresAreFencedBeforeThreadsReadThem) {
  const std::string text =
      "workload w\ninput A: f32[8, 256]\noutput B[i: 8, j: 256] = A[i, j] * 2.0\n"
      "output C[i: 8, j: 256] = B[i, j] + 1.0\ntrace 1\n"
      "b0 = block(\"B\")\nl0, l1 = loops(b0)\nl2, l3 = split(l1, 0, 16)\nvectorize(l3)\n"
      "annotate(b0, \"nontemporal\", 1)\nb1 = block(\"C\")\nl4, l5 = loops(b1)\nparallel(l4)\n";
  const std::string assembly = AssemblyOf(text, *target::TargetByName("x86-avx512"));
  const std::string main = assembly.substr(assembly.find("hone_main:"));
  EXPECT_LT(main.find("sfence"), main.find("\tcall")) << main;
  ExpectRight(text, Host());
}

TEST(HintTest, StreamsArePrefetchedAhead) {
  const std::string text = absl::StrCat(kStream, "annotate(l2, \"prefetch\", 8)\n");
  const auto target = target::TargetByName("x86-avx512");
  EXPECT_THAT(AssemblyOf(kStream, *target), Not(HasSubstr("prefetcht0")));
  // The prefetch is eight 64-byte vectors ahead.
  EXPECT_THAT(AssemblyOf(text, *target), ::testing::ContainsRegex("prefetcht0\t512\\("));
  ExpectRight(text, Host());
}

TEST(GpuTest, BoundLoopsHaveNoCpuCode) {
  const std::string text =
      "workload w\ninput A: f32[8]\noutput B[i: 8] = A[i] + 1.0\ntrace 1\nb0 = block(\"B\")\nl0 = "
      "loops(b0)\nbind(l0, \"threadIdx.x\")\n";
  HONE_ASSERT_OK_AND_ASSIGN(const auto lowered, lower::Lower(ProgramOf(text), Host()));
  EXPECT_THAT(Compile(lowered, Host(), {}), StatusIs(absl::StatusCode::kUnimplemented));
}

}  // namespace
}  // namespace hone::codegen
