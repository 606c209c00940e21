#include "client/cli/output/format.h"

#include <unistd.h>

#include <cstdio>

#include "client/cli/exit_code.h"
#include "client/cli/output/table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

TEST(FormatTest, LatencyHasFourDigits) {
  EXPECT_EQ(FormatLatency(812), "812.0 ns");
  EXPECT_EQ(FormatLatency(41'270), "41.27 us");
  EXPECT_EQ(FormatLatency(10'250'000), "10.25 ms");
  EXPECT_EQ(FormatLatency(1'204'000'000), "1.204 s");
  EXPECT_EQ(FormatLatency(0), "-");
}

TEST(FormatTest, ASlowScheduleHasASpeed) {
  EXPECT_EQ(FormatGflops(291.84), "291.8");
  EXPECT_EQ(FormatGflops(0.123), "0.1");
  EXPECT_EQ(FormatGflops(0.0342), "0.034");
  EXPECT_EQ(FormatGflops(0), "-");
}

TEST(FormatTest, ShareOfZeroIsADash) {
  EXPECT_EQ(FormatShare(1, 4), "25.0 %");
  EXPECT_EQ(FormatShare(1, 0), "-");
  EXPECT_EQ(FormatShareOfPeak(1, 4), "25.0 %");
  EXPECT_EQ(FormatShareOfPeak(0, 4), "-") << "it only moves data";
  EXPECT_EQ(FormatShareOfPeak(4.001, 4), "100.0 %");
  EXPECT_EQ(FormatShareOfPeak(4.1, 4), "102.5 % *") << "the report explains it";
  EXPECT_TRUE(IsAbovePeak(4.1, 4));
  EXPECT_FALSE(IsAbovePeak(4.1, 0));
  EXPECT_EQ(FormatSpeedUp(3000, 2000), "1.50x");
  EXPECT_EQ(FormatSpeedUp(0, 2000), "-");
  EXPECT_EQ(FormatSpeedUp(3000, 0), "-");
  EXPECT_EQ(FormatSpeed(1000, 12.34, true), "1.000 us, 12.3 GFLOP/s");
  EXPECT_EQ(FormatSpeed(1000, 12.34, false), "~1.000 us, ~12.3 GFLOP/s");
  EXPECT_EQ(FormatSpeed(1000, 0, true), "1.000 us") << "it only moves data";
}

TEST(FormatTest, AnUnconfirmedFigureIsMarked) {
  EXPECT_EQ(MarkUnconfirmed("1.000 us", /*confirmed=*/true), "1.000 us");
  EXPECT_EQ(MarkUnconfirmed("1.000 us", /*confirmed=*/false), "~1.000 us");
  EXPECT_EQ(MarkUnconfirmed("-", /*confirmed=*/false), "-");
}

TEST(FormatTest, FormatsClock) {
  EXPECT_EQ(FormatClock(absl::Seconds(7)), "0:07");
  EXPECT_EQ(FormatClock(absl::Seconds(751)), "12:31");
  EXPECT_EQ(FormatClock(absl::Seconds(3729)), "1:02:09");
  EXPECT_EQ(FormatClock(absl::Seconds(-1)), "0:00");
}

TEST(FormatAgeTest, UsesOneUnit) {
  EXPECT_EQ(FormatAge(absl::Seconds(59)), "less than a minute ago");
  EXPECT_EQ(FormatAge(absl::Seconds(61)), "1 minute ago");
  EXPECT_EQ(FormatAge(absl::Hours(3)), "3 hours ago");
  EXPECT_EQ(FormatAge(absl::Hours(49)), "2 days ago");
}

TEST(ParseDurationTest, ReadsCommonNotations) {
  EXPECT_EQ(*ParseDuration("60s"), absl::Seconds(60));
  EXPECT_EQ(*ParseDuration("1h30m"), absl::Minutes(90));
  EXPECT_EQ(*ParseDuration("30d"), absl::Hours(720));
  EXPECT_EQ(*ParseDuration("90"), absl::Seconds(90));
  for (const char* bad : {"", "soon", "-5s", "0", "inf", "nan", "5 parsecs", "1e300d"}) {
    EXPECT_THAT(ParseDuration(bad), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
}

TEST(ParseDurationTest, SaysWhatIsWrong) {
  GoldenOfTest golden;
  EXPECT_EQ(ParseDuration("soon").status().message(),
            "\"soon\" is not a duration; write a duration such as 60s, 2m, 1h30m or 30d");
  golden.Add(ParseDuration("0s").status().message());
  golden.Add(ParseDuration("-5s").status().message());
  golden.Add(ParseDuration("99999d").status().message());
}

TEST(WithClauseTest, PutsAQuestionInParentheses) {
  EXPECT_EQ(WithClause("no key 'h'", "the keys are m"), "no key 'h'; the keys are m");
  EXPECT_EQ(WithClause("no key 'h'; did you mean 'n'?", "the keys are m, n"),
            "no key 'h' (did you mean 'n'?); the keys are m, n");
  EXPECT_EQ(WithClause("cannot reach x:1: connection refused; is hone-server running there?",
                       "job 1 continues"),
            "cannot reach x:1: connection refused (is hone-server running there?); job 1 "
            "continues");
}

TEST(TableTest, AlignsColumns) {
  Table table({Left(""), Right("latency")});
  table.AddRow({"default", "31.20 ms"});
  table.AddRow({"best", "9.1 ms"});
  EXPECT_EQ(table.ToText(),
            "          latency\n"
            "default  31.20 ms\n"
            "best       9.1 ms\n");
}

TEST(TableTest, LongRowsWrapBetweenCells) {
  Table table({Left(""), Right("latency"), Right("GFLOP/s"), Right("share of peak"), Left("note")});
  table.AddRow({"default", "31.20 ms", "27.6", "5.7 %", ""});
  table.AddRow({"best", "9.1 ms", "440.1", "91.6 %", "confirmed"});
  EXPECT_EQ(table.ToText(40),
            "          latency  GFLOP/s\n"
            "    share of peak  note\n"
            "default  31.20 ms     27.6\n"
            "            5.7 %\n"
            "best       9.1 ms    440.1\n"
            "           91.6 %  confirmed\n");
}

TEST(TableTest, AnEmptyCellHasNoLineOfItsOwn) {
  Table table({Left(""), Left("")});
  table.AddRow({"Y  [n, oh, ow, co]", ""});
  table.AddRow({"W  [kh, kw, ci, co]", "constant"});
  EXPECT_EQ(table.ToText(24),
            "\n"
            "Y  [n, oh, ow, co]\n"
            "W  [kh, kw, ci, co]\n"
            "    constant\n");
}

TEST(TableTest, BreaksACellThatIsLongerThanALine) {
  Table table({Left("job"), Left("workload"), Right("trials")});
  table.AddRow({"1", "conv2d(f32[1, 14, 14, 16]) -> f32[1, 12]", "7"});
  EXPECT_EQ(table.ToText(20),
            "job\n"
            "    workload\n"
            "    trials\n"
            "1\n"
            "    conv2d(f32[1,\n"
            "    14, 14, 16]) ->\n"
            "    f32[1, 12]\n"
            "         7\n");
}

TEST(TableTest, WrapsTextBesideTheOtherColumnsIfThereIsRoom) {
  Table table({Left("key"), Text("meaning")});
  table.AddRow({"kw", "k"});
  table.AddRow({"dilation", "elements between the taps of the window"});
  EXPECT_EQ(table.ToText(36),
            "key       meaning\n"
            "kw        k\n"
            "dilation  elements between the taps\n"
            "          of the window\n");
  EXPECT_EQ(table.ToText(30),
            "key\n"
            "    meaning\n"
            "kw\n"
            "    k\n"
            "dilation\n"
            "    elements between the taps\n"
            "    of the window\n");
}

TEST(TableTest, AlignsByCharactersNotBytes) {
  Table table({Left("file"), Right("size")});
  table.AddRow({"größe", "1"});
  table.AddRow({"sizes", "2"});
  EXPECT_EQ(table.ToText(), "file   size\ngröße     1\nsizes     2\n");
}

TEST(TerminalTest, WrapsAtBlanks) {
  EXPECT_EQ(Wrapped("matmul m=1024 n=1024 on cpu", 40), "matmul m=1024 n=1024 on cpu");
  EXPECT_EQ(Wrapped("matmul m=1024 n=1024 on cpu", 15, "  "), "matmul m=1024\n  n=1024 on cpu");
  EXPECT_EQ(Wrapped("größe größe größe", 11), "größe größe\ngröße");
  EXPECT_EQ(Wrapped("a verylongword b", 4), "a\nverylongword\nb");
  EXPECT_EQ(Wrapped("\nab cd ef\n  gh", 5, "-"), "\nab cd\n-ef\n  gh");
}

TEST(TerminalTest, ShortensAtBlanks) {
  EXPECT_EQ(Shortened("best 291.8 GFLOP/s", 40), "best 291.8 GFLOP/s");
  EXPECT_EQ(Shortened("best 291.8 GFLOP/s", 8), "best");
  EXPECT_EQ(Shortened("best 291.8 GFLOP/s", 10), "best 291.8");
  EXPECT_EQ(Shortened("größenordnung", 5), "größe");
  EXPECT_EQ(Shortened("1024/2048 trials", 7), "1024/") << "a part of a number is another number";
  EXPECT_EQ(Shortened("291.85", 4), "");
}

TEST(ExitCodeTest, CodesAreStable) {
  EXPECT_EQ(ExitCodeFor(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeFor(absl::ResourceExhaustedError("")), 1);
  EXPECT_EQ(ExitCodeFor(absl::DataLossError("")), 1);
  EXPECT_EQ(ExitCodeFor(absl::FailedPreconditionError("")), 1);
  EXPECT_EQ(ExitCodeFor(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(ExitCodeFor(absl::NotFoundError("")), 2);
  EXPECT_EQ(ExitCodeFor(NothingKnownError("")), 3);
  EXPECT_EQ(ExitCodeFor(absl::UnavailableError("")), 4);
  EXPECT_EQ(ExitCodeFor(absl::DeadlineExceededError("")), 4);
  EXPECT_EQ(ExitCodeFor(absl::CancelledError("")), 1) << "by the server";
  EXPECT_EQ(ExitCodeFor(InterruptedError("")), 130);
}

TEST(ExitCodeTest, StatusMayOverrideTheExitCode) {
  const absl::Status status = WithExitCode(absl::NotFoundError("gone"), kExitFailed);
  EXPECT_EQ(ExitCodeFor(status), 1);
  EXPECT_EQ(status.message(), "gone");
  EXPECT_EQ(ExitCodeFor(WithExitCode(absl::OkStatus(), kExitFailed)), 0);
}

// Both are the same file, as with 2>&1.
TEST(PrintWrappedTest, StandardErrorFollowsStandardOutput) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  std::fflush(stdout);
  const int output = dup(STDOUT_FILENO), errors = dup(STDERR_FILENO);
  dup2(fileno(file), STDOUT_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  PrintWrapped("first");
  PrintWrapped(stderr, "second");
  std::fflush(stdout);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  close(output);
  close(errors);
  char text[20] = {};
  std::rewind(file);
  EXPECT_EQ(std::fread(text, 1, sizeof(text) - 1, file), 13u);
  EXPECT_STREQ(text, "first\nsecond\n");
  std::fclose(file);
}

TEST(FormatTest, SaysThatAListIsCut) {
  EXPECT_EQ(MoreText(1, "record"), "only the newest 1 record is shown; --limit 0 shows all");
  EXPECT_EQ(MoreText(20, "job"), "only the newest 20 jobs are shown; --limit 0 shows all");
}

}  // namespace
}  // namespace hone::cli
