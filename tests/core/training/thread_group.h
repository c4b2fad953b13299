// Ranks that are threads of one process, for what needs a Group but no MPI.
#pragma once

#include <barrier>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <kolo/core/runtime/group.h>

namespace kolo {

class ThreadGroup final : public Group {
 public:
  struct Shared {
    explicit Shared(int ranks) : texts(ranks), own(ranks), arrived(ranks) {}
    std::vector<std::string> texts;
    std::span<const Tensor> tensors;
    std::vector<Tensor> own;
    std::barrier<> arrived;
  };

  ThreadGroup(Shared& shared, int rank) : shared_(shared), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(shared_.texts.size()); }
  void broadcast(std::span<const Tensor> tensors, int root) override {
    if (rank_ == root) shared_.tensors = tensors;
    shared_.arrived.arrive_and_wait();
    if (rank_ != root)
      for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].copy_from(shared_.tensors[i]);
    shared_.arrived.arrive_and_wait();
  }
  void gather(const Tensor& own, std::span<const Tensor> parts, int root) override {
    shared_.own[rank_] = own;
    shared_.arrived.arrive_and_wait();
    if (rank_ == root)
      for (std::size_t r = 0; r < parts.size(); ++r) parts[r].copy_from(shared_.own[r]);
    shared_.arrived.arrive_and_wait();
  }
  void scatter(std::span<const Tensor> parts, const Tensor& own, int root) override {
    if (rank_ == root) shared_.tensors = parts;
    shared_.arrived.arrive_and_wait();
    own.copy_from(shared_.tensors[rank_]);
    shared_.arrived.arrive_and_wait();
  }
  std::string broadcast(const std::string& text, int root) override { return allgather(text)[root]; }
  std::vector<std::string> allgather(const std::string& text) override {
    shared_.texts[rank_] = text;
    shared_.arrived.arrive_and_wait();
    std::vector<std::string> all = shared_.texts;
    shared_.arrived.arrive_and_wait();
    return all;
  }

 private:
  Shared& shared_;
  int rank_;
};

/// Runs `body` once for each rank, all at a time; returns what each threw, "" where nothing.
inline std::vector<std::string> run_ranks(int ranks, const std::function<void(Group&)>& body) {
  ThreadGroup::Shared shared(ranks);
  std::vector<std::string> errors(ranks);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      ThreadGroup group(shared, rank);
      try {
        body(group);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
  threads.clear();
  return errors;
}

}  // namespace kolo
