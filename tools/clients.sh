# shellcheck shell=bash
#
# clients.sh
#		Real clients, installed from PyPI and npm, against the private server.
#		Sourced by tools/check_clients and ./check, after private_pg.sh.
#
# The caller has a running server, and defines
#
#   pass NAME TEXT   fail NAME TEXT   skip NAME TEXT   show_log FILE
#
# then calls client_tests core|all [NAME...], the server having started with
# client_server_settings core|all. Packages go below $qv_home/clients and
# stay there; each test file has a database of its own. See test/clients/README.md.

client_log_prefix="log_line_prefix = '%m [%p] %d '"

# A test file of test/clients and the set of packages that it needs. The core must
# be there; of the others one that cannot be installed is skipped.
client_core=(psycopg psycopg2 asyncpg sqlalchemy django node_postgres)
client_others=(pg8000 peewee sqlmodel langchain llama_index mem0 embedding_model)
# shellcheck source=tools/client_suites.sh
. "$qv_top/tools/client_suites.sh"
client_set() {
	case $1 in
		psycopg | psycopg2 | asyncpg | sqlalchemy | django) echo core ;;
		pg8000 | peewee | sqlmodel) echo more ;;
		node_postgres) echo node ;;
		*) echo "$1" ;;
	esac
}

# client_tests core|all [NAME...]: only the named ones, if any are.
client_tests() {
	local which=$1 wanted=()
	shift
	client_home=$qv_home/clients
	client_sources=$qv_tree/test/clients
	rm -rf "${client_home:?}/run" "${client_home:?}/home"
	mkdir -p "$client_home/run" "$client_home/home"
	local suites=() name
	wanted=("${client_core[@]}")
	[ "$which" = core ] || wanted+=("${client_others[@]}" "${client_suites[@]}")
	[ $# = 0 ] || wanted=("$@")
	set -- "${wanted[@]}"
	wanted=()
	for name; do
		case $name in
			pgvector-*) suites+=("$name") ;;
			*) wanted+=("$name") ;;
		esac
	done
	[ ${#wanted[@]} = 0 ] || client_file_tests "$which" "${wanted[@]}"
	suite_tests ${suites[@]+"${suites[@]}"}
}

# client_file_tests core|all NAME...: those that are a file of test/clients.
client_file_tests() {
	local which=$1 name set ready=()
	shift

	if ! [ -f "$qv_root$("$PG_CONFIG" --pkglibdir)/auto_explain.so" ]; then
		fail "clients" "this server lacks auto_explain (PostgreSQL's contrib), which shows the plans"
		return 0
	fi
	# The data set is numpy's: nothing goes without the core.
	client_install core
	if [ "$client_state" != ok ]; then
		"$client_state" "clients" "$client_reason"
		[ "$client_state" = skip ] || show_log "$client_home/core.log"
		return 0
	fi
	client_state_core=ok
	for name; do
		set=$(client_set "$name")
		local state=client_state_$set reason=client_reason_$set
		if [ -z "${!state:-}" ]; then
			client_install "$set" "$which"
			printf -v "$state" %s "$client_state"
			printf -v "$reason" %s "$client_reason"
			[ "$client_state" != fail ] || show_log "$client_home/$set.log"
		fi
		if [ "${!state}" = ok ]; then
			ready+=("$name")
		else
			"${!state}" "client $name" "${!reason}"
		fi
	done
	client_run_all ${ready[@]+"${ready[@]}"}
}

# Installing. Sets client_state to ok, skip or fail, and client_reason.

client_install() {
	local set=$1 which=${2:-all}
	client_state=ok
	client_reason=
	if [ "$set" = node ]; then
		client_node_there "$which" || return 0
		client_need node "$client_sources/package.json" client_npm_install && return 0
		client_failed "$set" client_npm_reachable
	elif [ "$set" = more ]; then # beside the core
		client_need more "$client_sources/requirements-more.txt" client_pip_install core && return 0
		client_failed "$set" client_pypi_reachable
	else
		local file=$client_sources/requirements-$set.txt
		[ "$set" != core ] || file=$client_sources/requirements.txt
		client_need "$set" "$file" client_venv_install "$set" && return 0
		client_failed "$set" client_pypi_reachable
	fi
}

# Why, and whether that is a failure: not when there is no way to the index, nor
# outside the core.
client_failed() {
	local error
	error=$(grep -E '^ERROR: [^I]|^npm error' "$client_home/$1.log" | head -n 1 | cut -c 1-120)
	if ! "$2" >"$client_home/reach.log" 2>&1; then
		client_state=skip
		client_reason="no package index can be reached"
	elif [ "$1" = core ] || [ "$1" = node ]; then
		client_state=fail
		client_reason="cannot be installed: $error"
	else
		client_state=skip
		client_reason="cannot be installed: $error"
	fi
}

# client_need SET FILE COMMAND...: run it, unless it has been with this file.
client_need() {
	local set=$1 file=$2 made=$client_home/$1.made wanted
	shift 2
	wanted=$("$qv_python" --version && cat "$file" "$client_sources/requirements.txt")
	if [ "$set" = more ] && [ -f "$client_home/core.made" ] &&
		[ "$client_home/core.made" -nt "$made" ]; then
		rm -f "$made" # the environment it was put into is gone
	fi
	[ "$wanted" != "$(cat "$made" 2>/dev/null)" ] || return 0
	rm -f "$made"
	local started
	started=$(qv_now)
	printf '  %-54s ' "packages of clients: $set"
	if "$@" "$file" >"$client_home/$set.log" 2>&1 </dev/null; then
		printf '%6.1f s\n' "$(qv_since "$started")"
		printf '%s\n' "$wanted" >"$made"
	else
		printf '%6.1f s\n' "$(qv_since "$started")"
		return 1
	fi
}

client_venv_install() {
	"$qv_python" -m venv --clear "$client_home/$1" && client_pip_install "$@"
}
client_pip_install() {
	timeout 600 "$client_home/$1/bin/python" -m pip install --disable-pip-version-check \
		--progress-bar off -r "$2"
}
client_npm_install() {
	mkdir -p "$client_home/node"
	cp "$1" "$client_home/node/package.json"
	(cd "$client_home/node" && timeout 300 npm install --no-audit --no-fund --no-package-lock \
		--ignore-scripts --loglevel=error)
}

# A small package that has nothing to do with ours.
client_pypi_reachable() {
	rm -rf "$client_home/reach"
	timeout 120 "$client_home/core/bin/python" -m pip download --disable-pip-version-check \
		--retries 1 --timeout 20 --no-deps --dest "$client_home/reach" six
}
client_npm_reachable() { timeout 120 npm view --fetch-retries=1 is-number version; }

# Node is large: without being asked for all clients, only where it is.
client_node_there() {
	if ! client_node_usable && [ "$1" = all ] && command -v apt-get >/dev/null; then
		qv_step "package lists" qv_apt_update || true
		qv_step "packages: nodejs npm" qv_apt_install nodejs npm || true
	fi
	client_node_usable && return 0
	client_state=skip
	client_reason="no node and npm, 18.19 or later (with --all: by apt)"
	[ "$1" != all ] || client_state=fail
	return 1
}
client_node_usable() {
	command -v npm >/dev/null && command -v node >/dev/null &&
		node -e 'const [a, b] = process.versions.node.split("."); process.exit(+(a < 18 || (a == 18 && b < 19)))'
}

# Running.

client_psql() {
	qv_as_server env PGOPTIONS="-c client_min_messages=warning" "$qv_bin/psql" -XAtq -v ON_ERROR_STOP=1 -h "$qv_socket" -p "$qv_port" -U postgres "$@"
}

# A database whose sessions log the plans of their statements. So few rows would be
# read one after the other, were the planner free to; JIT would compile that.
client_database() {
	client_psql -d postgres -c "DROP DATABASE IF EXISTS $1" -c "CREATE DATABASE $1" \
		-c "ALTER DATABASE $1 SET session_preload_libraries = 'auto_explain'" \
		-c "ALTER DATABASE $1 SET auto_explain.log_min_duration = 0" \
		-c "ALTER DATABASE $1 SET auto_explain.log_format = 'json'" \
		-c "ALTER DATABASE $1 SET enable_seqscan = off" \
		-c "ALTER DATABASE $1 SET jit = off"
}

client_access_methods() {
	client_psql -d postgres -c "DROP DATABASE IF EXISTS client_probe" -c "CREATE DATABASE client_probe" &&
		client_psql -d client_probe -c "CREATE EXTENSION vector" &&
		client_psql -d client_probe -c "SELECT string_agg(amname, ' ') FROM pg_am WHERE amtype = 'i'"
	client_psql -d postgres -c "DROP DATABASE client_probe"
}

# How many of those that client_run_all() has begun have no result, and run.
clients_running() {
	local name n=0
	for name in "${!begun[@]}"; do
		if [ ! -f "$client_home/run/$name.done" ] && kill -0 "${begun[$name]}" 2>/dev/null; then
			n=$((n + 1))
		fi
	done
	echo "$n"
}

# As many at a time as there are processors.
client_run_all() {
	local name jobs
	local -A begun=() # processes, by name
	[ $# -gt 0 ] || return 0
	jobs=$(qv_jobs)
	client_methods=$(client_access_methods) || {
		fail "clients" "CREATE EXTENSION vector fails"
		return 0
	}
	"$client_home/core/bin/python" -B "$client_sources/dataset.py" >"$client_home/dataset.json"
	for name in "$@"; do
		while [ "$(clients_running)" -ge "$jobs" ]; do
			sleep 0.2
			client_results
		done
		client_run "$name" >"$client_home/run/$name.log" 2>&1 </dev/null &
		begun[$name]=$!
	done
	while [ "$(clients_running)" -gt 0 ]; do
		sleep 0.2
		client_results
	done
	client_results
	for name in "$@"; do
		[ -f "$client_home/run/$name.done" ] || fail "client $name" "ended without a result"
	done
}

client_run() {
	local name=$1 set started rc=0 result=$client_home/run/$1
	set=$(client_set "$name")
	[ "$set" != more ] || set=core
	started=$(qv_now)
	client_database "client_$name" || rc=1
	# What a client keeps in its user's folder, or reads there, is none of the user's.
	local env=("HOME=$client_home/home" "PGHOST=$qv_socket" "PGPORT=$qv_port" PGUSER=postgres
		"PGDATABASE=client_$name" "QUIVER_LOG=$qv_log" "QUIVER_ACCESS_METHODS=$client_methods"
		"QUIVER_RESULT=$result.line" "QUIVER_DATASET=$client_home/dataset.json"
		"NODE_PATH=$client_home/node/node_modules" PYTHONDONTWRITEBYTECODE=1)
	if [ $rc != 0 ]; then
		:
	elif [ "$set" = node ]; then
		env "${env[@]}" timeout 300 node --test --test-reporter=tap \
			"$client_sources/test_$name.mjs" >"$result.tap" || rc=$?
		grep -vE '^ *(duration_ms|---|\.\.\.|type:)|^ *ok ' "$result.tap" || true
		client_node_line "$result.tap" >"$result.line"
	else
		env "${env[@]}" timeout 300 "$client_home/$set/bin/python" -m pytest -q --tb=short \
			-p no:cacheprovider "$client_sources/test_$name.py" || rc=$?
	fi
	echo "$rc $(qv_since "$started")" >"$result.new"
	mv "$result.new" "$result.result"
}

client_node_line() {
	local package versions=() count skipped
	for package in pg pgvector; do
		versions+=("$package $(sed -n 's/^ *"version": "\(.*\)".*/\1/p' \
			"$client_home/node/node_modules/$package/package.json")")
	done
	count=$(sed -n 's/^# pass //p' "$1")
	skipped=$(grep -oE '# SKIP .*' "$1" | sed 's/# SKIP //' | sort -u | paste -sd ';' || true)
	printf 'node %s, %s: %s tests' "$(node -p process.versions.node)" \
		"$(printf '%s, ' "${versions[@]}" | sed 's/, $//')" "$count"
	[ -z "$skipped" ] || printf ', %s skipped (%s)' "$(sed -n 's/^# skipped //p' "$1")" "$skipped"
	echo
}

# Report what has finished since the last look.
client_results() {
	local result name rc seconds line
	for result in "$client_home"/run/*.result; do
		[ -f "$result" ] || continue
		name=$(basename "$result" .result)
		read -r rc seconds <"$result"
		mv "$result" "${result%.result}.done"
		line=$(cat "$client_home/run/$name.line" 2>/dev/null)
		if [ "$rc" = 0 ] && [ -n "$line" ]; then
			pass "client $name" "$seconds s  $line"
		else
			fail "client $name" "$seconds s  $line"
			show_log "$client_home/run/$name.log"
		fi
	done
}
