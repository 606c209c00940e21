#include "client/network/onnx/gather_nd.h"

#include <functional>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using graph::ValueId;
using Ints = std::vector<int64_t>;

constexpr int64_t kMaxBatch = int64_t{1} << 20;  // the importer makes a constant of this size

int64_t Product(Ints::const_iterator begin, Ints::const_iterator end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
}

// What a GatherND looks up.
struct LookUp {
  Ints data, indices;
  int64_t batch = 0;  // leading dimensions that both have
  int64_t count = 0;  // the number of dimensions that are looked up, which follow the batch

  static absl::StatusOr<LookUp> Of(const graph::NodeView& node) {
    if (node.inputs() != 2 || !node.Has(1)) return node.InvalidError("needs two inputs");
    LookUp look_up{node.Shape(0), node.Shape(1)};
    HONE_ASSIGN_OR_RETURN(look_up.batch, node.Int("batch_dims", 0));
    const int64_t rank = node.Rank(0), batch = look_up.batch;
    bool fits = 0 <= batch && batch < rank && batch < node.Rank(1);
    for (int64_t d = 0; fits && d < batch; ++d) fits = look_up.data[d] == look_up.indices[d];
    if (fits) look_up.count = look_up.indices.back();
    if (fits && Product(look_up.data.begin(), look_up.data.begin() + batch) > kMaxBatch) {
      return node.UnimplementedError(
          absl::StrCat("a batch of ", Product(look_up.data.begin(), look_up.data.begin() + batch),
                       " is not supported"));
    }
    if (fits && 1 <= look_up.count && look_up.count <= rank - batch) return look_up;
    return node.InvalidError(absl::StrCat("indices of type ", node.Type(1).ToText(), " do not fit ",
                                          node.Type(0).ToText()));
  }

  // The dimensions that are looked up.
  Ints Extents() const { return Ints(data.begin() + batch, data.begin() + batch + count); }
  // The distances between neighboring elements in these dimensions.
  Ints Strides() const {
    const Ints extents = Extents();
    Ints strides(extents.size(), 1);
    for (size_t d = extents.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * extents[d];
    return strides;
  }
  // The shape of the data with all dimensions up to the last one that is looked up joined to one.
  Ints FlatData() const {
    Ints flat = {Product(data.begin(), data.begin() + batch + count)};
    flat.insert(flat.end(), data.begin() + batch + count, data.end());
    return flat;
  }
  // The shape of the indices without its last dimension.
  Ints Places() const { return Ints(indices.begin(), indices.end() - 1); }
};

// Computes the indices into the flat data, in the shape Places().
absl::StatusOr<ValueId> FlatIndices(Rewrite& rewrite, const LookUp& look_up) {
  ValueId index = rewrite.node().inputs[1];
  HONE_ASSIGN_OR_RETURN(const ValueId negative,
                        rewrite.Apply("Less", {index, rewrite.Ints("zero", {0})}));
  HONE_ASSIGN_OR_RETURN(const ValueId from_end,
                        rewrite.Apply("Add", {index, rewrite.Ints("extents", look_up.Extents())}));
  HONE_ASSIGN_OR_RETURN(index, rewrite.Apply("Where", {negative, from_end, index}));
  HONE_ASSIGN_OR_RETURN(const ValueId before,
                        rewrite.Apply("Less", {index, rewrite.Ints("least", {0})}));
  HONE_ASSIGN_OR_RETURN(
      const ValueId behind,
      rewrite.Apply("GreaterOrEqual", {index, rewrite.Ints("ends", look_up.Extents())}));
  HONE_ASSIGN_OR_RETURN(const ValueId outside, rewrite.Apply("Or", {before, behind}));
  HONE_ASSIGN_OR_RETURN(index,
                        rewrite.Apply("Mul", {index, rewrite.Ints("strides", look_up.Strides())}));
  // An index that is out of range in one dimension must not become that of another element: the
  // sum is then out of range, too.
  const Ints all = look_up.FlatData();
  HONE_ASSIGN_OR_RETURN(
      index, rewrite.Apply("Where", {outside, rewrite.Ints("nowhere", {-2 * all.front()}), index}));
  HONE_ASSIGN_OR_RETURN(index, rewrite.Apply("ReduceSum", {index, rewrite.Ints("last", {-1})},
                                             {{"keepdims", int64_t{0}}}));
  if (look_up.batch == 0) return index;
  // The index at which each sample of the batch begins.
  const Ints extents = look_up.Extents();
  const int64_t size = Product(extents.begin(), extents.end());
  Ints begins(Product(look_up.data.begin(), look_up.data.begin() + look_up.batch));
  for (size_t b = 0; b < begins.size(); ++b) begins[b] = static_cast<int64_t>(b) * size;
  Ints shape = look_up.Places();
  for (size_t d = look_up.batch; d < shape.size(); ++d) shape[d] = 1;
  HONE_ASSIGN_OR_RETURN(
      const ValueId offsets,
      rewrite.Apply("Reshape", {rewrite.Ints("begins", begins), rewrite.Ints("shape", shape)}));
  return rewrite.Apply("Add", {index, offsets});
}

}  // namespace

absl::Status GatherND(Rewrite& rewrite) {
  HONE_ASSIGN_OR_RETURN(const LookUp look_up, LookUp::Of(rewrite.view()));
  HONE_ASSIGN_OR_RETURN(const ValueId index, FlatIndices(rewrite, look_up));
  HONE_ASSIGN_OR_RETURN(const ValueId data,
                        rewrite.Apply("Reshape", {rewrite.node().inputs[0],
                                                  rewrite.Ints("flat", look_up.FlatData())}));
  rewrite.node().op = "Gather";
  rewrite.node().inputs = {data, index};
  rewrite.node().attributes = {{"axis", int64_t{0}}};
  return absl::OkStatus();
}

}  // namespace hone::onnx
