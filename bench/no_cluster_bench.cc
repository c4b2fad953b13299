#include <bench/cluster_bench.h>

#include <kolo/core/base/error.h>

namespace kolo::bench {

void cluster_bench(const ClusterBenchOptions& /*options*/) {
  throw UnimplementedError("kolo-bench cluster: this kolo was built without gRPC");
}

}  // namespace kolo::bench
