#include <kolo/collectives/schedule/gradient_buckets.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include <kolo/collectives/schedule/bucket_nodes.h>

namespace kolo {
namespace {

using Time = std::chrono::steady_clock::time_point;
constexpr std::chrono::microseconds kBetweenKernels{5};

struct Interval {
  Time start, end;
};

// Their union, in order; what is at most `gap` apart is joined.
std::vector<Interval> joined(std::vector<Interval> intervals, std::chrono::nanoseconds gap) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
  std::vector<Interval> result;
  for (const Interval& next : intervals) {
    if (!result.empty() && next.start <= result.back().end + gap)
      result.back().end = std::max(result.back().end, next.end);
    else result.push_back(next);
  }
  return result;
}

// Of both, which are in order.
std::chrono::duration<double> common_time(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::chrono::duration<double> sum{};
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Time start = std::max(a[i].start, b[j].start), end = std::min(a[i].end, b[j].end);
    if (start < end) sum += end - start;
    if (a[i].end < b[j].end) ++i;
    else ++j;
  }
  return sum;
}

// The nodes that wait for other ranks.
bool is_bucket(std::string_view op) {
  return op == detail::kBucketAllReduceOp || op == detail::kBucketReduceScatterOp ||
         op == detail::kBucketAllGatherOp;
}

}  // namespace

double ReductionOverlap::hidden_share() const {
  if (reducing.count() <= 0) return 1;
  return std::max(0.0, 1 - waiting / reducing);
}

ReductionOverlap reduction_overlap(const StepTrace& trace) {
  ReductionOverlap overlap;
  std::vector<Interval> kernels, under_way;
  for (const TraceEvent& event : trace.events) {
    if (event.category == "reduce") overlap.reducing += event.end - event.start;
    else if (is_bucket(event.category)) under_way.push_back({event.start, event.end});
    else kernels.push_back({event.start, event.end});
  }
  const auto pending = joined(std::move(under_way), std::chrono::nanoseconds(0));
  for (const Interval& interval : pending) overlap.waiting += interval.end - interval.start;
  overlap.waiting -= common_time(pending, joined(std::move(kernels), kBetweenKernels));
  return overlap;
}

}  // namespace kolo
