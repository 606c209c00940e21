// A kernel's CPU guard asks for every feature that LLVM may use on the kernel's CPU.
#include "worker/compile/llvm/cpu_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/target/kernel_abi.h"
#include "common/target/x86_features.h"
#include "llvm/ExecutionEngine/ExecutionEngine.h"
#include "llvm/ExecutionEngine/MCJIT.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

using ::testing::HasSubstr;

constexpr char kTriple[] = "x86_64-pc-linux-gnu";

std::unique_ptr<llvm::MCSubtargetInfo> SubtargetOf(absl::string_view cpu) {
  llvm::InitializeAllTargetInfos();
  llvm::InitializeAllTargetMCs();
  std::string error;
  const llvm::Target* x86 = llvm::TargetRegistry::lookupTarget(kTriple, error);
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      x86->createMCSubtargetInfo(kTriple, std::string(cpu), ""));
}

// Returns the target that detection would report for this CPU: all features that the name implies,
// but no AMX tiles.
target::Target TargetOf(absl::string_view cpu) {
  target::Target target{.cpu = std::string(cpu)};
  const auto features = target::FeaturesOfX86Cpu(cpu);
  for (const absl::string_view feature : *features) target.features.emplace_back(feature);
  if (target.HasFeature("avx2")) target.vector_bits = 256;
  if (target.HasFeature("avx512f")) {
    target.vector_bits = 512;
    target.vector_registers = 32;
  }
  return target;
}

// The same target with the few features that a person might write.
target::Target TerseTargetOf(absl::string_view cpu) {
  target::Target target = TargetOf(cpu);
  std::erase_if(target.features,
                [](const std::string& f) { return f != "avx2" && f != "avx512f"; });
  return target;
}

// If the CPU has them, the f16 arithmetic uses vcvtph2psx and the reversed bytes use vpermb.
std::string Kernel(int lanes) {
  return WithVectors(
      "workload x\ninput A: f16[256]\ninput R: u8[256]\noutput B[i: 256] = A[i] * A[i] + A[i]\n"
      "output S[i: 256] = R[255 - i]\n",
      {"B", "S"}, lanes);
}

absl::StatusOr<std::unique_ptr<CompiledProgram>> Load(const target::Target& target) {
  const auto program = ReplayText(Kernel(std::min(64, target.vector_bits / 8)));
  if (!program.ok()) return program.status();
  return CompiledProgram::Load(*program, target);
}

int32_t CodeOf(CompiledProgram& kernel) {
  alignas(64) static unsigned char memory[4][2048];
  void* const buffers[] = {memory[0], memory[1], memory[2], memory[3]};
  return reinterpret_cast<target::RunFunction>(kernel.Symbol(target::kRunSymbol))(buffers, nullptr,
                                                                                  nullptr, nullptr);
}

TEST(CpuGuardTest, CpuTableMatchesLlvm) {
  for (const absl::string_view cpu : target::X86CpuNames()) {
    const auto subtarget = SubtargetOf(cpu);
    ASSERT_NE(subtarget, nullptr) << cpu;
    std::vector<absl::string_view> implied;
    for (const auto& feature : subtarget->getAllProcessorFeatures()) {
      const absl::string_view name = feature.Key;
      const bool on = subtarget->getFeatureBits().test(feature.Value);
      // Not every CPU of this name has AMX tiles, so targets list them explicitly.
      if (on && target::FindX86Feature(name) && !absl::StartsWith(name, "amx-")) {
        implied.push_back(name);
      }
    }
    std::ranges::sort(implied);
    EXPECT_EQ(*target::FeaturesOfX86Cpu(cpu), implied) << cpu;
  }
}

TEST(CpuGuardTest, EveryFeatureIsCheckedOrExempt) {
  std::vector<std::string> cpus;
  for (const absl::string_view cpu : target::X86CpuNames()) cpus.emplace_back(cpu);
  for (const auto& cpu : SubtargetOf("x86-64")->getAllProcessorDescriptions()) {
    cpus.emplace_back(cpu.Key);
  }
  llvm::LLVMContext context;
  int emitted = 0;
  for (const std::string& cpu : cpus) {
    const auto subtarget = SubtargetOf(cpu);
    if (!subtarget->checkFeatures("+sse2")) continue;  // a 32-bit CPU
    llvm::Module module("guard", context);
    const auto guard = EmitX86CpuGuard(module, *subtarget, target::Target{.cpu = cpu});
    EXPECT_THAT(guard, IsOk()) << cpu;
    ++emitted;
  }
  EXPECT_GT(emitted, 80);
}

TEST(CpuGuardTest, RejectsUncheckableFeatures) {
  target::Target target = TargetOf("x86-64-v3");
  target.features.insert(std::ranges::lower_bound(target.features, "egpr"), "egpr");
  const absl::Status status = Load(target).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'egpr'")));
  EXPECT_THAT(std::string(status.message()), HasSubstr("name a CPU without it"));
}

// This machine runs the kernels of some CPUs in the table and reports the others as unsupported.
// Without the guard, the test would die of an illegal instruction.
TEST(CpuGuardTest, KernelRunsOrReportsUnsupportedCpu) {
  const target::Target host = target::DetectHost();
  if (host.arch != "x86_64") GTEST_SKIP() << "the host is not x86-64";
  const auto runs = [&](absl::string_view cpu) {
    return target::UsableX86CpuName(cpu, target::HostHas) == cpu;
  };
  int ran = 0;
  for (const absl::string_view cpu : target::X86CpuNames()) {
    for (const target::Target& target : {TargetOf(cpu), TerseTargetOf(cpu)}) {
      const auto kernel = Load(target);
      ASSERT_THAT(kernel, IsOk()) << cpu;
      const int32_t expected = runs(cpu) ? target::kKernelOk : target::kKernelUnsupportedCpu;
      // The second call returns the cached answer.
      EXPECT_EQ(CodeOf(**kernel), expected) << target.ToText();
      EXPECT_EQ(CodeOf(**kernel), expected) << target.ToText();
      ran += expected == target::kKernelOk;
    }
  }
  EXPECT_GE(ran, 2);
  HONE_ASSERT_OK_AND_ASSIGN(const auto own, Load(host));
  EXPECT_EQ(CodeOf(*own), target::kKernelOk) << host.ToText();
}

// The guard asks for AMX tiles only if the target names them.
TEST(CpuGuardTest, ChecksAmxTilesIfTheTargetHasThem) {
  const auto code = [](const std::string& feature) {
    target::Target target = TargetOf("x86-64-v3");
    if (!feature.empty()) target.features.insert(target.features.begin(), feature);
    const auto kernel = Load(target);
    EXPECT_THAT(kernel, IsOk());
    return kernel.ok() ? CodeOf(**kernel) : -1;
  };
  const target::Target host = target::DetectHost();
  if (!host.HasFeature("avx2")) GTEST_SKIP() << "the host has no AVX2";
  EXPECT_EQ(code(""), target::kKernelOk);
  EXPECT_EQ(code("amx-int8"),
            host.HasFeature("amx-int8") ? target::kKernelOk : target::kKernelUnsupportedCpu);
}

#ifdef __x86_64__

// Answers this process's requests for the tile registers with an error number instead of asking
// Linux; 0: the request is granted. Any other use of arch_prctl ends the process.
void AnswerTileRequests(uint32_t error) {
  constexpr uint32_t kRequestPermission = 0x1023, kTileData = 18;
  const auto load = [](size_t offset) {
    return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<uint32_t>(offset)};
  };
  const auto equals = [](uint32_t value, uint8_t then, uint8_t otherwise) {
    return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, then, otherwise, value};
  };
  const auto answer = [](uint32_t value) { return sock_filter{BPF_RET | BPF_K, 0, 0, value}; };
  sock_filter code[] = {
      load(offsetof(seccomp_data, nr)), equals(SYS_arch_prctl, 1, 0),
      answer(SECCOMP_RET_ALLOW),        load(offsetof(seccomp_data, args[0])),
      equals(kRequestPermission, 0, 3), load(offsetof(seccomp_data, args[1])),
      equals(kTileData, 0, 1),          answer(SECCOMP_RET_ERRNO | error),
      answer(SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program = {std::size(code), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(3);
}

// Whether Linux gives a process the tile registers decides what the guard of code with tiles says.
// The answer is kept, so a process asks once.
TEST(CpuGuardTest, AsksLinuxForTileRegistersOnce) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::LLVMContext context;
  auto module = std::make_unique<llvm::Module>("guard", context);
  module->setTargetTriple(kTriple);
  llvm::Intrinsic::getDeclaration(module.get(), llvm::Intrinsic::x86_tileloadd64_internal);
  // The CPU itself needs no feature here.
  const target::Target target{.cpu = "x86-64"};
  HONE_ASSERT_OK_AND_ASSIGN(llvm::Function* const emitted,
                            EmitX86CpuGuard(*module, *SubtargetOf("x86-64"), target));
  emitted->setLinkage(llvm::GlobalValue::ExternalLinkage);
  const std::unique_ptr<llvm::ExecutionEngine> engine(
      llvm::EngineBuilder(std::move(module)).setEngineKind(llvm::EngineKind::JIT).create());
  ASSERT_NE(engine, nullptr);
  using Function = bool();
  auto* const guard =
      reinterpret_cast<Function*>(engine->getFunctionAddress(emitted->getName().str()));
  ASSERT_NE(guard, nullptr);
  // Returns the answers before and after a second decision of Linux, as bits.
  const auto answers = [&](uint32_t error, uint32_t then) {
    const pid_t child = fork();
    if (child == 0) {
      AnswerTileRequests(error);
      const int first = guard() ? 1 : 0;
      // Of two filters, the error of the later one is returned.
      AnswerTileRequests(then);
      _exit(first | (guard() ? 2 : 0));
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(answers(0, EPERM), 3);
  EXPECT_EQ(answers(EPERM, EPERM), 0);
  EXPECT_EQ(answers(EOPNOTSUPP, 0), 0) << "a CPU without AMX";
}

#endif  // __x86_64__

absl::StatusOr<HwCaps> CapsOf(const char* cpu) {
  constexpr char kArm[] = "aarch64-unknown-linux-gnu";
  llvm::InitializeAllTargetInfos();
  llvm::InitializeAllTargetMCs();
  std::string error;
  const llvm::Target* const arm = llvm::TargetRegistry::lookupTarget(kArm, error);
  const std::unique_ptr<llvm::MCSubtargetInfo> subtarget(arm->createMCSubtargetInfo(kArm, cpu, ""));
  return HwCapsOf(*subtarget, target::Target{.arch = "aarch64", .cpu = cpu});
}

TEST(AArch64CpuGuardTest, AsksForEveryFeatureOfTheCpu) {
  constexpr uint64_t kFpAsimd = 3, kDotprod = 1 << 20, kHalf = 3 << 9, kSve = 1 << 22;
  EXPECT_EQ(*CapsOf("generic"), (HwCaps{kFpAsimd, 0}));
  EXPECT_EQ(*CapsOf("cortex-a72"), (HwCaps{kFpAsimd | 1 << 7, 0}));
  EXPECT_EQ(CapsOf("cortex-a76")->hwcap & (kDotprod | kHalf | kSve), kDotprod | kHalf);
  EXPECT_EQ(CapsOf("neoverse-v1")->hwcap & kSve, kSve);
  EXPECT_EQ(CapsOf("neoverse-v1")->hwcap2 & 2, 0u) << "no SVE2";
  EXPECT_EQ(CapsOf("neoverse-v2")->hwcap2 & 2, 2u);
}

TEST(AArch64CpuGuardTest, KnowsTheFeaturesOfCommonCpus) {
  for (const char* const cpu :
       {"a64fx", "ampere1", "apple-m1", "carmel", "cortex-a35", "cortex-a53", "cortex-a55",
        "cortex-a57", "cortex-a73", "cortex-a75", "cortex-a77", "cortex-a78", "cortex-x1",
        "neoverse-e1", "neoverse-n1", "neoverse-n2"}) {
    EXPECT_THAT(CapsOf(cpu), IsOk());
  }
}

}  // namespace
}  // namespace hone::codegen
