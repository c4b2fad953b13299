#include <kolo/models/dataset.h>

#include <kolo/models/generated_digits.h>
#include <kolo/models/mnist.h>

namespace kolo::models {

const char* name(Split split) { return split == Split::train ? "train" : "test"; }

std::optional<Dataset> load_digits(const std::optional<std::string>& data, Split split) {
  if (data == "generated") return generated_digits(split);
  const auto folder = find_mnist(data);
  if (split == Split::test && !has_mnist_test(folder)) return std::nullopt;
  return load_mnist(folder, split);
}

}  // namespace kolo::models
