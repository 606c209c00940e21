#include "server/research/template/template.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/cases.h"
#include "server/research/template/templates.h"

namespace hone::space {
namespace {

using ir::AtomId;
using ir::Index;
using ir::IndexList;
using ir::Stage;
using ir::Workload;

absl::Status NoTemplate(const Workload& workload, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("there is no template for ", workload.name, ": ", why,
                   "; there are templates for matmul, dense, batch_matmul, conv2d (NHWC: direct, "
                   "packed and Winograd; with groups; conv2d_nchw) and depthwise_conv2d, each "
                   "optionally followed by element-wise stages"));
}

// A factor of a product: the load of a tensor.
struct Factor {
  ir::BufferId tensor = -1;
  IndexList indices;
};

// Returns the two factors if the value is exactly their product, ignoring casts.
std::vector<Factor> FactorsOf(const Workload& workload, ir::ExprId value) {
  std::vector<Factor> factors;
  int others = 0;
  workload.pool.Visit(value, [&](const ir::Expr& expr) {
    if (expr.op == ir::Op::kLoad && expr.gathered < 0) {
      factors.push_back({expr.buffer, workload.pool.IndicesOf(expr)});
    } else if (expr.op != ir::Op::kMul && expr.op != ir::Op::kCast) {
      ++others;
    }
  });
  if (others > 0 || factors.size() != 2 || factors[0].tensor == factors[1].tensor) return {};
  return factors;
}

// Returns the position of the axis that an index equals; −1 if it is another expression.
int AxisOf(const Index& index, const std::vector<ir::Axis>& axes) {
  for (size_t a = 0; a < axes.size(); ++a) {
    if (index.SingleAtom() == axes[a].var) return static_cast<int>(a);
  }
  return -1;
}

// Returns the positions of the axes that occur in an index.
std::vector<int> AxesIn(const Workload& workload, const Index& index,
                        const std::vector<ir::Axis>& axes) {
  std::vector<int> places;
  for (size_t a = 0; a < axes.size(); ++a) {
    if (workload.atoms.DependsOn(index, axes[a].var)) places.push_back(static_cast<int>(a));
  }
  return places;
}

std::vector<int> SingleAxes(const IndexList& indices, const std::vector<ir::Axis>& axes) {
  std::vector<int> places;
  for (const Index& index : indices) places.push_back(AxisOf(index, axes));
  return places;
}

// Whether `places` are exactly the axes of `expected`, in any order.
bool AreOneEach(std::vector<int> places, std::vector<int> expected) {
  absl::c_sort(places);
  absl::c_sort(expected);
  return places == expected;
}

bool MatchMatmul(const Factor& data, const Factor& weight, const std::vector<ir::Axis>& axes,
                 OperatorForm& form) {
  // The reduction is the last axis. The batch axes, i and j precede it, in this order.
  const int k = static_cast<int>(axes.size()) - 1, i = k - 2, j = k - 1;
  std::vector<int> batch;
  for (int axis = 0; axis < i; ++axis) batch.push_back(axis);
  std::vector<int> of_data = batch, of_weight = batch;
  of_data.insert(of_data.end(), {i, k});
  of_weight.insert(of_weight.end(), {j, k});
  form.weight_axes = SingleAxes(weight.indices, axes);
  if (!AreOneEach(SingleAxes(data.indices, axes), of_data) ||
      !AreOneEach(form.weight_axes, of_weight)) {
    return false;
  }
  form.kind = batch.empty() ? OperatorForm::Kind::kMatmul : OperatorForm::Kind::kBatchMatmul;
  form.axes = {i, j, k};
  form.axes.insert(form.axes.end(), batch.begin(), batch.end());
  return true;
}

// The layout of a convolution's tensors: positions of the output's axes, and dimensions of X.
struct ConvLayout {
  int n, h, w, o;
  int rows, columns, channels;
};
constexpr ConvLayout kChannelsLast = {0, 1, 2, 3, 1, 2, 3};
constexpr ConvLayout kChannelsFirst = {0, 2, 3, 1, 2, 3, 1};

// Returns the number of channel groups if an index is c + o / (O / groups) * C; otherwise 0.
int64_t GroupsOf(const Workload& workload, const Index& index, const ir::Axis& c,
                 const ir::Axis& o) {
  if (index.terms().size() != 2 || index.constant() != 0 || index.CoeffOf(c.var) != 1) return 0;
  for (const ir::IndexTerm& term : index.terms()) {
    const ir::Atom& atom = workload.atoms[term.atom];
    if (atom.kind == ir::Atom::Kind::kFloorDiv && atom.argument.SingleAtom() == o.var &&
        term.coeff == c.extent && o.extent % atom.divisor == 0)
      return o.extent / atom.divisor;
  }
  return 0;
}

bool MatchConvolution(const Workload& workload, const Factor& data, const Factor& weight,
                      const std::vector<ir::Axis>& axes, const ConvLayout& at, OperatorForm& form) {
  constexpr int kReduced = 4;
  const bool depthwise = axes.size() == 6, first = at.channels == 1;
  if (data.indices.size() != 4 || weight.indices.size() != (depthwise ? 3u : 4u)) return false;
  if (AxisOf(data.indices[0], axes) != at.n) return false;
  // Finds the two windows and the summed channel, in any order of the reduced axes.
  int taps[2];
  for (int d = 0; d < 2; ++d) {
    const std::vector<int> in = AxesIn(workload, data.indices[d == 0 ? at.rows : at.columns], axes);
    if (in.size() != 2 || in[0] != (d == 0 ? at.h : at.w) || in[1] < kReduced) return false;
    taps[d] = in[1];
  }
  if (taps[0] == taps[1]) return false;
  int channel = AxisOf(data.indices[at.channels], axes);
  int64_t groups = 1;
  if (!depthwise && channel < 0 && !first) {
    channel = 3 * kReduced + 3 - taps[0] - taps[1];  // the remaining one of the three reduced axes
    groups = GroupsOf(workload, data.indices[at.channels], axes[channel], axes[at.o]);
    if (groups == 0) return false;
  }
  if (depthwise ? channel != at.o || first : channel < kReduced) return false;
  form.axes = {at.n, at.h, at.w, at.o, taps[0], taps[1]};
  if (!depthwise) form.axes.push_back(channel);
  form.weight_axes = first ? std::vector<int>{at.o, channel, taps[0], taps[1]}
                           : std::vector<int>(form.axes.begin() + 4, form.axes.end());
  if (!first) form.weight_axes.push_back(at.o);
  if (SingleAxes(weight.indices, axes) != form.weight_axes) return false;
  form.groups = groups;
  form.kind = depthwise    ? OperatorForm::Kind::kDepthwiseConv2d
              : first      ? OperatorForm::Kind::kConv2dNchw
              : groups > 1 ? OperatorForm::Kind::kGroupedConv2d
                           : OperatorForm::Kind::kConv2d;
  return true;
}

// Whether a stage after the sum is element-wise in the tensors that were computed before. Guarded
// values are not, because they cannot be moved to the sum's tiles.
bool IsElementwise(const Workload& workload, const Stage& stage, const Stage& main) {
  if (stage.reducer != ir::Reducer::kNone || stage.tensors.size() != 1 || !stage.guards.empty() ||
      stage.spatial.size() != main.spatial.size() ||
      ir::HasGuardedValue(workload.pool, stage.values)) {
    return false;
  }
  for (size_t a = 0; a < main.spatial.size(); ++a) {
    if (stage.spatial[a].extent != main.spatial[a].extent) return false;
  }
  bool plain = true;
  workload.pool.VisitLoads(stage.values[0], [&](const ir::Expr& load) {
    if (workload.tensors[load.buffer].input) return;
    const std::vector<int> places = SingleAxes(workload.pool.IndicesOf(load), stage.spatial);
    for (size_t a = 0; a < main.spatial.size(); ++a) {
      plain &= a < places.size() && places[a] == static_cast<int>(a);
    }
  });
  return plain;
}

using Kind = OperatorForm::Kind;

template <int64_t m>
bool FitsF(const TemplateContext& context) {
  return FitsWinograd(context, m);
}
template <int64_t m>
void WriteF(const TemplateContext& context, TemplateBuilder& builder) {
  WriteWinograd(context, builder, m);
}
template <int64_t m>
void WriteGpuF(const TemplateContext& context, TemplateBuilder& builder) {
  WriteGpuWinograd(context, builder, m);
}

constexpr Template kTemplates[] = {
    {"matmul", Kind::kMatmul, VariableWeight, WriteMatmul, "tiles of a product of two variables"},
    {"matmul_packed", Kind::kMatmul, VariableWeight, WriteMatmulPacked,
     "like matmul, on panels that are packed in each call"},
    {"dense_packed", Kind::kMatmul, ConstantWeight, WriteMatmulPacked,
     "a product with weights that were packed ahead of time"},
    {"batch_matmul", Kind::kBatchMatmul, Always, WriteMatmul, "tiles of each product"},
    {"batch_matmul_packed", Kind::kBatchMatmul, Always, WriteMatmulPacked,
     "like batch_matmul, on panels of the second operands"},
    {"conv2d_direct", Kind::kConv2d, Always, WriteConv2dDirect,
     "unpacked NHWC, tiles of an image row"},
    {"conv2d_packed", Kind::kConv2d, ConstantWeight, WriteConv2dPacked,
     "data and weights in blocks of channels"},
    {"conv2d_winograd2", Kind::kConv2d, FitsF<2>, WriteF<2>, "F(2x2, 3x3)"},
    {"conv2d_winograd4", Kind::kConv2d, FitsF<4>, WriteF<4>, "F(4x4, 3x3)"},
    {"conv2d_winograd6", Kind::kConv2d, FitsF<6>, WriteF<6>, "F(6x6, 3x3)"},
    {"conv2d_grouped", Kind::kGroupedConv2d, Always, WriteConv2dDirect,
     "NHWC, group by group, tiles of an image row"},
    {"conv2d_nchw", Kind::kConv2dNchw, Always, WriteConv2dNchw,
     "channels first, vectors along an image row"},
    {"depthwise_conv2d", Kind::kDepthwiseConv2d, Always, WriteDepthwise,
     "each channel separately, tiles of the image"},
    {"gpu_matmul", Kind::kMatmul, FitsGpuDense, WriteGpuDense,
     "tiles of blocks, virtual threads, threads and registers; operands in shared memory",
     Serves::kGpus},
    {"gpu_matmul_few_rows", Kind::kMatmul, FitsGpuSmallBatch, WriteGpuSmallBatch,
     "the threads of a block share a sum", Serves::kGpus},
    {"gpu_batch_matmul", Kind::kBatchMatmul, FitsGpuDense, WriteGpuDense, "gpu_matmul of each pair",
     Serves::kGpus},
    {"gpu_conv2d_direct", Kind::kConv2d, FitsGpuConv2d, WriteGpuConv2d,
     "tiles as in gpu_matmul, NHWC", Serves::kGpus},
    {"gpu_conv2d_winograd2", Kind::kConv2d, FitsF<2>, WriteGpuF<2>,
     "F(2x2, 3x3); products as in gpu_matmul", Serves::kGpus},
    {"gpu_conv2d_winograd4", Kind::kConv2d, FitsF<4>, WriteGpuF<4>, "F(4x4, 3x3)", Serves::kGpus},
    {"gpu_conv2d_nchw", Kind::kConv2dNchw, FitsGpuConv2d, WriteGpuConv2d,
     "tiles as in gpu_matmul, channels first", Serves::kGpus},
};

absl::Status CheckTemplates(const ir::Workload& workload) {
  return MatchOperator(workload).status();
}

absl::StatusOr<std::vector<std::unique_ptr<DesignSpace>>> TemplateSpaces(
    const SpaceRequest& request) {
  HONE_RETURN_IF_ERROR(request.workload->Validate());
  HONE_ASSIGN_OR_RETURN(const OperatorForm form, MatchOperator(*request.workload));
  const TemplateContext context{.workload = *request.workload,
                                .form = form,
                                .limits = TileLimits::Of(*request.target, form.dtype),
                                .gpu_limits = GpuTileLimits::Of(*request.target),
                                .tolerance = request.generation.tolerance};
  std::vector<std::unique_ptr<DesignSpace>> spaces;
  absl::Status last;
  for (const Template& entry : kTemplates) {
    if (entry.kind != form.kind || !DoesServe(entry.serves, *request.target) ||
        !entry.fits(context)) {
      continue;
    }
    TemplateBuilder builder;
    entry.write(context, builder);
    absl::StatusOr<std::unique_ptr<DesignSpace>> space =
        std::move(builder).Finish(std::string(entry.name), request.workload);
    if (space.ok()) {
      spaces.push_back(*std::move(space));
    } else {
      last = space.status();
    }
  }
  if (spaces.empty() && last.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "workload ", request.workload->name,
        ": there is no template for this operator on a GPU; there are templates for matmul, dense, "
        "batch_matmul, conv2d and conv2d_nchw, without groups"));
  }
  if (spaces.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("workload ", request.workload->name, ": no template fits: ", last.message()));
  }
  return spaces;
}

}  // namespace

absl::StatusOr<OperatorForm> MatchOperator(const Workload& workload) {
  const Stage& main = workload.stages[0];
  OperatorForm form;
  if (main.reducer != ir::Reducer::kSum || main.tensors.size() != 1)
    return NoTemplate(workload, "it does not begin with a sum");
  form.main = workload.tensors[main.tensors[0]].name;
  form.dtype = workload.tensors[main.tensors[0]].dtype;
  // Templates tile the reduction, and thus store partial sums.
  if (ir::AccumulatorOf(form.dtype) != form.dtype) {
    return NoTemplate(workload,
                      absl::StrCat("it adds up in ", ir::DTypeName(form.dtype), " and not in f32"));
  }
  form.guarded = !main.guards.empty();

  std::vector<ir::Axis> axes = main.spatial;
  axes.insert(axes.end(), main.reduce.begin(), main.reduce.end());
  for (const ir::Axis& axis : axes) form.extents.push_back(axis.extent);
  const std::vector<Factor> factors = FactorsOf(workload, main.values[0]);
  if (factors.size() != 2)
    return NoTemplate(workload, "its sum is not one of products of two tensors");
  bool matched = false;
  for (int weight = 1; weight >= 0 && !matched; --weight) {
    const Factor &w = factors[weight], &x = factors[1 - weight];
    if (!workload.tensors[w.tensor].input || !workload.tensors[x.tensor].input) continue;
    if (main.spatial.size() >= 2 && main.reduce.size() == 1) {
      matched = MatchMatmul(x, w, axes, form);
    } else if (main.spatial.size() == 4 && (main.reduce.size() == 2 || main.reduce.size() == 3)) {
      matched = MatchConvolution(workload, x, w, axes, kChannelsLast, form) ||
                MatchConvolution(workload, x, w, axes, kChannelsFirst, form);
    }
    if (!matched) continue;
    form.data = workload.tensors[x.tensor].name;
    form.weight = workload.tensors[w.tensor].name;
    form.constant_weight = workload.tensors[w.tensor].constant;
  }
  if (!matched) return NoTemplate(workload, "its sum has other indices");

  for (size_t s = 1; s < workload.stages.size(); ++s) {
    const Stage& stage = workload.stages[s];
    if (!IsElementwise(workload, stage, main))
      return NoTemplate(workload, "a stage after the sum is not element-wise");
    const ir::Tensor& tensor = workload.tensors[stage.tensors[0]];
    const bool last = s + 1 == workload.stages.size();
    if (tensor.output != last) return NoTemplate(workload, "it has several outputs");
    if (last) {
      form.consumer = tensor.name;
    } else {
      form.inlined.push_back(tensor.name);
    }
  }
  if (workload.Outputs().size() != 1) return NoTemplate(workload, "it has several outputs");
  return form;
}

absl::Span<const Template> Templates() { return kTemplates; }

const SpaceMaker kTemplateMaker = {
    "templates", CheckTemplates, TemplateSpaces,
    "handwritten schedules with knobs for each operator, like AutoTVM's"};

}  // namespace hone::space
