#include <kolo/collectives/engine/set_engine.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <kolo/collectives/algorithms/stages.h>
#include <kolo/collectives/engine/execution.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto kStallInterval = 50ms;
// How many tensors the label of a fused reduction names.
constexpr std::size_t kNamesInLabel = 4;
#ifdef NDEBUG
constexpr bool kCheckOverlap = false;
#else
constexpr bool kCheckOverlap = true;
#endif

std::exception_ptr error_of(Code code, const std::string& text) {
  try {
    throw_error(code, text);
  } catch (...) {
    return std::current_exception();
  }
}

Code code_behind(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return kolo::code_of(exception);
  } catch (...) {
    return Code::unknown;
  }
}

std::string label_of(const EngineOperation& operation) {
  return fmt::format("{} {}", name(operation.request->kind), operation.request->name);
}

std::exception_ptr shut_down_while(const EngineOperation& operation) {
  return std::make_exception_ptr(
      AbortedError("kolo was shut down while {} was pending", operation.request->name));
}

TensorQueue::Clock::duration duration_of(double milliseconds) {
  return std::chrono::duration_cast<TensorQueue::Clock::duration>(
      std::chrono::duration<double, std::milli>(milliseconds));
}

}  // namespace

SetEngine::SetEngine(Setting setting, const EngineOptions& options)
    : setting_(std::move(setting)),
      queue_(setting_.members[setting_.rank], kCheckOverlap),
      trace_(setting_.id, setting_.thread),
      fusion_bytes_(options.fusion_bytes),
      cycle_(duration_of(options.cycle_time.count())),
      negotiator_(
          setting_.rank, setting_.members, options.cache_capacity,
          [this](int to, const std::string& bytes) { setting_.post(to, Message::negotiation, bytes); }),
      stalls_(
          setting_.rank, setting_.members, setting_.hosts,
          {.warning = options.stall_warning, .abort = options.stall_abort},
          [this](int to, const std::string& bytes) { setting_.post(to, Message::stall, bytes); },
          [this](const std::string& name) { return standing_of(name); }),
      fusion_bytes_now_(options.fusion_bytes),
      cycle_ms_now_(options.cycle_time.count()) {
  if (setting_.thread == nullptr) return;
  MutexLock lock(completion_->mutex);
  completion_->hurry = [this] {
    queue_.hurry();
    setting_.thread->wake();
  };
}

// Handles may outlive it.
SetEngine::~SetEngine() {
  MutexLock lock(completion_->mutex);
  completion_->hurry = nullptr;
}

// ---- Callers.

void SetEngine::submit(const OperationPtr& operation) {
  operation->completion = completion_;
  operation->submitted = Clock::now();
  trace_.submitted(*operation);
  if (size() > 1) {
    if (queue_.add(operation)) setting_.thread->wake();
    return;
  }
  if (const auto error = queue_.broken()) std::rethrow_exception(error);
  run_alone(*operation);
  operation->tensors.clear();
  if (operation->request->kind == OpKind::join) operation->numbers = {setting_.members[0]};
  if (operation->request->kind == OpKind::process_set)
    operation->numbers = setting_.make_sets(operation->request->payload);
  ++operations_;
  EngineOperation* const one = operation.get();
  trace_.finished({&one, 1}, nullptr);
  detail::finish({&one, 1}, nullptr);
}

bool SetEngine::submit_again(const OperationPtr& operation, const CallAgain& call) {
  if (size() == 1 || EngineTrace::is_observed()) return false;
  operation->completion = completion_;
  operation->submitted = Clock::now();
  const auto is_first = queue_.add_again(operation, call);
  if (is_first && *is_first) setting_.thread->wake();
  return is_first.has_value();
}

void SetEngine::refuse(const std::string& name, const std::string& text) {
  if (size() == 1) return;
  queue_.refuse(name, text);
  setting_.thread->wake();
}

void SetEngine::wait_until_idle() {
  MutexLock lock(completion_->mutex);
  while (!queue_.empty()) completion_->changed.wait(completion_->mutex);
}

EngineStatistics SetEngine::statistics() const {
  return {.negotiation_messages = messages_,
          .negotiation_bytes = message_bytes_,
          .cache_hits = hits_,
          .cache_misses = misses_,
          .operations = operations_,
          .reductions = reductions_,
          .reduced_tensors = reduced_tensors_,
          .fusion_bytes = fusion_bytes_now_,
          .cycle_ms = cycle_ms_now_,
          .tuned_at = tuned_at_};
}

// ---- The communication thread: from the queue to decisions.

Resident::State SetEngine::advance(Clock::time_point now) {
  const bool more = queue_.take(now, cycle_, taken_);
  bool moved = !taken_.empty() || std::exchange(received_, false);
  take_new();
  if (moved) negotiator_.flush();
  // Carrying out decisions submits nothing by itself, but a round that is over lets the next one begin.
  for (negotiator_.take_decisions(decisions_); !decisions_.empty(); negotiator_.take_decisions(decisions_)) {
    for (auto& decision : decisions_) act(decision);
    negotiator_.flush();
  }
  if (moved) {
    const auto& counts = negotiator_.counts();
    messages_ = counts.messages;
    message_bytes_ = counts.bytes;
    hits_ = counts.hits;
    misses_ = counts.misses;
  }
  if (now - last_look_ >= kStallInterval) look_for_stalls(now);
  if (moved) return Resident::State::advanced;
  if (join_ || negotiator_.has_undecided()) return Resident::State::waiting;
  return more ? Resident::State::resting : Resident::State::idle;
}

void SetEngine::take_new() {
  if (taken_.empty()) return;
  trace_.taken(taken_);
  for (auto& item : taken_) {
    if (item.refused) {
      negotiator_.refuse(item.refused->name, item.refused->text);
    } else if (item.operation->request->kind == OpKind::join) {
      join_ = item.operation;
      negotiator_.join(queue_.unnamed_calls());
    } else if (!item.operation->done) {  // it may have ended with all others
      RequestPtr request = item.operation->request;
      negotiator_.submit(std::move(request), std::move(item.operation));
    }
  }
  taken_.clear();
}

void SetEngine::receive(Clock::time_point now, int from, Message kind, std::string_view bytes) {
  received_ = true;
  if (kind == Message::stall) stalls_.receive(now, from, bytes);
  else negotiator_.receive(from, bytes);
}

void SetEngine::act(Decision& decision) {
  switch (decision.kind) {
    case Decision::Kind::execute: begin(decision); break;
    case Decision::Kind::end_of_batch: reduce_agreed(); break;
    case Decision::Kind::fail:
      stalls_.decided(decision.name);
      if (decision.operation && !decision.operation->done)
        finish(decision.operation, error_of(decision.code, decision.text));
      break;
    case Decision::Kind::all_joined:
      if (!join_) break;
      queue_.count_unnamed_from(decision.unnamed);
      join_->numbers = {decision.rank};
      finish(std::exchange(join_, nullptr), nullptr);
      break;
    case Decision::Kind::gone:
      if (!closing_)
        break_off(std::make_exception_ptr(UnavailableError("rank {} on {} is gone (exited)", decision.rank,
                                                           setting_.hosts[decision.rank])));
      break;
    case Decision::Kind::end: break_off(error_of(decision.code, decision.text)); break;
    case Decision::Kind::broken: {
      const auto error = error_of(decision.code, decision.text);
      break_off(error);
      setting_.thread->fail(id(), error);
      break;
    }
    case Decision::Kind::tune: apply(decision.tuning); break;
  }
}

void SetEngine::apply(const Tuning& tuning) {
  fusion_bytes_ = tuning.fusion_bytes;
  cycle_ = duration_of(tuning.cycle_ms);
  fusion_bytes_now_ = tuning.fusion_bytes;
  cycle_ms_now_ = tuning.cycle_ms;
  tuned_at_ = sequence_;
}

// ---- Executions.

int SetEngine::root_of(const Request& request) const {
  const auto found = std::find(members().begin(), members().end(), request.root);
  return static_cast<int>(found - members().begin());
}

void SetEngine::begin(Decision& decision) {
  const Request& request = *decision.request;
  stalls_.decided(request.name);
  const std::int64_t sequence = sequence_++;
  // The memory may be gone; the others see that this rank is, or have broken off at the same place.
  if (closing_ || broken_) return;
  if (EngineOperation* const operation = decision.operation.get()) {
    operation->sequence = sequence;
    trace_.negotiated(*operation);
  }
  Agreed agreed{std::move(decision.request), std::move(decision.rows), decision.contributors,
                std::move(decision.operation)};
  if (request.kind == OpKind::allreduce || request.kind == OpKind::grouped_allreduce)
    agreed_reductions_.push_back(std::move(agreed));
  else begin_alone(std::move(agreed));
}

void SetEngine::begin_alone(Agreed agreed) {
  const auto batch = std::make_shared<const std::vector<Agreed>>(1, std::move(agreed));
  const Agreed& one = batch->front();
  const Request& request = *one.request;
  const WorkPtr work = std::make_shared<Work>();
  work->bytes = request.bytes();
  work->label = fmt::format("{} {}", name(request.kind), request.name);
  work->agreed = batch;
  if (one.operation) work->operations.push_back(one.operation.get());
  if (one.operation) one.operation->parts = 1;
  if (request.kind == OpKind::process_set) {
    // Making a communicator waits for its ranks: all of them are here then.
    work->collective = in_stages({[this] { return setting_.communicator->barrier(); },
                                  [this, operation = one.operation]() -> std::shared_ptr<Collective> {
                                    operation->numbers = setting_.make_sets(operation->request->payload);
                                    return nullptr;
                                  }});
  } else {
    const int root = request.root < 0 ? 0 : root_of(request);
    work->collective = execute(*setting_.communicator, members(), one, root, *work);
  }
  send(work);
}

void SetEngine::reduce_agreed() {
  trace_.started();
  if (agreed_reductions_.empty()) return;
  const auto expected = agreed_reductions_.size();
  const auto batch = std::make_shared<const std::vector<Agreed>>(std::exchange(agreed_reductions_, {}));
  agreed_reductions_.reserve(expected);  // the next step's are as many
  std::vector<AgreedReduction> reductions;
  reductions.reserve(batch->size());
  for (const auto& agreed : *batch)
    reductions.push_back({agreed.request.get(), agreed.contributors, agreed.contributors == size()});
  std::vector<WorkPtr> works;
  for (const auto& run : fuse(reductions, fusion_bytes_)) works.push_back(reduction_of(run, batch));
  reductions_ += static_cast<std::int64_t>(works.size());
  std::vector<EngineOperation*> empty;  // of elements
  for (const auto& agreed : *batch)
    if (agreed.operation && agreed.operation->parts == 0) empty.push_back(agreed.operation.get());
  for (const auto& work : works) send(work);
  operations_ += static_cast<std::int64_t>(empty.size());
  finish(empty, nullptr);
}

WorkPtr SetEngine::reduction_of(const std::vector<Piece>& run, const AgreedBatch& batch) {
  WorkPtr work = std::make_shared<Work>();
  work->agreed = batch;
  work->operations.reserve(run.size());
  int last = -1;
  for (const auto& piece : run) {
    work->bytes += piece.bytes;
    if (std::exchange(last, piece.operation) == piece.operation) continue;
    const Agreed& agreed = (*batch)[piece.operation];
    if (work->label.empty()) work->label = name(agreed.request->kind);
    if (work->operations.size() < kNamesInLabel)
      work->label += (work->operations.empty() ? " " : ", ") + agreed.request->name;
    if (!agreed.operation) continue;
    ++agreed.operation->parts;
    work->operations.push_back(agreed.operation.get());
  }
  if (work->operations.size() > kNamesInLabel)
    work->label += fmt::format(" and {} more", work->operations.size() - kNamesInLabel);
  work->collective =
      reduce_run(*setting_.communicator, run, batch, run.size() > 1 ? fusion_buffer() : nullptr);
  reduced_tensors_ += static_cast<std::int64_t>(run.size());
  return work;
}

// Allocated once. With other fusion bytes, see tune(), once more.
std::shared_ptr<Buffer> SetEngine::fusion_buffer() {
  const auto bytes = static_cast<std::size_t>(fusion_bytes_);
  if (!fusion_buffer_ || fusion_buffer_->bytes() < bytes)
    fusion_buffer_ = std::make_shared<Buffer>(*setting_.allocator, bytes);
  return fusion_buffer_;
}

void SetEngine::send(const WorkPtr& work) {
  Submission submission{.channel = setting_.channel,
                        .ticket = ticket_++,
                        .operation = trace_.phases_of(work->collective, work->operations),
                        .label = work->label,
                        .done = [this, work](std::exception_ptr error) { finished(*work, error); }};
  if (!work->operations.empty()) {
    const Request& request = *work->operations.front()->request;
    submission.details.kind = name(request.kind);
    submission.details.process_set = setting_.id;
    submission.details.bytes = work->bytes;
    if (!request.tensors.empty()) submission.details.dtype = request.tensors[0].dtype;
  }
  setting_.thread->submit(std::move(submission));
}

void SetEngine::finished(Work& work, const std::exception_ptr& error) {
  if (error && closing_) {
    for (EngineOperation* const operation : work.operations)
      finish({&operation, 1}, shut_down_while(*operation));
    return;
  }
  if (error) {  // of the communication: what follows cannot work either, and the others may wait for this
                // rank
    finish(work.operations, error);
    fail(error);
    return;
  }
  auto& complete = work.operations;
  std::erase_if(complete, [](EngineOperation* operation) { return --operation->parts > 0; });
  operations_ += static_cast<std::int64_t>(complete.size());
  work.collective = nullptr;  // it may refer to the operations' memory
  // Once the caller knows of the end, the allocator of what it gave may be gone.
  for (EngineOperation* const operation : complete) operation->tensors.clear();
  finish(complete, work.error);
}

void SetEngine::finish(std::span<EngineOperation* const> operations, const std::exception_ptr& error) {
  if (operations.empty()) return;
  trace_.finished(operations, error);
  queue_.finish(operations, error);
}

void SetEngine::finish(const OperationPtr& operation, const std::exception_ptr& error) {
  EngineOperation* const one = operation.get();
  finish({&one, 1}, error);
}

// ---- Ends.

// What is being executed ends by itself, or by the watchdog.
void SetEngine::break_off(const std::exception_ptr& error) {
  if (std::exchange(broken_, true)) return;
  queue_.break_off(error);
  for (const auto& operation : queue_.pending())
    if (operation->sequence < 0) finish(operation, error);
  negotiator_.drop_operations();
  join_ = nullptr;
}

void SetEngine::fail(const std::exception_ptr& error) {
  if (!broken_)
    negotiator_.give_up(code_behind(error), fmt::format("rank {}: {}", members()[rank()], message_of(error)));
  received_ = true;  // to be flushed
  break_off(error);
  setting_.thread->fail(id(), error);
  // What had been agreed, but could not be started.
  for (const auto& operation : queue_.pending()) finish(operation, error);
}

void SetEngine::close() {
  queue_.break_off(
      std::make_exception_ptr(FailedPreconditionError("kolo is not initialised; call kolo::init() first")));
  for (const auto& operation : queue_.pending()) finish(operation, shut_down_while(*operation));
  negotiator_.drop_operations();
  join_ = nullptr;
  {
    MutexLock lock(completion_->mutex);
    completion_->hurry = nullptr;
  }
}

Standing SetEngine::standing_of(const std::string& name) const {
  if (closing_) return Standing::left;
  return negotiator_.has_joined() || negotiator_.is_undecided(name) ? Standing::ready : Standing::missing;
}

void SetEngine::look_for_stalls(Clock::time_point now) {
  last_look_ = now;
  if (size() == 1) return;
  if (setting_.thread->watchdog()->has_anyone_left()) stalls_.someone_has_left();
  std::vector<StallReporter::Waiting> waiting;
  if (!broken_ && !closing_ && negotiator_.has_undecided())
    for (const auto& operation : queue_.pending())
      if (stalls_.is_late(now, operation->submitted) && negotiator_.is_undecided(operation->request->name))
        waiting.push_back(
            {operation->request->name, label_of(*operation), stalls_.all(), operation->submitted});
  // As long as it takes, but not for a rank that has left.
  if (join_ && stalls_.has_someone_left())
    waiting.push_back({join_->request->name, label_of(*join_), stalls_.all(), join_->submitted, true});
  for (const auto& ruling : stalls_.poll(now, waiting)) {
    received_ = true;  // to be flushed
    if (ruling.alone) break_off(error_of(Code::deadline_exceeded, ruling.ended_because));
    else if (ruling.left >= 0) negotiator_.gone(ruling.left);
    else negotiator_.end(Code::deadline_exceeded, ruling.ended_because);
  }
}

}  // namespace kolo::detail
