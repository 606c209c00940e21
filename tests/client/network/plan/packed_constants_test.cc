// Kernels of all operators with constants, called as the header of an export says: with null in the
// place of everything that a call does not read.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/network/export/kernel_header.h"
#include "client/network/graph/node_view.h"
#include "common/base/status_macros.h"
#include "common/ir/interpreter.h"
#include "common/ir/region.h"
#include "common/ir/workload_parser.h"
#include "common/operator/operator.h"
#include "common/target/kernel_abi.h"
#include "common/target/kernel_memory.h"
#include "common/target/loaded_kernel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/operator/examples.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"
#include "worker/builder/link.h"
#include "worker/compile/backend.h"
#include "worker/compile/lower/lower.h"

namespace hone::network {
namespace {

// A layer norm before a product: a schedule packs W alone, or Gamma and Beta, too.
constexpr char kNormAndProduct[] = R"(workload lnmg
input X: f32[6, 16]
input Gamma: f32[16] constant
input Beta: f32[16] constant
input W: f32[16, 24] constant
Sum[i: 6] = sum(k: 16) X[i, k]
Sq[i: 6] = sum(k: 16) (X[i, k] - Sum[i] / 16) * (X[i, k] - Sum[i] / 16)
Y[i: 6, j: 16] = (X[i, j] - Sum[i] / 16) * rsqrt(Sq[i] / 16 + 1e-5) * Gamma[j] + Beta[j]
output Z[i: 6, n: 24] = sum(k: 16) Y[i, k] * W[k, n]
)";

graph::TensorType TypeOf(const ir::Tensor& tensor) {
  return {tensor.dtype, {tensor.shape.begin(), tensor.shape.end()}};
}

// The trace that packs a constant for the first stage that reads it.
std::string PackingTrace(const ir::Workload& workload, ir::BufferId constant) {
  for (const ir::Stage& stage : workload.stages) {
    bool reads = false;
    for (const ir::ExprId value : stage.values) {
      workload.pool.VisitLoads(
          value, [&](const ir::Expr& load) { reads = reads || load.buffer == constant; });
    }
    if (!reads) continue;
    return absl::StrCat(workload.ToText(), "trace 1\nb0 = block(\"",
                        workload.tensors[stage.tensors[0]].name, "\")\nb1 = cache_read(b0, \"",
                        workload.tensors[constant].name, "\", \"global\")\n");
  }
  return workload.ToText() + "trace 1\n";
}

absl::StatusOr<std::string> Link(const ir::Program& program, const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(program, target));
  HONE_ASSIGN_OR_RETURN(const codegen::Code code, codegen::Generate(lowered, target));
  return builder::LinkSharedObject(code.bytes, {});
}

struct Call {
  std::vector<target::KernelMemory> memory;
  std::vector<void*> buffers;
};

// Returns the number of pointers that were null in the call of run.
int CallWithNull(const ir::Workload& workload, const ir::Program& program) {
  const target::Target target = codegen::Preset("x86-avx2");
  const auto shared = Link(program, target);
  EXPECT_THAT(shared, IsOk());
  if (!shared.ok()) return 0;
  const auto kernel = target::LoadedKernel::LoadSharedObject(*shared);
  EXPECT_THAT(kernel, IsOk());
  if (!kernel.ok()) return 0;
  const target::KernelLibrary& library = (*kernel)->library();
  const std::vector<bool> reads = ir::InputsThatRunReads(program);

  std::vector<ir::Scalars> inputs;
  Call call;
  const std::vector<ir::BufferId> in = workload.Inputs(), out = workload.Outputs();
  for (const auto* ids : {&in, &out}) {
    for (const ir::BufferId id : *ids) {
      const ir::Tensor& tensor = workload.tensors[id];
      call.memory.push_back(target::AllocateKernelMemory(tensor.bytes()));
      call.buffers.push_back(call.memory.back().get());
      if (ids == &out) continue;
      ir::Scalars& elements = inputs.emplace_back();
      for (int64_t i = 0; i < ir::ElementsOf(tensor.shape); ++i) {
        elements.push_back(ir::CastTo(tensor.dtype, ir::Scalar((i * 7 + 3 * id) % 5 + 1)));
      }
      const std::string bytes = graph::Encode(TypeOf(tensor), elements);
      std::copy(bytes.begin(), bytes.end(), static_cast<char*>(call.buffers.back()));
    }
  }
  const auto expected = ir::Interpret(workload, inputs);
  EXPECT_THAT(expected, IsOk());
  if (!expected.ok()) return 0;

  // Prepack gets the constants alone.
  const target::KernelMemory packed = target::AllocateKernelMemory(library.packed_bytes());
  if (library.packed_bytes() > 0) {
    std::vector<void*> constants(call.buffers.size());
    for (size_t i = 0; i < in.size(); ++i) {
      if (workload.tensors[in[i]].constant) constants[i] = call.buffers[i];
    }
    EXPECT_EQ(library.Prepack(constants.data(), packed.get()), target::kKernelOk);
    const std::vector<void*> none(call.buffers.size());
    EXPECT_EQ(library.Prepack(none.data(), packed.get()), target::kKernelMisalignedBuffer);
  }
  int freed = 0;
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    const bool used = library.Uses(static_cast<int32_t>(i));
    EXPECT_EQ(used, i >= in.size() || reads[i]) << "buffer " << i;
    if (used) continue;
    call.memory[i].reset();
    call.buffers[i] = nullptr;
    ++freed;
  }
  const target::KernelMemory workspace = target::AllocateKernelMemory(library.WorkspaceBytes(1));
  EXPECT_EQ(library.Run(call.buffers.data(), packed.get(), workspace.get(), nullptr),
            target::kKernelOk);
  for (size_t o = 0; o < out.size(); ++o) {
    const ir::Tensor& tensor = workload.tensors[out[o]];
    const ir::Scalars got =
        graph::Decode(TypeOf(tensor), {static_cast<const char*>(call.buffers[in.size() + o]),
                                       static_cast<size_t>(tensor.bytes())});
    const double tolerance = ir::DTypeBytes(tensor.dtype) < 4 ? 0.02 : 1e-4;
    for (size_t i = 0; i < got.size(); ++i) {
      const double wanted = (*expected)[o][i].real();
      EXPECT_NEAR(got[i].real(), wanted, tolerance * (1 + std::abs(wanted)))
          << workload.name << " element " << i;
      if (testing::Test::HasFailure()) return freed;
    }
  }
  // What is used may not be null.
  std::vector<void*> buffers = call.buffers;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i] == nullptr) continue;
    void* const kept = std::exchange(buffers[i], nullptr);
    EXPECT_EQ(library.Run(buffers.data(), packed.get(), workspace.get(), nullptr),
              target::kKernelMisalignedBuffer);
    buffers[i] = kept;
  }
  return freed;
}

// Packs each constant of a workload. Returns how many of them were freed.
int PackAndFree(const ir::Workload& workload) {
  int freed = 0;
  for (const ir::BufferId id : workload.Inputs()) {
    if (!workload.tensors[id].constant) continue;
    SCOPED_TRACE(absl::StrCat(workload.name, ", ", workload.tensors[id].name));
    const auto program = codegen::ReplayText(PackingTrace(workload, id));
    EXPECT_THAT(program, IsOk());
    if (program.ok()) freed += CallWithNull(workload, *program);
  }
  return freed;
}

TEST(PackedConstantsTest, OfEveryOperatorMayBeFreed) {
  int operators = 0;
  for (const char* const example : op::kExamples) {
    std::vector<std::string> words = absl::StrSplit(example, ' ');
    const std::string name = words[0];
    words.erase(words.begin());
    HONE_ASSERT_OK_AND_ASSIGN(const auto workload, op::BuildWorkload(name, words));
    const int freed = PackAndFree(workload);
    if (freed > 0) ++operators;
  }
  EXPECT_GE(operators, 12);
}

TEST(PackedConstantsTest, OthersAreStillRead) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(kNormAndProduct));
  EXPECT_EQ(PackAndFree(workload), 3) << "one at a time";
}

}  // namespace
}  // namespace hone::network
