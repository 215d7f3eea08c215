#include "diagnose/probe_files.h"

#include "diagnose/probe.h"

namespace attn::diagnose {
namespace {

constexpr const char* kReadme = R"text(# A probe for attention

Small inputs, chosen so that no two known mistakes look alike. Let your code answer as many cases as it can, each into
`CASE/out.npy`, then

    attn probe --judge .

names the mistakes. Cases that your code does not know may be left out: what is answered is judged.

Every folder holds the tensors of a case as `.npy`, f32 (masks are bool); `probe.safetensors` holds all of them as `CASE.TENSOR`.
`cases.json` says the same as this table, for programs. Shapes are [B, H, N, D]; the scale is 1/sqrt(D) unless given; a row
that sees nothing is 0.

A harness calls your code on every case and writes what it gives:

    python3 harness_numpy.py my_module     # my_module.py defines attention(q, k, v, **arguments), on NumPy arrays
    python3 harness_torch.py my_module     # the same on PyTorch tensors
    g++ -std=c++17 harness.cc my_attention.cc -o harness && ./harness      # my_attention.cc defines answer(), see there

| case | what it asks for | arguments |
|---|---|---|
)text";

constexpr const char* kPython = R"text(#!/usr/bin/env python3
"""Runs your attention on the cases of a probe and writes what it gives.

    python3 @FILE@ my_module

my_module defines any of
    attention(q, k, v, *, causal=False, align=None, mask=None, bias=None, scale=None, softcap=None, window_left=None,
              lengths=None, alibi=False, sinks=None)
    rope_attention(q, k, v, *, query_positions, rope_base, causal=False, align=None)   rotates q and k, then attends
    projected_attention(x, w, *, heads, causal=False)     x·w has the columns q, k, v; gives [1, heads, N, D]
    merge(outs, lses)                                     outs [2, H, N, D], natural lses [2, H, N]; gives [1, H, N, D]
An argument is passed only where a case has it; a case whose arguments your function does not take is left out.
"""
import importlib
import inspect
import json
import pathlib
import sys

import numpy as np
@IMPORT@

HERE = pathlib.Path(__file__).resolve().parent
FUNCTIONS = {"attention": "attention", "strided": "attention", "rope": "rope_attention",
             "projection": "projected_attention", "merge": "merge"}


def takes(function, names):
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return []
    known = {p.name for p in parameters}
    return [name for name in names if name not in known]


def main():
    sys.path.insert(0, str(pathlib.Path.cwd()))
    module = importlib.import_module(sys.argv[1] if len(sys.argv) > 1 else "my_attention")
    cases = json.loads((HERE / "cases.json").read_text())
    for case in cases:  # answers of an earlier run would be judged as this one's
        (HERE / case["name"] / "out.npy").unlink(missing_ok=True)
    for case in cases:
        tensors = {name: @LOAD@(np.load(HERE / case["name"] / f"{name}.npy")) for name in case["tensors"]}
        if case["kind"] == "strided":  # views, not copies
            tensors = {name[0]: @TRANSPOSE@ for name, t in tensors.items()}
        function = getattr(module, FUNCTIONS[case["kind"]], None)
        if function is None:
            print(f"{case['name']}: left out, there is no {FUNCTIONS[case['kind']]}()")
            continue
        first = [tensors.pop(name) for name in ("q", "k", "v", "x", "w", "outs", "lses") if name in tensors]
        arguments = {**case["arguments"], **tensors}
        unknown = takes(function, arguments)
        if unknown:
            print(f"{case['name']}: left out, {function.__name__}() takes no {', '.join(unknown)}")
            continue
        try:
            out = @STORE@
        except NotImplementedError as error:
            print(f"{case['name']}: left out, {error}")
            continue
        np.save(HERE / case["name"] / "out.npy", np.asarray(out, dtype=np.float32))
        print(f"{case['name']}: answered")


if __name__ == "__main__":
    main()
)text";

constexpr const char* kCpp = R"text(// Runs your attention on the cases of a probe and writes what it gives.
//   g++ -std=c++17 harness.cc my_attention.cc -o harness && ./harness       (in the probe's folder)
// my_attention.cc includes nothing but the standard library, repeats the three declarations between the lines, and defines
// answer(). It returns false where it does not know a case, which is then left out.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

// ----------------------------------------------------------------------------------------------------
struct Tensor {
  std::vector<std::int64_t> shape;  // row-major; of "strided" cases [B, N, H, D], to be read as [B, H, N, D]
  std::vector<float> numbers;       // masks: 0 and 1
};
struct Case {
  std::string name, kind;                       // kind: attention, strided, rope, projection, merge
  std::map<std::string, Tensor> tensors;        // q, k, v and what the case has beside
  std::map<std::string, std::string> arguments; // as JSON: causal is "true", scale "0.4", lengths "[8, 3, 5]"
  std::vector<std::int64_t> out_shape;
};
bool answer(const Case& asked, std::vector<float>* out);  // out: row-major, of out_shape
// ----------------------------------------------------------------------------------------------------

static Tensor read(const std::string& path, std::vector<std::int64_t> shape) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  Tensor tensor{std::move(shape), {}};
  std::size_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= static_cast<std::size_t>(size);
  if (bytes.size() < 10) {
    std::fprintf(stderr, "%s: can't be read\n", path.c_str());
    return tensor;
  }
  // An .npy file: its elements are what its end holds.
  const bool truths = bytes.find("'|b1'") != std::string::npos;
  const char* from = bytes.data() + bytes.size() - count * (truths ? 1 : 4);
  for (std::size_t n = 0; n < count; ++n) {
    float number = 0;
    if (truths) {
      number = from[n] != 0;
    } else {
      std::char_traits<char>::copy(reinterpret_cast<char*>(&number), from + 4 * n, 4);
    }
    tensor.numbers.push_back(number);
  }
  return tensor;
}

static void write(const std::string& path, const std::vector<std::int64_t>& shape, const std::vector<float>& numbers) {
  std::string sizes;
  for (const std::int64_t size : shape) sizes += std::to_string(size) + ", ";
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + sizes + "), }";
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file << "\x93NUMPY\x01" << '\0' << static_cast<char>(header.size() & 255) << static_cast<char>(header.size() >> 8) << header;
  file.write(reinterpret_cast<const char*>(numbers.data()), static_cast<std::streamsize>(numbers.size() * 4));
}

static void run(Case asked) {
  std::vector<float> out;
  std::remove((asked.name + "/out.npy").c_str());  // an earlier run's would be judged as this one's
  if (!answer(asked, &out)) {
    std::printf("%s: left out\n", asked.name.c_str());
    return;
  }
  write(asked.name + "/out.npy", asked.out_shape, out);
  std::printf("%s: answered\n", asked.name.c_str());
}

int main() {
)text";

const char* name_of(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::attention: return "attention";
    case ProbeKind::strided: return "strided";
    case ProbeKind::rope: return "rope";
    case ProbeKind::projection: return "projection";
    case ProbeKind::merge: return "merge";
  }
  return "";
}

std::string list_of(const std::vector<std::int64_t>& numbers) {
  std::string list;
  for (const std::int64_t number : numbers) list += (list.empty() ? "" : ", ") + std::to_string(number);
  return list;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string readme() {
  std::string text = kReadme;
  for (const ProbeCase& probe : probe_cases()) {
    text += "| `" + probe.name + "` | " + probe.about + " | ";
    std::string rest;
    for (const ProbeTensor& tensor : probe.tensors)
      rest += (rest.empty() ? "" : ", ") + tensor.name + " [" + list_of(tensor.shape) + "]";
    for (const auto& [name, json] : probe.arguments) rest += ", " + name + " = " + json;
    text += rest + " |\n";
  }
  return text;
}

std::string cases_json() {
  std::string text = "[\n";
  for (const ProbeCase& probe : probe_cases()) {
    std::string tensors, arguments;
    for (const ProbeTensor& tensor : probe.tensors)
      tensors += (tensors.empty() ? "\"" : ", \"") + tensor.name + "\"";
    for (const auto& [name, json] : probe.arguments)
      arguments += (arguments.empty() ? "\"" : ", \"") + name + "\": " + json;
    text += (text.size() > 2 ? ",\n" : "") + std::string("  {\"name\": \"") + probe.name + "\", \"kind\": \"" +
            name_of(probe.kind) + "\", \"about\": \"" + probe.about + "\", \"tensors\": [" + tensors +
            "], \"arguments\": {" + arguments + "}, \"out_shape\": [" + list_of(probe.out_shape) + "]}";
  }
  return text + "\n]\n";
}

std::string cpp_harness() {
  std::string text = kCpp;
  for (const ProbeCase& probe : probe_cases()) {
    text += "  run({\"" + probe.name + "\", \"" + name_of(probe.kind) + "\", {";
    for (const ProbeTensor& tensor : probe.tensors) {
      text += "{\"" + tensor.name + "\", read(\"" + probe.name + "/" + tensor.name + ".npy\", {" +
              list_of(tensor.shape) + "})}, ";
    }
    text += "}, {";
    for (const auto& [name, json] : probe.arguments)
      text += "{\"" + name + "\", \"" + replaced(json, "\"", "\\\"") + "\"}, ";
    text += "}, {" + list_of(probe.out_shape) + "}});\n";
  }
  return text + "}\n";
}

std::string python_harness(bool torch) {
  std::string text = replaced(kPython, "@FILE@", torch ? "harness_torch.py" : "harness_numpy.py");
  text = replaced(text, "@IMPORT@", torch ? "import torch" : "");
  text = replaced(text, "@LOAD@", torch ? "torch.from_numpy" : "");
  text = replaced(text, "@TRANSPOSE@", torch ? "t.transpose(1, 2)" : "t.transpose(0, 2, 1, 3)");
  return replaced(
      text, "@STORE@",
      torch ? "torch.as_tensor(function(*first, **arguments)).detach().numpy()" : "function(*first, **arguments)");
}

}  // namespace

std::map<std::string, std::string> probe_files() {
  return {{"README.md", readme()},
          {"cases.json", cases_json()},
          {"harness_numpy.py", python_harness(false)},
          {"harness_torch.py", python_harness(true)},
          {"harness.cc", cpp_harness()}};
}

}  // namespace attn::diagnose
