// Stored results used again, with the real programs: `hone compare`, `hone best --nearest`,
// `hone revalidate`, `hone pin` and `hone forget`.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"

namespace hone::integration {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const Words kTuned = {"matmul", "m=48", "n=64", "k=32"};
const Words kUnseen = {"matmul", "m=80", "n=96", "k=40"};

nlohmann::json Records(const HoneHome& home, const Words& query) {
  const Result result = home.Hone(With({"records", "query", "--limit", "0", "--json"}, query));
  EXPECT_EQ(result.code, 0) << result.errors;
  return OneLineOfJson(result.output)["records"];
}

// Whether a schedule besides the best and the untiled one was measured in three processes. If the
// untiled schedule is the second best, all others may have dropped out before.
bool HasRunnerUp(const nlohmann::json& records, const nlohmann::json& best) {
  const auto candidate = [](const nlohmann::json& record) {
    return std::pair(record["space_digest"].get<std::string>(), record["decisions"].dump());
  };
  std::map<std::pair<std::string, std::string>, int> processes;
  for (const nlohmann::json& record : records) {
    const bool counts = record["policy"].get<std::string>().starts_with("confirm") &&
                        record["processes"] == 1 && record["outcome"] == "ok" &&
                        !record["is_default"].get<bool>() && !record["quarantined"].get<bool>();
    if (counts && candidate(record) != candidate(best)) ++processes[candidate(record)];
  }
  return std::any_of(processes.begin(), processes.end(),
                     [](const auto& entry) { return entry.second >= 3; });
}

TEST(Knowledge, ComparesTransfersAndRevalidatesATunedOperator) {
  HoneHome home;
  Transcript transcript("knowledge", {"hone"}, home.variables());
  transcript.Run(With({"compare"}, kTuned));
  transcript.Run(With({"best", "--nearest"}, kTuned));

  const Result tuned = home.Hone(With({"tune", "--trials", "12", "--json"}, kTuned));
  ASSERT_EQ(tuned.code, 0) << tuned.errors;

  const Result compared = home.Hone(With({"compare", "--json"}, kTuned));
  ASSERT_EQ(compared.code, 0) << compared.errors;
  const nlohmann::json table = OneLineOfJson(compared.output);
  ASSERT_TRUE(table.is_object()) << compared.output;
  // Simulated latencies depend on the machine: the untiled schedule may be the best or the second.
  const nlohmann::json published = Records(home, With({"--best"}, kTuned)).at(0);
  const bool has_runner_up = HasRunnerUp(Records(home, kTuned), published);
  EXPECT_EQ(table.contains("runner-up"), has_runner_up) << compared.output;
  EXPECT_EQ(table.contains("missing_rows"), !has_runner_up) << compared.output;
  Words rows = {"default", "best"};
  if (has_runner_up) rows.push_back("runner-up");
  for (const std::string& row : rows) {
    ASSERT_TRUE(table.contains(row)) << compared.output;
    EXPECT_GT(table[row]["latency_ns"], 0);
    EXPECT_GE(table[row]["processes"], 3) << "all rows are measured in the same way";
    EXPECT_EQ(table[row]["share_of_roofline"].is_null(), table["roofline"]["bound"] == "cache");
  }
  if (has_runner_up) {
    EXPECT_NE(table["best"]["record"], table["runner-up"]["record"]);
    EXPECT_THAT(std::string(table["runner-up"]["found_by"]), HasSubstr("12 trials"));
  }
  EXPECT_GT(table["roofline"]["read_gbps"], 0);
  const nlohmann::json run = OneLineOfJson(tuned.output);
  EXPECT_EQ(table["best"]["record"], published["record"]);
  EXPECT_EQ(table["best"]["latency_ns"], run["best"]["latency_ns"]);
  EXPECT_EQ(run["default"]["confirmed"], true);
  // The samples of a kernel vary by a thousandth.
  for (const std::string& row : rows) {
    EXPECT_LT(table["best"]["latency_ns"].get<double>(),
              1.01 * table[row]["latency_ns"].get<double>())
        << row;
  }
  EXPECT_EQ(table["default"]["found_by"], "untiled");
  EXPECT_THAT(std::string(table["best"]["found_by"]),
              ContainsRegex(published["is_default"].get<bool>() ? "^untiled$" : "12 trials"));
  const Result text = home.Hone(With({"compare"}, kTuned));
  EXPECT_EQ(absl::StrContains(text.output, "\nrunner-up"), has_runner_up) << text.output;
  EXPECT_THAT(text.output, HasSubstr("roofline"));

  // An unseen shape gets an adapted candidate, which is marked as such and correct when checked.
  transcript.Run(With({"best"}, kUnseen));
  const Result near = home.Hone(With({"best", "--nearest", "--json"}, kUnseen));
  ASSERT_EQ(near.code, 0) << near.errors;
  const nlohmann::json adapted = OneLineOfJson(near.output);
  EXPECT_TRUE(adapted["best"].is_null());
  EXPECT_GT(adapted["nearest"]["distance"], 0);
  EXPECT_EQ(adapted["nearest"]["workload"], run["workload"]);
  EXPECT_THAT(std::string(adapted["adapted"]["trace"]), HasSubstr("f32[80, 40]"));
  EXPECT_THAT(home.Hone(With({"best", "--nearest"}, kUnseen)).output,
              HasSubstr("not measured: the schedule was adapted from that of "
                        "matmul(f32[48, 32], f32[32, 64])"));

  const Result more = home.Hone(With({"tune", "--trials", "8", "--json"}, kUnseen));
  ASSERT_EQ(more.code, 0) << more.errors;
  EXPECT_FALSE(OneLineOfJson(home.Hone(With({"best", "--nearest", "--json"}, kUnseen)).output)
                   .contains("nearest"))
      << "a measured best takes precedence over an adapted one";

  // The code generator and the environment are the same: nothing is due for revalidation without
  // --all.
  transcript.Run({"revalidate"});
  const Result again = home.Hone(With({"revalidate", "--all", "--top", "2", "--json"}, kTuned));
  ASSERT_EQ(again.code, 0) << again.errors;
  const nlohmann::json report = OneLineOfJson(again.output)["revalidated"];
  ASSERT_EQ(report.size(), 1u) << again.output;
  EXPECT_GT(report[0]["after"]["record"], report[0]["before"]["record"]);
  EXPECT_EQ(report[0]["quarantined_count"], 0);
  const nlohmann::json best = OneLineOfJson(home.Hone(With({"best", "--json"}, kTuned)).output);
  EXPECT_EQ(best["best"]["record"], report[0]["after"]["record"]);
}

TEST(Knowledge, APinnedBestStaysAndAForgottenOperatorStartsFresh) {
  HoneHome home;
  const auto json = [&](const Words& words) {
    const Result result = home.Hone(With(words, {"--json"}));
    EXPECT_EQ(result.code, 0) << result.errors;
    return OneLineOfJson(result.output);
  };
  const nlohmann::json first = json(With({"tune", "--trials", "1"}, kTuned));
  ASSERT_TRUE(first["best"].is_object()) << first;
  EXPECT_TRUE(first["best"]["pinned"].is_null());
  const nlohmann::json pinned = json(With({"pin"}, kTuned));
  EXPECT_EQ(pinned["record"], first["best"]["record"]);
  EXPECT_GT(pinned["pinned"]["unix_ms"], 0);
  EXPECT_THAT(home.Hone({"pin"}).output, HasSubstr("matmul(f32[48, 32], f32[32, 64])"));

  // A longer search reports its own best, and does not replace the pinned one.
  const Result longer = home.Hone(With({"tune", "--trials", "12"}, kTuned));
  ASSERT_EQ(longer.code, 0) << longer.errors;
  EXPECT_THAT(longer.output, ContainsRegex("best of this run.*pinned on 20"));
  const std::string second = json({"jobs", "list"})["jobs"][0]["job"];
  EXPECT_THAT(home.Hone({"jobs", "show", second}).output,
              ContainsRegex("best known, of job .*best of this job"));
  EXPECT_GT(json({"jobs", "show", second})["own_best"]["latency_ns"], 0);
  EXPECT_EQ(json(With({"best"}, kTuned))["best"]["record"], first["best"]["record"]);
  EXPECT_THAT(home.Hone(With({"best"}, kTuned)).output, HasSubstr("pinned on 20"));
  const nlohmann::json screened = json({"records", "query", "--limit", "0"})["records"].back();
  const std::string record = std::to_string(screened["record"].get<int64_t>());
  Transcript transcript("knowledge_pin", {"hone"}, home.variables());
  transcript.Replace("record " + record, "record N");
  transcript.Run(With({"pin", "--record", record}, kTuned));
  transcript.Run(With({"pin", "--remove"}, kTuned));
  transcript.Run({"pin"});

  const nlohmann::json forgotten = json(With({"forget"}, kTuned));
  EXPECT_GT(forgotten["record_count"], 0);
  ASSERT_EQ(forgotten["bests"].size(), 1u);
  EXPECT_EQ(forgotten["bests"][0]["record"], first["best"]["record"]);
  for (const Words& words : {Words{"best"}, {"best", "--nearest"}, {"forget"}, {"compare"}}) {
    transcript.Run(With(words, kTuned));
  }
  const std::string job = forgotten["bests"][0]["job"];
  EXPECT_THAT(home.Hone({"jobs", "show", job}).output,
              ContainsRegex("best, now forgotten: .*it does not count any more: forgotten on 20"));
  EXPECT_THAT(home.Hone({"jobs", "list"}).output, HasSubstr("best now forgotten"));
  EXPECT_THAT(std::string(json({"jobs", "show", job})["best"]["quarantine_reason"]),
              StartsWith("forgotten on 20"));
  const nlohmann::json kept =
      json({"records", "query", "--quarantined", "--limit", "0"})["records"];
  EXPECT_GE(kept.size(), forgotten["record_count"].get<size_t>());
  for (const nlohmann::json& record : kept) {
    if (record["record"] != first["best"]["record"]) continue;
    EXPECT_THAT(std::string(record["quarantine_reason"]), StartsWith("forgotten on 20"));
  }
  const nlohmann::json fresh = json(With({"tune", "--trials", "1"}, kTuned));
  EXPECT_EQ(fresh["best"]["job"], fresh["job"]);
  EXPECT_EQ(fresh["trials"], 1);
}

}  // namespace
}  // namespace hone::integration
