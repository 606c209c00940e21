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

class SignalsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(mkfifo(list_.c_str(), 0600), 0); }
  void TearDown() override {
    if (listener_ >= 0) close(listener_);
    for (const int fd : connections_) close(fd);
  }
  // Returns the address of a server that accepts connections and never answers.
  std::string SilentServer() {
    const std::string path = folder_ / "silent.sock";
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    sockaddr_un address = {.sun_family = AF_UNIX};
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    return "unix:" + path;
  }
  // Accepts a connection, if there is one.
  bool Accepted() {
    const int fd = accept(listener_, nullptr, nullptr);
    if (fd >= 0) connections_.push_back(fd);
    return fd >= 0;
  }
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
  int listener_ = -1;
  std::vector<int> connections_;
  const integration::Variables home_ = {{"XDG_DATA_HOME", folder_.path()}};
};

TEST_F(SignalsTest, SignalThatEndsTheProgramIsPrintedAsJson) {
  for (const int signal_number : {SIGTERM, SIGINT, SIGHUP, SIGSEGV, SIGABRT}) {
    Process tune({"hone", "tune", "--file", list_, "--json"}, home_);
    WaitUntilItHandles(tune, SIGSYS);
    tune.Signal(signal_number);
    EXPECT_EQ(tune.Wait(), 128 + signal_number);
    EXPECT_EQ(tune.EndedBySignal(), signal_number != SIGINT);
    const auto json = nlohmann::json::parse(tune.Output(), nullptr, false);
    ASSERT_TRUE(json.is_object()) << tune.Output();
    EXPECT_EQ(json["error"], absl::StrFormat("hone was ended by signal %02d", signal_number));
  }
}

TEST_F(SignalsTest, WithoutJsonNothingIsPrinted) {
  for (const int signal_number : {SIGTERM, SIGINT}) {
    Process tune({"hone", "tune", "--file", list_}, home_);
    WaitUntilItHandles(tune, SIGINT);
    tune.Signal(signal_number);
    EXPECT_EQ(tune.Wait(), 128 + signal_number);
    EXPECT_EQ(tune.EndedBySignal(), signal_number != SIGINT);
    EXPECT_THAT(tune.Output(), IsEmpty());
  }
}

// Ctrl-C has the same exit code in every command, whatever it waits for.
TEST_F(SignalsTest, CtrlCExitsWith130InEveryCommand) {
  const std::string server = SilentServer();
  const integration::Words matmul = {"matmul", "m=4", "n=4", "k=4"};
  const std::string input = folder_ / "4x4.npy";
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4), }";
  header.resize(117, ' ');
  std::ofstream(input) << absl::string_view("\x93NUMPY\x01\x00\x76\x00", 10) << header << "\n"
                       << std::string(64, '\0');
  for (const integration::Words& words : std::vector<integration::Words>{
           {"best"},
           {"tune"},
           {"export", "-o", folder_ / "out"},
           {"compare"},
           {"run", "--in", input, "--in", input, "--out", folder_ / "c.npy"},
           {"show"},
           {"revalidate"},
           {"pin"},
           {"jobs", "list"},
           {"jobs", "watch", "7"},
           {"jobs", "show", "7"},
           {"records", "query"},
           {"workers", "list"},
           {"models"}}) {
    SCOPED_TRACE(words.back());
    const bool of_operator =
        (words.size() == 1 && words[0] != "models") || words[0] == "export" || words[0] == "run";
    integration::Words all = integration::With({"hone", "--server", server}, words);
    if (of_operator) all = integration::With(all, matmul);
    Process hone(all, home_);
    ASSERT_TRUE(integration::Eventually([&] { return Accepted(); }, absl::Seconds(30)))
        << hone.Errors();
    hone.Signal(SIGINT);
    EXPECT_EQ(hone.Wait(absl::Seconds(20)), 130) << hone.Errors();
    EXPECT_FALSE(hone.EndedBySignal());
  }
}

TEST_F(SignalsTest, AnInterruptedExportLeavesNothing) {
  const std::string server = SilentServer(), output = folder_ / "records.jsonl";
  for (const int signal_number : {SIGINT, SIGTERM}) {
    Process out({"hone", "records", "export", "-o", output, "--server", server}, home_);
    ASSERT_TRUE(integration::Eventually([&] { return std::filesystem::exists(output + ".part"); }))
        << out.Errors();
    out.Signal(signal_number);
    EXPECT_EQ(out.Wait(), 128 + signal_number);
    EXPECT_EQ(out.EndedBySignal(), signal_number != SIGINT);
    EXPECT_FALSE(std::filesystem::exists(output + ".part"));
    EXPECT_FALSE(std::filesystem::exists(output));
  }
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
