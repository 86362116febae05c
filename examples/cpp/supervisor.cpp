// SPDX-License-Identifier: Apache-2.0
// A service that survives the loss of its process: a supervisor starts a worker, and another one when that dies.
//   supervisor model.plan image.txt [LIVES]
// After a fatal error of a device nothing in its memory can be trusted and every further call fails, so the worker ends
// with an error and the next one loads the plan again. Here each worker but the last kills itself in the middle of its
// work, which stands for that.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <vector>

#include "NvInfer.h"
#include "logger.h"

namespace {

using namespace nvinfer1;

constexpr int kAnswers = 3, kLostDevice = 3, kLargest = 5;

std::vector<char> read_file(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<char> bytes(file ? static_cast<size_t>(file.tellg()) : 0);
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

// Loads the plan and answers, each answer a byte through the pipe. The exit status says what became of it.
int work(const char* plan_path, const char* image_path, int answers, bool dies, int pipe) {
  Logger logger;
  const std::vector<char> plan = read_file(plan_path);
  std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
  std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan.data(), plan.size()));
  if (!engine) return 1;
  std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  const char *input = engine->getIOTensorName(0), *output = engine->getIOTensorName(1);
  std::vector<float> image, scores(10);
  std::ifstream file(image_path);
  for (float pixel = 0; file >> pixel;) image.push_back(pixel / 16);
  if (image.size() != 64 || !context->setInputShape(input, Dims4(1, 1, 8, 8))) return 1;
  if (!context->setTensorAddress(input, image.data()) || !context->setTensorAddress(output, scores.data())) return 1;
  for (int i = 0; i < answers; ++i) {
    if (dies && i == answers / 2) std::raise(SIGKILL);
    if (!context->enqueueV3(nullptr)) return kLostDevice;  // nothing is freed, nothing is tried again
    const auto digit = static_cast<char>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    if (write(pipe, &digit, 1) != 1) return 1;
  }
  return 0;
}

struct Life {
  std::vector<int> digits;
  double milliseconds = 0;  // until the first of them
  int status = 0;           // as waitpid() gives it
};

// A process of its own: one that has used a device must not go on as a child of fork() that uses it, too. So the
// supervisor itself loads no engine.
Life supervise(const char* plan, const char* image, bool dies) {
  Life life;
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const auto start = std::chrono::steady_clock::now();
  const pid_t worker = fork();
  if (worker == 0) {
    close(ends[0]);
    _exit(work(plan, image, kAnswers, dies, ends[1]));
  }
  close(ends[1]);
  for (char digit = 0; read(ends[0], &digit, 1) == 1;) {
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
    if (life.digits.empty()) life.milliseconds = passed.count();
    life.digits.push_back(digit);
  }
  close(ends[0]);
  if (worker < 0 || waitpid(worker, &life.status, 0) != worker) std::exit(1);
  return life;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MODEL.plan IMAGE.txt [LIVES]\n", argv[0]);
    return 2;
  }
  const int lives = std::min(argc > 3 ? std::atoi(argv[3]) : 2, kLargest);
  for (int i = 1; i <= lives; ++i) {
    const Life life = supervise(argv[1], argv[2], i < lives);
    if (!life.digits.empty())
      std::printf("worker %d: digit %d, the first answer after %.0f ms\n", i, life.digits[0], life.milliseconds);
    if (WIFEXITED(life.status) && WEXITSTATUS(life.status) == 0) {
      std::printf("worker %d: all %zu answers\n", i, life.digits.size());
      return 0;
    }
    if (WIFEXITED(life.status) && WEXITSTATUS(life.status) != kLostDevice) return 1;  // another start would not help
    std::printf("worker %d: lost after %zu answers\n", i, life.digits.size());
  }
  return 1;
}
