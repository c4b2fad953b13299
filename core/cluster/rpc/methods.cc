#include <optional>

#include <kolo/core/cluster/rpc/methods_internal.h>

namespace kolo::detail {
namespace {

// One value at a time: the next is read when the one before has been taken.
class SetVariables final : public Method, public PayloadTarget {
 public:
  explicit SetVariables(VariableCalls calls) : calls_(std::move(calls)) {}

 private:
  bool on_control(const CallHandle& call, const std::string& control) override {
    auto request = parsed<def::VariablesRequestDef>(control);
    reader_ = std::make_unique<PayloadReader>(*this, call->shared().options.limits);
    call->when_stopped([this] { end(); });
    // The call, which owns this, lives as long as the handler holds it.
    call->handle([this, call, request = std::move(request)] {
      calls_.set(call, request, [&](std::size_t key) { return take(*call, key); });
      answer(call, def::Empty());
    });
    return false;
  }
  bool on_more(const CallHandle& /*call*/, const MessagePieces& message) override {
    reader_->read(message.pieces());
    if (!arrived_) return true;
    // With this the handler may read on, on another thread: nothing of the reader is touched any more.
    MutexLock lock(mutex_);
    value_.swap(arrived_);
    changed_.notify_all();
    return false;
  }
  void on_all_read(const CallHandle& /*call*/) override { end(); }

  Tensor take(ServerCall& call, std::size_t key) {
    call.read_on();
    MutexLock lock(mutex_);
    while (!value_ && !ended_) changed_.wait(mutex_);
    if (!value_) throw CancelledError("the caller ended before value {} had come", key);
    if (value_->first != key)
      throw InvalidArgumentError("value {} came where {} was expected", value_->first, key);
    return std::exchange(value_, std::nullopt)->second;
  }
  void end() {
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  Tensor memory_for(std::size_t /*key*/, DType dtype, const Shape& shape) override { return {dtype, shape}; }
  void on_tensor(std::size_t key, Tensor value, bool /*dead*/, bool /*absent*/) override {
    if (!value) throw InvalidArgumentError("value {} came without one", key);
    arrived_.emplace(key, std::move(value));
  }
  void on_bytes(PayloadKind /*kind*/, std::string /*bytes*/) override {
    throw InvalidArgumentError("other bytes came where values were announced");
  }

  VariableCalls calls_;
  std::unique_ptr<PayloadReader> reader_;
  std::optional<std::pair<std::size_t, Tensor>> arrived_;  // with the message that is being read
  Mutex mutex_;
  CondVar changed_;
  std::optional<std::pair<std::size_t, Tensor>> value_ KOLO_GUARDED_BY(mutex_);
  bool ended_ KOLO_GUARDED_BY(mutex_) = false;
};

}  // namespace

GraphDef uploaded_graph(const ServerCall& call, const std::string& bytes) {
  GraphDef graph = decode_graph_def(bytes);
  const auto most = static_cast<std::size_t>(call.shared().options.limits.graph_nodes);
  if (graph.nodes.size() > most)
    throw ResourceExhaustedError("a graph is limited to {} nodes; {} came", most, graph.nodes.size());
  return graph;
}

void answer_run(const CallHandle& call, const std::vector<Tensor>& fetches, const RunMetadata* metadata,
                const std::vector<std::string>& placement_lines) {
  def::RunResponseDef response;
  response.set_fetches(static_cast<std::uint32_t>(fetches.size()));
  response.set_metadata(metadata != nullptr);
  put_strings(*response.mutable_placement_lines(), placement_lines);
  std::vector<Outgoing> all;
  all.push_back(Outgoing::control(response));
  if (metadata != nullptr)
    all.push_back(Outgoing::bytes(PayloadKind::metadata, encode_metadata(*metadata), call->chunk_bytes()));
  for (std::size_t i = 0; i < fetches.size(); ++i)
    all.push_back(fetches[i] ? Outgoing::tensor(i, fetches[i], call->chunk_bytes()) : Outgoing::absent(i));
  for (std::size_t i = 0; i + 1 < all.size(); ++i) call->send(std::move(all[i]));
  call->send_last(std::move(all.back()));
}

void add_variable_methods(Methods& methods, const VariableCalls& calls) {
  using GetVariables = UnaryMethod<def::VariablesRequestDef>;
  methods["GetVariables"] = [calls] {
    return std::make_unique<GetVariables>(
        [calls](const CallHandle& call, const def::VariablesRequestDef& request) {
          calls.get(call, request, [&](std::size_t key, Tensor value) {
            if (!value) return call->send(Outgoing::absent(key));
            if (!call->send_and_wait(key, value)) throw CancelledError("the caller has gone");
          });
          call->finish(nullptr);
        });
  };
  methods["SetVariables"] = [calls] { return std::make_unique<SetVariables>(calls); };
}

}  // namespace kolo::detail
