// Files that appear under their name only once they are whole.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "formats/bytes.h"
#include "formats/layout.h"
#include "formats/write.h"

namespace attn::formats {
namespace {

Status refuse(const std::string& path, const std::string& what, int error_number) {
  return Status::error(path + ": " + what + ": " + system_message(error_number));
}

// Disk space for all of it, so that writing to the mapping can't fail later. Where the file system can't reserve,
// the file is only given its length.
int reserve(int descriptor, std::size_t size) {
#ifdef __linux__
  if (fallocate(descriptor, 0, 0, static_cast<off_t>(size)) == 0) return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return errno;
#endif
  return ftruncate(descriptor, static_cast<off_t>(size)) == 0 ? 0 : errno;
}

Status write_to_standard_output(const unsigned char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t written = write(STDOUT_FILENO, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return refuse("-", "standard output can't be written", errno);
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return {};
}

}  // namespace

struct OutputFile::State {
  std::string path;       // as the caller gave it: what errors say
  std::string target;     // where commit puts it, links resolved; empty: standard output
  std::string temporary;  // what exists until then
  Layout layout;
  unsigned char* bytes = nullptr;
  std::size_t size = 0;

  ~State() {
    unmap();
    if (!temporary.empty()) unlink(temporary.c_str());
  }

  void unmap() {
    if (bytes != nullptr) munmap(bytes, size);
    bytes = nullptr;
  }

  // Follows links, since renaming onto one would replace the link and not what it points to.
  Status resolve_target() {
    struct stat facts {};
    if (stat(path.c_str(), &facts) != 0) {
      target = path;
      return {};
    }
    if (!S_ISREG(facts.st_mode)) {
      return Status::error(path +
                           ": is a directory or a device, not a file that can be replaced; give another path");
    }
    std::error_code error;
    target = std::filesystem::canonical(path, error).string();
    return error ? refuse(path, "can't be resolved", error.value()) : Status();
  }

  // Made beside the target: a rename can't cross file systems. The name is short, whatever the target's is.
  Status open_temporary(int* descriptor) {
    static std::atomic<unsigned> counter{0};
    const auto directory = std::filesystem::path(target).parent_path();
    do {
      const std::string name = ".attn-" + std::to_string(getpid()) + "-" + std::to_string(counter++) + ".tmp";
      temporary = (directory / name).string();
      *descriptor = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (*descriptor < 0 && errno == EEXIST);
    if (*descriptor >= 0) return {};
    const int error_number = errno;
    temporary.clear();
    if (error_number == ENOENT && !directory.empty()) {
      return Status::error(path + ": there is no directory " + directory.string() +
                           "; make it first, or write elsewhere");
    }
    return refuse(path, "no file can be made in its directory", error_number);
  }

  // A file that is replaced hands its permissions on.
  Status fit_temporary(int descriptor) {
    struct stat facts {};
    if (stat(target.c_str(), &facts) == 0 && fchmod(descriptor, facts.st_mode & 0777) != 0) {
      return refuse(path, "its permissions can't be kept", errno);
    }
    if (const int error_number = reserve(descriptor, size); error_number != 0) {
      return refuse(path, "there is no room for its " + std::to_string(size) + " bytes", error_number);
    }
    return {};
  }

  Status map(int descriptor) {
    const int flags = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* const start = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, descriptor, 0);
    if (start == MAP_FAILED) return refuse(path, "its " + std::to_string(size) + " bytes can't be mapped", errno);
    bytes = static_cast<unsigned char*>(start);
    std::memcpy(bytes, layout.before.data(), layout.before.size());
    std::memcpy(bytes + size - layout.after.size(), layout.after.data(), layout.after.size());
    return {};
  }

  Status begin() {
    if (path == "-") return map(-1);
    ATTN_RETURN_IF_ERROR(resolve_target());
    int descriptor = -1;
    ATTN_RETURN_IF_ERROR(open_temporary(&descriptor));
    Status status = fit_temporary(descriptor);
    if (status.ok()) status = map(descriptor);
    close(descriptor);
    return status;
  }

  Status finish() {
    if (layout.checksum) seal_npz(layout, bytes);
    if (target.empty()) return write_to_standard_output(bytes, size);
    unmap();
    if (rename(temporary.c_str(), target.c_str()) != 0) return refuse(path, "can't be given its name", errno);
    temporary.clear();
    return {};
  }
};

OutputFile::OutputFile() = default;
OutputFile::OutputFile(OutputFile&& other) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&& other) noexcept = default;
OutputFile::~OutputFile() = default;

Status OutputFile::create(const std::string& path, DType dtype, std::span<const std::int64_t> shape,
                          OutputFile* file, std::string_view name) {
  auto state = std::make_unique<State>();
  state->path = path;
  ATTN_RETURN_IF_ERROR(lay_out(path, dtype, shape, name, &state->layout));
  state->size = state->layout.before.size() + state->layout.data_bytes + state->layout.after.size();
  ATTN_RETURN_IF_ERROR(state->begin());
  file->view_ = OutputView(state->bytes + state->layout.before.size(), dtype, shape);
  file->state_ = std::move(state);
  return {};
}

Status OutputFile::commit() {
  if (!state_) return Status::error("an output file is committed once, after create()");
  const auto state = std::move(state_);
  view_ = {};
  return state->finish();
}

}  // namespace attn::formats
