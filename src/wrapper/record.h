// SPDX-License-Identifier: Apache-2.0
// Records: an engine and its fields as strings (lathe_wrapper.h has the layout).
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "lathe_wrapper.h"
#include "wrapper/settings.h"

namespace lathe::wrapper {

struct RecordContent {
  EngineFields fields;
  std::string plan;
  bool has_settings = false;  // whoever wrote the record knows the slots of settings
  EngineSettings settings;
};

std::span<const char* const> slot_names();

// Where programs run: "linux_x86_64"; "unknown" where that has no name.
std::string_view platform();

// plan_version for records of another layout, plan_malformed for slots that hold no such value, plan_target for those
// of another platform.
Result<RecordContent> read_record(const EngineRecord& record);
// invalid_argument where a list's name holds the separator.
Result<EngineRecord> write_record(const RecordContent& content);
// Names of engines have no '.'.
std::string record_name(std::string name);

Result<> compare_layout(const char* const* names, int32_t count, const char* abi);
std::string record_text(const EngineRecord& record);

}  // namespace lathe::wrapper
