#include "calls.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::fake_cuda {
namespace {

constexpr int kExitCode = 70;  // EX_SOFTWARE: none of kolo's

thread_local const char* current_call = "outside of calls";
thread_local int current_device = -1;
thread_local cudaError_t last_error = cudaSuccess;

constexpr char kAhead[] = " ahead";
std::string called_ahead(const char* name) { return std::string(name) + kAhead; }

bool reads_ahead() {
  static thread_local const bool reads = [] {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    return std::string_view(name) == "kolo-input";
  }();
  return reads;
}

bool is_sticky(int code) {
  return code == 214 ||
         (code >= 700 && code <= 720 && code != 701 && code != 704 && code != 705 && code != 712);
}

struct Calls {
  long failing = 0;  // the number of the call that fails; 0: the one of the name
  std::string_view name;
  bool is_first_alone = false;  // of that name
  cudaError_t code = cudaErrorIllegalAddress;
  const char* log = std::getenv("KOLO_FAKE_CUDA_LOG");
  struct Made {
    std::string name;  // a copy: the library that has the words may be closed before the end
    bool ahead;
  };
  std::vector<Made> made;
  bool lost = false;
  int objects = 0;
  std::vector<std::string (*)()> asked_at_the_end;
  void (*finish)() = [] {};

  Calls() {
    const char* wish = std::getenv("KOLO_FAKE_CUDA_FAIL");
    if (wish == nullptr) return;
    constexpr std::string_view kFirst = "first ";
    is_first_alone = std::string_view(wish).starts_with(kFirst);
    if (is_first_alone) wish += kFirst.size();
    char* rest = nullptr;
    failing = std::strtol(wish, &rest, 10);
    if (failing == 0) {
      name = std::string_view(wish).substr(0, std::string_view(wish).find(':'));
      rest += name.size();
    }
    if (*rest == ':') code = static_cast<cudaError_t>(std::atoi(rest + 1));
  }
};

Calls& calls() {
  static Calls all;
  return all;
}

// At the end of the process, behind the destructors of all that was made since the plug-in was opened.
struct AtExit {
  AtExit() { calls(), state_mutex(); }
  ~AtExit() {
    MutexLock lock(state_mutex());
    current_call = "at the end";
    if (std::FILE* const file = calls().log == nullptr ? nullptr : std::fopen(calls().log, "w")) {
      for (const auto& [name, ahead] : calls().made)
        std::fprintf(file, "%s%s\n", name.c_str(), ahead ? kAhead : "");
      std::fclose(file);
    }
    if (calls().lost || breaks("hang")) return;  // with the context all is gone
    std::string left = calls().objects == 0 ? "" : fmt::format(" {} objects of libraries", calls().objects);
    for (const auto ask : calls().asked_at_the_end) left += ask();
    if (!left.empty()) report("not given back:{}", left);
  }
};

}  // namespace

Mutex& state_mutex() {
  static auto* const mutex = new Mutex;  // threads may outlive static objects
  return *mutex;
}

void report(const std::string& what) {
  std::fflush(nullptr);
  const std::string line = fmt::format("fake_cuda: {}: {}\n", current_call, what);
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
  _exit(kExitCode);
}

bool breaks(std::string_view what) {
  static const char* const wish = std::getenv("KOLO_FAKE_CUDA_BREAK");
  return wish != nullptr && wish == what;
}

bool refuses(std::string_view what) {
  static const std::string wishes = [] {
    const char* const list = std::getenv("KOLO_FAKE_CUDA_REFUSE");
    return fmt::format(",{},", list == nullptr ? "" : list);
  }();
  return wishes.find(fmt::format(",{},", what)) != std::string::npos;
}

bool begins_failing(const char* name) {
  static const AtExit at_exit;
  current_call = name;
  Calls& all = calls();
  const std::string_view called = name;
  const bool is_counted = called != "cudaStreamQuery" && called != "cudaEventQuery";
  if (is_counted) all.made.push_back({name, reads_ahead()});
  const bool is_named = all.name == (reads_ahead() && all.name.ends_with(kAhead) ? called_ahead(name) : name);
  const bool fails =
      all.failing == 0 ? is_named : is_counted && static_cast<long>(all.made.size()) == all.failing;
  if (fails) {
    // What was to be copied to the host's memory is there, as it would be by now where that is not pinned: a
    // caller that gives up may free it.
    all.finish();
    all.lost = is_sticky(all.code);
    if (all.is_first_alone) all.name = "none";
    return true;
  }
  return all.lost;
}

void rename_call(const char* name) { calls().made.back().name = name; }

bool ask_at_the_end(std::string (*left)()) {
  calls().asked_at_the_end.push_back(left);
  return true;
}

bool finish_before_failures(void (*finish)()) {
  calls().finish = finish;
  return true;
}

void count_object(int change) { calls().objects += change; }
cudaError_t code_of_failure() { return calls().code; }
bool context_is_lost() { return calls().lost; }

cudaError_t remembered(cudaError_t code) {
  if (code != cudaSuccess) last_error = code;
  return code;
}

cudaError_t take_last_error() {
  MutexLock lock(state_mutex());
  return calls().lost ? calls().code : std::exchange(last_error, cudaSuccess);
}

int current_gpu() {
  if (current_device < 0) report("this thread has made no device current, so it would work on GPU 0");
  return current_device;
}
void set_current_gpu(int gpu) { current_device = gpu; }

}  // namespace kolo::fake_cuda
