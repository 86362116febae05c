// SPDX-License-Identifier: Apache-2.0
#include "plan/validate_block.h"

namespace lathe::plan {
namespace {

template <class... Args>
tl::unexpected<Error> malformed(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::plan_malformed, format, std::forward<Args>(args)...);
}

constexpr size_t kControls = 2;  // operands and params of a loop before the carried ones

class BlockChecker {
 public:
  BlockChecker(const Plan& plan, const Step& step, const Block& block) : plan_(plan), step_(step), block_(block) {}

  Result<> run() const {
    const size_t bodies = block_.kind == BlockKind::branch ? 2 : 1;
    if (block_.bodies.size() != bodies) return malformed("it is a {} of {} bodies", step_.kind(), block_.bodies.size());
    if (block_.kind == BlockKind::loop) return check_loop();
    if (block_.carried != 0 || !block_.trips.empty() || !block_.scanned.empty() || !block_.stacked.empty())
      return malformed("it is a {} that carries values", step_.kind());
    return block_.kind == BlockKind::branch ? check_branch() : check_call();
  }

 private:
  const TensorDesc& tensor(TensorId id) const { return plan_.tensors[id]; }

  Result<> check_count(const char* what, size_t is, size_t wanted) const {
    return is == wanted ? Result<>() : malformed("it is a {} with {} {}, not {}", step_.kind(), is, what, wanted);
  }

  // A number or a truth value of its own: no dimensions, or one element.
  Result<> check_scalar(TensorId id, DType dtype, const char* what) const {
    if (id == kNoTensor) return {};
    const TensorDesc& t = tensor(id);
    const bool is_one = t.dims.empty() || (t.dims.size() == 1 && t.dims[0] == Expr(1));
    return is_one && t.dtype == dtype && t.kind == ValueKind::tensor
               ? Result<>()
               : malformed("its {} is no single {}", what, lathe::name_of(dtype));
  }

  // A value moves from one tensor to the other. `less`: dimensions that it loses on the way.
  Result<> check_move(TensorId from, TensorId to, size_t less, const char* what) const {
    if (from == kNoTensor || to == kNoTensor) return malformed("its {} lacks a tensor", what);
    const TensorDesc &a = tensor(from), &b = tensor(to);
    if (a.dtype == b.dtype && a.kind == b.kind && a.dims.size() == b.dims.size() + less) return {};
    return malformed("its {} '{}' and '{}' are of different types or ranks", what, a.name, b.name);
  }
  Result<> check_optional_move(TensorId from, TensorId to, const char* what) const {
    return to == kNoTensor ? Result<>() : check_move(from, to, 0, what);
  }

  Result<> check_slice(TensorId whole, TensorId part, const Slice& slice, const char* what) const {
    LATHE_TRY(check_move(whole, part, 1, what));
    if (is_packed(tensor(whole).dtype)) return malformed("its {} has elements that share bytes", what);
    return slice.axis < tensor(whole).dims.size() ? Result<>() : malformed("its {} has no axis {}", what, slice.axis);
  }

  Result<> check_loop() const {
    const Body& body = block_.bodies[0];
    const size_t carried = block_.carried, scanned = block_.scanned.size(), stacked = block_.stacked.size();
    LATHE_TRY(check_count("inputs", step_.inputs.size(), kControls + carried + scanned));
    LATHE_TRY(check_count("params", body.params.size(), kControls + carried + scanned));
    LATHE_TRY(check_count("results", body.results.size(), 1 + carried + stacked));
    LATHE_TRY(check_count("outputs", step_.outputs.size(), carried + stacked));
    for (const TensorId id : {step_.inputs[0], body.params[0]}) LATHE_TRY(check_scalar(id, DType::i64, "round"));
    for (const TensorId id : {step_.inputs[1], body.params[1], body.results[0]})
      LATHE_TRY(check_scalar(id, DType::boolean, "condition"));
    if (body.params[1] != kNoTensor && (step_.inputs[1] == kNoTensor || body.results[0] == kNoTensor))
      return malformed("its body wants a condition that the loop lacks");
    if (block_.trips.size() + (step_.inputs[0] != kNoTensor) > 1) return malformed("it is a loop with two trip counts");
    const bool counts = !block_.trips.empty() || step_.inputs[0] != kNoTensor;
    if (!counts && body.results[0] == kNoTensor && scanned == 0) return malformed("it is a loop that nothing ends");
    for (size_t i = 0; i < carried; ++i) {
      const TensorId begun = body.params[kControls + i], left = body.results[1 + i];
      LATHE_TRY(check_move(step_.inputs[kControls + i], begun, 0, "carried value"));
      LATHE_TRY(check_move(left, begun, 0, "carried value"));
      LATHE_TRY(check_optional_move(left, step_.outputs[i], "carried value"));
    }
    for (size_t i = 0; i < scanned; ++i)
      LATHE_TRY(check_slice(step_.inputs[kControls + carried + i], body.params[kControls + carried + i],
                            block_.scanned[i], "scanned value"));
    for (size_t i = 0; i < stacked; ++i)
      LATHE_TRY(
          check_slice(step_.outputs[carried + i], body.results[1 + carried + i], block_.stacked[i], "stacked value"));
    return {};
  }

  Result<> check_branch() const {
    LATHE_TRY(check_count("inputs", step_.inputs.size(), 1));
    if (step_.inputs[0] == kNoTensor) return malformed("it is a branch without a condition");
    LATHE_TRY(check_scalar(step_.inputs[0], DType::boolean, "condition"));
    for (const Body& body : block_.bodies) {
      LATHE_TRY(check_count("params", body.params.size(), 0));
      LATHE_TRY(check_results(body));
    }
    return {};
  }

  Result<> check_call() const {
    const Body& body = block_.bodies[0];
    LATHE_TRY(check_count("params", body.params.size(), step_.inputs.size()));
    for (size_t i = 0; i < body.params.size(); ++i)
      LATHE_TRY(check_optional_move(step_.inputs[i], body.params[i], "argument"));
    return check_results(body);
  }

  Result<> check_results(const Body& body) const {
    LATHE_TRY(check_count("results", body.results.size(), step_.outputs.size()));
    for (size_t i = 0; i < body.results.size(); ++i)
      LATHE_TRY(check_optional_move(body.results[i], step_.outputs[i], "result"));
    return {};
  }

  const Plan& plan_;
  const Step& step_;
  const Block& block_;
};

}  // namespace

Result<> check_block(const Plan& plan, const Step& step, const Block& block) {
  return BlockChecker(plan, step, block).run();
}

}  // namespace lathe::plan
