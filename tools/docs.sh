# shellcheck shell=bash
#
# docs.sh
#		The pages of docs/ and README.md against the private server. Sourced by
#		tools/check_docs and ./check, after private_pg.sh.
#
# The caller has a running server and defines pass, fail and show_log as for clients.sh.
# Links are those of the checkout: not all pages are among the staged sources.

docs_test() { # PAGE...: these, else all
	local log=$qv_home/log/docs.log started rc=0
	started=$(qv_now)
	env PGHOST="$qv_socket" PGPORT="$qv_port" PGUSER=postgres timeout 900 \
		"$qv_python" -B "$qv_tree/tools/run_docs" --top "$qv_top" --psql "$qv_bin/psql" "$@" \
		>"$log" 2>&1 </dev/null || rc=$?
	if [ $rc = 0 ]; then
		pass "docs" "$(qv_since "$started") s, $(tail -n 1 "$log")"
	else
		fail "docs" "$(qv_since "$started") s"
		show_log "$log"
	fi
}
