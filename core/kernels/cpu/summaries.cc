#include <string>
#include <vector>

#include <kolo/core/kernels/cpu/element_types.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/summary/summary_writer.h>

namespace kolo {
namespace {

void give(KernelContext& context, SummaryBytes summary) {
  context.set_output(0, Tensor::scalar<std::string>(std::move(summary)));
}

class TaggedKernel : public Kernel {
 public:
  explicit TaggedKernel(const KernelInit& init) {
    const std::string family = init.attr<std::string>("family");
    tag_ = family.empty() ? init.node() : family + '/' + init.node();
  }

 protected:
  std::string tag_;
};

class ScalarSummaryKernel final : public TaggedKernel {
 public:
  using TaggedKernel::TaggedKernel;
  void compute(KernelContext& context) override {
    detail::with_type(context.input(0).dtype(), [&](auto type) {
      using T = typename decltype(type)::type;
      const auto value = static_cast<detail::Computed<T>>(context.input(0).template value<T>());
      give(context, scalar_summary(tag_, static_cast<double>(value)));
    });
  }
};

class HistogramSummaryKernel final : public TaggedKernel {
 public:
  using TaggedKernel::TaggedKernel;
  void compute(KernelContext& context) override { give(context, histogram_summary(tag_, context.input(0))); }
};

class ImageSummaryKernel final : public TaggedKernel {
 public:
  explicit ImageSummaryKernel(const KernelInit& init)
      : TaggedKernel(init), max_images_(init.attr<int>("max_images")) {}
  void compute(KernelContext& context) override {
    give(context, image_summary(tag_, context.input(0), max_images_));
  }

 private:
  int max_images_;
};

class TextSummaryKernel final : public TaggedKernel {
 public:
  using TaggedKernel::TaggedKernel;
  void compute(KernelContext& context) override { give(context, text_summary(tag_, context.input(0))); }
};

void merge_all_inputs(KernelContext& context) {
  std::vector<SummaryBytes> summaries;
  for (int i = 0; i < context.num_inputs(); ++i) summaries.push_back(context.input(i).value<std::string>());
  give(context, merge_summaries(summaries));
}

const RegisterKernel scalar("ScalarSummary", "CPU", {}, make_kernel<ScalarSummaryKernel>);
const RegisterKernel histogram("HistogramSummary", "CPU", {}, make_kernel<HistogramSummaryKernel>);
const RegisterKernel image("ImageSummary", "CPU", {}, make_kernel<ImageSummaryKernel>);
const RegisterKernel text("TextSummary", "CPU", {}, make_kernel<TextSummaryKernel>);
const RegisterKernel merge("MergeSummary", "CPU", {}, merge_all_inputs);

}  // namespace
}  // namespace kolo
