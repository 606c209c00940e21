// Replaying the same events gives the same candidates.

#include "server/job/search/task_search.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_task_environment.h"
#include "tests/status.h"

namespace hone::job {
namespace {

constexpr char kWorkload[] = "fake op 12";

class TaskSearchTest : public ::testing::Test {
 protected:
  TaskSearchTest() : spaces_(*environment_.Open(kWorkload, "", "", 0)) {}

  std::unique_ptr<TaskSearch> Make(std::vector<search::Measured> prior = {}) {
    return *TaskSearch::Create(&environment_, spaces_.get(),
                               {.strategy = "picky", .cost_model = "nearest", .seed = 3},
                               std::move(prior));
  }
  // Drives a search as a job does. A training finishes some results after it has started.
  std::vector<store::JobEvent> Drive(TaskSearch& search, int batches) {
    std::vector<store::JobEvent> log;
    std::shared_ptr<const cost_model::CostModel> late;
    for (int batch = 0; batch < batches; ++batch) {
      const ProposeEvent propose = *search.Propose(10);
      log.push_back(Encode("job", propose));
      for (const Proposal& proposal : propose.proposals) {
        const search::Measured measured{proposal.candidate, record::Outcome::kOk,
                                        FakeLatency(proposal.candidate.decisions)};
        search.Tell(proposal.trial, measured);
        // The results are split over several Tell events.
        if (proposal.trial % 3 == 0) log.push_back(Encode("job", *search.TakeTells()));
      }
      if (const auto rest = search.TakeTells()) log.push_back(Encode("job", *rest));
      if (late != nullptr) search.AdoptModel(std::exchange(late, nullptr));
      if (search.TrainingIsDue()) {
        late = *search.trainer()->Train(search.TakeForTraining());
      }
    }
    return log;
  }

  FakeTaskEnvironment environment_;
  std::unique_ptr<TaskSpaces> spaces_;
};

TEST_F(TaskSearchTest, ReplayedEventsReproduceEveryCandidate) {
  auto first = Make();
  const std::vector<store::JobEvent> log = Drive(*first, 12);
  int64_t model_version = 0;  // of the last Propose
  for (const store::JobEvent& event : log) {
    if (event.kind == kProposeKind) model_version = DecodePropose(event)->model_version;
  }
  EXPECT_GE(model_version, 2) << "the test needs a search with a learning model";

  auto second = Make();
  ASSERT_THAT(second->Replay(log, spaces_->default_schedule()), IsOk());
  EXPECT_EQ(second->trials(), first->trials());
  // The replayed search continues like the first one once both have the same model.
  if (first->TrainingIsDue()) {
    first->AdoptModel(*first->trainer()->Train(first->TakeForTraining()));
    second->AdoptModel(*second->trainer()->Train(second->TakeForTraining()));
  }
  const ProposeEvent next = *first->Propose(10), replayed = *second->Propose(10);
  EXPECT_EQ(next.proposals, replayed.proposals);
  EXPECT_EQ(next.number, replayed.number);
}

TEST_F(TaskSearchTest, RestartedSearchRepeatsNoCandidate) {
  auto first = Make();
  std::set<std::vector<int64_t>> drawn;  // the candidates of a strategy without results
  int64_t events = 0, trials = 1;
  for (int batch = 0; batch < 6; ++batch) {
    const ProposeEvent propose = *first->Propose(1);
    events = propose.number + 1;
    drawn.insert(propose.proposals.at(0).candidate.decisions);
    first->Tell(trials++, {spaces_->default_schedule(),
                           record::Outcome::kCrash});  // not in the searched space
    if (batch % 3 == 2) events = first->TakeTells()->number + 1;
  }
  const TaskSearchOptions anew{.strategy = "picky",
                               .cost_model = "nearest",
                               .seed = 3,
                               .first_event = events,
                               .first_trial = trials};
  auto second = *TaskSearch::Create(&environment_, spaces_.get(), anew, {});
  for (int batch = 0; batch < 6; ++batch) {
    const ProposeEvent propose = *second->Propose(1);
    EXPECT_FALSE(drawn.contains(propose.proposals.at(0).candidate.decisions)) << batch;
  }
}

TEST_F(TaskSearchTest, ReplayRestoresTheModelVersion) {
  // Replay must restore the model version: a model trained at a different point gives other
  // candidates.
  auto first = Make();
  std::vector<store::JobEvent> log = Drive(*first, 6);
  bool changed = false;
  for (store::JobEvent& event : log) {
    if (event.kind != kProposeKind) continue;
    ProposeEvent propose = *DecodePropose(event);
    if (propose.model_tells == 0 || changed) continue;
    propose.model_tells = 1;
    event = Encode("job", propose);
    changed = true;
  }
  ASSERT_TRUE(changed);
  EXPECT_THAT(Make()->Replay(log, spaces_->default_schedule()),
              StatusIs(absl::StatusCode::kAborted));
}

TEST_F(TaskSearchTest, ReplayDetectsAChangedProgram) {
  auto first = Make();
  const std::vector<store::JobEvent> log = Drive(*first, 3);
  environment_.ChangeStrategies();
  spaces_ = *environment_.Open(kWorkload, "", "", 0);
  EXPECT_THAT(Make()->Replay(log, spaces_->default_schedule()),
              StatusIs(absl::StatusCode::kAborted));
}

TEST_F(TaskSearchTest, KnownAndIllegalCandidatesGetNoTrial) {
  auto probe = Make();
  const ProposeEvent expected = *probe->Propose(4);
  // The search knows this candidate from earlier records, but the strategy forgets what it was
  // told.
  class Forgetful final : public TaskSpaces {
   public:
    explicit Forgetful(const TaskSpaces* real) : real_(real) {}
    const std::vector<SpaceInfo>& spaces() const override { return real_->spaces(); }
    record::Candidate default_schedule() const override { return real_->default_schedule(); }
    std::optional<record::Candidate> only_candidate() const override { return std::nullopt; }
    bool IsSearched(const record::Candidate&) const override { return false; }
    bool IsLegal(const record::Candidate& candidate) const override {
      return candidate.decisions != illegal;
    }
    absl::StatusOr<std::unique_ptr<search::SearchStrategy>> CreateStrategy(
        const std::string& name, uint64_t seed, bool quick_start) const override {
      return real_->CreateStrategy(name, seed, quick_start);
    }
    absl::StatusOr<record::Candidate> Adapt(const std::string& space,
                                            const std::vector<int64_t>& decisions) const override {
      return real_->Adapt(space, decisions);
    }
    absl::Status CheckFeatureSet(const std::string& set) const override {
      return real_->CheckFeatureSet(set);
    }
    absl::Status AppendFeatures(const std::string& set, const record::Candidate& candidate,
                                cost_model::FeatureMatrix* matrix) const override {
      return real_->AppendFeatures(set, candidate, matrix);
    }
    GivenCandidate ReadTrace(const std::string& trace, double tolerance) const override {
      return real_->ReadTrace(trace, tolerance);
    }

    std::vector<int64_t> illegal;

   private:
    const TaskSpaces* real_;
  } forgetful(spaces_.get());
  forgetful.illegal = expected.proposals[3].candidate.decisions;
  auto search = *TaskSearch::Create(&environment_, &forgetful,
                                    {.strategy = "picky", .cost_model = "nearest", .seed = 3},
                                    {{expected.proposals[1].candidate, record::Outcome::kOk, 1}});
  const ProposeEvent event = *search->Propose(4);
  ASSERT_EQ(event.proposals.size(), 4u);
  EXPECT_EQ(event.proposals[0].trial, 1);
  EXPECT_EQ(event.proposals[1].trial, -1);
  EXPECT_EQ(event.proposals[2].trial, 2);
  EXPECT_EQ(event.proposals[3].trial, -1);  // illegal
}

TEST_F(TaskSearchTest, UnknownNamesAreRefused) {
  EXPECT_THAT(TaskSearch::Create(&environment_, spaces_.get(), {.strategy = "x"}, {}),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace hone::job
