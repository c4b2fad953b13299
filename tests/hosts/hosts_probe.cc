// What the tests start on several hosts: `topology` and `algorithms` print, `collectives` checks every
// operation of the world's communicator against closed forms.
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/job/init.h>
#include <kolo/collectives/job/runtime.h>

namespace {

using kolo::ReduceOp;
using kolo::TypedBuffer;

void print_topology() {
  const nlohmann::json place = {
      {"rank", kolo::rank()},
      {"size", kolo::size()},
      {"local_rank", kolo::local_rank()},
      {"local_size", kolo::local_size()},
      {"cross_rank", kolo::cross_rank()},
      {"cross_size", kolo::cross_size()},
      {"node_count", kolo::node_count()},
      {"homogeneous", kolo::is_homogeneous()},
      {"hostname", kolo::hostname()},
  };
  std::fputs((place.dump() + "\n").c_str(), stdout);
}

void run(const std::shared_ptr<kolo::Collective>& operation) {
  static const int channel = kolo::detail::current_runtime()->thread().open_channel();
  kolo::detail::current_runtime()->thread().run(channel, operation, "hosts_probe");
}

// Rank r's value at place i: whole numbers, exact in any order of summation.
float value(int rank, std::int64_t i) { return static_cast<float>((rank + 1) * (i % 1000 + 1)); }
float sum_of_values(std::int64_t i) {
  const int sum_of_numbers = kolo::size() * (kolo::size() + 1) / 2;
  return value(0, i) * static_cast<float>(sum_of_numbers);
}

void expect(bool right, const std::string& what) {
  if (right) return;
  std::fputs(fmt::format("rank {}: {} is wrong\n", kolo::rank(), what).c_str(), stderr);
  std::exit(1);
}

std::vector<float> own_values(std::int64_t elements) {
  std::vector<float> values(elements);
  for (std::int64_t i = 0; i < elements; ++i) values[i] = value(kolo::rank(), i);
  return values;
}

void check_reductions(kolo::Communicator& world, std::int64_t elements) {
  const int ranks = world.size();
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::average, ReduceOp::max}) {
    auto values = own_values(elements);
    run(world.allreduce(TypedBuffer::of(std::span<float>(values)), op));
    for (std::int64_t i = 0; i < elements; ++i) {
      const float expected = op == ReduceOp::sum       ? sum_of_values(i)
                             : op == ReduceOp::average ? sum_of_values(i) / static_cast<float>(ranks)
                                                       : value(ranks - 1, i);
      expect(values[i] == expected, fmt::format("allreduce of {} elements", elements));
    }
  }
  auto values = own_values(elements);
  std::vector<std::int64_t> counts(ranks, elements / ranks);
  counts[0] += elements % ranks;
  run(world.reduce_scatter(TypedBuffer::of(std::span<float>(values)), counts, ReduceOp::sum));
  const std::int64_t first = std::accumulate(counts.begin(), counts.begin() + world.rank(), std::int64_t{0});
  for (std::int64_t i = first; i < first + counts[world.rank()]; ++i)
    expect(values[i] == sum_of_values(i), fmt::format("reduce_scatter of {} elements", elements));
}

std::vector<std::byte> block_of(int from, int to, int bytes) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(10 * from + to + 1));
}

// Rank r's blocks have `bytes` + r bytes.
void check_movements(kolo::Communicator& world, int bytes) {
  const int ranks = world.size(), own = world.rank();
  std::vector<std::vector<std::byte>> in(ranks), out(ranks);
  std::vector<std::span<std::byte>> into(ranks);
  std::vector<std::span<const std::byte>> from(ranks);
  const auto prepare = [&] {
    for (int r = 0; r < ranks; ++r) {
      in[r].assign(bytes + r, std::byte{0});
      into[r] = in[r];
      out[r] = block_of(own, r, bytes + own);
      from[r] = out[r];
    }
  };
  prepare();
  in[own] = block_of(own, own, bytes + own);
  into[own] = in[own];
  run(world.allgather(into));
  for (int r = 0; r < ranks; ++r) expect(in[r] == block_of(r, r, bytes + r), "allgather");

  prepare();
  run(world.alltoall(from, into));
  for (int r = 0; r < ranks; ++r) expect(in[r] == block_of(r, own, bytes + r), "alltoall");

  for (int root = 0; root < ranks; ++root) {
    auto all = own == root ? block_of(root, 0, bytes) : std::vector<std::byte>(bytes);
    run(world.broadcast(all, root));
    expect(all == block_of(root, 0, bytes), fmt::format("broadcast from rank {}", root));
    prepare();
    run(world.gather(out[root], own == root ? into : std::vector<std::span<std::byte>>{}, root));
    for (int r = 0; own == root && r < ranks; ++r) expect(in[r] == block_of(r, root, bytes + r), "gather");
    prepare();
    run(world.scatter(own == root ? from : std::vector<std::span<const std::byte>>{}, into[root], root));
    expect(in[root] == block_of(root, own, bytes + root), fmt::format("scatter from rank {}", root));
  }
  run(world.barrier());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "algorithms") {
    for (const auto& name : kolo::allreduce_names()) fmt::print("{}\n", name);
    return 0;
  }
  kolo::init(&argc, &argv);
  if (what == "topology") print_topology();
  if (what == "collectives") {
    auto& world = kolo::detail::current_runtime()->world();
    for (const std::int64_t elements : {0, 1, 7, 1000, 300007}) check_reductions(world, elements);
    for (const int bytes : {0, 1, 100000}) check_movements(world, bytes);
    if (kolo::rank() == 0) fmt::print("all right on {} hosts\n", kolo::node_count());
  }
  return 0;
}
