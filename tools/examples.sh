# shellcheck shell=bash
#
# examples.sh
#		The programs of examples/, as a reader would run them, against the private
#		server. Sourced by tools/check_examples and ./check, after private_pg.sh and
#		clients.sh.
#
# The caller has a running server and defines pass, fail, skip and show_log as for
# clients.sh, then calls example_tests core|all. Packages come from PyPI and npm, and
# stay below $qv_home/examples. Chromium is large: it comes by apt only when all is asked
# for, and elsewhere its test runs where there is one.

example_tests() {
	local which=$1 home=$qv_home/examples log=$qv_home/log/examples.log started rc=0 node='' chromium='' note=''
	local packages
	started=$(qv_now)
	rm -rf "$home/search"
	mkdir -p "$home/search"
	cp -r "$qv_tree/examples/search/." "$qv_tree/test/examples/test_web.mjs" "$home/search/"
	packages=$(apt-cache dumpavail 2>/dev/null | grep -c '^Package: ')
	if [ "${packages:-0}" -lt 5000 ]; then
		skip "example search" "apt's lists hold ${packages:-0} packages: run apt-get update"
		return 0
	fi
	if ! example_venv "$home" >"$log" 2>&1; then
		skip "example search" "its packages cannot be installed from PyPI ($log)"
		return 0
	fi
	if [ "$which" = all ]; then
		client_node_there all
		command -v chromium >/dev/null || qv_apt_install chromium >>"$log" 2>&1 || true
	fi
	if client_node_usable && (cd "$home/search" && timeout 300 npm install --no-audit --no-fund \
		--no-package-lock --ignore-scripts --loglevel=error) >>"$log" 2>&1; then
		node=$(command -v node)
		chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
		[ -n "$chromium" ] || note=', without a browser'
	else
		note=', without Node and a browser'
	fi
	client_psql -d postgres -c 'DROP DATABASE IF EXISTS example_search' -c 'CREATE DATABASE example_search'
	env PGHOST="$qv_socket" PGPORT="$qv_port" PGUSER=postgres PGDATABASE=example_search \
		EXAMPLE_HOME="$home/search" EXAMPLE_NODE="$node" EXAMPLE_CHROMIUM="$chromium" \
		EXAMPLE_SCREENSHOT="$qv_home/log/example.png" HOME="$home" timeout 900 \
		"$home/venv/bin/python" -B "$qv_tree/test/examples/test_search.py" >>"$log" 2>&1 </dev/null || rc=$?
	if [ $rc = 0 ]; then
		pass "example search" "$(qv_since "$started") s$note"
	else
		fail "example search" "$(qv_since "$started") s"
		show_log "$log"
	fi
}

example_venv() { # FOLDER
	local wanted
	wanted=$("$qv_python" --version && cat "$1/search/requirements.txt")
	[ "$wanted" != "$(cat "$1/made" 2>/dev/null)" ] || return 0
	rm -f "$1/made"
	"$qv_python" -m venv --clear "$1/venv" &&
		timeout 600 "$1/venv/bin/python" -m pip install -q --disable-pip-version-check \
			-r "$1/search/requirements.txt" &&
		printf '%s\n' "$wanted" >"$1/made"
}
