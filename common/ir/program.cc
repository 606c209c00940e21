#include "common/ir/program.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace hone::ir {
namespace {

using Key = Annotation::Key;

constexpr AnnotationInfo kInfos[] = {
    {Key::kThreads, "threads", true, false, 1, 1024},
    {Key::kOmpSchedule, "omp_schedule", true, false, 0, 1 << 20},
    {Key::kPrefetch, "prefetch", true, false, 0, 64},
    {Key::kNonTemporal, "nontemporal", false, true, 1, 1},
    {Key::kDoubleBuffer, "double_buffer", false, true, 1, 1},
    {Key::kSoftwarePipeline, "software_pipeline", true, false, 2, 8},
    {Key::kAsyncCopy, "async_copy", false, true, 1, 1},
    {Key::kIntrinsic, "intrinsic", true, false, 0, 1 << 20},
};

// Returns the blocks of the tree for which the condition holds, in execution order. Scans the
// nodes, which is faster than walking the tree for the few blocks that are found.
std::vector<NodeId> BlocksWhere(const Program& program,
                                absl::FunctionRef<bool(const Block&)> holds) {
  std::vector<NodeId> found;
  for (NodeId id = 0; id < static_cast<NodeId>(program.nodes.size()); ++id) {
    if (!program.IsBlock(id) || !holds(program.BlockOf(id))) continue;
    const NodeId kernel = program.KernelOf(id);  // none if the block is detached
    if (absl::c_linear_search(program.kernels, kernel)) found.push_back(id);
  }
  if (found.size() < 2) return found;
  std::vector<NodeId> ordered = program.AllBlocks();
  std::erase_if(ordered, [&](NodeId id) { return !absl::c_linear_search(found, id); });
  return ordered;
}

}  // namespace

const AnnotationInfo& InfoOf(Key key) { return kInfos[static_cast<int>(key)]; }

const AnnotationInfo* FindAnnotation(absl::string_view name) {
  const auto* found =
      absl::c_find_if(kInfos, [&](const AnnotationInfo& info) { return info.name == name; });
  return found == std::end(kInfos) ? nullptr : found;
}

int64_t ValueOf(const Annotations& annotations, Key key, int64_t fallback) {
  for (const Annotation& annotation : annotations) {
    if (annotation.key == key) return annotation.value;
  }
  return fallback;
}

void Set(Annotations& annotations, Key key, int64_t value) {
  auto at = absl::c_find_if(annotations, [&](const Annotation& a) { return a.key >= key; });
  if (at != annotations.end() && at->key == key) {
    at->value = value;
  } else {
    annotations.insert(at, {key, value});
  }
}

std::string PrintAnnotations(const Annotations& annotations) {
  std::string text;
  for (const Annotation& annotation : annotations)
    absl::StrAppend(&text, " @", InfoOf(annotation.key).name, "=", annotation.value);
  return text;
}

absl::string_view LoopKindName(LoopKind kind) {
  constexpr absl::string_view kNames[] = {"for",      "parallel", "vectorized",
                                          "unrolled", "bound",    "tensor"};
  return kNames[static_cast<int>(kind)];
}

absl::string_view ThreadAxisName(ThreadAxis axis) {
  constexpr absl::string_view kNames[] = {"",
                                          "blockIdx.x",
                                          "blockIdx.y",
                                          "blockIdx.z",
                                          "threadIdx.x",
                                          "threadIdx.y",
                                          "threadIdx.z",
                                          "vthread"};
  return kNames[static_cast<int>(axis)];
}

absl::string_view ScopeName(Scope scope) {
  constexpr absl::string_view kNames[] = {"global", "shared", "local", "fragment"};
  return kNames[static_cast<int>(scope)];
}

Program Program::FromWorkload(std::shared_ptr<const Workload> workload) {
  Program program;
  program.workload_ = std::move(workload);
  const Workload& w = program.workload();
  program.atoms = w.atoms;
  program.pool = w.pool;
  for (size_t t = 0; t < w.tensors.size(); ++t) {
    const Tensor& tensor = w.tensors[t];
    program.buffers.push_back(
        {.name = tensor.name,
         .dtype = tensor.dtype,
         .shape = tensor.shape,
         .tensor = tensor.input || tensor.output ? static_cast<BufferId>(t) : -1,
         .input = tensor.input,
         .output = tensor.output,
         .constant = tensor.constant});
  }
  program.nodes.reserve(64);
  program.nodes.push_back({.kind = Node::Kind::kKernel, .name = kMainKernel});
  program.kernels.push_back(0);
  for (const Stage& stage : w.stages) {
    Block block{.name = w.tensors[stage.tensors[0]].name,
                .reducer = stage.reducer,
                .has_init = stage.reducer != Reducer::kNone,
                .outputs = stage.tensors,
                .values = stage.values,
                .guards = stage.guards};
    // Comparisons use the stored value.
    if (ReducerArity(stage.reducer) > 1) {
      for (ExprId& value : block.values) value = program.pool.Rounded(value);
    }
    NodeId parent = 0;
    for (const auto* axes : {&stage.spatial, &stage.reduce}) {
      for (const Axis& axis : *axes) {
        const NodeId loop =
            program.NewLoop(w.atoms[axis.var].name, ExtentTable::Constant(axis.extent));
        block.iters.push_back(
            {axis.var, axis.extent, axes == &stage.reduce, Index::Of(program.node(loop).var)});
        if (axes == &stage.spatial) block.indices.push_back(Index::Of(axis.var));
        program.Append(parent, loop);
        parent = loop;
      }
    }
    program.Append(parent, program.NewBlock(std::move(block)));
  }
  return program;
}

NodeId Program::NewLoop(std::string var_name, Extent extent) {
  Node& loop = nodes.emplace_back();
  loop.kind = Node::Kind::kLoop;
  loop.extent = extent;
  loop.var = atoms.AddVar(std::move(var_name), extent.value);
  return static_cast<NodeId>(nodes.size()) - 1;
}

NodeId Program::NewBlock(Block block) {
  Node& node = nodes.emplace_back();
  node.kind = Node::Kind::kBlock;
  node.block = static_cast<int32_t>(blocks.size());
  blocks.push_back(std::move(block));
  return static_cast<NodeId>(nodes.size()) - 1;
}

void Program::Insert(NodeId parent, size_t position, NodeId child) {
  auto& children = nodes[parent].children;
  children.insert(children.begin() + position, child);
  nodes[child].parent = parent;
}

size_t Program::PositionInParent(NodeId child) const {
  const auto& children = nodes[nodes[child].parent].children;
  return absl::c_find(children, child) - children.begin();
}

void Program::Detach(NodeId id) {
  NodeId child = id;
  while (true) {
    const NodeId parent = nodes[child].parent;
    nodes[parent].children.erase(nodes[parent].children.begin() + PositionInParent(child));
    nodes[child].parent = kNoNode;
    if (child != id) Remove(child);
    if (!nodes[parent].children.empty()) return;
    if (nodes[parent].kind != Node::Kind::kLoop) {
      if (kernels.size() == 1) return;
      kernels.erase(absl::c_find(kernels, parent));
      Remove(parent);
      return;
    }
    child = parent;
  }
}

std::vector<NodeId> Program::LoopsAbove(NodeId id) const {
  std::vector<NodeId> loops;
  loops.reserve(16);
  for (NodeId at = nodes[id].parent; at != kNoNode; at = nodes[at].parent) {
    if (nodes[at].kind == Node::Kind::kLoop) loops.push_back(at);
  }
  absl::c_reverse(loops);
  return loops;
}

bool Program::IsUnder(NodeId id, NodeId ancestor) const {
  for (NodeId at = id; at != kNoNode; at = nodes[at].parent) {
    if (at == ancestor) return true;
  }
  return false;
}

std::vector<NodeId> Program::BlocksUnder(NodeId id) const {
  std::vector<NodeId> found;
  found.reserve(8);
  const auto visit = [&](auto&& self, NodeId at) -> void {
    if (nodes[at].kind == Node::Kind::kBlock) found.push_back(at);
    for (NodeId child : nodes[at].children) self(self, child);
  };
  visit(visit, id);
  return found;
}

std::vector<NodeId> Program::AllBlocks() const {
  std::vector<NodeId> found;
  for (NodeId kernel : kernels) {
    const std::vector<NodeId> under = BlocksUnder(kernel);
    found.insert(found.end(), under.begin(), under.end());
  }
  return found;
}

NodeId Program::FindBlock(absl::string_view name) const {
  const std::vector<NodeId> found =
      BlocksWhere(*this, [&](const Block& block) { return block.name == name; });
  return found.empty() ? kNoNode : found[0];
}

NodeId Program::KernelOf(NodeId id) const {
  while (id != kNoNode && nodes[id].kind != Node::Kind::kKernel) id = nodes[id].parent;
  return id;
}

NodeId Program::NestOf(NodeId id) const {
  for (NodeId parent = nodes[id].parent;
       parent != kNoNode && nodes[parent].kind != Node::Kind::kKernel; parent = nodes[id].parent)
    id = parent;
  return id;
}

bool Program::Reads(const Block& block, BufferId buffer) const {
  bool reads = false;
  for (ExprId value : block.values) {
    pool.VisitLoads(value, [&](const Expr& load) { reads |= load.buffer == buffer; });
  }
  return reads;
}

bool Program::Gathers(const Block& block, BufferId buffer) const {
  bool gathers = false;
  for (ExprId value : block.values) {
    pool.VisitLoads(
        value, [&](const Expr& load) { gathers |= load.buffer == buffer && load.gathered >= 0; });
  }
  return gathers;
}

std::vector<NodeId> Program::WritersOf(BufferId buffer) const {
  return BlocksWhere(
      *this, [&](const Block& block) { return absl::c_linear_search(block.outputs, buffer); });
}

std::vector<NodeId> Program::ReadersOf(BufferId buffer) const {
  return BlocksWhere(*this, [&](const Block& block) { return Reads(block, buffer); });
}

Index Program::OverLoops(const Block& block, const Index& index) {
  return atoms.Substitute(index, [&](AtomId var) -> const Index* {
    for (const BlockIter& iter : block.iters) {
      if (iter.var == var) return &iter.binding;
    }
    return nullptr;
  });
}

bool Program::IsSpatialLoop(NodeId loop, const Block& block) const {
  return absl::c_any_of(block.iters, [&](const BlockIter& iter) {
    return !iter.reduce && atoms.DependsOn(iter.binding, nodes[loop].var);
  });
}

bool Program::IsReductionLoop(NodeId loop, const Block& block) const {
  return absl::c_any_of(block.iters, [&](const BlockIter& iter) {
    return iter.reduce && atoms.DependsOn(iter.binding, nodes[loop].var);
  });
}

void Program::SubstituteUnder(NodeId id, AtomId var, const Index& with) {
  const auto replacement = [&](AtomId v) { return v == var ? &with : nullptr; };
  for (NodeId node : BlocksUnder(id)) {
    Block& block = BlockOf(node);
    for (BlockIter& iter : block.iters) atoms.SubstituteIn(iter.binding, replacement);
    for (Condition& predicate : block.predicates) atoms.SubstituteIn(predicate.index, replacement);
  }
}

std::string Program::FreshBufferName(absl::string_view base) const {
  for (int suffix = 0;; ++suffix) {
    std::string name = suffix == 0 ? std::string(base) : absl::StrCat(base, suffix);
    if (absl::c_none_of(buffers, [&](const Buffer& b) { return b.name == name; })) return name;
  }
}

std::string Program::FreshBlockName(absl::string_view base) const {
  for (int suffix = 0;; ++suffix) {
    std::string name = suffix == 0 ? std::string(base) : absl::StrCat(base, suffix);
    if (absl::c_none_of(blocks, [&](const Block& b) { return b.name == name; })) return name;
  }
}

NodeId Clone(Program& program, NodeId id, absl::string_view suffix, Replacements& replaced) {
  const Node node = program.node(id);
  const auto replacement = [&](AtomId var) -> const Index* {
    for (const auto& [from, to] : replaced) {
      if (from == var) return &to;
    }
    return nullptr;
  };
  if (node.kind == Node::Kind::kBlock) {
    Block block = program.BlockOf(id);
    block.name = program.FreshBlockName(absl::StrCat(block.name, suffix));
    for (BlockIter& iter : block.iters)
      iter.binding = program.atoms.Substitute(iter.binding, replacement);
    for (Condition& predicate : block.predicates)
      predicate.index = program.atoms.Substitute(predicate.index, replacement);
    const NodeId copy = program.NewBlock(std::move(block));
    program.node(copy).annotations = node.annotations;
    return copy;
  }
  const NodeId copy = program.NewLoop(program.atoms[node.var].name, node.extent);
  program.node(copy).loop = node.loop;
  program.node(copy).axis = node.axis;
  program.node(copy).annotations = node.annotations;
  replaced.emplace_back(node.var, Index::Of(program.node(copy).var));
  for (NodeId child : node.children) program.Append(copy, Clone(program, child, suffix, replaced));
  return copy;
}

}  // namespace hone::ir
