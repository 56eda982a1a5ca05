/*
 * pages.c
 *		Target "pages": valid pages of indexes with mutated fields.
 *
 * Input: which index (1 byte), four steps (2), settings (1), then mutations
 * of 11 bytes: what (1), page (2), field (1), place (2), value (1), number (4). They are
 * made in shared buffers, steps run, and the pages are put back. Under the address
 * sanitizer each page of an index is followed, in memory, by one that may not be read.
 */
#include "fuzz.h"

#include <math.h>

#include "access/genam.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/storage.h"
#include "executor/spi.h"
#include "graph/page/format.h"
#include "ivf/codec/format.h"
#include "pages/page.h"
#include "storage/freespace.h"
#include "storage/indexfsm.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define GUARDED
#endif
#endif

#define MAX_KINDS 32
#define MAX_MUTATIONS 24
#define ROWS 4					/* to be inserted */

typedef struct Kind
{
	char		name[NAMEDATALEN];
	Oid			index;
	Oid			table;
	char	   *operator;
	char	   *query;
	BlockNumber blocks;
	char	   *image;
	/* of its metapage, as it should be */
	bool		graph;
	GraphMetaData gm;
	IvfMetaData im;
	Datum		values[ROWS];
	ItemPointerData tids[ROWS];
} Kind;

static Kind kinds[MAX_KINDS];
static int	nkinds = 0;

/* ---- fields ---- */

typedef struct Field
{
	uint16		offset;
	uint16		size;
} Field;

#define F(type, field) {offsetof(type, field), sizeof(((type *) NULL)->field)}

static const Field header_fields[] = {
	{offsetof(PageHeaderData, pd_lower), 2}, {offsetof(PageHeaderData, pd_upper), 2},
	{offsetof(PageHeaderData, pd_special), 2}, {offsetof(PageHeaderData, pd_pagesize_version), 2},
	{24, 2}, {26, 1}, {27, 1}, {28, 4}, {28, 4}, {28, 4}
};
static const Field graph_meta[] = {
	F(GraphMetaData, magic), F(GraphMetaData, version), F(GraphMetaData, dims),
	F(GraphMetaData, pdim), F(GraphMetaData, form), F(GraphMetaData, space),
	F(GraphMetaData, metric), F(GraphMetaData, own_bits), F(GraphMetaData, m),
	F(GraphMetaData, ef_construction), F(GraphMetaData, degree), F(GraphMetaData, code_bits),
	F(GraphMetaData, entry_bits), F(GraphMetaData, nodes_per_page), F(GraphMetaData, node_size),
	F(GraphMetaData, value_size), F(GraphMetaData, seed), F(GraphMetaData, build_id),
	F(GraphMetaData, mean_block), F(GraphMetaData, entry_head), F(GraphMetaData, entry_tail),
	F(GraphMetaData, entry_count), F(GraphMetaData, entry_version), F(GraphMetaData, insert_block),
	F(GraphMetaData, value_block), F(GraphMetaData, reached_rows), F(GraphMetaData, live_nodes),
	F(GraphMetaData, tuples), F(GraphMetaData, pool_slope), F(GraphMetaData, pool_extra),
	F(GraphMetaData, pool_nodes), F(GraphMetaData, recall_pools[0]), F(GraphMetaData, recall_pools[2]),
	F(GraphMetaData, recall_pools[4])
};
static const Field ivf_meta[] = {
	F(IvfMetaData, magic), F(IvfMetaData, version), F(IvfMetaData, dims), F(IvfMetaData, pdim),
	F(IvfMetaData, form), F(IvfMetaData, space), F(IvfMetaData, metric), F(IvfMetaData, bits),
	F(IvfMetaData, centroid_bits), F(IvfMetaData, flags), F(IvfMetaData, scan_bits),
	F(IvfMetaData, batches_per_page), F(IvfMetaData, records_per_page),
	F(IvfMetaData, entries_per_page), F(IvfMetaData, sketches_per_page),
	F(IvfMetaData, record_size), F(IvfMetaData, entry_size), F(IvfMetaData, value_size),
	F(IvfMetaData, max_lists), F(IvfMetaData, seed), F(IvfMetaData, build_id),
	F(IvfMetaData, mean_block), F(IvfMetaData, list_head), F(IvfMetaData, list_tail),
	F(IvfMetaData, lists), F(IvfMetaData, tops), F(IvfMetaData, version_lists),
	F(IvfMetaData, tuples), F(IvfMetaData, measured_lists), F(IvfMetaData, probes[0]),
	F(IvfMetaData, probes[2]), F(IvfMetaData, probes[4])
};
static const Field node_fields[] = {
	F(GraphNodeData, state), F(GraphNodeData, ntids), F(GraphNodeData, overflow),
	F(GraphNodeData, norm2), F(GraphNodeData, scale), F(GraphNodeData, residual),
	F(GraphNodeData, aux), F(GraphNodeData, a_scale), F(GraphNodeData, b_scale),
	/* of a slot of heap TIDs */
	F(GraphTidsData, ntids), F(GraphTidsData, next), F(GraphTidsData, owner)
};
static const Field batch_fields[] = {F(GraphEntryBatch, count), F(GraphEntryBatch, unused)};
static const Field value_page_fields[] = {
	F(GraphValuePageData, lines), F(GraphValuePageData, upper), F(GraphValuePageData, live),
	F(GraphValuePageData, listed)
};
static const Field line_fields[] = {F(GraphValueLine, offset), F(GraphValueLine, size)};
static const Field piece_fields[] = {
	F(GraphPieceData, stamp), F(GraphPieceData, rest), F(GraphPieceData, next),
	F(GraphPieceData, next_line), {sizeof(GraphPieceData), 4}
};
static const Field ref_fields[] = {
	F(GraphValueRef, block), F(GraphValueRef, stamp), F(GraphValueRef, size), F(GraphValueRef, line)
};
static const Field directory_fields[] = {
	F(IvfDirectoryData, first), F(IvfDirectoryData, count), F(IvfDirectoryData, version),
	F(IvfDirectoryData, unused)
};
static const Field entry_fields[] = {
	F(IvfEntryData, head), F(IvfEntryData, tail), F(IvfEntryData, generation),
	F(IvfEntryData, parent), F(IvfEntryData, rows), F(IvfEntryData, scale),
	F(IvfEntryData, norm2), F(IvfEntryData, refused), {sizeof(IvfEntryData), 4}
};
static const Field list_page_fields[] = {
	F(IvfListPageData, list), F(IvfListPageData, generation), F(IvfListPageData, number),
	F(IvfListPageData, count), F(IvfListPageData, dead), F(IvfListPageData, a_scale),
	F(IvfListPageData, b_scale)
};
static const Field item_page_fields[] = {
	F(IvfItemPageData, list), F(IvfItemPageData, generation), F(IvfItemPageData, number),
	F(IvfItemPageData, unused)
};
static const Field record_fields[] = {
	F(IvfRecordData, scale), F(IvfRecordData, add), F(IvfRecordData, error),
	{offsetof(IvfRecordData, tid), 4}, {offsetof(IvfRecordData, tid) + 4, 2}, {sizeof(IvfRecordData), 4}
};
static const Field sketch_fields[] = {
	F(IvfSketchData, a), F(IvfSketchData, b), F(IvfSketchData, spread),
	{offsetof(IvfSketchData, tid), 4}, {offsetof(IvfSketchData, tid) + 4, 2}, {sizeof(IvfSketchData), 4}
};

#define OF(fields, base) at((base), &(fields)[field % lengthof(fields)])

static Field
at(uint32 base, const Field *f)
{
	return (Field)
	{
		base + f->offset, f->size
	};
}

/* Number i of an array, from base on. */
static Field
element(uint32 base, uint32 i, uint32 size)
{
	return (Field)
	{
		base + i * size, size
	};
}

static Field
node_field(const Kind *kind, uint32 field, uint32 place)
{
	const GraphMetaData *m = &kind->gm;
	uint32		node = (place % m->nodes_per_page) * m->node_size;
	uint32		r = place / m->nodes_per_page % m->degree;
	uint32		ids = node + sizeof(GraphNodeData);
	bool		coded = m->form == QV_FORM_CODED;
	uint32		own = ids + m->degree * (coded ? 8 : 4);
	uint32		tid = r % GRAPH_INLINE_TIDS * sizeof(ItemPointerData);

	if (field < lengthof(node_fields))
		return OF(node_fields, node);
	switch (field % 8)
	{
		case 0:
		case 1:
			return element(ids, r, 4);
		case 2:
			return coded ? element(ids + m->degree * 4, r, 2) : OF(ref_fields, own);
		case 3:
			return coded ? element(ids + m->degree * 6, r, 2) : element(own, field / 8, 4);
		case 4:
			return element(node + offsetof(GraphNodeData, tids) + tid, 0, 4);
		case 5:
			return element(node + offsetof(GraphNodeData, tids) + tid + 4, 0, 2);
		case 6:
			return element(node + offsetof(GraphTidsData, tids) + tid, field / 8, 2);
		default:
			return element(own, r, 4);
	}
}

/* Lines that a page of values has room for. */
#define VALUE_LINES \
	((QV_PAGE_SPACE - offsetof(GraphValuePageData, line)) / sizeof(GraphValueLine))

/* A field in a page's content. */
static Field
choose_field(const Kind *kind, const char *page, uint32 field, uint32 place)
{
	const char *content = page + QV_PAGE_START;
	uint32		n;

	switch (((const QvPageHeaderData *) PageGetContents((Page) page))->kind)
	{
		case QV_PAGE_META:
			return kind->graph ? OF(graph_meta, 0) : OF(ivf_meta, 0);
		case QV_PAGE_NODES:
			return node_field(kind, field, place);
		case QV_PAGE_ENTRIES:
			{
				uint32		size = GraphEntryBatchSize(kind->gm.entry_bits);
				uint32		base = place / QV_BATCH % (QV_PAGE_SPACE / size) * size;

				switch (field % 5)
				{
					case 0:
						return at(base, &batch_fields[field / 5 % lengthof(batch_fields)]);
					case 1:
						return element(base + offsetof(GraphEntryBatch, ids), place % QV_BATCH, 4);
					case 2:
						return element(base + offsetof(GraphEntryBatch, a), place % QV_BATCH, 4);
					case 3:
						return element(base + offsetof(GraphEntryBatch, b), place % QV_BATCH, 4);
					default:
						return element(base + offsetof(GraphEntryBatch, codes), 0, 4);
				}
			}
		case QV_PAGE_VALUES:
			{
				const GraphValuePageData *vp = (const GraphValuePageData *) content;

				if (field < 8)
					return OF(value_page_fields, 0);
				/* the number may have been changed before */
				n = place % Min(Max(vp->lines, 1), VALUE_LINES);
				if (field < 16)
					return OF(line_fields, offsetof(GraphValuePageData, line) + n * sizeof(GraphValueLine));
				return OF(piece_fields, vp->line[n].offset);
			}
		case QV_PAGE_LISTS:
			if (field < 8)
				return OF(directory_fields, 0);
			return OF(entry_fields, sizeof(IvfDirectoryData) +
					  place % kind->im.entries_per_page * kind->im.entry_size);
		case QV_PAGE_CODES:
			if (field < 16)
				return OF(list_page_fields, 0);
			if (field < 24)
				return element(offsetof(IvfListPageData, item_pages), place % 8, 4);
			if (field < 48)
				return element(sizeof(IvfListPageData), place % 500, 2);
			break;
		case QV_PAGE_RECORDS:
			if (field < 8)
				return OF(item_page_fields, 0);
			return OF(record_fields, sizeof(IvfItemPageData) +
					  place % Max(kind->im.records_per_page, 1) * kind->im.record_size);
		case QV_PAGE_SKETCHES:
			if (field < 8)
				return OF(item_page_fields, 0);
			n = (QV_PAGE_SPACE - sizeof(IvfItemPageData)) / Max(kind->im.sketches_per_page, 1);
			return OF(sketch_fields, sizeof(IvfItemPageData) + place % Max(kind->im.sketches_per_page, 1) * n);
		default:
			break;
	}
	return (Field)
	{
		place % QV_PAGE_SPACE, 1 << field % 3
	};
}

/* ---- changing pages ---- */

static void
new_value(uint8 *to, int size, uint32 selector, uint32 number, const Kind *kind, BlockNumber block,
		  const uint8 *other)
{
	uint64		old = 0,
				v;
	bool		half = size == 2;

	memcpy(&old, to, size);
	switch (selector % 20)
	{
		case 0:
			v = 0;
			break;
		case 1:
			v = ~UINT64CONST(0);
			break;
		case 2:
			v = half ? 0x7e00 : UINT64CONST(0x7ff800007fc00000);	/* NaN */
			break;
		case 3:
			v = half ? 0x7c00 : UINT64CONST(0x7ff000007f800000);	/* infinity */
			break;
		case 4:
			v = half ? 0xfc00 : UINT64CONST(0xfff00000ff800000);
			break;
		case 5:
			v = half ? 0x7bff : UINT64CONST(0x7fe000007149f2ca);	/* 1e30 */
			break;
		case 6:
			v = half ? 0xfbff : UINT64CONST(0xffe00000f149f2ca);
			break;
		case 7:
			v = old + 1;
			break;
		case 8:
			v = old - 1;
			break;
		case 9:
			v = block;
			break;
		case 10:
			v = number % kind->blocks;
			break;
		case 11:
			v = kind->blocks;
			break;
		case 12:
			v = number;
			break;
		case 13:
			v = old ^ UINT64CONST(1) << number % (size * 8);
			break;
		case 14:
			memcpy(to, other, size);
			return;
		case 15:
			v = old ^ UINT64CONST(1) << (size * 8 - 1);
			break;
		case 16:
			v = 0x7fffffff;
			break;
		case 17:
			v = number % 300;
			break;
		case 18:
			v = old * 2;
			break;
		default:
			v = old + (int32) number % 64;
	}
	memcpy(to, &v, size);
}

/* Like memcpy(), but for a page in shared buffers. */
static void
put_page(Relation index, BlockNumber block, const char *image)
{
	Buffer		buf = ReadBuffer(index, block);

	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	if (memcmp(BufferGetPage(buf), image, BLCKSZ) != 0)
		memcpy(BufferGetPage(buf), image, BLCKSZ);
	UnlockReleaseBuffer(buf);
}

/* Which page: of a kind (the upper bits), or any. */
static BlockNumber
choose_block(const Kind *kind, uint32 page)
{
	uint32		wanted = page >> 12;
	uint32		n = 0;

	for (int pass = 0; pass < 2; pass++)
	{
		uint32		i = 0;

		for (BlockNumber b = 0; b < kind->blocks; b++)
		{
			const char *p = kind->image + (Size) b * BLCKSZ;

			if (((QvPageHeader) PageGetContents((Page) p))->kind != wanted)
				continue;
			if (pass == 1 && i == (page & 0xfff) % n)
				return b;
			i++;
		}
		n = i;
		if (n == 0)
			break;
	}
	return (page & 0xfff) % kind->blocks;
}

static void
mutate(const Kind *kind, Relation index, char *image, FuzzInput *in)
{
	uint32		what = FuzzByte(in);
	BlockNumber block = choose_block(kind, FuzzU16(in));
	uint32		field = FuzzByte(in);
	uint32		place = FuzzU16(in);
	uint32		selector = FuzzByte(in);
	uint32		number = FuzzU32(in);
	char	   *page = image + (Size) block * BLCKSZ;
	const char *other = kind->image + (Size) (number % kind->blocks) * BLCKSZ;
	int			times = 1;

	switch (what)
	{
		case 255:
			memset(page, 0, BLCKSZ);
			return;
		case 254:
			memcpy(page, other, BLCKSZ);
			return;
		case 253:
			/* the free space map is not logged: it may say anything */
			RecordFreeIndexPage(index, number % (kind->blocks + 2));
			IndexFreeSpaceMapVacuum(index);
			return;
		case 252:
			RecordFreeIndexPage(index, block);
			IndexFreeSpaceMapVacuum(index);
			return;
	}
	if (what & 0x80)
	{
		const Field *f = &header_fields[field % lengthof(header_fields)];

		new_value((uint8 *) page + f->offset, f->size, selector, number, kind, block,
				  (const uint8 *) other + f->offset);
		return;
	}
	/* one place, or many, so that whoever comes by meets it */
	if (what & 0x40)
		times = 64;
	for (int i = 0; i < times; i++)
	{
		Field		f = choose_field(kind, page, field, place + i);

		if (f.offset + f.size <= QV_PAGE_SPACE)
			new_value((uint8 *) page + QV_PAGE_START + f.offset, f.size, selector, number, kind, block,
					  (const uint8 *) other + QV_PAGE_START + f.offset);
	}
}

/* ---- steps ---- */

typedef struct Step
{
	Kind	   *kind;
	uint32		settings;
	const char *sql;			/* with %s: the index; or NULL */
	int			rows;			/* of sql, at most; distances in its second
								 * column */
	bool		mutated;
	uint32		salt;
} Step;

static void
set_local(const char *name, const char *value)
{
	set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

static void
use_settings(uint32 settings)
{
	if (settings & 1)
		set_local("quiver.topk_scan", "off");
	if (settings & 2)
		set_local("quiver.sketches", "on");
	if (settings & 4)
	{
		set_local("quiver.iterative_scan", "relaxed_order");
		set_local("hnsw.iterative_scan", "relaxed_order");
		set_local("ivfflat.iterative_scan", "relaxed_order");
	}
	if (settings & 8)
	{
		set_local("quiver.recall", "1");
		set_local("ivfflat.probes", "1000");
		set_local("hnsw.ef_search", "1000");
	}
	if (settings & 16)
		set_local("work_mem", "64");
	if (settings & 32)
		set_local("quiver.ef_search", "3");
	if (settings & 64)
		set_local("quiver.sketches", "off");
}

static void
statement(void *arg)
{
	Step	   *s = arg;
	double		last = -INFINITY;

	use_settings(s->settings);
	SPI_execute(s->sql, false, 0);
	if (s->rows == 0)
		return;
	if (SPI_processed > s->rows)
		FuzzFinding("%s: " UINT64_FORMAT " rows", s->sql, SPI_processed);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		null;
		double		d = DatumGetFloat8(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 2, &null));

		/*
		 * Exact ones, of the table: a top-k scan sorts them whatever the
		 * index says, a plain scan believes its bounds.
		 */
		if (!(s->settings & 4) && !(s->mutated && s->settings & 1) && !null && d < last)
			FuzzFinding("%s: %g after %g", s->sql, d, last);
		if (!null)
			last = d;
	}
}

static void
insert(void *arg)
{
	Step	   *s = arg;
	Relation	table,
				index;
	IndexInfo  *info;

	PushActiveSnapshot(GetTransactionSnapshot());
	table = table_open(s->kind->table, RowExclusiveLock);
	index = index_open(s->kind->index, RowExclusiveLock);
	info = BuildIndexInfo(index);
	for (int i = 0; i < ROWS; i++)
	{
		Datum		value = s->kind->values[(i + s->salt) % ROWS];
		bool		null = false;

		index_insert(index, &value, &null, &s->kind->tids[i], table, UNIQUE_CHECK_NO, false, info);
	}
#if PG_VERSION_NUM >= 170000
	index_insert_cleanup(index, info);
#endif
	index_close(index, NoLock);
	table_close(table, NoLock);
}

static bool
is_dead(ItemPointer tid, void *state)
{
	return (ItemPointerGetBlockNumberNoCheck(tid) * 7 + ItemPointerGetOffsetNumberNoCheck(tid)) % 3 == *(uint32 *) state % 3;
}

static void
vacuum_index(void *arg)
{
	Step	   *s = arg;
	Relation	table,
				index;
	IndexVacuumInfo info = {0};
	IndexBulkDeleteResult *result;

	PushActiveSnapshot(GetTransactionSnapshot());
	table = table_open(s->kind->table, ShareUpdateExclusiveLock);
	index = index_open(s->kind->index, RowExclusiveLock);
	info.index = index;
#if PG_VERSION_NUM >= 160000
	info.heaprel = table;
#endif
	info.estimated_count = true;
	info.message_level = DEBUG2;
	info.num_heap_tuples = 100;
	info.strategy = GetAccessStrategy(BAS_VACUUM);
	result = index_bulk_delete(&info, NULL, is_dead, &s->salt);
	index_vacuum_cleanup(&info, result);
	index_close(index, NoLock);
	table_close(table, NoLock);
}

/* ---- begin and run ---- */

/*
 * Read the pages of the index; the buffer after each is one of table fuzz_pad
 * that nobody reads later.
 */
static void
take_image(Kind *kind, Oid pad_table)
{
	Relation	index = index_open(kind->index, AccessShareLock);
	int			guarded = 0;

#ifdef GUARDED
	static BlockNumber pad = 0;
	Relation	pads = table_open(pad_table, AccessShareLock);
	BlockNumber npads = RelationGetNumberOfBlocks(pads);
#endif

	kind->blocks = RelationGetNumberOfBlocks(index);
	kind->image = MemoryContextAllocHuge(TopMemoryContext, (Size) kind->blocks * BLCKSZ);
	for (BlockNumber b = 0; b < kind->blocks; b++)
	{
		Buffer		buf = ReadBuffer(index, b);
#ifdef GUARDED
		if (pad < npads)
		{
			Buffer		guard = ReadBuffer(pads, pad++);

			if (guard == buf + 1)
			{
				ASAN_POISON_MEMORY_REGION(BufferGetPage(guard), BLCKSZ);
				guarded++;
			}
			ReleaseBuffer(guard);
		}
#endif
		memcpy(kind->image + (Size) b * BLCKSZ, BufferGetPage(buf), BLCKSZ);
		ReleaseBuffer(buf);
	}
	memcpy(&kind->gm, kind->image + QV_PAGE_START, sizeof(kind->gm));
	memcpy(&kind->im, kind->image + QV_PAGE_START, sizeof(kind->im));
	kind->graph = kind->gm.magic == GRAPH_META_MAGIC;
	if (!kind->graph && kind->im.magic != IVF_META_MAGIC)
		elog(ERROR, "%s has no metapage", kind->name);
#ifdef GUARDED
	fprintf(stderr, "%s: %u pages, %d guarded\n", kind->name, kind->blocks, guarded);
	table_close(pads, AccessShareLock);
#else
	(void) guarded;
	(void) pad_table;
#endif
	index_close(index, AccessShareLock);
}

static Datum
column(uint64 row, int number)
{
	bool		null;
	Datum		d = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, number, &null);

	if (null)
		elog(ERROR, "a column of fuzz_kinds is null");
	return d;
}

static char *
text_column(uint64 row, int number)
{
	return MemoryContextStrdup(TopMemoryContext, TextDatumGetCString(column(row, number)));
}

static void
begin(void)
{
	char	   *values[MAX_KINDS];
	Oid			pad_table = InvalidOid;

	if (SPI_execute("SELECT name, name_idx::oid, name_table::oid, operator, query, samples, 'fuzz_pad'::regclass::oid "
					"FROM fuzz_kinds ORDER BY id", true, 0) != SPI_OK_SELECT || SPI_processed == 0 || SPI_processed > MAX_KINDS)
		elog(ERROR, "no table fuzz_kinds: see setup.sql");
	nkinds = SPI_processed;
	for (int i = 0; i < nkinds; i++)
	{
		snprintf(kinds[i].name, NAMEDATALEN, "%s", text_column(i, 1));
		kinds[i].index = DatumGetObjectId(column(i, 2));
		kinds[i].table = DatumGetObjectId(column(i, 3));
		kinds[i].operator = text_column(i, 4);
		kinds[i].query = text_column(i, 5);
		values[i] = text_column(i, 6);
		pad_table = DatumGetObjectId(column(i, 7));
	}
	for (int i = 0; i < nkinds; i++)
		take_image(&kinds[i], pad_table);
	for (int i = 0; i < nkinds; i++)
	{
		/* rows of the table with values to insert */
		if (SPI_execute(values[i], true, 0) != SPI_OK_SELECT || SPI_processed != ROWS)
			elog(ERROR, "not %d rows: %s", ROWS, values[i]);
		for (int j = 0; j < ROWS; j++)
		{
			MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

			kinds[i].tids[j] = *(ItemPointer) DatumGetPointer(column(j, 1));
			kinds[i].values[j] = datumCopy(column(j, 2), false, -1);
			MemoryContextSwitchTo(old);
		}
	}
}

static void
put_image(Relation index, BlockNumber blocks, const char *image)
{
	for (BlockNumber b = 0; b < blocks; b++)
		put_page(index, b, image + (Size) b * BLCKSZ);
	/* what backends keep of the index is of the old pages */
	CacheInvalidateRelcache(index);
	CommandCounterIncrement();
}

/* All is as it was. */
static void
restore(const Kind *kind, bool use_map)
{
	Relation	index = index_open(kind->index, AccessExclusiveLock);

	if (RelationGetNumberOfBlocks(index) > kind->blocks)
		RelationTruncate(index, kind->blocks);
	if (use_map)
	{
		for (BlockNumber b = 0; b < kind->blocks + 2; b++)
			RecordUsedIndexPage(index, b);
		IndexFreeSpaceMapVacuum(index);
	}
	put_image(index, kind->blocks, kind->image);
	index_close(index, AccessExclusiveLock);
}

/* Steps: four bits each. */
enum
{
	STEP_NEAREST, STEP_ALL_ROWS, STEP_FILTERED, STEP_CHECK, STEP_INFO, STEP_STATE, STEP_PREWARM, STEP_ESTIMATE, STEP_RECALL, STEP_INSERT, STEP_VACUUM, STEP_INSERT_AGAIN,
	STEP_VACUUM_AGAIN, STEP_LOOK_AGAIN, STEP_REINDEX, STEP_PLAN
};

static void
run(FuzzInput *in)
{
	Kind	   *kind = &kinds[FuzzByte(in) % nkinds];
	uint32		steps = FuzzU16(in);
	uint32		settings = FuzzByte(in);
	Step		s = {.kind = kind, .settings = settings, .salt = steps};
	char	   *image = palloc((Size) kind->blocks * BLCKSZ);
	char	   *nearest = psprintf("SELECT id, (v %s %s)::float8 AS d FROM %s ", kind->operator, kind->query, kind->name);
	Relation	index = index_open(kind->index, AccessExclusiveLock);

	memcpy(image, kind->image, (Size) kind->blocks * BLCKSZ);
	s.mutated = in->left > 0;
	for (int i = 0; i < MAX_MUTATIONS && in->left > 0; i++)
		mutate(kind, index, image, in);
	put_image(index, kind->blocks, image);
	index_close(index, NoLock);

	for (int i = 0; i < 4; i++)
	{
		s.sql = NULL;
		s.rows = 0;
		switch (steps >> (4 * i) & 15)
		{
			case STEP_NEAREST:
				s.sql = psprintf("%s ORDER BY v %s %s LIMIT 7", nearest, kind->operator, kind->query);
				s.rows = 7;
				break;
			case STEP_ALL_ROWS:
				s.sql = psprintf("%s ORDER BY v %s %s", nearest, kind->operator, kind->query);
				s.rows = INT_MAX;
				break;
			case STEP_FILTERED:
				s.sql = psprintf("%s WHERE id %% 7 = 3 ORDER BY v %s %s LIMIT 20", nearest, kind->operator, kind->query);
				s.rows = 20;
				break;
			case STEP_CHECK:
				s.sql = psprintf("SELECT quiver_check('%s_idx')", kind->name);
				break;
			case STEP_INFO:
				s.sql = psprintf("SELECT * FROM quiver_index_info('%s_idx')", kind->name);
				break;
			case STEP_STATE:
				s.sql = psprintf("SELECT * FROM quiver_indexes WHERE index_name = '%s_idx'", kind->name);
				break;
			case STEP_PREWARM:
				s.sql = psprintf("SELECT quiver_prewarm('%s_idx')", kind->name);
				break;
			case STEP_ESTIMATE:
				s.sql = psprintf("SELECT * FROM quiver_estimate('%s_idx')", kind->name);
				break;
			case STEP_RECALL:
				s.sql = psprintf("SELECT * FROM quiver_recall('%s_idx', 3, 4)", kind->name);
				break;
			case STEP_INSERT:
			case STEP_INSERT_AGAIN:
				FuzzTry(insert, &s, "insert");
				continue;
			case STEP_VACUUM:
			case STEP_VACUUM_AGAIN:
				FuzzTry(vacuum_index, &s, "vacuum");
				s.salt++;
				continue;
			case STEP_LOOK_AGAIN:
				s.sql = psprintf("SELECT quiver_check('%s_idx'), count(*) FROM (%s ORDER BY v %s %s LIMIT 100) x",
								 kind->name, nearest, kind->operator, kind->query);
				break;
			case STEP_REINDEX:
				s.sql = psprintf("REINDEX INDEX %s_idx", kind->name);
				break;
			case STEP_PLAN:
				s.sql = psprintf("EXPLAIN ANALYZE %s ORDER BY v %s %s LIMIT 7", nearest, kind->operator, kind->query);
				break;
		}
		FuzzTry(statement, &s, s.sql);
	}
	/* nothing of this transaction's is open here */
	restore(kind, true);
}

const FuzzTarget FuzzPages = {"pages", begin, run};
