# SPDX-License-Identifier: Apache-2.0
"""What plugins are written with: classes for capabilities, creators and resources, and the fields between them.

These are classes of Python alone, so that one class may derive from several of them, as plugins do. The library sees an
adapter of the extension module, which holds the object.
"""
import abc
import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lathe._deferred import Deferred
from lathe._tensorrt import (APILanguage, DataType, DimsExprs, DynamicPluginTensorDesc, IExprBuilder,
                             IPluginResourceContext, PluginCapabilityType, PluginFieldType, PluginTensorDesc,
                             TensorFormat, TensorRTPhase, _CppPlugin, _CppPluginCreator, _CppPluginCreatorInterface)
from lathe.tensorrt._dtypes import TYPE_STRINGS, volume

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred('numpy')

__all__ = ['IPluginCapability', 'IPluginCreatorInterface', 'IPluginCreatorV3One', 'IPluginResource', 'IPluginV3',
           'IPluginV3OneBuild', 'IPluginV3OneBuildV2', 'IPluginV3OneCore', 'IPluginV3OneRuntime', 'PluginField',
           'PluginFieldCollection', 'PluginFieldCollection_', 'array_at']

_NUMBERS_OF_THE_SIZE = {DataType.BF16: 'u2', DataType.FP8: 'u1', DataType.E8M0: 'u1'}
# Types of NumPy by those of fields; what NumPy lacks is seen as bytes, or as numbers of the same size.
_FIELD_DTYPES: dict[PluginFieldType, Any] = {
    PluginFieldType.FLOAT16: 'f2', PluginFieldType.FLOAT32: 'f4', PluginFieldType.FLOAT64: 'f8', PluginFieldType.INT8: 'i1',
    PluginFieldType.INT16: 'i2', PluginFieldType.INT32: 'i4', PluginFieldType.INT64: 'i8', PluginFieldType.CHAR: 'u1',
    PluginFieldType.UNKNOWN: 'u1', PluginFieldType.BF16: 'u2', PluginFieldType.FP8: 'u1', PluginFieldType.INT4: 'u1',
    PluginFieldType.FP4: 'u1', PluginFieldType.DIMS: [('nbDims', 'i4'), ('', 'i4'), ('d', 'i8', 8)]}


class PluginField:
    """A named attribute of a plugin: elements of `type` in an object with the buffer protocol, which it holds.

    `data` is a flat array of NumPy; types that NumPy lacks are unsigned numbers of their size, text is bytes.
    """

    __slots__ = ('name', 'type', '_data')

    def __init__(self, name: str = '', data: Any = None, type: PluginFieldType = PluginFieldType.UNKNOWN) -> None:
        self.name = name
        self.type = type
        self.data = b'' if data is None else data

    @property
    def data(self) -> Any:
        """A flat array of NumPy. Set to bytes or an array, of a whole number of elements: else it raises TypeError or ValueError."""
        return self._data

    @data.setter
    def data(self, value: Any) -> None:
        if isinstance(value, str):
            raise TypeError(f'field {self.name}: data are bytes or an array; text is encoded by the program')
        flat = np.ascontiguousarray(value if isinstance(value, np.ndarray) else np.frombuffer(value, np.uint8)).reshape(-1)
        dtype = np.dtype(_FIELD_DTYPES[self.type])
        if flat.nbytes % dtype.itemsize != 0:
            raise ValueError(f'field {self.name}: {flat.nbytes} bytes are no whole number of elements of {self.type}')
        self._data = flat.view(np.uint8).view(dtype)

    @property
    def size(self) -> int:
        """The number of elements."""
        per_byte = 2 if self.type in (PluginFieldType.INT4, PluginFieldType.FP4) else 1
        return per_byte * int(self._data.size)

    def __repr__(self) -> str:
        return f'PluginField({self.name!r}, {self._data!r}, {self.type})'


class PluginFieldCollection_(list[PluginField]):
    """Fields of a plugin, in their order."""


PluginFieldCollection = PluginFieldCollection_


def _missing(self: object, method: str) -> NotImplementedError:
    return NotImplementedError(f'{type(self).__name__} must define {method}()')


class _ToSet:
    """An attribute that a subclass sets."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        raise AttributeError(f'{type(instance).__name__} must set {self.name}')


class _Interface(metaclass=abc.ABCMeta):
    @property
    def api_language(self) -> APILanguage:
        """What the object is written in."""
        return APILanguage.PYTHON


class IPluginCapability(_Interface):
    """Root of the capabilities of a plugin."""


class IPluginV3(_Interface):
    """A plugin: an object for each capability, perhaps itself, and copies of it.

    get_capability_interface(type) and clone() have to be defined. destroy(), if it is, is called when the library has let go of a
    plugin that it was given: a clone, what a creator made or what attach_to_context() returned.
    """

    def __init__(self, other: 'IPluginV3 | None' = None) -> None:
        pass

    def get_capability_interface(self, type: PluginCapabilityType) -> Any:
        """To be defined: the object that has the capability, perhaps this one; None where there is none."""
        raise _missing(self, 'get_capability_interface')

    def clone(self) -> 'IPluginV3':
        """To be defined: a plugin of the same attributes, which the library keeps."""
        raise _missing(self, 'clone')

    def destroy(self) -> None:
        """Called when the library has let go of the plugin."""


class IPluginV3OneCore(IPluginCapability):
    """How a plugin is found again: set plugin_name, plugin_version and plugin_namespace, each at most 1023 characters."""

    plugin_name: Any = _ToSet()
    plugin_version: Any = _ToSet()
    plugin_namespace: Any = _ToSet()

    def __init__(self, other: 'IPluginV3OneCore | None' = None) -> None:
        pass


class IPluginV3OneBuild(IPluginCapability):
    """What a builder asks of a plugin. Set num_outputs; timing_cache_id and metadata_string may be set.

    Without timing_cache_id the plugin's times are kept out of the timing cache.
    """

    DEFAULT_FORMAT_COMBINATION_LIMIT = 100
    num_outputs: Any = _ToSet()
    format_combination_limit: int = DEFAULT_FORMAT_COMBINATION_LIMIT
    metadata_string: str | None = None
    timing_cache_id: str | None = None

    def __init__(self, other: 'IPluginV3OneBuild | None' = None) -> None:
        pass

    def get_output_data_types(self, input_types: list[DataType]) -> Sequence[DataType]:
        """To be defined: the types of outputs."""
        raise _missing(self, 'get_output_data_types')

    def get_output_shapes(self, inputs: list[DimsExprs], shape_inputs: list[DimsExprs],
                          expr_builder: IExprBuilder) -> Sequence[DimsExprs]:
        """To be defined: the shapes of outputs, as expressions of sizes of inputs and of values of shape_inputs."""
        raise _missing(self, 'get_output_shapes')

    def get_workspace_size(self, input_desc: list[DynamicPluginTensorDesc],
                           output_desc: list[DynamicPluginTensorDesc]) -> int:
        """Bytes, for the largest shapes of the profile."""
        return 0

    def configure_plugin(self, input_desc: list[DynamicPluginTensorDesc],
                         output_desc: list[DynamicPluginTensorDesc]) -> int | None:
        """To be defined: takes the types, formats and ranges of sizes that were chosen, before tactics and the workspace are asked for."""
        raise _missing(self, 'configure_plugin')

    def supports_format_combination(self, pos: int, in_out: list[DynamicPluginTensorDesc], num_inputs: int) -> bool:
        """To be defined: whether tensor pos, of inputs and then outputs, may have its type and format, given those of the ones before it."""
        raise _missing(self, 'supports_format_combination')

    def get_valid_tactics(self) -> Sequence[int]:
        """Positive numbers, for the builder to time; none of them: the plugin has one tactic."""
        return ()


class IPluginV3OneBuildV2(IPluginV3OneBuild):
    """IPluginV3OneBuild, and outputs that share the memory of an input."""

    def get_aliased_input(self, output_index: int) -> int:
        """The input, or -1."""
        return -1


class IPluginV3OneRuntime(IPluginCapability):
    """What runs. Methods that return a status report success with 0 or None."""

    def __init__(self, other: 'IPluginV3OneRuntime | None' = None) -> None:
        pass

    def on_shape_change(self, input_desc: list[PluginTensorDesc], output_desc: list[PluginTensorDesc]) -> int | None:
        """To be defined: takes the sizes of the runs to come."""
        raise _missing(self, 'on_shape_change')

    def set_tactic(self, tactic: int) -> int | None:
        """Takes the tactic that was chosen of get_valid_tactics(); 0 where there is one alone."""
        return None

    def get_fields_to_serialize(self) -> PluginFieldCollection_:
        """To be defined: what the plan keeps, of which the creator makes the plugin when it is loaded."""
        raise _missing(self, 'get_fields_to_serialize')

    def enqueue(self, input_desc: list[PluginTensorDesc], output_desc: list[PluginTensorDesc], inputs: list[int],
                outputs: list[int], workspace: int, stream: int) -> int | None:
        """Addresses of inputs and outputs: of the host where the engine is for the CPU (lathe.tensorrt.array_at)."""
        raise _missing(self, 'enqueue')

    def attach_to_context(self, resource_context: IPluginResourceContext) -> IPluginV3:
        """To be defined: a plugin for one context, with what it needs of it."""
        raise _missing(self, 'attach_to_context')


class IPluginCreatorInterface(_Interface):
    """Root of all creators of plugins."""


class IPluginCreatorV3One(IPluginCreatorInterface):
    """Makes plugins. Set name, plugin_version, plugin_namespace and field_names, and define create_plugin()."""

    name: Any = _ToSet()
    plugin_version: Any = _ToSet()
    plugin_namespace: str = ''
    field_names: PluginFieldCollection_ = PluginFieldCollection_()

    def __init__(self) -> None:
        pass

    def create_plugin(self, name: str, field_collection: PluginFieldCollection_, phase: TensorRTPhase) -> IPluginV3:
        """To be defined: a plugin with these attributes, for a build or, of what it serialized, for a run."""
        raise _missing(self, 'create_plugin')


class IPluginResource(_Interface):
    """What plugins share by a key of the registry."""

    def __init__(self) -> None:
        pass

    def release(self) -> int | None:
        """To be defined: frees what the clone holds, when its last user has let go of it."""
        raise _missing(self, 'release')

    def clone(self) -> 'IPluginResource':
        """To be defined: the resource that the registry keeps, with what it holds."""
        raise _missing(self, 'clone')


# Those that are written in other languages.
IPluginV3.register(_CppPlugin)
IPluginCreatorInterface.register(_CppPluginCreatorInterface)
IPluginCreatorV3One.register(_CppPluginCreator)


def array_at(address: int, desc: PluginTensorDesc) -> Any:
    """The host memory at an address that enqueue() is given, as an array of NumPy of the tensor's type and shape.

    It is valid during the call only. Types that NumPy lacks are unsigned numbers of their size. Raises TypeError for elements of less than
    a byte and for formats other than row-major.
    """
    dtype = (TYPE_STRINGS | _NUMBERS_OF_THE_SIZE).get(desc.type)
    if dtype is None or desc.format != TensorFormat.LINEAR:
        raise TypeError(f'NumPy has no view of {desc.type} in {desc.format}')
    shape = tuple(desc.dims)
    size = volume(shape) * np.dtype(dtype).itemsize
    if size == 0:
        return np.empty(shape, dtype)
    return np.frombuffer(memoryview((ctypes.c_byte * size).from_address(address)), dtype).reshape(shape)
