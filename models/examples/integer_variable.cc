// GPUs keep no variables of 32-bit whole numbers. Soft placement moves what was asked for to where it can be.
// Without a GPU: KOLO_VIRTUAL_GPUS=1 integer_variable
#include <cstdio>

#include <kolo/kolo.h>

using namespace kolo;

int main() {
  Graph graph;
  Scope s = Scope(graph).device("/gpu:0");
  Variable counter(s.named("counter"), constant(s.named("three"), Tensor::scalar<std::int32_t>(3)));

  try {
    Session(graph).run(counter.initializer());
  } catch (const InvalidArgumentError& error) {
    std::printf("refused: %s\n", error.what());
  }

  Session soft(graph, {.log_device_placement = true, .allow_soft_placement = true});
  soft.run(counter.initializer());
  std::printf("%d\n", soft.run(counter.read()).value<std::int32_t>());
}
