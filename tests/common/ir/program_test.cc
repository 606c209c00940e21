#include "common/ir/program.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/ir/region.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"

namespace hone::ir {
namespace {

std::shared_ptr<const Workload> ParseShared(const std::string& body) {
  auto workload = ParseWorkload(absl::StrCat("workload w\n", body, "\n"));
  EXPECT_THAT(workload, IsOk());
  return std::make_shared<const Workload>(std::move(workload).value());
}

constexpr char kConvRelu[] =
    "input X: f32[6, 4]\ninput W: f32[3, 4, 8] constant\n"
    "Y[h: 6, c: 8] = sum(r: 3, k: 4 where 0 <= h + r - 1 < 6) X[h + r - 1, k] * W[r, k, c]\n"
    "(V, I)[h: 6] = argmax(c: 8) (Y[h, c], index(c))\n"
    "output Z[h: 6] = max(V[h], 0.0) + f32(I[h])";

TEST(ProgramTextTest, PrintsEveryPart) {
  const Program program = Program::FromWorkload(ParseShared(kConvRelu));
  EXPECT_EQ(program.ToText(program.LoopsAbove(program.FindBlock("Y"))[1]),
            R"(input X: f32[6, 4] global
input W: f32[3, 4, 8] global constant
buffer Y: f32[6, 8] global
buffer V: f32[6] global
buffer I: i64[6] global
output Z: f32[6] global
kernel main
  for h in 6
>   for c in 8
      for r in 3
        for k in 4
          block Y: h in 6 = h, c in 8 = c, r in 3 = r (reduce), k in 4 = k (reduce)
            Y[h, c] = sum X[h + r - 1, k] * W[r, k, c] where 0 <= h + r - 1 < 6 init
  for h in 6
    for c in 8
      block V: h in 6 = h, c in 8 = c (reduce)
        (V[h], I[h]) = argmax (Y[h, c], index(c)) init
  for h in 6
    block Z: h in 6 = h
      Z[h] = max(V[h], 0.0) + f32(I[h])
)");
}

TEST(ProgramDigestTest, NamesDeadNodesAndUnusedBuffersDoNotMatter) {
  Program program = Program::FromWorkload(ParseShared(kConvRelu));
  const Digest digest = program.StructuralDigest();
  Program changed = program;
  changed.buffers.push_back({.name = "unused", .shape = {3}});
  changed.NewLoop("dead", ExtentTable::Constant(7));
  changed.NewBlock({.name = "dead"});
  changed.blocks[0].name = "renamed";
  changed.buffers[2].name = "renamed";
  EXPECT_EQ(changed.StructuralDigest(), digest);
  Program other = Program::FromWorkload(ParseShared(
      "input a: f32[6, 4]\ninput b: f32[3, 4, 8] constant\n"
      "c[x: 6, y: 8] = sum(z: 3, w: 4 where 0 <= x + z - 1 < 6) a[x + z - 1, w] * b[z, w, y]\n"
      "(d, e)[x: 6] = argmax(y: 8) (c[x, y], index(y))\n"
      "output f[x: 6] = max(d[x], 0.0) + f32(e[x])"));
  EXPECT_EQ(other.StructuralDigest(), digest);
}

// The same tree with variables created in another order.
TEST(ProgramDigestTest, OrderOfCreationDoesNotMatter) {
  const auto workload = ParseShared("input A: f32[4, 6]\noutput B[f: 24] = A[f / 6, f % 6] + 1.0");
  const auto split = [&](bool outer_first) {
    Program program = Program::FromWorkload(workload);
    const NodeId block = program.FindBlock("B");
    const NodeId loop = program.LoopsAbove(block)[0];
    NodeId outer = kNoNode, inner = kNoNode;
    if (outer_first) outer = program.NewLoop("o", ExtentTable::Constant(5));
    inner = program.NewLoop("i", ExtentTable::Constant(5));
    if (!outer_first) outer = program.NewLoop("o", ExtentTable::Constant(5));
    const Index value = Index::Of(program.node(outer).var) * 5 + Index::Of(program.node(inner).var);
    program.SubstituteUnder(loop, program.node(loop).var, value);
    program.BlockOf(block).predicates.push_back({value, 24});
    program.Detach(block);
    program.Append(program.kernels[0], outer);
    program.Append(outer, inner);
    program.Append(inner, block);
    return program;
  };
  EXPECT_EQ(split(true).StructuralDigest(), split(false).StructuralDigest());
}

TEST(ProgramDigestTest, StructureMatters) {
  const Program program = Program::FromWorkload(ParseShared(kConvRelu));
  const Digest digest = program.StructuralDigest();
  const NodeId block = program.FindBlock("Y");
  const NodeId loop = program.LoopsAbove(block)[0];
  const auto differs = [&](auto&& change) {
    Program changed = program;
    change(changed);
    return changed.StructuralDigest() != digest;
  };
  EXPECT_TRUE(differs([&](Program& p) { p.node(loop).loop = LoopKind::kParallel; }));
  EXPECT_TRUE(differs([&](Program& p) { p.node(loop).extent = ExtentTable::Constant(5); }));
  EXPECT_TRUE(differs([&](Program& p) { p.BlockOf(block).has_init = false; }));
  EXPECT_TRUE(differs([&](Program& p) {
    p.BlockOf(block).predicates.push_back({Index::Of(p.node(loop).var), 5});
  }));
  EXPECT_TRUE(differs([&](Program& p) { p.BlockOf(block).guards[0].extent = 5; }));
  EXPECT_TRUE(differs([&](Program& p) { p.BlockOf(block).iters[0].binding += 1; }));
  EXPECT_TRUE(differs([&](Program& p) { p.buffers[2].scope = Scope::kLocal; }));
  EXPECT_TRUE(differs([&](Program& p) { p.buffers[2].shape[0] = 7; }));
  EXPECT_TRUE(
      differs([&](Program& p) { std::swap(p.node(0).children[0], p.node(0).children[1]); }));
}

TEST(ProgramTest, DetachRemovesEmptyLoopsAndKernels) {
  Program program =
      Program::FromWorkload(ParseShared("input A: f32[4, 6]\noutput B[i: 4, j: 6] = A[i, j]"));
  const NodeId block = program.FindBlock("B");
  const std::vector<NodeId> loops = program.LoopsAbove(block);
  program.nodes.push_back({.kind = Node::Kind::kKernel, .name = "other"});
  const auto other = static_cast<NodeId>(program.nodes.size()) - 1;
  program.kernels.insert(program.kernels.begin(), other);
  program.Detach(block);
  EXPECT_FALSE(program.IsLoop(loops[0]));
  EXPECT_FALSE(program.IsLoop(loops[1]));
  EXPECT_EQ(program.kernels, std::vector<NodeId>{other});
  program.Append(other, block);
  program.Detach(block);
  EXPECT_EQ(program.kernels, std::vector<NodeId>{other});  // the last one stays
  EXPECT_TRUE(program.IsBlock(block));
}

class RegionTest : public testing::Test {
 protected:
  std::string Text(const Program& program, const std::vector<Interval>& region) {
    std::string text;
    for (const Interval& interval : region)
      absl::StrAppend(&text, "[", program.atoms.ToString(interval.min), ", +",
                      interval.extent.value, ")");
    return text;
  }
};

TEST_F(RegionTest, OfAWindowUnderEachLoop) {
  Program program = Program::FromWorkload(
      ParseShared("input X: f32[15, 8]\nP[i: 15, j: 8] = X[i, j]\noutput Y[h: 7, "
                  "c: 8] = sum(r: 3) P[2*h + r, c]"));
  const BufferId p =
      program.FindBlock("P") == kNoNode ? -1 : program.BlockOf(program.FindBlock("P")).outputs[0];
  const std::vector<NodeId> loops = program.LoopsAbove(program.FindBlock("Y"));
  EXPECT_EQ(Text(program, RegionRead(program, p, loops[0])), "[2*h, +3)[0, +8)");
  EXPECT_EQ(Text(program, RegionRead(program, p, loops[1])), "[2*h, +3)[c, +1)");
  EXPECT_EQ(Text(program, RegionRead(program, p, loops[2])), "[2*h + r, +1)[c, +1)");
  EXPECT_EQ(Text(program, RegionRead(program, p, program.kernels[0])), "[0, +15)[0, +8)");
  EXPECT_TRUE(RegionWritten(program, p, loops[0]).empty());
}

TEST_F(RegionTest, PredicatesOverInnerLoopsNarrow) {
  Program program = Program::FromWorkload(ParseShared("input X: f32[40]\noutput Y[i: 40] = X[i]"));
  const NodeId block = program.FindBlock("Y");
  const NodeId outer = program.NewLoop("o", ExtentTable::Constant(10)),
               a = program.NewLoop("a", ExtentTable::Constant(2)),
               b = program.NewLoop("b", ExtentTable::Constant(3));
  const Index inner = Index::Of(program.node(a).var) * 3 + Index::Of(program.node(b).var);
  program.SubstituteUnder(program.kernels[0], program.node(program.LoopsAbove(block)[0]).var,
                          Index::Of(program.node(outer).var) * 4 + inner);
  program.BlockOf(block).predicates.push_back({inner, 4});
  program.Detach(block);
  program.Append(program.kernels[0], outer);
  program.Append(outer, a);
  program.Append(a, b);
  program.Append(b, block);
  EXPECT_EQ(Text(program, RegionRead(program, 0, outer)), "[4*o, +4)");
  EXPECT_EQ(Text(program, RegionRead(program, 0, a)), "[4*o + 3*a, +3)");
}

TEST(ExtentTableTest, EvaluatesForOtherDecisions) {
  ExtentTable table;
  const Extent a = table.Factor(4, 0), b = table.Factor(6, 1);
  const Extent product = table.Mul(a, b);
  const Extent outer = table.CeilDiv(ExtentTable::Constant(100), product);
  const Extent sum = table.Add(outer, ExtentTable::Constant(1));
  EXPECT_EQ(product.value, 24);
  EXPECT_EQ(outer.value, 5);
  EXPECT_EQ(table.Evaluate(sum, {4, 6}), 6);
  EXPECT_EQ(table.Evaluate(sum, {1, 7}), 16);
  EXPECT_EQ(table.Mul(ExtentTable::Constant(3), ExtentTable::Constant(5)).derivation, -1);
}

}  // namespace
}  // namespace hone::ir
