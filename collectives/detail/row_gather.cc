#include <kolo/collectives/detail/row_gather.h>

#include <cstring>
#include <utility>

#include <kolo/collectives/reduce.h>

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
  return {
      .kind = "allgather", .dtype = spec_.dtype, .bytes = static_cast<std::int64_t>(own_values_.bytes())};
}

void RowGather::start() {
  StepFlags flags;
  if (!state_->begin_bucket(slot_, flags)) {
    stage_ = Stage::skipped;
    return;
  }
  headers_[static_cast<std::size_t>(communicator_->rank())] = {
      .rows = own_indices_.raw() == nullptr ? 0 : own_indices_.elements(),
      .stop = flags.stop,
      .end_of_data = flags.end_of_data,
      .failed = flags.failed};
  stage_ = Stage::counting;
  counting_->start();
}

StepFlags RowGather::received_flags() const {
  StepFlags flags;
  for (const Header& header : headers_) {
    flags.stop |= header.stop != 0;
    flags.end_of_data |= header.end_of_data != 0;
    flags.failed |= header.failed != 0;
  }
  return flags;
}

void RowGather::start_values() {
  std::int64_t rows = 0;
  for (const Header& header : headers_) rows += header.rows;
  values_ = Tensor(spec_.dtype, spec_.dense_shape.with_dim(0, rows));
  indices_ = Tensor(spec_.index_dtype, {rows});
  start_gather(values_, own_values_);
}

void RowGather::start_gather(const Tensor& all, const Tensor& own) {
  std::int64_t rows = 0;
  for (const Header& header : headers_) rows += header.rows;
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
        reasons_.set_own(state_->own_reason());
        reasons_.start();
        stage_ = Stage::asking;
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
      if (progress == Progress::finished) own_values_ = own_indices_ = Tensor();
      return progress;
    }
    case Stage::asking: {
      const Progress progress = reasons_.progress();
      if (progress == Progress::finished) {
        state_->set_reasons(reasons_.texts());
        own_values_ = own_indices_ = Tensor();
      }
      return progress;
    }
  }
  return Progress::none;
}

}  // namespace kolo::detail
