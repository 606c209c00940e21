#ifndef HONE_SERVER_TUNER_SPACE_RULE_RULES_H_
#define HONE_SERVER_TUNER_SPACE_RULE_RULES_H_

#include <vector>

#include "server/tuner/space/rule.h"

// The rules, one file each. rules.cc lists them.
namespace hone::space {

std::vector<Sketch> ApplyAutoInline(const RuleContext& context, const Sketch& sketch, int nest);
std::vector<Sketch> ApplyCacheWrite(const RuleContext& context, const Sketch& sketch, int nest);
std::vector<Sketch> ApplyComputeLocation(const RuleContext& context, const Sketch& sketch,
                                         int nest);
std::vector<Sketch> ApplyFuseConsumer(const RuleContext& context, const Sketch& sketch, int nest);
std::vector<Sketch> ApplyGpuAutoBind(const RuleContext& context, const Sketch& sketch, int nest);
std::vector<Sketch> ApplyGpuCrossThreadReduction(const RuleContext& context, const Sketch& sketch,
                                                 int nest);
std::vector<Sketch> ApplyGpuMultiLevelTiling(const RuleContext& context, const Sketch& sketch,
                                             int nest);
std::vector<Sketch> ApplyGpuRowReduction(const RuleContext& context, const Sketch& sketch,
                                         int nest);
std::vector<Sketch> ApplyGpuSplitReduction(const RuleContext& context, const Sketch& sketch,
                                           int nest);
std::vector<Sketch> ApplyGpuTranspose(const RuleContext& context, const Sketch& sketch, int nest);
std::vector<Sketch> ApplyGpuWindowReduction(const RuleContext& context, const Sketch& sketch,
                                            int nest);
std::vector<Sketch> ApplyMultiLevelTiling(const RuleContext& context, const Sketch& sketch,
                                          int nest);
std::vector<Sketch> ApplyPack(const RuleContext& context, const Sketch& sketch, int nest);
std::vector<Sketch> ApplyParallelVectorizeUnroll(const RuleContext& context, const Sketch& sketch,
                                                 int nest);
std::vector<Sketch> ApplyRowChain(const RuleContext& context, const Sketch& sketch, int nest);
std::vector<Sketch> ApplyRowFusedReduction(const RuleContext& context, const Sketch& sketch,
                                           int nest);
std::vector<Sketch> ApplySplitReduction(const RuleContext& context, const Sketch& sketch, int nest);
std::vector<Sketch> ApplyTensorTiling(const RuleContext& context, const Sketch& sketch, int nest);
std::vector<Sketch> ApplyTransform(const RuleContext& context, const Sketch& sketch, int nest);
std::vector<Sketch> ApplyTransposeOutput(const RuleContext& context, const Sketch& sketch,
                                         int nest);
std::vector<Sketch> ApplyWideAccumulator(const RuleContext& context, const Sketch& sketch,
                                         int nest);
std::vector<Sketch> ApplyWindowReduction(const RuleContext& context, const Sketch& sketch,
                                         int nest);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_RULE_RULES_H_
