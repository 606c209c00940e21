#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "server/research/model/models.h"
#include "server/research/model/network_predictor.h"

namespace hone::cost_model {
namespace {

using network::Tape;
using network::Var;

constexpr int kStateWidth = 32;
// Of each candidate, so many partial schedules of random lengths are examples, besides the whole.
constexpr int kPartialExamples = 3;

// The value after the last row of each candidate.
class StateValueNetwork final : public ScoringNetwork {
 public:
  StateValueNetwork(int inputs, uint64_t seed)
      : ScoringNetwork(seed),
        encoder_(weights(), inputs, {kStateWidth}),
        lstm_(weights(), kStateWidth, kStateWidth),
        head_(weights(), kStateWidth, {kStateWidth}),
        score_(weights(), kStateWidth, 1, 0.1) {}

  Var Scores(Tape& tape, const RowBatch& batch) const override {
    const Var encoded = encoder_(tape, tape.Input(batch.rows));
    const Var states = network::RunLstm(tape, lstm_, kStateWidth, encoded, batch.begin);
    std::vector<int> last;
    for (size_t i = 1; i < batch.begin.size(); ++i) last.push_back(batch.begin[i] - 1);
    return score_(tape, head_(tape, tape.Gather(states, std::move(last))));
  }

 private:
  const network::Stack encoder_;
  const network::LstmCell lstm_;
  const network::Stack head_;
  const network::Linear score_;
};

// A key of the task and of each number of first rows of a candidate.
std::vector<Digest> KeysOfPrefixes(const FeatureMatrix& features, int candidate, int32_t task) {
  std::vector<Digest> keys;
  Digest key = DigestBuilder().Add(int64_t{task}).Finish();
  for (int32_t r = features.row_begin[candidate]; r < features.row_begin[candidate + 1]; ++r) {
    const absl::Span<const float> row = features.row(r);
    DigestBuilder builder;
    builder.Add(key);
    builder.Add(
        absl::string_view(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float)));
    key = builder.Finish();
    keys.push_back(key);
  }
  return keys;
}

class StateValuePredictor final : public Predictor {
 public:
  explicit StateValuePredictor(const CostModelOptions& options)
      : seed_(options.seed), network_(MakeNetworkPredictor(Kind(), options)) {}

  absl::Status Train(const FeatureMatrix& features, const Labels& labels) override {
    const int count = features.candidates();
    std::vector<std::vector<Digest>> keys;
    absl::flat_hash_map<Digest, double> best;  // throughput of all candidates with these rows
    for (int i = 0; i < count; ++i) {
      keys.push_back(KeysOfPrefixes(features, i, labels.TaskOf(i)));
      for (const Digest& key : keys.back()) {
        double& value = best.try_emplace(key, 0).first->second;
        value = std::max(value, labels.throughput[i]);
      }
    }
    FeatureMatrix states{.columns = features.columns};
    std::vector<double> values;
    std::vector<int32_t> tasks;
    absl::flat_hash_set<Digest> known;
    const auto add = [&](int candidate, int rows) {
      const Digest& key = keys[candidate][rows - 1];
      if (!known.insert(key).second) return;
      states.Append(
          absl::MakeConstSpan(features.values)
              .subspan(static_cast<size_t>(features.row_begin[candidate]) * features.columns,
                       static_cast<size_t>(rows) * features.columns),
          rows);
      values.push_back(best.at(key));
      tasks.push_back(labels.TaskOf(candidate));
    };
    Rng rng(seed_, 0x7374617465);
    for (int i = 0; i < count; ++i) {
      const size_t rows = keys[i].size();
      add(i, static_cast<int>(rows));
      for (int p = 0; p < kPartialExamples; ++p) add(i, 1 + static_cast<int>(rng.Below(rows)));
    }
    return network_->Train(states, {.throughput = values, .tasks = tasks});
  }

  void Serialize(ByteWriter& writer) const override { network_->Serialize(writer); }
  absl::Status Parse(ByteReader& reader) override { return network_->Parse(reader); }
  int columns() const override { return network_->columns(); }
  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    return network_->Predict(features);
  }

 private:
  static NetworkKind Kind() {
    const auto make = [](int inputs, int, uint64_t seed) -> std::unique_ptr<ScoringNetwork> {
      return std::make_unique<StateValueNetwork>(inputs, seed);
    };
    return {.make = make,
            .width = kStateWidth,
            .training = {.epochs = 20, .least_steps = 100, .most_steps = 3000}};
  }

  const uint64_t seed_;
  const std::unique_ptr<Predictor> network_;
};

}  // namespace

constexpr ModelKind kStateValueModel = {.name = "state-value",
                                        .feature_set = "primitives-drawn",
                                        .make = MakePredictor<StateValuePredictor>};

}  // namespace hone::cost_model
