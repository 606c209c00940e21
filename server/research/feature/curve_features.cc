#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "server/research/feature/feature_sets.h"
#include "server/research/feature/touch.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {
namespace {

using Values = absl::InlinedVector<double, 24>;

struct RelationInfo {
  CurveOptions::Relation relation;
  absl::string_view name;
};
constexpr RelationInfo kRelations[] = {{CurveOptions::kCountToReuse, "count_reuse"},
                                       {CurveOptions::kReuseToCount, "reuse_count"},
                                       {CurveOptions::kCountToTopdown, "count_topdown"},
                                       {CurveOptions::kTopdownToCount, "topdown_count"}};
// Logarithms of products may differ from integers by rounding errors.
constexpr double kTolerance = 1e-6;

// The points of a curve in ascending order; the first is the origin.
struct Curve {
  Values x, y;
};

Curve CurveOf(const Values& x, const Values& y) {
  Curve curve{x, y};
  for (Values* side : {&curve.x, &curve.y}) {
    std::sort(side->begin(), side->end());
    side->insert(side->begin(), 0.0);
  }
  return curve;
}

float* Sample(const Curve& curve, int samples, float* out) {
  size_t at = 0;
  for (int t = 0; t < samples; ++t) {
    while (at + 1 < curve.x.size() && curve.x[at + 1] < t + kTolerance) ++at;
    *out++ = static_cast<float>(curve.y[at]);
    *out++ = static_cast<float>(t - curve.x[at]);
  }
  return out;
}

struct Touched {
  const Statement* statement;
  const Access* access;
};
using Touches = absl::InlinedVector<Touched, kCurveBuffers>;

Touches InnermostTouches(absl::Span<const Statement> statements) {
  size_t deepest = 0;
  for (const Statement& statement : statements) deepest = std::max(deepest, statement.loops.size());
  Touches touches;
  for (const Statement& statement : statements) {
    if (statement.loops.size() != deepest) continue;
    for (const Access& access : statement.accesses) {
      const auto earlier = absl::c_find_if(
          touches, [&](const Touched& touched) { return touched.access->buffer == access.buffer; });
      if (earlier != touches.end()) {
        *earlier = {&statement, &access};
      } else if (touches.size() < kCurveBuffers) {
        touches.push_back({&statement, &access});
      }
    }
  }
  return touches;
}

float* Write(const Statement& statement, const Access& access, const CurveOptions& options,
             float* out) {
  absl::InlinedVector<Touch, 24> touches;
  TouchesOf(statement, access, touches);
  Values count, reuse, topdown;
  double product = 1;
  for (size_t d = 0; d < touches.size(); ++d) {
    product *= static_cast<double>(statement.loops[d].extent);
    count.push_back(std::log2(touches[d].count));
    reuse.push_back(std::log2(touches[d].reuse));
    topdown.push_back(std::log2(product));
  }
  const std::pair<const Values*, const Values*> sides[] = {
      {&count, &reuse}, {&reuse, &count}, {&count, &topdown}, {&topdown, &count}};
  for (size_t r = 0; r < std::size(kRelations); ++r) {
    if ((options.relations & kRelations[r].relation) == 0) continue;
    out = Sample(CurveOf(*sides[r].first, *sides[r].second), options.samples, out);
  }
  return out;
}

}  // namespace

std::unique_ptr<FeatureSet> MakeCurveFeatures(std::string name, const CurveOptions& options) {
  std::vector<std::string> columns;
  for (int buffer = 0; buffer < kCurveBuffers; ++buffer) {
    for (const RelationInfo& info : kRelations) {
      if ((options.relations & info.relation) == 0) continue;
      for (int t = 0; t < options.samples; ++t) {
        for (const char* what : {"value", "distance"})
          columns.push_back(absl::StrCat("buffer", buffer, ".", info.name, ".", t, ".", what));
      }
    }
  }
  const size_t count = columns.size();
  return std::make_unique<FeatureSet>(
      std::move(name), std::move(columns),
      [options, count](const Nest& nest, const target::Target&, std::vector<float>& rows_out) {
        rows_out.resize(rows_out.size() + count, 0.0f);
        float* out = rows_out.data() + rows_out.size() - count;
        for (const Touched& each : InnermostTouches(nest.statements()))
          out = Write(*each.statement, *each.access, options, out);
      });
}

}  // namespace hone::feature
