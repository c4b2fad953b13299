#include <kolo/collectives/schedule/factors_work.h>

#include <algorithm>
#include <utility>

namespace kolo::detail {
namespace {

// Not in node memory, where no buffer begins at 0.
constexpr std::int64_t kOrdinary = 0;

}  // namespace

FactorsWork::FactorsWork(int slot, std::shared_ptr<StepSlots> slots, std::shared_ptr<Communicator> ranks,
                         NodeView memory, std::string label)
    : SlotWork(slot, std::move(slots), std::move(ranks), std::move(label)),
      memory_(std::move(memory)),
      headers_(static_cast<std::size_t>(communicator().size())) {
  std::vector<std::span<std::byte>> blocks;
  for (Header& header : headers_) blocks.push_back(std::as_writable_bytes(std::span(&header, 1)));
  exchange_ = communicator().allgather(blocks);
}

OperationDetails FactorsWork::details() const {
  return {.kind = "allgather", .dtype = DType::u8, .bytes = static_cast<std::int64_t>(sizeof(Header))};
}

void FactorsWork::start_voting(const StepFlags& own) {
  Header& header = headers_[static_cast<std::size_t>(communicator().rank())];
  header.use = static_cast<std::int64_t>(own_.use);
  header.rows = own_.rows;
  header.offset = kOrdinary;
  if (own_.memory != nullptr)
    header.offset = memory_.own()
                        .offset_of(own_.memory->data(), static_cast<std::int64_t>(own_.memory->bytes()))
                        .value_or(kOrdinary);
  write_flags(header.flags, own);
  memory_of_ranks_.clear();
  exchange_->start();
}

StepFlags FactorsWork::votes() const {
  StepFlags flags;
  for (const Header& header : headers_) flags.add(read_flags(header.flags));
  return flags;
}

bool FactorsWork::start_rest() {
  const Header& first = headers_.front();
  const bool all_want_it =
      first.use != static_cast<std::int64_t>(FactorsUse::none) &&
      std::all_of(headers_.begin(), headers_.end(), [&](const Header& header) {
        return header.use == first.use && header.rows == first.rows && header.offset != kOrdinary;
      });
  for (int rank = 0; all_want_it && rank < communicator().size(); ++rank)
    memory_of_ranks_.push_back(memory_.begin(rank) + headers_[static_cast<std::size_t>(rank)].offset);
  return false;
}

}  // namespace kolo::detail
