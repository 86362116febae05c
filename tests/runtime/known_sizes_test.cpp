// SPDX-License-Identifier: Apache-2.0
// Sizes that take turns are worked out once, and runs with them are as those of a new context.
#include "runtime/known_sizes.h"

#include "lowering/engine_fixture.h"

namespace lathe {
namespace {

TEST(KnownSizes, ThoseThatWereNotLookedForTheLongestGo) {
  const std::vector<Symbol> symbols = {{"n", SymbolSource::input_dim, 0, 0, {}},
                                       {"found", SymbolSource::computed, 0, 0, {}},
                                       {"m", SymbolSource::input_value, 1, 0, {}}};
  KnownSizes known(2, symbols);
  const auto keep = [&](int64_t n, int64_t m, uint64_t kernels) {
    KnownSizes::Entry entry;
    entry.kernels = kernels;
    known.keep(std::array{n, int64_t{9}, m}, std::move(entry));
  };
  // 0 = not known.
  const auto find = [&](int64_t n, int64_t m) {
    const KnownSizes::Entry* const entry = known.find(std::array{n, Expr::kUnbound, m});
    return entry ? entry->kernels : 0;
  };
  EXPECT_EQ(find(1, 1), 0u);
  keep(1, 1, 10);
  keep(1, 2, 20);
  EXPECT_EQ(find(1, 1), 10u) << "whatever was computed";
  keep(2, 1, 30);
  EXPECT_EQ(find(1, 2), 0u);
  EXPECT_EQ(find(1, 1), 10u);
  keep(1, 1, 11);  // other kernels for the same sizes
  EXPECT_EQ(find(1, 1), 11u);
  EXPECT_EQ(find(2, 1), 30u);
  const auto steps = std::make_shared<PreparedSteps>();
  known.keep(std::array<int64_t, 3>{2, 9, 1}, {30, steps, {}});
  known.forget();
  EXPECT_EQ(find(2, 1), 0u);
  EXPECT_EQ(steps.use_count(), 1) << "what is forgotten goes";
}

// The CPU, which counts how often kernels are prepared.
int prepared = 0;

class CountingKernel final : public Kernel {
 public:
  explicit CountingKernel(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}
  Result<size_t> prepare(const Operands& operands, int threads) const override {
    ++prepared;
    return kernel_->prepare(operands, threads);
  }
  Result<> enqueue(const Operands& operands, std::byte* workspace, Queue& queue) const override {
    return kernel_->enqueue(operands, workspace, queue);
  }

 private:
  const std::unique_ptr<Kernel> kernel_;
};

Result<std::unique_ptr<Kernel>> make_counting_kernel(const StepRecord& record) {
  LATHE_ASSIGN(std::unique_ptr<Kernel> kernel, cpu::make_kernel(record));
  return std::make_unique<CountingKernel>(std::move(kernel));
}

std::shared_ptr<Device> counting_device() {
  std::shared_ptr<cpu::Workers> workers = *cpu::Workers::create({.threads = 1, .pin = false, .spin_us = 10});
  return std::make_shared<cpu::CpuDevice>(cpu::CpuDeviceOptions{
      std::move(workers), make_counting_kernel, cpu::describe_machine(1), cpu::runnable_targets(), "counts"});
}

// Runs a graph of two inputs with sizes in turns, and compares; how often kernels were prepared in each run.
std::vector<int> prepared_by_run(const std::string& text) {
  const Result<std::unique_ptr<BuiltPlan>> built = build_plan(*ir::parse_graph(text), native_options(1));
  EXPECT_TRUE(built) << built.error().to_string();
  const auto engine = load_engine(*plan::write_plan((*built)->plan), counting_device());
  const auto context = *Context::create(engine);
  std::vector<int> counts;
  for (const int64_t n : {5, 64, 1, 5, 1, 64, 64, 5}) {
    const Tensor inputs[] = {random_tensor(DType::f32, {n, 3}, 1), random_tensor(DType::boolean, {n}, 2)};
    const int before = prepared;
    const std::vector<Tensor> outputs = run_engine(*context, inputs);
    counts.push_back(prepared - before);
    const Result<std::vector<Tensor>> want = ir::interpret(*ir::parse_graph(text), inputs);
    EXPECT_TRUE(want);
    for (size_t i = 0; i < outputs.size(); ++i) expect_close(outputs[i], (*want)[i], 2e-5);
  }
  return counts;
}

constexpr const char* kStart = R"(graph "g" {
    symbol n in [1, 64]
    input %x: f32[n, 3]
    input %keep: bool[n]
    %w = constant{value=f32[3, 4]{~1}}()
    %m = matmul{}(%x, %w)
)";

TEST(KnownSizes, ThoseThatTakeTurnsAreWorkedOutOnce) {
  const std::vector<int> counts = prepared_by_run(std::string(kStart) + R"(
    %c = cast{to=f32}(%keep)
    %s = reduce{op=sum, axes=[0]}(%c)
    %y = softmax{axis=0}(%m)
    output %y
    output %s
  })");
  for (size_t run = 0; run < counts.size(); ++run)
    EXPECT_EQ(counts[run] > 0, run < 3) << counts[run] << " in run " << run;
}

// What depends on data is worked out in each run.
TEST(KnownSizes, OfRunsWhoseSizesDependOnData) {
  const std::vector<int> counts = prepared_by_run(std::string(kStart) + R"(
    %k = compress{axis=0, flat=false}(%m, %keep)
    %e = unary{op=exp}(%k)
    output %e
    output %m
  })");
  EXPECT_LT(counts[3], counts[0]);
}

}  // namespace
}  // namespace lathe
