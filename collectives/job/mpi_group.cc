#include <kolo/collectives/job/mpi_group.h>

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include <kolo/collectives/algorithms/text_comparison.h>
#include <kolo/collectives/algorithms/text_exchange.h>

namespace kolo::detail {
namespace {

// An operation and the memory it works on, which stays alive with it: an operation that is given up half-way
// leaves messages behind.
template <typename Memory>
std::shared_ptr<Collective> with_memory(std::shared_ptr<Collective> operation,
                                        std::shared_ptr<Memory> memory) {
  using Both = std::pair<std::shared_ptr<Collective>, std::shared_ptr<Memory>>;
  const auto both = std::make_shared<Both>(std::move(operation), std::move(memory));
  return {both, both->first.get()};
}

template <typename T>
std::span<std::byte> bytes_of(T& value) {
  return {reinterpret_cast<std::byte*>(&value), sizeof value};
}
std::span<std::byte> bytes_of(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}

using OwnAndParts = std::pair<Tensor, std::vector<Tensor>>;

}  // namespace

void MpiGroup::broadcast(std::span<const Tensor> tensors, int root) {
  int number = 0;
  for (const auto& tensor : tensors) {
    auto operation = runtime_->world().broadcast({tensor.raw(), tensor.bytes()}, root);
    runtime_->thread().run(
        kControlChannel, with_memory(std::move(operation), std::make_shared<Tensor>(tensor)),
        fmt::format("the broadcast from rank {} (tensor {} of {})", root, ++number, tensors.size()));
  }
}

void MpiGroup::gather(const Tensor& own, std::span<const Tensor> parts, int root) {
  const auto memory = std::make_shared<OwnAndParts>(own, std::vector<Tensor>(parts.begin(), parts.end()));
  std::vector<std::span<std::byte>> blocks;
  for (const Tensor& part : parts) blocks.emplace_back(part.raw(), part.bytes());
  auto operation = runtime_->world().gather({own.raw(), own.bytes()}, blocks, root);
  runtime_->thread().run(kControlChannel, with_memory(std::move(operation), memory),
                         fmt::format("the gathering of a tensor on rank {}", root));
}

void MpiGroup::scatter(std::span<const Tensor> parts, const Tensor& own, int root) {
  const auto memory = std::make_shared<OwnAndParts>(own, std::vector<Tensor>(parts.begin(), parts.end()));
  std::vector<std::span<const std::byte>> blocks;
  for (const Tensor& part : parts) blocks.emplace_back(part.raw(), part.bytes());
  auto operation = runtime_->world().scatter(blocks, {own.raw(), own.bytes()}, root);
  runtime_->thread().run(kControlChannel, with_memory(std::move(operation), memory),
                         fmt::format("the scattering of a tensor from rank {}", root));
}

std::string MpiGroup::broadcast(const std::string& text, int root) {
  const std::string label = fmt::format("the broadcast of a text from rank {}", root);
  const auto length = std::make_shared<std::int64_t>(static_cast<std::int64_t>(text.size()));
  runtime_->thread().run(kControlChannel,
                         with_memory(runtime_->world().broadcast(bytes_of(*length), root), length), label);
  const auto received = std::make_shared<std::string>(text);
  received->resize(static_cast<std::size_t>(*length));
  runtime_->thread().run(
      kControlChannel, with_memory(runtime_->world().broadcast(bytes_of(*received), root), received), label);
  return *received;
}

std::vector<std::string> MpiGroup::allgather(const std::string& text) {
  const auto exchange = std::make_shared<TextExchange>(runtime_->world());
  exchange->set_own(text);
  runtime_->thread().run(kControlChannel, exchange, "an exchange between all ranks");
  return exchange->texts();
}

bool MpiGroup::is_same_everywhere(const std::string& text) {
  auto& world = runtime_->world();
  const auto comparison = std::make_shared<TextComparison>(world.messages(), world.topology(), text);
  runtime_->thread().run(kControlChannel, comparison, "a comparison between all ranks");
  return comparison->is_same();
}

}  // namespace kolo::detail
