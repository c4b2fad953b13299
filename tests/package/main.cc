// The README's program in small: one training step of a zoo model, on this process alone.
#include <cstdio>
#include <memory>

#include <kolo/kolo.h>

using namespace kolo;

int main(int argc, char** argv) {
  init(&argc, &argv);
  Graph graph;
  Scope s(graph);
  auto x = placeholder(s, DType::f32, {-1, 784}), y = placeholder(s, DType::i32, {-1});
  auto loss = softmax_cross_entropy(s, models::mlp(s, x), y);
  DistributedOptimizer opt(std::make_unique<AdagradOptimizer>(0.01f));
  auto train_op = opt.minimize(s, loss);

  // No pixel is set, so the logits are 0 and the loss is ln 10.
  MonitoredTrainingSession sess(graph, {.hooks = {std::make_shared<StopAtStepHook>(1)}});
  auto results = sess.run({loss, train_op}, {{x, Tensor::zeros(DType::f32, {2, 784})},
                                             {y, Tensor::of<std::int32_t>({2}, {3, 7})}});
  std::printf("step %d, loss %.6f\n", static_cast<int>(sess.global_step()), results[0].value<float>());
  for (const auto& op : registered_ops()) std::printf("op %s\n", op.c_str());
}
