// Runs the commands of docs/tutorial/fleet.md literally: a server, a machine that compiles, and a
// board that only measures, over TCP with mutual TLS. Each machine has only its own programs.

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/config_file.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"
#include "tests/integration/transcript.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TeamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    page_ = ReadFile("docs/tutorial/fleet.md").value_or("");
    // Replaces only the host name and the port.
    ASSERT_EQ(absl::StrReplaceAll({{"export HOST=hone.internal PORT=7070",
                                    absl::StrCat("export HOST=localhost PORT=", FreePort())}},
                                  &page_),
              1);
    for (const char* program : {"hone", "hone-server"}) Install("desk", program);
    for (const char* program : {"hone-worker", "hone-builder"}) Install("builder", program);
    for (const char* program : {"hone-worker", "hone-runner"}) Install("board", program);
  }
  void Install(const std::string& machine, const std::string& program) {
    const std::string folder = folder_ / machine;
    ASSERT_THAT(MakeDirectories(folder), IsOk());
    std::filesystem::copy(BinDir() + "/" + program, folder + "/" + program);
  }
  // The block of the page that begins with ```NAME.
  std::string Block(const std::string& name) const {
    const std::string begin = "```" + name + "\n";
    const size_t from = page_.find(begin);
    EXPECT_NE(from, std::string::npos) << name;
    if (from == std::string::npos) return "false";
    return page_.substr(from + begin.size(),
                        page_.find("```", from + begin.size()) - from - begin.size());
  }
  // Runs commands on a machine that has only the programs of its folder.
  std::vector<std::string> Shell(const std::string& machine, const std::string& words,
                                 const std::string& last = "") const {
    return {"/bin/bash", "-euc",
            absl::StrCat("cd ", folder_.path(), "; export HOME=", folder_.path(), " PATH=",
                         folder_ / machine, ":/usr/bin:/bin; unset XDG_DATA_HOME; ", words, last)};
  }
  // Adds `exec` before the last line of the block, the command that keeps running.
  static std::string WithExec(const std::string& block) {
    const size_t last = block.rfind('\n', block.size() - 2);
    const size_t begin = last == std::string::npos ? 0 : last + 1;
    return block.substr(0, begin) + "exec " + block.substr(begin);
  }

  std::string page_;
  TemporaryFolder folder_;
};

TEST_F(TeamTest, CommandsOfThePageWork) {
  Process server(Shell("desk", WithExec(Block("server"))));
  const std::string config = folder_ / "team/hone.toml";
  ASSERT_TRUE(Eventually([&] { return server.Errors().find("serving on") != std::string::npos; }))
      << server.Output() << server.Errors();
  const Result workers = RunProgram(Shell("desk", Block("workers")));
  ASSERT_EQ(workers.code, 0) << workers.errors;
  Process builder(Shell("builder", WithExec(Block("builder"))));
  Process board(Shell("board", WithExec(Block("board"))));
  for (Process* worker : {&builder, &board}) {
    ASSERT_TRUE(Eventually([&] {
      return worker->Errors().find("registered with") != std::string::npos;
    })) << worker->Errors();
  }
  const Result people = RunProgram(Shell("desk", Block("people")), {}, absl::Seconds(300));
  EXPECT_EQ(people.code, 0) << people.output << people.errors << server.Errors();
  for (const char* word : {"builder-1", "pi-07", "TLSv1.3", "\"latency_ns\":"}) {
    EXPECT_THAT(people.output, HasSubstr(word));
  }

  // Secrets appear neither in the logs, nor in the audit log, nor in process arguments.
  std::vector<std::string> secrets;
  for (const char* name : {"admin.token", "client.token", "worker-builder-1.token"}) {
    const std::string token = *ReadFile(folder_ / absl::StrCat("team/", name));
    secrets.push_back(token.substr(0, 64));
  }
  const std::string seen =
      absl::StrCat(server.Errors(), server.Output(), builder.Errors(), board.Errors(),
                   people.output, people.errors, *ReadFile(folder_ / "team/audit.jsonl"),
                   ReadFile(absl::StrCat("/proc/", server.pid(), "/cmdline")).value_or(""),
                   ReadFile(absl::StrCat("/proc/", builder.pid(), "/cmdline")).value_or(""),
                   ReadFile(absl::StrCat("/proc/", board.pid(), "/cmdline")).value_or(""));
  for (const std::string& secret : secrets) EXPECT_THAT(seen, Not(HasSubstr(secret)));
  EXPECT_THAT(seen, Not(HasSubstr("PRIVATE KEY")));
  EXPECT_THAT(*ReadFile(folder_ / "team/audit.jsonl"), HasSubstr("TuningService/CreateJob"));

  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(absl::Seconds(20)), 0) << "the server must exit cleanly";
}

// A board cannot use the name of another board, and a stranger has no access.
TEST_F(TeamTest, ConfigurationErrorsNameTheCause) {
  Process server(Shell("desk", WithExec(Block("server"))));
  ASSERT_TRUE(Eventually([&] { return server.Errors().find("serving on") != std::string::npos; }))
      << server.Errors();
  ASSERT_EQ(RunProgram(Shell("desk", Block("workers"))).code, 0);
  const std::string address = [&] {
    const auto entries = *ParseConfig(*ReadFile(folder_ / "team/client.conf"));
    for (const ConfigEntry& entry : entries) {
      if (entry.key == "server") return entry.values[0];
    }
    return std::string();
  }();
  Transcript transcript("team");
  transcript.Replace(address, "ADDRESS");
  const auto run = [&](const std::string& words) {
    transcript.Add(words, RunProgram(Shell("desk", words), {}, absl::Seconds(60)));
  };
  run("hone --server " + address + " --ca team/ca.pem jobs list");
  EXPECT_NE(RunProgram(Shell("desk", "hone --server " + address + " jobs list")).code, 0);
  run("grep -v '^name' team/worker-builder-1.conf > role.conf; chmod 600 role.conf; "
      "hone --config role.conf jobs list");
  run("hone-server init other --host localhost >/dev/null; "
      "hone --server " +
      address + " --ca other/ca.pem jobs list");
  run("hone-server --config team/hone.toml --store second.db");
  run("hone-server init");
  Process worker(
      Shell("builder", "exec hone-worker --server " + address + " --state-dir plain --build-only"));
  EXPECT_TRUE(Eventually([&] {
    return worker.Errors().find("perhaps it requires encryption") != std::string::npos;
  })) << worker.Errors();
  EXPECT_THAT(worker.Errors(), Not(HasSubstr("googleapis")));
  run("echo 'colour = \"red\"' >> team/hone.toml; hone-server --config team/hone.toml "
      "--check-config");
}

}  // namespace
}  // namespace hone::integration
