// A cache in a file:
//
//   "attn kv cache\n\0\0"  16 bytes
//   version, type, kv_heads, key_dim, value_dim, page_tokens, next id, sequences, pages
//   of each sequence: id, tokens, dropped from, dropped to, pages, and for each its number, or −1 where it was dropped
//   of each page: tokens (as many as any of its sequences has), then head by head its units of keys and of values
//   CRC-32 of all that, 4 bytes
//
// Numbers have 64 bits, lowest byte first; units are as src/units.h says.
#include <algorithm>
#include <cstring>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attn/kv_cache.h"
#include "src/cache/checked_file.h"
#include "src/cache/contents.h"
#include "src/cache/store_tokens.h"
#include "src/sentence.h"

namespace attn {
namespace {

constexpr char kMagic[16] = "attn kv cache\n";
constexpr std::int64_t kVersion = 1;
constexpr SequenceId kMostIds = SequenceId{1} << 62;  // so that counting on does not overflow

// A page that sequences hold, its number in the file, and how many of its tokens any of them has.
struct PageEntry {
  std::int64_t number = 0, tokens = 0;
};

// Pages in the order of their numbers.
struct PageList {
  std::vector<const Page*> pages;
  std::unordered_map<const Page*, PageEntry> entries;
};

PageList list_pages(const KvCache::Contents& contents) {
  PageList list;
  const std::int64_t page_tokens = contents.layout.page_tokens;
  for (const auto& [id, sequence] : contents.sequences) {
    for (std::size_t i = 0; i < sequence.pages.size(); ++i) {
      const Page* page = sequence.pages[i];
      if (!page) continue;
      const auto [entry, added] = list.entries.try_emplace(page);
      if (added) {
        entry->second.number = static_cast<std::int64_t>(list.pages.size());
        list.pages.push_back(page);
      }
      const std::int64_t here = std::min(page_tokens, sequence.tokens - static_cast<std::int64_t>(i) * page_tokens);
      entry->second.tokens = std::max(entry->second.tokens, here);
    }
  }
  return list;
}

void write_cache(const KvCache::Contents& contents, const PageList& list, CheckedWriter* file) {
  const KvCacheOptions& o = contents.options;
  file->write(kMagic, sizeof kMagic);
  for (const std::int64_t number :
       {kVersion, static_cast<std::int64_t>(o.type), o.kv_heads, o.key_dim, o.value_dim, o.page_tokens,
        contents.next_id, static_cast<std::int64_t>(contents.sequences.size()),
        static_cast<std::int64_t>(list.pages.size())}) {
    file->write_number(number);
  }
  for (const auto& [id, s] : contents.sequences) {
    for (const std::int64_t number :
         {id, s.tokens, s.dropped_from, s.dropped_to, static_cast<std::int64_t>(s.pages.size())}) {
      file->write_number(number);
    }
    for (const Page* page : s.pages) file->write_number(page ? list.entries.at(page).number : -1);
  }
  for (const Page* page : list.pages) {
    const std::int64_t tokens = list.entries.at(page).tokens;
    file->write_number(tokens);
    for_units(contents.layout, tokens, [&](std::int64_t head, std::int64_t offset, std::size_t bytes) {
      file->write(page->head(head) + offset, bytes);
    });
  }
}

struct Header {
  KvCacheOptions options;
  SequenceId next_id = 0;
  std::int64_t sequences = 0, pages = 0;
};

// A page has a token at least: its count, and a unit of keys and of values for each head.
std::int64_t least_page_bytes(const KvCacheOptions& o) {
  const UnitLayout unit{o.type, o.key_dim, o.value_dim};
  return static_cast<std::int64_t>(sizeof(std::int64_t)) + o.kv_heads * (unit.key_bytes() + unit.value_bytes());
}

Status read_header(CheckedReader* file, Header* header) {
  char magic[sizeof kMagic];
  file->read(magic, sizeof magic);
  if (!file->ok() || std::memcmp(magic, kMagic, sizeof magic) != 0) return file->refuse("is no cache");
  const std::int64_t version = file->read_number();
  if (version != kVersion) {
    return file->refuse("has version " + std::to_string(version) + ", and version " + std::to_string(kVersion) +
                        " is read here");
  }
  const std::int64_t type = file->read_number();
  if (type < 0 || type > static_cast<std::int64_t>(CacheType::q8))
    return file->refuse("has type " + std::to_string(type) + ", which is none");
  KvCacheOptions& o = header->options;
  o.type = static_cast<CacheType>(type);
  o.kv_heads = file->read_number();
  o.key_dim = file->read_number();
  o.value_dim = file->read_number();
  o.page_tokens = file->read_number();
  header->next_id = file->read_number();
  if (header->next_id < 0 || header->next_id > kMostIds) return file->refuse("has a next id that no cache has");
  if (const Status sizes = check_cache_options(o); !sizes.ok())
    return file->refuse("has sizes that no cache has: " + sizes.message());
  header->sequences = file->read_count(5 * sizeof(std::int64_t));
  header->pages = file->read_count(least_page_bytes(o));
  return file->ok() ? Status() : file->refuse("was cut short, or claims more than it holds");
}

bool is_dropped(const SequencePages& s, std::int64_t from, std::int64_t to) {
  return s.dropped_from <= from && std::min(to, s.tokens) <= s.dropped_to;
}

// One sequence; `taken` are the file's pages by number.
Status read_sequence(CheckedReader* file, const Header& header, const std::vector<Page*>& taken,
                     KvCache::Contents* contents) {
  const SequenceId id = file->read_number();
  SequencePages s;
  s.tokens = file->read_number();
  s.dropped_from = file->read_number();
  s.dropped_to = file->read_number();
  const std::int64_t pages = file->read_count(sizeof(std::int64_t)), page = header.options.page_tokens;
  const bool sound = file->ok() && id >= 0 && id < header.next_id && s.tokens >= 0 &&
                     pages == divide_up(s.tokens, page) && s.dropped_from >= 0 && s.dropped_from <= s.dropped_to &&
                     s.dropped_to <= s.tokens;
  if (!sound) return file->refuse("has a sequence that contradicts itself");
  for (std::int64_t i = 0; i < pages; ++i) {
    const std::int64_t number = file->read_number();
    if (number < -1 || number >= header.pages || (number == -1 && !is_dropped(s, i * page, (i + 1) * page)))
      return file->refuse("has a sequence with a page that is not there");
    s.pages.push_back(number < 0 ? nullptr : taken[static_cast<std::size_t>(number)]);
    if (number >= 0) PagePool::share(s.pages.back());
  }
  if (!contents->sequences.emplace(id, std::move(s)).second) return file->refuse("has a sequence twice");
  return {};
}

// Pages hold what their sequences need, and each has one.
Status read_pages(CheckedReader* file, const PageList& needed, const std::vector<Page*>& taken,
                  const PageLayout& layout) {
  for (Page* page : taken) {
    const auto entry = needed.entries.find(page);
    const std::int64_t tokens = file->read_number();
    if (entry == needed.entries.end() || entry->second.tokens != tokens)
      return file->refuse("has a page that does not fit its sequences");
    const std::int64_t units = divide_up(tokens, kUnitKeys);
    if (!file->expect(layout.kv_heads * units * (layout.unit.key_bytes() + layout.unit.value_bytes()))) break;
    for_units(layout, tokens, [&](std::int64_t head, std::int64_t offset, std::size_t bytes) {
      file->read(page->head(head) + offset, bytes);
    });
  }
  return {};
}

Status read_cache(CheckedReader* file, const Header& header, KvCache::Contents* contents) {
  ATTN_RETURN_IF_ERROR(contents->pool.reserve(header.pages));
  std::vector<Page*> taken;
  for (std::int64_t i = 0; i < header.pages; ++i) {
    taken.push_back(contents->pool.take());
    taken.back()->users = 0;  // counted as sequences turn up
  }
  for (std::int64_t i = 0; i < header.sequences; ++i)
    ATTN_RETURN_IF_ERROR(read_sequence(file, header, taken, contents));
  ATTN_RETURN_IF_ERROR(read_pages(file, list_pages(*contents), taken, contents->layout));
  contents->next_id = header.next_id;
  return file->finish();
}

}  // namespace

Status KvCache::save(const std::string& path) const {
  try {
    CheckedWriter file(path);
    ATTN_RETURN_IF_ERROR(file.open());
    write_cache(*contents_, list_pages(*contents_), &file);
    return file.finish();
  } catch (const std::bad_alloc&) {
    return error(path, ": memory for the list of pages could not be had");
  }
}

Status KvCache::load(const std::string& path, std::unique_ptr<KvCache>* cache,
                     std::optional<std::int64_t> most_bytes) {
  try {
    CheckedReader file(path);
    ATTN_RETURN_IF_ERROR(file.open());
    Header header;
    ATTN_RETURN_IF_ERROR(read_header(&file, &header));
    header.options.most_bytes = most_bytes;
    if (const Status sizes = check_cache_options(header.options); !sizes.ok())
      return error(path, ": ", sizes.message());
    auto contents = std::make_unique<Contents>(header.options);
    ATTN_RETURN_IF_ERROR(read_cache(&file, header, contents.get()));
    cache->reset(new KvCache(std::move(contents)));
  } catch (const std::bad_alloc&) {
    return error(path, ": memory for its cache could not be had");
  }
  return {};
}

}  // namespace attn
