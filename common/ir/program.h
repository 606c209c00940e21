#ifndef HONE_COMMON_IR_PROGRAM_H_
#define HONE_COMMON_IR_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "common/base/digest.h"
#include "common/ir/expr.h"
#include "common/ir/index.h"
#include "common/ir/workload.h"

namespace hone::ir {

// A hint of the schedule for a loop or block. Hints never change what the program computes. Program
// digests contain the keys' numbers, so a number is never reused.
struct Annotation {
  enum class Key : uint8_t {
    kThreads = 0,  // parallel loop: number of threads; 1 means no fork
    // parallel loop: 0 for equal shares; n > 0: threads fetch n iterations at a time
    kOmpSchedule = 1,
    kPrefetch = 2,      // serial loop: prefetch the loads of its blocks this many iterations ahead
    kNonTemporal = 3,   // block: its stores bypass the caches
    kDoubleBuffer = 4,  // block: its output alternates between two buffers
    kSoftwarePipeline = 5,  // loop: this many of its iterations overlap
    kAsyncCopy = 6,         // block: its copies run concurrently with the computation
    kIntrinsic = 7,         // tensor loop: the instruction that computes the nest (intrinsic.h)
  };
  Key key = Key::kThreads;
  int64_t value = 0;
  friend bool operator==(const Annotation&, const Annotation&) = default;
};

// Sorted by key, without duplicates.
using Annotations = absl::InlinedVector<Annotation, 1>;

struct AnnotationInfo {
  Annotation::Key key;
  absl::string_view name;  // in the text form
  bool on_loop;
  bool on_block;
  int64_t min, max;  // of the value
};
// Indexed by the key's number.
const AnnotationInfo& InfoOf(Annotation::Key key);
// nullptr if there is no annotation of that name.
const AnnotationInfo* FindAnnotation(absl::string_view name);
// The value of a key, or `fallback` if it is absent.
int64_t ValueOf(const Annotations& annotations, Annotation::Key key, int64_t fallback);
void Set(Annotations& annotations, Annotation::Key key, int64_t value);
// " @threads=2 @omp_schedule=4"; empty if there are no annotations.
std::string PrintAnnotations(const Annotations& annotations);

// Identifies a node of a program's tree. Stays valid while other nodes are added and removed, and
// in copies of the program.
using NodeId = int32_t;
inline constexpr NodeId kNoNode = -1;

// kTensor: a loop of a nest that primitives treat as one unit (blockize). The nest may be replaced
// by one instruction (tensorize).
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
inline bool IsBlockAxis(ThreadAxis axis) {
  return axis >= ThreadAxis::kBlockX && axis <= ThreadAxis::kBlockZ;
}
inline bool IsThreadAxis(ThreadAxis axis) {
  return axis >= ThreadAxis::kThreadX && axis <= ThreadAxis::kThreadZ;
}

enum class Scope : uint8_t { kGlobal, kShared, kLocal, kFragment };
absl::string_view ScopeName(Scope scope);

// Sets the stride of `axis` in a buffer to the smallest number of elements that is congruent to
// `offset` modulo `factor` and leaves room for the inner axes.
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
  BufferId tensor = -1;  // the workload's input or output that it holds, or -1
  bool input = false;
  bool output = false;
  bool constant = false;  // an input that is known ahead of time, or computed from such inputs only
  bool padded = false;    // its layout has unused positions, which are never written
  std::vector<StorageAlign> aligns;  // at most one per axis
};

// An iteration variable of a block. The block is a function of these, independently of the loops
// around it.
struct BlockIter {
  AtomId var = kNoAtom;
  int64_t extent = 1;
  bool reduce = false;
  Index binding;  // over the variables of the enclosing loops
};

// The kernel that packs constants ahead of time, and the one that computes the rest.
inline constexpr char kPrepackKernel[] = "prepack";
inline constexpr char kMainKernel[] = "main";

// The innermost statement: outputs[indices] = values, or outputs[indices] =
// reducer(outputs[indices], values). Expressions, indices and guards use the iteration variables;
// predicates use the loop variables.
struct Block {
  std::string name;
  absl::InlinedVector<BlockIter, 6> iters;
  Reducer reducer = Reducer::kNone;
  // Whether a reduction stores the neutral element first, when every reduction variable is 0. False
  // after decompose_reduction, which moves this into a separate block.
  bool has_init = false;
  // Whether the enclosing loops visit each iteration of the block exactly once (ignoring
  // predicates). False after a compute_at that recomputes elements. Affects which primitives are
  // legal, not what the block computes.
  bool exact = true;
  std::vector<BufferId> outputs;      // one per component
  IndexList indices;                  // of all outputs
  std::vector<ExprId> values;         // one per component
  std::vector<Condition> guards;      // if one fails, the update is skipped (the init is not)
  std::vector<Condition> predicates;  // if one fails, the whole statement is skipped
  // lower::Stmt::lane_xor, in the code of one GPU thread. 0 in every schedule.
  int lane_xor = 0;
};

struct Node {
  enum class Kind : uint8_t { kKernel, kLoop, kBlock, kBarrier, kRemoved };
  Kind kind = Kind::kLoop;
  LoopKind loop = LoopKind::kSerial;
  ThreadAxis axis = ThreadAxis::kNone;
  NodeId parent = kNoNode;
  absl::InlinedVector<NodeId, 4> children;
  AtomId var = kNoAtom;     // loop
  Extent extent;            // loop
  int32_t block = -1;       // block: position in blocks
  std::string name;         // kernel
  Annotations annotations;  // loop or block
};

// A nest of loops and blocks that computes a workload, in any state of its schedule. Kernels run
// one after the other. The first may be the prepack kernel, which runs once ahead of time and
// writes only constant buffers. A value type: nodes live in flat arrays, so copies are independent.
// Primitives (common/schedule) change it; the interpreter (interpreter.h) defines its meaning;
// ToText prints any state.
class Program {
 public:
  // Builds one serial nest per stage, in order, in the kernel kMainKernel. REQUIRES a validated
  // workload.
  static Program FromWorkload(std::shared_ptr<const Workload> workload);

  const Workload& workload() const { return *workload_; }
  const std::shared_ptr<const Workload>& shared_workload() const { return workload_; }

  AtomTable atoms;
  ExprPool pool;
  ExtentTable extents;
  std::vector<Buffer> buffers;  // the workload's tensors come first, with equal IDs
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
  // Removes a node from the tree, and every enclosing loop that becomes empty. Removes the kernel,
  // too, if it becomes empty and is not the only one. The node itself stays usable.
  void Detach(NodeId id);
  void Remove(NodeId id) { nodes[id].kind = Node::Kind::kRemoved; }

  // Traversal.
  std::vector<NodeId> LoopsAbove(NodeId id) const;   // outermost first
  bool IsUnder(NodeId id, NodeId ancestor) const;    // true if they are equal
  std::vector<NodeId> BlocksUnder(NodeId id) const;  // in execution order
  std::vector<NodeId> AllBlocks() const;
  NodeId FindBlock(absl::string_view name) const;  // kNoNode if there is none
  NodeId KernelOf(NodeId id) const;
  NodeId NestOf(NodeId id) const;  // the child of the kernel that the node is under
  // The blocks that write a buffer, and those that read it. A reduction does not count as a reader
  // of its own output.
  std::vector<NodeId> WritersOf(BufferId buffer) const;
  std::vector<NodeId> ReadersOf(BufferId buffer) const;
  bool Reads(const Block& block, BufferId buffer) const;
  // Whether the block reads the buffer at an index that depends on the values of tensors.
  bool Gathers(const Block& block, BufferId buffer) const;

  // Rewrites an index over a block's iteration variables as one over the loops.
  Index OverLoops(const Block& block, const Index& index);
  // Whether the loop's variable occurs in the binding of a spatial or of a reduction variable of
  // the block. After a fuse, both may hold.
  bool IsSpatialLoop(NodeId loop, const Block& block) const;
  bool IsReductionLoop(NodeId loop, const Block& block) const;
  // Replaces a loop variable in every binding and predicate under a node.
  void SubstituteUnder(NodeId id, AtomId var, const Index& with);

  // Returns a name that is not in use.
  std::string FreshBufferName(absl::string_view base) const;
  std::string FreshBlockName(absl::string_view base) const;

  // A hash of structure, bindings, kinds, buffers and expressions. It ignores names, removed nodes
  // and unused buffers.
  Digest StructuralDigest() const;

  // Prints any state, e.g.
  //   kernel main
  //     parallel i0 in 8
  //       for k in 512
  //         block C: i = 64*i0 + i1, j = j0, k = k (reduce)
  //           C[i, j] = sum A[i, k] * B[k, j] init
  // The line of node `mark` begins with '>'.
  std::string ToText(NodeId mark = kNoNode) const;

 private:
  bool Has(NodeId id) const { return id >= 0 && id < static_cast<NodeId>(nodes.size()); }
  std::shared_ptr<const Workload> workload_;
};

// Maps loop variables of the original to their replacements in the copy.
using Replacements = std::vector<std::pair<AtomId, Index>>;

// Copies a subtree with new loops and blocks and returns its root, which has no parent yet. The
// names of blocks end with `suffix` and are fresh. Adds the copied loops' variables to `replaced`.
NodeId Clone(Program& program, NodeId id, absl::string_view suffix, Replacements& replaced);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_PROGRAM_H_
