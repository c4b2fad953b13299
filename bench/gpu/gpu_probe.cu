// gpu_probe asks one NVIDIA GPU what no header answers; --help lists the questions. It uses nothing of kolo's
// and links nothing but cudart_static.
// Each question has a process with a deadline of its own: one that hangs or crashes costs its own rows only,
// and nothing needs to be freed.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::string question;
struct Skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};  // it cannot be asked here

template <class... Values>
std::string text(const char* format, Values... values) {
  std::string buffer(8000, '\0');
  buffer.resize(
      std::min<size_t>(snprintf(buffer.data(), buffer.size(), format, values...), buffer.size() - 1));
  return buffer;
}

void row(const std::string& test, const char* status, double value, const char* unit,
         const std::string& detail) {
  std::string quoted;
  for (const char c : detail)
    quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c < ' ' && c >= 0 ? ' ' : c);
  const std::string number = std::isfinite(value) ? text("%.12g", value) : "null";
  printf("{\"test\":\"%s\",\"status\":\"%s\",\"value\":%s,\"unit\":\"%s\",\"detail\":\"%s\"}\n",
         (question + test).c_str(), status, number.c_str(), unit, quoted.c_str());
  fflush(stdout);  // the row stands even if the next call kills the process
}

// What a part throws is a row of its own; the parts behind it are still asked.
void ask(const std::string& test, const std::function<void()>& part) {
  try {
    part();
  } catch (const std::exception& e) {
    row(test, dynamic_cast<const Skip*>(&e) ? "skipped" : "failed", NAN, "", e.what());
  }
}

template <class Code>
void check(Code code, const char* call, const char* words = "") {
  if constexpr (std::is_same_v<Code, cudaError_t>) words = cudaGetErrorString(code);
  if (code) throw std::runtime_error(text("%.60s: %d %s", call, int(code), words));
}
#define KOLO_CHECK(call) check(call, #call)

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// ---- The device: one stream, nothing that waits but wait()
__device__ int64_t thread_index() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }

__global__ void fill_random(float* out, int64_t count, uint64_t seed) {  // uniform in [-1, 1), splitmix64
  const int64_t i = thread_index();
  uint64_t z = (i + (seed << 40)) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  if (i < count) out[i] = static_cast<float>(z >> 40) * 0x1p-23f - 1.0f;
}

struct Gpu {
  cudaStream_t stream = nullptr;

  Gpu() {
    // Asked first: no driver and a driver too old have the same code, 35.
    if (!dlopen("libcuda.so.1", RTLD_NOW)) throw Skip("no CUDA device");
    int devices = 0;
    const cudaError_t code = cudaGetDeviceCount(&devices);
    if (code == cudaErrorNoDevice || code == cudaErrorStubLibrary) throw Skip("no CUDA device");
    check(code, "cudaGetDeviceCount");
    KOLO_CHECK(cudaSetDevice(0));
    KOLO_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  void wait() { KOLO_CHECK(cudaStreamSynchronize(stream)); }
  template <class T>
  T* array(int64_t count, bool pinned = false) {
    void* memory = nullptr;
    if (pinned) KOLO_CHECK(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocMapped));
    else KOLO_CHECK(cudaMalloc(&memory, count * sizeof(T)));
    return static_cast<T*>(memory);
  }
  template <class... Parameters, class... Arguments>
  void launch(int64_t threads, void (*kernel)(Parameters...), Arguments... arguments) {
    kernel<<<static_cast<unsigned>((threads + 255) / 256), 256, 0, stream>>>(arguments...);
    check(cudaGetLastError(), "launch");
  }
  float* random(int64_t count, uint64_t seed) {
    float* values = array<float>(count);
    launch(count, fill_random, values, count, seed);
    return values;
  }
  void copy(void* dst, const void* src, size_t bytes) {
    KOLO_CHECK(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream));
  }
  void fill(void* dst, int byte, size_t bytes) { KOLO_CHECK(cudaMemsetAsync(dst, byte, bytes, stream)); }
  // Microseconds of each of `times` back to back, until the device has done the last.
  double microseconds(int times, const std::function<void()>& work) {
    wait();
    const double begin = now();
    for (int i = 0; i < times; ++i) work();
    wait();
    return (now() - begin) / times * 1e6;
  }
};

void ask_device() {
  Gpu gpu;
  cudaDeviceProp p;
  int driver = 0, runtime = 0;
  size_t free_bytes = 0, total_bytes = 0;
  KOLO_CHECK(cudaGetDeviceProperties(&p, 0));
  KOLO_CHECK(cudaDriverGetVersion(&driver));
  KOLO_CHECK(cudaRuntimeGetVersion(&runtime));
  KOLO_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  row("/name", "ok", p.major * 10 + p.minor, "capability", p.name);
  row("/driver", "ok", driver, "version", text("runtime %d", runtime));
  row("/free_memory", "ok", double(free_bytes), "B", text("of %zu", total_bytes));
  row("/multiprocessors", "ok", p.multiProcessorCount, "", text("L2 cache of %d bytes", p.l2CacheSize));
}

// ---- Launches and copies
__global__ void nothing() {}
__global__ void scale(float* values, int64_t count) {
  const int64_t i = thread_index();
  if (i < count) values[i] = values[i] * 0.5f + 1.0f;
}

// The elements that a step of LeNet's writes, kernel for kernel: forward, backward, one update a variable.
constexpr int64_t kLenetStep[] = {1605632, 1605632, 1605632, 401408, 802816,  802816,  802816, 200704,
                                  65536,   65536,   65536,   640,    640,     640,     64,     640,
                                  10,      10240,   65536,   65536,  1024,    3211264, 200704, 802816,
                                  802816,  64,      51200,   401408, 1605632, 1605632, 32,     800,
                                  800,     32,      51200,   64,     3211264, 1024,    10240,  10};
static_assert(std::size(kLenetStep) == 40);

// Of a call: until it returns, and until the device is done.
void measure(Gpu& gpu, const std::string& test, const std::function<void()>& run) {
  std::vector<double> host, whole;
  for (int i = 0; i < 220; ++i) {
    const double begin = now();
    run();
    const double returned = now();
    gpu.wait();
    if (i >= 20) host.push_back((returned - begin) * 1e6), whole.push_back((now() - begin) * 1e6);
  }
  std::sort(host.begin(), host.end()), std::sort(whole.begin(), whole.end());
  row(test + "/host", "ok", host[100], "us",
      text("median of 200, least %.2f: until the call returns", host[0]));
  row(test + "/whole", "ok", whole[100], "us",
      text("median of 200, least %.2f: until the device is done", whole[0]));
}

void ask_launches() {
  Gpu gpu;
  float* values = gpu.random(3211264, 1);
  const auto step = [&] {
    for (const int64_t count : kLenetStep) gpu.launch(count, scale, values, count);
  };
  measure(gpu, "/empty_launch", [&] { gpu.launch(1, nothing); });
  measure(gpu, "/lenet_eager", step);
  for (const int nodes : {40, 320, 830}) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    KOLO_CHECK(cudaStreamBeginCapture(gpu.stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < nodes; ++i) gpu.launch(kLenetStep[i % 40], scale, values, kLenetStep[i % 40]);
    KOLO_CHECK(cudaStreamEndCapture(gpu.stream, &graph));
    KOLO_CHECK(cudaGraphInstantiate(&executable, graph, 0));
    measure(gpu, text("/graph_%d", nodes), [&] { KOLO_CHECK(cudaGraphLaunch(executable, gpu.stream)); });
  }

  const size_t bytes = size_t{256} << 20, large = size_t{4} << 30;
  char *pinned = gpu.array<char>(bytes, true), *src = gpu.array<char>(large), *dst = gpu.array<char>(large);
  gpu.fill(src, 1, large);
  const auto rate = [&](const char* test, double moved, void* to, const void* from, size_t copied) {
    gpu.copy(to, from, copied);
    row(test, "ok", moved / gpu.microseconds(10, [&] { gpu.copy(to, from, copied); }) * 1e-3, "GB/s",
        text("%zu bytes a copy", copied));
  };
  rate("/pinned_to_device", bytes, src, pinned, bytes);
  rate("/device_to_pinned", bytes, pinned, src, bytes);
  rate("/device_copy", 2.0 * large, dst, src, large);  // read and written
}

// ---- The host: how long its calls hold it, and how soon it learns of an end
void ask_host() {
  Gpu gpu;
  constexpr size_t kMost = 5 << 20;
  char *device = gpu.array<char>(kMost), *pinned = gpu.array<char>(kMost, true);
  std::vector<char> pageable(kMost);
  const auto copies = [&](const std::string& test, size_t bytes, bool to_device) {
    for (const bool is_pinned : {false, true}) {
      char* const host = is_pinned ? pinned : pageable.data();
      measure(gpu, test + (is_pinned ? "/pinned" : "/pageable"),
              [&] { gpu.copy(to_device ? device : host, to_device ? host : device, bytes); });
    }
  };
  copies("/to_host_4B", 4, false);
  copies("/to_device_200KB", 200'000, true);
  copies("/to_device_5MB", 5'000'000, true);

  // From the end of some 100 us of work, which the device's own clock tells, to the host's going on.
  float* const values = gpu.random(8 << 20, 1);
  const auto wakes = [&](const char* test, unsigned flags, bool spins) {
    cudaEvent_t end;
    KOLO_CHECK(cudaEventCreateWithFlags(&end, flags | cudaEventDisableTiming));
    const auto wait = [&] {
      if (!spins) KOLO_CHECK(cudaEventSynchronize(end));
      else
        while (cudaEventQuery(end) == cudaErrorNotReady) {
        }
    };
    std::vector<double> took;
    for (int i = 0; i < 200; ++i) {
      gpu.wait();
      const double begin = now();
      for (int k = 0; k < 5; ++k) gpu.launch(8 << 20, scale, values, int64_t{8 << 20});
      KOLO_CHECK(cudaEventRecord(end, gpu.stream));
      wait();
      took.push_back((now() - begin) * 1e6);
    }
    std::sort(took.begin(), took.end());
    row(test, "ok", took[100], "us", text("median of 200, least %.2f: five kernels and the wait", took[0]));
  };
  wakes("/wait_blocking", cudaEventBlockingSync, false);
  wakes("/wait_yielding", cudaEventDefault, false);
  wakes("/wait_spinning", cudaEventDefault, true);
}

// ---- The program
const struct Question {
  const char* name;
  void (*ask)();
  const char* help;
} kQuestions[] = {{"device", ask_device, "name, versions, free memory"},
                  {"launches", ask_launches,
                   "an empty launch, LeNet's 40 launches, graphs of 40, 320 and 830 nodes, copies"},
                  {"host", ask_host, "how long copies hold the host, and how soon it learns of an end"}};
constexpr unsigned kDeadlineSeconds = 40;

// Asks in a process of its own. What a library prints beside the rows goes to stderr. True if no row says
// "failed".
bool ask_in_child(const char* name) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) throw std::runtime_error("pipe2");
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], STDOUT_FILENO);
    alarm(kDeadlineSeconds);  // lasts through exec
    execl("/proc/self/exe", "gpu_probe", "--child", name, nullptr);
    _exit(127);
  }
  close(ends[1]);
  bool good = true;
  char* line = nullptr;
  size_t capacity = 0;
  for (FILE* rows = fdopen(ends[0], "r"); getline(&line, &capacity, rows) > 0;) {
    const bool is_row = strncmp(line, "{\"test\":", 8) == 0 && strchr(line, '\n');
    good = good && !(is_row && strstr(line, "\"status\":\"failed\""));
    fputs(line, is_row ? stdout : stderr);
    fflush(stdout);
  }
  int status = 0;
  waitpid(child, &status, 0);
  question = name;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    row("", "failed", kDeadlineSeconds, "s", "deadline");
  else if (status) row("", "failed", NAN, "", text("the process ended with status %d", status));
  return good && status == 0;
}

int main_program(int argc, char** argv) {
  const std::string option = argc > 1 ? argv[1] : "", name = argc > 2 ? argv[2] : "";
  const Question* chosen = std::find_if(std::begin(kQuestions), std::end(kQuestions),
                                        [&](const Question& q) { return name == q.name; });
  if (option == "--child" && chosen != std::end(kQuestions)) {
    question = name;
    ask("", chosen->ask);
    _exit(0);  // exit handlers of the libraries could wait for a lost device
  }
  if (option == "--only" && argc == 3 && chosen != std::end(kQuestions))
    return ask_in_child(chosen->name) ? 0 : 1;
  if (argc == 1) {
    bool good = true;
    for (const Question& q : kQuestions) good = ask_in_child(q.name) && good;
    return good ? 0 : 1;
  }
  FILE* to = option == "--help" ? stdout : stderr;
  fprintf(to,
          "usage: gpu_probe [--only NAME]\n\n"
          "Asks one NVIDIA GPU (the first visible) what kolo's plug-in wants to know before it is built for "
          "it. Each row of\n"
          "stdout is a JSON object {test, status: ok|failed|skipped, value, unit, detail}. Each question has "
          "a process and\n"
          "%u s of its own. Without a driver every row is skipped, \"no CUDA device\".\n\n",
          kDeadlineSeconds);
  for (const Question& q : kQuestions) fprintf(to, "  %-12s %s\n", q.name, q.help);
  fprintf(to, "\nExit: 0 no row failed, 1 some did, 2 wrong options.\n");
  return option == "--help" ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) { return main_program(argc, argv); }
