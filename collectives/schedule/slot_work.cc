#include <kolo/collectives/schedule/slot_work.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <kolo/collectives/algorithms/stages.h>
#include <kolo/collectives/reduce/reduce.h>
#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

// The flags behind the data: a sum that every rank gets. They come last, so that what they let through is
// there.
std::shared_ptr<Collective> with_flags(Communicator& communicator, const BucketMemory& memory,
                                       std::vector<std::shared_ptr<Collective>> operations) {
  operations.push_back(communicator.allreduce(memory.flags(), ReduceOp::sum));
  return in_sequence(std::move(operations));
}

}  // namespace

SlotWork::SlotWork(int slot, std::shared_ptr<StepSlots> slots, std::shared_ptr<Communicator> communicator,
                   std::string label)
    : slot_(slot),
      slots_(std::move(slots)),
      communicator_(std::move(communicator)),
      label_(std::move(label)),
      reasons_(*communicator_) {}

std::string SlotWork::described(const std::string& text) const {
  return fmt::format("step {}, {}: {}", slots_->step(), label_, text);
}

void SlotWork::start() {
  StepFlags flags;
  stage_ = slots_->begin_slot(slot_, flags) ? Stage::voting : Stage::skipped;
  if (stage_ == Stage::voting) start_voting(flags);
}

Progress SlotWork::progress() {
  Progress progress = Progress::finished;
  switch (stage_) {
    case Stage::skipped: break;
    case Stage::voting: {
      progress = advance_voting();
      if (progress != Progress::finished) return progress;
      const StepFlags flags = votes();
      slots_->received(slot_, flags);
      if (flags.voids_step()) {
        reasons_.set_own(slots_->own_reason());
        reasons_.start();
        stage_ = Stage::asking;
        return Progress::advanced;
      }
      if (!start_rest()) break;
      stage_ = Stage::rest;
      return Progress::advanced;
    }
    case Stage::rest:
      progress = advance_rest();
      if (progress != Progress::finished) return progress;
      break;
    case Stage::asking:
      progress = reasons_.progress();
      if (progress != Progress::finished) return progress;
      slots_->set_reasons(reasons_.texts());
      break;
  }
  finish();
  return Progress::finished;
}

const char* SlotWork::phase() const {
  if (stage_ == Stage::asking) return "reasons";
  return stage_ == Stage::voting ? phase_of_work() : nullptr;
}

BucketExchange reduced(Communicator& communicator, const BucketMemory& memory, const Reduction& reduction,
                       std::span<const TypedBuffer> tensors) {
  constexpr const char* kKind = "allreduce";
  if (reduction.op != ReduceOp::adasum) {
    const TypedBuffer all{memory.buffer->data(), memory.elements + static_cast<std::int64_t>(kStepFlags),
                          memory.dtype};
    return {communicator.allreduce(all, reduction), kKind};
  }
  std::vector<std::shared_ptr<Collective>> each;
  for (const TypedBuffer& tensor : tensors) each.push_back(communicator.allreduce(tensor, ReduceOp::adasum));
  return {with_flags(communicator, memory, std::move(each)), kKind};
}

BucketExchange scattered(Communicator& communicator, const BucketMemory& memory,
                         std::span<const std::int64_t> counts, const Reduction& reduction) {
  auto own = communicator.reduce_scatter(memory.data(), counts, reduction);
  return {with_flags(communicator, memory, {std::move(own)}), "reduce_scatter"};
}

BucketExchange gathered(Communicator& communicator, const BucketMemory& memory,
                        std::span<const std::int64_t> counts) {
  std::vector<std::span<std::byte>> blocks;
  std::byte* next = memory.buffer->data();
  for (const std::int64_t count : counts) {
    blocks.emplace_back(next, static_cast<std::size_t>(count) * size_of(memory.dtype));
    next += blocks.back().size();
  }
  return {with_flags(communicator, memory, {communicator.allgather(blocks)}), "allgather"};
}

BucketWork::BucketWork(int slot, std::shared_ptr<StepSlots> slots, std::shared_ptr<Communicator> communicator,
                       BucketMemory memory, BucketExchange exchange, std::string label)
    : SlotWork(slot, std::move(slots), std::move(communicator), std::move(label)),
      memory_(std::move(memory)),
      exchange_(std::move(exchange)),
      in_place_(exchange_.collective->read_in_place()) {}

OperationDetails BucketWork::details() const {
  return {.kind = exchange_.kind,
          .dtype = memory_.dtype,
          .bytes = memory_.elements * static_cast<std::int64_t>(size_of(memory_.dtype))};
}

void BucketWork::start_voting(const StepFlags& own) {
  write_flags(memory_.dtype, memory_.flags().bytes, own);
  exchange_.collective->start();
}

// What a GPU's library says of an error names neither rank nor step.
Progress BucketWork::advance_voting() {
  if (memory_.host_flags == nullptr) return exchange_.collective->progress();
  try {
    return exchange_.collective->progress();
  } catch (const Error& error) {
    throw_error(error.code(), described(error.what()));
  }
}
bool BucketWork::abort(const std::exception_ptr& error) {
  return is_voting() && exchange_.collective->abort(error);
}

StepFlags BucketWork::votes() const {
  const TypedBuffer flags = memory_.flags();
  if (elements_of_ranks().empty()) return read_flags(flags.dtype, flags.bytes);
  StepFlags all;
  for (const std::byte* elements : elements_of_ranks())
    all.add(read_flags(flags.dtype, elements + (flags.bytes - memory_.data().bytes)));
  return all;
}

bool BucketWork::start_rest() {
  if (!elements_of_ranks().empty()) slots().set_read();
  return false;
}

RowsWork::RowsWork(int slot, std::shared_ptr<StepSlots> slots, std::shared_ptr<Communicator> ranks,
                   RowGatherSpec spec, bool average, std::string label)
    : SlotWork(slot, std::move(slots), std::move(ranks), std::move(label)),
      spec_(std::move(spec)),
      average_(average),
      headers_(static_cast<std::size_t>(communicator().size())) {
  std::vector<std::span<std::byte>> blocks;
  for (Header& header : headers_) blocks.push_back(std::as_writable_bytes(std::span(&header, 1)));
  counting_ = communicator().allgather(blocks);
}

void RowsWork::set_own(const Tensor& values, const Tensor& indices) {
  own_values_ = values;
  own_indices_ = indices;
}

OperationDetails RowsWork::details() const {
  return {.kind = "allgather", .dtype = spec_.dtype, .bytes = static_cast<std::int64_t>(own_values_.bytes())};
}

void RowsWork::start_voting(const StepFlags& own) {
  Header& header = headers_[static_cast<std::size_t>(communicator().rank())];
  header.rows = own_indices_ ? own_indices_.elements() : 0;
  write_flags(header.flags, own);
  counting_->start();
}

StepFlags RowsWork::votes() const {
  StepFlags flags;
  for (const Header& header : headers_) flags.add(read_flags(header.flags));
  return flags;
}

std::int64_t RowsWork::all_rows() const {
  std::int64_t rows = 0;
  for (const Header& header : headers_) rows += header.rows;
  return rows;
}

std::int64_t RowsWork::row_bytes() const {
  std::int64_t elements = 1;
  for (int axis = 1; axis < spec_.dense_shape.rank(); ++axis) elements *= spec_.dense_shape.dim(axis);
  return elements * static_cast<std::int64_t>(size_of(spec_.dtype));
}

// The same on all ranks: all know how many rows there are.
bool RowsWork::whole_is_smaller() const {
  const auto index_bytes = static_cast<std::int64_t>(size_of(spec_.index_dtype));
  return all_rows() * (row_bytes() + index_bytes) > spec_.dense_shape.dim(0) * (row_bytes() + 1);
}

void RowsWork::start_whole() {
  if (!whole_) {
    whole_ = Tensor(spec_.dtype, spec_.dense_shape);
    touched_ = Tensor(DType::u8, {spec_.dense_shape.dim(0)});
    whole_sum_ = communicator().allreduce({whole_.raw(), whole_.elements(), spec_.dtype},
                                          average_ ? ReduceOp::average : ReduceOp::sum);
    touched_max_ = communicator().allreduce({touched_.raw(), touched_.elements(), DType::u8}, ReduceOp::max);
  }
  std::memset(whole_.raw(), 0, whole_.bytes());
  std::memset(touched_.raw(), 0, touched_.bytes());
  const std::int64_t bytes = row_bytes(), elements = bytes / static_cast<std::int64_t>(size_of(spec_.dtype));
  for (std::int64_t i = 0; i < (own_indices_ ? own_indices_.elements() : 0); ++i) {
    const std::int64_t row = spec_.index_dtype == DType::i32 ? own_indices_.data<std::int32_t>()[i]
                                                             : own_indices_.data<std::int64_t>()[i];
    reduce(ReduceOp::sum, spec_.dtype, whole_.raw() + row * bytes, own_values_.raw() + i * bytes, elements);
    touched_.data<std::uint8_t>()[row] = 1;
  }
  whole_sum_->start();
}

void RowsWork::take_touched_rows() {
  const auto touched = touched_.span<std::uint8_t>();
  const std::int64_t rows = std::count(touched.begin(), touched.end(), std::uint8_t{1}), bytes = row_bytes();
  values_ = Tensor(spec_.dtype, spec_.dense_shape.with_dim(0, rows));
  indices_ = Tensor(spec_.index_dtype, {rows});
  std::int64_t next = 0;
  for (std::int64_t row = 0; row < touched_.elements(); ++row) {
    if (touched[static_cast<std::size_t>(row)] == 0) continue;
    std::memcpy(values_.raw() + next * bytes, whole_.raw() + row * bytes, static_cast<std::size_t>(bytes));
    if (spec_.index_dtype == DType::i32)
      indices_.data<std::int32_t>()[next++] = static_cast<std::int32_t>(row);
    else indices_.data<std::int64_t>()[next++] = row;
  }
}

void RowsWork::start_values() {
  const std::int64_t rows = all_rows();
  values_ = Tensor(spec_.dtype, spec_.dense_shape.with_dim(0, rows));
  indices_ = Tensor(spec_.index_dtype, {rows});
  start_gather(values_, own_values_);
}

void RowsWork::start_gather(const Tensor& all, const Tensor& own) {
  const std::int64_t rows = all_rows();
  const std::size_t row_bytes = rows == 0 ? 0 : all.bytes() / static_cast<std::size_t>(rows);
  std::vector<std::span<std::byte>> blocks;
  std::byte* next = all.raw();
  for (const Header& header : headers_) {
    blocks.emplace_back(next, row_bytes * static_cast<std::size_t>(header.rows));
    next += blocks.back().size();
  }
  const std::span<std::byte> mine = blocks[static_cast<std::size_t>(communicator().rank())];
  if (!mine.empty()) {
    std::memcpy(mine.data(), own.raw(), mine.size());
    if (average_ && is_floating(all.dtype()))
      divide(all.dtype(), mine.data(), static_cast<std::int64_t>(mine.size() / size_of(all.dtype())),
             communicator().size());
  }
  gathering_ = communicator().allgather(blocks);
  gathering_->start();
}

bool RowsWork::start_rest() {
  if (whole_is_smaller()) start_whole();
  else start_values();
  part_ = whole_is_smaller() ? Part::whole : Part::values;
  return true;
}

Progress RowsWork::advance_rest() {
  Collective& under_way = part_ == Part::whole     ? *whole_sum_
                          : part_ == Part::touched ? *touched_max_
                                                   : *gathering_;
  const Progress progress = under_way.progress();
  if (progress != Progress::finished) return progress;
  switch (part_) {
    case Part::values:
      start_gather(indices_, own_indices_);
      part_ = Part::indices;
      return Progress::advanced;
    case Part::whole:
      touched_max_->start();
      part_ = Part::touched;
      return Progress::advanced;
    case Part::touched: take_touched_rows(); break;
    case Part::indices: break;
  }
  return Progress::finished;
}

}  // namespace kolo::detail
