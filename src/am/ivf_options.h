/*
 * ivf_options.h
 *		Settings and index options of the access methods on posting lists.
 */
#ifndef QV_AM_IVF_OPTIONS_H
#define QV_AM_IVF_OPTIONS_H

#include "postgres.h"

#include "am/scan_settings.h"
#include "ivf/ivf.h"

/* Options of ivfflat, with pgvector's ranges and defaults. */
#define IVFFLAT_MIN_LISTS 1
#define IVFFLAT_DEFAULT_LISTS 100
#define IVFFLAT_MAX_LISTS 32768

/* Whether searches read sketches rather than records. */
typedef enum Sketches
{
	SKETCHES_AUTO,				/* of indexes that memory is too short for */
	SKETCHES_ON,
	SKETCHES_OFF
} Sketches;

/* What one access method's settings say about a scan. */
typedef struct IvfScanSettings
{
	int			probes;			/* 0: by recall */
	double		recall;
	int			max_probes;		/* 0: all lists */
	bool		widen;			/* read more lists as more rows are taken */
	int			sketches;		/* a Sketches */
	ScanSettings shared;
} IvfScanSettings;

/*
 * What ivfflat.* and quiver.* and the index's options say of its scans, as of this
 * call (README.md, "Settings and options").
 */
extern const IvfScanSettings *IvfflatSettings(Relation index);
extern const IvfScanSettings *QuiverIvfSettings(Relation index);

typedef const IvfScanSettings *(*IvfSettingsOf) (Relation index);

/* Define the settings and options; once, at load. ivfflat_too: see QvMayDefineAtLoad(). */
extern void IvfDefineOptions(bool ivfflat_too);

/* Define ivfflat.*, if that is left to do and possible: see HnswDefineSettings. */
extern void IvfflatDefineSettings(void);

extern bytea *IvfflatAmOptions(Datum reloptions, bool validate);
extern void IvfflatGetOptions(const bytea *set, IvfOptions *options);
extern bytea *QuiverIvfAmOptions(Datum reloptions, bool validate);
extern void QuiverIvfGetOptions(const bytea *set, IvfOptions *options);

#endif							/* QV_AM_IVF_OPTIONS_H */
