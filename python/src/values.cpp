// SPDX-License-Identifier: Apache-2.0
// Values that Python sees as sequences or buffers: Dims, Permutation, Weights, IHostMemory.
#include <numeric>

#include "bind.h"

using namespace nvinfer1;

namespace lathe::python {
namespace {

template <typename D>
D dimsOf(const std::vector<int64_t>& sizes, size_t rank) {
  if (rank > 0 && sizes.size() != rank)
    throw nb::value_error(("takes " + std::to_string(rank) + " sizes, got " + std::to_string(sizes.size())).c_str());
  if (sizes.size() > static_cast<size_t>(Dims::MAX_DIMS))
    throw nb::value_error(("has at most 8 sizes, got " + std::to_string(sizes.size())).c_str());
  D dims{};
  dims.nbDims = static_cast<int32_t>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), dims.d);
  return dims;
}

// Sizes as a tuple; an unknown rank has none to give.
nb::tuple tupleOf(const Dims& dims) {
  if (dims.nbDims < 0) throw nb::value_error("the rank is unknown");
  nb::list sizes;
  for (int32_t i = 0; i < dims.nbDims; ++i) sizes.append(dims.d[i]);
  return nb::tuple(sizes);
}

// A Python index, which counts from the end where it is negative.
int64_t indexOf(int64_t index, int64_t size) {
  if (index < -size || index >= size) throw nb::index_error();
  return index < 0 ? index + size : index;
}

template <typename D, typename Class>
Class sequenceOfSizes(Class bound, size_t rank) {
  bound.def(
      "__init__", [rank](D* self, const std::vector<int64_t>& shape) { new (self) D(dimsOf<D>(shape, rank)); },
      nb::arg("shape"));
  nb::implicitly_convertible<nb::tuple, D>();
  nb::implicitly_convertible<nb::list, D>();
  return bound;
}

int64_t bytesOf(const Weights& weights) { return (weights.count * bits_of(weights.type) + 7) / 8; }

// Weights that refer to the array's memory: it must be C-contiguous, of a type that weights have.
Weights weightsOf(const nb::ndarray<nb::ro, nb::device::cpu>& array) {
  int64_t stride = 1;
  for (size_t i = array.ndim(); i-- > 0; stride *= static_cast<int64_t>(array.shape(i)))
    if (array.shape(i) > 1 && array.stride(i) != stride)
      throw nb::value_error("weights must be C-contiguous: pass numpy.ascontiguousarray(array)");
  const std::pair<nb::dlpack::dtype, DataType> types[] = {
      {nb::dtype<float>(), DataType::kFLOAT},   {{2, 16, 1}, DataType::kHALF},
      {nb::dtype<int8_t>(), DataType::kINT8},   {nb::dtype<int32_t>(), DataType::kINT32},
      {nb::dtype<int64_t>(), DataType::kINT64}, {nb::dtype<bool>(), DataType::kBOOL},
      {nb::dtype<uint8_t>(), DataType::kUINT8}, {{4, 16, 1}, DataType::kBF16}};
  for (const auto& [dtype, type] : types)
    if (dtype == array.dtype()) return Weights{type, array.data(), static_cast<int64_t>(array.size())};
  throw nb::value_error("weights are float32, float16, bfloat16, int8, uint8, int32, int64 or bool arrays");
}

// A flat view that keeps the weights alive; the Weights themselves where NumPy has no such type.
nb::object viewOf(nb::handle self) {
  const auto& weights = nb::cast<Weights&>(self);
  const size_t size[] = {static_cast<size_t>(weights.count)};
  const auto of = [&](nb::dlpack::dtype dtype) {
    return nb::cast(nb::ndarray<nb::numpy>(const_cast<void*>(weights.values), 1, size, self, nullptr, dtype));
  };
  switch (weights.type) {
    case DataType::kFLOAT:
      return of(nb::dtype<float>());
    case DataType::kHALF:
      return of({2, 16, 1});
    case DataType::kINT8:
      return of(nb::dtype<int8_t>());
    case DataType::kINT32:
      return of(nb::dtype<int32_t>());
    case DataType::kINT64:
      return of(nb::dtype<int64_t>());
    case DataType::kBOOL:
      return of(nb::dtype<bool>());
    case DataType::kUINT8:
      return of(nb::dtype<uint8_t>());
    default:
      return nb::borrow(self);
  }
}

int hostMemoryBuffer(PyObject* object, Py_buffer* view, int flags) {
  auto* memory = nb::inst_ptr<IHostMemory>(object);
  return PyBuffer_FillInfo(view, object, memory->data(), static_cast<Py_ssize_t>(memory->size()), 1, flags);
}

PyType_Slot hostMemorySlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(hostMemoryBuffer)}, {0, nullptr}};

void bind_dims(nb::module_& m) {
  auto dims = sequenceOfSizes<Dims>(nb::class_<Dims>(m, "Dims", "Up to 8 sizes; -1 is one known at run time."), 0);
  dims.def("__init__", [](Dims* self) { new (self) Dims{}; })
      .def("__len__", [](const Dims& self) { return nb::len(tupleOf(self)); })
      .def(
          "__iter__", [](const Dims& self) { return nb::iter(tupleOf(self)); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[int]"))
      .def("__getitem__", [](const Dims& self, nb::slice slice) { return tupleOf(self).attr("__getitem__")(slice); })
      .def("__getitem__",
           [](const Dims& self, int64_t index) { return self.d[indexOf(index, std::max(self.nbDims, 0))]; })
      .def("__setitem__",
           [](Dims& self, int64_t index, int64_t size) { self.d[indexOf(index, std::max(self.nbDims, 0))] = size; })
      .def(
          "__eq__", [](const Dims& self, const Dims& other) { return tupleOf(self).equal(tupleOf(other)); },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__str__", [](const Dims& self) { return nb::str(tupleOf(self)); })
      .def("__repr__", [](const Dims& self) { return nb::repr(tupleOf(self)); });
  dims.attr("MAX_DIMS") = static_cast<int>(Dims::MAX_DIMS);
  sequenceOfSizes<Dims2>(nb::class_<Dims2, Dims>(m, "Dims2", "Two sizes."), 2)
      .def(nb::init<>())
      .def(nb::init<int64_t, int64_t>());
  sequenceOfSizes<DimsHW>(nb::class_<DimsHW, Dims2>(m, "DimsHW", "A height and a width."), 2)
      .def(nb::init<>())
      .def(nb::init<int64_t, int64_t>(), nb::arg("h"), nb::arg("w"))
      .def_prop_rw(
          "h", [](const DimsHW& self) { return self.h(); }, [](DimsHW& self, int64_t h) { self.h() = h; },
          "The height.")
      .def_prop_rw(
          "w", [](const DimsHW& self) { return self.w(); }, [](DimsHW& self, int64_t w) { self.w() = w; },
          "The width.");
  sequenceOfSizes<Dims3>(nb::class_<Dims3, Dims2>(m, "Dims3", "Three sizes."), 3)
      .def(nb::init<>())
      .def(nb::init<int64_t, int64_t, int64_t>());
  sequenceOfSizes<Dims4>(nb::class_<Dims4, Dims3>(m, "Dims4", "Four sizes."), 4)
      .def(nb::init<>())
      .def(nb::init<int64_t, int64_t, int64_t, int64_t>());
}

void bind_permutation(nb::module_& m) {
  nb::class_<Permutation>(m, "Permutation", "The order of up to 8 dimensions.")
      .def("__init__",
           [](Permutation* self) {
             new (self) Permutation{};
             std::iota(self->order, self->order + Dims::MAX_DIMS, 0);
           })
      .def("__init__",
           [](Permutation* self, const std::vector<int32_t>& order) {
             if (order.size() > static_cast<size_t>(Dims::MAX_DIMS)) throw nb::value_error("has at most 8 dimensions");
             new (self) Permutation{};
             std::copy(order.begin(), order.end(), self->order);
           })
      .def("__len__", [](const Permutation&) { return static_cast<int>(Dims::MAX_DIMS); })
      .def("__getitem__",
           [](const Permutation& self, int64_t index) { return self.order[indexOf(index, Dims::MAX_DIMS)]; })
      .def("__setitem__", [](Permutation& self, int64_t index,
                             int32_t dimension) { self.order[indexOf(index, Dims::MAX_DIMS)] = dimension; })
      .def("__str__", [](nb::handle self) { return nb::str(nb::tuple(self)); })
      .def("__repr__", [](nb::handle self) { return nb::repr(nb::tuple(self)); });
  nb::implicitly_convertible<nb::tuple, Permutation>();
  nb::implicitly_convertible<nb::list, Permutation>();
}

}  // namespace

void bind_values(nb::module_& m) {
  bind_dims(m);
  bind_permutation(m);
  using Array = nb::ndarray<nb::ro, nb::device::cpu>;
  nb::class_<Weights>(m, "Weights", "Elements at an address that the caller keeps alive until the build is done.")
      .def(
          "__init__",
          [](Weights* self, DataType type) {
            new (self) Weights{type, nullptr, 0};
          },
          nb::arg("type") = DataType::kFLOAT)
      .def(
          "__init__",
          [](Weights* self, DataType type, size_t ptr, int64_t count) {
            new (self) Weights{type, pointer<const void*>(ptr), count};
          },
          nb::arg("type"), nb::arg("ptr"), nb::arg("count"))
      .def(
          "__init__", [](Weights* self, const Array& a) { new (self) Weights(weightsOf(a)); }, nb::arg("a"),
          nb::keep_alive<1, 2>(), nb::sig("def __init__(self, a: numpy.typing.NDArray[typing.Any]) -> None"))
      .def_ro("dtype", &Weights::type, "The type of the elements.")
      .def_ro("size", &Weights::count, "How many elements there are.")
      .def_prop_ro("nbytes", &bytesOf, "Bytes of the elements.")
      .def("numpy", &viewOf, nb::sig("def numpy(self) -> typing.Any"),
           "A view as a flat NumPy array; the Weights where NumPy has no such type.")
      .def("__len__", [](const Weights& self) { return self.count; });
  nb::implicitly_convertible<Array, Weights>();
  nb::class_<IHostMemory> memory(m, "IHostMemory", nb::type_slots(hostMemorySlots),
                                 "Bytes that the library made, such as a plan. It has the buffer protocol: bytes(), "
                                 "memoryview() and files take it.");
  freed_by_last_reference(memory);
  memory.def_prop_ro("dtype", &IHostMemory::type, "The type of the elements: INT8 for plans and other bytes.")
      .def_prop_ro("nbytes", &IHostMemory::size, "How many bytes there are.");
}

}  // namespace lathe::python
