// A table as a list of types: each row is one, and code that wants a case for each row folds over the list.
#pragma once

#include <string_view>

namespace kolo::elements {

/// Stands for a row where a value of it would be too much.
template <typename T>
struct Row {
  using type = T;
};

/// Each row has its name, `static constexpr const char* kName`. Only the host reads it: nvcc takes no string
/// as a template argument. No two rows have one name.
template <typename... Rows>
struct List {
  template <template <typename...> typename Other>
  using As = Other<Rows...>;

  /// The number of the row of this name, −1 where there is none.
  static constexpr int index(std::string_view name) {
    int next = 0, found = -1;
    ((Rows::kName == name ? found = next++ : next++), ...);
    return found;
  }
  /// Calls visit(Row<R>()) for each row R.
  template <typename Visit>
  static void each(const Visit& visit) {
    (visit(Row<Rows>()), ...);
  }
  /// Calls visit(Row<R>()) for row number `index`, for none where the number is none of a row's.
  template <typename Visit>
  static void at(int index, const Visit& visit) {
    int next = 0;
    ((next++ == index ? visit(Row<Rows>()) : void()), ...);
  }
};

}  // namespace kolo::elements
