// The library for networks: gradients against finite differences, layers against loops in double,
// and scores that do not depend on the other candidates.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "common/base/rng.h"
#include "server/research/model/network/layers.h"
#include "server/research/model/network_predictor.h"
#include "tests/status.h"

namespace hone::network {
namespace {

Matrix Random(int rows, int columns, uint64_t seed) {
  Matrix result(rows, columns);
  Rng rng(seed, 0x74657374);
  for (Eigen::Index i = 0; i < result.size(); ++i)
    result.data()[i] = static_cast<float>(2 * rng.Uniform() - 1);
  return result;
}

double Dot(const Matrix& a, const Matrix& b) {
  double sum = 0;
  for (Eigen::Index i = 0; i < a.size(); ++i) sum += double{a.data()[i]} * b.data()[i];
  return sum;
}

// Compares the gradients of a random direction of the result, for all inputs and weights, with
// differences of the result.
void CheckGradients(std::vector<Matrix> inputs, Weights& weights,
                    const std::function<Var(Tape&, const std::vector<Var>&)>& function) {
  const auto run = [&](Tape& tape, std::vector<Var>& vars) {
    for (const Matrix& input : inputs) vars.push_back(tape.Input(input, /*constant=*/false));
    return function(tape, vars);
  };
  Tape tape(/*learns=*/true);
  std::vector<Var> vars;
  const Var result = run(tape, vars);
  const Matrix direction =
      Random(static_cast<int>(result->value.rows()), static_cast<int>(result->value.cols()), 99);
  tape.Backward(result, direction);
  const auto at = [&] {
    Tape other;
    std::vector<Var> ignored;
    return Dot(run(other, ignored)->value, direction);
  };
  const auto check = [&](Matrix& matrix, const Matrix* gradient, const std::string& what) {
    ASSERT_NE(gradient, nullptr) << what;
    ASSERT_EQ(gradient->size(), matrix.size()) << what;
    for (Eigen::Index i = 0; i < matrix.size(); ++i) {
      constexpr float kStep = 2e-3f;
      float& value = matrix.data()[i];
      const float before = value;
      value = before + kStep;
      const double above = at();
      value = before - kStep;
      const double below = at();
      value = before;
      const double slope = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient->data()[i], slope, 3e-3 + 0.01 * std::abs(slope))
          << what << ", entry " << i;
    }
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    check(inputs[i], &vars[i]->gradient, "input " + std::to_string(i));
  size_t number = 0;
  for (Matrix& matrix : weights.all())
    check(matrix, tape.GradientOf(matrix), "weights " + std::to_string(number++));
}

TEST(TapeTest, GradientsOfElementwiseOperations) {
  Weights none(1);
  CheckGradients({Random(3, 5, 1), Random(3, 5, 2)}, none, [](Tape& t, const auto& in) {
    return t.Multiply(t.Sigmoid(in[0]), t.Subtract(t.Tanh(in[1]), t.Add(in[0], in[1])));
  });
  // Away from the kink.
  Matrix far = Random(4, 4, 3);
  far = far.unaryExpr([](float v) { return v + (v > 0 ? 0.1f : -0.1f); });
  CheckGradients({far}, none, [](Tape& t, const auto& in) { return t.Relu(in[0]); });
}

TEST(TapeTest, GradientsOfRowOperations) {
  Weights none(1);
  CheckGradients({Random(4, 6, 1)}, none, [](Tape& t, const auto& in) {
    return t.Gather(t.Columns(in[0], 2, 3), {1, 1, -1, 3});
  });
  CheckGradients({Random(4, 3, 1)}, none,
                 [](Tape& t, const auto& in) { return t.SumGroups(in[0], {1, 0, 1, 1}, 3); });
  CheckGradients({Random(2, 3, 1), Random(4, 3, 2)}, none,
                 [](Tape& t, const auto& in) { return t.ConcatenateRows({in[0], in[1], in[0]}); });
  CheckGradients({Random(2, 3, 1), Random(2, 1, 2)}, none,
                 [](Tape& t, const auto& in) { return t.ConcatenateColumns({in[1], in[0]}); });
  CheckGradients({Random(3, 5, 4)}, none,
                 [](Tape& t, const auto& in) { return t.SoftmaxRows(in[0]); });
  CheckGradients({Random(3, 2, 4), Random(3, 4, 5)}, none,
                 [](Tape& t, const auto& in) { return t.OuterRows(in[0], in[1]); });
}

TEST(LayersTest, GradientsOfEveryLayer) {
  const std::vector<int> begin = {0, 3, 4, 7};
  {
    Weights weights(2);
    const Linear layer(weights, 5, 3);
    CheckGradients({Random(7, 5, 1)}, weights,
                   [&](Tape& t, const auto& in) { return layer(t, in[0]); });
  }
  {
    Weights weights(3);
    const LayerNorm layer(weights, 6);
    for (Matrix& each : weights.all()) each += Random(1, 6, 8);
    CheckGradients({Random(3, 6, 1)}, weights,
                   [&](Tape& t, const auto& in) { return layer(t, in[0]); });
  }
  {
    Weights weights(4);
    const SelfAttention layer(weights, 6, 2);
    CheckGradients({Random(7, 6, 1)}, weights,
                   [&](Tape& t, const auto& in) { return layer(t, in[0], begin); });
  }
  {
    Weights weights(5);
    const GruCell layer(weights, 3, 4);
    CheckGradients({Random(2, 3, 1), Random(2, 4, 2)}, weights,
                   [&](Tape& t, const auto& in) { return layer(t, in[0], in[1]); });
  }
  {
    Weights weights(6);
    const LstmCell layer(weights, 3, 4);
    CheckGradients({Random(7, 3, 1)}, weights,
                   [&](Tape& t, const auto& in) { return RunLstm(t, layer, 4, in[0], begin); });
  }
  {
    Weights weights(7);
    const Stack stack(weights, 4, {5, 3});
    const Residual residual(weights, 3, 2);
    for (Matrix& each : weights.all()) each.array() += 0.15f;  // away from the kinks
    CheckGradients({Random(3, 4, 1)}, weights,
                   [&](Tape& t, const auto& in) { return residual(t, stack(t, in[0])); });
  }
}

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

// Attention by the formula, one number at a time.
TEST(TapeTest, AttentionIsTheFormula) {
  constexpr int kRows = 5, kHeads = 2, kWidth = 3;
  const Matrix q = Random(kRows, 6, 1), k = Random(kRows, 6, 2), v = Random(kRows, 6, 3);
  Tape tape;
  const Var result = tape.Attention(tape.Input(q), tape.Input(k), tape.Input(v), {0, kRows}, 2);
  for (int h = 0; h < kHeads; ++h) {
    for (int i = 0; i < kRows; ++i) {
      std::vector<double> share;
      double total = 0;
      for (int j = 0; j < kRows; ++j) {
        double dot = 0;
        for (int c = 0; c < kWidth; ++c) dot += double{q(i, h * 3 + c)} * k(j, h * 3 + c);
        share.push_back(std::exp(dot / std::sqrt(3.0)));
        total += share.back();
      }
      for (int c = 0; c < kWidth; ++c) {
        double sum = 0;
        for (int j = 0; j < kRows; ++j) sum += share[j] / total * v(j, h * 3 + c);
        EXPECT_NEAR(result->value(i, h * 3 + c), sum, 1e-5);
      }
    }
  }
}

TEST(LayersTest, CellsAreTheFormulas) {
  constexpr int kInputs = 3, kWidth = 2;
  Weights gru_weights(1), lstm_weights(2);
  const GruCell gru(gru_weights, kInputs, kWidth);
  const LstmCell lstm(lstm_weights, kInputs, kWidth);
  for (Weights* each : {&gru_weights, &lstm_weights}) {
    for (Matrix& matrix : each->all())
      matrix += Random(static_cast<int>(matrix.rows()), static_cast<int>(matrix.cols()), 5);
  }
  const Matrix x = Random(1, kInputs, 3), state = Random(1, kWidth, 4), cell = Random(1, kWidth, 6);
  // The sums of gate g of unit u, from the input and from the state.
  const auto sums = [&](Weights& weights, int column) {
    const std::deque<Matrix>& w = weights.all();  // input, its bias, state, its bias
    double input = w[1](0, column), hidden = w[3](0, column);
    for (int i = 0; i < kInputs; ++i) input += double{x(0, i)} * w[0](i, column);
    for (int i = 0; i < kWidth; ++i) hidden += double{state(0, i)} * w[2](i, column);
    return std::pair(input, hidden);
  };
  Tape tape;
  const Var next = gru(tape, tape.Input(x), tape.Input(state));
  const LstmCell::State after = lstm(tape, tape.Input(x), {tape.Input(state), tape.Input(cell)});
  for (int u = 0; u < kWidth; ++u) {
    const auto gate = [&](int g) {
      const auto [input, hidden] = sums(gru_weights, g * kWidth + u);
      return Logistic(input + hidden);
    };
    const auto [input, hidden] = sums(gru_weights, 2 * kWidth + u);
    const double fresh = std::tanh(input + gate(0) * hidden);
    EXPECT_NEAR(next->value(0, u), (1 - gate(1)) * fresh + gate(1) * state(0, u), 1e-5);
    const auto of_lstm = [&](int g) {
      const auto [a, b] = sums(lstm_weights, g * kWidth + u);
      return a + b;
    };
    const double c =
        Logistic(of_lstm(1)) * cell(0, u) + Logistic(of_lstm(0)) * std::tanh(of_lstm(2));
    EXPECT_NEAR(after.cell->value(0, u), c, 1e-5);
    EXPECT_NEAR(after.hidden->value(0, u), Logistic(of_lstm(3)) * std::tanh(c), 1e-5);
  }
}

// Every row has the same bits, however many rows are computed with it.
TEST(TapeTest, RowsDoNotDependOnOthers) {
  Rng rng(5);
  for (const int width : {2, 9, 24, 48, 250}) {
    const Matrix b = Random(width, 8 + width / 2, 3);
    const Matrix all = Random(70, width, 4);
    Matrix whole, part;
    RowProduct(all, b, whole);
    for (int turn = 0; turn < 20; ++turn) {
      const auto first = static_cast<int>(rng.Below(60));
      const auto count = static_cast<int>(1 + rng.Below(70 - first));
      RowProduct(all.middleRows(first, count), b, part);
      ASSERT_EQ(part, whole.middleRows(first, count)) << width << " " << first << " " << count;
    }
  }
  Weights weights(1);
  const SelfAttention attention(weights, 24, 2);
  const LstmCell lstm(weights, 24, 24);
  std::vector<int> begin = {0};
  for (int s = 0; s < 12; ++s) begin.push_back(begin.back() + 1 + static_cast<int>(rng.Below(40)));
  const Matrix rows = Random(begin.back(), 24, 6);
  const auto run = [&](const Matrix& x, const std::vector<int>& of) {
    Tape tape;
    return RunLstm(tape, lstm, 24, attention(tape, tape.Input(x), of), of)->value;
  };
  const Matrix together = run(rows, begin);
  for (size_t s = 0; s + 1 < begin.size(); ++s) {
    const int count = begin[s + 1] - begin[s];
    ASSERT_EQ(run(rows.middleRows(begin[s], count), {0, count}),
              together.middleRows(begin[s], count));
  }
}

// A network of one linear layer finds the line behind its data.
TEST(AdamTest, FindsALine) {
  Weights weights(1);
  const Linear layer(weights, 2, 1);
  Adam adam(weights, 0, 10);
  const Matrix x = Random(64, 2, 1);
  for (int step = 0; step < 800; ++step) {
    Tape tape(/*learns=*/true);
    const Var y = layer(tape, tape.Input(x));
    const Matrix wanted = (x.col(0) * 3 - x.col(1) * 2).array() + 0.5f;
    tape.Backward(y, (y->value - wanted) / 32);
    adam.Step(tape, 0.03 * (1 - step / 800.0));
  }
  EXPECT_NEAR(weights.all()[0](0, 0), 3, 0.02);
  EXPECT_NEAR(weights.all()[0](1, 0), -2, 0.02);
  EXPECT_NEAR(weights.all()[1](0, 0), 0.5, 0.02);
}

TEST(WeightsTest, RefuseBytesThatAreNoNumbers) {
  Weights weights(1);
  weights.Fill(2, 2, 1);
  cost_model::ByteWriter writer;
  writer.Add(1.0f, 2.0f, NAN, 4.0f);
  const std::string bytes = std::move(writer).Finish();
  cost_model::ByteReader reader(bytes), truncated(absl::string_view(bytes).substr(0, 6));
  EXPECT_THAT(weights.Parse(reader),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("not finite")));
  EXPECT_THAT(weights.Parse(truncated), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hone::network

namespace hone::cost_model {
namespace {

TEST(LossTest, GradientsAreDifferences) {
  const std::vector<double> labels = {0.1, 0.9, 0.5, 0.5, 1, 0}, offset = {-1, 0.3, 0, 0.2, 0.1, 0};
  const std::vector<int> groups = {0, 4, 6};
  for (const Loss loss : {Loss::kRank, Loss::kSquares}) {
    for (const absl::Span<const double> known : {absl::Span<const double>(), {offset}}) {
      std::vector<double> scores = {0.3, -0.2, 0.1, 0.7, 0.2, 0.4}, gradient(6), ignored(6);
      LossOf(loss, scores, labels, known, groups, absl::MakeSpan(gradient));
      for (size_t i = 0; i < scores.size(); ++i) {
        constexpr double kStep = 1e-4;
        const auto at = [&](double shift) {
          std::vector<double> moved = scores;
          moved[i] += shift;
          return LossOf(loss, moved, labels, known, groups, absl::MakeSpan(ignored));
        };
        EXPECT_NEAR(gradient[i], (at(kStep) - at(-kStep)) / (2 * kStep), 1e-5);
      }
    }
  }
}

// Only candidates of one group are compared.
TEST(LossTest, GroupsAreNotCompared) {
  const std::vector<double> labels = {0.9, 0.1, 0.5, 0.2};
  std::vector<double> gradient(4);
  const auto loss = [&](double shift) {
    return LossOf(Loss::kRank, {1, 0, 1 + shift, shift}, labels, {}, {0, 2, 4},
                  absl::MakeSpan(gradient));
  };
  EXPECT_DOUBLE_EQ(loss(0), loss(50));
}

TEST(TaskBatchesTest, EveryEpochHasAllCandidatesInGroupsOfOneTask) {
  std::vector<double> throughput(150, 0.5);
  std::vector<int32_t> tasks;
  for (int i = 0; i < 150; ++i) tasks.push_back(i % 7 == 0 ? 3 : i % 2);
  const Labels labels = {.throughput = throughput, .tasks = tasks};
  TaskBatches batches(labels, {.batch = 40, .group = 20, .epochs = 2, .least_steps = 0}, 1);
  std::vector<int> seen(150, 0);
  int steps = 0;
  while (batches.Next()) {
    ++steps;
    ASSERT_EQ(batches.groups().back(), static_cast<int>(batches.members().size()));
    EXPECT_LE(batches.members().size(), 40u);
    for (size_t g = 0; g + 1 < batches.groups().size(); ++g) {
      for (int m = batches.groups()[g]; m < batches.groups()[g + 1]; ++m) {
        ++seen[batches.members()[m]];
        EXPECT_EQ(tasks[batches.members()[m]], tasks[batches.members()[batches.groups()[g]]]);
      }
    }
  }
  EXPECT_THAT(seen, testing::Each(2));
  EXPECT_EQ(steps % 2, 0);
}

}  // namespace
}  // namespace hone::cost_model
