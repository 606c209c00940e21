#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/onnx/compose/composition.h"
#include "common/base/status_macros.h"

// Recurrent layers of long sequences. One matrix product computes what the inputs of all steps
// contribute. Then there is one node for each step. All of these nodes have the same workload,
// which is tuned once and is small.
namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::ValueId;

// Longer sequences are divided. Each kernel of a network takes some microseconds more than the same
// stages inside of another kernel, which matters for the smallest layers only.
constexpr int64_t kMostWholeSteps = 8;
// Nodes of a layer: the import and the plan of a network of more kernels take minutes.
constexpr int64_t kMostSteps = 4096;

// The positions of the inputs.
enum LayerInput { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };

bool HasMatchingRanks(const graph::NodeView& node) {
  for (const int input : {kX, kW, kR}) {
    if (!node.Has(input) || node.Rank(input) != 3) return false;
  }
  return true;  // the operator checks everything else
}

bool IsLong(const graph::NodeView& node) {
  if (!HasMatchingRanks(node)) return false;
  const absl::StatusOr<int64_t> layout = node.Int("layout", 0);
  return layout.ok() && node.Shape(kX)[*layout != 0 ? 1 : 0] > kMostWholeSteps;
}

class LongLayer {
 public:
  explicit LongLayer(Composer& composer) : composer_(composer), op_(composer.view().node().op) {}

  absl::StatusOr<std::vector<ValueId>> Compose() {
    HONE_RETURN_IF_ERROR(Read());
    std::vector<ValueId> sequences, states, cells;
    for (int64_t d = 0; d < directions_; ++d) {
      HONE_ASSIGN_OR_RETURN(const Ends results, ComposeDirection(d));
      sequences.push_back(results.sequence);
      states.push_back(results.state);
      cells.push_back(results.cell);
    }
    std::vector<ValueId> outputs(op_ == "LSTM" ? 3 : 2, kNoValue);
    if (composer_.Wants(0)) {
      HONE_ASSIGN_OR_RETURN(outputs[0], composer_.Concat(sequences, 1));
      if (batch_first_) {
        HONE_ASSIGN_OR_RETURN(outputs[0], composer_.Transpose(outputs[0], {2, 0, 1, 3}));
      }
    }
    for (size_t i = 1; i < outputs.size(); ++i) {
      if (!composer_.Wants(i)) continue;
      HONE_ASSIGN_OR_RETURN(outputs[i], composer_.Concat(i == 1 ? states : cells, 0));
      if (batch_first_) {
        HONE_ASSIGN_OR_RETURN(outputs[i], composer_.Transpose(outputs[i], {1, 0, 2}));
      }
    }
    return outputs;
  }

 private:
  struct Ends {
    ValueId sequence, state, cell;
  };

  absl::Status Read() {
    const graph::NodeView node = composer_.view();
    HONE_ASSIGN_OR_RETURN(const std::string direction, node.String("direction", "forward"));
    HONE_ASSIGN_OR_RETURN(const int64_t layout, node.Int("layout", 0));
    batch_first_ = layout != 0;
    reverse_ = direction == "reverse";
    directions_ = direction == "bidirectional" ? 2 : 1;
    const std::vector<int64_t>& x = node.Shape(kX);
    steps_ = x[batch_first_ ? 1 : 0];
    batch_ = x[batch_first_ ? 0 : 1];
    inputs_ = x[2];
    rows_ = node.Shape(kW)[1];
    hidden_ = node.Shape(kR)[2];
    if (steps_ * directions_ > kMostSteps) {
      return node.UnimplementedError(absl::StrCat(
          "a sequence of ", steps_, " steps in ", directions_,
          " directions is not supported; at most ", kMostSteps, " steps in total are"));
    }
    const int64_t gates = op_ == "LSTM" ? 4 : op_ == "GRU" ? 3 : 1;
    const bool fits = node.Shape(kW)[0] == directions_ && node.Shape(kR)[0] == directions_ &&
                      node.Shape(kW)[2] == inputs_ && rows_ == gates * hidden_;
    if (!fits || std::min({batch_, inputs_, hidden_}) < 1) {
      return node.InvalidError(absl::StrCat("weights of types ", node.Type(kW).ToText(), " and ",
                                            node.Type(kR).ToText(), " do not fit the input ",
                                            node.Type(kX).ToText()));
    }
    for (const int input : {kB, kPeepholes}) {
      if (!node.Has(input) || (node.Rank(input) == 2 && node.Shape(input)[0] == directions_)) {
        continue;
      }
      return node.InvalidError(absl::StrCat("input ", input, " is ", node.Type(input).ToText()));
    }
    const std::vector<int64_t> state = batch_first_
                                           ? std::vector<int64_t>{batch_, directions_, hidden_}
                                           : std::vector<int64_t>{directions_, batch_, hidden_};
    for (const int input : {kInitialH, kInitialC}) {
      if (!node.Has(input) || node.Shape(input) == state) continue;
      return node.InvalidError(absl::StrCat("input ", input, " is ", node.Type(input).ToText()));
    }
    return ReadLengths();
  }

  absl::Status ReadLengths() {
    const graph::NodeView node = composer_.view();
    if (!node.Has(kLengths)) return absl::OkStatus();
    const graph::TensorType& type = node.Type(kLengths);
    if (type.shape != std::vector<int64_t>{batch_} ||
        (type.dtype != ir::DType::kI32 && type.dtype != ir::DType::kI64)) {
      return node.InvalidError(absl::StrCat("lengths are ", type.ToText()));
    }
    if (!node.IsConstant(kLengths)) return FindRemaining();
    HONE_ASSIGN_OR_RETURN(lengths_, node.Ints(kLengths));
    return absl::OkStatus();
  }

  // Computes how many steps of each sequence remain at each time, [steps, samples]. Each row
  // begins at a multiple of 64 bytes, so that it is a view.
  absl::Status FindRemaining() {
    constexpr int64_t kAligned = 16;
    const int64_t more = (kAligned - batch_ % kAligned) % kAligned;
    HONE_ASSIGN_OR_RETURN(ValueId lengths,
                          composer_.Cast(composer_.input(kLengths), ir::DType::kI32));
    if (more > 0) {
      const ValueId none =
          composer_.Constant("none", {ir::DType::kI32, {more}}, ir::Scalars(more, ir::Scalar(0)));
      HONE_ASSIGN_OR_RETURN(lengths, composer_.Concat({lengths, none}, 0));
    }
    ir::Scalars times;
    for (int64_t t = 0; t < steps_; ++t) times.push_back(t);
    const ValueId column = composer_.Constant("times", {ir::DType::kI32, {steps_, 1}}, times);
    HONE_ASSIGN_OR_RETURN(const ValueId remaining, composer_.Apply("Sub", {lengths, column}));
    HONE_ASSIGN_OR_RETURN(remaining_, composer_.Unstack(remaining, 0));
    return absl::OkStatus();
  }

  // The lengths for the node of one step; kNoValue: all sequences have this step.
  absl::StatusOr<ValueId> LengthsAt(int64_t t) {
    if (!remaining_.empty()) return remaining_[t];
    const bool all =
        std::all_of(lengths_.begin(), lengths_.end(), [&](int64_t length) { return length > t; });
    if (all) return kNoValue;
    ir::Scalars left;
    for (const int64_t length : lengths_) left.push_back(length - t);
    return composer_.Constant("left", {ir::DType::kI64, {batch_}}, left);
  }
  bool IsBeyondAll(int64_t t) const {
    return !lengths_.empty() && std::all_of(lengths_.begin(), lengths_.end(),
                                            [&](int64_t length) { return length <= t; });
  }

  // The part of an input that belongs to a direction, which `axis` counts; kNoValue: it is absent.
  absl::StatusOr<ValueId> Of(int input, int64_t direction, int64_t axis = 0) {
    const ValueId value = composer_.input(input);
    if (value == kNoValue) return value;
    return composer_.Slice(value, axis, direction, direction + 1);
  }
  // The same for an initial state, as [1, batch, hidden].
  absl::StatusOr<ValueId> StateOf(int input, int64_t direction) {
    HONE_ASSIGN_OR_RETURN(const ValueId state, Of(input, direction, batch_first_ ? 1 : 0));
    return state == kNoValue ? state : composer_.Reshape(state, {1, batch_, hidden_});
  }

  // The products of the inputs with the weights, [1, batch, rows] for each step.
  absl::StatusOr<std::vector<ValueId>> Products(int64_t direction) {
    ValueId x = composer_.input(kX);
    if (batch_first_ && batch_ > 1) {
      HONE_ASSIGN_OR_RETURN(x, composer_.Transpose(x, {1, 0, 2}));
    }
    HONE_ASSIGN_OR_RETURN(x, composer_.Reshape(x, {steps_ * batch_, inputs_}));
    HONE_ASSIGN_OR_RETURN(ValueId w, Of(kW, direction));
    HONE_ASSIGN_OR_RETURN(w, composer_.Reshape(w, {rows_, inputs_}));
    HONE_ASSIGN_OR_RETURN(ValueId products,
                          composer_.Apply("Gemm", {x, w}, {{"transB", int64_t{1}}}));
    HONE_ASSIGN_OR_RETURN(products, composer_.Reshape(products, {steps_, batch_, rows_}));
    return composer_.Split(products, 0);
  }

  absl::StatusOr<ValueId> Zeros(const graph::TensorType& type) {
    HONE_RETURN_IF_ERROR(composer_.Reserve(type));
    return composer_.Constant("zeros", type,
                              ir::Scalars(type.elements(), ir::CastTo(type.dtype, 0.0)));
  }

  absl::StatusOr<Composer::Attributes> AttributesOf(int64_t direction) const {
    Composer::Attributes attributes = composer_.view().node().attributes;
    attributes.erase("layout");
    attributes.erase("direction");
    HONE_ASSIGN_OR_RETURN(std::vector<std::string> names,
                          composer_.view().StringList("activations", {}));
    if (names.size() % directions_ != 0) {
      return composer_.view().InvalidError("activations has a wrong length");
    }
    if (!names.empty()) {
      const int64_t each = std::ssize(names) / directions_;
      attributes["activations"] = std::vector<std::string>(names.begin() + direction * each,
                                                           names.begin() + (direction + 1) * each);
    }
    return attributes;
  }

  absl::StatusOr<Ends> ComposeDirection(int64_t direction) {
    const bool is_lstm = op_ == "LSTM", backward = reverse_ || direction == 1;
    HONE_ASSIGN_OR_RETURN(const Composer::Attributes attributes, AttributesOf(direction));
    HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> products, Products(direction));
    HONE_ASSIGN_OR_RETURN(const ValueId r, Of(kR, direction));
    HONE_ASSIGN_OR_RETURN(const ValueId b, Of(kB, direction));
    HONE_ASSIGN_OR_RETURN(const ValueId p, Of(kPeepholes, direction));
    HONE_ASSIGN_OR_RETURN(ValueId h, StateOf(kInitialH, direction));
    HONE_ASSIGN_OR_RETURN(ValueId c, StateOf(kInitialC, direction));
    std::vector<ValueId> sequence(composer_.Wants(0) ? steps_ : 0);
    const graph::TensorType step{composer_.TypeOf(composer_.input(kX)).dtype,
                                 {1, 1, batch_, hidden_}};
    const graph::TensorType state{step.dtype, {1, batch_, hidden_}};
    ValueId zeros = kNoValue;
    for (int64_t s = 0; s < steps_; ++s) {
      const int64_t t = backward ? steps_ - 1 - s : s;
      if (IsBeyondAll(t)) {
        if (!composer_.Wants(0)) continue;
        if (zeros == kNoValue) {
          HONE_ASSIGN_OR_RETURN(zeros, Zeros(step));
        }
        sequence[t] = zeros;
        continue;
      }
      HONE_ASSIGN_OR_RETURN(const ValueId lengths, LengthsAt(t));
      std::vector<ValueId> inputs = {products[t], kNoValue, r, b, lengths, h, c, p};
      while (inputs.back() == kNoValue) inputs.pop_back();
      std::vector<bool> wanted = {lengths != kNoValue && composer_.Wants(0), true};
      if (is_lstm) wanted.push_back(true);
      HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> results,
                            composer_.ApplyFor(wanted, op_, std::move(inputs), attributes));
      h = results[1];
      if (is_lstm) c = results[2];
      if (!composer_.Wants(0)) continue;
      HONE_ASSIGN_OR_RETURN(sequence[t],
                            composer_.Reshape(lengths != kNoValue ? results[0] : h, step.shape));
    }
    if (h == kNoValue) {  // no sequence has a step
      HONE_ASSIGN_OR_RETURN(h, Zeros(state));
    }
    if (is_lstm && c == kNoValue) {
      HONE_ASSIGN_OR_RETURN(c, Zeros(state));
    }
    Ends results{.sequence = kNoValue, .state = h, .cell = c};
    if (!composer_.Wants(0)) return results;
    HONE_ASSIGN_OR_RETURN(results.sequence, composer_.Concat(std::move(sequence), 0));
    return results;
  }

  Composer& composer_;
  const std::string op_;
  int64_t steps_ = 0, batch_ = 0, inputs_ = 0, rows_ = 0, hidden_ = 0, directions_ = 0;
  bool batch_first_ = false, reverse_ = false;
  std::vector<int64_t> lengths_;    // if they are constant
  std::vector<ValueId> remaining_;  // at each time, if they are not
};

absl::StatusOr<std::vector<ValueId>> ComposeRecurrent(Rewrite& composer) {
  return LongLayer(composer).Compose();
}

}  // namespace

absl::Span<const Composition> RecurrentCompositions() {
  static constexpr Composition kCompositions[] = {
      {"GRU", ComposeRecurrent, "", IsLong},
      {"LSTM", ComposeRecurrent, "", IsLong},
      {"RNN", ComposeRecurrent, "", IsLong},
  };
  return kCompositions;
}

}  // namespace hone::onnx
