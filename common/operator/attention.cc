#include <cmath>

#include "common/operator/families.h"
#include "common/operator/formula.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;

namespace {

// Scores, softmax over the keys, weighted sum of the values. Dividing last takes s·d divisions
// instead of s·t, and lets a schedule compute the weighted sum and the row's sum in one pass.
absl::StatusOr<ir::Workload> Attention(const Arguments& arguments) {
  OpBuilder b("attention", arguments);
  const int64_t batch = arguments["b"], h = arguments["h"], s = arguments["s"], t = arguments["t"],
                d = arguments["d"];
  const BufferId q = b.Input("Q", {batch, h, s, d}), k = b.Input("K", {batch, h, t, d}),
                 v = b.Input("V", {batch, h, t, d});
  struct Row {
    Axis b, h, i;
  };
  const auto row = [&] { return Row{b.NewAxis("b", batch), b.NewAxis("h", h), b.NewAxis("i", s)}; };

  const Row p = row();
  const Axis pj = b.NewAxis("j", t), pd = b.NewAxis("d", d);
  const BufferId scores = b.Sum("Scores", {p.b, p.h, p.i, pj}, {pd},
                                b.At(q, {p.b, p.h, p.i, pd}) * b.At(k, {p.b, p.h, pj, pd}));
  const Row m = row();
  const Axis mj = b.NewAxis("j", t);
  const BufferId max =
      b.Reduce("Max", {m.b, m.h, m.i}, ir::Reducer::kMax, {mj}, b.At(scores, {m.b, m.h, m.i, mj}));
  const Row e = row();
  const Axis ej = b.NewAxis("j", t);
  const Term distance = b.At(scores, {e.b, e.h, e.i, ej}) - b.At(max, {e.b, e.h, e.i});
  const BufferId exp =
      b.Map("Exp", {e.b, e.h, e.i, ej}, Exp(distance * (1 / std::sqrt(static_cast<double>(d)))));
  const Row l = row();
  const Axis lj = b.NewAxis("j", t);
  const BufferId sum = b.Sum("Sum", {l.b, l.h, l.i}, {lj}, b.At(exp, {l.b, l.h, l.i, lj}));
  const Row o = row();
  const Axis od = b.NewAxis("d", d), oj = b.NewAxis("j", t);
  const BufferId values = b.Sum("Values", {o.b, o.h, o.i, od}, {oj},
                                b.At(exp, {o.b, o.h, o.i, oj}) * b.At(v, {o.b, o.h, oj, od}));
  const Row y = row();
  const Axis yd = b.NewAxis("d", d);
  return b.Build({b.Map("Y", {y.b, y.h, y.i, yd},
                        b.At(values, {y.b, y.h, y.i, yd}) / b.At(sum, {y.b, y.h, y.i}))});
}

}  // namespace

std::vector<OperatorInfo> AttentionOperators() {
  return {
      {.name = "attention",
       .meaning = "Y[b, h] = softmax(Q[b, h] x K[b, h]^T / sqrt(d)) x V[b, h], the softmax over t",
       .keys = {{"b", "batch"},
                {"h", "heads"},
                {"s", "queries"},
                {"d", "elements of a head"},
                {.name = "t", .meaning = "keys and values", .default_key = "s"}},
       .inputs = {{"Q", "b h s d"}, {"K", "b h t d"}, {"V", "b h t d"}},
       .outputs = {{"Y", "b h s d"}},
       .types = Types::kFloats,
       .build = Attention}};
}

}  // namespace hone::op
