// What is rewritten of a step before it runs, and in which order: one list, in pipeline.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/source_line.h>
#include <kolo/core/passes/graph_options.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo {

class DeviceSet;
class StepVote;

/// What passes ask of the session that compiles the step; on the thread that compiles it.
class PassContext {
 public:
  virtual ~PassContext() = default;
  virtual GraphOptions graph_options() const = 0;
  /// That kernels of the step will be made for.
  virtual int intra_op_threads() const = 0;
  virtual const DeviceSet& devices() const = 0;
  /// Gives each node its device.
  virtual void place(StepGraph& graph) = 0;
  /// Before anything depends on what the ranks must have alike.
  virtual void compare_ranks(const StepGraph& graph) = 0;
  /// The session's vote for a node of the user's graph; nullptr where nobody votes.
  virtual std::shared_ptr<StepVote> vote(const Node& node) = 0;
};

using Pass = void (*)(StepGraph& graph, PassContext& context);

/// Fills a place of the list that is kept for another part of kolo, as collectives do; a namespace-scope
/// constant of the pass's file. Throws InternalError for a place that the list does not have or that is
/// taken.
struct RegisterPass {
  RegisterPass(const std::string& place, Pass pass, SourceLine from = SourceLine::here());
};

/// All of the list, on a step as prune() made it.
void rewrite_step(StepGraph& graph, PassContext& context);

/// The passes that make a step faster, or take less memory, without changing what it computes, in the order
/// in which they run: every effect happens, in the same order, and every fetched value and every variable
/// keeps its bits, but for `layout` and, in places, `fuse_gradient_sums`, with which sums are taken in
/// another order, `pool_first`, and −0 in `add_rows`. They can be disabled.
std::vector<std::string> graph_pass_names();
/// Throws InvalidArgumentError for a disabled pass that there is not, FailedPreconditionError for a precision
/// that this CPU has no instructions for.
void check_graph_options(const GraphOptions& options);
/// These alone, on a step whose nodes are placed; what nobody needs any more is dropped, and node numbers
/// change. Time: linear in nodes and edges, but for sorting.
void run_graph_passes(StepGraph& graph, PassContext& context);

/// Products of f32 are marked to be computed in this precision (ops/bf16.h): bf16 on CPUs, TF32 on GPUs.
/// Throws FailedPreconditionError where there are such products and the CPU has no instructions for it, and
/// InvalidArgumentError where bf16 is asked for and such a product lies on another kind of device.
void lower_precision(StepGraph& graph, Precision precision);
/// Computes, with the CPU's own kernels, nodes all of whose inputs are constants: they become constants,
/// under their own names. Left alone: what is stateful, has more than one output, or would take more than 1
/// MiB; a kernel that throws is left to throw in the step.
void fold_constants(StepGraph& graph, int threads);
/// Bit-exact arithmetic: x·1, x/1, x−0, −−x, a sum of one; transposes of transposes, reshapes of reshapes,
/// identities, repeated rectifiers. Not x+0 (−0 would become 0) or x·0 (NaN).
void simplify(StepGraph& graph, int threads);
/// Nodes of the same op, attributes, inputs, control inputs and device become one, the first. Never what is
/// stateful; never across an update of a variable that they read.
void merge_common(StepGraph& graph, int threads);
/// Where one number, known before the step, scales the gradient of sparse cross entropy, as the mean over the
/// batch does, the op scales it itself, and may write it over the logits. On a GPU that is one pass over
/// memory less, and a kernel less or two. The bits are those of the separate nodes.
void fuse_losses(StepGraph& graph, int threads);
/// On GPUs a sum of two, of which one is slices (graph/indexed_slices.h) that nothing else reads, adds their
/// rows to the other: no memory holds a second gradient as large as the table, as that of a table that is
/// also a product's weights. The bits are those of the separate nodes, but that a −0 to which nothing is
/// added may stay.
void add_rows(StepGraph& graph, int threads);
/// Images of convolutions, and of what stands between them (normalization, pooling, biases, element-wise
/// ops, padding and slices of rows and columns), lie in blocked order (core/ops/blocked.h) where their
/// channels allow it and there is a kernel for it, on CPUs and in f32; a node reorders what others read or
/// make. Where they are computed in bf16 the order is kChannelsLast. Feeds, fetches, variables and their
/// gradients stay row-major. The same step on the same machine is rewritten in the same way.
void layout(StepGraph& graph, int threads);
/// In blocked order max_pool(relu(x + bias)) becomes relu(max_pool(x) + bias), whose bias and rectifier have
/// as many elements as results; and the gradients likewise: what the rectifier stops the pooling need not
/// spread. Both never fall, so the largest stays the largest, and NaN stays NaN; but −∞ plus a bias of +∞,
/// which is NaN, is not computed where there is a larger element. Not the same to the bit: the bias's
/// gradient leaves out the zeros of its sum, −0 may take the place of 0, and of elements that the rounded
/// addition of the bias makes equal the largest gets the gradient, not the first. Where anything else reads
/// the rectified images, or normalization makes them (fuse_norms), all stays.
void pool_first(StepGraph& graph, int threads);
/// A convolution's gradient of its images in blocked order takes what stands behind it and is read nowhere
/// else, where a kernel does that: the addition of another gradient, whose memory it may write to, and the
/// mask of the rectifier that both come from. The bits are those of the separate nodes where the convolution
/// makes 256 channels at most; of more the gradient is no longer summed in parts of as many.
void fuse_gradient_sums(StepGraph& graph, int threads);
/// Batch normalization in blocked order takes what stands behind it and is read nowhere else into its own
/// pass over memory: the addition of an image that was there before, and the rectifier. Its gradient takes
/// the sum of two gradients and the rectifier's mask, which it takes from x or, where something was added or
/// scale or offset may have changed, reads off y. On GPUs layer normalization takes the sum that it is of,
/// and the bias of one of its terms; its gradient takes the sum of it and another gradient. The bits are
/// those of the separate nodes.
void fuse_norms(StepGraph& graph, int threads);
/// Behind convolutions that are computed in bf16 (lower_precision): images that are stored in bf16. Those are
/// what batch normalization reads and makes, forward and backward; what a convolution makes and convolutions,
/// normalization, max pooling, padding and slices alone read; what the last three make of such. Whatever is
/// computed of them is computed in f32 and rounded when stored; nodes between convert what others read or
/// make. Variables, their gradients, statistics, feeds and fetches stay f32.
void narrow_images(StepGraph& graph, int threads);
/// Trees of element-wise ops (and bias_add) of one shape become one node each that goes through memory once,
/// named after all of them. A value that something else reads, fetches or waits for stays a node.
void fuse_elementwise(StepGraph& graph, int threads);

/// A large value that stands in memory while a step needs most, from its readers in the forward pass to those
/// in the backward pass, is computed anew for the latter where one pass over memory does it: batch
/// normalization in blocked order, from its input and statistics; padding; reorders. So only what
/// convolutions make is kept. Not in steps whose values take less than kSmallestRecomputedStep, and only
/// where the most that stands in memory at a time falls by a twentieth and more. It is estimated without
/// kernels' scratch memory and gradients, which come and go. Bits are the same; nothing stateful, random or
/// fetched is computed anew, nothing that a branch may skip, and nothing across an update of a variable that
/// it reads.
void recompute(StepGraph& graph, int threads);
inline constexpr std::int64_t kSmallestRecomputedStep = std::int64_t{64} << 20;

/// Where several variables take the same rule with the same numbers on one device, one FusedApply node takes
/// the place of their Apply nodes: on many small variables (biases, scales of normalization) a step else
/// spends more time on starting kernels than on updating. Elements are computed as before, to the bit.
/// Updates whose gradients lie in memory of one reduction (StepGraph::placements) are fused with one another
/// alone, so that they wait for that reduction only. Of the others, variables of more than kLargestFused
/// elements keep a node of their own: they gain nothing, and would have to keep their gradients until the
/// last one is there. Left as they are: updates whose result is read or fetched, that a branch may skip, and
/// those between which something looks at one of the variables.
void fuse_updates(StepGraph& graph);
inline constexpr std::int64_t kLargestFused = std::int64_t{1} << 16;

/// An update whose gradient is a product of few rows (a dense layer's, at a batch of 8 and less), on a CPU,
/// in f32, of a million elements and more, and read by nothing else, computes it itself, part by part: no
/// memory holds the gradient. The bits are those of the separate nodes. Left alone: gradients that lie in
/// memory of a reduction.
void apply_products(StepGraph& graph);

/// A value that was read from a variable stays what it was: where a reader comes behind an update that the
/// read, a view of the variable or the result of an earlier update, came before, it gets a copy taken in
/// time. Who uses the variable itself, or its `<v>/read`, reads it in its own turn.
void keep_read_values(StepGraph& graph);

/// Within a step, ops on one variable take effect in the order in which they were created. Adds control
/// edges: what was created before an update of a variable and reads it runs before that update; what was
/// created after it, after. A loop reads and updates what its condition and body do. A fetch that would see a
/// later update gets a copy taken in time, and so does a loop that is given the memory of a variable that it
/// updates. Edges lead from older nodes to newer ones alone, so they make no cycle, and the step's result
/// does not depend on the number of threads.
void order_updates(StepGraph& graph);

/// Optimizers' updates (ops/training.h) come as soon as all that they wait for is done, instead of at the
/// step's end: the memory of a gradient is free again for the next. Only the order changes in which nodes run
/// that could; so it comes behind what adds edges between reads and updates. Left alone: updates with
/// gradients that lie in memory of a reduction (StepGraph::placements), which is not free before the step's
/// end, and beside which other gradients are computed.
void update_early(StepGraph& graph);

}  // namespace kolo
