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

}  // namespace

HonePlanCheck Plan::ForRuntime(const PlanCheck& check) const {
  HonePlanCheck encoded = {};
  encoded.extent = check.extent;
  encoded.tensor = check.tensor;
  encoded.element_bytes = ir::BytesOf(tensors[check.tensor].type.dtype, 1);
  encoded.column = check.column;
  encoded.columns = check.columns;
  return encoded;
}

std::string Plan::Encode() const {
  Texts texts;
  std::string body;
  HonePlanHeader header = {};
  for (const PlanTensor& tensor : tensors) {
    Append(body, Encoded(tensor, texts));
    if (tensor.place == PlaceKind::kAbsent) {
      header.absent_bytes = std::max<uint64_t>(header.absent_bytes, tensor.type.bytes());
    }
  }
  std::vector<int> buffers;
  std::string checks;
  for (const PlanStep& step : steps) {
    HonePlanStep encoded = {};
    encoded.packed_offset = step.packed_offset;
    encoded.name = texts.Add(step.name);
    encoded.kernel = step.kernel == PlanStep::kCopy ? HONE_PLAN_COPY : step.kernel;
    encoded.first_buffer = buffers.size();
    encoded.buffers = step.tensors.size();
    encoded.first_check = checks.size() / sizeof(HonePlanCheck);
    encoded.checks = step.checks.size();
    for (const PlanCheck& check : step.checks) Append(checks, ForRuntime(check));
    Append(body, encoded);
    buffers.insert(buffers.end(), step.tensors.begin(), step.tensors.end());
  }
  for (const PlanKernel& kernel : kernels) {
    HonePlanKernel encoded = {};
    encoded.packed_bytes = kernel.packed_bytes;
    encoded.name = texts.Add(kernel.name);
    encoded.buffers = kernel.buffers;
    Append(body, encoded);
  }
  body += checks;
  AppendNumbers(body, buffers);
  AppendNumbers(body, inputs);
  AppendNumbers(body, outputs);

  std::memcpy(header.magic, HONE_PLAN_MAGIC, sizeof header.magic);
  header.version = HONE_PLAN_VERSION;
  header.tensors = tensors.size();
  header.steps = steps.size();
  header.kernels = kernels.size();
  header.buffers = buffers.size();
  header.inputs = inputs.size();
  header.outputs = outputs.size();
  header.text_bytes = texts.bytes().size();
  header.checks = checks.size() / sizeof(HonePlanCheck);
  header.arena_bytes = arena_bytes;
  header.weights_bytes = weights_bytes;
  std::memcpy(header.id, &weights, sizeof header.id);
  std::string bytes;
  Append(bytes, header);
  return bytes + body + texts.bytes();
}

}  // namespace hone::network
