#include <kolo/core/graph/graph.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/core/device/device_name.h>

namespace kolo {
namespace {

void check_node_name(const std::string& name) {
  if (!is_valid_node_name(name)) throw InvalidArgumentError("'{}' is not a valid node name", name);
}

// Fills in defaults; refuses unknown, missing and wrongly typed attributes.
void complete_attrs(const OpSchema& schema, AttrMap& attrs, const std::string& node_name) {
  std::vector<std::string> known;
  for (const auto& [name, spec] : schema.attrs()) known.push_back(name);
  for (const auto& [name, value] : attrs) {
    const auto found = schema.attrs().find(name);
    if (found == schema.attrs().end())
      throw InvalidArgumentError("{} node \"{}\": there is no attribute \"{}\"{}", schema.name(), node_name,
                                 name, did_you_mean(name, known));
    if (std::string_view(found->second.value.kind()) != value.kind())
      throw InvalidArgumentError("{} node \"{}\": attribute \"{}\" is a {}, not a {}", schema.name(),
                                 node_name, name, found->second.value.kind(), value.kind());
  }
  for (const auto& [name, spec] : schema.attrs()) {
    if (attrs.count(name) > 0) continue;
    if (spec.required)
      throw InvalidArgumentError("{} node \"{}\": attribute \"{}\" is missing", schema.name(), node_name,
                                 name);
    attrs.emplace(name, spec.value);
  }
}

void check_container(const OpSchema& schema, const AttrMap& attrs) {
  if (!schema.is_contained() && !schema.is_variable_storage()) return;
  const auto found = attrs.find("container");
  if (found == attrs.end()) return;  // a part of a variable is where that is
  const auto container = found->second.get<std::string>();
  if (!container.empty() && !is_valid_node_name(container))
    throw InvalidArgumentError("container contains invalid characters: {}", container);
}

std::string list(const std::vector<DType>& dtypes) {
  std::string text;
  for (const DType dtype : dtypes) text += (text.empty() ? "" : ", ") + std::string(name(dtype));
  return text;
}

}  // namespace

DType Output::dtype() const { return node->output_dtype(index); }
const Shape& Output::shape() const { return node->output_shape(index); }
std::string Output::name() const { return fmt::format("{}:{}", node->name(), index); }

Output Operation::output(int index) const { return node->output(index); }
const std::string& Operation::name() const { return node->name(); }

Output Node::output(int i) const {
  if (i < 0 || i >= num_outputs())
    throw InvalidArgumentError("{} has {} outputs; there is no output {}", describe(*this), num_outputs(), i);
  return {this, i};
}

const AttrValue& Node::attr(const std::string& name) const {
  const auto found = attrs_.find(name);
  if (found == attrs_.end()) throw InternalError("{} has no attribute \"{}\"", describe(*this), name);
  return found->second;
}

bool is_valid_node_name(std::string_view name) {
  const auto alnum_or = [](unsigned char c, std::string_view more) {
    return std::isalnum(c) != 0 || more.find(static_cast<char>(c)) != std::string_view::npos;
  };
  return !name.empty() && alnum_or(name[0], ".") &&
         std::all_of(name.begin(), name.end(), [&](char c) { return alnum_or(c, "_.-/"); });
}

std::string describe(const Node& node) { return fmt::format("{} node \"{}\"", node.op(), node.name()); }

const Node& Graph::add_node(const std::string& op, const Outputs& inputs, AttrMap attrs,
                            const NodePlace& place) {
  if (finalized_) throw FailedPreconditionError("Graph is finalized and cannot be modified.");
  const OpSchema& schema = find_op(op);
  if (schema.is_made_by_pass() && !(admits_transfers_ && schema.is_joining_tasks()))
    throw InvalidArgumentError("{} node \"{}\": only kolo's passes make nodes of this op", op, place.name);
  const std::string wished = place.name.empty() ? op : place.name;
  check_node_name(wished);

  std::unique_ptr<Node> node(new Node);
  node->name_ = wished;
  node->schema_ = &schema;
  node->graph_ = this;
  node->inputs_ = inputs;
  node->attrs_ = std::move(attrs);
  node->colocation_groups_ = place.colocation_groups;
  complete_attrs(schema, node->attrs_, wished);
  check_container(schema, node->attrs_);
  check_inputs(*node);
  infer_outputs(*node);
  for (const Node* before : place.control_inputs) {
    if (&before->graph() != this)
      throw InvalidArgumentError("{}: control input \"{}\" is of another graph", describe(*node),
                                 before->name());
    // An input that is an input already orders the two.
    const bool redundant =
        std::any_of(inputs.begin(), inputs.end(), [&](const Output& in) { return in.node == before; });
    if (!redundant) node->control_inputs_.push_back(before);
    // Of nested guards the inner one, which waits for the outer ones, was made last.
    const bool guards = before->schema().is_branch_guard();
    if (guards && (node->branch_ == nullptr || node->branch_->id() < before->id())) node->branch_ = before;
  }
  if (schema.is_variable_storage() && node->branch_ != nullptr)
    throw FailedPreconditionError(
        "{}: a variable cannot be made in a branch of cond, as its initializer would run only where the "
        "branch is taken; make it outside and use it in the branch",
        describe(*node));
  node->name_ = unique_name(wished);  // before device functions see the node: they may choose by its name
  try {
    node->device_ = apply_device_stack(*node, place);
  } catch (...) {
    release_name(wished, node->name_);
    throw;
  }
  MutexLock lock(mutex_);
  node->id_ = static_cast<int>(nodes_.size());
  by_name_[node->name_] = node.get();
  nodes_.push_back(std::move(node));
  return *nodes_.back();
}

void Graph::check_inputs(const Node& node) const {
  const OpSchema& schema = node.schema();
  const bool variadic = !schema.inputs().empty() && schema.inputs().back().variadic;
  const auto fixed = schema.inputs().size() - (variadic ? 1 : 0);
  if (node.inputs().size() < fixed || (!variadic && node.inputs().size() > fixed))
    throw InvalidArgumentError("{}: {} inputs were given; the op takes {}{}", describe(node),
                               node.num_inputs(), variadic ? "at least " : "", fixed);
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Output in = node.input(i);
    const auto& spec = schema.input_spec(i);
    if (!in) throw InvalidArgumentError("{}: input \"{}\" is empty", describe(node), spec.name);
    if (&in.node->graph() != this)
      throw InvalidArgumentError("{}: Tensor {} is not an element of this graph.", describe(node), in.name());
    const auto& allowed = spec.allowed;
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), in.dtype()) == allowed.end())
      throw InvalidArgumentError("{}: input \"{}\" ({}) is {}; allowed: {}", describe(node), spec.name,
                                 in.name(), in.dtype(), list(allowed));
    if (spec.updated && !in.node->schema().is_variable_storage())
      throw InvalidArgumentError("{}: input \"{}\" must be a variable; {} is the output of {}",
                                 describe(node), spec.name, in.name(), in.node->op());
    if (!spec.handle_of.empty() &&
        std::find(spec.handle_of.begin(), spec.handle_of.end(), in.node->op()) == spec.handle_of.end())
      throw InvalidArgumentError("{}: input \"{}\" must be the handle of a {}; {} is the output of {}",
                                 describe(node), spec.name, spec.handle_of.front(), in.name(), in.node->op());
    // The input whose type this one must share: a named one, or the first of the variadic ones.
    int like = -1;
    for (std::size_t j = 0; j < schema.inputs().size(); ++j)
      if (!spec.like.empty() && schema.inputs()[j].name == spec.like) like = static_cast<int>(j);
    if (spec.variadic && !spec.mixed) like = static_cast<int>(fixed);
    if (like >= 0 && node.input(like).dtype() != in.dtype())
      throw InvalidArgumentError(
          "{}: input \"{}\" ({}) is {}, but input \"{}\" ({}) is {}; both must have one type", describe(node),
          spec.name, in.name(), in.dtype(), schema.input_spec(like).name, node.input(like).name(),
          node.input(like).dtype());
  }
}

void Graph::infer_outputs(Node& node) const {
  const OpSchema& schema = node.schema();
  // An input; a DType attribute; a list of types' names; or a whole number, which says how many outputs of
  // the first input's type there are.
  const auto add_like = [&](const std::string& like) {
    for (std::size_t i = 0; i < schema.inputs().size(); ++i)
      if (schema.inputs()[i].name == like)
        return node.output_dtypes_.push_back(node.input(static_cast<int>(i)).dtype());
    const AttrValue& attr = node.attr(like);
    if (std::holds_alternative<DType>(attr.value())) return node.output_dtypes_.push_back(attr.get<DType>());
    if (const auto* types = std::get_if<std::vector<std::string>>(&attr.value())) {
      for (const std::string& type : *types) node.output_dtypes_.push_back(dtype_from_name(type));
      return;
    }
    constexpr std::int64_t kMostOutputs = 1 << 16;
    if (attr.get<std::int64_t>() > kMostOutputs)
      throw InvalidArgumentError("{}: {} outputs were asked for; at most {} are possible", describe(node),
                                 attr.get<std::int64_t>(), kMostOutputs);
    for (auto count = attr.get<std::int64_t>(); count > 0; --count)
      node.output_dtypes_.push_back(node.input(0).dtype());
  };
  for (const auto& spec : schema.outputs()) {
    if (spec.dtype) node.output_dtypes_.push_back(*spec.dtype);
    else if (!spec.like.empty()) add_like(spec.like);
    else if (node.num_inputs() > 0) node.output_dtypes_.push_back(node.input(0).dtype());
    else
      throw InternalError("op {}: the type of output \"{}\" follows from nothing", schema.name(), spec.name);
  }
  if (schema.has_output_per_input())
    for (std::size_t i = schema.inputs().size() - 1; i < node.inputs().size(); ++i)
      node.output_dtypes_.push_back(node.inputs()[i].dtype());

  std::vector<Shape> shapes;
  std::vector<DType> dtypes;
  for (const Output& in : node.inputs_) shapes.push_back(in.shape()), dtypes.push_back(in.dtype());
  ShapeContext context(std::move(shapes), std::move(dtypes), node.attrs_, node.num_outputs());
  try {
    infer_shapes(schema, context);
  } catch (const Error& error) {
    throw_error(error.code(), fmt::format("{}: {}", describe(node), error.what()));
  }
  node.output_shapes_ = context.outputs();
}

std::string Graph::apply_device_stack(Node& node, const NodePlace& place) const {
  node.device_ = place.device;
  for (const auto& entry : place.device_stack) {
    // A malformed device is kept as it is: the placer refuses it by name when the node is first run.
    if (const auto* function = std::get_if<DeviceFunction>(&entry)) {
      node.device_ = (*function)(node);
      if (const auto chosen = parse_device_spec(node.device_)) node.device_ = chosen->to_string();
      continue;
    }
    const auto outer = parse_device_spec(std::get<std::string>(entry));
    const auto inner = parse_device_spec(node.device_);
    if (outer && inner) node.device_ = merge_scopes(*outer, *inner).to_string();
    else if (node.device_.empty()) node.device_ = std::get<std::string>(entry);
  }
  return node.device_;
}

int Graph::num_nodes() const {
  MutexLock lock(mutex_);
  return static_cast<int>(nodes_.size());
}

const Node& Graph::node(int id) const {
  MutexLock lock(mutex_);
  return *nodes_.at(id);
}

const Node* Graph::find_node(const std::string& name) const {
  MutexLock lock(mutex_);
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Output Graph::find_output(const std::string& name) const {
  const auto colon = name.rfind(':');
  const std::string op = name.substr(0, colon);
  const auto index = colon == std::string::npos ? 0 : parse_int64(name.substr(colon + 1));
  if (!index)
    throw InvalidArgumentError("'{}' is not the name of a tensor; the form is '<operation>:<output index>'",
                               name);
  const Node* node = find_node(op);
  if (node == nullptr)
    throw NotFoundError(
        "The name '{}' refers to a Tensor which does not exist. The operation, '{}', does not exist in the "
        "graph.",
        name, op);
  if (*index < 0 || *index >= node->num_outputs())
    throw NotFoundError(
        "The name '{}' refers to a Tensor which does not exist. The operation, '{}', exists but only has {} "
        "outputs.",
        name, op, node->num_outputs());
  return node->output(static_cast<int>(*index));
}

std::string Graph::unique_name(const std::string& wished) {
  check_node_name(wished);
  std::string name = wished;
  // The suffix is kept: a graph with thousands of nodes of one op would search quadratically.
  int& suffix = taken_names_.emplace(lower_case(wished), 0).first->second;
  while (suffix > 0 && taken_names_.count(lower_case(name)) > 0)
    name = fmt::format("{}_{}", wished, suffix++);
  if (suffix == 0) suffix = 1;
  taken_names_.emplace(lower_case(name), 1);
  return name;
}

// What unique_name() has just made of `wished`, for a node that did not come to be.
void Graph::release_name(const std::string& wished, const std::string& name) {
  taken_names_.erase(lower_case(name));
  if (name != wished) --taken_names_.at(lower_case(wished));
}

bool Graph::is_taken(const std::string& name) const { return taken_names_.count(lower_case(name)) > 0; }

void Graph::add_to_collection(const std::string& collection, const Node& node) {
  collections_[collection].push_back(&node);
}

const std::vector<const Node*>& Graph::collection(const std::string& name) const {
  static const std::vector<const Node*> none;
  const auto found = collections_.find(name);
  return found == collections_.end() ? none : found->second;
}

}  // namespace kolo
