#include <kolo/core/ops/training.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>

namespace kolo {
namespace {

const std::vector<DType> kTrained = {DType::f32, DType::f64};
constexpr char kApply[] = "Apply";
constexpr char kSparseApply[] = "SparseApply";

// Slots have the variable's shape, behind them come scalars.
void check_state(const ShapeContext& c, int slots, int scalars) {
  const Shape& shape = c.input(0);
  for (int i = 1; i <= slots + scalars; ++i) {
    const Shape wanted = i <= slots ? shape : Shape();
    if (!c.input(i).is_compatible_with(wanted))
      throw InvalidArgumentError("the variable is {}, so input {} must be {}; it is {}", shape, i, wanted,
                                 c.input(i));
  }
}

ShapeFunction dense_shape(int slots, int scalars) {
  return [=](ShapeContext& c) {
    check_state(c, slots, scalars);
    const Shape &shape = c.input(0), &gradient = c.input(c.num_inputs() - 1);
    if (!gradient.is_compatible_with(shape))
      throw InvalidArgumentError("the variable is {}, but its gradient is {}; both must be alike", shape,
                                 gradient);
    c.set_output(0, shape);
  };
}

ShapeFunction sparse_shape(int slots, int scalars) {
  return [=](ShapeContext& c) {
    check_state(c, slots, scalars);
    const Shape& shape = c.input(0);
    const Shape &indices = c.input(c.num_inputs() - 2), &rows = c.input(c.num_inputs() - 1);
    if (shape.rank() == 0 || !indices.is_compatible_with({-1}) ||
        !rows.is_compatible_with(shape.with_dim(0, -1)) ||
        (rows.has_rank() && indices.has_rank() && !indices.is_compatible_with({rows.dim(0)})))
      throw InvalidArgumentError(
          "the variable is {}, but its gradient is rows {} with indices {}; they must be one vector of "
          "indices and "
          "as many of the variable's rows",
          shape, rows, indices);
    c.set_output(0, shape);
  };
}

OpSchema apply_schema(const UpdateRuleOps& rule, bool sparse) {
  OpSchema schema((sparse ? kSparseApply : kApply) + rule.name);
  schema.input("var", kTrained).updates();
  for (const std::string& slot : rule.slots) schema.input("slot_" + slot, "var").updates();
  for (const std::string& scalar : rule.scalars) schema.input(scalar, "var");
  if (sparse) schema.input("indices", {DType::i32, DType::i64});
  schema.input("gradient", "var").output("new_value").no_gradient();
  const auto slots = static_cast<int>(rule.slots.size()), scalars = static_cast<int>(rule.scalars.size());
  schema.shape(sparse ? sparse_shape(slots, scalars) : dense_shape(slots, scalars));
  return schema;
}

const std::vector<RegisterOp> apply_ops = [] {
  std::vector<RegisterOp> ops;
  for (const UpdateRuleOps& rule : update_rules()) {
    ops.emplace_back(apply_schema(rule, false));
    if (rule.has_sparse) ops.emplace_back(apply_schema(rule, true));
  }
  return ops;
}();

const UpdateRuleOps& rule_named(const std::string& name) {
  for (const UpdateRuleOps& rule : update_rules())
    if (rule.name == name) return rule;
  throw NotFoundError("there is no update rule \"{}\"", name);
}

}  // namespace

const std::vector<UpdateRuleOps>& update_rules() {
  static const std::vector<UpdateRuleOps> rules = {
      {"Adadelta", {"accum", "accum_update"}, {"learning_rate", "rho", "epsilon"}, true},
      {"Adagrad", {"accumulator"}, {"learning_rate"}, true},
      {"Adam",
       {"m", "v"},
       {"beta1_power", "beta2_power", "learning_rate", "beta1", "beta2", "epsilon"},
       false},
      {"AdamW",
       {"m", "v"},
       {"beta1_power", "beta2_power", "learning_rate", "beta1", "beta2", "epsilon", "weight_decay"},
       false},
      {"CenteredRMSProp", {"rms", "mg", "momentum"}, {"learning_rate", "decay", "momentum", "epsilon"}, true},
      {"Ftrl", {"accum", "linear"}, {"learning_rate", "l1", "l2", "shrinkage", "learning_rate_power"}, true},
      {"GradientDescent", {}, {"learning_rate"}, true},
      {"Lion", {"m"}, {"learning_rate", "beta1", "beta2", "weight_decay"}, false},
      {"Momentum", {"momentum"}, {"learning_rate", "momentum"}, true},
      {"Nesterov", {"momentum"}, {"learning_rate", "momentum"}, true},
      {"RMSProp", {"rms", "momentum"}, {"learning_rate", "decay", "momentum", "epsilon"}, true},
  };
  return rules;
}

const UpdateRuleOps* find_update_rule(const std::string& op) {
  // Passes ask this of every node.
  if (!op.starts_with(kApply)) return nullptr;
  for (const UpdateRuleOps& rule : update_rules())
    if (op.compare(std::char_traits<char>::length(kApply), std::string::npos, rule.name) == 0) return &rule;
  return nullptr;
}

int variables_updated(const UpdateRuleOps& rule, int inputs) {
  const auto slots = static_cast<int>(rule.slots.size()), scalars = static_cast<int>(rule.scalars.size());
  return (inputs - scalars) / (2 + slots);
}

std::shared_ptr<OpSchema> schema_of_updates(const std::string& op, const UpdateRuleOps& rule, int variables) {
  auto schema = std::make_shared<OpSchema>(op);
  for (int i = 0; i < variables; ++i)
    for (std::size_t k = 0; k <= rule.slots.size(); ++k)
      schema->input(fmt::format("var_{}_{}", i, k)).updates();
  for (const std::string& scalar : rule.scalars) schema->input(scalar);
  for (int i = 0; i < variables; ++i) schema->input(fmt::format("gradient_{}", i));
  return schema;
}

Output apply_update(const Scope& s, const VariableUpdate& update, Output gradient) {
  const UpdateRuleOps& rule = rule_named(update.rule);
  Outputs inputs = {update.variable.ref()};
  for (const Variable& slot : update.slots) inputs.push_back(slot.ref());
  inputs.insert(inputs.end(), update.scalars.begin(), update.scalars.end());
  const auto slices = rule.has_sparse ? indexed_slices(gradient) : std::nullopt;
  if (slices) inputs.push_back(slices->indices);
  inputs.push_back(slices ? slices->values : gradient);
  return s.colocate_with(update.variable.ref()).add((slices ? kSparseApply : kApply) + rule.name, inputs);
}

}  // namespace kolo
