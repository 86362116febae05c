// SPDX-License-Identifier: Apache-2.0
// Imported Ifs whose branches yield tensors of different ranks: which one the engine has, the profile decides after
// parsing.
#include <gtest/gtest.h>

#include "NvOnnxParser.h"
#include "api/network_fixture.h"
#include "onnx/model_bytes.h"

namespace nvinfer1 {
namespace {

using namespace lathe::onnx;  // what writes the model

// y = relu(x.squeeze(0)) over x[n, 3], as PyTorch writes it: squeezed if n is 1. sum = a + b, for equal numbers of
// rows.
std::string squeezing_model() {
  const auto branch = [](const char* op, std::initializer_list<const char*> inputs, const char* output) {
    return graph({{node(op, inputs, {output})}, {}, {}, {value_info(output, 1, {})}});
  };
  return model(graph({{node("Shape", {"x"}, {"shape"}), node("Gather", {"shape", "first"}, {"extent"}),
                       node("Equal", {"extent", "one"}, {"is_one"}),
                       node("If", {"is_one"}, {"s"},
                            {graph_attribute("then_branch", branch("Squeeze", {"x", "first"}, "yes")),
                             graph_attribute("else_branch", branch("Identity", {"x"}, "no"))}),
                       node("Relu", {"s"}, {"y"}), node("Add", {"a", "b"}, {"sum"})},
                      {raw_tensor<int64_t>("first", 7, {1}, {0}), raw_tensor<int64_t>("one", 7, {1}, {1})},
                      {value_info("x", 1, {-1, 3}), value_info("a", 1, {-1, 3}), value_info("b", 1, {-1, 3})},
                      {value_info("y", 1, {}), value_info("sum", 1, {})}}));
}

struct Squeezing : NetworkTest {
  void SetUp() override {
    const std::string bytes = squeezing_model();  // the parser keeps what it needs of it
    ASSERT_TRUE(parser->parse(bytes.data(), bytes.size())) << logger.last();
    const Dims2 one(1, 3), two(2, 3);
    add_profile({{"x", one, one, one}, {"a", two, two, Dims2(3, 3)}, {"b", two, two, Dims2(4, 3)}});
  }

  std::unique_ptr<nvonnxparser::IParser> parser{nvonnxparser::createParser(*network, logger)};
};

TEST_F(Squeezing, TheProfileDecidesAfterParsing) {
  EXPECT_EQ(network->getOutput(0)->getDimensions().nbDims, 2);
  parser.reset();
  ASSERT_TRUE(make_context()) << logger.last();
  const Dims y = engine->getTensorShape("y");
  EXPECT_EQ(y.nbDims, 1);
  EXPECT_EQ(y.d[0], 3);
}

// Though the network is looked at with each branch, what is said of the one that is built is said once.
TEST_F(Squeezing, WarningsComeOnce) {
  logger.most = ILogger::Severity::kWARNING;
  ASSERT_NE(build(), nullptr) << logger.last();
  EXPECT_EQ(std::ranges::count_if(logger.text,
                                  [](const std::string& line) {
                                    return line.find("the max sizes of profile 0 do not fit the network") !=
                                           std::string::npos;
                                  }),
            1);
}

// The other branch would have to be a part of what the application made of the network.
TEST_F(Squeezing, AChangedNetworkIsRefused) {
  IUnaryLayer* more = network->addUnary(*network->getOutput(0), UnaryOperation::kABS);
  network->markOutput(*more->getOutput(0));
  EXPECT_FALSE(make_context());
  EXPECT_NE(logger.last().find("LATHE-3001"), std::string::npos) << logger.last();
  EXPECT_NE(logger.last().find("'If_3' takes its other branch"), std::string::npos) << logger.last();
}

}  // namespace
}  // namespace nvinfer1
