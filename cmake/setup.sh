# Sourced by run, test and .ci/run: installs the packages that are missing and builds a preset. What is in place
# already is left alone, so that a second call needs neither the network nor any rights. All chatter goes to stderr.

attn_root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

# What the binary is built with, what the tests need on top, and what only .ci/run needs.
build_packages=(g++ cmake ninja-build pkg-config libhwy-dev libcli11-dev nlohmann-json3-dev zlib1g-dev libutf8proc-dev
  libcairo2-dev fonts-dejavu-core libcpp-httplib-dev)
test_packages=(libgtest-dev librapidcheck-dev libbenchmark-dev python3-dev python3-numpy python3-pytest)
check_packages=(clang-format clang-tidy g++-aarch64-linux-gnu debootstrap dpkg-dev file python3-venv)

# What the page is built with: 0.8 GB, so only on request. npm comes with node, but for Debian's own.
page_packages=(emscripten node-acorn)
install_page_tools() {
  local tools=("${page_packages[@]}")
  command -v node >/dev/null || tools+=(nodejs)
  command -v npm >/dev/null || tools+=(npm)
  install_packages "${tools[@]}"
}

say() { printf 'attn: %s\n' "$*" >&2; }

# quietly LOG COMMAND…: runs the command with its output in LOG, which is shown only if it fails.
quietly() {
  local log=$1
  shift
  if ! "$@" >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    say "failed: $*"
    return 1
  fi
}

# For scripts that prove something. skip says why it can't be tried here, which is no failure; new_scratch NAME makes the
# folder $scratch, which goes with the script; must WHAT COMMAND… shows what the command said only if it fails.
skip() { echo "skipped: $*"; exit 0; }
fail() { echo "FAILED: $*"; exit 1; }
new_scratch() {
  mkdir -p "$attn_root/build"
  scratch=$(mktemp -d "$attn_root/build/$1-XXXXXX")
  trap 'rm -rf --one-file-system "$scratch"' EXIT
}
must() { quietly "$scratch/said" "${@:2}" || fail "$1"; }

# install_packages NAME…: installs through apt those that are not there yet.
install_packages() {
  local missing=() name present
  command -v dpkg-query >/dev/null || return 0  # not Debian: CMake will name what it doesn't find
  present=$(dpkg-query -W -f='<${Package} ${db:Status-Status}>' "$@" 2>/dev/null) || true
  for name in "$@"; do
    [[ $present == *"<$name installed>"* ]] || missing+=("$name")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      say "these packages are missing; as root, run: apt-get install ${missing[*]}"
      return 1
    fi
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  local log status=0
  log=$(mktemp)
  {
    quietly "$log" "${as_root[@]}" apt-get update -q &&
      quietly "$log" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "${missing[@]}"
  } || status=1
  rm -f "$log"
  return "$status"
}

# configure PRESET OPTION…: runs CMake if the build directory is new, or if an OPTION (-DNAME=VALUE) isn't set so yet.
configure() {
  local preset=$1 directory=$attn_root/build/$1 option changed=0
  shift
  [[ -f $directory/build.ninja ]] || changed=1
  for option in "$@"; do
    option=${option#-D}
    grep -qs "^${option%%=*}:[A-Z]*=${option#*=}\$" "$directory/CMakeCache.txt" || changed=1
  done
  ((changed)) || return 0
  mkdir -p "$directory"
  (cd "$attn_root" && quietly "$directory/configure.log" cmake --preset "$preset" "$@")
}

# build PRESET TARGET…: silent when nothing has changed; otherwise shows ninja's progress on a terminal, one line elsewhere.
build() {
  local directory=$attn_root/build/$1
  shift
  [[ $(ninja -C "$directory" -n "$@" 2>/dev/null) == *"no work to do"* ]] && return 0
  if [[ -t 2 ]]; then
    ninja -C "$directory" "$@" >&2
  else
    local remark=" (the first time takes a few minutes)"
    [[ ! -f $directory/.ninja_log ]] || remark=""  # ninja's record of earlier builds
    say "building in ${directory#"$attn_root"/}$remark"
    quietly "$directory/build.log" ninja -C "$directory" "$@"
  fi
}

# one_at_a_time PRESET COMMAND…: two calls at once would otherwise configure and build the same directory.
one_at_a_time() {
  mkdir -p "$attn_root/build"
  (flock 9 && "${@:2}") 9>"$attn_root/build/$1.lock"
}
