#include <kolo/models/programs/picture_check.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/base/process.h>
#include <kolo/core/runtime/exchange_numbers.h>
#include <kolo/core/runtime/group.h>
#include <kolo/models/programs/shared_errors.h>
#include <kolo/models/programs/skip_hint.h>
#include <kolo/models/read_ahead.h>
#include <kolo/models/samples.h>

namespace kolo::models {
namespace {

constexpr std::size_t kMostTold = 5;  // damaged files of a rank

// Some of the samples of a set.
class ChosenSamples final : public SampleSet {
 public:
  ChosenSamples(std::shared_ptr<const SampleSet> all, std::vector<std::int64_t> chosen)
      : SampleSet(all->kind()), all_(std::move(all)), chosen_(std::move(chosen)) {}

  std::int64_t size() const override { return std::ssize(chosen_); }
  void read(std::int64_t index, CounterRandom* random, const Batch& batch,
            std::int64_t place) const override {
    all_->read(chosen_[static_cast<std::size_t>(index)], random, batch, place);
  }

 private:
  std::shared_ptr<const SampleSet> all_;
  std::vector<std::int64_t> chosen_;
};

// left_out: sorted.
std::shared_ptr<const SampleSet> samples_without(std::shared_ptr<const SampleSet> samples,
                                                 const std::vector<std::int64_t>& left_out) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < samples->size(); ++i)
    if (!std::binary_search(left_out.begin(), left_out.end(), i)) chosen.push_back(i);
  if (chosen.empty())
    throw InvalidArgumentError("{}: all {} samples are left out; one at least must be there",
                               samples->kind().name, samples->size());
  return std::make_shared<ChosenSamples>(std::move(samples), std::move(chosen));
}

// Calls `work` with each sample of this rank's share, on several threads.
template <typename Work>
void for_own_share(const SampleSet& samples, const BatchOptions& batches, const Work& work) {
  const std::int64_t own = (samples.size() - batches.rank + batches.ranks - 1) / batches.ranks;
  ReadThreads(batches.threads).run(own, [&](std::int64_t i) { work(batches.rank + i * batches.ranks); });
}

// Why each damaged sample cannot be read.
DamagedSamples damaged_samples(const SampleSet& samples, const BatchOptions& batches) {
  const SampleKind& kind = samples.kind();
  Mutex mutex;
  DamagedSamples damaged;
  for_own_share(samples, batches, [&](std::int64_t index) {
    const Batch one{.samples = Tensor(kind.dtype, batch_shape(kind, 1)),
                    .labels = Tensor(label_dtype(kind), labels_shape(kind, 1))};
    try {
      samples.read(index, nullptr, one, 0);
    } catch (const Error& error) {
      MutexLock lock(mutex);
      damaged.emplace(index, error.what());
    }
  });
  return damaged;
}

void leave_out_damaged(std::shared_ptr<const SampleSet>& samples, const BatchOptions& batches) {
  const auto damaged = on_all_ranks([&] { return damaged_samples(*samples, batches); });
  const auto all = tell_damaged(
      damaged, fmt::format("{} of {}", count_of(samples->size(), "picture"), samples->kind().name));
  if (!all.empty()) shared_errors([&] { samples = samples_without(samples, all); });
}

}  // namespace

void check_pictures(const TrainOptions& options, TrainingData& data) {
  const BatchOptions batches = batch_options(options);
  for (auto* const samples : {&data.train, &data.test}) {
    const auto* const files = dynamic_cast<const FileSamples*>(samples->get());
    if (files == nullptr) continue;
    if (options.skip_damaged) leave_out_damaged(*samples, batches);
    else
      on_all_ranks([&] {
        with_skip_hint(files->kind(), [&] {
          for_own_share(*files, batches, [&](std::int64_t index) { files->check(index); });
        });
        return true;
      });
  }
}

std::vector<std::int64_t> tell_damaged(const DamagedSamples& damaged, const std::string& of_what) {
  std::vector<double> own;
  std::string own_text;
  for (const auto& [index, why] : damaged) {
    own.push_back(static_cast<double>(index));
    if (own.size() <= kMostTold) own_text += fmt::format("; {}", why);
  }
  std::vector<std::int64_t> all;
  for (const std::vector<double>& theirs : kolo::detail::allgather_numbers(world_group(), own))
    for (const double index : theirs) all.push_back(std::llround(index));
  std::string text;
  for (const std::string& theirs : world_group().allgather(own_text)) text += theirs;
  std::sort(all.begin(), all.end());
  if (!all.empty() && process().rank == 0)
    log_warning("left out: {} damaged of {}{}", all.size(), of_what, text);
  return all;
}

}  // namespace kolo::models
