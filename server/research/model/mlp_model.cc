#include "server/research/model/models.h"
#include "server/research/model/network_predictor.h"

namespace hone::cost_model {
namespace {

// TenSet uses 256, for millions of records. 64 suits the hundreds of records of one task and the
// time limits of a search.
constexpr int kMlpWidth = 64, kTenSetWidth = 256;

class MlpNetwork final : public ScoringNetwork {
 public:
  MlpNetwork(int inputs, int width, uint64_t seed)
      : ScoringNetwork(seed),
        encoder_(weights(), inputs, {width, width}),
        residual_(weights(), width, 2),
        score_(weights(), width, 1, 0.1) {}

  network::Var Scores(network::Tape& tape, const RowBatch& batch) const override {
    const network::Var encoded = encoder_(tape, tape.Input(batch.rows));
    const network::Var summed = tape.SumGroups(encoded, batch.Owners(), batch.candidates());
    return score_(tape, residual_(tape, summed));
  }

 private:
  const network::Stack encoder_;
  const network::Residual residual_;
  const network::Linear score_;
};

template <int kWidth>
std::unique_ptr<Predictor> MakeMlp(const CostModelOptions& options) {
  const auto make = [](int inputs, int, uint64_t seed) -> std::unique_ptr<ScoringNetwork> {
    return std::make_unique<MlpNetwork>(inputs, kWidth, seed);
  };
  // Of few candidates, the wide network learns in fewer steps.
  return MakeNetworkPredictor({.make = make,
                               .width = kWidth,
                               .training = {.least_steps = kWidth == kTenSetWidth ? 60 : 200}},
                              options);
}

}  // namespace

constexpr ModelKind kMlpModel = {.name = "mlp",
                                 .version = 2,
                                 .feature_set = "statement",
                                 .make = MakeMlp<kMlpWidth>,
                                 .learns_residual = true};
constexpr ModelKind kMlpTenSetModel = {.name = "mlp-tenset",
                                       .feature_set = "statement",
                                       .make = MakeMlp<kTenSetWidth>,
                                       .learns_residual = true};

}  // namespace hone::cost_model
