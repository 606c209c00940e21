#ifndef HONE_COMMON_BASE_RNG_H_
#define HONE_COMMON_BASE_RNG_H_

#include <cstdint>
#include <limits>

#include "absl/numeric/int128.h"

namespace hone {

// A counter-based random number generator. The stream is a pure function of the key: the same (job,
// task, purpose, index) gives the same numbers on every machine and in every thread. Meets
// UniformRandomBitGenerator. Not for secrets.
class Rng {
 public:
  using result_type = uint64_t;

  explicit Rng(uint64_t key) : key_(Mix(key ^ 0x9e3779b97f4a7c15u)) {}
  Rng(uint64_t a, uint64_t b, uint64_t c = 0, uint64_t d = 0)
      : key_(Mix(Mix(Mix(Mix(a) ^ b) ^ c) ^ d)) {}

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return std::numeric_limits<uint64_t>::max(); }
  uint64_t operator()() { return Mix(key_ + ++counter_ * 0x9e3779b97f4a7c15u); }

  // Uniform in [0, bound). REQUIRES bound > 0. Platform-independent, unlike
  // std::uniform_int_distribution.
  uint64_t Below(uint64_t bound) { return absl::Uint128High64(absl::uint128((*this)()) * bound); }
  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

 private:
  static constexpr uint64_t Mix(
      uint64_t z) {  // the finalizer of SplitMix64 (Steele et al., OOPSLA 2014)
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t key_;
  uint64_t counter_ = 0;
};

}  // namespace hone

#endif  // HONE_COMMON_BASE_RNG_H_
