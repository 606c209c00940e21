#include "client/network/plan/plan.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/memory_plan.h"
#include "client/network/graph/op/gather_scatter.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"
#include "common/target/gpu_module.h"
#include "common/target/kernel_memory.h"

namespace hone::network {
namespace {

// Collects texts, each once.
class Texts {
 public:
  uint32_t Add(absl::string_view text) {
    const auto [entry, is_new] = offsets_.emplace(std::string(text), bytes_.size());
    if (is_new) absl::StrAppend(&bytes_, text, absl::string_view("\0", 1));
    return entry->second;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::map<std::string, uint32_t> offsets_;
  std::string bytes_ = std::string(1, '\0');
};

template <typename T>
void Append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void AppendNumbers(std::string& bytes, const std::vector<int>& numbers) {
  for (const int number : numbers) Append(bytes, static_cast<uint32_t>(number));
}

HonePlanTensor Encoded(const PlanTensor& tensor, Texts& texts) {
  HonePlanTensor encoded = {};
  std::copy(tensor.type.shape.begin(), tensor.type.shape.end(), encoded.shape);
  encoded.bytes = tensor.type.bytes();
  encoded.offset = tensor.offset;
  encoded.name = texts.Add(tensor.name);
  encoded.dtype = texts.Add(ir::DTypeName(tensor.type.dtype));
  encoded.rank = tensor.type.shape.size();
  encoded.place = static_cast<uint32_t>(tensor.place);
  encoded.number = tensor.number;
  return encoded;
}

// Appends code and a zero, and aligns its end.
HonePlanCode AppendCode(std::string& code, absl::string_view text) {
  const HonePlanCode part = {code.size(), text.size()};
  absl::StrAppend(&code, text);
  code.resize((code.size() / HONE_PLAN_CODE_ALIGNMENT + 1) * HONE_PLAN_CODE_ALIGNMENT);
  return part;
}

// The parts of a plan in the order of plan_format.h.
class Encoder {
 public:
  explicit Encoder(const Plan& plan) : plan_(plan) {}

  std::string Run() {
    HonePlanHeader header = {};
    for (const PlanTensor& tensor : plan_.tensors) {
      Append(tensors_, Encoded(tensor, texts_));
      if (tensor.place == PlaceKind::kAbsent) {
        header.absent_bytes = std::max<uint64_t>(header.absent_bytes, tensor.type.bytes());
      }
    }
    for (const PlanStep& step : plan_.steps) AddStep(step);
    for (const PlanStep& step : plan_.packing) AddStep(step);
    for (const PlanKernel& kernel : plan_.kernels) AddKernel(kernel);
    for (const PlanPiece& piece : plan_.pieces) {
      Append(pieces_, HonePlanPiece{.offset = static_cast<uint64_t>(piece.offset),
                                    .bytes = static_cast<uint64_t>(piece.bytes),
                                    .only_for_packing = piece.only_for_packing,
                                    .reserved = 0});
    }
    std::string sizes, masks;
    for (const PlanSize& size : plan_.sizes) {
      for (const graph::InputMask& mask : size.masks) AddMask(size, mask, masks);
      Append(sizes, HonePlanSize{.value = size.value,
                                 .name = texts_.Add(size.name),
                                 .first_tensor = static_cast<uint32_t>(size.first_tensor),
                                 .tensors = static_cast<uint32_t>(size.tensors),
                                 .first_step = static_cast<uint32_t>(size.first_step),
                                 .steps = static_cast<uint32_t>(size.steps),
                                 .pads = size.pads});
    }
    const size_t parts = std::max<size_t>(plan_.sizes.size(), 1);
    std::string ends;
    AppendNumbers(ends, buffers_);
    AppendNumbers(ends, plan_.inputs);
    AppendNumbers(ends, plan_.outputs);
    std::memcpy(header.magic, HONE_PLAN_MAGIC, sizeof header.magic);
    header.version = HONE_PLAN_VERSION;
    header.tensors = plan_.tensors.size();
    header.steps = plan_.steps.size();
    header.packing = plan_.packing.size();
    header.kernels = plan_.kernels.size();
    header.launches = launches_.size() / sizeof(HonePlanLaunch);
    header.pieces = plan_.pieces.size();
    header.buffers = buffers_.size();
    header.inputs = plan_.inputs.size() / parts;
    header.outputs = plan_.outputs.size() / parts;
    header.sizes = plan_.sizes.size();
    header.masks = masks.size() / sizeof(HonePlanMask);
    header.text_bytes = texts_.bytes().size();
    header.checks = checks_.size() / sizeof(HonePlanCheck);
    header.is_gpu = plan_.is_gpu;
    header.code_bytes = code_.size();
    header.arena_bytes = plan_.arena_bytes;
    header.weights_bytes = plan_.weights_bytes;
    std::memcpy(header.id, &plan_.weights, sizeof header.id);
    std::string bytes;
    Append(bytes, header);
    return absl::StrCat(bytes, tensors_, steps_, kernels_, launches_, pieces_,
                        absl::StrCat(checks_, sizes, masks, code_, ends, texts_.bytes()));
  }

 private:
  static uint32_t NeedsOf(const graph::InputMask& mask) {
    using Needs = graph::InputMask::Needs;
    return mask.needs == Needs::kFirst ? HONE_MASK_NEEDS_FIRST
           : mask.needs == Needs::kOne ? HONE_MASK_NEEDS_ONE
                                       : HONE_MASK_NEEDS_NOTHING;
  }

  void AddMask(const PlanSize& size, const graph::InputMask& mask, std::string& masks) const {
    HonePlanMask encoded = {};
    encoded.size = static_cast<uint32_t>(&size - plan_.sizes.data());
    encoded.input = mask.input;
    encoded.element_bytes = mask.hides.size();
    const size_t inputs = plan_.inputs.size() / plan_.sizes.size();
    encoded.is_float =
        ir::IsFloat(plan_.tensors[plan_.inputs[encoded.size * inputs + mask.input]].type.dtype);
    std::memcpy(encoded.hides, mask.hides.data(), mask.hides.size());
    encoded.shown = mask.shows.size();
    encoded.needs = NeedsOf(mask);
    for (size_t s = 0; s < mask.shows.size(); ++s) {
      std::memcpy(encoded.shows[s], mask.shows[s].data(), mask.shows[s].size());
    }
    Append(masks, encoded);
  }

  void AddStep(const PlanStep& step) {
    HonePlanStep encoded = {};
    encoded.packed_offset = step.packed_offset;
    encoded.name = texts_.Add(step.name);
    encoded.kernel = step.kernel == PlanStep::kCopy ? HONE_PLAN_COPY : step.kernel;
    encoded.first_buffer = buffers_.size();
    encoded.buffers = step.tensors.size();
    encoded.first_check = checks_.size() / sizeof(HonePlanCheck);
    encoded.checks = step.checks.size();
    for (const PlanCheck& check : step.checks) AddCheck(check);
    Append(steps_, encoded);
    buffers_.insert(buffers_.end(), step.tensors.begin(), step.tensors.end());
  }

  void AddCheck(const PlanCheck& check) {
    HonePlanCheck encoded = {};
    encoded.extent = check.extent;
    encoded.least = check.least;
    encoded.tensor = check.tensor;
    encoded.element_bytes = ir::BytesOf(plan_.tensors[check.tensor].type.dtype, 1);
    encoded.column = check.column;
    encoded.columns = check.columns;
    Append(checks_, encoded);
  }

  void AddKernel(const PlanKernel& kernel) {
    HonePlanKernel encoded = {};
    encoded.packed_bytes = kernel.packed_bytes;
    encoded.name = texts_.Add(kernel.name);
    encoded.buffers = kernel.buffers;
    if (kernel.module != nullptr) {
      encoded.workspace_bytes = kernel.module->workspace_bytes;
      encoded.first_launch = launches_.size() / sizeof(HonePlanLaunch);
      encoded.launches = kernel.module->launches.size();
      encoded.code = AppendCode(code_, kernel.module->code);
      if (!kernel.portable.empty()) encoded.portable = AppendCode(code_, kernel.portable);
      for (const target::GpuLaunch& launch : kernel.module->launches) AddLaunch(launch);
    }
    Append(kernels_, encoded);
  }

  void AddLaunch(const target::GpuLaunch& launch) {
    HonePlanLaunch encoded = {};
    encoded.shared_bytes = launch.shared_bytes;
    std::ranges::copy(launch.grid, encoded.grid);
    std::ranges::copy(launch.block, encoded.block);
    encoded.name = texts_.Add(launch.kernel);
    encoded.prepack = launch.prepack;
    Append(launches_, encoded);
  }

  const Plan& plan_;
  Texts texts_;
  std::vector<int> buffers_;  // of all steps
  std::string tensors_, steps_, kernels_, launches_, pieces_, checks_, code_;
};

}  // namespace

std::string Plan::Encode() const { return Encoder(*this).Run(); }

void PlacePacked(Plan& plan) {
  if (!plan.is_gpu) return;
  const auto move = [&](PlanStep& step) {
    if (step.kernel != PlanStep::kCopy && plan.kernels[step.kernel].packed_bytes > 0) {
      step.packed_offset += plan.weights_bytes;
    }
  };
  absl::c_for_each(plan.steps, move);
  absl::c_for_each(plan.packing, move);
  for (const PlanStep& step : plan.packing) {
    plan.pieces.push_back({step.packed_offset, plan.kernels[step.kernel].packed_bytes});
  }
}

namespace {

// OpenCL drivers only accept parts of buffers that begin at multiples of a number of bytes, which
// depends on the driver. This is the largest one of common GPUs.
constexpr int64_t kOpenClAlignment = 512;

}  // namespace

graph::PartitionOptions PartitionOptionsFor(target::Kind kind) {
  graph::PartitionOptions options;
  if (kind == target::Kind::kOpenCl) options.alignment = kOpenClAlignment;
  return options;
}

namespace {

using graph::ValueId;

// The position of a value in a list; -1 if it is not there.
int IndexOf(const std::vector<ValueId>& list, ValueId id) {
  const auto found = absl::c_find(list, id);
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

class Planner {
 public:
  Planner(const graph::Graph& graph, const graph::Partition& partition,
          absl::Span<const NetworkKernel> kernels)
      : graph_(graph),
        partition_(partition),
        kernels_(kernels),
        memory_(graph::PlanMemory(graph, partition)) {}

  absl::StatusOr<PlannedNetwork> Run() {
    if (kernels_.size() != partition_.tasks.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the network has ", partition_.tasks.size(),
                                                     " tasks, but ", kernels_.size(), " kernels"));
    }
    plan().is_gpu = !kernels_.empty() && kernels_[0].module != nullptr;
    for (size_t t = 0; t < kernels_.size(); ++t) HONE_RETURN_IF_ERROR(AddKernel(t));
    FindPlainConstants();
    plan().arena_bytes = memory_.arena_bytes;
    for (const ValueId id : graph_.inputs) plan().inputs.push_back(TensorOf(id));
    for (const graph::Step& step : partition_.steps) {
      if (step.kind == graph::Step::Kind::kKernel) HONE_RETURN_IF_ERROR(AddStep(step));
    }
    for (size_t o = 0; o < graph_.outputs.size(); ++o) AddOutput(static_cast<int>(o));
    plan().weights_bytes = weights_bytes_;
    PlacePacked(plan());
    return std::move(planned_);
  }

 private:
  Plan& plan() { return planned_.plan; }

  absl::Status AddKernel(size_t task) {
    const ir::Workload& workload = partition_.tasks[task].workload;
    if (kernels_[task].reads.size() != workload.Inputs().size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the kernel of ", workload.name, " has ", kernels_[task].reads.size(),
                       " inputs instead of ", workload.Inputs().size()));
    }
    plan().kernels.push_back(
        {.name = workload.name,
         .buffers = static_cast<int>(workload.Inputs().size() + workload.Outputs().size()),
         .packed_bytes = kernels_[task].packed_bytes,
         .module = kernels_[task].module});
    if (plan().is_gpu && kernels_[task].module->kind == target::Kind::kCuda) {
      const absl::StatusOr<target::GpuSources> sources =
          target::GpuSources::Decode(kernels_[task].object);
      if (sources.ok()) plan().kernels.back().portable = sources->assembly;
    }
    return absl::OkStatus();
  }

  void FindPlainConstants() {
    const auto add = [&](ValueId id) {
      const ValueId outside = memory_.places[id].outside;
      if (outside != graph::kNoValue && graph_.IsConstant(outside)) plain_.insert(outside);
    };
    for (const graph::Step& step : partition_.steps) {
      if (step.kind != graph::Step::Kind::kKernel) continue;
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        if (kernels_[step.task].reads[i] || !graph_.IsConstant(step.inputs[i])) {
          add(step.inputs[i]);
        }
      }
    }
    for (const ValueId id : graph_.outputs) add(id);
  }

  // The tensor of a value, where the memory plan has it.
  int TensorOf(ValueId id) {
    const auto [entry, is_new] = tensors_.emplace(id, static_cast<int>(plan().tensors.size()));
    if (!is_new) return entry->second;
    const graph::Place& place = memory_.places[id];
    PlanTensor tensor{
        .name = graph_.value(id).name, .type = graph_.value(id).type, .offset = place.offset};
    if (place.kind == graph::Place::Kind::kOutside) PlaceOutside(place, tensor);
    return AddTensor(std::move(tensor));
  }

  void PlaceOutside(const graph::Place& place, PlanTensor& tensor) {
    if (graph_.IsConstant(place.outside)) {
      const bool absent = !plain_.contains(place.outside);
      tensor.place = absent ? PlaceKind::kAbsent : PlaceKind::kWeights;
      tensor.offset = absent ? 0 : place.offset + WeightsOf(place.outside);
    } else if (const int input = IndexOf(graph_.inputs, place.outside); input >= 0) {
      tensor.place = PlaceKind::kInput;
      tensor.number = input;
    } else {
      tensor.place = PlaceKind::kOutput;
      tensor.number = IndexOf(graph_.outputs, place.outside);
    }
  }

  // The offset of a constant in the weights file.
  int64_t WeightsOf(ValueId constant) {
    const auto [entry, is_new] = constants_.emplace(constant, weights_bytes_);
    if (is_new) {
      const int64_t bytes = graph_.value(constant).type.bytes();
      planned_.pieces.push_back({.offset = weights_bytes_, .constant = constant});
      if (plan().is_gpu && bytes > 0) {
        plan().pieces.push_back({weights_bytes_, bytes, !plain_.contains(constant)});
      }
      weights_bytes_ += target::AlignedBytes(bytes);
    }
    return entry->second;
  }

  // The offset of a step's packed constants in the weights file. Steps share them if their kernel
  // and their constants are the same.
  int64_t PackedOf(const graph::Step& step) {
    std::pair<int, std::vector<ValueId>> key(step.task, step.inputs);
    for (ValueId& id : key.second) {
      if (!graph_.IsConstant(id)) id = graph::kNoValue;
    }
    const int64_t bytes = target::AlignedBytes(plan().kernels[step.task].packed_bytes);
    int64_t& end = plan().is_gpu ? packed_bytes_ : weights_bytes_;
    const auto [entry, is_new] = packed_.emplace(key, end);
    if (is_new) {
      end += bytes;
      if (plan().is_gpu) {
        AddPacking(step.task, key.second, entry->second);
      } else {
        planned_.pieces.push_back(
            {.offset = entry->second, .task = step.task, .inputs = std::move(key.second)});
      }
    }
    return entry->second;
  }

  // Adds the step of a GPU that packs constants. It reads neither other inputs nor outputs.
  void AddPacking(int task, const std::vector<ValueId>& constants, int64_t offset) {
    PlanStep packing{.name = plan().kernels[task].name, .kernel = task, .packed_offset = offset};
    for (const ValueId id : constants) {
      packing.tensors.push_back(id == graph::kNoValue ? AbsentTensor() : WholeTensor(id));
    }
    packing.tensors.resize(plan().kernels[task].buffers, AbsentTensor());
    plan().packing.push_back(std::move(packing));
  }

  int AbsentTensor() {
    if (absent_ < 0) {
      absent_ = AddTensor({.type = {ir::DType::kF32, {0}}, .place = PlaceKind::kAbsent});
    }
    return absent_;
  }

  // A constant that is packed.
  int WholeTensor(ValueId constant) {
    return AddTensor({.name = graph_.value(constant).name,
                      .type = graph_.value(constant).type,
                      .place = PlaceKind::kWeights,
                      .offset = WeightsOf(constant)});
  }

  int AddTensor(PlanTensor tensor) {
    plan().tensors.push_back(std::move(tensor));
    return static_cast<int>(plan().tensors.size()) - 1;
  }

  absl::Status AddStep(const graph::Step& step) {
    const ir::Workload& workload = partition_.tasks[step.task].workload;
    const std::vector<ir::BufferId> inputs = workload.Inputs();
    const std::string name = absl::StrJoin(step.nodes, "+", [&](std::string* out, int node) {
      absl::StrAppend(out, graph_.nodes[node].name);
    });
    PlanStep planned{.name = name, .kernel = step.task};
    for (const std::vector<ValueId>* values : {&step.inputs, &step.outputs}) {
      for (const ValueId id : *values) planned.tensors.push_back(TensorOf(id));
    }
    if (static_cast<int>(planned.tensors.size()) != plan().kernels[step.task].buffers) {
      return absl::InvalidArgumentError(
          absl::StrCat("step '", name, "' and its workload have different numbers of tensors"));
    }
    // A kernel that packs nothing may get other elements in each run.
    const bool packs = plan().kernels[step.task].packed_bytes > 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (packs && workload.tensors[inputs[i]].constant && !graph_.IsConstant(step.inputs[i])) {
        return absl::InvalidArgumentError(absl::StrCat(
            "step '", name, "': input ", i, " must be constant, but the network computes it"));
      }
    }
    if (packs) planned.packed_offset = PackedOf(step);
    AddChecks(step, planned);
    plan().steps.push_back(std::move(planned));
    return absl::OkStatus();
  }

  // Adds the checks of indices that the step reads.
  void AddChecks(const graph::Step& step, PlanStep& planned) {
    for (const int node : step.nodes) {
      for (const graph::IndexRange& range : graph::IndexRanges(graph_, graph_.nodes[node])) {
        if (IndexOf(step.inputs, range.indices) < 0) continue;
        planned.checks.push_back({TensorOf(range.indices), range.extent, range.column,
                                  range.columns, range.from_end ? -range.extent : 0});
      }
    }
  }

  void AddOutput(int number) {
    const ValueId id = graph_.outputs[number];
    const int tensor = TensorOf(id);
    const PlanTensor& made = plan().tensors[tensor];
    if (made.place == PlaceKind::kOutput && made.number == number && made.offset == 0) {
      plan().outputs.push_back(tensor);
      return;
    }
    PlanTensor own{.name = made.name, .type = made.type, .place = PlaceKind::kOutput};
    own.number = number;
    plan().outputs.push_back(AddTensor(std::move(own)));
    plan().steps.push_back(
        {.name = plan().tensors[tensor].name, .tensors = {tensor, plan().outputs.back()}});
  }

  const graph::Graph& graph_;
  const graph::Partition& partition_;
  const absl::Span<const NetworkKernel> kernels_;
  const graph::MemoryPlan memory_;
  PlannedNetwork planned_;
  std::set<ValueId> plain_;               // constants that a step or an output reads unpacked
  std::map<ValueId, int> tensors_;        // in the plan
  std::map<ValueId, int64_t> constants_;  // offsets in the weights file
  std::map<std::pair<int, std::vector<ValueId>>, int64_t> packed_;
  int64_t weights_bytes_ = sizeof(HoneWeightsHeader);
  int64_t packed_bytes_ = 0;  // of a GPU
  int absent_ = -1;           // a tensor that no kernel reads
};

}  // namespace

absl::StatusOr<PlannedNetwork> MakePlan(const graph::Graph& graph,
                                        const graph::Partition& partition,
                                        absl::Span<const NetworkKernel> kernels) {
  return Planner(graph, partition, kernels).Run();
}

}  // namespace hone::network
