// Mistakes on the command line and the answers of `hone`: message and exit code. No server is
// started.

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden.h"
#include "tests/integration/process.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

using integration::Result;

class CommandLineTest : public ::testing::Test {
 protected:
  Result Hone(std::vector<std::string> words, const std::string& input = "") {
    words.insert(words.begin(), "hone");
    return integration::RunProgram(words, {{"XDG_DATA_HOME", data_.path()}}, absl::Seconds(60),
                                   input);
  }
  TemporaryFolder data_;
  TemporaryFolder files_;
};

TEST_F(CommandLineTest, EveryCommandHasHelpWithExamples) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{},
                                                  {"tune"},
                                                  {"best"},
                                                  {"export"},
                                                  {"show"},
                                                  {"forget"},
                                                  {"pin"},
                                                  {"records", "query"},
                                                  {"dataset", "build"},
                                                  {"dataset", "split"},
                                                  {"dataset", "stat"},
                                                  {"workers", "list"},
                                                  {"workers", "drain"},
                                                  {"workers", "remove"},
                                                  {"jobs", "list"},
                                                  {"jobs", "show"},
                                                  {"jobs", "watch"},
                                                  {"jobs", "cancel"},
                                                  {"jobs", "resume"},
                                                  {"worker-config"},
                                                  {"models"},
                                                  {"models", "list"},
                                                  {"models", "train"},
                                                  {"models", "evaluate"},
                                                  {"models", "show"},
                                                  {"models", "export"},
                                                  {"models", "import"},
                                                  {"operators"},
                                                  {"primitives"},
                                                  {"features"},
                                                  {"schedule"},
                                                  {"run"},
                                                  {"doctor"}}) {
    std::vector<std::string> words = command;
    words.push_back("--help");
    const Result result = Hone(words);
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.output,
                AllOf(HasSubstr("Examples:"), HasSubstr("--json"), HasSubstr("--server")));
  }
}

TEST_F(CommandLineTest, HelpOfCancellingSaysHowToSkipTheConfirmation) {
  // The words may be on different lines.
  EXPECT_THAT(Hone({"jobs", "cancel", "--help"}).output,
              ContainsRegex("--now[[:space:]]+skips[[:space:]]+this"));
}

// The words may be on different lines.
TEST_F(CommandLineTest, HelpNamesTheExceptionsOfItsRules) {
  EXPECT_THAT(Hone({"help", "connection"}).output,
              ContainsRegex("encrypted,[[:space:]]+unless[[:space:]]+--insecure"));
  EXPECT_THAT(
      Hone({"tune", "--help"}).output,
      AllOf(ContainsRegex("a[[:space:]]+job[[:space:]]+gets[[:space:]]+at[[:space:]]+least"),
            ContainsRegex("earlier[[:space:]]+job,[[:space:]]+or[[:space:]]+a[[:space:]]+"
                          "pinned[[:space:]]+one,[[:space:]]+counts"),
            ContainsRegex("relative[[:space:]]+to[[:space:]]+the[[:space:]]+current"),
            ContainsRegex("number[[:space:]]+alone[[:space:]]+means[[:space:]]+seconds")));
}

TEST_F(CommandLineTest, HelpSaysWhichCommandsTakeANetwork) {
  for (const char* command : {"tune", "best", "export", "run", "show"}) {
    EXPECT_THAT(Hone({command, "--help"}).output, HasSubstr("FILE.onnx")) << command;
  }
  for (const char* command : {"compare", "explain", "revalidate", "forget", "pin"}) {
    EXPECT_THAT(Hone({command, "--help"}).output, Not(HasSubstr("FILE.onnx"))) << command;
  }
}

TEST_F(CommandLineTest, HelpCommandMatchesHelpFlag) {
  EXPECT_EQ(Hone({"help"}).output, Hone({"--help"}).output);
  EXPECT_EQ(Hone({"help", "tune"}).output, Hone({"tune", "--help"}).output);
  EXPECT_EQ(Hone({"help", "records", "export"}).output,
            Hone({"records", "export", "--help"}).output);
  const Result connection = Hone({"help", "connection"});
  EXPECT_EQ(connection.code, 0);
  for (const char* text : {"--server", "--config", "--ca", "--token-file", "--certificate", "--key",
                           "--insecure", "HONE_SERVER", "client.conf"}) {
    EXPECT_THAT(connection.output, HasSubstr(text));
  }
}

TEST_F(CommandLineTest, HelpGroupsConnectionOptions) {
  for (const char* command : {"tune", "best", "doctor"}) {
    const std::string help = Hone({command, "--help"}).output;
    const size_t group = help.find("Connection options (hone help connection");
    ASSERT_NE(group, std::string::npos) << command;
    for (const char* option :
         {"--server", "--config", "--ca", "--token-file", "--certificate", "--key", "--insecure"}) {
      EXPECT_GT(help.find(absl::StrCat("  ", option, " ")), group) << option;
    }
    EXPECT_LT(help.find("--json"), group);
  }
}

TEST_F(CommandLineTest, EveryProgramHasAVersionAndNamesItselfInUsageErrors) {
  for (const char* program :
       {"hone", "hone-server", "hone-worker", "hone-builder", "hone-runner", "hone-lab"}) {
    const Result version = integration::RunProgram({program, "-V"});
    EXPECT_EQ(version.code, 0) << program;
    EXPECT_EQ(version.output.find(absl::StrCat(program, " ")), 0u) << version.output;
    EXPECT_EQ(version.output, integration::RunProgram({program, "--version"}).output);
    const Result wrong = integration::RunProgram({program, "--nonsense"});
    EXPECT_EQ(wrong.code, 2) << program;
    EXPECT_EQ(wrong.errors.find(absl::StrCat(program, ": ")), 0u) << wrong.errors;
  }
  const Result config = integration::RunProgram({"hone-server", "--config", "/nowhere/x"});
  EXPECT_EQ(config.errors.find("hone-server: "), 0u) << config.errors;
}

TEST_F(CommandLineTest, WorkerConfigPrintsOneJsonObject) {
  const std::string team = files_ / "team";
  const Result made =
      integration::RunProgram({"hone-server", "init", team, "--host", "hone.internal"});
  ASSERT_EQ(made.code, 0) << made.errors;
  const Result result = Hone({"worker-config", "--name", "pi-07", "--authority", team, "--json"});
  ASSERT_EQ(result.code, 0) << result.errors;
  const auto json = nlohmann::json::parse(result.output, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.output;
  EXPECT_EQ(json["name"], "pi-07");
  EXPECT_THAT(json["server"].get<std::string>(), HasSubstr("hone.internal"));
  for (const char* key : {"ca", "certificate", "key"}) {
    EXPECT_THAT(json[key].get<std::string>(), HasSubstr("-----BEGIN ")) << key;
  }
}

TEST_F(CommandLineTest, WorkerConfigFileIsReadableByOwnerOnly) {
  GoldenOfTest golden;
  golden.Name(files_.path(), "DIR");
  const std::string team = files_ / "team", path = files_ / "pi-07.conf";
  ASSERT_EQ(integration::RunProgram({"hone-server", "init", team, "--host", "hone.internal"}).code,
            0);
  std::ofstream(path) << "of an earlier run";
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  const std::vector<std::string> words = {
      "worker-config", "--name", "pi-07", "--authority", team, "-o", path};
  const Result refused = Hone(words);
  EXPECT_EQ(refused.code, 1) << refused.output;
  golden.Add(refused.errors);
  std::string kept;
  std::getline(std::ifstream(path), kept);
  EXPECT_EQ(kept, "of an earlier run");
  const Result result = Hone(integration::With(words, {"--overwrite"}));
  ASSERT_EQ(result.code, 0) << result.errors;
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  golden.Add(result.output);
  const Result printed = Hone({"worker-config", "--name", "pi-07", "--authority", team});
  EXPECT_THAT(printed.output, HasSubstr("PRIVATE KEY"));
  EXPECT_EQ(Hone({"worker-config", "--name", "a", "--authority", team, "-o", "/nowhere/x"}).code,
            1);
}

TEST_F(CommandLineTest, CommandGroupsHaveTheirOwnExamples) {
  for (const std::string group : {"records", "workers", "jobs", "models"}) {
    const Result result = Hone({group, "--help"});
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.output,
                AllOf(HasSubstr("Examples:\n  hone " + group), Not(HasSubstr("hone tune"))));
  }
}

TEST_F(CommandLineTest, OutputErrorsAreFailures) {
  const std::string workload = files_ / "scale.hone";
  std::ofstream(workload) << "workload scale\ninput A: f32[4]\n"
                             "output B[i: 4] = A[i] * 2.0\n";
  for (const std::string& words :
       {std::string("--help"), std::string("--version"), std::string("operators"),
        std::string("operators --json"), absl::StrCat("show --workload ", workload)}) {
    const auto with = [&](absl::string_view redirection) {
      return integration::RunProgram(
          {"/bin/sh", "-c", absl::StrCat(integration::BinDir(), "/hone ", words, " ", redirection)},
          {{"XDG_DATA_HOME", data_.path()}});
    };
    const Result full = with(">/dev/full");
    EXPECT_EQ(full.code, 1) << words;
    EXPECT_THAT(full.errors, HasSubstr("standard output could not be written")) << words;
    EXPECT_EQ(with(">&-").code, 1) << words;
    EXPECT_EQ(with("<&- 2>&-").code, 0) << words;
  }
}

TEST_F(CommandLineTest, AnUnknownHostIsNotAQuestionOfEncryption) {
  const Result result = Hone({"--server", "nohost.invalid:7070", "workers", "list"});
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.errors, AllOf(HasSubstr("unknown host nohost.invalid: "),
                                   HasSubstr("is the name right?"), Not(HasSubstr("TLS"))));
}

TEST_F(CommandLineTest, HangUpOnPlaintextSuggestsEncryption) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  std::thread server([listener] {
    char greeting[4096];
    for (int peer = 0; (peer = accept(listener, nullptr, nullptr)) >= 0; close(peer)) {
      recv(peer, greeting, sizeof(greeting), 0);
    }
  });
  const Result result =
      Hone({"--server", absl::StrCat("127.0.0.1:", ntohs(address.sin_port)), "workers", "list"});
  shutdown(listener, SHUT_RDWR);
  server.join();
  close(listener);
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.errors, AllOf(HasSubstr("encryption"), HasSubstr("--ca")));
}

// Other servers that answer: a web server with HTTP/1, and one with HTTP/2.
TEST_F(CommandLineTest, ReportsWhenPeerIsNotAHoneServer) {
  using std::string_literals::operator""s;
  const std::string plain = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
  const std::string settings = "\0\0\0\4\0\0\0\0\0"s;
  const std::string status_404 = "\0\0\1\1\5\0\0\0\1\x8d"s;
  for (const bool http2 : {false, true}) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    ASSERT_EQ(listen(listener, 8), 0);
    std::thread server([&] {
      for (int peer = 0; (peer = accept(listener, nullptr, nullptr)) >= 0; close(peer)) {
        const std::string& first = http2 ? settings : plain;
        send(peer, first.data(), first.size(), MSG_NOSIGNAL);
        std::string heard;
        char piece[4096];
        for (ssize_t got = 0; (got = recv(peer, piece, sizeof(piece), 0)) > 0;) {
          heard.append(piece, got);
          const size_t call = heard.find("TuningService");
          if (!http2 || call == std::string::npos) continue;
          send(peer, status_404.data(), status_404.size(), MSG_NOSIGNAL);
          heard.erase(call, 1);
        }
      }
    });
    const Result result =
        Hone({"--server", absl::StrCat("127.0.0.1:", ntohs(address.sin_port)), "workers", "list"});
    shutdown(listener, SHUT_RDWR);
    server.join();
    close(listener);
    EXPECT_EQ(result.code, 4) << result.errors;
    EXPECT_THAT(result.errors, AllOf(HasSubstr("the program that listens at 127.0.0.1:"),
                                     HasSubstr("is not a hone-server")));
  }
}

TEST_F(CommandLineTest, PlaintextToATlsServerSuggestsEncryption) {
  const std::string team = files_ / "team";
  const int port = integration::FreePort();
  ASSERT_EQ(integration::RunProgram({"hone-server", "init", team, "--host", "localhost", "--port",
                                     absl::StrCat(port), "--store", data_ / "hone.db"})
                .code,
            0);
  const integration::Process server({"hone-server", "--config", team + "/hone.toml"});
  const std::string address = absl::StrCat("localhost:", port);
  Result result;
  ASSERT_TRUE(integration::Eventually([&] {
    result = Hone({"--config", team + "/client.conf", "workers", "list"});
    return result.code == 0;
  })) << result.errors;
  result = Hone({"--server", address, "workers", "list"});
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.errors,
              AllOf(HasSubstr(address + ": "), HasSubstr("encryption"), HasSubstr("client.conf")));
  result = Hone({"doctor", "--server", address});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.output, AllOf(ContainsRegex("problem +server +[^>]*encryption"),
                                   Not(HasSubstr("is the port open"))));
  ASSERT_EQ(integration::RunProgram({"hone-server", "init", files_ / "other"}).code, 0);
  result = Hone({"--server", address, "--ca", files_ / "other/ca.pem", "workers", "list"});
  EXPECT_EQ(result.code, 4) << "no connection that can be trusted is no connection";
  EXPECT_THAT(result.errors, HasSubstr("an authority that is not trusted here"));
  result = Hone({"--config", team + "/client.conf", "workers", "drain", "board"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.errors,
            "hone: client has the role client, and this needs the role admin: use the "
            "configuration of such a caller\n");
}

TEST_F(CommandLineTest, FailuresPrintOneJsonObject) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"best", "matmul", "m=4", "n=4", "k=4"},
        {"best", "matmull"},
        {"tune", "/nowhere/mine.hone"},
        {"tune", "--trails", "3"},
        {"tune", "--time="},
        {"jobs", "list", "--server", "localhost:1"},
        {"jobs", "watch", "999"},
        {"records", "query", "--csv"},
        {"workers", "list", "--server", "localhost:1", "--ca", "/nowhere/ca.pem"},
        {"nonsense"},
        {}}) {
    std::vector<std::string> with_json = words;
    with_json.push_back("--json");
    const Result result = Hone(with_json);
    EXPECT_NE(result.code, 0);
    const auto json = nlohmann::json::parse(result.output, nullptr, false);
    ASSERT_TRUE(json.is_object()) << result.output << result.errors;
    const std::string message = json["error"];
    EXPECT_EQ(result.errors, absl::StrCat("hone: ", message, "\n"));
  }
}

TEST_F(CommandLineTest, ListsOfWorkloadsAreLookedUpOnOneConnection) {
  std::string text;
  for (int m = 1; m <= 3000; ++m) absl::StrAppend(&text, "matmul m=", m, " n=4 k=4\n");
  const Result result = Hone({"best", "--file", "-", "--json"}, text);
  EXPECT_EQ(result.code, 3) << result.errors;
  const auto json = nlohmann::json::parse(result.output, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.output;
  ASSERT_EQ(json["bests"].size(), 3000u);
  EXPECT_EQ(json["unknown"], 3000);
  EXPECT_THAT(json["bests"][2999]["workload"].get<std::string>(), HasSubstr("f32[3000, 4]"));
  EXPECT_TRUE(json["bests"][0]["best"].is_null());
}

TEST_F(CommandLineTest, PinsAreListedWithoutAnOperator) {
  const Result none = Hone({"pin"});
  EXPECT_EQ(none.code, 0) << none.errors;
  EXPECT_EQ(none.output, "no best is pinned\n");
  EXPECT_EQ(Hone({"pin", "--json"}).output, "{\"pins\":[]}\n");
}

TEST_F(CommandLineTest, ListsAreOfATarget) {
  for (const char* const list : {"jobs", "workers"})
    EXPECT_EQ(Hone({list, "list", "--target", "arm-neon"}).code, 0);
  EXPECT_THAT(Hone({"operators", "--help"}).output, Not(HasSubstr("--target")));
}

TEST_F(CommandLineTest, AnotherMachineIsTunedThroughAServer) {
  for (const char* const command : {"best", "compare", "pin"}) {
    const Result unknown = Hone({command, "matmul", "m=4", "n=4", "k=4", "--target", "arm-neon"});
    EXPECT_EQ(unknown.code, 3) << unknown.errors;
    EXPECT_THAT(unknown.errors,
                HasSubstr("hone tune matmul m=4 n=4 k=4 --target arm-neon --server ADDR (a server "
                          "with a worker of that target)"));
  }
}

TEST_F(CommandLineTest, DoctorTellsTheTargetFromTheStore) {
  const Result doctor = Hone({"doctor", "--target", "foo"});
  EXPECT_EQ(doctor.code, 1) << doctor.errors;
  EXPECT_THAT(doctor.output, ContainsRegex("problem +--target +unknown target foo"));
  EXPECT_THAT(doctor.output, ContainsRegex("ok +store"));
}

TEST_F(CommandLineTest, ReportsUncreatableDataFolder) {
  const Result result = integration::RunProgram({"hone", "best", "matmul", "m=4", "n=4", "k=4"},
                                                {{"XDG_DATA_HOME", "/proc/nowhere"}});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.errors, AllOf(HasSubstr("/proc/nowhere"), HasSubstr("XDG_DATA_HOME")));
}

}  // namespace
}  // namespace hone::cli
