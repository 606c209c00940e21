#ifndef HONE_COMMON_IR_WORKLOAD_H_
#define HONE_COMMON_IR_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/digest.h"
#include "common/ir/expr.h"
#include "common/ir/index.h"

namespace hone::ir {

// Limits on workloads. Exceeding one is an error whose message states it.
inline constexpr int kMaxRank = 8;
inline constexpr int64_t kMaxElements = int64_t{1} << 33;  // per tensor
inline constexpr int64_t kMaxDomain = int64_t{1} << 50;    // points per stage
inline constexpr size_t kMaxTensors = 256;
inline constexpr int kMaxExprDepth = 64;
inline constexpr int kMaxGuards = 32;            // per stage
inline constexpr int kMaxTextOperators = 16384;  // in expressions and indices of the text
inline constexpr int kMaxTextBytes = 1 << 20;

using Shape = absl::InlinedVector<int64_t, 4>;
int64_t ElementsOf(const Shape& shape);
// "f32[512, 64]".
std::string TypeText(DType dtype, const Shape& shape);

struct Tensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  bool input = false;
  bool constant = false;  // an input that may be repacked ahead of time
  bool output = false;
  int64_t bound = 0;  // if not 0, the elements of this integer input are in [0, bound)
  int stage = -1;     // the stage that computes it; -1 for inputs
  int64_t bytes() const { return BytesOf(dtype, ElementsOf(shape)); }
};

struct Axis {
  AtomId var = kNoAtom;
  int64_t extent = 0;
};

// 0 ≤ index < extent.
struct Condition {
  Index index;
  int64_t extent = 0;
  friend bool operator==(const Condition&, const Condition&) = default;
};

// InvalidArgument: the rank, an extent or the number of elements exceeds a limit.
absl::Status ValidateTensor(const Tensor& tensor);

// tensors[spatial…] = reducer over reduce (where the guards hold) of values.
struct Stage {
  std::vector<BufferId> tensors;  // one per component of the reducer's tuple
  std::vector<Axis> spatial;
  std::vector<Axis> reduce;
  std::vector<Condition> guards;  // restrict the reduction's domain
  Reducer reducer = Reducer::kNone;
  std::vector<ExprId> values;  // one per component
};

// A tensor computation: a DAG of stages over named axes. Its text form is described in
// workload_parser.h. A value type; immutable after validation. BufferIds in its expressions are
// indices into `tensors`.
struct Workload {
  std::string name;
  std::vector<Tensor> tensors;  // inputs first, then in stage order
  std::vector<Stage> stages;    // topologically ordered
  AtomTable atoms;
  ExprPool pool;

  std::vector<BufferId> Inputs() const;
  std::vector<BufferId> Outputs() const;

  // InvalidArgument: a limit is exceeded, a rank or dtype does not match, an index can leave its
  // tensor, or a stage reads a tensor that is not computed before it. The message names the tensor
  // and prints the index. Workloads that are never written as text may have deeper expressions and
  // more tensors.
  absl::Status Validate(int max_depth = kMaxExprDepth, size_t max_tensors = kMaxTensors) const;
  // Validates one stage. REQUIRES valid earlier stages.
  absl::Status ValidateStage(size_t stage, int max_depth = kMaxExprDepth) const;

  // A hash of shapes, dtypes and expressions, but not of names. The same on every platform.
  Digest StructuralDigest() const;

  std::string ToText() const;
};

// Builds workloads in C++. Errors are reported by Validate().
class WorkloadBuilder {
 public:
  explicit WorkloadBuilder(std::string name) { workload_.name = std::move(name); }

  BufferId Input(std::string name, DType dtype, Shape shape, bool constant = false);
  // Creates an axis for a later stage. Each axis belongs to one stage.
  Axis NewAxis(std::string name, int64_t extent);

  ExprPool& pool() { return workload_.pool; }
  AtomTable& atoms() { return workload_.atoms; }
  // Loads an element of a tensor declared before.
  ExprId Load(BufferId tensor, IndexList indices);

  // Adds a stage with one component and returns its tensor, which has the dtype of the value.
  BufferId Stage(std::string name, std::vector<Axis> spatial, Reducer reducer,
                 std::vector<Axis> reduce, std::vector<Condition> guards, ExprId value);
  BufferId Map(std::string name, std::vector<Axis> spatial, ExprId value) {
    return Stage(std::move(name), std::move(spatial), Reducer::kNone, {}, {}, value);
  }
  void Output(BufferId tensor) { workload_.tensors[tensor].output = true; }

  // Validates and returns the workload.
  absl::StatusOr<Workload> Build() &&;

 private:
  Workload workload_;
};

// A workload in one line, for messages and tables: "matmul(f32[2, 3], f32[3, 4]) -> f32[2, 4]".
std::string SignatureText(const Workload& workload);
// The types of some of its tensors: "f32[2, 3], f32[3, 4]".
std::string TypesOf(const Workload& workload, const std::vector<BufferId>& ids);
// The same for the text of a workload; its first line if it cannot be parsed.
std::string SignatureOfText(const std::string& text);

// Number of arithmetic operations in the formula of a workload. A multiply and an add count one
// each; points where a guard fails (padded taps) do not count.
double FlopCount(const Workload& workload);

// The number of points in a stage's domain where all guards hold.
double GuardedPoints(const AtomTable& atoms, const Stage& stage);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_WORKLOAD_H_
