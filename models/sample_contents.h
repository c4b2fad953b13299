// What is in samples, as numbers by which they are known again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <kolo/core/tensor/tensor.h>

namespace kolo::models::detail {

inline constexpr std::uint64_t kDigestOfNothing = 0xcbf29ce484222325;
/// A number of these bytes (FNV-1a). before: of those in front of them. A faster hash would draw other
/// pictures for testing than folders of checkpoints so far have trained without.
std::uint64_t digest_of_bytes(std::span<const std::byte> bytes, std::uint64_t before = kDigestOfNothing);

/// What samples are known again by: what is in them, whatever they are called and wherever they lie.
struct SampleContents {
  std::int64_t count = 0;
  std::function<std::uint64_t(std::int64_t place)> digest;
  // Of pictures: bytes of the file, which cost no reading. A file of another length is another picture.
  std::function<std::uint64_t(std::int64_t place)> bytes = {};
  const char* name = "samples";  // what they are
  // [N,…] f32 or u8: of rows, the numbers that they are made of; empty: nobody knows them.
  std::vector<Tensor> numbers = {};
  // By what it is found among all that a training has learnt from (mark_of); empty: by its digest. Of
  // pictures: by parts of the file.
  std::function<std::uint64_t(std::int64_t place)> part = {};
  // Of a text: its pieces, which are found instead, and which of them are for testing. Only so many one
  // behind the other are a passage of it.
  std::shared_ptr<const SampleContents> pieces = nullptr;
  std::vector<std::int64_t> drawn_pieces = {};
  std::int64_t least_run = 1;
};

/// Of rows in memory, which stay there as long as this: digest says what is in one. All digests are made
/// when the first is asked for.
SampleContents contents_of_rows(std::int64_t count, std::function<std::uint64_t(std::int64_t row)> digest);
/// Of an array [N,…]: a sample by its elements.
SampleContents contents_of_array(const Tensor& x);

}  // namespace kolo::models::detail
