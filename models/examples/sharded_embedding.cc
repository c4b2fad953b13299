// Word vectors in parts on several parameter servers, of which a worker moves only the rows that it needs:
//   kolorun --cluster ps=2,worker=1 -- sharded_embedding
//
// Learns, for pairs of words that stand together, vectors whose product is large.
#include <cstdio>
#include <string>
#include <vector>

#include <kolo/cluster.h>
#include <kolo/kolo.h>

using namespace kolo;

namespace {

constexpr std::int64_t kWords = 10000, kWidth = 16, kPairs = 64;

void train(const ClusterEnvironment& task, const std::string& target) {
  Graph graph;
  graph.set_seed(1);
  const Scope s = Scope(graph).device(replica_device_setter({.cluster = task.cluster}));
  const PartitionedVariable table = partitioned_variable(
      s.named("table"), {kWords, kWidth},
      [](const Scope& in, const Shape& part) { return random_normal(in, DType::f32, part, 0, 0.3); },
      fixed_size(task.cluster.num_tasks("ps")));

  auto left = placeholder(s.named("left"), DType::i32, {kPairs}),
       right = placeholder(s.named("right"), DType::i32, {kPairs});
  auto product = reduce_sum(s, mul(s, embedding_lookup(s, table, left), embedding_lookup(s, table, right)),
                            {.axes = {1}});
  auto loss = reduce_mean(s, softplus(s, neg(s, product)));
  Scope scope = s;
  const Operation step = GradientDescentOptimizer(5).minimize(scope, loss);

  Session session(graph, target);
  session.run(global_variables_initializer(s));
  Tensor a(DType::i32, {kPairs}), b(DType::i32, {kPairs});
  for (int i = 0; i <= 200; ++i) {
    for (std::int64_t pair = 0; pair < kPairs; ++pair) {
      a.data<std::int32_t>()[pair] = static_cast<std::int32_t>((pair + i % 4 * kPairs) * 2);
      b.data<std::int32_t>()[pair] = static_cast<std::int32_t>((pair + i % 4 * kPairs) * 2 + 1);
    }
    const auto results = session.run({loss, Fetch(step)}, {{left, a}, {right, b}});
    if (i % 50 == 0) std::printf("step %3d: loss %.4f\n", i, results[0].value<float>());
  }
}

}  // namespace

int main() {
  const ClusterEnvironment task = ClusterSpec::from_environment();
  if (!task.cluster) {
    std::fprintf(stderr, "start it as a cluster: kolorun --cluster ps=2,worker=1 -- sharded_embedding\n");
    return 2;
  }
  Server server(task.cluster, {.job_name = task.job_name, .task_index = task.task_index});
  if (task.job_name == "ps") server.join();
  else train(task, server.target());
}
