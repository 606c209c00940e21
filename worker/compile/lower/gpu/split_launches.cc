#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "worker/compile/lower/gpu/gpu_passes.h"

namespace hone::lower {
namespace {

// "matmul_C" for the nest of workload matmul that computes C last. Every language for GPUs accepts
// the name.
std::string NameOf(const ir::Program& program, ir::NodeId nest) {
  const std::vector<ir::NodeId> blocks = program.BlocksUnder(nest);
  std::string name = absl::StrCat(program.workload().name, "_",
                                  blocks.empty() ? "nothing" : program.BlockOf(blocks.back()).name);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !absl::ascii_isalnum(c) && c != '_'; },
      '_');
  return absl::ascii_isdigit(static_cast<unsigned char>(name[0])) ? "k" + name : name;
}

}  // namespace

ir::Program SplitLaunches(const ir::Program& original) {
  ir::Program program = original;
  std::vector<ir::NodeId> launches;
  std::set<std::string> names;
  for (const ir::NodeId kernel : original.kernels) {
    const auto children = original.node(kernel).children;
    for (size_t c = 0; c < children.size(); ++c) {
      ir::NodeId launch = kernel;
      if (c > 0) {
        ir::Node node;
        node.kind = ir::Node::Kind::kKernel;
        program.nodes.push_back(std::move(node));
        launch = static_cast<ir::NodeId>(program.nodes.size()) - 1;
      }
      program.node(launch).children = {children[c]};
      program.node(children[c]).parent = launch;
      const std::string base = NameOf(program, children[c]);
      std::string name = base;
      for (int suffix = 1; !names.insert(name).second; ++suffix) {
        name = absl::StrCat(base, "_", suffix);
      }
      program.node(launch).name = std::move(name);
      launches.push_back(launch);
    }
  }
  program.kernels = std::move(launches);
  return program;
}

}  // namespace hone::lower
