#include "tests/worker/codegen/c_backend.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/ir/annotation.h"
#include "common/target/kernel_abi.h"

namespace hone::codegen {
namespace {

using ir::DType;
using ir::ExprId;
using ir::Index;
using lower::Stmt;
using lower::Storage;

constexpr char kPrelude[] = R"(#include <math.h>
#include <stdint.h>
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#define MAX(a, b) ((a) < (b) ? (b) : (a))
#define DIV(T, a, b) ((b) == 0 ? 0 : (b) == (T)-1 ? (T)(0 - (a)) : (T)((a) / (b)))
static int64_t fdiv(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static int64_t fmod_(int64_t a, int64_t b) { return a - b * fdiv(a, b); }
static int64_t llabs_(int64_t x) { return x < 0 ? 0 - x : x; }
static int64_t shl(int64_t a, uint64_t n) { return n > 63 ? 0 : (uint64_t)a << n; }
static int64_t shr(int64_t a, uint64_t n) { return a >> (n > 63 ? 63 : n); }
static double rsqrt(double x) { return 1 / sqrt(x); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double normal_cdf(double x) { return erfc(x * -M_SQRT1_2) / 2; }
)";

std::string TypeOf(DType dtype) {
  if (dtype == DType::kF32) return "float";
  if (dtype == DType::kF64) return "double";
  if (dtype == DType::kBool || dtype == DType::kU8) return "uint8_t";
  return absl::StrCat("int", 8 * ir::DTypeBytes(dtype), "_t");
}

class Printer {
 public:
  explicit Printer(const lower::LoweredProgram& program) : p_(program) {}

  absl::StatusOr<std::string> Print() {
    text_ = kPrelude;
    const auto number = [&](const char* symbol, const char* type, int64_t value) {
      absl::StrAppend(&text_, type, " ", symbol, "(void) { return ", value, "; }\n");
    };
    number(target::kAbiSymbol, "int32_t", target::kKernelAbiVersion);
    number(target::kThreadsSymbol, "int32_t", 1);
    absl::StrAppend(&text_, "int64_t ", target::kWorkspaceSymbol, "(int32_t threads) { return ",
                    p_.WorkspaceBytes(1), "; }\n");
    number(target::kPackedSymbol, "int64_t", p_.packed_bytes);
    number(target::kRangeExtentSymbol, "int64_t", 0);
    const bool packs = p_.kernels[0].name == ir::kPrepackKernel;
    HONE_RETURN_IF_ERROR(Function(target::kPrepackSymbol, "void* packed",
                                  packs ? p_.kernels[0].body : lower::kNoStmt));
    HONE_RETURN_IF_ERROR(Function(target::kRunSymbol,
                                  "void* packed, void* workspace, void* runtime",
                                  p_.kernels.back().body));
    absl::StrAppend(
        &text_, "int32_t ", target::kRangeSymbol,
        "(void** b, void* p, void* w, int64_t begin, int64_t end, int64_t thread) { return "
        "0; }\n");
    return text_;
  }

 private:
  absl::Status Function(const char* symbol, const char* parameters, lower::StmtId body) {
    absl::StrAppend(&text_, "int32_t ", symbol, "(void** buffers, ", parameters, ") {\n");
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      const Storage& storage = p_.storage[b];
      const DType dtype = p_.buffers[b].dtype;
      if (storage.kind == Storage::Kind::kUnused) continue;
      if (ir::AccumulatorOf(dtype) != dtype) return absl::UnimplementedError("short formats");
      const std::string type = TypeOf(dtype);
      const auto at = [&](const char* memory, int64_t offset) {
        absl::StrAppend(&text_, type, "* b", b, " = (void*)((char*)", memory, " + ", offset,
                        ");\n");
      };
      const bool prepacks = symbol == target::kPrepackSymbol;
      switch (storage.kind) {
        case Storage::Kind::kArgument:
          at(absl::StrCat("buffers[", storage.position, "]").c_str(), 0);
          break;
        case Storage::Kind::kPacked:
          at("packed", storage.offset_bytes);
          break;
        case Storage::Kind::kWorkspace:
        case Storage::Kind::kThread:
          if (prepacks) break;
          at("workspace", storage.offset_bytes +
                              (storage.kind == Storage::Kind::kThread ? p_.workspace_bytes : 0));
          break;
        default:
          absl::StrAppend(&text_, type, " b", b, "[", storage.elements, "];\n");
      }
    }
    HONE_RETURN_IF_ERROR(Print(body));
    text_ += "return 0;\n}\n";
    return absl::OkStatus();
  }

  std::string Text(const Index& index) const {
    std::string text = absl::StrCat("(", index.constant());
    for (const ir::IndexTerm& term : index.terms()) {
      const ir::Atom& atom = p_.atoms[term.atom];
      absl::StrAppend(&text, " + ", term.coeff, " * ");
      if (atom.kind == ir::Atom::Kind::kVar) {
        absl::StrAppend(&text, "v", term.atom);
      } else {
        absl::StrAppend(&text, atom.kind == ir::Atom::Kind::kMod ? "fmod_" : "fdiv", "(",
                        Text(atom.argument), ", ", atom.divisor, ")");
      }
    }
    return text + ")";
  }

  std::string Text(const std::vector<ir::Condition>& conditions) const {
    return absl::StrCat(
        "1", absl::StrJoin(conditions, "", [&](std::string* out, const ir::Condition& c) {
          absl::StrAppend(out, " && (uint64_t)", Text(c.index), " < ", c.extent);
        }));
  }

  std::string Text(ExprId id) const {
    const ir::Expr& expr = p_.pool[id];
    const std::string type = TypeOf(expr.dtype);
    const auto operand = [&](ExprId of) { return Text(of); };
    const auto cast = [&](auto... parts) { return absl::StrCat("(", type, ")(", parts..., ")"); };
    switch (expr.op) {
      case ir::Op::kConst:
        if (!ir::IsFloat(expr.dtype)) return cast("(int64_t)", expr.value.whole(), "ull");
        if (std::isinf(expr.value.real())) return expr.value.real() > 0 ? "INFINITY" : "-INFINITY";
        return cast(absl::StrFormat("%a", expr.value.real()));
      case ir::Op::kIndex:
        return Text(p_.pool.IndicesOf(expr)[0]);
      case ir::Op::kLoad:
        return absl::StrCat("b", expr.buffer, "[", Text(p_.pool.IndicesOf(expr)[0]),
                            expr.gathered < 0 ? "" : absl::StrCat(" + ", operand(expr.a)), "]");
      case ir::Op::kDiv:
        if (ir::IsFloat(expr.dtype)) break;
        return absl::StrCat("DIV(", type, ", ", operand(expr.a), ", ", operand(expr.b), ")");
      case ir::Op::kMin:
        return absl::StrCat("MIN(", operand(expr.a), ", ", operand(expr.b), ")");
      case ir::Op::kMax:
        return absl::StrCat("MAX(", operand(expr.a), ", ", operand(expr.b), ")");
      case ir::Op::kNeg:
        return cast("-", operand(expr.a));
      case ir::Op::kAbs:
        if (expr.dtype == DType::kU8) return operand(expr.a);
        return ir::IsFloat(expr.dtype) ? cast("fabs(", operand(expr.a), ")")
                                       : cast("llabs_(", operand(expr.a), ")");
      case ir::Op::kRound:
        return cast("rint(", operand(expr.a), ")");
      case ir::Op::kShiftLeft:
        return cast("shl(", operand(expr.a), ", ", operand(expr.b), ")");
      case ir::Op::kShiftRight:
        return cast("shr(", operand(expr.a), ", ", operand(expr.b), ")");
      case ir::Op::kNot:
        return absl::StrCat("!", operand(expr.a));
      case ir::Op::kSelect:
        return absl::StrCat("(", operand(expr.a), " ? ", operand(expr.b), " : ", operand(expr.c),
                            ")");
      case ir::Op::kCast: {
        if (expr.dtype == DType::kBool) return absl::StrCat("(", operand(expr.a), " != 0)");
        const bool truncates = !ir::IsFloat(expr.dtype) && ir::IsFloat(p_.pool[expr.a].dtype);
        return cast(truncates ? "(int64_t)" : "", operand(expr.a));
      }
      default:
        break;
    }
    const ir::OpInfo& info = ir::InfoOf(expr.op);
    if (!info.infix) {
      return cast(info.name, "(", operand(expr.a),
                  expr.b == ir::kNoExpr ? "" : absl::StrCat(", ", operand(expr.b)), ")");
    }
    return cast(operand(expr.a), " ",
                expr.op == ir::Op::kAnd  ? "&&"
                : expr.op == ir::Op::kOr ? "||"
                                         : info.name,
                " ", operand(expr.b));
  }

  absl::Status CheckUniform(const Index& index) const {
    for (const ir::AtomId lane : lanes_) {
      if (p_.atoms.DependsOn(index, lane)) {
        return absl::UnimplementedError("a branch that differs between lanes");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Print(lower::StmtId id) {
    if (id == lower::kNoStmt) return absl::OkStatus();
    const Stmt& stmt = p_.stmts[id];
    switch (stmt.kind) {
      case Stmt::Kind::kSeq:
        for (const lower::StmtId child : stmt.children) HONE_RETURN_IF_ERROR(Print(child));
        return absl::OkStatus();
      case Stmt::Kind::kIf:
        HONE_RETURN_IF_ERROR(CheckUniform(stmt.condition.index));
        absl::StrAppend(&text_, "if (", Text({stmt.condition}), ") {\n");
        HONE_RETURN_IF_ERROR(Print(stmt.children[0]));
        text_ += "} else {\n";
        if (stmt.children.size() > 1) HONE_RETURN_IF_ERROR(Print(stmt.children[1]));
        text_ += "}\n";
        return absl::OkStatus();
      case Stmt::Kind::kFor:
        return PrintFor(stmt);
      case Stmt::Kind::kStore:
        PrintStore(stmt);
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  absl::Status PrintFor(const Stmt& loop) {
    if (loop.loop == ir::LoopKind::kBound) return absl::UnimplementedError("a GPU axis");
    if (loop.loop == ir::LoopKind::kVectorized) {
      lanes_.push_back(loop.var);
      HONE_RETURN_IF_ERROR(Print(loop.children[0]));
      lanes_.pop_back();
      return absl::OkStatus();
    }
    std::string begin = "0", end = absl::StrCat(loop.extent);
    for (const Index& bound : loop.begins) {
      HONE_RETURN_IF_ERROR(CheckUniform(bound));
      begin = absl::StrCat("MAX(", begin, ", ", Text(bound), ")");
    }
    for (const Index& bound : loop.ends) {
      HONE_RETURN_IF_ERROR(CheckUniform(bound));
      end = absl::StrCat("MIN(", end, ", ", Text(bound), ")");
    }
    absl::StrAppend(&text_, "for (int64_t v", loop.var, " = ", begin, "; v", loop.var, " < ", end,
                    "; ++v", loop.var, ") {\n");
    HONE_RETURN_IF_ERROR(Print(loop.children[0]));
    text_ += "}\n";
    return absl::OkStatus();
  }

  std::string Around(const std::vector<ir::AtomId>& vars, const std::string& body) const {
    std::string text = body;
    for (size_t v = vars.size(); v-- > 0;) {
      const std::string name = absl::StrCat("v", vars[v]);
      text = absl::StrCat("for (int64_t ", name, " = 0; ", name, " < ",
                          p_.atoms[vars[v]].range.extent(), "; ++", name, ") ", text);
    }
    return text;
  }

  void PrintStore(const Stmt& store) {
    absl::InlinedVector<ExprId, 2> values(store.values.begin(), store.values.end());
    if (store.reducer != ir::Reducer::kNone) {
      absl::InlinedVector<ExprId, 2> old;
      for (const ir::BufferId output : store.outputs) {
        old.push_back(p_.pool.Load(output, p_.buffers[output].dtype, store.indices));
      }
      values = ir::Combine(p_.pool, store.reducer, old, store.values);
    }
    const auto reduces = [&](ir::AtomId var) {
      return std::count(store.reduce_vars.begin(), store.reduce_vars.end(), var) > 0;
    };
    const bool at_once = !lanes_.empty() && store.tensor_vars.empty() &&
                         (store.reducer == ir::Reducer::kNone ||
                          std::none_of(lanes_.begin(), lanes_.end(), reduces));
    // All lanes compute their values before the first one stores.
    int64_t lanes = 1;
    std::string lane = "0";
    if (at_once) {
      for (const ir::AtomId var : lanes_) {
        const int64_t extent = p_.atoms[var].range.extent();
        lane = absl::StrCat("(", lane, " * ", extent, " + v", var, ")");
        lanes *= extent;
      }
    }
    std::string compute, write;
    absl::StrAppend(&text_, "{ uint8_t live[", lanes, "];\n");
    for (size_t c = 0; c < values.size(); ++c) {
      const ir::BufferId output = store.outputs[c];
      absl::StrAppend(&text_, TypeOf(p_.buffers[output].dtype), " t", c, "[", lanes, "];\n");
      absl::StrAppend(&compute, "t", c, "[", lane, "] = ", Text(values[c]), ";\n");
      absl::StrAppend(&write, "b", output, "[", Text(store.indices[0]), "] = t", c, "[", lane,
                      "];\n");
    }
    const std::string holds = absl::StrCat(Text(store.conditions), " && ", Text(store.guards));
    compute = absl::StrCat("if ((live[", lane, "] = ", holds, ")) {\n", compute, "}\n");
    write = absl::StrCat("if (live[", lane, "]) {\n", write, "}\n");
    if (at_once) {
      absl::StrAppend(&text_, Around(lanes_, compute), Around(lanes_, write), "}\n");
      return;
    }
    std::vector<ir::AtomId> vars = lanes_;
    vars.insert(vars.end(), store.tensor_vars.begin(), store.tensor_vars.end());
    absl::StrAppend(&text_, Around(vars, absl::StrCat("{ ", compute, write, "}\n")), "}\n");
  }

  lower::LoweredProgram p_;  // a copy: combining adds expressions
  std::vector<ir::AtomId> lanes_;
  std::string text_;
};

class C final : public Backend {
 public:
  absl::string_view name() const override { return "c"; }
  bool Serves(const target::Target& target) const override {
    return target.kind == target::Kind::kCpu;
  }
  absl::StatusOr<Code> Generate(const lower::LoweredProgram& program, const target::Target&,
                                const CodeOptions&) const override {
    HONE_ASSIGN_OR_RETURN(std::string text, Printer(program).Print());
    return Code{kCSource, text, text};
  }
};

}  // namespace

const Backend* CBackend() {
  static const auto* const backend = new C;
  return backend;
}

absl::StatusOr<std::string> CompileC(const Code& code) {
  char folder[] = "/tmp/hone-c-XXXXXX";
  if (mkdtemp(folder) == nullptr) return absl::InternalError("mkdtemp fails");
  const std::string source = absl::StrCat(folder, "/kernel.c"), object = absl::StrCat(folder, "/o");
  HONE_RETURN_IF_ERROR(WriteFileAtomically(source, code.bytes, Durability::kProcess));
  const std::string command =
      absl::StrCat("cc -std=gnu11 -O1 -w -fwrapv -ffp-contract=off -shared -fPIC ", source, " -o ",
                   object, " -lm");
  const bool compiled = std::system(command.c_str()) == 0;
  absl::StatusOr<std::string> bytes = ReadFile(object);
  unlink(object.c_str());
  unlink(source.c_str());
  rmdir(folder);
  if (!compiled) return absl::InternalError(absl::StrCat("cc refuses\n", code.bytes));
  return bytes;
}

}  // namespace hone::codegen
