// What a model says of samples that it is not trained on.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/exchange_numbers.h>
#include <kolo/core/runtime/group.h>
#include <kolo/models/keras/progress_internal.h>
#include <kolo/models/keras/training_data_internal.h>

namespace kolo::keras {
namespace detail {
namespace {

// The sums of all ranks, added in their order: equal numbers everywhere.
Means of_all_ranks(const Means& own) {
  std::vector<double> numbers = {static_cast<double>(own.size)};
  numbers.insert(numbers.end(), own.sums.begin(), own.sums.end());
  Means all(own.sums.size());
  for (const std::vector<double>& of_rank : kolo::detail::allgather_numbers(world_group(), numbers)) {
    all.size += static_cast<std::int64_t>(of_rank.at(0));
    for (std::size_t i = 0; i < all.sums.size(); ++i) all.sums[i] += of_rank.at(i + 1);
  }
  return all;
}

}  // namespace

std::vector<double> evaluated(Trainer& trainer, const Feed& all, std::int64_t batch_size, int line, int rank,
                              int ranks) {
  Means means(trainer.metrics_names().size());
  const std::int64_t begin = all.samples * rank / ranks, end = all.samples * (rank + 1) / ranks;
  ProgressLine progress(end - begin, line);
  for (std::int64_t first = begin; first < end; first += batch_size) {
    const std::int64_t last = std::min(end, first + batch_size);
    means.add(trainer.test(part_of(all, first, last)), last - first);
    progress.update(last - begin, {});
  }
  if (line == 1) progress.finish(end - begin, {});
  return ranks == 1 ? means.means() : of_all_ranks(means).means();
}

std::vector<double> evaluated(Trainer& trainer, Source& source, std::optional<std::int64_t> steps, int line) {
  Means means(trainer.metrics_names().size());
  ProgressLine progress(steps.value_or(-1), line, "step");
  Samples batch;
  std::int64_t step = 0;
  for (; (!steps || step < *steps) && source.next(batch); ++step) {
    const Feed feed = trainer.checked(batch.x, batch.y, batch.weights);
    means.add(trainer.test(feed), feed.samples);
    progress.update(step + 1, {});
  }
  if (line == 1) progress.finish(step, {});
  return means.means();
}

}  // namespace detail

namespace {

// Rows of batches, put behind one another.
class Joined {
 public:
  void add(const std::vector<Tensor>& batch) {
    parts_.resize(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) parts_[i].push_back(batch[i]);
  }
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> all;
    for (const std::vector<Tensor>& parts : parts_) {
      std::int64_t rows = 0, first = 0;
      for (const Tensor& part : parts) rows += part.shape().dim(0);
      const Tensor whole(parts.front().dtype(), parts.front().shape().with_dim(0, rows));
      for (const Tensor& part : parts) {
        whole.rows(first, first + part.shape().dim(0)).copy_from(part);
        first += part.shape().dim(0);
      }
      all.push_back(whole);
    }
    return all;
  }

 private:
  std::vector<std::vector<Tensor>> parts_;  // by output
};

}  // namespace

std::vector<double> Model::evaluate(const Arrays& x, const Arrays& y, const EvaluateOptions& options) const {
  detail::check_batch_size(options.batch_size);
  model().build_from(x);
  detail::Trainer& trainer = model().trainer();
  const Group& group = world_group();
  return detail::evaluated(trainer, trainer.checked(x, y, options.sample_weight), options.batch_size,
                           detail::is_first_rank() ? options.verbose : 0, options.shard ? group.rank() : 0,
                           options.shard ? group.size() : 1);
}

std::vector<double> Model::evaluate(const Samples& samples, const EvaluateOptions& options) const {
  EvaluateOptions with_weights = options;
  if (with_weights.sample_weight.empty()) with_weights.sample_weight = samples.weights;
  return evaluate(samples.x, samples.y, with_weights);
}

std::vector<double> Model::evaluate(Source& source, const EvaluateOptions& options) const {
  if (options.shard || !options.sample_weight.empty())
    throw InvalidArgumentError("shard and sample_weight do not go with a source; its batches have weights");
  return detail::evaluated(model().trainer(), source, options.steps,
                           detail::is_first_rank() ? options.verbose : 0);
}

std::vector<Tensor> Model::predict(const Arrays& x, const PredictOptions& options) const {
  detail::check_batch_size(options.batch_size);
  model().build_from(x);
  detail::Predictor& predictor = model().predictor();
  const std::vector<Tensor> inputs = detail::standardized(x, predictor.inputs(), "input");
  const std::int64_t samples = detail::samples_of(inputs, "input arrays (x)");
  const int verbose = detail::is_first_rank() ? options.verbose : 0;
  detail::ProgressLine line(samples, verbose);
  Joined all;
  for (std::int64_t first = 0; first < samples; first += options.batch_size) {
    const std::int64_t end = std::min(samples, first + options.batch_size);
    std::vector<Tensor> some;
    for (const Tensor& input : inputs) some.push_back(input.rows(first, end));
    all.add(predictor.predict(some));
    line.update(end, {});
  }
  if (verbose == 1) line.finish(samples, {});
  return all.tensors();
}

std::vector<Tensor> Model::predict(Source& source, const PredictOptions& options) const {
  const int verbose = detail::is_first_rank() ? options.verbose : 0;
  detail::ProgressLine line(options.steps.value_or(-1), verbose, "step");
  Joined all;
  Samples batch;
  std::int64_t step = 0;
  for (; (!options.steps || step < *options.steps) && source.next(batch); ++step) {
    all.add(predict_on_batch(batch.x));
    line.update(step + 1, {});
  }
  if (verbose == 1) line.finish(step, {});
  return all.tensors();
}

Tensor Sequential::predict_classes(const Arrays& x, const PredictOptions& options) const {
  const Tensor p = predict(x, options).at(0);
  const std::int64_t rows = p.shape().dim(0), classes = rows == 0 ? 1 : p.elements() / rows;
  Tensor chosen(DType::i64, {rows});
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* const row = p.data<float>() + i * classes;
    chosen.data<std::int64_t>()[i] = classes == 1 ? row[0] > .5F : std::max_element(row, row + classes) - row;
  }
  return chosen;
}

}  // namespace kolo::keras
