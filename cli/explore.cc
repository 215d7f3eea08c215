// attn explore: the page, served to a browser on this machine.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "attn/executor.h"
#include "cli/explore_api.h"
#include "cli/explore_hosts.h"
#include "cli/explore_maps.h"
#include "cli/explore_server.h"
#include "cli/models.h"
#include "cli/numbers.h"
#include "cli/page_resource.h"
#include "cli/verbs.h"
#include "explain/files.h"
#include "model/text_model.h"

namespace attn::cli {
namespace {

constexpr std::size_t kMostPageBytes = std::size_t{32} << 20;

constexpr const char* kFooter = R"(
The page works attention by hand as attn explain does, and changes with every number. With --model it also shows what the
heads of that model look at, in any text. It is served to this machine alone, unless --host says otherwise.

Example:
  attn explore --model smollm2)";

// As typed; an empty text means that the flag was not given.
struct ExploreFlags {
  std::string port, host = "127.0.0.1", model, page;
};

// A model, and the maps that are made with it.
struct MappedModel {
  std::unique_ptr<model::TextModel> model;
  std::string name;
  std::unique_ptr<MapShelf> maps;
};

MappedModel load(const std::string& argument) {
  MappedModel mapped;
  const std::string path = model_path(argument);
  require(model::load_model(path, default_executor(), &mapped.model));
  mapped.name = model_name(path, *mapped.model);
  mapped.maps = std::make_unique<MapShelf>(*mapped.model, mapped.name);
  return mapped;
}

// A page of the user's is read anew for each request: whoever works on it sees what it is now.
std::string filled_page(const std::string& file, const nlohmann::json& given) {
  if (file.empty()) return page_with(given);
  std::string text;
  const Status status = explain::read_file(file, kMostPageBytes, &text);
  if (!status.ok()) throw Failure{2, "--page: " + status.message()};
  return page_with(text, given);
}

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

// Serves until Ctrl-C. The signals are waited for by a thread, since little is allowed within a handler; all threads have
// them blocked, but for this one once it has seen one: a second Ctrl-C ends the program as it is.
void serve(ExploreServer* server, MapShelf* maps) {
  std::atomic<bool> has_ended = false;
  std::thread waiting([&] {
    const sigset_t signals = ending_signals();
    const timespec while_waiting{0, 50'000'000};
    while (!has_ended && sigtimedwait(&signals, nullptr, &while_waiting) < 0) {
    }
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    if (maps != nullptr) maps->stop();
    while (!has_ended) {
      server->stop();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  const auto end_waiting = [&] {
    has_ended = true;
    waiting.join();
  };
  try {
    server->run();
  } catch (...) {
    end_waiting();
    throw;
  }
  end_waiting();
}

void run_explore(const ExploreFlags& flags) {
  if (flags.page.empty() && !page()) throw Failure{2, kNoPage};
  const int port = flags.port.empty() ? 8080 : static_cast<int>(parse_whole("--port", flags.port, 0, 65535));
  filled_page(flags.page, nullptr);  // refuses one that is none before anything is loaded

  // Before any thread begins, which takes this over.
  const sigset_t signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  MappedModel mapped;
  if (!flags.model.empty()) {
    if (isatty(STDERR_FILENO) == 1) std::cerr << "attn explore: reading " << flags.model << " …" << std::endl;
    mapped = load(flags.model);
  }
  const nlohmann::json name = mapped.model ? nlohmann::json(mapped.name) : nlohmann::json(nullptr);
  const ExploreApi api([&] { return filled_page(flags.page, {{"server", {{"model", name}}}}); }, mapped.maps.get());
  ExploreServer server(flags.host, port, api);
  if (!is_loopback(flags.host)) {
    std::cerr << "attn explore: --host " << flags.host
              << " lets other machines in; whoever reaches this port may map texts and read the maps\n";
  }
  std::cout << "attn explore: " << server.address() << " (Ctrl-C ends it)" << std::endl;
  serve(&server, mapped.maps.get());
}

}  // namespace

void add_explore(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("explore", "The page: attention by hand, and maps, in a browser");
  const auto flags = std::make_shared<ExploreFlags>();
  verb->add_option("--port", flags->port, "Where it is served; 0 takes one that is free [8080]")->type_name("PORT");
  verb->add_option("--host", flags->host, "The address to listen on [127.0.0.1: this machine alone]")
      ->type_name("HOST");
  verb->add_option("--model", flags->model, "A .gguf file, a folder with model.safetensors, smollm2 or minilm")
      ->type_name("MODEL");
  // For who works on the page, and for tests: this file instead of the page in the program.
  verb->add_option("--page", flags->page)->type_name("FILE")->group("");
  verb->footer(kFooter);
  verb->callback([flags] { run_explore(*flags); });
}

}  // namespace attn::cli
