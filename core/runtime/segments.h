// Runs of nodes that stand in one stream and do the same in every step: kept as one, and given again as one.
#pragma once

#include <memory>
#include <vector>

#include <kolo/core/runtime/stream_waits.h>

namespace kolo {

class Device;
class Kernel;
class KernelContext;
class Tensor;
struct VariableStorage;

/// The nodes of a plan from `first` to `last`, by position: members, and names between them.
struct Segment {
  int first = 0, last = 0;
};

/// The longest runs of at least kFewestMembers nodes that stand in one stream, run ahead, are `repeatable`,
/// by position, and cannot be skipped. Between two of them stand names alone, `repeatable` ones, which run
/// nothing. So everything that a member comes behind is a member, or stands before the segment: as one node
/// it closes no circle.
inline constexpr int kFewestMembers = 4;
std::vector<Segment> find_segments(const std::vector<OrderedNode>& nodes,
                                   const std::vector<bool>& repeatable);

/// By position, the position of the node that stands for it: its segment's first, or itself.
std::vector<int> leaders_of(const std::vector<Segment>& segments, std::size_t nodes);

/// A member of a segment as its frame has it.
struct SegmentMember {
  Kernel* kernel;  // that on_stream has made
  KernelContext* context;
  std::vector<const VariableStorage*> must_be_initialized;
  std::vector<const Tensor*> written;  // on the device of its stream
};

/// Does what the members do, in their order. The first call captures their stream's work, and each call
/// launches it, behind what any of them comes behind. Where it cannot be captured, a line of the debug log
/// says why and each call runs the members one by one.
/// The members, which stand in the compute stream of `device`, outlive it. host: a CPU.
std::unique_ptr<Kernel> make_segment_kernel(std::vector<SegmentMember> members, Device& device, Device& host);

/// KOLO_CUDA_GRAPHS: "0" keeps nothing, nor does KOLO_CUDA_SYNC=1; "check" compares, before each launch, the
/// addresses that the members have with those that were captured, and in the first launch of each segment and
/// in every kLaunchesPerCheck-th its bits with those of its members one by one.
inline constexpr int kLaunchesPerCheck = 50;
bool keeps_segments();

}  // namespace kolo
