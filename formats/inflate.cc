// zlib counts in 32 bits; here are the loops around it.
#include "formats/inflate.h"

#include <zlib.h>

#include <algorithm>

namespace attn::formats {

struct Inflater::Stream {
  z_stream z{};
  Bytes input;
  std::size_t taken = 0;  // of the input, by zlib
  bool usable = false;
  bool ended = false;
};

Inflater::Inflater(const Bytes& deflated) : stream_(std::make_unique<Stream>()) {
  stream_->input = deflated;
  stream_->usable = inflateInit2(&stream_->z, -MAX_WBITS) == Z_OK;  // negative: no zlib header
}

Inflater::~Inflater() {
  if (stream_->usable) inflateEnd(&stream_->z);
}

bool Inflater::read(unsigned char* to, std::size_t count) {
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  Stream& stream = *stream_;
  std::size_t written = 0;
  while (written < count) {
    if (!stream.usable || stream.ended) return false;
    const std::size_t offered = std::min(stream.input.size - stream.taken, kPiece);
    const std::size_t room = std::min(count - written, kPiece);
    stream.z.next_in = const_cast<unsigned char*>(stream.input.data + stream.taken);
    stream.z.avail_in = static_cast<uInt>(offered);
    stream.z.next_out = to + written;
    stream.z.avail_out = static_cast<uInt>(room);
    const int result = inflate(&stream.z, Z_NO_FLUSH);
    stream.taken += offered - stream.z.avail_in;
    written += room - stream.z.avail_out;
    stream.ended = result == Z_STREAM_END;
    // Z_BUF_ERROR: no progress, since the input has run out.
    if (result != Z_OK && result != Z_STREAM_END) return false;
  }
  return true;
}

bool Inflater::finished() {
  unsigned char beyond = 0;
  if (read(&beyond, 1)) return false;
  return stream_->ended && stream_->taken == stream_->input.size;
}

}  // namespace attn::formats
