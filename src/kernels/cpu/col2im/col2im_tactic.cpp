// SPDX-License-Identifier: Apache-2.0
// Kernel "col2im".
#include "kernels/cpu/col2im/col2im.h"
#include "kernels/cpu/cpu_tactic.h"
#include "ops/windows.h"

namespace lathe::cpu {

Matched match_col2im(const Problem& problem) {
  if (!problem.is(OpKind::col2im)) return refuse("no image from columns");
  const auto& attrs = problem.attrs<Col2ImAttrs>();
  WindowAttrs windows{attrs.stride, attrs.pads_begin, attrs.pads_end, attrs.dilation};
  if (auto checked = complete(windows, problem.outputs[0].dims.size() - 2); !checked)
    return refuse(checked.error().message);
  return match_root(problem, Col2ImParams{windows.stride, windows.dilation, windows.pads_begin, windows.pads_end},
                    {0, 2});
}

}  // namespace lathe::cpu
