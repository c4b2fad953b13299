#include <kolo/collectives/schedule/row_gather.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <kolo/collectives/reduce/reduce.h>

namespace kolo::detail {

RowGather::RowGather(int slot, std::shared_ptr<StepState> state, std::shared_ptr<Communicator> communicator,
                     RowGatherSpec spec, bool average, std::string label)
    : ScheduledOperation(std::move(label)),
      slot_(slot),
      state_(std::move(state)),
      communicator_(std::move(communicator)),
      spec_(std::move(spec)),
      average_(average),
      headers_(static_cast<std::size_t>(communicator_->size())),
      reasons_(*communicator_) {
  std::vector<std::span<std::byte>> blocks;
  for (Header& header : headers_) blocks.push_back(std::as_writable_bytes(std::span(&header, 1)));
  counting_ = communicator_->allgather(blocks);
}

void RowGather::set_own(const Tensor& values, const Tensor& indices) {
  own_values_ = values;
  own_indices_ = indices;
}

OperationDetails RowGather::details() const {
  return {.kind = "allgather", .dtype = spec_.dtype, .bytes = static_cast<std::int64_t>(own_values_.bytes())};
}

void RowGather::start() {
  StepFlags flags;
  if (!state_->begin_bucket(slot_, flags)) {
    stage_ = Stage::skipped;
    return;
  }
  headers_[static_cast<std::size_t>(communicator_->rank())] = {
      .rows = own_indices_ ? own_indices_.elements() : 0,
      .stop = flags.stop,
      .end_of_data = flags.end_of_data,
      .failed = flags.failed,
      .save = flags.save};
  stage_ = Stage::counting;
  counting_->start();
}

StepFlags RowGather::received_flags() const {
  StepFlags flags;
  for (const Header& header : headers_) {
    flags.stop |= header.stop != 0;
    flags.end_of_data |= header.end_of_data != 0;
    flags.failed |= header.failed != 0;
    flags.save |= header.save != 0;
  }
  return flags;
}

std::int64_t RowGather::all_rows() const {
  std::int64_t rows = 0;
  for (const Header& header : headers_) rows += header.rows;
  return rows;
}

std::int64_t RowGather::row_bytes() const {
  std::int64_t elements = 1;
  for (int axis = 1; axis < spec_.dense_shape.rank(); ++axis) elements *= spec_.dense_shape.dim(axis);
  return elements * static_cast<std::int64_t>(size_of(spec_.dtype));
}

// The same on all ranks: all know how many rows there are.
bool RowGather::whole_is_smaller() const {
  const auto index_bytes = static_cast<std::int64_t>(size_of(spec_.index_dtype));
  return all_rows() * (row_bytes() + index_bytes) > spec_.dense_shape.dim(0) * (row_bytes() + 1);
}

void RowGather::start_whole() {
  if (!whole_) {
    whole_ = Tensor(spec_.dtype, spec_.dense_shape);
    touched_ = Tensor(DType::u8, {spec_.dense_shape.dim(0)});
    whole_sum_ = communicator_->allreduce({whole_.raw(), whole_.elements(), spec_.dtype},
                                          average_ ? ReduceOp::average : ReduceOp::sum);
    touched_max_ = communicator_->allreduce({touched_.raw(), touched_.elements(), DType::u8}, ReduceOp::max);
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

void RowGather::take_touched_rows() {
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

void RowGather::ask_why() {
  reasons_.set_own(state_->own_reason());
  reasons_.start();
}

void RowGather::start_values() {
  const std::int64_t rows = all_rows();
  values_ = Tensor(spec_.dtype, spec_.dense_shape.with_dim(0, rows));
  indices_ = Tensor(spec_.index_dtype, {rows});
  start_gather(values_, own_values_);
}

void RowGather::start_gather(const Tensor& all, const Tensor& own) {
  const std::int64_t rows = all_rows();
  const std::size_t row_bytes = rows == 0 ? 0 : all.bytes() / static_cast<std::size_t>(rows);
  std::vector<std::span<std::byte>> blocks;
  std::byte* next = all.raw();
  for (const Header& header : headers_) {
    blocks.emplace_back(next, row_bytes * static_cast<std::size_t>(header.rows));
    next += blocks.back().size();
  }
  const std::span<std::byte> mine = blocks[static_cast<std::size_t>(communicator_->rank())];
  if (!mine.empty()) {
    std::memcpy(mine.data(), own.raw(), mine.size());
    if (average_ && is_floating(all.dtype()))
      divide(all.dtype(), mine.data(), static_cast<std::int64_t>(mine.size() / size_of(all.dtype())),
             communicator_->size());
  }
  gathering_ = communicator_->allgather(blocks);
  gathering_->start();
}

Progress RowGather::progress() {
  switch (stage_) {
    case Stage::skipped: return Progress::finished;
    case Stage::counting: {
      const Progress progress = counting_->progress();
      if (progress != Progress::finished) return progress;
      const StepFlags flags = received_flags();
      state_->received(slot_, flags);
      if (flags.is_void()) {
        ask_why();
        stage_ = Stage::asking;
      } else if (whole_is_smaller()) {
        start_whole();
        stage_ = Stage::whole;
      } else {
        start_values();
        stage_ = Stage::values;
      }
      return Progress::advanced;
    }
    case Stage::values: {
      const Progress progress = gathering_->progress();
      if (progress != Progress::finished) return progress;
      start_gather(indices_, own_indices_);
      stage_ = Stage::indices;
      return Progress::advanced;
    }
    case Stage::indices: {
      const Progress progress = gathering_->progress();
      if (progress == Progress::finished) forget_own();
      return progress;
    }
    case Stage::whole: {
      const Progress progress = whole_sum_->progress();
      if (progress != Progress::finished) return progress;
      touched_max_->start();
      stage_ = Stage::touched;
      return Progress::advanced;
    }
    case Stage::touched: {
      const Progress progress = touched_max_->progress();
      if (progress != Progress::finished) return progress;
      take_touched_rows();
      forget_own();
      return Progress::finished;
    }
    case Stage::asking: {
      const Progress progress = reasons_.progress();
      if (progress != Progress::finished) return progress;
      state_->set_reasons(reasons_.texts());
      forget_own();
      return Progress::finished;
    }
  }
  return Progress::none;
}

}  // namespace kolo::detail
