#include <kolo/models/keras/workspace.h>

#include <cctype>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/variables.h>
#include <kolo/models/keras/names_internal.h>

namespace kolo::keras {

Workspace::Workspace(WorkspaceOptions options) : options_(std::move(options)) {
  if (options_.data_format != "channels_first" && options_.data_format != "channels_last")
    throw InvalidArgumentError(
        "Unknown data_format: {}; images are \"channels_first\" or \"channels_last\" in a workspace",
        options_.data_format);
  graph_.set_seed(static_cast<std::int64_t>(options_.seed));
}

Workspace::~Workspace() = default;

Session& Workspace::session() {
  if (!session_) session_ = std::make_unique<Session>(graph_, options_.config);
  return *session_;
}

void Workspace::set_precision(Precision precision) {
  Precision& own = options_.config.graph_options.precision;
  if (session_ && precision != own)
    throw FailedPreconditionError(
        "compile: precision {} was asked for, but this workspace's session computes in {} already; compile "
        "before the first weights are made or read, or set the workspace's config.graph_options.precision",
        precision_name(precision), precision_name(own));
  own = precision;
}

Workspace::DeviceScope::DeviceScope(Workspace& workspace, std::string device) : workspace_(&workspace) {
  static_cast<void>(Scope(workspace.graph_).device(std::string_view(device)));  // throws for a malformed one
  workspace.devices_.push_back(std::move(device));
}

Workspace::DeviceScope::~DeviceScope() { workspace_->devices_.pop_back(); }

Scope Workspace::scope() {
  Scope scope(graph_);
  for (const std::string& device : devices_) scope = scope.device(std::string_view(device));
  return name_scope_.empty() ? scope : scope.name_scope(name_scope_);
}

void Workspace::initialize_variables() {
  const std::vector<Variable> all = global_variables(graph_);
  if (initialized_ == all.size()) return;
  std::map<std::string, Variable> made;
  for (std::size_t i = initialized_; i < all.size(); ++i) made[all[i].name()] = all[i];
  std::vector<Variable> candidates;
  for (const auto& [name, variable] : made) candidates.push_back(variable);
  std::vector<Fetch> initializers;
  for (const std::string& name : report_uninitialized_variables(session(), candidates))
    initializers.push_back(made.at(name).initializer());
  if (!initializers.empty()) session().run(initializers);
  initialized_ = all.size();
}

std::string Workspace::unique_layer_name(const std::string& class_name) {
  const std::string base = detail::snake_case(class_name);
  return base + '_' + std::to_string(++layers_of_class_[base]);
}

}  // namespace kolo::keras
