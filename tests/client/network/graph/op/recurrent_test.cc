// Recurrent layers against loops over the steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/network/graph/group.h"
#include "tests/client/network/graph/op/apply.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using Numbers = std::vector<double>;

constexpr int64_t kSteps = 3, kBatch = 2, kInputs = 4, kHidden = 3;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The inputs of a layer with these gates and directions.
struct Layer {
  int64_t gates, directions;
  Given x, w, r, b, h, c, p;

  Layer(int64_t gates, int64_t directions, std::mt19937& random)
      : gates(gates),
        directions(directions),
        x(Floats({kSteps, kBatch, kInputs}, random)),
        w(Floats({directions, gates * kHidden, kInputs}, random, true)),
        r(Floats({directions, gates * kHidden, kHidden}, random, true)),
        b(Floats({directions, 2 * gates * kHidden}, random, true)),
        h(Floats({directions, kBatch, kHidden}, random)),
        c(Floats({directions, kBatch, kHidden}, random)),
        p(Floats({directions, 3 * kHidden}, random, true)) {}

  int64_t Row(int64_t d, int64_t gate, int64_t j) const {
    return d * gates * kHidden + gate * kHidden + j;
  }
  double Of(int64_t d, int64_t t, int64_t n, int64_t gate, int64_t j) const {  // W·x + Wb
    double sum = b.elements[2 * d * gates * kHidden + gate * kHidden + j].real();
    for (int64_t k = 0; k < kInputs; ++k) {
      sum += x.elements[(t * kBatch + n) * kInputs + k].real() *
             w.elements[Row(d, gate, j) * kInputs + k].real();
    }
    return sum;
  }
  double Bias(int64_t d, int64_t gate, int64_t j) const {  // Rb
    return b.elements[(2 * d + 1) * gates * kHidden + gate * kHidden + j].real();
  }
  double Product(int64_t d, int64_t gate, int64_t j, const double* state) const {  // R·h
    double sum = 0;
    for (int64_t k = 0; k < kHidden; ++k) {
      sum += state[k] * r.elements[Row(d, gate, j) * kHidden + k].real();
    }
    return sum;
  }
  double Peephole(int64_t d, int64_t which, int64_t j) const {
    return p.elements[d * 3 * kHidden + which * kHidden + j].real();
  }
};

// Runs the steps of all directions. `step` computes the new state of a row from the old one.
template <typename Step>
void Unroll(const Layer& layer, bool reverse, const Step& step, Numbers& y, Numbers& last,
            Numbers& cell) {
  y.assign(kSteps * layer.directions * kBatch * kHidden, 0);
  for (int64_t d = 0; d < layer.directions; ++d) {
    for (int64_t n = 0; n < kBatch; ++n) {
      double h[kHidden], c[kHidden];
      for (int64_t j = 0; j < kHidden; ++j) {
        h[j] = layer.h.elements[(d * kBatch + n) * kHidden + j].real();
        c[j] = layer.c.elements[(d * kBatch + n) * kHidden + j].real();
      }
      for (int64_t s = 0; s < kSteps; ++s) {
        const int64_t t = reverse || d == 1 ? kSteps - 1 - s : s;
        step(d, t, n, h, c);
        for (int64_t j = 0; j < kHidden; ++j) {
          y[((t * layer.directions + d) * kBatch + n) * kHidden + j] = h[j];
        }
      }
      last.insert(last.end(), h, h + kHidden);
      cell.insert(cell.end(), c, c + kHidden);
    }
  }
}

const std::vector<std::string>& Directions() {
  static const auto* const directions =
      new std::vector<std::string>{"forward", "reverse", "bidirectional"};
  return *directions;
}

TEST(RecurrentTest, Lstm) {
  std::mt19937 random(1);
  for (const std::string& direction : Directions()) {
    SCOPED_TRACE(direction);
    const Layer layer(4, direction == "bidirectional" ? 2 : 1, random);
    Numbers y, last, cell;
    Unroll(
        layer, direction == "reverse",
        [&](int64_t d, int64_t t, int64_t n, double* h, double* c) {
          double gate[4][kHidden], next[kHidden];
          for (int64_t j = 0; j < kHidden; ++j) {
            for (int64_t g = 0; g < 4; ++g) {
              gate[g][j] =
                  layer.Of(d, t, n, g, j) + layer.Bias(d, g, j) + layer.Product(d, g, j, h);
            }
            next[j] = Sigmoid(gate[2][j] + layer.Peephole(d, 2, j) * c[j]) * c[j] +
                      Sigmoid(gate[0][j] + layer.Peephole(d, 0, j) * c[j]) * std::tanh(gate[3][j]);
          }
          for (int64_t j = 0; j < kHidden; ++j) {
            c[j] = next[j];
            h[j] = Sigmoid(gate[1][j] + layer.Peephole(d, 1, j) * c[j]) * std::tanh(c[j]);
          }
        },
        y, last, cell);
    const auto outputs =
        Apply("LSTM", {layer.x, layer.w, layer.r, layer.b, {}, layer.h, layer.c, layer.p},
              {{"hidden_size", kHidden}, {"direction", direction}}, 3);
    ExpectNear(outputs, y, 0);
    ExpectNear(outputs, last, 1);
    ExpectNear(outputs, cell, 2);
  }
}

// A layer of which only some results are wanted computes nothing else: a workload refuses stages
// that nothing reads.
TEST(RecurrentTest, UnwantedResultsAreNotComputed) {
  std::mt19937 random(7);
  for (const char* const direction : {"forward", "bidirectional"}) {
    const Layer layer(4, std::string(direction) == "forward" ? 1 : 2, random);
    for (int wanted = 0; wanted < 3; ++wanted) {
      Graph graph;
      std::vector<ValueId> inputs;
      for (const Given& given : {layer.x, layer.w, layer.r}) {
        inputs.push_back(graph.AddValue(absl::StrCat("x", inputs.size()), *given.type));
      }
      graph.inputs = inputs;
      std::vector<std::string> names(wanted + 1);
      names[wanted] = "y";
      const absl::Status added =
          graph.AddNode({"n",
                         "LSTM",
                         inputs,
                         {},
                         {{"hidden_size", kHidden}, {"direction", std::string(direction)}}},
                        names);
      ASSERT_THAT(added, IsOk());
      graph.outputs = {graph.nodes[0].outputs[wanted]};
      const auto group = MakeGroup(graph, {0}, "lstm");
      EXPECT_THAT(group, IsOk()) << direction << ", output " << wanted;
    }
  }
}

TEST(RecurrentTest, Gru) {
  std::mt19937 random(2);
  for (const std::string& direction : Directions()) {
    for (const int64_t linear : {0, 1}) {
      SCOPED_TRACE(direction);
      const Layer layer(3, direction == "bidirectional" ? 2 : 1, random);
      Numbers y, last, cell;
      Unroll(
          layer, direction == "reverse",
          [&](int64_t d, int64_t t, int64_t n, double* h, double*) {
            double z[kHidden], r[kHidden], reset[kHidden], next[kHidden];
            for (int64_t j = 0; j < kHidden; ++j) {
              z[j] = Sigmoid(layer.Of(d, t, n, 0, j) + layer.Bias(d, 0, j) +
                             layer.Product(d, 0, j, h));
              r[j] = Sigmoid(layer.Of(d, t, n, 1, j) + layer.Bias(d, 1, j) +
                             layer.Product(d, 1, j, h));
              reset[j] = r[j] * h[j];
            }
            for (int64_t j = 0; j < kHidden; ++j) {
              const double state = linear != 0
                                       ? r[j] * (layer.Product(d, 2, j, h) + layer.Bias(d, 2, j))
                                       : layer.Product(d, 2, j, reset) + layer.Bias(d, 2, j);
              next[j] = (1 - z[j]) * std::tanh(layer.Of(d, t, n, 2, j) + state) + z[j] * h[j];
            }
            std::copy(next, next + kHidden, h);
          },
          y, last, cell);
      const auto outputs = Apply("GRU", {layer.x, layer.w, layer.r, layer.b, {}, layer.h},
                                 {{"direction", direction}, {"linear_before_reset", linear}}, 2);
      ExpectNear(outputs, y, 0);
      ExpectNear(outputs, last, 1);
    }
  }
}

TEST(RecurrentTest, RnnWithRelu) {
  std::mt19937 random(3);
  const Layer layer(1, 1, random);
  Numbers y, last, cell;
  Unroll(
      layer, false,
      [&](int64_t d, int64_t t, int64_t n, double* h, double*) {
        double next[kHidden];
        for (int64_t j = 0; j < kHidden; ++j) {
          next[j] = std::max(
              0.0, layer.Of(d, t, n, 0, j) + layer.Bias(d, 0, j) + layer.Product(d, 0, j, h));
        }
        std::copy(next, next + kHidden, h);
      },
      y, last, cell);
  ExpectNear(Apply("RNN", {layer.x, layer.w, layer.r, layer.b, {}, layer.h},
                   {{"activations", std::vector<std::string>{"Relu"}}}),
             y);
}

// More steps than the guarded values of a stage may have cases.
TEST(RecurrentTest, LongSequences) {
  std::mt19937 random(5);
  const Given x = Floats({39, 1, 1}, random);
  const auto weight = [](double w) {
    return Given{TensorType{ir::DType::kF32, {2, 1, 1}}, {w, w}, true};
  };
  Numbers expected(78);
  double forward = 0, backward = 0;
  for (int64_t t = 0; t < 39; ++t) {
    forward = std::max(0.0, 0.5 * forward + x.elements[t].real());
    backward = std::max(0.0, 0.5 * backward + x.elements[38 - t].real());
    expected[2 * t] = forward;
    expected[2 * (38 - t) + 1] = backward;
  }
  ExpectNear(Apply("RNN", {x, weight(1), weight(0.5)},
                   {{"direction", std::string("bidirectional")},
                    {"activations", std::vector<std::string>{"Relu", "Relu"}}}),
             expected);
}

TEST(RecurrentTest, TheLongestSequences) {
  std::mt19937 random(6);
  for (const auto& [op, gates, steps] :
       {std::tuple("LSTM", 4, 38), std::tuple("GRU", 3, 29), std::tuple("RNN", 1, 58)}) {
    SCOPED_TRACE(op);
    const Given x = Floats({steps, 1, 1}, random), state = Floats({2, 1, 1}, random);
    const auto weight = [&](int64_t rows) { return Floats({2, rows, 1}, random, true); };
    std::vector<Given> inputs = {x,  weight(gates), weight(gates), Floats({2, 2 * gates}, random),
                                 {}, state};
    const std::map<std::string, Attribute> both = {{"direction", std::string("bidirectional")}};
    const auto outputs = Apply(op, inputs, both, 2);
    EXPECT_THAT(outputs, IsOk());
    inputs[0] = Floats({steps + 1, 1, 1}, random);
    EXPECT_FALSE(Apply(op, inputs, both, 2).ok());
  }
}

// Sequences of 2 and 0 of 3 steps: the state stays, and results beyond the end are 0. The lengths
// are constant or not.
TEST(RecurrentTest, SequencesOfDifferentLengths) {
  std::mt19937 random(8);
  const int64_t lengths[kBatch] = {2, 0};
  for (const std::string& direction : Directions()) {
    for (const bool constant : {true, false}) {
      SCOPED_TRACE(direction);
      const Layer layer(1, direction == "bidirectional" ? 2 : 1, random);
      Numbers y, last, cell;
      Unroll(
          layer, direction == "reverse",
          [&](int64_t d, int64_t t, int64_t n, double* h, double*) {
            if (t >= lengths[n]) return;
            double next[kHidden];
            for (int64_t j = 0; j < kHidden; ++j) {
              next[j] = std::tanh(layer.Of(d, t, n, 0, j) + layer.Bias(d, 0, j) +
                                  layer.Product(d, 0, j, h));
            }
            std::copy(next, next + kHidden, h);
          },
          y, last, cell);
      for (size_t i = 0; i < y.size(); ++i) {
        const int64_t n = static_cast<int64_t>(i) / kHidden % kBatch;
        const int64_t t = static_cast<int64_t>(i) / (kHidden * kBatch * layer.directions);
        if (t >= lengths[n]) y[i] = 0;
      }
      const Given given{TensorType{ir::DType::kI32, {kBatch}}, {lengths[0], lengths[1]}, constant};
      const auto outputs = Apply("RNN", {layer.x, layer.w, layer.r, layer.b, given, layer.h},
                                 {{"direction", direction}}, 2);
      ExpectNear(outputs, y, 0);
      ExpectNear(outputs, last, 1);
    }
  }
}

// Without weights of the inputs, X has their products, and there may be more lengths than needed.
TEST(RecurrentTest, OneStepOfALongSequence) {
  std::mt19937 random(9);
  const Given products = Floats({1, 2, 2}, random), r = Floats({1, 2, 2}, random, true),
              h = Floats({1, 2, 2}, random);
  const Given lengths{TensorType{ir::DType::kI32, {4}}, {1, -2, 0, 0}};
  Numbers y(4), last(4);
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t j = 0; j < 2; ++j) {
      double sum = products.elements[n * 2 + j].real();
      for (int64_t k = 0; k < 2; ++k) {
        sum += r.elements[j * 2 + k].real() * h.elements[n * 2 + k].real();
      }
      y[n * 2 + j] = n == 0 ? std::tanh(sum) : 0;
      last[n * 2 + j] = n == 0 ? std::tanh(sum) : h.elements[n * 2 + j].real();
    }
  }
  const auto outputs = Apply("RNN", {products, {}, r, {}, lengths, h}, {}, 2);
  ExpectNear(outputs, y, 0);
  ExpectNear(outputs, last, 1);
}

TEST(RecurrentTest, Errors) {
  GoldenOfTest golden;
  std::mt19937 random(4);
  const Layer layer(4, 1, random);
  const Given longer = Floats({100, kBatch, kInputs}, random);
  golden.Add(Apply("LSTM", {longer, layer.w, layer.r}).status().message());
  golden.Add(Apply("LSTM", {layer.x, layer.w, layer.w}).status().message());
  golden.Add(Apply("LSTM", {layer.x, layer.w, layer.r, {}, List({3, 2, 1})}).status().message());
  golden.Add(Apply("LSTM", {layer.x, {}, layer.r}).status().message());
  golden.Add(Apply("LSTM", {layer.x, layer.w}).status().message());
}

}  // namespace
}  // namespace hone::graph
