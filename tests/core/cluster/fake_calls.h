// A worker or a master whose answers a test gives.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <kolo/core/cluster/rpc/calls.h>

namespace kolo::detail {

/// Rows of calls.h without a function answer with an empty message. Callee: Worker or Master.
template <typename Callee>
class FakeCalls : public Callee {
 protected:
  using typename Callee::Message;

  /// function(request, [graph,] deadline) answers the row from now on, with an empty message where it returns
  /// void.
  template <typename Row, typename Function>
  void on(Function function) {
    functions_[Row::kMethod] = [function](const Message& request, GraphDef* graph, Message& answer,
                                          const Deadline& deadline) {
      const auto answer_with = [&](const auto&... arguments) {
        const auto& asked = static_cast<const typename Row::Request&>(request);
        if constexpr (std::is_void_v<decltype(function(asked, arguments..., deadline))>)
          function(asked, arguments..., deadline);
        else static_cast<typename Row::Answer&>(answer) = function(asked, arguments..., deadline);
      };
      if constexpr (Row::kSendsGraph) answer_with(*graph);
      else answer_with();
    };
  }

 private:
  void on_call(std::string_view method, const Message& request, GraphDef* graph, Message& answer,
               const Deadline& deadline) override {
    const auto found = functions_.find(method);
    if (found != functions_.end()) found->second(request, graph, answer, deadline);
  }

  std::map<std::string, std::function<void(const Message&, GraphDef*, Message&, const Deadline&)>,
           std::less<>>
      functions_;
};

}  // namespace kolo::detail
