// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/mapping_guard.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep::base {
namespace {

// Entries are made, used again and never freed: a handler walks them without a lock, at any moment.
struct Mapping {
  std::atomic<const std::byte*> data{nullptr};  // null: free
  std::atomic<size_t> size{0};
  std::string path;
  Mapping* next = nullptr;
};
std::atomic<Mapping*> g_mappings{nullptr};
std::mutex g_changes;

void write_words(std::string_view words) {
  static_cast<void>(!::write(STDERR_FILENO, words.data(), words.size()));
}

extern "C" void on_bus_error(int signal, siginfo_t* about, void*) {
  const auto* at = static_cast<const std::byte*>(about->si_addr);
  for (const Mapping* entry = g_mappings; entry; entry = entry->next) {
    const std::byte* begin = entry->data;
    if (!begin || at < begin || at >= begin + entry->size) continue;
    write_words("lockstep: machine error: ");
    write_words(entry->path);
    write_words(
        ": the file was shortened, or its disk failed, while it was read\n"
        "  fix: bring the file back; the same command goes on (a training from its newest checkpoint)\n");
    ::_exit(static_cast<int>(Blame::machine));
  }
  std::signal(signal, SIG_DFL);  // not ours: the same access ends the process as it would have
}

}  // namespace

void name_lost_mappings() {
  struct sigaction now {};
  if (::sigaction(SIGBUS, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

void note_mapping(const std::byte* data, size_t size, std::string_view path) {
  const std::lock_guard lock(g_changes);
  Mapping* entry = g_mappings;
  while (entry && entry->data) entry = entry->next;
  const bool fresh = !entry;
  if (fresh) entry = new Mapping;  // NOLINT(cppcoreguidelines-owning-memory): see there
  entry->path = path;
  entry->size = size;
  entry->data = data;
  if (!fresh) return;
  entry->next = g_mappings;
  g_mappings = entry;
}

void forget_mapping(const std::byte* data) {
  const std::lock_guard lock(g_changes);
  for (Mapping* entry = g_mappings; entry; entry = entry->next) {
    if (entry->data == data) return entry->data.store(nullptr);
  }
}

}  // namespace lockstep::base
