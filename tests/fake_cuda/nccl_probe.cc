// Reductions by NCCL without a training step around them: `nccl_probe sums` compares them with closed forms,
// `nccl_probe end` lets rank 1 run out of data in the second step, `nccl_probe swap RANK` starts two in the
// other order on that rank, `nccl_probe rows` tells how long NCCL takes, and `nccl_probe fail` lets rank 0
// fail in a step to which rank 1 does not come.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/device_collectives.h>
#include <kolo/collectives/job/init.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/text.h>
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
    if (tail[0] != (size() > 1 ? 1 : 0) || tail[1] != 0) return false;
  }
  reduction->clear();
  return read_from_device(there, gpu).data<float>()[elements - 1] == 0;
}

// As gpu_check's, of rank 0: the connection, and the median of 50 sums, with what the host does for each.
void tell_times(DeviceCollectives& gpus, double connected_s) {
  const auto tell = [](const std::string& test, double value, const char* unit) {
    if (rank() == 0)
      std::printf(R"({"test":"nccl/%s","status":"passed","value":%.4g,"unit":"%s","ceiling":null})"
                  "\n",
                  test.c_str(), value, unit);
  };
  tell("connection", connected_s, "s");
  for (const int kib : {4, 1024}) {
    const auto reduction = gpus.make_reduction(kib * 256, 1, true);
    std::vector<double> times;
    for (int i = 0; i < 50; ++i) {
      reduction->mark_written();
      const auto begin = std::chrono::steady_clock::now();
      reduce(*reduction);
      times.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    std::sort(times.begin(), times.end());
    tell("average/" + std::to_string(kib) + "KiB", times[times.size() / 2], "us");
  }
}

int swap_on(int swapping, DeviceCollectives& gpus) {
  const auto first = gpus.make_reduction(100, 1, false), second = gpus.make_reduction(200, 1, false);
  reduce(rank() == swapping ? *second : *first);
  reduce(rank() == swapping ? *first : *second);
  return 0;
}

// What became of the bucket: "" if it was reduced.
std::string submit(Schedule& schedule) {
  std::promise<std::exception_ptr> over;
  schedule.begin();
  schedule.buckets()[0].submit([&](std::exception_ptr error) { over.set_value(std::move(error)); });
  const auto error = over.get_future().get();
  schedule.end();
  return error ? message_of(error) : "";
}

ScheduleSpec one_bucket(Device& gpu) {
  return {.name = "probe",
          .reduction = ReduceOp::average,
          .gradients = {{.name = "w", .shape = {1000}}},
          .gpus = std::vector<Device*>{&gpu}};
}

[[noreturn]] void fail_alone(Device& gpu) {
  Schedule schedule(one_bucket(gpu));
  schedule.compare();
  if (rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(20));
  std::promise<std::exception_ptr> over;
  schedule.begin();
  schedule.buckets()[0].submit([&](std::exception_ptr error) { over.set_value(std::move(error)); });
  schedule.leave(StepFlag::failed, "of a test");
  auto of_bucket = over.get_future();
  if (of_bucket.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
    std::printf("the bucket: %s\n", message_of(of_bucket.get()).c_str());
  std::fflush(nullptr);
  std::_Exit(1);
}

int end_of_data(Device& gpu) {
  Schedule schedule(one_bucket(gpu));
  schedule.compare();
  if (schedule.device() != &gpu) return 2;
  const Tensor gradient(DType::f32, {1000}, schedule.buckets()[0].memory(), 0);
  write_to_device(Tensor::zeros(DType::f32, {1000}), gradient, gpu);
  if (const std::string error = submit(schedule); !error.empty()) return 3;
  if (rank() == 1) schedule.leave(StepFlag::end_of_data, "");
  else if (submit(schedule) != "end of data on rank 1") return 4;
  return schedule.take_outcome().has(StepFlag::end_of_data) ? 0 : 5;
}

}  // namespace

int main(int argc, char** argv) {
  init(&argc, &argv);
  kernels_of("Add");  // brings the plug-in
  DeviceOptions options;
  options.gpu_options.visible_device_list = std::to_string(local_rank());
  const DeviceSet devices = make_devices(options);
  Device& gpu = devices.find("GPU:0");
  if (argv[1] == std::string("end")) return end_of_data(gpu);
  if (argv[1] == std::string("fail")) fail_alone(gpu);
  const auto begin = std::chrono::steady_clock::now();
  const std::string id = world_group().broadcast(rank() == 0 ? device_library()->make_id() : "", 0);
  const auto gpus = device_library()->join(gpu, {.rank = rank(), .size = size(), .id = id});
  const auto connected = std::chrono::steady_clock::now();
  if (argc == 3) return swap_on(std::atoi(argv[2]), *gpus);
  for (const bool average : {false, true})
    for (const int elements : {1, 1000, 300'001})
      if (!sums_are_right(*gpus, gpu, average, elements)) {
        std::fprintf(stderr, "rank %d: the %s of %d elements is wrong\n", rank(), average ? "average" : "sum",
                     elements);
        return 1;
      }
  if (argv[1] == std::string("rows"))
    tell_times(*gpus, std::chrono::duration<double>(connected - begin).count());
  return 0;
}
