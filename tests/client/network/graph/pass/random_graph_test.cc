#include "tests/client/network/graph/random_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/pass/channels_last.h"
#include "client/network/graph/pass/passes.h"
#include "common/base/rng.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using ir::Scalars;

struct Case {
  const char* name;
  absl::StatusOr<bool> (*apply)(Graph& graph);
  double tolerance;  // relative, in f64
};

absl::StatusOr<bool> ApplyAll(Graph& graph) {
  const std::string before = graph.ToText();
  const absl::Status status = Optimize(graph);
  if (!status.ok()) return status;
  return graph.ToText() != before;
}

// Random graphs have no integer sums that are multiplied and quantized.
absl::StatusOr<bool> FoldScales(Graph& graph) {
  const auto changed = UseIntegerProducts(graph);
  if (!changed.ok()) return changed;
  const auto folded = FoldScale(graph);
  if (!folded.ok()) return folded;
  return *changed || *folded;
}

// Gives random nodes channels last, whatever that costs.
absl::StatusOr<bool> ApplyLayouts(Graph& graph) {
  const std::vector<LayoutRole> roles = LayoutRoles(graph);
  Rng rng(graph.nodes.size(), 0);
  std::vector<bool> marked;
  bool changes = false;
  for (const LayoutRole role : roles) {
    marked.push_back(role != LayoutRole::kFixed && rng.Below(4) != 0);
    changes |= marked.back();
  }
  const absl::Status status = WriteChannelsLast(graph, roles, marked);
  if (!status.ok()) return status;
  return changes;
}

void PrintTo(const Case& pass, std::ostream* out) { *out << pass.name; }

class PassTest : public testing::TestWithParam<Case> {};

std::vector<std::string> NamesOf(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) {
    names.push_back(absl::StrCat(graph.value(id).name, " ", graph.value(id).type.ToText()));
  }
  return names;
}

// The outputs of a graph by the interpreter, which computes all nodes, also those that are not
// needed.
std::vector<Scalars> Expected(const Graph& graph, const std::vector<ValueId>& outputs,
                              const std::vector<Scalars>& inputs) {
  const auto results = Interpret(graph, inputs);
  EXPECT_THAT(results, IsOk());
  std::vector<Scalars> expected;
  for (const ValueId id : outputs) {
    const auto place = std::find(graph.outputs.begin(), graph.outputs.end(), id);
    expected.push_back((*results)[place - graph.outputs.begin()]);
  }
  return expected;
}

TEST_P(PassTest, KeepsWhatRandomGraphsCompute) {
  int changes = 0;
  for (uint64_t seed = 1000; seed < 1200; ++seed) {
    RandomGraph random(seed, ir::DType::kF64);
    Graph graph = random.Draw(2 + static_cast<int>(seed % 10));
    if (graph.nodes.empty()) continue;
    const std::string text = graph.ToText();
    const std::vector<Scalars> inputs = random.DrawInputs(graph);
    // Every other output is not wanted, so that there are dead nodes.
    std::vector<ValueId> outputs;
    for (size_t i = 0; i < graph.outputs.size(); i += 2) outputs.push_back(graph.outputs[i]);
    const std::vector<Scalars> expected = Expected(graph, outputs, inputs);
    graph.outputs = outputs;
    const std::string before = graph.ToText();
    const std::vector<std::string> names[] = {NamesOf(graph, graph.inputs),
                                              NamesOf(graph, graph.outputs)};
    HONE_ASSERT_OK_AND_ASSIGN(const auto changed, GetParam().apply(graph));
    const std::string passed = graph.ToText();
    SCOPED_TRACE(absl::StrCat("seed ", seed, "\n", text, "after the pass: ", passed));
    changes += changed ? 1 : 0;
    EXPECT_EQ(changed, passed != before);
    ASSERT_THAT(graph.Verify(), IsOk());
    EXPECT_EQ(NamesOf(graph, graph.inputs), names[0]);
    EXPECT_EQ(NamesOf(graph, graph.outputs), names[1]);
    ASSERT_THAT(RemoveDead(graph), IsOk());
    HONE_ASSERT_OK_AND_ASSIGN(const auto actual, Interpret(graph, inputs));
    ASSERT_EQ(Difference(expected, actual, GetParam().tolerance), "");
  }
  EXPECT_GT(changes, 5);
}

INSTANTIATE_TEST_SUITE_P(
    All, PassTest,
    testing::Values(
        Case{"FoldConstants", [](Graph& graph) { return FoldConstants(graph); }, 0},
        Case{"RemoveDead", RemoveDead, 0}, Case{"RemoveIdentity", RemoveIdentity, 0},
        Case{"FoldBatchNorm", FoldBatchNorm, 1e-7}, Case{"FoldPadding", FoldPadding, 0},
        Case{"FoldShuffles", FoldShuffles, 1e-12}, Case{"UseUnsignedBytes", UseUnsignedBytes, 0},
        Case{"UseIntegerProducts", UseIntegerProducts, 0}, Case{"FoldScale", FoldScales, 1e-7},
        Case{"SkipDequantization", SkipDequantization, 0}, Case{"MergeReshapes", MergeReshapes, 0},
        Case{"MergeTransposes", MergeTransposes, 0},
        Case{"ShareCommonSubexpressions", ShareCommonSubexpressions, 0},
        Case{"WriteChannelsLast", ApplyLayouts, 1e-12}, Case{"Optimize", ApplyAll, 1e-7}),
    [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

}  // namespace
}  // namespace hone::graph
