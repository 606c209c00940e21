// The libraries that each program may depend on: a board that only measures needs no compiler, and
// a server needs no LLVM.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/transcript.h"
#include "tests/temporary_folder.h"

namespace hone::integration {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// The names of the shared libraries that a program needs.
Words Needed(const std::string& program) {
  const Result result = RunProgram({"/usr/bin/readelf", "-d", BinDir() + "/" + program});
  EXPECT_EQ(result.code, 0) << result.errors;
  Words names;
  for (const absl::string_view line : absl::StrSplit(result.output, '\n')) {
    if (!absl::StrContains(line, "(NEEDED)")) continue;
    const size_t begin = line.find('[') + 1;
    names.emplace_back(line.substr(begin, line.find(']') - begin));
  }
  EXPECT_THAT(names, Not(IsEmpty())) << program;
  return names;
}

TEST(ProgramsTest, OnlyTheBuilderLinksLlvm) {
  EXPECT_THAT(Needed("hone-builder"), Contains(StartsWith("libLLVM")));
  for (const char* program : {"hone", "hone-server", "hone-worker", "hone-runner"}) {
    EXPECT_THAT(Needed(program), Each(Not(ContainsRegex("libLLVM")))) << program;
  }
}

TEST(ProgramsTest, OnlyTheServerLinksSqliteAndXgboost) {
  for (const char* program : {"hone", "hone-worker", "hone-builder", "hone-runner"}) {
    EXPECT_THAT(Needed(program), Each(Not(ContainsRegex("sqlite|xgboost")))) << program;
  }
}

TEST(ProgramsTest, BuilderAndRunnerDoNotLinkGrpc) {
  for (const char* program : {"hone-builder", "hone-runner"}) {
    EXPECT_THAT(Needed(program), Each(Not(ContainsRegex("grpc")))) << program;
  }
}

// An application that links it gets no other library, and no symbol that could clash with its own.
TEST(ProgramsTest, TheLookUpLibraryNeedsTheStandardLibrariesAlone) {
  const std::string library = BinDir() + "/../lib/libhone_lookup.so";
  EXPECT_THAT(
      Needed("../lib/libhone_lookup.so"),
      Each(ContainsRegex("^(libc\\.so|libm\\.so|libstdc\\+\\+\\.so|libgcc_s\\.so|ld-linux)")));
  const Result symbols = RunProgram({"/usr/bin/nm", "-D", "--defined-only", library});
  ASSERT_EQ(symbols.code, 0) << symbols.errors;
  const Words lines = absl::StrSplit(symbols.output, '\n', absl::SkipWhitespace());
  EXPECT_THAT(lines, Contains(ContainsRegex(" T hone_lookup_find")));
  EXPECT_THAT(lines, Each(ContainsRegex(" hone_lookup_")));
}

TEST(ProgramsTest, ProgramsHaveHelpAndVersion) {
  for (const char* program :
       {"hone", "hone-server", "hone-worker", "hone-builder", "hone-runner"}) {
    EXPECT_EQ(RunProgram({program, "--help"}).code, 0) << program;
    EXPECT_EQ(RunProgram({program, "--no-such-option"}).code, 2) << program;
  }
  for (const char* program : {"hone", "hone-server", "hone-worker"}) {
    const Result version = RunProgram({program, "--version"});
    EXPECT_EQ(version.code, 0) << program;
    EXPECT_THAT(version.output, StartsWith(absl::StrCat(program, " ")));
  }
}

TEST(ProgramsTest, WorkerExitsWithUsageErrorOnBadOptions) {
  TemporaryFolder folder;
  Transcript transcript("programs_worker", {"hone-worker", "--state-dir", folder / "state"});
  transcript.Run({});
  transcript.Run({"--server", "nonsense"});
  transcript.Run({"--server", "localhost:1", "--build-slots", "many"});
  transcript.Run({"--server", "localhost:1", "--log-level", "loud"});
  transcript.Run({"--server", "localhost:1", "--ca", folder / "nowhere.pem"});
  transcript.Run({"--server", "192.0.2.1:7070"});
  EXPECT_FALSE(std::filesystem::exists(folder / "state"));
  // Valid usage that fails at run time.
  const Result failed = RunProgram({"hone-worker", "--state-dir", folder / "state", "--server",
                                    "localhost:1", "--program-dir", folder.path()});
  EXPECT_EQ(failed.code, 1) << failed.errors;
  EXPECT_THAT(RunProgram({"hone-worker", "--help"}).output, HasSubstr("Exit codes:"));
}

// It measures its machine for seconds before it connects.
TEST(ProgramsTest, WorkerReportsAtOnceThatItCannotReachItsServer) {
  TemporaryFolder folder;
  const std::string address = absl::StrCat("127.0.0.1:", FreePort());
  Process worker({"hone-worker", "--state-dir", folder / "state", "--server", address});
  const std::string reached = absl::StrCat("connecting to ", address);
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(worker.Errors(), reached); }));
  const std::string log = worker.Errors();
  const size_t problem = log.find(absl::StrCat("cannot reach the server at ", address));
  ASSERT_NE(problem, std::string::npos) << log;
  EXPECT_LT(problem, log.find(reached)) << log;
}

TEST(ProgramsTest, CheckConfigValidatesTheConfiguration) {
  const TemporaryFolder folder;
  const std::string store = folder / "hone.db";
  Transcript transcript("programs_config",
                        {"hone-server", "--listen", "localhost:0", "--check-config"});
  transcript.Run({"--store", store});
  transcript.Run({"--store", folder.path()});
  transcript.Run({"--store", store, "--metrics-listen", "0.0.0.0:9090"});
  transcript.Run(
      {"--store", store, "--listen", "localhost:7172", "--metrics-listen", "localhost:7172"});
  transcript.Run({"--store", store, "--keep-records", "10"});
}

TEST(ProgramsTest, OfflineStoreIsPrivateToItsUser) {
  const TemporaryFolder folder;
  const std::string one = folder / "one.db", two = folder / "two.db", three = folder / "three.db";
  std::ofstream{two};  // an empty file is an empty database
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"hone-server", "merge", "--store", one, "--from", two},
        {"hone-server", "restore", "--store", three, "--from", one}}) {
    const Result result = RunProgram(words);
    ASSERT_EQ(result.code, 0) << result.errors;
  }
  for (const std::string& path : {one, three}) {
    const auto others = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
    EXPECT_EQ(std::filesystem::status(path).permissions() & others, std::filesystem::perms::none)
        << path;
  }
  EXPECT_THAT(RunProgram({"hone-server", "--help"}).output,
              ContainsRegex("\n  restore .*\n  merge "));
  EXPECT_THAT(RunProgram({"hone-server", "restore", "--help"}).output, HasSubstr("A backup, or"));
  Transcript transcript("programs_store", {"hone-server"});
  transcript.Run({"--store", folder / "hone.db", "restore"});
}

}  // namespace
}  // namespace hone::integration
