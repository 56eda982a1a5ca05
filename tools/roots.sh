# shellcheck shell=bash
#
# roots.sh
#		Root file systems of releases of Debian and Ubuntu, by debootstrap. Sourced by
#		tools/check_packages and tools/check_roots, after private_pg.sh.

# What can be named; debootstrap knows Debian's others by itself.
roots_ubuntu=(noble oracular plucky questing)

# roots_need: the programs, or a reason in roots_reason.
roots_need() {
	local missing=() package
	roots_reason=
	if [ "$(id -u)" != 0 ]; then
		roots_reason="a root file system is made by root"
		return 1
	fi
	for package in debootstrap git make; do
		qv_apt_installed $package || missing+=($package)
	done
	if [ ${#missing[@]} -gt 0 ] &&
		! { qv_apt_update && qv_apt_install "${missing[@]}"; } >"$qv_logs/apt.log" 2>&1; then
		roots_reason="cannot be installed: ${missing[*]}"
		return 1
	fi
}

roots_origin() { # SUITE
	case " ${roots_ubuntu[*]} " in
		*" $1 "*) echo Ubuntu ;;
		*) echo Debian ;;
	esac
}

# The mirror that this machine's apt has for it, else its own.
roots_mirror() { # ORIGIN
	local uri
	uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Origin: $1" |
		grep -v security | head -n 1) || true
	case $uri,$1 in
		?*,*) echo "$uri" ;;
		*,Ubuntu) echo http://archive.ubuntu.com/ubuntu ;;
		*) echo http://deb.debian.org/debian ;;
	esac
}

# The steps. Each runs by qv_step in a condition, where "set -e" has no effect: hence
# the chains.

# A release's smallest system, as an archive that copies are made of. In it no daemon
# starts.
bare_root() { # SUITE ARCHIVE
	local root=$2.new origin key script=() components=main alone=()
	# what debootstrap mounts ends with it, however it ends
	if unshare --mount true; then alone=(unshare --mount); fi
	origin=$(roots_origin "$1")
	key=/usr/share/keyrings/${origin,,}-archive-keyring.gpg
	if [ "$origin" = Ubuntu ]; then
		components=main,universe
		[ -f /usr/share/debootstrap/scripts/"$1" ] || script=(gutsy) # what all of Ubuntu's are links to
		if [ ! -f "$key" ]; then
			"$qv_top/tools/deb_prefix" "$2.keys" ubuntu-keyring || return 1
			key=$2.keys/root$key
		fi
	fi
	rm -rf "$root"
	${alone[@]+"${alone[@]}"} debootstrap --variant=minbase --components=$components --keyring="$key" \
		"$1" "$root" "$(roots_mirror "$origin")" ${script[@]+"${script[@]}"} &&
		printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" &&
		chmod 755 "$root/usr/sbin/policy-rc.d" &&
		echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io" &&
		tar -C "$root" -cf "$2.new.tar" . &&
		mv "$2.new.tar" "$2" &&
		rm -rf "$root" "$2.keys"
}

# A copy of it, with this machine's ways to the network: names, apt's proxy, certificates.
new_root() { # ARCHIVE FOLDER
	rm -rf "$2" &&
		mkdir -p "$2" &&
		tar -C "$2" -xf "$1" &&
		cp -L /etc/resolv.conf /etc/hosts "$2/etc/" &&
		apt-config dump Acquire::http Acquire::https >"$2/etc/apt/apt.conf.d/00host" &&
		if [ -d /usr/local/share/ca-certificates ]; then
			cp -r /usr/local/share/ca-certificates "$2/usr/local/share/"
		fi
}

root_environment=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
	DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy="$http_proxy"}
	${https_proxy:+https_proxy="$https_proxy"})

in_root() { # FOLDER COMMAND...
	local root=$1
	shift
	env -i "${root_environment[@]}" chroot "$root" "$@"
}
install_in() { # FOLDER PACKAGE...
	local root=$1
	shift
	in_root "$root" apt-get -q install -y --no-install-recommends "$@"
}
