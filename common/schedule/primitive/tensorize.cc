#include "common/schedule/primitive/tensorize.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/ir/intrinsic.h"
#include "common/schedule/primitive.h"

namespace hone::schedule {
namespace {

using ir::AtomId;
using ir::Expr;
using ir::ExprId;
using ir::Index;
using ir::Intrinsic;
using ir::LoopKind;
using ir::NodeId;

// Compares the nest of a block with an instruction's description.
class Matcher {
 public:
  Matcher(ir::Program& program, const Intrinsic& intrinsic, NodeId block,
          const std::vector<NodeId>& chain)
      : program_(program),
        intrinsic_(intrinsic),
        description_(ir::DescriptionOf(intrinsic)),
        stage_(description_.stages.back()),
        block_(program.BlockOf(block)),
        chain_(chain) {
    for (const std::vector<ir::Axis>* axes : {&stage_.spatial, &stage_.reduce}) {
      std::copy_if(axes->begin(), axes->end(), std::back_inserter(axes_),
                   [](const ir::Axis& axis) { return axis.extent > 1; });
      if (axes == &stage_.spatial) spatial_ = axes_.size();
    }
  }

  // Returns "" or a description of the difference.
  std::string Mismatch() {
    if (chain_.size() != axes_.size())
      return absl::StrCat("the nest has ", chain_.size(), " loops, not ", axes_.size());
    for (size_t i = 0; i < axes_.size(); ++i) {
      const ir::Node& node = program_.node(chain_[i]);
      const std::string name = program_.atoms[node.var].name;
      if (node.extent.value != axes_[i].extent)
        return absl::StrCat("loop ", name, " has ", node.extent.value, " iterations, not ",
                            axes_[i].extent);
      const bool reduces = program_.IsReductionLoop(chain_[i], block_);
      if (reduces != (i >= spatial_))
        return absl::StrCat("the block ", reduces ? "reduces" : "does not reduce", " over loop ",
                            name);
      if (reduces && program_.IsSpatialLoop(chain_[i], block_))
        return absl::StrCat("loop ", name, " carries spatial and reduction iterations");
    }
    if (block_.reducer != stage_.reducer)
      return absl::StrCat("the block does not reduce by ", ir::ReducerName(stage_.reducer));
    for (const ir::Condition& predicate : block_.predicates) {
      if (Inner(predicate.index)) return "a predicate of the block depends on the nest";
    }
    for (const ir::Condition& guard : block_.guards) {
      if (Inner(program_.OverLoops(block_, guard.index)))
        return "a guard of the block depends on the nest";
    }
    if (!MatchesExpr(block_.values[0], stage_.values[0]))
      return "the expression or the layout of an operand differs";
    ir::IndexList indices;
    for (const ir::Axis& axis : stage_.spatial) indices.push_back(Index::Of(axis.var));
    if (!MatchesAccess(block_.outputs[0], block_.indices, stage_.tensors[0], indices)) {
      return absl::StrCat("the type or layout of ", program_.buffers[block_.outputs[0]].name,
                          " differs");
    }
    return "";
  }

 private:
  bool Inner(const Index& index) const {
    return absl::c_any_of(chain_, [&](NodeId loop) {
      return program_.atoms.DependsOn(index, program_.node(loop).var);
    });
  }

  bool MatchesExpr(ExprId actual, ExprId wanted) {
    const Expr a = program_.pool[actual], w = description_.pool[wanted];
    if (a.op != w.op || a.dtype != w.dtype || a.value != w.value) return false;
    if (a.op == ir::Op::kLoad) {
      if (a.gathered >= 0) return false;
      return MatchesAccess(a.buffer, program_.pool.IndicesOf(a), w.buffer,
                           description_.pool.IndicesOf(w));
    }
    if (a.op == ir::Op::kIndex) return false;
    if (a.op == ir::Op::kMul && MatchesExpr(a.a, w.b) && MatchesExpr(a.b, w.a)) return true;
    const auto operand = [&](ExprId own, ExprId other) {
      return (own == ir::kNoExpr) == (other == ir::kNoExpr) &&
             (own == ir::kNoExpr || MatchesExpr(own, other));
    };
    return operand(a.a, w.a) && operand(a.b, w.b) && operand(a.c, w.c);
  }

  // Whether the nest accesses a buffer with the offsets of the instruction's operand, relative to a
  // base that is constant while the nest runs.
  bool MatchesAccess(ir::BufferId buffer, const ir::IndexList& indices, ir::BufferId tensor,
                     const ir::IndexList& wanted) {
    if (program_.buffers[buffer].dtype != description_.tensors[tensor].dtype) return false;
    const ir::Buffer& memory = program_.buffers[buffer];
    Index flat;
    for (size_t d = 0; d < indices.size(); ++d) {
      flat *= memory.shape[d];
      flat += program_.OverLoops(block_, indices[d]);
    }
    // The nest may move only within the rows that a padded stride divides.
    for (const ir::StorageAlign& align : memory.aligns) {
      for (int d = 0; d <= align.axis; ++d) {
        if (Inner(program_.atoms.Simplify(program_.OverLoops(block_, indices[d])))) return false;
      }
    }
    flat = program_.atoms.Simplify(std::move(flat));
    Index inner;
    for (const ir::IndexTerm& term : flat.terms()) {
      const Index part = Index::Of(term.atom, term.coeff);
      if (Inner(part)) inner += part;
    }
    const ir::Shape& shape = description_.tensors[tensor].shape;
    Index expected;
    for (size_t d = 0; d < wanted.size(); ++d) {
      const Index index = Translated(wanted[d]);
      int64_t stride = 1;
      for (size_t e = d + 1; e < shape.size(); ++e) stride *= shape[e];
      if (d == 0 && intrinsic_.shape == Intrinsic::Shape::kTile) {
        if (index.terms().size() != 1 || index.terms()[0].coeff != 1) return false;
        stride = inner.CoeffOf(index.terms()[0].atom);
        if (stride < 1) return false;
      }
      expected.AddScaled(index, stride);
    }
    return program_.atoms.Simplify(std::move(expected)) == inner;
  }

  // Rewrites an index of the description over the loops of the nest.
  Index Translated(const Index& index) {
    Index result(index.constant());
    for (const ir::IndexTerm& term : index.terms()) {
      const ir::Atom& atom = description_.atoms[term.atom];
      Index value;
      if (atom.kind == ir::Atom::Kind::kVar) {
        for (size_t i = 0; i < axes_.size(); ++i) {
          if (axes_[i].var == term.atom) value = Index::Of(program_.node(chain_[i]).var);
        }
      } else {
        const Index argument = Translated(atom.argument);
        value = atom.kind == ir::Atom::Kind::kFloorDiv
                    ? program_.atoms.FloorDiv(argument, atom.divisor)
                    : program_.atoms.Mod(argument, atom.divisor);
      }
      result.AddScaled(value, term.coeff);
    }
    return result;
  }

  ir::Program& program_;
  const Intrinsic& intrinsic_;
  const ir::Workload& description_;
  const ir::Stage& stage_;
  const ir::Block block_;
  const std::vector<NodeId>& chain_;
  std::vector<ir::Axis> axes_;  // of the description, in loop order; those of one iteration are 0
  size_t spatial_ = 0;          // the number of spatial ones, which come first
};

}  // namespace

absl::Status Tensorize(ir::Program& original, NodeId loop, absl::string_view name) {
  const Intrinsic* intrinsic = ir::FindIntrinsic(name);
  if (intrinsic == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensorize: unknown intrinsic '", name.substr(0, 64), "'; known: ",
        absl::StrJoin(ir::Intrinsics(), ", ",
                      [](std::string* out, const Intrinsic& i) { absl::StrAppend(out, i.name); })));
  }
  ir::Program program = original;
  const bool blockized = program.node(loop).loop == ir::LoopKind::kTensor;
  if (!blockized) HONE_RETURN_IF_ERROR(Blockize(program, loop));
  if (blockized && (InTensorNest(program, program.node(loop).parent) ||
                    !program.node(loop).annotations.empty())) {
    return Illegal(original, loop,
                   "tensorize: the loop is not the outermost of its nest, or an instruction "
                   "computes it already");
  }
  std::vector<NodeId> chain;
  NodeId at = loop;
  for (; program.IsLoop(at); at = program.node(at).children[0]) chain.push_back(at);
  if (std::string why = Matcher(program, *intrinsic, at, chain).Mismatch(); !why.empty()) {
    return Illegal(original, loop,
                   absl::StrCat("tensorize: the nest is not what ", name, " computes: ", why));
  }
  ir::Set(program.node(loop).annotations, ir::Annotation::Key::kIntrinsic, intrinsic->id);
  original = std::move(program);
  return absl::OkStatus();
}

absl::Status Blockize(ir::Program& program, NodeId loop) {
  const NodeId parent = program.node(loop).parent;
  if (InTensorNest(program, parent))
    return Illegal(program, loop, "blockize: the loop is in a tensor nest");
  std::vector<NodeId> chain;
  for (NodeId at = loop;; at = program.node(at).children[0]) {
    if (program.IsBlock(at)) break;
    const ir::Node& node = program.node(at);
    if (node.loop != LoopKind::kSerial)
      return Illegal(program, at, "blockize: the loop is not serial");
    if (!node.annotations.empty()) return Illegal(program, at, "blockize: the loop is annotated");
    if (node.children.size() != 1)
      return Illegal(program, at, "blockize: the loop contains more than one nest");
    chain.push_back(at);
  }
  for (NodeId at : chain) program.node(at).loop = LoopKind::kTensor;
  return absl::OkStatus();
}

}  // namespace hone::schedule
