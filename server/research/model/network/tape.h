#ifndef HONE_SERVER_RESEARCH_MODEL_NETWORK_TAPE_H_
#define HONE_SERVER_RESEARCH_MODEL_NETWORK_TAPE_H_

#include <Eigen/Core>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

// A small library for networks on Eigen: one thread, the same result on every run.
namespace hone::network {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Computes with matrices and, if it learns, remembers the operations, so that Backward can go back
// through them. Each row of a result depends only on the rows that the operation names, and is the
// same for any number of other rows, so a candidate's score does not depend on its batch. Used by
// one thread at a time. Weights are matrices outside; they must not change while the tape exists.
class Tape {
 public:
  struct Node {
    Matrix value;
    Matrix gradient;             // empty: none arrived
    bool constant = false;       // nothing learns from its gradient
    std::function<void()> back;  // passes the gradient on
  };
  // A result; valid as long as the tape.
  using Var = Node*;

  explicit Tape(bool learns = false) : learns_(learns) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // The input of a network; `constant`: its gradient is not needed.
  Var Input(Matrix value, bool constant = true);

  // x·weights + bias. `bias`: one row, or null.
  Var Affine(Var x, const Matrix& weights, const Matrix* bias);
  Var Relu(Var x);
  Var Sigmoid(Var x);
  Var Tanh(Var x);
  Var Add(Var a, Var b);
  Var Subtract(Var a, Var b);
  Var Multiply(Var a, Var b);  // element by element
  Var Columns(Var x, int begin, int count);
  // Row i of the result is row rows[i] of x, or 0 if that is negative.
  Var Gather(Var x, std::vector<int> rows);
  Var ConcatenateRows(std::vector<Var> parts);
  Var ConcatenateColumns(std::vector<Var> parts);
  // Row g of the result is the sum of the rows of x whose group is g, from the first to the last.
  Var SumGroups(Var x, std::vector<int> group, int groups);
  Var SoftmaxRows(Var x);
  // Every row of a and the same row of b give all products a[i]·b[j], at i · columns of b + j.
  Var OuterRows(Var a, Var b);
  // Each row is scaled to mean 0 and deviation 1, then multiplied by `gain` and moved by `bias`.
  Var LayerNorm(Var x, const Matrix& gain, const Matrix& bias);
  // Scaled dot-product attention (Vaswani et al., NeurIPS 2017) among the rows of each sequence.
  // Sequence i has the rows [begin[i], begin[i + 1]). REQUIRES: `heads` divides the columns.
  Var Attention(Var query, Var key, Var value, std::vector<int> begin, int heads);

  // Passes a gradient of the result back to the weights and the inputs. REQUIRES: the tape learns;
  // called once.
  void Backward(Var result, Matrix gradient);
  // The gradient of weights; null: they had no part in the result.
  const Matrix* GradientOf(const Matrix& weights) const;

 private:
  Var Push(Matrix value, bool constant, std::function<void(Node&)> back);
  Var Concatenate(std::vector<Var> parts, bool rows);
  // Where a node's gradient is added up.
  static Matrix& Sum(Var node);
  Matrix& SumOfWeights(const Matrix& weights);
  template <typename Function, typename Slope>
  Var Elementwise(Var x, Function function, Slope slope_of_result);

  const bool learns_;
  std::deque<Node> nodes_;
  absl::flat_hash_map<const Matrix*, Matrix> weights_;
};
using Var = Tape::Var;

// out = a·b, whose rows do not depend on the number of rows.
void RowProduct(const Matrix& a, const Matrix& b, Matrix& out);

}  // namespace hone::network

#endif  // HONE_SERVER_RESEARCH_MODEL_NETWORK_TAPE_H_
