#include <kolo/models/step_shares.h>

#include <algorithm>

namespace kolo::models {

StepShares::Part StepShares::part(std::int64_t begin, int pass) const {
  const std::int64_t size = std::min(step_size, samples - begin);
  const SampleRange of_pass = part_of_samples(size, pass, passes);
  const SampleRange own = part_of_samples(of_pass.size(), rank, ranks);
  const std::int64_t first = begin + of_pass.begin;
  const std::int64_t parts = std::int64_t{passes} * ranks, usual = (step_size + parts - 1) / parts;
  const SampleRange stand_in{begin, begin + std::min(size, usual)};
  const double share = static_cast<double>(own.size() * parts) / static_cast<double>(size);
  const SampleRange taken{first + own.begin, first + own.end};
  return {.samples = taken,
          .computed = taken.size() > 0 ? taken : stand_in,
          .pass_end = begin + of_pass.end,
          .weight = static_cast<float>(share)};
}

std::int64_t StepShares::steps_left(std::int64_t taken) const {
  const std::int64_t left = std::max<std::int64_t>(0, samples - taken);
  return (epoch_end == EpochEnd::fill ? left + step_size - 1 : left) / step_size;
}

bool StepShares::is_over(std::int64_t taken) const {
  return epoch_end == EpochEnd::fill ? taken >= samples : samples - taken < step_size;
}

std::int64_t StepShares::own_samples() const {
  std::int64_t own = 0;
  const auto add = [&](std::int64_t begin, std::int64_t steps) {
    for (int pass = 0; pass < passes; ++pass) own += steps * part(begin, pass).samples.size();
  };
  if (samples >= step_size) add(0, samples / step_size);
  if (epoch_end == EpochEnd::fill && samples % step_size != 0) add(samples - samples % step_size, 1);
  return own;
}

bool StepShares::are_equal() const {
  const std::int64_t parts = std::int64_t{passes} * ranks;
  return step_size % parts == 0 && (epoch_end == EpochEnd::drop || samples % step_size % parts == 0);
}

}  // namespace kolo::models
