// Records of one store in another, with the real programs: what `hone best --nearest`, `hone tune`
// and `hone revalidate` know after `hone records import`.

#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"

namespace hone::integration {
namespace {

using ::testing::HasSubstr;

const Words kSmall = {"matmul", "m=48", "n=64", "k=32"};
const Words kLarge = {"matmul", "m=256", "n=256", "k=256"};
const Words kUnseen = {"matmul", "m=80", "n=96", "k=40"};

// The processes of confirmations that `query` selects, and their combined results.
std::vector<nlohmann::json> Confirmed(const HoneHome& home, const Words& query) {
  const Result result =
      home.Hone(With({"records", "query", "--outcome", "ok", "--limit", "0", "--json"}, query));
  EXPECT_EQ(result.code, 0) << result.errors;
  std::vector<nlohmann::json> confirmed;
  const nlohmann::json list = OneLineOfJson(result.output);
  if (!list.is_object()) return confirmed;
  for (const nlohmann::json& record : list["records"]) {
    if (record["policy"].get<std::string>().starts_with("confirm")) confirmed.push_back(record);
  }
  return confirmed;
}

TEST(Import, BestTuneAndRevalidateUseImportedConfirmations) {
  TemporaryFolder folder;
  const std::string file = folder / "records.jsonl";
  nlohmann::json published, small;
  {
    HoneHome home;
    for (const Words& workload : {kSmall, kLarge}) {
      const Result tuned = home.Hone(With({"tune", "--trials", "12", "--json"}, workload));
      ASSERT_EQ(tuned.code, 0) << tuned.errors;
    }
    for (const nlohmann::json& record : Confirmed(home, With({"--best"}, kLarge))) {
      published = record;
    }
    ASSERT_FALSE(published.is_null());
    for (const nlohmann::json& record : Confirmed(home, With({"--best"}, kSmall))) small = record;
    ASSERT_FALSE(small.is_null());
    const Result exported = home.Hone({"records", "export", "-o", file});
    ASSERT_EQ(exported.code, 0) << exported.errors;
  }

  HoneHome home;
  const Result imported = home.Hone({"records", "import", file});
  ASSERT_EQ(imported.code, 0) << imported.errors;
  // An import brings no kernels.
  Transcript transcript("import", {"hone"}, home.variables());
  transcript.Run(With({"best"}, kSmall));
  transcript.Run(With({"pin"}, kSmall));
  std::ofstream(folder / "list.txt") << "matmul m=48 n=64 k=32\n";
  EXPECT_THAT(home.Hone({"best", "--file", folder / "list.txt"}).output,
              HasSubstr("imported, not confirmed"));

  // No worker has connected to this server.
  const Result near = home.Hone(With({"best", "--nearest", "--json"}, kUnseen));
  ASSERT_EQ(near.code, 0) << near.errors;
  EXPECT_THAT(std::string(OneLineOfJson(near.output)["nearest"]["workload"]),
              HasSubstr("f32[48, 32]"));

  // The best imported candidate is confirmed beside the one trial.
  const Result tuned = home.Hone(With({"tune", "--trials", "1", "--json"}, kLarge));
  ASSERT_EQ(tuned.code, 0) << tuned.errors;
  const std::string job = OneLineOfJson(tuned.output)["job"];
  int rounds = 0;
  for (const nlohmann::json& record : Confirmed(home, {"--job", job})) {
    rounds += record["decisions"] == published["decisions"] &&
                      record["space_digest"] == published["space_digest"]
                  ? 1
                  : 0;
  }
  EXPECT_GT(rounds, 0) << tuned.output;

  // What is not published yet is due; the other workload was published just now.
  const Result again = home.Hone({"revalidate", "--json"});
  ASSERT_EQ(again.code, 0) << again.errors;
  const nlohmann::json report = OneLineOfJson(again.output)["revalidated"];
  ASSERT_EQ(report.size(), 1u) << again.output;
  EXPECT_THAT(std::string(report[0]["before"]["job"]), HasSubstr("/")) << "of the other store";
  EXPECT_NE(report[0]["workload_digest"], published["workload_digest"]);
  EXPECT_FALSE(report[0]["after"].is_null()) << again.output;
  EXPECT_EQ(report[0]["before"]["latency_ns"], small["latency_ns"])
      << "what the other store published, not the fastest process";
  EXPECT_EQ(home.Hone(With({"best"}, kSmall)).code, 0) << "built and published here";
  transcript.Run({"revalidate"});
}

}  // namespace
}  // namespace hone::integration
