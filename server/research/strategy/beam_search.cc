#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/status_macros.h"
#include "server/research/strategy/schedule_model.h"
#include "server/research/strategy/strategies.h"
#include "server/tuner/cost_model/xgboost_booster.h"
#include "server/tuner/search/history_search.h"
#include "server/tuner/search/site_values.h"

namespace hone::search {
namespace {

using schedule::Site;
using Decisions = std::vector<int64_t>;

constexpr double kBeamRandomShare = 0.05;  // of a batch
// Results until the value of partial schedules is learned, and until it is learned again.
constexpr int64_t kValueResults = 16;
// Tries to complete a new partial schedule with decisions of random schedules. The first completion
// takes those of its parent.
constexpr int kDrawnCompletions = 1;

// A partial schedule: the first `length` decisions of `best`, which is its best known completion.
struct Partial {
  Scored best;
  int length = 0;
  double value = 0;
  bool complete = false;
  Digest coarse;  // what the beam keeps apart
};

Digest KeyOfPrefix(int space, absl::Span<const int64_t> decisions, int length) {
  DigestBuilder builder;
  builder.Add(int64_t{space});
  for (int i = 0; i < length; ++i) builder.Add(decisions[i]);
  return builder.Finish();
}

// The value of partial schedules: how much of the best known speed the best schedule that begins
// with these decisions will have (Steiner et al., MLSys 2021).
class PartialValue {
 public:
  virtual ~PartialValue() = default;
  // Learns from the results of a search if there are enough new ones. Returns whether it has
  // learned anything.
  virtual absl::StatusOr<bool> Learn(const History& history, const Ranking& ranking) = 0;
  // Returns the value of each. REQUIRES: it has learned.
  virtual absl::StatusOr<std::vector<double>> Of(absl::Span<const PartialPoint> points) const = 0;
};

// A cost model that reads the schedule up to the next open decision, such as "state-value".
class ModelValue final : public PartialValue {
 public:
  ModelValue(const SearchContext& context, absl::string_view model)
      : model_(context, std::string(model)) {}
  absl::StatusOr<bool> Learn(const History& history, const Ranking&) override {
    return model_.Learn(history);
  }
  absl::StatusOr<std::vector<double>> Of(absl::Span<const PartialPoint> points) const override {
    return model_.Score(points);
  }

 private:
  ScheduleModel model_;
};

// Trees on the decisions made so far.
class TreeValue final : public PartialValue {
 public:
  explicit TreeValue(const SearchContext& context) : context_(context) {
    for (const space::DesignSpace* space : context.spaces)
      decisions_ = std::max(decisions_, space->decision_count());
  }

  // Every prefix of a schedule is an example, whose label is the best throughput of all results
  // with this prefix.
  absl::StatusOr<bool> Learn(const History& history, const Ranking& ranking) override {
    const int64_t told = history.Told();
    if (told < learnt_from_ + kValueResults) return forest_.has_value();
    struct Example {
      Point point;
      int length;
      double throughput = 0;
    };
    std::vector<Example> examples;
    absl::flat_hash_map<Digest, size_t> known;
    for (const History::Entry& entry : history.entries()) {
      if (!entry.told) continue;
      const Point& point = entry.point;
      const auto sites = context_.spaces[point.space]->Sites(point.decisions);
      if (!sites.ok()) continue;
      for (size_t s = 0; s <= sites->size(); ++s) {
        const int length =
            s == sites->size() ? static_cast<int>(point.decisions.size()) : (*sites)[s].begin;
        const Digest key = KeyOfPrefix(point.space, point.decisions, length);
        const auto [found, fresh] = known.try_emplace(key, examples.size());
        if (fresh) examples.push_back({point, length});
        double& best = examples[found->second].throughput;
        best = std::max(best, std::min(1.0, ranking.MeasuredScore(entry)));
      }
    }
    cost_model::FeatureMatrix rows{.columns = Columns()};
    std::vector<double> throughput;
    for (const Example& example : examples) {
      rows.Append(RowOf({example.point.space,
                         absl::MakeConstSpan(example.point.decisions).first(example.length)}),
                  1);
      throughput.push_back(example.throughput);
    }
    if (examples.empty()) return forest_.has_value();
    HONE_ASSIGN_OR_RETURN(forest_,
                          cost_model::TrainForest(rows, throughput, {}, {.seed = context_.seed}));
    learnt_from_ = told;
    return true;
  }

  absl::StatusOr<std::vector<double>> Of(absl::Span<const PartialPoint> points) const override {
    std::vector<double> values;
    for (const PartialPoint& point : points) {
      float value = 0;
      forest_->Predict(RowOf(point), absl::MakeSpan(&value, 1));
      values.push_back(value);
    }
    return values;
  }

 private:
  int Columns() const { return 2 + decisions_; }
  // The space, the number of decisions, and the logarithms of these; −1: still open.
  std::vector<float> RowOf(const PartialPoint& point) const {
    std::vector<float> row(Columns(), -1);
    row[0] = static_cast<float>(point.space);
    row[1] = static_cast<float>(point.decisions.size());
    for (size_t i = 0; i < point.decisions.size(); ++i)
      row[2 + i] = std::log2(static_cast<float>(std::max<int64_t>(point.decisions[i], 0) + 1));
    return row;
  }

  const SearchContext& context_;
  int decisions_ = 0;
  int64_t learnt_from_ = 0;
  std::optional<cost_model::FlatForest> forest_;
};

class BeamSearch final : public HistorySearch {
 public:
  BeamSearch(SearchContext given, const BeamOptions& options)
      : HistorySearch(options.name, std::move(given), /*draft=*/true), options_(options) {
    if (options.value_model.empty())
      value_ = std::make_unique<TreeValue>(context());
    else
      value_ = std::make_unique<ModelValue>(context(), options.value_model);
  }

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    HONE_ASSIGN_OR_RETURN(Call call, Begin(n, event, model, /*purpose=*/10));
    if (n <= 0) return Commit(call);
    if (options_.value != BeamOptions::Value::kSampled) {
      HONE_ASSIGN_OR_RETURN(learnt_, value_->Learn(history(), call.ranking));
    }
    Met met;
    absl::flat_hash_set<Digest> on_the_way;  // coarse prefixes of the last pass's schedules
    for (int pass = 0; pass < options_.passes; ++pass) {
      HONE_ASSIGN_OR_RETURN(on_the_way, RunPass(pass, on_the_way, met, call));
      if (on_the_way.empty()) break;
    }
    std::vector<PartialPoint> whole;
    std::vector<double> scores;
    for (const Scored& schedule : met.pool) {
      whole.push_back({schedule.point.space, schedule.point.decisions});
      scores.push_back(schedule.score);
    }
    HONE_RETURN_IF_ERROR(AddValues(whole, scores));
    for (size_t i = 0; i < scores.size(); ++i) met.pool[i].score = scores[i];
    SortByScore(met.pool);
    call.picker.CoverUntried(met.pool);
    HONE_RETURN_IF_ERROR(CoverByDraws(call));
    const int random = static_cast<int>(kBeamRandomShare * n + call.rng.Uniform());
    call.picker.PickBest(met.pool, n - random);
    HONE_RETURN_IF_ERROR(FillByDraws(call));
    call.picker.Sort();
    return Commit(call);
  }

 private:
  // The distinct schedules that this Propose has scored.
  struct Met {
    absl::flat_hash_set<Digest> keys;
    std::vector<Scored> pool;
  };

  int Width() const { return std::max(4, options_.width * context().population / 512); }

  // Builds schedules decision by decision, and keeps the best partial ones after each. Returns the
  // coarse prefixes of the complete schedules in the last beam. `allowed`: those of the pass
  // before; empty: all.
  absl::StatusOr<absl::flat_hash_set<Digest>> RunPass(int pass,
                                                      const absl::flat_hash_set<Digest>& allowed,
                                                      Met& met, Call& call) {
    HONE_ASSIGN_OR_RETURN(std::vector<Partial> beam, Roots(call));
    while (absl::c_any_of(beam, [](const Partial& each) { return !each.complete; })) {
      HONE_ASSIGN_OR_RETURN(std::vector<Partial> children, Expand(beam, met, call));
      std::vector<PartialPoint> points;
      std::vector<double> values;
      for (const Partial& child : children) {
        const Point& best = child.best.point;
        points.push_back({best.space, absl::MakeConstSpan(best.decisions).first(child.length)});
        values.push_back(child.best.score);
      }
      HONE_RETURN_IF_ERROR(AddValues(points, values));
      for (size_t c = 0; c < children.size(); ++c) {
        children[c].value = values[c];
        children[c].coarse = CoarseKey(children[c], pass);
      }
      if (!allowed.empty()) {
        const auto is_allowed = [&](const Partial& child) {
          return allowed.contains(child.coarse);
        };
        if (absl::c_any_of(children, is_allowed))
          std::erase_if(children, [&](const Partial& child) { return !is_allowed(child); });
      }
      beam = Best(std::move(children));
    }
    absl::flat_hash_set<Digest> on_the_way;
    for (Partial& schedule : beam) {
      const auto sites =
          context().spaces[schedule.best.point.space]->Sites(schedule.best.point.decisions);
      if (!sites.ok()) continue;
      for (const Site& site : *sites) {
        schedule.length = site.begin + site.count;
        on_the_way.insert(CoarseKey(schedule, pass + 1));
      }
    }
    return on_the_way;
  }

  // Returns a partial schedule without decisions for each space.
  absl::StatusOr<std::vector<Partial>> Roots(Call& call) {
    std::vector<Point> points;
    for (size_t s = 0; s < context().spaces.size(); ++s)
      Sample(static_cast<int>(s), call.rng, points);
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> scored, Score(points, call));
    std::vector<Partial> roots;
    for (Scored& each : scored) {
      const bool complete = context().spaces[each.point.space]->decision_count() == 0;
      roots.push_back({.best = std::move(each), .complete = complete});
    }
    return roots;
  }

  // Returns the partial schedules with one more decision, each once, and those that are complete.
  absl::StatusOr<std::vector<Partial>> Expand(const std::vector<Partial>& beam, Met& met,
                                              Call& call) {
    std::vector<Partial> children;
    absl::flat_hash_map<Digest, size_t> index;  // children by prefix
    std::vector<Point> completions;
    std::vector<size_t> child_of;  // of each completion
    for (const Partial& partial : beam) {
      if (partial.complete) {
        children.push_back(partial);
        continue;
      }
      const Point& parent = partial.best.point;
      const space::DesignSpace& space = *context().spaces[parent.space];
      const auto sites = space.Sites(parent.decisions);
      if (!sites.ok()) continue;
      const auto next =
          absl::c_find_if(*sites, [&](const Site& site) { return site.begin >= partial.length; });
      const int length = next->begin + next->count;
      for (const Decisions& values : ValuesOf(*next, parent.decisions, call.rng)) {
        Decisions wanted = parent.decisions;
        absl::c_copy(values, wanted.begin() + next->begin);
        const Digest key = KeyOfPrefix(parent.space, wanted, length);
        if (!index.try_emplace(key, children.size()).second) continue;
        children.push_back({.length = length, .complete = length == space.decision_count()});
        for (int i = 0; i <= kDrawnCompletions; ++i) {
          if (i > 0) {
            const absl::StatusOr<Decisions> drawn = space.Sample(call.rng);
            if (!drawn.ok()) continue;
            std::copy(drawn->begin() + length, drawn->end(), wanted.begin() + length);
          }
          absl::StatusOr<Decisions> fitted = Fit(space, wanted, call.rng);
          if (!fitted.ok() || !std::equal(wanted.begin(), wanted.begin() + length, fitted->begin()))
            continue;
          completions.push_back({parent.space, *std::move(fitted)});
          child_of.push_back(children.size() - 1);
        }
      }
    }
    HONE_ASSIGN_OR_RETURN(std::vector<Scored> scored, Score(completions, call));
    std::vector<bool> found(children.size(), false);
    for (size_t c = 0; c < children.size(); ++c) found[c] = children[c].best.evaluation != nullptr;
    for (size_t i = 0, c = 0; i < scored.size(); ++i, ++c) {
      while (completions[c] != scored[i].point) ++c;  // illegal ones are absent from `scored`
      Partial& child = children[child_of[c]];
      if (met.keys.insert(scored[i].key).second) met.pool.push_back(scored[i]);
      if (found[child_of[c]] && child.best.score >= scored[i].score) continue;
      found[child_of[c]] = true;
      child.best = std::move(scored[i]);
    }
    std::vector<Partial> kept;
    for (size_t c = 0; c < children.size(); ++c) {
      if (found[c]) kept.push_back(std::move(children[c]));
    }
    return kept;
  }

  // Returns values of a site: all of them, or the value in `decisions` and some drawn ones.
  std::vector<Decisions> ValuesOf(const Site& site, const Decisions& decisions, Rng& rng) {
    const size_t count = lists_.Count(site);
    std::vector<Decisions> values;
    if (count <= static_cast<size_t>(options_.branching)) {
      for (size_t i = 0; i < count; ++i) {
        const absl::Span<const int64_t> value = lists_.At(site, i);
        values.emplace_back(value.begin(), value.end());
      }
      return values;
    }
    const auto begin = decisions.begin() + site.begin;
    values.emplace_back(begin, begin + site.count);
    absl::flat_hash_set<size_t> drawn;
    while (drawn.size() + 1 < static_cast<size_t>(options_.branching)) {
      const size_t i = rng.Below(count);
      if (!drawn.insert(i).second) continue;
      const absl::Span<const int64_t> value = lists_.At(site, i);
      values.emplace_back(value.begin(), value.end());
    }
    return values;
  }

  // Takes the scores of the best known completions of partial schedules, and returns their values
  // in place.
  absl::Status AddValues(absl::Span<const PartialPoint> points, std::vector<double>& scores) const {
    if (!learnt_ || points.empty()) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const std::vector<double> learnt, value_->Of(points));
    for (size_t i = 0; i < scores.size(); ++i) {
      const bool alone = options_.value == BeamOptions::Value::kLearned;
      scores[i] = alone ? learnt[i] : (learnt[i] + scores[i]) / 2;
    }
    return absl::OkStatus();
  }

  // The decisions of the first sites, one more for each pass, rounded to powers of four. Schedules
  // with the same key look alike.
  Digest CoarseKey(const Partial& partial, int pass) const {
    Decisions rounded;
    const int most = std::min(partial.length, 2 * (pass + 1));
    for (int i = 0; i < most; ++i) {
      const double value = static_cast<double>(partial.best.point.decisions[i]);
      rounded.push_back(std::lround(std::log2(std::max(value, 0.0) + 1) / 2));
    }
    return KeyOfPrefix(partial.best.point.space, rounded, most);
  }

  // Keeps the best. The j-th of those that look alike counts with the j-th part of its value, which
  // keeps the beam diverse.
  std::vector<Partial> Best(std::vector<Partial> children) const {
    const auto better = [](const Partial& a, const Partial& b) {
      return a.value != b.value ? a.value > b.value : a.best.key < b.best.key;
    };
    absl::c_sort(children, better);
    absl::flat_hash_map<Digest, int> alike;
    std::vector<std::pair<double, size_t>> order;
    for (size_t c = 0; c < children.size(); ++c) {
      const int place = ++alike[children[c].coarse];
      order.emplace_back(-children[c].value / place, c);
    }
    absl::c_stable_sort(order);
    std::vector<Partial> kept;
    for (const auto& [value, child] : order) {
      if (static_cast<int>(kept.size()) == Width()) break;
      kept.push_back(std::move(children[child]));
    }
    return kept;
  }

  const BeamOptions options_;
  SiteValues lists_;
  std::unique_ptr<PartialValue> value_;
  bool learnt_ = false;  // whether `value_` has learned anything
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeBeamSearch(SearchContext context, const BeamOptions& options) {
  return std::make_unique<BeamSearch>(std::move(context), options);
}

}  // namespace hone::search
