/*
 * page.c
 *		Initializing and checking index pages.
 */
#include "postgres.h"

#include "pages/page.h"

void
QvPageInit(Page page, QvPageKind kind)
{
	QvPageHeader header;

	PageInit(page, BLCKSZ, 0);
	header = QvPageGetHeader(page);
	header->magic = QV_PAGE_MAGIC;
	header->kind = kind;
	header->version = QV_PAGE_VERSION;
	header->next = kind == QV_PAGE_META ? 0 : InvalidBlockNumber;

	/*
	 * no hole: a build fills the page in place, and a later commit sets a
	 * hole (write.c)
	 */
	((PageHeader) page)->pd_lower = BLCKSZ;
}

void
QvReportCorruption(Relation index, BlockNumber block, const char *detail,...)
{
	StringInfoData buf;
	va_list		args;

	initStringInfo(&buf);
	for (;;)
	{
		int			needed;

		va_start(args, detail);
		needed = appendStringInfoVA(&buf, detail, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&buf, needed);
	}
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is damaged at block %u",
					RelationGetRelationName(index), block),
			 errdetail_internal("%s", buf.data),
			 errhint("Please REINDEX it.")));
	pg_unreachable();
}

void
QvPageCheck(Relation index, BlockNumber block, Page page, QvPageKind kind)
{
	static const char *const names[QV_PAGE_KINDS] = {
		[QV_PAGE_META] = "meta",
		[QV_PAGE_FLOATS] = "float array",
		[QV_PAGE_ENTRIES] = "entry points",
		[QV_PAGE_NODES] = "node",
		[QV_PAGE_VALUES] = "value",
		[QV_PAGE_LISTS] = "list directory",
		[QV_PAGE_CODES] = "posting list",
		[QV_PAGE_RECORDS] = "record",
		[QV_PAGE_FREE] = "free",
		[QV_PAGE_SKETCHES] = "sketch",
		[QV_PAGE_ROWS] = "row",
		[QV_PAGE_ROW_DIRECTORY] = "row directory",
	};

	if (likely(QvPageIs(page, kind)))
		return;
	if (PageIsNew(page))
		QvReportCorruption(index, block, "The page is empty where a %s page is expected.",
						   names[kind]);
	QvReportCorruption(index, block, "The page is not a %s page of this version.",
					   names[kind]);
}
