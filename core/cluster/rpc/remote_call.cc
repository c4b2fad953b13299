#include <limits>
#include <utility>

#include <kolo/core/base/error.h>

#include <kolo/core/cluster/rpc/remote_call_internal.h>

namespace kolo::detail {
namespace {

// What was asked for may be as large as it is: that there is memory for it, its allocation tells.
RpcLimits without_tensor_limit(RpcLimits limits) {
  limits.tensor_bytes = std::numeric_limits<std::int64_t>::max();
  return limits;
}

}  // namespace

Response::Response(bool has_control, std::size_t count, const RpcLimits& limits)
    : most_(count), wants_control_(has_control), reader_(*this, without_tensor_limit(limits)) {}

void Response::read(const MessagePieces& message) {
  if (std::exchange(wants_control_, false)) control = message.joined();
  else reader_.read(message.pieces());
}

bool Response::is_only_control() const {
  if (wants_control_) return false;
  const auto response = parsed<kolo::cluster::RunResponseDef>(control);
  return response.fetches() == 0 && !response.metadata();
}

void Response::check_complete() const {
  if (wants_control_ || !reader_.between()) throw DataLossError("a response ended before it was complete");
}

Tensor Response::memory_for(std::size_t key, DType dtype, const Shape& shape) {
  if (key >= most_) throw InvalidArgumentError("value {} of {} came", key, most_);
  return Tensor(dtype, shape);
}

void Response::on_tensor(std::size_t key, Tensor value, bool /*dead*/, bool /*absent*/) {
  if (key >= most_) throw InvalidArgumentError("value {} of {} came", key, most_);
  latest.emplace(key, value);
  if (key >= tensors.size()) tensors.resize(key + 1);
  tensors[key] = std::move(value);
}

void Response::on_bytes(PayloadKind kind, std::string bytes) {
  if (kind != PayloadKind::metadata) throw InvalidArgumentError("a response with a graph came");
  metadata = std::move(bytes);
}

RunResponse run_response(Response& response, std::size_t fetches) {
  const auto control = parsed<kolo::cluster::RunResponseDef>(response.control);
  if (control.fetches() > fetches)
    throw InvalidArgumentError("{} values came where {} were asked for", control.fetches(), fetches);
  RunResponse result;
  response.tensors.resize(control.fetches());
  result.fetches = std::move(response.tensors);
  if (control.metadata()) result.metadata = decode_metadata(response.metadata);
  for (const auto& line : control.placement_lines()) result.placement_lines.push_back(line);
  return result;
}

BlockingCall::BlockingCall(const To& to, bool has_control, std::size_t tensors, bool one_by_one)
    : ClientCall(to.channel, to.method, to.task, to.deadline),
      response_(has_control, tensors, to.channel->limits()),
      one_by_one_(one_by_one),
      one_message_(has_control && tensors == 0),
      on_stop_(to.deadline.stop(), [this] { cancel(); }) {}

Next BlockingCall::on_message(const MessagePieces& message) {
  response_.read(message);
  if (one_message_) return Next::none;
  if (!one_by_one_ || !response_.latest) return Next::read;
  auto& [key, value] = *response_.latest;
  response_.tensors[key] = Tensor();
  MutexLock lock(wait_mutex_);
  ready_.emplace(key, std::move(value));
  response_.latest.reset();
  if (abandoned_) return Next::read;
  paused_ = true;
  changed_.notify_all();
  return Next::pause;
}

void BlockingCall::on_end(std::exception_ptr error) {
  {
    MutexLock lock(wait_mutex_);
    over_ = true;
    error_ = std::move(error);
  }
  changed_.notify_all();  // without the lock, which who wakes takes; the transport still holds this
}

// Without deadlines of their own: a call ends at its deadline, or with the loss of its peer, which pings
// tell.
Response& BlockingCall::end() {
  MutexLock lock(wait_mutex_);
  while (!over_) changed_.wait(wait_mutex_);
  if (error_ != nullptr) std::rethrow_exception(error_);
  response_.check_complete();
  return response_;
}

std::optional<std::pair<std::size_t, Tensor>> BlockingCall::next() {
  bool resume = false;
  {
    MutexLock lock(wait_mutex_);
    resume = paused_ && !ready_;
    if (resume) paused_ = false;
  }
  if (resume) read_on();
  MutexLock lock(wait_mutex_);
  while (!over_ && !ready_) changed_.wait(wait_mutex_);
  return std::exchange(ready_, std::nullopt);
}

bool BlockingCall::send_tensor(std::size_t key, const Tensor& value, bool last) {
  {
    MutexLock lock(wait_mutex_);
    if (over_) return false;
    sending_ = true;
  }
  // Of a call that a refusal ends the transport may keep what it did not send until the call is destroyed:
  // who waited for that would wait for itself.
  const auto weak = weak_from_this();
  send(Outgoing::tensor(key, value, channel().limits().chunk_bytes,
                        [weak] {
                          const auto self = std::static_pointer_cast<BlockingCall>(weak.lock());
                          if (self != nullptr) self->let_go_of_tensor();
                        }),
       last);
  MutexLock lock(wait_mutex_);
  while (sending_ && !over_) changed_.wait(wait_mutex_);
  return !over_;
}

void BlockingCall::let_go_of_tensor() {
  MutexLock lock(wait_mutex_);
  sending_ = false;
  changed_.notify_all();
}

void BlockingCall::abandon() {
  bool resume = false;
  {
    MutexLock lock(wait_mutex_);
    abandoned_ = true;
    ready_.reset();
    resume = std::exchange(paused_, false);
  }
  cancel();
  if (resume) read_on();
}

void call_for(const BlockingCall::To& to, const google::protobuf::MessageLite& request, const GraphDef* graph,
              google::protobuf::MessageLite& answer) {
  const auto call = std::make_shared<BlockingCall>(to, true, 0, false);
  call->send(Outgoing::control(request), graph == nullptr);
  if (graph != nullptr)
    call->send(Outgoing::bytes(PayloadKind::graph, encode_graph_def(*graph), to.channel->limits().chunk_bytes,
                               graph->nodes.size()),
               true);
  if (graph == nullptr) call->start_unary();
  else call->start();
  parse_message(answer, call->end().control);
}

void get_variables_of(const BlockingCall::To& to, const kolo::cluster::VariablesRequestDef& request,
                      const std::function<void(std::size_t, Tensor)>& on_value) {
  const auto count = static_cast<std::size_t>(request.keys_size());
  const auto call = std::make_shared<BlockingCall>(to, false, count, true);
  call->send(Outgoing::control(request), true);
  call->start();
  std::size_t came = 0;
  try {
    while (auto value = call->next()) {
      if (value->first != came++) throw InternalError("{} sent its variables in another order", to.method);
      on_value(value->first, std::move(value->second));
    }
  } catch (...) {
    call->abandon();
    throw;
  }
  call->end();
  if (came != count) throw DataLossError("{} of {} variables came", came, count);
}

void set_variables_of(const BlockingCall::To& to, const kolo::cluster::VariablesRequestDef& request,
                      const std::function<Tensor(std::size_t)>& value) {
  const auto count = static_cast<std::size_t>(request.keys_size());
  const auto call = std::make_shared<BlockingCall>(to, true, 0, false);
  call->send(Outgoing::control(request), count == 0);
  call->start();
  try {
    for (std::size_t key = 0; key < count; ++key) {
      const Tensor tensor = value(key);
      if (!tensor) throw InvalidArgumentError("value {} of set_variables is empty", key);
      if (!call->send_tensor(key, tensor, key + 1 == count)) break;
    }
  } catch (...) {
    call->cancel();
    throw;
  }
  call->end();
}

}  // namespace kolo::detail
