// attn probe: small inputs that no two known mistakes answer alike, and the judge of the answers.
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "attn/diagnose.h"
#include "cli/numbers.h"
#include "cli/verbs.h"
#include "diagnose/probe.h"
#include "diagnose/probe_files.h"
#include "explain/files.h"
#include "formats/read.h"
#include "formats/write.h"
#include "reference/inputs.h"

namespace attn::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kFooter = R"(
The folder's README.md says what each case asks for; harnesses for NumPy, PyTorch and C++ call your code on all of them. An
answer is CASE/out.npy. Exit code of --judge: 0 all right, 1 not.

Example:
  attn probe -o probe)";

struct ProbeFlags {
  std::string folder, judged;
  bool as_json = false;
};

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Failure{2, "-o: " + folder.string() + " can't be made: " + error.message() + "; name another folder"};
}

void write_probe(const ProbeFlags& flags) {
  const fs::path folder = flags.folder;
  std::error_code none;
  if (fs::exists(folder, none) && !(fs::is_directory(folder, none) && fs::is_empty(folder, none)))
    throw Failure{2, "-o: " + flags.folder + " is there already and is no empty folder; name a new one"};
  make_folder(folder);
  std::vector<std::pair<std::string, TensorView>> all;
  for (const diagnose::ProbeCase& probe : diagnose::probe_cases()) {
    make_folder(folder / probe.name);
    for (const diagnose::ProbeTensor& tensor : probe.tensors) {
      require(formats::write_tensor((folder / probe.name / (tensor.name + ".npy")).string(), tensor.view()));
      all.emplace_back(probe.name + "." + tensor.name, tensor.view());
    }
  }
  require(explain::write_file((folder / "probe.safetensors").string(), formats::as_safetensors(all)));
  for (const auto& [name, text] : diagnose::probe_files())
    require(explain::write_file((folder / name).string(), text));
  std::cout << counted(static_cast<std::int64_t>(diagnose::probe_cases().size()), "case") << " written to "
            << flags.folder << "; its README.md says how to answer them. Then: attn probe --judge " << flags.folder
            << '\n';
}

// An answer's numbers, row-major. Its shape may lack dimensions of size 1 in front. Errors: no tensor of the answer's shape.
Status read_answer(const std::string& path, const diagnose::ProbeCase& probe, std::vector<double>* numbers) {
  formats::Tensor tensor;
  TensorView view;
  ATTN_RETURN_IF_ERROR(formats::read_tensor(path, &tensor));
  ATTN_RETURN_IF_ERROR(formats::view_of(tensor, &view));
  reference::Array array = reference::read(view);
  if (std::vector<std::int64_t>(array.shape.begin(), array.shape.end()) != probe.out_shape) {
    return Status::error("shape " + formats::shape_text(tensor.shape) + ", but the answer to " + probe.name +
                         " is " + formats::shape_text(probe.out_shape));
  }
  *numbers = std::move(array.values);
  return {};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

using Unreadable = std::map<std::string, std::string>;

void print_verdict(const diagnose::ProbeVerdict& verdict, const Unreadable& unreadable) {
  for (const auto& [name, sentence] : unreadable) std::cout << "not judged: " << name << ": " << sentence << '\n';
  if (verdict.right) {
    std::cout << "right: " << counted(static_cast<std::int64_t>(verdict.answered.size()), "case") << '\n';
  } else {
    std::cout << "wrong: " << joined(verdict.wrong) << '\n';
  }
  for (const Explanation& explanation : verdict.explanations) {
    std::cout << '\n'
              << joined(explanation.ids) << (explanation.note.empty() ? "" : " (" + explanation.note + ")") << '\n';
    for (const std::string& id : explanation.ids)
      std::cout << "  " << find_mistake(id)->what << ' ' << find_mistake(id)->fix << '\n';
  }
  if (!verdict.right && verdict.explanations.empty()) {
    std::cout << "\nNo known mistake, nor two of them, gives all of these answers, the right ones included.\n";
    for (const auto& [id, count] : verdict.most)
      std::cout << "  " << id << " gives " << count << " of the " << verdict.wrong.size() << " wrong ones\n";
    for (const auto& [name, ids] : verdict.by_case)
      std::cout << "  " << name << ": "
                << (ids.empty() ? "nothing known explains it alone" : "alone it could be " + joined(ids)) << '\n';
  }
  if (!verdict.missing.empty()) std::cout << "\nNot answered: " << joined(verdict.missing) << '\n';
}

void print_verdict_json(const diagnose::ProbeVerdict& verdict, const Unreadable& unreadable) {
  ordered_json explanations = ordered_json::array(), most = ordered_json::array();
  for (const auto& [id, count] : verdict.most) most.push_back({{"id", id}, {"cases", count}});
  for (const Explanation& explanation : verdict.explanations)
    explanations.push_back({{"ids", explanation.ids}, {"note", explanation.note}});
  const ordered_json json = {{"verdict", verdict.right                  ? "right"
                                         : verdict.explanations.empty() ? "unexplained"
                                                                        : "wrong"},
                             {"answered", verdict.answered},
                             {"missing", verdict.missing},
                             {"wrong", verdict.wrong},
                             {"explanations", std::move(explanations)},
                             {"most", std::move(most)},
                             {"by_case", verdict.by_case},
                             {"unreadable", unreadable}};
  std::cout << json.dump() << '\n';
}

void judge(const ProbeFlags& flags) {
  const fs::path folder = flags.judged;
  std::error_code none;
  if (!fs::exists(folder / "cases.json", none))
    throw Failure{2, "--judge: " + flags.judged + " holds no probe; make one with attn probe -o FOLDER"};
  std::map<std::string, std::vector<double>> answers;
  std::map<std::string, std::string> unreadable;  // one bad answer does not stop the others from being judged
  for (const diagnose::ProbeCase& probe : diagnose::probe_cases()) {
    const fs::path path = folder / probe.name / "out.npy";
    std::vector<double> numbers;
    if (!fs::exists(path, none)) continue;
    const Status status = read_answer(path.string(), probe, &numbers);
    if (status.ok()) {
      answers[probe.name] = std::move(numbers);
    } else {
      unreadable[probe.name] = status.message();
    }
  }
  if (answers.empty() && unreadable.empty())
    throw Failure{2, "--judge: there is no CASE/out.npy in " + flags.judged + "; run a harness first"};
  const diagnose::ProbeVerdict verdict = diagnose::judge_probe(answers);
  flags.as_json ? print_verdict_json(verdict, unreadable) : print_verdict(verdict, unreadable);
  if (!verdict.right || !unreadable.empty()) throw Answer{1};
}

void run_probe(const ProbeFlags& flags) {
  if (flags.folder.empty() == flags.judged.empty())
    throw Failure{2, "-o, --judge: give one of them: -o FOLDER writes a probe, --judge FOLDER reads its answers"};
  if (!flags.folder.empty() && flags.as_json) throw Failure{2, "--json: goes with --judge"};
  flags.folder.empty() ? judge(flags) : write_probe(flags);
}

}  // namespace

void add_probe(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("probe", "Inputs that tell known mistakes apart, and their judge");
  const auto flags = std::make_shared<ProbeFlags>();
  verb->add_option("-o,--out", flags->folder, "Write the probe into this new folder")->type_name("DIR");
  verb->add_option("--judge", flags->judged, "Judge the answers in this folder")->type_name("DIR");
  verb->add_flag("--json", flags->as_json, "With --judge: print one JSON object instead of text");
  verb->footer(kFooter);
  verb->callback([flags] { run_probe(*flags); });
}

}  // namespace attn::cli
