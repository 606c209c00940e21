#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/ir/index.h"
#include "common/schedule/rewrite/rewrite.h"
#include "server/research/template/templates.h"
#include "server/tuner/space/generate.h"
#include "server/tuner/space/transform.h"

namespace hone::space {
namespace {

using schedule::Operand;

constexpr int64_t kTaps = 3;
constexpr int64_t kMaxUnrolledInputs = 8;

// Writes the stages of one algorithm, each as a nest.
class Writer {
 public:
  Writer(const TemplateContext& context, TemplateBuilder& b, int64_t m, ir::Workload rewritten)
      : context_(context),
        limits_(context.limits),
        b_(b),
        main_(context.form.main),
        m_(m),
        program_(
            ir::Program::FromWorkload(std::make_shared<const ir::Workload>(std::move(rewritten)))) {
    const OperatorForm& form = context.form;
    const auto extent = [&](int role) { return form.extents[form.axes[role]]; };
    o_ = extent(3), c_ = extent(6);
    points_ = m + kTaps - 1;
    tiles_ = extent(0) * ir::CeilDivInt(extent(1), m) * ir::CeilDivInt(extent(2), m);
    lanes_ = std::min(limits_.lanes, o_);
  }

  void Write() {
    b_.Add("rewrite", {schedule::Text("winograd"), schedule::Text(main_), schedule::Number(m_)}, 0);
    if (!context_.form.consumer.empty()) {
      InlineStages(context_, b_);
      b_.Add("reverse_compute_inline", {b_.Block(context_.form.consumer)});
    }
    const KnobLoop vectors = Products();
    Weights(NumberOf(vectors));
    Tiles();
    Outputs();
    b_.LimitUnrolled(limits_.unrolled_statements);
  }

 private:
  std::string Stage(absl::string_view suffix) const { return absl::StrCat(main_, suffix); }

  // Schedules the points² products of [tiles × channels] by [channels × outputs].
  KnobLoop Products() {
    const std::vector<KnobLoop> loops =
        b_.Loops(b_.Block(Stage("_m")), {points_, points_, tiles_, o_, c_});
    const auto [all, lane] = b_.SplitOff(loops[3], lanes_);
    const std::vector<KnobLoop> rows = b_.DefineSplit(loops[2], limits_.vector_registers - 2);
    const std::vector<KnobLoop> vectors = b_.DefineSplit(all, limits_.max_vectors);
    FitRegisters(context_, b_, rows[1], vectors[1]);
    const std::vector<KnobLoop> k = b_.DefineSplit(loops[4], kMaxUnrolledInputs);
    b_.DefineReorder(
        {loops[0], loops[1], vectors[0], rows[0], k[0], k[1], rows[1], vectors[1], lane},
        {{0, 1, 2, 3, 4, 5, 6, 7, 8}, {0, 1, 3, 2, 4, 5, 6, 7, 8}});
    b_.DefineUnroll(k[1]);
    b_.Unroll(rows[1]);
    b_.Unroll(vectors[1]);
    b_.Add("vectorize", {lane.loop});
    b_.Add("parallel", {b_.Add("fuse", {loops[0].loop, loops[1].loop})[0]});
    return vectors[1];
  }

  // Packs the transformed weights into panels, ahead of time if they are constant.
  void Weights(const Operand& vectors) {
    const Operand block = b_.Block(Stage("_u"));
    const std::vector<Operand> loops = b_.Add("loops", {block}, 4);
    b_.Add(
        "vectorize",
        {b_.Add("split",
                {loops[3], schedule::Number(0), schedule::Number(std::max<int64_t>(1, lanes_ / 2))},
                2)[1]});
    b_.Add("transform_layout", {block,
                                schedule::Text(absl::StrCat("x, y, k, o -> x, y, o / $0*", lanes_,
                                                            ", k, o % $0*", lanes_)),
                                vectors});
    if (!context_.form.constant_weight)
      b_.Add("parallel", {b_.Add("fuse", {loops[0], loops[1]})[0]});
  }

  // Schedules the transform of the input's tiles.
  void Tiles() {
    const TransformSchedule v = Place("_v", {.last = b_.Block(Stage("_v")),
                                             .first = b_.Block(Stage("_bd")),
                                             .gathered = b_.Block(Stage("_d"))});
    const std::vector<KnobLoop> t = b_.DefineSplit({v.tiles()[0], {.extent = tiles_}});
    b_.Parallel({t[0]}, {t[0], t[1]}, limits_.cores);
  }

  // Schedules the transform of the output's tiles; their rows and columns are one loop.
  void Outputs() {
    const TransformSchedule y =
        Place("", {.last = b_.Block(main_), .first = b_.Block(Stage("_am"))});
    const KnobLoop fused{b_.Add("fuse", y.tiles())[0], {.extent = tiles_}};
    const std::vector<KnobLoop> t = b_.DefineSplit(fused);
    b_.Parallel({t[0]}, {t[0], t[1]}, limits_.cores);
  }

  TransformSchedule Place(absl::string_view stage, const TransformSchedule::Blocks& blocks) {
    const Transform transform = FindTransform(program_, program_.FindBlock(Stage(stage))).value();
    TransformSchedule placed(b_.trace(), program_, transform, blocks, limits_.lanes);
    placed.SetKinds(b_.trace());
    return placed;
  }

  const TemplateContext& context_;
  const TileLimits& limits_;
  TemplateBuilder& b_;
  const std::string main_;
  const int64_t m_;
  const ir::Program program_;  // the rewritten workload
  int64_t o_ = 1, c_ = 1;
  int64_t points_ = 1, tiles_ = 1, lanes_ = 1;
};

}  // namespace

bool FitsWinograd(const TemplateContext& context, int64_t m) {
  return FitsWinograd(context.workload, context.form.main, m, context.tolerance);
}

void WriteWinograd(const TemplateContext& context, TemplateBuilder& builder, int64_t m) {
  absl::StatusOr<ir::Workload> rewritten =
      schedule::ApplyRewriteTo(context.workload, "winograd", context.form.main, {m});
  if (!rewritten.ok()) return;  // FitsWinograd reports this first
  Writer(context, builder, m, *std::move(rewritten)).Write();
}

}  // namespace hone::space
