#include <kolo/core/runtime/exchange_numbers.h>

#include <fmt/format.h>

#include <string_view>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo::detail {
namespace {

// `<bytes>:<name>`, so that a name may hold what separates others.
void put_name(std::string& text, std::string_view name) { text += fmt::format("{}:{}", name.size(), name); }

class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {}

  bool at_end() const { return left_.empty(); }

  std::string name() {
    const std::size_t colon = left_.find(':');
    const auto size = parse_int64(left_.substr(0, colon));
    if (!size || colon == std::string_view::npos || *size < 0 ||
        static_cast<std::size_t>(*size) > left_.size() - colon - 1)
      throw InternalError("a rank sent {:?} as a name and its numbers", left_.substr(0, 40));
    const std::string name(left_.substr(colon + 1, static_cast<std::size_t>(*size)));
    left_.remove_prefix(colon + 1 + name.size());
    return name;
  }

  // To the end of the line: its numbers.
  std::vector<double> numbers() {
    const std::size_t end = left_.find('\n');
    std::vector<double> found = parse_exact(left_.substr(0, end));
    left_.remove_prefix(end == std::string_view::npos ? left_.size() : end + 1);
    return found;
  }

 private:
  std::string_view left_;
};

}  // namespace

std::vector<std::vector<double>> allgather_numbers(Group& group, const std::vector<double>& own) {
  std::vector<std::vector<double>> all;
  for (const std::string& text : group.allgather(exact_text(own))) all.push_back(parse_exact(text));
  return all;
}

std::vector<NamedNumbers> allgather_named(Group& group, const NamedNumbers& own) {
  std::string mine;
  for (const auto& [name, numbers] : own) {
    put_name(mine, name);
    mine += exact_text(numbers) + '\n';
  }
  std::vector<NamedNumbers> all;
  for (const std::string& text : group.allgather(mine)) {
    NamedNumbers& theirs = all.emplace_back();
    for (Reader reader(text); !reader.at_end();) {
      std::string name = reader.name();
      theirs.emplace_back(std::move(name), reader.numbers());
    }
  }
  return all;
}

}  // namespace kolo::detail
