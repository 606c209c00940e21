#include "server/tuner/feature/warp_access.h"

#include <algorithm>

namespace hone::feature {
namespace {

// Returns 0, 1 and 2 for threadIdx.x, y and z, in which order threads are numbered.
int RankOf(ir::ThreadAxis axis) {
  return static_cast<int>(axis) - static_cast<int>(ir::ThreadAxis::kThreadX);
}
bool IsThread(const NestLoop& loop) {
  return loop.kind == ir::LoopKind::kBound && RankOf(loop.axis) >= 0 && RankOf(loop.axis) < 3;
}

}  // namespace

WarpCost WarpAccess::Cost(const Nest& nest, const Statement& statement, const Access& access,
                          absl::Span<const int64_t> strides, int64_t width,
                          const GpuMachine& machine) {
  const ir::AtomTable& atoms = nest.program().atoms;
  values_.assign(atoms.size(), 0);
  const NestLoop* axes[3] = {};
  int64_t threads = 1;
  for (const NestLoop& loop : statement.loops) {
    if (!IsThread(loop)) continue;
    axes[RankOf(loop.axis)] = &loop;
    threads *= loop.extent;
  }
  const int64_t lanes = std::min(threads, static_cast<int64_t>(machine.warp));
  addresses_.clear();
  for (int64_t lane = 0; lane < lanes; ++lane) {
    int64_t rest = lane;
    for (const NestLoop* axis : axes) {
      if (axis == nullptr) continue;
      values_[axis->var] = rest % axis->extent;
      rest /= axis->extent;
    }
    for (const ir::BlockIter& iter : statement.block->iters)
      values_[iter.var] = atoms.Evaluate(iter.binding, values_);
    int64_t address = 0;
    const ir::IndexList& indices = *access.indices[0];
    for (size_t d = 0; d < indices.size(); ++d)
      address += strides[d] * atoms.Evaluate(indices[d], values_);
    for (int64_t e = 0; e < width; ++e) addresses_.push_back(address + e);
  }
  std::sort(addresses_.begin(), addresses_.end());
  addresses_.erase(std::unique(addresses_.begin(), addresses_.end()), addresses_.end());

  WarpCost cost;
  const auto sector = static_cast<int64_t>(machine.sector_bytes) / access.element_bytes;
  const auto banks = static_cast<int64_t>(machine.banks);
  std::vector<int> in_bank(banks, 0);
  int64_t last_sector = INT64_MIN, last_word = INT64_MIN;
  cost.sectors = 0;
  int64_t words = 0;
  for (const int64_t address : addresses_) {
    const int64_t at = ir::FloorDivInt(address, std::max<int64_t>(1, sector));
    if (at != last_sector) ++cost.sectors;
    last_sector = at;
    const int64_t word = ir::FloorDivInt(address * access.element_bytes, 4);
    if (word != last_word) {
      ++words;
      ++in_bank[ir::FloorModInt(word, banks)];
    }
    last_word = word;
  }
  cost.passes = *std::max_element(in_bank.begin(), in_bank.end());
  cost.least = static_cast<double>((words + banks - 1) / banks);
  cost.useful = static_cast<double>(addresses_.size()) * access.element_bytes /
                (cost.sectors * machine.sector_bytes);
  return cost;
}

}  // namespace hone::feature
