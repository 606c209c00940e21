#include "server/feature/statement_columns.h"

#include "absl/strings/str_cat.h"

namespace hone::feature {
namespace {

std::vector<std::string> MakeNames() {
  std::vector<std::string> names;
  for (const char* type : {"float", "int"}) {
    for (const char* op : {"mad", "addsub", "mul", "divmod", "cmp", "math", "other"})
      names.push_back(absl::StrCat(type, ".", op));
  }
  names.insert(names.end(), {"bool", "select"});
  for (const char* kind : {"vectorize", "unroll", "parallel"}) {
    for (const char* what : {"num", "prod", "len", "pos_none", "pos_inner_spatial",
                             "pos_middle_spatial", "pos_outer_spatial", "pos_inner_reduce",
                             "pos_middle_reduce", "pos_outer_reduce", "pos_mixed"}) {
      names.push_back(absl::StrCat(kind, ".", what));
    }
  }
  names.insert(names.end(), {"is_gpu", "block_x", "block_y", "block_z", "thread_x", "thread_y",
                             "thread_z", "vthread"});
  for (int buffer = 0; buffer < kStatementBuffers; ++buffer) {
    for (const char* what :
         {"read", "write", "read_write", "bytes", "unique_bytes", "lines", "unique_lines",
          "reuse_loop", "reuse_serial", "reuse_none", "reuse_dis_iter", "reuse_dis_bytes",
          "reuse_ct", "bytes_d_reuse", "unique_bytes_d_reuse", "lines_d_reuse",
          "unique_lines_d_reuse", "stride"}) {
      names.push_back(absl::StrCat("buffer", buffer, ".", what));
    }
  }
  for (int sample = 0; sample < kIntensitySamples; ++sample)
    names.push_back(absl::StrCat("intensity.", sample));
  for (const char* what : {"size", "prod", "outer_prod", "inner_prod"})
    names.push_back(absl::StrCat("alloc.", what));
  names.insert(names.end(), {"outer_prod", "num_loops", "auto_unroll_max_step"});
  return names;
}

}  // namespace

const std::vector<std::string>& StatementColumnNames() {
  static const auto* names = new std::vector<std::string>(MakeNames());
  return *names;
}

}  // namespace hone::feature
