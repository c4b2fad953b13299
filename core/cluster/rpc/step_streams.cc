#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include <kolo/core/base/error.h>

#include <kolo/core/cluster/rpc/step_streams_internal.h>

namespace kolo::detail {

IncomingValues::IncomingValues(std::vector<std::string> keys, std::string from, const RpcLimits& limits)
    : keys_(std::move(keys)),
      from_(std::move(from)),
      reader_(*this, limits),
      came_(keys_.size(), false),
      missing_(keys_.size()) {}

void IncomingValues::attach(const std::vector<std::string>& keys, std::shared_ptr<TensorReceiver> receiver) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < keys.size(); ++i) places[keys[i]] = i;
  std::vector<std::size_t> found;
  for (const std::string& key : keys_) {
    const auto place = places.find(key);
    if (place != places.end()) found.push_back(place->second);
  }
  if (found.size() != keys.size() || found.size() != keys_.size())
    throw InvalidArgumentError("{} sends {} values of the step, of which {} are among the {} it is to send",
                               from_, keys_.size(), found.size(), keys.size());
  std::exception_ptr error;
  {
    MutexLock lock(mutex_);
    if (std::exchange(attached_, true)) throw InternalError("values of {} have two receivers", from_);
    places_ = std::move(found);
    if (!ended_) {
      receiver_ = std::move(receiver);
      return;
    }
    error = error_;
  }
  receiver->ended(error);
}

void IncomingValues::read(const MessagePieces& message) {
  {
    MutexLock lock(mutex_);
    reading_to_ = receiver_;
  }
  if (reading_to_ == nullptr) throw ConsequenceError(Code::cancelled, "the step is over");
  reader_.read(message.pieces());
  reading_to_.reset();
  if (complete()) end(nullptr);
}

void IncomingValues::end(std::exception_ptr error) {
  if (error == nullptr && !complete())
    error = std::make_exception_ptr(
        DataLossError("{} ended with {} of {} values missing", from_, missing_, keys_.size()));
  std::shared_ptr<TensorReceiver> receiver;
  {
    MutexLock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    error_ = error;
    receiver = std::move(receiver_);
  }
  if (receiver != nullptr) receiver->ended(std::move(error));
}

Tensor IncomingValues::memory_for(std::size_t key, DType dtype, const Shape& shape) {
  check(key);
  return reading_to_->memory_for(places_[key], dtype, shape);
}

void IncomingValues::on_tensor(std::size_t key, Tensor value, bool dead, bool absent) {
  check(key);
  if (absent) throw InvalidArgumentError("value {} came without one", key);
  came_[key] = true;
  --missing_;
  reading_to_->arrived(places_[key], std::move(value), dead);
}

void IncomingValues::on_bytes(PayloadKind /*kind*/, std::string /*bytes*/) {
  throw InvalidArgumentError("other bytes came where values were asked for");
}

void IncomingValues::check(std::size_t key) const {
  if (key >= came_.size()) throw InvalidArgumentError("value {} of {} came", key, came_.size());
  if (came_[key]) throw InvalidArgumentError("value {} came twice", key);
}

void StepStreams::set_own(std::weak_ptr<TensorSource> own) {
  MutexLock lock(mutex_);
  own_ = std::move(own);
}

std::shared_ptr<TensorSource> StepStreams::own() {
  MutexLock lock(mutex_);
  return own_.lock();
}

void StepStreams::add(const Name& name, Stream stream) {
  MutexLock lock(mutex_);
  if (!streams_.emplace(name, std::move(stream)).second)
    throw AbortedError("{} has sent step {} of session {} before", name.sender, name.step, name.session);
}

void StepStreams::remove(const Name& name) {
  Stream dropped;  // destroyed without the lock
  MutexLock lock(mutex_);
  const auto found = streams_.find(name);
  if (found == streams_.end()) return;
  dropped = std::move(found->second);
  streams_.erase(found);
}

bool StepStreams::receive(const TensorsRequest& request, const std::string& sender,
                          const std::shared_ptr<TensorReceiver>& receiver) {
  Stream stream;
  {
    MutexLock lock(mutex_);
    const auto found = streams_.find({request.session, request.step, sender});
    if (found == streams_.end()) return false;
    stream = found->second;
  }
  stream.values->attach(request.keys, receiver);
  stream.read();
  return true;
}

Outgoing lent_tensor(std::size_t key, const Tensor& value, std::size_t chunk_bytes, KeptThreads& threads,
                     std::function<void()> released) {
  const auto sender = std::this_thread::get_id();
  const auto within = std::make_shared<std::atomic<bool>>(true);  // cleared and read by this thread alone
  auto let_go = [&threads, released = std::move(released), sender, within] {
    if (*within && std::this_thread::get_id() == sender) released();
    else threads.run(released);
  };
  auto outgoing = Outgoing::tensor(key, value, chunk_bytes, std::move(let_go));
  *within = false;
  return outgoing;
}

}  // namespace kolo::detail
