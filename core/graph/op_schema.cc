#include <kolo/core/graph/op_schema.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/base/registry.h>
#include <kolo/core/base/text.h>

namespace kolo {
namespace {

Registry<OpSchema>& registry() {
  static Registry<OpSchema> schemas("op");
  return schemas;
}

}  // namespace

OpSchema& OpSchema::input(std::string name, std::vector<DType> allowed) {
  inputs_.push_back({.name = std::move(name), .allowed = std::move(allowed), .like = ""});
  return *this;
}

OpSchema& OpSchema::input(std::string name, const char* like) {
  inputs_.push_back({.name = std::move(name), .allowed = {}, .like = like});
  return *this;
}

OpSchema& OpSchema::variadic(std::string name, std::vector<DType> allowed, bool mixed) {
  inputs_.push_back(
      {.name = std::move(name), .allowed = std::move(allowed), .like = "", .variadic = true, .mixed = mixed});
  return *this;
}

OpSchema& OpSchema::updates() {
  inputs_.back().updated = true;
  return stateful();
}

OpSchema& OpSchema::initializes() {
  inputs_.back().initialized_by_op = true;
  return *this;
}

OpSchema& OpSchema::handle_of(std::vector<std::string> ops) {
  inputs_.back().handle_of = std::move(ops);
  return *this;
}

OpSchema& OpSchema::required_attr(std::string name, AttrValue example) {
  attrs_.emplace(std::move(name), AttrSpec{std::move(example), true});
  return *this;
}

OpSchema& OpSchema::attr(std::string name, AttrValue fallback) {
  attrs_.emplace(std::move(name), AttrSpec{std::move(fallback), false});
  return *this;
}

OpSchema& OpSchema::output(std::string name) {
  outputs_.push_back({std::move(name), std::nullopt, ""});
  return *this;
}

OpSchema& OpSchema::output(std::string name, DType dtype) {
  outputs_.push_back({std::move(name), dtype, ""});
  return *this;
}

OpSchema& OpSchema::output(std::string name, const char* like) {
  outputs_.push_back({std::move(name), std::nullopt, like});
  return *this;
}

OpSchema& OpSchema::output_per_input() {
  output_per_input_ = true;
  return *this;
}

OpSchema& OpSchema::shape(ShapeFunction function) {
  shape_ = std::move(function);
  return *this;
}

OpSchema& OpSchema::no_gradient() {
  no_gradient_ = true;
  return *this;
}

OpSchema& OpSchema::stateful() {
  stateful_ = true;
  return *this;
}

OpSchema& OpSchema::view() {
  view_ = true;
  return *this;
}

OpSchema& OpSchema::in_place(int i) {
  in_place_.push_back(i);
  return *this;
}

OpSchema& OpSchema::variable_storage() {
  variable_storage_ = true;
  return stateful();
}

OpSchema& OpSchema::contained() {
  contained_ = true;
  attr("container", "").attr("shared_name", "").output("handle", DType::string);
  return shape([](ShapeContext& c) { c.set_output(0, Shape()); })
      .stateful()
      .unfeedable()
      .cpu_only()
      .no_gradient();
}

OpSchema& OpSchema::expanded_by_pass() {
  expanded_by_pass_ = true;
  return *this;
}

OpSchema& OpSchema::names_tensors(std::string attr) {
  attrs_naming_tensors_.push_back(std::move(attr));
  return *this;
}

OpSchema& OpSchema::made_by_pass() {
  made_by_pass_ = true;
  return *this;
}

OpSchema& OpSchema::joins_tasks() {
  joins_tasks_ = true;
  return made_by_pass();
}

OpSchema& OpSchema::owns_outputs() {
  owns_outputs_ = true;
  return *this;
}

OpSchema& OpSchema::reduces_over_ranks() {
  reduces_over_ranks_ = true;
  return *this;
}

OpSchema& OpSchema::unfeedable() {
  feedable_ = false;
  return *this;
}

OpSchema& OpSchema::guards_branch() {
  branch_guard_ = true;
  return stateful();
}

OpSchema& OpSchema::joins_branches() {
  branch_join_ = true;
  return *this;
}

OpSchema& OpSchema::cpu_only() {
  cpu_only_ = true;
  return *this;
}

OpSchema& OpSchema::gpu_types(std::vector<DType> types) {
  gpu_types_ = std::move(types);
  return *this;
}

OpSchema& OpSchema::host_output(int i, std::vector<DType> types) {
  host_outputs_[i] = std::move(types);
  return *this;
}

OpSchema& OpSchema::host_input(int i) {
  host_inputs_.push_back(i);
  return *this;
}

OpSchema& OpSchema::metadata() {
  metadata_ = true;
  return *this;
}

bool OpSchema::is_host_output(int i, DType dtype) const {
  if (dtype == DType::string) return true;
  const auto found = host_outputs_.find(i);
  if (found == host_outputs_.end()) return false;
  const auto& types = found->second;
  return types.empty() || std::find(types.begin(), types.end(), dtype) != types.end();
}

bool OpSchema::is_host_input(int i) const {
  return std::find(host_inputs_.begin(), host_inputs_.end(), i) != host_inputs_.end();
}

const OpSchema::InputSpec& OpSchema::input_spec(int i) const {
  if (i < static_cast<int>(inputs_.size())) return inputs_[i];
  if (inputs_.empty() || !inputs_.back().variadic) throw InternalError("op {} has no input {}", name_, i);
  return inputs_.back();
}

namespace {

// Far beyond any memory, and far enough below 2^63 that sizes in bytes, sums of dimensions and strides of
// kernels do not overflow. Dimensions that are unknown or 0 do not count: strides are products of the others.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;
// As in TensorFlow, and as a graph definition can hold.
constexpr std::size_t kMaxRank = 254;

void check_output(std::size_t i, const Shape& shape) {
  if (shape.dims().size() > kMaxRank)
    throw InvalidArgumentError("output {} would have {} dimensions; at most {} are possible", i,
                               shape.dims().size(), kMaxRank);
  std::int64_t elements = 1;
  for (const std::int64_t dim : shape.dims()) {
    if (dim <= 0) continue;
    if (dim > kMaxElements / elements)
      throw InvalidArgumentError("output {} would be {}; a tensor has at most 2^48 elements", i, shape);
    elements *= dim;
  }
}

void default_shapes(const OpSchema& schema, ShapeContext& context) {
  for (std::size_t i = 0; i < context.outputs().size(); ++i) {
    if (schema.has_output_per_input())
      context.set_output(static_cast<int>(i),
                         context.input(static_cast<int>(schema.inputs().size() - 1 + i)));
    else if (context.num_inputs() > 0) context.set_output(static_cast<int>(i), context.input(0));
  }
}

}  // namespace

void infer_shapes(const OpSchema& schema, ShapeContext& context) {
  if (schema.shape_function()) schema.shape_function()(context);
  else default_shapes(schema, context);
  for (std::size_t i = 0; i < context.outputs().size(); ++i) check_output(i, context.outputs()[i]);
}

RegisterOp::RegisterOp(OpSchema schema, SourceLine place) {
  const std::string name = schema.name();
  registry().add(name, std::move(schema), place);
}

const OpSchema& find_op(const std::string& name) {
  if (const OpSchema* const found = registry().find(name)) return *found;
  throw NotFoundError("there is no op \"{}\"{}", name, did_you_mean(name, registered_ops()));
}

std::vector<std::string> registered_ops() { return registry().names(); }

}  // namespace kolo
