# Sourced by scripts that try something in a clean Debian: makes its root with debootstrap, keeps it as an archive, and
# unpacks a copy of it as $root in $scratch.
source "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"

# Leaves the script where there can be no such root.
need_clean_root() {
  if ((EUID != 0)); then skip "only root may chroot"; fi
  command -v debootstrap >/dev/null || skip "debootstrap is not there"
}

in_root() { env -u TMPDIR LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
install_in_root() { must "apt-get install $*" in_root apt-get install -y -q --no-install-recommends "$@"; }

# The mirror that this machine's apt uses, where it is one of Debian's.
mirror() {
  local site
  site=$(apt-get indextargets --format "\$(SITE)" 'Created-By: Packages' 'Label: Debian' 2>/dev/null | sed -n 1p) || true
  echo "${site:-http://deb.debian.org/debian}"
}

# How this machine reaches its mirror: names, proxies, and whether dates are believed.
connect_root() {
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  apt-config dump | grep -E '^Acquire::(https?|Check|Retries)' >"$root/etc/apt/apt.conf.d/90machine" || true
}

# make_root SUITE ARCHIVE PACKAGE…
make_root() {
  local root=$scratch/bare apart=()
  wget -q --spider --tries=1 --timeout=20 "$(mirror)/dists/$1/Release" || skip "Debian's mirror is out of reach"
  say "making a clean Debian ($1); the next time it is there"
  # What debootstrap mounts then ends with it, however it ends. A container may forbid that.
  if unshare --mount true 2>/dev/null; then apart=(unshare --mount); fi
  must "debootstrap" "${apart[@]}" debootstrap --variant=minbase "$1" "$root" "$(mirror)"
  if (($# > 2)); then
    connect_root
    must "apt-get update" in_root apt-get update -q
    install_in_root "${@:3}"
    in_root apt-get clean
  fi
  must "packing the root" tar -C "$root" --numeric-owner -cf "$scratch/bare.tar" .
  rm -rf --one-file-system "$root"
  mv "$scratch/bare.tar" "$2"
}

# unpack_root SUITE ARCHIVE PACKAGE…: as $root, out of the archive, which is made if it isn't there.
unpack_root() {
  [[ -f $2 ]] || make_root "$@"
  root=$scratch/root
  mkdir "$root"
  must "unpacking $2; remove it, and it is made anew" tar -C "$root" --numeric-owner -xpf "$2"
  connect_root
}
