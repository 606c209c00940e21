#include "worker/runner/inputs.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"

namespace hone::runner {
namespace {

template <typename T, typename Value>
void Fill(void* data, int64_t elements, Rng rng, const Value& value) {
  T* const typed = static_cast<T*>(data);
  for (int64_t i = 0; i < elements; ++i) typed[i] = static_cast<T>(value(rng()));
}

double UnitFrom(uint64_t bits) { return static_cast<double>(bits >> 40) * 0x1p-23 - 1; }

bool IsUnsigned(ir::DType dtype) {
  return ir::LoadedAs(dtype) == ir::DType::kU8 || dtype == ir::DType::kBool;
}

}  // namespace

void FillTensor(const TensorSpec& spec, Filling filling, uint64_t seed, int number, void* data) {
  const Rng rng(seed, static_cast<uint64_t>(number), static_cast<uint64_t>(filling));
  const auto small = [&](uint64_t bits) -> double {
    // Uses the upper bits, so the value is platform-independent, as for Rng::Below.
    const auto below = [&](int bound) { return static_cast<double>((bits >> 32) * bound >> 32); };
    if (spec.bound > 0) {
      return static_cast<double>(absl::Uint128High64(absl::uint128(bits) * spec.bound));
    }
    if (spec.dtype == ir::DType::kBool) return below(2);
    if (filling == Filling::kReal) return IsUnsigned(spec.dtype) ? below(16) : below(16) - 8;
    return IsUnsigned(spec.dtype) ? below(4) : below(7) - 3;
  };
  const double scale = std::ldexp(spec.range.positive ? 0.5 : 1.0, spec.range.exponent);
  const double offset = spec.range.positive ? 2 * scale : 0;
  const auto value = [&](uint64_t bits) -> double {
    const bool real = filling == Filling::kReal && ir::IsFloat(spec.dtype);
    return real ? UnitFrom(bits) * scale + offset : small(bits);
  };
  // Fast paths for the two common types; a large workload has tens of millions of elements.
  if (spec.dtype == ir::DType::kF32) return Fill<float>(data, spec.elements, rng, value);
  if (spec.dtype == ir::DType::kF64) return Fill<double>(data, spec.elements, rng, value);
  Rng other = rng;
  for (int64_t i = 0; i < spec.elements; ++i) ir::WriteElement(spec.dtype, data, i, value(other()));
}

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
  if (Sha256Of(bytes) != digest) {
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
