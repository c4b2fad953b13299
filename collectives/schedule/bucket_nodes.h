// The nodes by which a step hands the slots of its schedule over: bucket_ops.cc and bucket_kernels.cc in
// collectives/graph say what they are, the passes there make them, and overlap.cc finds them in traces.
#pragma once

namespace kolo::detail {

inline constexpr char kBucketAllReduceOp[] = "BucketAllReduce";
inline constexpr char kBucketReduceScatterOp[] = "BucketReduceScatter";
inline constexpr char kBucketAllGatherOp[] = "BucketAllGather";
inline constexpr char kGatherRowsOp[] = "GatherRows";
/// Waits until no rank reads a bucket as of the last step.
inline constexpr char kBucketsWritableOp[] = "BucketsWritable";

/// Attributes: which of the schedule's buckets, and of its gathered rows.
inline constexpr char kBucketAttr[] = "bucket";
inline constexpr char kGatherAttr[] = "gather";
/// A mark: the bucket is submitted to be read, as BucketSlot::submit_to_read has it.
inline constexpr char kToReadMark[] = "to_read";

}  // namespace kolo::detail
