#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "client/network/plan/plan.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_memory.h"

namespace hone::network {
namespace {

// Puts the plans of the sizes behind each other.
class PlanJoiner {
 public:
  explicit PlanJoiner(std::string dimension) : dimension_(std::move(dimension)) {
    plan().weights_bytes = sizeof(HoneWeightsHeader);
  }

  absl::Status Add(const NetworkOfSize& size) {
    HONE_ASSIGN_OR_RETURN(const PlannedNetwork part,
                          MakePlan(*size.graph, *size.partition, size.kernels));
    plan().is_gpu |= part.plan.is_gpu;
    const int number = static_cast<int>(joined_.graphs.size());
    joined_.graphs.push_back(size.graph);
    kernels_.clear();
    for (size_t t = 0; t < size.kernels.size(); ++t) {
      const ir::Workload& workload = size.partition->tasks[t].workload;
      kernels_.push_back(KernelOf(workload, size.kernels[t], part.plan.kernels[t]));
    }
    const int tensors = static_cast<int>(plan().tensors.size());
    AddPieces(*size.graph, part, number);
    AddPacking(part.plan, tensors);
    plan().sizes.push_back({.value = size.value,
                            .name = dimension_,
                            .first_tensor = tensors,
                            .tensors = static_cast<int>(part.plan.tensors.size()),
                            .first_step = static_cast<int>(plan().steps.size()),
                            .steps = static_cast<int>(part.plan.steps.size()),
                            .pads = size.pads,
                            .masks = size.pads ? size.masks : std::vector<graph::InputMask>()});
    for (PlanTensor tensor : part.plan.tensors) {
      if (tensor.place == PlaceKind::kWeights) tensor.offset = Moved(tensor.offset);
      plan().tensors.push_back(std::move(tensor));
    }
    for (PlanStep step : part.plan.steps) {
      if (step.kernel != PlanStep::kCopy) {
        if (part.plan.kernels[step.kernel].packed_bytes > 0) {
          step.packed_offset =
              part.plan.is_gpu ? moved_packed_.at(step.packed_offset) : Moved(step.packed_offset);
        }
        step.kernel = kernels_[step.kernel];
      }
      for (int& tensor : step.tensors) tensor += tensors;
      for (PlanCheck& check : step.checks) check.tensor += tensors;
      plan().steps.push_back(std::move(step));
    }
    for (const int tensor : part.plan.inputs) plan().inputs.push_back(tensor + tensors);
    for (const int tensor : part.plan.outputs) plan().outputs.push_back(tensor + tensors);
    plan().arena_bytes = std::max(plan().arena_bytes, part.plan.arena_bytes);
    return absl::OkStatus();
  }

  JoinedNetwork Finish() && {
    if (plan().is_gpu) {
      for (const auto& [offset, piece] : device_pieces_) plan().pieces.push_back(piece);
      PlacePacked(plan());
    }
    return std::move(joined_);
  }

 private:
  Plan& plan() { return joined_.planned.plan; }

  // The number of a kernel in the joined plan.
  int KernelOf(const ir::Workload& workload, const NetworkKernel& kernel,
               const PlanKernel& planned) {
    const std::string code = kernel.module != nullptr ? kernel.module->Encode() : kernel.object;
    const std::string key =
        absl::StrCat(workload.StructuralDigest().ToHex(), " ", DigestOf(code).ToHex());
    const auto [entry, is_new] = known_kernels_.emplace(key, joined_.kernels.size());
    if (is_new) {
      joined_.kernels.push_back(kernel);
      plan().kernels.push_back(planned);
    }
    return entry->second;
  }

  const std::string& DigestOfConstant(const graph::Graph& graph, graph::ValueId id) {
    std::string& digest = constants_[id];
    if (digest.empty()) digest = DigestOf(graph.value(id).constant->bytes()).ToHex();
    return digest;
  }

  // Gives each piece of a part a place in the file, that of an equal piece if there is one.
  void AddPieces(const graph::Graph& graph, const PlannedNetwork& part, int number) {
    constants_.clear();
    moved_.clear();
    for (WeightsPiece piece : part.pieces) {
      std::string key;
      int64_t bytes = 0;
      if (piece.constant != graph::kNoValue) {
        bytes = graph.value(piece.constant).type.bytes();
        key = absl::StrCat(bytes, " ", DigestOfConstant(graph, piece.constant));
      } else {
        bytes = part.plan.kernels[piece.task].packed_bytes;
        piece.task = kernels_[piece.task];
        key = absl::StrCat("packed by ", piece.task);
        for (const graph::ValueId id : piece.inputs) {
          absl::StrAppend(&key, " ", id == graph::kNoValue ? "-" : DigestOfConstant(graph, id));
        }
      }
      const auto [entry, is_new] = known_pieces_.emplace(key, plan().weights_bytes);
      // An empty constant has the offset of the piece that follows it.
      moved_.insert_or_assign(piece.offset, entry->second);
      if (piece.constant != graph::kNoValue && bytes > 0) {
        AddDevicePiece(entry->second, bytes, IsOnlyForPacking(part.plan, piece.offset));
      }
      if (!is_new) continue;
      piece.offset = entry->second;
      piece.size = number;
      joined_.planned.pieces.push_back(std::move(piece));
      plan().weights_bytes += target::AlignedBytes(bytes);
    }
  }

  static bool IsOnlyForPacking(const Plan& part, int64_t offset) {
    return absl::c_any_of(part.pieces, [&](const PlanPiece& piece) {
      return piece.offset == offset && piece.only_for_packing;
    });
  }

  // A constant stays on the device if one of the sizes reads its unpacked form.
  void AddDevicePiece(int64_t offset, int64_t bytes, bool only_for_packing) {
    const PlanPiece piece{offset, bytes, only_for_packing};
    const auto [entry, is_new] = device_pieces_.emplace(offset, piece);
    entry->second.only_for_packing &= only_for_packing;
  }

  // Adds the steps of a GPU that pack what no other size packs with the same kernel. `tensors`: the
  // number of the part's first tensor.
  void AddPacking(const Plan& part, int tensors) {
    moved_packed_.clear();
    for (PlanStep step : part.packing) {
      const int64_t offset = step.packed_offset, bytes = part.kernels[step.kernel].packed_bytes;
      step.kernel = kernels_[step.kernel];
      std::string key = absl::StrCat(step.kernel);
      for (int& tensor : step.tensors) {
        // Equal constants have the same place.
        const PlanTensor& packed = part.tensors[tensor];
        absl::StrAppend(&key, " ",
                        packed.place == PlaceKind::kWeights ? Moved(packed.offset) : int64_t{-1},
                        " ", packed.type.bytes());
        tensor += tensors;
      }
      const auto [entry, is_new] = known_packed_.emplace(key, packed_bytes_);
      moved_packed_.emplace(offset, entry->second);
      if (!is_new) continue;
      step.packed_offset = entry->second;
      packed_bytes_ += target::AlignedBytes(bytes);
      plan().packing.push_back(std::move(step));
    }
  }

  // The place in the joined file of a place in the file of the part.
  int64_t Moved(int64_t offset) const {
    const auto piece = std::prev(moved_.upper_bound(offset));
    return piece->second + offset - piece->first;
  }

  const std::string dimension_;
  JoinedNetwork joined_;
  std::map<std::string, int> known_kernels_;
  std::map<std::string, int64_t> known_pieces_;  // their offsets
  // Of a GPU, which has a buffer for each constant, and packs constants itself.
  std::map<int64_t, PlanPiece> device_pieces_;   // by offset
  std::map<std::string, int64_t> known_packed_;  // offsets, which begin at 0
  int64_t packed_bytes_ = 0;
  // Of the part that is added.
  std::vector<int> kernels_;                         // in the joined plan
  std::map<int64_t, int64_t> moved_;                 // offsets of pieces in the file of the part
  std::map<int64_t, int64_t> moved_packed_;          // of the packed constants of a GPU
  std::map<graph::ValueId, std::string> constants_;  // digests
};

}  // namespace

absl::StatusOr<JoinedNetwork> JoinPlans(const std::string& dimension,
                                        absl::Span<const NetworkOfSize> sizes) {
  if (sizes.size() == 1) {
    JoinedNetwork joined{.kernels = {sizes[0].kernels.begin(), sizes[0].kernels.end()},
                         .graphs = {sizes[0].graph}};
    HONE_ASSIGN_OR_RETURN(joined.planned,
                          MakePlan(*sizes[0].graph, *sizes[0].partition, sizes[0].kernels));
    return joined;
  }
  PlanJoiner joiner(dimension);
  for (const NetworkOfSize& size : sizes) HONE_RETURN_IF_ERROR(joiner.Add(size));
  return std::move(joiner).Finish();
}

}  // namespace hone::network
