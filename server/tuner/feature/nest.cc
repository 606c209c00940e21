#include "server/tuner/feature/nest.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::feature {
namespace {

using ir::AtomId;
using ir::Block;
using ir::BlockIter;
using ir::Index;
using ir::NodeId;
using ir::Range;

// Returns the position of variable `index` of a block's `count` spatial (or reduction) variables.
Position PositionOf(int index, int count, bool reduce) {
  if (index == count - 1) return reduce ? Position::kInnerReduce : Position::kInnerSpatial;
  if (index == 0) return reduce ? Position::kOuterReduce : Position::kOuterSpatial;
  return reduce ? Position::kMiddleReduce : Position::kMiddleSpatial;
}

void SetPosition(const Block& block, absl::Span<const uint64_t> loops_of_iter, uint64_t bit,
                 NestLoop& loop) {
  int spatial = 0, reduce = 0, found = 0;
  int at = 0;
  bool at_reduce = false;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const bool reduces = block.iters[i].reduce;
    int& count = reduces ? reduce : spatial;
    if (loops_of_iter[i] & bit) {
      ++found;
      at = count;
      at_reduce = reduces;
      loop.reduce |= reduces;
    }
    ++count;
  }
  // If no variable depends on the loop, the block's stage is computed inside another stage's loop,
  // which counts as an outer loop.
  loop.position = found == 0   ? Position::kOuterSpatial
                  : found == 1 ? PositionOf(at, at_reduce ? reduce : spatial, at_reduce)
                               : Position::kMixed;
}

// Returns d index / d var; the slope of a floordiv is at least 1.
int64_t Slope(const ir::AtomTable& atoms, const Index& index, AtomId var) {
  int64_t slope = 0;
  for (const ir::IndexTerm& term : index.terms()) {
    const ir::Atom& atom = atoms[term.atom];
    if (atom.kind == ir::Atom::Kind::kVar) {
      if (term.atom == var) slope += term.coeff;
      continue;
    }
    const int64_t inner = Slope(atoms, atom.argument, var);
    if (inner == 0) continue;
    slope += term.coeff * (atom.kind == ir::Atom::Kind::kMod
                               ? inner % atom.divisor
                               : std::max<int64_t>(1, std::abs(inner) / atom.divisor));
  }
  return slope;
}

}  // namespace

const Access* Statement::Find(ir::BufferId buffer) const {
  for (const Access& access : accesses) {
    if (access.buffer == buffer) return &access;
  }
  return nullptr;
}

absl::Status Nest::Analyze(const ir::Program& program) {
  program_ = &program;
  count_ = 0;
  path_.clear();
  gathers_.clear();
  depth_of_.assign(program.atoms.size(), -1);
  loops_of_.assign(program.atoms.size(), 0);
  range_of_.resize(program.atoms.size());
  for (NodeId kernel : program.kernels) {
    if (program.node(kernel).name == ir::kPrepackKernel)
      continue;  // the prepack kernel is not timed
    HONE_RETURN_IF_ERROR(Visit(kernel, kernel));
  }
  return absl::OkStatus();
}

absl::Status Nest::Visit(NodeId id, NodeId kernel) {
  const ir::Node& node = program_->node(id);
  if (node.kind == ir::Node::Kind::kBlock) {
    if (path_.size() > kMaxLoops) {
      return absl::InvalidArgumentError(
          absl::StrCat("block ", program_->BlockOf(id).name, " is inside ", path_.size(),
                       " loops; at most ", kMaxLoops, " are supported"));
    }
    if (count_ == statements_.size()) statements_.emplace_back();
    Statement& statement = statements_[count_++];
    statement.node = id;
    statement.kernel = kernel;
    statement.block = &program_->BlockOf(id);
    Describe(statement);
    return absl::OkStatus();
  }
  const bool loop = node.kind == ir::Node::Kind::kLoop;
  if (loop) path_.push_back(id);
  for (NodeId child : node.children) HONE_RETURN_IF_ERROR(Visit(child, kernel));
  if (loop) path_.pop_back();
  return absl::OkStatus();
}

Range Nest::RangeOfIter(const BlockIter& iter, int depth) const {
  Range range = program_->atoms.RangeOf(iter.binding, [&](AtomId var) {
    return depth_of_[var] >= depth ? program_->atoms[var].range : Range{0, 0};
  });
  // A predicate keeps the variable inside its extent.
  range.min = std::clamp<int64_t>(range.min, 0, iter.extent - 1);
  range.max = std::clamp<int64_t>(range.max, range.min, iter.extent - 1);
  return range;
}

int64_t Nest::ExtentOf(const Access& access, size_t dim) const {
  int64_t min = std::numeric_limits<int64_t>::max(), max = std::numeric_limits<int64_t>::min();
  for (const ir::IndexList* indices : access.indices) {
    const Range range =
        program_->atoms.RangeOf((*indices)[dim], [&](AtomId var) { return range_of_[var]; });
    min = std::min(min, range.min);
    max = std::max(max, range.max);
  }
  // Indices of guarded loads may be outside the buffer, but memory accesses are not.
  return std::clamp<int64_t>(max - min + 1, 1, program_->buffers[access.buffer].shape[dim]);
}

void Nest::Describe(Statement& statement) {
  const int depth = static_cast<int>(path_.size());
  statement.ops = CountOps(*program_, *statement.block, /*detect_mad=*/true);
  DescribeIters(statement);
  statement.executions.assign(depth + 1, 1.0);
  for (int d = depth - 1; d >= 0; --d) {
    statement.executions[d] =
        statement.executions[d + 1] * static_cast<double>(statement.loops[d].extent);
  }
  DescribeAccesses(statement);
  for (const NestLoop& loop : statement.loops) depth_of_[loop.var] = -1;
  for (const BlockIter& iter : statement.block->iters) loops_of_[iter.var] = 0;
}

void Nest::DescribeIters(Statement& statement) {
  const ir::Program& program = *program_;
  const Block& block = *statement.block;
  const int depth = static_cast<int>(path_.size());
  for (int d = 0; d < depth; ++d) depth_of_[program.node(path_[d]).var] = d;
  statement.iter_loops.clear();
  for (const BlockIter& iter : block.iters) {
    uint64_t& loops = loops_of_[iter.var];
    program.atoms.VisitVars(iter.binding, [&](AtomId var) {
      if (depth_of_[var] >= 0) loops |= uint64_t{1} << depth_of_[var];
    });
    statement.iter_loops.push_back(loops);
  }
  statement.loops.clear();
  for (int d = 0; d < depth; ++d) {
    const ir::Node& node = program.node(path_[d]);
    NestLoop loop{.node = path_[d],
                  .var = node.var,
                  .extent = node.extent.value,
                  .kind = node.loop,
                  .axis = node.axis};
    SetPosition(block, statement.iter_loops, uint64_t{1} << d, loop);
    statement.loops.push_back(loop);
  }
}

const ir::IndexList* Nest::IndicesOfGather(const ir::Expr& load) {
  const ir::ExprPool& pool = program_->pool;
  ir::IndexList& indices = gathers_.emplace_back(pool.IndicesOf(load));
  pool.VisitLoads(load.a, [&](const ir::Expr& read) {
    for (const ir::Index& index : pool.IndicesOf(read)) indices[load.gathered] += index;
  });
  return &indices;
}

void Nest::DescribeAccesses(Statement& statement) {
  const ir::Program& program = *program_;
  const Block& block = *statement.block;
  const int depth = static_cast<int>(path_.size());
  size_t accesses = 0;
  const auto add = [&](ir::BufferId buffer, const ir::IndexList* indices, AccessKind kind) {
    for (size_t a = 0; a < accesses; ++a) {
      Access& access = statement.accesses[a];
      if (access.buffer != buffer) continue;
      if (access.kind != kind) access.kind = AccessKind::kReadWrite;
      access.indices.push_back(indices);
      return;
    }
    if (accesses == statement.accesses.size()) statement.accesses.emplace_back();
    Access& access = statement.accesses[accesses++];
    access.buffer = buffer;
    access.kind = kind;
    access.element_bytes = ir::DTypeBytes(program.buffers[buffer].dtype);
    access.indices.clear();
    access.indices.push_back(indices);
  };
  const bool update = block.reducer != ir::Reducer::kNone;
  for (ir::BufferId output : block.outputs)
    add(output, &block.indices, update ? AccessKind::kReadWrite : AccessKind::kWrite);
  for (ir::ExprId value : block.values) {
    program.pool.VisitLoads(value, [&](const ir::Expr& load) {
      const ir::IndexList& indices = program.pool.IndicesOf(load);
      add(load.buffer, load.gathered < 0 ? &indices : IndicesOfGather(load), AccessKind::kRead);
    });
  }
  statement.accesses.resize(accesses);

  dimension_loops_.clear();
  for (Access& access : statement.accesses) {
    const size_t rank = access.indices[0]->size();
    access.varies = 0;
    for (size_t dim = 0; dim < rank; ++dim) {
      uint64_t loops = 0;
      for (const ir::IndexList* indices : access.indices) {
        program.atoms.VisitVars((*indices)[dim], [&](AtomId var) { loops |= loops_of_[var]; });
      }
      dimension_loops_.push_back(loops);
      access.varies |= loops;
    }
    access.touched.assign(depth + 1, 1.0);
    access.boxes.resize((depth + 1) * rank);
  }
  statement.touched_bytes.assign(depth + 1, 0.0);
  // From the innermost depth outwards: values that do not depend on a loop are copied from the next
  // inner depth.
  for (int d = depth; d >= 0; --d) {
    const uint64_t bit = d < depth ? uint64_t{1} << d : 0;
    for (const BlockIter& iter : block.iters) {
      if (d == depth || (loops_of_[iter.var] & bit) != 0)
        range_of_[iter.var] = RangeOfIter(iter, d);
    }
    const uint64_t* loops = dimension_loops_.data();
    for (Access& access : statement.accesses) {
      const size_t rank = access.indices[0]->size();
      int64_t* const box = access.boxes.data() + d * rank;
      double elements = 1;
      for (size_t dim = 0; dim < rank; ++dim, ++loops) {
        box[dim] = d == depth || (*loops & bit) != 0 ? ExtentOf(access, dim) : box[dim + rank];
        elements *= static_cast<double>(box[dim]);
      }
      access.touched[d] = elements;
      statement.touched_bytes[d] += elements * access.element_bytes;
    }
  }
}

size_t DepthOfUsers(const Nest& nest, const Statement& statement, ir::BufferId buffer) {
  size_t depth = statement.loops.size();
  for (const Statement& other : nest.statements()) {
    if (other.Find(buffer) == nullptr) continue;
    size_t common = 0;
    while (common < std::min(depth, other.loops.size()) &&
           other.loops[common].node == statement.loops[common].node)
      ++common;
    depth = common;
  }
  return depth;
}

int64_t StrideOf(const ir::Program& program, const Statement& statement, const Access& access,
                 int depth) {
  if ((access.varies >> depth & 1) == 0) return 0;
  const AtomId var = statement.loops[depth].var;
  const ir::Shape& shape = program.buffers[access.buffer].shape;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (const ir::IndexList* indices : access.indices) {
    int64_t dimension_stride = 1;
    for (size_t dim = indices->size(); dim-- > 0;) {
      int64_t slope = 0;
      for (size_t i = 0; i < statement.iter_loops.size(); ++i) {
        if ((statement.iter_loops[i] >> depth & 1) == 0) continue;
        const BlockIter& iter = statement.block->iters[i];
        const int64_t outer = Slope(program.atoms, (*indices)[dim], iter.var);
        if (outer != 0) slope += outer * Slope(program.atoms, iter.binding, var);
      }
      if (slope != 0) {
        smallest = std::min(smallest, std::abs(slope) * dimension_stride);
        break;
      }
      dimension_stride *= shape[dim];
    }
  }
  return smallest == std::numeric_limits<int64_t>::max() ? 0 : smallest;
}

}  // namespace hone::feature
