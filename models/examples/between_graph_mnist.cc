// Trains LeNet on a cluster: variables on parameter servers, computation on workers, every worker with the
// same graph.
//
//   kolorun --cluster ps=2,worker=2 -- between_graph_mnist [sync] [STEPS [DATA]]
//
// Each process is the task that KOLO_CLUSTER says; without a cluster it trains alone. Asynchronously, each
// worker updates the variables by itself; with sync the chief applies the mean of all workers' gradients.
// DATA as in train_mnist.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <kolo/cluster.h>
#include <kolo/kolo.h>

using namespace kolo;

namespace {

struct Arguments {
  bool sync = false;
  std::int64_t steps = 500;
  std::optional<std::string> data;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  int next = 1;
  if (next < argc && std::string_view(argv[next]) == "sync") arguments.sync = true, ++next;
  if (next < argc) arguments.steps = std::stoll(argv[next++]);
  if (next < argc) arguments.data = argv[next];
  return arguments;
}

double accuracy(Session& session, Output logits, Output x, const std::optional<std::string>& data) {
  const auto digits = models::load_digits(data, models::Split::test);
  models::Batches batches(*digits, {.batch_size = 100, .layout = models::ImageLayout::flat});
  models::Batch batch;
  std::int64_t right = 0, seen = 0;
  while (seen < digits->size()) {
    batches.next(batch);
    const Tensor found = session.run(logits, {{x, batch.samples}});
    for (std::int64_t i = 0; i < batch.labels.elements(); ++i, ++seen) {
      const float* const scores = found.data<float>() + i * 10;
      right += std::max_element(scores, scores + 10) - scores == batch.labels.data<std::int32_t>()[i];
    }
  }
  return static_cast<double>(right) / static_cast<double>(seen);
}

int train(const Arguments& arguments, const ClusterEnvironment& task, const std::string& target) {
  const int workers = task.cluster ? task.cluster.num_tasks("worker") : 1;
  const std::string own = "/job:worker/task:" + std::to_string(task.task_index);

  Graph graph;
  Scope s = Scope(graph);
  if (task.cluster) s = s.device(replica_device_setter({.worker_device = own, .cluster = task.cluster}));
  auto x = placeholder(s.named("x"), DType::f32, {-1, 784}), y = placeholder(s.named("y"), DType::i32, {-1});
  auto logits = models::lenet(s, x);
  auto loss = softmax_cross_entropy(s, logits, y);
  const Variable step = get_or_create_global_step(s);

  MonitoredTrainingSessionOptions options;
  options.master = target;
  options.is_chief = task.is_chief || !task.cluster;
  options.recovery_wait_secs = 1;
  // A worker then starts without the others, and does not wait for them.
  if (task.cluster) options.config.device_filters = {"/job:ps", own};
  options.hooks = {std::make_shared<StopAtStepHook>(arguments.steps)};

  Operation train_op;
  if (arguments.sync) {
    SyncReplicasOptimizer optimizer(std::make_unique<AdagradOptimizer>(0.01f), workers);
    train_op = optimizer.minimize(s, loss, {.global_step = step});
    options.hooks.push_back(optimizer.make_session_run_hook(options.is_chief));
  } else {
    train_op = AdagradOptimizer(0.01f).minimize(s, loss, {.global_step = step});
  }

  models::Batches batches(*models::load_digits(arguments.data, models::Split::train),
                          {.rank = task.task_index, .ranks = workers, .layout = models::ImageLayout::flat});
  models::Batch batch;
  MonitoredTrainingSession sess(graph, options);
  double right = 0;
  while (!sess.should_stop()) {
    batches.next(batch);
    sess.run(train_op, {{x, batch.samples}, {y, batch.labels}});
    if (options.is_chief && sess.global_step() >= arguments.steps)
      right = accuracy(sess.session(), logits, x, arguments.data);
  }
  if (options.is_chief)
    std::printf("trained up to step %lld: %.2f %% of the test digits are right\n",
                static_cast<long long>(sess.global_step()), 100 * right);
  sess.close();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  const ClusterEnvironment task = ClusterSpec::from_environment();
  if (!task.cluster) return train(arguments, task, "");
  Server server(task.cluster, {.job_name = task.job_name, .task_index = task.task_index});
  if (task.job_name != "ps") return train(arguments, task, server.target());
  server.join();  // until the workers have ended
  return 0;
}
