#include "client/cli/dataset/ansor_lowering.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hone::cli {
namespace {

using ir::LoopKind;
using ir::NodeId;

// What UnrollLoop knows of a statement after it has visited it.
struct VisitedStatement {
  int64_t steps = 0;  // stores, after unrolling
  int depth = 0;      // of unrolled loops
  bool has_loop = false;

  void Join(const VisitedStatement& other) {
    steps += other.steps;
    depth = std::max(depth, other.depth);
    has_loop |= other.has_loop;
  }
  bool MayUnroll(int64_t extent, int64_t limit) const {
    return !has_loop && depth <= 8 && extent <= limit && extent * steps <= limit;
  }
  void Unroll(int64_t extent) {
    steps = std::min(steps * extent, 2 * kMostUnrolledSteps);
    ++depth;
  }
};

class UnrollVisitor {
 public:
  UnrollVisitor(const ir::Program& program, const std::map<NodeId, int64_t>& limits)
      : program_(program), limits_(limits) {}

  VisitedStatement Visit(NodeId id, int64_t limit) {
    const ir::Node& node = program_.node(id);
    if (node.kind == ir::Node::Kind::kBlock) return {.steps = 1};
    if (const auto own = limits_.find(id); own != limits_.end()) limit = own->second;
    VisitedStatement visited;
    for (const NodeId child : node.children) visited.Join(Visit(child, limit));
    if (node.kind != ir::Node::Kind::kLoop) return visited;
    const int64_t extent = node.extent.value;
    const bool is_serial = node.loop == LoopKind::kSerial;
    // A loop of one iteration, lanes and GPU threads are no loops in TVM.
    if (extent > 1 &&
        (node.loop == LoopKind::kUnrolled || (is_serial && visited.MayUnroll(extent, limit)))) {
      visited.Unroll(extent);
      if (is_serial) unrolled_.push_back(id);
    } else if (extent > 1 && (is_serial || node.loop == LoopKind::kParallel)) {
      visited.has_loop = true;
    }
    visited.Join(InitsBefore(id, limit));
    return visited;
  }

  std::vector<NodeId> Finish() && { return std::move(unrolled_); }

 private:
  // The nest that TVM puts before the outermost reduction loop of a block, to set the results to 0.
  VisitedStatement InitsBefore(NodeId loop, int64_t limit) const {
    VisitedStatement all;
    for (const NodeId id : program_.BlocksUnder(loop)) {
      const ir::Block& block = program_.BlockOf(id);
      const std::vector<NodeId> above = program_.LoopsAbove(id);
      const auto first = absl::c_find_if(
          above, [&](NodeId each) { return program_.IsReductionLoop(each, block); });
      if (first == above.end() || *first != loop) continue;
      VisitedStatement init{.steps = 1};
      for (auto each = above.end(); each != first;) {
        const ir::Node& node = program_.node(*--each);
        if (node.extent.value == 1 || node.loop != LoopKind::kSerial ||
            program_.IsReductionLoop(*each, block)) {
          continue;
        }
        if (init.MayUnroll(node.extent.value, limit)) {
          init.Unroll(node.extent.value);
        } else {
          init.has_loop = true;
        }
      }
      all.Join(init);
    }
    return all;
  }

  const ir::Program& program_;
  const std::map<NodeId, int64_t>& limits_;
  std::vector<NodeId> unrolled_;
};

}  // namespace

std::vector<NodeId> LoopsThatTvmUnrolls(const ir::Program& program,
                                        const std::map<NodeId, int64_t>& limits) {
  UnrollVisitor visitor(program, limits);
  for (const NodeId kernel : program.kernels) visitor.Visit(kernel, 0);
  return std::move(visitor).Finish();
}

std::string LayoutInOrderOfLoops(const ir::Program& program, NodeId reader, ir::BufferId constant,
                                 absl::Span<const AxisPart> parts) {
  const ir::Block& block = program.BlockOf(reader);
  const ir::Shape& shape = program.buffers[constant].shape;
  // Of each axis of the reader, the dimension of the constant that it indexes.
  std::vector<size_t> dimension_of(block.iters.size(), shape.size());
  for (const ir::ExprId value : block.values) {
    program.pool.VisitLoads(value, [&](const ir::Expr& load) {
      if (load.buffer != constant) return;
      const ir::IndexList& indices = program.pool.IndicesOf(load);
      for (size_t d = 0; d < indices.size(); ++d) {
        for (size_t axis = 0; axis < block.iters.size(); ++axis) {
          if (indices[d].SingleAtom() == block.iters[axis].var) dimension_of[axis] = d;
        }
      }
    });
  }
  // Neighbouring parts of a dimension are one part.
  std::vector<std::pair<size_t, int64_t>> joined;
  for (const AxisPart& part : parts) {
    const size_t d = part.axis < dimension_of.size() ? dimension_of[part.axis] : shape.size();
    if (d == shape.size() || part.extent == 1) continue;
    if (!joined.empty() && joined.back().first == d) {
      joined.back().second *= part.extent;
    } else {
      joined.push_back({d, part.extent});
    }
  }
  const auto name = [](size_t dimension) {
    return std::string(1, static_cast<char>('a' + dimension));
  };
  std::vector<int64_t> inner(shape.size(), 1);
  std::vector<std::string> pieces, names;
  for (auto part = joined.rbegin(); part != joined.rend(); ++part) {
    const auto& [d, extent] = *part;
    std::string& piece = pieces.emplace_back(name(d));
    if (inner[d] > 1) absl::StrAppend(&piece, " / ", inner[d]);
    inner[d] *= extent;
    if (inner[d] < shape[d]) absl::StrAppend(&piece, " % ", extent);
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (inner[d] != shape[d]) return "";
    names.push_back(name(d));
    if (shape[d] == 1) pieces.push_back(name(d));
  }
  std::reverse(pieces.begin(), pieces.end());
  return absl::StrCat(absl::StrJoin(names, ", "), " -> ", absl::StrJoin(pieces, ", "));
}

}  // namespace hone::cli
