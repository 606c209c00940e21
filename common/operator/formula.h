#ifndef HONE_COMMON_OPERATOR_FORMULA_H_
#define HONE_COMMON_OPERATOR_FORMULA_H_

#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "common/ir/workload.h"
#include "common/operator/operator.h"

// Helpers for writing operators as formulas: Max(builder.At(x, {i, j}) + builder.At(bias, {j}), 0).
namespace hone::op {

// A scalar expression of a builder, which must outlive it. Numbers take the dtype of the other
// operand.
struct Term {
  ir::ExprPool* pool;
  ir::ExprId id;
};
Term operator+(Term a, Term b);
Term operator-(Term a, Term b);
Term operator*(Term a, Term b);
Term operator/(Term a, Term b);
Term operator+(Term a, double b);
Term operator*(Term a, double b);
Term Max(Term a, double b);
Term Exp(Term a);
Term Sqrt(Term a);
Term Rsqrt(Term a);
Term Tanh(Term a);
Term Abs(Term a);
// The CDF of the standard normal distribution, Φ(x) = erfc(−x/√2) / 2.
Term NormalCdf(Term a);
Term Sigmoid(Term a);
// x·Φ(x). Not computed as x·(1 + erf(x/√2)) / 2, where the sum cancels for negative x.
Term Gelu(Term a);
// x·sigmoid(x), computed as x·z / (1 + z) for x < 0 and x / (1 + z) for x ≥ 0, where z = e^−|x| is
// the square of a computed root. It loses digits only where the result is denormal.
Term Silu(Term a);
// rows[index], 0 ≤ index < rows.size().
Term SelectRow(const ir::Index& index, const std::vector<Term>& rows);

// A position along one dimension of a tensor: an axis or an index.
struct Place {
  Place(const ir::Axis& axis)
      : index(ir::Index::Of(axis.var)) {}      // NOLINT: an implicit conversion is intended
  Place(ir::Index i) : index(std::move(i)) {}  // NOLINT
  ir::Index index;
};

// A WorkloadBuilder that converts everything it reads to the operator's compute type.
class OpBuilder {
 public:
  // Takes the types from the arguments.
  OpBuilder(std::string name, const Arguments& arguments);
  // Takes separate types for inputs and weights.
  OpBuilder(std::string name, ir::DType input, ir::DType weight, ir::DType compute);

  ir::BufferId Input(std::string name, ir::Shape shape);
  // Declares a constant input.
  ir::BufferId Weight(std::string name, ir::Shape shape);
  // Declares an input with the weights' type that is not constant.
  ir::BufferId SecondInput(std::string name, ir::Shape shape);
  const ir::Shape& ShapeOf(ir::BufferId tensor) const { return shapes_[tensor]; }

  ir::Axis NewAxis(std::string name, int64_t extent) {
    return builder_.NewAxis(std::move(name), extent);
  }
  // Creates one axis per dimension of a tensor.
  std::vector<ir::Axis> AxesOf(ir::BufferId tensor, const std::vector<std::string>& names);
  ir::AtomTable& atoms() { return builder_.atoms(); }

  Term At(ir::BufferId tensor, const std::vector<Place>& places);
  template <std::same_as<ir::Axis> A>  // a template, so that braced arguments are unambiguous
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

  // Returns the validated workload with these outputs.
  absl::StatusOr<ir::Workload> Build(std::initializer_list<ir::BufferId> outputs);

 private:
  ir::WorkloadBuilder builder_;
  ir::DType input_, weight_, compute_;
  std::vector<ir::DType> dtypes_;  // per tensor
  std::vector<ir::Shape> shapes_;
};

}  // namespace hone::op

#endif  // HONE_COMMON_OPERATOR_FORMULA_H_
