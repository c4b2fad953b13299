#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/worker/part_graph_internal.h>
#include <kolo/core/cluster/worker/transfer_key.h>
#include <kolo/core/device/device_name.h>
#include <kolo/core/graph/loop_nodes.h>

namespace kolo::detail {
namespace {

std::string tensor_name(const std::string& node, int output) {
  return output == 0 ? node : fmt::format("{}:{}", node, output);
}

// Nodes that the loop's attributes name: fed in its iterations, they are not among nodes_in_loop.
std::vector<const Node*> variables_of_loop(const Node& loop) {
  std::vector<const Node*> nodes;
  for (const char* attr : {"variables", "backward", "totals"}) {
    if (loop.attrs().count(attr) == 0) continue;
    for (const auto& name : loop.attr<std::vector<std::string>>(attr))
      nodes.push_back(loop.graph().find_output(name).node);
  }
  return nodes;
}

}  // namespace

PartGraphs::PartGraphs(const StepGraph& step, const PartitionOptions& options,
                       std::map<std::string, StepPart> parts)
    : step_(step), options_(options), parts_(std::move(parts)) {}

std::vector<StepPart> PartGraphs::make() {
  // Loops last: what they share with the step, such as a variable, is the step's.
  for (int i = 0; i < static_cast<int>(step_.nodes.size()); ++i) add(i);
  for (const StepNode& node : step_.nodes)
    if (node.origin != nullptr && is_loop(*node.origin)) add_loop(node, task_of_device(node.device));
  name_ends();
  std::vector<StepPart> made;
  for (auto& [task, part] : parts_) {
    part.task = task;
    part.graph.seed = options_.seed;
    auto& nodes = nodes_[task].all;
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const Ordered& a, const Ordered& b) { return a.order < b.order; });
    for (Ordered& node : nodes) part.graph.nodes.push_back(std::move(node.definition));
    made.insert(task == options_.master ? made.begin() : made.end(), std::move(part));
  }
  return made;
}

std::string PartGraphs::name_of(StepValue value) const {
  return tensor_name(step_.nodes[value.node].name, value.output);
}

std::vector<std::string> PartGraphs::inputs_of(const StepNode& node) const {
  std::vector<std::string> inputs;
  for (const StepValue in : node.inputs) inputs.push_back(name_of(in));
  for (const int before : node.control_inputs) inputs.push_back("^" + step_.nodes[before].name);
  return inputs;
}

void PartGraphs::add(int index) {
  const StepNode& node = step_.nodes[index];
  const std::string task = task_of_device(node.device);
  StepPart& part = parts_[task];
  Nodes& nodes = nodes_[task];
  NodeDef definition{.name = node.name,
                     .op = node.schema->name(),
                     .inputs = inputs_of(node),
                     .device = node.device,
                     .colocation_groups = {},
                     .attrs = node.attrs,
                     .output_shapes = {}};
  if (node.schema->name() == kFeedOp) {
    const auto feed = node.attrs.at("feed").get<std::size_t>();
    if (part.feeds.size() <= feed) part.feeds.resize(feed + 1);
    part.feeds[feed] = node.name + ":0";
    definition.op = "Placeholder";
    definition.attrs.erase("feed");
  }
  nodes.names.insert(node.name);
  nodes.all.push_back({node.order, node.name, std::move(definition)});
}

void PartGraphs::add_loop(const StepNode& loop, const std::string& task) {
  Nodes& nodes = nodes_[task];
  const Node& origin = *loop.origin;
  const auto variables = origin.attr<std::vector<std::string>>("variables");
  const auto captures = origin.attr<std::vector<std::string>>("captures");
  for (std::size_t i = 0; i < captures.size(); ++i) {
    const Output captured = origin.graph().find_output(captures[i]);
    nodes.captured.emplace(std::pair(captured.node, captured.index),
                           name_of(loop.inputs.at(variables.size() + i)));
  }
  std::vector<const Node*> inner = nodes_in_loop(origin), fed = variables_of_loop(origin);
  inner.insert(inner.end(), fed.begin(), fed.end());
  const std::set<const Node*> inside(inner.begin(), inner.end());
  for (const Node* node : inner) add_inner(*node, loop, inside, nodes);
  for (Ordered& node : nodes.all)
    if (node.name == loop.name)
      node.definition.attrs = with_captures(loop.attrs, *loop.schema, origin.graph(), nodes);
}

void PartGraphs::add_inner(const Node& inner, const StepNode& loop, const std::set<const Node*>& inside,
                           Nodes& nodes) {
  const std::string device = inner_device(inner, loop);
  if (!nodes.names.insert(inner.name()).second) return;
  NodeDef definition{.name = inner.name(),
                     .op = inner.op(),
                     .inputs = {},
                     .device = device,
                     .colocation_groups = inner.colocation_groups(),
                     .attrs = with_captures(inner.attrs(), inner.schema(), inner.graph(), nodes),
                     .output_shapes = {}};
  for (const Output& in : inner.inputs()) {
    const auto captured = nodes.captured.find({in.node, in.index});
    definition.inputs.push_back(captured != nodes.captured.end() ? captured->second
                                                                 : tensor_name(in.node->name(), in.index));
  }
  // What was made before the loop is no concern of an iteration.
  for (const Node* before : inner.control_inputs())
    if (inside.count(before) > 0) definition.inputs.push_back("^" + before->name());
  nodes.all.push_back({inner.id() * kOrderStep, inner.name(), std::move(definition)});
}

// On the loop's task; of what is known of the device the rest stays for who places the part.
std::string PartGraphs::inner_device(const Node& inner, const StepNode& loop) const {
  const std::string asked = options_.device_of ? options_.device_of(inner) : inner.requested_device();
  DeviceSpec device = parse_device_spec(asked).value_or(DeviceSpec());
  const DeviceSpec host = parse_device_spec(loop.device).value_or(DeviceSpec());
  const DeviceSpec task{.job = host.job, .replica = host.replica, .task = host.task, .type = {}, .index = {}};
  const auto spans = [&](const DeviceSpec& other) {
    const DeviceSpec whole = merge_scopes(task, {other.job, other.replica, other.task, {}, {}});
    throw InvalidArgumentError("The loop {} spans {} and {}; pin it to one task", loop.name, task.to_string(),
                               whole.to_string());
  };
  if (!task.is_compatible_with(device)) spans(device);
  // A variable of the step has its place already.
  for (const StepNode& node : step_.nodes)
    if (node.origin == &inner && task_of_device(node.device) != task.to_string() &&
        (node.schema->is_variable_storage() || node.schema->is_contained()))
      spans(parse_device_spec(node.device).value_or(DeviceSpec()));
  return merge_scopes(task, device).to_string();
}

AttrMap PartGraphs::with_captures(const AttrMap& attrs, const OpSchema& schema, const Graph& graph,
                                  const Nodes& nodes) const {
  AttrMap changed = attrs;
  const auto here = [&](const std::string& tensor) {
    const Output output = graph.find_output(tensor);
    const auto captured = nodes.captured.find({output.node, output.index});
    if (captured == nodes.captured.end()) return tensor;
    return captured->second.find(':') == std::string::npos ? captured->second + ":0" : captured->second;
  };
  for (const std::string& name : schema.attrs_naming_tensors()) {
    const auto attr = changed.find(name);
    if (attr == changed.end()) continue;
    if (const auto* text = std::get_if<std::string>(&attr->second.value())) {
      attr->second = here(*text);
    } else if (const auto* list = std::get_if<std::vector<std::string>>(&attr->second.value())) {
      std::vector<std::string> texts;
      std::transform(list->begin(), list->end(), std::back_inserter(texts), here);
      attr->second = std::move(texts);
    }
  }
  return changed;
}

void PartGraphs::name_ends() {
  std::vector<bool> followed(step_.nodes.size(), false);
  for (const StepNode& node : step_.nodes) {
    for (const StepValue in : node.inputs) followed[in.node] = true;
    for (const int before : node.control_inputs) followed[before] = true;
  }
  for (const StepValue fetch : step_.fetches) {
    if (fetch.node < 0) continue;
    followed[fetch.node] = true;
    parts_[options_.master].fetches.push_back(
        fmt::format("{}:{}", step_.nodes[fetch.node].name, fetch.output));
  }
  for (std::size_t i = 0; i < step_.nodes.size(); ++i)
    if (const StepNode& node = step_.nodes[i]; !followed[i] && node.schema->name() != kFeedOp)
      parts_[task_of_device(node.device)].targets.push_back(node.name);
}

}  // namespace kolo::detail
