# SPDX-License-Identifier: Apache-2.0
"""The original's import name of its lean runtime: lathe.tensorrt without what builds engines."""
from lathe.tensorrt import *  # noqa: F403
from lathe.tensorrt import __version__  # noqa: F401

_BASES = (ILayer, INetworkDefinition, Builder, IBuilderConfig, ITensor, ILoop, IIfConditional, IAttention, ITimingCache,  # noqa: F405
          TimingCacheKey, TimingCacheValue, OnnxParser, OnnxParserRefitter, ParserError)  # noqa: F405
for _name, _value in list(globals().items()):
    if isinstance(_value, type) and issubclass(_value, _BASES):
        del globals()[_name]
del get_builder_plugin_registry, get_nv_onnx_parser_version  # noqa: F821
