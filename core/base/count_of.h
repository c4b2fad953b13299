// Counts in messages: one picture is not "1 pictures".
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace kolo {

/// "1 rank", "2 ranks", "3 classes". thing: a noun whose plural adds s, or es behind s, x and ch.
template <std::integral Count>
std::string count_of(Count count, std::string_view thing) {
  std::string text = std::to_string(count) + " " + std::string(thing);
  if (count == 1) return text;
  const bool adds_e = thing.ends_with('s') || thing.ends_with('x') || thing.ends_with("ch");
  return text + (adds_e ? "es" : "s");
}

}  // namespace kolo
