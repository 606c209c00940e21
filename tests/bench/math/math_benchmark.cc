// Times the elementary functions of kernels, and the formulas of activations, over the exponents of
// their types: where a function takes longer than usual, an operand or a result inside of it is
// denormal. Prints a line of a table for each function and type.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "common/base/command_line.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"
#include "common/ir/workload_parser.h"
#include "common/target/target.h"
#include "tests/bench/candidate/timed_kernel.h"
#include "tests/temporary_folder.h"

namespace hone::bench {
namespace {

struct Formula {
  const char* name;
  const char* text;  // of $0
};
constexpr Formula kFormulas[] = {
    {"copy", "$0"},
    {"exp", "exp($0)"},
    {"log", "log($0)"},
    {"tanh", "tanh($0)"},
    {"erf", "erf($0)"},
    {"normal_cdf", "normal_cdf($0)"},
    {"sigmoid", "sigmoid($0)"},
    {"rsqrt", "rsqrt($0)"},
    {"sqrt", "sqrt($0)"},
    {"round", "round($0)"},
    {"inverse", "1.0 / $0"},
    {"third", "$0 / V[0]"},
    {"gelu", "$0 * normal_cdf($0)"},
    {"gelu_with_tanh", "$0 * sigmoid(1.5957692 * ($0 + 0.044715 * $0 * $0 * $0))"},
    {"silu", "$0 * sigmoid($0)"},
    {"mish", "$0 * tanh(log(1.0 + exp($0)))"},
    {"pow_of_x", "pow($0, 1.7)"},
    {"pow_to_x", "pow(1.7, $0)"},
};

constexpr int64_t kElements = 1 << 14;
constexpr int kUnrolled = 8;  // as in drafts of elementwise operators

// A kernel of one formula, scheduled like the draft of an operator.
class Kernel {
 public:
  static absl::StatusOr<Kernel> Make(const Formula& formula, ir::DType dtype,
                                     const target::Target& target, const std::string& folder) {
    const ir::DType wide = ir::AccumulatorOf(dtype);
    const std::string type(ir::DTypeName(dtype)), wide_type(ir::DTypeName(wide));
    const std::string x = wide == dtype ? "X[i]" : absl::StrCat(wide_type, "(X[i])");
    const std::string text =
        absl::StrCat("workload f\ninput X: ", type, "[", kElements, "]\ninput V: ", wide_type,
                     "[1]\noutput Y[i: ", kElements, "] = ", type, "(",
                     absl::Substitute(formula.text, x), ")\n");
    const int lanes = target.vector_bits / 8 / ir::DTypeBytes(wide);
    HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(text));
    Kernel kernel;
    kernel.dtype_ = dtype;
    HONE_ASSIGN_OR_RETURN(
        kernel.timed_,
        TimedKernel::Build(
            workload,
            absl::StrCat(text,
                         "trace 1\nb0 = block(\"Y\")\nl0 = loops(b0)\nl1, l2, l3 = split(l0, 0, ",
                         kUnrolled, ", ", lanes, ")\nunroll(l2)\nvectorize(l3)\n"),
            {}, target, folder));
    HONE_RETURN_IF_ERROR(kernel.timed_->Load());
    ir::WriteElement(wide, kernel.timed_->buffer(1), 0, 3.0);
    return kernel;
  }

  // Returns nanoseconds per element at `x`, and slightly beyond: the best of some rounds.
  double Time(double x) {
    for (int64_t i = 0; i < kElements; ++i)
      ir::WriteElement(dtype_, timed_->buffer(0), i,
                       x * (1 + 0.0006 * static_cast<double>(i) / kElements));
    double best = INFINITY;
    for (int round = 0; round < kRounds; ++round)
      best = std::min(best, timed_->Nanoseconds(0.0002) / kElements);
    return best;
  }

 private:
  static constexpr int kRounds = 7;
  std::unique_ptr<TimedKernel> timed_;
  ir::DType dtype_{};
};

// The exponents of a type's normal numbers, at most 256 of them, with both signs.
std::vector<double> Inputs(ir::DType dtype) {
  const bool f64 = dtype == ir::DType::kF64, f16 = dtype == ir::DType::kF16;
  const int last = f64 ? 1022 : f16 ? 14 : 126;
  std::vector<double> inputs;
  for (int e = -last; e <= last; e += f64 ? 8 : 1)
    inputs.insert(inputs.end(), {std::ldexp(1.0, e), std::ldexp(-1.0, e)});
  // Between the largest powers of two are the arguments whose results become denormal.
  for (double x = 8; x < (f64 ? 800 : 120); x *= 1.02) inputs.insert(inputs.end(), {x, -x});
  return inputs;
}

struct Options {
  std::string target = "native";
  std::vector<std::string> functions, types, at;
};

absl::Status RunAll(const Options& options, const std::string& folder) {
  HONE_ASSIGN_OR_RETURN(target::Target target, target::TargetByName(options.target));
  target.cores = 1;
  std::vector<double> at(options.at.size());
  for (size_t i = 0; i < at.size(); ++i) {
    if (!absl::SimpleAtod(options.at[i], &at[i]))
      return absl::InvalidArgumentError(absl::StrCat("--at ", options.at[i], " is not a number"));
  }
  std::printf("| function | type | usual (ns) |");
  for (const double x : at) std::printf(" %g |", x);
  std::printf(at.empty() ? " slowest | at |\n|---|---|---|---|---|\n" : "\n|---|---|---|");
  for (size_t i = 0; i < at.size(); ++i) std::printf("---|");
  if (!at.empty()) std::printf("\n");
  std::vector<std::string> types = options.types;
  if (types.empty()) types = {"f32"};
  for (const Formula& formula : kFormulas) {
    const std::vector<std::string>& chosen = options.functions;
    if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), formula.name) == chosen.end())
      continue;
    for (const std::string& type : types) {
      HONE_ASSIGN_OR_RETURN(const ir::DType dtype, ir::DTypeFromName(type));
      HONE_ASSIGN_OR_RETURN(Kernel kernel, Kernel::Make(formula, dtype, target, folder));
      const double usual = kernel.Time(1);
      std::printf("| %s | %s | %.3f |", formula.name, type.c_str(), usual);
      for (const double x : at) std::printf(" %.2f |", kernel.Time(x) / usual);
      if (at.empty()) {
        double slowest = 0, where = 0;
        for (const double x : Inputs(dtype)) {
          double time = kernel.Time(x);
          // Another program may have used the core.
          if (time > 1.1 * usual) time = std::min(time, kernel.Time(x));
          if (time > slowest) slowest = time, where = x;
        }
        std::printf(" %.2f | %g |", slowest / usual, where);
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  Command app(
      "Times elementary functions over the exponents of their types, on one thread.\n"
      "Prints nanoseconds per element at 1, and how much longer the slowest input takes.",
      "math_benchmark");
  app.Add("--target", options.target, "Target, which this machine must run", {ShowDefault()});
  app.Add("--function", options.functions, "Functions (default: all)");
  app.Add("--type", options.types, "Types: f32 (default), f64, f16, bf16");
  app.Add("--at", options.at, "Inputs to time instead, as multiples of the time at 1");
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  const TemporaryFolder folder;
  const absl::Status status = RunAll(options, folder.path());
  if (status.ok()) return 0;
  std::fprintf(stderr, "math_benchmark: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) { return hone::bench::Main(argc, argv); }
