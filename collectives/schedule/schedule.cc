#include <kolo/collectives/schedule/schedule.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <kolo/collectives/algorithms/device_collectives.h>
#include <kolo/collectives/engine/engine.h>
#include <kolo/collectives/engine/set_group.h>
#include <kolo/collectives/job/runtime.h>
#include <kolo/collectives/schedule/device_ranks.h>
#include <kolo/collectives/schedule/live_slots.h>
#include <kolo/collectives/schedule/schedule_core.h>
#include <kolo/collectives/schedule/slot_work.h>
#include <kolo/collectives/schedule/step_end.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/device/device.h>
#include <kolo/core/runtime/compare_ranks.h>
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
  const ReduceOp op = spec.reduction.op;
  if (op != ReduceOp::sum && op != ReduceOp::average && op != ReduceOp::adasum)
    throw InvalidArgumentError("schedule \"{}\": gradients are combined by sum, average or adasum, not by {}",
                               spec.name, name(op));
  for (const auto& gradient : spec.gradients)
    if (!is_floating(gradient.dtype))
      throw InvalidArgumentError(
          "schedule \"{}\": the gradient of \"{}\" is {}; only floating types are reduced", spec.name,
          gradient.name, numpy_name(gradient.dtype));
}

std::int64_t elements_of(const Bucket& bucket) {
  return bucket.bytes / static_cast<std::int64_t>(size_of(bucket.dtype));
}

std::shared_ptr<Buffer> zeros(Allocator& allocator, std::int64_t elements, DType dtype) {
  auto memory = std::make_shared<Buffer>(allocator, static_cast<std::size_t>(elements) * size_of(dtype));
  std::memset(memory->data(), 0, memory->bytes());
  return memory;
}

// Of the variables of a bucket that are gathered; none: no variable of it is.
std::optional<DType> type_of_variables(const ScheduleSpec& spec, const Bucket& bucket) {
  std::optional<DType> dtype;
  for (const int gradient : bucket.gradients) {
    const auto wanted = spec.shards[gradient].gathered;
    if (wanted && dtype && *wanted != *dtype)
      throw InvalidArgumentError(
          "schedule \"{}\": the gradient of \"{}\" stands in one bucket with another, but the variables are "
          "{} and {}; sharded updates with compression need variables of one type",
          spec.name, spec.gradients[gradient].name, numpy_name(*wanted), numpy_name(*dtype));
    if (wanted) dtype = wanted;
  }
  return dtype;
}

}  // namespace

BucketLimits bucket_limits(std::string_view who, std::int64_t first_bytes, std::int64_t bytes) {
  if (first_bytes < 0 || bytes < 0)
    throw InvalidArgumentError(
        "{}: first_bucket_bytes is {} and bucket_bytes is {}; they must not be negative", who, first_bytes,
        bytes);
  BucketLimits limits;
  if (const auto runtime = detail::current_runtime())
    limits = {.first_bytes = runtime->options().first_bucket_bytes, .bytes = runtime->options().bucket_bytes};
  if (first_bytes > 0) limits.first_bytes = first_bytes;
  if (bytes > 0) limits.bytes = bytes;
  return limits;
}

Allocator& bucket_allocator() {
  const auto runtime = detail::current_runtime();
  return runtime ? runtime->bucket_allocator() : cpu_allocator();
}

Schedule::Schedule(ScheduleSpec spec, Allocator& allocator) : spec_(std::move(spec)) {
  check(spec_);
  std::vector<Bucket> buckets = make_buckets(spec_.gradients, spec_.limits);
  int turn = 0;
  core_ = std::make_unique<detail::ScheduleCore>(
      detail::current_runtime(), static_cast<int>(buckets.size() + spec_.gathers.size()), spec_.process_set);
  buckets_.reserve(buckets.size());
  for (Bucket& contents : buckets) {
    buckets_.push_back(BucketSlot(*core_, turn++, std::move(contents)));
    for (const auto offset : buckets_.back().contents().offsets)
      gradients_.push_back({.bucket = &buckets_.back(), .offset = offset});
  }
  for (std::size_t g = 0; g < spec_.gathers.size(); ++g) rows_.push_back(RowsSlot(*core_, turn++));
  if (!may_lie_on_gpu()) allocate(allocator);
  plan_shards(allocator);
}

// Alike on all ranks, once their specifications are: what GPUs reduce themselves.
bool Schedule::may_lie_on_gpu() const {
  const bool sums = spec_.reduction.op == ReduceOp::sum || spec_.reduction.op == ReduceOp::average;
  const auto runtime = detail::current_runtime();
  return runtime && runtime->has_peers() && spec_.gpus && !spec_.gpus->empty() &&
         !spec_.gpus->front()->runs_cpu_kernels() && device_library() != nullptr && sums &&
         !spec_.reduction.is_scaled() && spec_.shards.empty() && spec_.process_set == ProcessSet() &&
         std::all_of(buckets_.begin(), buckets_.end(),
                     [](const BucketSlot& b) { return b.contents().dtype == DType::f32; });
}

void Schedule::allocate(Allocator& allocator) {
  for (BucketSlot& bucket : buckets_)
    bucket.memory_ = zeros(allocator, elements_of(bucket.contents()) + kStepFlags, bucket.contents().dtype);
}

void Schedule::plan_shards(Allocator& allocator) {
  if (spec_.shards.empty()) return;
  if (spec_.shards.size() != spec_.gradients.size())
    throw InvalidArgumentError("schedule \"{}\": {} gradients are sharded, of {}", spec_.name,
                               spec_.shards.size(), spec_.gradients.size());
  for (BucketSlot& bucket : buckets_) {
    const Bucket& contents = bucket.contents();
    bucket.scatters_ = std::all_of(contents.gradients.begin(), contents.gradients.end(),
                                   [&](int gradient) { return spec_.shards[gradient].part_only; });
    const std::optional<DType> dtype = type_of_variables(spec_, contents);
    if (!dtype) continue;
    // The gradients of a whole bucket may still be looked at.
    auto memory = bucket.scatters() && *dtype == contents.dtype
                      ? bucket.memory()
                      : zeros(allocator, elements_of(contents) + kStepFlags, *dtype);
    const int turn = core_->num_slots();
    core_->add_slots(1);
    bucket.shards_ =
        std::make_unique<ShardsSlot>(ShardsSlot(*core_, turn, *dtype, contents.dtype, std::move(memory)));
  }
}

// MPI's handles are freed where MPI is called. A bucket that still waits for other ranks keeps its own.
Schedule::~Schedule() {
  if (!core_->communicator) return;
  core_->hand_over();
  // Of a step that was broken off nobody knows what others read of it.
  const bool all_have_read =
      core_->step_end == nullptr ||
      (!core_->slots->is_broken() &&
       core_->step_end->wait_until(std::chrono::steady_clock::now() + kTellOthersWithin));
  // A rank that is still reading finds all as it is, however late it is.
  if (!all_have_read) {
    for (BucketSlot& bucket : buckets_) core_->runtime->keep(std::move(bucket.memory_));
    for (FactorsSlot& factors : factors_)
      if (factors.memory_ != nullptr) core_->runtime->keep(std::move(factors.memory_));
  }
  core_->runtime->thread().call([this] {
    for (BucketSlot& bucket : buckets_) {
      bucket.on_gpu_.reset();
      bucket.work_.reset();
    }
    for (RowsSlot& rows : rows_) rows.work_.reset();
    for (FactorsSlot& factors : factors_) factors.work_.reset();
    core_->step_end.reset();
    core_->works.clear();
    core_->communicator.reset();
  });
}

std::vector<TypedBuffer> Schedule::tensors_of(const BucketSlot& bucket) const {
  const Bucket& contents = bucket.contents();
  std::vector<TypedBuffer> tensors;
  for (std::size_t k = 0; k < contents.gradients.size(); ++k)
    tensors.push_back({bucket.memory()->data() + contents.offsets[k],
                       spec_.gradients[static_cast<std::size_t>(contents.gradients[k])].shape.elements(),
                       contents.dtype});
  return tensors;
}

std::vector<int> Schedule::ranks() const {
  std::vector<int> ranks = core_->members;
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

void Schedule::compare() {
  if (core_->compared) return;
  if (core_->has_peers()) {
    detail::NamedTexts texts = detail::described(spec_);
    for (auto& option : shared_options(core_->runtime->options())) texts.push_back(std::move(option));
    std::optional<detail::SetGroup> some;
    if (!core_->members.empty()) some.emplace(core_->set);
    Group& group = some ? *some : world_group();
    if (const auto difference = detail::compare_ranks(group, texts))
      throw FailedPreconditionError("Ranks disagree on the training step: {}",
                                    detail::words_of(*difference, core_->members));
    join_gpus();
    // Before the ranks connect: who waits for them then waits in MPI.
    detail::share_failure(group, [&] { make_memory(); });
    if (core_->num_slots() > 0) {
      core_->connect();
      make_works();
    }
  }
  if (core_->has_peers()) detail::slots_of_process().add(core_->slots, core_->set);
  core_->compared = true;
}

void Schedule::join_gpus() {
  const std::string& asked = core_->runtime->options().allreduce;
  if (may_lie_on_gpu() && !buckets_.empty() && (asked == "auto" || asked == "nccl"))
    core_->gpus = detail::join_devices(*core_->runtime, *spec_.gpus);
  else if (asked == "nccl" && spec_.gpus && spec_.gpus->empty())
    throw FailedPreconditionError(
        "KOLO_ALLREDUCE=nccl was asked for, but no rank makes its gradients on a GPU");
}

// Without a GPU, or where NCCL does not serve, buckets lie in the host's memory.
void Schedule::make_memory() {
  if (core_->gpus == nullptr) {
    if (!buckets_.empty() && buckets_[0].memory() == nullptr) allocate(bucket_allocator());
    return;
  }
  for (BucketSlot& bucket : buckets_) {
    bucket.on_gpu_ = core_->gpus->make_reduction(elements_of(bucket.contents()), kStepFlags,
                                                 spec_.reduction.op == ReduceOp::average);
    bucket.memory_ = bucket.on_gpu_->memory();
  }
}

Device* Schedule::device() const { return core_->gpus == nullptr ? nullptr : spec_.gpus->front(); }

bool Schedule::holds(const std::shared_ptr<Buffer>& memory) const {
  const auto is_its_own = [&](const auto& slot) { return slot.memory_ == memory; };
  return std::any_of(buckets_.begin(), buckets_.end(), is_its_own) ||
         std::any_of(factors_.begin(), factors_.end(), is_its_own);
}

detail::BucketExchange Schedule::make_exchange(BucketSlot& bucket, detail::BucketMemory& memory) {
  Communicator& ranks = *core_->communicator;
  if (bucket.on_gpu_ != nullptr) {
    memory.host_flags = bucket.on_gpu_->tail();
    return {bucket.on_gpu_, "allreduce"};
  }
  if (bucket.scatters())
    return detail::scattered(ranks, memory, shard_counts(bucket.contents(), ranks.size()), spec_.reduction);
  detail::BucketExchange exchange = detail::reduced(ranks, memory, spec_.reduction, tensors_of(bucket));
  const DType dtype = bucket.contents().dtype;
  bucket.may_be_read_ = exchange.collective->read_in_place() != nullptr && spec_.shards.empty() &&
                        ranks.size() <= detail::kMostReaders && (dtype == DType::f32 || dtype == DType::f64);
  return exchange;
}

// A bucket's factors stand before the bucket in front of it, so that ranks meet for them while they make that
// one's gradients; no further, as a bucket that is reduced has to wait for what stands before it. Rows and
// gathered variables come behind all buckets.
void Schedule::order_turns() {
  int next = 0;
  const auto take_factors_of = [&](std::size_t bucket) {
    if (bucket >= buckets_.size()) return;
    for (const int gradient : buckets_[bucket].contents().gradients)
      if (FactorsSlot* const factors = gradients_[static_cast<std::size_t>(gradient)].factors)
        factors->turn_ = next++;
  };
  take_factors_of(0);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    take_factors_of(b + 1);
    buckets_[b].turn_ = next++;
  }
  for (RowsSlot& rows : rows_) rows.turn_ = next++;
  for (BucketSlot& bucket : buckets_)
    if (bucket.shards_ != nullptr) bucket.shards_->turn_ = next++;
}

void Schedule::make_works() {
  Communicator& ranks = *core_->communicator;
  std::vector<detail::BucketMemory> memories;
  std::vector<detail::BucketExchange> exchanges;
  for (BucketSlot& bucket : buckets_) {
    memories.push_back({bucket.memory(), bucket.contents().dtype, elements_of(bucket.contents())});
    exchanges.push_back(make_exchange(bucket, memories.back()));
  }
  agree_on_factors();
  order_turns();
  core_->works.resize(static_cast<std::size_t>(core_->num_slots()));
  const auto take_turn = [&](const Slot& slot, auto work) {
    core_->works[static_cast<std::size_t>(slot.turn())] = work;
    return work;
  };
  make_factors_works();
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    BucketSlot& bucket = buckets_[b];
    const std::string label = label_of(static_cast<int>(b), bucket.contents(), spec_.gradients);
    const auto make = [&](const Slot& slot, detail::BucketMemory memory, detail::BucketExchange exchange,
                          const char* what) {
      return take_turn(
          slot, std::make_shared<detail::BucketWork>(slot.turn(), core_->slots, core_->communicator,
                                                     std::move(memory), std::move(exchange), what + label));
    };
    bucket.work_ = make(bucket, std::move(memories[b]), std::move(exchanges[b]), "");
    if (bucket.shards_ == nullptr) continue;
    const detail::BucketMemory memory{bucket.shards_->memory(), bucket.shards_->dtype_,
                                      elements_of(bucket.contents())};
    make(*bucket.shards_, memory,
         detail::gathered(ranks, memory, shard_counts(bucket.contents(), ranks.size())), "variables of ");
  }
  for (std::size_t g = 0; g < rows_.size(); ++g) {
    const RowGatherSpec& gather = spec_.gathers[g];
    rows_[g].work_ =
        take_turn(rows_[g], std::make_shared<detail::RowsWork>(
                                rows_[g].turn(), core_->slots, core_->communicator, gather,
                                spec_.reduction.op == ReduceOp::average || spec_.reduction.is_scaled(),
                                fmt::format("rows of \"{}\" of the training step", gather.name)));
  }
  if (std::any_of(buckets_.begin(), buckets_.end(), [](const BucketSlot& b) { return b.may_be_read(); }))
    core_->step_end = std::make_shared<detail::StepEnd>(core_->communicator);
}

void Schedule::set_step(std::int64_t step) { core_->slots->set_step(step); }

void Schedule::begin() {
  if (core_->has_peers() && !core_->compared)
    throw FailedPreconditionError("schedule \"{}\": the ranks must compare() it before the first step",
                                  spec_.name);
  core_->slots->begin();
  core_->begin();
}

void Schedule::end() {
  const auto gathered = std::count_if(buckets_.begin(), buckets_.end(),
                                      [](const BucketSlot& bucket) { return bucket.shards_ != nullptr; });
  core_->slots->end(core_->num_slots() - static_cast<int>(gathered));
  core_->end_reading();
}

StepVote::Waits Schedule::advance() { return core_->advance(); }

void Schedule::hand_over() { core_->hand_over(); }

int Schedule::divisor() const {
  return spec_.reduction.op == ReduceOp::average ? core_->communicator->size() : 1;
}

void Schedule::when_writable(Done done) {
  if (core_->step_end == nullptr) return done(nullptr);
  core_->advance();
  core_->step_end->when_open(std::move(done));
}

void Schedule::cast(StepFlag flag) { core_->slots->raise(flag); }

void Schedule::cast_sum(std::uint16_t sum) { core_->slots->raise_sum(sum); }

std::vector<std::string> Schedule::names() const {
  std::vector<std::string> names;
  for (const auto& gradient : spec_.gradients) names.push_back(gradient.name);
  for (const auto& gather : spec_.gathers) names.push_back(gather.name);
  return names;
}

std::vector<std::string> Schedule::exchange(const std::string& text) {
  if (!core_->has_peers()) return {text};
  return core_->members.empty() ? world_group().allgather(text)
                                : detail::SetGroup(core_->set).allgather(text);
}

StepFlags Schedule::take_outcome() { return core_->slots->take_outcome(); }

void Schedule::leave(StepFlag flag, const std::string& text) {
  // This rank has read, where the step got so far. The others say so in this order, whatever comes next.
  core_->end_reading();
  core_->hand_over();
  if (flag == StepFlag::failed) {
    fail(text);
    if (core_->step_end)
      core_->step_end->break_off(std::make_exception_ptr(AbortedError("this rank failed: {}", text)));
    return;
  }
  core_->slots->is_inside() ? end_data_in_step(text) : end_data();
}

void Schedule::end_data() {
  auto& slots = *core_->slots;
  slots.raise(StepFlag::end_of_data);
  begin();
  join_empty_handed();
  end();
  if (!slots.outcome().has(StepFlag::end_of_data) && slots.error()) std::rethrow_exception(slots.error());
}

void Schedule::end_data_in_step(const std::string& text) {
  auto& slots = *core_->slots;
  if (slots.error()) return;  // all ranks have it
  // Of a step with several schedules one is enough: all ranks leave it.
  const auto begun = slots.begun_at();
  if (detail::slots_of_process().any_other(slots, core_->set,
                                           [&](const auto& other) { return other.is_void_since(begun); }))
    return;
  if (slots.raise_end_of_data_in_step()) join_empty_handed();
  else fail(text);
}

// What is contributed does not matter: the step is void. Other ranks may still be reading it as of the last
// step.
void Schedule::join_empty_handed() {
  for (const BucketSlot& bucket : buckets_)
    if (bucket.on_gpu_ != nullptr) bucket.on_gpu_->clear();
  core_->submit_missing();
  // The watchdog ends a wait for ranks that do not come.
  while (!core_->slots->wait_until(std::chrono::steady_clock::now() + std::chrono::hours(1))) {
  }
}

// What is contributed is not cleared: the step is void, and kernels of it may still be writing.
void Schedule::fail(const std::string& text) {
  auto& slots = *core_->slots;
  // An error that all ranks share needs no telling.
  if (!core_->has_peers() || !core_->compared || core_->num_slots() == 0 || slots.error()) return;
  // The others come to save, not to another step: whoever takes the save tells them there.
  if (slots.outcome().has(StepFlag::save)) return;
  // Of a step with several schedules the one that the other ranks are in tells them.
  const bool known = detail::slots_of_process().any_other(
      slots, core_->set, [](const auto& other) { return other.is_broken(); });
  if (known) return slots.break_off(std::make_exception_ptr(AbortedError("this rank failed: {}", text)));
  if (!slots.is_under_way() && detail::slots_of_process().any_other(
                                   slots, core_->set, [](const auto& other) { return other.is_under_way(); }))
    return;
  slots.raise(StepFlag::failed, text);
  if (core_->runtime->thread().is_current()) {  // it must go on for anybody to hear of this
    if (slots.is_under_way()) core_->submit_missing();
    return;
  }
  const auto deadline = std::chrono::steady_clock::now() + kTellOthersWithin;
  while (!slots.error()) {
    if (slots.outcome().has(StepFlag::save)) return;
    // Once more if all buckets had begun before the flag could go with one.
    if (!slots.is_under_way()) {
      core_->end_reading();
      core_->hand_over();
      if (!slots.begin_unless_broken()) break;
    }
    core_->submit_missing();
    if (!slots.wait_until(deadline)) break;
  }
  const auto error = std::make_exception_ptr(AbortedError("this rank failed: {}", text));
  // A sum that waits for the others on the GPU would hold whoever frees memory of it, and with him the end.
  if (core_->gpus != nullptr && !slots.error())
    core_->runtime->thread().call([&] { core_->runtime->thread().fail(core_->set.id(), error); });
  slots.break_off(error);
}

std::vector<Schedule::Timing> Schedule::last_step_timings() const { return core_->slots->timings(); }

void Schedule::append_trace(StepTrace& trace) const {
  if (!core_->has_peers()) return;
  const auto timings = last_step_timings();
  for (std::size_t b = 0; b < core_->works.size(); ++b)
    trace.events.push_back({.name = core_->works[b]->label(),
                            .category = "reduce",
                            .lane = "communication",
                            .start = timings[b].start,
                            .end = timings[b].end});
}

std::int64_t Schedule::extra_exchanges() const { return core_->slots->exchanges(); }

}  // namespace kolo
