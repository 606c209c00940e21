#include "common/schedule/primitive/padding.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/data.h"
#include "common/schedule/primitive/placement.h"

namespace hone::schedule {
namespace {

using ir::AtomId;
using ir::BufferId;
using ir::Extent;
using ir::ExtentTable;
using ir::Index;
using ir::NodeId;

// An iteration variable whose extent grows.
struct Longer {
  size_t iter;
  NodeId loop;
  Extent extent;  // the new one
};

class Padder {
 public:
  Padder(ir::Program& program, NodeId block)
      : p_(program), block_(block), content_(program.BlockOf(block)) {}

  absl::Status Check(absl::Span<const Extent> factors) {
    if (content_.reducer != ir::Reducer::kSum || !content_.has_init)
      return Fail("the block is not a sum with its init");
    if (!content_.predicates.empty()) return Fail("the block has predicates");
    if (!content_.exact) return Fail("the block computes only what other blocks need");
    if (p_.WritersOf(content_.outputs[0]).size() != 1)
      return Fail("another block writes the same buffer");
    if (p_.buffers[content_.outputs[0]].padded) return Fail("the result is stored with padding");
    if (factors.size() != content_.iters.size()) {
      return Fail(absl::StrCat(factors.size(), " factors for ", content_.iters.size(),
                               " iteration variables"));
    }
    nest_ = p_.NestOf(block_);
    if (p_.BlocksUnder(nest_).size() != 1) return Fail("other blocks share the block's nest");
    for (size_t i = 0; i < factors.size(); ++i) HONE_RETURN_IF_ERROR(CheckIter(i, factors[i]));
    HONE_RETURN_IF_ERROR(CheckExpr(content_.values[0]));
    HONE_RETURN_IF_ERROR(CheckPlaces());
    return CheckReductions();
  }

  std::vector<NodeId> Apply() {
    std::vector<NodeId> made;
    for (BufferId buffer : read_) made.push_back(PadInput(buffer));
    for (const Longer& longer : longer_) {
      p_.node(longer.loop).extent = longer.extent;
      p_.atoms.SetExtent(p_.node(longer.loop).var, longer.extent.value);
      p_.atoms.SetExtent(content_.iters[longer.iter].var, longer.extent.value);
      p_.BlockOf(block_).iters[longer.iter].extent = longer.extent.value;
    }
    const NodeId back = CropOutput();
    if (back != ir::kNoNode) made.push_back(back);
    return made;
  }

 private:
  absl::Status Fail(absl::string_view what) const {
    return Illegal(p_, block_, absl::StrCat("pad_einsum: ", what));
  }
  const std::string& NameOf(size_t iter) const { return p_.atoms[content_.iters[iter].var].name; }

  absl::Status CheckIter(size_t i, Extent factor) {
    const ir::BlockIter& iter = content_.iters[i];
    if (factor.value < 1 || factor.value > ir::kMaxElements)
      return Fail(absl::StrCat("factor ", factor.value, " of ", NameOf(i)));
    if (iter.extent % factor.value == 0) return absl::OkStatus();
    const AtomId var = iter.binding.SingleAtom();
    NodeId loop = ir::kNoNode;
    for (NodeId at : p_.LoopsAbove(block_)) {
      if (p_.node(at).var == var) loop = at;
    }
    if (loop == ir::kNoNode || p_.node(loop).extent.value != iter.extent)
      return Fail(absl::StrCat(NameOf(i), " is not bound to a loop of its own"));
    for (size_t other = 0; other < content_.iters.size(); ++other) {
      if (other != i && p_.atoms.DependsOn(content_.iters[other].binding, var))
        return Fail(absl::StrCat(NameOf(i), " is not bound to a loop of its own"));
    }
    if (p_.node(loop).loop != ir::LoopKind::kSerial || !p_.node(loop).annotations.empty()) {
      return Illegal(p_, loop, "pad_einsum: the loop is not serial, or annotated");
    }
    for (const ir::Condition& guard : content_.guards) {
      if (p_.atoms.DependsOn(guard.index, iter.var))
        return Fail(absl::StrCat("a guard depends on ", NameOf(i)));
    }
    if (!iter.reduce) {
      const bool plain = absl::c_all_of(content_.indices, [&](const Index& index) {
        return index.SingleAtom() == iter.var || !p_.atoms.DependsOn(index, iter.var);
      });
      if (!plain) return Fail(absl::StrCat("the result is not stored at ", NameOf(i)));
    }
    const Extent extent = p_.extents.Mul(p_.extents.CeilDiv(p_.node(loop).extent, factor), factor);
    longer_.push_back({i, loop, extent});
    return absl::OkStatus();
  }

  // The padded variable that an index consists of; nullptr if the index depends on none.
  absl::StatusOr<const Longer*> PaddedIn(const Index& index) const {
    for (const Longer& longer : longer_) {
      const AtomId var = content_.iters[longer.iter].var;
      if (index.SingleAtom() == var) return &longer;
      if (p_.atoms.DependsOn(index, var))
        return Fail(absl::StrCat("a load does not use ", NameOf(longer.iter), " as a plain index"));
    }
    return nullptr;
  }

  absl::Status CheckExpr(ir::ExprId id) {
    const ir::Expr expr = p_.pool[id];
    if (expr.op == ir::Op::kMul || expr.op == ir::Op::kCast) {
      HONE_RETURN_IF_ERROR(CheckExpr(expr.a));
      return expr.op == ir::Op::kMul ? CheckExpr(expr.b) : absl::OkStatus();
    }
    if (expr.op != ir::Op::kLoad) return Fail("the value is not a product of loads and casts");
    if (expr.gathered >= 0) return Fail("a load has a computed index");
    const ir::IndexList indices = p_.pool.IndicesOf(expr);
    bool padded = false;
    for (const Index& index : indices) {
      HONE_ASSIGN_OR_RETURN(const Longer* longer, PaddedIn(index));
      padded |= longer != nullptr;
    }
    loads_.push_back({expr.buffer, indices});
    if (!padded) return absl::OkStatus();
    for (NodeId writer : p_.WritersOf(expr.buffer)) {
      if (p_.IsUnder(writer, nest_))
        return Illegal(p_, writer, "pad_einsum: an operand is computed in the block's own nest");
      if (!p_.BlockOf(writer).exact)
        return Illegal(p_, writer,
                       "pad_einsum: an operand is computed only as far as other blocks need");
    }
    if (p_.buffers[expr.buffer].padded)
      return Fail(absl::StrCat(p_.buffers[expr.buffer].name, " is stored with padding"));
    if (!absl::c_linear_search(read_, expr.buffer)) read_.push_back(expr.buffer);
    return absl::OkStatus();
  }

  // Checks that all loads of a padded operand can become loads of its padded copy.
  absl::Status CheckPlaces() const {
    for (const auto& [buffer, places] : loads_) {
      const bool padded = absl::c_linear_search(read_, buffer);
      if (padded && places != PlacesOf(buffer)) {
        return Fail(
            absl::StrCat("the block reads ", p_.buffers[buffer].name, " at several places"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckReductions() const {
    const bool is_float = ir::IsFloat(p_.pool[content_.values[0]].dtype);
    for (const Longer& longer : longer_) {
      const ir::BlockIter& iter = content_.iters[longer.iter];
      if (!iter.reduce) continue;
      const auto depends = [&](const auto& load) {
        return absl::c_any_of(load.second,
                              [&](const Index& index) { return index.SingleAtom() == iter.var; });
      };
      const bool zero =
          is_float ? absl::c_all_of(loads_, depends) : absl::c_any_of(loads_, depends);
      if (!zero)
        return Fail(absl::StrCat("the products over ", NameOf(longer.iter),
                                 " need not be zero where it is padded"));
    }
    return absl::OkStatus();
  }

  const ir::IndexList& PlacesOf(BufferId buffer) const {
    return absl::c_find_if(loads_, [&](const auto& load) { return load.first == buffer; })->second;
  }

  // Copies an operand to a larger buffer, padded with zeros, which the block then reads.
  NodeId PadInput(BufferId from) {
    const ir::IndexList places = PlacesOf(from);
    const ir::Buffer source = p_.buffers[from];
    ir::Buffer larger{.name = p_.FreshBufferName(absl::StrCat(source.name, "_pad")),
                      .dtype = ir::LoadedAs(source.dtype),
                      .shape = source.shape,
                      .constant = source.constant};
    std::vector<ir::Condition> inside;
    std::vector<Index> vars;
    ir::Block pad{
        .name = p_.FreshBlockName(larger.name), .reducer = ir::Reducer::kSum, .has_init = true};
    CopyPlace place = PlaceOfCopy(p_, nest_, source.constant);
    NodeId at = place.parent;
    for (size_t d = 0; d < places.size(); ++d) {
      const Longer* longer = PaddedIn(places[d]).value();
      const int64_t old = longer == nullptr ? source.shape[d] : content_.iters[longer->iter].extent;
      if (longer != nullptr) larger.shape[d] = longer->extent.value;
      const NodeId loop =
          p_.NewLoop(absl::StrCat(pad.name, ".a", d),
                     longer == nullptr ? ExtentTable::Constant(old) : longer->extent);
      const AtomId var = p_.atoms.AddVar(absl::StrCat("a", d), larger.shape[d]);
      pad.iters.push_back({var, larger.shape[d], false, Index::Of(p_.node(loop).var)});
      pad.indices.push_back(Index::Of(var));
      if (longer != nullptr) pad.guards.push_back({Index::Of(var), old});
      p_.Insert(at, d == 0 ? place.position : 0, loop);
      at = loop;
    }
    p_.buffers.push_back(std::move(larger));
    const auto to = static_cast<BufferId>(p_.buffers.size()) - 1;
    pad.outputs = {to};
    pad.values = {p_.pool.Load(from, source.dtype, pad.indices)};
    const NodeId node = p_.NewBlock(std::move(pad));
    p_.Append(at, node);
    ir::ExprId& value = p_.BlockOf(block_).values[0];
    value = p_.pool.Rewrite(
        value,
        [&](const ir::Expr& load) {
          return load.buffer == from
                     ? p_.pool.Load(to, load.dtype, ir::IndexList(p_.pool.IndicesOf(load)))
                     : ir::kNoExpr;
        },
        [](const Index& index) { return index; });
    return node;
  }

  // Makes the block write to a larger buffer whose inside is copied back.
  NodeId CropOutput() {
    const BufferId output = content_.outputs[0];
    const ir::Buffer source = p_.buffers[output];
    ir::Shape shape = source.shape;
    bool grows = false;
    for (size_t d = 0; d < shape.size(); ++d) {
      for (const Longer& longer : longer_) {
        if (content_.iters[longer.iter].reduce ||
            content_.indices[d].SingleAtom() != content_.iters[longer.iter].var)
          continue;
        shape[d] = longer.extent.value;
        grows = true;
      }
    }
    if (!grows) return ir::kNoNode;
    p_.buffers.push_back({.name = p_.FreshBufferName(absl::StrCat(source.name, "_pad")),
                          .dtype = source.dtype,
                          .shape = shape,
                          .constant = source.constant});
    const auto larger = static_cast<BufferId>(p_.buffers.size()) - 1;
    p_.BlockOf(block_).outputs[0] = larger;
    return AddCopyNest(p_, larger, output, p_.node(nest_).parent, p_.PositionInParent(nest_) + 1);
  }

  ir::Program& p_;
  NodeId block_;
  const ir::Block content_;
  NodeId nest_ = ir::kNoNode;
  std::vector<Longer> longer_;
  std::vector<std::pair<BufferId, ir::IndexList>> loads_;
  std::vector<BufferId> read_;  // buffers that need a larger copy
};

}  // namespace

absl::StatusOr<std::vector<NodeId>> PadEinsum(ir::Program& program, NodeId block,
                                              absl::Span<const Extent> factors) {
  Padder padder(program, block);
  HONE_RETURN_IF_ERROR(padder.Check(factors));
  return padder.Apply();
}

absl::StatusOr<NodeId> DecomposePadding(ir::Program& program, NodeId block, NodeId loop) {
  const ir::Block& content = program.BlockOf(block);
  const bool pads =
      content.reducer == ir::Reducer::kSum && content.has_init &&
      absl::c_none_of(content.iters, [](const ir::BlockIter& iter) { return iter.reduce; });
  if (!pads) return Illegal(program, block, "decompose_padding: the block does not pad");
  HONE_ASSIGN_OR_RETURN(const NodeId zeros, DecomposeReduction(program, block, loop));
  // Where the guards hold, 0 + x is x.
  program.BlockOf(block).reducer = ir::Reducer::kNone;
  return zeros;
}

}  // namespace hone::schedule
