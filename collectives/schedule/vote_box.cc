#include <kolo/collectives/schedule/vote_box.h>

#include <utility>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

StepFlag flag_at(std::size_t i) { return static_cast<StepFlag>(i); }

bool voids_step(StepFlag flag) { return StepFlags{flag}.voids_step(); }

template <typename T>
void write_as(T* to, const StepFlags& flags) {
  for (std::size_t i = 0; i < kStepFlags; ++i) to[i] = T(flags.has(flag_at(i)) ? 1.0f : 0.0f);
}

template <typename T>
StepFlags read_as(const T* from) {
  StepFlags flags;
  for (std::size_t i = 0; i < kStepFlags; ++i)
    if (static_cast<float>(from[i]) != 0.0f) flags.add(flag_at(i));
  return flags;
}

}  // namespace

void write_flags(DType dtype, std::byte* to, const StepFlags& flags) {
  switch (dtype) {
    case DType::f32: return write_as(reinterpret_cast<float*>(to), flags);
    case DType::f64: return write_as(reinterpret_cast<double*>(to), flags);
    case DType::f16: return write_as(reinterpret_cast<Half*>(to), flags);
    case DType::bf16: return write_as(reinterpret_cast<BFloat16*>(to), flags);
    default: throw InternalError("a bucket of {} has no flags", dtype);
  }
}

StepFlags read_flags(DType dtype, const std::byte* from) {
  switch (dtype) {
    case DType::f32: return read_as(reinterpret_cast<const float*>(from));
    case DType::f64: return read_as(reinterpret_cast<const double*>(from));
    case DType::f16: return read_as(reinterpret_cast<const Half*>(from));
    case DType::bf16: return read_as(reinterpret_cast<const BFloat16*>(from));
    default: throw InternalError("a bucket of {} has no flags", dtype);
  }
}

void write_flags(FlagNumbers& to, const StepFlags& flags) { write_as(to, flags); }
StepFlags read_flags(const FlagNumbers& from) { return read_as(from); }

void VoteBox::raise(StepFlag flag, const std::string& text) {
  raised_.add(flag);
  if (flag == StepFlag::failed) failure_ = text;
}

void VoteBox::begin_step() {
  sent_ = coming_ = {};
  is_over_ = false;
}

StepFlags VoteBox::flags_for(int slot) {
  StepFlags flags;
  for (std::size_t i = 0; i < kStepFlags; ++i) {
    const StepFlag flag = flag_at(i);
    if (!raised_.has(flag) || (slot != 0 && !voids_step(flag))) continue;
    flags.add(flag);
    if (flag != StepFlag::failed) raised_.remove(flag);  // a failure is final
  }
  sent_.add(flags);
  return flags;
}

void VoteBox::received(int slot, const StepFlags& flags) {
  for (std::size_t i = 0; slot == 0 && i < kStepFlags; ++i)
    if (flags.has(flag_at(i)) && !voids_step(flag_at(i))) coming_.add(flag_at(i));
  if (flags.voids_step()) ++exchanges_;
}

// "" from a rank that raised nothing, "end" at the end of data, "failed <step> <text>" after a failure.
std::string VoteBox::own_reason(std::int64_t step) const {
  if (sent_.has(StepFlag::failed)) return fmt::format("failed {} {}", step, failure_);
  return sent_.has(StepFlag::end_of_data) ? "end" : "";
}

VoteBox::Reasons VoteBox::read_reasons(std::span<const std::string> reasons, std::int64_t step) {
  Reasons found;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const int rank = ranks_.empty() ? static_cast<int>(i) : ranks_.at(i);
    const std::string& reason = reasons[i];
    if (reason.rfind("failed ", 0) == 0 && !found.failure) {
      const auto space = reason.find(' ', 7);
      found.failure = std::make_exception_ptr(AbortedError(
          "rank {} failed in step {}: {}", rank, reason.substr(7, space - 7), reason.substr(space + 1)));
    } else if (reason == "end" && !found.end_of_data) {
      found.end_of_data = std::make_exception_ptr(OutOfRangeError("end of data on rank {}", rank));
      coming_.add(StepFlag::end_of_data);
    }
  }
  if (!found.end_of_data && !found.failure)
    found.failure = std::make_exception_ptr(InternalError("step {} is void without a reason", step));
  end_step(true);  // who sees the error sees what it means
  return found;
}

// Several slots of a void step come here: what was taken after the first stays taken.
void VoteBox::end_step(bool error) {
  if (!std::exchange(is_over_, true)) outcome_ = coming_;
  if (error) outcome_.remove(StepFlag::save);
}

void VoteBox::end_step_alone() {
  coming_ = std::exchange(raised_, {});
  end_step(/*error=*/true);  // a save needs all
}

StepFlags VoteBox::take_outcome() {
  for (std::size_t i = 0; i < kStepFlags; ++i)
    if (!voids_step(flag_at(i))) raised_.remove(flag_at(i));
  return std::exchange(outcome_, {});
}

}  // namespace kolo::detail
