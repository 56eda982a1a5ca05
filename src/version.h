/*
 * version.h
 *		The version of the library and of extension quiver.
 */
#ifndef QV_VERSION_H
#define QV_VERSION_H

#define QUIVER_VERSION "0.2.0"

#endif							/* QV_VERSION_H */
