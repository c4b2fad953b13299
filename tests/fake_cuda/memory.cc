#include "memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "calls.h"

namespace kolo::fake_cuda {
namespace {

constexpr std::size_t kAddresses = std::size_t{1} << 36;  // of each GPU; none is used twice
constexpr std::size_t kPage = 4096, kPoisoned = std::size_t{32} << 20, kPoison = std::size_t{1} << 20;

struct Block {
  int gpu = -1;  // −1: pinned
  std::size_t bytes = 0;
  std::byte* host = nullptr;
  bool live = true;
};

struct Memory {
  char* addresses = nullptr;  // kAddresses a GPU, without rights
  std::vector<std::size_t> used, taken;
  std::map<const char*, Block> blocks;  // by the program's address
};

int number_of(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

// As the driver reads CUDA_VISIBLE_DEVICES: numbers, or what UUIDs begin with, those of slices too. What
// names no GPU ends the list.
std::vector<int> named_in(const char* list, int all) {
  std::vector<int> named;
  std::istringstream text(list);
  for (std::string entry; std::getline(text, entry, ',');) {
    char* rest = nullptr;
    long gpu = std::strtol(entry.c_str(), &rest, 10);
    if (entry.empty() || *rest != '\0') gpu = -1;
    for (int i = 0; i < all && entry.size() > 4; ++i)
      if (fmt::format("{}-{:02x}000000-0000-0000-0000-000000000000", are_slices() ? "MIG" : "GPU", i)
              .starts_with(entry))
        gpu = i;
    if (gpu < 0 || gpu >= all) break;
    named.push_back(static_cast<int>(gpu));
  }
  return named;
}

const std::vector<int>& visible() {
  static const std::vector<int> gpus = [] {
    const int all = number_of("KOLO_FAKE_CUDA_GPUS", 1);
    if (const char* const list = std::getenv("CUDA_VISIBLE_DEVICES")) return named_in(list, all);
    std::vector<int> every(static_cast<std::size_t>(all));
    std::iota(every.begin(), every.end(), 0);
    return every;
  }();
  return gpus;
}

struct sigaction former;
const char *first_address, *end_of_addresses;

void on_fault(int number, siginfo_t* fault, void* context) {
  const char* const address = static_cast<const char*>(fault->si_addr);
  if (address >= first_address && address < end_of_addresses)
    report("the host itself reads or writes device memory at {}", fault->si_addr);
  if ((former.sa_flags & SA_SIGINFO) != 0 && former.sa_sigaction != nullptr)
    return former.sa_sigaction(number, fault, context);
  sigaction(number, &former, nullptr);  // the access comes again
}

Memory& memory() {
  static auto* const all = [] {
    auto* const made = new Memory;
    const std::size_t bytes = kAddresses * static_cast<std::size_t>(std::max(1, gpus()));
    void* const mapped = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) report("no addresses are left for {} GPUs", gpus());
    made->addresses = static_cast<char*>(mapped);
    made->used.resize(static_cast<std::size_t>(gpus()));
    made->taken.resize(static_cast<std::size_t>(gpus()));
    first_address = made->addresses;
    end_of_addresses = made->addresses + bytes;
    struct sigaction ours = {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &ours, &former);
    return made;
  }();
  return *all;
}

thread_local bool names = false;
thread_local std::set<const void*> named;

// kPoison bytes 0xff, numbers that are none. Mapped again and again they poison memory of which a process
// pays only for the pages that it touches: writing them was half of what most tests of a few steps did.
int poison() {
  static const int file = [] {
    const int made = memfd_create("poison", MFD_CLOEXEC);
    const std::vector<char> bytes(kPoison, '\xff');
    if (made < 0 || write(made, bytes.data(), kPoison) != static_cast<ssize_t>(kPoison))
      report("the host has no file of {} bytes to poison memory with", kPoison);
    return made;
  }();
  return file;
}

void fill_with_poison(char* host, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kPoison)
    if (mmap(host + at, std::min(kPoison, bytes - at), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
             poison(), 0) == MAP_FAILED)
      report("{} bytes of device memory cannot be poisoned", bytes);
}

// The block that begins at or before an address and has not ended there; nullptr where there is none.
std::pair<const char* const, Block>* block_at(const void* address) {
  const char* const asked = static_cast<const char*>(address);
  auto& blocks = memory().blocks;
  auto behind = blocks.upper_bound(asked);
  if (behind == blocks.begin()) return nullptr;
  --behind;
  return asked < behind->first + std::max<std::size_t>(behind->second.bytes, 1) ? &*behind : nullptr;
}

Block& block_to_free(int gpu, void* address) {
  const auto found = memory().blocks.find(static_cast<const char*>(address));
  if (found == memory().blocks.end()) report("{} is not what an allocation has returned", address);
  if (!found->second.live) report("{} has been given back before", address);
  if (found->second.gpu != gpu) report("{} belongs to GPU {}, not to {}", address, found->second.gpu, gpu);
  return found->second;
}

}  // namespace

bool are_slices() {
  static const bool slices = number_of("KOLO_FAKE_CUDA_SLICES", 0) == 1;
  return slices;
}

int gpus() { return static_cast<int>(visible().size()); }
int number_in_machine(int gpu) { return visible()[static_cast<std::size_t>(gpu)]; }

std::size_t free_bytes(int gpu) {
  static const std::size_t others = static_cast<std::size_t>(number_of("KOLO_FAKE_CUDA_TAKEN", 0)) << 20;
  return kBytesOfGpu - others - memory().taken[static_cast<std::size_t>(gpu)];
}

void* take_memory(int gpu, std::size_t bytes) {
  Memory& all = memory();
  const auto g = static_cast<std::size_t>(gpu);
  if (bytes > free_bytes(gpu)) return nullptr;
  void* const host =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (host == MAP_FAILED) report("the host has no {} bytes to play device memory", bytes);
  fill_with_poison(static_cast<char*>(host), std::min(bytes, kPoisoned));
  char* const address = all.addresses + g * kAddresses + all.used[g];
  all.used[g] += (bytes + 2 * kPage - 1) / kPage * kPage;  // a page between two blocks belongs to none
  if (all.used[g] > kAddresses) report("the addresses of GPU {} are used up", gpu);
  all.taken[g] += bytes;
  all.blocks[address] = {.gpu = gpu, .bytes = bytes, .host = static_cast<std::byte*>(host)};
  return address;
}

void give_back_memory(int gpu, void* address) {
  Block& block = block_to_free(gpu, address);
  munmap(block.host, block.bytes);
  memory().taken[static_cast<std::size_t>(gpu)] -= block.bytes;
  block.live = false;
}

void* take_pinned(std::size_t bytes) {
  void* const host = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (host == MAP_FAILED) return nullptr;
  memory().blocks[static_cast<char*>(host)] = {.bytes = bytes, .host = static_cast<std::byte*>(host)};
  return host;
}

void give_back_pinned(void* address) {
  munmap(address, block_to_free(-1, address).bytes);
  memory().blocks.erase(static_cast<const char*>(address));  // the host may get it again
}

Found find_memory(const void* address, std::size_t bytes) {
  const auto* const found = block_at(address);
  const char* const asked = static_cast<const char*>(address);
  if (found == nullptr) {
    if (asked >= first_address && asked < end_of_addresses)
      report("{} lies in no allocation of a GPU", address);
    return {};
  }
  const auto& [start, block] = *found;
  if (names) named.insert(start);
  if (!block.live) report("{} lies in memory of GPU {} that was given back", address, block.gpu);
  if (asked + bytes > start + block.bytes)
    report("{} bytes at {} reach {} bytes beyond the allocation", bytes, address,
           asked + bytes - (start + block.bytes));
  return {.place = block.gpu < 0 ? Place::pinned : Place::device, .gpu = block.gpu};
}

std::byte* on_host(int gpu, const void* address, std::size_t bytes, std::size_t alignment) {
  if (bytes == 0) return nullptr;
  const Found found = find_memory(address, bytes);
  if (found.place != Place::device) report("{} is an address of the host, not of GPU {}", address, gpu);
  if (found.gpu != gpu) report("{} lies on GPU {}, the work is on GPU {}", address, found.gpu, gpu);
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0)
    report("{} is not aligned to {} bytes", address, alignment);
  const auto& [start, block] = *block_at(address);
  return block.host + (static_cast<const char*>(address) - start);
}

void begin_naming() { names = true; }
std::vector<const void*> end_naming() {
  names = false;
  const auto all = std::exchange(named, {});
  return {all.begin(), all.end()};
}

std::string memory_left() {
  std::string left;
  for (const auto& [address, block] : memory().blocks)
    if (block.live)
      left += fmt::format(" {} bytes {}", block.bytes,
                          block.gpu < 0 ? "pinned" : fmt::format("of GPU {}", block.gpu));
  return left;
}

namespace {
[[maybe_unused]] const bool asked = ask_at_the_end(memory_left);
}

}  // namespace kolo::fake_cuda
