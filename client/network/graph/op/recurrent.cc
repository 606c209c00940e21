#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/network/graph/op/concat.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"

// Recurrent layers. The language has no recurrences, so each step of the sequence has its own
// stages. One stage computes the products with the inputs of all steps. An importer divides long
// sequences into nodes of one step, which may differ from ONNX: without W, X has the products of
// the inputs, [steps, batch, rows of all gates], of one direction, and there may be more lengths
// than the batch needs, so that the lengths for each step begin at aligned addresses.
namespace hone::graph {
namespace {

enum class Kind { kRnn, kGru, kLstm };

struct KindInfo {
  int64_t gates;
  int64_t stages;  // per step
  std::vector<std::string> activations;
};

KindInfo InfoOf(Kind kind) {
  switch (kind) {
    case Kind::kRnn:
      return {1, 2, {"tanh"}};
    case Kind::kGru:
      return {3, 4, {"sigmoid", "tanh"}};
    case Kind::kLstm:
      return {4, 3, {"sigmoid", "tanh", "tanh"}};
  }
  return {};
}

// An upper bound on the tensors of a layer that do not belong to a step.
constexpr int64_t kOtherTensors = 24;

// The positions of the inputs.
enum RecurrentInput { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };

// The shapes and attributes of a layer.
struct Layer {
  Kind kind;
  int64_t steps, batch, inputs, hidden, directions, gates;
  bool batch_first, reverse, linear_before_reset;
  bool has_lengths = false;              // whether sequences may be shorter than the input
  std::vector<std::string> activations;  // those of the first direction, then of the second

  static absl::StatusOr<Layer> Of(const NodeView& node, Kind kind);

  // Shapes and indices whose order depends on the layout.
  std::vector<int64_t> StateShape() const {
    return batch_first ? std::vector<int64_t>{batch, directions, hidden}
                       : std::vector<int64_t>{directions, batch, hidden};
  }
  std::vector<int64_t> SequenceShape() const {
    return batch_first ? std::vector<int64_t>{batch, steps, directions, hidden}
                       : std::vector<int64_t>{steps, directions, batch, hidden};
  }
  std::vector<std::string> InState(const std::string& d, const std::string& b,
                                   const std::string& j) const {
    return batch_first ? std::vector<std::string>{b, d, j} : std::vector<std::string>{d, b, j};
  }
};

absl::Status NeedShape(const NodeView& node, int input, const std::vector<int64_t>& shape) {
  if (!node.Has(input) || node.Shape(input) == shape) return absl::OkStatus();
  return node.InvalidError(absl::StrCat("input ", input, " is ", node.Type(input).ToText(),
                                        " instead of ",
                                        TensorType{node.Type(input).dtype, shape}.ToText()));
}

absl::StatusOr<std::vector<std::string>> Activations(const NodeView& node, const KindInfo& info,
                                                     int64_t directions) {
  std::vector<std::string> names;
  for (int64_t d = 0; d < directions; ++d) {
    names.insert(names.end(), info.activations.begin(), info.activations.end());
  }
  const size_t count = names.size();
  HONE_ASSIGN_OR_RETURN(names, node.StringList("activations", names));
  if (names.size() != count) return node.InvalidError("activations has a wrong length");
  for (std::string& name : names) {
    absl::AsciiStrToLower(&name);
    if (name == "sigmoid" || name == "tanh" || name == "relu") continue;
    return node.UnimplementedError(
        absl::StrCat("the activation '", name, "' is not supported; use Sigmoid, Tanh or Relu"));
  }
  return names;
}

// Whether a sequence may be shorter than the input.
absl::StatusOr<bool> HasLengths(const NodeView& node, int64_t steps) {
  if (!node.Has(kLengths)) return false;
  const ir::DType dtype = node.Type(kLengths).dtype;
  if (dtype != ir::DType::kI32 && dtype != ir::DType::kI64) {
    return node.InvalidError(absl::StrCat("lengths are ", node.Type(kLengths).ToText()));
  }
  if (!node.IsConstant(kLengths)) return true;
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, node.Ints(kLengths));
  return std::any_of(lengths.begin(), lengths.end(),
                     [&](int64_t length) { return length < steps; });
}

absl::StatusOr<Layer> Layer::Of(const NodeView& node, Kind kind) {
  const KindInfo info = InfoOf(kind);
  if (node.Rank(kX) != 3 || (node.Has(kW) && node.Rank(kW) != 3)) {
    return node.InvalidError("the input and the weights must have the rank 3");
  }
  Layer l{.kind = kind, .gates = info.gates};
  HONE_ASSIGN_OR_RETURN(const int64_t layout, node.Int("layout", 0));
  HONE_ASSIGN_OR_RETURN(const std::string direction, node.String("direction", "forward"));
  HONE_ASSIGN_OR_RETURN(const int64_t linear, node.Int("linear_before_reset", 0));
  HONE_ASSIGN_OR_RETURN(const int64_t input_forget, node.Int("input_forget", 0));
  if (input_forget != 0 || node.HasAttribute("clip")) {
    return node.UnimplementedError("clip and input_forget are not supported");
  }
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return node.InvalidError(absl::StrCat("direction is '", direction, "'"));
  }
  const std::vector<int64_t>& x = node.Shape(kX);
  l.batch_first = layout != 0;
  l.linear_before_reset = linear != 0;
  l.reverse = direction == "reverse";
  l.directions = direction == "bidirectional" ? 2 : 1;
  l.steps = x[l.batch_first ? 1 : 0];
  l.batch = x[l.batch_first ? 0 : 1];
  l.inputs = x[2];
  l.hidden = (node.Has(kW) ? node.Shape(kW)[1] : l.inputs) / l.gates;
  const int64_t d = l.directions, rows = l.gates * l.hidden;
  if (!node.Has(kW) && (d != 1 || l.inputs != rows)) {
    return node.InvalidError("input 1, the weights, is missing");
  }
  HONE_RETURN_IF_ERROR(NeedShape(node, kW, {d, rows, l.inputs}));
  HONE_RETURN_IF_ERROR(NeedShape(node, kR, {d, rows, l.hidden}));
  HONE_RETURN_IF_ERROR(NeedShape(node, kB, {d, 2 * rows}));
  HONE_RETURN_IF_ERROR(NeedShape(node, kInitialH, l.StateShape()));
  HONE_RETURN_IF_ERROR(NeedShape(node, kInitialC, l.StateShape()));
  HONE_RETURN_IF_ERROR(NeedShape(node, kPeepholes, {d, 3 * l.hidden}));
  HONE_ASSIGN_OR_RETURN(l.activations, Activations(node, info, d));
  const bool more_lengths = node.Has(kLengths) && !node.Has(kW) && node.Rank(kLengths) == 1 &&
                            node.Shape(kLengths)[0] > l.batch;
  if (!more_lengths) HONE_RETURN_IF_ERROR(NeedShape(node, kLengths, {l.batch}));
  HONE_ASSIGN_OR_RETURN(l.has_lengths, HasLengths(node, l.steps));
  const int64_t stages = info.stages + (l.has_lengths ? (kind == Kind::kLstm ? 2 : 1) : 0);
  const int64_t most = (static_cast<int64_t>(ir::kMaxTensors) - kOtherTensors) / (stages * d);
  if (l.steps < 1 || l.steps > most) {
    return node.UnimplementedError(absl::StrCat("a sequence of ", l.steps,
                                                " steps is not supported; use 1 to ", most,
                                                " steps, and pass the state on to the next ones"));
  }
  return l;
}

// Writes the stages of one direction.
class Direction {
 public:
  Direction(const NodeView& node, StageWriter& writer, const Layer& layer, int64_t direction)
      : node_(node),
        writer_(writer),
        layer_(layer),
        d_(absl::StrCat(direction)),
        reverse_(layer.reverse || direction == 1),
        states_(layer.steps) {
    const size_t count = InfoOf(layer.kind).activations.size();
    activations_.assign(layer.activations.begin() + direction * count,
                        layer.activations.begin() + (direction + 1) * count);
    WriteInputs();
    for (int64_t s = 0; s < layer.steps; ++s) {
      const int64_t t = reverse_ ? layer.steps - 1 - s : s;
      // If only the cell of an LSTM is wanted, nothing reads its last state.
      const bool is_read = s + 1 < layer.steps || writer.WantsOutput(0) || writer.WantsOutput(1);
      const std::string h = h_, c = c_;
      Step(absl::StrCat(t), is_read);
      states_[t] = Element(h_, {"b", "j"});
      if (!layer.has_lengths) continue;
      // Beyond the end of a sequence, its state stays and its result is 0.
      const std::string is_in = IsInSequence(t);
      states_[t] = absl::StrCat("select(", is_in, ", ", states_[t], ", 0.0)");
      h_ = Kept("h", is_in, h_, h, kInitialH);
      if (layer.kind == Kind::kLstm) c_ = Kept("c", is_in, c_, c, kInitialC);
    }
  }

  // Elements [b, j] of the result at time t, and of the last state and the last cell.
  std::string StateAt(int64_t t) const { return states_[t]; }
  std::string LastState() const { return Element(h_, {"b", "j"}); }
  std::string LastCell() const { return Element(c_, {"b", "j"}); }

 private:
  // Short floats are rounded only in the outputs; everything before is computed in f32.
  std::string In(int input, const std::vector<std::string>& indices) {
    const ir::DType dtype = node_.Type(input).dtype;
    return Convert(dtype, ir::AccumulatorOf(dtype), writer_.In(input, indices));
  }

  // Whether the time t is in the sequence b.
  std::string IsInSequence(int64_t t) {
    return absl::StrCat(
        Literal(ir::DType::kI64, t), " < ",
        Convert(node_.Type(kLengths).dtype, ir::DType::kI64, writer_.In(kLengths, {"b"})));
  }
  // The new state, or the old one beyond the end of a sequence.
  std::string Kept(absl::string_view name, const std::string& is_in, const std::string& now,
                   const std::string& old, int initial) {
    const std::string before = old.empty()       ? "0.0"
                               : old == kInitial ? In(initial, layer_.InState(d_, "b", "j"))
                                                 : Element(old, {"b", "j"});
    return State(name,
                 absl::StrCat("select(", is_in, ", ", Element(now, {"b", "j"}), ", ", before, ")"));
  }

  // in[t, b, g] = Σ X[t, b, k] · W[g, k], for the rows g of all gates.
  void WriteInputs() {
    if (!node_.Has(kW)) return;
    const std::vector<std::string> x = layer_.batch_first ? std::vector<std::string>{"b", "t", "k"}
                                                          : std::vector<std::string>{"t", "b", "k"};
    in_ = writer_.Stage("in", {"t", "b", "g"},
                        {layer_.steps, layer_.batch, layer_.gates * layer_.hidden},
                        absl::StrCat(Reduction("sum", {"k"}, {layer_.inputs}), In(kX, x), " * ",
                                     In(kW, {d_, "g", "k"})));
  }

  // The element of the products with the inputs at time t, for the row j + `row`.
  std::string InputProduct(const std::string& t, int64_t row) {
    const std::string j = Offset("j", row);
    if (node_.Has(kW)) return Element(in_, {t, "b", j});
    return In(kX, layer_.batch_first ? std::vector<std::string>{"b", t, j}
                                     : std::vector<std::string>{t, "b", j});
  }

  // Writes Σ state[b, k] · R[g + first, k] for `rows` rows. "" if the state is 0.
  std::string Product(const std::string& state, int64_t first, int64_t rows) {
    if (state.empty()) return "";
    return writer_.Stage("rec", {"b", "g"}, {layer_.batch, rows},
                         absl::StrCat(Reduction("sum", {"k"}, {layer_.hidden}), StateK(state),
                                      " * ", In(kR, {d_, Offset("g", first), "k"})));
  }

  // The element [b, k] or [b, j] of the initial state or of a stage: "H[b, k]".
  std::string StateK(const std::string& state) { return At(state, "k"); }
  std::string At(const std::string& state, const std::string& j) {
    if (state == kInitial) return In(kInitialH, layer_.InState(d_, "b", j));
    return Element(state, {"b", j});
  }

  // " + B[...]": the bias of a gate for the input (`which` is 0) or the state (1); "" without a
  // bias.
  std::string Bias(int64_t which, int64_t gate) {
    if (!node_.Has(kB)) return "";
    return absl::StrCat(" + ",
                        In(kB, {d_, Offset("j", (which * layer_.gates + gate) * layer_.hidden)}));
  }
  // The input of a gate at time t, with its biases, and its product with the state if there is one.
  std::string Gate(const std::string& t, int64_t gate, const std::string& product,
                   int64_t first_row) {
    const int64_t row = gate * layer_.hidden;
    return absl::StrCat(
        InputProduct(t, row), Bias(0, gate), Bias(1, gate),
        product.empty()
            ? ""
            : absl::StrCat(" + ", Element(product, {"b", Offset("j", row - first_row)})));
  }
  std::string Activated(size_t function, const std::string& x) const {
    const std::string& name = activations_[function];
    return name == "relu" ? absl::StrCat("max(", x, ", 0.0)") : absl::StrCat(name, "(", x, ")");
  }
  std::string State(absl::string_view name, const std::string& value) {
    return writer_.Stage(name, {"b", "j"}, {layer_.batch, layer_.hidden}, value);
  }

  // `state_is_read`: whether the state after the step is needed.
  void Step(const std::string& t, bool state_is_read) {
    if (layer_.kind == Kind::kRnn) {
      const std::string product = Product(h_, 0, layer_.hidden);
      h_ = State("h", Activated(0, Gate(t, 0, product, 0)));
    } else if (layer_.kind == Kind::kGru) {
      GruStep(t);
    } else {
      LstmStep(t, state_is_read);
    }
  }

  // The gates are z (update), r (reset) and h.
  void GruStep(const std::string& t) {
    const int64_t n = layer_.hidden;
    const bool linear = layer_.linear_before_reset;
    const std::string product = Product(h_, 0, linear ? 3 * n : 2 * n);
    const std::string z = Activated(0, Gate(t, 0, product, 0));
    const std::string r = Activated(0, Gate(t, 1, product, 0));
    std::string candidate;
    if (linear) {
      const std::string bias = Bias(1, 2);  // "" or " + B[...]"
      std::string state = product.empty() ? "" : Element(product, {"b", Offset("j", 2 * n)});
      if (state.empty()) {
        state = bias.empty() ? "" : bias.substr(3);
      } else {
        absl::StrAppend(&state, bias);
      }
      candidate = absl::StrCat(InputProduct(t, 2 * n), Bias(0, 2),
                               state.empty() ? "" : absl::StrCat(" + ", r, " * (", state, ")"));
    } else {
      std::string reset_product;
      if (!h_.empty()) {
        const std::string reset = State("reset", absl::StrCat(r, " * ", At(h_, "j")));
        reset_product = Product(reset, 2 * n, n);
      }
      candidate = Gate(t, 2, reset_product, 2 * n);
    }
    const std::string kept = h_.empty() ? "" : absl::StrCat(" + ", z, " * ", At(h_, "j"));
    h_ = State("h", absl::StrCat("(1.0 - ", z, ") * ", Activated(1, candidate), kept));
  }

  // The gates are i (input), o (output), f (forget) and c (cell).
  void LstmStep(const std::string& t, bool state_is_read) {
    const std::string product = Product(h_, 0, 4 * layer_.hidden);
    const std::string cell = c_.empty()       ? ""
                             : c_ == kInitial ? In(kInitialC, layer_.InState(d_, "b", "j"))
                                              : Element(c_, {"b", "j"});
    const auto peephole = [&](int64_t which, const std::string& value) {
      if (!node_.Has(kPeepholes) || value.empty()) return std::string();
      return absl::StrCat(" + ", In(kPeepholes, {d_, Offset("j", which * layer_.hidden)}), " * ",
                          value);
    };
    const std::string i = absl::StrCat(Gate(t, 0, product, 0), peephole(0, cell));
    const std::string f = absl::StrCat(Gate(t, 2, product, 0), peephole(2, cell));
    const std::string kept = cell.empty() ? "" : absl::StrCat(Activated(0, f), " * ", cell, " + ");
    c_ = State("c",
               absl::StrCat(kept, Activated(0, i), " * ", Activated(1, Gate(t, 3, product, 0))));
    if (!state_is_read) return;
    const std::string now = Element(c_, {"b", "j"});
    const std::string o = absl::StrCat(Gate(t, 1, product, 0), peephole(1, now));
    h_ = State("h", absl::StrCat(Activated(0, o), " * ", Activated(2, now)));
  }

  static constexpr char kInitial[] = "initial";

  const NodeView& node_;
  StageWriter& writer_;
  const Layer& layer_;
  const std::string d_;
  const bool reverse_;
  std::vector<std::string> activations_;
  std::string in_;
  // The stages of the current state and cell; kInitial: an input of the layer; "": zero.
  std::string h_ = node_.Has(kInitialH) ? kInitial : "";
  std::string c_ = node_.Has(kInitialC) ? kInitial : "";
  std::vector<std::string> states_;  // formulas of the results by time
};

template <Kind kKind>
absl::StatusOr<Types> Infer(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, kX));
  if (!node.Has(kR)) return node.InvalidError("input 2, the weights of the state, is missing");
  for (const int input : {kW, kR, kB, kInitialH, kInitialC, kPeepholes}) {
    if (node.Has(input)) HONE_RETURN_IF_ERROR(NeedType(node, input, node.Type(kX).dtype));
  }
  HONE_ASSIGN_OR_RETURN(const Layer layer, Layer::Of(node, kKind));
  const ir::DType dtype = node.Type(kX).dtype;
  Types types = {{dtype, layer.SequenceShape()}, {dtype, layer.StateShape()}};
  if (kKind == Kind::kLstm) types.push_back({dtype, layer.StateShape()});
  return types;
}

template <Kind kKind>
absl::Status Define(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Layer layer, Layer::Of(node, kKind));
  std::vector<Direction> directions;
  for (int64_t d = 0; d < layer.directions; ++d) directions.emplace_back(node, writer, layer, d);
  // Joins a value of each direction along the axis d.
  const auto both = [&](const auto& value) {
    std::vector<Part> parts;
    for (int64_t d = 0; d < layer.directions; ++d) {
      parts.push_back({d, [&value, &directions, d](int64_t) { return value(directions[d]); }});
    }
    const ir::DType dtype = node.Type(kX).dtype;
    return Convert(ir::AccumulatorOf(dtype), dtype,
                   Joined(writer, std::move(parts), {"d"}, {layer.directions}, 0));
  };
  if (writer.WantsOutput(0)) {
    const std::vector<std::string> axes = layer.batch_first
                                              ? std::vector<std::string>{"b", "t", "d", "j"}
                                              : std::vector<std::string>{"t", "d", "b", "j"};
    writer.Output(
        0, axes, both([&](const Direction& direction) {
          std::vector<Part> parts;
          for (int64_t t = 0; t < layer.steps; ++t) {
            parts.push_back({t, [&direction, t](int64_t) { return direction.StateAt(t); }});
          }
          return Joined(writer, std::move(parts), {"t", "b", "j"},
                        {layer.steps, layer.batch, layer.hidden}, 0,
                        ir::kMaxCases / layer.directions);
        }));
  }
  const std::vector<std::string> state = layer.InState("d", "b", "j");
  if (writer.WantsOutput(1))
    writer.Output(1, state, both([](const Direction& direction) { return direction.LastState(); }));
  if (writer.WantsOutput(2))
    writer.Output(2, state, both([](const Direction& direction) { return direction.LastCell(); }));
  return absl::OkStatus();
}

constexpr absl::string_view kRecurrentLimits =
    "activations Sigmoid, Tanh and Relu; no clip or input_forget";

}  // namespace

absl::Span<const OperatorDef> RecurrentOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"GRU", 1, 6, Infer<Kind::kGru>, Define<Kind::kGru>, kRecurrentLimits},
      {"LSTM", 1, 8, Infer<Kind::kLstm>, Define<Kind::kLstm>, kRecurrentLimits},
      {"RNN", 1, 6, Infer<Kind::kRnn>, Define<Kind::kRnn>, kRecurrentLimits},
  };
  return kOperators;
}

}  // namespace hone::graph
