#include <cctype>

#include <kolo/core/base/text.h>
#include <kolo/models/keras/names_internal.h>

namespace kolo::keras::detail {

// Keras' two rules: a capital with small letters behind it begins a word, and so does one behind a small
// letter or a digit.
std::string snake_case(const std::string& class_name) {
  const auto is = [&](std::size_t i, int (*kind)(int)) {
    return i < class_name.size() && kind(static_cast<unsigned char>(class_name[i])) != 0;
  };
  std::string name;
  for (std::size_t i = 0; i < class_name.size(); ++i) {
    const bool begins_word =
        i > 0 && is(i, std::isupper) && ((is(i + 1, std::islower)) || is(i - 1, std::islower));
    if (begins_word) name += '_';
    name += lower_case(class_name[i]);
  }
  return name;
}

std::string unknown_text(const std::string& kind, const std::string& name,
                         const std::vector<std::string>& known) {
  return "Unknown " + kind + ": " + name + did_you_mean(name, known);
}

std::string shape_text(const Shape& shape) {
  if (!shape.has_rank()) return "(unknown)";
  std::string text;
  for (const std::int64_t dim : shape.dims())
    text += (text.empty() ? "" : ", ") + (dim < 0 ? std::string("None") : std::to_string(dim));
  return '(' + text + (shape.rank() == 1 ? ",)" : ")");
}

std::string list_text(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "'" : ", '") + item + "'";
  return '[' + text + ']';
}

}  // namespace kolo::keras::detail
