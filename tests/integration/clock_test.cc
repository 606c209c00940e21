// Machines whose clock is wrong: with TLS, no connection can be made, because certificates seem
// expired or not yet valid. Each program names the clock, and a worker waits until it is set.

#include <signal.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/hone_home.h"

namespace hone::integration {
namespace {

using ::testing::ContainsRegex;

const absl::Duration kYears = absl::Hours(24 * 365) * 20;

class ClockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result made = RunProgram({"hone-server", "init", folder_ / "team", "--host", "localhost",
                                    "--port", absl::StrCat(port_), "--worker", "pi-07"});
    ASSERT_EQ(made.code, 0) << made.errors;
    SetClock(absl::ZeroDuration());
    Serve();
  }
  void Serve() {
    server_ =
        std::make_unique<Process>(Words{"hone-server", "--config", folder_ / "team/hone.toml"});
    ASSERT_TRUE(Eventually([&] { return absl::StrContains(server_->Errors(), "serving on"); }))
        << server_->Errors();
  }
  // Sets the clock of the programs that are started with Shifted().
  void SetClock(absl::Duration ahead) {
    const int64_t nanoseconds = absl::ToInt64Nanoseconds(ahead);
    // Programs have mapped the file, so it is not replaced.
    std::fstream file(clock_, std::ios::in | std::ios::out | std::ios::binary);
    if (!file.is_open()) file.open(clock_, std::ios::out | std::ios::binary);
    file.write(reinterpret_cast<const char*>(&nanoseconds), sizeof(nanoseconds));
  }
  Variables Shifted() const {
    return {{"LD_PRELOAD", CLOCK_SHIFT},
            {"CLOCK_SHIFT_FILE", clock_},
            {"XDG_CONFIG_HOME", folder_.path()}};
  }
  Result Hone(const Words& words) const {
    return RunProgram(With({"hone"}, words), Shifted(), absl::Seconds(60));
  }

  TemporaryFolder folder_;
  const int port_ = FreePort();
  const std::string clock_ = folder_ / "clock";
  std::unique_ptr<Process> server_;
};

TEST_F(ClockTest, AClientNamesTheClock) {
  const Words certificate = {"--config", folder_ / "team/client.conf"};
  const Words token = {"--server",     absl::StrCat("localhost:", port_),
                       "--ca",         folder_ / "team/ca.pem",
                       "--token-file", folder_ / "team/client.token"};
  for (const Words& options : {certificate, token}) {
    SetClock(absl::ZeroDuration());
    const Result right = Hone(With({"jobs", "list"}, options));
    EXPECT_EQ(right.code, 0) << right.errors;
    for (const auto& [ahead, problem] :
         {std::pair{-kYears, "is not valid before 2"}, std::pair{kYears, "has expired on 2"}}) {
      SetClock(ahead);
      const Result wrong = Hone(With({"jobs", "list"}, options));
      EXPECT_EQ(wrong.code, 4) << wrong.errors;
      EXPECT_THAT(wrong.errors,
                  ContainsRegex(absl::StrCat("localhost:", port_, ".*", problem,
                                             ".*this machine's clock says 2.*set the clock")));
      const Result doctor = Hone(With({"doctor"}, options));
      EXPECT_EQ(doctor.code, 1) << doctor.output;
      EXPECT_THAT(doctor.output, ContainsRegex("this machine's clock says 2"));
      const Result local = Hone(With({"operators"}, options));
      EXPECT_EQ(local.code, 0) << local.errors;
    }
  }
}

TEST_F(ClockTest, AWorkerWaitsUntilTheClockIsSet) {
  SetClock(-kYears);
  Process worker({"hone-worker", "--config", folder_ / "team/worker-pi-07.conf", "--state-dir",
                  folder_ / "state", "--build-only"},
                 Shifted());
  const auto logs = [&](const std::string& text) {
    return Eventually([&] { return absl::StrContains(worker.Errors(), text); }, absl::Seconds(60));
  };
  EXPECT_TRUE(logs("is not valid before 2")) << worker.Errors();
  EXPECT_TRUE(logs("connecting to")) << worker.Errors();
  EXPECT_TRUE(worker.Running()) << worker.Errors();
  SetClock(absl::ZeroDuration());
  EXPECT_TRUE(logs("registered with")) << worker.Errors();

  // The connection that it has is not affected. The next one is.
  SetClock(kYears);
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait(absl::Seconds(20)), 0) << server_->Errors();
  Serve();
  EXPECT_TRUE(
      logs("the certificate of the server's authority (hone.authority.localhost) has expired on"))
      << worker.Errors();
  SetClock(absl::ZeroDuration());
  EXPECT_TRUE(logs("the server answers again")) << worker.Errors();
}

}  // namespace
}  // namespace hone::integration
