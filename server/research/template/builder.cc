#include "server/research/template/builder.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ir/index.h"
#include "common/schedule/primitive/loops.h"

namespace hone::space {
namespace {

using schedule::Operand;
using Decisions = absl::Span<const int64_t>;

// A long loop with fewer two-part splits than this has too few to search.
constexpr int kFewFactors = 4;

bool HasFewFactors(int64_t extent) {
  int factors = 0;
  for (int64_t f = 1; f <= extent && factors < kFewFactors; ++f) factors += extent % f == 0;
  return factors < kFewFactors;
}

}  // namespace

std::vector<Operand> TemplateBuilder::Add(absl::string_view primitive,
                                          std::vector<Operand> operands, int results) {
  return trace_.Add(primitive, std::move(operands), {}, results);
}

Operand TemplateBuilder::Block(const std::string& name) {
  return Add("block", {schedule::Text(name)})[0];
}

std::vector<KnobLoop> TemplateBuilder::Loops(const Operand& block,
                                             absl::Span<const int64_t> extents) {
  std::vector<KnobLoop> loops;
  for (const Operand& loop : Add("loops", {block}, static_cast<int>(extents.size()))) {
    loops.push_back({loop, {.extent = extents[loops.size()]}});
  }
  return loops;
}

Operand TemplateBuilder::Sample(std::vector<int64_t> candidates) {
  return trace_.Add("sample_categorical", {}, {{"candidates", std::move(candidates)}})[0];
}

std::vector<KnobLoop> TemplateBuilder::DefineSplit(const KnobLoop& loop, int64_t max_innermost,
                                                   int parts, int64_t short_extent) {
  const int64_t extent = loop.extent.extent;
  std::vector<schedule::Attribute> attributes = {{"parts", {parts}}};
  if (max_innermost > 0) attributes.push_back({"max_inner", {max_innermost}});
  const std::vector<Operand> sizes = trace_.Add(
      extent > short_extent && HasFewFactors(extent) ? "sample_tile" : "sample_perfect_tile",
      {loop.loop}, std::move(attributes), parts);
  std::vector<Operand> operands = {loop.loop};
  operands.insert(operands.end(), sizes.begin(), sizes.end());
  std::vector<KnobLoop> loops;
  for (const Operand& part : Add("split", std::move(operands), parts)) {
    loops.push_back({part, {.decision = sizes[loops.size()].reg}});
  }
  return loops;
}

std::pair<KnobLoop, KnobLoop> TemplateBuilder::SplitOff(const KnobLoop& loop, int64_t inner) {
  const std::vector<Operand> parts =
      Add("split", {loop.loop, schedule::Number(0), schedule::Number(inner)}, 2);
  return {{parts[0], {.extent = ir::CeilDivInt(loop.extent.extent, inner)}},
          {parts[1], {.extent = inner}}};
}

void TemplateBuilder::DefineReorder(absl::Span<const KnobLoop> loops,
                                    const std::vector<std::vector<int>>& orders) {
  std::vector<int64_t> candidates;
  for (size_t o = 0; o < orders.size(); ++o) candidates.push_back(static_cast<int64_t>(o));
  const Operand choice = Sample(std::move(candidates));
  std::vector<Operand> operands = {
      choice, schedule::Text(absl::StrJoin(orders, " | ", [](std::string* out, const auto& o) {
        absl::StrAppend(out, absl::StrJoin(o, " "));
      }))};
  int reads = choice.reg + 1;
  std::vector<KnobExtent> extents;
  for (const KnobLoop& loop : loops) {
    operands.push_back(loop.loop);
    extents.push_back(loop.extent);
    reads = std::max(reads, loop.extent.Reads());
  }
  Add("reorder_by", std::move(operands));
  if (orders.size() == 1) return;
  AddDecisionFilter("order", reads, [orders, extents, place = choice.reg](Decisions d) {
    const auto without_units = [&](const std::vector<int>& order) {
      std::vector<int> kept;
      for (int loop : order) {
        if (extents[loop].Of(d) > 1) kept.push_back(loop);
      }
      return kept;
    };
    const std::vector<int> chosen = without_units(orders[d[place]]);
    for (int64_t earlier = 0; earlier < d[place]; ++earlier) {
      if (without_units(orders[earlier]) == chosen) return false;
    }
    return true;
  });
}

void TemplateBuilder::DefineUnroll(const KnobLoop& loop) {
  const Operand kind = Sample({schedule::kKeepSerial, schedule::kUnroll});
  Add("loop_kind", {loop.loop, kind});
  unrolled_.push_back({loop.extent, kind.reg});
  AddDecisionFilter("unroll", std::max(kind.reg + 1, loop.extent.Reads()),
                    [extent = loop.extent, place = kind.reg](Decisions d) {
                      return d[place] == schedule::kKeepSerial || extent.Of(d) > 1;
                    });
}

void TemplateBuilder::DefineUnrollDepth(absl::Span<const KnobLoop> loops) {
  const size_t first = unrolled_.size();
  for (size_t l = loops.size(); l-- > 0;) {
    DefineUnroll(loops[l]);
    const std::vector<Unrolled> chosen(unrolled_.begin() + static_cast<ptrdiff_t>(first),
                                       unrolled_.end());
    int reads = 0;
    for (const Unrolled& loop : chosen)
      reads = std::max({reads, loop.extent.Reads(), loop.decision + 1});
    AddDecisionFilter("unroll depth", reads, [chosen](Decisions d) {
      if (d[chosen.back().decision] == schedule::kKeepSerial) return true;
      return absl::c_all_of(chosen, [&](const Unrolled& loop) {
        return d[loop.decision] != schedule::kKeepSerial || loop.extent.Of(d) == 1;
      });
    });
  }
}

void TemplateBuilder::Unroll(const KnobLoop& loop) {
  Add("unroll", {loop.loop});
  unrolled_.push_back({loop.extent, -1});
}

void TemplateBuilder::VirtualThreads(const KnobLoop& loop) {
  Add("bind", {loop.loop, schedule::Text("vthread")});
  unrolled_.push_back({loop.extent, -1});
}

Operand TemplateBuilder::Parallel(absl::Span<const KnobLoop> loops, absl::Span<const KnobLoop> all,
                                  int64_t cores) {
  std::vector<Operand> operands;
  for (const KnobLoop& loop : loops) operands.push_back(loop.loop);
  const Operand fused = operands.size() > 1 ? Add("fuse", std::move(operands))[0] : operands[0];
  Add("parallel", {fused});
  std::vector<KnobLoop> both(loops.begin(), loops.end());
  both.insert(both.end(), all.begin(), all.end());
  AddFilter("parallel", both, [cores, outer = loops.size()](absl::Span<const int64_t> extents) {
    int64_t iterations = 1, most = 1;
    for (size_t e = 0; e < extents.size(); ++e) (e < outer ? iterations : most) *= extents[e];
    return iterations >= std::min(cores, most);
  });
  return fused;
}

void TemplateBuilder::AddFilter(std::string name, absl::Span<const KnobLoop> loops,
                                std::function<bool(absl::Span<const int64_t> extents)> holds) {
  std::vector<KnobExtent> extents;
  int reads = 0;
  for (const KnobLoop& loop : loops) {
    extents.push_back(loop.extent);
    reads = std::max(reads, loop.extent.Reads());
  }
  AddDecisionFilter(std::move(name), reads,
                    [extents = std::move(extents), holds = std::move(holds)](Decisions d) {
                      std::vector<int64_t> values;
                      for (const KnobExtent& extent : extents) values.push_back(extent.Of(d));
                      return holds(values);
                    });
}

void TemplateBuilder::AddDecisionFilter(
    std::string name, int reads, std::function<bool(absl::Span<const int64_t> decisions)> holds) {
  if (reads == 0) return;  // the filter depends on no decision
  constraints_.push_back({std::move(name), reads, std::move(holds)});
}

void TemplateBuilder::LimitUnrolled(int64_t statements) {
  int reads = 0;
  for (const Unrolled& loop : unrolled_) {
    reads = std::max({reads, loop.extent.Reads(), loop.decision + 1});
  }
  AddDecisionFilter("statements", reads, [statements, loops = unrolled_](Decisions d) {
    int64_t product = 1;
    bool chosen = false;
    for (const Unrolled& loop : loops) {
      if (loop.decision >= 0 && d[loop.decision] == schedule::kKeepSerial) continue;
      chosen |= loop.decision >= 0;
      product *= loop.extent.Of(d);
    }
    return !chosen || product <= statements;
  });
}

absl::StatusOr<std::unique_ptr<DesignSpace>> TemplateBuilder::Finish(
    std::string name, std::shared_ptr<const ir::Workload> workload) && {
  return DesignSpace::Create(std::move(name), std::move(workload), std::move(trace_).Build(),
                             std::move(constraints_));
}

}  // namespace hone::space
