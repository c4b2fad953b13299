#include <kolo/core/cluster/worker/step_exchange.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo::detail {

class StepExchange::Asking final : public Call {
 public:
  Asking(std::weak_ptr<StepExchange> exchange, std::shared_ptr<Request> request)
      : exchange_(std::move(exchange)), request_(std::move(request)) {}

  void cancel() override {
    if (const auto exchange = exchange_.lock())
      exchange->end_request(request_, std::make_exception_ptr(ConsequenceError(
                                          Code::cancelled, "the request for tensors was cancelled")));
  }

 private:
  const std::weak_ptr<StepExchange> exchange_;
  const std::shared_ptr<Request> request_;
};

bool StepExchange::comes_to_its_end(Request& request) {
  if (request.ended || request.puts > 0 || (request.unanswered > 0 && !request.error)) return false;
  return request.ended = true;
}

void StepExchange::put(const std::string& key, const Tensor& value, bool dead,
                       std::function<void()> released) {
  Value put{value, dead, std::move(released)};
  Asked asked;
  {
    MutexLock lock(mutex_);
    if (kept_.count(key) > 0 || handed_over_.count(key) > 0)
      throw InternalError("the step sends {} twice", key);
    const auto found = asked_.find(key);
    if (found == asked_.end()) {
      kept_.emplace(key, std::move(put));
      return;
    }
    asked = std::move(found->second);
    asked_.erase(found);
    --asked.request->unanswered;
    ++asked.request->puts;
    handed_over_[key] = false;
  }
  hand_over(asked, key, std::move(put));
}

void StepExchange::hand_over(const Asked& asked, const std::string& key, Value value) {
  const auto self = shared_from_this();  // the value may be released after the step
  asked.request->sink->put(asked.place, value.tensor, value.dead,
                           [self, key, released = std::move(value.released)] {
                             {
                               MutexLock lock(self->mutex_);
                               self->handed_over_[key] = true;
                             }
                             released();
                           });
  bool ends = false;
  {
    MutexLock lock(mutex_);
    --asked.request->puts;
    ends = comes_to_its_end(*asked.request);
  }
  if (ends) asked.request->sink->end(asked.request->error);
}

bool StepExchange::withdraw(const std::string& key) {
  MutexLock lock(mutex_);
  return kept_.erase(key) > 0;
}

std::string StepExchange::state_of(const std::string& key) {
  MutexLock lock(mutex_);
  if (kept_.count(key) > 0) return "who asks for " + key;
  const auto found = handed_over_.find(key);
  return found != handed_over_.end() && !found->second ? "who takes " + key : "";
}

std::shared_ptr<Call> StepExchange::ask(const std::vector<std::string>& keys,
                                        std::shared_ptr<TensorSink> sink) {
  const auto request = std::make_shared<Request>();
  request->sink = std::move(sink);
  std::vector<std::pair<Asked, std::pair<std::string, Value>>> ready;
  bool ends = false;
  {
    MutexLock lock(mutex_);
    if (over_) request->error = over_;
    for (std::size_t i = 0; i < keys.size() && !request->error; ++i) {
      if (asked_.count(keys[i]) > 0 || handed_over_.count(keys[i]) > 0) {
        request->error = std::make_exception_ptr(InvalidArgumentError("{} was asked for twice", keys[i]));
        break;
      }
      const auto found = kept_.find(keys[i]);
      if (found == kept_.end()) {
        asked_[keys[i]] = {request, i};
        ++request->unanswered;
        continue;
      }
      ready.push_back({{request, i}, {keys[i], std::move(found->second)}});
      kept_.erase(found);
      handed_over_[keys[i]] = false;
      ++request->puts;
    }
    if (request->error)
      std::erase_if(asked_, [&](const auto& asked) { return asked.second.request == request; });
    ends = comes_to_its_end(*request);
  }
  for (auto& [asked, value] : ready) hand_over(asked, value.first, std::move(value.second));
  if (ends) request->sink->end(request->error);
  return std::make_shared<Asking>(weak_from_this(), request);
}

void StepExchange::end_request(const std::shared_ptr<Request>& request, std::exception_ptr error) {
  bool ends = false;
  {
    MutexLock lock(mutex_);
    if (request->ended || request->error) return;
    request->error = std::move(error);
    std::erase_if(asked_, [&](const auto& asked) { return asked.second.request == request; });
    ends = comes_to_its_end(*request);
  }
  if (ends) request->sink->end(request->error);
}

void StepExchange::end(std::exception_ptr error) {
  std::vector<std::shared_ptr<Request>> waiting;
  {
    MutexLock lock(mutex_);
    if (!over_) over_ = error;
    for (const auto& [key, asked] : asked_)
      if (std::find(waiting.begin(), waiting.end(), asked.request) == waiting.end())
        waiting.push_back(asked.request);
  }
  for (const auto& request : waiting) end_request(request, error);
}

}  // namespace kolo::detail
