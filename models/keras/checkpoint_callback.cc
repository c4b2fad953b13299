#include <kolo/models/keras/checkpoint_callback.h>

#include <fmt/ranges.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/log.h>
#include <kolo/core/runtime/compare_ranks.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/models/keras/fit_progress_internal.h>
#include <kolo/models/keras/model_internal.h>
#include <kolo/models/keras/trainer_internal.h>
#include <kolo/optimizer/broadcast_hook.h>

namespace kolo::keras {
namespace detail {

std::string FitProgress::text() const {
  Json states = Json::array();
  for (const AnyCallback& callback : callbacks) states.push_back(callback->state());
  const std::string sums = batch == 0 ? "" : loggers.front()->state();
  return json_text(Json{{"epoch", epoch}, {"batch", batch}, {"sums", sums}, {"callbacks", states}});
}

void FitProgress::take(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    const auto states = json.at("callbacks").get<std::vector<std::string>>();
    if (states.size() != callbacks.size())
      throw InvalidArgumentError("the checkpoint is of a training with {} callbacks; this one has {}",
                                 states.size(), callbacks.size());
    epoch = json.at("epoch");
    batch = json.at("batch");
    if (const std::string sums = json.at("sums"); !sums.empty())
      for (const auto& logger : loggers) logger->set_state(sums);
    for (std::size_t i = 0; i < states.size(); ++i)
      if (!states[i].empty()) callbacks[i]->set_state(states[i]);
  } catch (const nlohmann::json::exception& error) {
    throw InvalidArgumentError("this is no state of a training: {}", error.what());
  }
}

}  // namespace detail

namespace {

constexpr char kState[] = "keras_fit";

std::vector<Variable> variables_of(detail::ModelImpl& model) {
  std::vector<Variable> variables;
  for (const detail::Weight* weight : model.weights()) variables.push_back(weight->variable);
  for (const detail::OptimizerState& state : model.trainer().optimizer_state())
    variables.push_back(state.variable);
  return variables;
}

constexpr char kTensors[] = "keras_callbacks/";

std::string name_in_checkpoint(std::size_t callback) { return fmt::format("{}{}/", kTensors, callback); }

std::map<std::string, Tensor> tensors_of(const std::vector<AnyCallback>& callbacks) {
  std::map<std::string, Tensor> tensors;
  for (std::size_t i = 0; i < callbacks.size(); ++i)
    for (const auto& [name, tensor] : callbacks[i]->state_tensors())
      tensors[name_in_checkpoint(i) + name] = tensor;
  return tensors;
}

std::map<std::string, Tensor> read_tensors(const std::string& checkpoint, const CheckpointIndex& index) {
  CheckpointReader reader(checkpoint);
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, entry] : index.tensors)
    if (name.starts_with(kTensors)) {
      const Tensor tensor(entry.dtype, entry.shape);
      reader.read(name, tensor);
      tensors[name] = tensor;
    }
  return tensors;
}

// Rank 0's, to those ranks that have read none.
void broadcast_tensors(Group& group, std::map<std::string, Tensor>& tensors) {
  if (group.size() == 1) return;
  detail::Json list = detail::Json::array();
  for (const auto& [name, tensor] : tensors)
    list.push_back({name, static_cast<int>(tensor.dtype()), tensor.shape().dims()});
  list = detail::Json::parse(group.broadcast(json_text(list), 0));
  for (const detail::Json& entry : list) {
    Tensor& tensor = tensors[entry.at(0).get<std::string>()];
    if (!tensor)
      tensor = Tensor(static_cast<DType>(entry.at(1).get<int>()),
                      Shape(entry.at(2).get<std::vector<std::int64_t>>()));
    const auto* const own = reinterpret_cast<const char*>(tensor.raw());
    const std::string bytes = group.broadcast(group.rank() == 0 ? std::string(own, tensor.bytes()) : "", 0);
    std::memcpy(tensor.raw(), bytes.data(), tensor.bytes());
  }
}

void give_tensors(const std::vector<AnyCallback>& callbacks, const std::map<std::string, Tensor>& tensors) {
  for (std::size_t i = 0; i < callbacks.size(); ++i) {
    const std::string prefix = name_in_checkpoint(i);
    std::map<std::string, Tensor> own;
    for (const auto& [name, tensor] : tensors)
      if (name.starts_with(prefix)) own[name.substr(prefix.size())] = tensor;
    if (!own.empty()) callbacks[i]->set_state_tensors(own);
  }
}

// Of as many ranks each has its own back. With another number all have rank 0's; so had all in older
// checkpoints, which hold one text.
std::string text_of_rank(const detail::Json& saved, Group& group) {
  if (saved.is_string()) return saved.get<std::string>();
  const bool as_many = static_cast<int>(saved.size()) == group.size();
  if (!as_many && group.rank() == 0)
    log_info("the checkpoint is of {} ranks: all {} begin with what rank 0's callbacks had seen",
             saved.size(), group.size());
  return saved.at(as_many ? static_cast<std::size_t>(group.rank()) : 0).get<std::string>();
}

}  // namespace

CheckpointCallback::CheckpointCallback(std::string directory, CheckpointCallbackOptions options)
    : directory_(std::move(directory)), options_(options) {
  if (options_.save_steps.has_value() == options_.save_epochs.has_value() ||
      options_.save_steps.value_or(1) < 1 || options_.save_epochs.value_or(1) < 1)
    throw InvalidArgumentError(
        "CheckpointCallback: exactly one of save_steps and save_epochs must be given, above 0");
}

void CheckpointCallback::on_train_begin(Logs&) {
  detail::ModelImpl& impl = model().model();
  impl.workspace().initialize_variables();
  saver_ = std::make_shared<Saver>(variables_of(impl), SaverOptions{.max_to_keep = options_.max_to_keep});
  batches_ = 0;
  saved_.clear();
  kolo::detail::share_failure(world_group(), [&] {
    if (world_group().rank() != 0) return;
    make_checkpoint_folder(directory_);
    finish_cut_saves(directory_);
    saver_->recover_last_checkpoints(paths_oldest_first(directory_, list_checkpoints(directory_)));
  });
}

void CheckpointCallback::on_batch_end(std::int64_t, Logs&) {
  if (options_.save_steps && ++batches_ >= *options_.save_steps) save();
}

void CheckpointCallback::on_epoch_end(std::int64_t epoch, Logs&) {
  const bool whole = model().model().fit_progress()->batch == 0;
  if (whole && options_.save_epochs && (epoch + 1) % *options_.save_epochs == 0) save();
}

void CheckpointCallback::on_train_end(Logs&) {
  if (model().model().fit_progress()->batch == 0) save();  // else fit has, when it cut the epoch
}

void CheckpointCallback::save() {
  batches_ = 0;
  const std::string text = model().model().fit_progress()->text();
  const std::int64_t updates = static_cast<std::int64_t>(model().optimizer().iterations().get());
  // What each rank has seen: its own sums of the epoch, and what its callbacks decide by.
  const std::vector<std::string> texts = world_group().allgather(text);
  const std::string place = fmt::format("{} {}", updates, fmt::join(texts, " "));
  if (std::exchange(saved_, place) == place) return;
  Session& session = model().model().workspace().session();
  const GatheredState together(session);
  kolo::detail::share_failure(world_group(), [&] {
    if (world_group().rank() != 0) return;
    CheckpointStateOptions beside;
    beside.tensors = tensors_of(model().model().fit_progress()->callbacks);
    saver_->save(session, directory_ + '/' + kCheckpointBasename, updates,
                 {{kState, json_text(detail::Json(texts))}}, &together, beside);
  });
}

void CheckpointCallback::restore() {
  Group& group = world_group();
  Session& session = model().model().workspace().session();
  const bool reads = group.rank() == 0 || is_spread_over_ranks(session, group);
  detail::Json found = nullptr;
  std::map<std::string, Tensor> tensors;
  kolo::detail::share_failure(group, [&] {
    if (!reads) return;
    const auto newest = newest_intact_checkpoint(directory_);
    if (!newest) return;
    const CheckpointIndex index = saver_->restore(session, *newest);
    const auto state = index.state.find(kState);
    if (state == index.state.end())
      throw InvalidArgumentError("{} is not of a fit of a Keras model", *newest);
    found = {{"fit", detail::Json::parse(state->second)}, {"random_positions", session.random_positions()}};
    tensors = read_tensors(*newest, index);
  });
  found = detail::Json::parse(group.broadcast(json_text(found), 0));
  if (found.is_null()) return;
  if (!is_spread_over_ranks(session, group)) broadcast_variables(session, variables_of(model().model()), 0);
  session.set_random_positions(found["random_positions"].get<std::map<std::string, std::uint64_t>>());
  broadcast_tensors(group, tensors);
  give_tensors(model().model().fit_progress()->callbacks, tensors);
  model().model().fit_progress()->take(text_of_rank(found["fit"], group));
}

}  // namespace kolo::keras
