#include "tests/oracles/buffer_parser.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::ir {

absl::StatusOr<Buffer> ParseBuffer(TokenReader& reader, const Workload& workload) {
  const Token role = reader.Peek();
  Buffer buffer;
  buffer.input = reader.Accept("input");
  buffer.output = !buffer.input && reader.Accept("output");
  if (!buffer.input && !buffer.output && !reader.Accept("buffer")) {
    return reader.Unexpected("'input', 'output', 'buffer' or 'kernel'");
  }
  const Token token = reader.Peek();
  HONE_ASSIGN_OR_RETURN(buffer.name, reader.Name("the buffer's name"));
  HONE_RETURN_IF_ERROR(reader.Expect(":"));
  const Token dtype_token = reader.Peek();
  HONE_ASSIGN_OR_RETURN(const std::string dtype, reader.Name("a dtype"));
  const auto known = DTypeFromName(dtype);
  if (!known.ok()) return TokenReader::Error(dtype_token, known.status().message());
  if (IsPacked(*known) && !buffer.input)
    return TokenReader::Error(dtype_token, absl::StrCat("only inputs are of type ", dtype));
  buffer.dtype = *known;
  HONE_RETURN_IF_ERROR(reader.Expect("["));
  double elements = 1;
  if (!reader.Accept("]")) {
    do {
      HONE_ASSIGN_OR_RETURN(const int64_t extent, reader.Extent(kMaxDomain));
      buffer.shape.push_back(extent);
      elements *= static_cast<double>(extent);
    } while (reader.Accept(","));
    HONE_RETURN_IF_ERROR(reader.Expect("]"));
  }
  if (buffer.shape.size() > 2 * kMaxRank)
    return TokenReader::Error(token, absl::StrCat("more than ", 2 * kMaxRank, " dimensions"));
  if (elements > static_cast<double>(kMaxDomain))
    return TokenReader::Error(token, absl::StrCat("more than ", kMaxDomain, " elements"));
  const Token scope_token = reader.Peek();
  HONE_ASSIGN_OR_RETURN(const std::string scope, reader.Name("a scope"));
  bool found = false;
  for (const Scope s : {Scope::kGlobal, Scope::kShared, Scope::kLocal, Scope::kFragment}) {
    if (ScopeName(s) != scope) continue;
    buffer.scope = s;
    found = true;
  }
  if (!found)
    return TokenReader::Error(scope_token, "a scope is global, shared, local or fragment");
  buffer.constant = reader.Accept("constant");
  buffer.padded = reader.Accept("padded");
  while (reader.Accept("align")) {
    const Token align_token = reader.Peek();
    StorageAlign align;
    HONE_ASSIGN_OR_RETURN(const int64_t axis, reader.Integer("an axis"));
    HONE_ASSIGN_OR_RETURN(align.factor, reader.Integer("a factor"));
    HONE_ASSIGN_OR_RETURN(align.offset, reader.Integer("an offset"));
    if (axis < 0 || axis >= static_cast<int64_t>(buffer.shape.size()) || align.factor < 1 ||
        align.factor > kMaxElements || align.offset < 0 || align.offset >= align.factor) {
      return TokenReader::Error(align_token,
                                "an alignment is an axis, a factor and an offset below it");
    }
    align.axis = static_cast<int>(axis);
    buffer.aligns.push_back(align);
    if (buffer.aligns.size() > buffer.shape.size())
      return TokenReader::Error(align_token, "one alignment per axis at most");
  }
  if (buffer.input || buffer.output) {
    const std::vector<Tensor>& tensors = workload.tensors;
    const auto tensor = std::find_if(tensors.begin(), tensors.end(),
                                     [&](const Tensor& t) { return t.name == buffer.name; });
    if (tensor == tensors.end() || tensor->input != buffer.input ||
        tensor->output != buffer.output || tensor->dtype != buffer.dtype ||
        tensor->shape != buffer.shape) {
      return TokenReader::Error(
          role, absl::StrCat("the workload has no ", role.text, " ", buffer.name, ": ",
                             TypeText(buffer.dtype, buffer.shape)));
    }
    buffer.tensor = static_cast<BufferId>(tensor - tensors.begin());
  }
  return buffer;
}

}  // namespace hone::ir
