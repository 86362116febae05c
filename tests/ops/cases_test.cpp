// SPDX-License-Identifier: Apache-2.0
// Runs every tests/ops/*.case file on the plain evaluation. Besides the values, each block checks the shape rule: with
// every input dim replaced by a symbol it must succeed and give the true dims and contents once symbols have values.
#include <gtest/gtest.h>

#include "chosen_case.h"
#include "ops/case_file.h"

namespace lathe {
namespace {

void expect_error(const Error& error, const Case& test) {
  if (test.error.empty())
    ADD_FAILURE() << error.to_string();
  else
    EXPECT_EQ(name_of(error.code), test.error) << error.message;
}

// How much the shape rule is told about its inputs.
struct Knowledge {
  const char* name;
  bool symbolic_dims;
  enum { constants, symbols, every_other, nothing } contents;
  size_t first = 0;  // of every other element
  bool knows(size_t element) const { return contents != every_other || element % 2 == first; }
};
constexpr Knowledge kKnowledge[] = {
    {"all known", false, Knowledge::constants},
    {"symbolic contents", false, Knowledge::symbols},
    {"unknown contents", false, Knowledge::nothing},
    {"symbolic dims, known contents", true, Knowledge::constants},
    {"all symbolic", true, Knowledge::symbols},
    {"symbolic dims, unknown contents", true, Knowledge::nothing},
    {"even elements", false, Knowledge::every_other, 0},
    {"odd elements", false, Knowledge::every_other, 1},
    {"symbolic dims, even elements", true, Knowledge::every_other, 0},
    {"symbolic dims, odd elements", true, Knowledge::every_other, 1},
};

class ShapeRule {
 public:
  ShapeRule(const Case& test, const Knowledge& knowledge) : test_(test), knowledge_(knowledge) {
    types_.resize(test.inputs.size());
    elements_.resize(test.inputs.size());
    inputs_.resize(test.inputs.size());
    for (size_t i = 0; i < test.inputs.size(); ++i)
      if (test.inputs[i].defined()) describe(i);
  }

  // Compares what the rule states with the tensors of the real run.
  void expect(const std::vector<Tensor>& actual) {
    SCOPED_TRACE(knowledge_.name);
    const OpInfo& info = op_info(test_.attributes->kind());
    const size_t known = values_.size();
    InferContext context(*test_.attributes, inputs_, actual.size(), [&](std::string_view, size_t) {
      values_.push_back(Expr::kUnbound);
      return Expr::symbol(static_cast<SymbolId>(values_.size() - 1));
    });
    const Result<> result = infer_op(info, context);
    if (!result) {
      EXPECT_EQ(name_of(result.error().code), "shape_unknown") << result.error().message;
      EXPECT_TRUE(knowledge_.symbolic_dims || knowledge_.contents != Knowledge::constants) << result.error().message;
      return;
    }
    for (const Constraint& constraint : context.constraints()) {
      const std::optional<int64_t> a = constraint.a.evaluate(values_), b = constraint.b.evaluate(values_);
      if (!a || !b || holds(constraint.relation, *a, *b)) continue;
      // Without axes, it must know the dimensions of its result.
      EXPECT_TRUE(info.kind == OpKind::squeeze && inputs_.size() == 1) << "refused: " << to_string(constraint);
      return;
    }
    if (knowledge_.contents == Knowledge::constants && !(info.traits & kDataDependent) &&
        !(test_.computed && knowledge_.symbolic_dims)) {
      EXPECT_EQ(values_.size(), known) << "made symbols although all inputs are known";
    }
    for (size_t i = 0; i < actual.size(); ++i) expect_output(context.outputs()[i], actual[i], i);
  }

 private:
  Expr symbol(int64_t value) {
    values_.push_back(value);
    return Expr::symbol(static_cast<SymbolId>(values_.size() - 1));
  }

  void describe(size_t i) {
    const Tensor& tensor = test_.inputs[i];
    types_[i].dtype = tensor.dtype();
    for (int64_t dim : tensor.dims()) types_[i].shape.push_back(knowledge_.symbolic_dims ? symbol(dim) : Expr(dim));
    inputs_[i].type = &types_[i];
    if (knowledge_.contents == Knowledge::nothing) return;
    if (knowledge_.contents == Knowledge::constants) {
      inputs_[i].constant = &tensor;
      types_[i].shape = to_shape(tensor.dims());  // a constant's dims are known
      const OpKind kind = test_.attributes->kind();
      const bool data = i == 0 && kind != OpKind::fill && kind != OpKind::range;
      if (knowledge_.symbolic_dims && data) {  // the data input stays symbolic
        inputs_[i].constant = nullptr;
        for (Expr& dim : types_[i].shape) dim = symbol(*dim.as_constant());
      }
    }
    if (is_floating(tensor.dtype()) || tensor.rank() > 1) return;
    if (knowledge_.contents == Knowledge::symbols) types_[i].shape = to_shape(tensor.dims());
    if (!types_[i].shape.empty() && !types_[i].shape[0].is_constant()) return;
    for (size_t e = 0; e < static_cast<size_t>(tensor.volume()); ++e) {
      const int64_t value = tensor.at(static_cast<int64_t>(e));
      elements_[i].push_back(!knowledge_.knows(e)                        ? Expr::invalid()
                             : knowledge_.contents == Knowledge::symbols ? symbol(value)
                                                                         : Expr(value));
    }
    if (elements_[i].empty() || any_known(elements_[i])) inputs_[i].elements = &elements_[i];
  }

  void expect_output(const InferContext::Output& output, const Tensor& actual, size_t index) {
    EXPECT_EQ(name_of(output.type.dtype), name_of(actual.dtype())) << "output " << index;
    ASSERT_EQ(output.type.rank(), actual.rank()) << "output " << index;
    for (int d = 0; d < actual.rank(); ++d) {
      SCOPED_TRACE(fmt::format("output {} dim {}", index, d));
      expect_value(output.type.shape[static_cast<size_t>(d)], actual.dims()[static_cast<size_t>(d)]);
    }
    if (!output.has_elements) return;
    ASSERT_EQ(static_cast<int64_t>(output.elements.size()), actual.volume()) << "contents of output " << index;
    for (int64_t e = 0; e < actual.volume(); ++e) {
      SCOPED_TRACE(fmt::format("output {} element {}", index, e));
      const bool may_be_unknown = knowledge_.contents == Knowledge::every_other;
      if (may_be_unknown && !output.elements[static_cast<size_t>(e)].is_valid()) continue;
      expect_value(output.elements[static_cast<size_t>(e)], actual.at(e));
    }
  }

  void expect_value(const Expr& expr, int64_t actual) const {
    if (mentions_new_symbol(expr)) return;  // only running tells
    const std::optional<int64_t> value = expr.evaluate(values_);
    ASSERT_TRUE(value.has_value()) << expr.to_string();
    EXPECT_EQ(*value, actual) << expr.to_string();
  }

  bool mentions_new_symbol(const Expr& expr) const {
    std::vector<SymbolId> symbols;
    expr.collect_symbols(symbols);
    for (SymbolId id : symbols)
      if (values_[id] == Expr::kUnbound) return true;
    return false;
  }

  const Case& test_;
  const Knowledge& knowledge_;
  std::vector<ValueType> types_;
  std::vector<std::vector<Expr>> elements_;
  std::vector<InferContext::Input> inputs_;
  std::vector<int64_t> values_;
};

void run_case(const Case& test) {
  const OpInfo& info = op_info(test.attributes->kind());
  ASSERT_TRUE(info.infer && info.eval) << info.name << " has no file yet";
  const size_t num_outputs = test.error.empty() ? test.outputs.size() : static_cast<size_t>(info.min_outputs);
  const Result<std::vector<Tensor>> got = run_op(*test.attributes, test.inputs, num_outputs);
  if (!got) return expect_error(got.error(), test);
  ASSERT_TRUE(test.error.empty()) << "expected the error " << test.error << ", got " << to_text((*got)[0]);
  for (size_t i = 0; i < num_outputs; ++i) expect_tensor((*got)[i], test.outputs[i], test.tolerance, i);
  for (const Knowledge& knowledge : kKnowledge) ShapeRule(test, knowledge).expect(*got);
}

class OpCases : public testing::TestWithParam<std::string> {};

TEST_P(OpCases, Hold) {
  Result<std::vector<Case>> cases = read_cases(GetParam());
  ASSERT_TRUE(cases) << cases.error().message;
  EXPECT_FALSE(cases->empty());
  for (const Case& test : chosen_cases(*std::move(cases))) {
    SCOPED_TRACE(fmt::format("{}:{}: {} {}", GetParam(), test.line, op_info(test.attributes->kind()).name,
                             to_text(*test.attributes)));
    run_case(test);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, OpCases, testing::ValuesIn(case_files()),
                         [](const auto& info) { return std::filesystem::path(info.param).stem().string(); });

}  // namespace
}  // namespace lathe
