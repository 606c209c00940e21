#include <utility>

#include "server/research/lab/claims.h"

namespace hone::lab {
namespace {

using By = Contrast::Measure;

constexpr char kC2[] = "conv2d n=1 h=56 w=56 ci=64 co=64 k=3 s=1 p=1";
constexpr char kC7[] = "conv2d n=1 h=28 w=28 ci=128 co=256 k=3 s=2 p=1";
constexpr char kC12[] = "conv2d n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1";
constexpr char kDirect[] = "conv2d_direct", kTemplates[] = "templates", kAnsor[] = "ansor",
               kRank[] = "xgboost-rank", kItervar[] = "itervar";
// Shares of the 64 trials of tlp-topk.
constexpr double kFirst = 1.0 / 64, kFirstFive = 5.0 / 64;

const std::vector<std::string>& SixSpaces() {
  static const auto& spaces = *new std::vector<std::string>{
      "matmul m=512 n=512 k=512",
      "dense_relu m=32 n=4096 k=1024",
      "batch_matmul b=12 m=128 n=64 k=128",
      "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1",
      "depthwise_conv2d n=1 h=56 w=56 c=144 k=3 s=1 p=1",
      "softmax m=512 n=1000",
  };
  return spaces;
}

// A contrast whose published number is a ratio of the same measure.
Contrast WithRatio(double published, Contrast contrast) {
  contrast.published_ratio = published;
  return contrast;
}
Contrast WithBestRatio(double published, Contrast contrast) {
  contrast.best_case = true;
  return WithRatio(published, std::move(contrast));
}

}  // namespace

const std::vector<Claim>& Claims() {
  static const auto& claims = *new std::vector<Claim>{
      {.name = "zheng-tuners",
       .source = "Zheng, table 2; AutoTVM",
       .about = "AutoTVM's tuner, simulated annealing on the scores of trees that learn an order, "
                "against random draws, on two convolutions of ResNet-18 (C7 and C12) in the space "
                "of a template.",
       .on_machine = true,
       .variants = {{"annealing", "annealing", kRank, kItervar, kTemplates, kDirect},
                    {"random", "random", "random", "", kTemplates, kDirect}},
       .tasks = {kC7, kC12},
       .contrasts = {{"The model finds better schedules of C7 and C12 than random draws",
                      "cuDNN passed after 60 instead of 350 trials (AutoTVM)", "annealing",
                      "random"},
                     {"It already does after a tenth of the trials", "", "annealing", "random",
                      By::kLatency, 0.1}},
       .trials = 1000},
      {.name = "zheng-features",
       .source = "Zheng, figure 3",
       .about = "What AutoTVM's trees read: the decisions (`knob`), the loops (`itervar`), or "
                "curves of how often data is touched and reused, in the version that Zheng "
                "corrected (`curve-fix`).",
       .on_machine = true,
       .variants = {{"curve-fix", "annealing", kRank, "curve-fix", kTemplates, kDirect},
                    {"curve", "annealing", kRank, "curve-one", kTemplates, kDirect},
                    {"curve-fix-reuse", "annealing", kRank, "curve-fix-reuse", kTemplates, kDirect},
                    {"itervar", "annealing", kRank, kItervar, kTemplates, kDirect},
                    {"knob", "annealing", kRank, "knob", kTemplates, kDirect}},
       .tasks = {kC12, kC2},
       .contrasts = {{"Curves of 30 points beat curves of one point", "", "curve-fix", "curve",
                      By::kTrials},
                     {"They clearly do on C12", "clearly on C12", "curve-fix", "curve", By::kTrials,
                      1, kC12},
                     {"The relation of count and reuse alone is the best", "best ablation",
                      "curve-fix-reuse", "curve-fix", By::kTrials},
                     {"Curves beat features of loops", "knob, itervar < curve-fix", "curve-fix",
                      "itervar", By::kTrials},
                     {"Curves beat the decisions alone", "knob, itervar < curve-fix", "curve-fix",
                      "knob", By::kTrials}},
       .trials = 200},
      {.name = "zheng-transfer",
       .source = "Zheng, figures 4 and 5",
       .about =
           "Whether a model that has learned one convolution (C12) helps to tune another one (C7).",
       .on_machine = true,
       .variants = {{"itervar, C12", "annealing", kRank, kItervar, kTemplates, kDirect, true},
                    {"itervar", "annealing", kRank, kItervar, kTemplates, kDirect},
                    {"knob, C12", "annealing", kRank, "knob", kTemplates, kDirect, true},
                    {"knob", "annealing", kRank, "knob", kTemplates, kDirect},
                    {"curve-fix, C12", "annealing", kRank, "curve-fix", kTemplates, kDirect, true},
                    {"curve-fix", "annealing", kRank, "curve-fix", kTemplates, kDirect}},
       .tasks = {kC7},
       .donor = kC12,
       .contrasts = {{"A model of C12 speeds up the first 16 trials of C7 (itervar)",
                      "sharp improvement", "itervar, C12", "itervar", By::kLatency, 0.16},
                     {"The first 32 trials (itervar)", "sharp improvement", "itervar, C12",
                      "itervar", By::kLatency, 0.32},
                     {"A model of C12 speeds up the first 100 trials of C7 (itervar)",
                      "sharp improvement", "itervar, C12", "itervar"},
                     {"The first 16 trials (curve-fix)", "sharp improvement", "curve-fix, C12",
                      "curve-fix", By::kLatency, 0.16},
                     {"The first 32 trials (curve-fix)", "sharp improvement", "curve-fix, C12",
                      "curve-fix", By::kLatency, 0.32},
                     {"The first 100 trials (curve-fix)", "sharp improvement", "curve-fix, C12",
                      "curve-fix"},
                     {"The first 16 trials (knob)", "sharp improvement", "knob, C12", "knob",
                      By::kLatency, 0.16},
                     {"The same with knob", "sharp improvement", "knob, C12", "knob"}},
       .trials = 100},
      {.name = "zheng-cooling",
       .source = "Zheng, section 5 (future work)",
       .about =
           "How the temperature of simulated annealing falls, in a space too large to be visited. "
           "Only the climbing is judged, on the scores of a model that no longer learns.",
       .device = ClaimDevice::kFrozen,
       .variants = {{"linear", "annealing", "xgboost", kItervar, kAnsor, "ssrsrs"},
                    {"geometric", "annealing-geometric", "xgboost", kItervar, kAnsor, "ssrsrs"},
                    {"adaptive", "annealing-adaptive", "xgboost", kItervar, kAnsor, "ssrsrs"},
                    {"restarts", "annealing-restarts", "xgboost", kItervar, kAnsor, "ssrsrs"}},
       .tasks = {kC7},
       .contrasts = {{"Geometric cooling climbs a frozen model of over 10^7 points higher",
                      "may help", "geometric", "linear"},
                     {"Adaptive cooling does", "may help", "adaptive", "linear"},
                     {"Restarts do", "may help", "restarts", "linear"}},
       .trials = 64},
      {.name = "rocke-trials",
       .source = "Rocke",
       .about = "Bayesian optimization over the indices of decisions, which Rocke put in place of "
                "MetaSchedule's evolutionary search, with two acquisitions, on six operators.",
       .on_machine = true,
       .variants = {{"bayesian-index", "bayesian-index"},
                    {"bayesian-index-ei", "bayesian-index-ei"},
                    {"evolutionary", "evolutionary"}},
       .tasks = SixSpaces(),
       .contrasts = {WithBestRatio(
                         0.32, {"Bayesian optimization needs fewer trials than evolution",
                                "up to 68 % fewer", "bayesian-index", "evolutionary", By::kTrials}),
                     WithBestRatio(0.91, {"At equal trials its code is faster", "up to 10 %",
                                          "bayesian-index", "evolutionary"}),
                     {"Expected improvement instead of the upper bound", "", "bayesian-index-ei",
                      "bayesian-index"}},
       .trials = 128},
      {.name = "ansor-ablation",
       .source = "Ansor, section 7.3",
       .about = "Ansor's evolutionary search in its space of sketches, against Ansor without one "
                "of its parts.",
       .on_machine = true,
       .variants = {{"full", "ansor", "xgboost", "", kAnsor},
                    {"no fine-tuning", "random", "random", "", kAnsor},
                    {"limited space", "ansor", "xgboost", "", kTemplates},
                    {"beam search", "beam-learned", "xgboost", "", kAnsor}},
       .tasks = {"matmul m=512 n=512 k=512", "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1", kC7,
                 "batch_matmul b=12 m=128 n=64 k=128"},
       .contrasts = {{"Without fine-tuning, the result is worse", "clearly", "full",
                      "no fine-tuning"},
                     {"In the space of templates, it is worse", "clearly", "full", "limited space"},
                     {"With construction by beam search, it is worse", "clearly", "full",
                      "beam search"}},
       .trials = 128},
      {.name = "ansor-scheduler",
       .source = "Ansor, sections 6 and 7.3",
       .about =
           "Ansor's task scheduler, which divides the trials among the tasks of ResNet-18 and a "
           "small GPT, with its objectives: the sum of the latencies (f1), the sum with a "
           "limit for each network below which nothing is gained (f2), the geometric mean of "
           "the speed-ups (f3), and f1 without tasks that have stalled (f4). *Latency* is the "
           "value of the objective that a row names.",
       .device = ClaimDevice::kNetworks,
       .variants = {{.label = "round-robin", .scheduler = "round-robin", .objective = "latency"},
                    {.label = "f1", .scheduler = "gradient", .objective = "latency"},
                    {.label = "f2", .scheduler = "gradient", .objective = "latency-limits"},
                    {.label = "f3", .scheduler = "gradient", .objective = "speedup"},
                    {.label = "f4", .scheduler = "gradient", .objective = "early-stop"},
                    {.label = "Hone, f1", .scheduler = "expected-gain", .objective = "latency"}},
       .tasks = {"latency", "latency-limits", "speedup"},
       .networks = {"resnet18", "gpt_small"},
       .contrasts = {{"The scheduler needs fewer trials than equal shares (f1)",
                      "clearly worse without it", "f1", "round-robin", By::kTrials, 1, "latency"},
                     {"Half of the trials give lower latencies than equal shares (f1)", "", "f1",
                      "round-robin", By::kLatency, 0.5, "latency"},
                     {"f2 serves limits better than f1", "", "f2", "f1", By::kLatency, 0.5,
                      "latency-limits"},
                     {"f3 serves the geometric mean better than f1", "", "f3", "f1", By::kLatency,
                      0.5, "speedup"},
                     {"f4 needs fewer trials than f1", "", "f4", "f1", By::kTrials, 1, "latency"},
                     {"Hone's scheduler needs fewer trials than Ansor's", "", "Hone, f1", "f1",
                      By::kTrials, 1, "latency"}},
       .trials = 800},
      {.name = "chameleon",
       .source = "Chameleon (Ahn et al.)",
       .about = "Chameleon's adaptive sampling, which measures one candidate of each cluster, "
                "against AutoTVM's annealing, which measures the best-scored ones.",
       .on_machine = true,
       .variants = {{"adaptive", "adaptive", kRank, kItervar, kTemplates},
                    {"annealing", "annealing", kRank, kItervar, kTemplates}},
       .tasks = {kC7, kC12, kC2},
       .contrasts = {{"Adaptive sampling needs fewer measurements than AutoTVM",
                      "4.45 × less time with reinforcement learning", "adaptive", "annealing",
                      By::kTrials},
                     WithRatio(0.94, {"At equal trials, its code is not slower", "1.06 × faster",
                                      "adaptive", "annealing"})},
       .trials = 128},
      {.name = "flextensor",
       .source = "FlexTensor (Zheng et al.)",
       .about = "FlexTensor's walks to neighbours, in directions that a network chooses, against "
                "random draws and annealing.",
       .on_machine = true,
       .variants = {{"q-learning", "q-learning"},
                    {"random", "random", "random"},
                    {"annealing", "annealing", "xgboost"}},
       .tasks = SixSpaces(),
       .contrasts = {{"Walks by Q-learning find better code than random draws", "", "q-learning",
                      "random"},
                     {"They need less time than AutoTVM", "", "q-learning", "annealing",
                      By::kSeconds}},
       .trials = 128},
      {.name = "halide-beam",
       .source = "Adams et al.; Steiner et al.",
       .about = "Beam search over partial schedules, as in Halide: valued by scores of sampled "
                "completions (`beam-sampled`), by what trees (`beam-learned`) or a network "
                "(`state-value`) have learned, or by the mean of completions and trees (`beam`), "
                "against random draws and Hone's default search.",
       .on_machine = true,
       .variants = {{"beam", "beam"},
                    {"beam-sampled", "beam-sampled"},
                    {"beam-learned", "beam-learned"},
                    {"state-value", "beam-state-value"},
                    {"portfolio", "portfolio"},
                    {"random", "random", "random"}},
       .tasks = SixSpaces(),
       .contrasts = {{"Beam search finds better schedules than random draws", "", "beam", "random"},
                     {"A learned value finds better schedules than completions", "2.6 × (Steiner)",
                      "beam-learned", "beam-sampled"},
                     {"A network that reads partial schedules values them better than completions",
                      "2.6 × (Steiner)", "state-value", "beam-sampled"},
                     {"Beam search needs less time than Hone's default", "", "beam", "portfolio",
                      By::kSeconds}},
       .trials = 128},
      {.name = "autotvm-rank",
       .source = "AutoTVM, figures 5 and 6",
       .about = "Whether AutoTVM's trees should learn an order of candidates or their speed, and "
                "whether a batch should be diverse.",
       .on_machine = true,
       .variants = {{"rank", "annealing", kRank, kItervar, kTemplates},
                    {"regression", "annealing", "xgboost", kItervar, kTemplates},
                    {"diverse", "annealing-diverse", kRank, kItervar, kTemplates}},
       .tasks = {kC7, kC12, kC2},
       .contrasts = {{"The rank objective is at least as good as regression", "rank ≥ regression",
                      "rank", "regression"},
                     {"Diversity-aware selection helps", "no clear gain", "diverse", "rank"}},
       .trials = 128},
      {.name = "tlp-search",
       .source = "TLP (Zhai et al.)",
       .about =
           "A search with TLP, a network that reads the schedule instead of the program, against "
           "the same search with trees; and TLP as a filter before candidates are replayed.",
       .on_machine = true,
       .variants = {{"tlp", "evolutionary", "tlp"},
                    {"trees", "evolutionary", "xgboost"},
                    {"filtered", "evolutionary-filtered"},
                    {"drafted", "evolutionary-drafted"}},
       .tasks = SixSpaces(),
       .contrasts = {WithRatio(0.11, {"A search with TLP needs less time than one with trees",
                                      "9.1 × less", "tlp", "trees", By::kSeconds}),
                     {"It needs fewer trials", "", "tlp", "trees", By::kTrials},
                     {"Choosing schedules with TLP before they are replayed saves trials", "",
                      "filtered", "drafted", By::kTrials},
                     {"It has less regret per second", "", "filtered", "drafted", By::kMean}},
       .trials = 128},
      {.name = "tlp-topk",
       .source = "TLP, tables 3 and 5",
       .about =
           "How good the first and the first five choices of TLP are on tasks that it was not "
           "trained on, in its published shape (`tlp-published`) and in a smaller one (`tlp`), "
           "against TenSet's network, trees, and the draft, alone and with what trees add to it "
           "(`residual`); and MTL-TLP, which also learns from another machine. The published "
           "ratios are of scores in which tasks count by their latency; here, all count alike.",
       .device = ClaimDevice::kSample,
       .variants = {{"tlp-published", "", "tlp-published"},
                    {"tlp", "", "tlp"},
                    {"mlp-tenset", "", "mlp-tenset"},
                    {"trees", "", "xgboost"},
                    {"draft", "", "draft"},
                    {"residual", "", "residual"},
                    {"tlp, few results", "", "tlp", "", "", "", false, 16},
                    {"mtl-tlp, another machine", "", "mtl-tlp", "", "", "", true, 16}},
       .contrasts =
           {WithRatio(0.94, {"The first choice of TLP beats that of TenSet's model (top-1)",
                             "0.9055 to 0.8510 on an EPYC", "tlp-published", "mlp-tenset",
                             By::kLatency, kFirst}),
            WithRatio(0.97, {"So does the best of five (top-5)", "0.9494 to 0.9175",
                             "tlp-published", "mlp-tenset", By::kLatency, kFirstFive}),
            {"The first choice of the smaller TLP does (top-1)", "", "tlp", "mlp-tenset",
             By::kLatency, kFirst},
            {"Its best of five does (top-5)", "", "tlp", "mlp-tenset", By::kLatency, kFirstFive},
            {"The first choice of TLP beats that of trees (top-1)", "", "tlp", "trees",
             By::kLatency, kFirst},
            {"Its best of five does (top-5, trees)", "", "tlp", "trees", By::kLatency, kFirstFive},
            {"The first choice of TLP beats that of the draft (top-1)", "", "tlp", "draft",
             By::kLatency, kFirst},
            {"It beats that of the draft with trees (top-1)", "", "tlp", "residual", By::kLatency,
             kFirst},
            WithRatio(0.76, {"With few results, another machine teaches more (MTL-TLP, top-1)",
                             "0.8741 to 0.6647", "mtl-tlp, another machine", "tlp, few results",
                             By::kLatency, kFirst}),
            {"With few results, another machine teaches more (MTL-TLP, top-5)", "",
             "mtl-tlp, another machine", "tlp, few results", By::kLatency, kFirstFive},
            {"With few results and another machine, it is better than with all results (MTL-TLP, "
             "top-1)",
             "", "mtl-tlp, another machine", "tlp", By::kLatency, kFirst}},
       .trials = 64},
  };
  return claims;
}

const char* ClaimDeviceName(ClaimDevice device) {
  switch (device) {
    case ClaimDevice::kSimulated:
      return "simulated";
    case ClaimDevice::kFrozen:
      return "frozen model";
    case ClaimDevice::kSample:
      return "sample";
    case ClaimDevice::kNetworks:
      return "networks of a sample";
    case ClaimDevice::kMachine:
      return "machine";
  }
  return "";
}

}  // namespace hone::lab
