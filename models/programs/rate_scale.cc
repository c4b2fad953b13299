#include <kolo/models/programs/rate_scale.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>

namespace kolo::models {

RateScale::RateScale(const Options& options) : options_(options) {
  place_.first_batch = place_.batch = options.batch_of_folder.value_or(options.global_batch);
  place_.rate = options.rate;
}

double RateScale::ratio(std::int64_t batch, std::int64_t to) const {
  const double grown = static_cast<double>(to) / static_cast<double>(batch);
  switch (options_.rule) {
    case RateRule::none: return 1;
    case RateRule::linear: return grown;
    case RateRule::root: return std::sqrt(grown);
  }
  return 1;
}

double RateScale::factor_of(const Place& place, std::int64_t step) const {
  const double to = ratio(place.first_batch, place.batch);
  const std::int64_t done = std::clamp<std::int64_t>(step - place.begin + 1, 0, options_.steps);
  if (done == options_.steps) return to;
  return place.from + (to - place.from) * static_cast<double>(done) / static_cast<double>(options_.steps);
}

float RateScale::factor(std::int64_t step) const { return static_cast<float>(factor_of(place_, step)); }

void RateScale::start(std::int64_t step) {
  if (place_.rate != options_.rate)
    place_ = {.first_batch = options_.global_batch, .batch = options_.global_batch, .rate = options_.rate};
  const std::int64_t before = place_.batch;
  if (before == options_.global_batch) return;
  // The last step of before had the factor of `step − 1`.
  place_.from = step == 0 ? 1 : factor_of(place_, step - 1);
  place_.begin = step;
  place_.batch = options_.global_batch;
  if (process().rank == 0)
    log_info("global batch {} → {}: rate × {:.3g} over {}", before, place_.batch, ratio(before, place_.batch),
             count_of(options_.steps, "step"));
}

std::string RateScale::text() const {
  return json_text(nlohmann::json{{"batch", place_.batch},
                                  {"begin", place_.begin},
                                  {"first_batch", place_.first_batch},
                                  {"from", place_.from},
                                  {"rate", place_.rate}});
}

void RateScale::take(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    place_ = {.first_batch = json.at("first_batch"),
              .batch = json.at("batch"),
              .from = json.at("from"),
              .begin = json.at("begin"),
              .rate = json.at("rate")};
  } catch (const nlohmann::json::exception& error) {
    throw DataLossError("\"{}\" is not the state of a learning rate: {}", text, error.what());
  }
  if (place_.first_batch < 1 || place_.batch < 1)
    throw DataLossError("\"{}\" is not the state of a learning rate: a batch has at least 1 sample", text);
}

SavedState RateScale::state() {
  return {.name = "rate_scale",
          .save = [this] { return text(); },
          .restore = [this](const std::string& text) { take(text); }};
}

}  // namespace kolo::models
