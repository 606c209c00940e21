// The systemd units: their commands and options exist, systemd accepts them, and the services are
// sandboxed.

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"
#include "tests/status.h"

namespace hone::integration {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kAnalyze[] = "/usr/bin/systemd-analyze";

struct Unit {
  const char* name;
  double most_exposure;  // exposure level as systemd computes it, up to 10
};

class SystemdTest : public ::testing::TestWithParam<Unit> {
 protected:
  void SetUp() override {
    // Replaces the installed programs with those under test.
    text_ = ReadFile(absl::StrCat("deploy/systemd/", GetParam().name)).value();
    const std::string here =
        absl::StrReplaceAll(text_, {{"/usr/bin/hone-", absl::StrCat(BinDir(), "/hone-")}});
    path_ = folder_ / GetParam().name;
    ASSERT_THAT(WriteFileAtomically(path_, here), IsOk());
  }
  static bool HasAnalyze() { return RunProgram({"/usr/bin/test", "-x", kAnalyze}).code == 0; }

  TemporaryFolder folder_;
  std::string text_;
  std::string path_;
};

TEST_P(SystemdTest, CommandsUseExistingOptions) {
  int commands = 0;
  for (absl::string_view line : absl::StrSplit(text_, '\n')) {
    if (!absl::StartsWith(line, "ExecStart") || !absl::StrContains(line, "/usr/bin/hone-")) {
      continue;
    }
    ++commands;
    std::vector<std::string> words = absl::StrSplit(line.substr(line.find('=') + 1), ' ');
    const std::string program = words[0].substr(words[0].rfind('/') + 1);
    const Result help = RunProgram({program, "--help"});
    ASSERT_EQ(help.code, 0) << help.errors;
    for (const std::string& word : words) {
      if (!absl::StartsWith(word, "--")) continue;
      EXPECT_THAT(help.output, HasSubstr(word)) << line;
    }
  }
  EXPECT_GE(commands, 1);
}

TEST_P(SystemdTest, PassesSystemdAnalyze) {
  if (!HasAnalyze()) GTEST_SKIP() << kAnalyze << " is not installed";
  const Result verified = RunProgram({kAnalyze, "verify", path_});
  EXPECT_EQ(verified.code, 0);
  EXPECT_THAT(verified.output, IsEmpty());
  EXPECT_THAT(verified.errors, Not(HasSubstr(GetParam().name)));
}

TEST_P(SystemdTest, ServicesAreSandboxed) {
  for (const char* const line :
       {"\nNoNewPrivileges=yes\n", "\nProtectSystem=strict\n", "\nCapabilityBoundingSet=\n"}) {
    EXPECT_THAT(text_, HasSubstr(line));
  }
  if (!HasAnalyze()) GTEST_SKIP() << kAnalyze << " is not installed";
  const Result looked = RunProgram({kAnalyze, "security", "--no-pager", "--offline=true", path_});
  const size_t at = looked.output.find("Overall exposure level");
  ASSERT_NE(at, std::string::npos) << looked.output << looked.errors;
  const std::string rest = looked.output.substr(looked.output.find(": ", at) + 2);
  double exposure = 10;
  ASSERT_TRUE(absl::SimpleAtod(rest.substr(0, rest.find(' ')), &exposure)) << rest;
  EXPECT_LE(exposure, GetParam().most_exposure) << looked.output;
}

// Returns the values of a key, in order.
std::vector<std::string> ValuesOf(absl::string_view unit, absl::string_view key) {
  std::vector<std::string> values;
  for (const absl::string_view line : absl::StrSplit(unit, '\n')) {
    if (absl::StartsWith(line, absl::StrCat(key, "="))) {
      values.emplace_back(line.substr(key.size() + 1));
    }
  }
  return values;
}

TEST_P(SystemdTest, ServicesAreLimited) {
  for (const char* const key : {"MemoryMax", "TasksMax"}) {
    EXPECT_THAT(ValuesOf(text_, key), ElementsAre(Not(AnyOf("", "infinity")))) << key;
  }
  for (const char* const key : {"ProtectHome", "PrivateTmp", "RestrictSUIDSGID", "LockPersonality",
                                "ProtectKernelModules", "ProtectKernelTunables", "RemoveIPC",
                                "ProtectControlGroups", "RestrictNamespaces", "RestrictRealtime"}) {
    EXPECT_THAT(ValuesOf(text_, key), ElementsAre("yes")) << key;
  }
  EXPECT_THAT(ValuesOf(text_, "SystemCallFilter"), Not(IsEmpty()));
  EXPECT_THAT(ValuesOf(text_, "UMask"), ElementsAre("0077"));
}

// A worker runs code of clients, so it must not be able to read what the server keeps.
TEST(SystemdUnitsTest, ServerAndWorkersAreSeparate) {
  const std::string server = ReadFile("deploy/systemd/hone-server.service").value();
  const std::string worker = ReadFile("deploy/systemd/hone-worker@.service").value();
  const std::vector<std::string> users = {ValuesOf(server, "User").at(0),
                                          ValuesOf(worker, "User").at(0)};
  EXPECT_NE(users[0], users[1]);
  EXPECT_THAT(users, Not(Contains("root")));
  EXPECT_THAT(ValuesOf(worker, "Group"), ElementsAre(users[1]));
  EXPECT_THAT(ValuesOf(worker, "InaccessiblePaths"),
              ElementsAre(AllOf(HasSubstr("-/etc/hone "), HasSubstr("-/var/lib/hone "))));
  EXPECT_THAT(
      ValuesOf(server, "InaccessiblePaths"),
      ElementsAre(AllOf(HasSubstr("-/etc/hone-worker"), HasSubstr("/var/lib/hone-worker"))));
  // The configuration with the token belongs to root.
  EXPECT_THAT(ValuesOf(worker, "LoadCredential"),
              ElementsAre("worker.conf:/etc/hone-worker/%i.conf"));
  EXPECT_THAT(ValuesOf(worker, "ExecStart"),
              ElementsAre(HasSubstr(" --config ${CREDENTIALS_DIRECTORY}/worker.conf ")));
  // The end of a kernel for lack of memory is not that of its worker.
  EXPECT_THAT(ValuesOf(worker, "OOMPolicy"), ElementsAre("continue"));
  // What confines compilers and kernels needs these calls.
  for (const char* const call : {" seccomp ", " landlock_create_ruleset ", " landlock_add_rule ",
                                 " landlock_restrict_self "}) {
    EXPECT_THAT(ValuesOf(worker, "SystemCallFilter"), ElementsAre(HasSubstr(call)));
  }
}

INSTANTIATE_TEST_SUITE_P(Units, SystemdTest,
                         ::testing::Values(Unit{"hone-server.service", 2.0},
                                           Unit{"hone-worker@.service", 2.5}),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "Server" : "Worker");
                         });

}  // namespace
}  // namespace hone::integration
