#include <kolo/models/keras/checkpoint_callback.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
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
  const std::string place = fmt::format("{} {}", updates, text);
  if (std::exchange(saved_, place) == place) return;
  Session& session = model().model().workspace().session();
  const GatheredState together(session);
  kolo::detail::share_failure(world_group(), [&] {
    if (world_group().rank() == 0)
      saver_->save(session, directory_ + '/' + kCheckpointBasename, updates,
                   {{kState, json_text(detail::Json(text))}}, &together);
  });
}

void CheckpointCallback::restore() {
  Group& group = world_group();
  Session& session = model().model().workspace().session();
  const bool reads = group.rank() == 0 || is_spread_over_ranks(session, group);
  detail::Json found = nullptr;
  kolo::detail::share_failure(group, [&] {
    if (!reads) return;
    const auto newest = newest_intact_checkpoint(directory_);
    if (!newest) return;
    const CheckpointIndex index = saver_->restore(session, *newest);
    const auto state = index.state.find(kState);
    if (state == index.state.end())
      throw InvalidArgumentError("{} is not of a fit of a Keras model", *newest);
    found = {{"fit", detail::Json::parse(state->second).get<std::string>()},
             {"random_positions", session.random_positions()}};
  });
  found = detail::Json::parse(group.broadcast(json_text(found), 0));
  if (found.is_null()) return;
  if (!is_spread_over_ranks(session, group)) broadcast_variables(session, variables_of(model().model()), 0);
  session.set_random_positions(found["random_positions"].get<std::map<std::string, std::uint64_t>>());
  model().model().fit_progress()->take(found["fit"].get<std::string>());
}

}  // namespace kolo::keras
