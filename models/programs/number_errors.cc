#include <kolo/models/programs/number_errors.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <kolo/models/programs/shares.h>

namespace kolo::models {

// Welford, Technometrics 4 (1962): no large sums of squares are subtracted.
void ErrorSums::add(const float* found, const float* right) {
  samples_ += 1;
  for (Output& output : outputs_) {
    const double error = double{*found++} - *right, difference = *right - output.mean;
    output.absolute += std::abs(error);
    output.squares += error * error;
    output.mean += difference / samples_;
    output.spread += difference * (*right++ - output.mean);
  }
}

std::vector<double> ErrorSums::numbers() const {
  std::vector<double> all = {samples_};
  for (const Output& output : outputs_)
    all.insert(all.end(), {output.absolute, output.squares, output.mean, output.spread});
  return all;
}

// Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances"
// (1979), 2.1.
void ErrorSums::add_numbers(const std::vector<double>& theirs) {
  const double count = theirs.at(0), all = samples_ + count;
  if (count == 0) return;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    Output& output = outputs_[i];
    const double difference = theirs.at(4 * i + 3) - output.mean;
    output.absolute += theirs.at(4 * i + 1);
    output.squares += theirs.at(4 * i + 2);
    output.spread += theirs.at(4 * i + 4) + difference * difference * samples_ * count / all;
    output.mean += difference * count / all;
  }
  samples_ = all;
}

NumberErrors ErrorSums::errors() const {
  const auto outputs = static_cast<double>(outputs_.size());
  NumberErrors all{.r2 = 0};
  double squares = 0;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    OutputErrors one{.name = names_[i],
                     .mae = output.absolute / samples_,
                     .rmse = std::sqrt(output.squares / samples_),
                     .r2 = {}};
    if (output.spread > 0) one.r2 = 1 - output.squares / output.spread;
    all.mae += one.mae / outputs;
    squares += output.squares / samples_ / outputs;
    if (!one.r2) all.r2.reset();
    if (all.r2) *all.r2 += *one.r2 / outputs;
    all.each.push_back(std::move(one));
  }
  all.rmse = std::sqrt(squares);
  return all;
}

std::string to_text(const std::vector<OutputErrors>& errors) {
  std::size_t width = 6;
  for (const OutputErrors& one : errors) width = std::max(width, one.name.size());
  std::string text = fmt::format("{:<{}}  {:>12}  {:>12}  {:>7}\n", "target", width, "MAE", "RMSE", "R²");
  for (const OutputErrors& one : errors)
    text += fmt::format("{:<{}}  {:>12.6g}  {:>12.6g}  {:>7}\n", one.name, width, one.mae, one.rmse,
                        share_text(one.r2));
  return text;
}

nlohmann::ordered_json to_json(const std::vector<OutputErrors>& errors) {
  nlohmann::ordered_json json;
  for (const OutputErrors& one : errors)
    json["targets"].push_back(
        {{"target", one.name}, {"mae", one.mae}, {"rmse", one.rmse}, {"r2", share_json(one.r2)}});
  return json;
}

}  // namespace kolo::models
