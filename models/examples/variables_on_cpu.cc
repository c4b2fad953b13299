// A device function keeps variables on the CPU and all else on a GPU. Without one:
// KOLO_VIRTUAL_GPUS=1 variables_on_cpu
#include <cstdio>

#include <kolo/kolo.h>

using namespace kolo;

int main() try {
  Graph graph;
  Scope s = Scope(graph).device(
      [](const Node& node) { return node.schema().is_variable_storage() ? "/cpu:0" : "/gpu:0"; });
  Variable a(s.named("a"), constant(s.named("initial"), 3.0f));
  auto b = constant(s.named("b"), 4.0f);
  auto c = mul(s.named("c"), a, b);

  Session session(graph, {.log_device_placement = true});
  session.run(a.initializer());
  std::printf("%g\n", session.run(c).value<float>());
} catch (const Error& error) {
  std::fprintf(stderr, "%s\nWithout GPUs: KOLO_VIRTUAL_GPUS=1 variables_on_cpu\n", error.what());
  return 1;
}
