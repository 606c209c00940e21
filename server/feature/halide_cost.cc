#include "server/feature/halide_cost.h"

#include <algorithm>
#include <limits>

namespace hone::feature {
namespace {

// What a byte costs, in operations, that fills the last cache.
constexpr double kHalideBalance = 40;

double TouchedBytes(const Statement& statement, size_t depth) {
  double bytes = 0;
  for (const Access& access : statement.accesses)
    bytes += access.touched[depth] * access.element_bytes;
  return bytes;
}

}  // namespace

double HalideMemoryCost(const Statement& statement, const target::Target& target) {
  const auto cache = static_cast<double>(
      target.l3_bytes > 0 ? target.l3_bytes / std::max(1, target.cores) : target.l2_bytes);
  double least = std::numeric_limits<double>::infinity();
  for (size_t depth = 0; depth <= statement.loops.size(); ++depth) {
    const double tiles = statement.executions[0] / statement.executions[depth];
    const double footprint = TouchedBytes(statement, depth);
    const double per_byte = std::min(1 + footprint * kHalideBalance / cache, kHalideBalance);
    least = std::min(least, tiles * footprint * per_byte);
  }
  return least;
}

}  // namespace hone::feature
