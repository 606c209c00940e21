// The exit codes of every command that reads or writes a file, or looks up a name. Scripts rely on
// them: 3 means only that nothing is known.

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

using integration::Result;
using integration::With;
using integration::Words;

class ExitCodeTest : public ::testing::Test {
 protected:
  Result Hone(Words words) {
    words.insert(words.begin(), "hone");
    return integration::RunProgram(words, {{"XDG_DATA_HOME", data_.path()}}, absl::Seconds(60));
  }
  void Expect(int code, const Words& words, const std::string& message) {
    const Result result = Hone(words);
    EXPECT_EQ(result.code, code) << absl::StrJoin(words, " ") << ": " << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(message)) << absl::StrJoin(words, " ");
  }

  TemporaryFolder data_;
};

TEST_F(ExitCodeTest, AMissingInputIsAUsageError) {
  const Words matmul = {"matmul", "m=4", "n=4", "k=4"};
  for (const std::string missing : {"/nowhere/nope", "/proc/nope", "/dev/null/nope"}) {
    const std::string workload = missing + ".hone", trace = missing + ".trace";
    for (const Words& words : {Words{"tune", workload},
                               With({"tune", "--space", "trace:" + trace}, matmul),
                               {"tune", "--file", missing},
                               {"best", workload},
                               {"best", "--file", missing},
                               {"compare", workload},
                               {"explain", workload},
                               {"explain", trace},
                               {"diff", "1", trace},
                               {"check", missing + ".onnx", "--baseline", "speed.json"},
                               {"export", workload, "-o", "out"},
                               {"export", "--file", missing, "-o", "out"},
                               {"run", workload, "--in", "A.npy", "--out", "C.npy"},
                               {"show", workload},
                               {"show", trace},
                               {"show", "--draft", workload},
                               {"show", "--code", trace},
                               {"schedule", trace},
                               {"revalidate", workload},
                               {"forget", workload},
                               {"pin", workload},
                               {"records", "query", workload},
                               {"records", "export", workload},
                               {"records", "import", missing},
                               {"features", trace},
                               {"models", "evaluate", "--held-out", workload + " "},
                               {"worker-config", "--name", "w", "--authority", missing}}) {
      Expect(2, words, missing);
    }
    Expect(2, With({"run", "--in", missing + ".npy", "--in", "B.npy", "--out", "C.npy"}, matmul),
           missing);
  }
  Expect(2, {"records", "import", "/proc"}, "/proc");
}

TEST_F(ExitCodeTest, MissingConnectionFileIsAUsageError) {
  const Words matmul = {"matmul", "m=4", "n=4", "k=4"};
  for (const Words& command : {With({"tune"}, matmul),
                               With({"best"}, matmul),
                               With({"compare"}, matmul),
                               With({"explain"}, matmul),
                               {"diff", "1", "2"},
                               With({"export", "-o", "out"}, matmul),
                               With({"run", "--in", "A.npy", "--out", "C.npy"}, matmul),
                               With({"show"}, matmul),
                               With({"show", "--draft"}, matmul),
                               {"schedule", "mine.trace"},
                               {"revalidate"},
                               With({"forget"}, matmul),
                               With({"pin"}, matmul),
                               {"pin"},
                               {"records", "query"},
                               {"records", "export"},
                               {"records", "import", "-"},
                               {"records", "backup", "/tmp/backup.db"},
                               {"records", "compact"},
                               {"workers", "list"},
                               {"workers", "drain", "w"},
                               {"workers", "resume", "w"},
                               {"workers", "remove", "w"},
                               {"worker-config", "--name", "w"},
                               {"jobs", "list"},
                               {"jobs", "watch", "1"},
                               {"jobs", "cancel", "1"},
                               {"jobs", "resume", "1"},
                               {"models"},
                               {"models", "train"},
                               {"models", "evaluate"},
                               {"operators"},
                               {"features", "mine.trace"},
                               {"doctor"}}) {
    Expect(2, With(command, {"--server", "localhost:1", "--ca", "/nowhere/ca.pem"}), "ca.pem");
  }
  for (const Words& options : {Words{"--config", "/nowhere/nope"},
                               {"--token-file", "/nowhere/nope"},
                               {"--ca", "/nowhere/nope"},
                               {"--ca", "system", "--certificate", "/nowhere/nope", "--key", "key"},
                               {"--config", "/dev/null/nope"}}) {
    Expect(2, With({"workers", "list", "--server", "localhost:1"}, options), "nope");
  }
}

TEST_F(ExitCodeTest, AnUnknownNameIsAUsageErrorAndAnUnknownBestIsNot) {
  const std::string list = data_ / "list.txt";
  std::ofstream(list) << "matmul m=4 n=4 k=4\n";
  Expect(2, {"models", "train", "--model", "nope"}, "nope");
  Expect(2, {"models", "evaluate", "--model", "nope"}, "nope");
  Expect(2, {"models", "train", "--feature-set", "nope"}, "nope");
  Expect(2, {"jobs", "watch", "999"}, "999");
  Expect(2, {"jobs", "cancel", "999"}, "999");
  Expect(2, {"jobs", "resume", "999"}, "999");
  Expect(2, {"records", "query", "--job", "999"}, "999");
  Expect(2, {"records", "export", "ex.jsonl"}, "hone records export -o ex.jsonl");
  Expect(2, {"workers", "drain", "nope"}, "nope");
  Expect(3, {"best", "matmul", "m=4", "n=4", "k=4"}, "no schedule is known");
  Expect(3, {"show", "matmul", "m=4", "n=4", "k=4", "--code"}, "no schedule is known");
  Expect(2, {"show", "matmul", "m=4", "n=4", "k=4", "--draft", "--target", "nope"}, "nope");
  Expect(3, {"best", "--file", list}, "1 of the 1 workloads");
  Expect(3, {"export", "--file", list, "-o", data_ / "out"}, "1 of the 1 workloads");
  Expect(3, {"compare", "matmul", "m=4", "n=4", "k=4"}, "no schedule is known");
  Expect(3, {"explain", "matmul", "m=4", "n=4", "k=4"}, "no schedule is known");
  Expect(2, {"explain", "--record", "4711"}, "there is no record 4711");
  Expect(2, {"diff", "4711", "4712"}, "there is no record 4711");
  Expect(3, {"models", "train"}, "no measurements");
  Expect(3, {"forget", "matmul", "m=4", "n=4", "k=4"}, "nothing is known of matmul m=4 n=4 k=4");
  Expect(3, {"pin", "matmul", "m=4", "n=4", "k=4"}, "no schedule is known");
  Expect(3, {"pin", "matmul", "m=4", "n=4", "k=4", "--remove"}, "is not pinned");
  Expect(2, {"pin", "matmul", "m=4", "n=4", "k=4", "--record", "999"}, "no record 999");
}

TEST_F(ExitCodeTest, TheServersCommandsUseTheSameCodes) {
  const auto init = [&](const Words& options) {
    return integration::RunProgram(With({"hone-server", "init", data_ / "team"}, options));
  };
  const Result host = init({"--host", "bad host"});
  EXPECT_EQ(host.code, 2);
  EXPECT_EQ(host.errors,
            "hone-server: --host 'bad host' is not the name or the address of a machine, as "
            "hone.internal is\n");
  const Result port = init({"--host", "10.0.0.1:80"});
  EXPECT_EQ(port.code, 2);
  EXPECT_THAT(port.errors, testing::HasSubstr("has a port; give the host alone"));
  EXPECT_EQ(init({"--host", "localhost", "--worker", "a b"}).code, 2);
  ASSERT_EQ(init({"--host", "localhost"}).code, 0);
  EXPECT_EQ(init({"--host", "localhost"}).code, 1) << "it would replace keys";
  const Result unwritable = integration::RunProgram({"hone-server", "init", "/proc/team"});
  EXPECT_EQ(unwritable.code, 1) << unwritable.errors;
  for (const std::string command : {"restore", "merge"}) {
    const Result missing = integration::RunProgram(
        {"hone-server", command, "--store", data_ / "hone.db", "--from", "/nowhere/hone.db"});
    EXPECT_EQ(missing.code, 2) << command << ": " << missing.errors;
  }
}

TEST_F(ExitCodeTest, UnwritableOutputIsAFailure) {
  Expect(1, {"records", "export", "-o", "/nowhere/records.jsonl"},
         "write /nowhere/records.jsonl: ");
  Expect(1, {"records", "export", "-o", "/proc/records.jsonl"}, "/proc");
  Expect(1, {"records", "export", "-o", data_.path()}, data_.path());
  for (const char* const path : {"/nowhere", "/proc"}) {
    Expect(1, {"records", "backup", std::string(path) + "/backup.db"}, path);
  }
}

std::string OneLine(const std::string& text) {
  const std::vector<std::string> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return absl::StrJoin(words, " ");
}

TEST_F(ExitCodeTest, AnEmptyListIsAnAnswer) {
  for (const Words& words : {Words{"records", "query"},
                             {"records", "query", "matmul", "m=4", "n=4", "k=4"},
                             {"records", "query", "--csv"},
                             {"jobs", "list"},
                             {"workers", "list"},
                             {"pin"}}) {
    for (const Words& options : {Words{}, {"--json"}}) {
      if (words.back() == "--csv" && !options.empty()) continue;
      const Result result = Hone(With(words, options));
      EXPECT_EQ(result.code, 0) << absl::StrJoin(words, " ") << ": " << result.errors;
    }
  }
  EXPECT_THAT(Hone({"help", "exit-codes"}).output, HasSubstr("also if a list is empty"));
  EXPECT_THAT(OneLine(Hone({"records", "query", "--help"}).output),
              HasSubstr("If no record matches, the list is empty and the exit code is 0."));
}

TEST_F(ExitCodeTest, ThePageOnCommandsListsTheSameCodesAsTheHelp) {
  const std::string help = OneLine(Hone({"--help"}).output);
  const std::string page = OneLine(ReadFile("docs/commands.md").value_or(""));
  const size_t codes = help.find("Exit codes: ");
  ASSERT_NE(codes, std::string::npos);
  EXPECT_THAT(page, HasSubstr(help.substr(codes)));
}

TEST_F(ExitCodeTest, TheHelpListsEveryCode) {
  for (const Words& words : {Words{"--help"}, {"help", "exit-codes"}}) {
    const std::string help = OneLine(Hone(words).output);
    for (const char* code : {"0 ok", "1 failed", "2 wrong usage", "3 nothing known",
                             "4 server unreachable", "5 inconclusive", "130 interrupted"}) {
      EXPECT_THAT(help, HasSubstr(code));
    }
  }
}

}  // namespace
}  // namespace hone::cli
