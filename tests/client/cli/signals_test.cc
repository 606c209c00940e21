// How `hone` ends by a signal: a command with --json always prints one object.

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/integration/process.h"

namespace hone::cli {
namespace {

using ::testing::IsEmpty;

using integration::Process;
using integration::Result;
using integration::TemporaryFolder;

class SignalsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(mkfifo(list_.c_str(), 0600), 0); }
  // Waits until the program handles a signal, the last of those that it replaces. It then waits for
  // the list, which no process writes.
  static void WaitUntilItHandles(const Process& process, int last_signal) {
    ASSERT_TRUE(integration::Eventually([&] {
      std::string command;
      std::getline(std::ifstream(absl::StrCat("/proc/", process.pid(), "/comm")), command);
      std::string status;
      for (std::ifstream file(absl::StrCat("/proc/", process.pid(), "/status"));
           std::getline(file, status);) {
        if (!status.starts_with("SigCgt:")) continue;
        const uint64_t handled = std::stoull(status.substr(7), nullptr, 16);
        return command == "hone" && (handled >> (last_signal - 1) & 1) != 0;
      }
      return false;
    }));
  }

  TemporaryFolder folder_;
  const std::string list_ = folder_ / "list";
  const integration::Variables home_ = {{"XDG_DATA_HOME", folder_.path()}};
};

TEST_F(SignalsTest, SignalThatEndsTheProgramIsPrintedAsJson) {
  for (const int signal_number : {SIGTERM, SIGINT, SIGHUP, SIGSEGV, SIGABRT}) {
    Process tune({"hone", "tune", "--file", list_, "--json"}, home_);
    WaitUntilItHandles(tune, SIGSYS);
    tune.Signal(signal_number);
    EXPECT_EQ(tune.Wait(), 128 + signal_number);
    const auto json = nlohmann::json::parse(tune.Output(), nullptr, false);
    ASSERT_TRUE(json.is_object()) << tune.Output();
    EXPECT_EQ(json["error"], absl::StrFormat("hone was ended by signal %02d", signal_number));
  }
}

TEST_F(SignalsTest, WithoutJsonNothingIsPrinted) {
  Process tune({"hone", "tune", "--file", list_}, home_);
  WaitUntilItHandles(tune, SIGPIPE);
  tune.Signal(SIGTERM);
  EXPECT_EQ(tune.Wait(), 128 + SIGTERM);
  EXPECT_THAT(tune.Output(), IsEmpty());
}

TEST_F(SignalsTest, AnInterruptedExportLeavesNothing) {
  const std::string socket_path = folder_ / "silent.sock", output = folder_ / "records.jsonl";
  // A server that accepts the connection and never answers.
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {.sun_family = AF_UNIX};
  socket_path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  for (const int signal_number : {SIGINT, SIGTERM}) {
    Process out({"hone", "records", "export", "-o", output, "--server", "unix:" + socket_path},
                home_);
    ASSERT_TRUE(integration::Eventually([&] { return std::filesystem::exists(output + ".part"); }))
        << out.Errors();
    out.Signal(signal_number);
    EXPECT_EQ(out.Wait(), 128 + signal_number);
    EXPECT_FALSE(std::filesystem::exists(output + ".part"));
    EXPECT_FALSE(std::filesystem::exists(output));
  }
  close(listener);
}

// The error message is written to a pipe that nobody reads any more.
TEST_F(SignalsTest, EndOfTheReaderOfErrorsDoesNotEndTheProgram) {
  const std::string output = folder_ / "output";
  const Result shell = integration::RunProgram(
      {"/bin/sh", "-c",
       absl::StrCat("{ sleep 1; ", integration::BinDir(), "/hone tune nonsense --json >", output,
                    "; } 2>&1 | true")},
      home_);
  EXPECT_EQ(shell.code, 0) << shell.errors;
  ASSERT_TRUE(integration::Eventually([&] {
    std::string text;
    std::getline(std::ifstream(output), text);
    return nlohmann::json::parse(text, nullptr, false).is_object();
  })) << "the object is printed although the error message could not be";
}

TEST_F(SignalsTest, EndOfTheReaderOfTheOutputEndsTheProgramQuietly) {
  const std::string errors = folder_ / "errors";
  const Result shell =
      integration::RunProgram({"/bin/sh", "-c",
                               absl::StrCat("{ sleep 1; ", integration::BinDir(),
                                            "/hone operators --json 2>", errors, "; } | true")},
                              home_);
  EXPECT_EQ(shell.code, 0);
  std::string text;
  std::getline(std::ifstream(errors), text);
  EXPECT_THAT(text, IsEmpty());
}

}  // namespace
}  // namespace hone::cli
