// A pass: trees of element-wise ops go through memory once. Contract: pipeline.h.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/kernels/element_program.h>
#include <kolo/core/ops/blocked.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/variable_uses.h>

namespace kolo {
namespace {

using Input = ElementProgram::Input;
using Operand = ElementProgram::Operand;

// How a tensor of `shape` meets the elements of an output of shape `out`, if that is one run of repetitions:
// the dimensions that they share are neighbours.
std::optional<Input> repetition(const Shape& shape, const Shape& out) {
  if (!shape.is_fully_known() || shape.rank() > out.rank()) return std::nullopt;
  Input input;
  enum { behind, inside, before } part = behind;
  for (int axis = -1; axis >= -out.rank(); --axis) {
    const std::int64_t size = out.dim(axis), mine = axis >= -shape.rank() ? shape.dim(axis) : 1;
    if (size == 1) continue;
    if (mine == size && part != before) {
      part = inside;
      input.channels *= size;
    } else if (mine == 1) {
      if (part == inside) part = before;
      if (part == behind) input.inner *= size;
    } else {
      return std::nullopt;
    }
  }
  if (part == behind) input.inner = 1;  // a scalar
  return input;
}

Input bias_repetition(const StepNode& node, const Shape& out) {
  if (node.schema->name() == kBlockedBiasAddOp && node.attrs.at("block").get<std::int64_t>() == kChannelsLast)
    return {.channels = out.dim(1), .inner = 1};
  if (node.schema->name() == kBlockedBiasAddOp)
    return {.channels = out.dim(1),
            .inner = out.dim(2) * out.dim(3),
            .block = node.attrs.at("block").get<std::int64_t>()};
  const bool nchw = node.attrs.at("data_format").get<std::string>() == "NCHW";
  const int axis = out.rank() == 4 && nchw ? 1 : out.rank() - 1;
  Input input{.channels = out.dim(axis), .inner = 1};
  for (int behind = axis + 1; behind < out.rank(); ++behind) input.inner *= out.dim(behind);
  return input;
}

class Fuser {
 public:
  explicit Fuser(StepGraph& graph) : graph_(graph), versions_(graph), uses_(graph.nodes.size()) {
    std::vector<std::vector<int>> users = graph.users();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      uses_[i].readers = std::move(users[i]);
      for (const int before : graph.nodes[i].control_inputs) uses_[before].kept = true;
    }
    for (const StepValue fetch : graph.fetches)
      if (fetch.node >= 0) uses_[fetch.node].kept = true;
  }

  // From the last node back: the end of a tree is found before its branches.
  void run() {
    std::vector<int> order = topological_order(graph_);
    std::reverse(order.begin(), order.end());
    for (const int root : order)
      if (!uses_[root].fused && can_be_fused(root)) fuse(root);
  }

 private:
  struct Uses {
    std::vector<int> readers;
    bool kept = false;   // fetched, or waited for
    bool fused = false;  // into another node
  };

  bool can_be_fused(int n) const {
    const StepNode& node = graph_.nodes[n];
    if (node.dtypes.size() != 1 || node.inputs.empty() || node.resource || !node.shapes[0].is_fully_known())
      return false;
    if (node.schema->name() == "AddN" && node.inputs.size() == 1) return false;
    if (!is_on_cpu(node)) return false;
    if (!is_element_op(node.schema->name(), node.dtypes[0]) || graph_.dtype(node.inputs[0]) != node.dtypes[0])
      return false;
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i)
      if (!repetition_of(node, i)) return false;
    return true;
  }

  std::optional<Input> repetition_of(const StepNode& node, int i) const {
    const std::string& op = node.schema->name();
    if (i == 1 && (op == "BiasAdd" || op == kBlockedBiasAddOp)) return bias_repetition(node, node.shapes[0]);
    return repetition(graph_.shape(node.inputs[i]), node.shapes[0]);
  }

  // A producer can go into the tree if nothing but the tree sees its value, and nothing is between the two
  // that it must not be moved past.
  bool can_join(int producer, int reader, int root) const {
    const StepNode &node = graph_.nodes[producer], &end = graph_.nodes[root];
    const Uses& uses = uses_[producer];
    if (uses.kept || uses.fused || !can_be_fused(producer)) return false;
    if (std::any_of(uses.readers.begin(), uses.readers.end(), [&](int other) { return other != reader; }))
      return false;
    if (node.shapes[0] != end.shapes[0] || node.dtypes[0] != end.dtypes[0] || node.device != end.device)
      return false;
    // What is computed outside of a branch is computed where the branch is not taken, too.
    for (const int before : end.control_inputs)
      if (graph_.nodes[before].schema->is_branch_guard() &&
          std::find(node.control_inputs.begin(), node.control_inputs.end(), before) ==
              node.control_inputs.end())
        return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](StepValue in) {
      return versions_.seen_by(graph_, in, node.order) == versions_.seen_by(graph_, in, end.order);
    });
  }

  static int instructions_of(const StepNode& node) {
    return node.schema->name() == "AddN" ? std::max(1, static_cast<int>(node.inputs.size()) - 1) : 1;
  }

  void fuse(int root) {
    std::vector<int> members = {root};
    int instructions = instructions_of(graph_.nodes[root]),
        inputs = static_cast<int>(graph_.nodes[root].inputs.size());
    for (std::size_t m = 0; m < members.size(); ++m) {
      for (const StepValue in : graph_.nodes[members[m]].inputs) {
        const StepNode& producer = graph_.nodes[in.node];
        if (uses_[in.node].fused || !can_join(in.node, members[m], root)) continue;
        const int more = instructions_of(producer),
                  more_inputs = static_cast<int>(producer.inputs.size()) - 1;
        if (instructions + more > kMaxElementInstructions || inputs + more_inputs > kMaxElementInputs)
          continue;
        instructions += more;
        inputs += more_inputs;
        uses_[in.node].fused = true;
        members.push_back(in.node);
      }
    }
    if (members.size() > 1) become_program(root, members);
  }

  // Writes the tree down as a program.
  class Writer {
   public:
    Writer(const Fuser& fuser, const std::vector<int>& members) : fuser_(fuser) {
      for (const int member : members) members_[member] = std::nullopt;
    }

    Operand write(int member) {
      auto& written = members_.at(member);
      if (written) return *written;
      const StepNode& node = fuser_.graph_.nodes[member];
      std::vector<Operand> operands;
      for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) operands.push_back(operand(node, i));
      Operand result = operands[0];
      if (operands.size() == 1) result = add(node, {operands[0]});
      for (std::size_t i = 1; i < operands.size(); ++i) result = add(node, {result, operands[i]});
      names.push_back(node.name);
      ops.push_back(node.schema->name());
      control_inputs.insert(control_inputs.end(), node.control_inputs.begin(), node.control_inputs.end());
      written = result;
      return result;
    }

    ElementProgram program;
    std::vector<StepValue> inputs;
    std::vector<std::string> names, ops;
    std::vector<int> control_inputs;

   private:
    Operand operand(const StepNode& node, int i) {
      const StepValue in = node.inputs[i];
      if (members_.count(in.node) > 0) return write(in.node);
      const Input input = *fuser_.repetition_of(node, i);
      for (std::size_t k = 0; k < inputs.size(); ++k)
        if (inputs[k] == in && program.inputs[k] == input)
          return {.is_result = false, .index = static_cast<int>(k)};
      inputs.push_back(in);
      program.inputs.push_back(input);
      return {.is_result = false, .index = static_cast<int>(inputs.size()) - 1};
    }

    Operand add(const StepNode& node, std::vector<Operand> operands) {
      program.instructions.push_back({node.schema->name(), std::move(operands)});
      return {.is_result = true, .index = static_cast<int>(program.instructions.size()) - 1};
    }

    const Fuser& fuser_;
    std::map<int, std::optional<Operand>> members_;
  };

  void become_program(int root, const std::vector<int>& members) {
    Writer writer(*this, members);
    writer.write(root);
    StepNode& node = graph_.nodes[root];
    std::string name;
    for (const std::string& part : writer.names) name += (name.empty() ? "" : " + ") + part;
    std::sort(writer.control_inputs.begin(), writer.control_inputs.end());
    writer.control_inputs.erase(std::unique(writer.control_inputs.begin(), writer.control_inputs.end()),
                                writer.control_inputs.end());
    node.schema = &find_op(kFusedElementwiseOp);
    node.name = std::move(name);
    node.attrs = {{"shape", node.shapes[0]}, {"ops", std::move(writer.ops)}};
    node.inputs = std::move(writer.inputs);
    node.control_inputs = std::move(writer.control_inputs);
    node.resource = std::make_shared<ElementProgram>(std::move(writer.program));
  }

  StepGraph& graph_;
  const VariableVersions versions_;
  std::vector<Uses> uses_;
};

}  // namespace

void fuse_elementwise(StepGraph& graph, int) { Fuser(graph).run(); }

}  // namespace kolo
