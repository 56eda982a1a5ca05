/*
 * layout.c
 *		Sizes of pages of posting lists; see layout.h.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/codec/coded.h"
#include "ivf/codec/layout.h"
#include "ivf/codec/plain.h"

/* Returns the codec of a form; NULL if there is none. */
static const IvfCodec *
codec_of(uint8 form)
{
	switch (form)
	{
		case QV_FORM_CODED:
			return &ivf_coded_codec;
		case QV_FORM_PLAIN:
			return &ivf_plain_codec;
		default:
			return NULL;
	}
}

void
IvfChooseLayout(IvfMetaData *meta)
{
	codec_of(meta->form)->choose(meta);
}

bool
IvfLayoutFromMeta(IvfLayout *layout, const IvfMetaData *meta)
{
	if (!isfinite(meta->tuples) || meta->tuples < 0)
		return false;
	memset(layout, 0, sizeof(*layout));
	layout->codec = codec_of(meta->form);
	layout->space = meta->space;
	layout->dims = meta->dims;
	layout->pdim = meta->pdim;
	layout->entry_size = meta->entry_size;
	layout->entries_per_page = meta->entries_per_page;
	layout->value_size = meta->value_size;
	return layout->codec != NULL && meta->dims > 0 && meta->entries_per_page > 0 &&
		(Size) meta->entries_per_page * meta->entry_size <= IVF_ENTRY_SPACE &&
		(meta->flags & ~IVF_FLAGS) == 0 && meta->lists > 0 && meta->lists <= IVF_MAX_LISTS && meta->tops <= meta->lists &&
		layout->codec->derive(layout, meta);
}

uint32
IvfChooseLists(const IvfLayout *layout, double rows)
{
	double		root = sqrt(Max(1, rows));
	double		lists = Max(root, Min(IVF_LISTS_PER_ROOT * root, rows / layout->slots));

	return Max(1, Min(IVF_MAX_LISTS, rint(lists)));
}

double
IvfListLength(const IvfLayout *layout, double lists)
{
	double		most = IVF_LISTS_PER_ROOT * IVF_LISTS_PER_ROOT;

	/* n rows in r sqrt(n) lists are lists / r^2 rows for each list */
	return Max(lists / most, Min(lists, layout->slots));
}
