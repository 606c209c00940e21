#include "server/research/lab/tune_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/program.h"
#include "common/base/status_macros.h"

namespace hone::lab {

absl::StatusOr<std::string> RunTune(const TuneProcess& process) {
  ProgramRun run{.words = {process.program_folder + "/hone", "tune"},
                 .environment = {{"XDG_DATA_HOME", process.data_folder}}};
  run.words.insert(run.words.end(), process.words.begin(), process.words.end());
  run.words.push_back("--json");
  size_t passed_on = 0;
  bool interrupted = false;
  run.on_errors = [&](pid_t pid, absl::string_view errors) {
    fwrite(errors.data() + passed_on, 1, errors.size() - passed_on, stderr);
    passed_on = errors.size();
    if (interrupted || process.interrupt_at.empty() ||
        !absl::StrContains(errors, process.interrupt_at)) {
      return;
    }
    interrupted = true;
    kill(pid, SIGINT);
    usleep(50000);  // two signals in quick succession would count as one
    kill(pid, SIGINT);
  };
  HONE_ASSIGN_OR_RETURN(const ProgramResult result, RunProgram(run));
  if (interrupted || result.ok()) return result.output;
  const int status = result.wait_status;
  return absl::AbortedError(absl::StrCat(absl::StrJoin(run.words, " "), ": ",
                                         WIFEXITED(status)
                                             ? absl::StrCat("exit code ", WEXITSTATUS(status))
                                             : absl::StrCat("ended by signal ", WTERMSIG(status))));
}

}  // namespace hone::lab
