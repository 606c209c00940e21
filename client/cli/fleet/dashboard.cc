// hone dashboard: opens the web page of the server.

#include <spawn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/command.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/signals.h"
#include "client/cli/output/terminal.h"
#include "client/cli/session.h"
#include "client/connection/private_paths.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"

namespace hone::cli {
namespace {

constexpr absl::Duration kCheckInterval = absl::Milliseconds(200);

struct DashboardOptions {
  bool may_act = false;
  bool no_browser = false;
};

// Shows the link in the browser of the desktop. Other users can read the arguments of programs, so
// the link, which lets anyone in, is passed in a file of this user. Does nothing without a desktop.
void ShowInBrowser(const std::string& url) {
  if (!isatty(STDOUT_FILENO)) return;
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return;
  const absl::StatusOr<std::string> folder = client::DefaultDataDir();
  if (!folder.ok()) return;
  std::error_code error;
  std::filesystem::create_directories(*folder, error);
  std::string file = absl::StrCat(*folder, "/dashboard.html");
  const std::string html =
      absl::StrCat("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=", url, "\">\n");
  if (!WriteFileAtomically(file, html, Durability::kProcess, 0600).ok()) return;
  std::string program = "xdg-open";
  char* const arguments[] = {program.data(), file.data(), nullptr};
  pid_t pid = 0;
  (void)posix_spawnp(&pid, program.c_str(), nullptr, nullptr, arguments, environ);
}

// How to reach a page that only the server's own machine can open; "" if that is this machine.
std::string HowToForward(const std::string& server, const std::string& url) {
  const absl::StatusOr<rpc::Address> address = rpc::Address::Parse(server);
  if (!address.ok() || address->IsLocal()) return "";
  constexpr absl::string_view kScheme = "http://";
  const std::string authority =
      url.substr(kScheme.size(), url.find('/', kScheme.size()) - kScheme.size());
  const absl::StatusOr<rpc::Address> page = rpc::Address::Parse(authority);
  if (!page.ok() || !page->IsLocal()) return "";
  return absl::StrCat("Only the server's machine can open it. Forward its port first: ssh -L ",
                      page->port, ":", page->ToText(), " ", address->host);
}

// Keeps the private server running until Ctrl-C.
absl::Status WaitForInterrupt(Session& session) {
  const InterruptCounter interrupts;
  while (interrupts.count() == 0) {
    HONE_RETURN_IF_ERROR(session.CheckPrivate());
    absl::SleepFor(kCheckInterval);
  }
  return absl::OkStatus();
}

absl::Status OpenDashboard(const Globals& globals, const DashboardOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  v1::OpenDashboardRequest request;
  request.set_may_act(options.may_act);
  HONE_ASSIGN_OR_RETURN(const v1::OpenDashboardResponse opened,
                        session->connection().OpenDashboard(request));
  const bool is_private = session->private_server() != nullptr;
  if (globals.json) {
    HONE_RETURN_IF_ERROR(
        PrintJson({{"url", opened.url()}, {"expires_unix_ms", opened.expires_unix_ms()}}));
  } else {
    std::printf("%s\n", opened.url().c_str());
    PrintWrapped("This link opens one session of the page, within a minute; do not share it. " +
                 HowToForward(globals.server, opened.url()) +
                 (is_private
                      ? "Ctrl-C ends the page, and the private server if nothing else uses it."
                      : ""));
  }
  std::fflush(stdout);
  if (!options.no_browser && !globals.json) ShowInBrowser(opened.url());
  return is_private ? WaitForInterrupt(*session) : absl::OkStatus();
}

}  // namespace

void AddDashboard(Command& app, Globals& globals) {
  Command& command = app.AddCommand("dashboard", "Open the web page of the server");
  auto options = std::make_shared<DashboardOptions>();
  command.AddFlag("--act", options->may_act,
                  "Let the page also do what you may do, such as cancel jobs and drain workers; "
                  "otherwise it only shows");
  command.AddFlag("--no-browser", options->no_browser, "Only print the link, and start no browser");
  CompleteWithoutTarget(command, globals,
                        "The page shows workers, jobs, records, kernels and what the server has "
                        "learned. A server for "
                        "a team needs the option --web-listen.\n\n"
                        "Examples:\n"
                        "  hone dashboard\n"
                        "  hone dashboard --act --server hone.internal:7070",
                        [&globals, options] { return OpenDashboard(globals, *options); });
}

}  // namespace hone::cli
