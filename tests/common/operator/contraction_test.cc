// Compares matrix products and operators built from them with Eigen in double.

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/ir/workload.h"
#include "tests/common/operator/arrays.h"

namespace hone::op {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The `rows` × `columns` matrix that begins at an element.
Matrix MatrixAt(const Array& array, int64_t rows, int64_t columns, int64_t begin = 0) {
  return Eigen::Map<const Matrix>(array.data.data() + begin, rows, columns);
}
Matrix AsMatrix(const Array& array) { return MatrixAt(array, array.shape[0], array.shape[1]); }
Eigen::RowVectorXd AsRow(const Array& array) { return MatrixAt(array, 1, array.shape[0]); }

Array AsArray(const Matrix& matrix) {
  Array array({matrix.rows(), matrix.cols()});
  Eigen::Map<Matrix>(array.data.data(), matrix.rows(), matrix.cols()) = matrix;
  return array;
}

Matrix Gelu(const Matrix& x) {
  return x.unaryExpr([](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); });
}
Matrix Sigmoid(const Matrix& x) {
  return x.unaryExpr([](double v) { return 1 / (1 + std::exp(-v)); });
}
Matrix Tanh(const Matrix& x) {
  return x.unaryExpr([](double v) { return std::tanh(v); });
}

TEST(ContractionTest, MatmulMatchesItsDefinition) {
  for (const char* dtype : {"f32", "f64", "bf16", "i32"}) {
    const ir::Workload workload = Built(absl::StrCat("matmul m=5 n=7 k=6 dtype=", dtype));
    EXPECT_FALSE(workload.tensors[0].constant || workload.tensors[1].constant);
    const auto inputs = Inputs(workload, 1, Kind::kWhole);
    ExpectNear(Compute(workload, inputs)[0], AsArray(AsMatrix(inputs[0]) * AsMatrix(inputs[1])), 0,
               dtype);
  }
}

// A sum of 301 ones. Accumulated in bf16 it would stop at 256, because bf16 cannot represent 257.
// It cannot represent 301 either, so a bf16 result is rounded, but only once.
TEST(ContractionTest, AccDeterminesTheResultType) {
  const auto ones = [](const std::string& line) {
    const ir::Workload workload = Built(line);
    std::vector<Array> inputs = Inputs(workload, 1, Kind::kWhole);
    for (Array& input : inputs) std::fill(input.data.begin(), input.data.end(), 1);
    EXPECT_EQ(workload.tensors[0].dtype, ir::DType::kBF16);
    return Compute(workload, inputs)[0].data[0];
  };
  EXPECT_EQ(ones("matmul m=1 n=1 k=301 dtype=bf16"), 300);
  EXPECT_EQ(ones("matmul m=1 n=1 k=301 dtype=bf16 acc=f32"), 301);
  EXPECT_EQ(Built("matmul m=1 n=1 k=300 dtype=bf16 acc=f32").tensors[2].dtype, ir::DType::kF32);
  EXPECT_EQ(Built("matmul m=2 n=3 k=4 dtype=f32 acc=f32").StructuralDigest(),
            Built("matmul m=2 n=3 k=4").StructuralDigest());
}

TEST(ContractionTest, QuantizedProductsSumInI32) {
  for (const auto& [name, constant] :
       {std::pair("quantized_matmul", false), std::pair("quantized_dense", true)}) {
    const ir::Workload workload = Built(absl::StrCat(name, " m=5 n=7 k=600"));
    EXPECT_EQ(workload.tensors[0].dtype, ir::DType::kU8);
    EXPECT_EQ(workload.tensors[1].dtype, ir::DType::kI8);
    EXPECT_EQ(workload.tensors[2].dtype, ir::DType::kI32);
    EXPECT_EQ(workload.tensors[1].constant, constant);
    auto inputs = Inputs(workload, 2, Kind::kWhole);
    for (int64_t k = 0; k < 600; ++k) {  // −19,584,000 needs 32 bits
      inputs[0](0, k) = 255;
      inputs[1](k, 0) = -128;
    }
    ExpectNear(Compute(workload, inputs)[0], AsArray(AsMatrix(inputs[0]) * AsMatrix(inputs[1])), 0,
               name);
  }
}

TEST(ContractionTest, BatchMatmulMatchesItsDefinition) {
  const ir::Workload workload = Built("batch_matmul b=3 m=4 n=5 k=6");
  const auto inputs = Inputs(workload, 3, Kind::kWhole);
  Array expected({3, 4, 5});
  for (int64_t b = 0; b < 3; ++b) {
    const Array one =
        AsArray(MatrixAt(inputs[0], 4, 6, b * 24) * MatrixAt(inputs[1], 6, 5, b * 30));
    std::copy(one.data.begin(), one.data.end(), expected.data.begin() + b * 20);
  }
  ExpectNear(Compute(workload, inputs)[0], expected, 0, "batch_matmul");
}

TEST(ContractionTest, TransposeBatchMatmulMultipliesHeads) {
  const int64_t batch = 2, s = 5, h = 3, d = 4;
  const ir::Workload workload = Built("transpose_batch_matmul b=2 s=5 h=3 d=4");
  const auto inputs = Inputs(workload, 4, Kind::kWhole);
  Array expected({batch, h, s, s});
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t head = 0; head < h; ++head) {
      Matrix q(s, d), k(s, d);
      for (int64_t i = 0; i < s; ++i) {
        for (int64_t j = 0; j < d; ++j) {
          q(i, j) = inputs[0](b, i, head, j);
          k(i, j) = inputs[1](b, i, head, j);
        }
      }
      const Matrix product = q * k.transpose();
      for (int64_t i = 0; i < s; ++i) {
        for (int64_t j = 0; j < s; ++j) expected(b, head, i, j) = product(i, j);
      }
    }
  }
  ExpectNear(Compute(workload, inputs)[0], expected, 0, "transpose_batch_matmul");
}

TEST(ContractionTest, DenseLayersAddBiasAndActivate) {
  for (const char* dtype : {"f32", "f64"}) {
    const std::string keys = absl::StrCat(" m=5 n=7 k=6 dtype=", dtype);
    const double tolerance = dtype == std::string("f32") ? 1e-5 : 1e-13;
    const ir::Workload dense = Built("dense" + keys), gelu = Built("dense_gelu" + keys),
                       relu = Built("dense_relu" + keys);
    for (const ir::Workload& workload : {dense, gelu, relu}) {
      EXPECT_FALSE(workload.tensors[0].constant);
      EXPECT_TRUE(workload.tensors[1].constant);
    }
    const auto inputs = Inputs(dense, 5, Kind::kReal);
    const Matrix product = AsMatrix(inputs[0]) * AsMatrix(inputs[1]);
    const Matrix biased = product.rowwise() + AsRow(inputs[2]);
    ExpectNear(Compute(dense, inputs)[0], AsArray(biased), tolerance, "dense");
    ExpectNear(Compute(gelu, inputs)[0], AsArray(Gelu(biased)), tolerance, "dense_gelu");
    ExpectNear(Compute(relu, {inputs[0], inputs[1]})[0], AsArray(product.cwiseMax(0)), tolerance,
               "dense_relu");
  }
}

TEST(ContractionTest, MlpIsTwoLayers) {
  for (const char* keys : {"m=4 k=6 h=9 n=5", "m=1 k=3 h=12"}) {
    const ir::Workload workload = Built(absl::StrCat("mlp ", keys));
    const auto inputs = Inputs(workload, 6, Kind::kReal);
    const Matrix hidden =
        Gelu((AsMatrix(inputs[0]) * AsMatrix(inputs[1])).rowwise() + AsRow(inputs[2]));
    const Matrix expected = (hidden * AsMatrix(inputs[3])).rowwise() + AsRow(inputs[4]);
    ExpectNear(Compute(workload, inputs)[0], AsArray(expected), 1e-5, keys);
  }
}

TEST(ContractionTest, AttentionWeighsValuesByTheSoftmaxOfScores) {
  struct Case {
    int64_t b, h, s, t, d;
  };
  for (const Case& c : {Case{2, 3, 5, 5, 4}, Case{1, 2, 1, 9, 8}, Case{1, 1, 7, 3, 1}}) {
    const std::string line = absl::StrCat("attention b=", c.b, " h=", c.h, " s=", c.s, " d=", c.d,
                                          c.t == c.s ? "" : absl::StrCat(" t=", c.t));
    const ir::Workload workload = Built(line);
    auto inputs = Inputs(workload, 7, Kind::kReal);
    for (double& q : inputs[0].data)
      q *= 60;  // exponentials overflow unless the maximum is subtracted
    Array expected({c.b, c.h, c.s, c.d});
    for (int64_t head = 0; head < c.b * c.h; ++head) {
      const Matrix q = MatrixAt(inputs[0], c.s, c.d, head * c.s * c.d),
                   k = MatrixAt(inputs[1], c.t, c.d, head * c.t * c.d);
      const Matrix v = MatrixAt(inputs[2], c.t, c.d, head * c.t * c.d);
      Matrix weights = q * k.transpose() / std::sqrt(static_cast<double>(c.d));
      for (int64_t i = 0; i < c.s; ++i) {
        const Eigen::RowVectorXd row = (weights.row(i).array() - weights.row(i).maxCoeff()).exp();
        weights.row(i) = row / row.sum();
      }
      const Array y = AsArray(weights * v);
      std::copy(y.data.begin(), y.data.end(), expected.data.begin() + head * c.s * c.d);
    }
    ExpectNear(Compute(workload, inputs)[0], expected, 1e-4, line);
  }
}

TEST(ContractionTest, LstmCellIsOneStep) {
  const int64_t b = 3, i = 5, h = 4;
  const ir::Workload workload = Built("lstm_cell b=3 i=5 h=4");
  const auto inputs = Inputs(workload, 8, Kind::kReal);
  const Matrix gates =
      (AsMatrix(inputs[0]) * AsMatrix(inputs[3]) + AsMatrix(inputs[1]) * AsMatrix(inputs[4]))
          .rowwise() +
      AsRow(inputs[5]);
  ASSERT_EQ(inputs[3].shape, (std::vector<int64_t>{i, 4 * h}));
  const auto gate = [&](int number) -> Matrix { return gates.block(0, number * h, b, h); };
  const Matrix cell = Sigmoid(gate(1)).cwiseProduct(AsMatrix(inputs[2])) +
                      Sigmoid(gate(0)).cwiseProduct(Tanh(gate(2)));
  const Matrix state = Sigmoid(gate(3)).cwiseProduct(Tanh(cell));
  const auto outputs = Compute(workload, inputs);
  ASSERT_EQ(outputs.size(), 2u);
  ExpectNear(outputs[0], AsArray(cell), 1e-5, "NextC");
  ExpectNear(outputs[1], AsArray(state), 1e-5, "NextH");
}

TEST(ContractionTest, Flops) {
  const auto flops = [](const std::string& line) { return FlopCount(Built(line)); };
  EXPECT_EQ(flops("matmul m=3 n=4 k=5 dtype=bf16 acc=f32"), 2.0 * 3 * 4 * 5);
  EXPECT_EQ(flops("quantized_matmul m=3 n=4 k=5"), 2.0 * 3 * 4 * 5);
  EXPECT_EQ(flops("transpose_batch_matmul b=2 s=3 h=4 d=5"), 2.0 * 2 * 4 * 9 * 5);
  EXPECT_EQ(flops("dense m=3 n=4 k=5"), 2.0 * 3 * 4 * 5 + 3 * 4);
  EXPECT_GT(flops("attention b=1 h=2 s=8 d=16"), 4.0 * 2 * 8 * 8 * 16);
  EXPECT_LT(flops("attention b=1 h=2 s=8 d=16"), 4.6 * 2 * 8 * 8 * 16);
  EXPECT_GT(flops("mlp m=8 k=64 h=256"), 4.0 * 8 * 64 * 256);
  EXPECT_LT(flops("mlp m=8 k=64 h=256"), 4.2 * 8 * 64 * 256);
}

}  // namespace
}  // namespace hone::op
