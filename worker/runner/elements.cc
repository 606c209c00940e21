#include "worker/runner/elements.h"

#include <cmath>

#include "absl/numeric/int128.h"
#include "common/base/rng.h"
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

}  // namespace hone::runner
