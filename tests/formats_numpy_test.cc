// Files of NumPy's own, both ways.
#include <cstdlib>

#include "formats/write.h"
#include "formats_samples.h"

namespace attn::formats {
namespace {

bool run_python(const Directory& directory, const std::string& program) {
  const std::string script = directory.file("script.py", program);
  const std::string in_directory = "cd '" + directory.path("") + "' && ";
  return std::system((in_directory + "python3 '" + script + "'").c_str()) == 0;
}

bool has_numpy() { return std::system("python3 -c 'import numpy' 2> /dev/null") == 0; }

// The same six numbers in every type and layout, so that one sentence checks them all.
TEST(Numpy, WritesWhatIsRead) {
  if (!has_numpy()) GTEST_SKIP() << "skipped: python3 with numpy is not there";
  const Directory directory;
  ASSERT_TRUE(run_python(directory, R"(
import numpy
for code in ['f4', 'f8', 'f2', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'b1']:
    numbers = numpy.arange(6).reshape(2, 3).astype(code)
    layouts = {'c': numbers, 'f': numpy.asfortranarray(numbers), 'big': numbers.astype('>' + code)}
    for layout, array in layouts.items():
        numpy.save(f'{code}-{layout}.npy', array)
    numpy.savez(f'{code}.npz', **layouts)
    numpy.savez_compressed(f'{code}-compressed.npz', **layouts)
    with open(f'{code}-v3.npy', 'wb') as file:
        numpy.lib.format.write_array(file, numbers, version=(3, 0))
    open(f'{code}.raw', 'wb').write(numbers.tobytes())
)"));
  for (const std::string code : {"f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"}) {
    const std::string elements = directory.contents(code + ".raw");
    for (const std::string argument :
         {"-c.npy", "-f.npy", "-big.npy", "-v3.npy", ".npz:c", ".npz:f.npy", ".npz:big", "-compressed.npz:c",
          "-compressed.npz:f", "-compressed.npz:big"}) {
      const Tensor tensor = read(directory.path(code + argument));
      EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 3}));
      EXPECT_EQ(npy_code_of(tensor.type), code);
      EXPECT_EQ(elements_of(tensor), elements) << code << argument;
    }
  }
}

TEST(Numpy, ReadsWhatIsWritten) {
  if (!has_numpy()) GTEST_SKIP() << "skipped: python3 with numpy is not there";
  const Directory directory;
  const std::vector<float> numbers = {0, 1, 2, 3, 4, 5};
  const TensorView view(numbers.data(), DType::f32, {3, 2}, {1, 3});
  ASSERT_TRUE(write_tensor(directory.path("t.npy"), view).ok());
  ASSERT_TRUE(write_tensor(directory.path("t.npz"), view, "k").ok());
  EXPECT_TRUE(run_python(directory, R"(
import numpy, zipfile
expected = numpy.arange(6, dtype='f4').reshape(2, 3).T
for array in [numpy.load('t.npy'), numpy.load('t.npz')['k'], numpy.load('t.npy', mmap_mode='r')]:
    assert array.dtype == expected.dtype and numpy.array_equal(array, expected), array
assert zipfile.ZipFile('t.npz').testzip() is None
)"));
}

}  // namespace
}  // namespace attn::formats
