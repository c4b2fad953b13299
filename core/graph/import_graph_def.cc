// A definition becomes nodes of a graph. Contract: graph_def.h.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/core/graph/graph_def.h>

namespace kolo {
namespace {

constexpr std::string_view kColocationPrefix = "loc:@";

// One input as the definition spells it, resolved to the position of its node.
struct Input {
  int node;
  int index;  // −1: a control input
};

[[noreturn]] void refuse(const NodeDef& node, const std::string& why) {
  throw InvalidArgumentError("graph definition, {} node \"{}\": {}", node.op, node.name, why);
}

// What the definition says by itself, whatever graph it goes into.
class Definition {
 public:
  explicit Definition(const GraphDef& definition) : definition_(definition) {
    if (definition.min_consumer > kGraphDefVersion)
      throw FailedPreconditionError(
          "the graph definition needs a reader of version {} or newer; this kolo reads up to version {}",
          definition.min_consumer, kGraphDefVersion);
    index_names();
    for (const NodeDef& node : definition.nodes) check_op(node), inputs_.push_back(inputs_of(node));
    sort();
    for (const auto& [name, nodes] : definition.collections)
      for (const std::string& node : nodes)
        if (position_.count(node) == 0)
          throw InvalidArgumentError(
              "graph definition: collection \"{}\" names node \"{}\", which is not there", name, node);
  }

  const std::vector<NodeDef>& nodes() const { return definition_.nodes; }
  const NodeDef& node(int position) const { return definition_.nodes[position]; }
  const std::vector<Input>& inputs(int position) const { return inputs_[position]; }
  const std::vector<int>& order() const { return order_; }
  int position(const std::string& name) const { return position_.at(name); }
  bool contains(std::string_view name) const { return position_.count(std::string(name)) > 0; }

 private:
  void index_names() {
    std::set<std::string> without_case;
    for (std::size_t i = 0; i < definition_.nodes.size(); ++i) {
      const NodeDef& node = definition_.nodes[i];
      check_length(node.name);
      if (!is_valid_node_name(node.name))
        refuse(node, fmt::format("'{}' is not a valid node name", node.name));
      if (!without_case.insert(lower_case(node.name)).second)
        refuse(node, "another node has this name already (upper and lower case count as one)");
      position_[node.name] = static_cast<int>(i);
    }
  }

  // Each scope of a name takes a name of its own: the memory for them must stay a small multiple of the
  // text's.
  static void check_length(const std::string& name) {
    const auto scopes = std::count(name.begin(), name.end(), '/');
    if (name.size() > kMaxNameLength || scopes > kMaxScopes)
      throw InvalidArgumentError(
          "graph definition: the name '{}…' has {} characters and {} scopes; at most {} and {} are taken",
          name.substr(0, 32), name.size(), scopes, kMaxNameLength, kMaxScopes);
  }

  static void check_op(const NodeDef& node) {
    try {
      find_op(node.op);
    } catch (const NotFoundError& unknown) {
      throw NotFoundError("graph definition, node \"{}\": {}", node.name, unknown.what());
    }
  }

  std::vector<Input> inputs_of(const NodeDef& node) const {
    std::vector<Input> inputs;
    for (const std::string& text : node.inputs) {
      const bool control = !text.empty() && text[0] == '^';
      if (!control && !inputs.empty() && inputs.back().index < 0)
        refuse(node, fmt::format("input '{}' comes after a control input; control inputs come last", text));
      const auto colon = control ? std::string::npos : text.rfind(':');
      const auto found = position_.find(text.substr(control ? 1 : 0, colon));
      if (found == position_.end())
        refuse(node, fmt::format("input '{}' is of a node that is not in the definition", text));
      const auto index = colon == std::string::npos ? 0 : parse_int64(text.substr(colon + 1));
      if (!index || *index < 0 || *index > kMaxIndex)
        refuse(node, fmt::format("input '{}' is no '<node>', '<node>:<output index>' or '^<node>'", text));
      inputs.push_back({found->second, control ? -1 : static_cast<int>(*index)});
    }
    return inputs;
  }

  // Inputs first; among the nodes that could come, the first of the definition: an order that works is kept.
  void sort() {
    const std::size_t count = definition_.nodes.size();
    std::vector<int> waiting(count, 0);
    std::vector<std::vector<int>> readers(count);
    for (std::size_t i = 0; i < count; ++i)
      for (const Input& in : inputs_[i]) readers[in.node].push_back(static_cast<int>(i)), ++waiting[i];
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (std::size_t i = 0; i < count; ++i)
      if (waiting[i] == 0) ready.push(static_cast<int>(i));
    while (!ready.empty()) {
      order_.push_back(ready.top());
      ready.pop();
      for (const int reader : readers[order_.back()])
        if (--waiting[reader] == 0) ready.push(reader);
    }
    if (order_.size() < count) refuse_cycle(waiting);
  }

  // Every node that still waits has an input that still waits: going from input to input ends in a cycle.
  [[noreturn]] void refuse_cycle(const std::vector<int>& waiting) const {
    const auto waits = [&](int node) { return waiting[node] > 0; };
    int node = 0;
    while (!waits(node)) ++node;
    std::set<int> seen;
    while (seen.insert(node).second)
      for (const Input& in : inputs_[node])
        if (waits(in.node)) {
          node = in.node;
          break;
        }
    refuse(definition_.nodes[node], "it depends on itself: the graph has a cycle");
  }

  static constexpr std::int64_t kMaxIndex = 1 << 20;
  static constexpr std::size_t kMaxNameLength = 4096;
  static constexpr std::ptrdiff_t kMaxScopes = 64;
  const GraphDef& definition_;
  std::unordered_map<std::string, int> position_;
  std::vector<std::vector<Input>> inputs_;
  std::vector<int> order_;
};

// "x" is "x:0".
std::pair<std::string, int> tensor_name(const std::string& text) {
  const auto colon = text.rfind(':');
  const auto index = colon == std::string::npos ? 0 : parse_int64(text.substr(colon + 1));
  return {text.substr(0, colon), static_cast<int>(std::clamp<std::int64_t>(index.value_or(-1), -1, 1 << 30))};
}

using MappedInputs = std::map<std::pair<int, int>, Output>;  // by position and output index

MappedInputs resolve_input_map(const Definition& definition, const ImportOptions& options,
                               const Graph& graph) {
  MappedInputs mapped;
  for (const auto& [text, output] : options.input_map) {
    const auto [name, index] = tensor_name(text);
    if (index < 0 || !definition.contains(name))
      throw InvalidArgumentError("Attempted to map inputs that were not found in graph_def: [{}]", text);
    if (!output) throw InvalidArgumentError("import: '{}' is mapped to an empty output", text);
    if (&output.node->graph() != &graph)
      throw InvalidArgumentError("import: '{}' is mapped to {}, which is not an element of this graph.", text,
                                 output.name());
    mapped[{definition.position(name), index}] = output;
  }
  return mapped;
}

// Adds the definition's nodes to one graph: first to a trial of its own, which finds whatever does not fit,
// then to the caller's.
class Import {
 public:
  Import(const Definition& definition, const MappedInputs& mapped)
      : definition_(definition), mapped_(mapped) {}

  void into(const Scope& s, const std::string& prefix) {
    nodes_.assign(definition_.nodes().size(), nullptr);
    std::int64_t room = kMaxOutputDims;
    for (const int position : definition_.order()) {
      const Node& node = add(s, prefix, position);
      nodes_[position] = &node;
      for (int i = 0; i < node.num_outputs(); ++i)
        room -= 1 + static_cast<std::int64_t>(node.output_shape(i).dims().size());
      if (room < 0)
        refuse(definition_.node(position),
               "the outputs of the nodes up to here have too many dimensions in all");
    }
  }

  const Node& node(int position) const { return *nodes_[position]; }

 private:
  const Node& add(const Scope& s, const std::string& prefix, int position) {
    const NodeDef& node = definition_.node(position);
    NodePlace place = s.place(node.name);
    if (!node.device.empty()) place.device = node.device;
    for (const std::string& group : node.colocation_groups) {
      const bool names_node = group.starts_with(kColocationPrefix);
      place.colocation_groups.push_back(names_node ? fmt::format("{}{}{}", kColocationPrefix, prefix,
                                                                 group.substr(kColocationPrefix.size()))
                                                   : group);
    }
    Outputs inputs;
    for (const Input& in : definition_.inputs(position)) {
      if (in.index < 0) place.control_inputs.push_back(nodes_[in.node]);
      else inputs.push_back(input(position, in));
    }
    return s.graph().add_node(node.op, inputs, prefixed_attrs(node, prefix), place);
  }

  // A loop names the tensors of its body in attributes.
  AttrMap prefixed_attrs(const NodeDef& node, const std::string& prefix) const {
    AttrMap attrs = node.attrs;
    for (const std::string& name : find_op(node.op).attrs_naming_tensors()) {
      const auto attr = attrs.find(name);
      if (attr == attrs.end()) continue;
      const auto prefixed = [&](const std::string& tensor) {
        if (!definition_.contains(tensor.substr(0, tensor.rfind(':'))))
          refuse(node,
                 fmt::format("attribute \"{}\" names '{}', which is not in the definition", name, tensor));
        const auto [node_name, index] = tensor_name(tensor);
        const auto mapped = mapped_.find({definition_.position(node_name), index});
        return mapped != mapped_.end() ? mapped->second.name() : prefix + tensor;
      };
      if (const auto* text = std::get_if<std::string>(&attr->second.value())) {
        attr->second = prefixed(*text);
      } else if (const auto* list = std::get_if<std::vector<std::string>>(&attr->second.value())) {
        std::vector<std::string> texts;
        for (const std::string& tensor : *list) texts.push_back(prefixed(tensor));
        attr->second = std::move(texts);
      }
    }
    return attrs;
  }

  Output input(int reader, const Input& in) const {
    const auto mapped = mapped_.find({in.node, in.index});
    if (mapped != mapped_.end()) return mapped->second;
    const Node& node = *nodes_[in.node];
    if (in.index >= node.num_outputs())
      refuse(definition_.node(reader),
             fmt::format("input '{}:{}' is asked for, but that {} node has {} outputs",
                         definition_.node(in.node).name, in.index, node.op(), node.num_outputs()));
    return node.output(in.index);
  }

  // A node of a few bytes may have thousands of outputs with hundreds of dimensions.
  static constexpr std::int64_t kMaxOutputDims = 1 << 25;
  const Definition& definition_;
  const MappedInputs& mapped_;
  std::vector<const Node*> nodes_;
};

// In the trial stands for a tensor of the caller's graph.
Output stand_in(Graph& trial, const Output& of) {
  if (of.node->schema().is_contained())
    return {&trial.add_node(of.node->op(), {}, of.node->attrs(), {}), of.index};
  const bool variable = of.node->schema().is_variable_storage();
  return {&trial.add_node(variable ? "Variable" : "Placeholder", {},
                          {{"dtype", of.dtype()}, {"shape", of.shape()}}, {}),
          0};
}

void check_output_shapes(const NodeDef& definition, const Node& node) {
  if (definition.output_shapes.empty()) return;
  if (static_cast<int>(definition.output_shapes.size()) != node.num_outputs())
    refuse(definition, fmt::format("{} output shapes are given for {} outputs",
                                   definition.output_shapes.size(), node.num_outputs()));
  for (int i = 0; i < node.num_outputs(); ++i)
    if (!definition.output_shapes[i].is_compatible_with(node.output_shape(i)))
      refuse(definition, fmt::format("output {} is said to be {}, but it is {}", i,
                                     definition.output_shapes[i], node.output_shape(i)));
}

void try_out(const Definition& definition, const MappedInputs& mapped, const Graph& graph) {
  Graph trial;
  if (graph.admits_transfers()) trial.admit_transfers();
  MappedInputs stand_ins;
  for (const auto& [tensor, output] : mapped) stand_ins[tensor] = stand_in(trial, output);
  Import import(definition, stand_ins);
  import.into(Scope(trial), "");
  for (std::size_t i = 0; i < definition.nodes().size(); ++i)
    check_output_shapes(definition.nodes()[i], import.node(static_cast<int>(i)));
  for (const auto& [tensor, output] : mapped) {
    const Node& replaced = import.node(tensor.first);
    if (tensor.second >= replaced.num_outputs())
      throw InvalidArgumentError("Attempted to map inputs that were not found in graph_def: [{}:{}]",
                                 replaced.name(), tensor.second);
  }
}

// New scopes of these names would else mix with the imported ones.
void take_scope_names(Graph& graph, const std::string& node) {
  for (auto slash = node.find('/', 1); slash != std::string::npos; slash = node.find('/', slash + 1))
    if (const std::string scope = node.substr(0, slash); !graph.is_taken(scope)) graph.unique_name(scope);
}

}  // namespace

std::string import_graph_def(const Scope& s, const GraphDef& graph_def, const ImportOptions& options) {
  Graph& graph = s.graph();
  if (graph.is_finalized()) throw FailedPreconditionError("Graph is finalized and cannot be modified.");
  const Definition definition(graph_def);
  const MappedInputs mapped = resolve_input_map(definition, options, graph);
  try_out(definition, mapped, graph);
  if (options.prefix.empty())
    for (const NodeDef& node : graph_def.nodes)
      if (const std::string name = s.place(node.name).name; graph.is_taken(name))
        throw AlreadyExistsError(
            "Node name '{}' already exists in the Graph; import with a prefix (ImportOptions::prefix)", name);

  const Scope inside = options.prefix.empty() ? s : s.name_scope(options.prefix);
  std::string prefix = inside.place("").name;
  Import import(definition, mapped);
  import.into(inside, prefix);
  for (int i = 0; i < static_cast<int>(graph_def.nodes.size()); ++i)
    take_scope_names(graph, import.node(i).name());
  for (const auto& [name, nodes] : graph_def.collections)
    for (const std::string& node : nodes)
      graph.add_to_collection(name, import.node(definition.position(node)));
  if (!graph.seed() && graph_def.seed) graph.set_seed(*graph_def.seed);
  return prefix;
}

}  // namespace kolo
