#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/engine/process_set_internal.h>
#include <kolo/collectives/job/mpi_interop.h>
#include <kolo/collectives/job/runtime.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using detail::check_mpi;

// The numbers that the ranks of `comm` have in `all`.
std::vector<int> ranks_of(MPI_Comm comm, MPI_Comm all) {
  if (comm == MPI_COMM_NULL) return {};
  MPI_Group group = MPI_GROUP_NULL, group_of_all = MPI_GROUP_NULL;
  int size = 0;
  check_mpi(MPI_Comm_group(comm, &group), "MPI_Comm_group");
  check_mpi(MPI_Comm_group(all, &group_of_all), "MPI_Comm_group");
  check_mpi(MPI_Group_size(group, &size), "MPI_Group_size");
  std::vector<int> own(size), numbers(size);
  for (int rank = 0; rank < size; ++rank) own[rank] = rank;
  check_mpi(MPI_Group_translate_ranks(group, size, own.data(), group_of_all, numbers.data()),
            "MPI_Group_translate_ranks");
  MPI_Group_free(&group);
  MPI_Group_free(&group_of_all);
  return numbers;
}

std::vector<std::int64_t> wide(const std::vector<int>& numbers) { return {numbers.begin(), numbers.end()}; }

}  // namespace

// Each rank gives its list, with its length before it; equal ones are one set.
std::optional<ProcessSet> process_set_of(MPI_Comm comm) {
  const auto runtime = detail::current_runtime();
  if (!runtime) throw FailedPreconditionError("kolo is not initialised; call kolo::init() first");
  std::vector<int> own;
  if (runtime->has_peers()) runtime->thread().call([&] { own = ranks_of(comm, runtime->comm()); });
  else if (comm != MPI_COMM_NULL) own = {0};
  std::vector<std::int64_t> told = wide(own);
  told.insert(told.begin(), static_cast<std::int64_t>(own.size()));
  const auto all = allgather(std::span(told));
  std::vector<std::vector<int>> lists;
  for (std::size_t place = 0; place < all.size(); place += 1 + static_cast<std::size_t>(all[place])) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(place) + 1;
    const std::vector<int> list(first, first + all[place]);
    if (std::find(list.begin(), list.end(), MPI_UNDEFINED) != list.end())
      throw InvalidArgumentError("process_set_of: the communicator has ranks that kolo does not know");
    if (!list.empty() && std::find(lists.begin(), lists.end(), list) == lists.end()) lists.push_back(list);
  }
  if (lists.empty()) throw InvalidArgumentError("process_set_of: every rank gave MPI_COMM_NULL");
  const auto sets = detail::ProcessSetAccess::make(lists);
  const auto place = std::find(lists.begin(), lists.end(), own);
  if (place == lists.end()) return std::nullopt;
  return sets[static_cast<std::size_t>(place - lists.begin())];
}

}  // namespace kolo
