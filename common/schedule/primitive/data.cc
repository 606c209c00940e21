#include "common/schedule/primitive/data.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/schedule/primitive.h"

namespace hone::schedule {
namespace {

using ir::Index;
using ir::NodeId;

}  // namespace

CopyPlace PlaceOfCopy(ir::Program& program, NodeId reader_nest, bool ahead) {
  const NodeId kernel = program.node(reader_nest).parent;
  if (!ahead || program.node(kernel).name == ir::kPrepackKernel)
    return {kernel, program.PositionInParent(reader_nest)};
  if (program.node(program.kernels[0]).name != ir::kPrepackKernel) {
    program.nodes.push_back({.kind = ir::Node::Kind::kKernel, .name = ir::kPrepackKernel});
    program.kernels.insert(program.kernels.begin(), static_cast<NodeId>(program.nodes.size()) - 1);
  }
  return {program.kernels[0], program.node(program.kernels[0]).children.size()};
}

NodeId AddCopyNest(ir::Program& program, ir::BufferId from, ir::BufferId to, NodeId parent,
                   size_t position) {
  ir::Block block{.name = program.FreshBlockName(program.buffers[to].name), .outputs = {to}};
  ir::IndexList indices;
  NodeId at = parent;
  const ir::Shape shape = program.buffers[to].shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    const NodeId loop =
        program.NewLoop(absl::StrCat(block.name, ".a", d), ir::ExtentTable::Constant(shape[d]));
    const ir::AtomId var = program.atoms.AddVar(absl::StrCat("a", d), shape[d]);
    block.iters.push_back({var, shape[d], false, Index::Of(program.node(loop).var)});
    indices.push_back(Index::Of(var));
    program.Insert(at, d == 0 ? position : 0, loop);
    at = loop;
  }
  block.indices = indices;
  const ir::ExprId load = program.pool.Load(from, program.buffers[from].dtype, indices);
  block.values = {program.pool.Cast(program.buffers[to].dtype, load)};
  const NodeId node = program.NewBlock(std::move(block));
  program.Append(at, node);
  return node;
}

absl::StatusOr<ir::Scope> ScopeFromName(absl::string_view name) {
  for (const ir::Scope scope :
       {ir::Scope::kGlobal, ir::Scope::kShared, ir::Scope::kLocal, ir::Scope::kFragment}) {
    if (ir::ScopeName(scope) == name) return scope;
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown scope '", name.substr(0, 64),
                                                 "'; known: global, shared, local, fragment"));
}

absl::StatusOr<NodeId> CacheRead(ir::Program& program, NodeId block, absl::string_view buffer_name,
                                 ir::Scope scope) {
  const auto found =
      absl::c_find_if(program.buffers, [&](const ir::Buffer& b) { return b.name == buffer_name; });
  const auto buffer = static_cast<ir::BufferId>(found - program.buffers.begin());
  if (found == program.buffers.end() || !program.Reads(program.BlockOf(block), buffer)) {
    return Illegal(
        program, block,
        absl::StrCat("cache_read: the block reads no buffer called ", buffer_name.substr(0, 64)));
  }
  if (program.Gathers(program.BlockOf(block), buffer)) {
    return Illegal(program, block,
                   absl::StrCat("cache_read: the block reads ", program.buffers[buffer].name,
                                " at computed indices"));
  }
  const NodeId nest = program.NestOf(block);
  for (NodeId writer : program.WritersOf(buffer)) {
    if (program.IsUnder(writer, nest)) {
      return Illegal(program, writer,
                     "cache_read: the buffer is computed in the reader's own nest");
    }
    if (!program.BlockOf(writer).exact)
      return Illegal(program, writer,
                     "cache_read: the buffer is computed only as far as other blocks need");
  }
  const ir::Buffer source = program.buffers[buffer];
  if (source.padded)
    return Illegal(program, block,
                   absl::StrCat("cache_read: ", source.name, " is stored with padding"));
  // Only copies in scope global are made ahead of time. Others are made while the kernel runs.
  const bool ahead = source.constant && scope == ir::Scope::kGlobal;
  if (scope != ir::Scope::kGlobal &&
      program.node(program.KernelOf(block)).name == ir::kPrepackKernel) {
    return Illegal(program, block,
                   absl::StrCat("cache_read: ", source.name,
                                " is read ahead of time; its copy has scope global"));
  }
  program.buffers.push_back({.name = program.FreshBufferName(absl::StrCat(source.name, "_copy")),
                             .dtype = ir::LoadedAs(source.dtype),
                             .shape = source.shape,
                             .scope = scope,
                             .constant = ahead});
  const auto copy = static_cast<ir::BufferId>(program.buffers.size()) - 1;
  for (ir::ExprId& value : program.BlockOf(block).values) {
    value = program.pool.Rewrite(
        value,
        [&](const ir::Expr& load) {
          return load.buffer == buffer
                     ? program.pool.Load(copy, load.dtype,
                                         ir::IndexList(program.pool.IndicesOf(load)))
                     : ir::kNoExpr;
        },
        [](const ir::Index& index) { return index; });
  }
  const CopyPlace place = PlaceOfCopy(program, nest, ahead);
  return AddCopyNest(program, buffer, copy, place.parent, place.position);
}

absl::StatusOr<NodeId> CacheWrite(ir::Program& program, NodeId block, ir::Scope scope) {
  if (program.BlockOf(block).outputs.size() != 1)
    return Illegal(program, block, "cache_write: the block writes several buffers");
  const ir::BufferId buffer = program.BlockOf(block).outputs[0];
  if (program.WritersOf(buffer).size() != 1)
    return Illegal(program, block, "cache_write: another block writes the same buffer");
  const NodeId nest = program.NestOf(block);
  if (program.BlocksUnder(nest).size() != 1)
    return Illegal(program, nest, "cache_write: other blocks share the block's nest");
  // After compute_at, the copy would read elements that are not computed.
  if (!program.BlockOf(block).exact)
    return Illegal(program, block, "cache_write: the block computes only what other blocks need");
  const ir::Buffer target = program.buffers[buffer];
  if (target.padded)
    return Illegal(program, block,
                   absl::StrCat("cache_write: ", target.name, " is stored with padding"));
  // Partial sums of short floats are kept in f32; the copy rounds them once.
  const ir::DType dtype = ir::AccumulatorOf(program.BlockOf(block).reducer, target.dtype);
  if (dtype != target.dtype) {
    const ir::ExprId widened = program.pool.Widened(program.BlockOf(block).values[0]);
    program.BlockOf(block).values[0] = widened;
  }
  program.buffers.push_back({.name = program.FreshBufferName(absl::StrCat(target.name, "_cache")),
                             .dtype = dtype,
                             .shape = target.shape,
                             .scope = scope,
                             .constant = target.constant});
  const auto cache = static_cast<ir::BufferId>(program.buffers.size()) - 1;
  program.BlockOf(block).outputs[0] = cache;
  return AddCopyNest(program, cache, buffer, program.node(nest).parent,
                     program.PositionInParent(nest) + 1);
}

}  // namespace hone::schedule
