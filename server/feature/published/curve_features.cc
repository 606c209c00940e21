#include "server/feature/published/curve_features.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/feature/nest.h"
#include "server/feature/published/touch.h"

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
// Logarithms of products are whole up to rounding.
constexpr double kTolerance = 1e-6;

// The points of a curve by ascending x; the first is the origin.
struct Curve {
  Values x, y;
};

Curve CurveOf(const Values& x, const Values& y, bool joint) {
  Curve curve{x, y};
  if (joint) {
    absl::InlinedVector<std::pair<double, double>, 24> points;
    for (size_t i = 0; i < x.size(); ++i) points.emplace_back(x[i], y[i]);
    std::sort(points.begin(), points.end());
    double largest = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      curve.x[i] = points[i].first;
      curve.y[i] = largest = std::max(largest, points[i].second);
    }
  } else {
    std::sort(curve.x.begin(), curve.x.end());
    std::sort(curve.y.begin(), curve.y.end());
  }
  curve.x.insert(curve.x.begin(), 0.0);
  curve.y.insert(curve.y.begin(), 0.0);
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

class CurveFeatureSet final : public FeatureSet {
 public:
  CurveFeatureSet(std::string name, const CurveOptions& options)
      : name_(std::move(name)), options_(options) {
    for (int buffer = 0; buffer < kCurveBuffers; ++buffer) {
      for (const RelationInfo& info : kRelations) {
        if ((options_.relations & info.relation) == 0) continue;
        for (int t = 0; t < options_.samples; ++t) {
          for (const char* what : {"value", "distance"})
            columns_.push_back(absl::StrCat("buffer", buffer, ".", info.name, ".", t, ".", what));
        }
      }
    }
  }

  absl::string_view name() const override { return name_; }
  int Columns() const override { return static_cast<int>(columns_.size()); }
  const std::vector<std::string>& ColumnNames() const override { return columns_; }

  absl::Status Extract(const ir::Program& program, const target::Target&,
                       std::vector<float>& rows_out, int& row_count) const override {
    thread_local Nest nest;  // keeps its memory from candidate to candidate
    HONE_RETURN_IF_ERROR(AnalyzeBlocks(program, nest));
    const size_t begin = rows_out.size();
    rows_out.resize(begin + columns_.size(), 0.0f);
    float* out = rows_out.data() + begin;
    for (const Touched& each : InnermostTouches(nest.statements()))
      out = Write(*each.statement, *each.access, out);
    row_count = 1;
    return absl::OkStatus();
  }

 private:
  struct Touched {
    const Statement* statement;
    const Access* access;
  };
  using Touches = absl::InlinedVector<Touched, kCurveBuffers>;

  static Touches InnermostTouches(absl::Span<const Statement> statements) {
    size_t deepest = 0;
    for (const Statement& statement : statements)
      deepest = std::max(deepest, statement.loops.size());
    Touches touches;
    for (const Statement& statement : statements) {
      if (statement.loops.size() != deepest) continue;
      for (const Access& access : statement.accesses) {
        const auto earlier = std::find_if(
            touches.begin(), touches.end(),
            [&](const Touched& touched) { return touched.access->buffer == access.buffer; });
        if (earlier != touches.end()) {
          *earlier = {&statement, &access};
        } else if (touches.size() < kCurveBuffers) {
          touches.push_back({&statement, &access});
        }
      }
    }
    return touches;
  }

  float* Write(const Statement& statement, const Access& access, float* out) const {
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
      if ((options_.relations & kRelations[r].relation) == 0) continue;
      out =
          Sample(CurveOf(*sides[r].first, *sides[r].second, options_.joint), options_.samples, out);
    }
    return out;
  }

  const std::string name_;
  const CurveOptions options_;
  std::vector<std::string> columns_;
};

}  // namespace

std::unique_ptr<FeatureSet> MakeCurveFeatures(std::string name, const CurveOptions& options) {
  return std::make_unique<CurveFeatureSet>(std::move(name), options);
}

const FeatureSet& CurveFeatures() {
  static const FeatureSet* const set = MakeCurveFeatures("curve", {}).release();
  return *set;
}

const FeatureSet& CurveOneFeatures() {
  static const FeatureSet* const set = MakeCurveFeatures("curve-one", {.samples = 1}).release();
  return *set;
}

const FeatureSet& CurveFixFeatures() {
  static const FeatureSet* const set = MakeCurveFeatures("curve-fix", {.samples = 30}).release();
  return *set;
}

const FeatureSet& CurveFixReuseFeatures() {
  static const FeatureSet* const set =
      MakeCurveFeatures(
          "curve-fix-reuse",
          {.samples = 30, .relations = CurveOptions::kCountToReuse | CurveOptions::kReuseToCount})
          .release();
  return *set;
}

}  // namespace hone::feature
