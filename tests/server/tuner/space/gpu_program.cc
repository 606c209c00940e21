#include "tests/server/tuner/space/gpu_program.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/region.h"

namespace hone::space {
namespace {

using ir::NodeId;
using ir::ThreadAxis;

bool IsBlockAxis(const ir::Node& node) {
  return node.loop == ir::LoopKind::kBound && node.axis >= ThreadAxis::kBlockX &&
         node.axis <= ThreadAxis::kBlockZ;
}
bool IsThreadAxis(const ir::Node& node) {
  return node.loop == ir::LoopKind::kBound && !IsBlockAxis(node);
}

class KernelCheck {
 public:
  KernelCheck(const ir::Program& program, const target::Target& target)
      : program_(program), target_(target) {}

  absl::Status Run(NodeId nest) {
    HONE_RETURN_IF_ERROR(Visit(nest, Place::kBlocks));
    int64_t threads = 1;
    for (const auto& [axis, extent] : extents_) {
      if (axis >= ThreadAxis::kThreadX && axis <= ThreadAxis::kThreadZ) threads *= extent;
      if ((axis == ThreadAxis::kBlockY || axis == ThreadAxis::kBlockZ) && extent > 65535)
        return Wrong(nest, absl::StrCat("a grid of ", extent, " blocks along y or z"));
    }
    if (threads > target_.gpu.max_threads)
      return Wrong(nest, absl::StrCat(threads, " threads in a block"));
    const int64_t shared = SharedBytes(nest);
    if (shared > target_.gpu.shared_bytes)
      return Wrong(nest, absl::StrCat(shared, " bytes of shared memory"));
    return absl::OkStatus();
  }

 private:
  enum class Place { kBlocks, kSerial, kThreads };

  absl::Status Wrong(NodeId nest, const std::string& what) const {
    const std::vector<NodeId> blocks = program_.BlocksUnder(nest);
    return absl::FailedPreconditionError(
        absl::StrCat("the nest of block ", program_.BlockOf(blocks[0]).name, ": ", what));
  }

  absl::Status Visit(NodeId id, Place place) {
    const ir::Node& node = program_.node(id);
    if (node.kind == ir::Node::Kind::kBlock) return absl::OkStatus();
    if (node.loop == ir::LoopKind::kParallel) return Wrong(id, "a parallel loop");
    if (node.loop == ir::LoopKind::kBound && node.axis != ThreadAxis::kVThread) {
      const auto [known, added] = extents_.emplace(node.axis, node.extent.value);
      if (!added && known->second != node.extent.value)
        return Wrong(id, "an axis with two extents");
    }
    if (IsBlockAxis(node) && (place != Place::kBlocks)) return Wrong(id, "blocks inside a loop");
    // Between loops over blocks there is nothing else.
    if (IsBlockAxis(node) && node.children.size() > 1 &&
        IsBlockAxis(program_.node(node.children[0])))
      return Wrong(id, "blocks beside other content");
    if (IsThreadAxis(node)) {
      place = Place::kThreads;
    } else if (!IsBlockAxis(node) && place == Place::kBlocks) {
      place = Place::kSerial;
    }
    if (node.loop == ir::LoopKind::kVectorized) {
      for (const NodeId block : program_.BlocksUnder(id)) {
        for (const ir::BufferId output : program_.BlockOf(block).outputs) {
          if (node.extent.value * ir::DTypeBytes(program_.buffers[output].dtype) * 8 >
              std::max(128, target_.vector_bits))
            return Wrong(id, absl::StrCat("vectors of ", node.extent.value));
        }
      }
    }
    for (const NodeId child : node.children) {
      if (place == Place::kThreads && IsThreadAxis(program_.node(child)) &&
          node.children.size() > 1)
        return Wrong(child, "threads beside other content");
      HONE_RETURN_IF_ERROR(Visit(child, place));
    }
    return absl::OkStatus();
  }

  // Every shared buffer holds what is used in one iteration of the loops around all its users.
  int64_t SharedBytes(NodeId nest) {
    int64_t bytes = 0;
    for (ir::BufferId b = 0; b < static_cast<ir::BufferId>(program_.buffers.size()); ++b) {
      const ir::Buffer buffer = program_.buffers[b];
      if (buffer.scope != ir::Scope::kShared) continue;
      std::vector<NodeId> users = program_.WritersOf(b);
      if (users.empty() || !program_.IsUnder(users[0], nest)) continue;
      for (const NodeId reader : program_.ReadersOf(b)) users.push_back(reader);
      std::vector<NodeId> shared = program_.LoopsAbove(users[0]);
      NodeId scope = shared[0];
      for (const NodeId loop : shared) {
        if (std::all_of(users.begin(), users.end(),
                        [&](NodeId user) { return program_.IsUnder(user, loop); }))
          scope = loop;
      }
      const auto written = ir::RegionWritten(program_, b, scope);
      int64_t elements = 1;
      for (size_t d = written.size(); d-- > 0;) {
        elements *= written[d].extent.value;
        for (const ir::StorageAlign& align : buffer.aligns) {
          if (align.axis + 1 == static_cast<int>(d))
            elements += (align.offset + align.factor - elements % align.factor) % align.factor;
        }
      }
      const bool twice = ir::ValueOf(program_.node(users[0]).annotations,
                                     ir::Annotation::Key::kDoubleBuffer, 0) != 0;
      bytes += elements * ir::DTypeBytes(buffer.dtype) * (twice ? 2 : 1);
    }
    return bytes;
  }

  ir::Program program_;
  const target::Target& target_;
  std::map<ThreadAxis, int64_t> extents_;
};

}  // namespace

target::Target Sm80() {
  target::Target target = target::TargetByName("generic/opencl").value();
  target.kind = target::Kind::kCuda;
  target.arch = "nvptx64";
  target.triple = "nvptx64-nvidia-cuda";
  target.cpu = "sm_80";
  target.cores = 108;
  target.vector_bits = 128;
  target.vector_registers = 255;
  target.l1_bytes = 192 << 10;
  target.l2_bytes = 40 << 20;
  target.gpu = {.max_threads = 1024,
                .shared_bytes = 48 << 10,
                .sub_group = 32,
                .registers = 255,
                .unit_threads = 2048,
                .unit_shared_bytes = 164 << 10,
                .unit_registers = 65536};
  return target;
}

absl::Status CheckGpuProgram(const ir::Program& program, const target::Target& target) {
  for (const NodeId kernel : program.kernels) {
    for (const NodeId nest : program.node(kernel).children)
      HONE_RETURN_IF_ERROR(KernelCheck(program, target).Run(nest));
  }
  return absl::OkStatus();
}

}  // namespace hone::space
