# shellcheck shell=bash
#
# client_suites.sh
#		The test suites of pgvector's own clients, unmodified, against the private
#		server. Sourced by tools/clients.sh, whose functions it uses.
#
# pgvector-go and pgvector-rust have theirs in the package that the module proxy and
# cargo hand out. Those of pgvector-python, -node and -java are in their
# repositories alone: a checkout below $QUIVER_CLIENT_SUITES, or a clone from GitHub.
#
# The suites name "localhost", some of them with port 5432, so the server listens there
# while they run: see client_server_settings.

client_suites=(pgvector-go pgvector-rust pgvector-python pgvector-node pgvector-java)

# Settings of the server for client_tests, one a line; $1 is core or all.
client_server_settings() {
	echo "$client_log_prefix"
	[ "$1" = core ] || ! suite_port_free || echo "listen_addresses = 'localhost'"
}
suite_port_free() { ! (exec 3<>"/dev/tcp/localhost/$qv_port") 2>/dev/null; }
suite_server_listens() {
	[ "$(client_psql -d postgres -c 'SHOW listen_addresses')" = localhost ]
}

# suite_tests NAME...: one after the other, because most of them compile. A suite sets
# suite_result, or suite_reason when it is left out, and may change the folder.
suite_tests() {
	local name started rc log
	[ $# -gt 0 ] || return 0
	if ! suite_server_listens; then
		for name in "$@"; do skip "client $name" "something listens on localhost:$qv_port, the only address it knows"; done
		return 0
	fi
	mkdir -p "$client_home/suites"
	for name in "$@"; do
		log=$client_home/run/$name.log
		suite_result=
		suite_reason=
		started=$(qv_now)
		rc=0
		"suite_${name#pgvector-}" >"$log" 2>&1 </dev/null || rc=$?
		cd "$qv_top"
		if [ -n "$suite_reason" ]; then
			skip "client $name" "$suite_reason"
		elif [ $rc = 0 ] && [ -n "$suite_result" ]; then
			pass "client $name" "$(qv_since "$started") s  $suite_result"
		else
			fail "client $name" "$(qv_since "$started") s  $suite_result"
			show_log "$log"
		fi
	done
}

# suite_source NAME: a fresh copy at $suite_dir, of a checkout or of GitHub.
suite_source() {
	suite_dir=$client_home/suites/$1
	rm -rf "$suite_dir"
	local from=${QUIVER_CLIENT_SUITES:-}/$1
	[ -n "${QUIVER_CLIENT_SUITES:-}" ] && [ -d "$from" ] || from=https://github.com/pgvector/$1
	if ! GIT_TERMINAL_PROMPT=0 timeout 120 git -c safe.directory='*' clone -q "$from" "$suite_dir"; then
		suite_reason="its suite is not in its package, and there is no checkout of it (QUIVER_CLIENT_SUITES) and no way to GitHub"
		return 1
	fi
	suite_version=$(git -C "$suite_dir" describe --tags 2>/dev/null || git -C "$suite_dir" rev-parse --short HEAD)
}

# suite_need PROGRAM...: or a reason why the suite is left out.
suite_need() {
	local program
	for program in "$@"; do
		if ! command -v "$program" >/dev/null; then
			suite_reason="there is no $program"
			return 1
		fi
	done
}

# suite_run DATABASE SECONDS COMMAND...: in the current folder, with a new database. Some
# of a suite's connections name the user of the environment, some that of the process.
suite_run() {
	local database=$1 seconds=$2 user
	shift 2
	user=$(id -un)
	[ -n "$(client_psql -d postgres -c "SELECT 1 FROM pg_roles WHERE rolname = '$user'")" ] ||
		client_psql -d postgres -c "CREATE ROLE \"$user\" SUPERUSER LOGIN" || return 1
	client_psql -d postgres -c "DROP DATABASE IF EXISTS $database" -c "CREATE DATABASE $database" &&
		env PGHOST=localhost "PGPORT=$qv_port" PGUSER=postgres USER=postgres LOGNAME=postgres \
			"PGDATABASE=$database" PGSSLMODE=disable timeout "$seconds" "$@"
}

# suite_sum FILE EXPRESSION: of all numbers that the group of the expression finds.
suite_sum() { sed -nE "s/$2/\\1/p" "$1" | awk '{ n += $1 } END { print n + 0 }'; }

suite_go() {
	local work=$client_home/suites/go version rc=0
	suite_need go || return 1
	rm -rf "$work"
	mkdir -p "$work"
	# the module's own copy cannot be written to
	(cd "$work" && timeout 300 go mod download -json github.com/pgvector/pgvector-go@latest >module.json) || {
		suite_reason="the module cannot be downloaded"
		return 1
	}
	cp -r "$(sed -n 's/.*"Dir": "\(.*\)",/\1/p' "$work/module.json")" "$work/module"
	chmod -R u+w "$work/module"
	version=$(sed -n 's/.*"Version": "\(.*\)",/\1/p' "$work/module.json")
	cd "$work/module" || return 1
	if ! compgen -G '*_test.go' >/dev/null; then
		suite_reason="pgvector-go $version brings no tests"
		return 1
	fi
	# ent's test is written against code that ent generates
	timeout 600 env GOFLAGS=-mod=mod go generate ./... || {
		suite_reason="the code for its test of ent cannot be generated"
		return 1
	}
	suite_run pgvector_go_test 900 go test -mod=mod -count=1 -v . >"$work/out" 2>&1 || rc=$?
	cat "$work/out"
	suite_result="$(go env GOVERSION), pgvector-go $version: $(grep -c '^--- PASS' "$work/out") tests passed, $(grep -c '^--- FAIL' "$work/out") failed"
	return $rc
}

suite_rust() {
	local work=$client_home/suites/rust rc=0
	suite_need cargo cc pkg-config || return 1
	if ! pkg-config --exists openssl libpq; then
		suite_reason="there is no libssl-dev or libpq-dev to link with"
		return 1
	fi
	mkdir -p "$work/fetch"
	printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n[dependencies]\npgvector = "*"\n' \
		>"$work/fetch/Cargo.toml"
	touch "$work/fetch/lib.rs"
	rm -rf "$work/fetch/Cargo.lock" "$work/fetch/vendor"
	(cd "$work/fetch" && timeout 300 cargo vendor -q vendor) || {
		suite_reason="the crate cannot be downloaded"
		return 1
	}
	rm -rf "$work/crate"
	cp -r "$work/fetch/vendor/pgvector" "$work/crate"
	rm -f "$work/crate/.cargo-checksum.json"
	cd "$work/crate" || return 1
	suite_run pgvector_rust_test 1800 env CARGO_TARGET_DIR="$work/target" CARGO_TERM_COLOR=never \
		cargo test --features postgres,diesel,sqlx,serde,halfvec -- --test-threads=1 >"$work/out" 2>&1 || rc=$?
	cat "$work/out"
	suite_result="$(rustc --version | cut -d ' ' -f 1-2), pgvector $(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1): $(suite_sum "$work/out" '^test result: .* ([0-9]+) passed.*') tests passed, $(suite_sum "$work/out" '^test result: .* ([0-9]+) failed.*') failed"
	return $rc
}

# Its requirements are a dependency group, which not every pip knows.
suite_python() {
	local venv=$client_home/suites/python rc=0
	suite_source pgvector-python || return 1
	local wanted
	wanted=$("$qv_python" - "$suite_dir/pyproject.toml" <<'PYTHON'
import sys
try:
    import tomllib
except ImportError:
    sys.exit("Python 3.11 or later is needed")
groups = tomllib.load(open(sys.argv[1], "rb")).get("dependency-groups", {})
print("\n".join(item for group in groups.values() for item in group if isinstance(item, str)))
PYTHON
	) || return 1
	[ -n "$wanted" ] || wanted=$(cat "$suite_dir/requirements.txt") || return 1
	printf '%s\n' "$wanted" >"$client_home/suites/python.txt"
	if [ ! -x "$venv/bin/python" ]; then "$qv_python" -m venv "$venv" || return 1; fi
	# with 2.1 four of its tests fail on pgvector as well
	echo 'SQLAlchemy<2.1' >"$client_home/suites/python-constraints.txt"
	timeout 600 "$venv/bin/python" -m pip install -q --disable-pip-version-check \
		-c "$client_home/suites/python-constraints.txt" -r "$client_home/suites/python.txt" "$suite_dir" || {
		suite_reason="its packages cannot be installed"
		return 1
	}
	cd "$suite_dir" || return 1
	suite_run pgvector_python_test 600 "$venv/bin/python" -m pytest -q -p no:cacheprovider tests >"$client_home/suites/python.out" 2>&1 || rc=$?
	cat "$client_home/suites/python.out"
	suite_result="Python $("$venv/bin/python" -c 'import platform; print(platform.python_version())'), pgvector-python $suite_version: $(tail -n 1 "$client_home/suites/python.out")"
	return $rc
}

# Which release of the suite runs on this Node; prisma fetches programs from a server of
# its own while it is installed, so its test is left out.
suite_node() {
	local out=$client_home/suites/node.out rc=0 ref files file
	client_node_there all || {
		suite_reason=$client_reason
		return 1
	}
	suite_source pgvector-node || return 1
	for ref in HEAD $(git -C "$suite_dir" tag --list 'v*' | sort -Vr); do
		git -C "$suite_dir" show "$ref:package.json" | node -e '
			const want = JSON.parse(require("fs").readFileSync(0)).engines?.node ?? ">=18";
			process.exit(+(parseInt(process.versions.node) < parseInt(want.match(/\d+/)[0])))' && break
	done
	git -C "$suite_dir" checkout -q "$ref" || return 1
	suite_version=$(git -C "$suite_dir" describe --tags)
	cd "$suite_dir" || return 1
	# A driver that asks for a release of its own parts that the registry lacks is left out.
	local left=prisma scope
	if ! suite_npm_install >"$out" 2>&1; then
		scope=$(sed -n 's/.*No matching version found for @\([^/]*\)\/.*/\1/p' "$out" | head -n 1)
		if [ -n "$scope" ]; then
			node -e 'const fs = require("fs"), file = JSON.parse(fs.readFileSync("package.json"));
				for (const name of Object.keys(file.devDependencies))
					if (name.startsWith("@" + process.argv[1] + "/")) delete file.devDependencies[name];
				fs.writeFileSync("package.json", JSON.stringify(file))' "$scope"
			left="$left, $scope"
		fi
		if [ -z "$scope" ] || ! suite_npm_install; then
			cat "$out"
			suite_reason="its packages cannot be installed"
			return 1
		fi
	fi
	files=()
	for file in tests/*.test.*; do
		case ", $left," in
			*", $(basename "${file%.test.*}"),"*) ;;
			*) files+=("$file") ;;
		esac
	done
	suite_run pgvector_node_test 600 node --test --test-concurrency=1 --test-reporter=tap "${files[@]}" >"$out" 2>&1 || rc=$?
	cat "$out"
	suite_result="node $(node -p process.versions.node), pgvector-node $suite_version: $(sed -n 's/^# pass //p' "$out") tests passed, $(sed -n 's/^# fail //p' "$out") failed; left out: $left"
	return $rc
}

# No lock file: see test/clients/README.md. The drivers ask for different releases of others.
suite_npm_install() {
	timeout 600 npm install --force --no-audit --no-fund --no-package-lock \
		--ignore-scripts --loglevel=error
}

suite_java() {
	local out=$client_home/suites/java.out rc=0
	suite_need mvn java || return 1
	suite_source pgvector-java || return 1
	cd "$suite_dir" || return 1
	local left=
	if ! timeout 1200 mvn -B -q dependency:resolve >"$out" 2>&1 && grep -q 'com.typesafe.slick' "$out"; then
		left=", Slick's left out: Maven Central lacks it"
		"$qv_python" - <<'PYTHON' || return 1
import pathlib, re
pom = pathlib.Path("pom.xml")
pom.write_text(re.sub(r"<dependency>\s*<groupId>com.typesafe.slick<.*?</dependency>", "", pom.read_text(), flags=re.S))
pathlib.Path("src/test/scala/com/pgvector/SlickTest.scala").unlink()
PYTHON
	fi
	if ! timeout 1200 mvn -B -q test-compile; then
		suite_reason="it cannot be built"
		return 1
	fi
	# JDBC takes the name of the user from the JVM, and R2DBC from the environment
	suite_run pgvector_java_test 900 env JAVA_TOOL_OPTIONS=-Duser.name=postgres mvn -B test >"$out" 2>&1 || rc=$?
	cat "$out"
	suite_result="Java $(java -version 2>&1 | sed -n 's/.*version "\(.*\)".*/\1/p'), pgvector-java $suite_version: $(sed -nE 's/.*(Tests run: [0-9]+, Failures: [0-9]+, Errors: [0-9]+, Skipped: [0-9]+)$/\1/p' "$out" | tail -n 1)$left"
	return $rc
}
