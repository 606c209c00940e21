// The whole workflow in private mode, as a user runs it: tune, best, show, export, link, run.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"

namespace hone::integration {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

const Words kMatmul = {"matmul", "m=48", "n=80", "k=64"};

std::vector<std::string> KeysOf(const nlohmann::json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

TEST(FirstLightTest, TuneBestShowExportAndLink) {
  HoneHome home;

  // Nothing is tuned yet, and a look-up measures nothing.
  Transcript transcript("first_light", {"hone"}, home.variables());
  transcript.Run(With({"best"}, kMatmul));
  EXPECT_FALSE(std::filesystem::exists(home.data_dir() + "/run/worker.log"))
      << "a look-up started a worker";

  const Result tuned =
      home.Hone(With({"tune", "--trials", "24", "--seed", "1", "--json"}, kMatmul));
  ASSERT_EQ(tuned.code, 0) << tuned.errors;
  const nlohmann::json run = OneLineOfJson(tuned.output);
  ASSERT_TRUE(run.is_object()) << tuned.output;
  EXPECT_THAT(KeysOf(run),
              UnorderedElementsAre("workload", "target", "trials", "outcomes", "wall_s",
                                   "trials_per_min", "best", "own_best", "default", "disturbed",
                                   "peak_gflops", "job", "state", "note"));
  EXPECT_EQ(run["state"], "done");
  EXPECT_THAT(KeysOf(run["best"]),
              UnorderedElementsAre("latency_ns", "gflops", "trace", "confirmed", "job",
                                   "measured_unix_ms", "pinned", "processes", "record"));
  EXPECT_EQ(run["best"]["job"], run["job"]);
  EXPECT_EQ(run["own_best"]["latency_ns"], run["best"]["latency_ns"]);
  EXPECT_EQ(run["own_best"]["record"], run["best"]["record"]);
  EXPECT_EQ(run["best"]["confirmed"], true);
  EXPECT_THAT(KeysOf(run["default"]), UnorderedElementsAre("latency_ns", "gflops", "confirmed"));
  EXPECT_EQ(run["default"]["confirmed"], true) << "it is the base of the speed-up";
  EXPECT_EQ(run["trials"], 24);
  EXPECT_GT(run["best"]["latency_ns"].get<double>(), 0);
  EXPECT_GT(run["peak_gflops"].get<double>(), 0);
  int64_t outcomes = 0;
  for (const auto& [name, count] : run["outcomes"].items()) outcomes += count.get<int64_t>();
  EXPECT_EQ(outcomes, 24);

  // A later process gets the same best from a newly started server.
  const Result looked_up = home.Hone(With({"best", "--json"}, kMatmul));
  ASSERT_EQ(looked_up.code, 0) << looked_up.errors;
  const nlohmann::json best = OneLineOfJson(looked_up.output);
  ASSERT_TRUE(best.is_object()) << looked_up.output;
  EXPECT_THAT(KeysOf(best), UnorderedElementsAre("workload", "target", "best"));
  EXPECT_EQ(best["workload"], run["workload"]);
  EXPECT_EQ(best["target"], run["target"]);
  EXPECT_EQ(best["best"]["latency_ns"], run["best"]["latency_ns"]);
  EXPECT_EQ(best["best"]["trace"], run["best"]["trace"]);
  const nlohmann::json published =
      OneLineOfJson(home.Hone(With({"records", "query", "--best", "--json"}, kMatmul)).output);
  ASSERT_EQ(published["records"].size(), 1u) << published;
  EXPECT_EQ(published["records"][0]["latency_ns"], run["best"]["latency_ns"])
      << "a record has one latency everywhere";
  EXPECT_GE(published["records"][0]["processes"], 3);

  EXPECT_THAT(home.Hone(With({"best"}, kMatmul)).output, Not(HasSubstr("trace 1")));
  EXPECT_THAT(home.Hone(With({"best", "--trace"}, kMatmul)).output, HasSubstr("trace 1"));

  const Result shown = home.Hone(With({"show"}, kMatmul));
  EXPECT_EQ(shown.code, 0) << shown.errors;
  EXPECT_THAT(shown.output, ContainsRegex("# workload.*# program.*# trace"));

  const Result records = home.Hone(With({"records", "query", "--limit", "0", "--json"}, kMatmul));
  ASSERT_EQ(records.code, 0) << records.errors;
  EXPECT_GE(OneLineOfJson(records.output)["records"].size(), 24u);
  transcript.Run({"records", "query", "--job", "999"});
  const Result jobs = home.Hone({"jobs", "list", "--json"});
  ASSERT_EQ(jobs.code, 0) << jobs.errors;
  const nlohmann::json job = OneLineOfJson(jobs.output)["jobs"][0];
  EXPECT_EQ(job["job"], run["job"]);
  EXPECT_EQ(job["state"], "done");

  // Links the exported object into a C program, whose result is correct.
  TemporaryFolder kernel;
  const Result exported = home.Hone(With({"export", "-o", kernel / "out"}, kMatmul));
  ASSERT_EQ(exported.code, 0) << exported.errors;
  for (const char* suffix : {".so", ".o", ".h", ".hone", ".trace", ".program"}) {
    EXPECT_TRUE(std::filesystem::exists(kernel / "out" + "/matmul" + suffix)) << suffix;
  }
  const Result compiled =
      RunProgram({"/usr/bin/cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", kernel / "out",
                  "-o", kernel / "use", "tests/integration/use_kernel.c",
                  kernel / "out" + "/matmul.o", kernel / "out" + "/hone_threads.c", "-lm"});
  ASSERT_EQ(compiled.code, 0) << compiled.errors;
  const Result used = RunProgram({kernel / "use"});
  EXPECT_EQ(used.code, 0) << used.output;
  EXPECT_EQ(used.output, "right\n");

  // The example program and the Python module work as they are.
  const Result example =
      RunProgram({"/usr/bin/cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", kernel / "out",
                  "-o", kernel / "example", kernel / "out" + "/matmul_example.c",
                  kernel / "out" + "/matmul.o", kernel / "out" + "/hone_threads.c"});
  ASSERT_EQ(example.code, 0) << example.errors;
  EXPECT_THAT(RunProgram({kernel / "example"}).output, HasSubstr(" us with "));
  std::ofstream(kernel / "use.py")
      << "import sys\nimport numpy as np\nsys.path.insert(0, sys.argv[1])\n"
         "from matmul_kernel import TENSORS, Error, Kernel\n"
         "shapes = {tensor.name: tensor.shape for tensor in TENSORS}\n"
         "a = (np.arange(np.prod(shapes['A'])) % 7 - 3).astype('f4').reshape(shapes['A'])\n"
         "b = (np.arange(np.prod(shapes['B'])) % 5 - 2).astype('f4').reshape(shapes['B'])\n"
         "kernel = Kernel(threads=3)\n"
         "expected = a @ b\n"
         "assert (kernel(a, b) == expected).all()\n"
         "assert (kernel(np.asfortranarray(a), b) == expected).all()\n"
         "for wrong in (lambda: Kernel(B=b), lambda: kernel(a), lambda: kernel(a, a),\n"
         "              lambda: kernel(a, b.T), lambda: kernel(a.astype('f8'), b)):\n"
         "    try:\n        wrong()\n    except Error:\n        continue\n"
         "    raise AssertionError('no error')\n"
         "print('right')\n";
  const Result python = RunProgram({"/usr/bin/python3", kernel / "use.py", kernel / "out"});
  EXPECT_EQ(python.output, "right\n") << python.errors;

  // Kernels with different names link into the same program, also with the default name.
  for (const char* name : {"first", "second"}) {
    const Result named = home.Hone(With({"export", "-o", kernel / "out", "--name", name}, kMatmul));
    ASSERT_EQ(named.code, 0) << named.errors;
  }
  std::ofstream(kernel / "two.c")
      << "#include \"first.h\"\n#include \"second.h\"\n#include \"matmul.h\"\n#include <stdio.h>\n"
         "static _Alignas(64) float a[48 * 64], b[64 * 80], c[48 * 80];\n"
         "static _Alignas(64) char packed[1 << 20], space[1 << 20];\n"
         "#define CALL(NAME) do {\\\n"
         "    void* buffers[] = {a, b, c};\\\n"
         "    for (int i = 0; i < 48 * 80; ++i) c[i] = -1;\\\n"
         "    if (NAME##_packed_bytes() > 1 << 20 || NAME##_workspace_bytes(1) > 1 << 20) return "
         "2;\\\n"
         "    if (NAME##_packed_bytes() && NAME##_prepack(buffers, packed)) return 3;\\\n"
         "    if (NAME##_run(buffers, packed, space, 0) != HONE_KERNEL_OK) return 4;\\\n"
         "    for (int i = 0; i < 48 * 80; ++i) if (c[i] != 128) return 5;\\\n"
         "    puts(#NAME);\\\n  } while (0)\n"
         "int main(void) {\n"
         "  for (int i = 0; i < 48 * 64; ++i) a[i] = 1;\n"
         "  for (int i = 0; i < 64 * 80; ++i) b[i] = 2;\n"
         "  CALL(first);\n  CALL(second);\n  CALL(matmul);\n  return 0;\n}\n";
  for (const char* suffix : {".o", ".so"}) {
    const Result linked =
        RunProgram({"/usr/bin/cc", "-std=c11", "-Wall", "-Werror", "-I", kernel / "out", "-o",
                    kernel / "two", kernel / "two.c", kernel / "out" + "/first" + suffix,
                    kernel / "out" + "/second" + suffix, kernel / "out" + "/matmul.o"});
    ASSERT_EQ(linked.code, 0) << suffix << linked.errors;
    EXPECT_EQ(RunProgram({kernel / "two"}).output, "first\nsecond\nmatmul\n") << suffix;
  }
  // All of them list the source of the threads, which no export removes that others need.
  for (const char* name : {"first", "second", "matmul"}) {
    std::ifstream file(kernel / "out/" + name + ".export.json");
    const nlohmann::json note = nlohmann::json::parse(file);
    EXPECT_THAT(note["files"].get<Words>(), Contains("hone_threads.c")) << name;
  }
  std::filesystem::create_directories(kernel / "own");
  std::ofstream(kernel / "own/hone_threads.c") << "mine";
  transcript.Run(With({"export", "-o", kernel / "own"}, kMatmul));
  EXPECT_EQ(std::filesystem::file_size(kernel / "own/hone_threads.c"), 4u);

  // Export writes all files or none.
  std::filesystem::create_directories(kernel / "taken/matmul.trace/x");
  const std::vector<std::string> into_taken = {"export", "-o", kernel / "taken"};
  transcript.Run(With(into_taken, kMatmul));  // the trace is not of an export
  transcript.Run(With(With(into_taken, kMatmul), {"--overwrite"}));
  for (const char* suffix : {".so", ".o", ".h", ".hone", ".program"}) {
    EXPECT_FALSE(std::filesystem::exists(kernel / "taken/matmul" + suffix)) << suffix;
  }

  // The exported trace is a schedule: replaying it gives the exported program.
  const Result replayed = home.Hone({"show", kernel / "out" + "/matmul.trace", "--program"});
  EXPECT_EQ(replayed.code, 0) << replayed.errors;
  std::ifstream program(kernel / "out" + "/matmul.program");
  EXPECT_EQ(replayed.output, std::string(std::istreambuf_iterator<char>(program), {}));
}

TEST(FirstLightTest, AProgramFindsExportedKernelsAtRunTime) {
  HoneHome home;
  TemporaryFolder folder;
  const std::string list = folder / "list.txt", kernels = folder / "kernels";
  std::ofstream(list) << "matmul m=48 n=80 k=64\ndense m=48 n=80 k=64\n";
  std::ofstream(folder / "unknown.txt") << "matmul m=4 n=4 k=4\nmatmul m=48 n=80 k=64\n";
  const Result tuned = home.Hone({"tune", "--file", list, "--trials", "8", "--seed", "1"});
  ASSERT_EQ(tuned.code, 0) << tuned.errors;

  // One kernel is exported by its name, all of them from a list, into the same folder.
  const Result named =
      home.Hone({"export", "dense", "m=48", "n=80", "k=64", "--name", "projection", "-o", kernels});
  ASSERT_EQ(named.code, 0) << named.errors;
  const Result exported = home.Hone({"export", "--file", list, "-o", kernels, "--json"});
  ASSERT_EQ(exported.code, 0) << exported.errors;
  const nlohmann::json json = OneLineOfJson(exported.output);
  EXPECT_EQ(json["unknown"], 0);
  ASSERT_EQ(json["kernels"].size(), 2u) << exported.output;
  EXPECT_EQ(json["kernels"][0]["files"][0], kernels + "/matmul_m_48_n_80_k_64.so");
  EXPECT_TRUE(std::filesystem::exists(kernels + "/dense_m_48_n_80_k_64.h"));
  const Result partly =
      home.Hone({"export", "--file", folder / "unknown.txt", "-o", folder / "partly"});
  EXPECT_EQ(partly.code, 3) << partly.errors;
  EXPECT_THAT(partly.output, HasSubstr("nothing known"));
  EXPECT_TRUE(std::filesystem::exists(folder / "partly/lookup/index"));

  const std::string library = BinDir() + "/../lib";
  const Result compiled =
      RunProgram({"/usr/bin/cc", "-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror",
                  "-pthread", "-I", "client/lookup", "-o", folder / "use",
                  "tests/integration/use_lookup.c", "-L", library, "-lhone_lookup"});
  ASSERT_EQ(compiled.code, 0) << compiled.errors;
  const Result used = RunProgram({folder / "use", kernels}, {{"LD_LIBRARY_PATH", library}});
  EXPECT_EQ(used.code, 0) << used.output << used.errors;
  EXPECT_EQ(used.output, "right\n");
}

TEST(FirstLightTest, EveryWorkloadOfAListHasTheWholeTimeLimit) {
  HoneHome home;
  const Result tuned =
      home.Hone(With({"tune", "--trials", "2", "--time", "600s", "--seed", "1"},
                     {"matmul", "m=16", "n=16", "k=16", "matmul", "m=8", "n=16", "k=16"}));
  ASSERT_EQ(tuned.code, 0) << tuned.errors;
  const nlohmann::json jobs = OneLineOfJson(home.Hone({"jobs", "list", "--json"}).output)["jobs"];
  ASSERT_EQ(jobs.size(), 2u) << jobs;
  EXPECT_EQ(jobs[0]["max_time_ms"], 600'000) << "the newest job is charged with the start again";
  EXPECT_LT(jobs[1]["max_time_ms"], 600'000) << "the start of the worker counts";
}

// Only one of the workloads has a template.
TEST(FirstLightTest, AListIsTunedToItsEndAlthoughAWorkloadFails) {
  HoneHome home;
  TemporaryFolder folder;
  const std::string list = folder / "list.txt";
  std::ofstream(list) << "# of a network\nrelu m=4 n=4\n\nmatmul m=16 n=16 k=16\n";
  const std::vector<std::string> tune = {"tune",      "--file",   list, "--space",
                                         "templates", "--trials", "2"};
  const Result text = home.Hone(tune);
  EXPECT_EQ(text.code, 1) << text.errors;
  EXPECT_THAT(text.errors,
              ContainsRegex("hone: relu m=4 n=4: .*hone: 1 of the 2 workloads failed"));
  EXPECT_THAT(text.output, HasSubstr("matmul m=16 n=16 k=16 on "));
  const Result result = home.Hone(With(tune, {"--json"}));
  EXPECT_EQ(result.code, 1);
  const nlohmann::json report = OneLineOfJson(result.output);
  ASSERT_EQ(report["jobs"].size(), 2u) << result.output;
  EXPECT_THAT(report["jobs"][0]["error"].get<std::string>(), HasSubstr("template"));
  EXPECT_EQ(report["jobs"][1]["state"], "done");
  EXPECT_EQ(report["error"], "1 of the 2 workloads failed");
  const Result partly = home.Hone({"best", "--file", list});
  EXPECT_EQ(partly.code, 3);
  EXPECT_THAT(partly.errors, HasSubstr("is known for 1 of the 2 workloads"));
}

TEST(FirstLightTest, CtrlCSkipsTheRestOfAList) {
  HoneHome home;
  TemporaryFolder folder;
  const std::string list = folder / "list.txt";
  std::ofstream(list) << absl::StrJoin(kMatmul, " ") << "\nrelu m=4 n=4\nsoftmax m=4 n=4\n";
  Process tune({"hone", "tune", "--file", list, "--trials", "100000"}, home.variables());
  ASSERT_TRUE(Eventually([&] {
    const nlohmann::json jobs = OneLineOfJson(home.Hone({"jobs", "list", "--json"}).output);
    return jobs.is_object() && !jobs["jobs"].empty() && jobs["jobs"][0]["trials"] > 4;
  })) << tune.Errors();
  tune.Signal(SIGINT);
  EXPECT_EQ(tune.Wait(), 128 + SIGINT) << tune.Errors();
  EXPECT_THAT(tune.Errors(), ContainsRegex("\nnot started: relu m=4 n=4, softmax m=4 n=4\nhone: "));
}

TEST(FirstLightTest, KilledWorkerIsRestarted) {
  HoneHome home;
  Process tune(With({"hone", "tune", "--trials", "40", "--json"}, kMatmul), home.variables());
  pid_t worker = 0;
  ASSERT_TRUE(Eventually([&] { return (worker = home.ChildOfKeeper("hone-worker")) > 0; }))
      << tune.Errors();
  // Waits until the job has measured something.
  ASSERT_TRUE(Eventually([&] {
    const nlohmann::json jobs = OneLineOfJson(home.Hone({"jobs", "list", "--json"}).output);
    return jobs.is_object() && !jobs["jobs"].empty() && jobs["jobs"][0]["trials"] > 4;
  })) << tune.Errors();
  kill(worker, SIGKILL);
  pid_t next = 0;
  EXPECT_TRUE(
      Eventually([&] { return (next = home.ChildOfKeeper("hone-worker")) > 0 && next != worker; }));
  EXPECT_EQ(tune.Wait(absl::Seconds(240)), 0) << tune.Errors();
  const nlohmann::json run = OneLineOfJson(tune.Output());
  ASSERT_TRUE(run.is_object()) << tune.Output();
  EXPECT_EQ(run["trials"], 40);
}

TEST(FirstLightTest, CtrlCKeepsResultsAndConfirmsTheBest) {
  HoneHome home;
  std::vector<std::string> words = With({"hone", "tune", "--trials", "100000", "--json"}, kMatmul);
  words.insert(words.end(), {"relu", "m=4", "n=4"});
  Process tune(words, home.variables());
  ASSERT_TRUE(Eventually(
      [&] {
        const nlohmann::json jobs = OneLineOfJson(home.Hone({"jobs", "list", "--json"}).output);
        return jobs.is_object() && !jobs["jobs"].empty() && jobs["jobs"][0]["trials"] > 8;
      },
      absl::Seconds(60)))
      << tune.Errors();
  tune.Signal(SIGINT);
  EXPECT_EQ(tune.Wait(absl::Seconds(120)), 128 + SIGINT) << tune.Errors();
  const nlohmann::json output = OneLineOfJson(tune.Output());
  ASSERT_TRUE(output.is_object() && output.contains("jobs")) << tune.Output();
  ASSERT_EQ(output["jobs"].size(), 2u) << tune.Output();
  EXPECT_EQ(output["jobs"][1]["state"], "not started");
  const nlohmann::json& run = output["jobs"][0];
  EXPECT_LT(run["trials"], 100000);
  EXPECT_EQ(run["state"], "cancelled");
  const Result best = home.Hone(With({"best", "--json"}, kMatmul));
  EXPECT_EQ(best.code, 0) << "the finalists were not confirmed: " << best.errors;
}

TEST(FirstLightTest, WatchingCommandFailsIfTheJobIsCancelled) {
  HoneHome home;
  Process tune(With({"hone", "tune", "--trials", "100000", "--json"}, kMatmul), home.variables());
  ASSERT_TRUE(Eventually([&] {
    const nlohmann::json jobs = OneLineOfJson(home.Hone({"jobs", "list", "--json"}).output);
    return jobs.is_object() && !jobs["jobs"].empty() && jobs["jobs"][0]["trials"] > 4;
  })) << tune.Errors();
  Transcript transcript("first_light_tuning", {"hone"}, home.variables());
  transcript.Run(With({"best"}, kMatmul));  // a best is published at the end
  Process watch({"hone", "jobs", "watch", "1"}, home.variables());
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(watch.Errors(), "tuning"); }));
  watch.Signal(SIGINT);
  EXPECT_EQ(watch.Wait(absl::Seconds(20)), 128 + SIGINT);
  EXPECT_THAT(watch.Errors(), HasSubstr("job 1 continues"));

  const Result cancelled = home.Hone({"jobs", "cancel", "1", "--json"});
  EXPECT_EQ(cancelled.code, 0) << cancelled.errors;
  EXPECT_EQ(OneLineOfJson(cancelled.output)["state"], "cancelled") << "the command did not wait";
  EXPECT_EQ(tune.Wait(absl::Seconds(60)), 1) << tune.Errors();
  const nlohmann::json run = OneLineOfJson(tune.Output());
  EXPECT_EQ(run["state"], "cancelled") << tune.Output();
  EXPECT_THAT(tune.Errors(), HasSubstr("job 1 was cancelled after"));
}

TEST(FirstLightTest, UnconfirmedBestIsMarkedUntilTheJobResumes) {
  for (const bool json : {true, false}) {
    HoneHome home;
    std::vector<std::string> words = With({"hone", "tune", "--trials", "100000"}, kMatmul);
    if (json) words.push_back("--json");
    Process tune(words, home.variables());
    ASSERT_TRUE(Eventually([&] {
      const nlohmann::json jobs = OneLineOfJson(home.Hone({"jobs", "list", "--json"}).output);
      return jobs.is_object() && !jobs["jobs"].empty() && jobs["jobs"][0]["trials"] > 4;
    })) << tune.Errors();
    tune.Signal(SIGINT);
    ASSERT_TRUE(Eventually([&] { return absl::StrContains(tune.Errors(), "Ctrl-C again"); }));
    tune.Signal(SIGINT);
    EXPECT_EQ(tune.Wait(absl::Seconds(120)), 128 + SIGINT) << tune.Errors();
    Transcript("first_light_unconfirmed", {"hone"}, home.variables()).Run(With({"best"}, kMatmul));
    const std::string list = home.data_dir() + "/list.txt";
    std::ofstream(list) << absl::StrJoin(kMatmul, " ") << "\nmatmul m=4 n=4 k=4\n";
    const nlohmann::json bests =
        OneLineOfJson(home.Hone({"best", "--file", list, "--json"}).output)["bests"];
    ASSERT_EQ(bests.size(), 2u) << bests;
    EXPECT_EQ(bests[0]["unconfirmed_job"], "1") << bests;
    EXPECT_TRUE(bests[1]["unconfirmed_job"].is_null()) << bests;
    EXPECT_THAT(home.Hone({"best", "--file", list}).output,
                ContainsRegex("job 1, not confirmed.*nothing known"));
    const std::vector<std::string> exported = {
        "export", "--file", list, "-o", home.data_dir() + "/kernels", "--json"};
    const nlohmann::json kernels = OneLineOfJson(home.Hone(exported).output)["kernels"];
    ASSERT_EQ(kernels.size(), 2u) << kernels;
    EXPECT_EQ(kernels[0]["unconfirmed_job"], "1") << kernels;
    if (json) {
      EXPECT_EQ(OneLineOfJson(tune.Output())["best"]["confirmed"], false) << tune.Output();
      EXPECT_EQ(OneLineOfJson(tune.Output())["state"], "cancelled") << tune.Output();
      continue;
    }
    EXPECT_THAT(tune.Output(), ContainsRegex("best, not confirmed.*~"));
    EXPECT_THAT(tune.Errors(), EndsWith("; hone jobs resume 1 continues it\n"));
    Process resumed({"hone", "jobs", "resume", "1"}, home.variables());
    ASSERT_TRUE(Eventually([&] { return absl::StrContains(resumed.Errors(), "100000 trials"); }));
    resumed.Signal(SIGINT);
    EXPECT_EQ(resumed.Wait(absl::Seconds(120)), 128 + SIGINT) << resumed.Errors();
    EXPECT_THAT(resumed.Output(), ContainsRegex("share of peak.*\npeak: "))
        << "the report is that of hone tune";
    EXPECT_EQ(home.Hone(With({"best"}, kMatmul)).code, 0);
  }
}

TEST(FirstLightTest, KillingTheClientEndsEverything) {
  HoneHome home;
  Process tune(With({"hone", "tune", "--trials", "100000"}, kMatmul), home.variables());
  pid_t worker = 0;
  pid_t server = 0;
  ASSERT_TRUE(Eventually([&] {
    worker = home.ChildOfKeeper("hone-worker");
    server = home.ChildOfKeeper("hone-server");
    return worker > 0 && server > 0;
  })) << tune.Errors();
  tune.Signal(SIGKILL);
  EXPECT_TRUE(Eventually(
      [&] { return home.Keeper() == 0 && kill(worker, 0) != 0 && kill(server, 0) != 0; }));
}

TEST(FirstLightTest, UnknownStrategyListsTheKnownOnes) {
  HoneHome home;
  Transcript transcript("first_light_strategies", {"hone"}, home.variables());
  transcript.Run(With({"tune", "--trials", "4", "--strategy", "magic"}, kMatmul));
}

TEST(FirstLightTest, DoctorSucceeds) {
  HoneHome home;
  const Result result = home.Hone({"doctor", "--json"});
  EXPECT_EQ(result.code, 0) << result.output;
  const nlohmann::json report = OneLineOfJson(result.output);
  ASSERT_TRUE(report.is_object()) << result.output;
  EXPECT_EQ(report["ok"], true);
  std::set<std::string> names;
  for (const auto& check : report["checks"]) {
    names.insert(check["name"].get<std::string>());
    if (check["name"] == "LLVM") {
      EXPECT_THAT(check["finding"].get<std::string>(), HasSubstr("LLVM 19"));
    }
    if (check["state"] != "ok") {
      EXPECT_NE(check["advice"], "") << check;
    }
  }
  for (const char* name : {"instruction set", "cores", "governor", "LLVM", "store", "port",
                           "programs", "data folder"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

}  // namespace
}  // namespace hone::integration
