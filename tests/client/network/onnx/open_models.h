#ifndef HONE_TESTS_CLIENT_NETWORK_ONNX_OPEN_MODELS_H_
#define HONE_TESTS_CLIENT_NETWORK_ONNX_OPEN_MODELS_H_

#include <string>

// Small networks as text (model_text.h) whose first dimension N is open. Each computes its samples
// on their own. Weights are small fractions.
namespace hone::onnx {

// x [N, 6] through two layers, with an output for each.
std::string OpenMlp();
// x [N, 3, 8, 8] through two convolutions, pooling and a dense layer, whose Reshape reads the shape
// of x.
std::string OpenConvolutions();
// x [N, 4, 8] through an attention of two heads with a residual, with Reshapes that read the shape.
// `sequence`: the name of the second dimension; "4": it is fixed.
std::string OpenAttention(const std::string& sequence = "4");
// x [1, N, 8], at most 16 rows, plus a table of positions, through the same attention with a causal
// mask. `mask`: nodes that compute "masked" from "scores" and a part [N, N] of a table, `hidden`
// [N, N], whose elements are true where the column is behind the row.
std::string OpenCausalAttention(const std::string& mask = "");
// ids [2, N] from 0 to 9 and mask [2, N], N at most 16, as in an encoder such as BERT: embeddings
// of tokens and positions through the same attention to y [2, N, 8]. `masked`: nodes that compute
// "masked" from "scores" [2, 2, N, N] and `mask4` [2, 1, 1, N], by default as exporters write it,
// with (1 - mask) * -3e38. `type`: of the mask, i64 by default. `more`: nodes after y, and outputs.
std::string OpenMaskedAttention(const std::string& masked = "", int type = 7,
                                const std::string& more = "");

}  // namespace hone::onnx

#endif  // HONE_TESTS_CLIENT_NETWORK_ONNX_OPEN_MODELS_H_
