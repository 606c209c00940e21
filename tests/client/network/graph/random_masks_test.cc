// Random networks with masks: what is proven of them is compared with runs.

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/graph/padded_model.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/client/network/onnx/open_models.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using ::hone::onnx::Initializer;
using ::hone::onnx::Int;
using ::hone::onnx::NodeText;

// Writes random nodes. Tensors of the same kind have types that nodes may combine.
class RandomMasks {
 public:
  explicit RandomMasks(int seed) : random_(seed) {}

  // Nodes that compute "masked" from "scores", `mask4` and constants.
  std::string OfScores() {
    std::string hidden;
    const int far = OneOf({2, 99, 99, 99});
    for (int i = 0; i < 16 * 16; ++i) {
      const int row = i / 16, column = i % 16;
      absl::StrAppend(&hidden, i > 0 ? ", " : "", column > row || column <= row - far);
    }
    Add(Initializer("behind", kTypeBool, "16, 16", absl::StrCat("int32_data: [", hidden, "]")));
    Add(Initializer("from2", kTypeI64, "2", "int64_data: [0, 0]"));
    for (const auto& [name, value] :
         std::vector<std::pair<const char*, const char*>>{{"s_zero", "0"},
                                                          {"s_one", "1"},
                                                          {"s_inf", "-inf"},
                                                          {"s_low", "-3e38"},
                                                          {"s_weak", "-10000"},
                                                          {"s_half", "0.5"}}) {
      Add(Initializer(name, kTypeF32, "", absl::StrCat("float_data: ", value)));
    }
    Add(NodeText("Concat", "n n", "n2", Int("axis", 0)));
    Add(NodeText("Slice", "behind from2 n2", "later"));
    Add(NodeText("Cast", "mask4", "seen4", Int("to", kTypeBool)));
    std::vector<std::string> conditions = {"later", "seen4"}, added, scores = {"scores"};
    conditions.push_back(Node("Not", {"later"}));
    conditions.push_back(Node("Not", {"seen4"}));
    const std::vector<std::string> numbers = {"s_inf",  "s_low",  "s_low",
                                              "s_weak", "s_zero", "s_one"};
    for (int i = 0; i < 2; ++i) {
      conditions.push_back(Node(OneOf({"And", "And", "Or"}), {Any(conditions), Any(conditions)}));
      added.push_back(Node("Where", {Any(conditions), Any(numbers), Any(numbers)}));
    }
    added.push_back(Node("Where", {"seen4", "s_zero", Any(numbers)}));
    added.push_back(Node(OneOf({"Add", "Min", "Max", "Mul"}), {Any(added), Any(added)}));
    for (int i = OneOf({1, 2, 3}); i > 0; --i) {
      const std::string last = scores.back();
      switch (Below(4)) {
        case 0:
          scores.push_back(Node("Where", {Any(conditions), last, Any(numbers)}));
          break;
        case 1:
          scores.push_back(Node("Where", {Any(conditions), Any(numbers), last}));
          break;
        case 2:
          scores.push_back(Node("Add", {last, Any(added)}));
          break;
        default:
          scores.push_back(Node(OneOf({"Mul", "Div", "Add"}), {last, OneOf({"s_half", "s_one"})}));
      }
    }
    Add(NodeText("Identity", scores.back(), "masked"));
    return std::exchange(text_, "");
  }

  // Nodes that compute outputs from "y" [2, N, 8] and the mask.
  std::string OfStates() {
    std::string table;
    for (int i = 0; i < 16; ++i) absl::StrAppend(&table, i > 0 ? ", " : "", i == 2 ? "inf" : "1");
    Add(Initializer("t_table", kTypeF32, "1, 16, 1", absl::StrCat("float_data: [", table, "]")));
    Add(Initializer("at1", kTypeI64, "1", "int64_data: 1"));
    Add(Initializer("at_last", kTypeI64, "1", "int64_data: -1"));
    for (const auto& [name, value] : std::vector<std::pair<const char*, const char*>>{
             {"t_zero", "0"}, {"t_one", "1"}, {"t_inf", "-inf"}, {"t_low", "-1e30"}}) {
      Add(Initializer(name, kTypeF32, "", absl::StrCat("float_data: ", value)));
    }
    Add(NodeText("Unsqueeze", "mask at_last", "raw3"));
    Add(NodeText("Cast", "raw3", "m3", Int("to", kTypeF32)));
    Add(NodeText("Cast", "raw3", "seen", Int("to", kTypeBool)));
    Add(NodeText("Slice", "t_table from n at1", "t_some"));
    const std::vector<std::string> numbers = {"t_zero", "t_zero", "t_one", "t_inf", "t_low"};
    std::vector<std::string> states = {"y"}, masks = {"m3", "m3"}, conditions = {"seen", "seen"},
                             pooled;
    conditions.push_back(Node("Not", {"seen"}));
    masks.push_back(Node("Sub", {"t_one", "m3"}));
    masks.push_back(Node("Where", {Any(conditions), Any(numbers), Any(numbers)}));
    for (int i = OneOf({1, 1, 2, 3}); i > 0; --i) {
      const std::string state = OneOf({states.back(), Any(states)});
      switch (Below(9)) {
        case 0:
        case 1:
        case 2:
          states.push_back(Node("Mul", {state, Any(masks)}));
          break;
        case 3:
        case 4:
          states.push_back(Node("Where", {Any(conditions), state, Any(numbers)}));
          break;
        case 5:
          states.push_back(Node("Where", {Any(conditions), Any(numbers), state}));
          break;
        case 6:
          states.push_back(Node(OneOf({"Add", "Sub", "Mul", "Max"}), {state, Any(states)}));
          break;
        case 7:
          states.push_back(Node(OneOf({"Mul", "Add"}),
                                {state, OneOf({"t_some", "t_one", "t_low", Any(masks)})}));
          break;
        default:
          states.push_back(Node(OneOf({"Tanh", "Sigmoid", "Neg", "Identity"}), {state}));
      }
    }
    const auto reduced = [&](const std::string& from) {
      const std::string op =
          OneOf({"ReduceSum", "ReduceSum", "ReduceSum", "ReduceMax", "ReduceMean"});
      const std::string name = absl::StrCat("r", ++count_);
      Add(op == "ReduceSum" ? NodeText(op, from + " at1", name)
                            : NodeText(op, from, name, onnx::Ints("axes", "1")));
      return name;
    };
    pooled.push_back(reduced(states.back()));
    if (Below(3) == 0) pooled.push_back(reduced(Any(masks)));
    if (Below(4) == 0) {
      const std::string turned = absl::StrCat("r", ++count_);
      Add(NodeText("Transpose", Any(masks), turned, onnx::Ints("perm", "0, 2, 1")));
      pooled.push_back(Node("MatMul", {turned, Any(states)}));
    }
    if (Below(4) == 0) pooled.push_back(Any(states));
    for (const std::string& each : pooled) {
      Add(onnx::Output(Node("Identity", {each})));
    }
    return std::exchange(text_, "");
  }

  int Below(int end) { return static_cast<int>(random_() % end); }

 private:
  template <typename T>
  T OneOf(std::vector<T> list) {
    return list[Below(static_cast<int>(list.size()))];
  }
  std::string OneOf(std::initializer_list<const char*> list) {
    return OneOf(std::vector<std::string>(list.begin(), list.end()));
  }
  std::string OneOf(std::initializer_list<std::string> list) {
    return OneOf(std::vector<std::string>(list));
  }
  int OneOf(std::initializer_list<int> list) { return OneOf(std::vector<int>(list)); }
  std::string Any(const std::vector<std::string>& list) { return OneOf(list); }
  void Add(const std::string& text) { text_ += text; }
  std::string Node(const std::string& op, const std::vector<std::string>& inputs) {
    std::string words;
    for (const std::string& each : inputs) absl::StrAppend(&words, words.empty() ? "" : " ", each);
    const std::string name = absl::StrCat("r", ++count_);
    Add(NodeText(op, words, name));
    return name;
  }

  std::mt19937 random_;
  int count_ = 0;
  std::string text_;
};

// Expects that runs of the networks that are proven to be padded are right. Returns how many are.
template <typename Write>
int CheckRandomNetworks(int networks, const Write& write) {
  int proven = 0;
  for (int seed = 0; seed < networks; ++seed) {
    const std::string text = write(seed);
    const auto model = PaddedModel::Of(text);
    if (!model.ok()) {
      EXPECT_EQ(model.status().code(), absl::StatusCode::kFailedPrecondition)
          << "seed " << seed << ": " << model.status();
      continue;
    }
    ++proven;
    EXPECT_THAT(RunsArePadded(*model), IsOk()) << "seed " << seed << ": " << text;
  }
  return proven;
}

TEST(RandomMasksTest, MaskedScores) {
  EXPECT_GE(
      CheckRandomNetworks(
          400, [](int seed) { return onnx::OpenMaskedAttention(RandomMasks(seed).OfScores()); }),
      20);
}

TEST(RandomMasksTest, MaskedSums) {
  EXPECT_GE(CheckRandomNetworks(200,
                                [](int seed) {
                                  RandomMasks random(seed);
                                  return onnx::OpenMaskedAttention("", kTypeI64, random.OfStates());
                                }),
            10);
}

}  // namespace
}  // namespace hone::graph
