// Zip's directory, read from the end of the file as APPNOTE.TXT (PKWARE, 6.3) lays it out.
#include "formats/zip.h"

#include <algorithm>
#include <optional>
#include <set>

namespace attn::formats {
namespace {

constexpr std::uint32_t kMemberSignature = 0x04034b50;
constexpr std::uint32_t kEntrySignature = 0x02014b50;
constexpr std::uint32_t kEndSignature = 0x06054b50;
constexpr std::uint32_t kEnd64Signature = 0x06064b50;
constexpr std::uint32_t kLocator64Signature = 0x07064b50;
constexpr std::size_t kMemberBytes = 30;
constexpr std::size_t kEntryBytes = 46;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::size_t kLocator64Bytes = 20;
constexpr std::uint32_t kIn64 = 0xFFFFFFFF;  // "see the zip64 record"
constexpr std::uint16_t kSizesFollow = 8;    // flag: the member's own header doesn't know its size yet

struct Directory {
  std::uint64_t count = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
};

class DirectoryReader {
 public:
  DirectoryReader(const std::string& source, const Bytes& file) : source_(source), file_(file) {}

  Status read(std::vector<ZipMember>* members) {
    Directory directory;
    ATTN_RETURN_IF_ERROR(find_directory(&directory));
    // The count is a claim; entries take room, so this bounds what is stored for them.
    if (directory.count > directory.size / kEntryBytes)
      return corrupt("its directory claims more members than it has room for");
    std::uint64_t position = directory.offset;
    const std::uint64_t end = directory.offset + directory.size;
    std::set<std::string> names;
    for (std::uint64_t i = 0; i < directory.count; ++i) {
      ZipMember member;
      ATTN_RETURN_IF_ERROR(read_entry(&position, end, &member));
      ATTN_RETURN_IF_ERROR(read_member_header(directory.offset, &member));
      if (!names.insert(member.name).second)
        return corrupt("it holds the member " + in_quotes(member.name) + " twice");
      members->push_back(std::move(member));
    }
    if (position != end) return corrupt("its directory is longer than its members' entries");
    return check_overlap(*members);
  }

 private:
  // The end record is the last thing in the file, but for a comment whose length it knows.
  Status find_directory(Directory* directory) {
    constexpr std::size_t kLongestComment = 0xFFFF;
    std::size_t comment = 0;
    for (;; ++comment) {
      if (comment > kLongestComment || kEndBytes + comment > file_.size) {
        return corrupt("it has no directory at its end, so it was cut short or added to");
      }
      const unsigned char* end = file_.data + file_.size - kEndBytes - comment;
      if (load<std::uint32_t>(end) == kEndSignature && load<std::uint16_t>(end + 20) == comment) break;
    }
    const std::size_t end_offset = file_.size - kEndBytes - comment;
    const unsigned char* end = file_.data + end_offset;
    const auto count = load<std::uint16_t>(end + 10);
    *directory = {count, load<std::uint32_t>(end + 12), load<std::uint32_t>(end + 16)};
    const bool one_disk = load<std::uint32_t>(end + 4) == 0 && load<std::uint16_t>(end + 8) == count;
    std::size_t directory_end = end_offset;
    if (end_offset >= kLocator64Bytes &&
        load<std::uint32_t>(file_.data + end_offset - kLocator64Bytes) == kLocator64Signature) {
      ATTN_RETURN_IF_ERROR(read_end64(end_offset - kLocator64Bytes, directory, &directory_end));
    } else if (!one_disk) {
      return corrupt("it is one part of an archive that spans several files");
    }
    if (directory->offset > directory_end || directory->size != directory_end - directory->offset) {
      return corrupt("its directory doesn't lie where it says, so it was cut short or added to");
    }
    return {};
  }

  Status read_end64(std::size_t locator_offset, Directory* directory, std::size_t* directory_end) {
    const auto offset = load<std::uint64_t>(file_.data + locator_offset + 8);
    if (offset > locator_offset || locator_offset - offset < kEnd64Bytes ||
        load<std::uint32_t>(file_.data + offset) != kEnd64Signature ||
        load<std::uint64_t>(file_.data + offset + 4) != locator_offset - offset - 12) {
      return corrupt("its zip64 end record doesn't lie where it says");
    }
    const unsigned char* end = file_.data + offset;
    *directory = {load<std::uint64_t>(end + 32), load<std::uint64_t>(end + 40), load<std::uint64_t>(end + 48)};
    if (load<std::uint64_t>(end + 16) != 0 || load<std::uint64_t>(end + 24) != directory->count) {
      return corrupt("it is one part of an archive that spans several files");
    }
    *directory_end = offset;
    return {};
  }

  // One entry of the central directory, at *position, which moves past it.
  Status read_entry(std::uint64_t* position, std::uint64_t end, ZipMember* member) {
    const unsigned char* entry = file_.data + *position;
    if (end - *position < kEntryBytes || load<std::uint32_t>(entry) != kEntrySignature) {
      return corrupt("its directory has something else where a member's entry should be");
    }
    const std::size_t name = load<std::uint16_t>(entry + 28);
    const std::size_t extra = load<std::uint16_t>(entry + 30);
    const std::size_t comment = load<std::uint16_t>(entry + 32);
    if (end - *position - kEntryBytes < name + extra + comment)
      return corrupt("its directory ends within an entry");
    member->name = file_.text().substr(*position + kEntryBytes, name);
    member->flags = load<std::uint16_t>(entry + 8);
    member->method = load<std::uint16_t>(entry + 10);
    member->crc = load<std::uint32_t>(entry + 16);
    member->stored_size = load<std::uint32_t>(entry + 20);
    member->size = load<std::uint32_t>(entry + 24);
    member->header_offset = load<std::uint32_t>(entry + 42);
    const Bytes fields = file_.slice(*position + kEntryBytes + name, extra);
    *position += kEntryBytes + name + extra + comment;
    return read_extra64(fields, member);
  }

  // Of the three numbers, the zip64 field holds those that didn't fit, in this order.
  Status read_extra64(const Bytes& fields, ZipMember* member) {
    std::size_t position = 0;
    while (fields.size - position >= 4) {
      const auto id = load<std::uint16_t>(fields.data + position);
      std::size_t left = load<std::uint16_t>(fields.data + position + 2);
      position += 4;
      if (left > fields.size - position) break;
      const unsigned char* next = fields.data + position;
      position += left;
      if (id != 1) continue;
      for (std::uint64_t* number : {&member->size, &member->stored_size, &member->header_offset}) {
        if (*number != kIn64) continue;
        if (left < 8) return corrupt(member_text(*member) + " lacks a size in its zip64 field");
        *number = load<std::uint64_t>(next);
        next += 8;
        left -= 8;
      }
      return {};
    }
    return {};
  }

  // The header just before a member's data repeats its entry; a reader that trusted only one could be fooled.
  Status read_member_header(std::uint64_t directory_offset, ZipMember* member) {
    const std::uint64_t start = member->header_offset;
    if (start > directory_offset || directory_offset - start < kMemberBytes ||
        load<std::uint32_t>(file_.data + start) != kMemberSignature) {
      return corrupt(member_text(*member) + " doesn't lie where the directory says");
    }
    const unsigned char* header = file_.data + start;
    const std::uint64_t room = directory_offset - start - kMemberBytes;
    const std::uint64_t name = load<std::uint16_t>(header + 26);
    const std::uint64_t extra = load<std::uint16_t>(header + 28);
    if (room < name + extra || room - name - extra < member->stored_size) {
      return corrupt(member_text(*member) + " reaches beyond the end of the members' part");
    }
    if (file_.text().substr(start + kMemberBytes, name) != member->name ||
        load<std::uint16_t>(header + 6) != member->flags || load<std::uint16_t>(header + 8) != member->method) {
      return corrupt(member_text(*member) + " is described differently in the directory and before its data");
    }
    const auto stored_size = load<std::uint32_t>(header + 18);
    if ((member->flags & kSizesFollow) == 0 && (load<std::uint32_t>(header + 14) != member->crc ||
                                                (stored_size != kIn64 && stored_size != member->stored_size))) {
      return corrupt(member_text(*member) +
                     " has one size or checksum in the directory and another before its data");
    }
    member->data_offset = start + kMemberBytes + name + extra;
    return {};
  }

  Status check_overlap(const std::vector<ZipMember>& members) {
    std::vector<const ZipMember*> by_offset;
    by_offset.reserve(members.size());
    for (const ZipMember& member : members) by_offset.push_back(&member);
    std::sort(by_offset.begin(), by_offset.end(),
              [](const ZipMember* a, const ZipMember* b) { return a->header_offset < b->header_offset; });
    for (std::size_t i = 1; i < by_offset.size(); ++i) {
      if (by_offset[i - 1]->data_offset + by_offset[i - 1]->stored_size > by_offset[i]->header_offset) {
        return corrupt(member_text(*by_offset[i - 1]) + " overlaps " + in_quotes(by_offset[i]->name));
      }
    }
    return {};
  }

  static std::string member_text(const ZipMember& member) { return "its member " + in_quotes(member.name); }

  Status corrupt(const std::string& fault) const {
    return Status::error(source_ + ": is no valid zip archive: " + fault + "; save it again with numpy.savez");
  }

  const std::string& source_;
  const Bytes& file_;
};

}  // namespace

Status read_zip_directory(const std::string& source, const Bytes& file, std::vector<ZipMember>* members) {
  return DirectoryReader(source, file).read(members);
}

}  // namespace attn::formats
