/*
 * monitor.h
 *		Functions that show how an index does (src/monitor/README.md).
 */
#ifndef QV_MONITOR_MONITOR_H
#define QV_MONITOR_MONITOR_H

/* recall.c: at load. */
extern void QvMonitorInit(void);

#endif							/* QV_MONITOR_MONITOR_H */
