#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/schedule/rewrite/rewrite.h"
#include "server/research/template/gpu_contraction.h"
#include "server/research/template/templates.h"
#include "server/tuner/space/gpu/gpu_editor.h"
#include "server/tuner/space/transform.h"

namespace hone::space {
namespace {

using schedule::Operand;

constexpr int64_t kTransformThreads = 128;  // of a block; each transforms a tile of a channel

// Writes the stages of F(m×m, 3×3), each as a launch.
class GpuWinogradWriter {
 public:
  GpuWinogradWriter(const TemplateContext& context, TemplateBuilder& b, int64_t m,
                    ir::Workload rewritten)
      : context_(context),
        limits_(context.gpu_limits),
        b_(b),
        main_(context.form.main),
        m_(m),
        program_(
            ir::Program::FromWorkload(std::make_shared<const ir::Workload>(std::move(rewritten)))) {
  }

  void Write() {
    b_.Add("rewrite", {schedule::Text("winograd"), schedule::Text(main_), schedule::Number(m_)}, 0);
    if (!context_.form.consumer.empty()) {
      InlineStages(context_, b_);
      b_.Add("reverse_compute_inline", {b_.Block(context_.form.consumer)});
    }
    // The axes of the products are x, y, tile, output channel, input channel. All points of a tile
    // have blocks of their own, so there is no tile_b.
    WriteGpuContraction({.program = program_,
                         .block = program_.FindBlock(Stage("_m")),
                         .batch = {0, 1},
                         .tiled = {2, 3},
                         .reduced = {4}},
                        limits_, b_);
    const ir::Block& weights = program_.BlockOf(program_.FindBlock(Stage("_u")));
    ScheduleGpuNest(b_.trace(), b_.Block(weights.name), weights, limits_, {1}, /*sampled=*/false);
    Transform("_v", {.last = b_.Block(Stage("_v")),
                     .first = b_.Block(Stage("_bd")),
                     .gathered = b_.Block(Stage("_d"))});
    Transform("", {.last = b_.Block(main_), .first = b_.Block(Stage("_am"))});
  }

 private:
  std::string Stage(absl::string_view suffix) const { return absl::StrCat(main_, suffix); }

  // Adjacent threads transform adjacent channels.
  void Transform(absl::string_view stage, const TransformSchedule::Blocks& blocks) {
    const auto transform = FindTransform(program_, program_.FindBlock(Stage(stage))).value();
    const TransformSchedule placed(b_.trace(), program_, transform, blocks, /*lanes=*/1);
    GpuEditor edit(b_.trace());
    GpuEditor::Operands all = placed.tiles();
    all.push_back(placed.vectors());
    const GpuEditor::Operands parts =
        edit.Split(edit.Fuse(all), {Literal(std::min(kTransformThreads, limits_.max_threads))});
    edit.BindBlocks({parts[0]});
    edit.BindThreads({parts[1]});
    placed.SetKinds(b_.trace());
  }

  const TemplateContext& context_;
  const GpuTileLimits& limits_;
  TemplateBuilder& b_;
  const std::string main_;
  const int64_t m_;
  const ir::Program program_;  // the rewritten workload
};

}  // namespace

void WriteGpuWinograd(const TemplateContext& context, TemplateBuilder& builder, int64_t m) {
  absl::StatusOr<ir::Workload> rewritten =
      schedule::ApplyRewriteTo(context.workload, "winograd", context.form.main, {m});
  if (!rewritten.ok()) return;  // FitsWinograd reports this first
  GpuWinogradWriter(context, builder, m, *std::move(rewritten)).Write();
}

}  // namespace hone::space
