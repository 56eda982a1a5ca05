/*
 * fuzz.h
 *		What the targets of the fuzz driver share.
 *
 * A target reads its input from the front (FuzzByte() and the like, which give
 * zeros when it is used up), and runs each step by FuzzTry(), which says what an
 * error means.
 */
#ifndef QV_FUZZ_H
#define QV_FUZZ_H

#include "postgres.h"

#include "compat.h"
#include "fmgr.h"

typedef struct FuzzInput
{
	const uint8 *data;
	size_t		left;
} FuzzInput;

extern uint32 FuzzByte(FuzzInput *in);
extern uint32 FuzzU16(FuzzInput *in);
extern uint32 FuzzU32(FuzzInput *in);

typedef void (*FuzzStep) (void *arg);

/*
 * Run a step in a subtransaction that is rolled back.  True when it raised no error.
 * An internal error, a time limit, want of memory and a signal are findings.
 */
extern bool FuzzTry(FuzzStep step, void *arg, const char *what);

/* The same without subtransaction and time limit, for what takes no resources but memory. */
extern bool FuzzTryPure(FuzzStep step, void *arg, const char *what);

/* Report a finding: does not return. */
pg_noreturn extern void FuzzFinding(const char *fmt,...) pg_attribute_printf(1, 2);

typedef struct FuzzTarget
{
	const char *name;
	void		(*begin) (void);	/* once, connected to SPI */
	void		(*run) (FuzzInput *in);
} FuzzTarget;

extern const FuzzTarget FuzzTypes;
extern const FuzzTarget FuzzPages;
extern const FuzzTarget FuzzSql;

#endif							/* QV_FUZZ_H */
