#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/operator/families.h"
#include "common/operator/formula.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;
using ir::Index;

namespace {

// Winograd's F(4x4, 3x3) (Lavin and Gray, 2016; interpolation points 0, ±1, ±2): a 6 × 6 tile of
// the input gives 4 × 4 outputs with 36 multiplications instead of 144.
constexpr int kTile = 6, kOut = 4, kKernel = 3;

// Bᵀ·d, one element per row.
std::vector<Term> InputTransform(const std::vector<Term>& d) {
  return {
      d[0] * 4 - d[2] * 5 + d[4],      d[3] + d[4] - (d[1] + d[2]) * 4,
      d[4] - d[3] + (d[1] - d[2]) * 4, d[4] - d[2] + (d[3] - d[1]) * 2,
      d[4] - d[2] + (d[1] - d[3]) * 2, d[1] * 4 - d[3] * 5 + d[5],
  };
}

// Aᵀ·m, one element per row.
std::vector<Term> OutputTransform(const std::vector<Term>& m) {
  return {
      m[0] + m[1] + m[2] + m[3] + m[4],
      m[1] - m[2] + (m[3] - m[4]) * 2,
      m[1] + m[2] + (m[3] + m[4]) * 4,
      m[1] - m[2] + (m[3] - m[4]) * 8 + m[5],
  };
}

template <typename Read>
std::vector<Term> Column(Read&& read) {
  std::vector<Term> column;
  for (int i = 0; i < kTile; ++i) column.push_back(read(i));
  return column;
}

// Transforms one dimension at a time. The tiles of all images form one axis: the rows of the 36
// matrix products.
absl::StatusOr<ir::Workload> WinogradConv2d(const Arguments& arguments) {
  OpBuilder b("winograd_conv2d", arguments);
  const int64_t n = arguments["n"], h = arguments["h"], w = arguments["w"], ci = arguments["ci"],
                co = arguments["co"];
  if (h < kKernel || w < kKernel) {
    return absl::InvalidArgumentError(absl::StrCat("winograd_conv2d: a kernel of ", kKernel, "x",
                                                   kKernel, " does not fit into the input of ", h,
                                                   "x", w));
  }
  const ir::Shape shape = {n, h, w, ci};
  HONE_RETURN_IF_ERROR(ir::ValidateTensor({.name = "X", .dtype = arguments.dtype, .shape = shape}));
  const int64_t oh = h - kKernel + 1, ow = w - kKernel + 1;
  const int64_t th = ir::CeilDivInt(oh, kOut), tw = ir::CeilDivInt(ow, kOut), tiles = n * th * tw;
  BufferId x = b.Input("X", shape);
  const BufferId u = b.Weight("U", {kTile, kTile, ci, co});
  if (const int64_t ph = th * kOut + kKernel - 1, pw = tw * kOut + kKernel - 1; ph > h || pw > w) {
    // The last tiles extend past the image. There, the sum over one element has no terms and gives
    // 0.
    const Axis pn = b.NewAxis("n", n), ah = b.NewAxis("h", ph), aw = b.NewAxis("w", pw),
               c = b.NewAxis("ci", ci);
    const Axis one = b.NewAxis("one", 1);
    x = b.Sum("Padded", {pn, ah, aw, c}, {one}, b.At(x, {pn, ah, aw, c}),
              {{Index::Of(ah.var), h}, {Index::Of(aw.var), w}});
  }
  ir::AtomTable& atoms = b.atoms();
  const auto image_of = [&](const Axis& p) { return atoms.FloorDiv(Index::Of(p.var), th * tw); };
  const auto row_of = [&](const Axis& p) {
    return atoms.Mod(atoms.FloorDiv(Index::Of(p.var), tw), th) * kOut;
  };
  const auto column_of = [&](const Axis& p) { return atoms.Mod(Index::Of(p.var), tw) * kOut; };

  const Axis r1 = b.NewAxis("r", kTile), s1 = b.NewAxis("s", kTile), p1 = b.NewAxis("p", tiles),
             c1 = b.NewAxis("ci", ci);
  const BufferId rows = b.Map("RowsIn", {r1, s1, p1, c1},
                              SelectRow(Index::Of(r1.var), InputTransform(Column([&](int i) {
                                          return b.At(x, {image_of(p1), row_of(p1) + i,
                                                          column_of(p1) + Index::Of(s1.var), c1});
                                        }))));
  const Axis r2 = b.NewAxis("r", kTile), s2 = b.NewAxis("s", kTile), p2 = b.NewAxis("p", tiles),
             c2 = b.NewAxis("ci", ci);
  const BufferId v =
      b.Map("V", {r2, s2, p2, c2}, SelectRow(Index::Of(s2.var), InputTransform(Column([&](int i) {
                                               return b.At(rows, {r2, Index(i), p2, c2});
                                             }))));
  const Axis r3 = b.NewAxis("r", kTile), s3 = b.NewAxis("s", kTile), p3 = b.NewAxis("p", tiles),
             co3 = b.NewAxis("co", co);
  const Axis c3 = b.NewAxis("ci", ci);
  const BufferId m =
      b.Sum("M", {r3, s3, p3, co3}, {c3}, b.At(v, {r3, s3, p3, c3}) * b.At(u, {r3, s3, c3, co3}));
  const Axis i4 = b.NewAxis("i", kOut), s4 = b.NewAxis("s", kTile), p4 = b.NewAxis("p", tiles),
             co4 = b.NewAxis("co", co);
  const BufferId rows_out = b.Map(
      "RowsOut", {i4, s4, p4, co4},
      SelectRow(Index::Of(i4.var),
                OutputTransform(Column([&](int i) { return b.At(m, {Index(i), s4, p4, co4}); }))));
  const Axis yn = b.NewAxis("n", n), yh = b.NewAxis("h", oh), yw = b.NewAxis("w", ow),
             yco = b.NewAxis("co", co);
  const Index tile = Index::Of(yn.var, th * tw) + atoms.FloorDiv(Index::Of(yh.var), kOut) * tw +
                     atoms.FloorDiv(Index::Of(yw.var), kOut);
  const Index row = atoms.Mod(Index::Of(yh.var), kOut);
  return b.Build(
      {b.Map("Y", {yn, yh, yw, yco},
             SelectRow(atoms.Mod(Index::Of(yw.var), kOut), OutputTransform(Column([&](int i) {
                         return b.At(rows_out, {row, Index(i), tile, yco});
                       }))))});
}

}  // namespace

std::vector<OperatorInfo> WinogradOperators() {
  return {{.name = "winograd_conv2d",
           .meaning = "conv2d with k=3, s=1, p=0 by F(4,3), with weights that are already "
                      "transformed: U[:, :, ci, co] = G W[:, :, ci, co] G^T, G = [1/4 0 0; -1/6 "
                      "-1/6 -1/6; -1/6 1/6 -1/6; 1/24 1/12 1/6; 1/24 -1/12 1/6; 0 0 1]; oh = h - 2",
           .note =
               "The error of an output is relative to the largest magnitude in its tile: 6 x 6 "
               "inputs and 4 x 4 outputs, all input channels. An element whose own 3 x 3 window "
               "is much smaller than the rest of its tile has the error of the tile: with "
               "inputs of 1 beside inputs of 1e12 it may be wrong in every digit.",
           .keys = {{"n", "batch"},
                    {"h", "input height"},
                    {"w", "input width"},
                    {"ci", "input channels"},
                    {"co", "output channels"}},
           .inputs = {{"X", "n h w ci"}, {"U", "6 6 ci co", /*constant=*/true}},
           .outputs = {{"Y", "n oh ow co"}},
           .types = Types::kFloats,
           .build = WinogradConv2d}};
}

}  // namespace hone::op
