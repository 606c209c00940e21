#include "client/cli/suggested_command.h"

#include "absl/status/status.h"
#include "client/cli/command.h"
#include "client/cli/tune/run_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

class SuggestedCommandTest : public ::testing::Test {
 protected:
  ~SuggestedCommandTest() override { SetRepeatedOptions({}, ""); }
};

TEST_F(SuggestedCommandTest, NothingIsRepeatedOfAPlainCommandLine) {
  SetRepeatedOptions({}, "");
  EXPECT_EQ(SuggestedCommand("jobs watch 7"), "hone jobs watch 7");
  EXPECT_EQ(SuggestedCommandForTarget("tune mine.hone"), "hone tune mine.hone");
}

TEST_F(SuggestedCommandTest, RepeatsTheServerAndQuotesForAShell) {
  SetRepeatedOptions({{"--config", "my team/client.conf"}, {"--insecure", ""}}, "cuda:1");
  EXPECT_EQ(SuggestedCommand("jobs watch 7"),
            "hone jobs watch 7 --config 'my team/client.conf' --insecure");
  EXPECT_EQ(SuggestedCommandForTarget("tune mine.hone"),
            "hone tune mine.hone --target cuda:1 --config 'my team/client.conf' --insecure");
}

TEST_F(SuggestedCommandTest, CommandsInTextsOfTheServerRepeatTheOptions) {
  SetRepeatedOptions({{"--config", "admin.conf"}}, "cuda:1");
  EXPECT_EQ(WithRepeatedOptions("w is drained; \"hone workers resume w\" gives it work; \"x\""),
            "w is drained; \"hone workers resume w --config admin.conf\" gives it work; \"x\"");
  EXPECT_EQ(WithRepeatedOptions("it said \"hone"), "it said \"hone");
}

TEST_F(SuggestedCommandTest, CommandsOfAdministratorsNameTheirConfiguration) {
  SetRepeatedOptions({{"--config", "client.conf"}}, "");
  EXPECT_EQ(SuggestedAdminCommand("workers resume w"),
            "hone workers resume w --config client.conf");
  NameAdminConfig();
  EXPECT_EQ(SuggestedAdminCommand("workers resume w"), "hone workers resume w --config admin.conf");
  EXPECT_EQ(WithRepeatedOptions("\"hone workers resume w\", \"hone jobs resume 7\""),
            "\"hone workers resume w --config admin.conf\", \"hone jobs resume 7 --config "
            "client.conf\"");
}

TEST_F(SuggestedCommandTest, MeasurementsOfAnotherMachineNeedAServer) {
  SetRepeatedOptions({}, "arm-neon");
  EXPECT_EQ(SuggestedMeasurement("tune a.hone"), "hone tune a.hone --target arm-neon");
  NeedServerOfTarget();
  EXPECT_EQ(SuggestedMeasurement("tune a.hone"),
            "hone tune a.hone --target arm-neon --server ADDR (a server with a worker of that "
            "target)");
  EXPECT_EQ(SuggestedCommandForTarget("best a.hone"), "hone best a.hone --target arm-neon");
}

TEST_F(SuggestedCommandTest, AStrictToleranceIsOmitted) {
  EXPECT_EQ(ToleranceOption(0), "");
  EXPECT_EQ(ToleranceOption(0.01), " --tolerance 0.01");
}

TEST_F(SuggestedCommandTest, MessagesAboutJobsNameTheServer) {
  GoldenOfTest golden;
  SetRepeatedOptions({{"--server", "a:1"}}, "");
  golden.Add(LeftError("12", OnInterrupt::kLeave).message());
  golden.Add(LeftError("12", OnInterrupt::kLeaveCancelled).message());
  golden.Add(EndingError("12").message());
}

TEST_F(SuggestedCommandTest, GlobalsRepeatWhatTheCommandLineGave) {
  Globals globals;
  globals.server = "unix:/nowhere";
  globals.target = "cuda";
  globals.sources.insecure = true;
  ASSERT_THAT(CompleteGlobals(globals), IsOk());
  EXPECT_EQ(SuggestedCommandForTarget("best mine.hone"),
            "hone best mine.hone --target cuda --server unix:/nowhere --insecure");
}

}  // namespace
}  // namespace hone::cli
