// Arrays of Python as the tensors of attn_c.h: the same memory, never a copy.
#pragma once

#include "bindings/python/core/object.h"

namespace attn::python {

enum class Access : bool { read, write };

/// The memory of a NumPy array (its __array_struct__) or of anything else with DLPack. It keeps hold of its owner.
class Array {
 public:
  /// Errors: TypeError for what is no array or has another dtype; ValueError for memory on another device, memory that is
  /// read-only but to be written, strides that are no whole elements, more than four dimensions. `name` is the argument.
  bool take(PyObject* object, const char* name, Access access = Access::read);

  /// Exchanges the dimensions of heads and rows, [..., S, H, D] for [..., H, S, D]; of three and four dimensions alone.
  void swap_heads_and_rows();

  bool is_numpy() const { return is_numpy_; }
  const attn_tensor* tensor() const { return &tensor_; }
  int rank() const { return tensor_.rank; }
  int64_t size(int dimension) const { return tensor_.shape[dimension]; }

 private:
  bool take_struct(PyObject* object, const char* name, Access access);
  bool take_dlpack(PyObject* object, const char* name);
  bool take_shape(const char* name, int rank, const int64_t* shape, const int64_t* strides, int64_t unit);

  attn_tensor tensor_{};
  Object capsule_;
  bool is_numpy_ = false;
};

/// An optional argument: none, or an array.
class OptionalArray {
 public:
  bool take(PyObject* object, const char* name, Access access = Access::read) {
    present_ = given(object);
    return !present_ || array_.take(object, name, access);
  }
  const attn_tensor* tensor() const { return present_ ? array_.tensor() : nullptr; }

 private:
  Array array_;
  bool present_ = false;
};

/// A new array of q's kind: NumPy's for NumPy's, a torch tensor for a torch tensor. `dtype` is ATTN_F32 and the like.
Object new_array(PyObject* like, const Array& like_array, const int64_t* shape, int rank, int32_t dtype);

/// Called once: who makes arrays that are not NumPy's, as allocate(like, shape, dtype name).
void set_allocator(PyObject* allocate);

}  // namespace attn::python
