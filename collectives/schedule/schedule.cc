#include <kolo/collectives/schedule/schedule_internal.h>

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

}  // namespace

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
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    for (const auto offset : buckets_[b].offsets) place_.emplace_back(static_cast<int>(b), offset);
  memory_.resize(buckets_.size());
  if (!may_lie_on_gpu()) allocate(allocator);
  plan_shards(allocator);
  core_ = std::make_unique<Core>(detail::current_runtime(),
                                 static_cast<int>(buckets_.size() + spec_.gathers.size() + gathered_.size()),
                                 spec_.process_set);
}

// Alike on all ranks, once their specifications are: what GPUs reduce themselves.
bool Schedule::may_lie_on_gpu() const {
  const bool sums = spec_.reduction.op == ReduceOp::sum || spec_.reduction.op == ReduceOp::average;
  const auto runtime = detail::current_runtime();
  return runtime && runtime->has_peers() && spec_.gpus && !spec_.gpus->empty() &&
         !spec_.gpus->front()->runs_cpu_kernels() && device_library() != nullptr && sums &&
         !spec_.reduction.is_scaled() && spec_.shards.empty() && spec_.process_set == ProcessSet() &&
         std::all_of(buckets_.begin(), buckets_.end(), [](const Bucket& b) { return b.dtype == DType::f32; });
}

void Schedule::allocate(Allocator& allocator) {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const auto flag_bytes = kStepFlags * size_of(buckets_[b].dtype);
    memory_[b] =
        std::make_shared<Buffer>(allocator, static_cast<std::size_t>(buckets_[b].bytes) + flag_bytes);
    std::memset(memory_[b]->data(), 0, memory_[b]->bytes());
  }
}

void Schedule::plan_shards(Allocator& allocator) {
  scattered_.assign(buckets_.size(), false);
  if (spec_.shards.empty()) return;
  if (spec_.shards.size() != spec_.gradients.size())
    throw InvalidArgumentError("schedule \"{}\": {} gradients are sharded, of {}", spec_.name,
                               spec_.shards.size(), spec_.gradients.size());
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = buckets_[b];
    scattered_[b] = std::all_of(bucket.gradients.begin(), bucket.gradients.end(),
                                [&](int gradient) { return spec_.shards[gradient].part_only; });
    std::optional<DType> dtype;
    for (const int gradient : bucket.gradients) {
      const auto wanted = spec_.shards[gradient].gathered;
      if (wanted && dtype && *wanted != *dtype)
        throw InvalidArgumentError(
            "schedule \"{}\": the gradient of \"{}\" stands in one bucket with another, but the variables "
            "are "
            "{} and {}; sharded updates with compression need variables of one type",
            spec_.name, spec_.gradients[gradient].name, numpy_name(*wanted), numpy_name(*dtype));
      if (wanted) dtype = wanted;
    }
    if (!dtype) continue;
    auto memory = memory_[b];
    // The gradients of a whole bucket may still be looked at.
    if (!scattered_[b] || *dtype != bucket.dtype) {
      const auto elements = static_cast<std::size_t>(elements_of(bucket)) + kStepFlags;
      memory = std::make_shared<Buffer>(allocator, elements * size_of(*dtype));
      std::memset(memory->data(), 0, memory->bytes());
    }
    gathered_.push_back({static_cast<int>(b), *dtype, std::move(memory)});
  }
}

bool Schedule::scatters(int bucket) const { return scattered_.at(static_cast<std::size_t>(bucket)); }

const Schedule::GatheredBucket& Schedule::gathered_bucket(int bucket) const {
  for (const GatheredBucket& gathered : gathered_)
    if (gathered.bucket == bucket) return gathered;
  throw InternalError("schedule \"{}\" gathers nothing of bucket {}", spec_.name, bucket);
}

int Schedule::slot_of_bucket(int bucket) const {
  const auto at = static_cast<std::size_t>(bucket);
  return at < core_->slots_of_buckets.size() ? core_->slots_of_buckets[at] : bucket;
}

int Schedule::slot_of_shards(int bucket) const {
  return slot_of_gather(num_gathers()) + static_cast<int>(&gathered_bucket(bucket) - gathered_.data());
}

const std::shared_ptr<Buffer>& Schedule::gather_memory(int bucket) const {
  return gathered_bucket(bucket).memory;
}

std::int64_t Schedule::offset_of_gathered(int gradient) const {
  const int bucket = bucket_of(gradient);
  const auto bytes = [](DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); };
  return offset(gradient) / bytes(buckets_[static_cast<std::size_t>(bucket)].dtype) *
         bytes(gathered_bucket(bucket).dtype);
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
    for (auto& memory : memory_) core_->runtime->keep(std::move(memory));
    for (auto& [gradient, memory] : factors_memory_) core_->runtime->keep(std::move(memory));
  }
  core_->runtime->thread().call([this] {
    core_->on_gpu.clear();
    core_->step_end.reset();
    core_->buckets.clear();
    core_->works.clear();
    core_->gathers.clear();
    core_->factors.clear();
    core_->communicator.reset();
  });
}

std::vector<TypedBuffer> Schedule::tensors_of(int bucket) const {
  const Bucket& contents = buckets_[static_cast<std::size_t>(bucket)];
  std::vector<TypedBuffer> tensors;
  for (std::size_t k = 0; k < contents.gradients.size(); ++k)
    tensors.push_back({memory_[static_cast<std::size_t>(bucket)]->data() + contents.offsets[k],
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
    if (!memory_.empty() && memory_[0] == nullptr) allocate(bucket_allocator());
    return;
  }
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    core_->on_gpu.push_back(core_->gpus->make_reduction(elements_of(buckets_[b]), kStepFlags,
                                                        spec_.reduction.op == ReduceOp::average));
    memory_[b] = core_->on_gpu[b]->memory();
  }
}

Device* Schedule::device() const { return core_->gpus == nullptr ? nullptr : spec_.gpus->front(); }

void Schedule::make_works() {
  Communicator& ranks = *core_->communicator;
  std::vector<detail::BucketMemory> memories;
  std::vector<detail::BucketExchange> exchanges;
  for (int b = 0; b < static_cast<int>(buckets_.size()); ++b) {
    const Bucket& bucket = buckets_[static_cast<std::size_t>(b)];
    detail::BucketMemory memory{memory_[b], bucket.dtype, elements_of(bucket)};
    if (device() != nullptr) {
      memory.host_flags = core_->on_gpu[b]->tail();
      exchanges.push_back({core_->on_gpu[b], "allreduce"});
    } else if (scatters(b)) {
      exchanges.push_back(
          detail::scattered(ranks, memory, shard_counts(bucket, ranks.size()), spec_.reduction));
    } else {
      exchanges.push_back(detail::reduced(ranks, memory, spec_.reduction, tensors_of(b)));
    }
    readable_.push_back(dynamic_cast<ReadInPlace*>(exchanges.back().collective.get()) != nullptr &&
                        spec_.shards.empty() && ranks.size() <= detail::kMostReaders &&
                        (bucket.dtype == DType::f32 || bucket.dtype == DType::f64));
    memories.push_back(std::move(memory));
  }
  agree_on_factors();
  order_slots();
  core_->works.resize(static_cast<std::size_t>(core_->num_slots()));
  for (std::size_t f = 0; f < factored_.size(); ++f) {
    const int slot = core_->slots_of_factors[f];
    const auto& name = spec_.gradients[static_cast<std::size_t>(factored_[f])].name;
    core_->factors.push_back(std::make_shared<detail::FactorsWork>(
        slot, core_->slots, core_->communicator, core_->runtime->memory_of_all(),
        fmt::format("factors of \"{}\" of the training step", name)));
    core_->works[static_cast<std::size_t>(slot)] = core_->factors.back();
  }
  const auto make = [&](int bucket, int slot, detail::BucketMemory memory, detail::BucketExchange exchange,
                        const char* what) {
    std::string label = what + label_of(bucket, buckets_[static_cast<std::size_t>(bucket)], spec_.gradients);
    auto work = std::make_shared<detail::BucketWork>(
        slot, core_->slots, core_->communicator, std::move(memory), std::move(exchange), std::move(label));
    core_->works[static_cast<std::size_t>(slot)] = work;
    return work.get();
  };
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    core_->buckets.push_back(make(static_cast<int>(b), slot_of_bucket(static_cast<int>(b)),
                                  std::move(memories[b]), std::move(exchanges[b]), ""));
  if (std::count(readable_.begin(), readable_.end(), true) > 0)
    core_->step_end = std::make_shared<detail::StepEnd>(core_->communicator);
  for (int g = 0; g < num_gathers(); ++g) {
    const RowGatherSpec& gather = spec_.gathers[g];
    core_->gathers.push_back(std::make_shared<detail::RowsWork>(
        slot_of_gather(g), core_->slots, core_->communicator, gather,
        spec_.reduction.op == ReduceOp::average || spec_.reduction.is_scaled(),
        fmt::format("rows of \"{}\" of the training step", gather.name)));
    core_->works[static_cast<std::size_t>(slot_of_gather(g))] = core_->gathers.back();
  }
  for (const GatheredBucket& gathered : gathered_) {
    const Bucket& bucket = buckets_[static_cast<std::size_t>(gathered.bucket)];
    const detail::BucketMemory memory{gathered.memory, gathered.dtype, elements_of(bucket)};
    make(gathered.bucket, slot_of_shards(gathered.bucket), memory,
         detail::gathered(ranks, memory, shard_counts(bucket, ranks.size())), "variables of ");
  }
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
  core_->slots->end(core_->num_slots() - static_cast<int>(gathered_.size()));
  core_->end_reading();
}

StepVote::Waits Schedule::advance() { return core_->advance(); }

void Schedule::hand_over() { core_->hand_over(); }

void Schedule::submit(int slot, Done done) { core_->submit(slot, std::move(done), false); }

void Schedule::submit_to_read(int bucket, Done done) {
  core_->submit(slot_of_bucket(bucket), std::move(done), may_be_read(bucket));
}

bool Schedule::may_be_read(int bucket) const {
  const auto at = static_cast<std::size_t>(bucket);
  return at < readable_.size() && readable_[at];
}

std::span<const std::byte* const> Schedule::memory_of_ranks(int bucket) const {
  if (!may_be_read(bucket)) return {};
  return core_->buckets[static_cast<std::size_t>(bucket)]->elements_of_ranks();
}

int Schedule::divisor() const {
  return spec_.reduction.op == ReduceOp::average ? core_->communicator->size() : 1;
}

void Schedule::when_writable(Done done) {
  if (core_->step_end == nullptr) return done(nullptr);
  core_->advance();
  core_->step_end->when_open(std::move(done));
}

void Schedule::give_rows(int gather, const Tensor& values, const Tensor& indices) {
  core_->gathers.at(gather)->set_own(values, indices);
}

std::pair<Tensor, Tensor> Schedule::gathered_rows(int gather) const {
  const detail::RowsWork& rows = *core_->gathers.at(gather);
  return {rows.values(), rows.indices()};
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
  for (const auto& reduction : core_->on_gpu) reduction->clear();
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
  if (!core_->on_gpu.empty() && !slots.error())
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
