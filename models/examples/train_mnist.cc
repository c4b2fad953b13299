// Trains LeNet on handwritten digits over all ranks: mpirun -n 2 train_mnist [STEPS [DATA]]
//
// DATA is the folder of MNIST's four files, or "generated" for digits that kolo draws; left out, they are
// sought in $KOLO_DATA_DIR/mnist and data/mnist. The same command again goes on from the newest checkpoint in
// train_logs.
#include <cstdio>
#include <optional>
#include <string>

#include <kolo/kolo.h>

using namespace kolo;

int main(int argc, char** argv) {
  init(&argc, &argv);  // MPI, ranks, logging

  const std::int64_t steps = argc > 1 ? std::stoll(argv[1]) : 1000;
  const auto data = argc > 2 ? std::optional<std::string>(argv[2]) : std::nullopt;
  models::Batches batches(*models::load_digits(data, models::Split::train),
                          {.rank = rank(), .ranks = size(), .layout = models::ImageLayout::flat});

  SessionConfig config;  // pin the GPU of this local rank
  config.gpu_options.visible_device_list = "local";

  Graph graph;
  Scope s(graph);
  auto x = placeholder(s, DType::f32, {-1, 784}), y = placeholder(s, DType::i32, {-1});
  auto loss = softmax_cross_entropy(s, models::lenet(s, x), y);

  DistributedOptimizer opt(std::make_unique<AdagradOptimizer>(0.01f));
  auto train_op = opt.minimize(s, loss);

  MonitoredTrainingSession sess(graph, {.checkpoint_dir = "train_logs",
                                        .config = config,
                                        .hooks = {std::make_shared<BroadcastGlobalVariablesHook>(0),
                                                  std::make_shared<StopAtStepHook>(steps)}});
  models::Batch batch;
  while (!sess.should_stop()) {
    batches.next(batch);
    sess.run(train_op, {{x, batch.samples}, {y, batch.labels}});
  }
  if (rank() == 0) std::printf("trained up to step %lld\n", static_cast<long long>(sess.global_step()));
}
