// .safetensors files, and headers that break the format's rules.
#include "formats_samples.h"

namespace attn::formats {
namespace {

TEST(Safetensors, ReadsEveryType) {
  const Directory directory;
  const std::vector<std::pair<const char*, ElementType>> types = {
      {"F32", ElementType::f32},      {"F64", ElementType::f64}, {"F16", ElementType::f16},
      {"BF16", ElementType::bf16},    {"I8", ElementType::i8},   {"I16", ElementType::i16},
      {"BOOL", ElementType::boolean}, {"I32", ElementType::i32}, {"I64", ElementType::i64},
      {"U8", ElementType::u8},        {"U16", ElementType::u16}, {"U32", ElementType::u32},
      {"U64", ElementType::u64}};
  for (const auto& [name, type] : types) {
    const std::string elements = std::string("abcdefgh01234567").substr(0, 2 * size_of(type));
    const std::string header = std::string(R"({"a":{"dtype":")") + name + R"(","shape":[2,1],"data_offsets":[0,)" +
                               std::to_string(elements.size()) + "]}}";
    const Tensor tensor = read(directory.file("t.safetensors", safetensors(header, elements)));
    EXPECT_EQ(tensor.type, type);
    EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 1}));
    EXPECT_EQ(elements_of(tensor), elements);
  }
}

TEST(Safetensors, ReadsTensorsByName) {
  const Directory directory;
  const std::string header = R"({"__metadata__": {"format": "pt"},
    "layer.k": {"shape": [2], "data_offsets": [4, 12], "dtype": "F32"},
    "layer.q": {"dtype": "I32", "shape": [], "data_offsets": [0, 4]},
    "empty": {"dtype": "F32", "shape": [0, 7], "data_offsets": [4, 4]},
    "f8": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [12, 14]}}   )";
  const std::string elements = bytes_of(7) + bytes_of(std::vector<float>{1, 2}) + "xx";
  const std::string path = directory.file("t.safetensors", safetensors(header, elements));
  EXPECT_EQ(elements_of(read(path + ":layer.k")), bytes_of(std::vector<float>{1, 2}));
  EXPECT_EQ(elements_of(read(path + ":layer.q")), bytes_of(7));
  EXPECT_EQ(read(path + ":empty").shape, (std::vector<std::int64_t>{0, 7}));
  EXPECT_NE(error_of(path + ":f8").find("t.safetensors:f8: dtype 'F8_E4M3' is not one that is read"),
            std::string::npos);
  EXPECT_NE(error_of(path).find("holds 4 tensors"), std::string::npos);
  EXPECT_NE(error_of(path + ":v").find("no tensor called 'v'; it holds layer.k, layer.q, empty, f8"),
            std::string::npos);
}

TEST(Safetensors, RefusesMalformedHeaders) {
  const auto one = [](const std::string& fields) {
    return safetensors("{\"a\":{" + fields + "}}", std::string(8, 'x'));
  };
  const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  const auto two = [](const std::string& a, const std::string& b) {
    return safetensors(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
                           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
                       std::string(8, 'x'));
  };
  std::string ones = "1";
  for (int i = 0; i < 32; ++i) ones += ",1";
  const std::string deep = "{\"a\":" + std::string(100'000, '[');
  expect_refused(
      "bad.safetensors",
      {
          {"{", "ends within the .safetensors header's length"},
          {bytes_of<std::uint64_t>(1ULL << 63) + "{}", "claims a .safetensors header of 9223372036854775808 bytes"},
          {bytes_of<std::uint64_t>(3) + "{}", "claims a .safetensors header of 3 bytes"},
          {safetensors(" {}", ""), "doesn't start with '{'"},
          {safetensors("{}", ""), "holds no tensor"},
          {safetensors("{}", "x"), "1 byte after its last tensor"},
          {safetensors("{", ""), "is no valid JSON near byte"},
          {safetensors("{} x", ""), "is no valid JSON near byte"},
          {safetensors(std::string("{}\0{", 4), ""), "is no valid JSON near byte 2"},
          {safetensors("{\"\xff\":{}}", ""), "is no valid JSON near byte"},
          {safetensors(deep, ""), "something other than an object under the key 'a'"},
          {safetensors(R"({"a":1})", ""), "something other than an object under the key 'a'"},
          {safetensors(R"({"a":null})", ""), "something other than an object under the key 'a'"},
          {safetensors(R"({"__metadata__":{"a":1}})", ""), "value in __metadata__ that is no string"},
          {safetensors(R"({"__metadata__":{"a":{}}})", ""), "value in __metadata__ that is no string"},
          {safetensors(R"({"__metadata__":{"a":"","a":""}})", ""), "the key 'a' twice"},
          {safetensors(R"({"__metadata__":[]})", ""), "under the key '__metadata__'"},
          {safetensors("{\"a\":{" + good + "},\"a\":{" + good + "}}", std::string(8, 'x')), "the key 'a' twice"},
          {one(""), "lacks 'dtype'"},
          {one(R"("dtype":"F32","data_offsets":[0,8])"), "lacks 'shape'"},
          {one(R"("dtype":"F32","shape":[2])"), "lacks 'data_offsets'"},
          {one(good + R"(,"dtype":"F32")"), "the key 'dtype' twice"},
          {one(good + R"(,"extra":1)"), "the key 'extra' in the tensor 'a'"},
          {one(R"("dtype":1,"shape":[2],"data_offsets":[0,8])"), "a dtype that is no string"},
          {one(R"("dtype":"F32","shape":2,"data_offsets":[0,8])"), "a shape that is no list"},
          {one(R"("dtype":"F32","shape":[[2]],"data_offsets":[0,8])"), "a shape that is no list"},
          {one(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), "a shape that is no list"},
          {one(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), "a shape that is no list"},
          {one(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8])"), "a size beyond 2^63 - 1"},
          {one(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])"),
           "takes more than 2^63 - 1 bytes"},
          {one(R"("dtype":"F32","shape":[)" + ones + R"(],"data_offsets":[0,8])"), "more than 32 dimensions"},
          {one(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), "takes 12 bytes, but its data_offsets span 8"},
          {one(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), "data_offsets that are not two whole numbers"},
          {one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])"),
           "data_offsets that are not two whole numbers"},
          {one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4000000000])"), "beyond its 8 bytes of data"},
          {one(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), "ends before it begins"},
          {two("[0,4]", "[0,4]"), "overlaps another"},
          {two("[0,4]", "[3,7]"), "overlaps another: it must begin at 4"},
          {two("[0,4]", "[5,9]"), "beyond its 8 bytes"},
          {two("[1,5]", "[5,8]"), "leaves a hole before it: it must begin at 0"},
          {two("[0,4]", "[5,8]"), "leaves a hole before it: it must begin at 4"},
          {safetensors("{\"a\":{" + good + "}}", std::string(9, 'x')), "1 byte after its last tensor"},
          {safetensors("{\"a\":{" + good + "}}", std::string(7, 'x')), "beyond its 7 bytes of data"},
      });
}

}  // namespace
}  // namespace attn::formats
