#include "common/operator/formula.h"

namespace hone::op {

using ir::BufferId;
using ir::DType;
using ir::Op;

namespace {

Term Binary(Op op, Term a, Term b) { return {a.pool, a.pool->Binary(op, a.id, b.id)}; }
Term Unary(Op op, Term a) { return {a.pool, a.pool->Unary(op, a.id)}; }
Term Like(Term a, double value) { return {a.pool, a.pool->Const((*a.pool)[a.id].dtype, value)}; }

}  // namespace

Term operator+(Term a, Term b) { return Binary(Op::kAdd, a, b); }
Term operator-(Term a, Term b) { return Binary(Op::kSub, a, b); }
Term operator*(Term a, Term b) { return Binary(Op::kMul, a, b); }
Term operator/(Term a, Term b) { return Binary(Op::kDiv, a, b); }
Term operator+(Term a, double b) { return a + Like(a, b); }
Term operator*(Term a, double b) { return a * Like(a, b); }
Term Max(Term a, double b) { return Binary(Op::kMax, a, Like(a, b)); }
Term Exp(Term a) { return Unary(Op::kExp, a); }
Term Sqrt(Term a) { return Unary(Op::kSqrt, a); }
Term Rsqrt(Term a) { return Unary(Op::kRsqrt, a); }
Term Tanh(Term a) { return Unary(Op::kTanh, a); }
Term Abs(Term a) { return Unary(Op::kAbs, a); }
Term NormalCdf(Term a) { return Unary(Op::kNormalCdf, a); }
Term Sigmoid(Term a) { return Unary(Op::kSigmoid, a); }

Term Gelu(Term a) { return a * NormalCdf(a); }

Term Silu(Term a) {
  ir::ExprPool& pool = *a.pool;
  const Term negative = Binary(Op::kLess, a, Like(a, 0));
  const Term root = Exp(Abs(a) * -0.5);
  // The order matters: x·√z is a normal number wherever the result is not 0, but z may not be.
  const Term numerator{&pool, pool.Select(negative.id, (a * root * root).id, a.id)};
  return numerator / (root * root + 1);
}

Term SelectRow(const ir::Index& index, const std::vector<Term>& rows) {
  Term result = rows.back();
  ir::ExprPool& pool = *result.pool;
  for (size_t row = rows.size() - 1; row-- > 0;) {
    const ir::ExprId here = pool.Binary(Op::kEqual, pool.OfIndex(index),
                                        pool.Const(DType::kI64, static_cast<double>(row)));
    result.id = pool.Select(here, rows[row].id, result.id);
  }
  return result;
}

OpBuilder::OpBuilder(std::string name, const Arguments& arguments)
    : OpBuilder(std::move(name), arguments.dtype, arguments.dtype, arguments.acc) {}

OpBuilder::OpBuilder(std::string name, DType input, DType weight, DType compute)
    : builder_(std::move(name)), input_(input), weight_(weight), compute_(compute) {}

BufferId OpBuilder::Input(std::string name, ir::Shape shape) {
  dtypes_.push_back(input_);
  shapes_.push_back(shape);
  return builder_.Input(std::move(name), input_, std::move(shape));
}

BufferId OpBuilder::Weight(std::string name, ir::Shape shape) {
  dtypes_.push_back(weight_);
  shapes_.push_back(shape);
  return builder_.Input(std::move(name), weight_, std::move(shape), /*constant=*/true);
}

BufferId OpBuilder::SecondInput(std::string name, ir::Shape shape) {
  dtypes_.push_back(weight_);
  shapes_.push_back(shape);
  return builder_.Input(std::move(name), weight_, std::move(shape));
}

std::vector<ir::Axis> OpBuilder::AxesOf(BufferId tensor, const std::vector<std::string>& names) {
  std::vector<ir::Axis> axes;
  for (size_t d = 0; d < names.size(); ++d) axes.push_back(NewAxis(names[d], shapes_[tensor][d]));
  return axes;
}

Term OpBuilder::At(BufferId tensor, const std::vector<Place>& places) {
  ir::IndexList indices;
  for (const Place& place : places) indices.push_back(place.index);
  ir::ExprPool& pool = builder_.pool();
  return {&pool, pool.Cast(compute_, pool.Load(tensor, dtypes_[tensor], std::move(indices)))};
}

Term OpBuilder::Number(double value) {
  return {&builder_.pool(), builder_.pool().Const(compute_, value)};
}

BufferId OpBuilder::Map(std::string name, std::vector<ir::Axis> axes, Term value) {
  return Reduce(std::move(name), std::move(axes), ir::Reducer::kNone, {}, value);
}

BufferId OpBuilder::Reduce(std::string name, std::vector<ir::Axis> spatial, ir::Reducer reducer,
                           std::vector<ir::Axis> reduce, Term value,
                           std::vector<ir::Condition> guards) {
  dtypes_.push_back(builder_.pool()[value.id].dtype);
  ir::Shape& shape = shapes_.emplace_back();
  for (const ir::Axis& axis : spatial) shape.push_back(axis.extent);
  return builder_.Stage(std::move(name), std::move(spatial), reducer, std::move(reduce),
                        std::move(guards), value.id);
}

BufferId OpBuilder::Sum(std::string name, std::vector<ir::Axis> spatial,
                        std::vector<ir::Axis> reduce, Term value,
                        std::vector<ir::Condition> guards) {
  return Reduce(std::move(name), std::move(spatial), ir::Reducer::kSum, std::move(reduce), value,
                std::move(guards));
}

absl::StatusOr<ir::Workload> OpBuilder::Build(std::initializer_list<BufferId> outputs) {
  for (const BufferId output : outputs) builder_.Output(output);
  return std::move(builder_).Build();
}

}  // namespace hone::op
