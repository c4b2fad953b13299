// kolo-grpc-peer: plain gRPC (generated stubs, calls that block) for the bytes that `kolo-bench cluster`
// moves.
//
//   kolo-grpc-peer [--seconds S] [--chunk BYTES]              measures against a child of its own over
//   loopback kolo-grpc-peer serve HOST:PORT                            until SIGTERM kolo-grpc-peer HOST:PORT
//   [--seconds S] [--chunk BYTES]    measures against that one
//
// One JSON object a line, with the fields of `kolo-bench cluster --json`.
#include <fmt/core.h>
#include <grpcpp/grpcpp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <bench/grpc_peer.grpc.pb.h>

namespace kolo::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{60};
constexpr std::size_t kLargest = std::size_t{64} << 20;
constexpr int kWarmUpCalls = 5, kLeastCalls = 10;

struct Options {
  std::string serve, address;
  double seconds = 1;  // for each row
  std::size_t chunk_bytes = std::size_t{1} << 20;
};

class Service final : public Peer::Service {
 public:
  Service() : memory_(kLargest, 'x') {}

 private:
  grpc::Status Echo(grpc::ServerContext* /*context*/, const Chunk* request, Chunk* response) override {
    *response = *request;
    return grpc::Status::OK;
  }
  grpc::Status Pull(grpc::ServerContext* /*context*/, const Amount* request,
                    grpc::ServerWriter<Chunk>* writer) override {
    Chunk chunk;
    for (std::size_t sent = 0; sent < request->bytes();) {
      const std::size_t now = std::min<std::size_t>(request->chunk_bytes(), request->bytes() - sent);
      chunk.set_data(memory_.data() + sent, now);
      if (!writer->Write(chunk)) return grpc::Status::CANCELLED;
      sent += now;
    }
    return grpc::Status::OK;
  }
  grpc::Status Push(grpc::ServerContext* /*context*/, grpc::ServerReader<Chunk>* reader,
                    Amount* response) override {
    Chunk chunk;
    std::size_t came = 0;
    for (; reader->Read(&chunk) && came + chunk.data().size() <= memory_.size(); came += chunk.data().size())
      std::memcpy(memory_.data() + came, chunk.data().data(), chunk.data().size());
    response->set_bytes(came);
    return grpc::Status::OK;
  }

  std::string memory_;
};

// Serves until the process is ended; writes the bound port to `told`.
[[noreturn]] void serve(const std::string& address, int told) {
  Service service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    fmt::print(stderr, "kolo-grpc-peer: {} could not be bound\n", address);
    _exit(1);
  }
  const std::string line = fmt::format("{}\n", port);
  if (write(told, line.data(), line.size()) < 0) _exit(1);
  server->Wait();
  _exit(0);
}

// A server in a process of its own, which ends with this object, or this process.
class Child {
 public:
  Child() {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    child_ = fork();
    if (child_ < 0) throw std::runtime_error("no process");
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      serve("127.0.0.1:0", ends[1]);
    }
    close(ends[1]);
    for (char digit = 0; read(ends[0], &digit, 1) == 1 && digit != '\n';) port_ += digit;
    close(ends[0]);
  }
  ~Child() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  std::string address() const { return "127.0.0.1:" + port_; }

 private:
  pid_t child_ = -1;
  std::string port_;
};

void check(const grpc::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error_message());
}

class Measurement {
 public:
  Measurement(const std::string& address, const Options& options)
      : options_(options),
        stub_(Peer::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))),
        memory_(kLargest, 'y') {}

  void run() {
    row("empty", 0, [this] { echo(0); });
    for (const std::size_t bytes :
         {std::size_t{4}, std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{1} << 20})
      row("echo", bytes, [this, bytes] { echo(bytes); });
    row("pull", kLargest, [this] { pull(); });
    row("push", kLargest, [this] { push(); });
  }

 private:
  void row(const char* what, std::size_t bytes, const std::function<void()>& call) {
    for (int i = 0; i < kWarmUpCalls; ++i) call();
    std::vector<double> us;
    const auto end = Clock::now() + std::chrono::duration<double>(options_.seconds);
    while (us.size() < kLeastCalls || Clock::now() < end) {
      const auto start = Clock::now();
      call();
      us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    std::sort(us.begin(), us.end());
    const double median = us[us.size() / 2];
    fmt::print(R"({{"peer":"grpc","what":"{}","bytes":{},"us":{:.1f},"min_us":{:.1f},"GBps":{:.3f}}})"
               "\n",
               what, bytes, median, us.front(), static_cast<double>(bytes) / median / 1e3);
    std::fflush(stdout);
  }
  void limit(grpc::ClientContext& context) const {
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
  }
  void echo(std::size_t bytes) {
    grpc::ClientContext context;
    limit(context);
    Chunk request, response;
    request.set_data(memory_.data(), bytes);
    check(stub_->Echo(&context, request, &response));
    if (response.data().size() != bytes) throw std::runtime_error("an echo of other bytes came");
  }
  void pull() {
    grpc::ClientContext context;
    limit(context);
    Amount wanted;
    wanted.set_bytes(kLargest);
    wanted.set_chunk_bytes(options_.chunk_bytes);
    const auto reader = stub_->Pull(&context, wanted);
    Chunk chunk;
    std::size_t came = 0;
    for (; reader->Read(&chunk) && came + chunk.data().size() <= memory_.size(); came += chunk.data().size())
      std::memcpy(memory_.data() + came, chunk.data().data(), chunk.data().size());
    check(reader->Finish());
    if (came != kLargest) throw std::runtime_error("other bytes came than were asked for");
  }
  void push() {
    grpc::ClientContext context;
    limit(context);
    Amount taken;
    const auto writer = stub_->Push(&context, &taken);
    Chunk chunk;
    for (std::size_t sent = 0; sent < kLargest;) {
      const std::size_t now = std::min(options_.chunk_bytes, kLargest - sent);
      chunk.set_data(memory_.data() + sent, now);
      if (!writer->Write(chunk)) break;
      sent += now;
    }
    writer->WritesDone();
    check(writer->Finish());
    if (taken.bytes() != kLargest) throw std::runtime_error("other bytes went than were sent");
  }

  const Options options_;
  std::unique_ptr<Peer::Stub> stub_;
  std::string memory_;
};

double number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument(fmt::format("\"{}\" is no number", text));
  return value;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "serve" && has_value) options.serve = argv[++i];
    else if (word == "--seconds" && has_value) options.seconds = number_of(argv[++i]);
    else if (word == "--chunk" && has_value) options.chunk_bytes = std::stoul(argv[++i]);
    else if (!word.starts_with("-") && options.address.empty()) options.address = word;
    else throw std::invalid_argument(fmt::format("\"{}\" is not understood", word));
  }
  if (options.chunk_bytes == 0 || options.chunk_bytes > (std::size_t{3} << 20))
    throw std::invalid_argument("--chunk is from 1 to 3 MiB, below gRPC's limit of a message");
  return options;
}

}  // namespace
}  // namespace kolo::bench

int main(int argc, char** argv) {
  using namespace kolo::bench;
  Options options;
  try {
    options = parse(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "kolo-grpc-peer: {}\n", error.what());
    return 2;
  }
  try {
    if (!options.serve.empty()) serve(options.serve, STDOUT_FILENO);
    if (!options.address.empty()) return Measurement(options.address, options).run(), 0;
    const Child server;  // forked before gRPC has threads
    Measurement(server.address(), options).run();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "kolo-grpc-peer: {}\n", error.what());
    return 1;
  }
}
