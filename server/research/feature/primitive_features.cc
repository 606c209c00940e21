#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/schedule/primitive.h"
#include "common/schedule/trace.h"
#include "server/research/feature/feature_sets.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {
namespace {

using schedule::Operand;

std::vector<std::string> PrimitiveColumnNames(const PrimitiveOptions& options) {
  std::vector<std::string> names;
  for (const schedule::Primitive& primitive : schedule::Primitives())
    names.push_back(absl::StrCat("type.", primitive.name));
  for (int i = 0; i < options.arguments; ++i) names.push_back(absl::StrCat("argument", i));
  return names;
}

// Writes the arguments of instructions as numbers. Names of a workload are numbered in the order in
// which they first appear; the meaning of other words is fixed.
class ArgumentWriter {
 public:
  ArgumentWriter(const schedule::Trace& trace, absl::Span<const int64_t> decisions)
      : decisions_(decisions), numbers_(static_cast<size_t>(trace.ints), 0) {}

  // Remembers the numbers that an instruction draws.
  void Draw(const schedule::Instruction& instruction) {
    for (int i = 0; i < instruction.decision_count; ++i) {
      const Operand& result = instruction.results[i];
      if (result.kind == Operand::Kind::kInt)
        numbers_[result.reg] = decisions_[instruction.decision_begin + i];
    }
  }

  // Writes at most out.size() arguments.
  void Write(const schedule::Instruction& instruction, absl::Span<float> out) {
    size_t at = 0;
    const auto add = [&](float value) {
      if (at < out.size()) out[at++] = value;
    };
    for (size_t i = 0; i < instruction.operands.size(); ++i)
      add(ValueOf(instruction.operands[i], instruction.primitive->ArgumentOf(i)));
    for (int i = 0; i < instruction.decision_count; ++i)
      add(SignedLog2(static_cast<double>(decisions_[instruction.decision_begin + i])));
    for (const schedule::Attribute& attribute : instruction.attributes) {
      for (const int64_t number : attribute.numbers) add(SignedLog2(static_cast<double>(number)));
    }
  }

 private:
  float ValueOf(const Operand& operand, const schedule::Argument* argument) {
    switch (operand.kind) {
      case Operand::Kind::kBlock:
      case Operand::Kind::kLoop:
        return static_cast<float>(operand.reg + 1);
      case Operand::Kind::kInt:
        return SignedLog2(static_cast<double>(numbers_[operand.reg]));
      case Operand::Kind::kNumber:
        return SignedLog2(static_cast<double>(operand.number));
      case Operand::Kind::kString:
        break;
    }
    const absl::string_view kind = argument == nullptr ? "" : argument->name;
    if (kind != "name" && kind != "buffer" && kind != "stage") return WordToken(operand.text);
    const auto known = std::find(names_.begin(), names_.end(), operand.text);
    if (known != names_.end()) return static_cast<float>(known - names_.begin() + 1);
    names_.push_back(operand.text);
    return static_cast<float>(names_.size());
  }

  // Scopes, axes, instructions and the like are few, so that two of them seldom share a token.
  static float WordToken(absl::string_view word) {
    constexpr uint64_t kTokens = 61;
    return static_cast<float>(1 + DigestOf(word).low % kTokens);
  }

  const absl::Span<const int64_t> decisions_;
  std::vector<int64_t> numbers_;  // of the registers
  absl::InlinedVector<std::string, 4> names_;
};

class PrimitiveFeatureSet final : public FeatureSet {
 public:
  PrimitiveFeatureSet(std::string name, const PrimitiveOptions& options)
      : FeatureSet(std::move(name), PrimitiveColumnNames(options), /*describe=*/nullptr),
        options_(options) {}

  absl::Status Extract(Description&, std::vector<float>&, int&) const override {
    return absl::FailedPreconditionError(absl::StrCat(
        "feature set '", name(), "' describes a schedule, which a program does not contain"));
  }

  absl::Status ExtractCandidate(Description&, const Chosen& chosen, std::vector<float>& rows_out,
                                int& row_count) const override {
    return ExtractSchedule(chosen, rows_out, row_count);
  }

  absl::Status ExtractSchedule(const Chosen& chosen, std::vector<float>& rows_out,
                               int& row_count) const override {
    if (chosen.trace == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("feature set '", name(), "' needs the candidate's schedule"));
    }
    const schedule::Trace& trace = *chosen.trace;
    const auto made = static_cast<int>(chosen.decisions.size());
    if (options_.draws ? made > trace.decisions : made != trace.decisions) {
      return absl::InvalidArgumentError(
          absl::StrCat("the schedule has ", trace.decisions, " decisions, not ", made));
    }
    const schedule::Primitive* const first = schedule::Primitives().data();
    const auto types = static_cast<size_t>(Columns() - options_.arguments);
    const size_t begin = rows_out.size(), columns = static_cast<size_t>(Columns());
    ArgumentWriter arguments(trace, chosen.decisions);
    row_count = 0;
    for (const schedule::Instruction& instruction : trace.instructions) {
      if (row_count == options_.sequence) break;
      const bool open = instruction.decision_count > 0 &&
                        instruction.decision_begin + instruction.decision_count > made;
      if (open) break;
      arguments.Draw(instruction);
      // Drawn numbers are described where they are used.
      if (!options_.draws && instruction.decision_count > 0 && !instruction.results.empty() &&
          instruction.results[0].kind == Operand::Kind::kInt)
        continue;
      rows_out.resize(rows_out.size() + columns, 0.0f);
      const absl::Span<float> row = absl::MakeSpan(rows_out).last(columns);
      row[static_cast<size_t>(instruction.primitive - first)] = 1;
      arguments.Write(instruction, row.subspan(types));
      ++row_count;
    }
    row_count = std::max(row_count, options_.pad ? options_.sequence : 1);
    rows_out.resize(begin + row_count * columns, 0.0f);
    return absl::OkStatus();
  }

 private:
  const PrimitiveOptions options_;
};

}  // namespace

std::unique_ptr<FeatureSet> MakePrimitiveFeatures(std::string name,
                                                  const PrimitiveOptions& options) {
  return std::make_unique<PrimitiveFeatureSet>(std::move(name), options);
}

}  // namespace hone::feature
