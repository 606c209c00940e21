// What each program may depend on: a board that only measures needs no compiler, a server no LLVM.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"

namespace hone::integration {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Needed(const std::string& program) {
  const Result result = RunProgram({"/usr/bin/readelf", "-d", BinDir() + "/" + program});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("NEEDED"));
  return result.output;
}

TEST(ProgramsTest, OnlyTheBuilderHasLlvm) {
  EXPECT_THAT(Needed("hone-builder"), HasSubstr("libLLVM"));
  for (const char* program : {"hone", "hone-server", "hone-worker", "hone-runner"}) {
    EXPECT_THAT(Needed(program), Not(HasSubstr("libLLVM"))) << program;
  }
}

TEST(ProgramsTest, OnlyTheServerHasTheStoreAndTheLearner) {
  for (const char* program : {"hone", "hone-worker", "hone-builder", "hone-runner"}) {
    EXPECT_THAT(Needed(program), Not(AnyOf(HasSubstr("sqlite"), HasSubstr("xgboost")))) << program;
  }
}

TEST(ProgramsTest, TheDisposableOnesHaveNoGrpc) {
  for (const char* program : {"hone-builder", "hone-runner"}) {
    EXPECT_THAT(Needed(program), Not(HasSubstr("grpc"))) << program;
  }
}

TEST(ProgramsTest, EveryOneTellsItsUsageAndThoseThatPeopleStartTheirVersion) {
  for (const char* program :
       {"hone", "hone-server", "hone-worker", "hone-builder", "hone-runner"}) {
    EXPECT_EQ(RunProgram({program, "--help"}).code, 0) << program;
    EXPECT_NE(RunProgram({program, "--no-such-option"}).code, 0) << program;
  }
  for (const char* program : {"hone", "hone-server", "hone-worker"}) {
    const Result version = RunProgram({program, "--version"});
    EXPECT_EQ(version.code, 0) << program;
    EXPECT_THAT(version.output, HasSubstr(std::string(program) + " "));
  }
}

}  // namespace
}  // namespace hone::integration
