#include <kolo/models/programs/training_place.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/models/programs/shared_errors.h>

namespace kolo::models {
namespace {

// Nothing without a checkpoint. What is damaged the session will speak of.
std::optional<CheckpointIndex> newest_index(const std::string& folder) {
  for (const std::string& name : list_checkpoints(folder)) {
    try {
      return CheckpointReader(fmt::format("{}/{}", folder, name)).index();
    } catch (const DataLossError&) {
    } catch (const NotFoundError&) {
    }
  }
  return std::nullopt;
}

std::string text_of_newest(const std::string& folder) {
  const auto index = newest_index(folder);
  if (!index) return "";
  nlohmann::json json = {{"step", index->global_step.value_or(0)}};
  if (const auto data = index->state.find("data"); data != index->state.end()) json["data"] = data->second;
  return json_text(json);
}

}  // namespace

TrainingPlace place_in(const std::string& folder, std::int64_t samples) {
  const std::string own = on_all_ranks(
      [&] { return world_group().rank() == 0 && !folder.empty() ? text_of_newest(folder) : std::string(); });
  const std::string text = world_group().broadcast(own, 0);
  if (text.empty()) return {};
  const auto json = nlohmann::json::parse(text);
  TrainingPlace place{.step = json.at("step").get<std::int64_t>(), .position = std::nullopt};
  shared_errors([&] {
    // The source of the batches warns where it goes there.
    if (json.contains("data"))
      place.position = in_epoch_of(samples, position_from_json(json["data"].get<std::string>()), false);
  });
  return place;
}

std::int64_t EpochCount::batches_done(const TrainingPlace& at) const {
  if (!at.position) return at.step * passes_;
  const std::int64_t whole = shares_.steps_per_epoch();
  return at.position->epoch * whole + whole - std::min(whole, shares_.steps_left(at.position->sample));
}

std::int64_t EpochCount::last_step(const TrainingPlace& from, std::int64_t epochs) const {
  const std::int64_t left = (epochs * shares_.steps_per_epoch() - batches_done(from)) / passes_;
  return from.step + std::max<std::int64_t>(from.step == 0 ? 1 : 0, left);
}

double EpochCount::done(const TrainingPlace& at) const {
  if (!at.position)
    return static_cast<double>(batches_done(at)) / static_cast<double>(shares_.steps_per_epoch());
  return static_cast<double>(at.position->epoch) +
         static_cast<double>(at.position->sample) / static_cast<double>(shares_.samples);
}

double EpochCount::done(const TrainingPlace& at, const TrainingPlace& start) const {
  return done(at) + (start.position ? 0 : done(start));
}

std::string EpochCount::text(const TrainingPlace& at, std::int64_t epochs) const {
  const std::int64_t left = shares_.samples - (at.position ? at.position->sample : 0);
  std::string text = fmt::format("has seen {} of --epochs {}", std::round(done(at) * 100) / 100, epochs);
  if (at.position && at.position->epoch < epochs)
    text += fmt::format(
        ", and the last {} too few for a step of {}: a smaller --batch-size or --epoch-end fill "
        "takes {}",
        left == 1 ? "sample is" : fmt::format("{} samples are", left), shares_.step_size * passes_,
        left == 1 ? "it" : "them");
  return text;
}

bool EpochCount::is_at(const TrainingPlace& place, const BatchPosition& position) const {
  if (!place.position) return true;
  const bool is_over = shares_.is_over(place.position->sample);
  return position.epoch == place.position->epoch + (is_over ? 1 : 0) &&
         position.sample == (is_over ? 0 : place.position->sample);
}

}  // namespace kolo::models
