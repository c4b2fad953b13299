#include <kolo/core/kernels/cuda/launch_distance.h>
#include <kolo/core/kernels/elements/folds.h>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

struct DistanceWork : DistanceArguments {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t part) const {
    double apart = 0, whole = 0;
    const std::int64_t step = std::int64_t{kDistanceParts} * team.lanes();
    for (std::int64_t i = part * team.lanes() + team.lane(); i < elements; i += step) {
      const double right = static_cast<double>(expected[i]);
      const double difference = static_cast<double>(x[i]) - right;
      apart += difference * difference;
      whole += right * right;
    }
    apart = team.template fold<elements::SumFold>(apart);
    whole = team.template fold<elements::SumFold>(whole);
    if (team.lane() != 0) return;
    squares[2 * part] = apart;
    squares[2 * part + 1] = whole;
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, elements);
    visit(expected, elements);
    visit(squares, 2 * kDistanceParts);
  }
};

}  // namespace

cudaError_t launch_distance(cudaStream_t stream, const DistanceArguments& arguments) {
  return run_rows("distance", stream, arguments.elements == 0 ? 0 : kDistanceParts, DistanceWork{arguments});
}

}  // namespace kolo::cuda
