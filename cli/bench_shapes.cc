#include "cli/bench_shapes.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

#include "attn/isa.h"
#include "cli/attention_flags.h"
#include "cli/verbs.h"

namespace attn::cli {
namespace {

using nlohmann::json;

void add_prefill(std::vector<BenchShape>* shapes) {
  for (const std::int64_t dim : {64, 128}) {
    for (const std::int64_t length : {512, 1024, 4096}) {
      for (const bool causal : {false, true})
        shapes->push_back({"prefill", DType::f32, 1, 8, 8, length, length, dim, causal});
    }
    shapes->push_back({"prefill", DType::f32, 1, 2, 2, 16384, 16384, dim, false});
  }
  shapes->push_back({"prefill, grouped", DType::f32, 1, 32, 8, 2048, 2048, 128, true});
  shapes->push_back({"prefill, ungrouped", DType::f32, 1, 32, 32, 2048, 2048, 128, true});
  shapes->push_back({"short batch", DType::f32, 64, 12, 12, 128, 128, 64, false});
  for (const DType dtype : {DType::bf16, DType::f16})
    shapes->push_back({"prefill", dtype, 1, 8, 8, 4096, 4096, 128, false});
  if (!bf16_products_available()) return;
  for (const bool causal : {false, true})
    shapes->push_back({"prefill", DType::bf16, 1, 8, 8, 4096, 4096, 128, causal, /*bf16_products=*/true});
}

void add_decode(std::vector<BenchShape>* shapes) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    shapes->push_back({"decode", dtype, 1, 32, 8, 1, 4096, 128, false});
    shapes->push_back({"decode", dtype, 1, 32, 8, 1, 32768, 128, false});
    shapes->push_back({"decode", dtype, 8, 32, 8, 1, 4096, 128, false});
  }
  for (const CacheType type : {CacheType::f32, CacheType::bf16, CacheType::f16, CacheType::q8}) {
    for (const auto& [batch, keys] : {std::pair{1, 4096}, {1, 32768}, {8, 4096}})
      shapes->push_back({"decode, cache", DType::f32, batch, 32, 8, 1, keys, 128, false, false, {}, type});
  }
}

void add_small_calls(std::vector<BenchShape>* shapes) {
  shapes->push_back({"small call", DType::f32, 1, 1, 1, 3, 3, 2, false});
  shapes->push_back({"small call", DType::f32, 1, 1, 1, 16, 16, 64, false});
}

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Failure{2, where + ": " + what};
}

DType dtype_named(const std::string& where, const json& value) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    if (value == name_of(dtype)) return dtype;
  }
  refuse(where, "dtype " + value.dump() + " is none; give \"f32\", \"bf16\", \"f16\" or \"f64\"");
}

std::string option_named(const std::string& where, const json& value) {
  for (const char* name : {"mask", "bias", "softcap", "alibi", "window"}) {
    if (value == name) return name;
  }
  refuse(where, "option " + value.dump() +
                    " is none; give \"mask\", \"bias\", \"softcap\", \"alibi\" or \"window\", or leave it out");
}

CacheType cache_named(const std::string& where, const json& value) {
  if (value.is_string()) {
    if (const auto type = cache_type_named(value.get<std::string>())) return *type;
  }
  refuse(where, "cache " + value.dump() + " is none; give \"f32\", \"bf16\", \"f16\" or \"q8\", or leave it out");
}

void set_sizes(const std::string& where, const json& value, BenchShape* shape) {
  const std::array<std::int64_t*, 6> sizes{&shape->batch,   &shape->heads, &shape->kv_heads,
                                           &shape->queries, &shape->keys,  &shape->head_dim};
  if (!value.is_array() || value.size() != sizes.size())
    refuse(where, "shape " + value.dump() + "; a list of six is needed: [B, H, Hkv, N, M, D]");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const bool whole = value[i].is_number_unsigned() && value[i] >= 1 && value[i] <= (std::int64_t{1} << 31);
    if (!whole) refuse(where, "shape " + value.dump() + "; sizes are whole numbers from 1 to 2147483648");
    *sizes[i] = value[i];
  }
  if (shape->heads % shape->kv_heads != 0)
    refuse(where, "shape " + value.dump() + "; query heads must be a multiple of key/value heads");
}

BenchShape shape_of(const std::string& where, const json& entry) {
  if (!entry.is_object()) refuse(where, "is no object; give {\"name\", \"dtype\", \"shape\", \"causal\"}");
  BenchShape shape;
  shape.name = "shape";
  for (const auto& [key, value] : entry.items()) {
    if (key == "name" && value.is_string()) {
      shape.name = value;
    } else if (key == "dtype") {
      shape.dtype = dtype_named(where, value);
    } else if (key == "shape") {
      set_sizes(where, value, &shape);
    } else if (key == "causal" && value.is_boolean()) {
      shape.causal = value;
    } else if (key == "compute" && (value == "bf16" || value == "f32")) {
      shape.bf16_products = value == "bf16";
    } else if (key == "option") {
      shape.option = option_named(where, value);
    } else if (key == "cache") {
      shape.cache = cache_named(where, value);
    } else {
      refuse(where,
             std::string("key \"").append(key) + "\": " + value.dump() +
                 " is not known; the keys are name (a text), dtype, shape, causal (true or false), compute "
                 "(f32 or bf16), cache (f32, bf16, f16 or q8) and option (mask, bias, softcap, alibi or window)");
    }
  }
  if (shape.option == "alibi" && shape.dtype == DType::f64)
    refuse(where, "option \"alibi\" with dtype \"f64\"; its slopes are f32 here: give f32, bf16 or f16");
  if (shape.cache && shape.dtype == DType::f64)
    refuse(where, "cache with dtype \"f64\"; a cache is computed in f32: give f32, bf16 or f16");
  if (!entry.contains("shape")) refuse(where, "has no \"shape\"; give [B, H, Hkv, N, M, D]");
  if (shape.bf16_products && (shape.dtype == DType::f64 || !bf16_products_available())) {
    refuse(where, "compute \"bf16\" needs 16-bit products (AMX or AVX-512 BF16), which " +
                      std::string(name_of(current_isa())) +
                      " here has not, or a dtype other than f64; leave it out");
  }
  return shape;
}

double tensor_bytes(const BenchShape& s) {
  const auto size = static_cast<double>(size_of(s.dtype));
  const double queries =
      static_cast<double>(s.batch) * static_cast<double>(s.heads) * static_cast<double>(s.queries);
  const double table = s.option == "mask" ? 1 : s.option == "bias" ? 4 : 0;  // bytes for each query and key
  return s.key_value_bytes() + 2 * queries * static_cast<double>(s.head_dim) * size +
         table * static_cast<double>(s.queries) * static_cast<double>(s.keys);
}

// Half of the machine's memory, so that nothing is swapped or killed.
void check_memory(const std::string& where, const BenchShape& shape) {
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (tensor_bytes(shape) > memory / 2) {
    refuse(where, "its tensors take " + std::to_string(static_cast<std::int64_t>(tensor_bytes(shape) / 1e9)) +
                      " GB, more than half of this machine's memory; give smaller sizes");
  }
}

}  // namespace

DType BenchShape::compute() const {
  if (bf16_products) return DType::bf16;
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

double BenchShape::key_value_bytes() const {
  double bytes = static_cast<double>(size_of(dtype));
  if (cache == CacheType::f32) bytes = 4;
  if (cache == CacheType::f16 || cache == CacheType::bf16) bytes = 2;
  if (cache == CacheType::q8) bytes = 1 + 2.0 / kScaleGroup;
  return 2.0 * static_cast<double>(batch) * static_cast<double>(kv_heads) * static_cast<double>(keys) *
         static_cast<double>(head_dim) * bytes;
}

namespace {

// Query i sits at M − N + i and sees kBenchWindow keys to its left, and those to its right if nothing hides them.
double window_flops(const BenchShape& s) {
  double pairs = 0;
  for (std::int64_t i = 0; i < s.queries; ++i) {
    const std::int64_t position = s.keys - s.queries + i;
    const std::int64_t end = s.causal ? position + 1 : s.keys;
    pairs +=
        static_cast<double>(std::max<std::int64_t>(0, end - std::max<std::int64_t>(0, position - kBenchWindow)));
  }
  return 4.0 * static_cast<double>(s.batch) * static_cast<double>(s.heads) * pairs *
         static_cast<double>(s.head_dim);
}

}  // namespace

double BenchShape::flops() const {
  const auto n = static_cast<double>(queries), m = static_cast<double>(keys);
  if (option == "window") return window_flops(*this);
  // Causal, bottom right: query i sees keys 0 … M − N + i.
  const double seen = std::min(n, m);
  const double pairs = causal ? seen * (m - seen) + seen * (seen + 1) / 2 : n * m;
  return 4.0 * static_cast<double>(batch) * static_cast<double>(heads) * pairs * static_cast<double>(head_dim);
}

std::vector<BenchShape> standard_shapes() {
  std::vector<BenchShape> shapes;
  add_prefill(&shapes);
  add_decode(&shapes);
  add_small_calls(&shapes);
  return shapes;
}

std::vector<BenchShape> read_shapes(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) refuse("--shapes", file + " can't be read; check the path");
  const json list = json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array() || list.empty()) {
    refuse("--shapes", file + R"( is no JSON list of shapes; give [{"name": "mine", "dtype": "f32", )" +
                           R"("shape": [1, 8, 8, 1024, 1024, 64], "causal": false}])");
  }
  std::vector<BenchShape> shapes;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where = "--shapes: " + file + ": entry " + std::to_string(i);
    shapes.push_back(shape_of(where, list[i]));
    check_memory(where, shapes.back());
  }
  return shapes;
}

}  // namespace attn::cli
