// How gradients travel between the ranks in fewer bytes. A compression is a class derived from
// Compression and a function that makes it, in a source of its own beside this header where it has state.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/graph/group_ops.h>
#include <kolo/optimizer/optimizer.h>

namespace kolo {

/// What a compression may ask of the optimizer that it works for. The thread that builds the graph.
class GradientReducer {
 public:
  virtual ~GradientReducer() = default;
  /// Each of `values`, of fully known shapes, combined over the ranks as the optimizer was asked to (average
  /// or sum). names: one each, the same on all ranks; what errors call them.
  Outputs reduce(const Scope& s, const Outputs& values, const std::vector<std::string>& names) {
    return reduce(s, GroupReduceInputs{.gradients = values, .names = names}).gradients;
  }
  /// Slices too: all ranks' rows, ÷ R for an average.
  virtual GroupReduced reduce(const Scope& s, const GroupReduceInputs& inputs) = 0;
  virtual ReduceOp op() const = 0;
  /// True where somebody else finds what is not finite (dynamic loss scaling): it is no error then.
  virtual bool tolerates_overflow() const = 0;
};

/// Builds nodes, as optimizers do. The same object may serve several optimizers: what it keeps from step to
/// step are variables of the graph. One thread at a time builds with it.
class Compression {
 public:
  virtual ~Compression() = default;
  /// "fp16", "powersgd(4)": compared between the ranks.
  virtual std::string name() const = 0;
  /// True if each element of a gradient is reduced by itself, in the gradient's place, so that a rank may do
  /// without the elements that it does not need: one call of `reduce` with all gradients, and casts.
  virtual bool is_element_wise() const { return false; }
  /// The gradients combined over the ranks, one for each of `local`, which are all there, whole, of floating
  /// types and of fully known shapes. Called on several ranks only.
  virtual Outputs reduce(const Scope& s, std::span<const GradientPair> local,
                         GradientReducer& reducer) const = 0;
};

/// Gradients travel as they are: the default.
std::shared_ptr<const Compression> no_compression();

/// IEEE half precision: 11 bits of precision, nothing beyond 65504.
/// f32 and f64 gradients are cast to float16 inside their bucket, reduced, and cast back. What does not fit,
/// on one rank or as a sum, is found on all: the step ends with InvalidArgumentError `the gradient of
/// "<variable>" is not finite after fp16 compression`; with dynamic loss scaling the step is skipped instead.
std::shared_ptr<const Compression> fp16_compression();

/// The range of f32 with 8 bits of precision.
/// f32 and f64 gradients are cast to bfloat16 inside their bucket, reduced, and cast back. What does not fit,
/// on one rank or as a sum, is found on all: the step ends with InvalidArgumentError `the gradient of
/// "<variable>" is not finite after bf16 compression`; with dynamic loss scaling the step is skipped instead.
std::shared_ptr<const Compression> bf16_compression();

/// Gradients travel as products of two narrow matrices: Vogels, Karimireddy, Jaggi, "PowerSGD", NeurIPS 2019.
/// A gradient of two dimensions or more is a matrix M of its first dimension × the rest. With what earlier
/// steps have left out added to it, it travels as P = M·Q, reduced and made orthonormal, and Mᵀ·P, reduced:
/// rank · (n + m) elements instead of n · m. Q is the last step's second factor. Gradients of fewer
/// dimensions, for which that is no less, or that are not f32 or f64, travel as they are. State, saved with a
/// checkpoint:
/// `<variable>/powersgd_q`, and `<variable>/powersgd_error`, each rank's own. A step whose gradient is not
/// finite leaves both as they were. Average and sum alone. Throws InvalidArgumentError for rank < 1.
std::shared_ptr<const Compression> powersgd_compression(std::int64_t rank = 1);

/// The largest elements of gradients travel, the others wait: Stich, Cordonnier, Jaggi, "Sparsified SGD with
/// memory", NeurIPS 2018.
/// Of each f32 or f64 gradient of n elements, with what earlier steps have left out added to it, every rank
/// gives the ⌈ratio · n⌉ elements of largest magnitude, with their places; all are gathered and added up.
/// Where that is more than half of the elements the gradient travels as it is. State, saved with a
/// checkpoint:
/// `<variable>/topk_error`, each rank's own. A step whose gradient is not finite leaves it as it was. Average
/// and sum alone. Throws InvalidArgumentError unless 0 < ratio ≤ 1.
std::shared_ptr<const Compression> topk_compression(double ratio = 0.01);

}  // namespace kolo
