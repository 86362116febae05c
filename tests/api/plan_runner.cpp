// SPDX-License-Identifier: Apache-2.0
// Runs a plan, with the public headers of the runtime alone (run_plan.h):
//   plan_runner plan input-folder output-folder [plugin-library or --allow]
// Where CHECK_NO_BUILDER is given, the process must have no builder.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "lathe.h"
#include "run_plan.h"

namespace nv = nvinfer1;

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
#ifdef CHECK_NO_BUILDER
  for (const char* name : {"createInferBuilder_INTERNAL", "createNvOnnxParser_INTERNAL", "getNvOnnxParserVersion"})
    if (dlsym(RTLD_DEFAULT, name)) {
      std::fprintf(stderr, "%s is here\n", name);
      return 1;
    }
#endif
  run_plan::Logger logger;
  std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(logger));
  if (!runtime) return 1;
  const bool allows = argc == 5 && std::strcmp(argv[4], "--allow") == 0;
  if (allows) runtime->setEngineHostCodeAllowed(true);
  if (argc == 5 && !allows && !runtime->getPluginRegistry().loadLibrary(argv[4])) return 1;
  std::unique_ptr<nv::ICudaEngine> engine(lathe::loadEngineFile(*runtime, argv[1]));
  if (!engine) return 1;
  std::unique_ptr<nv::IEngineInspector> inspector(engine->createEngineInspector());
  if (!inspector || !std::strstr(inspector->getEngineInformation(nv::LayerInformationFormat::kJSON), "Bindings"))
    return 1;
  return run_plan::run(*engine, argv[2], argv[3]) ? 0 : 1;
}
