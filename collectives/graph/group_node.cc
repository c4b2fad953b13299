#include <kolo/collectives/graph/group_node.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <tuple>

#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>

namespace kolo::detail {
namespace {

// Beyond these limits the flags that travel with a bucket of f16 would vanish.
constexpr double kLargestPredivision = 1 << 16;

// Of each gradient: −1, or where it stands among those that come last.
std::vector<std::ptrdiff_t> places_at_the_end(const Node& group) {
  const auto last = group.attr<std::vector<std::string>>("last");
  std::vector<std::ptrdiff_t> places;
  for (const std::string& name : group.attr<std::vector<std::string>>("names")) {
    const auto found = std::find(last.begin(), last.end(), name);
    places.push_back(found == last.end() ? -1 : found - last.begin());
  }
  return places;
}

// A group stands together, where its last member is made.
std::vector<int> with_groups_together(const std::vector<int>& order,
                                      const std::vector<std::int64_t>& groups) {
  std::vector<int> together;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::int64_t group = groups[order[k]];
    const auto is_member = [&](int input) { return groups[input] == group; };
    if (group < 0) together.push_back(order[k]);
    else if (std::none_of(order.begin() + static_cast<std::ptrdiff_t>(k) + 1, order.end(), is_member))
      std::copy_if(order.begin(), order.end(), std::back_inserter(together), is_member);
  }
  return together;
}

}  // namespace

void check_predivision(double factor, ReduceOp op) {
  if (factor == 1) return;
  if (op != ReduceOp::average)
    throw InvalidArgumentError(
        "gradient_predivide_factor is {}, but op is {}; it splits the division of an average", factor,
        name(op));
  if (!(factor >= 1 / kLargestPredivision && factor <= kLargestPredivision))
    throw InvalidArgumentError("gradient_predivide_factor is {}; it must be between 1/{} and {}", factor,
                               kLargestPredivision, kLargestPredivision);
}

int num_slices(const Node& group) {
  return static_cast<int>(group.attr<std::vector<std::string>>("slice_names").size());
}

int num_gradients(const Node& group) { return group.num_inputs() - 2 * num_slices(group); }

std::vector<std::int64_t> groups_of(const Node& group) {
  auto groups = group.attr<std::vector<std::int64_t>>("groups");
  groups.resize(static_cast<std::size_t>(num_gradients(group)), -1);
  return groups;
}

std::vector<int> backward_order(const Node& group) {
  std::vector<int> order(num_gradients(group));
  std::iota(order.begin(), order.end(), 0);
  const std::vector<std::ptrdiff_t> places = places_at_the_end(group);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const Output x = group.input(a), y = group.input(b);
    return std::tuple(places[a], x.node->id(), x.index) < std::tuple(places[b], y.node->id(), y.index);
  });
  return with_groups_together(order, groups_of(group));
}

std::vector<GradientSpec> gradient_specs(const Node& group) {
  const auto names = group.attr<std::vector<std::string>>("names");
  const auto groups = groups_of(group);
  std::vector<GradientSpec> specs;
  for (const int i : backward_order(group))
    specs.push_back({.name = names.at(i),
                     .shape = group.output_shape(i),
                     .dtype = group.output_dtype(i),
                     .group = static_cast<int>(groups[i])});
  return specs;
}

BucketLimits limits_of_buckets(const Node& group) {
  return bucket_limits("group_allreduce", group.attr<std::int64_t>("first_bucket_bytes"),
                       group.attr<std::int64_t>("bucket_bytes"));
}

}  // namespace kolo::detail
