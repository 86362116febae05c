// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/program_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "fixtures/guarded_memory.h"
#include "kernels/cpu/isa_levels.h"

namespace lathe::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

const auto kLevels = LATHE_ISA_LEVELS(run_program_block);

Program parsed(const std::string& text) {
  Result<Program> program = parse_program(text);
  EXPECT_TRUE(program) << text << (program ? "" : program.error().message);
  return program ? *program : Program{};
}

struct Scratch {
  explicit Scratch(const BlockProgram& block) : memory(block.scratch_bytes() / sizeof(float) + 16) {}
  float* get() { return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) & ~uintptr_t{63}); }
  std::vector<float> memory;
};

// Distance in units in the last place of `expected`; specials must match in kind.
double ulps(float actual, float expected) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) == std::isnan(actual) ? 0 : 1e9;
  if (std::isinf(expected) || std::isinf(actual)) return expected == actual ? 0 : 1e9;
  const float magnitude = std::max(std::abs(expected), std::numeric_limits<float>::min());
  const double ulp = std::nextafter(magnitude, kInf) - magnitude;
  return std::abs(static_cast<double>(actual) - static_cast<double>(expected)) / ulp;
}

// Every exponent with random mantissas of both signs, dense near 0 .. 20, and the special values.
std::vector<float> many_values() {
  std::vector<float> values = {
      0.0f,  -0.0f,  kInf,    -kInf,   kNaN,   1.0f,    -1.0f,           0.5f,    -0.5f,    2.0f, -2.0f, 88.7f,
      88.8f, -87.4f, -103.9f, -104.1f, 1e-45f, -1e-45f, 1.17549435e-38f, 3.4e38f, -3.4e38f, 5.5f, -5.5f, 3.85f};
  std::mt19937 random(7);
  for (uint32_t exponent = 0; exponent < 255; ++exponent)
    for (int i = 0; i < 40; ++i) {
      const uint32_t bits = exponent << 23 | (random() & 0x807fffffu);
      values.push_back(std::bit_cast<float>(bits));
    }
  std::uniform_real_distribution<float> uniform(-20, 20);
  for (int i = 0; i < 20000; ++i) values.push_back(uniform(random));
  std::normal_distribution<float> normal(0, 1);
  for (int i = 0; i < 20000; ++i) values.push_back(normal(random));
  return values;
}

struct Accuracy {
  const char* expression;
  double ulps;
  double absolute = 0;  // allowed instead, where the result cancels
};

// Rounding to levels is one step, and to the bit what its instructions are: half of a level is met, too.
TEST(ProgramBlock, LevelsAreExact) {
  std::mt19937 random(8);
  std::uniform_real_distribution<float> exponent(-20, 20), spread(-300, 300);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const float scale = repeat % 4 == 0 ? std::ldexp(1.0f, repeat % 40 - 20) : std::exp2(exponent(random));
    const float low = -static_cast<float>(random() % 256), high = low + 255;
    const std::string divisor = fmt::format("r1=constant {}; r2=div r0 r1; ", scale);
    const std::string factor = fmt::format("r1=constant 0; r2=affine r0 {} -0; ", 1 / scale);
    const Program program = parsed(fmt::format("in=1; {}r3=round r2; r4=clip r3 {} {}; r5=affine r4 {} -0; out r5",
                                               repeat % 8 == 0 ? factor : divisor, low, high, scale));
    const BlockProgram block(program);
    ASSERT_EQ(block.steps().size(), 1u);
    ASSERT_EQ(block.steps()[0].op, StepOp::levels);
    GuardedVector<float> values(1000), out(1000);
    for (size_t i = 0; i < values.size(); ++i) {
      const float level = i % 2 ? spread(random) : std::floor(spread(random)) + 0.5f;
      values[i] = level * scale;
      if (i % 3 == 0) values[i] = std::nextafter(values[i], i % 6 ? kInf : -kInf);
    }
    constexpr float kSpecial[] = {0.0f, -0.0f, kInf, -kInf, kNaN, 3.4e38f, -3.4e38f, 1e-45f};
    std::copy(std::begin(kSpecial), std::end(kSpecial), values.begin());
    Scratch scratch(block);
    for (const auto& [level, function] : kLevels) {
      const BlockInput input{values.data(), 0, 1};
      const BlockOutput output{out.data(), 0};
      function(block, 1, static_cast<int64_t>(values.size()), &input, &output, scratch.get());
      for (size_t i = 0; i < values.size(); ++i) {
        const float nearest = std::nearbyint(values[i] / scale);
        const float expected = std::isnan(nearest) ? nearest : std::clamp(nearest, low, high) * scale;
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(out[i]));
        } else {
          ASSERT_EQ(out[i], expected) << level << ": " << values[i] << " of scale " << scale;
        }
      }
    }
  }
}

// What others read of the way there is not lost.
TEST(ProgramBlock, LevelsWhoseIntermediatesAreReadStayApart) {
  const Program program = parsed(
      "in=1; r1=constant 0.3; r2=div r0 r1; r3=round r2; r4=clip r3 -5 5; r5=affine r4 0.3 -0; r6=add r5 r3; out r6");
  const BlockProgram block(program);
  Scratch scratch(block);
  const float value = 3.2f;
  float out[kMaxLanes] = {};
  for (const auto& [level, function] : kLevels) {
    const BlockInput input{&value, 0, 1};
    const BlockOutput output{out, 0};
    function(block, 1, 1, &input, &output, scratch.get());
    EXPECT_FLOAT_EQ(out[0], 5 * 0.3f + 11);
  }
}

TEST(ProgramBlock, UnaryInstructionsAreAccurate) {
  const std::vector<float> plain = many_values();
  const GuardedVector<float> values(plain.begin(), plain.end());
  const auto n = static_cast<int64_t>(values.size());
  GuardedVector<float> out(values.size());
  for (const Accuracy& test : {Accuracy{"neg r0", 0},
                               {"abs r0", 0},
                               {"sqrt r0", 0},
                               {"recip r0", 0},
                               {"floor r0", 0},
                               {"ceil r0", 0},
                               {"round r0", 0},
                               {"sign r0", 0},
                               {"relu r0", 0},
                               {"clip r0 -1 6", 0},
                               {"leaky_relu r0 0.1", 0.5},
                               {"thresholded_relu r0 1", 0},
                               {"affine r0 3 -7", 1, 1e-6},
                               {"exp r0", 2},
                               {"log r0", 2},
                               {"erf r0", 8},
                               {"sin r0", 2, 1.2e-7},
                               {"cos r0", 2, 1.2e-7},
                               {"tanh r0", 4},
                               {"sigmoid r0", 3, 1.2e-38},
                               {"silu r0", 4, 1.1e-36},
                               {"softplus r0 1 1", 4},
                               {"softplus r0 0.7 1.3", 6, 1e-9},
                               {"scaled_tanh r0 1.5 0.5", 5},
                               {"shrink r0 0.5 0.25", 0},
                               {"swish r0 1.7", 12, 1e-9},
                               {"softsign r0", 2},
                               {"elu r0 1.5", 4},
                               {"selu r0 1.67326 1.0507", 4},
                               {"celu r0 2", 4},
                               {"celu r0 -0.5", 4, 2e-7},
                               {"hard_sigmoid r0 0.2 0.5", 2, 1e-7},
                               {"hard_swish r0", 3, 3e-7},
                               {"gelu_tanh r0", 12, 1e-9},
                               {"mish r0", 5, 1e-37},
                               {"gelu_erf r0", 4, 1.1e-7}}) {
    const Program program = parsed(std::string("in=1; r1=") + test.expression + "; out r1");
    const BlockProgram block(program);
    Scratch scratch(block);
    for (const auto& [level, function] : kLevels) {
      const BlockInput input{values.data(), 0, 1};
      const BlockOutput output{out.data(), 0};
      function(block, 1, n, &input, &output, scratch.get());
      double worst = 0;
      float where = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        float expected = 0;
        evaluate(program, {&values[i], 1}, {&expected, 1});
        // The formula 0.5 a (1 + erf) has no value at -inf; the kernel gives its limit.
        if (std::string_view(test.expression) == "gelu_erf r0" && values[i] == -kInf) continue;
        if (std::isfinite(expected) && std::abs(expected) > 1e38f) continue;  // f32 steps on the way may overflow
        if (std::abs(static_cast<double>(out[i]) - expected) <= test.absolute) continue;
        const double distance = ulps(out[i], expected);
        if (distance > worst) worst = distance, where = values[i];
      }
      EXPECT_LE(worst, test.ulps) << test.expression << " at " << where << ", " << level;
    }
  }
}

TEST(ProgramBlock, BinaryInstructionsFollowTheTable) {
  std::vector<float> values = {0.0f, -0.0f, kInf, -kInf,  kNaN,  1,      -1,    0.5f, 2,
                               -2,   3,     -3,   1e-40f, 1e30f, -1e30f, 7.25f, -0.3f};
  std::vector<float> a, b;
  for (const float x : values)
    for (const float y : values) a.push_back(x), b.push_back(y);
  std::vector<float> out(a.size());
  for (const char* expression :
       {"add r0 r1", "sub r0 r1", "mul r0 r1", "div r0 r1", "max r0 r1", "min r0 r1", "pow r0 r1", "less r0 r1",
        "equal r0 r1", "prelu r0 r1", "select r0 r1 r0", "fma r0 r1 r0"}) {
    const Program program = parsed(std::string("in=2; r2=") + expression + "; out r2");
    const BlockProgram block(program);
    Scratch scratch(block);
    for (const auto& [level, function] : kLevels) {
      const BlockInput inputs[] = {{a.data(), 0, 1}, {b.data(), 0, 1}};
      const BlockOutput output{out.data(), 0};
      function(block, 1, static_cast<int64_t>(a.size()), inputs, &output, scratch.get());
      for (size_t i = 0; i < a.size(); ++i) {
        const float in[] = {a[i], b[i]};
        float expected = 0;
        evaluate(program, in, {&expected, 1});
        EXPECT_LE(ulps(out[i], expected), 1) << expression << " of " << a[i] << " and " << b[i] << ", " << level;
      }
    }
  }
}

TEST(ProgramBlock, RewritesKeepTheMeaning) {
  for (const char* text : {"in=1; r1=sigmoid r0; r2=mul r0 r1; out r2",
                           "in=1; r1=sigmoid r0; r2=mul r1 r0; out r2 r1",
                           "in=3; r3=mul r0 r1; r4=add r3 r2; out r4",
                           "in=3; r3=mul r0 r1; r4=add r2 r3; out r4 r3",
                           "in=2; r2=mul r0 r1; r3=add r2 r2; out r3",
                           "in=2; r2=add r0 r1; r3=relu r2; out r3",
                           "in=1; r1=affine r0 2 3; r2=clip r1 0 6; out r2",
                           "in=1; r1=affine r0 2 3; r2=clip r1 0 6; r3=add r1 r2; out r3",
                           "in=1; r1=constant 2; r2=pow r0 r1; out r2",
                           "in=1; r1=constant 3; r2=pow r0 r1; out r2",
                           "in=1; r1=constant 0.5; r2=pow r0 r1; out r2",
                           "in=1; r1=constant -1; r2=pow r0 r1; out r2",
                           "in=1; r1=constant 1; r2=pow r0 r1; out r2",
                           "in=1; r1=constant 2.5; r2=pow r0 r1; out r2",
                           "in=1; r1=constant 8; r2=div r0 r1; out r2",
                           "in=1; r1=constant 3; r2=div r0 r1; out r2",
                           "in=2; r2=mul r0 r1; r3=mul r2 r2; r4=add r3 r2; r5=add r4 r0; out r5",
                           "in=2; r2=relu r0; out r1",
                           "in=2; out r1 r0 r1",
                           "in=0; r0=constant 4; out r0",
                           "in=1; r1=constant 2; r2=mul r0 r1; r3=constant 5; r4=add r2 r3; out r1 r4 r0 r4"}) {
    const Program program = parsed(text);
    const BlockProgram block(program);
    Scratch scratch(block);
    std::mt19937 random(3);
    std::normal_distribution<float> normal(0, 2);
    constexpr int n = 1203;
    std::vector<GuardedVector<float>> in(program.num_inputs, GuardedVector<float>(n)),
        out(program.outputs.size(), GuardedVector<float>(n));
    std::vector<BlockInput> inputs;
    std::vector<BlockOutput> outputs;
    for (auto& v : in) {
      for (float& x : v) x = normal(random);
      if (n > 4) v[0] = kNaN, v[1] = kInf, v[2] = -kInf, v[3] = -0.0f;
      inputs.push_back({v.data(), 0, 1});
    }
    for (auto& v : out) outputs.push_back({v.data(), 0});
    for (const auto& [level, function] : kLevels) {
      function(block, 1, n, inputs.data(), outputs.data(), scratch.get());
      for (size_t i = 0; i < n; ++i) {
        std::vector<float> args, expected(out.size());
        for (auto& v : in) args.push_back(v[i]);
        evaluate(program, args, expected);
        for (size_t k = 0; k < out.size(); ++k)
          EXPECT_TRUE(ulps(out[k][i], expected[k]) <= 4 || std::abs(out[k][i] - expected[k]) <= 2e-6)
              << text << " element " << i << ": " << out[k][i] << " for " << expected[k] << ", " << level;
      }
    }
  }
}

struct Geometry {
  int64_t rows, columns;
};

// Each input has another broadcast; the outputs lie in a larger, strided matrix that must stay untouched elsewhere.
TEST(ProgramBlock, AnyShapeAndStride) {
  const Program program =
      parsed("in=6; r6=add r0 r1; r7=fma r6 r2 r3; r8=sub r7 r4; r9=mul r8 r5; r10=sub r9 r6; out r10 r8");
  const Program single =
      parsed("in=6; r6=add r0 r1; r7=fma r6 r2 r3; r8=sub r7 r4; r9=mul r8 r5; r10=sub r9 r6; out r10");
  for (const Geometry g : {Geometry{1, 1},
                           {1, 5},
                           {5, 1},
                           {9, 48},
                           {14, 50},
                           {3, 3},
                           {200, 3},
                           {7, 700},
                           {2, 512},
                           {1, 1500},
                           {1500, 1},
                           {33, 17},
                           {64, 64},
                           {2, 513}})
    for (const bool dense : {true, false})
      for (const Program* p : {&program, &single}) {
        const BlockProgram block(*p);
        Scratch scratch(block);
        const int64_t pitch = dense ? g.columns : g.columns + 3;
        std::mt19937 random(11);
        std::normal_distribution<float> normal(0, 1);
        const int64_t transposed_pitch = g.rows + 2;
        std::vector<float> memory(static_cast<size_t>(std::max(g.rows * pitch, g.columns * transposed_pitch)) + 1);
        for (float& x : memory) x = normal(random);
        const BlockInput inputs[] = {{memory.data(), pitch, 1},
                                     {memory.data(), 0, 1},
                                     {memory.data() + 1, 1, 0},
                                     {memory.data(), 0, 0},
                                     {memory.data(), 1, transposed_pitch},
                                     {memory.data(), pitch, 1}};
        for (const auto& [level, function] : kLevels) {
          std::vector<float> out0(static_cast<size_t>(g.rows * pitch), 99.0f), out1 = out0;
          const BlockOutput outputs[] = {{out0.data(), pitch}, {out1.data(), pitch}};
          function(block, g.rows, g.columns, inputs, outputs, scratch.get());
          for (int64_t r = 0; r < g.rows; ++r)
            for (int64_t c = 0; c < pitch; ++c) {
              const auto at = static_cast<size_t>(r * pitch + c);
              float expected[2] = {99, 99}, args[6];
              if (c < g.columns) {
                for (int i = 0; i < 6; ++i)
                  args[i] =
                      static_cast<const float*>(inputs[i].data)[r * inputs[i].row_stride + c * inputs[i].column_stride];
                evaluate(*p, args, {expected, p->outputs.size()});
              }
              ASSERT_NEAR(out0[at], expected[0], 1e-4)
                  << g.rows << 'x' << g.columns << " at " << r << ',' << c << ' ' << level;
              if (p->outputs.size() > 1) {
                ASSERT_NEAR(out1[at], expected[1], 1e-4) << r << ',' << c << ' ' << level;
              }
            }
        }
      }
}

TEST(ProgramBlock, InPlace) {
  const Program program = parsed("in=2; r2=add r0 r1; r3=mul r2 r0; out r3");
  const BlockProgram block(program);
  Scratch scratch(block);
  for (const auto& [level, function] : kLevels) {
    std::vector<float> a(1001, 3.0f), b(1001, 2.0f);
    const BlockInput inputs[] = {{a.data(), 0, 1}, {b.data(), 0, 1}};
    const BlockOutput output{a.data(), 0};
    function(block, 1, 1001, inputs, &output, scratch.get());
    for (const float x : a) ASSERT_EQ(x, 15.0f) << level;
  }
}

TEST(ProgramBlock, RandomPrograms) {
  std::mt19937 random(17);
  std::normal_distribution<float> normal(0, 1);
  constexpr int n = 530;
  for (int round = 0; round < 60; ++round) {
    Program program;
    program.num_inputs = static_cast<uint16_t>(1 + random() % 5);
    const size_t length = 1 + random() % 30;
    // Operations that do not amplify rounding, so that a fixed tolerance holds.
    const Opcode ops[] = {Opcode::add,  Opcode::sub,  Opcode::max,     Opcode::min,     Opcode::relu,
                          Opcode::neg,  Opcode::abs,  Opcode::tanh,    Opcode::sigmoid, Opcode::affine,
                          Opcode::clip, Opcode::silu, Opcode::constant};
    for (size_t i = 0; i < length; ++i) {
      const OpcodeInfo* info = opcode_info(static_cast<int>(ops[random() % std::size(ops)]));
      Instruction instruction{info->op, {}, {}};
      for (int k = 0; k < info->operands; ++k)
        instruction.operands[static_cast<size_t>(k)] = static_cast<uint16_t>(random() % (program.num_inputs + i));
      for (int k = 0; k < info->immediates; ++k) instruction.immediates[static_cast<size_t>(k)] = 0.5f * normal(random);
      program.code.push_back(instruction);
    }
    const size_t outputs_count = 1 + random() % 3;
    for (size_t i = 0; i < outputs_count; ++i)
      program.outputs.push_back(static_cast<uint16_t>(random() % (program.num_inputs + length)));
    ASSERT_TRUE(validate(program));
    const BlockProgram block(program);
    Scratch scratch(block);
    std::vector<GuardedVector<float>> in(program.num_inputs, GuardedVector<float>(n)),
        out(outputs_count, GuardedVector<float>(n));
    std::vector<BlockInput> inputs;
    std::vector<BlockOutput> outputs;
    for (auto& v : in) {
      for (float& x : v) x = normal(random);
      inputs.push_back({v.data(), 0, 1});
    }
    for (auto& v : out) outputs.push_back({v.data(), 0});
    for (const auto& [level, function] : kLevels) {
      function(block, 1, n, inputs.data(), outputs.data(), scratch.get());
      for (size_t i = 0; i < n; ++i) {
        std::vector<float> args, expected(outputs_count);
        for (auto& v : in) args.push_back(v[i]);
        evaluate(program, args, expected);
        for (size_t k = 0; k < outputs_count; ++k)
          ASSERT_NEAR(out[k][i], expected[k], 1e-4 * std::max(1.0f, std::abs(expected[k])))
              << to_text(program) << ' ' << level;
      }
    }
  }
}

}  // namespace
}  // namespace lathe::cpu
