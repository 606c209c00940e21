#include "tests/oracles/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "common/schedule/replay.h"
#include "common/schedule/trace.h"
#include "tests/status.h"
#include "worker/compile/lower/lower.h"

namespace hone::lower {
namespace {

using ::testing::HasSubstr;

constexpr char kTrace[] = R"(workload dense
input A: f32[20, 8]
input W: f32[8, 32] constant
output C[i: 20, j: 32] = sum(k: 8) A[i, k] * W[k, j]
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
b1 = cache_read(b0, "W", "global")
transform_layout(b1, "k, j -> j / 16, k, j % 16")
l3, l4, l5 = register_tile(b0, l0, l1, l2, 4, 2, 16, 2)
parallel(l3)
)";

LoweredProgram Lowered() {
  const auto file = schedule::ParseTraceFile(kTrace);
  EXPECT_THAT(file, IsOk());
  const auto program = schedule::Replay(std::make_shared<const ir::Workload>(file->workload),
                                        file->parsed.trace, file->parsed.decisions);
  EXPECT_THAT(program, IsOk());
  target::Target target;
  target.cores = 2;
  const auto lowered = Lower(*program, target);
  EXPECT_THAT(lowered, IsOk());
  return *lowered;
}

Stmt& First(LoweredProgram& program, const std::function<bool(const Stmt&)>& wanted) {
  for (Stmt& stmt : program.stmts) {
    if (wanted(stmt)) return stmt;
  }
  ADD_FAILURE() << "no such statement in\n" << program.ToText();
  return program.stmts[0];
}
Stmt& Loop(LoweredProgram& program, ir::LoopKind kind) {
  return First(program, [kind](const Stmt& stmt) {
    return stmt.kind == Stmt::Kind::kFor && stmt.loop == kind;
  });
}
Stmt& AnyStore(LoweredProgram& program) {
  return First(program, [&](const Stmt& stmt) {
    return stmt.kind == Stmt::Kind::kStore && !stmt.outputs.empty() &&
           program.storage[stmt.outputs[0]].kind == Storage::Kind::kRegister;
  });
}

TEST(VerifierTest, AcceptsTheResultOfLower) {
  const LoweredProgram program = Lowered();
  EXPECT_THAT(Verify(program), IsOk()) << program.ToText();
  EXPECT_EQ(program.kernels.size(), 2u);
}

struct Damage {
  const char* name;
  void (*apply)(LoweredProgram&);
  const char* message;
};

class VerifierDamageTest : public testing::TestWithParam<Damage> {};

TEST_P(VerifierDamageTest, IsFound) {
  LoweredProgram program = Lowered();
  GetParam().apply(program);
  EXPECT_THAT(Verify(program),
              StatusIs(absl::StatusCode::kInternal, HasSubstr(GetParam().message)));
}

const Damage kDamages[] = {
    {"KernelName", [](LoweredProgram& p) { p.kernels.back().name = "second"; }, "the kernels are"},
    {"EmptyKernel", [](LoweredProgram& p) { p.kernels.back().body = kNoStmt; }, "is empty"},
    {"EmptyLoop", [](LoweredProgram& p) { Loop(p, ir::LoopKind::kUnrolled).extent = 0; },
     "at least one iteration"},
    {"LoopWithoutBody",
     [](LoweredProgram& p) { Loop(p, ir::LoopKind::kUnrolled).children.clear(); }, "one body"},
    {"StaticBound",
     [](LoweredProgram& p) { Loop(p, ir::LoopKind::kVectorized).ends = {ir::Index(2)}; },
     "a static loop has no bounds"},
    {"NestedLanes",
     [](LoweredProgram& p) { Loop(p, ir::LoopKind::kUnrolled).loop = ir::LoopKind::kVectorized; },
     "a vectorized loop contains only"},
    {"UnboundVariable",
     [](LoweredProgram& p) {
       AnyStore(p).conditions.push_back({ir::Index::Of(p.atoms.AddVar("lost", 3)), 2});
     },
     "no loop around it has the variable lost"},
    {"RuntimeRegister",
     [](LoweredProgram& p) { Loop(p, ir::LoopKind::kUnrolled).loop = ir::LoopKind::kSerial; },
     "varies at run time"},
    {"IndexNotFlat", [](LoweredProgram& p) { AnyStore(p).indices.push_back(ir::Index(0)); },
     "is not flat"},
    {"MissingValue", [](LoweredProgram& p) { AnyStore(p).values.clear(); }, "one value for each"},
    {"OtherDType",
     [](LoweredProgram& p) { AnyStore(p).values = {p.pool.Const(ir::DType::kI32, ir::Scalar(1))}; },
     "does not have the dtype"},
    {"WrittenInput", [](LoweredProgram& p) { p.buffers[AnyStore(p).outputs[0]].input = true; },
     "is written"},
    {"BehindTheWorkspace",
     [](LoweredProgram& p) {
       p.storage[2] = {.kind = Storage::Kind::kWorkspace, .offset_bytes = 64, .elements = 640};
     },
     "does not lie within its memory"},
    {"PackedOutsidePrepack",
     [](LoweredProgram& p) {
       p.packed_bytes = 1 << 20;
       p.storage[2] = {.kind = Storage::Kind::kPacked, .elements = 640};
     },
     "written outside \"prepack\""},
};

INSTANTIATE_TEST_SUITE_P(All, VerifierDamageTest, testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone::lower
