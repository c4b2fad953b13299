#include <kolo/models/keras/optimizers.h>

#include <cmath>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/text.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/models/keras/names_internal.h>
#include <kolo/models/keras/optimizers_internal.h>

namespace kolo::keras {
namespace detail {
namespace {

// kolo's optimizer for those who want to own one.
class Borrowed final : public kolo::Optimizer {
 public:
  explicit Borrowed(std::shared_ptr<kolo::Optimizer> inner)
      : kolo::Optimizer(inner->name()), inner_(std::move(inner)) {}
  std::vector<GradientPair> compute_gradients(Scope& s, Output loss, std::span<const Variable> variables,
                                              const ComputeGradientsOptions& options) override {
    return inner_->compute_gradients(s, loss, variables, options);
  }
  Operation apply_gradients(Scope& s, std::span<const GradientPair> gradients,
                            const ApplyOptions& options) override {
    return inner_->apply_gradients(s, gradients, options);
  }
  Variable find_slot(const Variable& variable, const std::string& slot) const override {
    return inner_->find_slot(variable, slot);
  }
  bool is_element_wise() const override { return inner_->is_element_wise(); }

 private:
  std::shared_ptr<kolo::Optimizer> inner_;
};

template <typename Kind>
Optimizer usual() {
  return Kind();
}

const std::map<std::string, Optimizer (*)()>& known_optimizers() {
  static const std::map<std::string, Optimizer (*)()> known = {
      {"sgd", usual<SGD>},           {"rmsprop", usual<RMSprop>}, {"adagrad", usual<Adagrad>},
      {"adadelta", usual<Adadelta>}, {"adam", usual<Adam>},       {"adamax", usual<Adamax>},
      {"nadam", usual<Nadam>}};
  return known;
}

}  // namespace

OptimizerImpl::OptimizerImpl(std::string name, std::map<std::string, double> numbers,
                             std::map<std::string, bool> flags, Clipping clipping)
    : name_(std::move(name)), numbers_(std::move(numbers)), flags_(std::move(flags)), clipping_(clipping) {
  for (const auto& [key, value] : numbers_)
    if (!std::isfinite(value) || value < 0)
      throw InvalidArgumentError("{}: {} is {}; it must not be negative", name_, key, value);
  for (const double limit : {clipping_.norm, clipping_.value, clipping_.global_norm})
    if (!(limit >= 0)) throw InvalidArgumentError("{}: a limit of {} cannot clip", name_, limit);
  if (clipping_.global_norm > 0 && (clipping_.norm > 0 || clipping_.value > 0))
    throw InvalidArgumentError("{}: global_clipnorm goes with neither clipnorm nor clipvalue", name_);
}

void OptimizerImpl::bind(Workspace& workspace) {
  if (workspace_ == &workspace) return;
  if (workspace_ != nullptr && workspace_ != &workspace)
    throw InvalidArgumentError("the optimizer {} belongs to another workspace", name_);
  workspace_ = &workspace;
  const Scope s = workspace.scope().name_scope(own_ ? "optimizer" : snake_case(name_));
  const auto make = [&](const char* key, Output first) {
    variables_[key] = Variable(s.named(key), first, {.trainable = false});
  };
  for (const char* key : {"lr", "momentum", "decay"})
    if (has(key)) make(key, fill(s, DType::f32, {}, numbers_.at(key)));
  make("iterations", zeros(s, DType::i64, {}));
}

bool OptimizerImpl::has(const std::string& number) const {
  if (number == "iterations") return true;
  const auto found = numbers_.find(number);
  return found != numbers_.end() && (number != "momentum" || found->second != 0);
}

std::unique_ptr<kolo::Optimizer> OptimizerImpl::make() const {
  if (own_) return std::make_unique<Borrowed>(own_);
  const Scope s = workspace_->scope().name_scope(snake_case(name_));
  RuleNumbers numbers{.numbers = numbers_, .flags = flags_, .clipping = clipping_};
  numbers.iterations = variables_.at("iterations");
  numbers.rate = variables_.at("lr").read();
  if (const auto decay = numbers_.find("decay"); decay != numbers_.end() && decay->second > 0) {
    const Output updates = cast(s, numbers.iterations, DType::f32);
    const Output slower = add(s, fill(s, DType::f32, {}, 1), mul(s, variables_.at("decay"), updates));
    numbers.rate = div(s.named("rate"), numbers.rate, slower);
  }
  if (const auto momentum = variables_.find("momentum"); momentum != variables_.end())
    numbers.momentum = momentum->second;
  return make_rule(name_, numbers);
}

nlohmann::ordered_json OptimizerImpl::config() const {
  nlohmann::ordered_json config = nlohmann::ordered_json::object();
  for (const auto& [key, value] : numbers_) config[key] = value;
  for (const auto& [key, value] : flags_) config[key] = value;
  for (const auto& [key, value] :
       {std::pair("clipnorm", clipping_.norm), std::pair("clipvalue", clipping_.value),
        std::pair("global_clipnorm", clipping_.global_norm)})
    if (value > 0) config[key] = value;
  for (const char* key : {"lr", "momentum", "decay"})
    if (const auto found = variables_.find(key); found != variables_.end()) {
      workspace_->initialize_variables();
      config[key] =
          static_cast<double>(workspace_->session().get_variables({found->second.name()})[0].value<float>());
    }
  return config;
}

Optimizer optimizer_from_config(const nlohmann::ordered_json& object) {
  const std::string name = object.at("class_name");
  const Optimizer standard(snake_case(name) == "rm_sprop" ? "rmsprop" : name);
  nlohmann::ordered_json config = standard.impl().config();
  std::map<std::string, double> numbers;
  std::map<std::string, bool> flags;
  Clipping clipping;
  for (const auto& [key, value] : config.items()) {
    const auto given = object.at("config").find(key);
    const auto& chosen = given == object.at("config").end() || given->is_null() ? value : *given;
    if (chosen.is_boolean()) flags[key] = chosen;
    else numbers[key] = chosen;
  }
  const auto limit = [&](const char* key) { return object.at("config").value(key, 0.0); };
  clipping = {
      .norm = limit("clipnorm"), .value = limit("clipvalue"), .global_norm = limit("global_clipnorm")};
  return Optimizer(std::make_shared<OptimizerImpl>(standard.name(), numbers, flags, clipping));
}

}  // namespace detail

double OptimizerNumber::get() const {
  workspace_->initialize_variables();
  const Tensor value = workspace_->session().get_variables({variable_.name()}).front();
  return value.dtype() == DType::i64 ? static_cast<double>(value.value<std::int64_t>())
                                     : value.value<float>();
}

void OptimizerNumber::set(double value) const {
  workspace_->initialize_variables();
  const Tensor tensor = variable_.dtype() == DType::i64 ? Tensor::scalar(static_cast<std::int64_t>(value))
                                                        : Tensor::scalar(static_cast<float>(value));
  workspace_->session().set_variables({{variable_.name(), tensor}});
}

Optimizer::Optimizer(const std::string& name) {
  const auto& known = detail::known_optimizers();
  const auto found = known.find(lower_case(name));
  if (found == known.end())
    throw InvalidArgumentError("{}", detail::unknown_text("optimizer", name, detail::keys_of(known)));
  impl_ = found->second().impl_;
}

Optimizer::Optimizer(std::shared_ptr<kolo::Optimizer> optimizer) {
  if (optimizer == nullptr) throw InvalidArgumentError("Unknown optimizer: a null pointer");
  impl_ = std::make_shared<detail::OptimizerImpl>(std::move(optimizer));
}

const std::string& Optimizer::name() const { return impl_->name(); }
bool Optimizer::has(const std::string& number_name) const { return impl_->has(number_name); }
std::string Optimizer::get_config() const { return json_text(impl_->config()); }

OptimizerNumber Optimizer::number(const std::string& name) const {
  if (!impl_->has(name))
    throw InvalidArgumentError("Optimizer must have a \"{}\" attribute; {} has none", name, this->name());
  if (impl_->workspace() == nullptr)
    throw FailedPreconditionError("the optimizer {} has no {} before a model is compiled with it",
                                  this->name(), name);
  return {impl_->workspace(), impl_->variables().at(name)};
}

Optimizer distributed(Optimizer optimizer, DistributedOptimizerOptions options) {
  if (optimizer.distributed_)
    throw InvalidArgumentError("the optimizer {} is distributed already", optimizer.name());
  optimizer.distributed_ = std::move(options);
  return optimizer;
}

namespace {

// With what all have, and with these numbers and flags of its own.
template <typename Options>
Optimizer made(const char* name, const Options& o, std::map<std::string, double> numbers,
               std::map<std::string, bool> flags = {}) {
  numbers["lr"] = o.lr;
  if constexpr (requires { o.decay; }) numbers["decay"] = o.decay;
  return Optimizer(std::make_shared<detail::OptimizerImpl>(
      name, std::move(numbers), std::move(flags),
      detail::Clipping{.norm = o.clipnorm, .value = o.clipvalue, .global_norm = o.global_clipnorm}));
}

template <typename Options>
Optimizer with_two_means(const char* name, const Options& o, std::map<std::string, double> numbers = {},
                         std::map<std::string, bool> flags = {}) {
  numbers.insert({{"beta_1", o.beta_1}, {"beta_2", o.beta_2}, {"epsilon", o.epsilon}});
  return made(name, o, std::move(numbers), std::move(flags));
}

}  // namespace

SGD::SGD(const SGDOptions& o)
    : Optimizer(made("SGD", o, {{"momentum", o.momentum}}, {{"nesterov", o.nesterov}})) {}
RMSprop::RMSprop(const RMSpropOptions& o)
    : Optimizer(made("RMSprop", o, {{"rho", o.rho}, {"epsilon", o.epsilon}})) {}
Adagrad::Adagrad(const AdagradOptions& o) : Optimizer(made("Adagrad", o, {{"epsilon", o.epsilon}})) {}
Adadelta::Adadelta(const AdadeltaOptions& o)
    : Optimizer(made("Adadelta", o, {{"rho", o.rho}, {"epsilon", o.epsilon}})) {}
Adam::Adam(const AdamOptions& o) : Optimizer(with_two_means("Adam", o, {}, {{"amsgrad", o.amsgrad}})) {}
Adamax::Adamax(const AdamaxOptions& o) : Optimizer(with_two_means("Adamax", o)) {}
Nadam::Nadam(const NadamOptions& o)
    : Optimizer(with_two_means("Nadam", o, {{"schedule_decay", o.schedule_decay}})) {}

}  // namespace kolo::keras
