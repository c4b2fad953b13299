// What core asks of the other ranks of the job: few, blocking, outside the training step. collectives' init()
// fills it in; until then, and in a program of one rank, it is a group of one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

/// Every call is collective: all ranks make the same calls in the same order, from one thread at a time.
/// A call whose peers do not come ends in DeadlineExceededError naming the missing ranks,
/// or UnavailableError.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Overwrites every tensor with root's. All ranks give the same number, types and shapes (callers compare
  /// them before by allgather). Not for strings.
  virtual void broadcast(std::span<const Tensor> tensors, int root) = 0;
  /// own of rank r arrives in root's parts[r], of the same type and number of elements, which may be none.
  /// parts: size() of them at the root, none elsewhere. Not for strings. Throws UnimplementedError in a group
  /// that is not of all ranks.
  virtual void gather(const Tensor& own, std::span<const Tensor> parts, int root);
  /// The way back: root's parts[r] arrives in own of rank r.
  virtual void scatter(std::span<const Tensor> parts, const Tensor& own, int root);
  /// root's text on every rank.
  virtual std::string broadcast(const std::string& text, int root) = 0;
  /// Every rank's text, in rank order.
  virtual std::vector<std::string> allgather(const std::string& text) = 0;
  /// Whether all ranks give the same text; the same answer on all of them. Of all ranks of a job it costs
  /// O(log n) short messages a rank, where an allgather's grow with n.
  virtual bool is_same_everywhere(const std::string& text);
};

/// The group of all ranks.
Group& world_group();
/// This process alone, whatever ranks there are: whose variables lie on the tasks of a cluster has nobody to
/// agree with.
Group& group_of_one();
/// nullptr makes it a group of one again. Called by init() and shutdown() alone.
void set_world_group(std::unique_ptr<Group> group);

/// Throws on every rank if `error` is non-empty on any: the lowest failing rank's code and text, with `rank
/// <r>: ` before it where it is not this rank's own. Collective. It lets one rank do a thing (read a file)
/// and all share its failure.
void throw_if_any_failed(Group& group, Code code, const std::string& error);

}  // namespace kolo
