// Handwritten schedules, and kernels that run on files, with the real programs: `hone schedule
// --check`, `hone tune --space` and `hone run`.

#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/npy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kM = 36, kN = 40, kK = 24;

constexpr char kTrace[] =
    "workload matmul\n"
    "input A: f32[36, 24]\n"
    "input B: f32[24, 40]\n"
    "output C[i: 36, j: 40] = sum(k: 24) A[i, k] * B[k, j]\n"
    "trace 1\n"
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "x0, x1 = sample_perfect_tile(l0, parts=2) = [9, 4]\n"
    "l3, l4 = split(l0, x0, x1)\n"
    "l5, l6 = split(l1, 5, 8)\n"
    "reorder(l3, l5, l2, l4, l6)\n"
    "parallel(l3)\n"
    "unroll(l4)\n"
    "vectorize(l6)\n";

std::vector<float> Numbers(int count, int seed) {
  std::vector<float> numbers(count);
  for (int i = 0; i < count; ++i) numbers[i] = static_cast<float>((i * 7 + seed) % 13 - 6) / 4;
  return numbers;
}

class ByHand : public ::testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& content) {
    std::ofstream(files_ / name) << content;
    return files_ / name;
  }
  std::string Array(const std::string& name, const ir::Shape& shape,
                    const std::vector<float>& numbers) {
    return File(name, client::NpyHeader(ir::DType::kF32, shape) +
                          std::string(reinterpret_cast<const char*>(numbers.data()),
                                      numbers.size() * sizeof(float)));
  }
  // Expects the product of the two arrays in the file that `hone run` wrote.
  void ExpectProduct(const std::string& path, const std::vector<float>& a,
                     const std::vector<float>& b) {
    std::ifstream file(path);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    HONE_ASSERT_OK_AND_ASSIGN(const auto array, client::ParseNpy(bytes));
    ASSERT_THAT(client::CheckNpy(array, ir::DType::kF32, {kM, kN}), IsOk());
    for (int i = 0; i < kM; ++i) {
      for (int j = 0; j < kN; ++j) {
        double sum = 0;
        for (int k = 0; k < kK; ++k) sum += static_cast<double>(a[i * kK + k]) * b[k * kN + j];
        float element = 0;
        std::memcpy(&element, array.data.data() + (i * kN + j) * sizeof(float), sizeof(float));
        // The inputs are small integers divided by four: every partial sum is exact.
        ASSERT_EQ(element, sum) << i << ", " << j;
      }
    }
  }

  HoneHome home_;
  TemporaryFolder files_;
};

TEST_F(ByHand, ScheduleIsCheckedTimedAndRun) {
  const std::vector<float> a = Numbers(kM * kK, 1), b = Numbers(kK * kN, 5);
  const std::string a_file = Array("a.npy", {kM, kK}, a), b_file = Array("b.npy", {kK, kN}, b);
  const std::vector<std::string> run = {"run",  "matmul", "m=36", "n=40", "k=24",
                                        "--in", a_file,   "--in", b_file, "--json"};
  const auto run_to = [&](const std::string& out) {
    std::vector<std::string> words = run;
    words.insert(words.end(), {"--out", files_ / out});
    return home_.Hone(words);
  };

  // Nothing is tuned yet: two schedules are built and the faster one is used, but not published.
  const Result first = run_to("default.npy");
  ASSERT_EQ(first.code, 0) << first.errors;
  const nlohmann::json by_default = OneLineOfJson(first.output);
  ASSERT_TRUE(by_default.is_object()) << first.output;
  EXPECT_THAT(by_default["schedule"].get<std::string>(), AnyOf("default", "first"));
  EXPECT_FALSE(by_default.contains("best")) << "it is not tuned";
  EXPECT_GT(by_default["kernel"]["latency_ns"].get<double>(), 0);
  EXPECT_EQ(home_.Hone({"best", "matmul", "m=36", "n=40", "k=24"}).code, 3);
  EXPECT_EQ(by_default["outputs"][0]["shape"], nlohmann::json({kM, kN}));
  ExpectProduct(files_ / "default.npy", a, b);

  const std::string trace = File("mine.trace", kTrace);
  const Result checked = home_.Hone({"schedule", trace, "--check", "--json"});
  ASSERT_EQ(checked.code, 0) << checked.errors << checked.output;
  const nlohmann::json object = OneLineOfJson(checked.output);
  ASSERT_TRUE(object.is_object()) << checked.output;
  EXPECT_EQ(object["checked"], true);
  EXPECT_EQ(object["confirmed"], true);
  EXPECT_GT(object["latency_ns"].get<double>(), 0);
  EXPECT_GT(object["gflops"].get<double>(), 0);
  EXPECT_GE(object["peak_gflops"].get<double>(), object["gflops"].get<double>());
  EXPECT_DOUBLE_EQ(object["share_of_peak"].get<double>(),
                   object["gflops"].get<double>() / object["peak_gflops"].get<double>());
  EXPECT_LE(object["max_error"].get<double>(), 1);
  EXPECT_GT(object["compile_ms"].get<double>(), 0);
  EXPECT_EQ(object["workload"], std::string(kTrace).substr(0, std::string(kTrace).find("trace 1")));
  EXPECT_EQ(object["trace"], kTrace);
  EXPECT_THAT(std::string(object["policy"]), StartsWith("confirm"));

  // A known candidate is measured again. The output is for a human reader.
  const Result again = home_.Hone({"schedule", trace, "--check"});
  ASSERT_EQ(again.code, 0) << again.errors;
  EXPECT_THAT(again.output, ContainsRegex("checked   correct.*GFLOP/s.*default"));
  EXPECT_THAT(again.output, Not(HasSubstr("()")));

  const Result second = run_to("best.npy");
  ASSERT_EQ(second.code, 0) << second.errors;
  EXPECT_EQ(OneLineOfJson(second.output)["schedule"], "best");
  ExpectProduct(files_ / "best.npy", a, b);
}

TEST_F(ByHand, OpenSamplingsAreSearchedUntilTheSpaceIsExhausted) {
  const std::string open = File("open.trace", absl::StrReplaceAll(kTrace, {{" = [9, 4]", ""}}));
  const Result tuned = home_.Hone({"tune", "--space", "trace:" + open, "--trials", "64", "--json"});
  ASSERT_EQ(tuned.code, 0) << tuned.errors;
  const nlohmann::json object = OneLineOfJson(tuned.output);
  ASSERT_TRUE(object.is_object()) << tuned.output;
  // At most the nine factorizations of 36.
  EXPECT_GT(object["trials"], 1);
  EXPECT_LE(object["trials"], 9);

  const std::string decided = File("decided.trace", kTrace);
  const Result one = home_.Hone(
      {"tune", "matmul", "m=36", "n=40", "k=24", "--space", "trace:" + decided, "--json"});
  ASSERT_EQ(one.code, 0) << one.errors;
  EXPECT_EQ(OneLineOfJson(one.output)["trials"], 1);

  Transcript transcript("by_hand_space", {"hone"}, home_.variables());
  transcript.Run({"tune", "matmul", "m=36", "n=40", "k=25", "--space", "trace:" + decided});
}

// A body of 34560 statements is refused, or exceeds the build timeout.
TEST_F(ByHand, FailedCheckReportsItsOutcome) {
  const std::string text(kTrace);
  const std::string trace =
      File("long.trace", text.substr(0, text.find("x0")) + "unroll(l0)\nunroll(l1)\nunroll(l2)\n");
  const Result result = home_.Hone({"schedule", trace, "--check", "--json"});
  EXPECT_EQ(result.code, 1) << result.errors;
  const nlohmann::json object = OneLineOfJson(result.output);
  ASSERT_TRUE(object.is_object()) << result.output;
  EXPECT_EQ(object["checked"], false);
  EXPECT_EQ(object["confirmed"], false);
  EXPECT_TRUE(object["latency_ns"].is_null());
  EXPECT_NE(object["outcome"], "ok");
  EXPECT_THAT(result.errors, HasSubstr(object["outcome"].get<std::string>()));
  EXPECT_EQ(home_.Hone({"best", "matmul", "m=36", "n=40", "k=24"}).code, 0)
      << "the default schedule";
}

// The divisor is 0 but for rounding errors, so any output would pass.
TEST_F(ByHand, UncheckableWorkloadIsNotMeasured) {
  const std::string workload =
      File("unbounded.hone",
           "workload unbounded\ninput A: f32[64]\n"
           "output C[i: 64] = 1.0 / (exp(A[i]) * 3.0 - exp(A[i]) * 3.0 + 1e-30)\n");
  const Result result = home_.Hone({"tune", workload, "--trials", "2"});
  EXPECT_EQ(result.code, 1) << result.errors;
  EXPECT_THAT(result.errors, ContainsRegex("invalid.*output C cannot be checked"));
}

TEST_F(ByHand, ReportsAnUnreachableServer) {
  const std::string trace = File("mine.trace", kTrace);
  const Result result = home_.Hone({"--server", "localhost:1", "schedule", trace, "--check"});
  EXPECT_EQ(result.code, 4) << result.errors;
}

TEST_F(ByHand, MeasuresOnGivenData) {
  const std::vector<float> a = Numbers(kM * kK, 1), b = Numbers(kK * kN, 2);
  const std::string a_file = Array("a.npy", {kM, kK}, a), b_file = Array("b.npy", {kK, kN}, b);
  const std::vector<std::string> matmul = {"matmul", "m=36", "n=40", "k=24"};
  const auto with = [&](std::vector<std::string> words, std::vector<std::string> more) {
    words.insert(words.end(), matmul.begin(), matmul.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  // Wrong files are found before anything is started.
  Transcript transcript("by_hand_inputs", {"hone"}, home_.variables());
  for (const std::string& option : {b_file, "C=" + a_file}) {
    transcript.Run(with({"tune"}, {"--trials", "2", "--in", option}));
  }
  const auto inputs_of = [&](const std::string& job) {
    const Result records = home_.Hone({"records", "query", "--job", job, "--json"});
    std::set<std::string> inputs;
    const nlohmann::json json = OneLineOfJson(records.output);
    for (const auto& record : json["records"]) {
      if (record["outcome"] == "ok") inputs.insert(record["inputs"].get<std::string>());
    }
    return inputs;
  };
  const Result seeded = home_.Hone(with({"tune"}, {"--trials", "3", "--json"}));
  ASSERT_EQ(seeded.code, 0) << seeded.errors;
  EXPECT_EQ(inputs_of("1"), std::set<std::string>{"seeded-2"});

  const Result given = home_.Hone(
      with({"tune"}, {"--trials", "3", "--json", "--in", a_file, "--in", "B=" + b_file}));
  ASSERT_EQ(given.code, 0) << given.errors;
  const std::set<std::string> inputs = inputs_of("2");
  ASSERT_EQ(inputs.size(), 1u);
  const std::string digest = *inputs.begin();
  EXPECT_EQ(digest.size(), 64u);
  const nlohmann::json best = OneLineOfJson(home_.Hone(with({"best"}, {"--json"})).output);
  EXPECT_EQ(best["best"]["inputs"], digest);

  // A comparison on other data measures and publishes nothing.
  const Result compared = home_.Hone(with({"compare"}, {"--json", "--in", "B=" + b_file}));
  ASSERT_EQ(compared.code, 0) << compared.errors;
  const nlohmann::json json = OneLineOfJson(compared.output);
  EXPECT_NE(json["inputs"], digest);
  EXPECT_EQ(json["inputs"].get<std::string>().size(), 64u);
  EXPECT_GT(json["best"]["latency_ns"].get<double>(), 0);
  EXPECT_EQ(OneLineOfJson(home_.Hone(with({"best"}, {"--json"})).output), best);
  // It is not measured again.
  const auto jobs = [&] {
    return OneLineOfJson(home_.Hone({"jobs", "list", "--json"}).output)["jobs"].size();
  };
  const size_t before = jobs();
  EXPECT_EQ(OneLineOfJson(
                home_.Hone(with({"compare"}, {"--json", "--in", "B=" + b_file})).output)["inputs"],
            json["inputs"]);
  EXPECT_EQ(jobs(), before);

  const std::string trace = File("mine.trace", kTrace);
  const Result checked =
      home_.Hone({"schedule", trace, "--check", "--json", "--in", a_file, "--in", b_file});
  ASSERT_EQ(checked.code, 0) << checked.errors;
  EXPECT_EQ(OneLineOfJson(checked.output)["inputs"], digest);
  transcript.Run({"schedule", trace, "--in", a_file});
}

}  // namespace
}  // namespace hone::integration
