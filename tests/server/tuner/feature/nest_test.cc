#include "server/tuner/feature/nest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/server/tuner/feature/programs.h"
#include "tests/status.h"

namespace hone::feature {
namespace {

// The extents that an access touches while the loops from `depth` inwards run, computed from the
// definition: the bounds of its indices with the outer loops fixed.
std::vector<int64_t> BoxByDefinition(const ir::Program& program, const Statement& statement,
                                     const Access& access, int depth) {
  const auto over_loops = [&](ir::AtomId var) {
    for (size_t d = depth; d < statement.loops.size(); ++d) {
      if (statement.loops[d].var == var) return program.atoms[var].range;
    }
    return ir::Range{0, 0};
  };
  const auto over_iters = [&](ir::AtomId var) {
    for (const ir::BlockIter& iter : statement.block->iters) {
      if (iter.var != var) continue;
      const ir::Range range = program.atoms.RangeOf(iter.binding, over_loops);
      const int64_t min = std::clamp<int64_t>(range.min, 0, iter.extent - 1);
      return ir::Range{min, std::clamp<int64_t>(range.max, min, iter.extent - 1)};
    }
    return ir::Range{0, 0};
  };
  std::vector<int64_t> box;
  for (size_t dim = 0; dim < access.indices[0]->size(); ++dim) {
    ir::Range all = program.atoms.RangeOf((*access.indices[0])[dim], over_iters);
    for (const ir::IndexList* indices : access.indices) {
      const ir::Range range = program.atoms.RangeOf((*indices)[dim], over_iters);
      all = {std::min(all.min, range.min), std::max(all.max, range.max)};
    }
    box.push_back(std::clamp<int64_t>(all.extent(), 1, program.buffers[access.buffer].shape[dim]));
  }
  return box;
}

TEST(NestTest, BoxesAreTheBoundsOfTheIndicesAtEveryDepth) {
  Nest nest;  // reused: no state of one program may leak into the next
  int boxes = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    for (const NamedTrace& trace : Traces()) {
      ir::Program program;
      if (!DrawProgram(trace, seed, program)) continue;
      ASSERT_THAT(nest.Analyze(program), IsOk());
      for (const Statement& statement : nest.statements()) {
        for (const Access& access : statement.accesses) {
          for (int d = 0; d <= static_cast<int>(statement.loops.size()); ++d, ++boxes) {
            const absl::Span<const int64_t> box = access.Box(d);
            ASSERT_EQ(std::vector<int64_t>(box.begin(), box.end()),
                      BoxByDefinition(program, statement, access, d))
                << trace.name << " seed " << seed << " depth " << d << "\n"
                << program.ToText(statement.node);
            double elements = 1;
            for (const int64_t extent : box) elements *= static_cast<double>(extent);
            ASSERT_EQ(access.touched[d], elements);
          }
        }
      }
    }
  }
  EXPECT_GT(boxes, 1000);
}

TEST(NestTest, AccessVariesWithTheLoopsThatMoveIt) {
  Nest nest;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    for (const NamedTrace& trace : Traces()) {
      ir::Program program;
      if (!DrawProgram(trace, seed, program)) continue;
      ASSERT_THAT(nest.Analyze(program), IsOk());
      for (const Statement& statement : nest.statements()) {
        for (const Access& access : statement.accesses) {
          for (size_t d = 0; d < statement.loops.size(); ++d) {
            bool moves = false;
            for (const ir::IndexList* indices : access.indices) {
              for (const ir::Index& index : *indices) {
                for (const ir::BlockIter& iter : statement.block->iters) {
                  moves |= program.atoms.DependsOn(index, iter.var) &&
                           program.atoms.DependsOn(iter.binding, statement.loops[d].var);
                }
              }
            }
            ASSERT_EQ((access.varies >> d & 1) != 0, moves)
                << trace.name << " seed " << seed << " loop " << d << "\n"
                << program.ToText(statement.node);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hone::feature
