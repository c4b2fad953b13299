// kolo-inspect graph: what a saved graph consists of, as a list, as JSON, as a drawing for Graphviz or as
// text; and what would compute it on this machine.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/device/plugin.h>
#include <kolo/core/graph/graph_def.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/passes/place.h>
#include <kolo/core/passes/prune.h>
#include <kolo/core/runtime/session.h>
#include <kolo/launcher/inspect_command.h>

namespace kolo::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kGraphUsage[] = "graph FILE [--json | --dot | --text | --kernels | --device gpu]";

// A text from a file may hold anything; JSON is UTF-8.
std::string printable(const std::string& text) { return json_text(nlohmann::json(text)); }

Json json_of(const Shape& shape) { return shape.has_rank() ? Json(shape.dims()) : Json(nullptr); }

Json json_of(const AttrValue& value) {
  struct {
    Json operator()(bool v) const { return v; }
    Json operator()(std::int64_t v) const { return v; }
    Json operator()(double v) const { return v; }
    Json operator()(const std::string& v) const { return v; }
    Json operator()(DType v) const { return name(v); }
    Json operator()(const Shape& v) const { return json_of(v); }
    Json operator()(const Tensor& v) const {
      Json tensor{{"dtype", name(v.dtype())}, {"shape", v.shape().dims()}};
      if (v.dtype() != DType::string) tensor["crc32c"] = fmt::format("{:08x}", crc32c(v.raw(), v.bytes()));
      return tensor;
    }
    Json operator()(const std::vector<std::int64_t>& v) const { return v; }
    Json operator()(const std::vector<std::string>& v) const { return v; }
  } const converter;
  return std::visit(converter, value.value());
}

Json json_of(const NodeDef& node) {
  Json attrs = Json::object();
  for (const auto& [name, value] : node.attrs) attrs[name] = json_of(value);
  Json json{{"name", node.name},     {"op", node.op},  {"inputs", node.inputs},
            {"device", node.device}, {"attrs", attrs}, {"colocation", node.colocation_groups}};
  for (const Shape& shape : node.output_shapes) json["output_shapes"].push_back(json_of(shape));
  return json;
}

void print_json(const GraphDef& graph) {
  Json json{{"producer", graph.producer}, {"min_consumer", graph.min_consumer}};
  json["seed"] = graph.seed ? Json(*graph.seed) : Json(nullptr);
  json["nodes"] = Json::array();
  for (const NodeDef& node : graph.nodes) json["nodes"].push_back(json_of(node));
  json["collections"] = Json::object();
  for (const auto& [name, nodes] : graph.collections) json["collections"][name] = nodes;
  fmt::print("{}\n", json_text(json));
}

void print_list(const GraphDef& graph) {
  std::size_t name_width = 0, op_width = 0;
  std::map<std::string, int> ops;
  for (const NodeDef& node : graph.nodes) {
    name_width = std::max(name_width, node.name.size());
    op_width = std::max(op_width, node.op.size());
    ++ops[node.op];
  }
  fmt::print("{} of {}{}\n", count_of(graph.nodes.size(), "node"), count_of(ops.size(), "op"),
             graph.seed ? fmt::format(", seed {}", *graph.seed) : "");
  for (const NodeDef& node : graph.nodes) {
    std::string inputs;
    for (const std::string& in : node.inputs) inputs += (inputs.empty() ? "" : ", ") + in;
    fmt::print("{:<{}}  {:<{}}  ({}){}\n", node.name, name_width, node.op, op_width, inputs,
               node.device.empty() ? "" : "  " + node.device);
  }
  for (const auto& [name, nodes] : graph.collections)
    fmt::print("collection {}: {}\n", printable(name), count_of(nodes.size(), "node"));
}

// An edge for each input; what must only have run before is dashed.
void print_edges(const NodeDef& node) {
  for (const std::string& in : node.inputs) {
    if (in.starts_with('^')) {
      fmt::print("  {} -> {} [style=dashed];\n", printable(in.substr(1)), printable(node.name));
      continue;
    }
    const auto colon = in.rfind(':');
    const std::string label =
        colon == std::string::npos ? "" : fmt::format(" [label={}]", printable(in.substr(colon)));
    fmt::print("  {} -> {}{};\n", printable(in.substr(0, colon)), printable(node.name), label);
  }
}

// Graphviz draws a subgraph whose name begins with "cluster" as a box: one for each device.
void print_dot(const GraphDef& graph) {
  std::map<std::string, std::vector<const NodeDef*>> by_device;
  for (const NodeDef& node : graph.nodes) by_device[node.device].push_back(&node);
  fmt::print("digraph kolo {{\n  node [shape=box];\n");
  int cluster = 0;
  for (const auto& [device, nodes] : by_device) {
    if (!device.empty()) fmt::print("  subgraph cluster_{} {{\n  label={};\n", cluster++, printable(device));
    for (const NodeDef* node : nodes)
      fmt::print("  {} [label={}];\n", printable(node->name), printable(node->name + "\n" + node->op));
    if (!device.empty()) fmt::print("  }}\n");
  }
  for (const NodeDef& node : graph.nodes) print_edges(node);
  fmt::print("}}\n");
}

// False for placeholders, which are fed, and for notes that are never run.
bool runs(const Node& node) {
  return node.op() != "Placeholder" &&
         (node.schema().is_expanded_by_pass() || !kernels_of(node.op()).empty());
}

// What nobody reads or waits for: a step of these has all nodes.
std::vector<Fetch> ends_of(const Graph& graph) {
  std::set<const Node*> followed;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    for (const Output& in : graph.node(id).inputs()) followed.insert(in.node);
    for (const Node* before : graph.node(id).control_inputs()) followed.insert(before);
  }
  std::vector<Fetch> ends;
  for (int id = 0; id < graph.num_nodes(); ++id)
    if (followed.count(&graph.node(id)) == 0 && runs(graph.node(id)))
      ends.push_back(Operation(&graph.node(id)));
  return ends;
}

constexpr std::int64_t kUnknownSize = 64;

Feeds zeros_for_placeholders(const Graph& graph) {
  Feeds feeds;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op() != "Placeholder") continue;
    Shape shape = node.output_shape(0).has_rank() ? node.output_shape(0) : Shape{-1};
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (shape.dim(axis) < 0) shape = shape.with_dim(axis, kUnknownSize);
    feeds.push_back({node.output(0), Tensor::zeros(node.output_dtype(0), shape)});
  }
  return feeds;
}

void print_kernels(const GraphDef& definition) {
  Graph graph;
  import_graph_def(Scope(graph), definition);
  Session session(graph, {.allow_soft_placement = true});
  const auto choices = session.kernels(ends_of(graph), zeros_for_placeholders(graph));
  std::size_t name_width = 0, op_width = 0, kernel_width = 0;
  for (const KernelChoice& choice : choices) {
    name_width = std::max(name_width, choice.node.size());
    op_width = std::max(op_width, choice.op.size());
    kernel_width = std::max(kernel_width, choice.kernel.size());
  }
  fmt::print("{} kernels; sizes that only a step tells are taken as {}\n", choices.size(), kUnknownSize);
  for (const KernelChoice& choice : choices)
    fmt::print("{:<{}}  {:<{}}  {:<{}}{}\n", choice.node, name_width, choice.op, op_width, choice.kernel,
               choice.declined.empty() ? 0 : kernel_width,
               choice.declined.empty() ? "" : "  not " + choice.declined);
}

// Why the placer has put a node beside a GPU.
std::string why_on_host(const StepNode& node, const std::vector<KernelSupport>& kernels,
                        std::optional<DType> type) {
  const bool any = std::any_of(kernels.begin(), kernels.end(),
                               [](const KernelSupport& kernel) { return kernel.device_type == "GPU"; });
  if (!any) return "no kernel for GPUs";
  const bool fits = std::any_of(kernels.begin(), kernels.end(), [&](const KernelSupport& kernel) {
    return kernel.device_type == "GPU" &&
           (kernel.types.empty() || !type ||
            std::find(kernel.types.begin(), kernel.types.end(), *type) != kernel.types.end());
  });
  if (!fits) return fmt::format("no kernel for GPUs takes {}", name(*type));
  return node.origin->requested_device().empty() ? "it belongs to nodes that are" : "asked for";
}

// Needs the plug-in, but neither driver nor GPU.
void print_host_nodes(const GraphDef& definition) {
  Graph graph;
  import_graph_def(Scope(graph), definition);
  const PluginContents& plugin = installed_plugin();
  if (gpu_plugin() == nullptr)  // else the table of kernels asks for them by itself
    for (const auto& register_kernel : plugin.kernels) register_kernel();
  std::vector<PlacerDevice> devices;
  for (const char* type : {"CPU", "GPU"}) devices.push_back(PlacerDevice::named(local_device_name(type, 0)));
  const std::string host = devices[0].name;
  const Placer placer(std::move(devices), registered_kernel_table(false),
                      {.allow_soft_placement = true, .log_placement = false, .default_device = host});

  StepSignature signature;
  for (const Fetch& end : ends_of(graph)) {
    signature.fetched.emplace_back();
    signature.targets.push_back(end.operation.node);
  }
  for (const auto& [output, zeros] : zeros_for_placeholders(graph))
    signature.fed.emplace_back(output, zeros.shape());
  StepGraph step = prune(signature);
  Placements placements;
  place(step, placer, placements);
  std::vector<std::array<std::string, 3>> lines;
  std::size_t nodes = 0, name_width = 0, op_width = 0;
  for (const StepNode& node : step.nodes) {
    if (node.origin == nullptr) continue;  // a fed value
    ++nodes;
    if (node.device != host) continue;
    std::optional<DType> type;
    if (!node.inputs.empty()) type = step.dtype(node.inputs[0]);
    else if (!node.dtypes.empty()) type = node.dtypes[0];
    lines.push_back(
        {node.name, node.schema->name(), why_on_host(node, placer.kernels()(*node.schema), type)});
    name_width = std::max(name_width, node.name.size());
    op_width = std::max(op_width, node.schema->name().size());
  }
  fmt::print("{} of {} would stay on the CPU beside a GPU\n", lines.size(), count_of(nodes, "node"));
  for (const auto& [node, op, why] : lines)
    fmt::print("{:<{}}  {:<{}}  {}\n", node, name_width, op, op_width, why);
}

// `--device gpu` without the last word, which parse_one_path would take for a path.
std::vector<std::string> without_device(std::vector<std::string> words) {
  const auto device = std::find(words.begin(), words.end(), "--device");
  if (device == words.end()) return words;
  const auto value = std::next(device);
  if (value == words.end() || *value != "gpu")
    throw CommandLineError(fmt::format("--device \"{}\" is not valid; it must be gpu; usage: kolo-inspect {}",
                                       value == words.end() ? "" : *value, kGraphUsage));
  words.erase(value);
  return words;
}

void inspect_graph(const std::vector<std::string>& words) {
  const OnePath options =
      parse_one_path(without_device(words), {"json", "dot", "text", "kernels", "device"}, kGraphUsage);
  if (options.help)
    return fmt::print(
        "Usage: kolo-inspect {}\n\n"
        "Prints each node of a saved graph with its op, inputs and device.\n"
        "FILE: what kolo::write_graph wrote; text if its name ends in .pbtxt. Exit code 1 if it is damaged.\n"
        "--json: one line of JSON.\n"
        "--dot: a drawing for Graphviz, a box for each device, control edges dashed: ... --dot | dot -Tsvg\n"
        "--text: the text form.\n"
        "--kernels: what would compute each node of a step of the whole graph on this machine, by the place "
        "where the\n"
        "kernel is registered, and why not a faster one.\n"
        "--device gpu: the nodes of such a step that would stay on the CPU on a machine with a GPU, and why. "
        "Asks for the\n"
        "plug-in (KOLO_CUDA), not for a GPU.\n",
        kGraphUsage);
  if (options.flags.size() > 1)
    throw CommandLineError(fmt::format("--{} and --{} exclude each other; usage: kolo-inspect {}",
                                       options.flags[0], options.flags[1], kGraphUsage));
  const std::string form = options.flags.empty() ? "list" : options.flags[0];
  const GraphDef graph = read_graph_def(options.path);
  if (form == "json") print_json(graph);
  else if (form == "dot") print_dot(graph);
  else if (form == "text") fmt::print("{}", graph_def_text(graph));
  else if (form == "kernels") print_kernels(graph);
  else if (form == "device") print_host_nodes(graph);
  else print_list(graph);
}

const RegisterInspectCommand graph_command(
    "graph",
    {kGraphUsage, "nodes of a saved graph, as list, JSON, drawing or text; their kernels", inspect_graph});

}  // namespace
}  // namespace kolo::launcher
