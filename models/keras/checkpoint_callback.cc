#include <kolo/models/keras/checkpoint_callback.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/log.h>
#include <kolo/core/runtime/compare_ranks.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/weight_sums.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/models/keras/fit_progress_internal.h>
#include <kolo/models/keras/model_internal.h>
#include <kolo/models/keras/trainer_internal.h>
#include <kolo/optimizer/hooks.h>

namespace kolo::keras {
namespace detail {

std::string FitProgress::text() const {
  Json states = Json::array();
  for (const AnyCallback& callback : callbacks) states.push_back(callback->state());
  const std::string sums = batch == 0 ? "" : loggers.front()->state();
  Json json = {{"epoch", epoch}, {"batch", batch}, {"sums", sums}, {"callbacks", states}};
  if (place) json["taken"] = place->taken;
  if (place && place->order_batch > 0) json["order_batch"] = place->order_batch;
  if (place && place->samples > 0) json["samples"] = place->samples;
  if (place && !place->of_source.empty()) json["source"] = place->of_source;
  return json_text(json);
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
    place.reset();  // earlier versions have counted batches alone
    if (json.contains("taken"))
      place = DataPlace{.taken = json.at("taken").get<std::int64_t>(),
                        .order_batch = json.value("order_batch", std::int64_t{0}),
                        .of_source = json.value("source", ""),
                        .samples = json.value("samples", std::int64_t{0})};
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
constexpr char kHolders[] = "keras_fit_tensors";  // by rank: whose tensors its callbacks hold

std::vector<Variable> variables_of(detail::ModelImpl& model) {
  std::vector<Variable> variables;
  for (const detail::Weight* weight : model.weights()) variables.push_back(weight->variable);
  for (const detail::OptimizerState& state : model.trainer().optimizer_state())
    variables.push_back(state.variable);
  return variables;
}

// Names of the tensors that the callbacks of `rank` hold start so in a checkpoint.
std::string tensors_prefix(int rank) {
  return rank == 0 ? "keras_callbacks/" : fmt::format("keras_callbacks/rank_{}/", rank);
}

using Tensors = std::map<std::string, Tensor>;  // by "<place of the callback>/<its name>"

Tensors tensors_of(const std::vector<AnyCallback>& callbacks) {
  Tensors tensors;
  for (std::size_t i = 0; i < callbacks.size(); ++i)
    for (const auto& [name, tensor] : callbacks[i]->state_tensors())
      tensors[fmt::format("{}/{}", i, name)] = tensor;
  return tensors;
}

// For each rank the lowest one whose callbacks hold the same tensors: ranks mostly agree on the best epoch,
// and a checkpoint then holds one copy.
std::vector<int> holders_of_tensors(Group& group, const Tensors& own) {
  detail::Json list = detail::Json::array();
  for (const auto& [name, tensor] : own)
    list.push_back({name, static_cast<int>(tensor.dtype()), tensor.shape().dims(),
                    kolo::detail::sum_of_bits(tensor.raw(), tensor.bytes(), 1)});
  const std::vector<std::string> all = group.allgather(json_text(list));
  std::vector<int> holders;
  for (const std::string& text : all)
    holders.push_back(static_cast<int>(std::find(all.begin(), all.end(), text) - all.begin()));
  return holders;
}

// The root's, on every rank.
Tensors broadcast_tensors(Group& group, const Tensors& own, int root) {
  if (group.size() == 1) return own;
  detail::Json list = detail::Json::array();
  for (const auto& [name, tensor] : own)
    list.push_back({name, static_cast<int>(tensor.dtype()), tensor.shape().dims()});
  list = detail::Json::parse(group.broadcast(json_text(list), root));
  Tensors tensors = group.rank() == root ? own : Tensors();
  std::vector<Tensor> in_order;
  for (const detail::Json& entry : list) {
    Tensor& tensor = tensors[entry.at(0).get<std::string>()];
    if (group.rank() != root)
      tensor = Tensor(static_cast<DType>(entry.at(1).get<int>()),
                      Shape(entry.at(2).get<std::vector<std::int64_t>>()));
    in_order.push_back(tensor);
  }
  group.broadcast(in_order, root);
  return tensors;
}

// On rank 0: what each holder has, by the names in a checkpoint.
Tensors gather_tensors(Group& group, const Tensors& own, const std::vector<int>& holders) {
  Tensors all;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (holders[static_cast<std::size_t>(rank)] != rank) continue;
    const Tensors held = rank == 0 ? own : broadcast_tensors(group, own, rank);
    if (group.rank() != 0) continue;
    for (const auto& [name, tensor] : held) all[tensors_prefix(rank) + name] = tensor;
  }
  return all;
}

Tensors read_tensors(const std::string& checkpoint, int rank) {
  CheckpointReader reader(checkpoint);
  const std::string prefix = tensors_prefix(rank);
  Tensors tensors;
  for (const auto& [name, entry] : reader.index().tensors) {
    if (!name.starts_with(prefix) || name.substr(prefix.size()).starts_with("rank_")) continue;
    const Tensor tensor(entry.dtype, entry.shape);
    reader.read(name, tensor);
    tensors[name.substr(prefix.size())] = tensor;
  }
  return tensors;
}

// What this rank's callbacks held; rank 0 reads it. checkpoint: there alone.
Tensors restored_tensors(Group& group, const std::string& checkpoint, std::vector<int> holders) {
  if (static_cast<int>(holders.size()) != group.size())
    holders.assign(static_cast<std::size_t>(group.size()), 0);
  Tensors own;
  for (const int holder : std::set<int>(holders.begin(), holders.end())) {
    Tensors read;
    kolo::detail::share_failure(group, [&] {
      if (group.rank() == 0) read = read_tensors(checkpoint, holder);
    });
    read = broadcast_tensors(group, read, 0);
    if (holders[static_cast<std::size_t>(group.rank())] == holder) own = std::move(read);
  }
  return own;
}

void give_tensors(const std::vector<AnyCallback>& callbacks, const Tensors& tensors) {
  for (std::size_t i = 0; i < callbacks.size(); ++i) {
    const std::string prefix = fmt::format("{}/", i);
    Tensors own;
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
  const Tensors own = tensors_of(model().model().fit_progress()->callbacks);
  const std::vector<int> holders = holders_of_tensors(world_group(), own);
  CheckpointStateOptions beside;
  beside.tensors = gather_tensors(world_group(), own, holders);
  kolo::detail::share_failure(world_group(), [&] {
    if (world_group().rank() != 0) return;
    saver_->save(session, directory_ + '/' + kCheckpointBasename, updates,
                 {{kState, json_text(detail::Json(texts))}, {kHolders, json_text(detail::Json(holders))}},
                 &together, beside);
  });
}

void CheckpointCallback::restore() {
  Group& group = world_group();
  Session& session = model().model().workspace().session();
  const bool reads = group.rank() == 0 || is_spread_over_ranks(session, group);
  detail::Json found = nullptr;
  std::string checkpoint;
  kolo::detail::share_failure(group, [&] {
    if (!reads) return;
    const auto newest = newest_intact_checkpoint(directory_);
    if (!newest) return;
    const CheckpointIndex index = saver_->restore(session, *newest);
    const auto state = index.state.find(kState);
    if (state == index.state.end())
      throw InvalidArgumentError("{} is not of a fit of a Keras model", *newest);
    const auto holders = index.state.find(kHolders);
    found = {{"fit", detail::Json::parse(state->second)},
             {"random_positions", session.random_positions()},
             {"holders", detail::Json::parse(holders == index.state.end() ? "[]" : holders->second)}};
    checkpoint = *newest;
  });
  found = detail::Json::parse(group.broadcast(json_text(found), 0));
  if (found.is_null()) return;
  if (!is_spread_over_ranks(session, group)) broadcast_variables(session, variables_of(model().model()), 0);
  session.set_random_positions(found["random_positions"].get<std::map<std::string, std::uint64_t>>());
  give_tensors(model().model().fit_progress()->callbacks,
               restored_tensors(group, checkpoint, found["holders"].get<std::vector<int>>()));
  model().model().fit_progress()->take(text_of_rank(found["fit"], group));
}

}  // namespace kolo::keras
