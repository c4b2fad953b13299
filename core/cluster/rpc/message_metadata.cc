#include <kolo/core/base/error.h>

#include <kolo/core/cluster/rpc/messages_internal.h>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t nanoseconds(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// Beyond a day nothing is believed, so that no sum of times overflows.
constexpr std::int64_t kLongestAge = std::int64_t{24} * 3600 * 1'000'000'000;

Clock::time_point on_this_clock(std::int64_t time_ns, std::int64_t sender_now_ns, Clock::time_point now) {
  std::int64_t age = 0;
  if (__builtin_sub_overflow(sender_now_ns, time_ns, &age) || age < -kLongestAge || age > kLongestAge)
    throw InvalidArgumentError("an event of a trace lies more than a day away");
  return now - std::chrono::nanoseconds(age);
}

}  // namespace

std::string encode_metadata(const RunMetadata& metadata) {
  def::RunMetadataDef to;
  to.set_now_ns(nanoseconds(Clock::now()));
  for (const auto& event : metadata.step_stats.events) {
    auto& entry = *to.add_events();
    entry.set_name(event.name);
    entry.set_category(event.category);
    entry.set_lane(event.lane);
    entry.set_start_ns(nanoseconds(event.start));
    entry.set_end_ns(nanoseconds(event.end));
    entry.set_process(event.process);
  }
  to.set_arena_bytes(metadata.step_stats.arena_bytes);
  to.set_unplanned_bytes(metadata.step_stats.unplanned_bytes);
  for (const auto& memory : metadata.memory) {
    auto& entry = *to.add_memory();
    entry.set_device(memory.device);
    entry.set_planned_bytes(memory.planned_bytes);
    entry.set_unplanned_bytes(memory.unplanned_bytes);
    entry.set_peak_bytes(memory.peak_bytes);
  }
  for (const auto& kernel : metadata.kernels) {
    auto& entry = *to.add_kernels();
    entry.set_node(kernel.node);
    entry.set_op(kernel.op);
    entry.set_device(kernel.device);
    entry.set_kernel(kernel.kernel);
    entry.set_declined(kernel.declined);
  }
  return to.SerializeAsString();
}

RunMetadata decode_metadata(std::string_view bytes) {
  const auto from = parsed<def::RunMetadataDef>(bytes);
  const auto now = Clock::now();
  RunMetadata metadata;
  for (const auto& event : from.events())
    metadata.step_stats.events.push_back({.name = event.name(),
                                          .category = event.category(),
                                          .lane = event.lane(),
                                          .start = on_this_clock(event.start_ns(), from.now_ns(), now),
                                          .end = on_this_clock(event.end_ns(), from.now_ns(), now),
                                          .process = event.process()});
  metadata.step_stats.arena_bytes = from.arena_bytes();
  metadata.step_stats.unplanned_bytes = from.unplanned_bytes();
  for (const auto& memory : from.memory())
    metadata.memory.push_back({.device = memory.device(),
                               .planned_bytes = memory.planned_bytes(),
                               .unplanned_bytes = memory.unplanned_bytes(),
                               .peak_bytes = memory.peak_bytes()});
  for (const auto& kernel : from.kernels())
    metadata.kernels.push_back({.node = kernel.node(),
                                .op = kernel.op(),
                                .device = kernel.device(),
                                .kernel = kernel.kernel(),
                                .declined = kernel.declined()});
  return metadata;
}

}  // namespace kolo::detail
