# SPDX-License-Identifier: Apache-2.0
"""How contexts are set up: what with statements choose for a part of a program. Nothing is compiled for it."""
import dataclasses
import os
from typing import Any

from lathe import tensorrt as trt


class CacheFile:
    """A file of kernels that were compiled for a GPU while engines ran, as the caches of those that use it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._caches: list[tuple[trt.ICudaEngine, trt.IRuntimeCache]] = []

    def of(self, engine: trt.ICudaEngine, config: trt.IRuntimeConfig) -> trt.IRuntimeCache:
        """The engine's cache, with what the file has."""
        for known, cache in self._caches:
            if known is engine:
                return cache
        cache = config.create_runtime_cache()
        if os.path.exists(self._path):
            cache._load(self._path)
        self._caches.append((engine, cache))
        return cache

    def save(self) -> None:
        """Adds what has been compiled to the file."""
        for _, cache in self._caches:
            cache._save(self._path)


@dataclasses.dataclass(frozen=True)
class Strategies:
    """Settings of IRuntimeConfig; None is what is so already, or the default."""

    allocation: trt.ExecutionContextAllocationStrategy | None = None
    specialization: trt.DynamicShapesKernelSpecializationStrategy | None = None
    cuda_graphs: trt.CudaGraphStrategy | None = None
    cache: CacheFile | None = None

    def within(self, outer: 'Strategies') -> 'Strategies':
        """These where they say something, else those around them."""
        fields: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return dataclasses.replace(outer, **{name: value for name, value in fields.items() if value is not None})

    def config_of(self, engine: trt.ICudaEngine) -> trt.IRuntimeConfig:
        """The configuration of the engine's contexts. Raises TypeError for values of other types."""
        config = engine.create_runtime_config()  # with the runtime's number of threads
        if self.allocation is not None:
            config.set_execution_context_allocation_strategy(self.allocation)
        if self.specialization is not None:
            config.dynamic_shapes_kernel_specialization_strategy = self.specialization
        if self.cuda_graphs is not None:
            config.cuda_graph_strategy = self.cuda_graphs
        if self.cache is not None:
            config.set_runtime_cache(self.cache.of(engine, config))
        return config
