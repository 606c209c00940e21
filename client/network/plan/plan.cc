#include "client/network/plan/plan.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/ir/dtype.h"

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
    header.inputs = plan_.inputs.size();
    header.outputs = plan_.outputs.size();
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
                        absl::StrCat(checks_, code_, ends, texts_.bytes()));
  }

 private:
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

}  // namespace hone::network
