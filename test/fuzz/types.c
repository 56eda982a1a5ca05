/*
 * types.c
 *		Target "types": text, binary and typmod input of all types, and casts
 *		from arrays.
 *
 * Input: type and way (1 byte), typmod (1, or 5), then text, bytes, or elements.
 * A value that was accepted must survive output and input, and every function of
 * one or two such values may be called with it.
 */
#include "fuzz.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#define TYPES 3
#define MAX_FUNCTIONS 100

typedef struct Function
{
	FmgrInfo	info;
	Oid			result;
	int			nargs;			/* 1 or 2 values, or 3: value, typmod,
								 * explicit */
} Function;

typedef struct Type
{
	Oid			oid;
	Oid			io_param;
	FmgrInfo	in,
				out,
				recv,
				send,
				typmod_in;
	FmgrInfo	from_array[4];	/* by element_types */
	int			nfunctions;
	Function	functions[MAX_FUNCTIONS];
} Type;

static const char *const names[TYPES] = {"vector", "halfvec", "sparsevec"};
static const Oid element_types[] = {INT4OID, FLOAT4OID, FLOAT8OID, NUMERICOID};
static Type types[TYPES];

static Oid
looked_up(const char *query, const char *name)
{
	bool		null;
	char	   *sql = psprintf(query, name);

	if (SPI_execute(sql, true, 1) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "no row: %s", sql);
	return DatumGetObjectId(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &null));
}

static void
begin(void)
{
	for (int t = 0; t < TYPES; t++)
	{
		Type	   *type = &types[t];
		Oid			oid,
					param;
		bool		varlena;

		type->oid = looked_up("SELECT '%s'::regtype::oid", names[t]);
		getTypeInputInfo(type->oid, &oid, &type->io_param);
		fmgr_info_cxt(oid, &type->in, TopMemoryContext);
		getTypeOutputInfo(type->oid, &oid, &varlena);
		fmgr_info_cxt(oid, &type->out, TopMemoryContext);
		getTypeBinaryInputInfo(type->oid, &oid, &param);
		fmgr_info_cxt(oid, &type->recv, TopMemoryContext);
		getTypeBinaryOutputInfo(type->oid, &oid, &varlena);
		fmgr_info_cxt(oid, &type->send, TopMemoryContext);
		oid = looked_up("SELECT typmodin::oid FROM pg_type WHERE oid = '%s'::regtype", names[t]);
		fmgr_info_cxt(oid, &type->typmod_in, TopMemoryContext);
		for (int e = 0; e < lengthof(element_types); e++)
		{
			char	   *of = psprintf("%s[],int,boolean)'::regprocedure::oid", format_type_be(element_types[e]));

			oid = looked_up(psprintf("SELECT 'array_to_%%s(%s", of), names[t]);
			fmgr_info_cxt(oid, &type->from_array[e], TopMemoryContext);
		}
		if (SPI_execute(psprintf("SELECT p.oid, p.prorettype, p.pronargs::int4 FROM pg_proc p WHERE p.prokind = 'f' AND "
								 "p.prorettype NOT IN ('cstring'::regtype, 'internal'::regtype) AND "
								 "(p.proargtypes::oid[] <@ ARRAY['%s'::regtype::oid] AND p.pronargs BETWEEN 1 AND 2 OR "
								 "p.proargtypes::text = (SELECT oid::text || ' 23 16' FROM pg_type WHERE oid = '%s'::regtype)) "
								 "ORDER BY 1", names[t], names[t]), true, 0) != SPI_OK_SELECT || SPI_processed > MAX_FUNCTIONS)
			elog(ERROR, "could not list the functions");
		for (int i = 0; i < SPI_processed; i++)
		{
			Function   *f = &type->functions[i];
			HeapTuple	row = SPI_tuptable->vals[i];
			bool		null;

			fmgr_info_cxt(DatumGetObjectId(SPI_getbinval(row, SPI_tuptable->tupdesc, 1, &null)),
						  &f->info, TopMemoryContext);
			f->result = DatumGetObjectId(SPI_getbinval(row, SPI_tuptable->tupdesc, 2, &null));
			f->nargs = DatumGetInt32(SPI_getbinval(row, SPI_tuptable->tupdesc, 3, &null));
		}
		type->nfunctions = SPI_processed;
		if (type->nfunctions < 10)
			elog(ERROR, "only %d functions of %s", type->nfunctions, names[t]);
	}
}

typedef struct Case
{
	const Type *type;
	int			way;
	int32		typmod;
	FuzzInput	in;
	int			nvalues;
	Datum		values[2];
	/* of a function to call */
	const Function *function;
	Datum		first,
				second;
} Case;

/* Text, up to a newline or the end. */
static char *
line(FuzzInput *in)
{
	StringInfoData s;
	uint32		c;

	initStringInfo(&s);
	while (in->left > 0 && (c = FuzzByte(in)) != '\n' && c != 0)
		appendStringInfoCharMacro(&s, c);
	return s.data;
}

static void
text_values(void *arg)
{
	Case	   *c = arg;

	while (c->nvalues < 2 && c->in.left > 0)
		c->values[c->nvalues++] = InputFunctionCall(unconstify(FmgrInfo *, &c->type->in), line(&c->in),
													c->type->io_param, c->typmod);
}

static void
binary_values(void *arg)
{
	Case	   *c = arg;
	StringInfoData s;

	/* receive functions see a copy that ends where the message does */
	s.data = palloc(c->in.left + 1);
	memcpy(s.data, c->in.data, c->in.left);
	s.data[c->in.left] = '\0';
	s.len = s.maxlen = c->in.left;
	s.cursor = 0;
	while (c->nvalues < 2 && s.cursor < s.len)
		c->values[c->nvalues++] = ReceiveFunctionCall(unconstify(FmgrInfo *, &c->type->recv), &s,
													  c->type->io_param, c->typmod);
}

static void
array_values(void *arg)
{
	Case	   *c = arg;
	uint32		how = FuzzByte(&c->in);
	int			e = how & 3;
	int			ndims = how >> 2 & 3;
	bool		with_nulls = (how & 0x10) != 0;
	int			dims[3],
				lower[3],
				n = 1;
	int16		length;
	bool		byval;
	char		align;
	Datum	   *elements;
	bool	   *nulls;
	ArrayType  *array;

	for (int i = 0; i < ndims; i++)
	{
		dims[i] = ndims == 1 && (how & 0x20) ? FuzzU16(&c->in) % 17000 : FuzzByte(&c->in) % 12;
		lower[i] = (int) FuzzByte(&c->in) - 100;
		n *= dims[i];
	}
	elements = palloc0(sizeof(Datum) * (n + 1));
	nulls = palloc0(n + 1);
	for (int i = 0; i < n; i++)
	{
		uint32		bits = FuzzU32(&c->in);
		float4		f4;
		float8		f8;
		uint64 bits8;

		memcpy(&f4, &bits, 4);
		nulls[i] = with_nulls && bits % 5 == 0;
		switch (element_types[e])
		{
			case INT4OID:
				elements[i] = Int32GetDatum(bits);
				break;
			case FLOAT4OID:
				elements[i] = Float4GetDatum(f4);
				break;
			case FLOAT8OID:
				bits8 = (uint64) bits << 32 | bits;

				memcpy(&f8, &bits8, 8);
				elements[i] = Float8GetDatum(how & 0x40 ? f8 : (float8) f4);
				break;
			default:
				elements[i] = DirectFunctionCall3(numeric_in, CStringGetDatum(psprintf("%.9g", f4)),
												  ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
		}
	}
	get_typlenbyvalalign(element_types[e], &length, &byval, &align);
	array = construct_md_array(elements, nulls, ndims, dims, lower, element_types[e], length, byval, align);
	c->values[c->nvalues++] = FunctionCall3(unconstify(FmgrInfo *, &c->type->from_array[e]), PointerGetDatum(array),
											Int32GetDatum(c->typmod), BoolGetDatum(false));
}

static void
typmod_values(void *arg)
{
	Case	   *c = arg;
	Datum		parts[4];
	int			n = 0;
	ArrayType  *array;

	while (n < 4 && c->in.left > 0)
		parts[n++] = CStringGetDatum(line(&c->in));
	array = construct_array(parts, n, CSTRINGOID, -2, false, TYPALIGN_CHAR);
	c->typmod = DatumGetInt32(FunctionCall1(unconstify(FmgrInfo *, &c->type->typmod_in), PointerGetDatum(array)));
	if (c->typmod < 1)
		FuzzFinding("typmod %d", c->typmod);
}

static void
same_again(void *arg)
{
	Case	   *c = arg;

	for (int i = 0; i < c->nvalues; i++)
	{
		Datum		v = c->values[i];
		char	   *text = OutputFunctionCall(unconstify(FmgrInfo *, &c->type->out), v);
		bytea	   *bytes = SendFunctionCall(unconstify(FmgrInfo *, &c->type->send), v);
		StringInfoData s;

		if (!datumIsEqual(v, InputFunctionCall(unconstify(FmgrInfo *, &c->type->in), text,
											   c->type->io_param, c->typmod), false, -1))
			FuzzFinding("text of %s is another value's: %.200s", names[c->type - types], text);
		s.data = VARDATA(bytes);
		s.len = s.maxlen = VARSIZE(bytes) - VARHDRSZ;
		s.cursor = 0;
		if (!datumIsEqual(v, ReceiveFunctionCall(unconstify(FmgrInfo *, &c->type->recv), &s,
												 c->type->io_param, c->typmod), false, -1) || s.cursor != s.len)
			FuzzFinding("bytes of %s are another value's: %.200s", names[c->type - types], text);
	}
}

static void
call(void *arg)
{
	Case	   *c = arg;
	FmgrInfo   *info = unconstify(FmgrInfo *, &c->function->info);

	LOCAL_FCINFO(fcinfo, 3);
	Datum		result;

	InitFunctionCallInfoData(*fcinfo, info, c->function->nargs, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = c->first;
	fcinfo->args[1].value = c->function->nargs == 3 ? Int32GetDatum(c->typmod) : c->second;
	fcinfo->args[2].value = BoolGetDatum(true);
	for (int i = 0; i < 3; i++)
		fcinfo->args[i].isnull = false;
	result = FunctionCallInvoke(fcinfo);
	if (fcinfo->isnull)
		return;
	for (int t = 0; t < TYPES; t++)
		if (types[t].oid == c->function->result)
		{
			char	   *text = OutputFunctionCall(&types[t].out, result);

			/* what functions make must be a value, too */
			InputFunctionCall(&types[t].in, text, types[t].io_param, -1);
		}
}

static void
run(FuzzInput *in)
{
	static const FuzzStep ways[] = {text_values, binary_values, array_values, typmod_values};
	uint32		first = FuzzByte(in);
	uint32		typmod = FuzzByte(in);
	Case		c = {.type = &types[first % TYPES], .way = first / TYPES % lengthof(ways)};
	bool		good;

	c.typmod = typmod == 0 ? -1 : typmod == 255 ? (int32) FuzzU32(in) : (int32) typmod;
	c.in = *in;
	if (!FuzzTryPure(ways[c.way], &c, names[c.type - types]) || c.nvalues == 0)
		return;
	FuzzTryPure(same_again, &c, "output and input");

	for (int i = 0; i < c.type->nfunctions; i++)
	{
		c.function = &c.type->functions[i];
		c.first = c.values[0];
		c.second = c.values[c.nvalues - 1];
		good = FuzzTryPure(call, &c, "a function");
		if (good && c.nvalues == 2 && c.function->nargs == 2)
		{
			c.first = c.values[1];
			c.second = c.values[0];
			FuzzTryPure(call, &c, "a function, turned round");
		}
	}
}

const FuzzTarget FuzzTypes = {"types", begin, run};
