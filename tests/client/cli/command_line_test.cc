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
#include "tests/integration/process.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using integration::Result;

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

class CommandLineTest : public ::testing::Test {
 protected:
  Result Hone(std::vector<std::string> words, const std::string& input = "") {
    words.insert(words.begin(), "hone");
    return integration::RunProgram(words, {{"XDG_DATA_HOME", data_.path()}}, absl::Seconds(60),
                                   input);
  }
  // Writes a file in the test's folder and returns its path.
  std::string File(const std::string& name, const std::string& text) {
    std::ofstream(files_ / name) << text;
    return files_ / name;
  }
  void ExpectUsageError(const std::vector<std::string>& words,
                        const ::testing::Matcher<std::string>& message) {
    const Result result = Hone(words);
    EXPECT_EQ(result.code, 2) << result.errors;
    EXPECT_THAT(result.errors, message);
    EXPECT_THAT(result.output, IsEmpty());
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
                                                  {"operators"},
                                                  {"primitives"},
                                                  {"features"},
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
  for (const char* command : {"compare", "revalidate", "forget", "pin"}) {
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
  ExpectUsageError({"help", "conection"},
                   HasSubstr("did you mean 'connection'? The commands and topics are tune, "));
  ExpectUsageError({"help", "records", "exprot"}, HasSubstr("did you mean 'export'?"));
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

TEST_F(CommandLineTest, ConfigFileErrorsNameTheLine) {
  const auto with = [&](const std::string& text) {
    const std::string path = File("client.conf", text);
    chmod(path.c_str(), 0600);
    return Hone({"jobs", "list", "--config", path});
  };
  EXPECT_THAT(
      with("server = \"localhost:1\"\ncolour = 1\n").errors,
      AllOf(HasSubstr("client.conf: line 2: there is no key 'colour'"), HasSubstr("token-file")));
  EXPECT_THAT(with("server = \"localhost:1\"\nname = \"pi-07\"\n").errors,
              AllOf(HasSubstr("configuration of a hone-worker"), HasSubstr("client.conf")));
  EXPECT_THAT(with("server = localhost:1\n").errors, HasSubstr("client.conf: line 1: the text"));
  EXPECT_THAT(with("server = \"localhost:1\"\nca = \"/nowhere\"\n").errors,
              HasSubstr("ca: open /nowhere"));
  const std::string open = File("open.conf", "server = \"localhost:1\"\ntoken = \"tok3n\"\n");
  chmod(open.c_str(), 0644);
  const Result refused = Hone({"jobs", "list", "--config", open});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("chmod 600"));
  EXPECT_THAT(refused.errors, Not(HasSubstr("tok3n")));
}

TEST_F(CommandLineTest, AnIgnoredConfigFileIsNamedIfTheConnectionFails) {
  const std::string path = File("client.conf", "server = \"localhost:1\"\n");
  const Result refused = Hone({"jobs", "list", "--server", "127.0.0.1:1", "--config", path});
  EXPECT_EQ(refused.code, 4) << refused.errors;
  const std::string why = "client.conf was ignored, because it names the server localhost:1, not ";
  EXPECT_THAT(refused.errors, HasSubstr(why + "127.0.0.1:1"));
  const Result open = Hone({"jobs", "list", "--server", "192.0.2.1:1", "--config", path, "--json"});
  EXPECT_EQ(open.code, 2) << open.errors;
  EXPECT_THAT(open.output, HasSubstr(why + "192.0.2.1:1"));
  const Result used = Hone({"jobs", "list", "--server", "localhost:1", "--config", path});
  EXPECT_THAT(used.errors, Not(HasSubstr("ignored")));
}

TEST_F(CommandLineTest, UnknownWordsGetASuggestion) {
  ExpectUsageError({"tuen", "matmul"},
                   AllOf(HasSubstr("unknown command 'tuen'"),
                         HasSubstr("did you mean 'tune'? The commands are tune, ")));
  ExpectUsageError({"records", "qery"}, HasSubstr("did you mean 'query'?"));
  ExpectUsageError({"--server", "localhost:1", "bset", "matmul"},
                   HasSubstr("did you mean 'best'?"));
  ExpectUsageError({"tune", "--trails", "3", "matmul"}, HasSubstr("did you mean '--trials'?"));
  ExpectUsageError({"best", "matmull", "m=1"},
                   AllOf(HasSubstr("matmull"),
                         HasSubstr("(did you mean 'matmul'?); \"hone operators\" lists them")));
  ExpectUsageError({"best", "frobnicate", "m=1"},
                   HasSubstr("'frobnicate'; \"hone operators\" lists them"));
  ExpectUsageError({"best", "conv2d", "n=1", "hh=3"},
                   AllOf(HasSubstr("no key 'hh'"), HasSubstr("conv2d takes n, h, w")));
  ExpectUsageError({}, AllOf(HasSubstr("needs a command"), HasSubstr("\"hone help\"")));
  ExpectUsageError({"records"}, AllOf(HasSubstr("needs a command"),
                                      HasSubstr("\"hone records COMMAND --help\"")));
}

TEST_F(CommandLineTest, RejectsInvalidShapes) {
  ExpectUsageError({"tune", "matmul", "m=-4", "n=4", "k=4"},
                   AllOf(HasSubstr("'m'"), HasSubstr("-4")));
  ExpectUsageError({"tune", "matmul", "m=0", "n=4", "k=4"},
                   AllOf(HasSubstr("'m'"), HasSubstr("at least 1")));
  ExpectUsageError({"tune", "matmul", "m=99999999999999999999", "n=4", "k=4"},
                   HasSubstr("64 bits"));
  ExpectUsageError({"tune", "matmul", "m=4294967296", "n=4294967296", "k=4"},
                   HasSubstr("elements"));
  ExpectUsageError({"tune", "matmul", "m=4x", "n=4", "k=4"}, HasSubstr("4x"));
  ExpectUsageError({"tune", "matmul", "m=4", "n=4"}, HasSubstr("needs key 'k'"));
  ExpectUsageError({"tune", "matmul", "m=4", "m=5", "n=4", "k=4"}, HasSubstr("twice"));
  ExpectUsageError({"tune", "conv2d", "n=1", "h=2", "w=2", "ci=4", "co=4", "k=5"},
                   HasSubstr("kernel"));
  ExpectUsageError({"tune", "matmul", "m=4", "n=4", "k=4", "dtype=f31"}, HasSubstr("f31"));
}

TEST_F(CommandLineTest, RejectsInvalidLimits) {
  ExpectUsageError({"tune", "matmul", "m=4", "n=4", "k=4", "--trials", "0"}, HasSubstr("--trials"));
  ExpectUsageError({"tune", "matmul", "m=4", "n=4", "k=4", "--trials", "-3"},
                   HasSubstr("--trials"));
  ExpectUsageError({"tune", "matmul", "m=4", "n=4", "k=4", "--time", "soon"},
                   HasSubstr("\"soon\" is not a duration"));
  ExpectUsageError({"tune", "matmul", "m=4", "n=4", "k=4", "--time", "-5s"},
                   HasSubstr("\"-5s\" is not positive"));
  for (const char* seed : {"-1", "18446744073709551616", "1.5"}) {
    ExpectUsageError({"tune", "matmul", "m=4", "n=4", "k=4", "--seed", seed},
                     AllOf(HasSubstr("--seed"),
                           HasSubstr(absl::StrCat(
                               seed, " is not a whole number from 0 to 18446744073709551615"))));
  }
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
  const std::string team = files_ / "team", path = files_ / "pi-07.conf";
  ASSERT_EQ(integration::RunProgram({"hone-server", "init", team, "--host", "hone.internal"}).code,
            0);
  std::ofstream(path) << "of an earlier run";
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  const std::vector<std::string> words = {
      "worker-config", "--name", "pi-07", "--authority", team, "-o", path};
  const Result refused = Hone(words);
  EXPECT_EQ(refused.code, 1) << refused.output;
  EXPECT_THAT(refused.errors, AllOf(HasSubstr(path + " exists"), HasSubstr("--overwrite")));
  std::string kept;
  std::getline(std::ifstream(path), kept);
  EXPECT_EQ(kept, "of an earlier run");
  const Result result = Hone(integration::With(words, {"--overwrite"}));
  ASSERT_EQ(result.code, 0) << result.errors;
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_THAT(result.output, AllOf(HasSubstr(path), Not(HasSubstr("PRIVATE KEY"))));
  const Result printed = Hone({"worker-config", "--name", "pi-07", "--authority", team});
  EXPECT_THAT(printed.output, HasSubstr("PRIVATE KEY"));
  EXPECT_EQ(Hone({"worker-config", "--name", "a", "--authority", team, "-o", "/nowhere/x"}).code,
            1);
}

TEST_F(CommandLineTest, NamesAreNotPaths) {
  ExpectUsageError({"export", "matmul", "m=4", "n=4", "k=4", "-o", "out", "--name", "../x"},
                   AllOf(HasSubstr("--name"), HasSubstr("'../x' is not a name")));
  ExpectUsageError({"export", "matmul", "m=4", "n=4", "k=4", "-o", "out", "--name", "9mm"},
                   HasSubstr("must not begin with a digit; try --name k9mm"));
  ExpectUsageError({"worker-config", "--name", "../x"}, HasSubstr("'../x' is not a name"));
  ExpectUsageError({"worker-config", "--name", "x", "--authority", "/nowhere"},
                   AllOf(HasSubstr("open /nowhere/ca.pem"), HasSubstr("--authority DIR")));
}

TEST_F(CommandLineTest, Utf8FileNamesAreNotEscaped) {
  const std::string path =
      File("größe.hone", "workload w\ninput A: f32[4] # größe\noutput B[i: 4] = A[?]\n");
  ExpectUsageError({"tune", path}, HasSubstr("größe.hone:3:"));
  const Result unreachable = Hone({"workers", "list", "--server", "unix:" + data_ / "größe.sock"});
  EXPECT_THAT(unreachable.errors,
              AllOf(HasSubstr("größe.sock: the socket does not exist"), Not(HasSubstr("%C3"))));
}

TEST_F(CommandLineTest, RejectsEmptyOptionValues) {
  const std::vector<std::string> tune = {"tune", "matmul", "m=4", "n=4", "k=4"};
  for (const char* option : {"--server", "--time", "--strategy", "--cost-model", "--target"}) {
    std::vector<std::string> words = tune;
    words.insert(words.end(), {option, ""});
    ExpectUsageError(words, AllOf(HasSubstr(option), HasSubstr("empty")));
    words = tune;
    words.insert(words.begin() + 1, absl::StrCat(option, "="));
    ExpectUsageError(words, AllOf(HasSubstr(option), HasSubstr("empty")));
  }
  ExpectUsageError({"--server", "", "workers", "list"}, HasSubstr("empty"));
  ExpectUsageError({"records", "query", "--job", ""}, HasSubstr("empty"));
  ExpectUsageError({"--server"}, HasSubstr("--server needs a value"));
  ExpectUsageError({"tune", "matmul", "--trials"}, HasSubstr("--trials needs a value"));
}

TEST_F(CommandLineTest, CommandGroupsHaveTheirOwnExamples) {
  for (const std::string group : {"records", "workers", "jobs", "models"}) {
    const Result result = Hone({group, "--help"});
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.output,
                AllOf(HasSubstr("Examples:\n  hone " + group), Not(HasSubstr("hone tune"))));
  }
}

TEST_F(CommandLineTest, UnknownOutcomeListsAllOutcomes) {
  ExpectUsageError({"records", "query", "--outcome", "nonsense"},
                   AllOf(HasSubstr("'nonsense'"), HasSubstr("ok, invalid"), HasSubstr("crash")));
}

TEST_F(CommandLineTest, AcceptsAByteOrderMarkAndLimitsFileSize) {
  const std::string text = "\xEF\xBB\xBFworkload w\ninput A: f32[8]\noutput B[i: 8] = A[i]\n";
  EXPECT_EQ(Hone({"show", "--workload", File("mark.hone", text)}).code, 0);
  EXPECT_EQ(Hone({"show", "--workload", "-"}, text).code, 0);
  EXPECT_EQ(Hone({"schedule", File("mark.trace", text + "trace 1\nb0 = block(\"B\")\n")}).code, 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"schedule", "/dev/zero"}, {"tune", "/dev/zero"}}) {
    ExpectUsageError(words, AllOf(HasSubstr("/dev/zero"), HasSubstr("larger than 64 MiB")));
  }
  ExpectUsageError({"tune", files_.path()}, HasSubstr("Is a directory"));
}

TEST_F(CommandLineTest, RejectsASpaceOfAnotherShape) {
  const std::string trace =
      File("eight.trace",
           "workload matmul\ninput A: f32[8, 8]\ninput B: f32[8, 8]\n"
           "output C[i: 8, j: 8] = sum(k: 8) A[i, k] * B[k, j]\ntrace 1\nb0 = block(\"C\")\n");
  ExpectUsageError({"tune", "matmul", "m=8", "n=8", "k=16", "--space", "trace:" + trace},
                   AllOf(HasSubstr("f32[8, 8], f32[8, 8]"), HasSubstr("f32[8, 16], f32[16, 8]"),
                         HasSubstr("omit the operator")));
}

TEST_F(CommandLineTest, SyntaxErrorsNameLineAndColumn) {
  const std::string path =
      File("bad.hone", "workload bad\ninput A: f32[4, 4]\noutput B[i: 4, j: 4] = A[i, ?]\n");
  ExpectUsageError({"tune", path}, HasSubstr("bad.hone:3:"));
  ExpectUsageError({"tune", File("empty.hone", "")}, HasSubstr("empty.hone:"));
  ExpectUsageError({"best", files_ / "nowhere.hone"},
                   AllOf(HasSubstr("nowhere.hone"), HasSubstr("No such file")));
  ExpectUsageError({"best", File("binary.hone", std::string("\x7f"
                                                            "ELF\0\1\2",
                                                            7))},
                   HasSubstr("not a text file"));
  // An index is out of range.
  ExpectUsageError(
      {"tune", File("out.hone", "workload bad\ninput A: f32[4]\noutput B[i: 8] = A[i]\n")},
      HasSubstr("A"));
}

TEST_F(CommandLineTest, RejectsATraceThatDoesNotFitItsWorkload) {
  const std::string workload =
      "workload matmul\ninput A: f32[8, 8]\ninput B: f32[8, 8]\n"
      "output C[i: 8, j: 8] = sum(k: 8) A[i, k] * B[k, j]\n";
  const std::string head = workload + "trace 1\nb0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n";
  const Result good =
      Hone({"show", File("good.trace", head + "l3, l4 = split(l0, 2, 4)\n"), "--program"});
  EXPECT_EQ(good.code, 0) << good.errors;
  EXPECT_THAT(good.output, HasSubstr("C"));
  ExpectUsageError({"show", File("name.trace", workload + "trace 1\nb0 = block(\"D\")\n")},
                   AllOf(HasSubstr("name.trace:6:1: "), HasSubstr("D")));
  ExpectUsageError(
      {"show", File("loops.trace", workload + "trace 1\nb0 = block(\"C\")\nl0, l1 = loops(b0)\n")},
      HasSubstr("loops.trace:7:1: "));
  ExpectUsageError({"show", File("text.trace", head + "l3, l4 = splitt(l0, 2, 4)\n")},
                   HasSubstr("text.trace:8:"));
  ExpectUsageError(
      {"show",
       File("open.trace", head + "x0, x1 = sample_perfect_tile(l0, parts=2, max_inner=8)\n")},
      HasSubstr("decisions open"));
}

TEST_F(CommandLineTest, RejectsInvalidDesignSpaces) {
  const std::vector<std::string> tune = {"tune", "matmul", "m=8", "n=8", "k=8", "--space"};
  const auto with = [&](const std::string& space) {
    std::vector<std::string> words = tune;
    words.push_back(space);
    return words;
  };
  ExpectUsageError(with("trace:"), HasSubstr("names no file"));
  ExpectUsageError(with("trace:" + (files_ / "nowhere.trace")),
                   AllOf(HasSubstr("nowhere.trace"), HasSubstr("No such file")));
  ExpectUsageError(with("my file"),
                   HasSubstr("expected a name, such as rules or templates, or trace:FILE"));
  const std::string broken =
      "workload w\ninput A: f32[8]\noutput B[i: 8] = A[i]\ntrace 1\nb0 = blok(\"B\")\n";
  ExpectUsageError(with("trace:" + File("broken.trace", broken)),
                   HasSubstr("broken.trace:5:10: unknown primitive 'blok'"));
  ExpectUsageError({"features", File("again.trace", broken)}, HasSubstr("again.trace:5:10: "));
}

TEST_F(CommandLineTest, FeaturesNeedADecidedTrace) {
  ExpectUsageError({"features", File("open.trace",
                                     "workload w\ninput A: f32[8]\noutput B[i: 8] = A[i]\ntrace 1\n"
                                     "b0 = block(\"B\")\nl0 = loops(b0)\n"
                                     "x0, x1 = sample_perfect_tile(l0, parts=2)\n")},
                   AllOf(HasSubstr("open.trace"), HasSubstr("2 decisions open")));
  ExpectUsageError({"features", files_ / "nowhere.trace"}, HasSubstr("No such file"));
}

TEST_F(CommandLineTest, TraceIsNotAWorkload) {
  const std::string path =
      File("good.trace",
           "workload w\ninput A: f32[8]\noutput B[i: 8] = A[i]\ntrace 1\nb0 = block(\"B\")\n");
  ExpectUsageError({"tune", path},
                   AllOf(HasSubstr("good.trace is a trace"), HasSubstr("hone show")));
}

TEST_F(CommandLineTest, ReadsWorkloadFromStandardInput) {
  const std::string text = "workload scale\ninput A: f32[4]\noutput B[i: 4] = A[i] * 2.0\n";
  const Result result = Hone({"show", "-", "--workload", "--json"}, text);
  EXPECT_EQ(result.code, 0) << result.errors;
  const auto json = nlohmann::json::parse(result.output, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_THAT(json["workload"].get<std::string>(), HasSubstr("input A: f32[4]"));
}

TEST_F(CommandLineTest, OutputErrorsAreFailures) {
  const std::string workload = File("scale.hone",
                                    "workload scale\ninput A: f32[4]\n"
                                    "output B[i: 4] = A[i] * 2.0\n");
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

TEST_F(CommandLineTest, AnUnreachableServerHasItsOwnExitCode) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"best", "matmul", "m=4", "n=4", "k=4"},
        {"workers", "list"},
        {"jobs", "list"},
        {"tune", "matmul", "m=4", "n=4", "k=4"}}) {
    std::vector<std::string> words = {"--server", "unix:" + data_ / "nobody.sock"};
    words.insert(words.end(), command.begin(), command.end());
    const Result result = Hone(words);
    EXPECT_EQ(result.code, 4) << command[0];
    EXPECT_THAT(result.errors,
                AllOf(HasSubstr("cannot reach the server"), HasSubstr("nobody.sock")));
    EXPECT_THAT(result.output, IsEmpty());
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
  const int port = FreePort();
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
  ExpectUsageError({"best", "matmul", "m=4", "n=4", "k=4", "--file", "list.txt"},
                   HasSubstr("--file"));
  ExpectUsageError({"best"}, HasSubstr("a workload is missing"));
  for (const char* const command : {"tune", "best"}) {
    EXPECT_EQ(
        Hone({command, "--file", "-"}, "softmax m=8\n").errors.find("hone: standard input:1: "),
        0u);
  }
}

TEST_F(CommandLineTest, PinsAreListedWithoutAnOperator) {
  const Result none = Hone({"pin"});
  EXPECT_EQ(none.code, 0) << none.errors;
  EXPECT_EQ(none.output, "no best is pinned\n");
  EXPECT_EQ(Hone({"pin", "--json"}).output, "{\"pins\":[]}\n");
  ExpectUsageError({"pin", "--remove"}, HasSubstr("--remove needs an operator"));
  ExpectUsageError({"pin", "--record", "4"}, HasSubstr("--record needs an operator"));
  ExpectUsageError({"pin", "matmul", "m=4", "n=4", "k=4", "--record", "4", "--remove"},
                   HasSubstr("--remove"));
  ExpectUsageError({"pin", "matmul", "m=4", "n=4", "k=4", "--record", "0"}, HasSubstr("--record"));
  ExpectUsageError({"forget"}, HasSubstr("operator is required"));
  ExpectUsageError({"best", "m=4", "matmul"}, HasSubstr("write the operator first"));
  ExpectUsageError({"jobs", "show", "1", "2"},
                   HasSubstr("unexpected argument 2 (see hone jobs show --help)"));
}

TEST_F(CommandLineTest, DetachNeedsAPermanentServer) {
  ExpectUsageError({"tune", "matmul", "m=4", "n=4", "k=4", "--detach"},
                   AllOf(HasSubstr("--detach needs --server"), HasSubstr("private server")));
}

TEST_F(CommandLineTest, ATargetThatWouldBeIgnoredIsRejected) {
  for (const char* const list : {"jobs", "workers"}) {
    ExpectUsageError({list, "list", "--target", "foo"}, HasSubstr("unknown target foo"));
    EXPECT_EQ(Hone({list, "list", "--target", "arm-neon"}).code, 0) << "they list those of it";
  }
  for (const std::vector<std::string>& words : {std::vector<std::string>{"operators"},
                                                {"jobs", "show", "1"},
                                                {"workers", "drain", "w"},
                                                {"records", "compact"}}) {
    std::vector<std::string> with_target = words;
    with_target.insert(with_target.begin(), {"--target", "arm-neon"});
    ExpectUsageError(with_target, HasSubstr("this command does not use --target"));
  }
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

TEST_F(CommandLineTest, OptionsWithoutEffectAreRejected) {
  ExpectUsageError({"tune", "matmul", "m=4", "n=4", "k=4", "--detach", "--trace"},
                   AllOf(HasSubstr("--trace"), HasSubstr("--detach")));
  ExpectUsageError({"check", "a.onnx", "--baseline", "b", "--save", "--max-regression", "3%"},
                   AllOf(HasSubstr("--max-regression"), HasSubstr("--save")));
}

TEST_F(CommandLineTest, RejectsInvalidAddresses) {
  ExpectUsageError({"--server", "http://localhost:7070", "workers", "list"},
                   HasSubstr("is a URL; write localhost:7070, without http://"));
  ExpectUsageError({"--server", "nonsense", "workers", "list"}, HasSubstr("nonsense"));
  ExpectUsageError({"--server", "192.0.2.1:7070", "workers", "list"}, HasSubstr("--insecure"));
  ExpectUsageError({"--server", "localhost:", "workers", "list"},
                   HasSubstr("address 'localhost:': the port is missing; write "));
}

TEST_F(CommandLineTest, ReportsUncreatableDataFolder) {
  const Result result = integration::RunProgram({"hone", "best", "matmul", "m=4", "n=4", "k=4"},
                                                {{"XDG_DATA_HOME", "/proc/nowhere"}});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.errors, AllOf(HasSubstr("/proc/nowhere"), HasSubstr("XDG_DATA_HOME")));
}

}  // namespace
}  // namespace hone::cli
