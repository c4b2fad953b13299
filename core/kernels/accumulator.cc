#include <kolo/core/kernels/accumulator.h>

#include <fmt/format.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/device/device_name.h>

namespace kolo::detail {
namespace {

void check_shape(const Shape& expected, const Shape& found) {
  if (!found.is_compatible_with(expected))
    throw InvalidArgumentError("Shape mismatch: expected {}, got {}", expected, found);
}

// As people write a task; clusters have one replica.
std::string without_replica(std::string task) {
  static constexpr std::string_view kReplica = "/replica:0";
  if (const std::size_t at = task.find(kReplica); at != std::string::npos) task.erase(at, kReplica.size());
  return task;
}

template <typename T>
class DenseSum final : public GradientSum {
 public:
  explicit DenseSum(const Shape& shape) : sum_(dtype_of<T>(), shape) {}

  void check(const Gradient& gradient) const override { check_shape(sum_.shape(), gradient.values.shape()); }

  void add(const Gradient& gradient) override {
    if (std::exchange(is_empty_, false)) return sum_.copy_from(gradient.values);
    const auto values = gradient.values.span<T>(), sum = sum_.span<T>();
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }

  Gradient mean(std::int64_t count) override {
    for (T& element : sum_.span<T>()) element /= static_cast<T>(count);
    return {.values = sum_};
  }

  void clear() override { is_empty_ = true; }

 private:
  const Tensor sum_;
  bool is_empty_ = true;
};

template <typename T>
class SparseSum final : public GradientSum {
 public:
  explicit SparseSum(const Shape& shape)
      : rows_of_whole_(shape.dim(0)),
        shape_(shape.with_dim(0, -1)),
        row_elements_(shape.with_dim(0, 1).elements()) {}

  void check(const Gradient& gradient) const override {
    const Tensor& indices = gradient.indices;
    if (indices.shape().rank() != 1)
      throw InvalidArgumentError("the indices of a gradient have the shape {}; they must be a vector",
                                 indices.shape());
    check_shape(shape_.with_dim(0, indices.elements()), gradient.values.shape());
    for (std::int64_t i = 0; i < indices.elements(); ++i) {
      const std::int64_t row = indices.data<std::int64_t>()[i];
      if (row < 0 || row >= rows_of_whole_)
        throw InvalidArgumentError("Index {} at offset {} in indices is out of range", row, i);
    }
  }

  void add(const Gradient& gradient) override {
    const auto* const indices = gradient.indices.data<std::int64_t>();
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(gradient.indices.elements()));
    for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<std::int64_t>(i);
    std::stable_sort(offsets.begin(), offsets.end(),
                     [&](std::int64_t a, std::int64_t b) { return indices[a] < indices[b]; });
    // A row that is listed several times is their sum, and counts once.
    std::vector<T> listed;
    for (std::size_t i = 0; i < offsets.size();) {
      const std::int64_t index = indices[offsets[i]];
      listed.assign(static_cast<std::size_t>(row_elements_), T(0));
      for (; i < offsets.size() && indices[offsets[i]] == index; ++i)
        add_row(gradient.values.data<T>() + offsets[i] * row_elements_, listed);
      Row& row = rows_[index];
      row.sum.resize(listed.size());
      add_row(listed.data(), row.sum);
      ++row.count;
    }
  }

  Gradient mean(std::int64_t) override {
    const auto rows = static_cast<std::int64_t>(rows_.size());
    Gradient mean{.values = Tensor(dtype_of<T>(), shape_.with_dim(0, rows)),
                  .indices = Tensor(DType::i64, {rows})};
    auto* value = mean.values.data<T>();
    auto* index = mean.indices.data<std::int64_t>();
    for (const auto& [number, row] : rows_) {
      *index++ = number;
      for (const T element : row.sum) *value++ = element / static_cast<T>(row.count);
    }
    return mean;
  }

  void clear() override { rows_.clear(); }

 private:
  struct Row {
    std::vector<T> sum;
    std::int64_t count = 0;  // gradients that have it
  };

  static void add_row(const T* source, std::vector<T>& target) {
    for (T& element : target) element += *source++;
  }

  const std::int64_t rows_of_whole_;
  const Shape shape_;  // of some rows
  const std::int64_t row_elements_;
  std::map<std::int64_t, Row> rows_;
};

template <template <typename> typename Sum>
std::unique_ptr<GradientSum> make_sum(DType dtype, const Shape& shape) {
  if (dtype == DType::f64) return std::make_unique<Sum<double>>(shape);
  return std::make_unique<Sum<float>>(shape);
}

}  // namespace

std::unique_ptr<GradientSum> make_dense_sum(DType dtype, const Shape& shape) {
  return make_sum<DenseSum>(dtype, shape);
}
std::unique_ptr<GradientSum> make_sparse_sum(DType dtype, const Shape& shape) {
  return make_sum<SparseSum>(dtype, shape);
}

GradientSender GradientSender::of(const std::string& task) {
  const auto spec = parse_device_spec(task);
  if (!spec || !spec->job) return {};
  return {*spec->job, spec->task.value_or(0)};
}

AccumulatorState::AccumulatorState(std::string name, const Node& node, std::unique_ptr<GradientSum> sum)
    : name_(std::move(name)),
      dtype_(node.attr<DType>("dtype")),
      shape_(node.attr<Shape>("shape")),
      ordered_(node.attr<bool>("ordered")),
      sum_(std::move(sum)) {}

void AccumulatorState::check_shared_by(const Node& node) const {
  const auto dtype = node.attr<DType>("dtype");
  const auto shape = node.attr<Shape>("shape");
  const auto ordered = node.attr<bool>("ordered");
  if (dtype != dtype_ || shape != shape_)
    throw InvalidArgumentError("Shared accumulator '{}' has {} {} but requested was {} {}", name_,
                               tf_name(dtype_), shape_, tf_name(dtype), shape);
  if (ordered != ordered_)
    throw InvalidArgumentError("Shared accumulator '{}' has ordered = {} but requested was {}", name_,
                               ordered_, ordered);
}

void AccumulatorState::tell(const Finished& finished) {
  for (const auto& [taker, error] : finished) taker->finished(error);
}

void AccumulatorState::apply(const Gradient& gradient, std::int64_t local_step, const GradientSender& sender,
                             std::optional<std::int64_t> generation) {
  sum_->check(gradient);
  Finished finished;
  {
    MutexLock lock(mutex_);
    if (generation.value_or(generation_) != generation_) std::rethrow_exception(was_reset());
    if (local_step < step_) {
      ++dropped_[sender];
      return;
    }
    if (ordered_) kept_.emplace(sender, Gradient{gradient.values.clone(), gradient.indices.clone()});
    else sum_->add(gradient);
    ++count_;
    senders_.insert(sender);
    serve(finished);
  }
  tell(finished);
}

void AccumulatorState::take(GradientTaker& taker, std::int64_t required) {
  Finished finished;
  {
    MutexLock lock(mutex_);
    takes_.push_back({&taker, required});
    serve(finished);
  }
  tell(finished);
}

void AccumulatorState::cancel(GradientTaker& taker) {
  Finished finished;
  {
    MutexLock lock(mutex_);
    const auto found =
        std::find_if(takes_.begin(), takes_.end(), [&](const Take& take) { return take.taker == &taker; });
    if (found == takes_.end()) return;
    takes_.erase(found);
    finished.emplace_back(&taker,
                          std::make_exception_ptr(CancelledError("TakeGrad operation was cancelled")));
    serve(finished);  // who stood behind it may need less
  }
  tell(finished);
}

void AccumulatorState::set_step(std::int64_t step) {
  MutexLock lock(mutex_);
  if (step < step_)
    log_warning("the global step of accumulator '{}' is set back from {} to {}", name_, step_, step);
  step_ = step;
}

std::exception_ptr AccumulatorState::was_reset() const {
  return std::make_exception_ptr(AbortedError("Accumulator '{}' was reset", name_));
}

void AccumulatorState::reset(std::optional<std::int64_t> generation) {
  empty([this] { return was_reset(); }, generation);
}

void AccumulatorState::drop() {
  empty([] { return std::make_exception_ptr(CancelledError("TakeGrad operation was cancelled")); });
  MutexLock lock(mutex_);
  step_ = 0;
  dropped_.clear();
}

std::string AccumulatorState::waits_in(const GradientTaker& taker, const std::vector<std::string>& workers) {
  MutexLock lock(mutex_);
  for (const Take& take : takes_) {
    if (take.taker != &taker) continue;
    std::string missing;
    for (const std::string& worker : workers)
      if (senders_.count(GradientSender::of(worker)) == 0)
        missing += (missing.empty() ? "" : ", ") + without_replica(worker);
    return fmt::format("\"{}\" has {} of {} gradients{}", name_, count_, take.required,
                       missing.empty() ? "" : fmt::format(" (missing from {})", missing));
  }
  return "";
}

void AccumulatorState::empty(const std::function<std::exception_ptr()>& error,
                             std::optional<std::int64_t> generation) {
  Finished finished;
  {
    MutexLock lock(mutex_);
    generation_ = generation.value_or(generation_);
    for (const Take& take : takes_) finished.emplace_back(take.taker, error());
    takes_.clear();
    forget_gradients();
  }
  tell(finished);
}

std::int64_t AccumulatorState::num_accumulated() {
  MutexLock lock(mutex_);
  return count_;
}

std::map<GradientSender, std::int64_t> AccumulatorState::num_dropped() {
  MutexLock lock(mutex_);
  return dropped_;
}

void AccumulatorState::serve(Finished& finished) {
  while (!takes_.empty() && count_ >= takes_.front().required) {
    GradientTaker* const taker = takes_.front().taker;
    takes_.pop_front();
    std::exception_ptr error;
    try {
      give_mean(*taker);
    } catch (...) {
      error = std::current_exception();
    }
    forget_gradients();
    ++step_;
    finished.emplace_back(taker, error);
  }
}

void AccumulatorState::forget_gradients() {
  sum_->clear();
  kept_.clear();
  senders_.clear();
  count_ = 0;
}

void AccumulatorState::give_mean(GradientTaker& taker) {
  for (const auto& [sender, gradient] : kept_) sum_->add(gradient);
  taker.take(sum_->mean(count_));
}

}  // namespace kolo::detail
