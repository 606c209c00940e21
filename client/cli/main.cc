#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/signals.h"
#include "client/cli/output/terminal.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"
#include "common/rpc/grpc_log.h"

namespace hone::cli {
namespace {

// The end of the help, with the names of the operators.
std::string Footer() {
  std::string text = "Operators (hone operators describes them):\n ";
  size_t column = 1;
  for (const op::OperatorInfo& info : op::Operators()) {
    if (column + 1 + info.name.size() > 80) {
      absl::StrAppend(&text, "\n ");
      column = 1;
    }
    absl::StrAppend(&text, " ", info.name);
    column += 1 + info.name.size();
  }
  absl::StrAppend(&text,
                  "\n\nExamples:\n"
                  "  hone tune matmul m=1024 n=1024 k=1024 --trials 256\n"
                  "  hone best matmul m=1024 n=1024 k=1024\n"
                  "  hone export matmul m=1024 n=1024 k=1024 -o kernel/\n"
                  "  hone operators conv2d\n"
                  "  hone doctor\n"
                  "  hone help connection\n\n"
                  "Exit codes: ",
                  absl::StrJoin(ExitCodes(), ", ", [](std::string* out, const ExitCodeInfo& info) {
                    absl::StrAppend(out, info.code, " ", info.meaning);
                  }));
  return text;
}

// Opens descriptors 0 to 2 if they are closed. Otherwise the next file or socket would get one of
// these numbers, and then our output. They are opened for the opposite direction, so that using
// them is an error.
void FillStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) std::_Exit(kExitFailed);
  }
}

// Flushes standard output and returns the exit code, or ends the program if SIGTERM interrupted it.
int Finish(int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    if (code == kExitInterrupted) EndByCountedSigterm();
    return code;
  }
  absl::FPrintF(stderr, "hone: standard output could not be written%s%s\n", errno == 0 ? "" : ": ",
                errno == 0 ? "" : std::strerror(errno));
  return code == kExitOk ? kExitFailed : code;
}

absl::Status ParseAndRun(Command& app, Globals& globals, int argc, char** argv,
                         const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments) {
    // The parser would use the next word as the value.
    if (absl::StartsWith(word, "--") && word.find('=') == word.size() - 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(word, " is empty; give it a value, or omit the option"));
    }
  }
  const absl::Status parsed = app.Parse(argc, argv);
  if (absl::IsCancelled(parsed)) return absl::OkStatus();  // --help, --version
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(ExplainCommandLine(app, arguments, parsed.message()));
  }
  HONE_RETURN_IF_ERROR(CompleteGlobals(globals));
  const absl::Status status = app.Run();
  const bool is_of_connection = absl::IsUnavailable(status) || absl::IsUnauthenticated(status) ||
                                absl::IsPermissionDenied(status);
  return is_of_connection ? NameIgnoredConfig(globals, status) : status;
}

int Main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  HandleSignals(absl::c_linear_search(arguments, "--json"));
  FillStandardDescriptors();
  rpc::TakeGrpcLog(rpc::GrpcLog::kCaller);
  Globals globals;
  Command app("Hone finds fast kernels for tensor operators by measuring them, and keeps the best.",
              "hone");
  app.RequireCommand(1, 1);
  app.Footer(Footer());
  app.AddVersion("hone " HONE_VERSION);
  AddGlobals(app, globals);
  for (const auto add :
       {AddTune,         AddBest,   AddCompare, AddExplain,   AddDiff,       AddExport,
        AddRun,          AddCheck,  AddLock,    AddShow,      AddSchedule,   AddRevalidate,
        AddForget,       AddPin,    AddRecords, AddBundle,    AddDataset,    AddWorkers,
        AddWorkerConfig, AddJobs,   AddModels,  AddOperators, AddPrimitives, AddFeatures,
        AddDashboard,    AddDoctor, AddHelp,    AddCompletion}) {
    add(app, globals);
  }
  if (PrintCompletions(app, arguments)) return Finish(kExitOk);
  const absl::Status status = ParseAndRun(app, globals, argc, argv, arguments);
  if (!status.ok()) {
    PrintWrapped(stderr, absl::StrCat("hone: ", status.message()));
    // The parser may have stopped before it read --json.
    const bool json = globals.json || absl::c_linear_search(arguments, "--json");
    if (json && !IsPrintedAsJson(status)) (void)PrintJson(Json::object(), status);
  }
  return Finish(ExitCodeFor(status));
}

}  // namespace
}  // namespace hone::cli

int main(int argc, char** argv) { return hone::cli::Main(argc, argv); }
