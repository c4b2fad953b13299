#include <kolo/models/programs/number_errors.h>

#include <cmath>

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
  const double count = samples_ * static_cast<double>(outputs_.size());
  double absolute = 0, squares = 0, r2 = 0;
  bool differ = true;
  for (const Output& output : outputs_) {
    absolute += output.absolute;
    squares += output.squares;
    differ &= output.spread > 0;
    r2 += (1 - output.squares / output.spread) / static_cast<double>(outputs_.size());
  }
  NumberErrors errors{.mae = absolute / count, .rmse = std::sqrt(squares / count), .r2 = {}};
  if (differ) errors.r2 = r2;
  return errors;
}

}  // namespace kolo::models
