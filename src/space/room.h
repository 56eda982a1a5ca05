/*
 * room.h
 *		Memory of builds and maintenance.  What may be more than maintenance_work_mem is in a
 *		temporary file then, which is mapped.
 */
#ifndef QV_SPACE_ROOM_H
#define QV_SPACE_ROOM_H

#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "postmaster/autovacuum.h"
#include "storage/fd.h"
#include "storage/sharedfileset.h"

/* kB that this process may use for maintenance, as the server's own VACUUM has it. */
static inline int
QvMaintenanceWorkMem(void)
{
	return AmAutoVacuumWorkerProcess() && autovacuum_work_mem != -1 ? autovacuum_work_mem :
		maintenance_work_mem;
}

/* One piece of such memory.  It ends with the memory context that it was made in. */
typedef struct QvRoom
{
	void	   *memory;
	MemoryContext mapping;		/* ends the mapping; NULL: there is none */
	File		file;
} QvRoom;

/*
 * Makes size bytes: in memory if they are at most "most", otherwise in a file.  Their content
 * is undefined.  Raises an error if there is no space on disk, or if temp_file_limit is
 * exceeded.
 */
extern void *QvRoomMake(QvRoom *room, Size size, Size most);

/* Makes size bytes in a file of that name, which other participants of a build open. */
extern void *QvRoomMakeShared(QvRoom *room, SharedFileSet *files, const char *name, Size size);
extern void *QvRoomOpenShared(QvRoom *room, SharedFileSet *files, const char *name, Size size);

extern void QvRoomFree(QvRoom *room);

#endif							/* QV_SPACE_ROOM_H */
