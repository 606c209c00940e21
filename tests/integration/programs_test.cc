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
#include "tests/integration/process.h"
#include "tests/temporary_folder.h"

namespace hone::integration {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Needed(const std::string& program) {
  const Result result = RunProgram({"/usr/bin/readelf", "-d", BinDir() + "/" + program});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("NEEDED"));
  return result.output;
}

TEST(ProgramsTest, OnlyTheBuilderLinksLlvm) {
  EXPECT_THAT(Needed("hone-builder"), HasSubstr("libLLVM"));
  for (const char* program : {"hone", "hone-server", "hone-worker", "hone-runner"}) {
    EXPECT_THAT(Needed(program), Not(HasSubstr("libLLVM"))) << program;
  }
}

TEST(ProgramsTest, OnlyTheServerLinksSqliteAndXgboost) {
  for (const char* program : {"hone", "hone-worker", "hone-builder", "hone-runner"}) {
    EXPECT_THAT(Needed(program), Not(AnyOf(HasSubstr("sqlite"), HasSubstr("xgboost")))) << program;
  }
}

TEST(ProgramsTest, BuilderAndRunnerDoNotLinkGrpc) {
  for (const char* program : {"hone-builder", "hone-runner"}) {
    EXPECT_THAT(Needed(program), Not(HasSubstr("grpc"))) << program;
  }
}

// An application that links it gets no other library, and no symbol that could clash with its own.
TEST(ProgramsTest, TheLookUpLibraryNeedsTheStandardLibrariesAlone) {
  const std::string library = BinDir() + "/../lib/libhone_lookup.so";
  for (const absl::string_view line :
       absl::StrSplit(Needed("../lib/libhone_lookup.so"), '\n', absl::SkipWhitespace())) {
    if (!absl::StrContains(line, "(NEEDED)")) continue;
    EXPECT_THAT(line,
                AnyOf(HasSubstr("[libc.so"), HasSubstr("[libm.so"), HasSubstr("[libstdc++.so"),
                      HasSubstr("[libgcc_s.so"), HasSubstr("[ld-linux")));
  }
  const Result symbols = RunProgram({"/usr/bin/nm", "-D", "--defined-only", library});
  ASSERT_EQ(symbols.code, 0) << symbols.errors;
  EXPECT_THAT(symbols.output, HasSubstr(" T hone_lookup_find"));
  for (const absl::string_view line :
       absl::StrSplit(symbols.output, '\n', absl::SkipWhitespace())) {
    EXPECT_THAT(line, HasSubstr(" hone_lookup_"));
  }
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
    EXPECT_THAT(version.output, HasSubstr(std::string(program) + " "));
  }
}

TEST(ProgramsTest, WorkerExitsWithUsageErrorOnBadOptions) {
  TemporaryFolder folder;
  const auto start = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"hone-worker", "--state-dir", folder / "state"});
    return RunProgram(words);
  };
  EXPECT_EQ(start({}).code, 2);
  EXPECT_EQ(start({"--server", "nonsense"}).code, 2);
  EXPECT_EQ(start({"--server", "localhost:1", "--build-slots", "many"}).code, 2);
  EXPECT_EQ(start({"--server", "localhost:1", "--log-level", "loud"}).code, 2);
  EXPECT_EQ(start({"--server", "localhost:1", "--ca", folder / "nowhere.pem"}).code, 2);
  const Result open = start({"--server", "192.0.2.1:7070"});
  EXPECT_EQ(open.code, 2);
  EXPECT_THAT(open.errors, HasSubstr("--insecure"));
  EXPECT_FALSE(std::filesystem::exists(folder / "state"));
  // Valid usage that fails at run time.
  EXPECT_EQ(start({"--server", "localhost:1", "--program-dir", folder.path()}).code, 1);
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
  const auto check = [](const std::vector<std::string>& options) {
    std::vector<std::string> words = {"hone-server", "--listen", "localhost:0", "--check-config"};
    words.insert(words.end(), options.begin(), options.end());
    return RunProgram(words);
  };
  const TemporaryFolder folder;
  const Result good = check({"--store", folder / "hone.db"});
  EXPECT_EQ(good.code, 0) << good.errors;
  const Result no_file = check({"--store", folder.path()});
  EXPECT_EQ(no_file.code, 2);
  EXPECT_THAT(no_file.errors, AllOf(HasSubstr("is a folder"), HasSubstr("hone.db")));
  const Result open = check({"--store", folder / "hone.db", "--metrics-listen", "0.0.0.0:9090"});
  EXPECT_EQ(open.code, 2);
  EXPECT_THAT(open.errors, AllOf(HasSubstr("metrics-listen"), HasSubstr("localhost")));
  const Result twice = check({"--store", folder / "hone.db", "--listen", "localhost:7172",
                              "--metrics-listen", "localhost:7172"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.errors, HasSubstr("metrics-listen: localhost:7172 is also an address of the "
                                      "service; give metrics another port"));
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
              AllOf(HasSubstr("\n  restore "), HasSubstr("\n  merge ")));
  EXPECT_THAT(RunProgram({"hone-server", "restore", "--help"}).output, HasSubstr("A backup, or"));
  const Result late = RunProgram({"hone-server", "--store", folder / "hone.db", "restore"});
  EXPECT_EQ(late.code, 2);
  EXPECT_THAT(late.errors, HasSubstr("restore and merge must come before all options"));
}

}  // namespace
}  // namespace hone::integration
