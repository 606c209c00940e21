#ifndef HONE_COMMON_OPERATOR_FORMULA_H_
#define HONE_COMMON_OPERATOR_FORMULA_H_

#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "common/ir/workload.h"
#include "common/operator/operator.h"

// Writing operators as formulas: Max(builder.At(x, {i, j}) + builder.At(bias, {j}), 0).
namespace hone::op {

// A scalar expression of a builder, which outlives it. Numbers take the dtype of the other operand.
struct Term {
  ir::ExprPool* pool;
  ir::ExprId id;
};
Term operator+(Term a, Term b);
Term operator-(Term a, Term b);
Term operator*(Term a, Term b);
Term operator/(Term a, Term b);
Term operator+(Term a, double b);
Term operator-(Term a, double b);
Term operator*(Term a, double b);
Term operator-(Term a);
Term Max(Term a, double b);
Term Exp(Term a);
Term Sqrt(Term a);
Term Rsqrt(Term a);
Term Tanh(Term a);
Term Abs(Term a);
// The distribution function of the standard normal distribution, Φ(x) = erfc(−x/√2) / 2.
Term NormalCdf(Term a);
Term Sigmoid(Term a);
// x·Φ(x). Not x·(1 + erf(x/√2)) / 2, whose sum cancels for negative x.
Term Gelu(Term a);
// x·sigmoid(x) = x·z / (1 + z) for x < 0 and x / (1 + z) for x ≥ 0, where z = e^−|x| is the square
// of a root that is computed. So digits are lost only where the result is denormal.
Term Silu(Term a);
// rows[index], 0 ≤ index < rows.size().
Term SelectRow(const ir::Index& index, const std::vector<Term>& rows);

// Where a tensor is read: an axis or an index.
struct Place {
  Place(const ir::Axis& axis)
      : index(ir::Index::Of(axis.var)) {}      // NOLINT: read like the index it is
  Place(ir::Index i) : index(std::move(i)) {}  // NOLINT
  ir::Index index;
};

// A WorkloadBuilder that converts what it reads to the type that the operator computes in.
class OpBuilder {
 public:
  // Types as the arguments say.
  OpBuilder(std::string name, const Arguments& arguments);
  // Inputs and weights of types of their own.
  OpBuilder(std::string name, ir::DType input, ir::DType weight, ir::DType compute);

  ir::BufferId Input(std::string name, ir::Shape shape);
  // A constant input.
  ir::BufferId Weight(std::string name, ir::Shape shape);
  // Of the weights' type, but not constant.
  ir::BufferId SecondInput(std::string name, ir::Shape shape);
  const ir::Shape& ShapeOf(ir::BufferId tensor) const { return shapes_[tensor]; }

  ir::Axis NewAxis(std::string name, int64_t extent) {
    return builder_.NewAxis(std::move(name), extent);
  }
  // One for each dimension of a tensor.
  std::vector<ir::Axis> AxesOf(ir::BufferId tensor, const std::vector<std::string>& names);
  ir::AtomTable& atoms() { return builder_.atoms(); }

  Term At(ir::BufferId tensor, const std::vector<Place>& places);
  template <std::same_as<ir::Axis> A>  // no braces, or they could mean either
  Term At(ir::BufferId tensor, const std::vector<A>& axes) {
    return At(tensor, std::vector<Place>(axes.begin(), axes.end()));
  }
  Term Number(double value);

  ir::BufferId Map(std::string name, std::vector<ir::Axis> axes, Term value);
  ir::BufferId Reduce(std::string name, std::vector<ir::Axis> spatial, ir::Reducer reducer,
                      std::vector<ir::Axis> reduce, Term value,
                      std::vector<ir::Condition> guards = {});
  ir::BufferId Sum(std::string name, std::vector<ir::Axis> spatial, std::vector<ir::Axis> reduce,
                   Term value, std::vector<ir::Condition> guards = {});

  // The workload with these outputs, validated.
  absl::StatusOr<ir::Workload> Build(std::initializer_list<ir::BufferId> outputs);

 private:
  ir::WorkloadBuilder builder_;
  ir::DType input_, weight_, compute_;
  std::vector<ir::DType> dtypes_;  // of the tensors
  std::vector<ir::Shape> shapes_;
};

}  // namespace hone::op

#endif  // HONE_COMMON_OPERATOR_FORMULA_H_
