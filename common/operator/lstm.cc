#include "common/operator/families.h"
#include "common/operator/formula.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;
using ir::Index;

namespace {

// One step of an LSTM (Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al.,
// 2000).
absl::StatusOr<ir::Workload> LstmCell(const Arguments& arguments) {
  OpBuilder b("lstm_cell", arguments);
  const int64_t batch = arguments["b"], i = arguments["i"], h = arguments["h"];
  const BufferId x = b.Input("X", {batch, i}), state = b.Input("H", {batch, h}),
                 cell = b.Input("C", {batch, h});
  const BufferId wx = b.Weight("Wx", {i, 4 * h}), wh = b.Weight("Wh", {h, 4 * h}),
                 bias = b.Weight("Bias", {4 * h});
  const auto product = [&](std::string name, BufferId left, BufferId right) {
    const Axis row = b.NewAxis("b", batch), column = b.NewAxis("g", 4 * h),
               k = b.NewAxis("k", b.ShapeOf(left)[1]);
    return b.Sum(std::move(name), {row, column}, {k},
                 b.At(left, {row, k}) * b.At(right, {k, column}));
  };
  const BufferId from_x = product("FromX", x, wx), from_h = product("FromH", state, wh);
  const auto gate = [&](int number, const Axis& row, const Axis& j) {
    const Index at = Index::Of(j.var) + number * h;
    return b.At(from_x, {row, at}) + b.At(from_h, {row, at}) + b.At(bias, {at});
  };
  const Axis cb = b.NewAxis("b", batch), cj = b.NewAxis("j", h);
  const BufferId next_cell = b.Map("NextC", {cb, cj},
                                   Sigmoid(gate(1, cb, cj)) * b.At(cell, {cb, cj}) +
                                       Sigmoid(gate(0, cb, cj)) * Tanh(gate(2, cb, cj)));
  const Axis hb = b.NewAxis("b", batch), hj = b.NewAxis("j", h);
  const BufferId next_state =
      b.Map("NextH", {hb, hj}, Sigmoid(gate(3, hb, hj)) * Tanh(b.At(next_cell, {hb, hj})));
  return b.Build({next_cell, next_state});
}

}  // namespace

std::vector<OperatorInfo> LstmOperators() {
  return {{.name = "lstm_cell",
           .meaning =
               "G[b, 4h] = X x Wx + H x Wh + Bias, in it the gates i, f, g, o of h columns each; "
               "NextC = sigmoid(f) * C + sigmoid(i) * tanh(g); NextH = sigmoid(o) * tanh(NextC)",
           .keys = {{"b", "batch"}, {"i", "input features"}, {"h", "hidden features"}},
           .inputs = {{"X", "b i"},
                      {"H", "b h"},
                      {"C", "b h"},
                      {"Wx", "i 4*h", true},
                      {"Wh", "h 4*h", true},
                      {"Bias", "4*h", true}},
           .outputs = {{"NextC", "b h"}, {"NextH", "b h"}},
           .types = Types::kFloats,
           .build = LstmCell}};
}

}  // namespace hone::op
