#include <kolo/collectives/schedule.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <kolo/collectives/detail/bucket_reduction.h>
#include <kolo/collectives/detail/runtime.h>
#include <kolo/collectives/detail/step_state.h>
#include <kolo/collectives/schedule_hash.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/trace.h>

namespace kolo {
namespace {

// Shorter than the 10 s in which a job with a failed rank is to be over.
constexpr std::chrono::seconds kTellOthersWithin{7};
// How many gradients a stall report names.
constexpr std::size_t kNamesInLabel = 8;

std::string label_of(int bucket, const Bucket& contents, const std::vector<GradientSpec>& gradients) {
  std::string names;
  for (std::size_t i = 0; i < std::min(contents.gradients.size(), kNamesInLabel); ++i)
    names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", gradients[contents.gradients[i]].name);
  if (contents.gradients.size() > kNamesInLabel)
    names += fmt::format(" and {} more", contents.gradients.size() - kNamesInLabel);
  return fmt::format("bucket {} of the training step ({})", bucket, names);
}

void check(const ScheduleSpec& spec) {
  if (spec.op != ReduceOp::sum && spec.op != ReduceOp::average)
    throw InvalidArgumentError("schedule \"{}\": gradients are combined by sum or average, not by {}",
                               spec.name, name(spec.op));
  for (const auto& gradient : spec.gradients)
    if (!is_floating(gradient.dtype))
      throw InvalidArgumentError(
          "schedule \"{}\": the gradient of \"{}\" is {}; only floating types are reduced", spec.name,
          gradient.name, numpy_name(gradient.dtype));
}

std::int64_t elements_of(const Bucket& bucket) {
  return bucket.bytes / static_cast<std::int64_t>(size_of(bucket.dtype));
}

}  // namespace

// What compare() makes, and the way to the communication thread.
class Schedule::Core {
 public:
  Core(std::shared_ptr<detail::Runtime> runtime, int buckets)
      : runtime(std::move(runtime)), state(std::make_shared<detail::StepState>(buckets)) {}

  bool has_peers() const { return runtime && runtime->has_peers(); }
  void submit(int bucket, Done done);
  void submit_missing();

  const std::shared_ptr<detail::Runtime> runtime;  // nullptr without init()
  const std::shared_ptr<detail::StepState> state;
  bool compared = false;
  int channel = 0;
  std::shared_ptr<Communicator> communicator;
  std::vector<std::shared_ptr<detail::BucketReduction>> reductions;

 private:
  void send(const detail::StepState::Submitted& buckets);
  void reduce_alone(const detail::StepState::Submitted& buckets);

  Mutex order_mutex_;
};

void Schedule::Core::submit(int bucket, Done done) {
  detail::StepState::Submitted submitted;
  {
    // Two threads that have completed neighbouring buckets must not overtake each other here.
    MutexLock lock(order_mutex_);
    submitted = state->submit(bucket, done);
    if (has_peers()) send(submitted);
  }
  if (submitted.error) done(submitted.error);
  else if (!has_peers()) reduce_alone(submitted);
}

void Schedule::Core::submit_missing() {
  detail::StepState::Submitted submitted;
  {
    MutexLock lock(order_mutex_);
    submitted = state->submit_missing();
    if (has_peers()) send(submitted);
  }
  if (!has_peers()) reduce_alone(submitted);
}

void Schedule::Core::send(const detail::StepState::Submitted& buckets) {
  for (int bucket = buckets.first; bucket < buckets.end; ++bucket) {
    const auto& reduction = reductions[bucket];
    runtime->thread().submit({.channel = channel,
                              .ticket = state->ticket(bucket),
                              .operation = reduction,
                              .label = reduction->label(),
                              // The reduction, which holds the state, lives as long as the submission.
                              .done = [state = state.get(), bucket](
                                          std::exception_ptr error) { state->finish_bucket(bucket, error); },
                              .details = reduction->details()});
  }
}

void Schedule::Core::reduce_alone(const detail::StepState::Submitted& buckets) {
  for (int bucket = buckets.first; bucket < buckets.end; ++bucket) {
    detail::StepFlags flags;
    if (state->begin_bucket(bucket, flags)) {
      state->received(bucket, flags);
      const std::string reason = state->own_reason();
      if (flags.is_void()) state->set_reasons({&reason, 1});
    }
    state->finish_bucket(bucket, nullptr);
  }
}

BucketLimits default_bucket_limits() {
  const auto runtime = detail::current_runtime();
  if (!runtime) return {};
  return {.first_bytes = runtime->options().first_bucket_bytes, .bytes = runtime->options().bucket_bytes};
}

Allocator& bucket_allocator() {
  const auto runtime = detail::current_runtime();
  return runtime ? runtime->bucket_allocator() : cpu_allocator();
}

Schedule::Schedule(ScheduleSpec spec, Allocator& allocator) : spec_(std::move(spec)) {
  check(spec_);
  buckets_ = make_buckets(spec_.gradients, spec_.limits);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    for (const auto offset : buckets_[b].offsets) place_.emplace_back(static_cast<int>(b), offset);
    const auto flag_bytes = detail::kFlagElements * size_of(buckets_[b].dtype);
    memory_.push_back(
        std::make_shared<Buffer>(allocator, static_cast<std::size_t>(buckets_[b].bytes) + flag_bytes));
    std::memset(memory_.back()->data(), 0, memory_.back()->bytes());
  }
  core_ = std::make_unique<Core>(detail::current_runtime(), static_cast<int>(buckets_.size()));
}

// MPI's handles are freed where MPI is called. A bucket that still waits for other ranks keeps its own.
Schedule::~Schedule() {
  if (!core_->communicator) return;
  core_->runtime->thread().call([this] {
    core_->reductions.clear();
    core_->communicator.reset();
  });
}

void Schedule::compare() {
  if (core_->compared) return;
  if (core_->has_peers()) {
    auto options = spec_.options;
    options.emplace_back("the bucket limit", std::to_string(spec_.limits.bytes));
    options.emplace_back("the first bucket's limit", std::to_string(spec_.limits.first_bytes));
    for (auto& option : shared_options(core_->runtime->options())) options.push_back(std::move(option));
    const std::string description = describe_schedule(spec_.op, options, spec_.gradients);
    const auto hashes = world_group().allgather(schedule_hash(description));
    if (std::any_of(hashes.begin(), hashes.end(), [&](const auto& hash) { return hash != hashes[0]; }))
      throw FailedPreconditionError("Ranks disagree on the training step: {}",
                                    first_disagreement(world_group().allgather(description)));
    if (!buckets_.empty()) {
      auto& thread = core_->runtime->thread();
      core_->channel = thread.open_channel();
      thread.call([this] { core_->communicator = core_->runtime->world().duplicate(); });
      for (std::size_t b = 0; b < buckets_.size(); ++b)
        core_->reductions.push_back(std::make_shared<detail::BucketReduction>(
            static_cast<int>(b), core_->state, core_->communicator, memory_[b], buckets_[b].dtype,
            elements_of(buckets_[b]), spec_.op, label_of(static_cast<int>(b), buckets_[b], spec_.gradients)));
    }
  }
  core_->compared = true;
}

void Schedule::set_step(std::int64_t step) { core_->state->set_step(step); }

void Schedule::begin_step() {
  if (core_->has_peers() && !core_->compared)
    throw FailedPreconditionError("schedule \"{}\": the ranks must compare() it before the first step",
                                  spec_.name);
  core_->state->begin();
}

void Schedule::submit(int bucket, Done done) { core_->submit(bucket, std::move(done)); }

void Schedule::request_stop() { core_->state->raise_stop(); }

StepVerdict Schedule::last_step() const { return core_->state->last_verdict(); }

void Schedule::end_of_data() {
  auto& state = *core_->state;
  state.raise_end_of_data();
  begin_step();
  join_with_zeros();
  if (!state.last_verdict().end_of_data && state.error()) std::rethrow_exception(state.error());
}

void Schedule::end_of_data_in_step(const std::string& text) {
  auto& state = *core_->state;
  if (state.error()) return;  // all ranks have it
  if (state.raise_end_of_data_in_step()) join_with_zeros();
  else fail(text);
}

void Schedule::join_with_zeros() {
  for (const auto& memory : memory_) std::memset(memory->data(), 0, memory->bytes());
  core_->submit_missing();
  // The watchdog ends a wait for ranks that do not come.
  while (!core_->state->wait_until(std::chrono::steady_clock::now() + std::chrono::hours(1))) {
  }
}

// What is contributed is not cleared: the step is void, and kernels of it may still be writing.
void Schedule::fail(const std::string& text) {
  auto& state = *core_->state;
  // An error that all ranks share needs no telling.
  if (!core_->has_peers() || !core_->compared || buckets_.empty() || state.error()) return;
  state.raise_failure(text);
  if (core_->runtime->thread().is_current()) {  // it must go on for anybody to hear of this
    if (state.is_under_way()) core_->submit_missing();
    return;
  }
  const auto deadline = std::chrono::steady_clock::now() + kTellOthersWithin;
  while (!state.error()) {
    // Once more if all buckets had begun before the flag could go with one.
    if (!state.is_under_way() && !state.begin_unless_broken()) break;
    core_->submit_missing();
    if (!state.wait_until(deadline)) break;
  }
  state.break_off(std::make_exception_ptr(AbortedError("this rank failed: {}", text)));
}

std::vector<Schedule::Timing> Schedule::last_step_timings() const { return core_->state->timings(); }

void Schedule::append_trace(StepTrace& trace) const {
  if (!core_->has_peers()) return;
  const auto timings = last_step_timings();
  for (std::size_t b = 0; b < core_->reductions.size(); ++b)
    trace.events.push_back({.name = core_->reductions[b]->label(),
                            .category = "reduce",
                            .lane = "communication",
                            .start = timings[b].start,
                            .end = timings[b].end});
}

std::int64_t Schedule::extra_exchanges() const { return core_->state->exchanges(); }

}  // namespace kolo
