// Parts shared by several templates.

#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/research/template/templates.h"

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
  // The dimension along the output's last axis is split into panels; every matrix of a batch has
  // its own panels.
  const auto rank = static_cast<int>(form.weight_axes.size());
  const bool batched = form.kind == OperatorForm::Kind::kBatchMatmul;
  const bool matmul = batched || form.kind == OperatorForm::Kind::kMatmul;
  const int along = form.axes[matmul ? 1 : 3];
  int panel = 0;
  std::vector<int> batch, others;
  std::vector<std::string> from, to;
  for (int d = 0; d < rank; ++d) {
    from.push_back(absl::StrCat("a", d));
    if (form.weight_axes[d] == along) {
      panel = d;
    } else if (batched && form.weight_axes[d] < form.axes[0]) {
      batch.push_back(d);
      to.push_back(from.back());
    } else if (d != blocked) {
      others.push_back(d);
    }
  }
  const std::string width = absl::StrCat("$0*", lanes);
  to.push_back(absl::StrCat(from[panel], " / ", width));
  if (blocked >= 0) to.push_back(absl::StrCat(from[blocked], " / $1"));
  for (const int d : others) to.push_back(from[d]);
  if (blocked >= 0) to.push_back(absl::StrCat(from[blocked], " % $1"));
  to.push_back(absl::StrCat(from[panel], " % ", width));
  std::vector<Operand> operands = {
      copy,
      schedule::Text(absl::StrCat(absl::StrJoin(from, ", "), " -> ", absl::StrJoin(to, ", "))),
      vectors};
  if (blocked >= 0) operands.push_back(block);
  b.Add("transform_layout", std::move(operands));
  if (form.constant_weight) return;  // copied ahead of time

  // Copies in panel order, whole vectors at a time.
  const std::vector<Operand> loops = b.Add("loops", {copy}, rank);
  const std::vector<Operand> parts =
      b.Add("split", {loops[panel], schedule::Number(0), vectors, schedule::Number(lanes)}, 3);
  std::vector<Operand> outer;
  for (const int d : batch) outer.push_back(loops[d]);
  outer.push_back(parts[0]);
  std::vector<Operand> order = outer;
  for (int d = 0; d < rank; ++d) {
    const bool placed = d == panel || absl::c_linear_search(batch, d);
    if (!placed) order.push_back(loops[d]);
  }
  order.insert(order.end(), {parts[1], parts[2]});
  b.Add("reorder", order);
  b.Add("unroll", {parts[1]});
  b.Add("vectorize", {parts[2]});
  b.Add("parallel", {outer.size() > 1 ? b.Add("fuse", outer)[0] : outer[0]});
}

void ReorderUnder(TemplateBuilder& b, const std::vector<KnobLoop>& around,
                  const std::vector<KnobLoop>& loops, const std::vector<std::vector<int>>& orders) {
  const auto outer = static_cast<int>(around.size());
  std::vector<KnobLoop> all = around;
  all.insert(all.end(), loops.begin(), loops.end());
  std::vector<std::vector<int>> shifted;
  for (const std::vector<int>& order : orders) {
    shifted.emplace_back();
    for (int loop = 0; loop < outer; ++loop) shifted.back().push_back(loop);
    for (const int loop : order) shifted.back().push_back(outer + loop);
  }
  b.DefineReorder(all, shifted);
}

void FitRegisters(const TemplateContext& context, TemplateBuilder& b, const KnobLoop& rows,
                  const KnobLoop& vectors) {
  b.AddFilter("registers", {rows, vectors},
              [most = context.limits.vector_registers](absl::Span<const int64_t> e) {
                return e[0] * e[1] + e[1] + 1 <= most;
              });
}

Operand NumberOf(const KnobLoop& loop) {
  return {.kind = Operand::Kind::kInt, .reg = loop.extent.decision};
}

}  // namespace hone::space
