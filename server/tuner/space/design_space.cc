#include "server/tuner/space/design_space.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "server/tuner/space/chooser.h"
#include "server/tuner/space/transfer.h"

namespace hone::space {
namespace {

using schedule::Site;

constexpr int kRestarts = 64;                  // restarts before sampling gives up
constexpr int kAttemptsPerSite = 12;           // tries at a site before a restart
constexpr int kProbes = 12;                    // replays that must agree with the derivations
constexpr int kProbeTries = 200;               // maximum number of replays until one succeeds
constexpr int kFewProbes = 4, kFewTries = 24;  // the same if a space is one of many
constexpr int64_t kManyStages = 12;  // with fewer, spaces that are seldom legal are kept, too

// Takes decisions from a chooser, and checks the constraints as soon as each site is drawn.
class ConstrainedDecider final : public schedule::Decider {
 public:
  ConstrainedDecider(Chooser& chooser, absl::Span<const Constraint> constraints, int decisions,
                     Rng& rng)
      : chooser_(chooser), constraints_(constraints), drawn_(decisions, 0), rng_(rng) {
    chooser_.Begin(rng_);
  }

  absl::Status Decide(const Site& site, absl::Span<int64_t> values) override {
    const int index = index_++;
    const Constraint* broken = nullptr;
    for (int attempt = 0; attempt < kAttemptsPerSite; ++attempt) {
      chooser_.Choose(site, index, attempt, rng_, values);
      absl::c_copy(values, drawn_.begin() + site.begin);
      broken = Broken(site.begin, site.begin + site.count);
      if (broken == nullptr) return absl::OkStatus();
    }
    return absl::ResourceExhaustedError(absl::StrCat("constraint ", broken->name));
  }

 private:
  // Returns the violated constraint whose last decision is in [begin, end), or null.
  const Constraint* Broken(int begin, int end) const {
    for (const Constraint& constraint : constraints_) {
      if (constraint.decisions <= begin || constraint.decisions > end) continue;
      if (!constraint.holds(absl::MakeSpan(drawn_).first(constraint.decisions))) return &constraint;
    }
    return nullptr;
  }

  Chooser& chooser_;
  absl::Span<const Constraint> constraints_;
  std::vector<int64_t> drawn_;
  Rng& rng_;
  int index_ = 0;
};

// Replays given decisions; refuses illegal values.
class CheckingDecider final : public schedule::Decider {
 public:
  explicit CheckingDecider(absl::Span<const int64_t> decisions) : decisions_(decisions) {}
  absl::Status Decide(const Site& site, absl::Span<int64_t> values) override {
    std::copy_n(decisions_.begin() + site.begin, site.count, values.begin());
    if (!site.IsLegal(values)) {
      return absl::InvalidArgumentError(absl::StrCat("decision ", site.begin + 1, " is not legal"));
    }
    sites_.push_back(site);
    return absl::OkStatus();
  }
  std::vector<Site>& sites() { return sites_; }

 private:
  absl::Span<const int64_t> decisions_;
  std::vector<Site> sites_;
};

}  // namespace

DesignSpace::DesignSpace(std::string name, std::string text,
                         std::shared_ptr<const ir::Workload> workload, schedule::Trace trace)
    : name_(std::move(name)),
      text_(std::move(text)),
      digest_(DigestOf(text_).ToHex()),
      workload_(std::move(workload)),
      trace_(std::move(trace)) {}

absl::StatusOr<std::unique_ptr<DesignSpace>> DesignSpace::Create(
    std::string name, std::shared_ptr<const ir::Workload> workload, schedule::Trace trace,
    std::vector<Constraint> constraints, const Probing& probing) {
  std::string text = schedule::TraceFileText(*workload, trace);
  std::unique_ptr<DesignSpace> space(
      new DesignSpace(std::move(name), std::move(text), std::move(workload), std::move(trace)));
  space->constraints_ = std::move(constraints);
  HONE_RETURN_IF_ERROR(space->Probe(probing));
  return space;
}

absl::StatusOr<std::unique_ptr<DesignSpace>> DesignSpace::FromText(absl::string_view text,
                                                                   std::string name,
                                                                   std::vector<int64_t>* decided) {
  HONE_ASSIGN_OR_RETURN(schedule::TraceFile file, schedule::ParseTraceFile(text));
  std::string open = file.parsed.decisions.empty()
                         ? std::string(text)
                         : schedule::TraceFileText(file.workload, file.parsed.trace);
  std::unique_ptr<DesignSpace> space(
      new DesignSpace(std::move(name), std::move(open),
                      std::make_shared<const ir::Workload>(std::move(file.workload)),
                      std::move(file.parsed.trace)));
  if (decided != nullptr) *decided = std::move(file.parsed.decisions);
  HONE_RETURN_IF_ERROR(space->Probe());
  return space;
}

absl::StatusOr<std::unique_ptr<DesignSpace>> DesignSpace::OfOneCandidate(
    std::string name, std::shared_ptr<const ir::Workload> workload, schedule::Trace trace,
    std::vector<int64_t> decisions) {
  std::string text = schedule::TraceFileText(*workload, trace);
  std::unique_ptr<DesignSpace> space(
      new DesignSpace(std::move(name), std::move(text), std::move(workload), std::move(trace)));
  HONE_RETURN_IF_ERROR(space->CheckLength(decisions));
  CheckingDecider decider(decisions);
  const absl::Status replays =
      schedule::ReplayWith(space->workload_, space->trace_, decider).status();
  if (!replays.ok()) return space->DoesNotReplay(replays);
  space->only_ = std::move(decisions);
  return space;
}

absl::StatusOr<std::unique_ptr<DesignSpace>> DesignSpace::OfParts(
    std::string name, std::shared_ptr<const ir::Workload> workload, schedule::Trace trace,
    std::vector<std::shared_ptr<const DesignSpace>> parts, std::vector<int64_t> suggested) {
  std::string text = schedule::TraceFileText(*workload, trace);
  std::unique_ptr<DesignSpace> space(
      new DesignSpace(std::move(name), std::move(text), std::move(workload), std::move(trace)));
  int begin = 0;
  for (std::shared_ptr<const DesignSpace>& part : parts) {
    const int count = part->decision_count();
    space->parts_.push_back({std::move(part), begin});
    begin += count;
  }
  HONE_RETURN_IF_ERROR(space->CheckLength(suggested));
  space->suggested_ = std::move(suggested);
  return space;
}

absl::StatusOr<std::vector<int64_t>> DesignSpace::DrawParts(const DrawPart& draw) const {
  std::vector<int64_t> all;
  for (const Part& part : parts_) {
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> drawn, draw(part));
    all.insert(all.end(), drawn.begin(), drawn.end());
  }
  return all;
}

// Draws a few parts, and takes the others from the suggestion. If every part were drawn, one of
// them would nearly always be bad.
absl::StatusOr<std::vector<int64_t>> DesignSpace::SampleParts(Rng& rng) const {
  constexpr double kDrawn = 2;  // parts, in the mean, besides one
  const size_t certain = rng.Below(parts_.size());
  const double share = std::min(0.5, kDrawn / static_cast<double>(parts_.size()));
  return DrawParts([&](const Part& part) -> absl::StatusOr<std::vector<int64_t>> {
    if (&part == &parts_[certain] || rng.Uniform() < share) return part.space->Sample(rng);
    const auto begin = suggested_.begin() + part.begin;
    return std::vector<int64_t>(begin, begin + part.count());
  });
}

absl::StatusOr<std::vector<int64_t>> DesignSpace::MutatePart(absl::Span<const int64_t> decisions,
                                                             Rng& rng) const {
  absl::Status last =
      absl::ResourceExhaustedError(absl::StrCat("design space ", name_, " has no choice here"));
  // The parts are tried in turn, because some have no choice.
  const size_t first = rng.Below(parts_.size());
  for (size_t turn = 0; turn < parts_.size(); ++turn) {
    const Part& part = parts_[(first + turn) % parts_.size()];
    const absl::StatusOr<std::vector<int64_t>> moved =
        part.space->Mutate(decisions.subspan(part.begin, part.count()), rng);
    if (!moved.ok()) {
      last = moved.status();
      continue;
    }
    std::vector<int64_t> all(decisions.begin(), decisions.end());
    std::copy(moved->begin(), moved->end(), all.begin() + part.begin);
    return all;
  }
  return last;
}

absl::Status DesignSpace::DoesNotReplay(const absl::Status& why) const {
  return absl::InvalidArgumentError(
      absl::StrCat("design space ", name_, ": the trace does not replay: ", why.message()));
}

absl::Status DesignSpace::Probe(const Probing& probing) {
  const auto stages = std::max<int64_t>(1, static_cast<int64_t>(workload_->stages.size()));
  int tries = probing.thorough || stages <= kManyStages ? kProbeTries : kFewTries;
  if (probing.failures != nullptr) {
    tries = static_cast<int>(
        std::clamp<int64_t>(*probing.failures / stages, std::min(tries, kFewProbes), tries));
  }
  const int probes = probing.thorough ? kProbes : kFewProbes;
  // Seeded from the text, so that a space is always tried with the same decisions, in this order.
  const Digest digest = DigestOf(text_);
  absl::Status last;
  int agreed = 0;
  for (int probe = 0; probe < tries && agreed < probes; ++probe) {
    Rng rng(digest.high, digest.low, static_cast<uint64_t>(probe));
    SampleChooser chooser;
    if (derived_) {
      // Most vectors break a constraint, which is found without a replay.
      Rng same = rng;
      ConstrainedDecider decider(chooser, constraints_, trace_.decisions, same);
      if (last = Walk(decider).status(); !last.ok()) continue;
    }
    ConstrainedDecider decider(chooser, constraints_, trace_.decisions, rng);
    absl::StatusOr<schedule::Replayed> replayed = schedule::ReplayWith(workload_, trace_, decider);
    if (!replayed.ok()) {
      last = replayed.status();
      if (probing.failures != nullptr) *probing.failures -= stages;
      if (trace_.decisions == 0) break;
      continue;
    }
    if (agreed++ == 0) {
      sites_ = std::move(replayed->sites);
      extents_ = std::move(replayed->program.extents);
      derived_ = true;
      if (trace_.decisions == 0) break;
      continue;
    }
    for (size_t i = 0; i < sites_.size(); ++i) {
      const int64_t told =
          extents_.Evaluate({sites_[i].extent, sites_[i].derivation}, replayed->decisions);
      const bool same =
          told == replayed->sites[i].extent && sites_[i].rows == replayed->sites[i].rows;
      if (!same) derived_ = false;
    }
  }
  return agreed > 0 ? absl::OkStatus() : DoesNotReplay(last);
}

absl::Status DesignSpace::CheckLength(absl::Span<const int64_t> decisions) const {
  if (static_cast<int>(decisions.size()) == trace_.decisions) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "design space ", name_, " takes ", trace_.decisions, " decisions, not ", decisions.size()));
}

absl::StatusOr<std::vector<int64_t>> DesignSpace::Walk(schedule::Decider& decider) const {
  if (!derived_) {
    HONE_ASSIGN_OR_RETURN(schedule::Replayed replayed,
                          schedule::ReplayWith(workload_, trace_, decider));
    return std::move(replayed.decisions);
  }
  std::vector<int64_t> decisions(trace_.decisions, 0);
  for (const Site& site : sites_) {
    const absl::Span<int64_t> values = absl::MakeSpan(decisions).subspan(site.begin, site.count);
    if (site.derivation < 0) {
      HONE_RETURN_IF_ERROR(decider.Decide(site, values));
      continue;
    }
    Site now = site;
    now.extent = extents_.Evaluate({site.extent, site.derivation}, decisions);
    HONE_RETURN_IF_ERROR(decider.Decide(now, values));
  }
  return decisions;
}

absl::StatusOr<std::vector<int64_t>> DesignSpace::Draw(
    Chooser& chooser, Rng& rng,
    const std::function<bool(absl::Span<const int64_t>)>& accept) const {
  absl::Status last = absl::ResourceExhaustedError("found no vector other than the given one");
  for (int restart = 0; restart < kRestarts; ++restart) {
    ConstrainedDecider decider(chooser, constraints_, trace_.decisions, rng);
    absl::StatusOr<std::vector<int64_t>> drawn = Walk(decider);
    if (drawn.ok() && accept(*drawn)) return drawn;
    if (!drawn.ok()) last = drawn.status();
  }
  return absl::ResourceExhaustedError(absl::StrCat("design space ", name_,
                                                   ": no legal decisions in ", kRestarts,
                                                   " tries; the last: ", last.message()));
}

absl::StatusOr<std::vector<int64_t>> DesignSpace::Sample(Rng& rng) const {
  if (only_.has_value()) return *only_;
  if (!parts_.empty()) return SampleParts(rng);
  SampleChooser chooser;
  return Draw(chooser, rng, [](absl::Span<const int64_t>) { return true; });
}

absl::StatusOr<std::vector<int64_t>> DesignSpace::Mutate(absl::Span<const int64_t> decisions,
                                                         Rng& rng) const {
  if (!parts_.empty()) {
    HONE_RETURN_IF_ERROR(CheckLength(decisions));
    return MutatePart(decisions, rng);
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<Site> sites, Sites(decisions));
  MutateChooser chooser(sites, decisions);
  if (only_.has_value() || chooser.fixed()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("design space ", name_, " has no choice here"));
  }
  return Draw(chooser, rng, [&](absl::Span<const int64_t> drawn) { return drawn != decisions; });
}

absl::StatusOr<std::vector<int64_t>> DesignSpace::Crossover(absl::Span<const int64_t> a,
                                                            absl::Span<const int64_t> b,
                                                            Rng& rng) const {
  HONE_RETURN_IF_ERROR(CheckLength(a));
  HONE_RETURN_IF_ERROR(CheckLength(b));
  if (only_.has_value()) return *only_;
  if (!parts_.empty()) {
    // A part is good as a whole, so it is not mixed.
    return DrawParts([&](const Part& part) {
      const absl::Span<const int64_t> from =
          (rng.Below(2) == 0 ? a : b).subspan(part.begin, part.count());
      return std::vector<int64_t>(from.begin(), from.end());
    });
  }
  CrossoverChooser chooser(a, b);
  return Draw(chooser, rng, [](absl::Span<const int64_t>) { return true; });
}

absl::StatusOr<std::vector<int64_t>> DesignSpace::Nearest(absl::Span<const int64_t> wanted) const {
  HONE_RETURN_IF_ERROR(CheckLength(wanted));
  if (only_.has_value()) return *only_;
  if (!parts_.empty()) {
    return DrawParts([&](const Part& part) {
      return part.space->Nearest(wanted.subspan(part.begin, part.count()));
    });
  }
  NearestChooser chooser(wanted);
  Rng rng(/*key=*/0);
  return Draw(chooser, rng, [](absl::Span<const int64_t>) { return true; });
}

absl::StatusOr<ir::Program> DesignSpace::Replay(absl::Span<const int64_t> decisions) const {
  return schedule::Replay(workload_, trace_, decisions);
}

absl::StatusOr<std::vector<Site>> DesignSpace::Sites(absl::Span<const int64_t> decisions) const {
  HONE_RETURN_IF_ERROR(CheckLength(decisions));
  if (!parts_.empty()) {
    std::vector<Site> all;
    for (const Part& part : parts_) {
      HONE_ASSIGN_OR_RETURN(std::vector<Site> sites,
                            part.space->Sites(decisions.subspan(part.begin, part.count())));
      for (Site& site : sites) {
        site.begin += part.begin;
        site.derivation = -1;  // belongs to the part's program
        all.push_back(std::move(site));
      }
    }
    return all;
  }
  CheckingDecider decider(decisions);
  HONE_RETURN_IF_ERROR(Walk(decider).status());
  return std::move(decider.sites());
}

bool DesignSpace::IsLegal(absl::Span<const int64_t> decisions) const {
  if (only_.has_value()) return decisions == *only_;
  if (!parts_.empty()) {
    return absl::c_all_of(parts_, [&](const Part& part) {
      return part.space->IsLegal(decisions.subspan(part.begin, part.count()));
    });
  }
  if (!Sites(decisions).ok()) return false;
  return absl::c_all_of(constraints_, [&](const Constraint& constraint) {
    return constraint.holds(decisions.first(constraint.decisions));
  });
}

int DesignSpace::BrokenPrefix(absl::Span<const int64_t> decisions) const {
  for (const Part& part : parts_) {
    const int broken = part.space->BrokenPrefix(decisions.subspan(part.begin, part.count()));
    if (broken > 0) return part.begin + broken;
  }
  int shortest = 0;
  for (const Constraint& constraint : constraints_) {
    if (shortest > 0 && constraint.decisions >= shortest) continue;
    if (!constraint.holds(decisions.first(constraint.decisions))) shortest = constraint.decisions;
  }
  return shortest;
}

}  // namespace hone::space
