// What several templates have in common.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/space/template/templates.h"

namespace hone::space {

using schedule::Operand;

void InlineStages(const TemplateContext& context, TemplateBuilder& b) {
  for (const std::string& stage : context.form.inlined) b.Add("compute_inline", {b.Block(stage)});
}

void FuseConsumer(const TemplateContext& context, TemplateBuilder& b, const Operand& at,
                  int64_t lanes) {
  if (context.form.consumer.empty()) return;
  const Operand consumer = b.Block(context.form.consumer);
  b.Add("reverse_compute_at", {consumer, at});
  const ir::Workload& workload = context.workload;
  const int rank = static_cast<int>(workload.tensors[workload.Outputs()[0]].shape.size());
  const std::vector<Operand> loops = b.Add("loops", {consumer}, 1 + rank);
  const std::vector<Operand> parts =
      b.Add("split", {loops.back(), schedule::Number(0), schedule::Number(lanes)}, 2);
  b.Add("vectorize", {parts[1]});
}

void PackWeight(const TemplateContext& context, TemplateBuilder& b, const Operand& main,
                const Operand& vectors, int64_t lanes, int blocked, const Operand& block) {
  const OperatorForm& form = context.form;
  const Operand copy =
      b.Add("cache_read", {main, schedule::Text(form.weight), schedule::Text("global")})[0];
  // The dimension along the output's last axis makes the panels.
  const int along = form.kind == OperatorForm::Kind::kMatmul ? 1 : 3;
  const auto rank = static_cast<int>(form.weight_axes.size());
  int panel = 0;
  std::vector<std::string> from, to, last;
  for (int d = 0; d < rank; ++d) {
    from.push_back(absl::StrCat("a", d));
    if (form.weight_axes[d] == along) panel = d;
  }
  const std::string width = absl::StrCat("$0*", lanes);
  to.push_back(absl::StrCat(from[panel], " / ", width));
  if (blocked >= 0) to.push_back(absl::StrCat(from[blocked], " / $1"));
  for (int d = 0; d < rank; ++d) {
    if (d != panel && d != blocked) to.push_back(from[d]);
  }
  if (blocked >= 0) to.push_back(absl::StrCat(from[blocked], " % $1"));
  to.push_back(absl::StrCat(from[panel], " % ", width));
  std::vector<Operand> operands = {
      copy,
      schedule::Text(absl::StrCat(absl::StrJoin(from, ", "), " -> ", absl::StrJoin(to, ", "))),
      vectors};
  if (blocked >= 0) operands.push_back(block);
  b.Add("transform_layout", std::move(operands));
  if (form.constant_weight) return;  // copied ahead of time

  // In the order of the panels, whole vectors at a time.
  const std::vector<Operand> loops = b.Add("loops", {copy}, rank);
  const std::vector<Operand> parts =
      b.Add("split", {loops[panel], schedule::Number(0), vectors, schedule::Number(lanes)}, 3);
  std::vector<Operand> order = {parts[0]};
  for (int d = 0; d < rank; ++d) {
    if (d != panel) order.push_back(loops[d]);
  }
  order.insert(order.end(), {parts[1], parts[2]});
  b.Add("reorder", order);
  b.Add("unroll", {parts[1]});
  b.Add("vectorize", {parts[2]});
  b.Add("parallel", {parts[0]});
}

Operand NumberOf(const KnobLoop& loop) {
  return {.kind = Operand::Kind::kInt, .reg = loop.extent.decision};
}

}  // namespace hone::space
