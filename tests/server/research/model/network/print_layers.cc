// Prints as JSON what the layers of the network library compute from random numbers, with all
// gradients, and what Adam makes of weights. torch_test.py computes the same with PyTorch.

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "server/research/model/network/layers.h"

namespace hone::network {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kOracleWidth = 8, kOracleHeads = 2, kOracleInputs = 5;

Matrix RandomMatrix(Eigen::Index rows, Eigen::Index columns, uint64_t seed) {
  Matrix result(rows, columns);
  Rng rng(seed, 0x746f726368);
  for (Eigen::Index i = 0; i < result.size(); ++i)
    result.data()[i] = static_cast<float>(2 * rng.Uniform() - 1);
  return result;
}

Json RowsOf(const Matrix& matrix) {
  Json rows = Json::array();
  for (Eigen::Index r = 0; r < matrix.rows(); ++r)
    rows.push_back(std::vector<float>(matrix.row(r).data(), matrix.row(r).data() + matrix.cols()));
  return rows;
}

// Also moves weights that are not drawn, such as biases.
Json WeightsOf(Weights& weights) {
  Json all = Json::array();
  uint64_t seed = 50;
  for (Matrix& matrix : weights.all()) {
    matrix += RandomMatrix(matrix.rows(), matrix.cols(), seed++);
    all.push_back(RowsOf(matrix));
  }
  return all;
}

using Layer = std::function<Var(Tape&, const std::vector<Var>&)>;

// `direction`: the gradient of the result, which is passed back.
Json CaseOf(const std::string& layer, const std::vector<Matrix>& inputs, Weights& weights,
            const std::vector<int>& begin, const Layer& function) {
  Json one = {{"layer", layer}, {"heads", kOracleHeads}, {"begin", begin}};
  one["weights"] = WeightsOf(weights);
  Tape tape(/*learns=*/true);
  std::vector<Var> vars;
  for (const Matrix& input : inputs) {
    one["inputs"].push_back(RowsOf(input));
    vars.push_back(tape.Input(input, /*constant=*/false));
  }
  const Var result = function(tape, vars);
  const Matrix direction = RandomMatrix(result->value.rows(), result->value.cols(), 99);
  one["result"] = RowsOf(result->value);
  one["direction"] = RowsOf(direction);
  tape.Backward(result, direction);
  for (const Var var : vars) one["input_gradients"].push_back(RowsOf(var->gradient));
  for (const Matrix& matrix : weights.all())
    one["weight_gradients"].push_back(RowsOf(*tape.GradientOf(matrix)));
  return one;
}

// Steps toward a target, with a decay and with gradients that are clipped at first.
Json AdamCase() {
  constexpr int kSteps = 40;
  constexpr double kRate = 0.05, kDecay = 0.01, kLargest = 0.5;
  Weights weights(8);
  const Linear layer(weights, kOracleInputs, 2);
  Json one = {{"layer", "adam"},
              {"steps", kSteps},
              {"rate", kRate},
              {"decay", kDecay},
              {"largest", kLargest}};
  one["weights"] = WeightsOf(weights);
  const Matrix x = RandomMatrix(6, kOracleInputs, 1), wanted = RandomMatrix(6, 2, 2);
  one["inputs"] = {RowsOf(x), RowsOf(wanted)};
  Adam adam(weights, kDecay, kLargest);
  for (int step = 0; step < kSteps; ++step) {
    Tape tape(/*learns=*/true);
    const Var y = layer(tape, tape.Input(x));
    tape.Backward(y, y->value - wanted);
    adam.Step(tape, kRate);
  }
  for (const Matrix& matrix : weights.all()) one["trained"].push_back(RowsOf(matrix));
  return one;
}

int PrintLayers() {
  const std::vector<int> begin = {0, 3, 4, 9};
  const Matrix rows = RandomMatrix(begin.back(), kOracleWidth, 1);
  Json cases = Json::array();
  {
    Weights weights(1);
    const Linear layer(weights, kOracleWidth, 3);
    cases.push_back(CaseOf("linear", {rows}, weights, begin,
                           [&](Tape& t, const auto& in) { return layer(t, in[0]); }));
  }
  {
    Weights weights(2);
    const LayerNorm layer(weights, kOracleWidth);
    cases.push_back(CaseOf("layer_norm", {rows}, weights, begin,
                           [&](Tape& t, const auto& in) { return layer(t, in[0]); }));
  }
  {
    Weights weights(3);
    const SelfAttention layer(weights, kOracleWidth, kOracleHeads);
    cases.push_back(CaseOf("attention", {rows}, weights, begin,
                           [&](Tape& t, const auto& in) { return layer(t, in[0], begin); }));
  }
  {
    Weights weights(4);
    const LstmCell cell(weights, kOracleWidth, kOracleInputs);
    cases.push_back(CaseOf("lstm", {rows}, weights, begin, [&](Tape& t, const auto& in) {
      return RunLstm(t, cell, kOracleInputs, in[0], begin);
    }));
  }
  {
    Weights weights(5);
    const GruCell cell(weights, kOracleWidth, kOracleInputs);
    cases.push_back(CaseOf("gru", {rows, RandomMatrix(begin.back(), kOracleInputs, 2)}, weights,
                           begin, [&](Tape& t, const auto& in) { return cell(t, in[0], in[1]); }));
  }
  cases.push_back(AdamCase());
  std::printf("%s\n", cases.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace hone::network

int main() { return hone::network::PrintLayers(); }
