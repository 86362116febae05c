// SPDX-License-Identifier: Apache-2.0
// What runtimes of generation 10 have besides.
#include "api/deprecation.h"
#include "api/runtime/runtime.h"

namespace lathe::api {

nv::ICudaEngine* Runtime::deserializeCudaEngine(nv::IStreamReader& streamReader) noexcept {
  static constinit Deprecation deprecation("IRuntime::deserializeCudaEngine with an IStreamReader", "IStreamReaderV2");
  deprecation.tell(*core_->reporter);
  nv::impl::SequentialReader adapter(streamReader);
  return deserializeCudaEngineV2(adapter);
}

}  // namespace lathe::api
