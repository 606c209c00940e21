// What the commands print: one name per thing in JSON, lines that fit a narrow terminal, and what
// to do next. The commands talk to a server with one worker, as those of a team do.

#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"

namespace hone::integration {
namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const Words kMatmul = {"matmul", "m=32", "n=48", "k=16"};
const Words kOtherShape = {"matmul", "m=16", "n=48", "k=32"};
constexpr int kColumns = 40;

// Runs a program on a terminal of this width and returns what it shows.
std::string InTerminal(Words argv, int columns, const std::string& data_home) {
  winsize size = {};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  int terminal = -1;
  const std::string program = BinDir() + "/" + argv[0];
  std::vector<char*> arguments;
  for (std::string& word : argv) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, &size);
  if (pid == 0) {
    setenv("XDG_DATA_HOME", data_home.c_str(), 1);
    setenv("TERM", "xterm", 1);
    execv(program.c_str(), arguments.data());
    _exit(127);
  }
  std::string shown;
  char piece[4096];
  for (ssize_t got = 0; (got = read(terminal, piece, sizeof(piece))) > 0;) shown.append(piece, got);
  close(terminal);
  waitpid(pid, nullptr, 0);
  return shown;
}

int ColumnsOf(absl::string_view line) {
  return static_cast<int>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

class CommandOutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    StartServer();
    worker_ = StartWorker("state");
    ASSERT_TRUE(Eventually([&] { return WorkersText().find(" connected") != std::string::npos; }))
        << worker_->Errors();
  }
  void StartServer() {
    const std::string ready = folder_ / "ready";
    server_ = std::make_unique<Process>(Words{"hone-server", "--listen", address_, "--store",
                                              folder_ / "hone.db", "--ready-file", ready});
    ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(ready); })) << server_->Errors();
  }
  std::unique_ptr<Process> StartWorker(const std::string& state) {
    return std::make_unique<Process>(Words{"hone-worker", "--server", address_, "--name", "board",
                                           "--state-dir", folder_ / state});
  }
  Result Hone(Words words) {
    words.insert(words.begin(), {"hone", "--server", address_});
    return RunProgram(words, home_.variables(), absl::Seconds(600));
  }
  nlohmann::json Json(const Words& words) {
    const Result result = Hone(With(words, {"--json"}));
    EXPECT_EQ(result.code, 0) << absl::StrJoin(words, " ") << ": " << result.errors;
    nlohmann::json json = OneLineOfJson(result.output);
    EXPECT_TRUE(json.is_object()) << result.output;
    Check(absl::StrJoin(words, " "), json);
    return json;
  }
  std::string WorkersText() { return Hone({"workers", "list"}).output; }

  // Checks that every key has the same kind of value as in the commands before, and that no key is
  // the name that a thing has only inside the programs.
  void Check(const std::string& command, const nlohmann::json& json) {
    if (json.is_array()) {
      for (const auto& element : json) Check(command, element);
    }
    if (!json.is_object()) return;
    for (const auto& [key, value] : json.items()) {
      EXPECT_NE(key, "id") << command;
      if (key == "workload_digest") {
        EXPECT_NE(value, "") << command;
      }
      if (!value.is_null()) {
        const std::string kind = value.is_number() ? "number" : value.type_name();
        const auto [first, added] = kinds_.try_emplace(key, kind, command);
        EXPECT_EQ(kind, first->second.first)
            << key << " in " << command << ", and in " << first->second.second;
      }
      if (key != "outcomes") Check(command, value);  // its keys are the outcomes
    }
  }

  HoneHome home_;  // waits for the end of the private server
  TemporaryFolder folder_;
  const std::string address_ = "unix:" + folder_ / "socket";
  std::unique_ptr<Process> server_, worker_;
  std::map<std::string, std::pair<std::string, std::string>> kinds_;  // by key: kind, command
};

TEST_F(CommandOutputTest, EveryCommandNamesThingsAlike) {
  const nlohmann::json tuned = Json(With({"tune", "--trials", "2"}, kMatmul));
  const std::string job = tuned["job"];
  const nlohmann::json detached = Json(With({"tune", "--detach", "--trials", "2"}, kOtherShape));
  const std::string second = detached["jobs"][0]["job"];
  const Result watched = Hone({"jobs", "watch", second, "--json"});
  EXPECT_EQ(watched.code, 0) << watched.errors;
  std::string state;
  for (const absl::string_view line : absl::StrSplit(watched.output, '\n', absl::SkipEmpty())) {
    const nlohmann::json one = OneLineOfJson(absl::StrCat(line, "\n"));
    ASSERT_TRUE(one.is_object()) << line;
    Check("jobs watch", one);
    state = one["state"];
  }
  EXPECT_EQ(state, "done") << watched.output;
  Json({"jobs", "show", job});
  Json({"jobs", "list"});
  const nlohmann::json best = Json(With({"best"}, kMatmul));
  Json(With({"compare"}, kMatmul));
  const nlohmann::json explained = Json(With({"explain"}, kMatmul));
  const std::string record = absl::StrCat(explained["record"].get<int64_t>());
  Json({"diff", record, record});
  EXPECT_EQ(Json({"records", "query", "--best", "--job", job})["records"][0]["record"],
            best["best"]["record"]);
  const std::string backup = folder_ / "backup.db";
  EXPECT_GT(Json({"records", "backup", backup})["record_count"], 0);
  Json({"records", "compact", "--dry-run"});
  const std::string lines = folder_ / "records.jsonl";
  Json({"records", "export", "-o", lines});
  Json({"records", "import", lines});
  Json(With({"export", "-o", folder_ / "kernels"}, kMatmul));
  Json(With({"revalidate", "--all", "--top", "1"}, kMatmul));
  Json({"models"});
  EXPECT_EQ(Json({"workers", "list"})["workers"][0]["worker"], "board");
  Json({"workers", "drain", "board"});
  Json({"workers", "resume", "board"});
  Json(With({"pin"}, kMatmul));
  Json({"pin"});
  Json(With({"pin", "--remove"}, kMatmul));
  Json(With({"pin"}, kMatmul));
  EXPECT_TRUE(Json(With({"forget"}, kMatmul))["bests"][0]["pinned"].is_object());
  EXPECT_EQ(Json({"workers", "remove", "board"})["worker"], "board");
  Transcript transcript("command_output_removed", {"hone", "--server", address_});
  transcript.Run({"workers", "drain", "board"});
}

TEST_F(CommandOutputTest, JobsShowHowFarTheyAre) {
  const nlohmann::json detached =
      Json(With({"tune", "--detach", "--trials", "100000", "--time", "1h"}, kOtherShape));
  const std::string job = detached["jobs"][0]["job"];
  ASSERT_TRUE(Eventually([&] { return Json({"jobs", "show", job})["trials"].get<int64_t>() > 0; }));
  EXPECT_THAT(Hone({"jobs", "show", job}).output,
              ContainsRegex(" of 100000 trials \\([0-9.]+ %\\), about .* left"));
  const nlohmann::json shown = Json({"jobs", "show", job});
  EXPECT_GT(shown["progress"], 0);
  EXPECT_LT(shown["progress"], 1);
  EXPECT_GT(shown["estimated_left_s"], 0);

  const Result running =
      Hone({"jobs", "list", "--state", "unfinished", "--matching", "f32[16, 32]"});
  EXPECT_THAT(running.output, ContainsRegex("/100000.* %, .* left"));
  Transcript transcript("command_output_jobs", {"hone", "--server", address_});
  transcript.Run({"jobs", "list", "--state", "done"});
  transcript.Run({"jobs", "list", "--owner", "nobody", "--json"});
  transcript.Run({"jobs", "list", "--state", "over"});
  transcript.Run({"jobs", "show", job, "--report", folder_ / "x.html"});

  Process watch(With({"hone", "--server", address_, "jobs", "watch", "--json"}, {job}),
                home_.variables());
  const auto lines = [&] {
    return std::vector<std::string>(absl::StrSplit(watch.Output(), '\n', absl::SkipEmpty()));
  };
  ASSERT_TRUE(Eventually([&] { return lines().size() >= 3; })) << watch.Errors();
  watch.Signal(SIGINT);
  EXPECT_EQ(watch.Wait(absl::Seconds(20)), 130) << watch.Errors();
  EXPECT_FALSE(watch.EndedBySignal());
  EXPECT_EQ(OneLineOfJson(lines()[0] + "\n")["state"], "running");
  EXPECT_THAT(std::string(OneLineOfJson(lines().back() + "\n")["error"]),
              StartsWith("interrupted"));
  ASSERT_EQ(Hone({"jobs", "cancel", "--now", job}).code, 0);
}

// A configuration file in the home folder says which server is asked, perhaps unknown to the user.
TEST_F(CommandOutputTest, EmptyAnswersNameTheServer) {
  const std::string config = folder_ / "config/hone/client.conf";
  std::filesystem::create_directories(folder_ / "config/hone");
  std::ofstream(config) << "server = \"" << address_ << "\"\n";
  Variables variables = home_.variables();
  variables["XDG_CONFIG_HOME"] = folder_ / "config";
  Transcript transcript("command_output_empty", {"hone"}, variables);
  for (const Words& words : {Words{"best"}, {"compare"}, {"export", "-o", folder_ / "k"}}) {
    transcript.Run(With(words, kMatmul));
    transcript.Run(With(With(words, kMatmul), {"--json"}));
    transcript.Run(With(With(words, kMatmul), {"--local"}));
  }
  for (const Words& words : {Words{"jobs", "list"}, {"records", "query"}, {"pin"}}) {
    transcript.Run(words);
    transcript.Run(With(words, {"--local"}));
  }
  for (const Words& words : {Words{"hone", "models"}, {"hone", "models", "--local"}}) {
    Result models = RunProgram(words, variables);
    models.output.erase(0, models.output.rfind("\n\n") + 2);  // a table that depends on the build
    transcript.Add(absl::StrJoin(words, " ") + " | tail -n 1", models);
  }
  transcript.Run({"workers", "list", "--local"});
  transcript.Run({"jobs", "list", "--server", address_});
  transcript.Run({"jobs", "list", "--local", "--server", address_});
}

TEST_F(CommandOutputTest, TellsWhatFollows) {
  // A resumed job goes on in the server.
  const nlohmann::json detached =
      Json(With({"tune", "--detach", "--trials", "100000", "--priority", "low"}, kOtherShape));
  const std::string job = detached["jobs"][0]["job"];
  EXPECT_THAT(Hone({"jobs", "show", job}).output, HasSubstr(" with low priority; created "));
  ASSERT_EQ(Hone({"jobs", "cancel", "--now", job}).code, 0);
  Transcript transcript("command_output_next", {"hone", "--server", address_});
  const Result resumed = Hone({"jobs", "resume", job});
  EXPECT_EQ(resumed.code, 0) << resumed.errors;
  EXPECT_THAT(resumed.errors, HasSubstr("the job continues; hone jobs watch " + job));
  ASSERT_EQ(Hone({"jobs", "cancel", "--now", job}).code, 0);

  // Forgetting a pinned best removes its pin.
  ASSERT_EQ(Hone(With({"tune", "--trials", "1"}, kMatmul)).code, 0);
  EXPECT_THAT(Hone({"jobs", "list", "--limit", "1"}).output,
              EndsWith("only the newest 1 job is shown; --limit 0 shows all\n"));
  EXPECT_EQ(Json({"jobs", "list", "--limit", "1"})["more"], true);
  const nlohmann::json of_target = Json(
      {"jobs", "list", "--limit", "2", "--target", std::string(detached["jobs"][0]["target"])});
  EXPECT_EQ(of_target["jobs"].size(), 2u);
  EXPECT_EQ(of_target["more"], false);
  transcript.Run({"jobs", "list", "--target", "nvidia/h100", "--json"});
  transcript.Run({"workers", "list", "--target", "nvidia/h100"});
  ASSERT_EQ(Hone(With({"tune", "--trials", "1"}, kOtherShape)).code, 0);
  ASSERT_EQ(Hone(With({"pin"}, kMatmul)).code, 0);

  // An export does not silently replace that of another shape.
  const std::string kernels = folder_ / "kernels";
  ASSERT_EQ(Hone(With({"export", "-o", kernels}, kMatmul)).code, 0);
  EXPECT_EQ(Hone(With({"export", "-o", kernels}, kMatmul)).code, 0) << "the same workload";
  transcript.Run(With({"export", "-o", kernels}, kOtherShape));
  std::ofstream(folder_ / "matmul.hone") << Hone(With({"show", "--workload"}, kOtherShape)).output;
  std::ofstream(folder_ / "list.txt") << folder_ / "matmul.hone" << "\n";
  transcript.Run({"export", "-o", kernels, "--file", folder_ / "list.txt"});
  EXPECT_EQ(Hone(With({"export", "-o", kernels, "--name", "small"}, kOtherShape)).code, 0);
  EXPECT_EQ(Hone(With({"export", "-o", kernels, "--overwrite"}, kOtherShape)).code, 0);

  // Several workloads are exported together or, if one would replace something, not at all.
  const std::vector<std::string> both = With(kMatmul, kOtherShape);
  const nlohmann::json exported = Json(With({"export", "-o", folder_ / "both"}, both));
  ASSERT_EQ(exported["kernels"].size(), 2u) << exported;
  for (const nlohmann::json& kernel : exported["kernels"]) {
    for (const std::string file : kernel["files"]) EXPECT_TRUE(std::filesystem::exists(file));
  }
  transcript.Run(With({"export", "-o", folder_ / "both", "--name", "x"}, both));
  const std::string last = exported["kernels"][1]["files"][0];
  const std::string stem = last.substr(0, last.rfind('.'));
  std::filesystem::create_directory(folder_ / "some");
  const std::string taken_header =
      folder_ / "some/" + std::filesystem::path(stem).filename().string() + ".h";
  std::ofstream(taken_header) << "mine";
  transcript.Run(With({"export", "-o", folder_ / "some"}, both));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "some"), {}), 1);
  transcript.Run(With({"export", "-o", folder_ / "hone.db"}, kMatmul));
  transcript.Run(With({"export", "-o", "/proc/x"}, kMatmul));

  const Result forgotten = Hone(With({"forget"}, kMatmul));
  EXPECT_THAT(forgotten.output, EndsWith("; the pin is removed\n"));
}

TEST_F(CommandOutputTest, WorkersThatAreAwayAreListed) {
  worker_->Signal(SIGTERM);
  worker_->Wait();
  // The server may hear of it a moment later.
  EXPECT_TRUE(Eventually([&] {
    const nlohmann::json worker = Json({"workers", "list"})["workers"].at(0);
    return worker["stopping"].get<bool>() && !worker["connected"].get<bool>();
  })) << "it is away before the server misses its calls";
  server_->Signal(SIGTERM);
  ASSERT_EQ(server_->Wait(), 0);
  StartServer();
  const std::string away = WorkersText();
  EXPECT_THAT(away, ContainsRegex("board.*disconnected.*no worker is connected"));
  EXPECT_THAT(away, Not(HasSubstr("no workers")));
}

TEST_F(CommandOutputTest, TheFirstOfTwoWorkersWithOneNameKeepsWorking) {
  const std::unique_ptr<Process> second = StartWorker("other-state");
  ASSERT_TRUE(Eventually([&] {
    return second->Errors().find("another process on") != std::string::npos;
  })) << second->Errors();
  ASSERT_TRUE(Eventually([&] {
    return WorkersText().find("uses the name board and gets no work") != std::string::npos;
  })) << WorkersText();
  EXPECT_THAT(server_->Errors(), HasSubstr("worker board: another process"));
  // When the first one has ended, the second one takes over.
  worker_->Signal(SIGTERM);
  worker_->Wait();
  EXPECT_TRUE(Eventually([&] {
    return second->Errors().find("the server assigns work again") != std::string::npos;
  })) << second->Errors();
}

TEST_F(CommandOutputTest, LinesFitANarrowTerminal) {
  const auto check = [&](const Words& words) {
    const std::string shown = InTerminal(words, kColumns, home_.variables().at("XDG_DATA_HOME"));
    EXPECT_THAT(shown, Not(testing::IsEmpty())) << absl::StrJoin(words, " ");
    for (absl::string_view line : absl::StrSplit(shown, absl::ByAnyChar("\r\n"))) {
      line = line.substr(0, line.find('\033'));
      if (ColumnsOf(line) <= kColumns) continue;
      // A single word may be longer.
      const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ', absl::SkipEmpty());
      EXPECT_EQ(parts.size(), 1u) << absl::StrJoin(words, " ") << ": " << line;
    }
  };
  for (const Words& words : {Words{}, {"conv2d"}, {"reduce_max"}, {"--onnx"}}) {
    check(With({"hone", "operators"}, words));
  }
  const Words server = {"hone", "--server", address_};
  check(With(With(server, {"tune", "--trials", "2"}), kMatmul));
  const Words wide = {"conv2d", "n=1", "h=14", "w=14", "ci=16", "co=16", "k=3"};
  ASSERT_EQ(Hone(With({"tune", "--trials", "1"}, wide)).code, 0);
  for (const Words& words : {Words{"workers", "list"},
                             With({"best"}, kMatmul),
                             With({"compare"}, wide),
                             With({"explain"}, wide),
                             With({"pin"}, wide),
                             {"pin"},
                             {"jobs", "list"},
                             {"jobs", "show", "1"},
                             {"records", "query"},
                             {"records", "compact", "--dry-run"},
                             {"models"},
                             {"best", "softmax", "m=8", "n=8"},
                             {"jobs", "show", "999"},
                             {"doctor"}}) {
    check(With(server, words));
  }
  check({"hone", "workers", "list"});
  check({"hone", "doctor"});
}

}  // namespace
}  // namespace hone::integration
