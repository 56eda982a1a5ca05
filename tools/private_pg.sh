# shellcheck shell=bash
#
# private_pg.sh
#		A private copy of the PostgreSQL installation with Quiver in it, and a
#		cluster on a Unix socket. Sourced by ./quickstart, ./check and
#		tools/version_matrix.
#
# The system's PostgreSQL is read, never written: its folders are copied below
# $qv_home (PostgreSQL finds its own files relative to its programs), Quiver is
# installed into the copy, and servers run from there. Packages that are missing
# come from apt.
#
# The caller sets qv_top (the checkout), then calls, in this order:
#
#   qv_init NAME             qv_home=$qv_top/.quiver[/NAME], locale, umask
#   qv_need_packages ...     tool chain and PostgreSQL; sets PG_CONFIG
#   qv_make_home             who runs the servers, and where: sets qv_home
#   qv_stage WERROR [CC]     current sources -> $qv_tree
#   qv_build / qv_install    make there; install into the copy
#   qv_start / qv_stop       the cluster

qv_oldest=15
qv_newest=19

# Talking.

qv_say() { printf '%s\n' "$*"; }
qv_die() {
	printf '\nerror: %s\n' "$*" >&2
	exit 1
}

# qv_step TITLE COMMAND...: run it with its output in a log, say how long it took.
# On failure show the end of the log.
qv_step() {
	local title=$1 log started
	shift
	[ -n "$qv_logs" ] || qv_logs=$(mktemp -d) || exit 1
	log=$qv_logs/${1#qv_}.log
	started=$(qv_now)
	printf '  %-54s ' "$title"
	if "$@" >"$log" 2>&1 </dev/null; then
		printf '%6.1f s\n' "$(qv_since "$started")"
		return 0
	fi
	printf 'FAILED\n\n'
	tail -n 25 "$log" | sed 's/^/    /'
	printf '\n    (all of it: %s)\n' "$log"
	return 1
}
qv_logs= # until qv_make_home a folder below /tmp, then $qv_home/log

qv_now() { date +%s.%N; }
qv_since() { LC_ALL=C awk -v a="$1" -v b="$(qv_now)" 'BEGIN { printf "%.1f", b - a }'; }

# The environment of a user's shell must not reach our servers and clients.
qv_init() {
	: "${qv_top:?}"
	qv_name=${1:-}
	umask 022
	export LC_ALL=C.UTF-8 LANG=C.UTF-8
	unset PGHOST PGHOSTADDR PGPORT PGDATABASE PGUSER PGPASSWORD PGPASSFILE \
		PGSERVICE PGSERVICEFILE PGOPTIONS PGDATA PGSSLMODE PGCHANNELBINDING \
		PGTZ PGDATESTYLE PGCLIENTENCODING MAKEFLAGS MAKELEVEL DESTDIR
	qv_link=$qv_top/.quiver
	qv_home=$qv_link${qv_name:+/$qv_name}
}

# Packages.

qv_as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		qv_die "this needs root, and there is no sudo: $*"
	fi
}

qv_apt_installed() {
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# The servers that are installed with all an extension needs, newest first.
qv_usable_pg_config() {
	local config=$1 version
	[ -x "$config" ] || return 1
	version=$("$config" --version 2>/dev/null | sed -n 's/^PostgreSQL \([0-9][0-9]*\).*/\1/p')
	[ "${version:-0}" -ge $qv_oldest ] && [ "$version" -le $qv_newest ] &&
		[ -f "$("$config" --pgxs)" ] &&
		[ -f "$("$config" --includedir-server)/postgres.h" ] &&
		[ -x "$("$config" --bindir)/initdb" ]
}

qv_find_pg_config() {
	local config
	for config in $(printf '%s\n' /usr/lib/postgresql/*/bin/pg_config | sort -Vr); do
		if qv_usable_pg_config "$config"; then
			PG_CONFIG=$config
			return 0
		fi
	done
	return 1
}

# Which packages bring a server: those of a server that lacks only the headers,
# else of the distribution's default version.
qv_pg_packages() {
	local dir version
	for dir in $(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -Vr); do
		version=${dir#/usr/lib/postgresql/}
		version=${version%%/*}
		if [ -x "$dir" ] && [ "$version" -ge $qv_oldest ] && [ "$version" -le $qv_newest ]; then
			echo "postgresql-server-dev-$version"
			return 0
		fi
	done
	version=$(apt-cache depends postgresql 2>/dev/null |
		sed -n 's/.*Depends: postgresql-\([0-9][0-9]*\)$/\1/p' | head -n 1)
	[ -n "$version" ] || qv_die "apt knows no package \"postgresql\":" \
		"is a mirror in reach? (apt-get update says)"
	[ "$version" -ge $qv_oldest ] || qv_die "this distribution's PostgreSQL is $version;" \
		"Quiver needs $qv_oldest to $qv_newest. Install one, and set PG_CONFIG to its pg_config."
	echo "postgresql-$version postgresql-client-$version postgresql-server-dev-$version"
}

# Another apt may be at work, above all on a machine that has just started. It is told to
# wait for dpkg's locks (below); for that of the lists it does not.
qv_apt_update() {
	local said tries=0 rc
	while :; do
		rc=0
		said=$(qv_as_root env LC_ALL=C.UTF-8 apt-get -q update 2>&1) || rc=$?
		printf '%s\n' "$said"
		case $rc,$tries,$said in
			0,* | *,20,*) return $rc ;;
			*"Could not get lock"*) ;;
			*) return $rc ;;
		esac
		tries=$((tries + 1))
		sleep 3
	done
}

# Installing a server package of Debian's creates and starts a cluster, unless
# told not to. We tell it for the time of this installation only.
qv_apt_install() {
	local dir=/etc/postgresql-common/createcluster.d made=
	if [ -d $dir ] || { qv_as_root mkdir -p $dir && made=1; }; then
		echo 'create_main_cluster = false' | qv_as_root tee $dir/zz-quiver.conf >/dev/null
	fi
	local rc=0
	qv_as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get -q install -y \
		-o DPkg::Lock::Timeout=600 --no-install-recommends -o Dpkg::Options::=--force-confold "$@" || rc=$?
	qv_as_root rm -f $dir/zz-quiver.conf
	[ -z "$made" ] || qv_as_root rmdir --ignore-fail-on-non-empty -p $dir 2>/dev/null || true
	return $rc
}

# qv_need_packages PACKAGE...: these and a PostgreSQL; apt is asked only when
# something is missing. "python3-venv" is met by any Python that has venv.
qv_need_packages() {
	local given=${PG_CONFIG:-}
	if [ -n "$given" ]; then
		qv_usable_pg_config "$(command -v "$given" || echo "$given")" ||
			qv_die "PG_CONFIG=$given: not a PostgreSQL $qv_oldest to $qv_newest with headers and initdb"
		PG_CONFIG=$(command -v "$given")
	fi
	if [ -n "$given" ] || qv_find_pg_config; then
		qv_need_tools "$@"
	else
		qv_need_tools "$@" postgresql
		qv_find_pg_config || qv_die "no usable pg_config after the installation"
	fi
	export PG_CONFIG
	qv_version=$("$PG_CONFIG" --version | sed 's/^PostgreSQL //')
}

# qv_need_tools PACKAGE...: these; "postgresql" is a server with its headers.
qv_need_tools() {
	local missing=() package pg
	for package in "$@"; do
		case $package in
			gcc | g++ | make | clang | perl | flex | bison | bzip2)
				command -v "$package" >/dev/null || missing+=("$package")
				;;
			libc6-dev) [ -e /usr/include/stdio.h ] || missing+=("$package") ;;
			python3) qv_find_python || missing+=("$package") ;;
			python3-venv) { qv_find_python && "$qv_python" -c 'import venv, ensurepip' 2>/dev/null; } ||
				missing+=("$package") ;;
			postgresql) missing+=("$package") ;;
			*) { ! command -v dpkg-query >/dev/null || qv_apt_installed "$package"; } ||
				missing+=("$package") ;;
		esac
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null || qv_die "missing: ${missing[*]};" \
		"this script can install packages by apt only (PG_CONFIG names an installed server)"
	qv_step "package lists" qv_apt_update ||
		qv_say "  (going on with the package lists there are)"
	if [ "${missing[-1]}" = postgresql ]; then
		pg=$(qv_pg_packages) || exit 1
		read -r -a pg <<<"$pg"
		missing=("${missing[@]:0:${#missing[@]}-1}" "${pg[@]}")
	fi
	qv_say "  installing: ${missing[*]}"
	qv_step "packages" qv_apt_install "${missing[@]}" || qv_die "apt could not install them: is a mirror in reach?"
	qv_find_python || true
}

# A Python that is new enough; the system's when the first in PATH is not.
qv_find_python() {
	local candidate
	for candidate in python3 /usr/bin/python3; do
		if command -v $candidate >/dev/null &&
			$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
			qv_python=$(command -v $candidate)
			return 0
		fi
	done
	return 1
}

# Users and places.

# PostgreSQL refuses to run as root: then it runs as whoever called sudo, else
# as postgres, else as nobody.
qv_pick_user() {
	qv_user=$(id -un)
	[ "$(id -u)" = 0 ] || return 0
	local candidate
	for candidate in "${SUDO_USER:-}" postgres nobody; do
		if [ -n "$candidate" ] && [ "$candidate" != root ] && id "$candidate" >/dev/null 2>&1; then
			qv_user=$candidate
			return 0
		fi
	done
	qv_die "PostgreSQL does not run as root, and there is no user postgres or nobody"
}

# Run as the servers' user, from a folder that user can enter.
qv_as_server() {
	if [ "$(id -u)" = 0 ]; then
		(cd "$qv_home" && exec 8<&- 9>&- setpriv --reuid="$qv_user" --regid="$(id -g "$qv_user")" \
			--init-groups env HOME="$qv_home" "$@")
	else
		(cd "$qv_home" && exec 8<&- 9>&- "$@")
	fi
}

# Can the servers' user enter this folder?
qv_reachable() {
	[ "$(id -u)" != 0 ] || (cd / && setpriv --reuid="$qv_user" --regid="$(id -g "$qv_user")" \
		--init-groups test -x "$1")
}

# An empty folder that is the servers' user's own.
qv_own_folder() {
	rm -rf "$1"
	mkdir -p "$1"
	[ "$(id -u)" != 0 ] || chown "$qv_user:" "$1"
	chmod 700 "$1"
}

# .quiver is a folder of the checkout; where the servers' user cannot reach the
# checkout (/root, say) it is a link to a folder below /var/tmp.
qv_make_home() {
	qv_pick_user
	if [ ! -e "$qv_link" ]; then
		rm -f "$qv_link" # a link to nowhere
		if qv_reachable "$qv_top"; then
			mkdir "$qv_link" 2>/dev/null || [ -d "$qv_link" ] || qv_die "cannot create $qv_link"
		else
			local place
			place=$(mktemp -d /var/tmp/quiver-XXXXXX) || exit 1
			chmod 755 "$place"
			ln -sT "$place" "$qv_link" || qv_die "cannot create $qv_link"
			qv_say "  ($qv_user cannot enter $qv_top: .quiver is a link to $place)"
		fi
	fi
	qv_reachable "$(cd "$qv_link" && pwd -P)" ||
		qv_die "user $qv_user cannot enter $qv_link; remove it (./quickstart clean) and start again"
	[ -w "$qv_link/" ] || qv_die "$qv_link is not yours to write; run as its owner, or remove it"
	qv_home=$(cd "$qv_link" && pwd -P)${qv_name:+/$qv_name}
	mkdir -p "$qv_home/log"
	[ -z "$qv_logs" ] || rm -rf "$qv_logs"
	qv_logs=$qv_home/log
	exec 9>"$qv_home/lock" # servers close it, see qv_as_server
	flock -n 9 || qv_die "another run of this script is at work in $qv_home"
	qv_tree=$qv_home/tree
	qv_root=$qv_home/pg
	[ -z "${PG_CONFIG:-}" ] || qv_bin=$qv_root$("$PG_CONFIG" --bindir)
	qv_data=$qv_home/data
	qv_log=$qv_home/log/postgres.log
	qv_pick_socket
}

# A socket's path has 107 bytes at most.
qv_pick_socket() {
	qv_socket=$qv_home/run
	if [ $((${#qv_socket} + ${#qv_port} + 14)) -gt 107 ]; then
		local short=$qv_home/socket
		if [ ! -d "$short" ]; then
			qv_socket=$(mktemp -d /tmp/quiver-XXXXXX) || exit 1
			rm -f "$short"
			ln -s "$qv_socket" "$short"
		fi
		qv_socket=$(cd "$short" && pwd -P)
	fi
	mkdir -p "$qv_socket"
	[ "$(id -u)" != 0 ] || chown "$qv_user:" "$qv_socket"
	chmod 700 "$qv_socket"
}
qv_port=5432

# Building.

qv_sources() {
	(cd "$qv_top" && find CHANGELOG.md Makefile META.json README.md quickstart ./*.control src sql test tools bench debian \
		packaging docs examples \
		\( -name __pycache__ -o -name node_modules -o -name venv -o -name tmp_check -o -path test/unit/build \
		-o -path bench/build -o -name "*.egg-info" \) -prune -o \
		-type f ! -name '*.o' ! -name '*.d' ! -name '*.so' ! -name '*.bc' -print 2>/dev/null |
		sort)
}

# The current sources, with their times, so that make compiles what changed. A
# file that went away, other options or another server: start afresh.
qv_stage() {
	local werror=$1 cc=${2:-}
	qv_make_options=("PG_CONFIG=$PG_CONFIG" "WERROR=$werror")
	[ -z "$cc" ] || qv_make_options+=("CC=$cc")
	local wanted
	wanted=$(printf '%s\n' "${qv_make_options[*]}" "$qv_version" && qv_sources)
	if [ "$wanted" != "$(cat "$qv_tree/.staged" 2>/dev/null)" ]; then
		rm -rf "$qv_tree"
		mkdir -p "$qv_tree"
	fi
	qv_sources | tar -C "$qv_top" -cf - -T - | tar -C "$qv_tree" -xf - --no-same-owner
	printf '%s\n' "$wanted" >"$qv_tree/.staged"
}

qv_jobs() { nproc 2>/dev/null || echo 2; }

qv_make() { make -C "$qv_tree" --no-print-directory "${qv_make_options[@]}" "$@"; }

qv_build() { qv_make -s -j"$(qv_jobs)" all; }

# A folder that is there for this version of the server is a good copy.
qv_copy_server() {
	# one of the same version may have been built anew, otherwise
	local copied
	copied="$PG_CONFIG $qv_version $(sha256sum <"$("$PG_CONFIG" --bindir)/postgres" | cut -c 1-16)"
	[ "$(cat "$qv_root/.copied" 2>/dev/null)" != "$copied" ] || return 0
	if qv_running; then qv_stop; fi
	rm -rf "$qv_root"
	local dir
	for dir in $(printf '%s\n' "$("$PG_CONFIG" --bindir)" "$("$PG_CONFIG" --pkglibdir)" \
		"$("$PG_CONFIG" --sharedir)" | sort -u); do
		mkdir -p "$qv_root$dir"
		cp -rL "$dir/." "$qv_root$dir/"
	done
	# A stock pgvector stays where it is, and out of the copy.
	rm -f "$qv_root$("$PG_CONFIG" --sharedir)/extension/vector.control" \
		"$qv_root$("$PG_CONFIG" --sharedir)"/extension/vector--*.sql \
		"$qv_root$("$PG_CONFIG" --pkglibdir)/vector.so"
	echo "$copied" >"$qv_root/.copied"
}

qv_install() {
	qv_copy_server && qv_make -s install DESTDIR="$qv_root"
}

# The library and scripts in the copy, as one short word.
qv_build_id() {
	cat "$qv_root$("$PG_CONFIG" --pkglibdir)/quiver.so" \
		"$qv_root$("$PG_CONFIG" --sharedir)"/extension/{vector,quiver}{.control,--*.sql} |
		sha256sum | cut -c 1-16
}

# The cluster.

qv_running() { [ -f "$qv_data/postmaster.pid" ] && qv_as_server "$qv_bin/pg_ctl" -D "$qv_data" status >/dev/null 2>&1; }

# qv_initdb SETTING...: a new cluster, when there is none for this version.
qv_initdb() {
	local major=${qv_version%%[!0-9]*}
	if [ "$(cat "$qv_data/PG_VERSION" 2>/dev/null)" != "$major" ]; then
		if qv_running; then qv_stop; fi
		qv_own_folder "$qv_data"
		qv_as_server "$qv_bin/initdb" -D "$qv_data" -U postgres -A trust -E UTF8 \
			--locale=C.UTF-8 --no-sync || return 1
		echo "include 'quiver.conf'" >>"$qv_data/postgresql.conf"
	fi
	{
		printf '# Written by each start.\n'
		printf "listen_addresses = ''\nport = %s\nunix_socket_permissions = 0700\n" "$qv_port"
		printf "unix_socket_directories = '\"%s\"'\n" "${qv_socket//\'/\'\'}"
		printf '%s\n' "$@"
	} >"$qv_data/quiver.conf"
}

qv_start() {
	qv_initdb "$@" || return 1
	if qv_running; then return 0; fi
	touch "$qv_log"
	[ "$(id -u)" != 0 ] || chown "$qv_user:" "$qv_log"
	qv_as_server "$qv_bin/pg_ctl" -D "$qv_data" -l "$qv_log" -w -t 60 start || {
		tail -n 20 "$qv_log"
		return 1
	}
}

qv_stop() { qv_as_server "$qv_bin/pg_ctl" -D "$qv_data" -m fast -w stop; }

# Tests.

# What a log of pg_regress says of each file: "ok NAME" or "FAILED NAME". Its lines
# are "test NAME ... ok" up to 15, "ok 1 - NAME" since.
qv_regress_results() {
	sed -nE \
		-e 's/^(test| +) +([^ ]+) +\.\.\. (ok|FAILED).*/\3 \2/p' \
		-e 's/^ok +[0-9]+ +[-+] ([^ ]+).*/ok \1/p' \
		-e 's/^not ok +[0-9]+ +[-+] ([^ ]+).*/FAILED \1/p' "$1"
}

# However the script ends: its jobs, the servers that TAP tests left in
# $qv_home/tap, and the cluster are stopped.
qv_stop_at_exit() {
	trap qv_finish EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

qv_finish() {
	local rc=$? job pidfile
	trap - EXIT
	if [ -n "$(jobs -rp)" ]; then
		for job in $(jobs -rp); do qv_kill_tree "$job"; done
		wait
		sleep 1 # a server on its way up
	fi
	for pidfile in "$qv_home"/tap/*/tmp_check/*/pgdata/postmaster.pid; do
		# without a server's programs nothing was started: these are another run's
		[ -z "${qv_bin:-}" ] || [ ! -f "$pidfile" ] ||
			qv_as_server "$qv_bin/pg_ctl" -D "${pidfile%/*}" -m immediate stop >/dev/null 2>&1 || true
	done
	if [ -n "${qv_bin:-}" ] && qv_running; then qv_stop >/dev/null 2>&1 || true; fi
	exit "$rc"
}

qv_kill_tree() {
	local children=() child
	# or it would begin what comes after the child that ended
	kill -STOP "$1" 2>/dev/null || true
	read -r -a children <"/proc/$1/task/$1/children" || true
	for child in ${children[@]+"${children[@]}"}; do qv_kill_tree "$child"; done
	kill "$1" 2>/dev/null || true
	kill -CONT "$1" 2>/dev/null || true
}

# Memory of the machine or of the container, in MB.
qv_memory_mb() {
	local total limit
	total=$(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo)
	limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || true)
	case $limit in
		'' | *[!0-9]*) ;;
		*) [ $((limit / 1048576)) -ge "$total" ] || total=$((limit / 1048576)) ;;
	esac
	echo "$total"
}
