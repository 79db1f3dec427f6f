#!/usr/bin/env bash
# The README's first minute on a bare Debian 12, from nothing to the demo's first answer.
# Usage, as root and with debootstrap: tests/repository/bare_debian.sh [FOLDER OF THE SYSTEM]
# The packages and the commands are read from README.md (--show prints them); the clone is of HEAD.
set -euo pipefail
cd "$(dirname "$0")/../.."

packages=$(sed -n 's/.*on a bare Debian 12, `apt-get install \([^`]*\)` first.*/\1/p' README.md)
started=$(grep -m1 -x '\$ make demo' README.md | cut -c3-)
asked=$(grep -m1 '^\$ curl ' README.md | cut -c3-)
[ -n "$packages" ] && [ -n "$started" ] && [ -n "$asked" ] || { echo "README.md has another form" >&2; exit 1; }
if [ "${1:-}" = --show ]; then
    printf '%s\n' "$packages" "$started" "$asked"
    exit
fi

if [ "${1:-}" != --within ]; then
    [ "$(id -u)" = 0 ] || { echo "bare_debian.sh: root is needed: chroot, mount" >&2; exit 2; }
    command -v debootstrap >/dev/null || { echo "bare_debian.sh: apt-get install debootstrap" >&2; exit 2; }
    system=${1:-$(mktemp -d)}
    [ -d "$system/usr/bin" ] || debootstrap --variant=minbase bookworm "$system" >/dev/null
    # Mounts and processes of the namespaces end with the script.
    unshare --mount --pid --fork --kill-child "$0" --within "$system" && code=0 || code=$?
    [ -n "${1:-}" ] || rm -rf --one-file-system "$system"
    exit "$code"
fi

system=$2

mount -t proc proc "$system/proc"
mount --rbind /dev "$system/dev"
cp /etc/resolv.conf "$system/etc/resolv.conf"
# The machine's own authorities: there may be a proxy between it and the package index.
cp /etc/ssl/certs/ca-certificates.crt "$system/root/authorities.pem"
rm -rf "$system/root/specmux" "$system/root/bundle"
git bundle create --quiet "$system/root/bundle" HEAD

chroot "$system" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    PIP_CERT=/root/authorities.pem DEBIAN_FRONTEND=noninteractive \
    bash -euo pipefail -c '
        apt-get update -q >/dev/null
        apt-get install -q --yes --no-install-recommends $1 >/dev/null
        cd && git clone --quiet bundle specmux 2>/dev/null && cd specmux
        '"$started"' >/root/demo.log 2>&1 &
        for _ in $(seq 1200); do
            # While it starts, nothing answers, or a 503 does.
            if answer=$('"$asked"') && [[ $answer == *'"'"'"apis/library.example.org/v1"'"'"'* ]]; then
                cat /root/demo.log
                echo "${answer:0:120}…"
                echo "first answer on a bare Debian $(cat /etc/debian_version) with $1"
                exit 0
            fi
            sleep 1
        done
        cat /root/demo.log
        echo "no answer" >&2
        exit 1
    ' demo "$packages"
