#include "tests/oracles/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/ir/workload_parser.h"
#include "tests/status.h"

namespace hone::lower {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A program on the tensors of a workload, built by hand.
class LowerInterpreterTest : public testing::Test {
 protected:
  LowerInterpreterTest() {
    program_.kernels = {{"main", kNoStmt}};
    program_.threads = 2;
  }

  void Use(absl::string_view text) {
    HONE_ASSERT_OK_AND_ASSIGN(workload_, ir::ParseWorkload(text));
    for (const ir::Tensor& tensor : workload_.tensors) {
      const auto position = static_cast<int>(program_.buffers.size());
      program_.buffers.push_back(
          {.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape});
      program_.storage.push_back({.kind = Storage::Kind::kArgument,
                                  .position = position,
                                  .elements = ir::ElementsOf(tensor.shape)});
    }
  }
  ir::BufferId AddBuffer(const char* name, Storage storage) {
    program_.buffers.push_back(
        {.name = name, .dtype = ir::DType::kF32, .shape = {storage.elements}});
    program_.storage.push_back(storage);
    return static_cast<ir::BufferId>(program_.buffers.size()) - 1;
  }
  ir::AtomId Var(int64_t extent) { return program_.atoms.AddVar("v", extent); }
  ir::ExprId Load(ir::BufferId buffer, ir::Index at) {
    return program_.pool.Load(buffer, ir::DType::kF32, {std::move(at)});
  }
  StmtId Store(ir::BufferId buffer, ir::Index at, ir::ExprId value) {
    return program_.Add({.kind = Stmt::Kind::kStore,
                         .outputs = {buffer},
                         .indices = {std::move(at)},
                         .values = {value}});
  }
  StmtId For(ir::LoopKind kind, ir::AtomId var, std::vector<StmtId> body) {
    const StmtId seq = program_.Add({.kind = Stmt::Kind::kSeq, .children = std::move(body)});
    return program_.Add({.kind = Stmt::Kind::kFor,
                         .children = {seq},
                         .loop = kind,
                         .var = var,
                         .extent = program_.atoms[var].range.extent()});
  }
  absl::StatusOr<std::vector<ir::Scalars>> Run(StmtId body) {
    program_.kernels[0].body = body;
    ir::Scalars input;
    for (int i = 1; i <= ir::ElementsOf(workload_.tensors[0].shape); ++i) input.push_back(i);
    return Interpret(program_, workload_, {{input}});
  }

  ir::Workload workload_;
  LoweredProgram program_;
};

constexpr char kCopy[] = "workload w\ninput A: f32[4]\noutput B[i: 4] = A[i]\n";
constexpr ir::BufferId kA = 0, kB = 1;

TEST_F(LowerInterpreterTest, LanesReadBeforeTheyWrite) {
  Use(kCopy);
  // B = A, then every lane copies its neighbour: in a serial loop, B[0] would reach the end.
  const ir::AtomId i = Var(4), lane = Var(3);
  const StmtId copy =
      For(ir::LoopKind::kSerial, i, {Store(kB, ir::Index::Of(i), Load(kA, ir::Index::Of(i)))});
  const StmtId shift = For(ir::LoopKind::kVectorized, lane,
                           {Store(kB, ir::Index::Of(lane) + 1, Load(kB, ir::Index::Of(lane)))});
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto outputs, Run(program_.Add({.kind = Stmt::Kind::kSeq, .children = {copy, shift}})));
  EXPECT_THAT(outputs[0], ElementsAre(1, 1, 2, 3));
}

TEST_F(LowerInterpreterTest, ElementsThatNothingReadsGetGarbage) {
  Use(kCopy);
  const ir::AtomId lane = Var(4);
  StmtId first_two = Store(kB, ir::Index::Of(lane), Load(kA, ir::Index::Of(lane)));
  program_.stmts[first_two].conditions = {{ir::Index::Of(lane), 2}};
  program_.stmts[first_two].may_leave_garbage = true;
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs,
                            Run(For(ir::LoopKind::kVectorized, lane, {first_two})));
  EXPECT_EQ(outputs[0][1], 2);
  EXPECT_THAT(outputs[0][2].real(), ::testing::IsNan());
  EXPECT_THAT(outputs[0][3].real(), ::testing::IsNan());
}

TEST_F(LowerInterpreterTest, ABranchBetweenLanesIsRefused) {
  Use(kCopy);
  const ir::AtomId lane = Var(4);
  const StmtId store = Store(kB, ir::Index::Of(lane), Load(kA, ir::Index::Of(lane)));
  const StmtId branch = program_.Add(
      {.kind = Stmt::Kind::kIf, .children = {store}, .condition = {ir::Index::Of(lane), 2}});
  EXPECT_THAT(Run(For(ir::LoopKind::kVectorized, lane, {branch})).status().message(),
              HasSubstr("differs between lanes"));
}

TEST_F(LowerInterpreterTest, AnAccessBehindABufferIsFound) {
  Use(kCopy);
  const ir::AtomId i = Var(4);
  const StmtId store = Store(kB, ir::Index::Of(i), Load(kA, ir::Index::Of(i) + 1));
  EXPECT_EQ(Run(For(ir::LoopKind::kSerial, i, {store})).status().message(),
            "index v + 1 of A is 4, the extent 4");
}

TEST_F(LowerInterpreterTest, IterationsThatWriteOneElementRace) {
  Use(kCopy);
  const ir::AtomId i = Var(4);
  const StmtId store = Store(kB, ir::Index(0), Load(kA, ir::Index::Of(i)));
  EXPECT_THAT(Run(For(ir::LoopKind::kParallel, i, {store})).status().message(),
              HasSubstr("element 0 of B is written, but was written by another iteration"));
}

TEST_F(LowerInterpreterTest, AnIterationThatReadsWhatAnotherWritesRaces) {
  Use(kCopy);
  const ir::BufferId shared = AddBuffer("T", {.kind = Storage::Kind::kWorkspace, .elements = 5});
  const ir::AtomId i = Var(4), j = Var(5);
  const StmtId clear =
      For(ir::LoopKind::kSerial, j, {Store(shared, ir::Index::Of(j), Load(kA, ir::Index(0)))});
  for (const int64_t other : {1, -1}) {
    // Iterations run from the last to the first, so each order of reading and writing occurs.
    const ir::Index at = ir::Index::Of(i) + (other < 0 ? 1 : 0);
    const StmtId loop = For(ir::LoopKind::kParallel, i,
                            {Store(shared, at, Load(kA, ir::Index::Of(i))),
                             Store(kB, ir::Index::Of(i), Load(shared, at + other))});
    EXPECT_THAT(
        Run(program_.Add({.kind = Stmt::Kind::kSeq, .children = {clear, loop}})).status().message(),
        HasSubstr("iteration of a parallel loop"));
  }
}

TEST_F(LowerInterpreterTest, IterationsDoNotInheritAStack) {
  Use(kCopy);
  const ir::BufferId stack = AddBuffer("T", {.kind = Storage::Kind::kStack, .elements = 1});
  const ir::AtomId i = Var(4);
  const StmtId first =
      program_.Add({.kind = Stmt::Kind::kIf,
                    .children = {Store(stack, ir::Index(0), Load(kA, ir::Index(0)))},
                    .condition = {ir::Index::Of(i) + -3, 1}});
  const StmtId use = Store(kB, ir::Index::Of(i), Load(stack, ir::Index(0)));
  EXPECT_THAT(std::string(Run(For(ir::LoopKind::kParallel, i, {first, use})).status().message()),
              HasSubstr("element 0 of T is read before it is written\nB["));
}

TEST_F(LowerInterpreterTest, ABufferThatAnotherHasOverwrittenIsFound) {
  Use(kCopy);
  const ir::BufferId one = AddBuffer("T", {.kind = Storage::Kind::kWorkspace, .elements = 4});
  const ir::BufferId two = AddBuffer("U", {.kind = Storage::Kind::kWorkspace, .elements = 4});
  const StmtId write_one = Store(one, ir::Index(1), Load(kA, ir::Index(1)));
  const StmtId write_two = Store(two, ir::Index(3), Load(kA, ir::Index(3)));
  const StmtId read_one = Store(kB, ir::Index(0), Load(one, ir::Index(1)));
  EXPECT_EQ(
      Run(program_.Add({.kind = Stmt::Kind::kSeq, .children = {write_one, write_two, read_one}}))
          .status()
          .message(),
      "element 1 of T is read after U has overwritten it\nB[0] = T[1]\n");
}

TEST_F(LowerInterpreterTest, UnwrittenOutputsAreFound) {
  Use(kCopy);
  EXPECT_EQ(Run(Store(kB, ir::Index(0), Load(kA, ir::Index(0)))).status().message(),
            "element 1 of B is read before it is written");
}

TEST_F(LowerInterpreterTest, StepsAreLimited) {
  Use(kCopy);
  const ir::AtomId i = Var(4);
  program_.kernels[0].body =
      For(ir::LoopKind::kSerial, i, {Store(kB, ir::Index::Of(i), Load(kA, ir::Index::Of(i)))});
  EXPECT_THAT(Interpret(program_, workload_, {{ir::Scalars(4, 1.0)}}, 3),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace hone::lower
