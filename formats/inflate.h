// Deflated data, taken out piece by piece.
#pragma once

#include <cstddef>
#include <memory>

#include "formats/bytes.h"

namespace attn::formats {

/// Deflate can't shrink anything further than about this (zlib's technical notes), so a claim beyond it is false.
inline constexpr std::size_t kMaxDeflateRatio = 1032;

/// Inflates a raw deflate stream, as zip members are, without ever holding more than the caller asks for.
class Inflater {
 public:
  explicit Inflater(const Bytes& deflated);
  ~Inflater();

  /// Writes the next `count` bytes to `to`. False where the stream ends sooner or is corrupt.
  bool read(unsigned char* to, std::size_t count);

  /// After the last read: whether the stream ends here, with no byte left on either side.
  bool finished();

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace attn::formats
