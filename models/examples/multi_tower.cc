// Two GPUs compute a tower each, the CPU adds them up. Without GPUs: KOLO_VIRTUAL_GPUS=4 multi_tower
#include <cstdio>

#include <kolo/kolo.h>

using namespace kolo;

int main() try {
  Graph graph;
  Scope s(graph);
  Outputs towers;
  for (const char* device : {"/gpu:2", "/gpu:3"}) {
    Scope tower = s.device(device).name_scope("tower");
    auto a = constant(tower.named("a"), Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
    auto b = constant(tower.named("b"), Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
    towers.push_back(matmul(tower.named("product"), a, b));
  }
  auto sum = add_n(s.named("sum").device("/cpu:0"), towers);

  Session session(graph, {.log_device_placement = true});
  const Tensor result = session.run(sum);
  const float* r = result.data<float>();
  std::printf("[[%g,%g],[%g,%g]]\n", r[0], r[1], r[2], r[3]);
} catch (const Error& error) {
  std::fprintf(stderr, "%s\nWithout GPUs: KOLO_VIRTUAL_GPUS=4 multi_tower\n", error.what());
  return 1;
}
