// Tensors of .safetensors files: eight bytes of header length, the header, and data without gap or overlap.
#include <algorithm>

#include "formats/containers.h"
#include "formats/read.h"
#include "formats/safetensors_header.h"

namespace attn::formats {
namespace {

constexpr std::size_t kLengthBytes = 8;

Status refuse(const std::string& source, const std::string& fault) {
  return Status::error(source + ": " + fault + "; copy the file again or save it with a safetensors library");
}

Status read_header(const std::string& path, const Bytes& file, std::vector<SafetensorsEntry>* entries,
                   Bytes* data) {
  constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
  if (file.size < kLengthBytes) return refuse(path, "ends within the .safetensors header's length");
  const auto length = load<std::uint64_t>(file.data);
  if (length > kMaxHeaderBytes || length > file.size - kLengthBytes) {
    return refuse(path, "claims a .safetensors header of " + std::to_string(length) + " bytes, but " +
                            std::to_string(file.size - kLengthBytes) +
                            " follow and 100,000,000 are the most allowed");
  }
  const std::string_view text = file.text().substr(kLengthBytes, length);
  if (!text.starts_with('{')) return refuse(path, "has a .safetensors header that doesn't start with '{'");
  ATTN_RETURN_IF_ERROR(parse_safetensors_header(path, text, entries));
  *data = file.slice(kLengthBytes + length, file.size - kLengthBytes - length);
  return {};
}

// In the order of their offsets, every tensor starts where the one before ends, and the last ends with the file.
Status check_offsets(const std::string& path, const std::vector<SafetensorsEntry>& entries,
                     std::uint64_t data_bytes) {
  std::vector<const SafetensorsEntry*> in_order;
  in_order.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) in_order.push_back(&entry);
  std::sort(in_order.begin(), in_order.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  std::uint64_t position = 0;
  for (const SafetensorsEntry* entry : in_order) {
    const std::string range =
        in_quotes(entry->name) + " at [" + std::to_string(entry->begin) + ", " + std::to_string(entry->end) + "]";
    if (entry->end < entry->begin) return refuse(path, "has the tensor " + range + ", which ends before it begins");
    if (entry->end > data_bytes) {
      return refuse(path,
                    "has the tensor " + range + ", beyond its " + std::to_string(data_bytes) + " bytes of data");
    }
    if (entry->begin != position) {
      return refuse(path, "has the tensor " + range + ", which " +
                              (entry->begin < position ? "overlaps another" : "leaves a hole before it") +
                              ": it must begin at " + std::to_string(position));
    }
    position = entry->end;
  }
  if (position == data_bytes) return {};
  const std::uint64_t rest = data_bytes - position;
  return refuse(path, "has " + std::to_string(rest) + (rest == 1 ? " byte" : " bytes") + " after its last tensor");
}

Status check_shape(const std::string& path, const SafetensorsEntry& entry) {
  const auto type = element_type_of_safetensors_name(entry.dtype);
  if (!type) return {};  // refused where that tensor is asked for, so that its neighbours can be read
  const auto bytes = byte_count(entry.shape, size_of(*type));
  if (bytes && static_cast<std::uint64_t>(*bytes) == entry.end - entry.begin) return {};
  return refuse(path, "the tensor " + in_quotes(entry.name) + " of shape " + shape_text(entry.shape) +
                          " and dtype " + entry.dtype + " takes " +
                          (bytes ? std::to_string(*bytes) : "more than 2^63 - 1") +
                          " bytes, but its data_offsets span " + std::to_string(entry.end - entry.begin));
}

// The header, held against the file.
Status read_entries(const std::string& path, const Bytes& file, std::vector<SafetensorsEntry>* entries,
                    Bytes* data) {
  ATTN_RETURN_IF_ERROR(read_header(path, file, entries, data));
  ATTN_RETURN_IF_ERROR(check_offsets(path, *entries, data->size));
  for (const SafetensorsEntry& entry : *entries) ATTN_RETURN_IF_ERROR(check_shape(path, entry));
  return {};
}

Status tensor_of(const std::string& path, const Bytes& data, SafetensorsEntry entry, Tensor* tensor) {
  std::string source = path + ":" + printable(entry.name);
  const auto type = element_type_of_safetensors_name(entry.dtype);
  if (!type) {
    return Status::error(source + ": dtype " + in_quotes(entry.dtype) +
                         " is not one that is read; convert it to F32, F64, F16 or BF16, or a mask to BOOL");
  }
  auto strides = row_major_strides(entry.shape);
  const Bytes elements = data.slice(entry.begin, entry.end - entry.begin);
  *tensor = {std::move(source), *type, std::move(entry.shape), std::move(strides), elements.data, elements.owner};
  return {};
}

}  // namespace

Status read_safetensors(const std::string& path, const Bytes& file, const std::optional<std::string>& name,
                        Tensor* tensor) {
  std::vector<SafetensorsEntry> entries;
  Bytes data;
  ATTN_RETURN_IF_ERROR(read_entries(path, file, &entries, &data));
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) names.push_back(entry.name);
  std::size_t index = 0;
  ATTN_RETURN_IF_ERROR(choose_name(path, names, name, &index));
  return tensor_of(path, data, std::move(entries[index]), tensor);
}

Status read_safetensors(const std::string& path, std::map<std::string, Tensor, std::less<>>* tensors) {
  Bytes file, data;
  std::vector<SafetensorsEntry> entries;
  ATTN_RETURN_IF_ERROR(map_file(path, &file));
  ATTN_RETURN_IF_ERROR(read_entries(path, file, &entries, &data));
  std::map<std::string, Tensor, std::less<>> read;
  for (SafetensorsEntry& entry : entries) {
    const std::string name = entry.name;
    ATTN_RETURN_IF_ERROR(tensor_of(path, data, std::move(entry), &read[name]));
  }
  *tensors = std::move(read);
  return {};
}

}  // namespace attn::formats
