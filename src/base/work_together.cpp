// SPDX-License-Identifier: Apache-2.0
#include "base/work_together.h"

#include <exception>
#include <thread>
#include <vector>

namespace lathe {

void work_together(size_t threads, const std::function<void()>& work) {
  std::vector<std::thread> helpers;
  try {
    helpers.reserve(threads > 1 ? threads - 1 : 0);
    for (size_t i = 1; i < threads; ++i) helpers.emplace_back(std::cref(work));
  } catch (const std::exception&) {  // no thread or no memory for one more: those that there are do it
  }
  work();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace lathe
