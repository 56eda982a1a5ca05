/*
 * version.h
 *		Quiver's version: of the library, the extension quiver and the README.
 */
#ifndef QV_VERSION_H
#define QV_VERSION_H

#define QUIVER_VERSION "0.2.0"

#endif							/* QV_VERSION_H */
