#include "common/base/command_line.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Status Parse(Command& app, std::vector<std::string> words) {
  std::vector<char*> argv = {const_cast<char*>("program")};
  for (std::string& word : words) argv.push_back(word.data());
  return app.Parse(static_cast<int>(argv.size()), argv.data());
}

// A program with an option of each type.
class CommandTest : public ::testing::Test {
 protected:
  CommandTest() {
    app_.Add("workload", words_, "");
    app_.Add("--name", name_, "", {NotEmpty()});
    app_.Add("--trials", trials_, "", {ShowDefault(), Range(1, 100)});
    app_.Add("--share", share_, "", {Range(0.0, 0.5)});
    app_.Add("--seed", seed_, "", {Seed()});
    app_.Add("--in", files_, "", {OneWordPerUse()});
    app_.AddFlag("--all", all_, "");
    app_.AddFlag("--some", some_, "", {Excludes("--all")});
  }

  Command app_{"What it does", "program"};
  std::vector<std::string> words_, files_;
  std::string name_ = "before";
  int trials_ = 7;
  double share_ = 0;
  uint64_t seed_ = 0;
  bool all_ = false;
  bool some_ = false;
};

TEST_F(CommandTest, ValuesKeepTheirDefaults) {
  ASSERT_THAT(Parse(app_, {}), IsOk());
  EXPECT_EQ(name_, "before");
  EXPECT_EQ(trials_, 7);
  EXPECT_FALSE(all_);
}

TEST_F(CommandTest, OptionsAndArgumentsMayBeMixed) {
  ASSERT_THAT(Parse(app_, {"a", "--in", "x", "b", "--all", "--in=y", "--seed",
                           "18446744073709551615", "--share", "0.5", "c"}),
              IsOk());
  EXPECT_THAT(words_, ElementsAre("a", "b", "c"));
  EXPECT_THAT(files_, ElementsAre("x", "y"));
  EXPECT_EQ(seed_, UINT64_MAX);
  EXPECT_EQ(share_, 0.5);
  EXPECT_TRUE(all_);
}

TEST_F(CommandTest, RejectsUnknownAndInvalidOptions) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--nonsense"},
           {"-x"},
           {"--trials"},
           {"--trials", "0"},
           {"--trials", "101"},
           {"--trials", "1e1"},
           {"--trials", "many"},
           {"--trials", "1", "--trials", "2"},
           {"--share", "0.6"},
           {"--seed", "-1"},
           {"--seed", "18446744073709551616"},
           {"--name", ""},
           {"--share", "nan"},
           {"--all", "--some"},
           {"--all=maybe"},
       }) {
    Command app("");
    app.Add("--trials", trials_, "", {Range(1, 100)});
    app.Add("--share", share_, "", {Range(0.0, 0.5)});
    app.Add("--seed", seed_, "", {Seed()});
    app.Add("--name", name_, "", {NotEmpty()});
    app.AddFlag("--all", all_, "");
    app.AddFlag("--some", some_, "", {Excludes("--all")});
    EXPECT_THAT(Parse(app, words), StatusIs(absl::StatusCode::kInvalidArgument))
        << ::testing::PrintToString(words);
  }
}

TEST_F(CommandTest, HelpAndVersionAreNotErrors) {
  app_.AddVersion("program 1.2");
  app_.Footer("The end.");
  for (const char* version : {"--version", "-V"}) {
    ::testing::internal::CaptureStdout();
    EXPECT_THAT(Parse(app_, {version}), StatusIs(absl::StatusCode::kCancelled));
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "program 1.2\n");
  }
  ::testing::internal::CaptureStdout();
  EXPECT_THAT(Parse(app_, {"--help"}), StatusIs(absl::StatusCode::kCancelled));
  const std::string help = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(help, HasSubstr("What it does"));
  // Releases of CLI11 write the default differently.
  EXPECT_THAT(help, ContainsRegex("--trials INT:INT in .1 - 100.(=7| .7.)"));
  EXPECT_THAT(help, HasSubstr("The end."));
}

TEST_F(CommandTest, ParseOrExitGivesTheExitCode) {
  char program[] = "program", help[] = "--help", bad[] = "--nonsense";
  char* good_words[] = {program};
  char* help_words[] = {program, help};
  char* bad_words[] = {program, bad};
  EXPECT_EQ(app_.ParseOrExit(1, good_words), std::nullopt);
  EXPECT_EQ(app_.ParseOrExit(2, help_words), 0);
  EXPECT_EQ(app_.ParseOrExit(2, bad_words), 2);
}

TEST(PlainNameTest, RefusesPaths) {
  for (const char* good : {"pi-07", "a.b", "_x", "2d"}) {
    std::string name;
    Command app("");
    app.Add("--name", name, "", {PlainName()});
    EXPECT_THAT(Parse(app, {"--name", good}), IsOk()) << good;
  }
  for (const char* bad : {"../x", "a/b", ".hidden", "", "a b", "größe"}) {
    std::string name;
    Command app("");
    app.Add("--name", name, "", {PlainName()});
    EXPECT_THAT(Parse(app, {"--name", bad}), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
}

TEST(ProgramTest, RefusedValuesAreExplained) {
  int64_t trials = 0;
  std::string priority;
  const auto error = [&](const std::vector<std::string>& words) {
    Command app("", "worker");
    app.Add("--trials", trials, "", {Range(int64_t{1}, int64_t{100})});
    app.Add("--priority", priority, "", {OneOf({"low", "high"})});
    return std::string(Parse(app, words).message());
  };
  EXPECT_EQ(error({"--trials", "0"}), "--trials: '0' is not a whole number from 1 to 100");
  EXPECT_EQ(error({"--trials", "many"}), "--trials: 'many' is not a whole number from 1 to 100");
  EXPECT_EQ(error({"--priority", "urgent"}), "--priority: 'urgent' is not one of low, high");
}

TEST(ProgramTest, AMissingConfigurationFileIsNamed) {
  Command app("", "worker");
  app.AddConfigFile({}, {});
  char program[] = "/usr/bin/worker", option[] = "--config", path[] = "/nowhere/worker.conf";
  char* words[] = {program, option, path};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(app.ParseOrExit(3, words), 2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "worker: open /nowhere/worker.conf: No such file or directory (see worker --help)\n");
}

TEST(ProgramTest, AnUnknownOptionIsNamedBeforeAMissingOne) {
  Command app("", "worker");
  std::string server;
  app.Add("--server", server, "", {Required()});
  char program[] = "/usr/bin/worker", bad[] = "--bogus";
  char* words[] = {program, bad};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(app.ParseOrExit(2, words), 2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "worker: unknown option --bogus (see worker --help)\n");
}

TEST(ProgramTest, PrefixesItsUsageErrorsWithItsName) {
  // The name is the program's file name unless it is given.
  for (const char* name : {"", "worker"}) {
    Command app("", name);
    char program[] = "/usr/bin/worker", bad[] = "--nonsense";
    char* words[] = {program, bad};
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(app.ParseOrExit(2, words), 2);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "worker: unknown option --nonsense (see worker --help)\n");
  }
}

TEST(HelpTest, ListsOptionsUnderTheTitleOfTheirGroup) {
  std::string server, name;
  Command app("", "hone");
  Command& tune = app.AddCommand("tune", "Searches");
  tune.Add("--name", name, "A name");
  tune.Add("--server", server, "An address", {Group("Connection options")});
  const std::string help = tune.Help("hone tune");
  EXPECT_THAT(help, HasSubstr("Usage: hone tune [OPTIONS]"));
  EXPECT_LT(help.find("Options:\n"), help.find("--name"));
  EXPECT_LT(help.find("--name"), help.find("Connection options:\n"));
  EXPECT_LT(help.find("Connection options:\n"), help.find("--server"));
  EXPECT_THAT(app.Help("hone"), HasSubstr("tune"));
}

TEST(HelpTest, FitsTheTerminal) {
  Command app("Tunes the kernels of networks and of operators.", "hone");
  std::string value;
  app.Add("--trials", value, "At most this many measurements of candidates");
  app.AddCommand("tune", "Search for the fastest schedule of an operator");
  app.Footer("Examples:\n  hone tune matmul m=1024 n=1024 k=1024 --trials 9");
  EXPECT_EQ(app.Help("hone", 40),
            "Tunes the kernels of networks and of\noperators.\n"
            "Usage: hone [OPTIONS] [SUBCOMMAND]\n\n"
            "Options:\n"
            "  -h,--help\n"
            "      Print this help message and exit\n"
            "  --trials TEXT\n"
            "      At most this many measurements of\n      candidates\n\n"
            "Subcommands:\n"
            "  tune\n"
            "      Search for the fastest schedule of\n      an operator\n\n"
            "Examples:\n"
            "  hone tune matmul m=1024 n=1024 k=1024\n    --trials 9\n");
  EXPECT_THAT(app.Help("hone", 66),
              HasSubstr("\n  --trials TEXT               At most this many measurements of\n" +
                        std::string(30, ' ') + "candidates\n"));
}

TEST(SubcommandTest, RunsTheInnermostCommand) {
  std::string ran, worker;
  const auto runs = [&](const char* name) {
    return [&ran, name] {
      ran = name;
      return absl::OkStatus();
    };
  };
  Command app("", "hone");
  app.RequireCommand(1, 1);
  Command& workers = app.AddCommand("workers", "");
  workers.RequireCommand(0, 1);
  workers.OnRun(runs("workers"));
  Command& drain = workers.AddCommand("drain", "");
  drain.Add("worker", worker, "", {Required()});
  drain.OnRun(runs("drain"));

  ASSERT_THAT(Parse(app, {"workers"}), IsOk());
  EXPECT_TRUE(workers.Given());
  EXPECT_FALSE(drain.Given());
  ASSERT_THAT(app.Run(), IsOk());
  EXPECT_EQ(ran, "workers");

  ASSERT_THAT(Parse(app, {"workers", "drain", "pi"}), IsOk());
  ASSERT_THAT(app.Run(), IsOk());
  EXPECT_EQ(ran, "drain");
  EXPECT_EQ(worker, "pi");

  EXPECT_THAT(Parse(app, {}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Parse(app, {"workers", "drain"}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(SubcommandTest, DescribesItself) {
  std::string text;
  bool flag = false;
  Command app("", "hone");
  app.Add("--server", text, "");
  app.AddFlag("--json", flag, "");
  app.AddCommand("tune", "").Add("--trials", text, "");
  EXPECT_THAT(app.CommandNames(), ElementsAre("tune"));
  EXPECT_THAT(app.OptionNames(), ElementsAre("--help", "--server", "--json"));
  EXPECT_EQ(app.TakesValue("--server"), true);
  EXPECT_EQ(app.TakesValue("--json"), false);
  EXPECT_EQ(app.TakesValue("--trials"), std::nullopt);
  EXPECT_EQ(app.Find("best"), nullptr);
  EXPECT_EQ(app.Find("tune")->TakesValue("--trials"), true);
}

class ConfigOptionTest : public ::testing::Test {
 protected:
  // Returns the status of parsing a config file with this text and the given arguments.
  absl::Status Read(const std::string& text, std::vector<std::string> words = {}) {
    const std::string path = folder_ / "hone.conf";
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms(mode_));
    Command app("");
    app.Add("--listen", listen_, "", {OneWordPerUse()});
    app.Add("--store", store_, "");
    app.Add("--threads", threads_, "", {Range(0, 8)});
    app.AddFlag("--insecure", insecure_, "");
    app.AddFlag("--check-config", check_, "");
    app.AddConfigFile({{"token", &token_}}, {"check-config"});
    words.insert(words.begin(), {"--config", path});
    return Parse(app, words);
  }

  const TemporaryFolder folder_;
  int mode_ = 0600;
  std::vector<std::string> listen_;
  std::string store_, token_;
  int threads_ = 0;
  bool insecure_ = false, check_ = false;
};

TEST_F(ConfigOptionTest, KeysAreOptions) {
  ASSERT_THAT(Read("listen = ['a', 'b']\nstore = 'x'\nthreads = 3\ninsecure = true\ntoken = 't'\n"),
              IsOk());
  EXPECT_THAT(listen_, ElementsAre("a", "b"));
  EXPECT_EQ(store_, "x");
  EXPECT_EQ(threads_, 3);
  EXPECT_TRUE(insecure_);
  EXPECT_EQ(token_, "t");
}

TEST_F(ConfigOptionTest, TheCommandLineWins) {
  ASSERT_THAT(Read("store = 'x'\nthreads = 3\n", {"--store", "y"}), IsOk());
  EXPECT_EQ(store_, "y");
  EXPECT_EQ(threads_, 3);
}

TEST_F(ConfigOptionTest, ErrorsNameTheLine) {
  const auto message = [this](const std::string& text) {
    return std::string(Read("\n" + text).message());
  };
  EXPECT_THAT(message("nosuch = 1"), HasSubstr("line 2: there is no key 'nosuch'"));
  EXPECT_THAT(message("check-config = true"), HasSubstr("there is no key 'check-config'"));
  EXPECT_THAT(message("store = ['a', 'b']"), HasSubstr("line 2: store: not a list"));
  EXPECT_THAT(message("token = ['a', 'b']"), HasSubstr("line 2: token: not a list"));
  EXPECT_THAT(message("insecure = 'maybe'"), HasSubstr("line 2: insecure: true or false"));
  EXPECT_THAT(message("store 'a'"), HasSubstr("line 2"));
  EXPECT_THAT(message("threads = 9"), HasSubstr("threads"));
  EXPECT_THAT(listen_, IsEmpty());
}

TEST_F(ConfigOptionTest, FileWithASecretMustBePrivate) {
  mode_ = 0644;
  EXPECT_THAT(std::string(Read("token = 't'").message()), HasSubstr("chmod 600"));
  EXPECT_THAT(Read("store = 'x'"), IsOk());
}

}  // namespace
}  // namespace hone
