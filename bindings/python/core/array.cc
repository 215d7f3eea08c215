#include "bindings/python/core/array.h"

namespace attn::python {
namespace {

// NumPy's array interface, version 3: what the capsule __array_struct__ points to.
struct ArrayStruct {
  int two;
  int rank;
  char kind;
  int item_size;
  int flags;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  void* data;
  PyObject* description;
};
constexpr int kNotSwapped = 0x200, kWriteable = 0x400;

// DLPack 0.x: what the capsule of __dlpack__() points to.
struct DLTensor {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t rank;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
constexpr int32_t kCpu = 1;
enum DLCode : uint8_t { kInt = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4, kBool = 6 };

constexpr const char* kDTypeNames[] = {"float32", "float64", "float16", "bfloat16", "bool"};

// Names of attributes, made once: making a string costs as much as the look-up.
struct Names {
  PyObject* array_struct = PyUnicode_InternFromString("__array_struct__");
  PyObject* dlpack = PyUnicode_InternFromString("__dlpack__");
  PyObject* dlpack_device = PyUnicode_InternFromString("__dlpack_device__");
  PyObject* dtype = PyUnicode_InternFromString("dtype");
  PyObject* name = PyUnicode_InternFromString("name");
};
const Names& names() {
  static const Names kNames;
  return kNames;
}

PyObject* allocator = nullptr;

// The attribute, or nothing (and no error) where there is none.
Object attribute_of(PyObject* object, PyObject* name) {
  Object attribute(PyObject_GetAttr(object, name));
  if (!attribute && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
  return attribute;
}

// "ndarray", or "ma.MaskedArray" of a module in it.
PyObject* attribute_of_numpy(const std::string& name) {
  const std::size_t dot = name.find('.');
  const std::string module = dot == std::string::npos ? "numpy" : "numpy." + name.substr(0, dot);
  const Object numpy(PyImport_ImportModule(module.c_str()));
  return numpy ? PyObject_GetAttrString(numpy.get(), name.substr(dot == std::string::npos ? 0 : dot + 1).c_str())
               : nullptr;
}

std::string text_of(PyObject* object) {
  const Object str(object ? PyObject_Str(object) : nullptr);
  std::string text = "?";
  read_text(str.get(), &text);
  return text;
}

std::string type_of(PyObject* object) {
  const Object type = Object::borrowed(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  const Object name = attribute_of(type.get(), PyUnicode_InternFromString("__name__"));
  return text_of(name.get());
}

bool refuse_dtype(const char* name, const std::string& dtype) {
  return fail(PyExc_TypeError, std::string(name) + ": dtype " + dtype +
                                   "; give float32, float64, float16 or bfloat16 (bool for a mask)");
}

// bfloat16 is no type of NumPy's own: ml_dtypes makes it, two bytes of kind "V".
bool is_bfloat16(PyObject* object) {
  const Object dtype = attribute_of(object, names().dtype);
  const Object name = dtype ? attribute_of(dtype.get(), names().name) : Object();
  return name && text_of(name.get()) == "bfloat16";
}

int32_t dtype_of(const ArrayStruct& array, PyObject* object) {
  if (array.kind == 'f' && array.item_size == 4) return ATTN_F32;
  if (array.kind == 'f' && array.item_size == 8) return ATTN_F64;
  if (array.kind == 'f' && array.item_size == 2) return ATTN_F16;
  if (array.kind == 'b' && array.item_size == 1) return ATTN_BOOL;
  if (array.kind == 'V' && array.item_size == 2 && is_bfloat16(object)) return ATTN_BF16;
  return -1;
}

int32_t dtype_of(const DLTensor& tensor) {
  const auto& [code, bits, lanes] = tensor.dtype;
  if (lanes != 1) return -1;
  if (code == kFloat && bits == 32) return ATTN_F32;
  if (code == kFloat && bits == 64) return ATTN_F64;
  if (code == kFloat && bits == 16) return ATTN_F16;
  if (code == kBfloat && bits == 16) return ATTN_BF16;
  if (code == kBool && bits == 8) return ATTN_BOOL;
  return -1;
}

bool refuse_device(const char* name, const std::string& device) {
  return fail(PyExc_ValueError,
              std::string(name) + ": on device " + device + "; attn computes on the CPU, so bring it there first");
}

// __dlpack__() failed with an exception of its owner's: where the memory lies elsewhere, that is what is wrong.
bool explain_failure(PyObject* object, const char* name) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const Object method = attribute_of(object, names().dlpack_device);
  const Object device(method ? PyObject_CallObject(method.get(), nullptr) : nullptr);
  const Object number(device ? PySequence_GetItem(device.get(), 0) : nullptr);
  const bool elsewhere = number && PyLong_AsLong(number.get()) != kCpu;
  PyErr_Clear();
  if (!elsewhere && !PyErr_GivenExceptionMatches(type, PyExc_Exception)) {  // an interrupt, say
    PyErr_Restore(type, value, traceback);
    return false;
  }
  const std::string why = text_of(value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  if (elsewhere) return refuse_device(name, text_of(device.get()) + " (DLPack's numbers)");
  return fail(PyExc_ValueError, std::string(name) + ": does not hand out its memory: " + why);
}

}  // namespace

// NumPy's own arrays by its own protocol: it takes 0.1 µs, knows of read-only memory, and has types that DLPack lacks. What
// is none is not even asked for it: a torch tensor takes 2 µs to say that it has no such attribute.
bool Array::take(PyObject* object, const char* name, Access access) {
  static PyObject* const numpy_array = attribute_of_numpy("ndarray");
  static PyObject* const masked_array = attribute_of_numpy("ma.MaskedArray");
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != numpy_array && masked_array &&
      PyObject_IsInstance(object, masked_array) == 1)
    return fail(PyExc_TypeError,
                std::string(name) + ": a masked array, whose mask would be lost; give its data, and mask=");
  const int is_numpy = numpy_array ? PyObject_IsInstance(object, numpy_array) : -1;
  if (is_numpy < 0) return false;
  return is_numpy ? take_struct(object, name, access) : take_dlpack(object, name);
}

bool Array::take_struct(PyObject* object, const char* name, Access access) {
  capsule_ = Object(PyObject_GetAttr(object, names().array_struct));
  const auto* array =
      static_cast<const ArrayStruct*>(capsule_ ? PyCapsule_GetPointer(capsule_.get(), nullptr) : nullptr);
  if (!array) return false;
  tensor_.dtype = dtype_of(*array, object);
  if (tensor_.dtype < 0) return refuse_dtype(name, text_of(attribute_of(object, names().dtype).get()));
  if (!(array->flags & kNotSwapped) && array->item_size > 1)
    return fail(PyExc_ValueError, std::string(name) + ": its bytes are in the other order; call .astype() first");
  if (access == Access::write && !(array->flags & kWriteable))
    return fail(PyExc_ValueError, std::string(name) + ": is read-only; give an array that may be written");
  tensor_.data = array->data;
  is_numpy_ = true;
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  return take_shape(name, array->rank, reinterpret_cast<const int64_t*>(array->shape),
                    reinterpret_cast<const int64_t*>(array->strides), array->item_size);
}

bool Array::take_dlpack(PyObject* object, const char* name) {
  const Object method = attribute_of(object, names().dlpack);
  if (!method) {
    if (PyErr_Occurred()) return false;
    return fail(PyExc_TypeError, std::string(name) + ": a " + type_of(object) +
                                     "; give a NumPy array, a torch tensor or anything else with DLPack");
  }
  capsule_ = Object(PyObject_CallObject(method.get(), nullptr));
  if (!capsule_) return explain_failure(object, name);
  // The capsule stays as it is: when it goes, it gives the memory back to its owner.
  const auto* tensor = static_cast<const DLTensor*>(
      PyCapsule_IsValid(capsule_.get(), "dltensor") ? PyCapsule_GetPointer(capsule_.get(), "dltensor") : nullptr);
  if (!tensor)
    return fail(PyExc_TypeError,
                std::string(name) + ": what its __dlpack__() gives is no unused capsule of DLPack");
  // Asked of the capsule: __dlpack_device__() would take torch as long as all the rest.
  if (tensor->device.type != kCpu)
    return refuse_device(name, std::to_string(tensor->device.type) + ":" + std::to_string(tensor->device.id) +
                                   " (DLPack's numbers)");
  tensor_.dtype = dtype_of(*tensor);
  if (tensor_.dtype < 0) return refuse_dtype(name, text_of(attribute_of(object, names().dtype).get()));
  tensor_.data = static_cast<char*>(tensor->data) + tensor->byte_offset;
  if (tensor->strides) return take_shape(name, tensor->rank, tensor->shape, tensor->strides, 1);
  if (tensor->rank > 4) return take_shape(name, tensor->rank, tensor->shape, tensor->shape, 1);
  tensor_ = attn_contiguous(tensor_.data, tensor_.dtype, tensor->rank, tensor->shape);
  return true;
}

// Strides are multiples of `unit`: NumPy counts bytes.
bool Array::take_shape(const char* name, int rank, const int64_t* shape, const int64_t* strides, int64_t unit) {
  if (rank > 4)
    return fail(PyExc_ValueError,
                std::string(name) + ": " + std::to_string(rank) + " dimensions; at most 4 are understood");
  tensor_.rank = rank;
  for (int d = 0; d < rank; ++d) {
    tensor_.shape[d] = shape[d];
    tensor_.strides[d] = strides[d] / unit;
    if (strides[d] % unit != 0 && shape[d] > 1)
      return fail(PyExc_ValueError,
                  std::string(name) + ": a stride of " + std::to_string(strides[d]) +
                      " bytes is no whole number of elements; copy it with numpy.ascontiguousarray");
  }
  return true;
}

void Array::swap_heads_and_rows() {
  if (tensor_.rank < 3) return;
  const int rows = tensor_.rank - 2;
  std::swap(tensor_.shape[rows], tensor_.shape[rows - 1]);
  std::swap(tensor_.strides[rows], tensor_.strides[rows - 1]);
}

void set_allocator(PyObject* allocate) { allocator = allocate; }

Object new_array(PyObject* like, const Array& like_array, const int64_t* shape, int rank, int32_t dtype) {
  static PyObject* const empty = attribute_of_numpy("empty");
  if (!empty) return {};
  const Object sizes(PyTuple_New(rank));
  for (int d = 0; sizes && d < rank; ++d) PyTuple_SetItem(sizes.get(), d, PyLong_FromLongLong(shape[d]));
  if (!sizes || PyErr_Occurred()) return {};
  if (!like_array.is_numpy())
    return Object(PyObject_CallFunction(allocator, "OOs", like, sizes.get(), kDTypeNames[dtype]));
  const bool same = dtype == like_array.tensor()->dtype;
  const Object type = same ? attribute_of(like, names().dtype) : Object(PyUnicode_FromString(kDTypeNames[dtype]));
  if (!type) return {};
  return Object(PyObject_CallFunctionObjArgs(empty, sizes.get(), type.get(), nullptr));
}

}  // namespace attn::python
