#include <kolo/collectives/schedule/gradient_buckets.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/base/process.h>
#include <kolo/core/runtime/compare_ranks.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {
namespace {

// How many missing gradients an error names.
constexpr std::size_t kNamesInError = 8;

std::vector<GradientSpec> specs_of(std::span<const NamedBuffer> buffers) {
  std::vector<GradientSpec> specs;
  for (const NamedBuffer& buffer : buffers) {
    if (buffer.count < 0)
      throw InvalidArgumentError("\"{}\" has {} elements; a count must not be negative", buffer.name,
                                 buffer.count);
    specs.push_back({.name = buffer.name, .shape = Shape{buffer.count}, .dtype = buffer.dtype});
  }
  return specs;
}

ScheduleSpec spec_of(std::span<const NamedBuffer> gradients, const GradientBucketsOptions& options) {
  ScheduleSpec spec{
      .name = "GradientBuckets",
      .reduction = options.op,
      .gradients = specs_of(gradients),
      .limits = bucket_limits("GradientBuckets", options.first_bucket_bytes, options.bucket_bytes)};
  if (options.order == GradientOrder::reversed) std::reverse(spec.gradients.begin(), spec.gradients.end());
  return spec;
}

}  // namespace

/// The steps over one list.
class GradientBuckets::Steps {
 public:
  Steps(std::vector<NamedBuffer> gradients, const GradientBucketsOptions& options)
      : schedule_(spec_of(gradients, options)),
        reversed_(options.order == GradientOrder::reversed),
        gradients_(std::move(gradients)),
        ready_(gradients_.size(), false),
        elsewhere_(gradients_.size(), nullptr),
        missing_in_(schedule_.buckets().size()),
        over_(schedule_.buckets().size(), false) {
    schedule_.compare();
    reset();
  }
  ~Steps();

  int gradients() const { return static_cast<int>(gradients_.size()); }
  int buckets() const { return static_cast<int>(schedule_.buckets().size()); }
  std::byte* memory(int gradient) const;
  void* listed(int gradient) const;
  void ready(int gradient, void* elements) KOLO_EXCLUDES(mutex_, over_mutex_);
  void absent(int gradient) KOLO_EXCLUDES(mutex_, over_mutex_);
  void wait() KOLO_EXCLUDES(mutex_, over_mutex_);
  bool wait_until(std::chrono::steady_clock::time_point deadline) KOLO_EXCLUDES(mutex_, over_mutex_);
  void end_of_data() KOLO_EXCLUDES(mutex_, over_mutex_);

 private:
  int in_schedule(int gradient) const { return reversed_ ? gradients() - 1 - gradient : gradient; }
  const GradientPlace& place_of(int gradient) const {
    return schedule_.gradients()[static_cast<std::size_t>(in_schedule(gradient))];
  }
  int bucket_of(int gradient) const {
    return static_cast<int>(place_of(gradient).bucket - schedule_.buckets().data());
  }
  std::size_t bytes(int gradient) const {
    return static_cast<std::size_t>(gradients_[gradient].count) * size_of(gradients_[gradient].dtype);
  }
  void check_index(int gradient) const;
  // False if there is no step to take part in: wait() tells why.
  bool mark(int gradient) KOLO_EXCLUDES(mutex_);
  void begin() KOLO_REQUIRES(mutex_);
  void count_down(int bucket) KOLO_EXCLUDES(over_mutex_);
  void reset() KOLO_EXCLUDES(mutex_, over_mutex_);
  void finished(int bucket, std::exception_ptr error) KOLO_EXCLUDES(over_mutex_);
  void check_nothing_is_missing() KOLO_EXCLUDES(mutex_);
  bool all_are_over() const KOLO_REQUIRES(over_mutex_) {
    return std::find(over_.begin(), over_.end(), false) == over_.end();
  }
  std::exception_ptr wait_for(int bucket) KOLO_EXCLUDES(over_mutex_);

  Schedule schedule_;
  const bool reversed_;
  const std::vector<NamedBuffer> gradients_;

  Mutex mutex_;
  std::vector<bool> ready_ KOLO_GUARDED_BY(mutex_);
  bool begun_ KOLO_GUARDED_BY(mutex_) = false;
  std::exception_ptr broken_ KOLO_GUARDED_BY(mutex_);  // for good

  // In this step, nullptr: in the bucket. Written by ready(), before the gradient's bucket can be submitted.
  std::vector<void*> elsewhere_;
  // By bucket: gradients whose memory is still to be filled. Whoever makes it 0 sees what the others wrote.
  std::vector<std::atomic<int>> missing_in_;

  // Apart from mutex_, under which a step begins: that waits for the communication thread, which comes here.
  Mutex over_mutex_;
  CondVar changed_;
  std::vector<bool> over_ KOLO_GUARDED_BY(over_mutex_);
  int running_ KOLO_GUARDED_BY(over_mutex_) = 0;           // buckets that were submitted and are not over
  std::exception_ptr error_ KOLO_GUARDED_BY(over_mutex_);  // of this step
};

GradientBuckets::Steps::~Steps() {
  bool under_way = false;
  {
    MutexLock lock(mutex_);
    under_way = begun_;
  }
  if (under_way)
    schedule_.leave(StepFlag::failed, "its GradientBuckets were destroyed in the middle of a step");
  // The communication thread may still be about to tell of a bucket.
  MutexLock lock(over_mutex_);
  while (running_ > 0) changed_.wait(over_mutex_);
}

void GradientBuckets::Steps::check_index(int gradient) const {
  if (gradient < 0 || gradient >= gradients())
    throw InvalidArgumentError("there is no gradient {}; the list has {}, counted from 0", gradient,
                               gradients());
}

std::byte* GradientBuckets::Steps::memory(int gradient) const {
  check_index(gradient);
  return place_of(gradient).bucket->memory()->data() + place_of(gradient).offset;
}

void* GradientBuckets::Steps::listed(int gradient) const {
  check_index(gradient);
  return gradients_[gradient].elements;
}

void GradientBuckets::Steps::ready(int gradient, void* elements) {
  if (!mark(gradient)) return;
  // One rank: the reduced gradient is the gradient, wherever it is.
  elsewhere_[gradient] = process().size == 1 ? nullptr : elements;
  if (elsewhere_[gradient] != nullptr) std::memcpy(memory(gradient), elsewhere_[gradient], bytes(gradient));
  count_down(bucket_of(gradient));
}

void GradientBuckets::Steps::absent(int gradient) {
  if (!mark(gradient)) return;
  elsewhere_[gradient] = gradients_[gradient].elements;
  std::memset(memory(gradient), 0, bytes(gradient));
  count_down(bucket_of(gradient));
}

bool GradientBuckets::Steps::mark(int gradient) {
  check_index(gradient);
  MutexLock lock(mutex_);
  if (ready_[gradient])
    throw InvalidArgumentError(
        "the gradient \"{}\" is ready already; each becomes ready once before wait() ends the step",
        gradients_[gradient].name);
  begin();
  ready_[gradient] = broken_ == nullptr;
  return ready_[gradient];
}

void GradientBuckets::Steps::count_down(int bucket) {
  if (missing_in_[bucket].fetch_sub(1) > 1) return;
  {
    MutexLock lock(over_mutex_);
    ++running_;
  }
  schedule_.buckets()[bucket].submit(
      [this, bucket](std::exception_ptr error) { finished(bucket, std::move(error)); });
}

void GradientBuckets::Steps::begin() {
  if (begun_ || broken_) return;
  try {
    schedule_.begin();
    begun_ = true;
  } catch (...) {
    broken_ = std::current_exception();
  }
}

void GradientBuckets::Steps::reset() {
  for (std::size_t b = 0; b < missing_in_.size(); ++b)
    missing_in_[b] = static_cast<int>(schedule_.buckets()[b].contents().gradients.size());
  {
    MutexLock lock(over_mutex_);
    over_.assign(over_.size(), false);
    error_ = nullptr;
  }
  MutexLock lock(mutex_);
  ready_.assign(ready_.size(), false);
  begun_ = false;
}

void GradientBuckets::Steps::finished(int bucket, std::exception_ptr error) {
  MutexLock lock(over_mutex_);
  if (error && !error_) error_ = std::move(error);
  over_[bucket] = true;
  --running_;
  changed_.notify_all();  // under the lock: once it is free the destructor may go on
}

std::exception_ptr GradientBuckets::Steps::wait_for(int bucket) {
  MutexLock lock(over_mutex_);
  while (!over_[bucket]) changed_.wait(over_mutex_);
  return error_;
}

void GradientBuckets::Steps::wait() {
  check_nothing_is_missing();
  std::exception_ptr error;
  for (int b = 0; b < buckets(); ++b) {
    error = wait_for(b);
    if (error) continue;
    for (const int i : schedule_.buckets()[b].contents().gradients) {
      const int gradient = in_schedule(i);  // its own inverse
      if (elsewhere_[gradient] != nullptr)
        std::memcpy(elsewhere_[gradient], memory(gradient), bytes(gradient));
    }
  }
  schedule_.end();
  reset();
  if (error) std::rethrow_exception(error);
}

bool GradientBuckets::Steps::wait_until(std::chrono::steady_clock::time_point deadline) {
  {
    MutexLock lock(mutex_);
    const bool is_complete = std::find(ready_.begin(), ready_.end(), false) == ready_.end();
    if (broken_ || !is_complete) return true;
  }
  MutexLock lock(over_mutex_);
  while (!all_are_over())
    if (!changed_.wait_until(over_mutex_, deadline)) return all_are_over();
  return true;
}

void GradientBuckets::Steps::check_nothing_is_missing() {
  std::string text;
  {
    MutexLock lock(mutex_);
    if (broken_) std::rethrow_exception(broken_);
    std::vector<std::string> missing;
    for (int i = 0; i < gradients(); ++i)
      if (!ready_[i]) missing.push_back(fmt::format("\"{}\"", gradients_[i].name));
    if (missing.empty()) return;
    const std::size_t named = std::min(missing.size(), kNamesInError);
    text = fmt::format(
        "wait() was called while {} of {} gradients are not ready: {}{}; each needs a call of ready() or, "
        "where the step does not compute it, absent()",
        missing.size(), gradients(), fmt::join(missing.begin(), missing.begin() + named, ", "),
        missing.size() > named ? fmt::format(" and {} more", missing.size() - named) : "");
    if (process().size > 1) broken_ = std::make_exception_ptr(FailedPreconditionError("{}", text));
  }
  schedule_.leave(StepFlag::failed, text);
  throw FailedPreconditionError("{}", text);
}

void GradientBuckets::Steps::end_of_data() {
  {
    MutexLock lock(mutex_);
    if (broken_) std::rethrow_exception(broken_);
    if (begun_)
      throw FailedPreconditionError(
          "end_of_data() was called in the middle of a step; it takes the place of a whole one");
  }
  schedule_.leave(StepFlag::end_of_data, "");
}

GradientBuckets::GradientBuckets(std::vector<NamedBuffer> gradients, GradientBucketsOptions options)
    : steps_(std::make_unique<Steps>(std::move(gradients), options)) {}
GradientBuckets::~GradientBuckets() = default;

int GradientBuckets::gradients() const { return steps_->gradients(); }
int GradientBuckets::buckets() const { return steps_->buckets(); }
void* GradientBuckets::memory(int gradient) const { return steps_->memory(gradient); }
void GradientBuckets::ready(int gradient) { steps_->ready(gradient, steps_->listed(gradient)); }
void GradientBuckets::ready(int gradient, void* elements) { steps_->ready(gradient, elements); }
void GradientBuckets::absent(int gradient) { steps_->absent(gradient); }
void GradientBuckets::wait() { steps_->wait(); }
bool GradientBuckets::wait_until(std::chrono::steady_clock::time_point deadline) {
  return steps_->wait_until(deadline);
}
void GradientBuckets::end_of_data() { steps_->end_of_data(); }

void broadcast_parameters(std::span<const NamedBuffer> parameters, int root) {
  Group& group = world_group();
  detail::NamedTexts texts = detail::described(specs_of(parameters), "parameter");
  texts.emplace_back("the root rank", std::to_string(root));
  if (const auto difference = detail::compare_ranks(group, texts))
    throw FailedPreconditionError("Ranks disagree on the parameters: {}", detail::words_of(*difference));
  if (root < 0 || root >= group.size())
    throw InvalidArgumentError("root rank {} is outside the process set of {} ranks", root, group.size());
  std::vector<Tensor> tensors;
  for (const NamedBuffer& parameter : parameters) {
    const std::size_t bytes = static_cast<std::size_t>(parameter.count) * size_of(parameter.dtype);
    tensors.emplace_back(parameter.dtype, Shape{parameter.count},
                         std::make_shared<Buffer>(parameter.elements, bytes), 0);
  }
  group.broadcast(tensors, root);
}

}  // namespace kolo
