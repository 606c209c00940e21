// A network from an ONNX file with the real programs: hone tune, best, run and export.
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/npy.h"
#include "client/network/graph/interpreter.h"
#include "client/network/onnx/import.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/client/network/onnx/open_models.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMnist[] = "tests/client/network/onnx/testdata/mnist-8.onnx";
constexpr int kPixels = 28 * 28;
// tests/bench/networks/make_models.py writes it.
constexpr char kMobileNet[] = "tests/client/network/onnx/testdata/mobilenet_tiny.onnx";

class NetworkTest : public ::testing::Test {
 protected:
  std::string Array(const std::string& name, const ir::Shape& shape,
                    const std::vector<float>& elements) {
    const std::string path = files_ / name;
    std::ofstream(path) << client::NpyHeader(ir::DType::kF32, shape)
                        << std::string(reinterpret_cast<const char*>(elements.data()),
                                       elements.size() * sizeof(float));
    return path;
  }

  // The same as a tensor file of ONNX.
  std::string TensorFile(const std::string& name, const std::vector<int>& shape,
                         const std::vector<float>& elements) {
    const auto varint = [](size_t number) {
      std::string bytes;
      for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
      return bytes + static_cast<char>(number);
    };
    std::string bytes;
    for (const int extent : shape) absl::StrAppend(&bytes, "\x08", varint(extent));  // dims
    absl::StrAppend(&bytes, "\x10\x01");                                             // float
    const size_t size = elements.size() * sizeof(float);
    absl::StrAppend(&bytes, "\x4a", varint(size));  // raw_data
    bytes.append(reinterpret_cast<const char*>(elements.data()), size);
    const std::string path = files_ / name;
    std::ofstream(path) << bytes;
    return path;
  }

  // The outputs of a network with one input, by the interpreter.
  static std::vector<float> Interpreted(const char* path, const std::vector<float>& input) {
    const absl::StatusOr<graph::Graph> graph = onnx::ImportOnnx(path);
    EXPECT_THAT(graph, IsOk());
    const std::vector<ir::Scalars> scalars = {ir::Scalars(input.begin(), input.end())};
    const auto computed = graph::Interpret(*graph, scalars);
    EXPECT_THAT(computed, IsOk());
    std::vector<float> output;
    for (const ir::Scalar& element : (*computed)[0]) {
      output.push_back(static_cast<float>(element.real()));
    }
    return output;
  }

  // Runs and exports the digits network, of which so many tasks use a measured schedule that is
  // not confirmed. The kernels are those that were checked.
  void ExpectItWorks(int64_t measured) {
    std::vector<float> pixels(kPixels, 0.5);
    const std::string input = Array("half.npy", {1, 1, 28, 28}, pixels);
    const std::string expected = Array("scores.npy", {1, 10}, Interpreted(kMnist, pixels));
    Result result = home_.Hone(
        {"run", kMnist, "--in", input, "--expect", expected, "--max-error", "1e-4", "--json"});
    EXPECT_EQ(result.code, 0) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(" of 5 tasks have no confirmed schedule: "));
    const json counts = OneLineOfJson(result.output)["schedule_count"];
    EXPECT_EQ(counts["measured"], measured);
    EXPECT_EQ(counts["unchecked"], counts["draft"]) << "measured kernels have the same bytes";
    result = home_.Hone({"export", kMnist, "-o", files_ / "unconfirmed", "--name", "digits"});
    EXPECT_EQ(result.code, 0) << result.errors;
    EXPECT_TRUE(std::filesystem::exists(files_ / "unconfirmed/digits.export.json"));
  }

  HoneHome home_;
  TemporaryFolder files_;
};

TEST_F(NetworkTest, IsTunedRunAndExported) {
  std::vector<float> pixels(kPixels);
  for (int i = 0; i < kPixels; ++i) pixels[i] = static_cast<float>(i % 29) / 29;
  std::vector<float> scores = Interpreted(kMnist, pixels);
  const std::string input = Array("input.npy", {1, 1, 28, 28}, pixels);
  const std::string expected = Array("expected.npy", {1, 10}, scores);

  Transcript transcript("network", {"hone"}, home_.variables());
  transcript.Run({"run", kMnist, "--in", input});  // nothing is known
  Result result = home_.Hone({"jobs", "list", "--json"});
  EXPECT_TRUE(OneLineOfJson(result.output)["jobs"].empty()) << "running a network creates no job";

  result = home_.Hone({"tune", kMnist, "--trials", "10", "--json"});
  ASSERT_EQ(result.code, 0) << result.errors;
  json report = OneLineOfJson(result.output);
  EXPECT_EQ(report["trials"], 10);
  EXPECT_EQ(report["tasks"].size(), 5u);
  EXPECT_GT(report["latency_ns"].get<double>(), 0);
  for (const json& task : report["tasks"]) {
    EXPECT_NE(task["confirmed"].get<bool>(), task["disturbed"].get<bool>()) << task;
    EXPECT_GE(task["processes"].get<int>(), 1) << task;
  }

  // The job_page about a job needs no model.
  const std::string job_page = files_ / "job.html";
  result = home_.Hone({"jobs", "show", report["job"], "--report", job_page});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(ReadFile(job_page).value_or(""), ContainsRegex("mnist-8.*10 trials.*f32\\["));

  result = home_.Hone({"best", kMnist, "--json"});
  EXPECT_EQ(result.code, 0) << result.errors;
  report = OneLineOfJson(result.output);
  EXPECT_EQ(report["known"], 5);
  for (const json& task : report["tasks"]) {
    EXPECT_GE(task["processes"].get<int>(), 1);
    EXPECT_TRUE(task["unconfirmed_job"].is_null());
  }

  const std::string output = files_ / "output.npy";
  result = home_.Hone({"run", kMnist, "--in", input, "--out", output, "--expect", expected,
                       "--repeat", "3", "--profile", "--json"});
  ASSERT_EQ(result.code, 0) << result.errors;
  report = OneLineOfJson(result.output);
  EXPECT_LT(report["max_error"].get<double>(), 1e-5);
  EXPECT_EQ(report["outputs"][0]["path"], output);
  EXPECT_EQ(report["outputs"][0]["shape"], json::array({1, 10}));
  EXPECT_GE(report["latency_ns"]["p90"].get<double>(), report["latency_ns"]["p10"].get<double>());
  EXPECT_EQ(report["is_disturbed"], report["disturbance"] != "") << report;
  // The steps are those of the run whose latency is printed.
  ASSERT_EQ(report["steps"].size(), 5u);
  double steps_ns = 0;
  for (const json& step : report["steps"]) steps_ns += step["latency_ns"].get<double>();
  EXPECT_LE(steps_ns, report["latency_ns"]["median"].get<double>());
  EXPECT_EQ(std::filesystem::file_size(output), std::filesystem::file_size(expected));

  result = home_.Hone({"run", kMnist, "--in", TensorFile("in.pb", {1, 1, 28, 28}, pixels),
                       "--expect", TensorFile("out.pb", {1, 10}, scores), "--json"});
  ASSERT_EQ(result.code, 0) << result.errors;
  EXPECT_LT(OneLineOfJson(result.output)["max_error"].get<double>(), 1e-5);
  transcript.Run({"run", kMnist, "--in", TensorFile("in.pb", {28, 28}, pixels)});

  scores[3] += 100;
  const std::string other = Array("other.npy", {1, 10}, scores);
  result = home_.Hone({"run", kMnist, "--in", input, "--expect", other, "--json"});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_GT(OneLineOfJson(result.output)["max_error"].get<double>(), 1e-3);
  result = home_.Hone(
      {"run", kMnist, "--in", input, "--expect", other, "--max-error", "1e-3", "--json"});
  EXPECT_EQ(result.code, 1);
  EXPECT_GT(OneLineOfJson(result.output)["max_error"].get<double>(), 1e-3);
  EXPECT_THAT(result.output, HasSubstr("more than --max-error 0.001"));
  result = home_.Hone(
      {"run", kMnist, "--in", input, "--out", output, "--expect", expected, "--max-error", "1e-3"});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.output, ContainsRegex(output + "  .*: f32\\[1, 10\\]\n.* "
                                                    "\\(one run; --repeat 100 gives "));

  const std::string page = files_ / "report.html";
  result = home_.Hone({"tune", kMnist, "--only-missing", "--report", page, "--json"});
  ASSERT_EQ(result.code, 0) << result.errors;
  EXPECT_EQ(OneLineOfJson(result.output)["trials"], 0) << "all tasks are known";
  EXPECT_GT(std::filesystem::file_size(page), 1000u);
  std::filesystem::remove(page);
  result = home_.Hone({"best", kMnist, "--report", page});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_GT(std::filesystem::file_size(page), 1000u);

  const std::string folder = files_ / "exported";
  const std::vector<std::string> draft = {"export", kMnist,   "-o",     folder + "/",
                                          "--name", "digits", "--draft"};
  result = home_.Hone({"export", kMnist, "-o", folder + "/", "--name", "digits"});
  EXPECT_THAT(result.output, Not(HasSubstr("//")));
  ASSERT_EQ(result.code, 0) << result.errors;
  for (const char* const name :
       {"libdigits.so", "digits.weights", "digits.h", "digits.hpp", "digits.py"})
    EXPECT_TRUE(std::filesystem::exists(absl::StrCat(folder, "/", name))) << name;
  EXPECT_EQ(home_.Hone(draft).code, 0) << "all kernels are known";

  // Another network is not replaced, nor are measured kernels by drafts.
  const std::string weights = folder + "/digits.weights";
  const auto written = std::filesystem::last_write_time(weights);
  transcript.Run({"export", kMobileNet, "-o", folder, "--name", "digits", "--draft"});
  HoneHome empty;
  result = empty.Hone(draft);
  EXPECT_EQ(result.code, 2) << result.output;
  EXPECT_THAT(result.errors, HasSubstr("kernels were measured, and now 0 of 5 are"));
  EXPECT_EQ(std::filesystem::last_write_time(weights), written);
}

// Several sizes are tuned in one job and exported as one library.
TEST_F(NetworkTest, SeveralSizes) {
  const std::string model = files_ / "mlp.onnx";
  std::ofstream(model, std::ios::binary) << onnx::BytesOf(onnx::OpenMlp());
  Result result = home_.Hone({"export", model, "--shape", "N=1..100000", "-o", files_ / "out"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.errors, HasSubstr("18 values of N are given, and at most 16 sizes"));

  result = home_.Hone({"tune", model, "--shape", "N=1:3,4", "--trials", "8", "--json"});
  ASSERT_EQ(result.code, 0) << result.errors << result.output;
  const json report = OneLineOfJson(result.output);
  ASSERT_EQ(report["sizes"].size(), 2u) << result.output;
  EXPECT_EQ(report["sizes"][1]["size"], "N=4");
  EXPECT_EQ(report["sizes"][0]["weight"], 3);
  for (const json& size : report["sizes"]) {
    EXPECT_GT(size["estimated_latency_ns"].get<double>(), 0);
    EXPECT_GT(size["latency_ns"].get<double>(), 0);
  }
  for (const json& task : report["tasks"]) EXPECT_EQ(task["weights"].size(), 2u);

  // Their weights are stored with the job.
  result = home_.Hone({"jobs", "show", "1"});
  EXPECT_THAT(result.output, HasSubstr("sizes: N=1 (weight 3), N=4 (weight 1)\n"));
  result = home_.Hone({"jobs", "show", "1", "--json"});
  EXPECT_EQ(OneLineOfJson(result.output)["network"]["sizes"],
            json::parse(R"([{"size": "N=1", "weight": 3.0}, {"size": "N=4", "weight": 1.0}])"));

  // Without --shape, the sizes of the job are used.
  result = home_.Hone({"best", model, "--json"});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("dimension N is open; the sizes of job 1 are used"));
  EXPECT_EQ(OneLineOfJson(result.output)["sizes"].size(), 2u);
  result = home_.Hone({"export", model, "-o", files_ / "out", "--name", "net", "--json"});
  ASSERT_EQ(result.code, 0) << result.errors;
  const json exported = OneLineOfJson(result.output);
  EXPECT_EQ(exported["dimension"], "N");
  EXPECT_EQ(exported["sizes"], json::parse(R"([{"value": 1, "pads": false},
                                               {"value": 4, "pads": true}])"));

  // A value in between, in the library and by the interpreter.
  const std::vector<float> ones(3 * 6, 0.5);
  const auto graph = onnx::ImportOnnx(model, {.shapes = {{"N", {3}}}});
  ASSERT_THAT(graph, IsOk());
  const auto computed = graph::Interpret(*graph, {ir::Scalars(ones.begin(), ones.end())});
  ASSERT_THAT(computed, IsOk());
  std::vector<float> expected;
  for (const ir::Scalar& element : (*computed)[0]) {
    expected.push_back(static_cast<float>(element.real()));
  }
  const std::string x = Array("x.npy", {3, 6}, ones), y = Array("y.npy", {3, 5}, expected);
  result = RunProgram({"/usr/bin/python3", "-c",
                       "import sys, numpy; sys.path.insert(0, sys.argv[1]); import net\n"
                       "got = net.Network()(numpy.load(sys.argv[2]))[0]\n"
                       "assert abs(got - numpy.load(sys.argv[3])).max() < 1e-5, got",
                       files_ / "out", x, y});
  if (!absl::StrContains(result.errors, "No module named 'numpy'")) {
    EXPECT_EQ(result.code, 0) << result.errors;
  }

  // hone run takes the size whose shapes the inputs have.
  const std::string four = Array("four.npy", {4, 6}, std::vector<float>(4 * 6, 0.5));
  result = home_.Hone({"run", model, "--in", four});
  EXPECT_EQ(result.code, 0) << result.errors;
  result = home_.Hone({"run", model, "--in", x});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.errors, HasSubstr("the inputs fit none of the sizes N=1; N=4"));
}

// The values between the sizes, compared with ONNX Runtime if it is installed.
TEST_F(NetworkTest, PaddedValuesAreThoseOfOnnxRuntime) {
  for (const std::string& text :
       {onnx::OpenMlp(), onnx::OpenConvolutions(), onnx::OpenAttention()}) {
    const std::string model = files_ / "open.onnx", folder = files_ / "open";
    std::ofstream(model, std::ios::binary) << onnx::BytesOf(text);
    Result result = home_.Hone({"export", model, "--shape", "N=2,7", "-o", folder, "--name", "net",
                                "--draft", "--overwrite"});
    ASSERT_EQ(result.code, 0) << result.errors;
    EXPECT_THAT(result.errors, Not(HasSubstr("are refused")));
    result = RunProgram({"/usr/bin/python3", "tests/integration/use_sizes.py", folder, model, "7"});
    EXPECT_EQ(result.code, 0) << result.errors;
    EXPECT_THAT(result.output, AnyOf("right\n", "skipped\n"));
  }
}

// One library for several sizes of an operator.
TEST_F(NetworkTest, SeveralSizesOfAnOperator) {
  const std::vector<std::string> words = {"matmul", "m=1,2,8", "n=16", "k=16"};
  const auto with = [&](const char* command, std::vector<std::string> rest) {
    std::vector<std::string> all = {command};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), rest.begin(), rest.end());
    return home_.Hone(all);
  };
  Result result = with("export", {"-o", files_ / "op"});
  EXPECT_EQ(result.code, 3) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("hone tune 'matmul m=1 n=16 k=16'"));
  result = with("tune", {"--trials", "2", "--json"});
  ASSERT_EQ(result.code, 0) << result.errors;
  EXPECT_EQ(OneLineOfJson(result.output)["jobs"].size(), 3u);
  result = with("best", {"--json"});
  EXPECT_EQ(result.code, 0) << result.errors;
  result = with("export", {"-o", files_ / "op", "--name", "net", "--json"});
  ASSERT_EQ(result.code, 0) << result.errors;
  const json exported = OneLineOfJson(result.output);
  EXPECT_EQ(exported["dimension"], "m");
  // A smaller size is left out if padding to the next one costs little.
  EXPECT_EQ(exported["sizes"].back(), json::parse(R"({"value": 8, "pads": true})"));
  const auto index = ReadFile(files_ / "op/lookup/index");
  ASSERT_THAT(index, IsOk());
  EXPECT_THAT(*index, HasSubstr("name matmul"));
  EXPECT_THAT(*index, HasSubstr(" m=8 "));
  result = RunProgram({"/usr/bin/python3", "-c",
                       "import sys, numpy; sys.path.insert(0, sys.argv[1]); import net\n"
                       "network = net.Network()\n"
                       "for m in range(1, 9):\n"
                       "    a = numpy.random.rand(m, 16).astype('float32')\n"
                       "    b = numpy.random.rand(16, 16).astype('float32')\n"
                       "    assert abs(network(a, b)[0] - a @ b).max() < 1e-5, m",
                       files_ / "op"});
  if (!absl::StrContains(result.errors, "No module named 'numpy'")) {
    EXPECT_EQ(result.code, 0) << result.errors;
  }
}

TEST_F(NetworkTest, SaysWhichTasksHaveNoConfirmedSchedule) {
  Transcript transcript("network_unknown", {"hone"}, home_.variables());
  transcript.Run({"best", kMnist});

  Process tune({"hone", "tune", kMnist, "--trials", "100000"}, home_.variables());
  ASSERT_TRUE(Eventually([&] {
    const json jobs = OneLineOfJson(home_.Hone({"jobs", "list", "--json"}).output);
    return jobs.is_object() && !jobs["jobs"].empty() && jobs["jobs"][0]["trials"] > 4;
  })) << tune.Errors();
  EXPECT_THAT(home_.Hone({"best", kMnist}).errors,
              HasSubstr("job 1 is tuning them; hone jobs watch 1 follows the job"));
  tune.Signal(SIGINT);
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(tune.Errors(), "Ctrl-C again"); }));
  tune.Signal(SIGINT);
  EXPECT_EQ(tune.Wait(), 128 + SIGINT) << tune.Errors();
  EXPECT_THAT(tune.Errors(), ContainsRegex("stopping now.*interrupted: job 1 ended"
                                           ".*; hone jobs resume 1 continues it"));
  EXPECT_THAT(tune.Output(), ContainsRegex("task  job  times  trials.*  ~"))
      << "the latencies of the search";
  Result result = home_.Hone({"best", kMnist, "--json"});
  EXPECT_EQ(result.code, 0) << result.output;
  const json cut = OneLineOfJson(result.output);
  const auto measured =
      std::count_if(cut["tasks"].begin(), cut["tasks"].end(), [](const json& task) {
        return task["unconfirmed_job"].is_string() && task["latency_ns"].is_number() &&
               task["confirmed"] == false && task["schedule"] == "measured";
      });
  EXPECT_GT(measured, 0) << result.output;
  EXPECT_EQ(cut["schedule_count"]["measured"], measured);
  EXPECT_EQ(cut["schedule_count"]["confirmed"], 0);
  EXPECT_EQ(cut["schedule_count"]["draft"], 5 - measured);
  result = home_.Hone({"best", kMnist});
  EXPECT_THAT(result.output, ContainsRegex("job 1\\..*, not confirmed"));
  EXPECT_THAT(result.output, HasSubstr("5 of 5 tasks have no confirmed schedule: "));
  ExpectItWorks(measured);

  // The job continues, and one Ctrl-C confirms what it has found.
  const auto trials = [&] {
    const json job = OneLineOfJson(home_.Hone({"jobs", "show", "1", "--json"}).output);
    return job.is_object() ? job["trials"].get<int>() : 0;
  };
  const int before = trials();
  Process resumed({"hone", "jobs", "resume", "1"}, home_.variables());
  ASSERT_TRUE(Eventually([&] { return trials() > before + 4; })) << resumed.Errors();
  resumed.Signal(SIGINT);
  EXPECT_EQ(resumed.Wait(), 128 + SIGINT) << resumed.Errors();
  EXPECT_GT(OneLineOfJson(home_.Hone({"best", kMnist, "--json"}).output)["known"], 0);
}

TEST_F(NetworkTest, TasksWithoutTrialsUseTheDraft) {
  const Result result = home_.Hone({"tune", kMnist, "--trials", "2"});
  EXPECT_EQ(result.code, 0) << "it runs: " << result.errors;
  EXPECT_THAT(result.errors,
              ContainsRegex("warning: --trials 2 is too few for the 5 tasks to tune.* of 5 tasks "
                            "have no confirmed kernel; hone tune .* --only-missing tunes them"));
  const Result watched = home_.Hone({"jobs", "watch", "1"});
  EXPECT_EQ(watched.code, 0) << "as hone tune";
  EXPECT_THAT(watched.errors,
              HasSubstr("of 5 tasks have no confirmed kernel; hone tune with --only-missing"));
  Result best = home_.Hone({"best", kMnist, "--json"});
  EXPECT_EQ(best.code, 0);
  const json partly = OneLineOfJson(best.output);
  const int known = partly["known"];
  ASSERT_GT(known, 0) << best.output;
  ASSERT_LT(known, 5) << best.output;
  EXPECT_TRUE(partly["latency_ns"].is_null()) << "the sum of some tasks is not that of the network";
  EXPECT_GT(partly["known_flops_share"], 0);
  EXPECT_LT(partly["known_flops_share"], 1);
  best = home_.Hone({"best", kMnist});
  EXPECT_EQ(best.code, 0);
  EXPECT_THAT(best.output, ContainsRegex(absl::StrCat("nothing known; the draft's is used.*", known,
                                                      " of the 5 tasks ", known == 1 ? "is" : "are",
                                                      " known, with ")));
  EXPECT_THAT(best.output, HasSubstr(absl::StrCat(5 - known, " of 5 tasks have no confirmed")));
  // A baseline needs confirmed kernels.
  best = home_.Hone({"check", kMnist, "--baseline", files_ / "b.json", "--save"});
  EXPECT_EQ(best.code, 3);
  EXPECT_THAT(best.errors, ContainsRegex(absl::StrCat("known for ", 5 - known,
                                                      " of the 5 tasks.*--only-missing")));
  ExpectItWorks(/*measured=*/0);
}

// The first pass confirms every task within a few seconds, unless the machine is very busy.
TEST_F(NetworkTest, IsUsableAfterATuningOfSeconds) {
  const Result tuned = home_.Hone({"tune", kMobileNet, "--time", "4s"});
  if (tuned.code != 0) {
    EXPECT_THAT(tuned.errors, HasSubstr("job 1 failed: ")) << "nothing confirmed";
  }
  const std::string folder = files_ / "cut";
  const Result exported = home_.Hone({"export", kMobileNet, "-o", folder, "--json"});
  EXPECT_EQ(exported.code, 0) << exported.errors;
  const json counts = OneLineOfJson(exported.output)["schedule_count"];
  EXPECT_EQ(
      counts["confirmed"].get<int>() + counts["measured"].get<int>() + counts["draft"].get<int>(),
      12)
      << counts;
  EXPECT_TRUE(std::filesystem::exists(folder + "/mobilenet_tiny.export.json"));
}

// The simulated latencies are milliseconds, and the network with the real kernels takes much less:
// every task that was timed in the network is confirmed again by a job of its own.
TEST_F(NetworkTest, WhatTheNetworkContradictsIsMeasuredAgain) {
  const Result tuned = home_.Hone({"tune", kMnist, "--trials", "5"});
  EXPECT_EQ(tuned.code, 0) << tuned.errors;
  EXPECT_THAT(tuned.output,
              ContainsRegex("in the network, [1-5] tasks? took less than half of the confirmed "
                            "latency; [1-5] w[a-z]+ measured again"));
  EXPECT_THAT(tuned.output, Not(HasSubstr("for the rest there was no time")));
  EXPECT_THAT(home_.Hone({"jobs", "list"}).output, HasSubstr("revalidation of "));
}

// The baseline in a file decides whether a network has become too slow.
TEST_F(NetworkTest, TheTimeLimitIncludesTheMeasurementOfTheNetwork) {
  const absl::Time began = absl::Now();
  const Result tuned = home_.Hone({"tune", kMnist, "--time", "10s", "--json"});
  EXPECT_LT(absl::Now() - began, absl::Seconds(14));
  const json report = OneLineOfJson(tuned.output);
  EXPECT_LT(report.at("wall_s"), 11.5) << "9 s, of which starting the worker takes a part";
  // On a busy machine, some tasks may have no kernel, or others time their kernels so long that no
  // time is left for the network.
  if (tuned.code == 0 && report.at("latency_ns").is_null()) {
    EXPECT_THAT(tuned.errors, HasSubstr("the whole network was not timed"));
  } else if (tuned.code == 0) {
    EXPECT_GT(report.at("latency_ns"), 0);
  }
}

TEST_F(NetworkTest, IsCheckedAgainstABaseline) {
  const std::string baseline = files_ / "speed.json";
  const std::vector<std::string> check = {"check",  kMnist, "--baseline", baseline,
                                          "--time", "0.1s", "--json"};
  const std::vector<std::string> save = With(check, {"--save"});
  Transcript transcript("network_check", {"hone"}, home_.variables());
  transcript.Run(check);  // there is no file
  transcript.Run(save);   // no kernels are known

  ASSERT_EQ(home_.Hone({"tune", kMnist, "--trials", "5", "--json"}).code, 0);
  // On a busy machine, all runs may be disturbed. Nothing is saved then, unless the user wants it.
  Result result = home_.Hone(save);
  json report = OneLineOfJson(result.output);
  EXPECT_THAT(result.code, AnyOf(0, 5)) << "inconclusive, if it is disturbed";
  EXPECT_EQ(report.value("saved", false), result.code == 0) << result.output;
  EXPECT_EQ(report.value("is_disturbed", false), result.code != 0) << result.output;
  EXPECT_EQ(std::filesystem::exists(baseline), result.code == 0);
  if (result.code != 0) {
    EXPECT_THAT(result.errors, HasSubstr("--even-if-disturbed saves"));
  }
  result = home_.Hone(With(save, {"--even-if-disturbed"}));
  EXPECT_EQ(result.code, 0) << result.errors;
  const json saved = OneLineOfJson(result.output);
  EXPECT_TRUE(saved.value("saved", false)) << result.output;
  // A loaded machine may make this small network a thousand times as slow.
  EXPECT_TRUE(Eventually(
      [&] {
        result = home_.Hone(With(check, {"--max-regression", "1000%"}));
        return result.code == 0;
      },
      absl::Minutes(3)))
      << result.errors;
  report = OneLineOfJson(result.output);
  EXPECT_TRUE(report["passed"].get<bool>());
  EXPECT_TRUE(report["is_disturbed"].is_boolean());
  EXPECT_EQ(report["is_disturbed"], report["disturbance"] != "") << report;
  EXPECT_EQ(report["baseline_disturbance"], saved["disturbance"]);
  EXPECT_EQ(report["steps"].size(), 5u);

  // A baseline that no machine reaches, and one of another machine.
  std::ifstream file(baseline);
  json baselines = json::parse(file);
  baselines["baselines"][0]["latency_ns"] = 1;
  baselines["baselines"][0]["disturbance"] = "it was a busy day";
  std::ofstream(baseline) << baselines;
  EXPECT_THAT(home_.Hone({"check", kMnist, "--baseline", baseline, "--time", "0.1s"}).output,
              HasSubstr("hide a slowdown of the network: it was a busy day"));
  result = home_.Hone(check);
  report = OneLineOfJson(result.output);
  EXPECT_EQ(result.code, report["is_disturbed"].get<bool>() ? 5 : 1);
  EXPECT_THAT(result.errors, HasSubstr("slower than its baseline, and at most 5 % is allowed"));
  EXPECT_FALSE(report["passed"].get<bool>());
  EXPECT_GT(report["regression"].get<double>(), 1);
  baselines["baselines"][0]["target"] = "other";
  std::ofstream(baseline) << baselines;
  result = home_.Hone(check);
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.errors, HasSubstr("has no baseline for mnist-8.onnx"));

  // An operator is checked in the same way. The order of its keys does not matter.
  ASSERT_EQ(home_.Hone({"tune", "relu", "m=64", "n=64", "--trials", "4", "--json"}).code, 0);
  const std::vector<std::string> relu = {"check",  "relu",   "n=64", "m=64",  "--baseline",
                                         baseline, "--time", "0.1s", "--json"};
  result = home_.Hone({"check", "relu", "m=64", "n=64", "--baseline", baseline, "--time", "0.1s",
                       "--save", "--even-if-disturbed", "--json"});
  ASSERT_EQ(result.code, 0) << result.errors;
  EXPECT_EQ(OneLineOfJson(result.output)["operator"], "relu");
  EXPECT_TRUE(Eventually(
      [&] {
        result = home_.Hone(With(relu, {"--max-regression", "1000%"}));
        return result.code == 0;
      },
      absl::Minutes(3)))
      << result.errors;
  EXPECT_GT(OneLineOfJson(result.output)["baseline_latency_ns"], 0);
}

// The elements of a file of floats, near the expected ones.
void ExpectFileNear(const std::string& path, const std::vector<float>& expected) {
  std::ifstream file(path, std::ios::binary);
  std::vector<float> elements(expected.size());
  file.read(reinterpret_cast<char*>(elements.data()),
            static_cast<std::streamsize>(elements.size() * sizeof(float)));
  ASSERT_TRUE(file.good()) << path;
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(elements[i], expected[i], 1e-4) << i;
}

TEST_F(NetworkTest, AMobileNetRunsInAProgram) {
  std::vector<float> image(3 * 32 * 32);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 31) / 15 - 1;
  const std::vector<float> scores = Interpreted(kMobileNet, image);
  const std::string input = files_ / "input", output = files_ / "output";
  std::ofstream(input, std::ios::binary)
      .write(reinterpret_cast<const char*>(image.data()),
             static_cast<std::streamsize>(image.size() * sizeof(float)));

  // Nothing is measured.
  const std::string draft = files_ / "draft";
  Result result = home_.Hone({"export", kMobileNet, "-o", draft, "--name", "mobilenet", "--draft"});
  EXPECT_THAT(result.errors, HasSubstr("building a schedule for task 1 of 12, "));
  ASSERT_EQ(result.code, 0) << result.errors;
  Transcript("network_draft", {"hone"}, home_.variables()).Run({"best", kMobileNet});

  const std::string tuned = files_ / "tuned";
  result = home_.Hone({"tune", kMobileNet, "--trials", "12"});
  ASSERT_EQ(result.code, 0) << result.errors;
  result = home_.Hone({"export", kMobileNet, "-o", tuned, "--name", "mobilenet"});
  ASSERT_EQ(result.code, 0) << result.errors;

  for (const std::string& folder : {draft, tuned}) {
    const std::string program = folder + "/program";
    result = RunProgram({"/usr/bin/cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", folder,
                         "-o", program, "tests/integration/use_mobilenet.c", "-L", folder,
                         "-lmobilenet", absl::StrCat("-Wl,-rpath,", folder)});
    ASSERT_EQ(result.code, 0) << result.errors;
    result = RunProgram({program, folder + "/mobilenet.weights", input, output});
    EXPECT_EQ(result.code, 0) << result.output;
    ExpectFileNear(output, scores);
    std::filesystem::remove(output);
    result = RunProgram({"/usr/bin/python3", "tests/integration/use_mobilenet.py", folder, input,
                         output, kMobileNet});
    EXPECT_EQ(result.code, 0) << result.errors;
    ExpectFileNear(output, scores);
  }
}

// What chooses elements runs on the host. An export has it as a model of its own.
TEST_F(NetworkTest, TheEndOnTheHostIsExportedAsAModel) {
  const std::string model = files_ / "net.onnx", folder = files_ / "net";
  ASSERT_THAT(WriteFileAtomically(
                  model,
                  onnx::BytesOf(onnx::Input("x", 1, "N, 3") + onnx::NodeText("Relu", "x", "r") +
                                onnx::NodeText("NonZero", "r", "places") +
                                onnx::NodeText("Transpose", "places", "y") + onnx::Output("y")),
                  Durability::kProcess),
              IsOk());
  for (const std::string sizes : {"N=2", "N=2,4"}) {
    const Result result = home_.Hone(
        {"export", model, "--shape", sizes, "--draft", "-o", folder, "--overwrite", "--json"});
    ASSERT_EQ(result.code, 0) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("the library's outputs are what they read: r: f32["));
    const json exported = OneLineOfJson(result.output);
    EXPECT_EQ(exported["host"]["nodes"].size(), 2) << exported;
    EXPECT_EQ(exported["host"]["outputs"], json::array({"y"})) << exported;
    const auto tail =
        onnx::ImportOnnxWithTail(folder + "/net.tail.onnx", {.shapes = {{"r", {2, 3}}}});
    ASSERT_THAT(tail, IsOk()) << sizes;
    EXPECT_EQ(tail->tail->nodes().size(), 2);
  }
  // Without a runtime for ONNX, the module says what is missing.
  const Result used = RunProgram(
      {"/usr/bin/python3", "-c",
       "import sys; sys.path.insert(0, sys.argv[1]); import net\n"
       "sys.modules.update({'onnxruntime': None, 'onnx': None, 'onnx.reference': None})\n"
       "x = memoryview(bytearray(36)).cast('B').cast('f', (3, 3))\n"
       "assert len(net.Network().before_tail(x)) == 1\n"
       "try: net.Network()(x)\n"
       "except net.Error as error: print(error)",
       folder});
  EXPECT_THAT(used.output,
              HasSubstr("install onnxruntime or onnx to run them, or call before_tail"))
      << used.errors;
}

TEST_F(NetworkTest, MistakesNameTheOption) {
  Transcript transcript("network_mistakes", {"hone"}, home_.variables());
  for (const Words& words : {
           Words{"run", kMnist},
           {"run", "relu", "m=4", "n=4", "--profile"},
           {"tune", "relu", "m=4", "n=4", "--patience", "3"},
           {"tune", kMnist, "--space", "templates"},
           {"best", kMnist, "--shape", "Input3=1x1x30x30"},
           {"best", "relu", "m=4", "n=4", "--report", "r.html"},
           {"tune", kMnist, "--report", "/nowhere/r.html"},
           {"tune", kMnist, "--between", "bf16", "--tolerance", "1e-3"},
           {"check", kMnist},
           {"check", "relu", "m=4", "n=4", "--baseline", "b.json", "--shape", "x=4"},
           {"check", kMnist, "--baseline", "b.json", "--even-if-disturbed"},
           {"check", kMnist, "--baseline", "b.json", "--max-regression", "3"},
       }) {
    transcript.Run(words);
  }
}

}  // namespace
}  // namespace hone::integration
