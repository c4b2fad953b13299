// Memory of the fake GPUs. A device's address is one at which the host has no memory: whoever forgets that
// and reads or writes there is told so at once, and memory that was given back never comes again.
//
// KOLO_FAKE_CUDA_GPUS   how many the machine has (1), each with a GiB; CUDA_VISIBLE_DEVICES shows some of
// them KOLO_FAKE_CUDA_TAKEN  MiB of each that another process has (0)
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kolo::fake_cuda {

// All are called under state_mutex().

/// Those that are visible. They are counted anew from 0, as CUDA does.
int gpus();
/// True if all are slices of one GPU (MIG), as KOLO_FAKE_CUDA_SLICES=1 wants it: of one place on the bus.
bool are_slices();
/// What a visible one is in the machine: part of its UUID and of its place on the bus.
int number_in_machine(int gpu);
inline constexpr std::size_t kBytesOfGpu = std::size_t{1} << 30;
std::size_t free_bytes(int gpu);

/// nullptr where there is no room. Filled with NaN, as far as that is cheap.
void* take_memory(int gpu, std::size_t bytes);
void give_back_memory(int gpu, void* memory);
void* take_pinned(std::size_t bytes);
void give_back_pinned(void* memory);

enum class Place { pageable, pinned, device };
struct Found {
  Place place = Place::pageable;
  int gpu = -1;
};
/// Reported where it lies among devices' addresses, but not in live memory, or reaches beyond it.
Found find_memory(const void* memory, std::size_t bytes);
/// Where the host finds device memory; reported if it is not live memory of that GPU or is not aligned.
std::byte* on_host(int gpu, const void* memory, std::size_t bytes, std::size_t alignment = 1);

/// From begin_naming() to end_naming() this thread's calls, and its launches, keep which allocations they
/// name.
void begin_naming();
std::vector<const void*> end_naming();

/// What has not been given back; "" where all has.
std::string memory_left();

}  // namespace kolo::fake_cuda
