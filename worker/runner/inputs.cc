#include "worker/runner/inputs.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"

namespace hone::runner {

uint64_t InputSeed(absl::string_view workload_digest) { return DigestOf(workload_digest).low; }

Inputs Inputs::Seeded(absl::string_view workload_digest) {
  Inputs inputs;
  inputs.seed_ = InputSeed(workload_digest);
  inputs.key_ = std::string(workload_digest);
  inputs.name_ = record::kSeededInputs;
  return inputs;
}

absl::StatusOr<Inputs> Inputs::Given(absl::string_view workload_digest, absl::string_view digest,
                                     const std::string& path, const Signature& signature) {
  Inputs inputs = Seeded(workload_digest);
  HONE_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  if (DigestOf(bytes).ToHex() != digest) {
    return absl::DataLossError(absl::StrCat(path, " does not have the digest ", digest));
  }
  inputs.bytes_ = std::make_shared<const std::string>(std::move(bytes));
  HONE_ASSIGN_OR_RETURN(inputs.given_, record::DecodeGivenInputs(*inputs.bytes_));
  for (const auto& [number, elements] : inputs.given_) {
    const size_t count = signature.inputs.size();
    if (number >= static_cast<int>(count)) {
      return absl::InvalidArgumentError(absl::StrCat("the data to measure on have input ", number,
                                                     "; the workload has ", count, " inputs"));
    }
    const TensorSpec& spec = signature.inputs[number];
    if (static_cast<int64_t>(elements.size()) != spec.bytes()) {
      return absl::InvalidArgumentError(absl::StrCat("the data to measure on have ",
                                                     elements.size(), " bytes of ", spec.name,
                                                     ", which has ", spec.bytes()));
    }
    const int64_t bound = spec.dtype == ir::DType::kBool ? 2 : spec.bound;
    for (int64_t i = 0; i < spec.elements && bound > 0; ++i) {
      const int64_t value = ir::ReadElement(spec.dtype, elements.data(), i).whole();
      if (value >= 0 && value < bound) continue;
      return absl::InvalidArgumentError(absl::StrCat("the data to measure on have ", value,
                                                     " as element ", i, " of ", spec.name,
                                                     ", whose elements are below ", bound));
    }
  }
  inputs.name_ = std::string(digest);
  inputs.key_ = record::ReferenceKey(workload_digest, digest);
  return inputs;
}

void Inputs::Fill(const Signature& signature, Filling filling, int number, void* data) const {
  const TensorSpec& spec = signature.inputs[number];
  const auto given = filling == Filling::kReal ? given_.find(number) : given_.end();
  if (given == given_.end()) return FillTensor(spec, filling, seed_, number, data);
  std::memcpy(data, given->second.data(), given->second.size());
}

}  // namespace hone::runner
