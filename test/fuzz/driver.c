/*
 * driver.c
 *		Runs the targets inside a server, by libFuzzer or from files.
 *
 * The procedures are called at top level, where they may end transactions: each
 * input has one of its own, which is rolled back.
 */
#include "fuzz.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "access/xact.h"
#include "access/xlog.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "postmaster/bgwriter.h"
#include "storage/fd.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timeout.h"

/* its name before PostgreSQL 19 */
#ifndef CHECKPOINT_FAST
#define CHECKPOINT_FAST CHECKPOINT_IMMEDIATE
#endif

PG_MODULE_MAGIC;

/* A step that takes longer has hung; one that does not even answer a cancel, too. */
#define STEP_MS 20000
#define DEAF_SECONDS 120
#define MAX_WAL_BYTES (UINT64CONST(128) * 1024 * 1024)

/* Of libFuzzer, which only a build by ./run has. */
extern int	LLVMFuzzerRunDriver(int *argc, char ***argv, int (*one) (const uint8 *data, size_t size))
			__attribute__((weak));

static const FuzzTarget *const targets[] = {&FuzzTypes, &FuzzPages, &FuzzSql};
static const FuzzTarget *target;
static MemoryContext input_context;
static bool by_libfuzzer = false;
static volatile time_t step_began = 0;
static const char *volatile step_name = "";

/* Errors met, by code: what is in no list is looked at by hand. */
#define MAX_CODES 200
static struct
{
	int			code;
	uint64		n;
	char		message[120];
}			seen[MAX_CODES];
static int	nseen = 0;

uint32
FuzzByte(FuzzInput *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->data++;
}

uint32
FuzzU16(FuzzInput *in)
{
	uint32		low = FuzzByte(in);

	return low | FuzzByte(in) << 8;
}

uint32
FuzzU32(FuzzInput *in)
{
	uint32		low = FuzzU16(in);

	return low | FuzzU16(in) << 16;
}

void
FuzzFinding(const char *fmt,...)
{
	char		text[2000];
	va_list		args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (by_libfuzzer)
	{
		fprintf(stderr, "FINDING: %s\n", text);
		abort();				/* libFuzzer keeps the input */
	}
	/* whatever stands around may catch errors, but not this */
	ereport(FATAL, (errmsg("fuzz finding: %s", text)));
}

static void
judge(const ErrorData *edata, const char *what)
{
	int			i;

	/*
	 * pgvector's code, of a function that is not for users:
	 * test/expected/errors.out
	 */
	if (strstr(edata->message, "expected state array") != NULL)
		return;
	/* errors that nobody should meet, whatever the input */
	if (edata->sqlerrcode == ERRCODE_INTERNAL_ERROR ||
		edata->sqlerrcode == ERRCODE_QUERY_CANCELED ||
		edata->sqlerrcode == ERRCODE_OUT_OF_MEMORY ||
		edata->sqlerrcode == ERRCODE_FLOATING_POINT_EXCEPTION ||
		edata->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED ||
		edata->sqlerrcode == ERRCODE_ASSERT_FAILURE ||
		edata->elevel > ERROR)
		FuzzFinding("%s: %s: %s (%s:%d) %s", what, unpack_sql_state(edata->sqlerrcode),
					edata->message, edata->filename ? edata->filename : "", edata->lineno,
					edata->detail ? edata->detail : "");
	for (i = 0; i < nseen && seen[i].code != edata->sqlerrcode; i++)
		;
	if (i == nseen && nseen < MAX_CODES)
	{
		seen[nseen].code = edata->sqlerrcode;
		snprintf(seen[nseen++].message, sizeof(seen[0].message), "%s", edata->message);
	}
	if (i < nseen)
		seen[i].n++;
}

/* Run the step and judge its error; true when there was none. */
static bool
try(FuzzStep step, void *arg, const char *what, bool pure)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile edata = NULL;

	step_name = what;
	step_began = time(NULL);
	if (!pure)
	{
		enable_timeout_after(STATEMENT_TIMEOUT, STEP_MS);
		BeginInternalSubTransaction(NULL);
		MemoryContextSwitchTo(context);
	}
	PG_TRY();
	{
		step(arg);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		edata = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	step_began = 0;
	if (!pure)
	{
		disable_timeout(STATEMENT_TIMEOUT, false);
		RollbackAndReleaseCurrentSubTransaction();
		CurrentResourceOwner = owner;
	}
	MemoryContextSwitchTo(context);
	if (edata != NULL)
		judge(edata, what);
	return edata == NULL;
}

bool
FuzzTry(FuzzStep step, void *arg, const char *what)
{
	return try(step, arg, what, false);
}

bool
FuzzTryPure(FuzzStep step, void *arg, const char *what)
{
	return try(step, arg, what, true);
}

/* Loops that do not look for interrupts, and processes that wait for themselves. */
static void *
watch(void *unused)
{
	for (;;)
	{
		time_t		began = step_began;

		if (began != 0 && time(NULL) - began > DEAF_SECONDS)
		{
			fprintf(stderr, "FINDING: %s: does not answer for %d s\n", step_name, DEAF_SECONDS);
			abort();
		}
		sleep(1);
	}
	return NULL;
}

static void
start_watch(void)
{
	sigset_t	all,
				old;
	pthread_t	thread;

	/* signals are for the server's own thread */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, watch, NULL) != 0)
		ereport(ERROR, (errmsg("could not start a thread")));
	pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* A single-user server makes no checkpoints by itself: its WAL would fill the disk. */
static void
shorten_wal(void)
{
	static XLogRecPtr last = 0;
	XLogRecPtr	now = GetXLogInsertRecPtr();

	if (now - last < MAX_WAL_BYTES)
		return;
	if (last != 0)
		RequestCheckpoint(CHECKPOINT_FAST | CHECKPOINT_FORCE | CHECKPOINT_WAIT);
	last = now;
}

static int
run_input(const uint8 *data, size_t size)
{
	FuzzInput	in = {data, size};
	MemoryContext old = MemoryContextSwitchTo(input_context);

	target->run(&in);
	MemoryContextSwitchTo(old);
	SPI_rollback();
	MemoryContextReset(input_context);
	shorten_wal();
	return 0;
}

static void
begin(FunctionCallInfo fcinfo, const char *name)
{
	bool		atomic = !IsA(fcinfo->context, CallContext) ||
		((CallContext *) fcinfo->context)->atomic;

	if (!superuser() || atomic)
		ereport(ERROR, (errmsg("only a superuser may fuzz, by CALL at top level")));
	for (int i = 0; i < lengthof(targets); i++)
		if (strcmp(targets[i]->name, name) == 0)
			target = targets[i];
	if (target == NULL)
		ereport(ERROR, (errmsg("no such target: %s", name)));
	input_context = AllocSetContextCreate(TopMemoryContext, "fuzz input", ALLOCSET_DEFAULT_SIZES);
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	target->begin();
}

static void
say_codes(void)
{
	for (int i = 0; i < nseen; i++)
		fprintf(stderr, "errors %s: " UINT64_FORMAT ", the first: %s\n", unpack_sql_state(seen[i].code),
				seen[i].n, seen[i].message);
}

/* CALL quiver_fuzz(target, arguments of libFuzzer): ends the process */
PG_FUNCTION_INFO_V1(quiver_fuzz);
Datum
quiver_fuzz(PG_FUNCTION_ARGS)
{
	char	   *name = MemoryContextStrdup(TopMemoryContext, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	Datum	   *elements;
	int			n;
	char	  **argv;

	if (LLVMFuzzerRunDriver == NULL)
		ereport(ERROR, (errmsg("this build has no libFuzzer"),
						errhint("test/fuzz/run makes one that has.")));
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), TEXTOID, -1, false, TYPALIGN_INT, &elements, NULL, &n);
	argv = MemoryContextAllocZero(TopMemoryContext, sizeof(char *) * (n + 2));
	argv[0] = "quiver_fuzz";
	for (int i = 0; i < n; i++)
		argv[i + 1] = MemoryContextStrdup(TopMemoryContext, TextDatumGetCString(elements[i]));
	begin(fcinfo, name);
	by_libfuzzer = true;
	start_watch();
	atexit(say_codes);
	n++;
	LLVMFuzzerRunDriver(&n, &argv, run_input);
	exit(0);
}

/* CALL quiver_fuzz_replay(target, folder): every file of it, in the order of their names */
PG_FUNCTION_INFO_V1(quiver_fuzz_replay);
Datum
quiver_fuzz_replay(PG_FUNCTION_ARGS)
{
	char	   *folder = MemoryContextStrdup(TopMemoryContext, text_to_cstring(PG_GETARG_TEXT_PP(1)));
	struct dirent **names;
	int			n,
				ran = 0;

	begin(fcinfo, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	start_watch();
	n = scandir(folder, &names, NULL, alphasort);
	if (n < 0)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not read folder \"%s\": %m", folder)));
	for (int i = 0; i < n; i++)
	{
		char		path[MAXPGPATH];
		uint8		data[65536];
		size_t		size;
		FILE	   *file;

		if (names[i]->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
		file = fopen(path, "rb");
		if (file == NULL)
			ereport(ERROR, (errcode_for_file_access(), errmsg("could not read \"%s\": %m", path)));
		size = fread(data, 1, sizeof(data), file);
		fclose(file);
		/* the last one in the log is the one that crashed */
		ereport(LOG, (errmsg("fuzz input %s", path), errhidestmt(true)));
		run_input(data, size);
		ran++;
	}
	SPI_finish();
	ereport(NOTICE, (errmsg("%d inputs of %s without a finding", ran, target->name)));
	return (Datum) 0;
}
