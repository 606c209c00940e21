#ifndef HONE_COMMON_IR_PROGRAM_H_
#define HONE_COMMON_IR_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "common/base/digest.h"
#include "common/ir/annotation.h"
#include "common/ir/expr.h"
#include "common/ir/extent.h"
#include "common/ir/index.h"
#include "common/ir/workload.h"

namespace hone::ir {

// Names a node of a program's tree. Stays valid while other nodes come and go, and in copies of the
// program.
using NodeId = int32_t;
inline constexpr NodeId kNoNode = -1;

// kTensor: belongs to a nest that is one unit (blockize), perhaps one instruction (tensorize); no
// primitive looks inside.
enum class LoopKind : uint8_t { kSerial, kParallel, kVectorized, kUnrolled, kBound, kTensor };
absl::string_view LoopKindName(LoopKind kind);

enum class ThreadAxis : uint8_t {
  kNone,
  kBlockX,
  kBlockY,
  kBlockZ,
  kThreadX,
  kThreadY,
  kThreadZ,
  kVThread
};
absl::string_view ThreadAxisName(ThreadAxis axis);

enum class Scope : uint8_t { kGlobal, kShared, kLocal, kFragment };
absl::string_view ScopeName(Scope scope);

// A stride of a buffer: that of `axis` is the smallest number of elements that is `offset` modulo
// `factor` and leaves room for the axes inside it.
struct StorageAlign {
  int axis = 0;
  int64_t factor = 1;
  int64_t offset = 0;
  friend bool operator==(const StorageAlign&, const StorageAlign&) = default;
};

struct Buffer {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  Scope scope = Scope::kGlobal;
  BufferId tensor = -1;  // the workload's tensor that is stored here, when it is an input or output
  bool input = false;
  bool output = false;
  bool constant =
      false;  // an input that is known ahead of time, or computed from such inputs alone
  bool padded =
      false;  // its layout has places that no element is stored at: they are never written
  std::vector<StorageAlign> aligns;  // of strides; one per axis at most
};

// An iteration variable of a block: what the block is a function of, whatever the loops around it
// are.
struct BlockIter {
  AtomId var = kNoAtom;
  int64_t extent = 1;
  bool reduce = false;
  Index binding;  // over the variables of the loops around the block
};

// The innermost statement: outputs[indices] = values, or outputs[indices] =
// reducer(outputs[indices], values). Expressions, indices and guards are over the iteration
// variables; predicates over the loops.
struct Block {
  std::string name;
  absl::InlinedVector<BlockIter, 6> iters;
  Reducer reducer = Reducer::kNone;
  // Of a reduction: the neutral element is stored first, when every reduction variable is 0. False
  // after decompose_reduction, which makes that a block of its own.
  bool has_init = false;
  // The loops around the block run through its iterations one to one (predicates left aside). False
  // where compute_at makes several of them compute the same element. What is legal depends on it,
  // what the block computes does not.
  bool exact = true;
  std::vector<BufferId> outputs;      // one per component
  IndexList indices;                  // of the outputs
  std::vector<ExprId> values;         // one per component
  std::vector<Condition> guards;      // where one fails the update does not happen (the init does)
  std::vector<Condition> predicates;  // where one fails nothing happens
};

struct Node {
  enum class Kind : uint8_t { kKernel, kLoop, kBlock, kBarrier, kRemoved };
  Kind kind = Kind::kLoop;
  LoopKind loop = LoopKind::kSerial;
  ThreadAxis axis = ThreadAxis::kNone;
  NodeId parent = kNoNode;
  absl::InlinedVector<NodeId, 4> children;
  AtomId var = kNoAtom;     // of a loop
  Extent extent;            // of a loop
  int32_t block = -1;       // of a block: its entry in blocks
  std::string name;         // of a kernel
  Annotations annotations;  // of a loop or block
};

// A loop nest of blocks that computes a workload, in any state of its schedule. Kernels run one
// after the other; the first may be the prepack kernel, which runs once and ahead of time and
// writes constant buffers only. A value type: nodes live in flat arrays, and a copy copies those.
// Primitives (common/schedule) change it; the interpreter (interpreter.h) is what it means; ToText
// prints any state.
class Program {
 public:
  // One serial nest per stage, in order, under the kernel "main". REQUIRES a validated workload.
  static Program FromWorkload(std::shared_ptr<const Workload> workload);

  const Workload& workload() const { return *workload_; }
  const std::shared_ptr<const Workload>& shared_workload() const { return workload_; }

  AtomTable atoms;
  ExprPool pool;
  ExtentTable extents;
  std::vector<Buffer> buffers;  // the first are the workload's tensors, with equal ids
  std::vector<Block> blocks;
  std::vector<Node> nodes;
  std::vector<NodeId> kernels;

  const Node& node(NodeId id) const { return nodes[id]; }
  Node& node(NodeId id) { return nodes[id]; }
  bool IsLoop(NodeId id) const { return Has(id) && nodes[id].kind == Node::Kind::kLoop; }
  bool IsBlock(NodeId id) const { return Has(id) && nodes[id].kind == Node::Kind::kBlock; }
  const Block& BlockOf(NodeId id) const { return blocks[nodes[id].block]; }
  Block& BlockOf(NodeId id) { return blocks[nodes[id].block]; }

  // Nodes.
  NodeId NewLoop(std::string var_name, Extent extent);
  NodeId NewBlock(Block block);
  void Append(NodeId parent, NodeId child) { Insert(parent, nodes[parent].children.size(), child); }
  void Insert(NodeId parent, size_t position, NodeId child);
  size_t PositionInParent(NodeId child) const;
  // Takes a node, and every loop around it that has no other content, out of the tree; also the
  // kernel if that is empty then and not the last one. The node itself stays usable.
  void Detach(NodeId id);
  void Remove(NodeId id) { nodes[id].kind = Node::Kind::kRemoved; }

  // Walks.
  std::vector<NodeId> LoopsAbove(NodeId id) const;   // outermost first
  bool IsUnder(NodeId id, NodeId ancestor) const;    // also when equal
  std::vector<NodeId> BlocksUnder(NodeId id) const;  // in order of execution
  std::vector<NodeId> AllBlocks() const;
  NodeId FindBlock(absl::string_view name) const;  // kNoNode when there is none
  NodeId KernelOf(NodeId id) const;
  std::vector<NodeId> WritersOf(BufferId buffer) const;  // blocks
  std::vector<NodeId> ReadersOf(
      BufferId buffer) const;  // blocks; an update does not count as a read
  bool Reads(const Block& block, BufferId buffer) const;

  // An index over a block's iteration variables, written over the loops.
  Index OverLoops(const Block& block, const Index& index);
  // Whether the loop's variable occurs in a reduction binding of the block.
  bool IsReductionLoop(NodeId loop, const Block& block) const;
  // Replaces a loop variable in every binding and predicate under a node.
  void SubstituteUnder(NodeId id, AtomId var, const Index& with);

  // Fresh names, so that text stays unambiguous.
  std::string FreshBufferName(absl::string_view base) const;
  std::string FreshBlockName(absl::string_view base) const;

  // Hash of the whole state: structure, bindings, kinds, buffers and expressions; not names, dead
  // nodes or unused buffers.
  Digest StructuralDigest() const;

  // Readable text of any state, e.g.
  //   kernel main
  //     parallel i0 in 8
  //       for k in 512
  //         block C: i = 64*i0 + i1, j = j0, k = k (reduce)
  //           C[i, j] = sum A[i, k] * B[k, j] init
  // With `mark`, that node's line begins with '>'.
  std::string ToText(NodeId mark = kNoNode) const;

 private:
  bool Has(NodeId id) const { return id >= 0 && id < static_cast<NodeId>(nodes.size()); }
  std::shared_ptr<const Workload> workload_;
};

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_PROGRAM_H_
