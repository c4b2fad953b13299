#include <kolo/optimizer/compression/none.h>

namespace kolo {
namespace {

class NoCompression final : public Compression {
 public:
  std::string name() const override { return "none"; }
  bool is_element_wise() const override { return true; }
  Outputs reduce(const Scope& s, std::span<const GradientPair> local,
                 GradientReducer& reducer) const override {
    Outputs values;
    std::vector<std::string> names;
    for (const GradientPair& pair : local) {
      values.push_back(pair.gradient);
      names.push_back(pair.variable.name());
    }
    return reducer.reduce(s, values, names);
  }
};

}  // namespace

std::shared_ptr<const Compression> no_compression() { return std::make_shared<NoCompression>(); }

}  // namespace kolo
