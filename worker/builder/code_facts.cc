#include "worker/builder/code_facts.h"

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/TargetSelect.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hone::builder {
namespace {

// LLVM's disassembler for one target, kept for the next object of the same target.
struct Disassembler {
  std::string key;
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> assembly;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<llvm::MCDisassembler> decoder;
  std::unique_ptr<llvm::MCInstrAnalysis> analysis;
};

const Disassembler* DisassemblerFor(const target::Target& target) {
  static Disassembler* const kept = new Disassembler;
  const std::string features = absl::StrJoin(
      target.features, ",",
      [](std::string* out, const std::string& feature) { absl::StrAppend(out, "+", feature); });
  const std::string key = absl::StrCat(target.triple, " ", target.cpu, " ", features);
  if (kept->key == key) return kept;
  llvm::InitializeAllTargetInfos();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllDisassemblers();
  std::string error;
  const llvm::Target* const found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (found == nullptr) return nullptr;
  Disassembler made;
  made.key = key;
  made.registers.reset(found->createMCRegInfo(target.triple));
  if (made.registers == nullptr) return nullptr;
  made.assembly.reset(
      found->createMCAsmInfo(*made.registers, target.triple, llvm::MCTargetOptions()));
  made.instructions.reset(found->createMCInstrInfo());
  made.subtarget.reset(found->createMCSubtargetInfo(target.triple, target.cpu, features));
  if (made.assembly == nullptr || made.instructions == nullptr || made.subtarget == nullptr) {
    return nullptr;
  }
  made.context = std::make_unique<llvm::MCContext>(llvm::Triple(target.triple), made.assembly.get(),
                                                   made.registers.get(), made.subtarget.get());
  made.decoder.reset(found->createMCDisassembler(*made.subtarget, *made.context));
  made.analysis.reset(found->createMCInstrAnalysis(made.instructions.get()));
  if (made.decoder == nullptr || made.analysis == nullptr) return nullptr;
  *kept = std::move(made);
  return kept;
}

struct Decoded {
  uint64_t address = 0;
  bool load = false;
  bool stack_load = false;
  bool fma = false;
};
struct Loop {
  uint64_t begin = 0;
  uint64_t end = 0;  // address of the branch back
};

// A multiply-add on vectors or scalars: x86's VFMADD…, VFNMADD…, VFMSUB…; AArch64's FMLA, FMADD.
bool IsFma(llvm::StringRef name) {
  return name.starts_with("VFMADD") || name.starts_with("VFNMADD") || name.starts_with("VFMSUB") ||
         name.starts_with("FMLA") || name.starts_with("FMADD");
}

class TextReader {
 public:
  explicit TextReader(const Disassembler& with) : with_(with) {
    for (unsigned r = 0; r < with.registers->getNumRegs(); ++r) {
      const absl::string_view name(with.registers->getName(r));
      // AArch64's SP; on x86 SP is the lower half of RSP.
      if (name == "RSP" || (name == "SP" && stack_pointer_ == kNoRegister)) stack_pointer_ = r;
      if (name == "RBP") frame_pointer_ = r;
    }
  }

  void Read(llvm::ArrayRef<uint8_t> bytes) {
    for (uint64_t at = 0; at < bytes.size();) {
      llvm::MCInst instruction;
      uint64_t size = 0;
      if (with_.decoder->getInstruction(instruction, size, bytes.slice(at), at, llvm::nulls()) ==
          llvm::MCDisassembler::Fail) {
        at += std::max<uint64_t>(size, 1);
        continue;
      }
      Note(instruction, at, size);
      at += size;
    }
  }

  // If the hot loop has more than `most` multiply-adds, sets `most` to their number and fills in
  // the loop's loads.
  void Summarize(CodeFacts& facts, int64_t& most) const {
    for (const Loop& loop : loops_) {
      const bool innermost = std::none_of(loops_.begin(), loops_.end(), [&](const Loop& other) {
        return other.begin >= loop.begin && other.end <= loop.end &&
               (other.begin != loop.begin || other.end != loop.end);
      });
      if (!innermost) continue;
      int64_t fmas = 0, loads = 0, spills = 0;
      const auto first = std::lower_bound(decoded_.begin(), decoded_.end(), loop.begin,
                                          [](const Decoded& instruction, uint64_t address) {
                                            return instruction.address < address;
                                          });
      for (auto it = first; it != decoded_.end() && it->address <= loop.end; ++it) {
        fmas += it->fma;
        loads += it->load;
        spills += it->stack_load;
      }
      if (fmas <= most) continue;
      most = fmas;
      facts.spills = spills;
      facts.loads_per_fma = static_cast<double>(loads) / static_cast<double>(fmas);
    }
  }

 private:
  void Note(const llvm::MCInst& instruction, uint64_t address, uint64_t size) {
    const llvm::MCInstrDesc& description = with_.instructions->get(instruction.getOpcode());
    const llvm::StringRef name = with_.instructions->getName(instruction.getOpcode());
    if (description.isBranch()) {
      uint64_t target = 0;
      if (with_.analysis->evaluateBranch(instruction, address, size, target) && target < address) {
        loops_.push_back({target, address});
      }
      return;
    }
    if (name == "MOV64rr" && instruction.getOperand(0).getReg() == frame_pointer_ &&
        instruction.getOperand(1).getReg() == stack_pointer_) {
      has_frame_pointer_ = true;
    }
    const bool load = description.mayLoad() && !description.mayStore();
    const bool fma = IsFma(name);
    if (!load && !fma) return;
    bool stack = false;
    for (const llvm::MCOperand& operand : instruction) {
      if (!operand.isReg()) continue;
      const unsigned r = operand.getReg();
      stack |= r == stack_pointer_ || (has_frame_pointer_ && r == frame_pointer_);
    }
    decoded_.push_back({.address = address, .load = load, .stack_load = load && stack, .fma = fma});
  }

  const Disassembler& with_;
  static constexpr unsigned kNoRegister = ~0u;
  unsigned stack_pointer_ = kNoRegister;
  unsigned frame_pointer_ = kNoRegister;
  bool has_frame_pointer_ = false;
  std::vector<Decoded> decoded_;  // loads and multiply-adds, by address
  std::vector<Loop> loops_;
};

}  // namespace

CodeFacts ReadCodeFacts(absl::string_view object, const target::Target& target) {
  CodeFacts facts;
  auto file = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), "kernel"));
  if (!file) {
    llvm::consumeError(file.takeError());
    return facts;
  }
  const Disassembler* const disassembler = DisassemblerFor(target);
  int64_t most = 0;
  for (const llvm::object::SectionRef& section : (*file)->sections()) {
    if (!section.isText()) continue;
    facts.code_bytes += static_cast<int64_t>(section.getSize());
    auto contents = section.getContents();
    if (!contents) {
      llvm::consumeError(contents.takeError());
      continue;
    }
    if (disassembler == nullptr) continue;
    TextReader reader(*disassembler);
    reader.Read(llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t*>(contents->data()),
                                        contents->size()));
    reader.Summarize(facts, most);
  }
  return facts;
}

}  // namespace hone::builder
