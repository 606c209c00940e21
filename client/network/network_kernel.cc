#include "client/network/network_kernel.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/ir/program.h"
#include "common/ir/program_parser.h"
#include "common/ir/workload_parser.h"
#include "common/target/kernel_abi.h"
#include "common/target/target.h"

namespace hone::network {
namespace {

// Marks the inputs that nodes below `id` read.
void MarkReads(const ir::Program& program, ir::NodeId id, const std::vector<ir::BufferId>& inputs,
               std::vector<bool>& reads) {
  const ir::Node& node = program.node(id);
  if (node.kind == ir::Node::Kind::kBlock) {
    const auto mark = [&](ir::ExprId value) {
      program.pool.VisitLoads(value, [&](const ir::Expr& load) {
        for (size_t i = 0; i < inputs.size(); ++i) {
          if (program.buffers[load.buffer].tensor == inputs[i]) reads[i] = true;
        }
      });
    };
    for (const ir::ExprId value : program.blocks[node.block].values) mark(value);
  }
  for (const ir::NodeId child : node.children) MarkReads(program, child, inputs, reads);
}

// Marks the inputs that the program reads outside of its prepack kernel, and all inputs that are
// not constant.
std::vector<bool> ReadsOf(const ir::Program& program) {
  const ir::Workload& workload = program.workload();
  const std::vector<ir::BufferId> inputs = workload.Inputs();
  std::vector<bool> reads;
  for (const ir::BufferId id : inputs) reads.push_back(!workload.tensors[id].constant);
  for (const ir::NodeId kernel : program.kernels) {
    if (program.node(kernel).name != ir::kPrepackKernel) MarkReads(program, kernel, inputs, reads);
  }
  return reads;
}

}  // namespace

absl::StatusOr<NetworkKernel> LoadKernel(const record::Artifact& artifact) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(artifact.target));
  HONE_RETURN_IF_ERROR(target::CheckRunsOn(target, target::DetectHost()));
  NetworkKernel kernel{.object = artifact.object};
  HONE_ASSIGN_OR_RETURN(kernel.loaded,
                        target::LoadedKernel::LoadSharedObject(artifact.shared_object));
  if (kernel.loaded->library().abi() != target::kKernelAbiVersion) {
    return absl::FailedPreconditionError(
        "the kernel was built by an older version and has another interface; hone revalidate "
        "builds it again");
  }
  HONE_ASSIGN_OR_RETURN(ir::Workload workload, ir::ParseWorkload(artifact.workload));
  const auto shared = std::make_shared<const ir::Workload>(std::move(workload));
  HONE_ASSIGN_OR_RETURN(const ir::Program program, ir::ParseProgram(shared, artifact.program));
  kernel.reads = kernel.loaded->library().packed_bytes() > 0
                     ? ReadsOf(program)
                     : std::vector<bool>(shared->Inputs().size(), true);
  return kernel;
}

}  // namespace hone::network
