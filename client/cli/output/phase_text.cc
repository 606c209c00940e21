#include "client/cli/output/phase_text.h"

#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"
#include "common/base/counted.h"

namespace hone::cli {
namespace {

using v1::JobPhase;

constexpr char kTasksConfirmed[] = "$0 of $1 tasks confirmed";

// How a kind of phase is shown. $0 and $1 are JobPhase::done and whole, $2 is the round, $3 the
// detail, and $4 is $0 with its noun. A detail that the words do not contain follows them.
struct PhaseWords {
  JobPhase::Kind kind;
  PhaseRole role;
  absl::string_view words;
};

constexpr PhaseWords kPhases[] = {
    {JobPhase::KIND_UNSPECIFIED, PhaseRole::kSearches, ""},
    {JobPhase::KIND_MAKING_SPACES, PhaseRole::kPrepares, "making the design spaces"},
    {JobPhase::KIND_RESTORING, PhaseRole::kPrepares, "restoring the searches of its tasks"},
    {JobPhase::KIND_WAITING_FOR_TURN, PhaseRole::kWaits, "waiting for its turn among the tasks"},
    {JobPhase::KIND_WAITING_FOR_RESULT, PhaseRole::kWaits, "waiting for the first result"},
    {JobPhase::KIND_WAITING_FOR_CAPACITY, PhaseRole::kWaits, "waiting for free capacity"},
    {JobPhase::KIND_MEASURING_FIRST_AGAIN, PhaseRole::kSearches, "measuring the first best again"},
    {JobPhase::KIND_MEASURING_WITHOUT, PhaseRole::kSearches, "measuring without $4"},
    {JobPhase::KIND_FINISHING, PhaseRole::kFinishes, "finishing the measurements in progress"},
    {JobPhase::KIND_CONFIRMING, PhaseRole::kConfirms, "confirming the finalists"},
    {JobPhase::KIND_BUILDING_STORED, PhaseRole::kConfirms, "building the stored candidates again"},
    {JobPhase::KIND_ROUND, PhaseRole::kConfirms, "round $2: $0 of $1 measured"},
    {JobPhase::KIND_WAITING_FOR_QUIET, PhaseRole::kWaits, "waiting for a quieter machine"},
    {JobPhase::KIND_TASKS_CONFIRMED, PhaseRole::kConfirms, kTasksConfirmed},
    {JobPhase::KIND_WAITING_FOR_ARTIFACT, PhaseRole::kWaits, "waiting for the winner's artifact"},
    {JobPhase::KIND_CHECKING_WINNER, PhaseRole::kConfirms, "worker $3 checks the winner"},
    {JobPhase::KIND_WAITING_FOR_KERNEL, PhaseRole::kWaits, "waiting for the kernel"},
    {JobPhase::KIND_WAITING_FOR_PROPOSALS, PhaseRole::kWaits,
     "waiting for proposals of other programs"},
    {JobPhase::KIND_WAITING_FOR_SPACE, PhaseRole::kWaits, "waiting for space on the server's disk"},
    {JobPhase::KIND_WAITING_FOR_WORKER, PhaseRole::kWaits, "waiting for a worker"},
    {JobPhase::KIND_NO_SERVER, PhaseRole::kWaits, "no server since $3"},
};

// What a newer server calls it.
constexpr PhaseWords kUnknown = {JobPhase::KIND_UNSPECIFIED, PhaseRole::kFinishes, "$3"};

const PhaseWords& WordsOf(const JobPhase& phase) {
  const auto* const found =
      absl::c_find_if(kPhases, [&](const PhaseWords& known) { return known.kind == phase.kind(); });
  return found == std::end(kPhases) ? kUnknown : *found;
}

std::string Fill(absl::string_view words, const JobPhase& phase) {
  return absl::Substitute(words, phase.done(), phase.whole(), phase.round(), phase.detail(),
                          Counted(phase.done(), "candidate"));
}

}  // namespace

PhaseRole RoleOf(const v1::JobPhase& phase) { return WordsOf(phase).role; }

PhaseTexts TextsOf(const v1::JobPhase& phase) {
  const absl::string_view words = WordsOf(phase).words;
  const std::string end = phase.cancelling() ? " (being cancelled)" : "";
  const std::string brief = Fill(words, phase);
  if (phase.detail().empty() || absl::StrContains(words, "$3")) return {brief + end, brief + end};
  const bool counts = phase.kind() == JobPhase::KIND_WAITING_FOR_QUIET && phase.whole() > 0;
  const std::string tasks = counts ? absl::StrCat(Fill(kTasksConfirmed, phase), "; ") : "";
  return {absl::StrCat(brief, ": ", tasks, phase.detail(), end), brief};
}

}  // namespace hone::cli
