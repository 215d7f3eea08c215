// .npz files: stored and deflated members, zip64; and archives that lie.
#include "formats_samples.h"

namespace attn::formats {
namespace {

std::string matrix() { return npy(npy_dict(">i2", "(2, 2)"), std::string("\0\1\0\2\0\3\0\4", 8)); }

TEST(Npz, ReadsStoredDeflatedAndZip64Members) {
  const Directory directory;
  for (const bool deflate : {false, true}) {
    for (const bool zip64 : {false, true}) {
      for (const bool zip64_end : {false, true}) {
        const Zip zip = {.members = {{.name = "q.npy", .contents = small_npy(), .deflate = deflate, .zip64 = zip64},
                                     {.name = "readme.txt", .contents = "not a tensor"},
                                     {.name = "k.npy", .contents = matrix(), .deflate = deflate, .zip64 = zip64}},
                         .zip64_end = zip64_end};
        const std::string path = directory.file("t.npz", zip.finish());
        EXPECT_EQ(elements_of(read(path + ":q")), bytes_of(std::vector<float>{1, 2, 3}));
        EXPECT_EQ(elements_of(read(path + ":q.npy")), bytes_of(std::vector<float>{1, 2, 3}));
        EXPECT_EQ(elements_of(read(path + ":k")), bytes_of(std::vector<std::int16_t>{1, 2, 3, 4}));
        EXPECT_EQ(read(path + ":k").source, path + ":k");
        EXPECT_NE(error_of(path + ":v").find("no tensor called 'v'; it holds q, k"), std::string::npos);
        EXPECT_NE(error_of(path).find("holds 2 tensors, so say which as " + path + ":NAME"), std::string::npos);
      }
    }
  }
}

TEST(Npz, NeedsNoNameForOneTensor) {
  const Directory directory;
  const Zip zip = {.members = {{.name = "q.npy", .contents = small_npy()}}, .comment = "a comment"};
  EXPECT_EQ(read(directory.file("t.npz", zip.finish())).shape, std::vector<std::int64_t>{3});
  EXPECT_NE(error_of(directory.file("t.npz", Zip{}.finish())).find("holds no tensor"), std::string::npos);
}

TEST(Npz, ListsTenNamesAtMost) {
  const Directory directory;
  Zip zip;
  for (int i = 0; i < 12; ++i) zip.members.push_back({.name = std::to_string(i) + ".npy", .contents = small_npy()});
  const std::string message = error_of(directory.file("t.npz", zip.finish()));
  EXPECT_NE(message.find("it holds 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"), std::string::npos) << message;
}

TEST(Npz, AnExactNameComesBeforeOneWithoutItsSuffix) {
  const Directory directory;
  const Zip zip = {
      .members = {{.name = "q.npy", .contents = small_npy()}, {.name = "q.npy.npy", .contents = matrix()}}};
  const std::string path = directory.file("t.npz", zip.finish());
  EXPECT_EQ(read(path + ":q").shape, std::vector<std::int64_t>{3});
  EXPECT_EQ(read(path + ":q.npy").shape, (std::vector<std::int64_t>{2, 2}));
}

TEST(Npz, InflatesMoreThanTheHeaderBufferHolds) {
  const Directory directory;
  const std::string elements(400'000, '\x2a');
  const Zip zip = {
      .members = {{.name = "q.npy", .contents = npy(npy_dict("<f4", "(100000,)"), elements), .deflate = true}}};
  EXPECT_EQ(elements_of(read(directory.file("t.npz", zip.finish()))), elements);
}

TEST(Npz, RefusesArchivesThatLie) {
  const Zip::Member stored = {.name = "q.npy", .contents = small_npy()};
  const Zip::Member deflated = {.name = "q.npy", .contents = small_npy(), .deflate = true};
  const std::string good = Zip{.members = {stored}}.finish();
  const auto with = [](Zip::Member member, const auto& change) {
    change(member);
    return Zip{.members = {member}}.finish();
  };
  std::string bad_deflate = Zip{.members = {deflated}}.finish();
  bad_deflate[30 + 5] = '\x07';  // block type 3, which doesn't exist
  std::string other_crc = good;
  other_crc[14] = static_cast<char>(other_crc[14] + 1);
  std::string two_disks = good;
  two_disks[two_disks.size() - 18] = 1;
  expect_refused(
      "bad.npz",
      {
          {good.substr(0, good.size() - 1), "no directory at its end"},
          {good + "x", "no directory at its end"},
          {"PK\x03\x04", "no directory at its end"},
          {two_disks, "spans several files"},
          {Zip{.members = {stored}, .count_error = 1}.finish(), "claims more members"},
          {Zip{.members = {stored}, .count_error = -1}.finish(), "longer than its members' entries"},
          {Zip{.members = {stored}, .zip64_end = true, .count_error = 1LL << 60}.finish(), "claims more members"},
          {Zip{.members = {stored}, .directory_offset_error = 1}.finish(), "doesn't lie where it says"},
          {Zip{.members = {stored}, .zip64_end = true, .directory_offset_error = -9}.finish(),
           "doesn't lie where it says"},
          {Zip{.members = {stored, stored}}.finish(), "holds the member 'q.npy' twice"},
          {Zip{.members = {stored, {.name = "k.npy", .contents = "", .offset_error = -20}}}.finish(),
           "doesn't lie where"},
          {with(stored, [](auto& m) { m.offset_error = 1 << 20; }), "doesn't lie where the directory says"},
          {with(stored, [](auto& m) { m.name_before_data = "p.npy"; }), "described differently"},
          {with(stored, [](auto& m) { m.flags = 1; }), "q: is encrypted"},
          {with(stored, [](auto& m) { m.method = 12; }), "compressed with zip method 12"},
          {with(stored, [](auto& m) { m.crc_error = 1; }), "q: the checksum doesn't match"},
          {with(deflated, [](auto& m) { m.crc_error = 1; }), "q: the checksum doesn't match"},
          {other_crc, "one size or checksum in the directory and another before its data"},
          {with(stored, [](auto& m) { m.size_error = 1; }), "two different sizes"},
          {with(stored, [](auto& m) { m.stored_size_error = 1; }), "reaches beyond the end"},
          {with(stored,
                [](auto& m) {
                  m.zip64 = true;
                  m.stored_size_error = -1000;
                }),
           "reaches beyond the end"},
          {with(deflated, [](auto& m) { m.stored_size_error = -1; }), "corrupt or"},
          {with(deflated, [](auto& m) { m.size_error = -1; }), "but the archive says that 11 follow"},
          {with(deflated, [](auto& m) { m.size_error = 1; }), "corrupt or end too soon"},
          {with(deflated,
                [](auto& m) {
                  m.zip64 = true;
                  m.size_error = 1LL << 50;
                }),
           "further than deflate can"},
          {bad_deflate, "corrupt or end too soon"},
          {with(stored, [](auto& m) { m.contents = "hello"; }), "q: is no .npy file"},
          {with(stored, [](auto& m) { m.contents += "x"; }),
           "q: the shape [3] of f32 takes 12 bytes, but 13 follow"},
          {with(deflated, [](auto& m) { m.contents += "x"; }), "but the archive says that 13 follow"},
          {with(stored, [](auto& m) { m.contents = npy(npy_dict("|O", "(3,)"), "pickle"); }),
           "pickled Python objects"},
      });
}

TEST(Npz, RefusesMembersThatOverlap) {
  // The second entry points into the first member's data, where a complete member is hidden.
  const std::string inner = Zip{.members = {{.name = "k.npy", .contents = small_npy()}}}.finish();
  const std::string hidden = inner.substr(0, 30 + 5 + small_npy().size());
  const Zip zip = {
      .members = {
          {.name = "q.npy", .contents = hidden},
          {.name = "k.npy", .contents = small_npy(), .offset_error = -static_cast<std::int64_t>(hidden.size())}}};
  expect_refused("bad.npz", {{zip.finish(), "its member 'q.npy' overlaps 'k.npy'"}}, ":k");
}

}  // namespace
}  // namespace attn::formats
