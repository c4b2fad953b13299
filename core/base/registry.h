// Things that register themselves by name when the library, or a plug-in, is loaded: ops, optimizers, models.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/source_line.h>
#include <kolo/core/base/text.h>

namespace kolo {

/// A function-local static of the file that has the registering type's constructor. Written while libraries
/// are loaded, one thread at a time; read by any thread.
template <typename T>
class Registry {
 public:
  /// kind: what there are, in the singular, for messages.
  explicit Registry(const char* kind) : kind_(kind) {}

  /// Throws InternalError, with both places, for a name that is taken: one of two would be lost.
  void add(const std::string& name, T thing, SourceLine place) {
    const auto [entry, is_new] = entries_.try_emplace(name, std::move(thing), place);
    if (is_new) return;
    throw InternalError("{} \"{}\" is registered twice: {} and {}", kind_, name, entry->second.place.text(),
                        place.text());
  }

  /// nullptr if there is none of this name.
  const T* find(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second.thing;
  }

  /// Throws InvalidArgumentError that names the nearest one and all that there are.
  const T& at(const std::string& name) const {
    if (const T* const found = find(name)) return *found;
    std::string known;
    for (const auto& [other, entry] : entries_) known += (known.empty() ? "" : ", ") + other;
    throw InvalidArgumentError("there is no {} \"{}\"{} (known: {})", kind_, name,
                               did_you_mean(name, names()), known);
  }

  /// Sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }

 private:
  struct Entry {
    Entry(T of, SourceLine at) : thing(std::move(of)), place(at) {}
    T thing;
    SourceLine place;
  };

  const char* kind_;
  std::map<std::string, Entry> entries_;
};

}  // namespace kolo
