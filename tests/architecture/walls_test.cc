#include "tests/architecture/walls.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::architecture {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

std::vector<SourceFile> ReadTree() {
  std::vector<SourceFile> files;
  for (const char* top :
       {"proto", "server", "worker", "client", "common", "deploy", "tests", "cmake"}) {
    if (!fs::exists(top)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      files.push_back(
          {entry.path().generic_string(),
           std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>())});
    }
  }
  return files;
}

TEST(WallsTest, SourceTreeHasNoViolations) {
  const std::vector<SourceFile> files = ReadTree();
  int sources = 0;
  for (const SourceFile& file : files) sources += absl::EndsWith(file.path, ".cc") ? 1 : 0;
  ASSERT_GT(sources, 5) << "the test must run in the source root";
  const std::vector<std::string> crossings = FindCrossings(files);
  EXPECT_TRUE(crossings.empty()) << absl::StrJoin(crossings, "\n");
}

TEST(WallsTest, ServerWorkerAndClientNeverIncludeEachOther) {
  EXPECT_THAT(
      FindCrossings({{"client/cli/tune/tune.cc", "#include \"server/store/store.h\"\n"}}),
      ElementsAre(AllOf(HasSubstr("client/cli/tune/tune.cc:1"), HasSubstr("server/store"))));
  EXPECT_THAT(FindCrossings({{"server/fleet/queue.cc", "\n#  include <worker/agent/agent.h>\n"}}),
              ElementsAre(HasSubstr("server/fleet/queue.cc:2")));
  EXPECT_THAT(
      FindCrossings({{"worker/runner/run.cc", "#include \"client/connection/client.h\"\n"}}),
      ElementsAre(HasSubstr("worker/runner may not include client/connection")));
}

TEST(WallsTest, InnerFoldersDoNotIncludeOuterOnes) {
  EXPECT_THAT(FindCrossings({{"common/ir/program.h", "#include \"common/schedule/trace.h\"\n"}}),
              ElementsAre(HasSubstr("common/ir may not include common/schedule")));
  EXPECT_THAT(
      FindCrossings({{"server/tuner/search/random.cc", "#include \"server/job/loop.h\"\n"}}),
      ElementsAre(HasSubstr("server/job")));
}

TEST(WallsTest, ATunerHasNoConnections) {
  for (const std::string header : {"common/rpc/channel.h", "server/store/store.h",
                                   "server/fleet/fleet.h", "server/job/job.h"}) {
    EXPECT_THAT(FindCrossings({{"server/tuner/search/random.cc",
                                absl::StrCat("#include \"", header, "\"\n")}}),
                ElementsAre(HasSubstr(header)))
        << header;
  }
}

TEST(WallsTest, OnlyMainProgramsIncludeResearch) {
  const std::string include = "#include \"server/research/register.h\"\n";
  EXPECT_THAT(FindCrossings({{"server/service/main.cc", include}}), IsEmpty());
  EXPECT_THAT(FindCrossings({{"server/service/server.cc", include}}),
              ElementsAre(HasSubstr("server/service may not include server/research")));
  EXPECT_THAT(FindCrossings({{"server/tuner/search/registry.cc", include}}),
              ElementsAre(HasSubstr("server/tuner/search may not include server/research")));
  EXPECT_THAT(FindCrossings({{"server/research/strategy/grid_search.cc",
                              "#include \"server/tuner/space/design_space.h\"\n"}}),
              IsEmpty());
}

TEST(WallsTest, AllowedIncludesAreTransitive) {
  EXPECT_THAT(
      FindCrossings({{"common/operator/matmul.cc", "#include \"common/base/digest.h\"\n"},
                     {"worker/builder/build.cc", "#include \"worker/compile/lower/lower.h\"\n"}}),
      IsEmpty());
}

TEST(WallsTest, PackagesAreConfined) {
  EXPECT_THAT(FindCrossings({{"worker/agent/agent.cc", "#include \"llvm/IR/Module.h\"\n"}}),
              ElementsAre(HasSubstr("LLVM")));
  EXPECT_THAT(FindCrossings({{"server/job/loop.cc", "#include <sqlite3.h>\n"}}),
              ElementsAre(HasSubstr("SQLite")));
  EXPECT_THAT(FindCrossings({{"server/tuner/search/tree.cc", "#include <xgboost/c_api.h>\n"}}),
              ElementsAre(HasSubstr("XGBoost")));
  EXPECT_THAT(FindCrossings({{"server/service/handler.cc", "#include <CLI/CLI.hpp>\n"}}),
              ElementsAre(HasSubstr("CLI11")));
  EXPECT_THAT(FindCrossings({{"worker/compile/emit.cc", "#include \"llvm/IR/Module.h\"\n"},
                             {"server/store/sqlite/store.cc", "#include <sqlite3.h>\n"},
                             {"common/base/command_line.cc", "#include <CLI/CLI.hpp>\n"},
                             {"tests/bench/compare/library.cc", "#include <cblas.h>\n"}}),
              IsEmpty());
}

TEST(WallsTest, GeneratedHeadersAreRestrictedEvenIndirectly) {
  const SourceFile door = {"common/record/proto_convert.h", "#include \"hone/v1/types.pb.h\"\n"};
  EXPECT_THAT(
      FindCrossings(
          {door, {"server/service/handlers.cc", "#include \"common/record/proto_convert.h\"\n"}}),
      IsEmpty());
  EXPECT_THAT(
      FindCrossings({door, {"server/job/loop.cc", "#include \"common/record/proto_convert.h\"\n"}}),
      ElementsAre(AllOf(HasSubstr("server/job/loop.cc:1: sees a generated protocol header"),
                        HasSubstr("through common/record/proto_convert.h"))));
}

TEST(WallsTest, ReportsUnknownFoldersAndLongFiles) {
  EXPECT_THAT(FindCrossings({{"server/magic/wand.cc", "\n"}}),
              ElementsAre(HasSubstr("folder table")));
  const std::string longest(kMaxLines, '\n');
  EXPECT_THAT(FindCrossings({{"common/ir/long.cc", longest}}), IsEmpty());
  EXPECT_THAT(FindCrossings({{"common/ir/long.cc", longest + "\n"}}),
              ElementsAre(HasSubstr("601 lines")));
  EXPECT_THAT(FindCrossings({{"tests/common/ir/long_test.cc", longest + "\n"}}), IsEmpty());
}

TEST(WallsTest, ReportsFoldersWithManyFiles) {
  std::vector<SourceFile> files;
  for (int i = 0; i < kMaxFiles; ++i) files.push_back({absl::StrCat("common/ir/", i, ".cc"), ""});
  files.push_back({"common/ir/deeper/a.md", ""});
  EXPECT_THAT(FindCrossings(files), IsEmpty());
  files.push_back({"common/ir/README.md", ""});
  EXPECT_THAT(FindCrossings(files), ElementsAre("common/ir: 41 files; a folder has 40 at most"));
}

TEST(WallsTest, OnlyTestsIncludeTests) {
  EXPECT_THAT(FindCrossings({{"server/store/store.cc", "#include \"tests/fakes/fake_clock.h\"\n"}}),
              ElementsAre(HasSubstr("includes a test")));
}

}  // namespace
}  // namespace hone::architecture
