#include <kolo/core/passes/step_graph.h>

#include <fmt/format.h>

#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/device/device_name.h>

namespace kolo {
namespace {

const RegisterOp feed_op(OpSchema("Feed")
                             .required_attr("feed", 0)
                             .required_attr("dtype", DType::f32)
                             .required_attr("shape", Shape())
                             .output("value", "dtype")
                             .shape([](ShapeContext& c) { c.set_output(0, c.attr<Shape>("shape")); })
                             .stateful()
                             .made_by_pass());

// The outputs that are like the input, or as the attribute, `name`: of its type, or as many as it says.
void add_outputs_like(const StepGraph& graph, StepNode& node, const std::string& name) {
  const auto& inputs = node.schema->inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].name == name) return node.dtypes.push_back(graph.dtype(node.inputs.at(i)));
  const AttrValue& attr = node.attrs.at(name);
  if (std::holds_alternative<DType>(attr.value())) return node.dtypes.push_back(attr.get<DType>());
  if (const auto* types = std::get_if<std::vector<std::string>>(&attr.value())) {
    for (const std::string& type : *types) node.dtypes.push_back(dtype_from_name(type));
    return;
  }
  for (auto count = attr.get<std::int64_t>(); count > 0; --count)
    node.dtypes.push_back(graph.dtype(node.inputs.at(0)));
}

}  // namespace

int StepGraph::add(const std::string& op, const std::string& name, std::vector<StepValue> inputs,
                   AttrMap attrs, std::int64_t order) {
  StepNode node;
  node.schema = &find_op(op);
  node.name = name;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  for (const auto& [key, spec] : node.schema->attrs()) node.attrs.emplace(key, spec.value);
  node.order = order;
  if (!node.inputs.empty()) node.device = nodes[node.inputs[0].node].device;
  nodes.push_back(std::move(node));
  infer_outputs(*this, static_cast<int>(nodes.size()) - 1);
  return static_cast<int>(nodes.size()) - 1;
}

void StepGraph::replace_uses(StepValue from, StepValue to, int except) {
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (StepValue& in : nodes[i].inputs)
      if (in == from && static_cast<int>(i) != except) in = to;
  for (StepValue& fetch : fetches)
    if (fetch == from) fetch = to;
}

std::vector<std::vector<int>> StepGraph::users() const {
  std::vector<std::vector<int>> users(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const StepValue in : nodes[i].inputs) users[in.node].push_back(static_cast<int>(i));
  return users;
}

void StepGraph::compact(const std::vector<bool>& keep) {
  std::vector<int> moved(nodes.size(), -1);
  int kept = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!keep[i]) continue;
    if (kept != static_cast<int>(i)) nodes[kept] = std::move(nodes[i]);
    moved[i] = kept++;
  }
  nodes.resize(static_cast<std::size_t>(kept));
  for (StepNode& node : nodes) {
    for (StepValue& in : node.inputs) in.node = moved[in.node];
    for (int& before : node.control_inputs) before = moved[before];
    for (int& before : node.after) before = moved[before];
  }
  for (StepValue& fetch : fetches)
    if (fetch.node >= 0) fetch.node = moved[fetch.node];
  for (int& end : ends) end = moved[end];
  std::map<StepValue, Placement> placed;
  for (auto& [value, placement] : placements)
    if (moved[value.node] >= 0) placed[{moved[value.node], value.output}] = std::move(placement);
  placements = std::move(placed);
}

void StepGraph::retire(int index) {
  StepNode& node = nodes[index];
  for (const StepValue in : node.inputs) node.control_inputs.push_back(in.node);
  node.schema = &find_op("NoOp");
  node.inputs.clear();
  node.attrs.clear();
  node.dtypes.clear();
  node.shapes.clear();
}

StepValue StepGraph::memory_root(StepValue v) const {
  while (true) {
    const StepNode& node = nodes[v.node];
    const bool aliases = v.output == 0 && !node.inputs.empty() &&
                         (node.schema->is_view() || node.schema->input_spec(0).updated);
    if (!aliases) return v;
    v = node.inputs[0];
  }
}

bool StepGraph::is_made_in_given_memory(StepValue v) const {
  const StepNode& node = nodes[v.node];
  return memory_root(v) == v && placements.count(v) == 0 && node.schema->name() != "Const" &&
         node.schema->name() != kFeedOp && !node.schema->is_variable_storage() &&
         !node.schema->is_owner_of_outputs() && node.shapes[v.output].is_fully_known() &&
         node.dtypes[v.output] != DType::string;
}

bool is_on_cpu(const StepNode& node) {
  const auto device = parse_device_spec(node.device);
  return device && device->type == "CPU";
}

void infer_outputs(StepGraph& graph, int index) {
  StepNode& node = graph.nodes[index];
  const OpSchema& schema = *node.schema;
  node.dtypes.clear();
  for (const auto& spec : schema.outputs()) {
    if (spec.dtype) node.dtypes.push_back(*spec.dtype);
    else if (!spec.like.empty()) add_outputs_like(graph, node, spec.like);
    else node.dtypes.push_back(graph.dtype(node.inputs.at(0)));
  }
  if (schema.has_output_per_input())
    for (std::size_t i = schema.inputs().size() - 1; i < node.inputs.size(); ++i)
      node.dtypes.push_back(graph.dtype(node.inputs[i]));

  std::vector<Shape> shapes;
  std::vector<DType> dtypes;
  for (const StepValue& in : node.inputs)
    shapes.push_back(graph.shape(in)), dtypes.push_back(graph.dtype(in));
  ShapeContext context(std::move(shapes), std::move(dtypes), node.attrs,
                       static_cast<int>(node.dtypes.size()));
  try {
    infer_shapes(schema, context);
  } catch (const Error& error) {
    throw_error(error.code(), fmt::format("{} [node \"{}\", {}]", error.what(), node.name, schema.name()));
  }
  node.shapes = context.outputs();
}

namespace {

template <class Visit>
void each_before(const StepNode& node, Visit visit) {
  for (const StepValue& in : node.inputs) visit(in.node);
  for (const int before : node.control_inputs) visit(before);
  for (const int before : node.after) visit(before);
}

// Most steps are: then no node has to wait for one behind it.
bool is_in_order(const StepGraph& graph) {
  const auto& nodes = graph.nodes;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    bool in_order = i == 0 || nodes[i - 1].order <= nodes[i].order;
    each_before(nodes[i], [&](int before) { in_order = in_order && before < i; });
    if (!in_order) return false;
  }
  return true;
}

}  // namespace

std::vector<int> topological_order(const StepGraph& graph) {
  const int count = static_cast<int>(graph.nodes.size());
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  if (is_in_order(graph)) return order;

  // The successors of node i are successors[first[i]] to successors[first[i + 1] - 1]: some twenty passes ask
  // for an order, and a list for each node would cost them an allocation each.
  std::vector<int> first(count + 2, 0), waiting(count, 0);
  for (int i = 0; i < count; ++i)
    each_before(graph.nodes[i], [&](int before) { ++first[before + 2], ++waiting[i]; });
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<int> successors(first.back());
  for (int i = 0; i < count; ++i)
    each_before(graph.nodes[i], [&](int before) { successors[first[before + 1]++] = i; });

  using Entry = std::pair<std::int64_t, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (int i = 0; i < count; ++i)
    if (waiting[i] == 0) ready.push({graph.nodes[i].order, i});
  order.clear();
  while (!ready.empty()) {
    const int node = ready.top().second;
    ready.pop();
    order.push_back(node);
    for (int k = first[node]; k < first[node + 1]; ++k)
      if (--waiting[successors[k]] == 0) ready.push({graph.nodes[successors[k]].order, successors[k]});
  }
  if (static_cast<int>(order.size()) != count) throw InternalError("the step's graph has a cycle");
  return order;
}

std::set<int> nodes_waited_for(const StepGraph& graph) {
  std::set<int> found(graph.ends.begin(), graph.ends.end());
  for (const StepNode& node : graph.nodes) {
    found.insert(node.control_inputs.begin(), node.control_inputs.end());
    found.insert(node.after.begin(), node.after.end());
  }
  return found;
}

std::vector<bool> can_be_skipped(const StepGraph& graph) {
  std::vector<bool> skipped(graph.nodes.size(), false);
  const bool branches = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                    [](const StepNode& node) { return node.schema->is_branch_guard(); });
  if (!branches) return skipped;
  for (const int i : topological_order(graph)) {
    const StepNode& node = graph.nodes[i];
    const auto is_skipped = [&](StepValue in) { return bool(skipped[in.node]); };
    const bool by_inputs = node.schema->is_branch_join()
                               ? std::all_of(node.inputs.begin(), node.inputs.end(), is_skipped)
                               : std::any_of(node.inputs.begin(), node.inputs.end(), is_skipped);
    skipped[i] = node.schema->is_branch_guard() || by_inputs ||
                 std::any_of(node.control_inputs.begin(), node.control_inputs.end(),
                             [&](int before) { return bool(skipped[before]); });
  }
  return skipped;
}

}  // namespace kolo
