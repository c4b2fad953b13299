#include <kolo/collectives/engine/fusion.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <kolo/collectives/reduce/reduce.h>

namespace kolo::detail {
namespace {

struct Run {
  const Request* request;
  DType dtype;
  int contributors;
  std::int64_t bytes;
  std::size_t place;  // in the list of runs
};

bool fits(const Run& run, const AgreedReduction& reduction, DType dtype) {
  const Request& request = *reduction.request;
  return run.dtype == dtype && run.contributors == reduction.contributors &&
         run.request->reduction == request.reduction &&
         run.request->average_over_all == request.average_over_all && run.request->device == request.device;
}

}  // namespace

std::vector<std::vector<Piece>> fuse(const std::vector<AgreedReduction>& reductions,
                                     std::int64_t fusion_bytes) {
  std::vector<std::vector<Piece>> runs;
  std::vector<Run> open;
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    const Request& request = *reductions[i].request;
    for (std::size_t t = 0; t < request.tensors.size(); ++t) {
      const Piece piece{static_cast<int>(i), static_cast<int>(t), request.tensors[t].bytes()};
      if (piece.bytes == 0) continue;
      const DType dtype = request.tensors[t].dtype;
      if (request.reduction.op == ReduceOp::adasum && !reductions[i].by_all) {
        runs.push_back({piece});
        continue;
      }
      const auto run = std::find_if(open.begin(), open.end(),
                                    [&](const Run& known) { return fits(known, reductions[i], dtype); });
      if (run != open.end() && run->bytes + piece.bytes <= fusion_bytes) {
        runs[run->place].push_back(piece);
        run->bytes += piece.bytes;
        continue;
      }
      runs.push_back({piece});
      if (piece.bytes >= fusion_bytes) continue;
      const Run begun{&request, dtype, reductions[i].contributors, piece.bytes, runs.size() - 1};
      if (run != open.end()) *run = begun;
      else open.push_back(begun);
    }
  }
  return runs;
}

namespace {

// Copied without a look at other operations of the thread.
constexpr std::int64_t kBytesAtATime = std::int64_t{1} << 20;

class ReduceRun final : public Collective {
 public:
  ReduceRun(Communicator& communicator, const std::vector<Piece>& run, AgreedBatch batch,
            std::shared_ptr<Buffer> memory)
      : communicator_(communicator), memory_(std::move(memory)), agreed_(std::move(batch)) {
    const std::vector<Agreed>& agreed = *agreed_;
    const Agreed& first = agreed[run[0].operation];
    reduction_ = first.request->reduction;
    const DType dtype = first.request->tensors[run[0].tensor].dtype;
    const auto element_bytes = static_cast<std::int64_t>(size_of(dtype));
    if (!first.request->average_over_all) contributors_.count = first.contributors;
    parts_.reserve(run.size());
    for (const auto& piece : run) {
      const Agreed& one = agreed[piece.operation];
      std::byte* const bytes = one.operation ? one.operation->buffers[piece.tensor].bytes : nullptr;
      contributors_.own = contributors_.own && bytes != nullptr;
      parts_.push_back({bytes, piece.bytes / element_bytes, dtype});
      elements_ += parts_.back().elements;
    }
    in_place_ = parts_.size() == 1 && parts_[0].bytes != nullptr;
    if (!in_place_ && !memory_)
      memory_ =
          std::make_shared<Buffer>(cpu_allocator(), static_cast<std::size_t>(elements_ * element_bytes));
    whole_ = {in_place_ ? parts_[0].bytes : memory_->data(), elements_, dtype};
  }

  void start() override { begin(in_place_ ? Stage::prepare : Stage::pack); }

  Progress progress() override {
    switch (stage_) {
      case Stage::pack:
        if (copy_some(true)) begin(Stage::prepare);
        return Progress::advanced;
      case Stage::prepare:
        allreduce_ = communicator_.allreduce(whole_, reduction_, tensor_elements(), contributors_);
        allreduce_->start();
        begin(Stage::reduce);
        return Progress::advanced;
      case Stage::reduce: {
        const Progress progress = allreduce_->progress();
        if (progress != Progress::finished) return progress;
        if (in_place_) return Progress::finished;
        begin(Stage::unpack);
        return Progress::advanced;
      }
      case Stage::unpack: return copy_some(false) ? Progress::finished : Progress::advanced;
    }
    return Progress::none;
  }

  const char* phase() const override {
    if (stage_ == Stage::pack) return "pack";
    if (stage_ == Stage::unpack) return "unpack";
    const char* const inner = allreduce_ ? allreduce_->phase() : nullptr;
    return inner != nullptr ? inner : "reduce";
  }

 private:
  enum class Stage { pack, prepare, reduce, unpack };

  void begin(Stage stage) {
    stage_ = stage;
    next_ = 0;
    place_ = memory_ ? memory_->data() : nullptr;
  }

  // For Adasum, which takes each by itself.
  std::vector<std::int64_t> tensor_elements() const {
    std::vector<std::int64_t> elements;
    if (reduction_.op == ReduceOp::adasum)
      for (const auto& part : parts_) elements.push_back(part.elements);
    return elements;
  }

  // True when all parts are where they belong.
  bool copy_some(bool in) {
    for (std::int64_t copied = 0; next_ < parts_.size() && copied < kBytesAtATime; ++next_) {
      const TypedBuffer& part = parts_[next_];
      const auto bytes = part.elements * static_cast<std::int64_t>(size_of(part.dtype));
      if (part.bytes == nullptr) {
        if (in) fill_neutral(reduction_.op, {place_, part.elements, part.dtype});
      } else if (in) {
        std::memcpy(place_, part.bytes, static_cast<std::size_t>(bytes));
      } else {
        std::memcpy(part.bytes, place_, static_cast<std::size_t>(bytes));
      }
      place_ += bytes;
      copied += bytes;
    }
    return next_ == parts_.size();
  }

  Communicator& communicator_;
  std::shared_ptr<Buffer> memory_;
  AgreedBatch agreed_;  // messages on their way may refer to its operations' memory
  Reduction reduction_;
  Contributors contributors_;
  std::vector<TypedBuffer> parts_;  // without bytes: this rank has joined
  std::int64_t elements_ = 0;
  bool in_place_ = false;
  TypedBuffer whole_;
  Stage stage_ = Stage::pack;
  std::size_t next_ = 0;
  std::byte* place_ = nullptr;
  std::shared_ptr<Collective> allreduce_;
};

}  // namespace

std::shared_ptr<Collective> reduce_run(Communicator& communicator, const std::vector<Piece>& run,
                                       AgreedBatch agreed, std::shared_ptr<Buffer> fusion_buffer) {
  return std::make_shared<ReduceRun>(communicator, run, std::move(agreed), std::move(fusion_buffer));
}

}  // namespace kolo::detail
