#include "tests/worker/compile/simulated_tiles.h"

#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "worker/builder/link.h"
#include "worker/compile/llvm/compile.h"
#include "worker/compile/lower/lower.h"

namespace hone::codegen {
namespace {

struct Tile {
  alignas(4) uint8_t rows[16][64];
};

// A value in LLVM's IR never changes, so each result is a tile of its own. Those of the last
// program are kept until the next one is loaded.
std::mutex mutex;
std::deque<Tile> tiles;

Tile* NewTile() {
  const std::lock_guard lock(mutex);
  return &tiles.emplace_back(Tile{});
}

Tile* Zero(int16_t, int16_t) { return NewTile(); }

Tile* Load(int16_t rows, int16_t bytes, const uint8_t* from, int64_t stride) {
  Tile* const tile = NewTile();
  for (int r = 0; r < rows; ++r) std::memcpy(tile->rows[r], from + r * stride, bytes);
  return tile;
}

void Store(int16_t rows, int16_t bytes, uint8_t* to, int64_t stride, const Tile* tile) {
  for (int r = 0; r < rows; ++r) std::memcpy(to + r * stride, tile->rows[r], bytes);
}

float ToFloat(uint16_t bf16) {
  const uint32_t bits = uint32_t{bf16} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// `bytes` and `inner` are those of a row of the sums and of the left tile.
template <typename Left, typename Right, typename Sum>
Tile* MultiplyAdd(int16_t rows, int16_t bytes, int16_t inner, const Tile* sums, const Tile* left,
                  const Tile* right) {
  const auto element = [](const uint8_t* row, int at, auto type) {
    std::memcpy(&type, row + at * sizeof type, sizeof type);
    if constexpr (std::is_same_v<decltype(type), uint16_t>) {
      return ToFloat(type);
    } else {
      return type;
    }
  };
  constexpr int kGroup = 4 / sizeof(Left);
  Tile* const result = NewTile();
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < bytes / 4; ++j) {
      Sum sum = element(sums->rows[i], j, Sum{});
      for (int k = 0; k < inner / 4; ++k) {
        for (int g = 0; g < kGroup; ++g) {
          sum += static_cast<Sum>(element(left->rows[i], k * kGroup + g, Left{})) *
                 static_cast<Sum>(element(right->rows[k], j * kGroup + g, Right{}));
        }
      }
      std::memcpy(result->rows[i] + 4 * j, &sum, sizeof sum);
    }
  }
  return result;
}

template <typename Function>
std::string AddressOf(Function* function) {
  return absl::StrCat("inttoptr (i64 ", reinterpret_cast<uintptr_t>(function), " to ptr)(");
}

std::string WithoutTiles(absl::string_view ir) {
  std::vector<absl::string_view> lines;
  for (const absl::string_view line : absl::StrSplit(ir, '\n')) {
    const bool declares = absl::StartsWith(line, "declare") && absl::StrContains(line, "x86_amx");
    if (!declares && !absl::StrContains(line, "declare x86_amx")) lines.push_back(line);
  }
  return absl::StrReplaceAll(
      absl::StrJoin(lines, "\n"),
      {{"@llvm.x86.tilezero.internal(", AddressOf(Zero)},
       {"@llvm.x86.tileloadd64.internal(", AddressOf(Load)},
       {"@llvm.x86.tilestored64.internal(", AddressOf(Store)},
       {"@llvm.x86.tdpbusd.internal(", AddressOf(MultiplyAdd<uint8_t, int8_t, int32_t>)},
       {"@llvm.x86.tdpbssd.internal(", AddressOf(MultiplyAdd<int8_t, int8_t, int32_t>)},
       {"@llvm.x86.tdpbuud.internal(", AddressOf(MultiplyAdd<uint8_t, uint8_t, int32_t>)},
       {"@llvm.x86.tdpbf16ps.internal(", AddressOf(MultiplyAdd<uint16_t, uint16_t, float>)},
       {"x86_amx", "ptr"},
       {"call i1 @hone_cpu_guard()", "icmp eq i32 0, 0"},
       {"\"target-cpu\"=\"sapphirerapids\"", "\"target-cpu\"=\"x86-64-v3\""}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompiledProgram>> LoadWithSimulatedTiles(
    const ir::Program& program, const target::Target& target) {
  {
    const std::lock_guard lock(mutex);
    tiles.clear();
  }
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(program, target));
  HONE_ASSIGN_OR_RETURN(const CompiledObject compiled, Compile(lowered, target, {.keep_ir = true}));
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  const std::unique_ptr<llvm::Module> module =
      llvm::parseAssemblyString(WithoutTiles(compiled.ir), problem, context);
  if (module == nullptr) {
    return absl::InternalError(absl::StrCat("LLVM cannot read its IR: ", problem.getMessage().str(),
                                            ": ", problem.getLineContents().str()));
  }
  std::string error;
  const llvm::Target* const found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (found == nullptr) return absl::InternalError(error);
  const std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(
      target.triple, "x86-64-v3", "", llvm::TargetOptions(), llvm::Reloc::PIC_));
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return absl::InternalError("LLVM cannot emit an object file");
  passes.run(*module);
  HONE_ASSIGN_OR_RETURN(const std::string shared,
                        builder::LinkSharedObject(std::string(bytes.begin(), bytes.end()),
                                                  {.triple = target.triple}));
  return CompiledProgram::Load(program.shared_workload(), shared);
}

}  // namespace hone::codegen
