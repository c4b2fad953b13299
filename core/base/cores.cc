#include <kolo/core/base/cores.h>

#include <hwloc.h>

#include <algorithm>
#include <memory>
#include <type_traits>

#include <kolo/core/base/process.h>

namespace kolo {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};

// Cores of which at least one hardware thread is in `allowed`.
int count_cores(hwloc_topology_t topology, hwloc_const_bitmap_t allowed) {
  int count = 0;
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr;)
    count += hwloc_bitmap_intersects(core->cpuset, allowed);
  // Some virtual machines show processing units only.
  return count > 0 ? count
                   : std::max(1, hwloc_get_nbobjs_inside_cpuset_by_type(topology, allowed, HWLOC_OBJ_PU));
}

}  // namespace

Cores find_cores() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return {};
  const std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, DestroyTopology> topology(raw);
  if (hwloc_topology_load(raw) != 0) return {};
  const hwloc_const_bitmap_t machine = hwloc_topology_get_allowed_cpuset(raw);
  const std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, FreeBitmap> mine(hwloc_bitmap_dup(machine));
  if (hwloc_get_cpubind(raw, mine.get(), HWLOC_CPUBIND_PROCESS) != 0)
    return {count_cores(raw, machine), false};
  return {count_cores(raw, mine.get()), !hwloc_bitmap_isincluded(machine, mine.get())};
}

int cores_of_rank() { return std::max(1, find_cores().count / process().core_sharers); }

}  // namespace kolo
