# Quiver: two extensions (vector, quiver), one library (quiver.so).
#
#   make                      build; PG_CONFIG= picks the server version
#   make install              install; does not overwrite a stock pgvector
#        REPLACE_PGVECTOR=1   ... but takes its place, its files kept aside
#        ONLY_QUIVER=1        ... but goes beside it: extension quiver only
#   make uninstall            remove Quiver's files; does not remove a stock pgvector's
#   make installcheck         regress and isolation tests, on a running server
#   make prove_installcheck   TAP tests; they start servers of their own
#   make check-unit           C tests that need no server
#   make check-layers         include rules between the folders of src/
#   make indent               lay out the C sources as pgindent does
#   make check-format         is there anything to lay out?
#   make dist                 archives of the commit checked out: quiver-VERSION.tar.gz, .zip,
#                             and their checksums: quiver-VERSION.sha256
#   make site                 the documentation as a site with search, its links checked
#
# WERROR=1 makes warnings errors (./check does), OPTFLAGS= replaces -O3.

only_quiver = $(filter-out 0 no,$(ONLY_QUIVER))

MODULE_big = quiver
extensions = $(if $(only_quiver),,vector) quiver
EXTENSION = $(extensions)
DATA = $(sort $(wildcard $(extensions:%=sql/%--*.sql)))

# In-place updates of extension vector, from these versions of pgvector and back to
# those whose objects are the newest: see sql/README.md.
vector_version := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" vector.control)
vector_script = sql/vector--$(vector_version).sql
FROM_PGVECTOR = 0.5.0 0.5.1 0.6.0 0.6.1 0.6.2 0.7.0 0.7.1 0.7.2 0.7.3 0.7.4 $(TO_PGVECTOR)
TO_PGVECTOR = 0.8.0 0.8.1 0.8.2 0.8.3 0.8.4 0.8.5 0.8.6
DATA_built = $(if $(only_quiver),,\
	$(FROM_PGVECTOR:%=sql/build/vector--%--$(vector_version).sql) \
	$(TO_PGVECTOR:%=sql/build/vector--$(vector_version)--%.sql))
PGFILEDESC = "quiver - vector similarity search"

OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c src/*/*/*.c)))

REGRESS = $(sort $(patsubst test/sql/%.sql,%,$(wildcard test/sql/*.sql)))
REGRESS_OPTS = --inputdir=test
ISOLATION = $(sort $(patsubst test/specs/%.spec,%,$(wildcard test/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test
PROVE_TESTS ?= $(sort $(wildcard test/t/*.pl))

# Kernels carry target attributes; no -march here, so that a build runs on
# every machine of its architecture.
OPTFLAGS ?= -O3

PG_CPPFLAGS = -Isrc
# The macros and callback signatures of the server's headers do not allow the
# three checks that are switched off. -MMD: Debian's PGXS tracks no headers.
PG_CFLAGS = -std=gnu17 $(OPTFLAGS) -MMD -MP -Wall -Wextra \
	-Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers \
	-Wno-declaration-after-statement
ifneq ($(filter-out 0 no,$(WERROR)),)
PG_CFLAGS += -Werror
endif
# PostgreSQL's flags are those of the compiler it was built with: clang must
# let gcc's pass, and the attribute gnu_printf in pg_config.h.
ifneq ($(findstring clang,$(shell $(CC) --version 2>/dev/null)),)
PG_CFLAGS += -Wno-unknown-warning-option -Wno-ignored-optimization-argument \
	-Wno-ignored-attributes
endif

# pgvector's library has functions of the same names, and both may be in one
# process: ours must find our own.
SHLIB_LINK = $(if $(filter darwin,$(PORTNAME)),,-Wl,-Bsymbolic)

EXTRA_CLEAN = $(OBJS:.o=.d) $(wildcard test/unit/build) test/unit/tmp_check

# JIT bitcode of the functions would need exactly the server's clang, and
# gains nothing: the time is spent in kernels behind pointers.
ifneq ($(origin with_llvm),command line)
override with_llvm := no
endif

# An archive and the site can be made where there is no PostgreSQL.
ifeq ($(filter dist site,$(MAKECMDGOALS)),)
PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq ($(PGXS),)
$(error $(PG_CONFIG) does not run: install postgresql-server-dev-NN, or give PG_CONFIG=/path/to/pg_config)
endif
include $(PGXS)
endif

-include $(OBJS:.o=.d)

sql/build/vector--$(vector_version)--%.sql: $(vector_script) $(wildcard sql/*.in) tools/pgvector_script
	@mkdir -p $(@D)
	tools/pgvector_script out $* $(vector_script) >$@.tmp && mv $@.tmp $@
sql/build/vector--%--$(vector_version).sql: $(vector_script) $(wildcard sql/*.in) tools/pgvector_script
	@mkdir -p $(@D)
	tools/pgvector_script in $* $(vector_script) >$@.tmp && mv $@.tmp $@

# Before anything is written below DESTDIR.
installdirs installdirs-lib: spare-pgvector
spare-pgvector:
	@$(if $(only_quiver),:,tools/spare_pgvector) '$(DESTDIR)$(datadir)/extension' \
		'$(DESTDIR)$(pkglibdir)' '$(REPLACE_PGVECTOR)'

# A control file of pgvector stays.
uninstall: EXTENSION = $(filter-out $(pgvectors_control),$(extensions))
pgvectors_control = $(shell tools/spare_pgvector '$(DESTDIR)$(datadir)/extension' \
	'$(DESTDIR)$(pkglibdir)' >/dev/null 2>&1 || echo vector)

# bindir= on the command line picks another (private) installation, TESTDIR=
# another place for what the tests write (since 16 by the other two variables).
TESTDIR = $(CURDIR)
prove_installcheck:
	rm -rf '$(TESTDIR)/tmp_check'
	cd '$(srcdir)' && TESTDIR='$(TESTDIR)' TESTDATADIR='$(TESTDIR)/tmp_check' \
		TESTLOGDIR='$(TESTDIR)/tmp_check/log' PATH="$(bindir):$$PATH" PGPORT='6$(DEF_PGPORT)' \
		PG_CONFIG='$(PG_CONFIG)' PG_REGRESS='$(top_builddir)/src/test/regress/pg_regress' \
		PERL5LIB="$(top_srcdir)/src/test/perl:$(CURDIR)/test/perl:$$PERL5LIB" \
		$(PROVE) $(PG_PROVE_FLAGS) $(PROVE_FLAGS) $(PROVE_TESTS)

check-unit:
	$(MAKE) -C test/unit check

check-layers:
	tools/check_layers .

indent:
	PG_CONFIG='$(PG_CONFIG)' tools/indent .

check-format:
	tools/typedefs --check .
	PG_CONFIG='$(PG_CONFIG)' tools/indent --check .

# PGXN takes the .zip; packages are built from either.
DIST = dist
version = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" quiver.control)
dist:
	@mkdir -p '$(DIST)'
	@for format in tar.gz zip; do \
		git archive --format=$$format --prefix=quiver-$(version)/ \
			-o '$(DIST)/quiver-$(version)'.$$format HEAD || exit 1; \
	done
	@cd '$(DIST)' && sha256sum quiver-$(version).tar.gz quiver-$(version).zip >quiver-$(version).sha256

site:
	tools/site

.PHONY: dist site spare-pgvector prove_installcheck check-unit check-layers indent check-format
