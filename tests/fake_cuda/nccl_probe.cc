// Reductions by NCCL without a training step around them: `nccl_probe sums` compares them with closed forms,
// `nccl_probe swap RANK` starts two in the other order on that rank.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <kolo/collectives/algorithms/device_collectives.h>
#include <kolo/collectives/job/init.h>
#include <kolo/core/device/device_set.h>
#include <kolo/core/device/device_values.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/tensor/tensor.h>

namespace {

using namespace kolo;

void reduce(DeviceReduction& reduction) {
  reduction.start();
  while (reduction.progress() != Progress::finished) std::this_thread::yield();
}

// Rank r gives (r + 1) · (i + 1); a tail of 1 from rank 1 alone.
bool sums_are_right(DeviceCollectives& gpus, Device& gpu, bool average, int elements) {
  const auto reduction = gpus.make_reduction(elements, 2, average);
  const Tensor here(DType::f32, {elements});
  const Tensor there(DType::f32, {elements}, reduction->memory(), 0);
  auto* const tail = reinterpret_cast<float*>(reduction->tail());
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < elements; ++i) here.data<float>()[i] = static_cast<float>((rank() + 1) * (i + 1));
    write_to_device(here, there, gpu);
    reduction->mark_written();
    tail[0] = rank() == 1 ? 1 : 0;
    tail[1] = 0;
    reduce(*reduction);
    const Tensor reduced = read_from_device(there, gpu);
    const auto ranks = static_cast<float>(size());
    for (int i = 0; i < elements; ++i) {
      const float sum = ranks * (ranks + 1) / 2 * static_cast<float>(i + 1);
      if (reduced.data<float>()[i] != (average ? sum / ranks : sum)) return false;
    }
    if (tail[0] != 1 || tail[1] != 0) return false;
  }
  reduction->clear();
  return read_from_device(there, gpu).data<float>()[elements - 1] == 0;
}

int swap_on(int swapping, DeviceCollectives& gpus) {
  const auto first = gpus.make_reduction(100, 1, false), second = gpus.make_reduction(200, 1, false);
  reduce(rank() == swapping ? *second : *first);
  reduce(rank() == swapping ? *first : *second);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  init(&argc, &argv);
  kernels_of("Add");  // brings the plug-in
  DeviceOptions options;
  options.gpu_options.visible_device_list = std::to_string(local_rank());
  const DeviceSet devices = make_devices(options);
  Device& gpu = devices.find("GPU:0");
  const std::string id = world_group().broadcast(rank() == 0 ? device_library()->make_id() : "", 0);
  const auto gpus = device_library()->join(gpu, {.rank = rank(), .size = size(), .id = id});
  if (argc == 3) return swap_on(std::atoi(argv[2]), *gpus);
  for (const bool average : {false, true})
    for (const int elements : {1, 1000, 300'001})
      if (!sums_are_right(*gpus, gpu, average, elements)) {
        std::fprintf(stderr, "rank %d: the %s of %d elements is wrong\n", rank(), average ? "average" : "sum",
                     elements);
        return 1;
      }
  return 0;
}
