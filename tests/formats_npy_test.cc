// .npy files: every type, byte order, version and layout; and what is no .npy file.
#include <sys/stat.h>

#include "formats_samples.h"

namespace attn::formats {
namespace {

TEST(Npy, ReadsEveryTypeInBothByteOrders) {
  const Directory directory;
  struct Case {
    const char* code;
    ElementType type;
    std::string first, second;
  };
  const std::vector<Case> cases = {
      {"f4", ElementType::f32, bytes_of(1.5F), bytes_of(-2.25F)},
      {"f8", ElementType::f64, bytes_of(1.5), bytes_of(-2.25)},
      {"f2", ElementType::f16, bytes_of<std::uint16_t>(0x3E00), bytes_of<std::uint16_t>(0xC080)},
      {"b1", ElementType::boolean, "\x01", std::string(1, '\0')},
      {"i1", ElementType::i8, bytes_of<std::int8_t>(-5), bytes_of<std::int8_t>(7)},
      {"i2", ElementType::i16, bytes_of<std::int16_t>(-500), bytes_of<std::int16_t>(7)},
      {"i4", ElementType::i32, bytes_of<std::int32_t>(-70000), bytes_of<std::int32_t>(7)},
      {"i8", ElementType::i64, bytes_of<std::int64_t>(-1LL << 40), bytes_of<std::int64_t>(7)},
      {"u1", ElementType::u8, bytes_of<std::uint8_t>(250), bytes_of<std::uint8_t>(7)},
      {"u2", ElementType::u16, bytes_of<std::uint16_t>(65000), bytes_of<std::uint16_t>(7)},
      {"u4", ElementType::u32, bytes_of<std::uint32_t>(4000000000U), bytes_of<std::uint32_t>(7)},
      {"u8", ElementType::u64, bytes_of<std::uint64_t>(1ULL << 63), bytes_of<std::uint64_t>(7)},
  };
  for (const Case& c : cases) {
    for (const char order : {'<', '>', '=', '|'}) {
      if (order == '|' && c.first.size() > 1) continue;
      const bool swap = order == '>';
      const std::string elements = swap ? reversed(c.first) + reversed(c.second) : c.first + c.second;
      const Tensor tensor =
          read(directory.file("t.npy", npy(npy_dict(order + std::string(c.code), "(2,)"), elements)));
      EXPECT_EQ(tensor.type, c.type) << c.code;
      EXPECT_EQ(tensor.shape, std::vector<std::int64_t>{2});
      EXPECT_EQ(elements_of(tensor), c.first + c.second) << order << c.code;
    }
  }
}

TEST(Npy, ReadsAllVersionsAndEveryWayToWriteTheDict) {
  const Directory directory;
  const std::string elements = bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6});
  for (const int version : {1, 2, 3}) {
    for (const char* dict : {
             "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
             "{'shape':(2,3,),'fortran_order':False,'descr':'<f4'}",
             "  { \"fortran_order\" : False ,\n\t'descr' : \"<f4\" , 'shape' : ( 2 , 3 ) }   ",
         }) {
      const Tensor tensor = read(directory.file("t.npy", npy(dict, elements, version)));
      EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 3}));
      EXPECT_EQ(tensor.strides, (std::vector<std::int64_t>{3, 1}));
      EXPECT_EQ(elements_of(tensor), elements);
    }
  }
}

TEST(Npy, FortranOrderBecomesStrides) {
  const Directory directory;
  const std::string stored = bytes_of(std::vector<float>{1, 4, 2, 5, 3, 6});
  const std::string path = directory.file("t.npy", npy(npy_dict("<f4", "(2, 3)", true), stored));
  const Tensor tensor = read(path);
  EXPECT_EQ(tensor.strides, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(elements_of(tensor), bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, ReadsScalarsEmptyTensorsAndManyDimensions) {
  const Directory directory;
  EXPECT_EQ(elements_of(read(directory.file("t.npy", npy(npy_dict("<f4", "()"), bytes_of(7.0F))))), bytes_of(7.0F));
  EXPECT_EQ(read(directory.file("t.npy", npy(npy_dict("<f4", "(2, 0, 3)"), ""))).shape,
            (std::vector<std::int64_t>{2, 0, 3}));
  std::string ones = "(";
  for (int i = 0; i < 32; ++i) ones += "1, ";
  EXPECT_EQ(read(directory.file("t.npy", npy(npy_dict("<f4", ones + ")"), bytes_of(7.0F)))).shape.size(), 32U);
}

TEST(Npy, MapsWhatLiesAsItIs) {
  const Directory directory;
  const std::string path = directory.file("t.npy", small_npy());
  const Tensor tensor = read(path);
  // Written into the file afterwards, and seen: there was no copy.
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(-4, std::ios::end) << bytes_of(9.0F);
  EXPECT_EQ(elements_of(tensor), bytes_of(std::vector<float>{1, 2, 9}));
}

TEST(Npy, RefusesMalformedFiles) {
  const std::string three = bytes_of(std::vector<float>{1, 2, 3});
  const std::string good = npy_dict("<f4", "(3,)");
  std::string ones = "(";
  for (int i = 0; i < 33; ++i) ones += "1, ";
  expect_refused(
      "bad.npy",
      {
          {"", "is empty"},
          {"\x93NUM", "doesn't start with"},
          {"\x93NUMPY", "ends within the .npy header"},
          {std::string("\x93NUMPY\x01\x00\x10", 9), "ends within the .npy header"},
          {small_npy().substr(0, 40), "ends within the .npy header"},
          {small_npy().substr(0, small_npy().size() - 1), "cut short"},
          {small_npy() + "x", "added to"},
          {npy(good, three, 4), "version 4.0"},
          {std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12) + good, "header of 4294967295 bytes"},
          {npy("", three), "has the end at byte 1 where '{' is expected"},
          {npy("[]", three), "where '{' is expected"},
          {npy("{}", three), "lacks the key 'descr'"},
          {npy("{'descr': '<f4', 'shape': (3,)}", three), "lacks the key 'fortran_order'"},
          {npy("{'descr': '<f4', 'fortran_order': False}", three), "lacks the key 'shape'"},
          {npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", three), "'descr' twice"},
          {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}", three),
           "has the key 'more' beside"},
          {npy("{'descr': {'descr': 1}, 'fortran_order': False, 'shape': (3,)}", three),
           "where a string is expected"},
          {npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}", three), "where True or False is expected"},
          {npy("{'descr': '<f4', 'fortran_order': False, 'shape': [3]}", three), "where '(' is expected"},
          {npy(npy_dict("<f4", "(3)"), three), "where ',' in the shape is expected"},
          {npy(npy_dict("<f4", "(,)"), three), "where a size is expected"},
          {npy(npy_dict("<f4", "(3 1)"), three), "where ',' in the shape is expected"},
          {npy(npy_dict("<f4", "(-3,)"), three), "negative size"},
          {npy(npy_dict("<f4", "(3.0,)"), three), "where ',' in the shape is expected"},
          {npy(npy_dict("<f4", "(03,)"), three), "leading zero"},
          {npy(npy_dict("<f4", "(9223372036854775808,)"), three), "beyond 2^63 - 1"},
          {npy(npy_dict("<f4", "(4294967296, 4294967296)"), three), "takes more than 2^63 - 1 bytes"},
          {npy(npy_dict("<f4", "(0, 4294967296, 4294967296)"), ""), "takes more than 2^63 - 1 bytes"},
          {npy(npy_dict("<f4", "(1073741824,)"), three), "takes 4294967296 bytes, but 12 follow"},
          {npy(npy_dict("<f4", ones + ")"), three), "more than 32 dimensions"},
          {npy(good + " x", three), "where nothing after the dict is expected"},
          {npy(good + good, three), "where nothing after the dict is expected"},
          {npy("{'descr: '<f4'}", three), "where ':' is expected"},
          {npy("{'descr", three), "string that doesn't end"},
          {npy("{'de\\x73cr': '<f4'}", three), "backslash"},
          {npy(npy_dict("|O", "(3,)"), three), "holds pickled Python objects, which are never loaded"},
          {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", three),
           "records of several fields"},
          {npy(npy_dict("<c8", "(3,)"), three),
           "'<c8' is not one that is read; convert it to float32, float64 or float16, or a mask to bool"},
          {std::string("\x93NUMPY\x01\x00\xff\xff", 10) + good,
           "header of 65535 bytes behind its first 10, but the two of a plain tensor are at most 65536 together"},
          {npy(npy_dict("<V2", "(3,)"), three), "if they are bfloat16"},
          {npy(npy_dict("f4", "(3,)"), three), "is not one that is read"},
          {npy(npy_dict("|f4", "(3,)"), three), "lacks a byte order"},
          {npy(npy_dict("", "(3,)"), three), "dtype '' is not one that is read"},
          {npy(npy_dict("\x1b[31m", "(3,)"), three), "'?[31m'"},
      });
}

TEST(Argument, NamesFilesAndTheirMembers) {
  const Directory directory;
  const std::string path = directory.file("t.npy", small_npy());
  const std::string odd = directory.file("a:b.npy", small_npy());
  EXPECT_EQ(read(odd).source, odd);
  EXPECT_NE(error_of(path + ":x").find("whose one tensor has no name; give " + path), std::string::npos);
  EXPECT_NE(error_of(odd + ":x").find("a:b.npy: is an .npy file"), std::string::npos);
  EXPECT_NE(error_of(directory.path("no.npy")).find("there is no such file"), std::string::npos);
  EXPECT_NE(error_of(directory.path("no.npz:q")).find("there is no such file"), std::string::npos);
  EXPECT_NE(error_of(directory.path("")).find("is a directory"), std::string::npos);
  EXPECT_NE(error_of(directory.path("") + ":q").find("is a directory"), std::string::npos);
  EXPECT_NE(error_of("").find("give FILE or FILE:NAME"), std::string::npos);
  EXPECT_NE(error_of(std::string("a\0b", 3)).find("give FILE or FILE:NAME"), std::string::npos);
  ASSERT_EQ(mkfifo(directory.path("pipe").c_str(), 0600), 0);
  EXPECT_NE(error_of(directory.path("pipe")).find("not a regular file"), std::string::npos);
}

TEST(Argument, IsKnownByItsContent) {
  const Directory directory;
  EXPECT_EQ(read(directory.file("t.bin", small_npy())).shape, std::vector<std::int64_t>{3});
  EXPECT_EQ(read(directory.file("t.npz", small_npy())).shape, std::vector<std::int64_t>{3});
  EXPECT_NE(error_of(directory.file("t.bin", "hello, world")).find("neither an .npy nor"), std::string::npos);
  EXPECT_NE(error_of(directory.file("t.gguf", "GGUF....")).find("not available in this version"),
            std::string::npos);
}

TEST(Argument, AnErrorLeavesTheTensorAsItWas) {
  const Directory directory;
  Tensor tensor = read(directory.file("t.npy", small_npy()));
  const void* const data = tensor.data;
  EXPECT_FALSE(read_tensor(directory.path("no.npy"), &tensor).ok());
  EXPECT_EQ(tensor.data, data);
  EXPECT_EQ(elements_of(tensor), bytes_of(std::vector<float>{1, 2, 3}));
}

TEST(Tensor, BecomesAView) {
  const Directory directory;
  const Tensor tensor =
      read(directory.file("t.npy", npy(npy_dict(">f4", "(2, 1, 1, 2)", true), std::string(16, '\0'))));
  TensorView view;
  ASSERT_TRUE(view_of(tensor, &view).ok());
  EXPECT_EQ(view.data, tensor.data);
  EXPECT_EQ(view.rank, 4);
  EXPECT_EQ(view.dtype, DType::f32);
  EXPECT_EQ(view.strides, (std::array<std::int64_t, 4>{1, 2, 2, 2}));
  const Tensor deep = read(directory.file("t.npy", npy(npy_dict("<f4", "(1, 1, 1, 1, 1)"), bytes_of(1.0F))));
  EXPECT_NE(view_of(deep, &view).message().find("has 5 dimensions"), std::string::npos);
  const Tensor integers = read(directory.file("t.npy", npy(npy_dict("<i4", "(1,)"), bytes_of(1))));
  EXPECT_NE(view_of(integers, &view).message().find("holds i32 numbers"), std::string::npos);
  EXPECT_NE(view_of(integers, &view).message().find("convert a mask to bool"), std::string::npos);
}

TEST(Tensor, BecomesAListOfIntegers) {
  const Directory directory;
  std::vector<std::int64_t> list;
  for (const auto& [descr, elements] : std::vector<std::pair<std::string, std::string>>{
           {"<i8", bytes_of(std::vector<std::int64_t>{5, 9})},
           {">i4", reversed(bytes_of<std::int32_t>(5)) + reversed(bytes_of<std::int32_t>(9))},
           {"<u2", bytes_of(std::vector<std::uint16_t>{5, 9})},
           {"|i1", "\x05\x09"},
       }) {
    ASSERT_TRUE(integers_of(read(directory.file("t.npy", npy(npy_dict(descr, "(2,)"), elements))), &list).ok());
    EXPECT_EQ(list, (std::vector<std::int64_t>{5, 9})) << descr;
  }
  ASSERT_TRUE(integers_of(read(directory.file("t.npy", npy(npy_dict("<i2", "()"), "\xfe\xff"))), &list).ok());
  EXPECT_EQ(list, std::vector<std::int64_t>{-2});
  const auto error = [&](const std::string& descr, const std::string& shape, const std::string& elements) {
    return integers_of(read(directory.file("t.npy", npy(npy_dict(descr, shape), elements))), &list).message();
  };
  EXPECT_NE(error("<u8", "(1,)", std::string(8, '\xff')).find("18446744073709551615 at index 0"),
            std::string::npos);
  EXPECT_NE(error("<f4", "(1,)", bytes_of(1.0F)).find("holds f32 elements"), std::string::npos);
  EXPECT_NE(error("|b1", "(1,)", "\x01").find("holds bool elements"), std::string::npos);
  EXPECT_NE(error("<i4", "(1, 1)", bytes_of(1)).find("the shape [1, 1]"), std::string::npos);
  EXPECT_EQ(list, std::vector<std::int64_t>{-2}) << "an error leaves the list as it was";
}

}  // namespace
}  // namespace attn::formats
