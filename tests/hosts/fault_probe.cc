// A job in which the last rank does something wrong: bench/fault_times.py measures how long it takes until
// that is told. Usage: fault_probe KIND. Rank 0 prints "stepping" once a few steps are done, the last rank
// "fault <time>" (monotonic clock, seconds) right before the fault.
#include <fmt/core.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/engine/process_set.h>
#include <kolo/collectives/job/init.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/stop_signal.h>

namespace {

constexpr std::int64_t kStepsBefore = 20;
constexpr std::int64_t kManySteps = 1 << 20;

void print(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

void print_fault() {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  print(fmt::format("fault {:.6f}", now.count()));
}

kolo::ScheduleSpec spec_of(const std::string& kind, bool deviates) {
  kolo::ScheduleSpec spec{.name = "probe",
                          .gradients = {{"fc1/w", kolo::Shape{784, 1000}, kolo::DType::f32},
                                        {"fc1/b", kolo::Shape{1000}, kolo::DType::f32}}};
  if (!deviates) return spec;
  if (kind == "shape") spec.gradients[1].shape = kolo::Shape{1024};
  if (kind == "dtype") spec.gradients[1].dtype = kolo::DType::f64;
  if (kind == "op") spec.reduction = kolo::ReduceOp::sum;
  if (kind == "name") spec.gradients[1].name = "fc1/bias";
  if (kind == "absent") spec.gradients.pop_back();
  return spec;
}

void commit(const std::string& kind) {
  print_fault();
  if (kind == "killed") raise(SIGKILL);
  if (kind == "exited") std::exit(0);
  if (kind == "exit code 3") std::exit(3);
  if (kind == "exception") throw std::runtime_error("no more disk");
  if (kind == "missing") std::this_thread::sleep_for(std::chrono::seconds(60));
}

// Calls that the engine negotiates. The last rank's differs, or does not come.
void call_engine(const std::string& kind, bool deviates) {
  const kolo::EagerOptions fc1{.name = "fc1/w"};
  std::vector<float> values(1000);
  for (std::int64_t step = 1; step < kStepsBefore; ++step) {
    kolo::allreduce(std::span(values), kolo::ReduceOp::average, fc1);
    kolo::report_completed_step(step);
  }
  if (deviates) print_fault();
  if (deviates && kind == "eager missing") std::this_thread::sleep_for(std::chrono::seconds(60));
  if (deviates && kind == "eager shape") values.resize(1001);
  std::vector<double> doubles(1000);
  const auto op = deviates && kind == "eager reduction" ? kolo::ReduceOp::max : kolo::ReduceOp::average;
  if (kind == "eager root") kolo::broadcast(std::span(values), deviates ? 1 : 0, fc1);
  else if (kind == "eager set") kolo::ProcessSet::create(std::vector<int>{0, deviates ? 2 : 1});
  else if (deviates && kind == "eager dtype") kolo::allreduce(std::span(doubles), op, fc1);
  else if (deviates && kind == "eager operation") kolo::allgather(std::span(values), fc1);
  else kolo::allreduce(std::span(values), op, fc1);
}

void run_step(kolo::Schedule& schedule) {
  schedule.begin();
  std::vector<std::promise<std::exception_ptr>> over(schedule.buckets().size());
  for (std::size_t bucket = 0; bucket < over.size(); ++bucket)
    schedule.buckets()[bucket].submit(
        [&over, bucket](std::exception_ptr error) { over[bucket].set_value(error); });
  std::exception_ptr first;
  for (auto& one : over) {
    const auto error = one.get_future().get();
    if (error && !first) first = error;
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  kolo::init(&argc, &argv);
  kolo::install_stop_signals();
  const bool deviates = kolo::rank() == kolo::size() - 1;
  if (kind.starts_with("eager ")) {
    call_engine(kind, deviates);
    return 0;
  }
  kolo::Schedule schedule(spec_of(kind, deviates));
  if (deviates) print_fault();  // of those that compare() finds; a later one is told again
  schedule.compare();
  for (std::int64_t step = 1; step < kManySteps; ++step) {
    if (step == kStepsBefore && deviates) commit(kind);
    run_step(schedule);
    kolo::report_completed_step(step);
    if (step == kStepsBefore + 1 && kolo::rank() == 0) print("stepping");
  }
  return 0;
}
