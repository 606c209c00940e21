#include "worker/runner/signature.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "common/base/rng.h"
#include "common/ir/arithmetic.h"
#include "common/ir/error_bound.h"

namespace hone::runner {
namespace {

using ir::BufferId;
using ir::DType;
using ir::Expr;
using ir::ExprId;
using ir::Op;
using ir::Reducer;
using ir::Scalar;
using ir::Stage;

constexpr size_t kSamples = 32;          // elements of a tensor
constexpr int64_t kMostTerms = 32;       // of a reduction, for one element
constexpr int64_t kFewestTerms = 4;      // of a reduction whose terms are long formulas
constexpr int64_t kMostNodes = 200'000;  // expressions that are evaluated for a stage
constexpr int kSteps[] = {8, 4, 2, 1};   // of an exponent
// A workload with more inputs is not searched again for positive ones after all stages are known.
constexpr size_t kMostSearchedAgain = 16;

// Costs. A magnitude of 2^g costs (|g| − 1)² if |g| > 1.
constexpr double kUndefined = 40;          // all elements are NaN or infinite
constexpr double kOfArgument = 4;          // an argument of 2^(1+g)
constexpr double kOfExponent = 1.0 / 256;  // an input in [−1, 1)·2^g
constexpr double kPositive = 2;            // an input without negative values
constexpr double kWorthwhile = 1;          // what a positive input must gain

// Functions with slow or constant ranges far from 0.
bool HasTails(Op op) {
  return op == Op::kExp || op == Op::kTanh || op == Op::kErf || op == Op::kSigmoid ||
         op == Op::kNormalCdf;
}

// Limits that keep most elements normal numbers of the type.
std::pair<int, int> ExponentsOf(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3:
      return {-3, 5};
    case DType::kF8E5M2:
    case DType::kF16:
      return {-8, 8};
    default:
      return {-24, 24};
  }
}

bool IsUnsigned(DType dtype) { return ir::LoadedAs(dtype) == DType::kU8 || dtype == DType::kBool; }

// The elements of a tensor that were sampled.
using Samples = std::array<double, kSamples>;

// Removes a mean that is within its error, which sums of many samples would show.
void Center(Samples& samples) {
  double sum = 0, squares = 0;
  for (const double sample : samples) {
    sum += sample;
    squares += sample * sample;
  }
  const double mean = sum / kSamples;
  const double variance = squares / kSamples - mean * mean;
  if (!(mean * mean * kSamples < 9 * variance)) return;
  for (double& sample : samples) sample -= mean;
}

class Estimator {
 public:
  Estimator(const ir::Workload& workload, std::vector<InputRange> ranges)
      : workload_(workload),
        ranges_(std::move(ranges)),
        input_of_tensor_(workload.tensors.size(), -1),
        samples_(workload.tensors.size()),
        magnitudes_(workload.tensors.size()),
        shapes_(workload.stages.size()) {
    const std::vector<BufferId> inputs = workload.Inputs();
    ranges_.resize(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      input_of_tensor_[inputs[i]] = static_cast<int>(i);
      Rng rng(i, 0x696e);
      // Their mean is 0, as that of all elements: a sum of many would show any other.
      Samples& units = units_.emplace_back();
      for (size_t n = 0; n < kSamples; n += 2) {
        units[n] = 2 * rng.Uniform() - 1;
        units[n + 1] = -units[n];
      }
      SetRange(i, ranges_[i]);
    }
    for (size_t s = 0; s < workload.stages.size(); ++s) Describe(s);
  }

  const std::vector<InputRange>& ranges() const { return ranges_; }
  const StageMagnitude& magnitude(BufferId tensor) const { return magnitudes_[tensor]; }

  void SetRange(size_t input, InputRange range) {
    ranges_[input] = range;
    const BufferId id = workload_.Inputs()[input];
    const ir::Tensor& tensor = workload_.tensors[id];
    for (size_t n = 0; n < kSamples; ++n) {
      const double unit = units_[input][n];  // in [−1, 1)
      double& sample = samples_[id][n];
      if (ir::IsFloat(tensor.dtype)) {
        sample = std::ldexp(range.positive ? 1 + unit / 2 : unit, range.exponent);
      } else if (tensor.bound > 0) {
        sample = std::floor((unit + 1) / 2 * static_cast<double>(tensor.bound));
      } else if (tensor.dtype == DType::kBool) {
        sample = unit < 0 ? 0 : 1;
      } else {
        sample = std::floor(8 * unit) + (IsUnsigned(tensor.dtype) ? 8 : 0);
      }
    }
  }

  // The inputs that a stage reads and whose values may be scaled.
  std::vector<size_t> FloatInputs(size_t stage) const {
    std::vector<size_t> inputs;
    for (const ExprId value : workload_.stages[stage].values) {
      workload_.pool.VisitLoads(value, [&](const Expr& load) {
        const int input = input_of_tensor_[load.buffer];
        if (input >= 0 && ir::IsFloat(workload_.tensors[load.buffer].dtype)) {
          inputs.push_back(input);
        }
      });
    }
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    return inputs;
  }

  // Samples the tensors of a stage.
  void Run(size_t stage);
  // Samples stages [begin, end) and returns the cost of their magnitudes.
  double CostOf(size_t begin, size_t end) {
    double cost = 0;
    for (size_t s = begin; s < end; ++s) {
      Run(s);
      for (const BufferId id : workload_.stages[s].tensors) {
        const StageMagnitude& m = magnitudes_[id];
        const double size = m.of_term > 0 ? std::max(0.0, std::fabs(std::log2(m.of_term)) - 1) : 0;
        const double argument = m.largest_argument > 2 ? std::log2(m.largest_argument) - 1 : 0;
        cost += size * size + kUndefined * m.undefined + kOfArgument * argument * argument;
      }
    }
    return cost;
  }
  // Whether positive operands may help in these stages: there are quotients by computed values,
  // powers, logarithms or roots.
  bool NeedsPositive(size_t begin, size_t end) const {
    return std::any_of(shapes_.begin() + static_cast<ptrdiff_t>(begin),
                       shapes_.begin() + static_cast<ptrdiff_t>(end),
                       [](const StageShape& shape) { return shape.needs_positive; });
  }
  double CostOfRange(size_t input) const {
    const InputRange& range = ranges_[input];
    return kOfExponent * range.exponent * range.exponent + (range.positive ? kPositive : 0);
  }

 private:
  struct StageShape {
    int64_t points = 1;             // of the reduction
    int64_t terms = 1;              // of them that are sampled for an element
    std::vector<ExprId> arguments;  // operands of functions with tails
    bool needs_positive = false;
  };
  struct Sums {
    double squares = 0;
    size_t finite = 0;
    size_t all = 0;
    void Add(double value) {
      ++all;
      if (!std::isfinite(value)) return;
      ++finite;
      squares += value * value;
    }
    double Rms() const {
      return finite == 0 ? 0 : std::sqrt(squares / static_cast<double>(finite));
    }
  };

  void Describe(size_t stage) {
    const Stage& s = workload_.stages[stage];
    StageShape& shape = shapes_[stage];
    for (const ir::Axis& axis : s.reduce) shape.points *= axis.extent;
    int64_t nodes = 1;
    for (const ExprId value : s.values) {
      workload_.pool.Visit(value, [&](const Expr& expr) {
        ++nodes;
        const bool divides = expr.op == Op::kDiv && ir::IsFloat(expr.dtype) &&
                             workload_.pool[expr.b].op != Op::kConst;
        shape.needs_positive |= divides || expr.op == Op::kLog || expr.op == Op::kSqrt ||
                                expr.op == Op::kRsqrt || expr.op == Op::kPow;
        if (HasTails(expr.op) && shape.arguments.size() < 8) shape.arguments.push_back(expr.a);
      });
    }
    const int64_t affordable = kMostNodes / (static_cast<int64_t>(kSamples) * nodes);
    shape.terms = std::min(shape.points, std::clamp(affordable, kFewestTerms, kMostTerms));
  }

  double Load(const Expr& load, int64_t gathered, const std::vector<int64_t>& vars) const {
    // Equal indices load equal samples, so x·x is a square and x − x is 0.
    uint64_t hash = load.buffer;
    const auto add = [&hash](int64_t index) {
      hash = (hash ^ static_cast<uint64_t>(index)) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    };
    for (const ir::Index& index : workload_.pool.IndicesOf(load)) {
      add(workload_.atoms.Evaluate(index, vars));
    }
    if (load.gathered >= 0) add(gathered);
    return samples_[load.buffer][hash % kSamples];
  }

  Scalar Evaluate(ExprId id, const std::vector<int64_t>& vars) const {
    const auto load = [&](const Expr& expr, int64_t gathered) -> absl::StatusOr<Scalar> {
      const double value = Load(expr, gathered, vars);
      if (ir::IsFloat(expr.dtype)) return Scalar(value);
      return ir::CastTo(expr.dtype, value);
    };
    const absl::StatusOr<Scalar> value =
        ir::Evaluate(workload_.pool, workload_.atoms, vars, id, load);
    return value.ok() ? *value : Scalar(NAN);
  }

  bool IsInDomain(const Stage& stage, const std::vector<int64_t>& vars) const {
    return std::all_of(stage.guards.begin(), stage.guards.end(), [&](const ir::Condition& guard) {
      const int64_t at = workload_.atoms.Evaluate(guard.index, vars);
      return at >= 0 && at < guard.extent;
    });
  }

  const ir::Workload& workload_;
  std::vector<InputRange> ranges_;
  std::vector<int> input_of_tensor_;
  std::vector<Samples> units_;              // by input
  std::vector<Samples> samples_;            // by tensor
  std::vector<StageMagnitude> magnitudes_;  // by tensor
  std::vector<StageShape> shapes_;
};

void Estimator::Run(size_t stage) {
  const Stage& s = workload_.stages[stage];
  const StageShape& shape = shapes_[stage];
  const size_t components = s.values.size();
  std::vector<int64_t> vars(workload_.atoms.size(), 0);
  std::vector<Sums> arguments(shape.arguments.size());
  // The terms of each element of each component.
  std::vector<std::array<std::vector<double>, kSamples>> terms(components);
  for (size_t n = 0; n < kSamples; ++n) {
    Rng rng(stage, n, 0x7374);
    for (const ir::Axis& axis : s.spatial) {
      vars[axis.var] = static_cast<int64_t>(rng.Below(axis.extent));
    }
    for (int64_t t = 0; t < shape.terms; ++t) {
      int64_t point =
          shape.terms == shape.points ? t : static_cast<int64_t>(rng.Below(shape.points));
      for (auto axis = s.reduce.rbegin(); axis != s.reduce.rend(); ++axis) {
        vars[axis->var] = point % axis->extent;
        point /= axis->extent;
      }
      if (!IsInDomain(s, vars)) continue;
      for (size_t c = 0; c < components; ++c) {
        terms[c][n].push_back(Evaluate(s.values[c], vars).real());
      }
      for (size_t a = 0; a < arguments.size(); ++a) {
        arguments[a].Add(Evaluate(shape.arguments[a], vars).real());
      }
    }
  }
  double largest_argument = 0;
  for (const Sums& sums : arguments) largest_argument = std::max(largest_argument, sums.Rms());

  for (size_t c = 0; c < components; ++c) {
    // Few of the terms are sampled, so the spread of their sums is scaled to that of all terms. A
    // mean that is within its error counts as 0: it would grow with the number of terms instead of
    // with its root.
    double sum = 0, squares = 0, count = 0;
    for (const std::vector<double>& of_element : terms[c]) {
      for (const double term : of_element) {
        if (!std::isfinite(term)) continue;
        sum += term;
        squares += term * term;
        ++count;
      }
    }
    double mean = count > 0 ? sum / count : 0;
    const double variance = count > 0 ? std::max(0.0, squares / count - mean * mean) : 0;
    if (std::fabs(mean) < 3 * std::sqrt(variance / std::max(count, 1.0))) mean = 0;
    // Terms of one sign.
    const bool one_sign = s.reducer == Reducer::kSum && count > 0 &&
                          std::fabs(mean) > 0.3 * std::sqrt(squares / count);
    const double share = static_cast<double>(shape.points) / static_cast<double>(shape.terms);
    Sums sums;
    const BufferId id = s.tensors[c];
    const DType dtype = workload_.tensors[id].dtype;
    for (size_t n = 0; n < kSamples; ++n) {
      const std::vector<double>& of_element = terms[c][n];
      double value = 0;
      const auto size = static_cast<double>(of_element.size());
      if (of_element.empty()) {  // nothing of the reduction's domain was hit
        samples_[id][n] = 0;
        continue;
      }
      const bool second = c == 1;
      if (s.reducer == Reducer::kNone) {
        value = of_element[0];
      } else if (s.reducer == Reducer::kSum) {
        for (const double term : of_element) value += term - mean;
        value = value * std::sqrt(share) + mean * size * share;
      } else if (s.reducer == Reducer::kProd) {
        value = 1;
        for (const double term : of_element) value *= term;
        value = std::copysign(std::pow(std::fabs(value), share), value);
      } else if (s.reducer == Reducer::kOnlineSoftmax && second) {
        const double max = *std::max_element(terms[0][n].begin(), terms[0][n].end());
        for (size_t t = 0; t < of_element.size(); ++t) {
          value += of_element[t] * std::exp(terms[0][n][t] - max);
        }
        value *= share;
      } else if (second) {  // the index of an extreme
        value = of_element[0];
      } else {
        value = ir::IsMinimum(s.reducer) ? *std::min_element(of_element.begin(), of_element.end())
                                         : *std::max_element(of_element.begin(), of_element.end());
      }
      if (ir::IsFloat(dtype)) sums.Add(value);
      samples_[id][n] = std::isfinite(value) ? value : 0;
    }
    if (ir::IsFloat(dtype)) Center(samples_[id]);
    StageMagnitude& magnitude = magnitudes_[id];
    magnitude = {.tensor = id, .rms = sums.Rms(), .largest_argument = largest_argument};
    const bool grows = one_sign || (s.reducer == Reducer::kOnlineSoftmax && c == 1);
    magnitude.of_term =
        grows ? sums.Rms() / static_cast<double>(std::max<int64_t>(shape.points, 1)) : sums.Rms();
    if (sums.all > 0) {
      magnitude.undefined =
          static_cast<double>(sums.all - sums.finite) / static_cast<double>(sums.all);
    }
  }
}

class RangeSearch {
 public:
  explicit RangeSearch(const ir::Workload& workload)
      : workload_(workload), estimator_(workload, {}), inputs_(workload.Inputs()) {}

  std::vector<InputRange> Run() {
    std::vector<bool> known(inputs_.size());
    const size_t stages = workload_.stages.size();
    for (size_t begin = 0; begin < stages;) {
      std::vector<size_t> fresh;
      for (const size_t input : estimator_.FloatInputs(begin)) {
        if (!known[input]) fresh.push_back(input);
        known[input] = true;
      }
      size_t end = begin + 1;
      while (end < stages && !HasFresh(end, known)) ++end;
      Scale(fresh, begin, end);
      begin = end;
    }
    if (estimator_.CostOf(0, stages) >= kUndefined / kSamples && AnyIsUndefined()) {
      for (size_t i = 0; i < std::min(inputs_.size(), kMostSearchedAgain); ++i) {
        if (known[i]) TryPositive(i, 0, stages);
      }
    }
    return estimator_.ranges();
  }

 private:
  bool HasFresh(size_t stage, const std::vector<bool>& known) const {
    const std::vector<size_t> inputs = estimator_.FloatInputs(stage);
    return std::any_of(inputs.begin(), inputs.end(), [&](size_t input) { return !known[input]; });
  }

  bool AnyIsUndefined() const {
    for (size_t t = 0; t < workload_.tensors.size(); ++t) {
      if (estimator_.magnitude(static_cast<BufferId>(t)).undefined > 0) return true;
    }
    return false;
  }

  // Scales inputs that stage `begin` is the first to read; the stages up to `end` read no others.
  void Scale(std::vector<size_t> fresh, size_t begin, size_t end) {
    // Constants, which are mostly weights, come first, and the first operand last.
    std::stable_sort(fresh.begin(), fresh.end(), [&](size_t a, size_t b) {
      const bool a_constant = workload_.tensors[inputs_[a]].constant;
      const bool b_constant = workload_.tensors[inputs_[b]].constant;
      return a_constant != b_constant ? a_constant : a > b;
    });
    for (const size_t input : fresh) TryPositive(input, begin, end);
    if (fresh.empty()) estimator_.CostOf(begin, end);
    for (const size_t input : fresh) {
      const auto [least, most] = ExponentsOf(workload_.tensors[inputs_[input]].dtype);
      double cost = Cost(input, begin, end);
      for (const int step : kSteps) {
        for (const int move : {-step, step}) {
          InputRange range = estimator_.ranges()[input];
          range.exponent += move;
          if (range.exponent < least || range.exponent > most) continue;
          if (Try(input, range, begin, end, /*gain=*/1e-6, cost)) break;
        }
      }
    }
  }

  void TryPositive(size_t input, size_t begin, size_t end) {
    InputRange range = estimator_.ranges()[input];
    if (!estimator_.NeedsPositive(begin, end)) return;
    if (range.positive || !ir::IsFloat(workload_.tensors[inputs_[input]].dtype)) return;
    range.positive = true;
    double cost = Cost(input, begin, end);
    Try(input, range, begin, end, kWorthwhile, cost);
  }

  double Cost(size_t input, size_t begin, size_t end) {
    return estimator_.CostOf(begin, end) + estimator_.CostOfRange(input);
  }

  // Keeps the range if it lowers `cost` by more than `gain`. The samples are those of the range
  // that is kept.
  bool Try(size_t input, InputRange range, size_t begin, size_t end, double gain, double& cost) {
    const InputRange before = estimator_.ranges()[input];
    estimator_.SetRange(input, range);
    const double changed = Cost(input, begin, end);
    if (changed < cost - gain) {
      cost = changed;
      return true;
    }
    estimator_.SetRange(input, before);
    estimator_.CostOf(begin, end);
    return false;
  }

  const ir::Workload& workload_;
  Estimator estimator_;
  const std::vector<BufferId> inputs_;
};

}  // namespace

std::vector<InputRange> ChooseInputRanges(const ir::Workload& workload) {
  return RangeSearch(workload).Run();
}

std::vector<StageMagnitude> EstimateMagnitudes(const ir::Workload& workload,
                                               const std::vector<InputRange>& ranges) {
  Estimator estimator(workload, ranges);
  std::vector<StageMagnitude> magnitudes;
  for (size_t s = 0; s < workload.stages.size(); ++s) {
    estimator.Run(s);
    for (const BufferId id : workload.stages[s].tensors) {
      if (!ir::IsFloat(workload.tensors[id].dtype)) continue;
      magnitudes.push_back(estimator.magnitude(id));
    }
  }
  return magnitudes;
}

Signature SignatureOf(const ir::Workload& workload, ir::ErrorOfOp error_of) {
  Signature signature;
  const auto spec = [&](ir::BufferId id) {
    const ir::Tensor& tensor = workload.tensors[id];
    return TensorSpec{tensor.name, tensor.dtype, ir::ElementsOf(tensor.shape), tensor.bound};
  };
  const std::vector<InputRange> ranges = ChooseInputRanges(workload);
  for (const ir::BufferId id : workload.Inputs()) {
    signature.inputs.push_back(spec(id));
    signature.inputs.back().range = ranges[signature.inputs.size() - 1];
  }
  for (const ir::BufferId id : workload.Outputs()) signature.outputs.push_back(spec(id));
  const ir::Accuracy accuracy(workload, error_of);
  signature.terms = accuracy.terms();
  signature.roundoff = accuracy.roundoff();
  signature.relative_error = accuracy.relative_error();
  signature.has_roundings = accuracy.rounds_on_the_way();
  signature.keeps_integers = accuracy.keeps_integers();
  const auto rounds_to = [&](ir::DType dtype) {
    signature.rounding = std::max(signature.rounding, ir::UnitRoundoff(dtype));
  };
  for (const ir::Stage& stage : workload.stages) {
    for (const ir::ExprId value : stage.values) {
      workload.pool.Visit(value, [&](const ir::Expr& expr) {
        if (expr.op == ir::Op::kCast && !ir::IsWidening(workload.pool[expr.a].dtype, expr.dtype)) {
          rounds_to(expr.dtype);
        }
        if (expr.op == ir::Op::kLoad && ir::StoresShort(workload.tensors[expr.buffer])) {
          rounds_to(expr.dtype);
        }
      });
    }
  }
  return signature;
}

}  // namespace hone::runner
