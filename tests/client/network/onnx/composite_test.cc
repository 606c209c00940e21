// Operators that become several nodes, against loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/network/graph/interpreter.h"
#include "client/network/onnx/import.h"
#include "common/base/status_macros.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::onnx {
namespace {

using ir::Scalars;
using testing::HasSubstr;

constexpr int kF32 = 1, kI32 = 6, kI64 = 7;
const std::string kMicrosoft = "domain: 'com.microsoft' ";

// Numbers between -1 and 1 that f32 can represent, without a pattern that axes have.
Scalars Numbers(int64_t count, int seed) {
  Scalars numbers;
  for (int64_t i = 0; i < count; ++i) {
    numbers.emplace_back(static_cast<double>((i * 37 + seed * 11) % 23 - 11) / 16);
  }
  return numbers;
}

std::string FloatList(const Scalars& numbers) {
  return absl::StrCat("float_data: [",
                      absl::StrJoin(numbers, ", ",
                                    [](std::string* out, const ir::Scalar& each) {
                                      absl::StrAppend(out, each.real());
                                    }),
                      "]");
}

absl::StatusOr<std::vector<Scalars>> Outputs(const std::string& graph,
                                             const std::vector<Scalars>& inputs, int opset = 25) {
  HONE_ASSIGN_OR_RETURN(const graph::Graph imported, ImportOnnxBytes(BytesOf(graph, opset), ""));
  return Interpret(imported, inputs);
}

void ExpectClose(const Scalars& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i].real(), expected[i], 1e-5 * (1 + std::fabs(expected[i]))) << i;
  }
}

// An attention by loops over [batch, heads, sequence, size].
struct Loops {
  int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, size = 1;
  Scalars q, k, v;  // the values have the size of the keys
  double softcap = 0;
  std::function<bool(int64_t b, int64_t h, int64_t i, int64_t j)> sees;
  std::function<double(int64_t b, int64_t h, int64_t i, int64_t j)> bias;

  std::vector<double> Run(std::vector<double>* shares = nullptr) const {
    std::vector<double> result;
    for (int64_t row = 0; row < batch * heads * queries; ++row) {
      const int64_t i = row % queries, h = row / queries % heads, b = row / queries / heads;
      const int64_t first = (b * kv_heads + h / (heads / kv_heads)) * keys;
      std::vector<double> weights;
      double sum = 0;
      for (int64_t j = 0; j < keys; ++j) {
        double score = 0;
        for (int64_t d = 0; d < size; ++d) {
          score += q[row * size + d].real() * k[(first + j) * size + d].real();
        }
        score /= std::sqrt(static_cast<double>(size));
        if (softcap != 0) score = softcap * std::tanh(score / softcap);
        if (bias) score += bias(b, h, i, j);
        weights.push_back(!sees || sees(b, h, i, j) ? std::exp(score) : 0);
        sum += weights.back();
      }
      for (double& each : weights) each = sum == 0 ? 0 : each / sum;
      if (shares != nullptr) shares->insert(shares->end(), weights.begin(), weights.end());
      for (int64_t d = 0; d < size; ++d) {
        double value = 0;
        for (int64_t j = 0; j < keys; ++j) value += weights[j] * v[(first + j) * size + d].real();
        result.push_back(value);
      }
    }
    return result;
  }
};

// Converts [batch, heads, sequence, size] to [batch, sequence, heads, size].
template <typename T>
std::vector<T> Joined(const std::vector<T>& split, int64_t heads, int64_t sequence, int64_t size) {
  std::vector<T> joined(split.size());
  for (size_t at = 0; at < split.size(); ++at) {
    const auto place = static_cast<int64_t>(at);
    const int64_t d = place % size, i = place / size % sequence,
                  h = place / size / sequence % heads, b = place / size / sequence / heads;
    joined[((b * sequence + i) * heads + h) * size + d] = split[at];
  }
  return joined;
}

std::string Dims(const std::vector<int64_t>& shape) { return absl::StrJoin(shape, ", "); }

TEST(AttentionTest, GroupsOfHeads) {
  for (const int64_t heads : {2, 4}) {
    for (const int64_t queries : {1, 3}) {
      Loops loops{
          .batch = 2, .heads = heads, .kv_heads = 2, .queries = queries, .keys = 5, .size = 4};
      loops.q = Numbers(2 * heads * queries * 4, 1);
      loops.k = Numbers(2 * 2 * 5 * 4, 2);
      loops.v = Numbers(2 * 2 * 5 * 4, 3);
      const std::vector<double> expected = loops.Run();
      HONE_ASSERT_OK_AND_ASSIGN(
          const auto split,
          Outputs(Input("q", kF32, Dims({2, heads, queries, 4})) + Input("k", kF32, "2, 2, 5, 4") +
                      Input("v", kF32, "2, 2, 5, 4") + NodeText("Attention", "q k v", "y") +
                      Output("y"),
                  {loops.q, loops.k, loops.v}));
      ExpectClose(split[0], expected);
      HONE_ASSERT_OK_AND_ASSIGN(
          const auto joined,
          Outputs(Input("q", kF32, Dims({2, queries, heads * 4})) + Input("k", kF32, "2, 5, 8") +
                      Input("v", kF32, "2, 5, 8") +
                      NodeText("Attention", "q k v", "y",
                               Int("q_num_heads", heads) + Int("kv_num_heads", 2)) +
                      Output("y"),
                  {Joined(loops.q, heads, queries, 4), Joined(loops.k, 2, 5, 4),
                   Joined(loops.v, 2, 5, 4)}));
      ExpectClose(joined[0], Joined(expected, heads, queries, 4));
    }
  }
}

// Two queries after a past of three keys.
Loops AfterPast() {
  Loops loops{.batch = 1, .heads = 2, .kv_heads = 1, .queries = 2, .keys = 5, .size = 3};
  loops.q = Numbers(12, 1);
  loops.k = Numbers(15, 2);
  loops.v = Numbers(15, 3);
  return loops;
}

const std::string kAfterPast = Input("q", kF32, "1, 2, 2, 3") + Input("k", kF32, "1, 1, 2, 3") +
                               Input("v", kF32, "1, 1, 2, 3") + Input("pk", kF32, "1, 1, 3, 3") +
                               Input("pv", kF32, "1, 1, 3, 3");

std::vector<Scalars> InputsAfterPast(const Loops& loops) {
  const auto part = [](const Scalars& all, int from, int to) {
    return Scalars(all.begin() + from, all.begin() + to);
  };
  return {loops.q, part(loops.k, 9, 15), part(loops.v, 9, 15), part(loops.k, 0, 9),
          part(loops.v, 0, 9)};
}

TEST(AttentionTest, CausalAfterAPast) {
  Loops loops = AfterPast();
  loops.softcap = 0.5;
  loops.sees = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i + 3; };
  std::vector<double> shares;
  const std::vector<double> expected = loops.Run(&shares);
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto outputs,
      Outputs(kAfterPast +
                  NodeText("Attention", "q k v _ pk pv", "y present_k present_v shares",
                           Int("is_causal", 1) + Float("softcap", 0.5) +
                               Int("qk_matmul_output_mode", 3)) +
                  Output("y") + Output("present_k") + Output("present_v") + Output("shares"),
              InputsAfterPast(loops)));
  ExpectClose(outputs[0], expected);
  EXPECT_EQ(outputs[1], loops.k);
  EXPECT_EQ(outputs[2], loops.v);
  ExpectClose(outputs[3], shares);
}

// The nodes that only unused outputs need are left out.
TEST(AttentionTest, OnlyTheCache) {
  const Loops loops = AfterPast();
  HONE_ASSERT_OK_AND_ASSIGN(
      const graph::Graph graph,
      ImportOnnxBytes(BytesOf(kAfterPast +
                                  NodeText("Attention", "q k v _ pk pv", "y present_k present_v",
                                           Int("is_causal", 1)) +
                                  Output("present_k"),
                              24),
                      ""));
  EXPECT_EQ(graph.nodes.size(), 1u);
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(graph, InputsAfterPast(loops)));
  EXPECT_EQ(outputs[0], loops.k);
}

TEST(AttentionTest, Windows) {
  for (const bool causal : {false, true}) {
    Loops loops = AfterPast();
    loops.sees = [=](int64_t, int64_t, int64_t i, int64_t j) {
      return i + 3 - 1 <= j && j <= i + 3 + (causal ? 0 : 1);
    };
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto outputs,
        Outputs(kAfterPast +
                    NodeText("Attention", "q k v _ pk pv", "y",
                             Int("is_causal", causal ? 1 : 0) + Int("left_window_size", 1) +
                                 Int("right_window_size", 1)) +
                    Output("y"),
                InputsAfterPast(loops)));
    ExpectClose(outputs[0], loops.Run());
  }
}

TEST(AttentionTest, MasksMayHideAllKeys) {
  Loops loops = AfterPast();
  loops.sees = [](int64_t, int64_t, int64_t i, int64_t j) { return i == 1 && j % 2 == 0 && j < 4; };
  std::vector<Scalars> inputs = InputsAfterPast(loops);
  Scalars allowed, added;  // without the last key, which is masked then
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      const bool sees = i == 1 && j % 2 == 0;
      allowed.emplace_back(sees ? 1 : 0);
      added.emplace_back(sees ? 0.0 : -std::numeric_limits<double>::infinity());
    }
  }
  for (const bool is_bool : {false, true}) {
    inputs.push_back(is_bool ? allowed : added);
    HONE_ASSERT_OK_AND_ASSIGN(const auto outputs,
                              Outputs(kAfterPast + Input("m", is_bool ? 9 : kF32, "2, 4") +
                                          NodeText("Attention", "q k v m pk pv", "y") + Output("y"),
                                      inputs));
    ExpectClose(outputs[0], loops.Run());
    inputs.pop_back();
  }
}

// The cache is longer than what is in use: 4 and 2 keys, of which the last 2 are new.
TEST(AttentionTest, LengthsOfAFixedCache) {
  Loops loops{.batch = 2, .heads = 2, .kv_heads = 2, .queries = 2, .keys = 6, .size = 3};
  loops.q = Numbers(24, 1);
  loops.k = Numbers(72, 2);
  loops.v = Numbers(72, 3);
  for (const bool causal : {false, true}) {
    loops.sees = [=](int64_t b, int64_t, int64_t i, int64_t j) {
      const int64_t length = b == 0 ? 4 : 2;
      return j < length && (!causal || j <= i + length - 2);
    };
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto outputs,
        Outputs(Input("q", kF32, "2, 2, 2, 3") + Input("k", kF32, "2, 2, 6, 3") +
                    Input("v", kF32, "2, 2, 6, 3") + Input("n", kI64, "2") +
                    NodeText("Attention", "q k v _ _ _ n", "y", Int("is_causal", causal ? 1 : 0)) +
                    Output("y"),
                {loops.q, loops.k, loops.v, {4, 2}}));
    ExpectClose(outputs[0], loops.Run());
  }
}

// A token is written into a cache of 6 positions after 3 and 1 others, and rotated by its position.
TEST(GroupQueryAttentionTest, WritesTheCache) {
  for (const int64_t window : {-1, 2}) {
    Loops loops{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 1, .keys = 6, .size = 2};
    const Scalars q = Numbers(16, 1), k = Numbers(8, 2), v = Numbers(8, 3);
    const Scalars past_k = Numbers(48, 4), past_v = Numbers(48, 5);
    const Scalars cos = Numbers(6, 6), sin = Numbers(6, 7);
    const int64_t places[] = {3, 1};
    const auto rotated = [&](const Scalars& x, int64_t heads) {
      Scalars result;
      for (size_t at = 0; at < x.size(); at += 2) {
        const int64_t place = places[static_cast<int64_t>(at) / 2 / heads];
        const double c = cos[place].real(), s = sin[place].real();
        const double first = x[at].real(), second = x[at + 1].real();
        result.emplace_back(c * first - s * second);
        result.emplace_back(s * first + c * second);
      }
      return result;
    };
    const auto written = [&](Scalars cache, const Scalars& added) {
      for (int64_t row = 0; row < 4; ++row) {
        for (int64_t d = 0; d < 2; ++d) {
          cache[(row * 6 + places[row / 2]) * 2 + d] = added[row * 2 + d];
        }
      }
      return cache;
    };
    loops.q = rotated(q, 4);
    loops.k = written(past_k, rotated(k, 2));
    loops.v = written(past_v, v);
    loops.sees = [&](int64_t b, int64_t, int64_t, int64_t j) {
      return j <= places[b] && (window < 0 || j > places[b] - window);
    };
    const std::string given = Input("pk", kF32, "2, 2, 6, 2") + Input("pv", kF32, "2, 2, 6, 2") +
                              Input("lengths", kI32, "2") + Input("total", kI32, "1") +
                              Initializer("cos", kF32, "6, 1", FloatList(cos)) +
                              Initializer("sin", kF32, "6, 1", FloatList(sin));
    const std::string attributes = kMicrosoft + Int("num_heads", 4) + Int("kv_num_heads", 2) +
                                   Int("do_rotary", 1) + Int("local_window_size", window);
    const std::string outputs = Output("y") + Output("nk") + Output("nv");
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto separate,
        Outputs(Input("q", kF32, "2, 1, 8") + Input("k", kF32, "2, 1, 4") +
                    Input("v", kF32, "2, 1, 4") + given +
                    NodeText("GroupQueryAttention", "q k v pk pv lengths total cos sin", "y nk nv",
                             attributes) +
                    outputs,
                {q, k, v, past_k, past_v, {3, 1}, {4}}));
    ExpectClose(separate[0], loops.Run());
    EXPECT_EQ(separate[1].size(), loops.k.size());
    for (size_t i = 0; i < loops.k.size(); ++i) {
      EXPECT_NEAR(separate[1][i].real(), loops.k[i].real(), 1e-6);
    }
    EXPECT_EQ(separate[2], loops.v);
    Scalars packed;
    for (int64_t b = 0; b < 2; ++b) {
      packed.insert(packed.end(), q.begin() + b * 8, q.begin() + b * 8 + 8);
      packed.insert(packed.end(), k.begin() + b * 4, k.begin() + b * 4 + 4);
      packed.insert(packed.end(), v.begin() + b * 4, v.begin() + b * 4 + 4);
    }
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto joined,
        Outputs(Input("q", kF32, "2, 1, 16") + given +
                    NodeText("GroupQueryAttention", "q _ _ pk pv lengths total cos sin", "y nk nv",
                             attributes) +
                    outputs,
                {packed, past_k, past_v, {3, 1}, {4}}));
    ExpectClose(joined[0], loops.Run());
  }
}

// A prompt without a past. The cache is as long as the prompt.
TEST(GroupQueryAttentionTest, Prompt) {
  Loops loops{.batch = 1, .heads = 2, .kv_heads = 1, .queries = 3, .keys = 3, .size = 2};
  loops.q = Numbers(12, 1);
  loops.k = Numbers(6, 2);
  loops.v = Numbers(6, 3);
  loops.sees = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i; };
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto outputs,
      Outputs(Input("q", kF32, "1, 3, 4") + Input("k", kF32, "1, 3, 2") +
                  Input("v", kF32, "1, 3, 2") + Input("lengths", kI32, "1") +
                  Input("total", kI32, "1") +
                  NodeText("GroupQueryAttention", "q k v _ _ lengths total", "y nk nv",
                           kMicrosoft + Int("num_heads", 2) + Int("kv_num_heads", 1)) +
                  Output("y") + Output("nk"),
              {Joined(loops.q, 2, 3, 2), loops.k, loops.v, {2}, {3}}));
  ExpectClose(outputs[0], Joined(loops.Run(), 2, 3, 2));
  EXPECT_EQ(outputs[1], loops.k);
}

TEST(MultiHeadAttentionTest, BiasPaddingAndPast) {
  Loops loops{.batch = 1, .heads = 2, .kv_heads = 2, .queries = 2, .keys = 3, .size = 2};
  const Scalars q = Numbers(8, 1), k = Numbers(8, 2), v = Numbers(8, 3), bias = Numbers(12, 4);
  const Scalars past_k = Numbers(4, 5), past_v = Numbers(4, 6);  // [1, 2, 1, 2]
  const auto biased = [&](Scalars x, int part) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[i].real() + bias[part * 4 + i % 4].real();
    return x;
  };
  const auto split = [](const Scalars& joined) {  // its own inverse, with two heads and tokens
    return Joined(joined, 2, 2, 2);
  };
  const auto appended = [](const Scalars& past, const Scalars& added) {
    Scalars all;
    for (int h = 0; h < 2; ++h) {
      all.insert(all.end(), past.begin() + h * 2, past.begin() + h * 2 + 2);
      all.insert(all.end(), added.begin() + h * 4, added.begin() + h * 4 + 4);
    }
    return all;
  };
  loops.q = split(biased(q, 0));
  loops.k = appended(past_k, split(biased(k, 1)));
  loops.v = appended(past_v, split(biased(v, 2)));
  loops.bias = [](int64_t, int64_t, int64_t, int64_t j) { return j == 1 ? -3.0 : 0.0; };
  loops.sees = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i + 1; };
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto outputs,
      Outputs(Input("q", kF32, "1, 2, 4") + Input("k", kF32, "1, 2, 4") +
                  Input("v", kF32, "1, 2, 4") + Initializer("b", kF32, "12", FloatList(bias)) +
                  Input("m", kI32, "1, 3") + Input("pk", kF32, "1, 2, 1, 2") +
                  Input("pv", kF32, "1, 2, 1, 2") +
                  NodeText("MultiHeadAttention", "q k v b m _ pk pv", "y nk nv",
                           kMicrosoft + Int("num_heads", 2) + Int("unidirectional", 1) +
                               Float("mask_filter_value", -3)) +
                  Output("y") + Output("nk") + Output("nv"),
              {q, k, v, {1, 0, 1}, past_k, past_v}));
  ExpectClose(outputs[0], Joined(loops.Run(), 2, 2, 2));
  EXPECT_EQ(outputs[1].size(), loops.k.size());
  EXPECT_EQ(outputs[2].size(), loops.v.size());
}

TEST(RotaryEmbeddingTest, JoinedHeadsAndPositions) {
  const Scalars x = Numbers(24, 1), cos = Numbers(10, 2), sin = Numbers(10, 3);
  std::vector<double> expected;  // [1, 3 tokens, 2 heads, 4]
  for (int64_t at = 0; at < 24; ++at) {
    const int64_t d = at % 4, token = at / 8, place = token + 1;
    const double c = cos[place * 2 + d % 2].real(), s = sin[place * 2 + d % 2].real();
    expected.push_back(d < 2 ? c * x[at].real() - s * x[at + 2].real()
                             : c * x[at].real() + s * x[at - 2].real());
  }
  const std::string tables = Initializer("c", kF32, "5, 2", FloatList(cos)) +
                             Initializer("s", kF32, "5, 2", FloatList(sin));
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto own,
      Outputs(Input("x", kF32, "1, 3, 8") + Input("p", kI64, "1, 3") + tables +
                  NodeText("RotaryEmbedding", "x c s p", "y", Int("num_heads", 2)) + Output("y"),
              {x, {1, 2, 3}}));
  ExpectClose(own[0], expected);
  for (const bool one : {false, true}) {  // only the first position, or all
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto theirs,
        Outputs(Input("x", kF32, "1, 3, 8") + Input("p", kI64, one ? "1" : "1, 3") + tables +
                    NodeText("RotaryEmbedding", "x p c s", "y", kMicrosoft) + Output("y"),
                {x, one ? Scalars{1} : Scalars{1, 2, 3}}));
    ExpectClose(theirs[0], expected);
  }
}

TEST(NormalizationTest, SkipsALayer) {
  const Scalars x = Numbers(6, 1), skip = Numbers(6, 2), scale = Numbers(3, 3);
  const Scalars shift = Numbers(3, 4), bias = Numbers(3, 5);
  const std::string given = Input("x", kF32, "1, 2, 3") + Input("s", kF32, "1, 2, 3") +
                            Initializer("g", kF32, "3", FloatList(scale)) +
                            Initializer("b", kF32, "3", FloatList(shift)) +
                            Initializer("c", kF32, "3", FloatList(bias));
  for (const bool simplified : {false, true}) {
    std::vector<double> sums, expected;
    for (int i = 0; i < 6; ++i) {
      sums.push_back(x[i].real() + skip[i].real() + bias[i % 3].real());
    }
    for (int row = 0; row < 6; row += 3) {
      double mean = 0, squares = 0;
      for (int i = 0; i < 3 && !simplified; ++i) mean += sums[row + i] / 3;
      for (int i = 0; i < 3; ++i) squares += (sums[row + i] - mean) * (sums[row + i] - mean) / 3;
      for (int i = 0; i < 3; ++i) {
        expected.push_back((sums[row + i] - mean) / std::sqrt(squares + 0.01) * scale[i].real() +
                           (simplified ? 0 : shift[i].real()));
      }
    }
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto outputs, Outputs(given +
                                        NodeText(simplified ? "SkipSimplifiedLayerNormalization"
                                                            : "SkipLayerNormalization",
                                                 simplified ? "x s g c" : "x s g b c", "y _ _ sum",
                                                 kMicrosoft + Float("epsilon", 0.01)) +
                                        Output("y") + Output("sum"),
                                    {x, skip}));
    ExpectClose(outputs[0], expected);
    ExpectClose(outputs[1], sums);
  }
  // ONNX Runtime also has the plain one in ONNX's domain.
  for (const std::string& domain : {std::string(), kMicrosoft}) {
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto outputs,
        Outputs(given + NodeText("SimplifiedLayerNormalization", "x g", "y", domain) +
                    NodeText("RMSNormalization", "x g", "z") + Output("y") + Output("z"),
                {x, skip}));
    EXPECT_EQ(outputs[0], outputs[1]);
  }
}

TEST(ActivationTest, OfOtherDomain) {
  const Scalars x = {-1.5, 0.25, 2.0};
  const auto run = [&](const std::string& op, const std::string& inputs,
                       const std::string& attributes) {
    return Outputs(Input("x", kF32, "1, 3") +
                       Initializer("b", kF32, "3", "float_data: [1, 0, -1]") +
                       NodeText(op, inputs, "y", kMicrosoft + attributes) + Output("y"),
                   {x});
  };
  const auto expect = [&](const std::string& op, bool biased, const std::string& attributes,
                          const std::function<double(double)>& function) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, run(op, biased ? "x b" : "x", attributes));
    std::vector<double> expected;
    for (int i = 0; i < 3; ++i) expected.push_back(function(x[i].real() + (biased ? 1 - i : 0)));
    ExpectClose(outputs[0], expected);
  };
  const auto gelu = [](double v) { return v * (1 + std::erf(v / std::sqrt(2.0))) / 2; };
  const auto fast = [](double v) {
    return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  };
  expect("Gelu", false, "", gelu);
  expect("BiasGelu", true, "", gelu);
  expect("FastGelu", true, "", fast);
  expect("FastGelu", false, "", fast);
  expect("QuickGelu", false, "", [](double v) { return v / (1 + std::exp(-1.702 * v)); });
  expect("QuickGelu", false, Float("alpha", 2),
         [](double v) { return v / (1 + std::exp(-2 * v)); });
}

TEST(FusedProductTest, TransposesScalesAndActivates) {
  const Scalars a = Numbers(6, 1), b = Numbers(8, 2);  // [3, 2] transposed, [4, 2] transposed
  const auto product = [&](int64_t i, int64_t j, int64_t rows) {
    double sum = 0;
    for (int64_t k = 0; k < 2; ++k) sum += a[k * rows + i].real() * b[j * 2 + k].real();
    return sum;
  };
  std::vector<double> scaled, activated;
  for (int64_t at = 0; at < 12; ++at) {
    const double sum = 0.5 * product(at / 4, at % 4, 3);
    scaled.push_back(sum);
    activated.push_back(sum < 0 ? 0.1 * sum : sum);
  }
  const std::string given = Input("a", kF32, "2, 3") + Input("b", kF32, "4, 2");
  const std::string attributes =
      kMicrosoft + Int("transA", 1) + Int("transB", 1) + Float("alpha", 0.5);
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto matmul,
      Outputs(given + NodeText("FusedMatMul", "a b", "y", attributes) + Output("y"), {a, b}));
  ExpectClose(matmul[0], scaled);
  HONE_ASSERT_OK_AND_ASSIGN(const auto gemm,
                            Outputs(given +
                                        NodeText("FusedGemm", "a b", "y",
                                                 attributes + String("activation", "LeakyRelu") +
                                                     Float("activation_alpha", 0.1)) +
                                        Output("y"),
                                    {a, b}));
  ExpectClose(gemm[0], activated);
}

// Weights [5, 40] in blocks of 16: the last block of a row is not full. Elements of 4 bits lie in
// the low bits first, and each row of zero points begins a byte.
TEST(MatMulNBitsTest, UnpacksBlocks) {
  for (const int bits : {4, 8}) {
    for (const bool has_zeros : {false, true}) {
      const int64_t rows = 5, inner = 40, block = 16, blocks = 3, mask = (1 << bits) - 1;
      const auto weight = [&](int64_t n, int64_t k) { return (n * 31 + k * 7) & mask; };
      const auto zero = [&](int64_t n, int64_t b) { return (n * 5 + b * 3 + 1) & mask; };
      const auto pack = [&](int64_t stored, const std::function<int64_t(int64_t, int64_t)>& at) {
        std::vector<int64_t> bytes;
        for (int64_t n = 0; n < rows; ++n) {
          for (int64_t c = 0; c < stored; c += 8 / bits) {
            bytes.push_back(bits == 8 ? at(n, c) : at(n, c) | at(n, c + 1) << 4);
          }
        }
        return absl::StrCat("int32_data: [", absl::StrJoin(bytes, ", "), "]");
      };
      const Scalars a = Numbers(2 * inner, 1), scales = Numbers(rows * blocks, 2);
      const Scalars bias = Numbers(rows, 3);
      std::vector<double> expected;
      for (int64_t at = 0; at < 2 * rows; ++at) {
        const int64_t n = at % rows;
        double sum = bias[n].real();
        for (int64_t k = 0; k < inner; ++k) {
          const int64_t z = has_zeros ? zero(n, k / block) : int64_t{1} << (bits - 1);
          sum += a[at / rows * inner + k].real() * static_cast<double>(weight(n, k) - z) *
                 scales[n * blocks + k / block].real();
        }
        expected.push_back(sum);
      }
      const int64_t zero_bytes = bits == 8 ? blocks : (blocks + 1) / 2;
      const std::string model =
          Input("a", kF32, "1, 2, 40") +
          Initializer("b", 2, Dims({rows, blocks, block * bits / 8}),
                      pack(blocks * block, weight)) +
          Initializer("s", kF32, Dims({rows * blocks}), FloatList(scales)) +
          Initializer("z", 2, Dims({rows * zero_bytes}), pack(zero_bytes * 8 / bits, zero)) +
          Initializer("c", kF32, "5", FloatList(bias)) +
          NodeText("MatMulNBits", has_zeros ? "a b s z _ c" : "a b s _ _ c", "y",
                   kMicrosoft + Int("K", inner) + Int("N", rows) + Int("bits", bits) +
                       Int("block_size", block)) +
          Output("y");
      HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Outputs(model, {a}));
      ExpectClose(outputs[0], expected);
      // The weights keep their bits.
      HONE_ASSERT_OK_AND_ASSIGN(const auto graph, ImportOnnxBytes(BytesOf(model, 17), ""));
      const auto weights = std::find_if(
          graph.values.begin(), graph.values.end(),
          [&](const graph::Value& value) { return value.type.shape == std::vector{inner, rows}; });
      ASSERT_NE(weights, graph.values.end());
      EXPECT_EQ(weights->constant->size(), rows * inner * bits / 8);
    }
  }
}

// Sums of products of large inputs and whole numbers overflow in f32, so weights with scales that
// make such inputs likely become floats at import.
TEST(MatMulNBitsTest, ExtremeScalesMakeFloats) {
  const int64_t rows = 3, inner = 16;
  std::vector<int64_t> bytes;
  for (int64_t i = 0; i < rows * inner / 2; ++i) bytes.push_back(i * 37 % 256);
  const std::string data = absl::StrCat("int32_data: [", absl::StrJoin(bytes, ", "), "]");
  const std::string blocks =
      kMicrosoft + Int("K", inner) + Int("N", rows) + Int("block_size", inner);
  for (const double scale : {0.5, 0.0, 0x1p-97, 0x1p-100}) {
    SCOPED_TRACE(scale);
    const std::string model =
        Input("a", kF32, "2, 16") + Initializer("b", 2, "3, 1, 8", data) +
        Initializer("s", kF32, "3", FloatList({0.25, 2.0, scale})) +
        Initializer("w", 2, "8, 3", data) + NodeText("MatMulNBits", "a b s", "y", blocks) +
        NodeText("DequantizeLinear", "w s", "z", Int("axis", 1)) + Output("y") + Output("z");
    HONE_ASSERT_OK_AND_ASSIGN(const auto graph, ImportOnnxBytes(BytesOf(model, 21), ""));
    const bool is_extreme = scale == 0x1p-100;
    const auto count = [&](const std::string& op) {
      return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                           [&](const graph::Node& node) { return node.op == op; });
    };
    EXPECT_EQ(count("com.microsoft.MatMulNBits"), is_extreme ? 0 : 1);
    EXPECT_EQ(count("MatMul"), is_extreme ? 1 : 0);
    EXPECT_EQ(count("DequantizeLinear"), is_extreme ? 0 : 1);

    Scalars a = Numbers(2 * inner, 1);
    for (ir::Scalar& each : a) each = each.real() * 0x1p100;
    HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(graph, {a}));
    const double scales[] = {0.25, 2.0, scale};
    for (int64_t at = 0; at < 2 * rows; ++at) {
      const int64_t n = at % rows;
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        const int64_t weight = (bytes[(n * inner + k) / 2] >> (k % 2 * 4) & 15) - 8;
        sum += a[at / rows * inner + k].real() * static_cast<double>(weight) * scales[n];
      }
      EXPECT_NEAR(outputs[0][at].real(), sum, 1e-5 * std::fabs(sum));
    }
    for (size_t i = 0; i < bytes.size(); ++i) {
      const double expected = static_cast<double>(bytes[i]) * scales[i % 3];
      EXPECT_NEAR(outputs[1][i].real(), expected, 1e-5 * expected);
    }
  }
}

// The smallest scale in f16 is not extreme, but infinities and NaN are in every type.
TEST(DequantizeLinearTest, ScalesInF16ThatAreNotFiniteMakeFloats) {
  const std::map<int, bool> scales = {{/*2^-24*/ 1, false},
                                      {/*0.5*/ 0x3800, false},
                                      {/*infinity*/ 0x7c00, true},
                                      {/*NaN*/ 0x7e00, true}};
  for (const auto& [bits, is_extreme] : scales) {
    SCOPED_TRACE(bits);
    const std::string model =
        Initializer("w", 2, "2, 2", "int32_data: [1, 2, 3, 4]") +
        Initializer("s", /*f16*/ 10, "2", absl::StrCat("int32_data: [15360, ", bits, "]")) +
        NodeText("DequantizeLinear", "w s", "z", Int("axis", 1)) + Output("z");
    HONE_ASSERT_OK_AND_ASSIGN(const auto graph, ImportOnnxBytes(BytesOf(model, 21), ""));
    EXPECT_EQ(graph.nodes.empty(), is_extreme);
  }
}

TEST(CompositeTest, Errors) {
  GoldenOfTest golden;
  const std::string given =
      Input("x", kF32, "1, 2, 8") + Input("q", kF32, "1, 1, 2, 8") + Input("n", kI32, "1") +
      Input("u", 2, "4, 1, 8") +
      Initializer("w", 2, "4, 1, 8",
                  "int32_data: [" + absl::StrJoin(std::vector<int>(32, 1), ", ") + "]") +
      Initializer("s", kF32, "4", "float_data: [1, 1, 1, 1]");
  const auto add = [&](const std::string& node, const std::string& outputs = Output("y")) {
    golden.Add(ImportOnnxBytes(BytesOf(given + node + outputs, 25), "").status().message());
  };
  add(NodeText("Attention", "x x", "y"));
  add(NodeText("Attention", "x x x", "y", Int("q_num_heads", 3) + Int("kv_num_heads", 1)));
  add(NodeText("Attention", "q q q _ q", "y"));
  add(NodeText("Attention", "q q q s", "y"));
  add(NodeText("Attention", "q q q", "y", Int("qk_matmul_output_mode", 4)));
  add(NodeText("Attention", "q q q", "y", Int("softmax_precision", 11)));
  const auto other = [&](const std::string& op, const std::string& inputs,
                         const std::string& attributes, const std::string& outputs = "y") {
    add(NodeText(op, inputs, outputs, kMicrosoft + attributes));
  };
  const std::string heads = Int("num_heads", 2) + Int("kv_num_heads", 1);
  other("GroupQueryAttention", "x x x _ _ n n", "");
  other("GroupQueryAttention", "x x x q _ n n", heads);
  other("GroupQueryAttention", "x _ x _ _ n n", heads);
  other("GroupQueryAttention", "x _ _ _ _ n n", Int("num_heads", 5) + Int("kv_num_heads", 5));
  other("GroupQueryAttention", "x x x _ _ n n", heads + Int("smooth_softmax", 1));
  other("GroupQueryAttention", "x x x _ _ n n", heads + Int("do_rotary", 1));
  other("MultiHeadAttention", "x", Int("num_heads", 2));
  other("MultiHeadAttention", "x x x", Int("num_heads", 3));
  const std::string blocks = Int("K", 8) + Int("N", 4) + Int("block_size", 16);
  other("MatMulNBits", "x u s", blocks);
  other("MatMulNBits", "x w s", blocks + Int("bits", 2));
  other("MatMulNBits", "x w s", Int("K", 8) + Int("N", 4) + Int("block_size", 12));
  other("MatMulNBits", "x w s", Int("K", 8) + Int("N", 3) + Int("block_size", 16));
  other("MatMulNBits", "x w s _ s", blocks);
  other("FusedMatMul", "x x", Int("transBatchA", 1));
  other("FusedGemm", "s s", String("activation", "Softmax"));
  other("SkipSimplifiedLayerNormalization", "x x s", "", "y z");
  other("RotaryEmbedding", "x n s s", "");
  other("BiasGelu", "x", "");
  other("Gelu", "x", "", "z y");
}

// Operators of other domains are listed with their domains.
TEST(CompositeTest, UnknownDomains) {
  const auto imported = ImportOnnxBytes(
      BytesOf(Input("x", kF32, "2") + NodeText("Inverse", "x", "a", kMicrosoft) +
                  NodeText("Scaler", "a", "y", "domain: 'ai.onnx.ml' ") + Output("y"),
              17),
      "");
  EXPECT_THAT(imported.status().message(), HasSubstr("2 operators are not supported:\n"
                                                     "  Inverse (of com.microsoft): 1 node, 'n_a'\n"
                                                     "  Scaler (of ai.onnx.ml): 1 node, 'n_y'\n"));
  ::onnx::ModelProto model =
      ModelOf(Input("x", kF32, "2") + NodeText("Relu", "x", "y") + Output("y"));
  auto& opset = *model.add_opset_import();
  opset.set_domain("com.microsoft");
  opset.set_version(2);
  EXPECT_THAT(ImportOnnxBytes(model.SerializeAsString(), "").status().message(),
              HasSubstr("the model has opset 2 of com.microsoft; the newest that is supported is "
                        "1"));
}

}  // namespace
}  // namespace hone::onnx
