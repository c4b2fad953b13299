// What a run is asked for, and what it is fed.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <kolo/core/graph/output.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

/// A tensor to compute, or an operation to run for its effect; an operation's result is an empty tensor. By
/// name, "scope/x:0" is a tensor and "scope/x" an operation.
struct Fetch {
  Fetch(Output tensor) : output(tensor), operation(tensor.node) {}
  Fetch(Operation op) : operation(op) {}
  Fetch(std::string of_name) : name(std::move(of_name)) {}
  Fetch(const char* of_name) : name(of_name) {}
  /// A Variable, for its value.
  template <typename T>
  requires(std::convertible_to<const T&, Output> && !std::same_as<T, Output> && !std::same_as<T, Operation>)
      Fetch(const T& tensor)
      : Fetch(static_cast<Output>(tensor)) {}

  Output output;
  Operation operation;
  std::string name;  // where it was given by name; the session looks it up
};

/// Operations to run beside the fetches.
using Targets = std::vector<Fetch>;

/// The tensor that a value replaces; by name, "scope/x:0" or "scope/x" for its output 0.
struct FeedTarget : Output {
  template <typename T>
  requires(std::convertible_to<const T&, Output>) FeedTarget(const T& tensor)
      : Output(static_cast<Output>(tensor)) {}
  FeedTarget(std::string of_name) : tensor_name(std::move(of_name)) {}
  FeedTarget(const char* of_name) : tensor_name(of_name) {}
  bool operator==(const FeedTarget&) const = default;

  std::string tensor_name;  // where it was given by name; the session looks it up
};

/// Values that replace tensors of the graph in one run. Any tensor may be fed. The elements are read during
/// the run only.
using Feeds = std::vector<std::pair<FeedTarget, Tensor>>;

/// Fetches in a structure of std::tuple, pair, array, vector and map, nested as one likes: the results come
/// in the same structure, a Tensor for each tensor or operation.
///
///   auto [loss, gradients] = session.run(std::tuple{loss_output, gradient_outputs}, feeds);
template <typename T>
struct FetchStructure {
  static constexpr bool kIsNested = false;
  using Result = Tensor;
  static void flatten(const T& fetch, std::vector<Fetch>& fetches) { fetches.push_back(Fetch(fetch)); }
  static Result rebuild(const T&, const Tensor*& next) { return *next++; }
};

/// True for structures that run() takes besides a list of fetches.
template <typename T>
concept NestedFetches = FetchStructure<T>::kIsNested && !std::same_as<T, std::vector<Fetch>>;

template <typename T>
struct FetchStructure<std::vector<T>> {
  static constexpr bool kIsNested = true;
  using Result = std::vector<typename FetchStructure<T>::Result>;
  static void flatten(const std::vector<T>& items, std::vector<Fetch>& fetches) {
    for (const T& item : items) FetchStructure<T>::flatten(item, fetches);
  }
  static Result rebuild(const std::vector<T>& items, const Tensor*& next) {
    Result result;
    for (const T& item : items) result.push_back(FetchStructure<T>::rebuild(item, next));
    return result;
  }
};

template <typename T, std::size_t kSize>
struct FetchStructure<std::array<T, kSize>> {
  static constexpr bool kIsNested = true;
  using Result = std::array<typename FetchStructure<T>::Result, kSize>;
  static void flatten(const std::array<T, kSize>& items, std::vector<Fetch>& fetches) {
    for (const T& item : items) FetchStructure<T>::flatten(item, fetches);
  }
  static Result rebuild(const std::array<T, kSize>& items, const Tensor*& next) {
    Result result;
    for (std::size_t i = 0; i < kSize; ++i) result[i] = FetchStructure<T>::rebuild(items[i], next);
    return result;
  }
};

template <typename Key, typename T>
struct FetchStructure<std::map<Key, T>> {
  static constexpr bool kIsNested = true;
  using Result = std::map<Key, typename FetchStructure<T>::Result>;
  static void flatten(const std::map<Key, T>& items, std::vector<Fetch>& fetches) {
    for (const auto& [key, item] : items) FetchStructure<T>::flatten(item, fetches);
  }
  static Result rebuild(const std::map<Key, T>& items, const Tensor*& next) {
    Result result;
    for (const auto& [key, item] : items) result.emplace(key, FetchStructure<T>::rebuild(item, next));
    return result;
  }
};

template <typename... Ts>
struct FetchStructure<std::tuple<Ts...>> {
  static constexpr bool kIsNested = true;
  using Result = std::tuple<typename FetchStructure<Ts>::Result...>;
  static void flatten(const std::tuple<Ts...>& items, std::vector<Fetch>& fetches) {
    std::apply([&](const Ts&... item) { (FetchStructure<Ts>::flatten(item, fetches), ...); }, items);
  }
  static Result rebuild(const std::tuple<Ts...>& items, const Tensor*& next) {
    // Braces: evaluated from left to right.
    return std::apply([&](const Ts&... item) { return Result{FetchStructure<Ts>::rebuild(item, next)...}; },
                      items);
  }
};

template <typename A, typename B>
struct FetchStructure<std::pair<A, B>> {
  static constexpr bool kIsNested = true;
  using Result = std::pair<typename FetchStructure<A>::Result, typename FetchStructure<B>::Result>;
  static void flatten(const std::pair<A, B>& items, std::vector<Fetch>& fetches) {
    FetchStructure<A>::flatten(items.first, fetches);
    FetchStructure<B>::flatten(items.second, fetches);
  }
  static Result rebuild(const std::pair<A, B>& items, const Tensor*& next) {
    return Result{FetchStructure<A>::rebuild(items.first, next),
                  FetchStructure<B>::rebuild(items.second, next)};
  }
};

}  // namespace kolo
