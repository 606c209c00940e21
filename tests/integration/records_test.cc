// `hone records import`, `query` and `export` against a server: all filters, both output formats,
// and paging.

#include <signal.h>

#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/ir/workload_parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::HasSubstr;

constexpr char kSpace[] = "a design space";
constexpr int kMany = 450;  // more than two pages of the size that hone requests

// The text that hone makes of "matmul m=… n=8 k=8".
std::string Workload(int m) {
  return absl::StrCat("workload matmul\ninput A: f32[", m,
                      ", 8]\ninput B: f32[8, 8]\noutput C[i: ", m,
                      ", j: 8] = sum(k: 8) A[i, k] * B[k, j]\n");
}

std::string DigestOfWorkload(int m) {
  return ir::ParseWorkload(Workload(m))->StructuralDigest().ToHex();
}

struct Row {
  int m = 16;
  std::string outcome = "ok";
  absl::Duration age = absl::Hours(1);
  std::string detail;
  bool quarantined = false;
};

nlohmann::json Json(const Row& row, int trial) {
  const bool ok = row.outcome == "ok";
  return {{"record",
           {{"workload", DigestOfWorkload(row.m)},
            {"operator", "matmul"},
            {"target", "x86_64-generic-sse-2c-01234567"},
            {"tolerance", 0.0},
            {"policy",
             {{"name", "screen"},
              {"cache", "warm"},
              {"threads", 2},
              {"repeats", 3},
              {"confidence", 0.9}}},
            {"space", DigestOf(kSpace).ToHex()},
            {"decisions", {4, trial}},
            {"outcome", row.outcome},
            {"detail", row.detail},
            {"latency_ns", ok ? 1000.5 + trial : 0.0},
            {"samples_ns", nlohmann::json::array({1000.0, 1001.0})},
            {"dispersion", 0.01},
            {"reference_drift", 1.0},
            {"stopped_early", false},
            {"processes", 0},
            {"inputs", ""},
            {"counters", ""},
            {"max_error", 0.25},
            {"artifact", ""},
            {"facts",
             {{"compile_ms", 1.5},
              {"link_ms", 0.5},
              {"code_bytes", 100},
              {"spills", 0},
              {"loads_per_fma", 0.5},
              {"workspace_bytes", 0},
              {"program", ""}}},
            {"machine",
             {{"frequency_mhz", 2500.0},
              {"temperature_c", 50.0},
              {"load", 0.0},
              {"steal", 0.0},
              {"remeasured", 0}}},
            {"environment",
             {{"cpu", "a cpu"},
              {"isa", "sse"},
              {"cores", 2},
              {"os", "an os"},
              {"governor", ""},
              {"compiler", "llvm"},
              {"codegen_version", 7},
              {"hone_version", "0.1.0"}}},
            {"job", "7"},
            {"trial", trial},
            {"created_unix_ms", absl::ToUnixMillis(absl::Now() - row.age)},
            {"is_default", false},
            {"proposer", ""},
            {"quarantined", row.quarantined},
            {"quarantine_reason", row.quarantined ? "the machine was busy" : ""}}}};
}

// The file that `hone records export` would write for these rows.
std::string File(const std::vector<Row>& rows) {
  std::string text = "{\"hone_records\":1,\"store\":\"0123456789abcdef\"}\n";
  std::set<std::string> texts = {kSpace};
  for (const Row& row : rows) texts.insert(Workload(row.m));
  for (const std::string& each : texts) {
    const std::string digest = each == kSpace ? DigestOf(each).ToHex()
                                              : ir::ParseWorkload(each)->StructuralDigest().ToHex();
    text += nlohmann::json{{"digest", digest}, {"text", each}}.dump() + "\n";
  }
  int trial = 0;
  for (const Row& row : rows) text += Json(row, ++trial).dump() + "\n";
  text +=
      nlohmann::json{{"end", {{"texts", texts.size()}, {"records", rows.size()}, {"left_out", 0}}}}
          .dump() +
      "\n";
  return text;
}

class RecordsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_ = StartServer("one");
    std::vector<Row> rows = {{.outcome = "crash", .detail = "it said \"no, never\",\nand died"},
                             {.m = 24, .age = absl::Hours(24 * 40)},
                             {.m = 24, .quarantined = true}};
    rows.resize(rows.size() + kMany);
    std::ofstream(folder_ / "in.jsonl") << File(rows);
    const Result imported = Hone({"records", "import", folder_ / "in.jsonl"});
    ASSERT_EQ(imported.code, 0) << imported.errors << server_->Errors();
    ASSERT_EQ(imported.output,
              absl::StrCat(rows.size(), " records added, 0 already in the store\n"));
  }
  std::unique_ptr<Process> StartServer(const std::string& name) {
    auto server = std::make_unique<Process>(std::vector<std::string>{
        "hone-server", "--listen", "unix:" + folder_ / name, "--store", folder_ / (name + ".db"),
        "--ready-file", folder_ / (name + ".ready")});
    EXPECT_TRUE(Eventually([&] {
      return RunProgram({"/usr/bin/test", "-e", folder_ / (name + ".ready")}).code == 0 ||
             !server->Running();
    })) << server->Errors();
    return server;
  }
  Result Hone(std::vector<std::string> words, const std::string& server = "one",
              const std::string& input = "") const {
    words.insert(words.begin(), {"hone", "--server", "unix:" + folder_ / server});
    return RunProgram(std::move(words), {}, absl::Seconds(120), input);
  }
  // The number of records that a query finds, according to its JSON output.
  size_t Count(std::vector<std::string> words) const {
    words.insert(words.begin(), {"records", "query", "--limit", "0", "--json"});
    const Result result = Hone(std::move(words));
    EXPECT_EQ(result.code, 0) << result.errors;
    const nlohmann::json list = OneLineOfJson(result.output);
    EXPECT_TRUE(list.is_object()) << result.output;
    return list.is_object() ? list["records"].size() : 0;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Process> server_;
};

TEST_F(RecordsTest, EachFilterSelectsItsRecords) {
  EXPECT_EQ(Count({}), kMany + 3u);
  EXPECT_EQ(Count({"--outcome", "crash"}), 1u);
  EXPECT_EQ(Count({"--since", "30d"}), kMany + 2u);
  EXPECT_EQ(Count({"--until", "30d"}), 1u);
  // The policy of the server keeps records for longer.
  const Result by_policy = Hone({"records", "compact", "--by-policy", "--dry-run", "--json"});
  EXPECT_EQ(OneLineOfJson(by_policy.output)["records_removed"], 0) << by_policy.errors;
  const Result both = Hone({"records", "compact", "--by-policy", "--keep", "30d"});
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.errors.find("omit --keep"), std::string::npos) << both.errors;
  EXPECT_EQ(Count({"--quarantined"}), 1u);
  EXPECT_EQ(Count({"--not-quarantined"}), kMany + 2u);
  EXPECT_EQ(Count({"--op", "matmul"}), kMany + 3u);
  EXPECT_EQ(Count({"--op", "conv2d"}), 0u);
  EXPECT_EQ(Count({"matmul", "m=24", "n=8", "k=8"}), 2u);
  EXPECT_EQ(Count({"matmul", "m=24", "n=8", "k=8", "--since", "30d"}), 1u);
  EXPECT_EQ(Count({"--best"}), 0u) << "an import publishes nothing";
}

TEST_F(RecordsTest, InvalidFiltersAreUsageErrors) {
  Transcript transcript("records_filters",
                        {"hone", "--server", "unix:" + folder_ / "one", "records", "query"});
  for (const Words& words : {Words{"--outcome", "fine"},
                             {"--since", "tomorrow"},
                             {"--csv", "--json"},
                             {"--limit", "-1"},
                             {"--job", "4711"}}) {
    transcript.Run(words);
  }
}

TEST_F(RecordsTest, PagesFormOneListInEveryFormat) {
  const Result csv = Hone({"records", "query", "--csv", "--limit", "0", "--outcome", "ok"});
  ASSERT_EQ(csv.code, 0) << csv.errors;
  const std::vector<std::string> lines = absl::StrSplit(csv.output, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), kMany + 3u) << "including the header line";
  EXPECT_THAT(lines[0],
              testing::StartsWith("record,operator,workload_digest,target,policy,outcome"));
  std::set<std::string> ids;
  for (size_t i = 1; i < lines.size(); ++i) ids.insert(lines[i].substr(0, lines[i].find(',')));
  EXPECT_EQ(ids.size(), kMany + 2u) << "no id is listed twice";
  for (const int limit : {1, 200, 201, 400}) {
    const Result some =
        Hone({"records", "query", "--csv", "--limit", absl::StrCat(limit), "--outcome", "ok"});
    const std::vector<std::string> found = absl::StrSplit(some.output, '\n', absl::SkipEmpty());
    EXPECT_EQ(found.size(), limit + 1u);
    const nlohmann::json list =
        OneLineOfJson(Hone({"records", "query", "--json", "--limit", absl::StrCat(limit)}).output);
    EXPECT_EQ(list["records"].size(), static_cast<size_t>(limit));
  }
}

TEST_F(RecordsTest, NewestComeFirstAndMoreIsReported) {
  const nlohmann::json some =
      OneLineOfJson(Hone({"records", "query", "--json", "--limit", "2"}).output);
  ASSERT_EQ(some["records"].size(), 2u) << some;
  EXPECT_EQ(some["more"], true);
  EXPECT_EQ(some["records"][0]["trial"], kMany + 3);
  EXPECT_EQ(some["records"][1]["trial"], kMany + 2);
  const nlohmann::json all = OneLineOfJson(
      Hone({"records", "query", "--json", "--limit", absl::StrCat(kMany + 3)}).output);
  EXPECT_EQ(all["more"], false);
  EXPECT_EQ(all["records"].back()["trial"], 1);
  EXPECT_THAT(Hone({"records", "query"}).output,
              testing::EndsWith("\nonly the newest 50 records are shown; --limit 0 shows all\n"));
  EXPECT_THAT(Hone({"records", "query", "--limit", "0"}).output,
              testing::Not(HasSubstr("--limit")));
  const Result csv = Hone({"records", "query", "--csv", "--limit", "1"});
  EXPECT_THAT(csv.output, HasSubstr(",crash,")) << "the record that was stored first";
}

TEST_F(RecordsTest, FailedDefaultShowsItsReason) {
  nlohmann::json failed = Json({.m = 40, .outcome = "crash", .detail = "it divides by zero"}, 1);
  failed["record"]["is_default"] = true;
  std::string text = File({{.m = 40}});
  const size_t end = text.rfind("{\"end\"");
  const size_t record = text.rfind('\n', end - 2) + 1;
  text.replace(record, end - record, failed.dump() + "\n");
  ASSERT_EQ(Hone({"records", "import", "-"}, "one", text).code, 0);
  Transcript transcript("records_default", {"hone", "--server", "unix:" + folder_ / "one"});
  transcript.Run({"records", "query", "--limit", "1"});
}

TEST_F(RecordsTest, CsvQuotesMultilineText) {
  const Result csv = Hone({"records", "query", "--csv", "--outcome", "crash"});
  EXPECT_THAT(csv.output, testing::HasSubstr(",\"it said \"\"no, never\"\",\nand died\","));
  const nlohmann::json list =
      OneLineOfJson(Hone({"records", "query", "--json", "--outcome", "crash"}).output);
  EXPECT_EQ(list["records"][0]["detail"], "it said \"no, never\",\nand died");
  EXPECT_EQ(list["records"][0]["outcome"], "crash");
}

TEST_F(RecordsTest, ExportRoundTripsWithoutDuplicates) {
  const Result exported = Hone({"records", "export", "-o", folder_ / "out.jsonl"});
  ASSERT_EQ(exported.code, 0) << exported.errors;
  EXPECT_THAT(exported.output, testing::EndsWith(absl::StrCat(": ", kMany + 3, " records\n")));
  const auto other = StartServer("two");
  const Result first = Hone({"records", "import", folder_ / "out.jsonl", "--json"}, "two");
  ASSERT_EQ(first.code, 0) << first.errors;
  EXPECT_EQ(OneLineOfJson(first.output)["added"], kMany + 3);
  // Importing from standard input works as well, and adds nothing.
  const Result again =
      Hone({"records", "import", "-", "--json"}, "two", ReadFile(folder_ / "out.jsonl").value());
  ASSERT_EQ(again.code, 0) << again.errors;
  EXPECT_EQ(OneLineOfJson(again.output)["added"], 0);
  EXPECT_EQ(OneLineOfJson(again.output)["known"], kMany + 3);
  const auto list = [&](const std::string& server) {
    nlohmann::json records = OneLineOfJson(
        Hone({"records", "query", "--json", "--limit", "0"}, server).output)["records"];
    for (auto& record : records) {
      record.erase("record");
      record.erase("job");  // contains the identity of the original store
    }
    return records;
  };
  EXPECT_EQ(list("one"), list("two"));
}

// `hone records backup`, and `hone-server restore` and `merge`, as described in the README.
TEST_F(RecordsTest, BackupIsRestoredAndLaterRecordsMerged) {
  const std::string backup = folder_ / "backup.db", store = folder_ / "one.db";
  const Result made = Hone({"records", "backup", backup, "--json"});
  ASSERT_EQ(made.code, 0) << made.errors;
  EXPECT_EQ(OneLineOfJson(made.output)["record_count"], kMany + 3);
  Transcript transcript("records_backup");
  transcript.Run({"hone", "--server", "unix:" + folder_ / "one", "records", "backup", backup});
  ASSERT_EQ(Hone({"records", "import", "-"}, "one", File({{.m = 40}})).code, 0);
  EXPECT_EQ(Count({}), kMany + 4u);

  const std::vector<std::string> restore = {"hone-server", "restore", "--store",
                                            store,         "--from",  backup};
  transcript.Replace(absl::StrCat("process ", server_->pid()), "process PID");
  transcript.Run(restore);  // a server has the store open
  server_->Signal(SIGTERM);
  ASSERT_EQ(server_->Wait(), 0);
  const Result restored = RunProgram(restore);
  ASSERT_EQ(restored.code, 0) << restored.errors;
  const std::string kept = restored.output.substr(restored.output.rfind(' ') + 1);
  server_ = StartServer("one");
  EXPECT_EQ(Count({}), kMany + 3u) << "nothing has changed";

  server_->Signal(SIGTERM);
  ASSERT_EQ(server_->Wait(), 0);
  const std::string before(absl::StripTrailingAsciiWhitespace(kept));
  transcript.Replace(before, "DIR/before.db");
  for (int i = 0; i < 2; ++i) {
    transcript.Run({"hone-server", "merge", "--store", store, "--from", before});
  }
  server_ = StartServer("one");
  EXPECT_EQ(Count({}), kMany + 4u);
}

TEST_F(RecordsTest, CompactReportsWhatItRemoves) {
  // The first record is faster. The old record of the other workload is its best, and is kept.
  const std::string more = File({{}, {.age = absl::Hours(24 * 40)}});
  ASSERT_EQ(Hone({"records", "import", "-"}, "one", more).code, 0);
  const std::vector<std::string> words = {"records",     "compact", "--keep", "30d",
                                          "--keep-best", "1",       "--json"};
  std::vector<std::string> dry = words;
  dry.push_back("--dry-run");
  EXPECT_EQ(OneLineOfJson(Hone(dry).output)["records_removed"], 1);
  EXPECT_EQ(Count({}), kMany + 5u) << "a dry run changes nothing";
  const Result done = Hone(words);
  ASSERT_EQ(done.code, 0) << done.errors;
  EXPECT_EQ(OneLineOfJson(done.output)["records_removed"], 1);
  EXPECT_EQ(Count({}), kMany + 4u);
  EXPECT_EQ(Count({"--until", "30d"}), 1u);
}

TEST_F(RecordsTest, BadImportNamesTheLineAndAddsNothing) {
  nlohmann::json bad = Json({}, 1);
  bad["record"]["latency_ns"] = -5.0;
  std::string text = File({{}, {}});
  const size_t end = text.rfind("{\"end\"");
  text.insert(end, bad.dump() + "\n");
  const auto other = StartServer("two");
  Transcript transcript("records_import",
                        {"hone", "--server", "unix:" + folder_ / "two", "records"});
  transcript.Add("hone records import -", Hone({"records", "import", "-"}, "two", text));
  ASSERT_THAT(WriteFileAtomically(folder_ / "bad.jsonl", text), IsOk());
  transcript.Run({"import", folder_ / "bad.jsonl"});
  transcript.Run({"query"});
  transcript.Run({"import", folder_ / "nowhere.jsonl"});
}

}  // namespace
}  // namespace hone::integration
