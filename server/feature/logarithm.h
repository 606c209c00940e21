#ifndef HONE_SERVER_FEATURE_LOGARITHM_H_
#define HONE_SERVER_FEATURE_LOGARITHM_H_

#include <cmath>

namespace hone::feature {

// sign(x)·log2(|x| + 1), the scale of nearly every column.
inline float SignedLog2(double x) {
  return static_cast<float>(x < 0 ? -std::log2(1 - x) : std::log2(1 + x));
}

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_LOGARITHM_H_
