/*
 * room.c
 *		Memory of a build beyond maintenance_work_mem; see room.h.
 *
 * The file is filled before it is mapped.  A full disk is therefore an error of a write, and
 * not a signal when the memory is used.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "commands/tablespace.h"
#include "miscadmin.h"
#include "space/room.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

/* Bytes that are written at a time. */
#define ZEROS (256 * 1024)

typedef struct Mapping
{
	MemoryContextCallback end;
	void	   *memory;
	Size		size;
} Mapping;

static void
end_mapping(void *arg)
{
	Mapping    *mapping = arg;

	munmap(mapping->memory, mapping->size);
}

static void
fill_file(File file, Size size)
{
	char	   *zeros = palloc0(ZEROS);

	for (Size at = 0; at < size;)
	{
		int			n = Min(ZEROS, size - at);

		CHECK_FOR_INTERRUPTS();
		errno = 0;
		if (FileWrite(file, zeros, n, at, WAIT_EVENT_BUFFILE_WRITE) != n)
		{
			if (errno == 0)
				errno = ENOSPC;
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not write to temporary file \"%s\": %m", FilePathName(file))));
		}
		at += n;
	}
	pfree(zeros);
}

static void *
map_file(QvRoom *room, File file, Size size)
{
	Mapping    *mapping;

	room->file = file;
	room->mapping = AllocSetContextCreate(CurrentMemoryContext, "quiver mapped file",
										  ALLOCSET_SMALL_SIZES);
	mapping = MemoryContextAllocZero(room->mapping, sizeof(Mapping));
	/* the server may have closed the file for another one */
	if (FileSize(file) < (off_t) size || FileGetRawDesc(file) < 0)
		elog(ERROR, "temporary file \"%s\" is too short", FilePathName(file));
	mapping->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, FileGetRawDesc(file), 0);
	if (mapping->memory == MAP_FAILED)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not map temporary file \"%s\": %m", FilePathName(file))));
	mapping->size = size;
	mapping->end.func = end_mapping;
	mapping->end.arg = mapping;
	MemoryContextRegisterResetCallback(room->mapping, &mapping->end);
	room->memory = mapping->memory;
	return room->memory;
}

void *
QvRoomMake(QvRoom *room, Size size, Size most)
{
	File		file;

	if (size <= most)
	{
		room->mapping = NULL;
		room->memory = MemoryContextAllocHuge(CurrentMemoryContext, Max(1, size));
		return room->memory;
	}
	PrepareTempTablespaces();
	file = OpenTemporaryFile(false);
	fill_file(file, size);
	return map_file(room, file, size);
}

void *
QvRoomMakeShared(QvRoom *room, SharedFileSet *files, const char *name, Size size)
{
	File		file = FileSetCreate(&files->fs, name);

	fill_file(file, size);
	return map_file(room, file, size);
}

void *
QvRoomOpenShared(QvRoom *room, SharedFileSet *files, const char *name, Size size)
{
	return map_file(room, FileSetOpen(&files->fs, name, O_RDWR), size);
}

void
QvRoomFree(QvRoom *room)
{
	if (room->mapping)
	{
		MemoryContextDelete(room->mapping);
		FileClose(room->file);
	}
	else if (room->memory)
		pfree(room->memory);
	room->mapping = NULL;
	room->memory = NULL;
}
