#include <kolo/models/data.h>
#include <kolo/models/folder_contents.h>

#include <fmt/format.h>

#include <string_view>

namespace kolo::models {

std::string left_out_text(const LeftOut& left_out) {
  std::string text;
  for (const auto& [kind, count] : left_out)
    text += fmt::format("{}{}", text.empty() ? "left out: " : ", ", detail::count_of_kind(count, kind));
  return text;
}

}  // namespace kolo::models

namespace kolo::models::detail {

std::string count_of_kind(std::int64_t count, const std::string& kind) {
  std::string text = fmt::format("{} {}", count, kind);
  if (count == 1 && kind == kLinksUp) return "1 link that leads back up";
  for (const std::string_view several : {"pictures", "links", "files", "folders", "tables"})
    if (const std::size_t at = text.find(several); count == 1 && at != std::string::npos)
      text.erase(at + several.size() - 1, 1);
  return text;
}

}  // namespace kolo::models::detail
